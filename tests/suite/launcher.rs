//! The writer side for launchers: `record`, `forget` and `run`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::status::assert_schema;
use crate::world::{Ran, World, claude, finish, has_tool};

/// Options of `record` for a process of a harness, and more.
fn record(world: &World, agent: &str, pid: u32, more: &[&str]) -> Ran {
    let pid = pid.to_string();
    let args = ["record", "--agent", agent, "--pid", &pid, "--cwd", "/x/y"];
    world.agents(&[&args[..], &["--method", "process"], more].concat())
}

/// A process's start, in clock ticks since boot.
fn start_of(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_string()
}

/// Changes fields of the record of a session.
fn edit(world: &World, session: &str, changes: &[(&str, Value)]) {
    for file in world.record_files() {
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        if record["session_id"] == session {
            for (key, value) in changes {
                record[*key] = value.clone();
            }
            fs::write(&file, record.to_string()).unwrap();
        }
    }
}

const IDS: [&str; 4] = ["--launch-id", "L1", "--terminal-id", "T1"];

fn ids(record: &Value) -> (&str, &str) {
    (record["launch_id"].as_str().unwrap_or(""), record["terminal_id"].as_str().unwrap_or(""))
}

#[test]
fn the_record_of_a_process_is_replaced_by_its_first_event_which_keeps_the_ids() {
    // The harness that the launcher names, or none that it knows.
    for named in ["claude", "other"] {
        let world = World::new();
        let mut agent = world.harness("claude");
        record(&world, named, agent.pid(), &IDS).silent();
        let stored = world.record();
        let (pid, start) = (agent.pid().to_string(), start_of(agent.pid()));
        for (key, want) in [
            ("record_kind", json!("process")),
            ("session_id", json!(format!("proc-{pid}"))),
            ("instance_id", json!(format!("{pid}:{start}"))),
            ("harness_id", json!(named)),
            ("pid", json!(pid)),
            ("process_start", json!(start)),
            ("status", json!("discovered")),
            ("source", json!("launcher")),
            ("method", json!("process")),
            ("cwd", json!("/x/y")),
            ("repo", json!("y")),
            ("terminal", json!("")),
            ("launch_id", json!("L1")),
            ("terminal_id", json!("T1")),
        ] {
            assert_eq!(stored[key], want, "{named} {key}");
        }
        agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
        let stored = world.record();
        assert_eq!(
            (&stored["session_id"], &stored["source"], &stored["status"], ids(&stored)),
            (&json!("s"), &json!("hook"), &json!("started"), ("L1", "T1")),
            "{named}"
        );
        // They are the process's, whatever session it goes on with, and whatever
        // its environment has from further up.
        let env = "env TONGS_AGENTS_LAUNCH_ID=outer";
        agent.hook_with(env, &["claude", "SessionStart"], &claude("t", "")).silent();
        agent.hook_with(env, &["claude", "UserPromptSubmit"], &claude("t", "")).silent();
        assert_eq!(ids(&world.record_of("t")), ("L1", "T1"), "{named}");
        // Another process has its own.
        let mut inner = world.harness("codex");
        inner.hook_with(env, &["codex", "SessionStart"], &claude("u", "")).silent();
        assert_eq!(ids(&world.record_of("u")), ("outer", ""), "{named}");
    }
}

#[test]
fn a_discovered_process_is_replaced_likewise() {
    let world = World::new();
    let mut agent = world.harness("claude");
    assert_eq!(world.agents(&["cleanup"]).code, Some(0));
    let process = format!("proc-{}", agent.pid());
    assert_eq!(world.record_of(&process)["source"], "process");
    // A launcher that comes now makes it its own.
    record(&world, "claude", agent.pid(), &IDS).silent();
    let stored = world.record_of(&process);
    assert_eq!((&stored["source"], ids(&stored)), (&json!("launcher"), ("L1", "T1")));
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    assert_eq!(ids(&world.record_of("s")), ("L1", "T1"));
    let all = world.agents(&["status", "--all", "-o", "session_id"]).out;
    assert!(!all.contains(&process), "{all}");
}

#[test]
fn a_session_that_only_a_launcher_knows_becomes_the_hooks_at_its_first_event() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let more = [&IDS[..], &["--session-id", "s", "--source", "launcher"]].concat();
    record(&world, "claude", agent.pid(), &[&IDS[..], &["--json"]].concat());
    record(&world, "claude", agent.pid(), &more).silent();
    let stored = world.record();
    for (key, want) in [
        ("record_kind", json!("session")),
        ("session_id", json!("s")),
        ("status", json!("discovered")),
        ("source", json!("launcher")),
        ("terminal", json!("")),
    ] {
        assert_eq!(stored[key], want, "{key}");
    }
    // The first event is no start, and the terminal is looked for all the same.
    let tmux = "env TMUX=/tmp/tmux-0/default,1,2 TMUX_PANE=%7";
    let tool = claude("s", r#","tool_name":"Bash""#);
    agent.hook_with(tmux, &["claude", "PreToolUse"], &tool).silent();
    let stored = world.record();
    assert_eq!(
        (&stored["status"], &stored["source"], &stored["terminal"], ids(&stored)),
        (&json!("running"), &json!("hook"), &json!("tmux"), ("L1", "T1"))
    );
    assert_eq!(stored["terminal_env"]["TMUX_PANE"], "%7");
    // Another session of the process ends it, though only a launcher knew it.
    let mut other = world.harness("claude");
    record(&world, "claude", other.pid(), &["--session-id", "boot", "--launch-id", "L2"]).silent();
    other.hook(&["claude", "SessionStart"], &claude("real", "")).silent();
    assert_eq!(world.record_of("boot")["status"], "ended");
    assert_eq!(ids(&world.record_of("real")), ("L2", ""));
}

#[test]
fn a_session_that_has_spoken_gets_the_ids_and_nothing_else() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let before = world.record();
    // Without a session's id, with that one, and with one that is out of date.
    for (session, launch) in [("", "L1"), ("s", "L2"), ("stale", "L3")] {
        let session = if session.is_empty() { vec![] } else { vec!["--session-id", session] };
        let more = [&["--launch-id", launch, "--json"], &session[..]].concat();
        let ran = record(&world, "claude", agent.pid(), &more);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_schema(&world, "record", &ran.json());
        assert_eq!(
            ran.json(),
            json!({"canonical_id": before["canonical_id"], "session_id": "s", "status": "running"})
        );
        let mut after = world.record();
        assert_eq!(after["launch_id"], launch);
        after.as_object_mut().unwrap().remove("launch_id");
        after["arrival_sequence"] = 1.into();
        assert_eq!(after, before);
    }
    // The same again changes no byte.
    let stands = fs::read(&world.record_files()[0]).unwrap();
    record(&world, "claude", agent.pid(), &["--launch-id", "L3"]).silent();
    assert_eq!(fs::read(&world.record_files()[0]).unwrap(), stands);
    // What it says holds for later events too.
    agent.hook_with("env TONGS_AGENTS_LAUNCH_ID=E", &["claude", "Stop"], &claude("s", "")).silent();
    assert_eq!(world.record()["launch_id"], "L3");
}

#[test]
fn a_process_of_many_sessions_keeps_them_apart() {
    let world = World::new();
    let mut server = world.harness("opencode");
    let created = |id: &str| {
        format!(
            r#"{{"type":"session.created","properties":{{"info":{{"id":"{id}","directory":"/tmp"}}}}}}"#
        )
    };
    server.hook(&["opencode", "session.created"], &created("one")).silent();
    server.hook(&["opencode", "session.created"], &created("two")).silent();
    record(&world, "opencode", server.pid(), &["--session-id", "three"]).silent();
    assert_eq!(world.record_files().len(), 3);
    record(&world, "opencode", server.pid(), &IDS).silent();
    assert_eq!(world.record_files().len(), 3);
    for session in ["one", "two"] {
        let stored = world.record_of(session);
        assert_eq!((ids(&stored), &stored["status"]), (("L1", "T1"), &json!("started")));
    }
}

#[test]
fn every_method_is_taken_and_what_cannot_be_is_refused_in_one_line() {
    let world = World::new();
    let agent = world.harness("claude");
    for method in
        ["hook-stdin", "hook-env", "hook-argv", "fs-watch", "stdout-banner", "notify", "process"]
    {
        let pid = agent.pid().to_string();
        let args = ["record", "--agent", "claude", "--pid", &pid, "--cwd", ".", "--method", method];
        world.agents(&[&args[..], &["--session-id", "s"]].concat()).silent();
        let stored = world.record();
        assert_eq!((&stored["method"], &stored["session_id"]), (&json!(method), &json!("s")));
        assert_eq!(stored["cwd"], format!("{}/.", world.path("project").display()));
    }
    let stands = fs::read(&world.record_files()[0]).unwrap();
    let long = "x".repeat(513);
    let deep = format!("/{}", "d".repeat(4096));
    let base = ["--agent=claude", "--cwd=/x", "--method=process"];
    for (change, code) in [
        (&["--session-id", "../escaped"][..], 65),
        (&["--session-id", "a/b"], 65),
        (&["--session-id", "a\\b"], 65),
        (&["--session-id", "."], 65),
        (&["--session-id", ".."], 65),
        (&["--session-id", "a\x01b"], 65),
        (&["--session-id", "a\u{85}b"], 65),
        (&["--session-id", &long], 65),
        (&["--launch-id", &long], 65),
        (&["--launch-id", "a\nb"], 65),
        (&["--terminal-id", "a\x7fb"], 65),
        (&["--cwd", &deep], 65),
        (&["--session-id", ""], 64),
        (&["--launch-id", ""], 64),
        (&["--cwd", ""], 64),
        (&["--agent", "nobody"], 64),
        (&["--method", "guess"], 64),
        (&["--source", "hook"], 64),
        (&["--pid", "0"], 1),
        (&["--pid", "4194304"], 1),
        (&["--pid", "-1"], 64),
        (&["--pid", "x"], 64),
        (&["more"], 64),
    ] {
        let name = format!("{}=", change[0]);
        let pid = format!("--pid={}", agent.pid());
        let args = base.iter().copied().chain([pid.as_str()]).filter(|a| !a.starts_with(&name));
        let args: Vec<&str> =
            ["record"].into_iter().chain(args).chain(change.iter().copied()).collect();
        let ran = world.agents(&args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{change:?}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        assert!(ran.err.starts_with("tongs-agents: "), "{ran:?}");
    }
    assert_eq!(fs::read(&world.record_files()[0]).unwrap(), stands);
    assert_eq!(world.record_files().len(), 1);
}

#[test]
fn a_refused_record_makes_no_store() {
    let world = World::new();
    for more in [&["--session-id", "a/b"][..], &["--launch-id", ""]] {
        record(&world, "claude", std::process::id(), more);
    }
    record(&world, "claude", 4_194_304, &[]);
    assert!(!world.state().exists());
}

#[test]
fn a_store_that_cannot_be_written_is_said_with_its_code() {
    let world = World::new();
    let agent = world.harness("claude");
    record(&world, "claude", agent.pid(), &[]).silent();
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o755)).unwrap();
    for args in [vec![], vec!["--session-id", "s"]] {
        let ran = record(&world, "claude", agent.pid(), &args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(77), ""));
        assert!(ran.err.contains("its mode must be 0700"), "{ran:?}");
    }
    let ran = world.agents(&["forget", "--pid", &agent.pid().to_string()]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(77), 1), "{ran:?}");
}

#[test]
fn launchers_and_hooks_at_once_leave_one_record_with_everything() {
    for _ in 0..4 {
        let world = World::new();
        let mut agent = world.harness("claude");
        let payload = world.path("tool.json");
        fs::write(&payload, claude("s", r#","tool_name":"Bash""#)).unwrap();
        let pid = agent.pid();
        // They all wait for one file, so that none is done before the last.
        let line = format!(
            "go() {{ while [ ! -e go ]; do :; done; \"$@\"; }}
             for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32; do
             go tongs-agents record --agent claude --pid {pid} --cwd /tmp --method process \
                 --launch-id L1 --terminal-id T1 &
             go tongs-hook claude PreToolUse <'{payload}' &
             done; >go; wait",
            payload = payload.display()
        );
        agent.shell(&line).silent();
        let stored = world.record();
        assert_eq!(
            (&stored["session_id"], &stored["status"], ids(&stored)),
            (&json!("s"), &json!("running"), ("L1", "T1"))
        );
        let left: Vec<String> = world.files().into_iter().filter(|f| f.contains("tmp")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_launched_process_has_a_moment_to_become_its_harness() {
    let world = World::new();
    // It is no claude yet: as a chain of programs begins.
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id();
    record(&world, "claude", pid, &["--launch-id", "L"]).silent();
    let session = format!("proc-{pid}");
    let stands = || {
        assert_eq!(world.agents(&["cleanup"]).code, Some(0));
        world.session(&session).is_some()
    };
    assert!(stands());
    let then = world.record_of(&session)["mono_ms"].as_u64().unwrap();
    edit(&world, &session, &[("mono_ms", json!(then.saturating_sub(11_000)))]);
    assert!(!stands(), "sleep is no claude");
    // Gone is gone, however young.
    record(&world, "claude", pid, &[]).silent();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(!stands());
}

fn forget(world: &World, pid: u32) -> u64 {
    let ran = world.agents(&["forget", "--pid", &pid.to_string(), "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_schema(world, "forget", &ran.json());
    ran.json()["removed"].as_u64().unwrap()
}

#[test]
fn forget_removes_what_is_of_the_process_and_nothing_else() {
    let world = World::new();
    let (mut one, mut two) = (world.harness("claude"), world.harness("claude"));
    assert_eq!(forget(&world, one.pid()), 0);
    assert!(!world.state().exists(), "and makes no store");
    one.hook(&["claude", "SessionStart"], &claude("a", "")).silent();
    one.hook(&["claude", "SessionStart"], &claude("b", "")).silent();
    two.hook(&["claude", "SessionStart"], &claude("c", "")).silent();
    let pid = one.pid().to_string();
    let report = ["notify", "--harness", "other", "--session", "d", "--status", "idle"];
    world.agents(&[&report[..], &["--pid", &pid]].concat()).silent();
    // A record of schema 0 of the same process.
    let legacy = world.sessions().join("old.json");
    fs::write(&legacy, json!({"session_id": "e", "agent": "claude", "pid": pid}).to_string())
        .unwrap();
    assert_eq!(forget(&world, one.pid()), 4);
    assert_eq!(world.record()["session_id"], "c");
    assert_eq!(forget(&world, one.pid()), 0);
    world.agents(&["forget", "--pid", &pid]).silent();
    // The agent lives, and its next event makes its record again.
    one.hook(&["claude", "UserPromptSubmit"], &claude("b", "")).silent();
    assert_eq!(world.record_of("b")["status"], "running");
}

#[test]
fn forget_takes_dead_leftovers_and_leaves_what_the_pid_does_not_name_here() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let pid = agent.pid();
    let mut put = |session: &str, changes: &[(&str, Value)]| {
        agent.hook(&["claude", "SessionStart"], &claude(session, "")).silent();
        edit(&world, session, changes);
    };
    put("other start", &[("process_start", json!("1"))]);
    put("other boot", &[("boot_id", json!("00000000-0000-0000-0000-000000000000"))]);
    put("bridged", &[("bridge", json!("b"))]);
    put("foreign", &[("pid_ns", json!("17"))]);
    assert_eq!(forget(&world, pid), 2);
    let left: Vec<Value> = ["bridged", "foreign"].map(|s| world.record_of(s)["pid"].clone()).into();
    assert_eq!((world.record_files().len(), &left[0]), (2, &json!(pid.to_string())));
    agent.kill();
    assert_eq!(forget(&world, pid), 0, "they are not ours, dead or alive");
    let mut gone = world.harness("claude");
    gone.hook(&["claude", "SessionStart"], &claude("gone", "")).silent();
    let pid = gone.pid();
    gone.kill();
    assert_eq!(forget(&world, pid), 1);
}

#[test]
fn forget_waits_for_the_locks_and_says_so() {
    if !has_tool("flock", "forget_waits_for_the_locks") {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    for start in [".fleet-v1-", ".fleet-identity-v1-"] {
        let lock = world.files().into_iter().find(|f| f.starts_with(start)).unwrap();
        let mut command = Command::new("flock");
        world.bare(&mut command);
        command.arg(world.sessions().join(lock));
        command.args(["tongs-agents", "forget", "--pid", &agent.pid().to_string()]);
        let ran = finish(command, b"");
        assert_eq!((ran.code, ran.out.as_str()), (Some(75), ""));
        assert_eq!(
            ran.err,
            "tongs-agents: cannot remove session 's': another process holds its lock\n"
        );
        assert_eq!(world.record()["session_id"], "s");
    }
    for args in [&["forget"][..], &["forget", "--pid", "x"], &["forget", "--pid", "1", "2"]] {
        assert_eq!(world.agents(args).code, Some(64), "{args:?}");
    }
}

fn is_uuid_4(id: &str) -> bool {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    id.len() == 36
        && id.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            14 => c == '4',
            19 => "89ab".contains(c),
            _ => hex(c),
        })
}

#[test]
fn an_agent_that_is_run_has_its_record_before_its_first_event_and_its_ids_after() {
    let world = World::new();
    let mut agent = world.launched(&["--profile", "work"], "claude");
    let env = agent.shell("printenv TONGS_AGENTS_LAUNCH_ID TONGS_AGENTS_PROFILE_ID").out;
    let (launch, profile) = env.trim_end().split_once('\n').unwrap();
    assert!(is_uuid_4(launch), "{launch}");
    assert_eq!(profile, "work");
    let session = world.session(&format!("proc-{}", agent.pid())).unwrap();
    for (key, want) in [
        ("record_kind", json!("process")),
        ("harness_id", json!("claude")),
        ("pid", json!(agent.pid().to_string())),
        ("process_start", json!(start_of(agent.pid()))),
        ("status", json!("discovered")),
        ("source", json!("launcher")),
        ("cwd", json!(world.path("project").to_str().unwrap())),
        ("terminal", json!("generic")),
        ("launch_id", json!(launch)),
        ("profile_id", json!("work")),
    ] {
        assert_eq!(session[key], want, "{key}");
    }
    // A maintainer finds the process as recorded.
    assert_eq!(world.agents(&["cleanup"]).code, Some(0));
    assert!(world.session(&format!("proc-{}", agent.pid())).is_some());
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let session = world.session("s").unwrap();
    assert_eq!(
        (&session["pid"], &session["launch_id"], &session["profile_id"], &session["status"]),
        (&json!(agent.pid().to_string()), &json!(launch), &json!("work"), &json!("started"))
    );
    assert!(
        world.record_files().iter().all(|f| !fs::read_to_string(f).unwrap().contains("launcher")),
        "the record of the process was replaced"
    );
}

#[test]
fn the_launch_id_is_new_unless_it_is_given() {
    let world = World::new();
    let of = |options: &[&str]| {
        let mut command = world.command("tongs-agents");
        command.env("TONGS_AGENTS_LAUNCH_ID", "outer").env("TONGS_AGENTS_PROFILE_ID", "mine");
        command.arg("run").args(options);
        command.args(["sh", "-c", "echo $TONGS_AGENTS_LAUNCH_ID $TONGS_AGENTS_PROFILE_ID"]);
        let ran = finish(command, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.out.trim_end().to_string()
    };
    let (one, two) = (of(&[]), of(&[]));
    assert!(is_uuid_4(one.split(' ').next().unwrap()) && one != two, "{one} {two}");
    assert!(one.ends_with(" mine"), "the profile of the environment stays: {one}");
    assert_eq!(of(&["--launch-id", "mine", "--profile=other"]), "mine other");
}

/// What a program finds of its caller: signals, umask, descriptors, timer.
const LOOK: &str = "grep -E '^(Umask|SigBlk|SigIgn|SigCgt)' /proc/self/status; \
                    ls -l /proc/self/fd | sed 's/.* \\([0-9]* -> \\)/\\1/; /\\/proc\\//d'; \
                    env | grep -vE '^(TONGS_AGENTS_LAUNCH_ID|_)=' | sort";

#[test]
fn the_agent_finds_everything_as_the_caller_had_it() {
    let test = "the_agent_finds_everything";
    let world = World::new();
    let mut probe = Command::new("env");
    probe.args(["--ignore-signal=PIPE", "--block-signal=USR1", "true"]);
    if finish(probe, b"").code != Some(0) {
        eprintln!("skipped {test}: env cannot set signals here");
        return;
    }
    world.stub("claude");
    let look = |signals: &str, run: &str, files: &str| {
        let mut command = Command::new("sh");
        world.bare(&mut command);
        let script = format!(
            "umask 027; exec 7</dev/zero; exec env {signals} {run} claude --norc -c \"$1\" {files}"
        );
        command.args(["-c", &script, "sh", LOOK]).env("EMPTY", "").env("LANG", "x=y\n z");
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // Pipes have numbers of their own.
        ran.out.lines().map(|l| l.split(":[").next().unwrap().to_string()).collect::<Vec<_>>()
    };
    for signals in [
        "",
        "--ignore-signal=PIPE --ignore-signal=XFSZ --ignore-signal=ALRM",
        "--block-signal=ALRM --block-signal=USR1 --ignore-signal=TTIN",
        "--default-signal=PIPE --default-signal=XFSZ",
    ] {
        for files in ["", "<&-", "2>&-"] {
            let plain = look(signals, "", files);
            assert!(plain.iter().any(|l| l.starts_with("7 -> ")), "{plain:?}");
            assert_eq!(look(signals, "tongs-agents run --", files), plain, "{signals} {files}");
        }
    }
}

#[test]
fn an_alarm_that_the_caller_set_goes_on() {
    let test = "an_alarm_that_the_caller_set";
    if !has_tool("perl", test) {
        return;
    }
    let world = World::new();
    let left = |seconds: u32| -> u32 {
        let mut command = Command::new("perl");
        world.bare(&mut command);
        command.args(["-e", &format!("alarm {seconds}; exec @ARGV")]);
        command.args(["tongs-agents", "run", "perl", "-e", "print alarm(0)"]);
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.parse().unwrap()
    };
    assert_eq!(left(0), 0, "and ours does not tick on");
    assert!((800..=1000).contains(&left(1000)));
}

#[test]
fn the_words_behind_the_command_are_its_own() {
    let world = World::new();
    fs::write(world.path("project/args"), "#!/bin/sh\nprintf '<%s>' \"$0\" \"$@\"\n").unwrap();
    let program = world.path("project/args");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for words in [
        &["./args", "--profile", "p", "-h", "--", "--launch-id", "", "help"][..],
        &["./args"],
        &["./args", "--help"],
    ] {
        for before in [&["run"][..], &["run", "--"], &["run", "--launch-id=L", "--"]] {
            let ran = world.agents(&[before, words].concat());
            let want: String = words.iter().map(|w| format!("<{w}>")).collect();
            assert_eq!((ran.code, ran.out, ran.err.as_str()), (Some(0), want, ""));
        }
    }
    let mut command = world.command("tongs-agents");
    command.args(["run", "--", "./args"]).arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let ran = command.output().unwrap();
    assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(0), &b"<./args><\xff\xfe>"[..]));
    let mut command = world.command("tongs-agents");
    command.args(["run", "--profile"]).arg(std::ffi::OsStr::from_bytes(b"\xff")).arg("./args");
    let ran = finish(command, b"");
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(64), "tongs-agents: an argument is not UTF-8\n")
    );
    for (args, code) in [
        (&["run"][..], 64),
        (&["run", "--"], 64),
        (&["run", "--profile", "p"], 64),
        (&["run", "--nonsense", "true"], 64),
        (&["run", "--launch-id", "", "true"], 64),
        (&["run", "--launch-id", "a\nb", "true"], 65),
        (&["run", "--profile", &"x".repeat(513), "true"], 65),
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(code), "", 1));
    }
}

#[test]
fn the_code_and_the_output_are_the_commands() {
    let world = World::new();
    for code in [0, 1, 69, 126, 127, 200] {
        let ran =
            world.agents(&["run", "sh", "-c", &format!("echo out; echo err >&2; exit {code}")]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(code), "out\n", "err\n"));
    }
    let ran = world.agents(&["run", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ran.code, None);
}

#[test]
fn a_command_that_cannot_be_started_has_a_code_a_line_and_no_record() {
    let world = World::new();
    fs::write(world.path("project/data"), "no program").unwrap();
    fs::create_dir(world.path("project/dir")).unwrap();
    fs::write(world.path("project/lost"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(world.path("project/lost"), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, code, why) in [
        ("no-such-agent", 69, "no such file or directory"),
        ("./no-such-agent", 69, "no such file or directory"),
        ("./data/agent", 69, "not a directory"),
        ("./lost", 69, "no such file or directory"),
        ("", 69, "no such file or directory"),
        ("./data", 77, "permission denied"),
        ("./dir", 77, "permission denied"),
    ] {
        let ran = world.agents(&["run", "--", name, "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{name}");
        assert_eq!(ran.err, format!("tongs-agents: cannot run '{name}': {why}\n"));
        assert!(world.record_files().is_empty(), "{name}");
    }
    // Found by its path, and known by its name.
    fs::copy("/bin/bash", world.path("project/codex")).unwrap();
    let ran = world.agents(&[
        "run",
        "./codex",
        "-c",
        "tongs-agents status -o harness_id -q; tongs-agents status -o harness_id",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "codex\n"));
}

#[test]
fn the_agent_is_known_by_its_command_line() {
    let world = World::new();
    let script = world.path("lib/claude-code/cli.js");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, "tongs-agents status --all -o harness_id 2>/dev/null; :").unwrap();
    let script = script.to_str().unwrap();
    for (program, args, want) in [
        ("claude", &[script][..], "claude"),
        ("node", &[script], "claude"),
        ("node", &["--norc", script], "claude"),
        ("cursor-agent", &[script], "cursor"),
        ("bash", &[script], "other"),
        ("nobody", &[script], "other"),
    ] {
        let world_bin = world.path("bin").join(program);
        if !world_bin.exists() {
            world.stub(program);
        }
        let ran = world.agents(&[&["run", program], args].concat());
        assert_eq!(ran.out, format!("{want}\n"), "{program} {args:?}: {ran:?}");
        fs::remove_dir_all(world.state()).unwrap();
    }
    // A helper of a harness is none.
    fs::write(world.path("project/mcp"), "tongs-agents status --all -o harness_id 2>/dev/null; :")
        .unwrap();
    assert_eq!(world.agents(&["run", "claude", "mcp"]).out, "other\n");
}

#[test]
fn what_keeps_the_record_from_being_written_does_not_keep_the_agent_from_starting() {
    let world = World::new();
    let run = |before: &str| {
        let mut command = Command::new("sh");
        world.bare(&mut command);
        let line = format!(
            "{before} tongs-agents run --launch-id L sh -c 'echo $TONGS_AGENTS_LAUNCH_ID; exit 3'"
        );
        command.args(["-c", &line]);
        finish(command, b"")
    };
    let started = |ran: &Ran, why: &str| {
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), "L\n"), "{ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        assert!(ran.err.starts_with("tongs-agents: the launch is not recorded: "), "{ran:?}");
        assert!(ran.err.contains(why), "{ran:?}");
    };
    assert_eq!(run("").err, "");
    started(&run("env -u HOME"), "HOME is not set");
    started(&run("ulimit -f 0;"), "file too large");
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o750)).unwrap();
    started(&run(""), "its mode must be 0700");
    fs::remove_dir_all(world.state()).unwrap();
    fs::write(world.state(), "").unwrap();
    started(&run(""), "not a directory");
    let mut files: Vec<_> = fs::read_dir(world.path("home/.local/state")).unwrap().collect();
    assert_eq!(files.pop().unwrap().unwrap().path(), world.state());
}

#[test]
fn one_launch_within_another_has_its_own_id_and_one_record() {
    let world = World::new();
    // In one process: the last one counts.
    let mut command = world.command("tongs-agents");
    command.args(["run", "--launch-id", "A", "tongs-agents", "run", "--launch-id", "B"]);
    world.stub("claude");
    command.args([
        "claude",
        "--norc",
        "-c",
        "tongs-agents status --all -o harness_id,launch_id 2>/dev/null; :",
    ]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "claude\tB\n"), "{ran:?}");
    // In two: a process each.
    let world = World::new();
    world.stub("claude");
    let mut outer = world.launched(&["--launch-id", "A"], "codex");
    let inner = "tongs-agents run --launch-id B claude --norc -c \
                 'tongs-agents status --all --sort repo -o harness_id,launch_id 2>/dev/null; :'";
    let out = outer.shell(inner).out;
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort();
    assert_eq!(lines, ["claude\tB", "codex\tA"]);
}

#[test]
fn run_leaves_no_process_of_ours() {
    let test = "run_leaves_no_process_of_ours";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let trace = world.path("trace");
    let mut command = Command::new("strace");
    world.bare(&mut command);
    command.arg("-f").arg("-o").arg(&trace);
    command.arg(world.path("bin/tongs-agents")).args(["run", "true"]);
    assert_eq!(finish(command, b"").code, Some(0));
    let trace = fs::read_to_string(&trace).unwrap();
    let pids: std::collections::BTreeSet<&str> =
        trace.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(pids.len(), 1, "{trace}");
    assert!(trace.matches("execve(").count() >= 2);
    // Nothing of ours is open in the program that was started.
    let ours = Path::new("sessions");
    let opened: Vec<&str> = trace
        .lines()
        .filter(|l| {
            l.contains("openat(") && !l.contains("ENOENT") && l.contains(ours.to_str().unwrap())
        })
        .collect();
    assert!(!opened.is_empty() && opened.iter().all(|l| l.contains("O_CLOEXEC")), "{opened:?}");
}
