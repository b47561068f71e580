//! `make` and `make install` where something is missing or in the way: one message
//! that says what to do, and nothing half done. A copy of what they read stands in a
//! throw-away directory, and the only programs are those that are linked there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{Ran, World, finish, has_tool, may_unshare, static_tongs};

const TOOLS: &[&str] = &[
    "sh", "make", "sed", "head", "env", "grep", "cat", "mktemp", "rm", "mkdir", "cmp", "cp", "mv",
    "tr", "dirname", "find", "sort", "install", "ln", "chmod", "readlink", "rmdir", "bash",
    "uname", "date",
];

/// What tells its version and where its libraries are, and compiles nothing.
const RUSTC: &str = r#"case "$*" in
    --version) echo "rustc ${STUB_VERSION-1.85.0} (0123456789 2025-02-17)" ;;
    -vV) echo 'host: x86_64-unknown-linux-gnu' ;;
    '--print sysroot') cd "$(dirname "$0")/.." && pwd ;;
    *) exit 1 ;;
esac
"#;

/// What builds the program under test, whatever it is asked for, and notes that.
const CARGO: &str = r#"[ "$1" = build ] || exit 0
echo "$@" >cargo-was-asked
while [ "$1" != --target ]; do shift; done
mkdir -p "target/$2/release"
cp "$TONGS_BIN" "target/$2/release/tongs"
"#;

/// A copy of the sources, and the programs that there are.
pub struct Tree {
    /// The sources are its `project`, the programs its `tools`.
    pub world: World,
}

impl Tree {
    /// The sources' own files, without anything that was built.
    pub fn new() -> Tree {
        let tree = Tree { world: World::new() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut copy = Command::new("cp");
        copy.arg("-R")
            .args(["Makefile", "Cargo.toml", "LICENSE", "packaging", "man"].map(|n| root.join(n)));
        copy.arg(tree.world.path("project"));
        finish(copy, b"").silent();
        fs::create_dir(tree.world.path("project/src")).unwrap();
        fs::copy(root.join("src/frames.rs"), tree.world.path("project/src/frames.rs")).unwrap();
        fs::create_dir(tree.world.path("tools")).unwrap();
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(tool));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, tree.world.path("tools").join(tool)).unwrap();
        }
        tree
    }

    /// The same, built.
    pub fn built() -> Tree {
        let tree = Tree::new();
        tree.with(&["cc", "rustc", "cargo"]);
        let ran = finish(tree.make(&[]), b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for name in ["cc", "rustc", "cargo"] {
            fs::remove_file(tree.world.path("tools").join(name)).unwrap();
        }
        tree
    }

    /// Adds a program.
    fn stub(&self, name: &str, script: &str) {
        let path = self.world.path("tools").join(name);
        // Not written here: another thread's child may hold it open for writing.
        let mut write = Command::new("sh");
        write.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(&path);
        finish(write, format!("#!/bin/sh\n{script}").as_bytes()).silent();
    }

    /// Adds programs by their names.
    pub fn with(&self, names: &[&str]) {
        for name in names {
            let script = match *name {
                "rustc" => RUSTC,
                "cargo" => CARGO,
                _ => "exit 0\n",
            };
            self.stub(name, script);
        }
    }

    fn make(&self, args: &[&str]) -> Command {
        let mut make = Command::new("make");
        self.bare(&mut make);
        make.args(args);
        make
    }

    /// Gives a command these programs and no other.
    pub fn bare(&self, command: &mut Command) {
        self.world.bare(command);
        let tools = self.world.path("tools");
        command.env("PATH", &tools).env("TONGS_BIN", crate::world::tongs());
        command.env("TMPDIR", self.world.path("home"));
    }

    /// What `make install` does with this DESTDIR.
    fn install(&self, to: &Path, more: &[&str]) -> Ran {
        let mut make = self.make(&["install"]);
        make.args(more).env("DESTDIR", to);
        let ran = finish(make, b"");
        // Neither does it leave anything where it works.
        assert_eq!(fs::read_dir(self.world.path("home")).unwrap().count(), 0);
        ran
    }
}

/// Checks that a run of make failed with one message of ours.
#[track_caller]
fn says(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ours: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| !line.starts_with("make: ***") && !line.starts_with("make[1]: ***"))
        .collect();
    assert_eq!(ours.len(), 1, "{ran:?}");
    assert!(ours[0].starts_with("make: "), "{ran:?}");
    for word in words {
        assert!(ours[0].contains(word), "{word}: {ran:?}");
    }
}

/// All that is below a directory, the directories as well.
fn below(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                dirs.push(path.clone());
            }
            all.insert(path);
        }
    }
    all
}

/// Checks that a build fails so and begins nothing.
#[track_caller]
fn no_build(tree: &Tree, version: &str, words: &[&str]) {
    let mut make = tree.make(&[]);
    make.env("STUB_VERSION", version);
    says(&finish(make, b""), words);
    for name in ["build", "target", "cargo-was-asked"] {
        assert!(!tree.world.path("project").join(name).exists(), "{name}");
    }
}

#[test]
fn a_build_that_cannot_be_says_what_to_install() {
    if !has_tool("make", "a_build_that_cannot_be") {
        return;
    }
    let needed = env!("CARGO_PKG_RUST_VERSION").trim_end_matches(".0");
    let needed = format!("{needed} is needed");
    let tree = Tree::new();
    no_build(&tree, "", &["cargo is not installed", "rustup", "apt-get install cargo"]);
    tree.with(&["cargo"]);
    no_build(&tree, "", &["rustc is not installed", "rustup"]);
    tree.with(&["rustc"]);
    no_build(&tree, "1.63.0", &["Rust 1.63 is too old", &needed, "rustup update"]);
    no_build(&tree, "1.84.1-nightly", &["Rust 1.84 is too old"]);
    no_build(&tree, "0.99.0", &["Rust 0.99 is too old"]);
    no_build(&tree, "1.85.0", &["cc is not installed", "apt-get install gcc libc6-dev"]);
    tree.with(&["cc"]);
    // What rustup leaves for its programs before it has a toolchain.
    tree.stub("rustc", "echo 'error: rustup could not choose a version' >&2; exit 1\n");
    no_build(&tree, "", &["rustc does not run", "rustup toolchain install stable"]);
    tree.with(&["rustc"]);
    tree.stub("cargo", "exit 1\n");
    no_build(&tree, "2.0.0", &["cargo does not run"]);
}

#[test]
fn a_build_takes_musl_where_it_is_and_the_c_library_elsewhere() {
    let test = "a_build_takes_musl";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let built_for = |tree: &Tree| {
        let ran = finish(tree.make(&[]), b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert!(tree.world.path("project/build/tongs-hook").exists());
        let asked = fs::read_to_string(tree.world.path("project/cargo-was-asked")).unwrap();
        let target = asked.split(' ').skip_while(|word| *word != "--target").nth(1);
        target.unwrap().to_string()
    };
    let tree = Tree::new();
    tree.with(&["cargo", "rustc", "cc"]);
    assert_eq!(built_for(&tree), "x86_64-unknown-linux-gnu", "no rustup");
    tree.stub("rustup", "echo 'error: could not download' >&2; exit 1\n");
    assert_eq!(built_for(&tree), "x86_64-unknown-linux-gnu", "no network");
    tree.stub("rustup", "mkdir -p \"$(dirname \"$0\")/../lib/rustlib/$3/lib\"\n");
    assert_eq!(built_for(&tree), "x86_64-unknown-linux-musl");
    fs::remove_file(tree.world.path("tools/rustup")).unwrap();
    assert_eq!(built_for(&tree), "x86_64-unknown-linux-musl", "it is there");
}

#[test]
fn the_makefile_is_one_for_other_makes_as_well() {
    let test = "the_makefile_is_one_for_other_makes";
    if !has_tool("bmake", test) {
        return;
    }
    let bmake = |tree: &Tree| {
        let link = tree.world.path("tools/bmake");
        if !link.exists() {
            symlink("/usr/bin/bmake", link).unwrap();
        }
        let mut make = Command::new("bmake");
        tree.bare(&mut make);
        make
    };
    let tree = Tree::new();
    for goal in ["all", "check", "demo", "install", "tree", "uninstall", "dist", "lint"] {
        let mut make = bmake(&tree);
        make.args(["-n", goal]);
        let ran = finish(make, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{goal}: {ran:?}");
    }
    assert!(!tree.world.path("project/build").exists());
    if static_tongs(test).is_some() {
        let tree = Tree::built();
        let mut make = bmake(&tree);
        make.args(["install", "prefix=/usr"]).env("DESTDIR", tree.world.path("it's"));
        let ran = finish(make, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert!(tree.world.path("it's/usr/bin/tongs-hook").exists());
    }
}

#[test]
fn pages_are_not_checked_without_mandoc_and_make_says_so() {
    if !has_tool("make", "pages_are_not_checked") {
        return;
    }
    let ran = finish(Tree::new().make(&["lint-man"]), b"");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.err, "mandoc is not installed: man pages are not checked\n");
}

#[test]
fn an_install_without_a_build_says_to_build_first() {
    if !has_tool("make", "an_install_without_a_build") {
        return;
    }
    let tree = Tree::new();
    let to = tree.world.path("to");
    says(&tree.install(&to, &[]), &["run 'make' first"]);
    assert!(!to.exists());
}

#[test]
fn an_install_needs_no_compiler_and_destdir_may_have_any_character() {
    let test = "an_install_needs_no_compiler";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let tree = Tree::built();
    let plain = tree.world.path("plain");
    let ran = tree.install(&plain, &["prefix=/usr"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let files = |dir: &Path| -> BTreeSet<PathBuf> {
        below(dir).iter().map(|path| path.strip_prefix(dir).unwrap().to_path_buf()).collect()
    };
    let whole = files(&plain);
    assert!(whole.contains(Path::new("usr/bin/tongs-hook")), "{whole:?}");
    for name in ["a b", "it's", "a\"b", "a$HOME", "$(touch no)", "a\\b", "-x", "a;b", "ü*?"] {
        let to = tree.world.path(name);
        let ran = tree.install(&to, &["prefix=/usr"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        assert_eq!(files(&to), whole, "{name}");
        let mut gone = tree.make(&["-s", "uninstall", "prefix=/usr"]);
        gone.env("DESTDIR", &to);
        finish(gone, b"").silent();
        let left: Vec<PathBuf> = below(&to).into_iter().filter(|path| !path.is_dir()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    // On make's command line, where a dollar is two, and beside the sources.
    let to = format!("DESTDIR={}", tree.world.path("it's $$0").display());
    assert_eq!(finish(tree.make(&["install", "prefix=/usr", &to]), b"").code, Some(0));
    assert_eq!(files(&tree.world.path("it's $0")), whole);
    assert_eq!(tree.install(Path::new("dist/x"), &["prefix=/usr"]).code, Some(0));
    assert_eq!(files(&tree.world.path("project/dist/x")), whole);
    // Only what would be done.
    let ran = tree.install(&tree.world.path("dry"), &["-n"]);
    assert_eq!(ran.code, Some(0));
    assert!(!tree.world.path("dry").exists());
}

#[test]
fn a_prefix_that_units_cannot_name_is_refused() {
    let test = "a_prefix_that_units_cannot_name";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let tree = Tree::built();
    let to = tree.world.path("to");
    for prefix in ["prefix=/a b", "bindir=/it's", "prefix=/a|b", "datadir=/a&b", "mandir=/a\"b"] {
        says(&tree.install(&to, &[prefix]), &[prefix.split('=').next().unwrap(), "has others"]);
    }
    says(&tree.install(&to, &["prefix=~/.local"]), &["prefix must begin with /", "'~/.local'"]);
    says(&tree.install(Path::new("/a\nb"), &[]), &["newline"]);
    assert!(!to.exists() && !tree.world.path("project/~").exists());
}

#[test]
fn what_is_of_another_program_stays_and_an_earlier_one_of_ours_is_replaced() {
    let test = "what_is_of_another_program_stays";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let tree = Tree::built();
    let to = tree.world.path("to");
    let at = |name: &str| to.join("usr/local").join(name);
    // A program of that name, a link elsewhere, a directory, and a file for a directory.
    let theirs = "#!/usr/bin/env python3\nimport tongs\n";
    fs::create_dir_all(at("bin")).unwrap();
    fs::write(at("bin/tongs"), theirs).unwrap();
    let before = below(&to);
    let program = at("bin/tongs").display().to_string();
    says(&tree.install(&to, &[]), &[&program, "is of another program", "FORCE=1"]);
    assert_eq!(below(&to), before);
    assert_eq!(fs::read_to_string(at("bin/tongs")).unwrap(), theirs);
    fs::remove_file(at("bin/tongs")).unwrap();
    symlink("/bin/true", at("bin/tongs-hook")).unwrap();
    says(&tree.install(&to, &[]), &["bin/tongs-hook is of another program"]);
    fs::remove_file(at("bin/tongs-hook")).unwrap();
    fs::create_dir_all(at("share/man/man1/tongs.1")).unwrap();
    let before = below(&to);
    for more in [[].as_slice(), &["FORCE=1"]] {
        says(&tree.install(&to, more), &["man1/tongs.1 is a directory: move it away"]);
        assert_eq!(below(&to), before);
    }
    fs::remove_dir_all(at("share/man/man1")).unwrap();
    fs::write(at("share/man/man1"), "").unwrap();
    says(&tree.install(&to, &[]), &["man1 is no directory: move it away"]);
    assert!(at("share/man/man1").is_file() && !at("bin/tongs").exists());
    fs::remove_file(at("share/man/man1")).unwrap();

    // With FORCE theirs goes, even a link to a directory, of which nothing is touched.
    fs::write(at("bin/tongs"), theirs).unwrap();
    fs::create_dir(tree.world.path("off")).unwrap();
    symlink(tree.world.path("off"), at("bin/tongs-agents")).unwrap();
    assert_eq!(tree.install(&to, &["FORCE=1"]).code, Some(0));
    assert!(fs::read(at("bin/tongs")).unwrap() == fs::read(crate::world::tongs()).unwrap());
    assert_eq!(fs::read_link(at("bin/tongs-agents")).unwrap(), Path::new("tongs"));
    assert!(below(&tree.world.path("off")).is_empty());

    // Each file of ours is known for ours in another version, and a running program
    // is no obstacle.
    let whole = below(&to);
    for path in whole.iter().filter(|path| path.is_file() && !path.is_symlink()) {
        let mut old = fs::read(path).unwrap();
        old.extend(b"\nof an earlier version\n");
        fs::write(path, old).unwrap();
    }
    let ran = tree.install(&to, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(below(&to), whole);
    for path in whole.iter().filter(|path| path.is_file()) {
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        assert!([0o644, 0o755].contains(&mode), "{mode:o} {path:?}");
        assert!(!fs::read(path).unwrap().ends_with(b"earlier version\n"), "{path:?}");
    }

    // What is theirs stays when ours goes, and what a killed install left goes, too.
    let kept = [
        ("bin/tongs", "#!/bin/sh\n"),
        ("share/man/man1/tongs.1", "another page\n"),
        ("share/tongs/examples/mine.sh", "mine\n"),
    ];
    for (path, text) in kept {
        fs::write(at(path), text).unwrap();
    }
    fs::remove_file(at("bin/tongs-agents")).unwrap();
    symlink("/bin/true", at("bin/tongs-agents")).unwrap();
    fs::write(at("bin/.tongs-hook.new123"), "half").unwrap();
    fs::write(at("bin/.tongs-hook.newer"), "theirs").unwrap();
    let mut make = tree.make(&["uninstall"]);
    make.env("DESTDIR", &to);
    let ran = finish(make, b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.err.matches(" is not of tongs and stays\n").count(), 4, "{ran:?}");
    let left: Vec<PathBuf> =
        below(&to).into_iter().filter(|path| path.is_symlink() || path.is_file()).collect();
    let mut want = kept.map(|(path, _)| at(path)).to_vec();
    want.extend([at("bin/tongs-agents"), at("bin/.tongs-hook.newer")]);
    want.sort();
    assert_eq!(left, want);
}

/// Runs `make install` into a file system that is mounted so; returns what it says and
/// what is there then.
fn into_mount(tree: &Tree, options: &str, tail: &str) -> (Ran, String) {
    fs::create_dir_all(tree.world.path("disk")).unwrap();
    let mut make = Command::new("unshare");
    make.args(["-rm", "sh", "-c"]).arg(
        "mount -t tmpfs -o \"$1\" tmpfs \"$2\" || exit 1; PATH=$3; \
         DESTDIR=$2$4 make install; code=$?; find \"$2\" -mindepth 1 >found; exit \"$code\"",
    );
    let disk = tree.world.path("disk");
    make.arg("sh").arg(options).arg(&disk).arg(tree.world.path("tools")).arg(tail);
    tree.bare(&mut make);
    make.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let ran = finish(make, b"");
    (ran, fs::read_to_string(tree.world.path("project/found")).unwrap())
}

#[test]
fn nothing_is_installed_where_nothing_may_be_written_or_too_little_has_room() {
    let test = "nothing_is_installed_where";
    if static_tongs(test).is_none() || !has_tool("make", test) || !may_unshare(test) {
        return;
    }
    let tree = Tree::built();
    let disk = tree.world.path("disk").display().to_string();
    let (ran, found) = into_mount(&tree, "ro", "/to");
    says(&ran, &[&disk, "cannot be written", "sudo make install", "prefix="]);
    assert_eq!(found, "");
    let size = fs::metadata(crate::world::tongs()).unwrap().len();
    // Too small for the program, and for what comes after it.
    for size in [size / 2, size + 60_000] {
        let (ran, found) = into_mount(&tree, &format!("size={size}"), "/t\\o's/a");
        says(&ran, &["nothing was installed", "No space left on device"]);
        assert_eq!(found, "");
    }
}

#[test]
fn nothing_is_installed_when_the_tree_cannot_be_made() {
    let test = "nothing_is_installed_when_the_tree";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let tree = Tree::built();
    let to = tree.world.path("to");
    fs::remove_file(tree.world.path("project/man/tongs.7")).unwrap();
    let ran = tree.install(&to, &[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("make: nothing was installed: the tree could not be"), "{ran:?}");
    assert!(!to.exists());
    let mut make = tree.make(&["install"]);
    make.env("DESTDIR", &to).env("TMPDIR", tree.world.path("nowhere"));
    let ran = finish(make, b"");
    assert!(
        ran.err.contains(
            "make: nothing was installed: no temporary directory can be made: set TMPDIR"
        ),
        "{ran:?}"
    );
    assert!(!to.exists());
}
