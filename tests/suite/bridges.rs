//! Sessions of elsewhere: the export, the list of bridges and their supervisor,
//! and two machines in one.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::find::notify;
use crate::status::{now, put, record};
use crate::watch::Watcher;
use crate::world::{World, claude};

/// The lines of an export.
fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An export that goes on.
fn follow(world: &World) -> Watcher {
    let mut command = world.command("tongs-agents");
    command.args(["export", "--follow", "--jsonl", "--origin", "box"]);
    Watcher::of(command)
}

/// Waits for a line of a session with this status.
#[track_caller]
fn told(export: &Watcher, session: &str, status: &str) -> Value {
    export.until(&format!("{session} is {status}: {:?}", export.lines()), |line| {
        line["session_id"] == session && line["status"] == status
    })
}

#[test]
fn an_export_is_of_records_that_name_nothing_here() {
    let world = World::new();
    let ran = world.agents(&["export"]);
    ran.silent();
    assert!(!world.state().exists());
    let mut agent = world.harness("claude");
    let env = "env TMUX=/s,1,2 TMUX_PANE=%1 AGENT_LAUNCH_ID=L TONGS_AGENTS_PROFILE_ID=P AGENT_TERMINAL_ID=T";
    agent.hook_with(env, &["claude", "SessionStart"], &claude("s", "")).silent();
    agent
        .hook(
            &["claude", "PermissionRequest"],
            &claude("s", r#","tool_name":"Bash","prompt_id":"p""#),
        )
        .silent();
    notify(&world, "plain", "idle", None, "X=");
    put(&world, &record("bridged", json!({"bridge": "b", "pid": agent.pid()})), false);
    put(&world, &json!({"session_id": "old", "agent": "gone", "ts": now()}), true);
    put(&world, &record("foreign", json!({"pid_ns": "17", "secret": "x"})), false);
    let ran = world.agents(&["export", "--origin", "box"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut told = lines(&ran.out);
    told.sort_by_key(|line| line["session_id"].as_str().unwrap().to_string());
    let ids: Vec<&str> = told.iter().map(|line| line["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["foreign", "plain", "s"]);
    for line in &told {
        for (key, want) in [
            ("schema_version", json!(1)),
            ("instance_id", json!("unresolved")),
            ("process_identity", json!("unresolved")),
            ("terminal", json!("generic")),
            ("focus_target", json!({"kind": "unavailable"})),
            ("host", json!("box")),
        ] {
            assert_eq!(line[key], want, "{key}");
        }
        for key in [
            "pid",
            "process_start",
            "pid_ns",
            "boot_id",
            "boot_ms",
            "mono_ms",
            "terminal_env",
            "launch_id",
            "profile_id",
            "terminal_id",
            "turn_id",
            "secret",
            "arrival_sequence",
            "short_id",
            "bridge",
        ] {
            assert!(line.get(key).is_none(), "{key} in {line}");
        }
        let changes = json!({"harness_id": line["harness_id"], "instance_id": "unresolved"});
        let same = record(line["session_id"].as_str().unwrap(), changes);
        assert_eq!(line["canonical_id"], same["canonical_id"]);
        assert!(line["sequence"].as_u64().unwrap() > (now() - 60) * 1000);
    }
    let stored = world.record_of("s");
    for key in ["detail", "tool", "waiting_for", "waiting_tool", "ts", "cwd", "repo", "status_ms"] {
        assert_eq!(told[2][key], stored[key], "{key}");
    }
    // Such a line is a record: a reader takes it.
    let there = World::new();
    told.iter().for_each(|line| drop(put(&there, line, false)));
    assert_eq!(there.sessions_json().len(), 3);

    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(lines(&world.agents(&["export"]).out)[0]["host"], name.trim());
    let long = "x".repeat(65);
    for origin in ["", "a\nb", &long] {
        assert_eq!(world.agents(&["export", "--origin", origin]).code, Some(64), "{origin:?}");
    }
    fs::set_permissions(world.state(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!(world.agents(&["export"]).code, Some(1));
}

#[test]
fn an_export_follows_changes_ends_and_deaths() {
    let world = World::new();
    let export = follow(&world);
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let started = told(&export, "s", "started");
    agent.hook(&["claude", "Stop"], &claude("s", "")).silent();
    let idle = told(&export, "s", "idle");
    assert!(idle["sequence"].as_u64() > started["sequence"].as_u64());
    // Its process is gone, and no maintainer has been here.
    agent.kill();
    let ended = told(&export, "s", "ended");
    assert_eq!(ended["detail"], "session closed");
    assert!(ended["sequence"].as_u64() > idle["sequence"].as_u64());
    assert_eq!(world.record_of("s")["status"], "idle");

    // One that ends by its own word and then goes is told of once.
    notify(&world, "n", "running", None, "X=");
    told(&export, "n", "running");
    notify(&world, "n", "ended", None, "X=");
    told(&export, "n", "ended");
    notify(&world, "gone", "running", None, "X=");
    told(&export, "gone", "running");
    for file in world.record_files() {
        fs::remove_file(file).unwrap();
    }
    told(&export, "gone", "ended");
    let ends = export.events().into_iter().filter(|line| line["status"] == "ended");
    assert_eq!(ends.count(), 3, "{:?}", export.lines());

    // What only readers add is not told.
    notify(&world, "m", "waiting", None, "X=");
    told(&export, "m", "waiting");
    world.agents(&["ack", "m"]).silent();
    notify(&world, "last", "idle", None, "X=");
    told(&export, "last", "idle");
    assert_eq!(export.events().iter().filter(|line| line["session_id"] == "m").count(), 1);
    assert_eq!(export.stop(), "");
}

#[test]
fn a_later_export_goes_on_counting() {
    let world = World::new();
    notify(&world, "a", "running", None, "X=");
    let mut last = 0;
    for _ in 0..3 {
        let export = follow(&world);
        let sequence = told(&export, "a", "running")["sequence"].as_u64().unwrap();
        assert!(sequence > last);
        last = sequence;
    }
}

#[test]
fn an_export_ends_when_nobody_reads() {
    let world = World::new();
    notify(&world, "a", "running", None, "X=");
    let mut export = world.command("tongs-agents");
    export.args(["export", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = export.spawn().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(export.stdout.as_mut().unwrap(), &mut byte).unwrap();
    drop(export.stdout.take());
    let ended = export.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_bridged_session_says_where_it_is() {
    let world = World::new();
    for (session, more) in [
        ("a", json!({"bridge": "box", "host": "box"})),
        ("b", json!({"bridge": "box", "host": "inner", "branch": "main"})),
        ("c", json!({"bridge": "box"})),
        ("d", json!({"host": "claimed"})),
    ] {
        put(&world, &record(session, more), false);
    }
    let table = world.agents(&["status"]).out;
    for place in [" box:r ", " box/inner:r@main ", " r "] {
        assert!(table.contains(place), "{place}: {table}");
    }
    assert!(!table.contains("claimed"), "{table}");
    let fields = world.agents(&["status", "-o", "session_id,bridge,host", "--sort", "repo"]).out;
    assert!(fields.contains("b\tbox\tinner\n"), "{fields}");
}
