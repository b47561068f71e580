//! Writing for programs that have no hook.

use std::process::Command;

use serde_json::json;

use crate::world::{Ran, World, claude};

fn notify(world: &World, args: &[&str]) -> Ran {
    world.agents(&[&["notify", "--harness", "other", "--session", "s"], args].concat())
}

#[test]
fn a_record_without_a_process_and_its_changes() {
    let world = World::new();
    let ran = notify(&world, &["--status", "running", "--detail", "make all", "--tool", "make"]);
    ran.silent();
    let record = world.record();
    for (key, want) in [
        ("status", json!("running")),
        ("detail", json!("make all")),
        ("tool", json!("make")),
        ("harness_id", json!("other")),
        ("instance_id", json!("unresolved")),
        ("pid", json!("")),
        ("cwd", json!(world.path("project").to_str().unwrap())),
        ("last_event", json!("other.notify")),
        ("method", json!("notify")),
        ("source", json!("notify")),
    ] {
        assert_eq!(record[key], want, "{key}");
    }
    notify(&world, &["--status", "waiting", "--cwd", "/x/y", "--event", "asked"]).silent();
    let record = world.record();
    assert_eq!(
        (&record["status"], &record["repo"], &record["last_event"]),
        (&json!("waiting"), &json!("y"), &json!("other.asked"))
    );
    assert!(record["waiting_since"].is_u64());
    notify(&world, &["--status", "idle"]).silent();
    assert!(world.record().get("waiting_since").is_none());
    assert_eq!(world.record()["arrival_sequence"], 3);
}

#[test]
fn the_order_of_the_program_is_kept() {
    let world = World::new();
    notify(&world, &["--status", "running", "--sequence", "5", "--ts", "1700000000"]).silent();
    for sequence in ["5", "4", "0"] {
        let ran = notify(&world, &["--status", "idle", "--sequence", sequence]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{sequence}");
        assert!(ran.err.contains("its sequence is not above the stored one"), "{ran:?}");
    }
    assert_eq!(notify(&world, &["--status", "idle"]).code, Some(1), "and never without one again");
    let record = world.record();
    assert_eq!(
        (&record["status"], &record["ts"], &record["sequence"]),
        (&json!("running"), &json!(1_700_000_000), &json!(5))
    );
    notify(&world, &["--status", "idle", "--sequence", "6"]).silent();
}

#[test]
fn a_process_must_live_and_stays_the_records_own() {
    let world = World::new();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = child.id().to_string();
    notify(&world, &["--status", "running", "--pid", &pid, "--instance", "i"]).silent();
    let record = world.record();
    assert_eq!(
        (&record["pid"], &record["instance_id"], &record["process_identity"]),
        (&json!(pid), &json!("i"), &json!("identified"))
    );
    let other = std::process::id().to_string();
    let ran = notify(&world, &["--status", "idle", "--pid", &other, "--instance", "i"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("the stored record is of another process"), "{ran:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        notify(&world, &["--status", "idle", "--pid", &pid, "--instance", "i"]).code,
        Some(1)
    );
    for args in [
        &["--status", "idle", "--instance", "i"][..],
        &["--status", "idle", "--pid", &other, "--instance", "unresolved"],
    ] {
        assert_eq!(notify(&world, args).code, Some(64), "{args:?}");
    }
}

#[test]
fn text_is_cut_and_ids_are_refused() {
    let world = World::new();
    let long = "é".repeat(400);
    notify(&world, &["--status", "running", "--detail", &long, "--tool", &long]).silent();
    let record = world.record();
    assert_eq!(
        (record["detail"].as_str().unwrap().len(), record["tool"].as_str().unwrap().len()),
        (512, 256)
    );
    let long = "x".repeat(5000);
    for (session, cwd) in [(long.as_str(), "/x"), ("t", long.as_str())] {
        let ran = world.agents(&[
            "notify",
            "--harness",
            "other",
            "--status",
            "idle",
            "--session",
            session,
            "--cwd",
            cwd,
        ]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""));
    }
    let ran = notify(&world, &["--status", "running", "--ts", "99999999999"]);
    assert_eq!(ran.code, Some(65), "{ran:?}");
}

#[test]
fn a_hooks_record_and_a_notification_meet_under_the_same_rules() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let instance = world.record()["instance_id"].as_str().unwrap().to_string();
    let pid = agent.pid().to_string();
    let args = [
        "notify",
        "--harness",
        "claude",
        "--session",
        "s",
        "--pid",
        &pid,
        "--instance",
        &instance,
        "--status",
        "error",
    ];
    world.agents(&args).silent();
    let record = world.record();
    assert_eq!(
        (&record["status"], &record["turn"], &record["arrival_sequence"]),
        (&json!("error"), &json!(1), &json!(2))
    );
    agent.hook(&["claude", "PreToolUse"], &claude("s", r#","tool_name":"Bash""#)).silent();
    assert_eq!(world.record()["status"], "running");
}
