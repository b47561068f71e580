//! Faults that were found once, each by the events that showed it.

use std::fs;

use serde_json::{Value, json};

use crate::world::{Harness, World, bytes, claude};

/// Runs one event of session `s`, with these further fields, in silence.
#[track_caller]
fn tell(agent: &mut Harness<'_>, event: &str, more: &str) {
    agent.hook(&["claude", event], &claude("s", more)).silent();
}

/// Runs one event of session `s` and says what became of it: the outcome, with
/// the reason or the status behind it.
#[track_caller]
fn outcome(agent: &mut Harness<'_>, event: &str, more: &str) -> String {
    let report = agent.strict(&["claude", event], &claude("s", more));
    let word = |key: &str| report[key].as_str().unwrap().to_owned();
    format!("{} {}{}", word("outcome"), word("reason"), word("status"))
}

const BASH: &str = r#","tool_name":"Bash""#;
const PERMISSION: &str = r#","notification_type":"permission_prompt""#;
const IDLE: &str = r#","notification_type":"idle_prompt""#;
const FIELDS: [&str; 5] =
    ["waiting_for", "waiting_since", "waiting_tool", "waiting_agent", "waiting_from"];

/// The fields of the wait that are there.
fn waits(record: &Value) -> Vec<&str> {
    FIELDS.into_iter().filter(|key| record.get(*key).is_some()).collect()
}

/// Changes the stored record, as another program would.
fn edit(world: &World, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let file = &world.record_files()[0];
    let Value::Object(mut record) = world.record() else { panic!() };
    change(&mut record);
    fs::write(file, Value::Object(record).to_string()).unwrap();
}

#[test]
fn an_event_two_turns_late_does_not_turn_the_order_of_turns_round() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let of = |id: &str| format!(r#","prompt_id":"{id}","tool_name":"Bash""#);
    for id in ["A", "B", "C"] {
        tell(&mut agent, "UserPromptSubmit", &of(id));
    }
    let ids = |record: &Value| [record["turn_id"].clone(), record["prev_turn_id"].clone()];
    assert_eq!(ids(&world.record()), [json!("C"), json!("B")]);
    assert_eq!(outcome(&mut agent, "PostToolUse", &of("A")), "written running");
    assert_eq!(ids(&world.record()), [json!("C"), json!("B")]);
    assert_eq!(outcome(&mut agent, "PostToolUse", &of("B")), "ignored late");
    assert_eq!(outcome(&mut agent, "Stop", &of("C")), "written idle");
    assert_eq!(ids(&world.record()), [json!("C"), json!("B")]);
}

#[test]
fn an_id_is_taken_from_any_event_where_none_is_known() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "SessionStart", "");
    tell(&mut agent, "PostToolUse", r#","prompt_id":"A","tool_name":"Bash""#);
    assert_eq!(
        (&world.record()["turn_id"], world.record().get("prev_turn_id")),
        (&json!("A"), None)
    );
    tell(&mut agent, "PostToolUse", r#","prompt_id":"B","tool_name":"Bash""#);
    assert_eq!(
        (&world.record()["turn_id"], world.record().get("prev_turn_id")),
        (&json!("A"), None)
    );
}

#[test]
fn a_notification_does_not_take_a_subagent_s_question_from_it() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let question = r#","tool_name":"AskUserQuestion","agent_id":"a1""#;
    tell(&mut agent, "UserPromptSubmit", "");
    assert_eq!(outcome(&mut agent, "PreToolUse", question), "written waiting");
    let before = world.record();
    assert_eq!(outcome(&mut agent, "Notification", PERMISSION), "written waiting");
    let now = world.record();
    for key in ["waiting_for", "waiting_since", "waiting_tool", "waiting_agent", "detail", "tool"] {
        assert_eq!(now[key], before[key], "{key}");
    }
    assert_eq!((&now["waiting_for"], &now["waiting_agent"]), (&json!("question"), &json!("a1")));
    assert_eq!(outcome(&mut agent, "PostToolUse", question), "written running");
    assert_eq!(waits(&world.record()), [""; 0]);
}

#[test]
fn a_notification_does_not_make_a_plan_answerable_by_any_tool() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    assert_eq!(
        outcome(&mut agent, "PreToolUse", r#","tool_name":"ExitPlanMode""#),
        "written waiting"
    );
    assert_eq!(outcome(&mut agent, "Notification", PERMISSION), "written waiting");
    assert_eq!(outcome(&mut agent, "PostToolUse", r#","tool_name":"Read""#), "written waiting");
    let record = world.record();
    assert_eq!(
        (&record["waiting_for"], &record["waiting_tool"]),
        (&json!("plan"), &json!("ExitPlanMode"))
    );
    assert_eq!(record["detail"], "plan ready for review");
    assert_eq!(
        outcome(&mut agent, "PostToolUse", r#","tool_name":"ExitPlanMode""#),
        "written running"
    );
}

#[test]
fn a_sign_of_idleness_says_nothing_new_of_a_turn_that_is_over() {
    for (event, more, status, detail) in [
        ("Stop", r#","last_assistant_message":"All done.""#, "idle", "All done."),
        ("StopFailure", r#","error":"rate_limit""#, "error", "turn failed: rate_limit"),
    ] {
        let world = World::new();
        let mut agent = world.harness("claude");
        tell(&mut agent, "UserPromptSubmit", "");
        tell(&mut agent, event, more);
        // As if it were long ago: the time must stay, too.
        edit(&world, |record| {
            record.insert("ts".into(), json!(1_700_000_000));
        });
        let file = &world.record_files()[0];
        let before = bytes(file);
        tell(&mut agent, "Notification", IDLE);
        assert_eq!(outcome(&mut agent, "Notification", IDLE), "ignored known");
        assert_eq!(bytes(file), before, "{event}");
        let record = world.record();
        assert_eq!(
            (&record["status"], &record["detail"], &record["ts"]),
            (&json!(status), &json!(detail), &json!(1_700_000_000))
        );
    }
}

#[test]
fn a_sign_of_idleness_ends_a_turn_whose_stop_never_came() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    assert_eq!(outcome(&mut agent, "Notification", IDLE), "written idle");
    tell(&mut agent, "UserPromptSubmit", "");
    tell(&mut agent, "PermissionRequest", BASH);
    assert_eq!(outcome(&mut agent, "Notification", IDLE), "written idle");
    assert_eq!(waits(&world.record()), [""; 0]);
    let other = World::new();
    let mut agent = other.harness("claude");
    assert_eq!(outcome(&mut agent, "Notification", IDLE), "written idle");
}

#[test]
fn a_background_subagent_s_wait_goes_back_to_the_idle_session() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let bash = r#","tool_name":"Bash","agent_id":"a1""#;
    tell(&mut agent, "UserPromptSubmit", "");
    for (event, more, status) in [("Stop", "", "idle"), ("StopFailure", "", "error")] {
        for (answer, done) in [("PostToolUse", bash), ("SubagentStop", r#","agent_id":"a1""#)] {
            tell(&mut agent, "UserPromptSubmit", "");
            tell(&mut agent, event, more);
            assert_eq!(outcome(&mut agent, "PermissionRequest", bash), "written waiting");
            assert_eq!(world.record()["waiting_from"], status);
            // Another wait of the subagent remembers it.
            tell(&mut agent, "PermissionRequest", r#","tool_name":"Edit","agent_id":"a1""#);
            assert_eq!(outcome(&mut agent, "PermissionRequest", bash), "written waiting");
            assert_eq!(world.record()["waiting_from"], status);
            assert_eq!(outcome(&mut agent, answer, done), format!("written {status}"), "{answer}");
            assert_eq!(waits(&world.record()), [""; 0]);
        }
    }
    // In a running turn there is nothing to go back to.
    tell(&mut agent, "UserPromptSubmit", "");
    tell(&mut agent, "PermissionRequest", bash);
    assert_eq!(world.record().get("waiting_from"), None);
    assert_eq!(outcome(&mut agent, "PostToolUse", bash), "written running");
    // A prompt meanwhile is the turn that goes on.
    tell(&mut agent, "Stop", "");
    tell(&mut agent, "PermissionRequest", bash);
    tell(&mut agent, "UserPromptSubmit", "");
    assert_eq!((&world.record()["status"], waits(&world.record()).len()), (&json!("running"), 0));
}

#[test]
fn an_answer_without_a_tool_does_not_end_the_wait_of_a_known_tool() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    tell(&mut agent, "PermissionRequest", BASH);
    assert_eq!(outcome(&mut agent, "ElicitationResult", ""), "written waiting");
    assert_eq!(world.record()["waiting_tool"], "Bash");
    assert_eq!(outcome(&mut agent, "PostToolUse", BASH), "written running");
    // Where no tool is known it does.
    tell(&mut agent, "Elicitation", "");
    assert_eq!(outcome(&mut agent, "ElicitationResult", ""), "written running");
}

#[test]
fn a_request_behind_its_notification_names_the_wait_and_does_not_begin_it() {
    for more in [BASH, r#","tool_name":"Bash","agent_id":"a1""#] {
        let world = World::new();
        let mut agent = world.harness("claude");
        tell(&mut agent, "UserPromptSubmit", "");
        tell(&mut agent, "Notification", PERMISSION);
        edit(&world, |record| {
            record.insert("waiting_since".into(), json!(1_700_000_000));
        });
        assert_eq!(outcome(&mut agent, "PermissionRequest", more), "written waiting");
        let record = world.record();
        assert_eq!(
            (&record["waiting_since"], &record["waiting_tool"]),
            (&json!(1_700_000_000), &json!("Bash"))
        );
        assert_eq!(
            (&record["detail"], &record["tool"]),
            (&json!("permission needed: Bash"), &json!("Bash"))
        );
        assert_eq!(record.get("waiting_agent").is_some(), more != BASH);
        // Another tool's request is another wait.
        tell(&mut agent, "PermissionRequest", r#","tool_name":"Edit""#);
        assert!(world.record()["waiting_since"].as_u64().unwrap() > 1_700_000_000);
    }
}

#[test]
fn the_next_session_of_a_process_ends_one_that_has_a_sequence() {
    let world = World::new();
    let mut agent = world.harness("pi");
    let event = |session: &str, sequence: u64| {
        json!({
            "schema_version": 1, "event_id": "pi.x", "status": "waiting", "session_id": session, "cwd": "/tmp", "sequence": sequence,
        })
        .to_string()
    };
    agent.hook(&["pi", "fleet-event"], &event("one", 7)).silent();
    let pid = agent.pid().to_string();
    assert_eq!((&world.record()["pid"], &world.record()["sequence"]), (&json!(pid), &json!(7)));
    agent.hook(&["pi", "fleet-event"], &event("two", 1)).silent();
    let (one, two) = (world.record_of("one"), world.record_of("two"));
    assert_eq!(
        (&one["status"], &one["detail"], &one["sequence"]),
        (&json!("ended"), &json!("session closed"), &json!(7))
    );
    assert_eq!(
        (&one["pid"], &two["pid"], &two["status"]),
        (&json!(pid), &json!(pid), &json!("waiting"))
    );
    assert_eq!(waits(&one), [""; 0]);
    let session = |id: &str| world.session(id).unwrap()["status"].clone();
    assert_eq!((session("one"), session("two")), (json!("ended"), json!("waiting")));
    // Its own order goes on where it was.
    assert_eq!(agent.strict(&["pi", "fleet-event"], &event("one", 7))["reason"], "sequence");
    assert_eq!(agent.strict(&["pi", "fleet-event"], &event("one", 8))["status"], "waiting");
}

#[test]
fn a_normalised_event_has_no_subagent_and_no_field_of_a_wrong_type() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let event = |more: Value| {
        let mut event = json!({"schema_version": 1, "event_id": "claude.x", "status": "running", "session_id": "s", "cwd": "/tmp"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event.to_string()
    };
    tell(&mut agent, "UserPromptSubmit", "");
    tell(&mut agent, "PermissionRequest", BASH);
    agent
        .hook(&["claude", "fleet-event"], &event(json!({"agent_id": "a1", "status": "waiting"})))
        .silent();
    assert_eq!(world.record().get("waiting_agent"), None);
    assert_eq!(
        agent.strict(
            &["claude", "fleet-event"],
            &event(json!({"agent_id": "a1", "status": "idle"}))
        )["status"],
        "idle"
    );
    let before = world.record();
    for more in [
        json!({"sequence": "7"}),
        json!({"sequence": -1}),
        json!({"sequence": 1.5}),
        json!({"sequence": [1]}),
        json!({"ts": "1700000000"}),
        json!({"ts": -1}),
        json!({"ts": {}}),
        json!({"instance_id": 7}),
        json!({"instance_id": ""}),
        json!({"instance_id": "i".repeat(513)}),
        json!({"instance_id": ["i"]}),
    ] {
        let report = agent.strict(&["claude", "fleet-event"], &event(more.clone()));
        assert_eq!(
            (&report["outcome"], &report["reason"]),
            (&json!("dropped"), &json!("field")),
            "{more}"
        );
    }
    assert_eq!(world.record(), before);
    let nothing = json!({"sequence": null, "ts": null, "instance_id": null});
    assert_eq!(agent.strict(&["claude", "fleet-event"], &event(nothing))["outcome"], "written");
}

#[test]
fn long_texts_do_not_crowd_the_session_id_out() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let long = "x".repeat(5000);
    let before: String = ["tool_name", "last_assistant_message", "error", "session_title"]
        .map(|key| format!("\"{key}\":\"{long}\","))
        .concat();
    agent
        .hook(
            &["claude", "UserPromptSubmit"],
            &format!("{{{before}\"session_id\":\"s\",\"cwd\":\"/tmp\"}}"),
        )
        .silent();
    let record = world.record();
    assert_eq!((&record["session_id"], &record["status"]), (&json!("s"), &json!("running")));
    assert_eq!(record["title"], "x".repeat(512));
    agent
        .hook(
            &["claude", "PreToolUse"],
            &format!("{{{before}\"session_id\":\"s\",\"cwd\":\"/tmp\"}}"),
        )
        .silent();
    assert_eq!(world.record()["tool"], "x".repeat(256));
    // Every other text that is read, each longer than there is room for.
    let others = [
        "hook_event_name",
        "type",
        "prompt_id",
        "turn_id",
        "turn-id",
        "last-assistant-message",
        "source",
        "trigger",
        "notification_type",
        "event_id",
        "status",
        "detail",
        "tool",
        "instance_id",
    ];
    let others: String = others.map(|key| format!("\"{key}\":\"{long}\",")).concat();
    let all = format!("{{{before}{others}\"session_id\":\"t\",\"cwd\":\"/tmp\"}}");
    agent.hook(&["claude", "UserPromptSubmit"], &all).silent();
    assert_eq!(world.record_of("t")["status"], "running");
    assert_eq!(world.record_of("t").get("turn_id"), None, "half an id is another id");
}

#[test]
fn what_others_left_in_a_record_does_not_make_the_session_unwritable() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", r#","session_title":"mine","prompt_id":"p""#);
    let started = world.record()["started"].clone();
    // One text of ours, as long as a record can be.
    let room = 65_536 - bytes(&world.record_files()[0]).len();
    edit(&world, |record| {
        record.insert("title".into(), json!("t".repeat(room)));
    });
    assert!(bytes(&world.record_files()[0]).len() > 65_500);
    assert_eq!(outcome(&mut agent, "Stop", ""), "written idle");
    let record = world.record();
    assert_eq!(
        (record.get("title"), &record["started"], &record["turn_id"]),
        (None, &started, &json!("p"))
    );
    // Many of them, each as long as it may be.
    edit(&world, |record| {
        for key in [
            "title",
            "branch",
            "worktree",
            "turn_id",
            "prev_turn_id",
            "launch_id",
            "profile_id",
            "terminal_id",
            "waiting_tool",
            "x",
        ] {
            record.insert(key.into(), json!("t".repeat(4096)));
        }
        record
            .insert("focus_target".into(), json!({"kind": "terminal", "odd": "t".repeat(22_000)}));
    });
    assert!(bytes(&world.record_files()[0]).len() > 62_000);
    assert_eq!(outcome(&mut agent, "UserPromptSubmit", r#","prompt_id":"q""#), "written running");
    let (record, file) = (world.record(), &world.record_files()[0]);
    assert_eq!(
        (&record["status"], &record["turn"], &record["turn_id"]),
        (&json!("running"), &json!(2), &json!("q"))
    );
    assert!(bytes(file).len() <= 65_536);
    // Integers that no writer of ours reads.
    let stored = String::from_utf8(bytes(file))
        .unwrap()
        .replace("\"turn\":2,", "\"turn\":18446744073709551616,\"background\":-3,");
    fs::write(file, stored).unwrap();
    assert_eq!(outcome(&mut agent, "PostToolUse", BASH), "written running");
    assert_eq!((&world.record()["turn"], world.record().get("background")), (&json!(0), None));
}

#[test]
fn a_record_of_the_future_does_not_freeze_its_session() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    let now = world.record()["boot_ms"].as_u64().unwrap();
    for ahead in [u64::from(u32::MAX), i64::MAX as u64 - now, 60_000] {
        edit(&world, |record| {
            record.insert("status".into(), json!("running"));
            record.insert("boot_ms".into(), json!(now + ahead));
        });
        assert_eq!(outcome(&mut agent, "Stop", ""), "written idle", "{ahead}");
        assert!(world.record()["boot_ms"].as_u64().unwrap() < now + 60_000);
    }
    // By a little it can be: another hook began later and was faster.
    edit(&world, |record| {
        record.insert("status".into(), json!("running"));
        let now = record["boot_ms"].as_u64().unwrap();
        record.insert("boot_ms".into(), json!(now + 9000));
    });
    let before = world.record();
    assert_eq!(outcome(&mut agent, "Stop", ""), "written running");
    let now = world.record();
    assert_eq!(
        (&now["status"], &now["boot_ms"], &now["ts_ms"]),
        (&json!("running"), &before["boot_ms"], &before["ts_ms"])
    );
}

#[test]
fn a_subagent_s_event_of_no_interest_leaves_a_newer_record_alone() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    tell(&mut agent, "Stop", "");
    edit(&world, |record| {
        let now = record["boot_ms"].as_u64().unwrap();
        record.insert("boot_ms".into(), json!(now + 9000));
    });
    let file = &world.record_files()[0];
    let before = bytes(file);
    assert_eq!(
        outcome(&mut agent, "PreToolUse", r#","tool_name":"Bash","agent_id":"a1""#),
        "ignored subagent"
    );
    assert_eq!(outcome(&mut agent, "Notification", IDLE), "ignored known");
    assert_eq!(bytes(file), before);
    // One that would do something is counted.
    assert_eq!(
        outcome(&mut agent, "PermissionRequest", r#","tool_name":"Bash","agent_id":"a1""#),
        "written idle"
    );
    assert_ne!(bytes(file), before);
}

#[test]
fn a_directory_that_is_too_long_is_none_and_not_another() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let long = format!("/{}", "d/".repeat(2500));
    let payload = |session: &str| format!("{{\"session_id\":\"{session}\",\"cwd\":\"{long}\"}}");
    // A new session gets the hook's own.
    agent.hook(&["claude", "UserPromptSubmit"], &payload("new")).silent();
    let own = fs::canonicalize(world.path("project")).unwrap();
    assert_eq!(world.record()["cwd"], own.to_str().unwrap());
    assert_eq!(world.record()["repo"], "project");
    // One that has one keeps it.
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    agent.hook(&["claude", "UserPromptSubmit"], &payload("s")).silent();
    let record = world.record_of("s");
    assert_eq!(
        (&record["cwd"], &record["repo"], &record["status"]),
        (&json!("/tmp"), &json!("tmp"), &json!("running"))
    );
    // The longest that there can be is whole.
    let most = format!("/{}", "d".repeat(4095));
    agent
        .hook(
            &["claude", "UserPromptSubmit"],
            &format!("{{\"session_id\":\"s\",\"cwd\":\"{most}\"}}"),
        )
        .silent();
    assert_eq!(world.record_of("s")["cwd"], most);
}

#[test]
fn a_dot_in_a_key_is_no_path() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let payload = r#"{"ctx.sessionId":"other","ctx.cwd":"/","session_id":"s","cwd":"/tmp","event.type":"session_shutdown"}"#;
    agent.hook(&["claude", "UserPromptSubmit"], payload).silent();
    let record = world.record();
    assert_eq!(
        (&record["harness_id"], &record["session_id"], &record["cwd"]),
        (&json!("claude"), &json!("s"), &json!("/tmp"))
    );
    // Twice is nothing special either, and beside the path it does not count.
    let twice = r#"{"ctx.sessionId":"x","ctx.sessionId":"y","session_id":"s","cwd":"/tmp"}"#;
    assert_eq!(agent.strict(&["claude", "Stop"], twice)["status"], "idle");
    let mut pi = world.harness("pi");
    let both = r#"{"ctx.sessionId":"x","ctx":{"sessionId":"p","cwd":"/tmp"}}"#;
    assert_eq!(pi.strict(&["pi", "agent_start"], both)["outcome"], "written");
    assert_eq!(world.record_of("p")["harness_id"], "pi");
}

#[test]
fn half_a_walk_to_the_agent_makes_no_second_record() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "UserPromptSubmit", "");
    let before = bytes(&world.record_files()[0]);
    // No descriptor is free: no ancestor can be read.
    let stop = format!("'{}'", claude("s", ""));
    agent.shell(&format!("ulimit -n 3; tongs-hook claude Stop {stop}")).silent();
    let ran = agent.shell(&format!("ulimit -n 3; tongs-hook --strict claude Stop {stop}"));
    let report = ran.json();
    assert_eq!(
        (ran.code, &report["outcome"], &report["reason"]),
        (Some(74), &json!("dropped"), &json!("ancestor-unread"))
    );
    assert_eq!((world.record_files().len(), bytes(&world.record_files()[0])), (1, before));
}

#[test]
fn strict_says_that_the_hook_was_told_off() {
    let world = World::new();
    let ran = world.harness("claude").hook_with(
        "env TONGS_AGENTS_IGNORE=1",
        &["--strict", "claude", "SessionStart"],
        &claude("s", ""),
    );
    let report = ran.json();
    assert_eq!(
        (ran.code, &report["outcome"], &report["reason"]),
        (Some(0), &json!("ignored"), &json!("told-off"))
    );
    assert!(!world.state().exists());
}

#[test]
fn a_report_without_a_process_is_about_the_process_that_is_known() {
    let world = World::new();
    let agent = world.harness("claude");
    let pid = agent.pid().to_string();
    let notify = |more: &[&str]| {
        world
            .agents(&[&["notify", "--harness", "other", "--session", "b"], more].concat())
            .silent();
    };
    notify(&["--status", "running", "--pid", &pid]);
    notify(&["--status", "waiting", "--detail", "need you"]);
    let record = world.record();
    assert_eq!(
        (&record["status"], &record["detail"], &record["pid"]),
        (&json!("waiting"), &json!("need you"), &json!(pid))
    );
    notify(&["--status", "ended"]);
    assert_eq!(world.record()["status"], "ended");
}

#[test]
fn nothing_is_made_in_a_place_that_is_refused_or_in_another_users_home() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let open = world.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let payload = claude("s", "");
    let strict = |home: &std::path::Path, state: Option<&std::path::Path>| {
        let mut command = world.command("tongs-hook");
        command.args(["--strict", "claude", "Stop"]).env("HOME", home);
        if let Some(state) = state {
            command.env("TONGS_AGENTS_STATE_DIR", state);
        }
        crate::world::finish(command, payload.as_bytes()).json()["reason"].clone()
    };
    assert_eq!(strict(&world.path("home"), Some(&open.join("a/b"))), "store-unsafe");
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // A home that is not there is not ours to make.
    assert_eq!(strict(&world.path("nobody/home"), None), "store-no-home");
    assert!(!world.path("nobody").exists());
    let theirs = world.path("theirs");
    fs::create_dir(&theirs).unwrap();
    if std::os::unix::fs::chown(&theirs, Some(65534), None).is_ok() {
        assert_eq!(strict(&theirs, None), "store-unsafe");
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    } else {
        eprintln!("skipped a part: only root can make another user's home");
    }
}

#[test]
fn a_record_whose_lock_is_held_does_not_keep_the_others_from_going() {
    if !crate::world::has_tool("flock", "a_record_whose_lock_is_held") {
        return;
    }
    let world = World::new();
    let mut agents: Vec<_> = (0..4).map(|_| world.harness("claude")).collect();
    for (i, agent) in agents.iter_mut().enumerate() {
        agent.hook(&["claude", "SessionStart"], &claude(&format!("s{i}"), "")).silent();
    }
    agents.into_iter().for_each(Harness::kill);
    let held = world.record_of("s2")["canonical_id"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_string();
    let mut command = std::process::Command::new("flock");
    world.bare(&mut command);
    command.arg(world.sessions().join(format!(".fleet-v1-{held}.lock")));
    command.args(["sh", "-c", "tongs-agents cleanup --json; echo $?"]);
    let ran = crate::world::finish(command, b"");
    let (line, code) = ran.out.split_once('\n').unwrap();
    let done: Value = serde_json::from_str(line).unwrap();
    assert_eq!((code, &done["skipped"]), ("1\n", &json!("unavailable")));
    assert!(done["removed"].as_u64().unwrap() >= 3, "{done}");
    assert!(
        world.session("s2").is_some()
            && world.session("s0").is_none()
            && world.session("s3").is_none()
    );
}

#[test]
fn a_nul_in_optional_text_is_no_text_and_no_reason_to_drop_the_event() {
    let world = World::new();
    let mut agent = world.harness("claude");
    tell(&mut agent, "PermissionRequest", r#","tool_name":"a\u0000b","session_title":"x\u0000""#);
    let record = world.record();
    assert_eq!(
        (&record["status"], &record["detail"]),
        (&json!("waiting"), &json!("permission needed: tool"))
    );
}

#[test]
fn a_terminal_that_would_stop_a_background_hook_does_not() {
    let world = World::new();
    // `script` gives the shell a terminal; the hook runs in a background process
    // group and reads from it.
    if !crate::world::has_tool("script", "a_terminal_that_would_stop") {
        return;
    }
    let mut command = std::process::Command::new("script");
    world.bare(&mut command);
    let line = "set -m; tongs-hook claude Stop & wait $!; echo code $?";
    command.args(["-qec", &format!("bash -c '{line}'"), "/dev/null"]);
    let ran = crate::world::finish(command, b"");
    assert!(ran.out.contains("code 0"), "{ran:?}");
}
