//! One session after another in one process: the older one is over in the same
//! run of the hook, where a process holds one session at a time.

use serde_json::{Value, json};

use crate::world::{World, claude};

/// The statuses of sessions, as a reader sees them.
fn statuses(world: &World, ids: &[&str]) -> Vec<String> {
    let all = world.sessions_json();
    let of = |id: &&str| {
        let session = all.iter().find(|s| s["session_id"] == **id);
        session.map_or("none", |s| s["status"].as_str().unwrap()).to_string()
    };
    ids.iter().map(of).collect()
}

/// TC-56: the session's id changes, pid and start do not.
#[test]
fn clear_leaves_one_session_in_the_process() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("a", r#","source":"startup""#)).silent();
    agent.hook(&["claude", "UserPromptSubmit"], &claude("a", "")).silent();
    agent.hook(&["claude", "SessionEnd"], &claude("a", r#","reason":"clear""#)).silent();
    agent.hook(&["claude", "SessionStart"], &claude("b", r#","source":"clear""#)).silent();
    assert_eq!(statuses(&world, &["a", "b"]), ["ended", "started"]);
    // The end may be missing, and the start: the first event of a new id will do.
    agent.hook(&["claude", "SessionStart"], &claude("c", r#","source":"clear""#)).silent();
    agent.hook(&["claude", "PreToolUse"], &claude("d", r#","tool_name":"Bash""#)).silent();
    assert_eq!(statuses(&world, &["b", "c", "d"]), ["ended", "ended", "running"]);
    // A late event of the older one does not bring it back, but a prompt does.
    agent.hook(&["claude", "PostToolUse"], &claude("c", r#","tool_name":"Bash""#)).silent();
    assert_eq!(statuses(&world, &["c", "d"]), ["ended", "running"]);
    let live: Vec<Value> =
        world.sessions_json().into_iter().filter(|s| s["status"] != "ended").collect();
    assert_eq!(live.len(), 1);
    assert_eq!(
        (&live[0]["session_id"], &live[0]["pid"]),
        (&json!("d"), &json!(agent.pid().to_string()))
    );
}

/// Twenty times in one process: only the newest id is live.
#[test]
fn twenty_sessions_one_after_another_are_one_at_a_time() {
    let world = World::new();
    let mut agent = world.harness("claude");
    for n in 0..20 {
        let start = claude(&format!("s{n}"), r#","source":"clear""#);
        agent.hook(&["claude", "SessionStart"], &start).silent();
        let sessions = world.sessions_json();
        let live: Vec<&Value> = sessions.iter().filter(|s| s["status"] != "ended").collect();
        assert_eq!(live.len(), 1);
        assert_eq!(live[0]["session_id"], format!("s{n}"));
    }
}

/// TC-57: `/new` in Pi, whose plugin names the session within its event.
#[test]
fn new_in_pi_is_taken_and_ends_the_one_before() {
    let world = World::new();
    let mut pi = world.harness("pi");
    let event = |kind: &str, id: &str| {
        format!(r#"{{"event":{{"type":"{kind}"}},"ctx":{{"sessionId":"{id}","cwd":"/tmp"}}}}"#)
    };
    pi.hook(&["pi", "session_start"], &event("session_start", "one")).silent();
    pi.hook(&["pi", "agent_start"], &event("agent_start", "one")).silent();
    assert_eq!(statuses(&world, &["one"]), ["running"]);
    pi.hook(&["pi", "session_start"], &event("session_start", "two")).silent();
    pi.hook(&["pi", "agent_start"], &event("agent_start", "two")).silent();
    assert_eq!(statuses(&world, &["one", "two"]), ["ended", "running"]);
    // And back.
    pi.hook(&["pi", "session_start"], &event("session_start", "one")).silent();
    assert_eq!(statuses(&world, &["one", "two"]), ["started", "ended"]);
}

/// TC-58: Copilot starts with an id that it throws away, or that a picker
/// swaps for the one that is resumed.
#[test]
fn an_id_that_was_only_for_the_start_is_over_when_the_real_one_comes() {
    let world = World::new();
    let mut copilot = world.harness("copilot");
    let start = |id: &str, source: &str| {
        format!(r#"{{"sessionId":"{id}","cwd":"/tmp","timestamp":1,"source":"{source}"}}"#)
    };
    copilot.hook(&["copilot", "sessionStart"], &start("boot", "new")).silent();
    copilot.hook(&["copilot", "sessionStart"], &start("real", "resume")).silent();
    assert_eq!(statuses(&world, &["boot", "real"]), ["ended", "started"]);
    // Without a start of its own.
    let mut copilot = world.harness("copilot");
    copilot.hook(&["copilot", "sessionStart"], &start("boot2", "new")).silent();
    let prompt = r#"{"sessionId":"real2","cwd":"/tmp","prompt":"x"}"#;
    copilot.hook(&["copilot", "userPromptSubmitted"], prompt).silent();
    assert_eq!(statuses(&world, &["boot2", "real2", "real"]), ["ended", "running", "started"]);
}

#[test]
fn the_older_one_no_longer_asks_and_keeps_what_it_was() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("a", "")).silent();
    agent.hook(&["claude", "PermissionRequest"], &claude("a", r#","tool_name":"Bash""#)).silent();
    agent.hook(&["claude", "SessionStart"], &claude("b", r#","source":"resume""#)).silent();
    let old = world.session("a").unwrap();
    assert_eq!(
        (&old["status"], &old["detail"], &old["tool"], &old["needs_attention"], &old["turn"]),
        (&json!("ended"), &json!("session closed"), &json!(""), &json!(false), &json!(1))
    );
    assert!(old.get("waiting_for").is_none(), "{old}");
}

#[test]
fn a_harness_that_holds_many_sessions_ends_none_for_another() {
    let world = World::new();
    let mut server = world.harness("opencode");
    let created = |id: &str| {
        format!(
            r#"{{"type":"session.created","properties":{{"info":{{"id":"{id}","directory":"/tmp"}}}}}}"#
        )
    };
    for id in ["one", "two", "three"] {
        server.hook(&["opencode", "session.created"], &created(id)).silent();
    }
    assert_eq!(statuses(&world, &["one", "two", "three"]), ["started"; 3]);
    assert!(!world.files().iter().any(|f| f.starts_with(".tongs-proc-")), "and notes none");
}

#[test]
fn neither_a_subagent_nor_another_process_nor_a_reused_pid_ends_a_session() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("a", "")).silent();
    agent.hook(&["claude", "SubagentStart"], &claude("sub", r#","agent_id":"x""#)).silent();
    agent
        .hook(
            &["claude", "PermissionRequest"],
            &claude("ask", r#","agent_id":"x","tool_name":"T""#),
        )
        .silent();
    assert_eq!(statuses(&world, &["a"]), ["started"]);
    world.harness("claude").hook(&["claude", "SessionStart"], &claude("b", "")).silent();
    assert_eq!(statuses(&world, &["a"]), ["started"]);
    // The note is of a process that had this pid before.
    let note = world.sessions().join(format!(".tongs-proc-v1-{}", agent.pid()));
    let text = std::fs::read_to_string(&note).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    std::fs::write(&note, format!("1\n{rest}")).unwrap();
    agent.hook(&["claude", "SessionStart"], &claude("c", "")).silent();
    assert_eq!(statuses(&world, &["a", "c"]), ["started", "started"]);
}
