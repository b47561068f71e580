//! Packages: made by way of `make install` from what is built, installed into
//! throw-away roots, and removed again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::Tree;
use crate::world::{Ran, World, finish, has_tool, static_tongs};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Makes a package by its script; returns it.
#[track_caller]
fn made(world: &World, script: &str) -> PathBuf {
    // Whoever makes it may have any umask.
    let mut sh = Command::new("sh");
    sh.args(["-c", "umask 077; exec sh \"$1\"", "sh"]);
    sh.arg(root().join("packaging").join(script)).env("OUT", world.path("out"));
    let ran = finish(sh, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    PathBuf::from(ran.out.trim())
}

#[track_caller]
fn good(program: &str, args: &[&str]) -> Ran {
    let mut command = Command::new(program);
    command.args(args);
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(0), "{program} {args:?}: {ran:?}");
    ran
}

/// What is no directory below one, with the ends of packed man pages as they are
/// unpacked.
fn files(dir: &Path) -> BTreeSet<String> {
    let text = good("find", &[dir.to_str().unwrap(), "!", "-type", "d", "-printf", "%P\n"]).out;
    text.lines().map(|line| line.strip_suffix(".gz").unwrap_or(line).to_string()).collect()
}

/// What `make install` brings below `usr`.
fn installed(world: &World) -> BTreeSet<String> {
    let stage = world.path("stage");
    let script = root().join("packaging/stage.sh");
    good("sh", &[script.to_str().unwrap(), stage.to_str().unwrap(), "/usr"]);
    let files = files(&stage.join("usr"));
    assert!(
        files.contains("bin/tongs-hook") && files.contains("share/man/man1/tongs.1"),
        "{files:?}"
    );
    files
}

/// A package's own documents.
fn is_document(file: &str) -> bool {
    ["share/doc/tongs/", "share/licenses/tongs/", "share/lintian/overrides/tongs"]
        .iter()
        .any(|start| file.starts_with(start))
}

/// Checks what stands below a root once a package is in it.
fn is_whole(world: &World, usr: &Path) {
    let here: BTreeSet<String> = files(usr).into_iter().filter(|file| !is_document(file)).collect();
    assert_eq!(here, installed(world));
    let version = good(usr.join("bin/tongs-agents").to_str().unwrap(), &["--version"]).out;
    assert_eq!(version, format!("tongs-agents {VERSION}\n"));
    let unit = fs::read_to_string(usr.join("lib/systemd/user/tongs-notify.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/tongs-agents "), "{unit}");
}

#[test]
fn a_deb_is_installed_whole_and_removed_whole() {
    let test = "a_deb_is_installed";
    if static_tongs(test).is_none() || !has_tool("dpkg-deb", test) {
        return;
    }
    let world = World::new();
    let deb = made(&world, "deb.sh");
    let deb = deb.to_str().unwrap();
    assert_eq!(good("dpkg-deb", &["-f", deb, "Version"]).out, format!("{VERSION}-1\n"));
    if has_tool("lintian", test) {
        let ran = good("lintian", &["--fail-on", "error,warning", deb]);
        assert_eq!(ran.out, "", "{ran:?}");
    }
    let target = world.path("target");
    fs::create_dir(&target).unwrap();
    if good("id", &["-u"]).out != "0\n" {
        eprintln!("{test}: only root can install it: it is unpacked");
        good("dpkg-deb", &["-x", deb, target.to_str().unwrap()]);
        is_whole(&world, &target.join("usr"));
        return;
    }
    for dir in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        fs::create_dir_all(target.join(dir)).unwrap();
    }
    fs::write(target.join("var/lib/dpkg/status"), "").unwrap();
    let option = format!("--root={}", target.display());
    let dpkg = |args: &[&str]| {
        good(
            "dpkg",
            &[&[option.as_str(), "--force-script-chrootless", "--log=/dev/null"], args].concat(),
        )
    };
    dpkg(&["--install", deb]);
    is_whole(&world, &target.join("usr"));
    let ran = dpkg(&["--remove", "tongs"]);
    assert!(ran.out.contains("tongs-agents uninstall --all"), "{ran:?}");
    assert!(!target.join("usr").exists() || files(&target.join("usr")).is_empty());
}

#[test]
fn an_rpm_is_installed_whole_and_removed_whole() {
    let test = "an_rpm_is_installed";
    if static_tongs(test).is_none() || !has_tool("rpmbuild", test) {
        return;
    }
    let world = World::new();
    let rpm = made(&world, "rpm.sh");
    let bytes = fs::read(&rpm).unwrap();
    assert!(bytes == fs::read(made(&world, "rpm.sh")).unwrap(), "it is not the same again");
    let rpm = rpm.to_str().unwrap();
    assert_eq!(good("rpm", &["-qp", "--qf", "%{VERSION}", rpm]).out, VERSION);
    if has_tool("rpmlint", test) {
        let config = root().join("packaging/rpmlint.toml");
        let out = good("rpmlint", &["-c", config.to_str().unwrap(), rpm]).out;
        assert!(out.contains("; 0 errors, 0 warnings"), "{out}");
    }
    if good("id", &["-u"]).out != "0\n" {
        eprintln!("skipped {test}: only root can install it");
        return;
    }
    let target = world.path("target");
    fs::create_dir(&target).unwrap();
    let target_text = target.to_str().unwrap();
    let run =
        |args: &[&str]| good("rpm", &[&["--root", target_text, "--dbpath", "/db"], args].concat());
    run(&["--initdb"]);
    // Its script has no shell in this root.
    run(&["--install", "--nodeps", "--noscripts", rpm]);
    is_whole(&world, &target.join("usr"));
    let script = run(&["-q", "--scripts", "tongs"]).out;
    assert!(script.contains("tongs-agents uninstall --all"), "{script}");
    run(&["--erase", "--noscripts", "tongs"]);
    assert!(!target.join("usr/share/tongs").exists());
    assert!(!target.join("usr").exists() || files(&target.join("usr")).is_empty());
}

#[test]
fn a_tarball_has_its_checksum_and_is_the_same_again() {
    let test = "a_tarball_has_its_checksum";
    if static_tongs(test).is_none() {
        return;
    }
    let world = World::new();
    let tarball = made(&world, "tarball.sh");
    let bytes = fs::read(&tarball).unwrap();
    assert!(bytes == fs::read(made(&world, "tarball.sh")).unwrap());
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet"]).current_dir(world.path("out"));
    check.arg(format!("{}.sha256", tarball.file_name().unwrap().to_str().unwrap()));
    assert_eq!(finish(check, b"").code, Some(0));
    let target = world.path("prefix");
    fs::create_dir(&target).unwrap();
    good(
        "tar",
        &["-xf", tarball.to_str().unwrap(), "-C", target.to_str().unwrap(), "--strip-components=1"],
    );
    let here: BTreeSet<String> = files(&target)
        .into_iter()
        .filter(|file| !["LICENSE", "README.md"].contains(&file.as_str()))
        .collect();
    assert_eq!(here, installed(&world));
}

#[test]
fn every_program_and_page_says_the_same_version() {
    let world = World::new();
    for name in ["tongs", "tongs-agents", "tongs-hook", "tongs-bridge-import"] {
        let link = world.path("bin").join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(crate::world::tongs(), &link).unwrap();
        }
        let ran = world.run(name, &["--version"], b"");
        assert_eq!((ran.code, ran.out), (Some(0), format!("{name} {VERSION}\n")));
    }
}

/// The recipes of other systems: how each says its version, the install, and the files
/// where it says what goes before the program does.
const RECIPES: &[(&str, &str, &str, &str)] = &[
    (
        "arch/PKGBUILD",
        "\npkgver=@\n",
        "make install DESTDIR=\"$pkgdir\" prefix=/usr\n",
        "arch/tongs.install",
    ),
    (
        "alpine/APKBUILD",
        "\npkgver=@\n",
        "make install DESTDIR=\"$pkgdir\" prefix=/usr\n",
        "alpine/tongs.pre-deinstall",
    ),
    (
        "homebrew/tongs.rb",
        "  version \"@\"\n",
        "system \"make\", \"install\", \"prefix=#{prefix}\"\n",
        "homebrew/tongs.rb",
    ),
    ("nix/package.nix", "  version = \"@\";\n", "make install prefix=$out\n", "nix/package.nix"),
];

fn recipe(name: &str) -> String {
    fs::read_to_string(root().join("packaging").join(name)).unwrap()
}

#[test]
fn every_recipe_has_this_version_and_installs_by_make_and_has_no_list_of_files() {
    let test = "every_recipe_has_this_version";
    for (name, version, install, last_words) in RECIPES {
        let text = recipe(name);
        assert!(text.starts_with("# "), "{name}");
        assert!(text.contains(&version.replace('@', VERSION)), "{name}");
        assert!(text.contains(install), "{name}");
        assert!(recipe(last_words).contains("tongs-agents uninstall --all"), "{name}");
        // The only addresses are placeholders that say so.
        assert!(text.contains("placeholder"), "{name}");
        for (at, _) in text.match_indices("https://") {
            assert!(text[at..].starts_with("https://tongs.invalid/"), "{name}");
        }
    }
    if static_tongs(test).is_none() {
        return;
    }
    let world = World::new();
    for path in installed(&world) {
        let file = path.rsplit('/').next().unwrap();
        // The program's own name, and what it is called by.
        if !matches!(file, "tongs" | "tongs-agents") && file.len() > 6 {
            for (name, ..) in RECIPES {
                assert!(!recipe(name).contains(file), "{name} names {file}");
            }
        }
    }
}

/// Runs the phases of a recipe in sources whose cargo only brings what was built, and
/// checks what they package.
#[track_caller]
fn packages(shell: &str, name: &str, phases: &str) {
    let tree = Tree::new();
    let world = &tree.world;
    tree.with(&["cargo", "rustc", "cc", "default_prepare"]);
    std::os::unix::fs::symlink("project", world.path(&format!("tongs-{VERSION}"))).unwrap();
    let script = format!(
        "srcdir=$1 pkgdir=$2; . \"$3\"; cd \"${{builddir-$srcdir}}\"; \
         for phase in {phases}; do (set -e; $phase) || exit 1; done"
    );
    let mut run = Command::new(shell);
    tree.bare(&mut run);
    run.args(["-euc", &script, shell]).arg(world.path("")).arg(world.path("it's pkg"));
    run.arg(root().join("packaging").join(name));
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    is_whole(world, &world.path("it's pkg/usr"));
    assert!(world.path("it's pkg/usr/share/licenses/tongs/LICENSE").exists());
}

#[test]
fn the_recipe_of_arch_packages_what_make_install_brings() {
    let test = "the_recipe_of_arch";
    if static_tongs(test).is_some() && has_tool("bash", test) {
        good("bash", &["-n", root().join("packaging/arch/tongs.install").to_str().unwrap()]);
        packages("bash", "arch/PKGBUILD", "prepare build check package");
    }
}

#[test]
fn the_recipe_of_alpine_packages_what_make_install_brings() {
    if static_tongs("the_recipe_of_alpine").is_some() {
        let words = root().join("packaging/alpine/tongs.pre-deinstall");
        assert!(good("sh", &[words.to_str().unwrap()]).out.contains("uninstall --all"));
        packages("sh", "alpine/APKBUILD", "prepare build check package");
    }
}

#[test]
fn the_recipes_of_homebrew_and_nix_are_of_their_languages() {
    let test = "the_recipes_of_homebrew_and_nix";
    if has_tool("ruby", test) {
        good("ruby", &["-c", root().join("packaging/homebrew/tongs.rb").to_str().unwrap()]);
    }
    if has_tool("nix-instantiate", test) {
        let world = World::new();
        let mut parse = Command::new("nix-instantiate");
        world.bare(&mut parse);
        parse.args(["--store", "dummy://", "--parse"]);
        parse.arg(root().join("packaging/nix/package.nix"));
        parse.env("NIX_STATE_DIR", world.path("state"));
        let ran = finish(parse, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn a_recipe_whose_tool_is_not_there_says_how_to_get_it() {
    for (script, tool) in [("arch.sh", "base-devel"), ("apk.sh", "alpine-sdk")] {
        let tree = Tree::new();
        let mut sh = Command::new("sh");
        tree.bare(&mut sh);
        sh.arg(format!("packaging/{script}"));
        let ran = finish(sh, b"");
        assert_eq!(ran.code, Some(69), "{ran:?}");
        assert!(ran.err.starts_with(script) && ran.err.contains(tool), "{ran:?}");
    }
}

#[test]
fn the_scripts_of_packaging_are_clean() {
    let test = "the_scripts_of_packaging";
    if !has_tool("shellcheck", test) {
        return;
    }
    let dirs = ["packaging", "packaging/freshcheck", "packaging/pictures", "packaging/alpine"];
    for dir in dirs {
        for entry in fs::read_dir(root().join(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "sh" || e == "pre-deinstall") {
                let mut check = Command::new("shellcheck");
                check.args(["-x", "-s", "sh"]).arg(&path).current_dir(root());
                let ran = finish(check, b"");
                assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{path:?}");
            }
        }
    }
}
