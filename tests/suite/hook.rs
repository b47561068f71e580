//! The hook from outside, as a harness runs it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::world::{World, claude, finish, has_tool};

const START: &str =
    r#"{"session_id":"s1","cwd":"/tmp","hook_event_name":"SessionStart","source":"startup"}"#;

fn prompt(session: &str) -> String {
    claude(
        session,
        r#","hook_event_name":"UserPromptSubmit","prompt_id":"p1","prompt":"secret words""#,
    )
}

#[test]
fn a_start_writes_one_complete_private_record() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], START).silent();
    let record = world.record();
    let pid = agent.pid().to_string();
    for (key, want) in [
        ("schema_version", json!(1)),
        ("record_kind", json!("session")),
        ("session_id", json!("s1")),
        ("harness_id", json!("claude")),
        ("agent", json!("claude")),
        ("repo", json!("tmp")),
        ("cwd", json!("/tmp")),
        ("pid", json!(pid)),
        ("process_identity", json!("identified")),
        ("status", json!("started")),
        ("detail", json!("session started")),
        ("tool", json!("")),
        ("source", json!("hook")),
        ("last_event", json!("claude.session-start")),
        ("terminal", json!("generic")),
        ("arrival_sequence", json!(1)),
        ("turn", json!(0)),
        ("method", json!("hook-stdin")),
    ] {
        assert_eq!(record[key], want, "{key}");
    }
    let start = record["process_start"].as_str().unwrap();
    assert_eq!(record["instance_id"], format!("{pid}:{start}"));
    assert_eq!(record["ts"].as_u64().unwrap(), record["ts_ms"].as_u64().unwrap() / 1000);
    assert_eq!(record["started"], record["ts"]);
    for dir in [world.state(), world.sessions()] {
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o7777, 0o700);
    }
    for name in world.files() {
        assert_eq!(
            fs::metadata(world.sessions().join(&name)).unwrap().permissions().mode() & 0o7777,
            0o600,
            "{name}"
        );
    }
}

#[test]
fn prompts_tool_inputs_and_addresses_are_never_stored() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &prompt("s")).silent();
    let tool = claude(
        "s",
        r#","tool_name":"Bash","tool_input":{"command":"secret words"},"tool_response":"secret words","user_email":"secret words""#,
    );
    agent.hook(&["claude", "PreToolUse"], &tool).silent();
    agent.hook(&["claude", "PostToolUse"], &tool).silent();
    for file in world.record_files() {
        assert!(!fs::read_to_string(file).unwrap().contains("secret"));
    }
}

#[test]
fn the_last_message_is_cut_to_120_characters_on_one_line_or_left_out_on_request() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let long = format!("é\\n{}", "x".repeat(5000));
    let stop = claude("s", &format!(r#","last_assistant_message":"{long}""#));
    agent.hook(&["claude", "Stop"], &stop).silent();
    assert_eq!(world.record()["detail"], format!("é {}...", "x".repeat(118)));
    agent.hook_with("env TONGS_AGENTS_DETAIL=none", &["claude", "Stop"], &stop).silent();
    assert_eq!(world.record()["detail"], "finished");
    agent.hook(&["claude", "Stop"], &claude("s", r#","last_assistant_message":null"#)).silent();
    assert_eq!(
        (&world.record()["detail"], &world.record()["status"]),
        (&json!("finished"), &json!("idle"))
    );
}

#[test]
fn a_session_that_ran_before_the_hooks_appears_at_its_next_sign_of_life() {
    for (event, more, want) in [
        ("PostToolUse", r#","tool_name":"Bash""#, "running"),
        ("PreToolUse", r#","tool_name":"Bash""#, "running"),
        ("Stop", "", "idle"),
        ("PermissionRequest", r#","tool_name":"Bash""#, "waiting"),
        ("MessageDisplay", "", "running"),
    ] {
        let world = World::new();
        world.harness("claude").hook(&["claude", event], &claude("s", more)).silent();
        assert_eq!(world.record()["status"], want, "{event}");
    }
    let world = World::new();
    let report = world.harness("claude").strict(&["claude", "SessionEnd"], &claude("s", ""));
    assert_eq!((&report["outcome"], &report["reason"]), (&json!("ignored"), &json!("no-record")));
    assert!(world.record_files().is_empty());
}

#[test]
fn a_new_session_of_the_same_process_ends_the_older_one() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], START).silent();
    agent.hook(&["claude", "PermissionRequest"], &claude("s1", r#","tool_name":"Bash""#)).silent();
    agent.hook(&["claude", "SessionStart"], &claude("s2", r#","source":"clear""#)).silent();
    let status = |id: &str| -> Value {
        let all = world.sessions_json();
        all.iter().find(|s| s["session_id"] == id).unwrap()["status"].clone()
    };
    assert_eq!((status("s1"), status("s2")), (json!("ended"), json!("started")));
    let old = world.sessions_json().into_iter().find(|s| s["session_id"] == "s1").unwrap();
    assert!(old.get("waiting_for").is_none() && old["needs_attention"] == false, "{old}");
    // Taken up again, the first one lives and the second is over.
    agent.hook(&["claude", "SessionStart"], &claude("s1", r#","source":"resume""#)).silent();
    assert_eq!((status("s1"), status("s2")), (json!("started"), json!("ended")));
    // Another process's sessions are its own.
    world.harness("claude").hook(&["claude", "SessionStart"], &claude("s3", "")).silent();
    assert_eq!(status("s1"), json!("started"));
    // A subagent never supersedes.
    agent.hook(&["claude", "SubagentStart"], &claude("s4", r#","agent_id":"a""#)).silent();
    assert_eq!(status("s1"), json!("started"));
}

#[test]
fn a_nested_agent_has_its_own_record_and_the_nearest_process_is_the_caller() {
    let world = World::new();
    let mut outer = world.harness("codex");
    outer.hook(&["codex", "SessionStart"], &claude("outer", "")).silent();
    world.stub("claude");
    let payload = world.path("inner.json");
    fs::write(&payload, claude("inner", "")).unwrap();
    // The hook file is Claude's; the process that runs it is Claude, inside Codex.
    let line = format!(
        "claude --norc -c \"sh -c 'tongs-hook claude SessionStart <{}; :'; :\"",
        payload.display()
    );
    outer.shell(&line).silent();
    // Codex itself runs Claude's hook file: the event is Codex's.
    outer.hook(&["claude", "UserPromptSubmit"], &claude("outer", "")).silent();
    let all = world.sessions_json();
    let of = |id: &str| all.iter().find(|s| s["session_id"] == id).unwrap();
    assert_eq!(
        (&of("inner")["harness_id"], &of("outer")["harness_id"]),
        (&json!("claude"), &json!("codex"))
    );
    assert_ne!(of("inner")["pid"], of("outer")["pid"]);
    assert_eq!(of("outer")["status"], "running");
    assert_eq!(all.len(), 2);
}

#[test]
fn a_payload_that_only_one_harness_sends_names_the_caller() {
    let world = World::new();
    let payload = r#"{"event":{"type":"session_start","reason":"startup"},"ctx":{"sessionId":"p1","cwd":"/tmp"}}"#;
    world.run("tongs-hook", &["claude", "session_start"], payload.as_bytes()).silent();
    let record = world.record();
    assert_eq!((&record["harness_id"], &record["session_id"]), (&json!("pi"), &json!("p1")));
    assert_eq!((&record["instance_id"], &record["pid"]), (&json!("unresolved"), &json!("")));
}

#[test]
fn an_unresolved_record_goes_when_the_process_is_found() {
    let world = World::new();
    world.run("tongs-hook", &["claude", "SessionStart"], START.as_bytes()).silent();
    assert_eq!(world.record()["process_identity"], "unresolved");
    world.harness("claude").hook(&["claude", "UserPromptSubmit"], &prompt("s1")).silent();
    assert_eq!(world.record()["process_identity"], "identified");
}

#[test]
fn helpers_and_servers_of_a_harness_hold_no_session() {
    let world = World::new();
    world.stub("claude");
    let payload = world.path("p.json");
    fs::write(&payload, START).unwrap();
    // A helper between the hook and the agent is passed over.
    fs::write(
        world.path("project/daemon"),
        format!("sh -c \"tongs-hook claude SessionStart <'{}'; :\"; :", payload.display()),
    )
    .unwrap();
    let mut agent = world.harness("claude");
    agent.shell("claude daemon").silent();
    assert_eq!(world.record()["pid"], agent.pid().to_string());
}

#[test]
fn an_interpreter_that_runs_the_harness_is_the_harness() {
    let world = World::new();
    let node = world.stub("node");
    let script = world.path("lib/node_modules/@anthropic-ai/claude-code/cli.js");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, "cat | tongs-hook claude SessionStart; :").unwrap();
    let mut command = Command::new(&node);
    world.bare(&mut command);
    command.arg(&script);
    finish(command, START.as_bytes()).silent();
    assert_eq!(world.record()["process_identity"], "identified");
}

#[test]
fn the_terminal_is_captured_at_the_start_and_kept() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let tmux = "env TMUX=/tmp/tmux-0/default,1,2 TMUX_PANE=%7";
    agent.hook_with(tmux, &["claude", "SessionStart"], START).silent();
    agent.hook(&["claude", "UserPromptSubmit"], &prompt("s1")).silent();
    let record = world.record();
    assert_eq!(record["terminal"], "tmux");
    assert_eq!(
        record["terminal_env"],
        json!({"TMUX": "/tmp/tmux-0/default,1,2", "TMUX_PANE": "%7"})
    );
    assert_eq!(record["focus_target"]["kind"], "terminal");
    assert_eq!(record["focus_target"]["terminal_env"], record["terminal_env"]);
    let panes = |pane: &str| world.agents(&["status", "--pane", pane, "-o", "session_id"]).out;
    assert_eq!((panes("%7"), panes("%8")), ("s1\n".into(), String::new()));
    // A new start looks again.
    agent.hook(&["claude", "SessionStart"], START).silent();
    assert_eq!(world.record()["terminal"], "generic");
}

#[test]
fn an_oversized_or_hostile_variable_costs_nothing_but_itself() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let before = format!(
        "env TMUX={} TMUX_PANE=%1 TONGS_AGENTS_LAUNCH_ID={}",
        "x".repeat(5000),
        "l".repeat(5000)
    );
    agent.hook_with(&before, &["claude", "SessionStart"], START).silent();
    let record = world.record();
    assert_eq!(
        (&record["terminal"], &record["terminal_env"]["TMUX"]),
        (&json!("tmux"), &json!(""))
    );
    assert_eq!(record["launch_id"].as_str().unwrap().len(), 512);
}

#[test]
fn ids_of_the_launcher_are_kept_from_the_environment() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let before = "env TONGS_AGENTS_LAUNCH_ID=L1 TONGS_AGENTS_PROFILE_ID=P1 AGENT_TERMINAL_ID=T1";
    agent.hook_with(before, &["claude", "SessionStart"], START).silent();
    agent.hook(&["claude", "UserPromptSubmit"], &prompt("s1")).silent();
    let record = world.record();
    assert_eq!(
        (&record["launch_id"], &record["profile_id"], &record["terminal_id"]),
        (&json!("L1"), &json!("P1"), &json!("T1"))
    );
}

fn git_repo(world: &World, name: &str, head: &str) -> String {
    let top = world.path(name);
    fs::create_dir_all(top.join(".git")).unwrap();
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::write(top.join(".git/HEAD"), head).unwrap();
    top.to_str().unwrap().to_string()
}

fn start_in(world: &World, cwd: &str) -> Value {
    let mut agent = world.harness("claude");
    let payload = format!(r#"{{"session_id":"{cwd}","cwd":"{cwd}"}}"#);
    agent.hook(&["claude", "SessionStart"], &payload).silent();
    let all = world.sessions_json();
    all.into_iter().find(|s| s["session_id"] == cwd).unwrap()
}

#[test]
fn the_branch_is_read_as_data_and_never_through_a_link_or_a_gitdir() {
    let world = World::new();
    let top = git_repo(&world, "repo", "ref: refs/heads/feature/é\n");
    for cwd in [top.clone(), format!("{top}/a/b")] {
        let session = start_in(&world, &cwd);
        assert_eq!(
            (&session["branch"], &session["worktree"]),
            (&json!("feature/é"), &json!(top)),
            "{cwd}"
        );
    }
    let detached = git_repo(&world, "detached", "0123456789abcdef0123456789abcdef01234567\n");
    assert_eq!(start_in(&world, &detached)["branch"], "0123456789ab");
    // A linked worktree's .git is a file that points elsewhere: the top is
    // known, nothing outside is read.
    let linked = world.path("linked");
    fs::create_dir(&linked).unwrap();
    fs::write(linked.join(".git"), format!("gitdir: {top}/.git\n")).unwrap();
    let session = start_in(&world, linked.to_str().unwrap());
    assert_eq!(
        (session.get("branch"), &session["worktree"]),
        (None, &json!(linked.to_str().unwrap()))
    );
    for (name, make) in [
        (
            "link-dir",
            Box::new(|d: &std::path::Path| {
                symlink(world.path("repo/.git"), d.join(".git")).unwrap()
            }) as Box<dyn Fn(&std::path::Path)>,
        ),
        (
            "link-head",
            Box::new(|d: &std::path::Path| {
                fs::create_dir(d.join(".git")).unwrap();
                symlink(world.path("repo/.git/HEAD"), d.join(".git/HEAD")).unwrap();
            }),
        ),
        (
            "fifo-head",
            Box::new(|d: &std::path::Path| {
                fs::create_dir(d.join(".git")).unwrap();
                assert!(
                    Command::new("mkfifo").arg(d.join(".git/HEAD")).status().unwrap().success()
                );
            }),
        ),
        (
            "no-text",
            Box::new(|d: &std::path::Path| {
                fs::create_dir(d.join(".git")).unwrap();
                fs::write(d.join(".git/HEAD"), b"\xff\xfe\x00ref: refs/heads/x\n").unwrap();
            }),
        ),
    ] {
        let dir = world.path(name);
        fs::create_dir(&dir).unwrap();
        make(&dir);
        let session = start_in(&world, dir.to_str().unwrap());
        assert_eq!(
            (session.get("branch"), &session["status"]),
            (None, &json!("started")),
            "{name}"
        );
    }
}

#[test]
fn the_branch_is_looked_at_again_when_the_directory_changes() {
    let world = World::new();
    let (one, two) = (
        git_repo(&world, "one", "ref: refs/heads/one\n"),
        git_repo(&world, "two", "ref: refs/heads/two\n"),
    );
    let mut agent = world.harness("claude");
    let payload = |cwd: &str| format!(r#"{{"session_id":"s","cwd":"{cwd}","tool_name":"Bash"}}"#);
    agent.hook_with("env TMUX=/s,1,2", &["claude", "SessionStart"], &payload(&one)).silent();
    assert_eq!(world.record()["branch"], "one");
    fs::write(world.path("one/.git/HEAD"), "ref: refs/heads/moved\n").unwrap();
    agent.hook(&["claude", "PostToolUse"], &payload(&one)).silent();
    assert_eq!(world.record()["branch"], "one", "not read at every event");
    agent.hook(&["claude", "CwdChanged"], &payload(&two)).silent();
    let record = world.record();
    assert_eq!(
        (&record["branch"], &record["repo"], &record["terminal"]),
        (&json!("two"), &json!("two"), &json!("tmux"))
    );
}

#[test]
fn a_late_event_of_an_older_turn_changes_nothing() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let of = |id: &str| claude("s", &format!(r#","prompt_id":"{id}","tool_name":"Bash""#));
    agent.hook(&["claude", "UserPromptSubmit"], &of("p1")).silent();
    agent.hook(&["claude", "Stop"], &of("p1")).silent();
    agent.hook(&["claude", "UserPromptSubmit"], &of("p2")).silent();
    let before = world.record();
    assert_eq!(
        (&before["turn"], &before["turn_id"], &before["prev_turn_id"]),
        (&json!(2), &json!("p2"), &json!("p1"))
    );
    let report = agent.strict(&["claude", "Stop"], &of("p1"));
    assert_eq!((&report["outcome"], &report["reason"]), (&json!("ignored"), &json!("late")));
    assert_eq!(world.record(), before);
}

#[test]
fn the_hook_does_nothing_where_it_is_told_to() {
    let world = World::new();
    world
        .harness("claude")
        .hook_with("env TONGS_AGENTS_IGNORE=1", &["claude", "SessionStart"], START)
        .silent();
    assert!(!world.state().exists());
}

#[test]
fn without_a_harness_on_the_command_line_the_hint_names_it() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let hint = "env AGENT_HINT=claude";
    agent.hook_with(hint, &[], START).silent();
    assert_eq!(
        (&world.record()["status"], &world.record()["method"]),
        (&json!("started"), &json!("hook-stdin"))
    );
    // The argument is the nearer word.
    world.stub("codex");
    let mut codex = world.harness("codex");
    codex.hook_with(hint, &["codex", "SessionStart"], &claude("c", "")).silent();
    assert_eq!(world.record_of("c")["harness_id"], "codex");
    let ran = agent.hook_with(hint, &["--strict"], &prompt("s1"));
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &json!("running")));
    // A harness that demands an answer gets it.
    let ran = agent.hook_with("env AGENT_HINT=antigravity", &[], "{}");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "{}", ""));
    // Without either, or with a word that is no harness, nothing is written.
    let before = world.files();
    for hint in ["", "env AGENT_HINT=", "env AGENT_HINT=nobody", "env AGENT_HINT=../x"] {
        agent.hook_with(hint, &[], START).silent();
        let ran = agent.hook_with(hint, &["--strict"], START);
        assert_eq!((ran.code, &ran.json()["reason"]), (Some(64), &json!("harness-unknown")));
    }
    assert_eq!(world.files(), before);
}

#[test]
fn groks_variables_give_the_session_where_the_payload_does_not() {
    let world = World::new();
    let mut grok = world.harness("grok");
    let env = "env GROK_HOOK_EVENT=session_start GROK_SESSION_ID=g1 GROK_WORKSPACE_ROOT=/x/y";
    grok.hook_with(env, &["grok"], "{}").silent();
    let record = world.record_of("g1");
    assert_eq!(
        (&record["method"], &record["cwd"], &record["harness_id"]),
        (&json!("hook-env"), &json!("/x/y"), &json!("grok"))
    );
    // The hint is for the harness alone.
    grok.hook_with(&format!("{env} AGENT_HINT=grok"), &[], "").silent();
    assert_eq!(world.record_of("g1")["method"], "hook-env");
    let payload = r#"{"sessionId":"g2","cwd":"/x","hookEventName":"session_start"}"#;
    grok.hook_with(env, &["grok"], payload).silent();
    assert_eq!(world.record_of("g2")["method"], "hook-stdin");
}

/// What an unfriendly harness may send. All of it is silent and exit 0.
#[test]
fn bad_payloads_and_command_lines_are_dropped_in_silence_with_the_old_record_intact() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &prompt("s")).silent();
    let before = fs::read(&world.record_files()[0]).unwrap();
    let id = |json: &str| format!(r#"{{"session_id":{json},"cwd":"/tmp"}}"#);
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let bad = [
        String::new(),
        " \n".into(),
        "null".into(),
        "[]".into(),
        "{".into(),
        "{\"session_id\":\"s\"".into(),
        "{\"session_id\":\"s\",}".into(),
        "not json".into(),
        id("\"\""),
        id("null"),
        id("5"),
        id("[\"s\"]"),
        id("{}"),
        id("\"\\u0000\""),
        id("\"\\ud800\""),
        id(&format!("\"{}\"", "x".repeat(513))),
        id(&format!("\"{}\"", "x".repeat(10_000))),
        r#"{"session_id":"s","session_id":"t","cwd":"/tmp"}"#.into(),
        r#"{"session_id":"s","\u0073ession_id":"t","cwd":"/tmp"}"#.into(),
        "\u{feff}{}".into(),
        nested,
    ];
    for payload in &bad {
        agent.hook(&["claude", "Stop"], payload).silent();
        assert_eq!(fs::read(&world.record_files()[0]).unwrap(), before, "{:.80}", payload);
        assert_eq!(world.record_files().len(), 1, "{:.80}", payload);
    }
    let binary = world.run(
        "tongs-hook",
        &["claude", "Stop"],
        b"{\"session_id\":\"\xff\xfe\",\"cwd\":\"/tmp\"}",
    );
    binary.silent();
    for args in [
        &["claude"][..],
        &[],
        &["nobody", "Stop"],
        &["claude", "WorktreeCreate"],
        &["claude", "../x"],
        &["", ""],
    ] {
        agent.hook(args, &claude("s", "")).silent();
    }
    assert_eq!(world.record_files().len(), 1);
    // What was dropped has left codes and lengths, and no word of a payload.
    let log = fs::read_to_string(world.state().join("hook-faults.log")).unwrap();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 5, "{line}");
        assert!(words[0].parse::<u64>().is_ok() && words[4].parse::<u64>().is_ok(), "{line}");
    }
    for code in [
        "payload-empty",
        "payload-short",
        "payload-malformed",
        "payload-duplicate-key",
        "session-id",
        "harness-unknown",
    ] {
        assert!(log.contains(code), "{code} is missing in {log}");
    }
}

#[test]
fn ids_that_look_like_paths_are_only_hashed() {
    let world = World::new();
    let mut agent = world.harness("claude");
    for id in
        ["..", "/etc/passwd", "../../x", ".lock", "a/b", "x\\u0001y", "\\u202e", "Ä", "A\\u0308"]
    {
        agent.hook(&["claude", "UserPromptSubmit"], &claude(id, "")).silent();
    }
    for name in world.files() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
        assert!(name.chars().all(plain) && name.len() <= 96, "{name}");
    }
    assert_eq!(world.record_files().len(), 9);
}

#[test]
fn a_payload_is_read_to_the_end_of_its_value_and_no_end_of_input_is_needed() {
    let world = World::new();
    let mut agent = world.harness("claude");
    // The writing end stays open: `sleep` holds it until the harness is ended.
    let line = format!(
        "{{ printf '%s' '{START}'; sleep 30; }} | {{ tongs-hook claude SessionStart; echo ended; kill 0; }}"
    );
    let began = Instant::now();
    let mut command = Command::new("sh");
    world.bare(&mut command);
    command.args(["-c", &line]).process_group(0);
    let ran = finish(command, b"");
    assert_eq!(ran.out, "ended\n");
    assert!(began.elapsed().as_secs() < 20, "it did not wait for the sleeper");
    assert_eq!(world.record()["status"], "started");
    agent.hook(&["claude", "Stop"], &claude("s1", "")).silent();
}

#[test]
fn a_stdin_that_never_speaks_costs_one_second_and_nothing_else() {
    let world = World::new();
    let mut command = world.command("tongs-hook");
    command
        .args(["claude", "Stop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    drop(input);
}

#[test]
fn a_writer_of_a_large_payload_meets_no_broken_pipe() {
    let world = World::new();
    let mut command = world.command("tongs-hook");
    command
        .args(["claude", "PostToolUse"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let big =
        claude("s", &format!(r#","tool_response":{{"out":"{}"}}"#, "y\\\"{[".repeat(1 << 20)));
    input.write_all(big.as_bytes()).unwrap();
    // The newline that comes late.
    input.write_all(b"\n").unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(world.record()["status"], "running");
}

#[test]
fn an_endless_payload_is_dropped() {
    let world = World::new();
    let mut command = Command::new("sh");
    world.bare(&mut command);
    command.args(["-c", "{ printf '{\"session_id\":\"s\",\"x\":\"'; cat /dev/zero | tr '\\0' a; } | tongs-hook claude Stop; echo $?"]);
    let ran = finish(command, b"");
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0\n", ""));
    assert!(world.record_files().is_empty());
}

#[test]
fn the_payload_may_be_the_last_argument() {
    let world = World::new();
    let mut agent = world.harness("codex");
    let json = r#"{"type":"agent-turn-complete","thread-id":"t1","turn-id":"1","cwd":"/tmp","last-assistant-message":"Done."}"#;
    for args in [vec!["codex", "notify", json], vec!["codex", json]] {
        let words: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
        agent.shell(&format!("tongs-hook {} </dev/null", words.join(" "))).silent();
        let record = world.record();
        assert_eq!(
            (&record["status"], &record["detail"], &record["method"]),
            (&json!("idle"), &json!("Done."), &json!("hook-argv"))
        );
    }
}

#[test]
fn strict_says_what_became_of_an_event_and_exits_with_it() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let mut strict = |args: &[&str], payload: &str| {
        let ran = agent.hook(&[&["--strict"], args].concat(), payload);
        let report = ran.json();
        (
            ran.code.unwrap(),
            report["outcome"].as_str().unwrap().to_string(),
            report["reason"].as_str().unwrap().to_string(),
        )
    };
    let is = |code, outcome: &str, reason: &str| (code, outcome.to_string(), reason.to_string());
    assert_eq!(strict(&["claude", "SessionStart"], START), is(0, "written", ""));
    assert_eq!(strict(&["claude", "session-start"], START), is(0, "written", ""));
    assert_eq!(
        strict(&["claude", "PreToolUse"], &claude("s1", r#","agent_id":"x","tool_name":"Bash""#)),
        is(0, "ignored", "subagent")
    );
    assert_eq!(strict(&["nobody", "Stop"], START), is(64, "dropped", "harness-unknown"));
    assert_eq!(strict(&["claude", "Nothing"], START), is(64, "dropped", "event-unknown"));
    assert_eq!(strict(&["claude", "Stop"], "{"), is(65, "dropped", "payload-short"));
    assert_eq!(strict(&["claude", "Stop"], "{}"), is(65, "dropped", "session-id"));
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(strict(&["claude", "Stop"], START), is(77, "dropped", "store-unsafe"));
}

#[test]
fn a_normalised_event_says_its_status_and_its_order() {
    let world = World::new();
    let mut agent = world.harness("pi");
    let pid = agent.pid();
    let event = |sequence: u64, status: &str| {
        format!(
            r#"{{"schema_version":1,"event_id":"pi.x","status":"{status}","session_id":"s","instance_id":"i","cwd":"/tmp","pid":{pid},"sequence":{sequence},"detail":"d","ts":1700000000}}"#
        )
    };
    agent.hook(&["pi", "fleet-event"], &event(5, "running")).silent();
    let record = world.record();
    for (key, want) in [
        ("instance_id", json!("i")),
        ("sequence", json!(5)),
        ("ts", json!(1_700_000_000)),
        ("last_event", json!("pi.x")),
        ("detail", json!("d")),
        ("status", json!("running")),
    ] {
        assert_eq!(record[key], want, "{key}");
    }
    assert_eq!(agent.strict(&["pi", "fleet-event"], &event(5, "idle"))["reason"], "sequence");
    assert_eq!(agent.strict(&["pi", "fleet-event"], &event(4, "idle"))["reason"], "sequence");
    assert_eq!(world.record(), record);
    assert_eq!(agent.strict(&["pi", "fleet-event"], &event(6, "waiting"))["status"], "waiting");
    for bad in [
        event(7, "discovered"),
        event(7, "x"),
        event(7, "idle").replace("pi.x", "claude.x"),
        event(7, "idle").replace(":1,", ":2,"),
        event(7, "idle").replace(&format!("\"pid\":{pid}"), "\"pid\":\"1\""),
    ] {
        assert_eq!(agent.strict(&["pi", "fleet-event"], &bad)["reason"], "field", "{bad}");
    }
    let dead = event(7, "idle").replace(&format!("\"pid\":{pid}"), "\"pid\":4194304");
    assert_eq!(agent.strict(&["pi", "fleet-event"], &dead)["reason"], "process");
}

/// Descriptors, limits and homes that are not as they should be.
#[test]
fn a_bad_environment_is_survived_in_silence() {
    let world = World::new();
    let file = world.path("p.json");
    fs::write(&file, START).unwrap();
    let file = file.display();
    let mut cases: Vec<(String, bool)> = [
        ("HOME= tongs-hook claude SessionStart <F", false),
        ("HOME=relative tongs-hook claude SessionStart <F", false),
        ("HOME=/nonexistent/x tongs-hook claude SessionStart <F", false),
        ("tongs-hook claude SessionStart <F >&- 2>&-", true),
        ("tongs-hook claude SessionStart <&- >&- 2>&-", false),
        ("tongs-hook claude SessionStart <F >/dev/full 2>/dev/full", true),
        ("umask 0777; tongs-hook claude SessionStart <F", true),
        ("ulimit -f 0; tongs-hook claude SessionStart <F", false),
        ("ulimit -n 10; tongs-hook claude SessionStart <F", true),
        ("ulimit -n 4; tongs-hook claude SessionStart <F", false),
        ("ulimit -s 64; tongs-hook claude SessionStart <F", true),
        ("ulimit -c 0; ulimit -u 1; exec tongs-hook claude SessionStart <F", true),
        ("TONGS_AGENTS_STATE_DIR=relative tongs-hook claude SessionStart <F", true),
        ("TONGS_AGENTS_STATE_DIR=/proc/x tongs-hook claude SessionStart <F", false),
        ("cd /; tongs-hook claude SessionStart <F", true),
    ]
    .map(|(line, written)| (line.replace("<F", &format!("<'{file}'")), written))
    .to_vec();
    cases.push((
        format!("mkdir gone && cd gone && rmdir ../gone; tongs-hook claude SessionStart <'{file}'"),
        true,
    ));
    for (line, written) in cases {
        let _ = fs::remove_dir_all(world.path("home/.local"));
        // An exit status of its own: the shell's is that of the hook.
        let mut command = Command::new("bash");
        world.bare(&mut command);
        command.args(["-c", &format!("{line}\nexit $?")]);
        let ran = finish(command, b"");
        ran.silent();
        assert_eq!(world.record_files().len(), usize::from(written), "{line}");
        assert!(!world.files().iter().any(|f| f.contains("tmp")), "{line}: {:?}", world.files());
    }
}

#[test]
fn signals_end_it_with_status_0() {
    for signal in ["HUP", "INT", "QUIT", "ABRT", "SEGV", "USR1", "TERM", "XCPU", "ALRM", "PIPE"] {
        let world = World::new();
        let mut command = world.command("tongs-hook");
        command
            .args(["claude", "Stop"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Blocked signals are inherited; the hook must take them all the same.
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        // It stands in its read when its guard is up.
        let wchan = format!("/proc/{}/syscall", child.id());
        while !fs::read_to_string(&wchan).is_ok_and(|s| s.starts_with("0 0x0 ")) {
            std::thread::yield_now();
        }
        let kill = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status()
            .unwrap();
        assert!(kill.success());
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn it_starts_no_process_and_touches_no_other_process_than_its_ancestors() {
    if !has_tool("strace", "it_starts_no_process") {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    let trace = world.path("trace");
    let before = format!("strace -f -o '{}' ", trace.display());
    agent.hook_with(&before, &["claude", "SessionStart"], START).silent();
    let trace = fs::read_to_string(trace).unwrap();
    // The call behind the pid: what is read may hold any words.
    let call =
        |line: &str| line.split_once(' ').map_or("", |(_, call)| call.trim_start()).to_owned();
    for word in ["clone", "fork", "vfork", "execve(", "socket(", "connect("] {
        let allowed = usize::from(word == "execve(");
        let count = trace.lines().filter(|line| call(line).starts_with(word)).count();
        assert_eq!(count, allowed, "{word}\n{trace}");
    }
    assert!(!trace.contains("open(\"/proc\"") && !trace.contains("\"/proc\","), "{trace}");
    // Every descriptor that it opens would close in a child.
    for line in trace.lines().filter(|l| l.contains("open") && l.contains("O_")) {
        assert!(line.contains("O_CLOEXEC"), "{line}");
    }
}
