//! Finding the session behind a launch, a terminal, a process or an id, and the
//! processes below a process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::status::{assert_schema, put};
use crate::wait::Waiter;
use crate::world::{Harness, Ran, World, claude, finish, has_tool};

/// What `lookup --json` says, with its exit status.
fn lookup(world: &World, args: &[&str]) -> (Option<i32>, Value) {
    let ran = world.agents(&[&["lookup", "--json"], args].concat());
    assert_eq!(ran.err, "", "{args:?}");
    let value = ran.json();
    assert_schema(world, "lookup", &value);
    (ran.code, value)
}

/// The session ids that a lookup finds.
fn found(world: &World, args: &[&str]) -> Vec<String> {
    let (code, value) = lookup(world, args);
    let sessions = value["sessions"].as_array().unwrap();
    assert_eq!(code, Some(i32::from(sessions.is_empty())), "{args:?}");
    sessions.iter().map(|s| s["session_id"].as_str().unwrap().to_string()).collect()
}

/// Changes fields of the record of a session.
pub fn edit(world: &World, session: &str, changes: Value) {
    for file in world.record_files() {
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        if record["session_id"] == session {
            for (key, value) in changes.as_object().unwrap() {
                record[key] = value.clone();
            }
            fs::write(&file, record.to_string()).unwrap();
        }
    }
}

/// Starts a session of an agent with an environment.
fn start(agent: &mut Harness<'_>, env: &str, session: &str) {
    agent
        .hook_with(&format!("env {env}"), &["claude", "SessionStart"], &claude(session, ""))
        .silent();
}

/// A process that lives, with all that it starts, until it is dropped.
pub struct Running(pub Child);

impl Running {
    fn start(mut command: Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        Running(command.spawn().unwrap())
    }

    /// Runs a line in a shell of this name.
    pub fn shell(world: &World, shell: &str, line: &str) -> Running {
        let mut command = Command::new(shell);
        world.bare(&mut command);
        command.args(["-c", line]);
        Running::start(command)
    }

    /// Its pid.
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// The next line that it prints.
    pub fn says(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Installs the hooks of Claude Code and puts the command that was registered for
/// the start of a session into a file.
fn registered(world: &World) -> PathBuf {
    assert_eq!(world.agents(&["install", "--agent", "claude"]).code, Some(0));
    let settings = fs::read(world.path("home/.claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    let command = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    let file = world.path("registered");
    fs::write(&file, command).unwrap();
    file
}

/// Starts a session by the command that was registered, as the harness runs it.
fn start_registered(world: &World, agent: &mut Harness<'_>, env: &str, payload: &str) {
    let (command, file) = (world.path("registered"), world.path("payload.json"));
    fs::write(&file, payload).unwrap();
    let line = format!("{env} sh -c \"$(cat '{}')\" <'{}'", command.display(), file.display());
    agent.shell(&line).silent();
}

#[test]
fn fifty_cold_spawns_are_all_seen() {
    let world = World::new();
    world.stub("claude");
    let command = registered(&world);
    let mut took = Vec::new();
    for i in 0..50 {
        let payload = world.path("payload.json");
        fs::write(&payload, claude(&format!("s{i}"), r#","source":"startup""#)).unwrap();
        // As in life: a terminal's shell, the agent, a shell of the hook's that
        // stays while the hook runs.
        let line = format!(
            "claude --norc --noprofile -c 'sh -c \"$(cat {})\" <{}; read line'; :",
            command.display(),
            payload.display()
        );
        let began = Instant::now();
        let shell = Running::shell(&world, "sh", &line);
        let seen = Waiter::start(&world, &["--tree", &shell.pid(), "--timeout", "60s"]).json();
        took.push(began.elapsed());
        assert_eq!(
            (&seen["session_id"], &seen["confidence"]),
            (&json!(format!("s{i}")), &json!("high"))
        );
        assert_eq!(seen["method"], "hook-stdin");
        let (_, value) = lookup(&world, &["--tree", &shell.pid()]);
        assert_eq!((&value["matched_by"], &value["matches"]), (&json!("tree"), &json!(1)));
        assert_eq!(value["sessions"][0]["session_id"], format!("s{i}"));
        // The agent's own pid, and neither shell's.
        let agent = value["sessions"][0]["pid"].as_str().unwrap();
        assert_eq!(fs::read_to_string(format!("/proc/{agent}/comm")).unwrap(), "claude\n");
    }
    took.sort();
    println!("cold spawn: {:?} at the median, {:?} at 95 percent", took[25], took[47]);
    assert!(took[47] < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_killed_agent_is_not_found_and_the_next_in_the_terminal_is() {
    let world = World::new();
    registered(&world);
    let mut before = String::new();
    for i in 0..20 {
        let waiter = Waiter::start(&world, &["--terminal-id", "T", "--timeout", "60s"]);
        let mut agent = world.harness("claude");
        let session = format!("s{i}");
        let payload = claude(&session, r#","source":"startup""#);
        start_registered(&world, &mut agent, "AGENT_TERMINAL_ID=T", &payload);
        assert_eq!(waiter.json()["session_id"], session.as_str());
        assert_eq!(found(&world, &["--terminal-id", "T", "--all"]), [session.as_str()]);
        let pid = agent.pid().to_string();
        agent.kill();
        // Its record is still there, and so is the one before.
        assert_eq!(world.record_of(&session)["status"], "started");
        let (code, value) = lookup(&world, &["--terminal-id", "T", "--tree", &pid, "--pid", &pid]);
        assert_eq!(
            (code, &value["matched_by"], &value["matches"]),
            (Some(1), &Value::Null, &json!(0))
        );
        let (_, value) = lookup(&world, &["--terminal-id", "T", "--include-dead", "--all"]);
        assert_eq!(value["sessions"][0]["session_id"], session.as_str());
        assert_eq!(value["liveness"][0], "dead");
        if !before.is_empty() {
            assert_eq!(value["sessions"][1]["session_id"], before.as_str());
        }
        before = session;
    }
}

#[test]
fn after_a_clear_only_the_new_session_is_found() {
    let world = World::new();
    registered(&world);
    let mut agent = world.harness("claude");
    let pid = agent.pid().to_string();
    start(&mut agent, "AGENT_LAUNCH_ID=L", "s0");
    for i in 1..=20 {
        let (old, new) = (format!("s{}", i - 1), format!("s{i}"));
        let before = world.record_of(&old);
        let payload = claude(&new, r#","source":"clear""#);
        start_registered(&world, &mut agent, "AGENT_LAUNCH_ID=L", &payload);
        let args = [["--pid", &pid], ["--tree", &pid], ["--launch-id", "L"]];
        for args in args {
            assert_eq!(found(&world, &[&args[..], &["--all"]].concat()), [new.as_str()]);
        }
        // The moment before the older one is ended: two records of one process.
        let ended = world.record_of(&old);
        edit(&world, &old, before);
        for args in args {
            assert_eq!(found(&world, &[&args[..], &["--all"]].concat()), [new.as_str()]);
        }
        assert_eq!(ended["status"], "ended");
        edit(&world, &old, ended);
        // One that ended comes after one that did not, however new it is.
        let all = found(&world, &["--pid", &pid, "--all", "--include-dead"]);
        assert_eq!(all[..2], [new.as_str(), old.as_str()]);
    }
}

#[test]
fn a_server_of_many_sessions_has_them_all() {
    let world = World::new();
    let server = Running::shell(&world, "sh", "read line");
    for session in ["a", "b"] {
        notify(&world, session, "running", Some(&server.pid()), "X=");
    }
    assert_eq!(found(&world, &["--pid", &server.pid()]), ["b"]);
    assert_eq!(found(&world, &["--pid", &server.pid(), "--all"]), ["b", "a"]);
    let (_, value) = lookup(&world, &["--pid", &server.pid()]);
    assert_eq!(value["matches"], 2);
}

/// Reports a session of a program that has no hook.
pub fn notify(world: &World, session: &str, status: &str, pid: Option<&str>, env: &str) {
    let mut command = world.command("tongs-agents");
    command.args(["notify", "--harness", "other", "--session", session, "--status", status]);
    if let Some(pid) = pid {
        command.args(["--pid", pid]);
    }
    let (name, value) = env.split_once('=').unwrap();
    command.env(name, value);
    finish(command, b"").silent();
}

#[test]
fn a_pid_that_is_used_again_is_nobodys() {
    let world = World::new();
    let mut agent = world.harness("claude");
    start(&mut agent, "AGENT_LAUNCH_ID=L", "s");
    let pid = agent.pid().to_string();
    assert_eq!(found(&world, &["--pid", &pid]), ["s"]);
    edit(&world, "s", json!({"process_start": "1"}));
    for args in [["--pid", &pid], ["--tree", &pid], ["--launch-id", "L"], ["--session", "s"]] {
        assert_eq!(found(&world, &args), [""; 0], "{args:?}");
    }
    assert_eq!(found(&world, &["--pid", &pid, "--include-dead"]), ["s"]);
    assert_eq!(found(&world, &["--tree", &pid, "--include-dead"]), [""; 0], "not of this process");
    let ran = world.agents(&["wait", "--json", "--pid", &pid, "--timeout", "0"]);
    assert_eq!((ran.code, &ran.json()["reason"]), (Some(1), &json!("timeout")));
    // Another boot's start means nothing either.
    let start = tongs::probe::Process::read(agent.pid()).unwrap().start.to_string();
    edit(&world, "s", json!({"process_start": start, "boot_id": "0"}));
    assert_eq!(found(&world, &["--pid", &pid]), [""; 0]);
}

#[test]
fn what_cannot_be_seen_counts_as_living_and_is_marked() {
    let world = World::new();
    let mut agent = world.harness("claude");
    start(&mut agent, "AGENT_LAUNCH_ID=L", "elsewhere");
    edit(&world, "elsewhere", json!({"pid_ns": "17"}));
    let pid = agent.pid().to_string();
    let (code, value) = lookup(&world, &["--launch-id", "L"]);
    assert_eq!((code, &value["liveness"]), (Some(0), &json!(["unknown"])));
    assert_eq!(value["sessions"][0]["unverified"], true);
    assert_eq!(found(&world, &["--pid", &pid]), [""; 0], "the number means another process");
    assert_eq!(found(&world, &["--tree", &pid]), [""; 0]);
    let ran = world.agents(&["lookup", "--launch-id", "L", "--format", "session-state"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "and is no pid for others");
    let ran = world.agents(&["wait", "--launch-id", "L", "--json"]).json();
    assert_eq!((&ran["session_id"], &ran["confidence"]), (&json!("elsewhere"), &json!("low")));

    // A session without a process, however new, comes after one that is seen.
    let mut other = world.harness("claude");
    start(&mut other, "AGENT_LAUNCH_ID=L", "here");
    notify(&world, "pidless", "running", None, "AGENT_LAUNCH_ID=L");
    assert_eq!(found(&world, &["--launch-id", "L", "--all"]), ["here", "pidless", "elsewhere"]);

    // Schema 0 has no starts, so that whatever has the pid proves nothing.
    let old = json!({"session_id": "old", "agent": "claude", "pid": pid, "ts": 5, "cwd": "/r"});
    put(&world, &old, true);
    let (_, value) = lookup(&world, &["--session", "old"]);
    assert_eq!(value["liveness"], json!(["unknown"]));
    let (_, value) = lookup(&world, &["--session", "here"]);
    assert_eq!(
        (&value["liveness"], &value["sessions"][0]["unverified"]),
        (&json!(["alive"]), &json!(false))
    );
}

#[test]
fn another_users_process_is_seen_by_its_name() {
    use std::os::unix::fs::chown;
    let test = "another_users_process";
    let root = fs::metadata("/proc/self").map(|m| std::os::unix::fs::MetadataExt::uid(&m));
    if root.ok() != Some(0) || !has_tool("setpriv", test) {
        eprintln!("skipped {test}: it takes root to be another user");
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    start(&mut agent, "X=", "s");
    // Everything is nobody's now but the agent, which nobody may not signal.
    let file = world.record_files()[0].clone();
    let mut paths = vec![file.clone()];
    paths.extend(file.ancestors().skip(1).take(6).map(std::path::Path::to_path_buf));
    for path in &paths {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    let mut command = Command::new("setpriv");
    world.bare(&mut command);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "tongs-agents"]);
    command.args(["lookup", "--json", "--pid", &agent.pid().to_string()]);
    let ran = finish(command, b"");
    let value = ran.json();
    assert_eq!((&value["matches"], &value["liveness"]), (&json!(1), &json!(["alive"])), "{ran:?}");
}

#[test]
fn of_nested_agents_the_outermost_has_the_launch() {
    let world = World::new();
    for stub in ["claude", "codex"] {
        world.stub(stub);
        fs::write(world.path(stub), claude(stub, "")).unwrap();
    }
    let hook = |name: &str| {
        format!("sh -c 'tongs-hook {name} SessionStart <{}; :'", world.path(name).display())
    };
    fs::write(world.path("inner.sh"), format!("{}; echo ready; read line", hook("codex"))).unwrap();
    let inner = format!("codex --norc --noprofile {}; :", world.path("inner.sh").display());
    fs::write(world.path("outer.sh"), format!("{}; {inner}", hook("claude"))).unwrap();
    let mut command = Command::new(world.path("bin/claude"));
    world.bare(&mut command);
    command.args(["--norc", "--noprofile"]).arg(world.path("outer.sh"));
    command.env("AGENT_LAUNCH_ID", "L").env("TONGS_AGENTS_TERMINAL_ID", "T");
    let mut outer = Running::start(command);
    assert_eq!(outer.says(), "ready");

    let (_, value) = lookup(&world, &["--launch-id", "L"]);
    assert_eq!((&value["matches"], value["sessions"].as_array().unwrap().len()), (&json!(2), 1));
    assert_eq!(value["sessions"][0]["session_id"], "claude");
    assert_eq!(value["sessions"][0]["pid"], outer.pid().as_str());
    assert_eq!(found(&world, &["--launch-id", "L", "--all"]), ["claude", "codex"]);
    // A terminal's is the newest, and so is that of a tree.
    assert_eq!(found(&world, &["--terminal-id", "T", "--all"]), ["codex", "claude"]);
    assert_eq!(found(&world, &["--tree", &outer.pid(), "--all"]), ["codex", "claude"]);
    assert_eq!(found(&world, &["--pid", &outer.pid()]), ["claude"]);
    // Two that are not nested: the newest.
    let mut later = world.harness("claude");
    start(&mut later, "TONGS_AGENTS_LAUNCH_ID=L AGENT_LAUNCH_ID=other", "later");
    assert_eq!(found(&world, &["--launch-id", "L", "--all"]), ["later", "claude", "codex"]);
    let gone = Waiter::start(&world, &["--launch-id", "L", "--until", "gone", "--timeout", "60s"]);
    later.kill();
    drop(outer);
    assert!(gone.json()["session_id"].is_string());
    assert_eq!(found(&world, &["--launch-id", "L"]), [""; 0]);
}

#[test]
fn a_step_of_the_wall_clock_does_not_change_which_is_newest() {
    let world = World::new();
    let (mut one, mut two) = (world.harness("claude"), world.harness("claude"));
    start(&mut one, "AGENT_TERMINAL_ID=T", "one");
    start(&mut two, "AGENT_TERMINAL_ID=T", "two");
    let ts = world.record_of("one")["ts"].as_u64().unwrap();
    edit(&world, "one", json!({"ts": ts + 200, "ts_ms": (ts + 200) * 1000}));
    assert_eq!(found(&world, &["--terminal-id", "T", "--all"]), ["two", "one"]);
}

#[test]
fn grok_that_runs_claudes_hook_is_never_claude() {
    let world = World::new();
    let mut grok = world.harness("grok");
    grok.hook_with(
        "env GROK_HOOK_EVENT=SessionStart GROK_SESSION_ID=g",
        &["claude", "SessionStart"],
        r#"{"hookEventName":"SessionStart","sessionId":"g","cwd":"/tmp"}"#,
    )
    .silent();
    let (_, value) = lookup(&world, &["--pid", &grok.pid().to_string()]);
    assert_eq!(value["matches"], 1);
    assert_eq!(value["sessions"][0]["harness_id"], "grok");
    assert_eq!(value["sessions"][0]["session_id"], "g");
}

#[test]
fn ways_are_tried_in_their_order_and_a_miss_goes_on() {
    let world = World::new();
    let mut agents: Vec<_> = (0..5).map(|_| world.harness("claude")).collect();
    let env = ["AGENT_LAUNCH_ID=L", "AGENT_TERMINAL_ID=T", "X=", "X=", "X="];
    for (i, agent) in agents.iter_mut().enumerate() {
        start(agent, env[i], &format!("s{i}"));
    }
    let (tree, pid) = (agents[2].pid().to_string(), agents[3].pid().to_string());
    let ways = [
        ("launch_id", ["--launch-id", "L"]),
        ("terminal_id", ["--terminal-id", "T"]),
        ("tree", ["--tree", &tree]),
        ("pid", ["--pid", &pid]),
        ("session", ["--session", "s4"]),
    ];
    for first in 0..5 {
        // The ways before miss; on the command line they stand the other way round.
        let args = ways.iter().enumerate().rev().flat_map(|(i, (_, [option, value]))| {
            let none = if i == 2 || i == 3 { "4194304" } else { "none" };
            [*option, if i < first { none } else { *value }]
        });
        let (_, value) = lookup(&world, &args.collect::<Vec<_>>());
        assert_eq!(value["matched_by"], ways[first].0);
        assert_eq!(value["sessions"][0]["session_id"], format!("s{first}"));
    }
}

#[test]
fn every_form_of_an_id_is_taken_and_several_are_listed() {
    let world = World::new();
    let (mut one, mut two) = (world.harness("claude"), world.harness("claude"));
    start(&mut one, "X=", "abc-1");
    start(&mut two, "X=", "abc-2");
    let record = world.record_of("abc-1");
    let canonical = record["canonical_id"].as_str().unwrap();
    let digest = canonical.rsplit(':').next().unwrap();
    for id in ["abc-1", canonical, &digest[..12], &digest[..16], &canonical[..40]] {
        assert_eq!(found(&world, &["--session", id]), ["abc-1"], "{id}");
    }
    let ran = world.agents(&["lookup", "--session", "abc", "--json"]);
    let value = ran.json();
    assert_eq!((ran.code, &value["matches"]), (Some(1), &json!(2)));
    assert_eq!(value["sessions"].as_array().unwrap().len(), 2);
    assert!(ran.err.starts_with("tongs-agents: several sessions match 'abc': fleet:v1:"));
    assert_eq!(found(&world, &["--session", "abc", "--all"]).len(), 2);
    // The dead one is not meant, and the whole id before the start of one.
    two.kill();
    assert_eq!(found(&world, &["--session", "abc"]), ["abc-1"]);
    let mut three = world.harness("claude");
    start(&mut three, "X=", "abc-11");
    assert_eq!(found(&world, &["--session", "abc-1"]), ["abc-1"]);
}

#[test]
fn people_get_a_line_and_session_tracker_its_own_form() {
    let world = World::new();
    let mut agent = world.harness("claude");
    start(&mut agent, "AGENT_LAUNCH_ID=L AGENT_TERMINAL_ID=T", r"s\u001b[31m\u202e\u00e9");
    let table = world.agents(&["lookup", "--launch-id", "L"]).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("STATUS") && lines[1].starts_with("started"), "{table}");
    let ran = world.agents(&["lookup", "--launch-id", "L", "--format", "session-state"]);
    let record = world.record();
    assert_eq!(
        ran.out,
        format!(
            "{{\"session_id\":\"s\\u001b[31m\\u202e\u{e9}\",\"agent\":\"claude\",\"cwd\":\"/tmp\",\"pid\":{},\
             \"terminal_id\":\"T\",\"launch_id\":\"L\",\"ts\":{},\"method\":\"hook-stdin\"}}\n",
            agent.pid(),
            record["ts_ms"]
        )
    );
    assert_schema(&world, "session-state", &ran.json());
    // What a session does not have is left out, not empty.
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("plain", "")).silent();
    let pid = agent.pid().to_string();
    let state = world.agents(&["lookup", "--pid", &pid, "--format=session-state", "--json"]).json();
    assert_eq!(state.as_object().unwrap().len(), 6);
    // A record of times in seconds.
    edit(&world, "plain", json!({"ts_ms": "x", "ts": 1_700_000_000, "method": ""}));
    let state = world.agents(&["lookup", "--pid", &pid, "--format", "session-state"]).json();
    assert_eq!(
        (&state["ts"], &state["method"]),
        (&json!(1_700_000_000_000u64), &json!("hook-stdin"))
    );
    // The id of an agent that no hook reported is made up.
    let quiet = world.harness("claude");
    world.agents(&["cleanup"]);
    let pid = quiet.pid().to_string();
    assert_eq!(found(&world, &["--pid", &pid]), [format!("proc-{pid}")]);
    let ran = world.agents(&["lookup", "--pid", &pid, "--format", "session-state"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let dead = {
        agent.kill();
        world.agents(&["lookup", "--session", "plain", "--include-dead"]).out
    };
    assert!(dead.contains("started (dead)"), "{dead}");
}

#[test]
fn a_store_that_is_not_there_or_not_usable_has_no_session() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let (code, value) = lookup(&world, &["--launch-id", "L"]);
    assert_eq!((code, &value["store"]), (Some(1), &json!("missing")));
    let ran = world.agents(&["lookup", "--launch-id", "L"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!(ran.err, "tongs-agents: no session matches\n");
    let own = std::process::id().to_string();
    let ran = world.agents(&["tree", &own, "--json"]);
    assert_eq!((ran.code, &ran.json()["store"]), (Some(0), &json!("missing")));
    assert!(!world.state().exists());
    notify(&world, "s", "running", None, "X=");
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o755)).unwrap();
    for args in [&["lookup", "--session", "s", "--json"][..], &["tree", &own, "--json"]] {
        let ran = world.agents(args);
        assert_eq!((ran.code, &ran.json()["store"]), (Some(1), &json!("unavailable")), "{args:?}");
        assert_schema(&world, args[0], &ran.json());
        assert!(ran.err.contains("its mode must be 0700"), "{}", ran.err);
    }
}

#[test]
fn wrong_command_lines_are_said_to_be() {
    let world = World::new();
    for args in [
        &["lookup"][..],
        &["lookup", "--launch-id", ""],
        &["lookup", "--terminal-id="],
        &["lookup", "--session", ""],
        &["lookup", "--pid", "x"],
        &["lookup", "--pid", "-1"],
        &["lookup", "--pid", "1", "--format", "xml"],
        &["lookup", "--pid", "1", "--max-depth", "2"],
        &["lookup", "--tree", "1", "--max-nodes", "0"],
        &["lookup", "--pid", "1", "--json-version", "2"],
        &["lookup", "s"],
        &["tree"],
        &["tree", "x"],
        &["tree", "1", "2"],
        &["tree", "1", "--max-nodes", "0"],
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
    for args in [&["tree", "4194305"][..], &["tree", "0"]] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{args:?}");
    }
}

/// What `tree --json` says.
fn tree(world: &World, args: &[&str]) -> Value {
    let ran = world.agents(&[&["tree", "--json"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    assert_schema(world, "tree", &ran.json());
    ran.json()
}

#[test]
fn a_tree_is_breadth_first_within_its_limits_and_names_its_sessions() {
    let world = World::new();
    let mut agent = world.harness("claude");
    start(&mut agent, "X=", "s");
    // Two children of a shell, one of which has one.
    let shell = Running::shell(&world, "bash", "sh -c 'sleep 1000; :' & sleep 1000 & wait");
    let pid = shell.pid();
    let value = loop {
        let value = tree(&world, &[&pid]);
        let nodes = value["descendants"].as_array().unwrap();
        let names: Vec<&Value> = nodes.iter().map(|node| &node["comm"]).collect();
        if names == ["sh", "sleep", "sleep"] {
            break value;
        }
        std::thread::yield_now();
    };
    let depths: Vec<u64> = value["descendants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["depth"].as_u64().unwrap())
        .collect();
    assert_eq!(depths, [1, 1, 2]);
    assert_eq!((&value["root"]["pid"], &value["root"]["depth"]), (&json!(shell.0.id()), &json!(0)));
    assert_eq!((&value["root"]["comm"], &value["truncated"]), (&json!("bash"), &json!(false)));
    for node in value["descendants"].as_array().unwrap() {
        let parent = if node["depth"] == 1 { &value["root"] } else { &value["descendants"][0] };
        assert_eq!(node["ppid"], parent["pid"]);
    }
    for (args, count, truncated) in [
        (["--max-depth", "0"], 0, true),
        (["--max-depth", "1"], 2, true),
        (["--max-depth", "2"], 3, false),
        (["--max-nodes", "1"], 0, true),
        (["--max-nodes", "3"], 2, true),
        (["--max-nodes", "4"], 3, false),
    ] {
        let value = tree(&world, &[&[pid.as_str()], &args[..]].concat());
        let len = value["descendants"].as_array().unwrap().len();
        assert_eq!((len, &value["truncated"]), (count, &json!(truncated)), "{args:?}");
    }

    // This process is above all of them.
    let own = std::process::id().to_string();
    let value = tree(&world, &[&own, "--max-nodes", "100000", "--max-depth", "100"]);
    let session = |value: &Value| -> Value {
        let all = value["descendants"].as_array().unwrap();
        all.iter().find(|n| n["pid"] == agent.pid()).unwrap()["session"].clone()
    };
    assert_eq!(session(&value)["session_id"], "s");
    assert_eq!(session(&value)["status"], "started");
    let value = tree(&world, &[&agent.pid().to_string()]);
    assert_eq!(value["root"]["session"]["session_id"], "s");
    let text = world.agents(&["tree", &agent.pid().to_string()]).out;
    assert!(text.starts_with("PID") || text.trim_start().starts_with("PID"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("claude   started"), "{text}");
    edit(&world, "s", json!({"process_start": "1"}));
    let value = tree(&world, &[&agent.pid().to_string()]);
    assert_eq!(value["root"]["session"], Value::Null, "another process's session");

    // A session deeper than is looked: at the depth that is asked for it is there.
    let (_, value) = lookup(&world, &["--tree", &pid, "--max-depth", "1"]);
    assert_eq!(value["truncated"], true);
}

#[test]
fn a_session_below_a_process_is_found_as_deep_as_is_asked() {
    let world = World::new();
    world.stub("claude");
    fs::write(world.path("p"), claude("deep", "")).unwrap();
    let hook = format!("sh -c 'tongs-hook claude SessionStart <{}; :'", world.path("p").display());
    fs::write(world.path("agent.sh"), format!("{hook}; echo ready; read line")).unwrap();
    fs::write(world.path("5.sh"), format!("claude --norc {}; :", world.path("agent.sh").display()))
        .unwrap();
    for i in (0..5).rev() {
        let line = format!("sh {}; :", world.path(&format!("{}.sh", i + 1)).display());
        fs::write(world.path(&format!("{i}.sh")), line).unwrap();
    }
    // The agent is six generations below.
    let mut shell =
        Running::shell(&world, "sh", &format!("sh {}; :", world.path("1.sh").display()));
    assert_eq!(shell.says(), "ready");
    let pid = shell.pid();
    let child = tree(&world, &[&pid])["descendants"][0]["pid"].to_string();
    let (code, value) = lookup(&world, &["--tree", &pid]);
    assert_eq!((code, &value["truncated"]), (Some(1), &json!(true)));
    assert_eq!(found(&world, &["--tree", &pid, "--max-depth", "6"]), ["deep"]);
    assert_eq!(found(&world, &["--tree", &child]), ["deep"]);
    assert_eq!(Waiter::start(&world, &["--tree", &child]).json()["session_id"], "deep");
    let seen = Waiter::start(&world, &["--tree", &pid, "--timeout", "0"]).end();
    assert_eq!((seen.code, &seen.json()["reason"]), (Some(1), &json!("timeout")));
    let (_, value) = lookup(&world, &["--tree", &pid, "--max-depth", "6", "--max-nodes", "6"]);
    assert_eq!((&value["matches"], &value["truncated"]), (&json!(0), &json!(true)));
}

#[test]
fn names_may_be_anything_and_the_dead_are_told() {
    let world = World::new();
    let stub = world.stub("a) (Z\n\u{1b}]");
    let line = "sh -c 'true & exec sleep 1000'; :";
    let child = Running::shell(&world, stub.to_str().unwrap(), line);
    let pid = child.pid();
    // The child that nobody waits for.
    let sleeper = loop {
        let value = tree(&world, &[&pid]);
        let nodes = value["descendants"].as_array().unwrap().clone();
        if nodes.len() == 2 && nodes[0]["comm"] == "sleep" && nodes[1]["defunct"] == true {
            assert_eq!(value["root"]["comm"], "a) (Z\n\u{1b}]");
            assert_eq!(nodes[1]["ppid"], nodes[0]["pid"]);
            break nodes[0]["pid"].to_string();
        }
        std::thread::yield_now();
    };
    let ran = world.agents(&["tree", &pid]);
    assert!(ran.out.contains("a) (Z\\u{a}\\u{1b}]"), "{ran:?}");
    assert!(ran.out.contains("(defunct)"), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 4);
    let ran = world.agents(&["tree", &sleeper, "--json"]);
    assert_eq!(ran.json()["descendants"][0]["defunct"], true);
}

#[test]
fn a_child_that_stays_is_listed_all_the_while_that_others_go() {
    use tongs::probe::Process;
    use tongs::probe::system::{all, children};
    let world = World::new();
    // The one that stays is listed behind those that go meanwhile.
    let line = "for i in {1..50}; do sleep 0.$((RANDOM % 300 + 200)) & done; sleep 1000 & wait";
    let shell = Running::shell(&world, "bash", line);
    let listed = || -> Vec<u32> {
        let listed = children(&Process::read(shell.0.id()).unwrap()).unwrap();
        listed.iter().map(|child| child.pid).collect()
    };
    let command = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let stays = loop {
        if let Some(pid) = listed().into_iter().find(|pid| command(pid) == b"sleep\x001000\x00") {
            break pid;
        }
    };
    loop {
        let pids = listed();
        assert!(pids.contains(&stays), "passed over, beside {} others", pids.len());
        if pids.len() == 1 {
            break;
        }
    }
    assert!(all().iter().any(|p| p.pid == stays && p.ppid == shell.0.id()));
}

#[test]
fn the_answer_goes_to_a_reader_that_went_away() {
    let world = World::new();
    notify(&world, "s", "running", None, "X=");
    for line in ["lookup --session s --json", "tree $$ --json", "wait s --json"] {
        let mut command = Command::new("bash");
        world.bare(&mut command);
        command.args([
            "-c",
            &format!("set -o pipefail; tongs-agents {line} | exec 0<&-; echo ${{PIPESTATUS[0]}}"),
        ]);
        let ran: Ran = finish(command, b"");
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0\n", ""), "{line}");
    }
}
