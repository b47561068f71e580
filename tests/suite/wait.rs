//! Waiting for a session: before and after it is there, for a status, for its
//! end; woken and never asking again and again.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::find::{Running, edit, notify};
use crate::status::assert_schema;
use crate::world::{Ran, World, claude, finish, has_tool};

/// `tongs-agents wait --json` under way.
pub struct Waiter<'w> {
    world: &'w World,
    child: Child,
}

impl<'w> Waiter<'w> {
    /// Starts it.
    pub fn start(world: &'w World, args: &[&str]) -> Waiter<'w> {
        let mut command = world.command("tongs-agents");
        command.args(["wait", "--json"]).args(args);
        Waiter::of(world, command)
    }

    fn of(world: &'w World, mut command: Command) -> Waiter<'w> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Waiter { world, child: command.spawn().unwrap() }
    }

    /// Starts it and returns once it watches the store.
    fn watching(world: &'w World, args: &[&str]) -> Waiter<'w> {
        let mut waiter = Waiter::start(world, args);
        let fds = format!("/proc/{}/fd", waiter.child.id());
        let watches =
            |path: &Path| fs::read_link(path).is_ok_and(|l| l.ends_with("anon_inode:inotify"));
        while !fs::read_dir(&fds).is_ok_and(|dir| dir.flatten().any(|e| watches(&e.path()))) {
            assert!(waiter.child.try_wait().unwrap().is_none(), "{:?}", waiter.end());
            std::thread::yield_now();
        }
        waiter
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn end(self) -> Ran {
        let output = self.child.wait_with_output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its answer, which is that it holds.
    #[track_caller]
    pub fn json(self) -> Value {
        let world = self.world;
        let ran = self.end();
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert_schema(world, "wait", &ran.json());
        assert_woken(&ran);
        ran.json()
    }

    /// The reason why it does not hold.
    #[track_caller]
    fn reason(self) -> String {
        let world = self.world;
        let ran = self.end();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let value = ran.json();
        assert_schema(world, "wait", &value);
        assert_eq!(
            (&value["session_id"], &value["method"], &value["confidence"]),
            (&Value::Null, &Value::Null, &json!("low"))
        );
        value["reason"].as_str().unwrap().to_string()
    }
}

/// Asserts that something woke it: the last look, when the time is over, sees
/// what was missed.
#[track_caller]
fn assert_woken(ran: &Ran) {
    assert!(ran.json()["latency_ms"].as_u64().unwrap() < 30_000, "{ran:?}");
}

/// A process for sessions to be of; it ends when it is dropped.
struct Process(Child);

impl Process {
    fn start() -> Process {
        Process(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

const LONG: [&str; 2] = ["--timeout", "60s"];

#[test]
fn a_session_is_seen_whether_it_was_there_before_or_comes_after() {
    let world = World::new();
    let process = Process::start();
    let pid = process.pid();
    let ways = [["--pid", &pid], ["--tree", &pid], ["--launch-id", "L"]];
    let waiters: Vec<_> =
        ways.iter().map(|way| Waiter::watching(&world, &[&way[..], &LONG].concat())).collect();
    let by_id = Waiter::watching(&world, &["s", "--timeout", "60s"]);
    notify(&world, "s", "running", Some(&pid), "AGENT_LAUNCH_ID=L");
    for waiter in waiters.into_iter().chain([by_id]) {
        let value = waiter.json();
        assert_eq!((&value["session_id"], &value["method"]), (&json!("s"), &json!("notify")));
        assert_eq!((&value["confidence"], &value["status"]), (&json!("high"), &json!("running")));
    }
    for way in ways {
        let ran = Waiter::start(&world, &way).end();
        let keys = ["\"session_id\"", "\"method\"", "\"latency_ms\"", "\"confidence\""];
        let at: Vec<usize> = keys.iter().map(|key| ran.out.find(key).unwrap()).collect();
        assert!(ran.out.starts_with("{\"session_id\":\"s\",\"method\":\"notify\",\"latency_ms\":"));
        assert!(at.is_sorted() && at[3] < ran.out.find("\"canonical_id\"").unwrap());
    }
    let ran = world.agents(&["wait", "s"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "s\n", ""));
}

#[test]
fn the_time_is_over_when_it_is() {
    let world = World::new();
    let began = Instant::now();
    assert_eq!(
        Waiter::start(&world, &["--launch-id", "L", "--timeout", "300ms"]).reason(),
        "timeout"
    );
    assert!(began.elapsed() >= Duration::from_millis(300));
    let ran = world.agents(&["wait", "--launch-id", "L", "--timeout", "0"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!(ran.err, "tongs-agents: cannot wait for 'launch L': it took too long\n");
    assert!(!world.state().exists());
}

#[test]
fn the_end_of_the_process_ends_the_wait() {
    let world = World::new();
    for (way, until) in [("--pid", "present"), ("--tree", "present"), ("--pid", "idle")] {
        let process = Process::start();
        let pid = process.pid();
        let waiter = Waiter::watching(&world, &[way, &pid, "--until", until, "--timeout", "60s"]);
        if until == "idle" {
            notify(&world, "s", "running", Some(&pid), "X=");
        }
        drop(process);
        assert_eq!(waiter.reason(), "process-ended", "{way} {until}");
        // A zombie and a pid that nobody has are no process either.
        assert_eq!(Waiter::start(&world, &[way, &pid, "--until", until]).reason(), "no-process");
    }
    let mut zombie = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", zombie.id());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let pid = zombie.id().to_string();
    assert_eq!(Waiter::start(&world, &["--pid", &pid]).reason(), "no-process");
    zombie.wait().unwrap();

    // Of a session that is known by another way, its own process counts.
    for way in [&["--launch-id", "L"][..], &["--terminal-id", "T"], &["of-a-launch"]] {
        let process = Process::start();
        let mut command = world.command("tongs-agents");
        command.args(["notify", "--harness", "other", "--status", "running"]);
        command.args(["--session", "of-a-launch", "--pid", &process.pid()]);
        command.env("AGENT_LAUNCH_ID", "L").env("AGENT_TERMINAL_ID", "T");
        finish(command, b"").silent();
        let waiter =
            Waiter::watching(&world, &[way, &["--until", "idle", "--timeout", "60s"]].concat());
        drop(process);
        assert_eq!(waiter.reason(), "process-ended", "{way:?}");
    }
}

#[test]
fn a_dead_session_does_not_end_a_wait_for_the_next() {
    let world = World::new();
    let first = Process::start();
    notify(&world, "first", "idle", Some(&first.pid()), "AGENT_TERMINAL_ID=T");
    drop(first);
    for until in ["present", "idle"] {
        let waiter =
            Waiter::watching(&world, &["--terminal-id", "T", "--until", until, "--timeout", "60s"]);
        let process = Process::start();
        let pid = process.pid();
        notify(&world, until, "running", Some(&pid), "AGENT_TERMINAL_ID=T");
        if until == "idle" {
            notify(&world, until, "idle", Some(&pid), "AGENT_TERMINAL_ID=T");
        }
        assert_eq!(waiter.json()["session_id"], until);
    }
}

#[test]
fn a_status_is_waited_for_and_one_that_is_there_is_enough() {
    let world = World::new();
    let process = Process::start();
    let pid = process.pid();
    notify(&world, "s", "running", Some(&pid), "X=");
    let idle = Waiter::watching(&world, &["s", "--until", "idle", "--timeout", "60s"]);
    let either = Waiter::watching(&world, &["s", "--until", "error,waiting", "--timeout", "60s"]);
    let ended = Waiter::watching(&world, &["--pid", &pid, "--until", "ended", "--timeout", "60s"]);
    for status in ["started", "idle", "waiting"] {
        notify(&world, "s", status, Some(&pid), "X=");
    }
    // Both statuses may have passed before it looked.
    notify(&world, "s", "idle", Some(&pid), "X=");
    assert_eq!(idle.json()["status"], "idle");
    notify(&world, "s", "waiting", Some(&pid), "X=");
    assert_eq!(either.json()["status"], "waiting");
    assert_eq!(Waiter::start(&world, &["s", "--until", "waiting"]).json()["status"], "waiting");
    notify(&world, "s", "ended", Some(&pid), "X=");
    assert_eq!(ended.json()["status"], "ended");
    let now = ["--until", "idle", "--timeout", "0"];
    assert_eq!(Waiter::start(&world, &[&["s"], &now[..]].concat()).reason(), "timeout");
}

#[test]
fn a_reply_is_a_turn_that_ends_after_the_call() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let pid = agent.pid().to_string();
    let mut event = |name: &str, more: &str| {
        agent.hook(&["claude", name], &claude("s", more)).silent();
    };
    let replied = |timeout: &str| {
        Waiter::watching(&world, &["--pid", &pid, "--until", "replied", "--timeout", timeout])
    };
    let no = |waiter: Waiter<'_>| assert_eq!(waiter.reason(), "timeout");

    // From before the session is there.
    let waiter = replied("60s");
    event("SessionStart", "");
    event("UserPromptSubmit", "");
    event("Stop", "");
    assert_eq!(waiter.json()["status"], "idle");

    // It rests, and what rests has not replied.
    no(replied("0.2s"));
    let waiter = replied("0.5s");
    event("CwdChanged", "");
    no(waiter);
    let waiter = replied("60s");
    event("UserPromptSubmit", "");
    event("StopFailure", "");
    assert_eq!(waiter.json()["status"], "error");

    // A turn under way at the call; a question is an answer, and so is the next.
    event("UserPromptSubmit", "");
    let waiter = replied("60s");
    event("PreToolUse", r#","tool_name":"Bash""#);
    event("PermissionRequest", r#","tool_name":"Bash""#);
    assert_eq!(waiter.json()["status"], "waiting");
    let waiter = replied("60s");
    event("PostToolUse", r#","tool_name":"Bash""#);
    event("Stop", "");
    assert_eq!(waiter.json()["status"], "idle");

    // A start is none, nor what is said of a session without a prompt.
    event("SessionStart", r#","source":"resume""#);
    let waiter = replied("0.5s");
    event("Notification", r#","notification_type":"idle_prompt","message":"waiting""#);
    no(waiter);

    // Where nobody tells of prompts, the next event that rests is one.
    let process = Process::start();
    notify(&world, "n", "idle", Some(&process.pid()), "X=");
    let waiter = Waiter::watching(&world, &["n", "--until", "replied", "--timeout", "60s"]);
    notify(&world, "n", "running", Some(&process.pid()), "X=");
    notify(&world, "n", "idle", Some(&process.pid()), "X=");
    assert_eq!(waiter.json()["status"], "idle");
}

#[test]
fn gone_is_a_session_that_was_there() {
    let world = World::new();
    let gone = |way: &[&'static str], timeout: &'static str| {
        Waiter::start(&world, &[way, &["--until", "gone", "--timeout", timeout]].concat())
    };
    // A launch may be yet to come; an id is of something that was.
    assert_eq!(gone(&["--launch-id", "L"], "0").reason(), "timeout");
    assert_eq!(gone(&["--terminal-id", "T"], "0").reason(), "timeout");
    let value = gone(&["s"], "0").json();
    assert_eq!((&value["session_id"], &value["confidence"]), (&Value::Null, &json!("low")));
    assert_eq!(gone(&["--pid", "4194304"], "0").json()["session_id"], Value::Null);

    for how in ["ended", "killed", "removed", "store removed"] {
        let process = Process::start();
        let pid = process.pid();
        notify(&world, "s", "running", Some(&pid), "AGENT_LAUNCH_ID=L");
        let ways = [&["--pid", &pid][..], &["--tree", &pid], &["--launch-id", "L"], &["s"]];
        let until = ["--until", "gone", "--timeout", "60s"];
        let waiters: Vec<_> =
            ways.iter().map(|way| Waiter::watching(&world, &[way, &until[..]].concat())).collect();
        // An event is no end.
        notify(&world, "s", "idle", Some(&pid), "AGENT_LAUNCH_ID=L");
        let mut process = Some(process);
        match how {
            "ended" => notify(&world, "s", "ended", Some(&pid), "AGENT_LAUNCH_ID=L"),
            "killed" => drop(process.take()),
            "removed" => fs::remove_file(&world.record_files()[0]).unwrap(),
            _ => fs::remove_dir_all(world.path("home/.local")).unwrap(),
        }
        for waiter in waiters {
            let value = waiter.json();
            assert_eq!((&value["session_id"], &value["confidence"]), (&json!("s"), &json!("high")));
            // Of a record that is gone it tells what it saw last.
            match how {
                "ended" => assert_eq!(value["status"], "ended"),
                "killed" => assert_eq!(value["status"], "idle"),
                _ => assert!(["running", "idle"].contains(&value["status"].as_str().unwrap())),
            }
        }
        if how != "store removed" {
            drop(process);
            assert_eq!(
                gone(&["--launch-id", "L"], "0").end().code,
                Some(i32::from(how == "removed"))
            );
            let _ = fs::remove_dir_all(world.state());
        }
    }
}

#[test]
fn a_session_that_leaves_its_tree_is_not_gone() {
    let world = World::new();
    let line = "sh -c 'sleep 1000 & echo $$ $!; wait; :' & wait; read line";
    let mut shell = Running::shell(&world, "bash", line);
    let said = shell.says();
    let (middle, agent) = said.split_once(' ').unwrap();
    let kill =
        |pid: &str| assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
    notify(&world, "s", "running", Some(agent), "X=");
    let gone =
        Waiter::watching(&world, &["--tree", &shell.pid(), "--until", "gone", "--timeout", "60s"]);
    let idle = Waiter::watching(&world, &["s", "--until", "idle", "--timeout", "60s"]);
    kill(middle);
    while fs::exists(format!("/proc/{middle}")).unwrap() {
        std::thread::yield_now();
    }
    notify(&world, "s", "idle", Some(agent), "X=");
    idle.json();
    // What it says in the end is how the session stood then.
    notify(&world, "s", "error", Some(agent), "X=");
    kill(agent);
    assert_eq!(gone.json()["status"], "error");
}

#[test]
fn the_store_may_come_go_and_come_again() {
    let world = World::new();
    let process = Process::start();
    let pid = process.pid();
    let waiter = |session| Waiter::watching(&world, &[session, "--timeout", "60s"]);
    let (one, two, three, four) = (waiter("one"), waiter("two"), waiter("three"), waiter("four"));
    // Nothing above it is there yet.
    assert!(!world.path("home/.local").exists());
    notify(&world, "one", "running", Some(&pid), "X=");
    assert_eq!(one.json()["session_id"], "one");
    fs::remove_dir_all(world.sessions()).unwrap();
    notify(&world, "two", "running", Some(&pid), "X=");
    assert_eq!(two.json()["session_id"], "two");
    // Another one in its place.
    fs::rename(world.state(), world.path("home/before")).unwrap();
    notify(&world, "three", "running", Some(&pid), "X=");
    assert_eq!(three.json()["session_id"], "three");
    fs::rename(world.path("home/.local"), world.path("home/local")).unwrap();
    notify(&world, "four", "running", Some(&pid), "X=");
    assert_eq!(four.json()["session_id"], "four");
    // And the old one back.
    let back = waiter("two");
    fs::rename(world.path("home/.local"), world.path("home/third")).unwrap();
    fs::rename(world.path("home/local"), world.path("home/.local")).unwrap();
    fs::rename(world.state(), world.path("home/second")).unwrap();
    fs::rename(world.path("home/before"), world.state()).unwrap();
    assert_eq!(back.json()["session_id"], "two");
}

#[test]
fn a_store_that_cannot_be_used_is_said_at_once() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    notify(&world, "s", "running", None, "X=");
    let mode =
        |mode| fs::set_permissions(world.sessions(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o755);
    let ran = Waiter::start(&world, &["s"]).end();
    assert_eq!((ran.code, &ran.json()["reason"]), (Some(1), &json!("store-unavailable")));
    assert!(ran.err.contains("its mode must be 0700"), "{}", ran.err);
    mode(0o700);
    // Meanwhile it may become usable again.
    let process = Process::start();
    let waiter = Waiter::watching(&world, &["t", "--timeout", "60s"]);
    mode(0o755);
    notify_refused(&world);
    mode(0o700);
    notify(&world, "t", "running", Some(&process.pid()), "X=");
    assert_eq!(waiter.json()["session_id"], "t");
}

fn notify_refused(world: &World) {
    let ran = world.agents(&["notify", "--harness", "other", "--session", "u", "--status", "idle"]);
    assert_eq!(ran.code, Some(77));
}

#[test]
fn fifty_waiters_are_all_woken() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let pid = agent.pid().to_string();
    // Some begin before, some while it comes.
    let mut waiters: Vec<_> =
        (0..25).map(|_| Waiter::watching(&world, &["--pid", &pid, "--timeout", "60s"])).collect();
    waiters.extend((0..25).map(|_| Waiter::start(&world, &["--pid", &pid, "--timeout", "60s"])));
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    for waiter in waiters {
        assert_eq!(waiter.json()["session_id"], "s");
    }
}

#[test]
fn a_signal_ends_it() {
    let world = World::new();
    for signal in ["-TERM", "-INT"] {
        let waiter = Waiter::watching(&world, &["s", "--timeout", "60s"]);
        waiter.signal(signal);
        let ran = waiter.end();
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (None, "", ""));
    }
    // One that does not end it does not shorten it either.
    let waiter = Waiter::watching(&world, &["s", "--timeout", "500ms"]);
    let began = Instant::now();
    waiter.signal("-STOP");
    waiter.signal("-CONT");
    assert_eq!(waiter.reason(), "timeout");
    assert!(began.elapsed() > Duration::from_millis(300));
}

#[test]
fn more_events_than_the_queue_holds_lose_nothing() {
    let world = World::new();
    let process = Process::start();
    notify(&world, "first", "running", Some(&process.pid()), "X=");
    let waiter = Waiter::watching(&world, &["s", "--timeout", "60s"]);
    waiter.signal("-STOP");
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let (a, b) = (world.sessions().join(".a"), world.sessions().join(".b"));
    fs::write(&a, "").unwrap();
    for _ in 0..=queue.trim().parse::<usize>().unwrap() / 4 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    notify(&world, "s", "running", Some(&process.pid()), "X=");
    waiter.signal("-CONT");
    assert_eq!(waiter.json()["session_id"], "s");
}

#[test]
fn only_events_after_a_time_count() {
    let world = World::new();
    let process = Process::start();
    let pid = process.pid();
    notify(&world, "s", "running", Some(&pid), "X=");
    let ts = world.record_of("s")["ts_ms"].as_u64().unwrap();
    let since =
        |ms: u64| Waiter::start(&world, &["s", "--since", &ms.to_string(), "--timeout", "0"]);
    assert_eq!(since(ts - 1).json()["session_id"], "s");
    assert_eq!(since(ts).reason(), "timeout");
    let waiter = Waiter::watching(&world, &["s", "--since", &ts.to_string(), "--timeout", "60s"]);
    while std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64 <= ts {}
    notify(&world, "s", "running", Some(&pid), "X=");
    assert_eq!(waiter.json()["session_id"], "s");
    // A record that does not say the millisecond is taken for the earliest one.
    edit(&world, "s", json!({"ts_ms": null}));
    let ts = world.record_of("s")["ts"].as_u64().unwrap() * 1000;
    assert_eq!(since(ts).reason(), "timeout");
    assert_eq!(since(ts - 1).json()["session_id"], "s");
}

#[test]
fn an_id_of_several_is_listed() {
    let world = World::new();
    let (one, two) = (Process::start(), Process::start());
    notify(&world, "abc-1", "running", Some(&one.pid()), "X=");
    let waiter = Waiter::watching(&world, &["abc", "--until", "idle", "--timeout", "60s"]);
    notify(&world, "abc-2", "running", Some(&two.pid()), "X=");
    let ran = waiter.end();
    assert_eq!((ran.code, &ran.json()["reason"]), (Some(1), &json!("several")));
    assert!(ran.err.starts_with("tongs-agents: several sessions match 'abc': fleet:v1:"));
    drop(two);
    assert_eq!(Waiter::start(&world, &["abc"]).json()["session_id"], "abc-1");
}

#[test]
fn a_discovered_agent_is_no_reported_session() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let pid = agent.pid().to_string();
    world.agents(&["cleanup"]);
    let value = Waiter::start(&world, &["--pid", &pid, "--until", "discovered"]).json();
    assert_eq!(value["status"], "discovered");
    let waiter = Waiter::watching(&world, &["--pid", &pid, "--timeout", "60s"]);
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    assert_eq!(waiter.json()["session_id"], "s");
}

#[test]
fn wrong_command_lines_are_said_to_be() {
    let world = World::new();
    for args in [
        &[][..],
        &["--pid", "1", "--tree", "1"],
        &["s", "--launch-id", "L"],
        &["s", "t"],
        &["--launch-id", ""],
        &[""],
        &["s", "--until", "never"],
        &["s", "--until", "idle,never"],
        &["s", "--until", "idle,gone"],
        &["s", "--until", ""],
        &["s", "--timeout", "-1"],
        &["s", "--timeout", "soon"],
        &["s", "--since", "yesterday"],
        &["s", "--since", "1", "--until", "gone"],
        &["--pid", "x"],
    ] {
        let ran = world.agents(&[&["wait"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}

/// Runs a wait under strace, which may make a call fail or slow; `meanwhile`
/// runs once it is in the call `at`. Returns its answer and the calls.
fn traced(
    world: &World,
    spoil: &str,
    at: &str,
    args: &[&str],
    meanwhile: impl FnOnce(),
) -> (Ran, String) {
    let trace = world.path("trace");
    let _ = fs::remove_file(&trace);
    let mut command = Command::new("strace");
    world.bare(&mut command);
    command.arg("-o").arg(&trace);
    if !spoil.is_empty() {
        command.arg("-e").arg(format!("inject={spoil}"));
    }
    command.arg(world.path("bin/tongs-agents")).args(["wait", "--json"]).args(args);
    let waiter = Waiter::of(world, command);
    let text = || fs::read_to_string(&trace).unwrap_or_default();
    while !text().contains(at) {
        std::thread::yield_now();
    }
    meanwhile();
    let ran = waiter.end();
    (ran, text())
}

#[test]
fn who_sleeps_does_nothing() {
    let test = "who_sleeps_does_nothing";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let process = Process::start();
    notify(&world, "s", "running", Some(&process.pid()), "X=");
    for args in [
        &["--launch-id", "L"][..],
        &["--pid", &process.pid(), "--until", "idle"],
        &["s", "--until", "idle"],
    ] {
        let (ran, trace) =
            traced(&world, "", "poll(", &[args, &["--timeout", "1500ms"]].concat(), || {});
        assert_eq!(ran.json()["reason"], "timeout");
        // Two looks before the sleep and one after it, and nothing between.
        let slept = |l: &&str| l.contains("poll(") && !l.contains("tv_sec=0, tv_nsec=0}");
        let slept = trace.lines().filter(slept);
        assert_eq!(slept.count(), 1, "{trace}");
        let calls = trace.lines().count();
        println!("{args:?}: {calls} calls");
        assert!(calls < 250, "{calls}:\n{trace}");
    }
}

#[test]
fn without_inotify_or_pidfd_it_looks_again_and_again() {
    let test = "without_inotify_or_pidfd";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let process = Process::start();
    let pid = process.pid();
    for spoilt in [
        "inotify_init1:error=EMFILE",
        "inotify_add_watch:error=ENOSPC",
        "inotify_add_watch:error=EACCES:when=2+",
    ] {
        let (ran, trace) = traced(&world, spoilt, "poll(", &["s", "--timeout", "60s"], || {
            notify(&world, "s", "running", Some(&pid), "X=");
        });
        assert_eq!(ran.json()["session_id"], "s", "{spoilt}");
        assert_woken(&ran);
        assert!(trace.contains("(INJECTED)"), "{trace}");
        fs::remove_dir_all(world.state()).unwrap();
    }
    notify(&world, "s", "running", Some(&pid), "X=");
    let mut process = Some(process);
    let args = ["--pid", &pid, "--until", "idle", "--timeout", "60s"];
    let (ran, trace) =
        traced(&world, "pidfd_open:error=ENOSYS", "poll(", &args, || drop(process.take()));
    assert_eq!(ran.json()["reason"], "process-ended");
    assert!(trace.contains("(INJECTED)"), "{trace}");
}

#[test]
fn what_comes_just_before_it_watches_is_seen() {
    let test = "what_comes_just_before_it_watches";
    if !has_tool("strace", test) {
        return;
    }
    let process = Process::start();
    for call in ["inotify_init1", "inotify_add_watch"] {
        let world = World::new();
        notify(&world, "other", "running", None, "X=");
        let spoil = format!("{call}:delay_enter=1000000:when=1");
        let args = ["s", "--timeout", "60s"];
        let (ran, _) = traced(&world, &spoil, &format!("{call}("), &args, || {
            notify(&world, "s", "running", Some(&process.pid()), "X=");
        });
        assert_eq!(ran.json()["session_id"], "s", "{call}");
        assert_woken(&ran);
    }
    // A directory on the way to the store that is made at that moment.
    let world = World::new();
    let spoil = "inotify_add_watch:delay_exit=300000";
    let args = ["s", "--timeout", "60s"];
    let (ran, _) = traced(&world, spoil, "inotify_add_watch(", &args, || {
        fs::create_dir(world.path("home/.local")).unwrap();
        while !fs::read_to_string(world.path("trace")).unwrap().contains("poll(") {
            std::thread::yield_now();
        }
        notify(&world, "s", "running", Some(&process.pid()), "X=");
    });
    assert_eq!(ran.json()["session_id"], "s");
    assert_woken(&ran);
}
