//! The one-way repair of a turn that was interrupted: Claude Code's own note of
//! its process against the record.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::status::assert_schema;
use crate::world::{Harness, World, claude, finish, has_tool};

/// An agent in a world, whose session is "s".
struct Scene<'w> {
    world: &'w World,
    agent: Harness<'w>,
}

impl<'w> Scene<'w> {
    /// A turn under way.
    fn running(world: &'w World) -> Scene<'w> {
        Scene::after(world, "UserPromptSubmit", "")
    }

    fn after(world: &'w World, event: &str, more: &str) -> Scene<'w> {
        let mut agent = world.harness("claude");
        agent.hook(&["claude", event], &claude("s", more)).silent();
        Scene { world, agent }
    }

    fn record(&self) -> Value {
        self.world.record_of("s")
    }

    /// Where the record is.
    fn file(&self) -> PathBuf {
        let canonical = self.record()["canonical_id"].as_str().unwrap().to_string();
        let digest = canonical.rsplit(':').next().unwrap();
        self.world.sessions().join(format!("fleet-v1-{digest}.json"))
    }

    fn note_path(&self) -> PathBuf {
        self.world.path(&format!("home/.claude/sessions/{}.json", self.agent.pid()))
    }

    /// What Claude Code notes when the turn ends a moment after the last event.
    fn note(&self) -> Value {
        let record = self.record();
        let then = record["ts_ms"].as_u64().unwrap() + 1;
        json!({
            "pid": self.agent.pid(), "sessionId": "another", "cwd": "/tmp", "startedAt": then - 9000,
            "procStart": record["process_start"], "version": "2.1.278", "kind": "interactive",
            "entrypoint": "cli", "peerFeatures": ["a", {"b": [1.5e3, null]}], "status": "idle",
            "updatedAt": then + 1, "statusUpdatedAt": then
        })
    }

    fn write(&self, note: &[u8]) {
        fs::create_dir_all(self.note_path().parent().unwrap()).unwrap();
        let _ = fs::remove_file(self.note_path());
        fs::write(self.note_path(), note).unwrap();
    }

    /// How many turns a run of the maintainer found to be interrupted.
    fn found(&self) -> u64 {
        cleanup(self.world, &[])["interrupted"].as_u64().unwrap()
    }

    /// Asserts that a run of the maintainer leaves the record as it is.
    #[track_caller]
    fn stays(&self, note: &str) {
        let before = fs::read(self.file()).unwrap();
        assert_eq!(cleanup(self.world, &["--dry-run"])["interrupted"], 0, "{note}");
        assert_eq!(self.found(), 0, "{note}");
        assert_eq!(fs::read(self.file()).unwrap(), before, "{note}");
    }
}

fn cleanup(world: &World, args: &[&str]) -> Value {
    let ran = world.agents(&[&["cleanup", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_schema(world, "cleanup", &ran.json());
    ran.json()
}

#[test]
fn a_later_idle_of_the_same_process_ends_the_turn() {
    let asks = r#","tool_name":"Bash""#;
    for (event, more) in [("UserPromptSubmit", ""), ("PermissionRequest", asks)] {
        let world = World::new();
        let scene = Scene::after(&world, event, more);
        let (before, note) = (scene.record(), scene.note());
        scene.write(note.to_string().as_bytes());
        // A dry run says so and changes nothing.
        assert_eq!(cleanup(&world, &["--dry-run"])["interrupted"], 1);
        assert_eq!(scene.record(), before);
        let dry = world.agents(&["cleanup", "--dry-run"]).out;
        assert_eq!(dry.lines().last(), Some("1 would be found interrupted"));
        assert_eq!(scene.found(), 1);
        let after = scene.record();
        let then = note["statusUpdatedAt"].as_u64().unwrap();
        for (key, want) in [
            ("status", json!("idle")),
            ("detail", json!("interrupted")),
            ("tool", json!("")),
            ("ts_ms", json!(then)),
            ("ts", json!(then / 1000)),
            ("boot_ms", before["boot_ms"].clone()),
            ("mono_ms", before["mono_ms"].clone()),
            ("turn", before["turn"].clone()),
            ("started", before["started"].clone()),
            ("last_event", before["last_event"].clone()),
        ] {
            assert_eq!(after[key], want, "{event} {key}");
        }
        for key in ["waiting_for", "waiting_since", "waiting_tool"] {
            assert!(after.get(key).is_none(), "{event} {key}");
        }
        assert_eq!(world.session("s").unwrap()["needs_attention"], false);
        // Once: it is idle now.
        scene.stays("the same note");
    }
}

#[test]
fn the_next_event_counts_as_ever() {
    let world = World::new();
    let mut scene = Scene::running(&world);
    scene.write(scene.note().to_string().as_bytes());
    assert_eq!(scene.found(), 1);
    scene.agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let record = scene.record();
    assert_eq!((&record["status"], &record["turn"]), (&json!("running"), &json!(2)));
    scene.stays("the note is of the turn before");
    scene.agent.hook(&["claude", "Stop"], &claude("s", "")).silent();
    assert_eq!(scene.record()["detail"], "finished");
}

#[test]
fn a_note_without_a_time_of_the_status_has_that_of_the_last_change() {
    let world = World::new();
    let scene = Scene::running(&world);
    let mut note = scene.note();
    note.as_object_mut().unwrap().remove("statusUpdatedAt");
    scene.write(note.to_string().as_bytes());
    assert_eq!(scene.found(), 1);
    assert_eq!(scene.record()["ts_ms"], note["updatedAt"]);
}

#[test]
fn whatever_a_note_lacks_or_has_wrong_it_says_nothing() {
    let world = World::new();
    let scene = Scene::running(&world);
    let good = scene.note();
    let last = scene.record()["ts_ms"].as_u64().unwrap();
    let mut bad: Vec<String> = Vec::new();
    for key in ["pid", "procStart", "status"] {
        let mut note = good.clone();
        note.as_object_mut().unwrap().remove(key);
        bad.push(note.to_string());
    }
    for (key, value) in [
        ("pid", json!(1)),
        ("pid", json!(scene.agent.pid().to_string())),
        ("procStart", json!("1")),
        ("procStart", json!("")),
        ("procStart", json!(null)),
        ("procStart", json!("Mon Nov 30 17:47:01 2026")),
        ("status", json!("busy")),
        ("status", json!("shell")),
        ("status", json!("waiting")),
        ("status", json!("IDLE")),
        ("status", json!(["idle"])),
        ("statusUpdatedAt", json!(last)),
        ("statusUpdatedAt", json!(last - 1)),
        ("statusUpdatedAt", json!(0)),
        ("statusUpdatedAt", json!(-1)),
        ("statusUpdatedAt", json!(null)),
        ("statusUpdatedAt", json!(last.to_string())),
        ("statusUpdatedAt", json!(1e300)),
        ("statusUpdatedAt", json!(last + 3_600_000)),
    ] {
        let mut note = good.clone();
        note[key] = value;
        bad.push(note.to_string());
    }
    let mut none = good.clone();
    for key in ["updatedAt", "statusUpdatedAt"] {
        none.as_object_mut().unwrap().remove(key);
    }
    let text = good.to_string();
    bad.extend([none.to_string(), String::new(), "null".into(), "[]".into(), text[1..].into()]);
    bad.push(text[..text.len() - 1].into());
    bad.push(format!("{text}{text}"));
    bad.push(text.replacen("\"status\":", "\"status\":\"idle\",\"status\":", 1));
    // What is larger than a note can be, though it is one.
    bad.push(format!("{text}{}", " ".repeat(65_536)));
    for note in bad {
        scene.write(note.as_bytes());
        scene.stays(&note[..note.len().min(300)]);
    }
    scene.write(b"\xff\xfe{}");
    scene.stays("not UTF-8");
    // The good one is good.
    scene.write(format!("{text}{}", " ".repeat(65_536 - text.len())).as_bytes());
    assert_eq!(scene.found(), 1);
}

#[test]
fn what_is_no_file_of_ours_in_its_place_is_not_read() {
    let world = World::new();
    let scene = Scene::running(&world);
    scene.write(scene.note().to_string().as_bytes());
    let real = world.path("real.json");
    fs::rename(scene.note_path(), &real).unwrap();
    symlink(&real, scene.note_path()).unwrap();
    scene.stays("a link");
    fs::remove_file(scene.note_path()).unwrap();
    fs::create_dir(scene.note_path()).unwrap();
    scene.stays("a directory");
    fs::remove_dir(scene.note_path()).unwrap();
    assert!(Command::new("mkfifo").arg(scene.note_path()).status().unwrap().success());
    scene.stays("a FIFO, which nobody writes to");
    fs::remove_file(scene.note_path()).unwrap();
    scene.stays("nothing");
    // The directories above may be links.
    fs::rename(world.path("home/.claude"), world.path("elsewhere")).unwrap();
    symlink(world.path("elsewhere"), world.path("home/.claude")).unwrap();
    fs::rename(&real, scene.note_path()).unwrap();
    assert_eq!(scene.found(), 1);
}

#[test]
fn the_directory_is_that_of_the_configuration() {
    let world = World::new();
    let scene = Scene::running(&world);
    scene.write(scene.note().to_string().as_bytes());
    let of = |dir: &str| {
        let mut command = world.command("tongs-agents");
        command.args(["cleanup", "--json", "--dry-run"]).env("CLAUDE_CONFIG_DIR", dir);
        finish(command, b"").json()["interrupted"].as_u64().unwrap()
    };
    let other = world.path("other");
    assert_eq!(of(other.to_str().unwrap()), 0);
    // What is no absolute path counts as unset.
    assert_eq!((of(""), of(".claude")), (1, 1));
    fs::create_dir_all(other.join("sessions")).unwrap();
    let name = scene.note_path();
    fs::rename(&name, other.join("sessions").join(name.file_name().unwrap())).unwrap();
    assert_eq!((of(other.to_str().unwrap()), of("")), (1, 0));
}

#[test]
fn only_a_turn_under_way_and_only_claudes_is_ended() {
    for (event, more) in [
        ("SessionStart", ""),
        ("Stop", ""),
        ("StopFailure", r#","error":"rate_limit""#),
        // A subagent waits; the main agent may well be idle.
        ("PermissionRequest", r#","tool_name":"Bash","agent_id":"a1""#),
    ] {
        let world = World::new();
        let scene = Scene::after(&world, event, more);
        scene.write(scene.note().to_string().as_bytes());
        scene.stays(event);
    }
    let world = World::new();
    let mut scene = Scene::running(&world);
    scene.agent.hook(&["claude", "SessionEnd"], &claude("s", "")).silent();
    scene.write(scene.note().to_string().as_bytes());
    scene.stays("ended");
    // Another harness's process with a note of that name.
    let world = World::new();
    let mut agent = world.harness("codex");
    agent.hook(&["codex", "UserPromptSubmit"], &claude("s", "")).silent();
    let scene = Scene { world: &world, agent };
    scene.write(scene.note().to_string().as_bytes());
    scene.stays("codex");
}

#[test]
fn the_process_must_live_here_and_be_the_one() {
    let world = World::new();
    let scene = Scene::running(&world);
    let file = scene.file();
    let good = fs::read(&file).unwrap();
    for (key, value) in [
        ("pid_ns", json!("17")),
        // The record's start and the note's are the same, and not the process's.
        ("process_start", json!("1")),
        ("boot_id", json!("00000000-0000-0000-0000-000000000000")),
    ] {
        let mut record = scene.record();
        record[key] = value.clone();
        fs::write(&file, record.to_string()).unwrap();
        scene.write(scene.note().to_string().as_bytes());
        assert_eq!(cleanup(&world, &["--dry-run"])["interrupted"], 0, "{key}");
        fs::write(&file, &good).unwrap();
    }
    scene.write(scene.note().to_string().as_bytes());
    assert_eq!(cleanup(&world, &["--dry-run"])["interrupted"], 1);
    scene.agent.kill();
    assert_eq!(cleanup(&world, &[])["interrupted"], 0);
    assert!(!file.exists(), "it went with its process");
}

#[test]
fn no_hook_and_no_reader_looks_at_a_note() {
    let world = World::new();
    let mut scene = Scene::running(&world);
    scene.write(scene.note().to_string().as_bytes());
    for args in [&["status", "--json"][..], &["show", "s"], &["status", "--line", "plain"]] {
        world.agents(args);
        assert_eq!(scene.record()["status"], "running");
    }
    let tool = claude("s", r#","tool_name":"Bash""#);
    scene.agent.hook(&["claude", "PostToolUse"], &tool).silent();
    assert_eq!(scene.record()["status"], "running");
}

/// The maintainer reads the note, and while it waits for the record's lock there
/// is an event: that is the newer truth.
#[test]
fn an_event_that_comes_between_wins() {
    if !has_tool("flock", "an_event_that_comes_between_wins") {
        return;
    }
    let world = World::new();
    let scene = Scene::running(&world);
    scene.write(scene.note().to_string().as_bytes());
    let lock = world.files().into_iter().find(|f| f.starts_with(".fleet-v1-")).unwrap();
    let mut newer = scene.record();
    newer["ts_ms"] = (newer["ts_ms"].as_u64().unwrap() + 5).into();
    newer["detail"] = "newer".into();
    let file = world.path("newer");
    fs::write(&file, newer.to_string()).unwrap();
    let script =
        format!("echo held; read line; cat '{}' >'{}'", file.display(), scene.file().display());
    let mut holder = Command::new("flock")
        .arg(world.sessions().join(&lock))
        .args(["sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    holder.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    let mut command = world.command("tongs-agents");
    let cleanup = command.args(["cleanup", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    // The kernel lists who waits for which lock.
    let waits = format!("-> FLOCK  ADVISORY  WRITE {} ", cleanup.id());
    while !fs::read_to_string("/proc/locks").unwrap().contains(&waits) {
        std::thread::yield_now();
    }
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    let done = cleanup.wait_with_output().unwrap();
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done["interrupted"], 0);
    let record = scene.record();
    assert_eq!((&record["status"], &record["detail"]), (&json!("running"), &json!("newer")));
}
