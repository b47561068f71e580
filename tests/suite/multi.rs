//! Dispatch: whole names only.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::world::{Ran, World, finish, tongs};

fn as_name(world: &World, name: &str, args: &[&str]) -> Ran {
    let mut command = Command::new(tongs());
    world.bare(&mut command);
    command.arg0(name).args(args);
    finish(command, b"")
}

#[test]
fn the_whole_last_component_of_argv_0_decides() {
    let world = World::new();
    for name in ["tongs-agents", "/usr/bin/tongs-agents", "./tongs-agents"] {
        let ran = as_name(&world, name, &["--version"]);
        assert_eq!(
            (ran.code, ran.out.starts_with("tongs-agents "), ran.err.as_str()),
            (Some(0), true, "")
        );
    }
    for name in ["", "my-tongs-hook", "tongs-hook2", "tongs-", "hook", "TONGS-HOOK", "tongs-hook/"]
    {
        let ran = as_name(&world, name, &["claude", "Stop"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{name:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        assert!(ran.err.starts_with("tongs: "), "{ran:?}");
    }
}

#[test]
fn as_tongs_the_first_argument_decides() {
    let world = World::new();
    let ran = world.run("tongs", &["agents", "--version"], b"");
    assert_eq!((ran.code, ran.out.starts_with("tongs-agents ")), (Some(0), true));
    let ran = world.run(
        "tongs",
        &["hook", "--strict", "claude", "SessionStart"],
        br#"{"session_id":"s","cwd":"/tmp"}"#,
    );
    assert_eq!(ran.json()["outcome"], "written");
    let ran = world.run("tongs", &["tongs-hook"], b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
    let ran = world.run("tongs", &[], b"");
    assert_eq!(
        (ran.code, ran.err.as_str(), ran.out.starts_with("Usage: tongs ")),
        (Some(64), "", true)
    );
    let list = world.run("tongs", &["--list"], b"").out;
    let names: Vec<&str> = list.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["tongs-agents", "tongs-bridge-import", "tongs-hook"]);
}

#[test]
fn links_are_relative_made_once_and_never_over_something_else() {
    let world = World::new();
    let dir = world.path("links");
    fs::create_dir(&dir).unwrap();
    symlink(tongs(), dir.join("tongs")).unwrap();
    let path = dir.to_str().unwrap();
    for _ in 0..2 {
        world.run("tongs", &["--install-links", path], b"").silent();
        for name in ["tongs-agents", "tongs-bridge-import", "tongs-hook"] {
            assert_eq!(fs::read_link(dir.join(name)).unwrap().to_str(), Some("tongs"));
        }
    }
    fs::remove_file(dir.join("tongs-agents")).unwrap();
    fs::remove_file(dir.join("tongs-hook")).unwrap();
    fs::write(dir.join("tongs-hook"), "mine").unwrap();
    let ran = world.run("tongs", &["--install-links", path], b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""));
    assert!(ran.err.contains("something else is in its place"), "{ran:?}");
    assert!(!dir.join("tongs-agents").exists(), "nothing is half done");
    assert_eq!(fs::read(dir.join("tongs-hook")).unwrap(), b"mine");
}

#[test]
fn more_words_than_the_entry_keeps_by_itself_are_all_seen() {
    let world = World::new();
    let many: Vec<&str> = std::iter::once("status")
        .chain(std::iter::repeat_n(["--harness", "claude"], 40).flatten())
        .chain(["--json"])
        .collect();
    let ran = world.agents(&many);
    assert_eq!((ran.code, ran.json()["store"].as_str()), (Some(0), Some("missing")));
}

#[test]
fn an_argument_that_is_not_utf_8_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let mut command = world.command("tongs-agents");
    command.arg(std::ffi::OsStr::from_bytes(b"st\xff"));
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
}
