//! Packages: made by way of `make install` from what is built, installed into
//! throw-away roots, and removed again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{Ran, World, finish, has_tool, static_tongs};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Makes a package by its script; returns it.
#[track_caller]
fn made(world: &World, script: &str) -> PathBuf {
    let mut sh = Command::new("sh");
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
