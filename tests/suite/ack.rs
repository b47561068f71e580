//! Marks of what was seen: who shows them, what ends them, and the file that
//! they are in.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::find::notify;
use crate::status::{assert_schema, now, put, record};
use crate::world::{World, claude, eventually, finish, has_tool};

fn marks(world: &World) -> PathBuf {
    world.sessions().join(".tongs-seen-v1")
}

fn seen(world: &World, session: &str) -> bool {
    world.session(session).unwrap()["seen"].as_bool().unwrap()
}

fn line(world: &World) -> String {
    world.agents(&["status", "--line", "plain"]).out
}

#[test]
fn a_mark_is_in_every_output_and_in_no_record() {
    let world = World::new();
    put(&world, &record("s", json!({"status": "idle", "ts": now() - 500})), false);
    put(&world, &record("t", json!({"status": "idle", "ts": now() - 500})), false);
    let before = world.record_of("s");
    let attention = |world: &World| world.session("s").unwrap()["needs_attention"].clone();
    assert!(line(&world).starts_with("2 idle"));
    world.agents(&["ack", "s"]).silent();
    assert!(seen(&world, "s") && !seen(&world, "t"));
    assert_eq!(world.record_of("s"), before);
    // It asks no more, and needs attention as before.
    assert!(line(&world).starts_with("1 idle"));
    assert_eq!(attention(&world), true);
    let out = |args: &[&str]| world.agents(args).out;
    assert_eq!(out(&["status", "-o", "seen", "--sort", "age"]).matches("true").count(), 1);
    assert_eq!(out(&["status", "--attention", "-o", "session_id"]).lines().count(), 2);
    let table = out(&["status"]);
    assert_eq!(table.matches("idle (seen)").count(), 1, "{table}");
    let show: Value = serde_json::from_str(&out(&["show", "s", "--json"])).unwrap();
    assert_eq!(show["seen"], true);
    let found = out(&["lookup", "--session", "s", "--include-dead", "--all", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["sessions"][0]["seen"], true, "{found}");
    assert!(out(&["status", "--all", "--jsonl"]).contains("\"seen\":true"));
    assert_eq!(fs::metadata(marks(&world)).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn a_wait_asks_though_it_was_seen_and_not_while_it_is_put_off() {
    let world = World::new();
    put(&world, &record("s", json!({"status": "waiting"})), false);
    world.agents(&["ack", "s"]).silent();
    assert!(seen(&world, "s") && line(&world).starts_with("1 waiting"));
    world.agents(&["snooze", "s", "1h"]).silent();
    assert!(seen(&world, "s") && line(&world).is_empty());
    assert!(world.agents(&["status"]).out.contains("waiting (snoozed)"));
    // Seen without end would let it ask again.
    for args in [&["ack", "s"][..], &["ack", "--all"]] {
        world.agents(args).silent();
        assert!(seen(&world, "s") && line(&world).is_empty());
    }
    world.agents(&["snooze", "s", "0"]).silent();
    assert!(!seen(&world, "s") && line(&world).starts_with("1 waiting"));
    world.agents(&["snooze", "s", "400ms"]).silent();
    assert!(line(&world).is_empty());
    eventually("its end", || (!line(&world).is_empty()).then_some(()));
    assert!(!seen(&world, "s"));
}

#[test]
fn a_newer_wait_or_rest_was_not_seen_and_the_same_one_stays_so() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let mut event = |name: &str, more: &str| {
        agent.hook(&["claude", name], &claude("s", more)).silent();
    };
    let ack = || {
        world.agents(&["ack", "s"]).silent();
        assert!(seen(&world, "s"));
    };
    event("UserPromptSubmit", "");
    event("Stop", "");
    ack();
    // What says nothing new.
    event("Notification", r#","notification_type":"idle_prompt","message":"waiting""#);
    event("CwdChanged", "");
    event("MessageDisplay", "");
    assert!(seen(&world, "s"));
    // The end of another turn, with and without a prompt that was told of.
    event("Stop", "");
    assert!(!seen(&world, "s"));
    ack();
    event("UserPromptSubmit", "");
    assert!(!seen(&world, "s"));
    event("Stop", "");
    assert!(!seen(&world, "s"));
    // Within the same turn, and back in the same status.
    ack();
    event("PreToolUse", r#","tool_name":"Bash""#);
    event("Stop", "");
    assert!(!seen(&world, "s"));

    event("PermissionRequest", r#","tool_name":"Bash""#);
    ack();
    let notification = r#","notification_type":"permission_prompt","message":"x""#;
    event("Notification", notification);
    assert!(seen(&world, "s"));
    // Another wait at once, of the same second.
    event("PermissionRequest", r#","tool_name":"Edit""#);
    assert!(!seen(&world, "s"));
    // A wait that gets its name is the same.
    event("PostToolUse", r#","tool_name":"Edit""#);
    event("Notification", notification);
    ack();
    event("PermissionRequest", r#","tool_name":"Bash""#);
    assert_eq!(world.session("s").unwrap()["waiting_tool"], "Bash");
    assert!(seen(&world, "s"));
    event("SessionEnd", "");
    assert!(!seen(&world, "s"));
}

#[test]
fn a_report_of_the_same_status_is_no_news() {
    let world = World::new();
    for status in ["idle", "waiting", "error"] {
        notify(&world, "s", status, None, "X=");
        world.agents(&["ack", "s"]).silent();
        notify(&world, "s", status, None, "X=");
        assert!(seen(&world, "s"), "{status}");
        notify(&world, "s", "running", None, "X=");
        notify(&world, "s", status, None, "X=");
        assert!(!seen(&world, "s"), "{status}");
    }
}

#[test]
fn of_a_writer_that_does_not_say_since_when_every_event_is_new() {
    let world = World::new();
    for time in [json!({"ts": 1000}), json!({"ts": 1000, "ts_ms": 1_000_500})] {
        let mut changes = time.clone();
        changes["status"] = "waiting".into();
        put(&world, &record("s", changes.clone()), false);
        world.agents(&["ack", "s"]).silent();
        assert!(seen(&world, "s"));
        changes["detail"] = "another".into();
        put(&world, &record("s", changes.clone()), false);
        assert!(seen(&world, "s"));
        let key = if time.get("ts_ms").is_some() { "ts_ms" } else { "ts" };
        changes[key] = (time[key].as_u64().unwrap() + 1).into();
        put(&world, &record("s", changes), false);
        assert!(!seen(&world, "s"), "{key}");
    }
}

#[test]
fn ids_are_those_of_show_and_all_or_none_is_marked() {
    let world = World::new();
    for session in ["one", "two", "twofold"] {
        put(&world, &record(session, json!({"status": "idle"})), false);
    }
    let legacy = json!({"session_id": "old", "agent": "claude", "status": "idle", "ts": now(),
        "repo": "r", "cwd": "/r", "pid": "1", "detail": ""});
    put(&world, &legacy, true);
    for (args, want) in [
        (&["one", "none"][..], "no session has the id 'none'"),
        (&["one", "tw"], "several sessions match 'tw'"),
        (&["one", "old"], "cannot mark session 'old': its record is of an older format"),
    ] {
        let ran = world.agents(&[&["ack"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains(want), "{ran:?}");
        assert!(!marks(&world).exists());
    }
    let short = world.session("one").unwrap()["short_id"].as_str().unwrap().to_string();
    let ran = world.agents(&["ack", "--json", &short, "one", "two"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_schema(&world, "ack", &ran.json());
    let marked = ran.json()["marked"].as_array().unwrap().clone();
    assert_eq!(marked.len(), 2);
    assert_eq!((&marked[0]["short_id"], &marked[0]["until"]), (&json!(short), &Value::Null));
    assert!(seen(&world, "one") && seen(&world, "two") && !seen(&world, "twofold"));
    let ran = world.agents(&["snooze", "--json", "twofold", "1m"]);
    assert_schema(&world, "snooze", &ran.json());
    let until = ran.json()["marked"][0]["until"].as_u64().unwrap();
    assert!((now() + 30..=now() + 61).contains(&until));
    assert!(seen(&world, "twofold") && seen(&world, "one"));
    world.agents(&["ack", "--all"]).silent();
    assert_eq!(fs::read_to_string(marks(&world)).unwrap().lines().count(), 4);
    assert!(!seen(&world, "old"));

    for args in [
        &["ack"][..],
        &["ack", "--all", "one"],
        &["ack", ""],
        &["snooze", "one"],
        &["snooze", "one", "x"],
        &["snooze", "", "1m"],
        &["snooze", "one", "1m", "2m"],
        &["ack", "one", "--json-version", "2"],
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let world = World::new();
    world.agents(&["ack", "--all"]).silent();
    assert_eq!(world.agents(&["ack", "--all", "--json"]).json(), json!({"marked": []}));
    for args in [&["ack", "s"][..], &["snooze", "s", "1m"]] {
        let ran = world.agents(args);
        let want = "tongs-agents: no session has the id 's'\n";
        assert_eq!((ran.code, ran.err.as_str()), (Some(1), want));
    }
    assert!(!world.state().exists());
    put(&world, &record("s", json!({})), false);
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(world.agents(&["ack", "s"]).code, Some(77));
}

#[test]
fn a_file_that_is_none_counts_as_empty_and_is_replaced() {
    let world = World::new();
    for session in ["s", "t"] {
        put(&world, &record(session, json!({"status": "idle"})), false);
    }
    world.agents(&["ack", "t"]).silent();
    let good = fs::read_to_string(marks(&world)).unwrap();
    let elsewhere = world.path("elsewhere");
    type Spoil<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let spoils: Vec<Spoil<'_>> = vec![
        ("cut", Box::new(|| fs::write(marks(&world), &good[..good.len() - 4]).unwrap())),
        (
            "a newer one",
            Box::new(|| fs::write(marks(&world), good.replace(" 1\n", " 2\n")).unwrap()),
        ),
        ("no text", Box::new(|| fs::write(marks(&world), b"tongs-seen 1\n\xff").unwrap())),
        ("empty", Box::new(|| fs::write(marks(&world), b"").unwrap())),
        ("huge", Box::new(|| fs::File::create(marks(&world)).unwrap().set_len(1 << 40).unwrap())),
        (
            "a link",
            Box::new(|| {
                fs::write(&elsewhere, &good).unwrap();
                symlink(&elsewhere, marks(&world)).unwrap();
            }),
        ),
        (
            "a second name",
            Box::new(|| {
                fs::write(&elsewhere, &good).unwrap();
                fs::hard_link(&elsewhere, marks(&world)).unwrap();
            }),
        ),
        (
            "a pipe",
            Box::new(|| {
                let made = Command::new("mkfifo").arg(marks(&world)).status().unwrap();
                assert!(made.success());
            }),
        ),
    ];
    for (what, spoil) in spoils {
        let _ = fs::remove_file(marks(&world));
        let _ = fs::remove_file(&elsewhere);
        spoil();
        assert!(!seen(&world, "s") && !seen(&world, "t"), "{what}");
        world.agents(&["ack", "s"]).silent();
        assert!(seen(&world, "s") && !seen(&world, "t"), "{what}");
        let meta = fs::symlink_metadata(marks(&world)).unwrap();
        assert!(meta.is_file() && meta.nlink() == 1, "{what}");
        if elsewhere.exists() {
            assert_eq!(fs::read_to_string(&elsewhere).unwrap(), good, "{what}");
        }
    }
    let temps = world.files().into_iter().filter(|name| name.starts_with(".fleet-tmp"));
    assert_eq!(temps.count(), 0);
}

#[test]
fn acks_at_the_same_time_lose_none() {
    let world = World::new();
    let ids: Vec<String> = (0..20).map(|n| format!("s{n:02}")).collect();
    for id in &ids {
        put(&world, &record(id, json!({"status": "idle"})), false);
    }
    let start = |id: &String| {
        let mut command = world.command("tongs-agents");
        command.args(["ack", id]).stdin(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = ids.iter().map(start).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert!(ids.iter().all(|id| seen(&world, id)));
}

#[test]
fn a_lock_that_is_held_is_busy() {
    if !has_tool("flock", "a_lock_that_is_held_is_busy") {
        return;
    }
    let world = World::new();
    put(&world, &record("s", json!({"status": "idle"})), false);
    let mut command = Command::new("flock");
    world.bare(&mut command);
    command.arg(world.sessions().join(".tongs-seen-v1.lock"));
    command.args(["tongs-agents", "ack", "s"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.err.contains("another process holds its lock"), "{ran:?}");
    assert!(!marks(&world).exists());
}

#[test]
fn the_marks_of_what_is_over_are_dropped() {
    let world = World::new();
    let phases = |world: &World| fs::read_to_string(marks(world)).unwrap().lines().count() - 1;
    for n in 0..5 {
        put(&world, &record(&format!("s{n}"), json!({"status": "idle"})), false);
    }
    world.agents(&["ack", "--all"]).silent();
    assert_eq!(phases(&world), 5);
    let gone = world.session("s0").unwrap()["canonical_id"].as_str().unwrap().to_string();
    let digest = gone.rsplit(':').next().unwrap();
    fs::remove_file(world.sessions().join(format!("fleet-v1-{digest}.json"))).unwrap();
    put(&world, &record("s1", json!({"status": "waiting"})), false);
    world.agents(&["snooze", "s2", "1ms"]).silent();
    eventually("its end", || (!seen(&world, "s2")).then_some(()));
    world.agents(&["ack", "s3"]).silent();
    assert_eq!(phases(&world), 2);
    assert!(seen(&world, "s3") && seen(&world, "s4"));
}

#[test]
fn a_reader_tries_to_open_it_once() {
    if !has_tool("strace", "a_reader_tries_to_open_it_once") {
        return;
    }
    let world = World::new();
    for n in 0..50 {
        put(&world, &record(&format!("s{n}"), json!({"status": "idle"})), false);
    }
    let calls = |args: &[&str]| {
        let mut command = Command::new("strace");
        world.bare(&mut command);
        command.arg("-o").arg(world.path("trace"));
        command.arg(world.path("bin/tongs-agents")).args(args);
        assert_eq!(finish(command, b"").code, Some(0));
        let trace = fs::read_to_string(world.path("trace")).unwrap();
        trace.lines().filter(|l| l.contains(".tongs-seen")).count()
    };
    for args in [&["status", "--json"][..], &["status", "--line", "plain"], &["show", "s49"]] {
        assert_eq!(calls(args), 1, "{args:?}");
    }
    world.agents(&["ack", "--all"]).silent();
    assert_eq!(calls(&["status", "--json"]), 1);
}
