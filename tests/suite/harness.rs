//! What single harnesses have of their own: variables, an answer, editors,
//! spellings, sessions without a name.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::world::World;

#[test]
fn antigravity_gets_its_answer_whatever_becomes_of_the_event() {
    let world = World::new();
    let mut agy = world.harness("agy");
    let good = r#"{"conversationId":"c","workspacePaths":["/tmp"],"invocationNum":0}"#;
    for (before, args, payload) in [
        ("", &["antigravity", "PreInvocation"][..], good),
        ("", &["antigravity", "NoSuchEvent"], good),
        ("", &["antigravity"], good),
        ("", &["antigravity", "Stop"], ""),
        ("", &["antigravity", "Stop"], "{"),
        ("", &["antigravity", "Stop"], r#"{"conversationId":7}"#),
        ("TONGS_AGENTS_IGNORE=1", &["antigravity", "Stop"], good),
        ("HOME=", &["antigravity", "Stop"], good),
    ] {
        let ran = agy.hook_with(before, args, payload);
        let got = (ran.code, ran.out.as_str(), ran.err.as_str());
        assert_eq!(got, (Some(0), "{}", ""), "{before} {args:?} {payload}");
    }
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(agy.hook(&["antigravity", "Stop"], good).out, "{}");
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o700)).unwrap();
    for line in ["tongs-hook antigravity Stop >&-", "tongs-hook antigravity Stop >/dev/full"] {
        agy.shell(&format!("echo '{good}' | {line}")).silent();
    }
    assert_eq!(world.record()["status"], "idle");
    // People and tests get the outcome instead.
    assert_eq!(agy.strict(&["antigravity", "PreInvocation"], good)["status"], "running");
    // Its process does not make another harness's hook talk.
    agy.hook(&["claude", "Stop"], good).silent();
}

#[test]
fn what_grok_does_not_say_its_variables_say() {
    let world = World::new();
    let mut grok = world.harness("grok");
    let vars = "env GROK_HOOK_EVENT=session_start GROK_SESSION_ID=g GROK_WORKSPACE_ROOT=/usr";
    for (args, payload) in [
        (&["grok", "SessionStart"][..], ""),
        (&["grok"], ""),
        (&["claude", "SessionStart"], "{}"),
        (&["grok"], r#"{"sessionId":""}"#),
    ] {
        world.record_files().iter().for_each(|f| fs::remove_file(f).unwrap());
        grok.hook_with(vars, args, payload).silent();
        let record = world.record();
        for (key, want) in [
            ("harness_id", "grok"),
            ("session_id", "g"),
            ("cwd", "/usr"),
            ("status", "started"),
            ("method", "hook-env"),
            ("last_event", "grok.session-start"),
        ] {
            assert_eq!(record[key], want, "{key}: {args:?} {payload}");
        }
    }
    // The payload's own words go first.
    let told = r#"{"hookEventName":"user_prompt_submit","sessionId":"h","cwd":"/tmp"}"#;
    grok.hook_with(vars, &["grok"], told).silent();
    let record = world.record_of("h");
    assert_eq!(
        (&record["cwd"], &record["status"], &record["method"]),
        (&json!("/tmp"), &json!("running"), &json!("hook-stdin"))
    );
    // Inherited by another agent, they mean nothing.
    let mut claude = world.harness("claude");
    claude
        .hook_with(vars, &["claude", "SessionStart"], r#"{"session_id":"c","cwd":"/tmp"}"#)
        .silent();
    let record = world.record_of("c");
    assert_eq!(
        (&record["harness_id"], &record["method"]),
        (&json!("claude"), &json!("hook-stdin"))
    );
    let before = world.record_files().len();
    claude.hook_with(vars, &["claude", "SessionStart"], "{}").silent();
    assert_eq!(world.record_files().len(), before);
}

#[test]
fn directories_come_from_variables_where_payloads_have_none() {
    for (name, var) in [("devin", "DEVIN_PROJECT_DIR"), ("gemini", "GEMINI_CWD")] {
        let world = World::new();
        let mut agent = world.harness(name);
        let before = format!("env {var}=/usr/share");
        agent.hook_with(&before, &[name, "SessionStart"], r#"{"session_id":"s"}"#).silent();
        assert_eq!(world.record()["cwd"], "/usr/share", "{name}");
    }
}

#[test]
fn an_editor_is_the_process_of_its_sessions_and_of_no_others() {
    let world = World::new();
    let mut editor = world.harness("cursor");
    let payload =
        r#"{"conversation_id":"c","cursor_version":"3","cwd":"","workspace_roots":["/tmp"]}"#;
    // It runs the hooks of another harness's configuration too.
    editor.hook(&["claude", "SessionStart"], payload).silent();
    let record = world.record();
    assert_eq!(
        (&record["harness_id"], &record["pid"], &record["cwd"]),
        (&json!("cursor"), &json!(editor.pid().to_string()), &json!("/tmp"))
    );
    // In its terminal another program reports.
    editor.hook(&["other", "prompt-submit"], r#"{"session_id":"o","cwd":"/tmp"}"#).silent();
    let record = world.record_of("o");
    assert_ne!(record["harness_id"], "cursor");
    assert_ne!(record["pid"], editor.pid().to_string());
    editor.hook(&["cline", "TaskStart"], r#"{"taskId":"t","clineVersion":"4"}"#).silent();
    let record = world.record_of("t");
    assert_eq!(
        (&record["harness_id"], &record["pid"]),
        (&json!("cline"), &json!(editor.pid().to_string()))
    );
}

#[test]
fn one_process_of_an_editor_or_a_server_holds_many_sessions() {
    for (name, many) in [("cursor-agent", true), ("opencode", true), ("grok", false)] {
        let world = World::new();
        let mut agent = world.harness(name);
        let row = if name == "cursor-agent" { "cursor" } else { name };
        let event = if row == "opencode" { "session.created" } else { "SessionStart" };
        for id in ["a", "b"] {
            let payload = match row {
                "cursor" => json!({"conversation_id": id, "cwd": "/tmp"}),
                "opencode" => json!({"data": {"sessionID": id}}),
                _ => json!({"sessionId": id, "cwd": "/tmp"}),
            };
            agent.hook(&[row, event], &payload.to_string()).silent();
        }
        let ended = world.record_of("a")["status"] == "ended";
        assert_eq!(ended, !many, "{name}");
    }
}

/// Runs events of one session and returns the status after each.
fn statuses(name: &str, program: &str, events: &[(&str, Value)]) -> Vec<String> {
    let world = World::new();
    let mut agent = world.harness(program);
    let mut all = Vec::new();
    for (event, payload) in events {
        agent.hook(&[name, event], &payload.to_string());
        let records = world.record_files();
        assert!(records.len() <= 1, "{name} {event}");
        let status = records
            .first()
            .map_or("none".to_string(), |_| world.record()["status"].as_str().unwrap().to_string());
        all.push(status);
    }
    all
}

#[test]
fn an_opencode_session_goes_idle_and_busy_and_a_subagents_makes_no_record() {
    let bus = |id: &str, more: Value| {
        let mut properties = json!({"sessionID": id});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "x", "properties": properties})
    };
    let status = |kind| bus("s", json!({"status": {"type": kind}}));
    let child = json!({"info": {"id": "c", "parentID": "s"}});
    let mut marked = bus("c", json!({"status": {"type": "busy"}}));
    marked["parentID"] = json!("s");
    let got = statuses(
        "opencode",
        "opencode",
        &[
            ("session.idle", bus("c", json!({}))),
            ("session.created", bus("s", json!({"info": {"id": "s"}}))),
            ("session.status", status("busy")),
            ("permission.asked", bus("s", json!({"permission": "bash"}))),
            ("session.status", status("busy")),
            ("permission.replied", bus("s", json!({}))),
            ("session.created", bus("c", child)),
            ("session.status", marked),
            ("session.idle", bus("c", json!({}))),
            ("session.status", status("retry")),
            ("session.error", bus("s", json!({"error": {"name": "APIError"}}))),
            ("session.status", status("idle")),
            ("session.status", status("busy")),
            ("session.deleted", bus("s", json!({}))),
            ("session.status", status("busy")),
        ],
    );
    assert_eq!(
        got,
        [
            "none", "started", "running", "waiting", "waiting", "running", "running", "running",
            "running", "running", "error", "idle", "running", "ended", "ended"
        ]
    );
}

#[test]
fn antigravity_counts_a_turn_at_its_first_call_of_the_model() {
    let event = |more: Value| {
        let mut json = json!({"conversationId": "c", "workspacePaths": ["/tmp"]});
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json
    };
    let call = |n| event(json!({"invocationNum": n}));
    let got = statuses(
        "antigravity",
        "agy",
        &[
            ("PreInvocation", call(0)),
            ("PreToolUse", event(json!({"toolCall": {"name": "ask_question"}}))),
            // the editor's does not say which tool
            ("PostToolUse", event(json!({"stepIdx": 3, "error": ""}))),
            ("PreInvocation", call(1)),
            ("Stop", event(json!({"error": "", "fullyIdle": true}))),
            ("PreInvocation", call(2)),
            ("Stop", event(json!({"error": "quota"}))),
        ],
    );
    assert_eq!(got, ["running", "waiting", "waiting", "running", "idle", "running", "error"]);
}

#[test]
fn a_droid_notification_is_told_by_its_words() {
    let says = |text| json!({"session_id": "s", "cwd": "/tmp", "message": text});
    let got = statuses(
        "droid",
        "droid",
        &[
            ("UserPromptSubmit", says("")),
            ("Notification", says("PERMISSION to run this is needed")),
            ("PostToolUse", says("")),
            ("Notification", says("an update is there")),
            ("Notification", says("droid is waiting for your input.")),
        ],
    );
    assert_eq!(got, ["running", "waiting", "running", "running", "idle"]);
}

#[test]
fn events_are_known_in_the_spelling_of_the_configuration() {
    for (name, program, event, want) in [
        ("grok", "grok", "SessionStart", "started"),
        ("grok", "grok", "sessionStart", "started"),
        ("grok", "grok", "PostToolUseFailure", "running"),
        ("gemini", "gemini", "before_agent", "running"),
        ("grok", "grok", "Session", "none"),
        ("grok", "grok", "session_startx", "none"),
    ] {
        let payload = json!({"sessionId": "s", "session_id": "s", "cwd": "/tmp"});
        assert_eq!(statuses(name, program, &[(event, payload)]), [want], "{name} {event}");
    }
}

#[test]
fn other_words_for_a_harness_are_taken_and_never_stored() {
    for (word, program, id) in [
        ("kimi-code", "kimi", "kimi"),
        ("kimi-cli", "kimi", "kimi"),
        ("kiro-v3", "kiro-cli", "kiro"),
    ] {
        let world = World::new();
        let mut agent = world.harness(program);
        agent.hook(&[word, "Stop"], r#"{"session_id":"s","cwd":"/tmp"}"#).silent();
        assert_eq!(world.record()["harness_id"], id);
        let ran =
            world.agents(&["notify", "--harness", word, "--session", "n", "--status", "idle"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(world.record_of("n")["harness_id"], id);
    }
}

#[test]
fn a_kiro_session_without_an_id_is_known_by_its_process() {
    let world = World::new();
    let mut kiro = world.harness("kiro-cli-chat");
    for (event, status) in
        [("agentSpawn", "started"), ("userPromptSubmit", "running"), ("stop", "idle")]
    {
        kiro.hook(&["kiro", event], r#"{"cwd":"/tmp"}"#).silent();
        let record = world.record();
        assert_eq!(
            (&record["session_id"], &record["status"]),
            (&json!(format!("proc-{}", kiro.pid())), &json!(status))
        );
    }
    // Others need one.
    let mut claude = world.harness("claude");
    claude.hook(&["claude", "Stop"], r#"{"cwd":"/tmp"}"#).silent();
    assert_eq!(world.record_files().len(), 1);
}

#[test]
fn a_permission_for_a_question_or_a_plan_is_no_other_wait() {
    for (tool, reason) in [("AskUserQuestion", "question"), ("ExitPlanMode", "plan")] {
        let world = World::new();
        let mut agent = world.harness("claude");
        let payload = json!({"session_id": "s", "cwd": "/tmp", "tool_name": tool}).to_string();
        agent.hook(&["claude", "PreToolUse"], &payload).silent();
        let before = world.record();
        agent.hook(&["claude", "PermissionRequest"], &payload).silent();
        let record = world.record();
        assert_eq!(record["waiting_for"], reason);
        for key in ["waiting_for", "waiting_since", "waiting_tool", "detail"] {
            assert_eq!(record[key], before[key], "{key}");
        }
    }
}

#[test]
fn a_pi_session_survives_a_reload_and_a_compaction_between_turns() {
    let says = |event: &str, reason: &str| json!({"event": {"type": event, "reason": reason}, "ctx": {"sessionId": "p", "cwd": "/tmp"}});
    let got = statuses(
        "pi",
        "pi",
        &[
            ("before_agent_start", says("before_agent_start", "")),
            ("session_before_compact", says("session_before_compact", "threshold")),
            ("agent_settled", says("agent_settled", "")),
            ("session_before_compact", says("session_before_compact", "manual")),
            ("session_compact", says("session_compact", "manual")),
            ("session_shutdown", says("session_shutdown", "reload")),
            ("session_start", says("session_start", "reload")),
            ("session_shutdown", says("session_shutdown", "quit")),
        ],
    );
    assert_eq!(got, ["running", "running", "idle", "idle", "idle", "idle", "idle", "ended"]);
}

#[test]
fn what_opencode_s_subagents_ask_is_asked_in_their_parent_s_session() {
    let world = World::new();
    let mut agent = world.harness("opencode");
    let mut tell = |event: &str, id: &str, parent: Option<&str>, want: [&str; 2]| {
        let payload = json!({"properties": {"sessionID": id}, "parentID": parent});
        agent.hook(&["opencode", event], &payload.to_string()).silent();
        let record = world.record();
        let waits = record["waiting_agent"].as_str().unwrap_or("");
        assert_eq!([record["status"].as_str().unwrap(), waits], want, "{event} {id}");
        assert_eq!(record["session_id"], "s", "{event} {id}");
    };
    tell("session.created", "s", None, ["started", ""]);
    tell("permission.asked", "a", Some("s"), ["waiting", "a"]);
    tell("permission.asked", "b", Some("s"), ["waiting", "b"]);
    tell("permission.replied", "a", Some("s"), ["waiting", "b"]);
    tell("permission.replied", "s", None, ["waiting", "b"]);
    tell("session.idle", "b", Some("s"), ["waiting", "b"]);
    tell("permission.replied", "b", Some("s"), ["running", ""]);
    tell("question.asked", "a", Some("s"), ["waiting", "a"]);
    tell("question.rejected", "a", Some("s"), ["running", ""]);
    tell("session.deleted", "a", Some("s"), ["running", ""]);
    tell("session.idle", "s", None, ["idle", ""]);
}
