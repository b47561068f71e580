//! The directory, the locks, files that are not what they should be, and disks
//! that are full.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::world::{Ran, World, bytes, claude, finish, has_tool};

fn hook(world: &World, event: &str) -> Ran {
    world.run("tongs-hook", &["--strict", "claude", event], claude("s", "").as_bytes())
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A holder of a file's lock, in a process of its own.
struct Holder(Child);

impl Holder {
    fn of(path: &Path) -> Holder {
        let mut child = Command::new("flock")
            .arg(path)
            .args(["sh", "-c", "echo held; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_store_that_is_not_private_is_refused_by_all_and_never_repaired() {
    for (path, mode) in [
        ("home/.local/state/tongs-agents/sessions", 0o755),
        ("home/.local/state/tongs-agents/sessions", 0o710),
        ("home/.local/state/tongs-agents", 0o770),
        ("home/.local/state", 0o777),
    ] {
        let world = World::new();
        assert_eq!(hook(&world, "SessionStart").code, Some(0));
        let before = bytes(&world.record_files()[0]);
        set_mode(world.path(path), mode);
        let ran = hook(&world, "Stop");
        assert_eq!(
            (ran.code, &ran.json()["reason"]),
            (Some(77), &json!("store-unsafe")),
            "{path} {mode:o}"
        );
        world.run("tongs-hook", &["claude", "Stop"], claude("s", "").as_bytes()).silent();
        let ran = world.agents(&["status", "--json"]);
        assert_eq!((ran.code, &ran.json()["store"]), (Some(1), &json!("unavailable")));
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        let ran = world.agents(&["cleanup", "--json"]);
        assert_eq!((ran.code, &ran.json()["skipped"]), (Some(1), &json!("unavailable")));
        let ran =
            world.agents(&["notify", "--harness", "other", "--session", "x", "--status", "idle"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""));
        assert_eq!(fs::metadata(world.path(path)).unwrap().permissions().mode() & 0o7777, mode);
        set_mode(world.path(path), 0o700);
        assert_eq!(bytes(&world.record_files()[0]), before);
    }
}

#[test]
fn links_are_followed_above_the_root_and_nowhere_below() {
    let world = World::new();
    fs::create_dir_all(world.path("elsewhere/state")).unwrap();
    symlink(world.path("elsewhere"), world.path("home/.local")).unwrap();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    assert!(world.path("elsewhere/state/tongs-agents/sessions").is_dir());

    for below in ["home/.local/state/tongs-agents", "home/.local/state/tongs-agents/sessions"] {
        let world = World::new();
        assert_eq!(hook(&world, "SessionStart").code, Some(0));
        let moved = world.path("moved");
        fs::rename(world.path(below), &moved).unwrap();
        symlink(&moved, world.path(below)).unwrap();
        assert_eq!(hook(&world, "Stop").json()["reason"], "store-unsafe");
        assert_eq!(world.agents(&["status"]).code, Some(1));
        fs::remove_file(world.path(below)).unwrap();
        fs::write(world.path(below), "a file").unwrap();
        assert_eq!(hook(&world, "Stop").json()["reason"], "store-unsafe");
    }
}

#[test]
fn the_state_directory_is_chosen_by_the_documented_variables() {
    let world = World::new();
    let path = |vars: &[(&str, &str)]| {
        let mut command = world.command("tongs-agents");
        command.args(["paths", "--json"]).envs(vars.iter().copied());
        finish(command, b"").json()["sessions"].as_str().unwrap().to_string()
    };
    assert_eq!(path(&[]), world.sessions().to_str().unwrap());
    assert_eq!(path(&[("XDG_STATE_HOME", "/x/")]), "/x/tongs-agents/sessions");
    assert_eq!(
        path(&[("XDG_STATE_HOME", "/x"), ("TONGS_AGENTS_STATE_DIR", "/y//")]),
        "/y/sessions"
    );
    assert_eq!(
        path(&[("XDG_STATE_HOME", "x"), ("TONGS_AGENTS_STATE_DIR", "./y")]),
        world.sessions().to_str().unwrap()
    );
    assert_eq!(
        path(&[("XDG_STATE_HOME", ""), ("TONGS_AGENTS_STATE_DIR", "")]),
        world.sessions().to_str().unwrap()
    );
}

#[test]
fn what_stands_in_a_records_place_and_is_no_file_of_ours_drops_the_event() {
    type Make = fn(&Path, &Path);
    let places: &[(&str, Make)] = &[
        ("a link", |place, other| symlink(other, place).unwrap()),
        ("a dangling link", |place, _| symlink("/nonexistent", place).unwrap()),
        ("a FIFO", |place, _| {
            assert!(Command::new("mkfifo").arg(place).status().unwrap().success())
        }),
        ("a directory", |place, _| fs::create_dir(place).unwrap()),
        ("a hard link", |place, other| fs::hard_link(other, place).unwrap()),
        ("a socket", |place, _| drop(std::os::unix::net::UnixListener::bind(place).unwrap())),
    ];
    for kind in ["json", "lock"] {
        for (what, make) in places {
            let world = World::new();
            assert_eq!(hook(&world, "SessionStart").code, Some(0));
            let start = |f: &&String| f.starts_with("fleet-v1") || f.starts_with(".fleet-v1");
            let name =
                world.files().iter().filter(start).find(|f| f.ends_with(kind)).unwrap().clone();
            // The path of a socket is short.
            let place = world.sessions().join(&name);
            fs::remove_file(&place).unwrap();
            let other = world.path("victim");
            fs::write(&other, "untouched").unwrap();
            if *what == "a socket" {
                let short = world.path("s");
                make(&short, &other);
                fs::rename(short, &place).unwrap();
            } else {
                make(&place, &other);
            }
            let ran = hook(&world, "Stop");
            assert_eq!(ran.json()["outcome"], "dropped", "{kind} {what}");
            assert_eq!(ran.code, Some(77), "{kind} {what}");
            assert_eq!(bytes(&other), b"untouched");
            let status = world.agents(&["status", "--json"]);
            assert_eq!(status.code, Some(0));
            if kind == "json" && *what != "a dangling link" {
                assert_eq!(status.json()["skipped"], 1, "{what}");
            }
            assert_eq!(world.agents(&["cleanup"]).code, Some(0), "{kind} {what}");
            assert!(fs::symlink_metadata(&place).is_ok(), "{kind} {what} is not ours to remove");
        }
    }
}

#[test]
fn a_corrupt_record_counts_as_absent_and_is_written_over() {
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let place = world.record_files()[0].clone();
    let good = fs::read_to_string(&place).unwrap();
    for bad in [
        "",
        "{",
        "null",
        &good[..good.len() / 2],
        &good.replace("\"pid\"", "\"pit\"").replace("s", "t"),
        &"x".repeat(70_000),
    ] {
        fs::write(&place, bad).unwrap();
        assert_eq!(world.agents(&["status", "--json"]).json()["skipped"], 1);
        assert_eq!(hook(&world, "Stop").json()["outcome"], "written");
        let record = world.record();
        assert_eq!((&record["status"], &record["arrival_sequence"]), (&json!("idle"), &json!(1)));
    }
}

#[test]
fn a_record_of_a_newer_schema_is_never_written_over() {
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let place = world.record_files()[0].clone();
    let newer =
        fs::read_to_string(&place).unwrap().replace("\"schema_version\":1", "\"schema_version\":2");
    fs::write(&place, &newer).unwrap();
    let ran = hook(&world, "Stop");
    assert_eq!((ran.code, &ran.json()["reason"]), (Some(65), &json!("record-newer")));
    assert_eq!(fs::read_to_string(&place).unwrap(), newer);
    assert_eq!(world.agents(&["cleanup"]).code, Some(0));
    assert_eq!(fs::read_to_string(&place).unwrap(), newer);
}

#[test]
fn a_held_lock_makes_the_hook_drop_and_a_command_say_busy_in_bounded_time() {
    if !has_tool("flock", "a_held_lock") {
        return;
    }
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let before = bytes(&world.record_files()[0]);
    for start in [".fleet-v1-", ".fleet-identity-v1-"] {
        let name = world.files().into_iter().find(|f| f.starts_with(start)).unwrap();
        let holder = Holder::of(&world.sessions().join(name));
        let ran = hook(&world, "Stop");
        assert_eq!((ran.code, &ran.json()["reason"]), (Some(75), &json!("lock-busy")), "{start}");
        world.run("tongs-hook", &["claude", "Stop"], claude("s", "").as_bytes()).silent();
        let ran =
            world.agents(&["notify", "--harness", "claude", "--session", "s", "--status", "idle"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(75), ""));
        assert!(
            ran.err.contains("cannot write session 's': another process holds its lock"),
            "{ran:?}"
        );
        assert_eq!(bytes(&world.record_files()[0]), before);
        // A reader does not care.
        assert_eq!(world.sessions_json().len(), 1);
        drop(holder);
    }
    assert_eq!(hook(&world, "Stop").json()["outcome"], "written");
}

#[test]
fn a_lock_of_another_session_is_nobodys_business() {
    if !has_tool("flock", "a_lock_of_another_session") {
        return;
    }
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let locks: Vec<Holder> = world
        .files()
        .iter()
        .filter(|f| f.ends_with(".lock"))
        .map(|f| Holder::of(&world.sessions().join(f)))
        .collect();
    let ran =
        world.run("tongs-hook", &["--strict", "claude", "Stop"], claude("other", "").as_bytes());
    assert_eq!(ran.json()["outcome"], "written");
    drop(locks);
}

/// A user and mount namespace of its own, for disks with limits.
fn in_namespace(world: &World, test: &str, script: &str) -> Option<Ran> {
    if !has_tool("unshare", test) {
        return None;
    }
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]);
    if finish(probe, b"").code != Some(0) {
        eprintln!("skipped {test}: no mount namespace can be made here");
        return None;
    }
    let mut command = Command::new("unshare");
    world.bare(&mut command);
    command.args(["-rm", "sh", "-euc", script]);
    Some(finish(command, b""))
}

#[test]
fn a_full_disk_keeps_the_old_record_and_leaves_no_file() {
    let world = World::new();
    let payload = world.path("p.json");
    fs::write(&payload, claude("s", "")).unwrap();
    let script = format!(
        "mkdir -p \"$HOME/disk\"; mount -t tmpfs -o size=64k,mode=700 tmpfs \"$HOME/disk\"
         export TONGS_AGENTS_STATE_DIR=\"$HOME/disk/state\"
         tongs-hook claude UserPromptSubmit <'{p}'
         cat \"$HOME/disk/state/sessions/\"*.json >'{old}'
         dd if=/dev/zero of=\"$HOME/disk/fill\" bs=1k 2>/dev/null || :
         tongs-hook claude Stop <'{p}'; echo code $?
         tongs-hook --strict claude Stop <'{p}' || echo strict $?
         cmp \"$HOME/disk/state/sessions/\"*.json '{old}' && echo same
         tongs-agents run echo ran 2>&1
         ls -A \"$HOME/disk/state/sessions\" | grep -c tmp || :
         rm \"$HOME/disk/fill\"; tongs-hook --strict claude Stop <'{p}'",
        p = payload.display(),
        old = world.path("old").display()
    );
    let Some(ran) = in_namespace(&world, "a_full_disk", &script) else { return };
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        (lines[0], lines[2], lines[3], lines[5], lines[6]),
        ("code 0", "strict 74", "same", "ran", "0"),
        "{ran:?}"
    );
    assert!(lines[1].contains("write-failed") && lines[7].contains("written"), "{ran:?}");
    assert!(lines[4].contains("the launch is not recorded: "), "{ran:?}");
    assert_eq!(ran.err, "");
}

#[test]
fn a_read_only_disk_is_read_and_not_written() {
    let world = World::new();
    let payload = world.path("p.json");
    fs::write(&payload, claude("s", "")).unwrap();
    let script = format!(
        "mkdir -p \"$HOME/disk\"; mount -t tmpfs -o size=1m,mode=700 tmpfs \"$HOME/disk\"
         export TONGS_AGENTS_STATE_DIR=\"$HOME/disk/state\"
         tongs-hook claude UserPromptSubmit <'{p}'; tongs-agents cleanup >/dev/null
         mount -o remount,bind,ro \"$HOME/disk\"
         tongs-hook claude Stop <'{p}'; echo code $?
         tongs-agents status -o status; echo code $?
         tongs-agents notify --harness other --session x --status idle || echo code $?
         tongs-agents cleanup || echo code $?",
        p = payload.display()
    );
    let Some(ran) = in_namespace(&world, "a_read_only_disk", &script) else { return };
    assert_eq!(ran.out, "code 0\nrunning\ncode 0\ncode 74\ncode 1\n", "{ran:?}");
    assert_eq!(ran.err.lines().count(), 2, "{ran:?}");
    assert!(ran.err.contains("cannot write session 'x': read-only file system"), "{ran:?}");
}

#[test]
fn a_thread_that_swaps_the_directory_for_a_link_gets_nothing_written_elsewhere() {
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let trap = world.path("trap");
    fs::create_dir(&trap).unwrap();
    set_mode(&trap, 0o700);
    let link = world.path("link");
    symlink(&trap, &link).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let sessions = world.sessions();
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &sessions,
                    rustix::fs::CWD,
                    &link,
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        for _ in 0..200 {
            world.run("tongs-hook", &["claude", "Stop"], claude("s", "").as_bytes()).silent();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(&trap).unwrap().count(), 0);
}

#[test]
fn the_fault_log_is_private_bounded_and_never_a_link() {
    let world = World::new();
    assert_eq!(hook(&world, "SessionStart").code, Some(0));
    let log = world.state().join("hook-faults.log");
    for _ in 0..3 {
        world.run("tongs-hook", &["claude", "Stop"], b"{").silent();
    }
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 3);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o7777, 0o600);
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(&vec![b'x'; 64 * 1024]).unwrap();
    world.run("tongs-hook", &["claude", "Stop"], b"{").silent();
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
    fs::remove_file(&log).unwrap();
    let victim = world.path("victim");
    fs::write(&victim, "").unwrap();
    symlink(&victim, &log).unwrap();
    world.run("tongs-hook", &["claude", "Stop"], b"{").silent();
    assert_eq!(bytes(&victim), b"");
}
