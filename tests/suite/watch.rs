//! Being told of every change: the lines, the store under one's feet, commands,
//! notices; and nothing at all where nothing changes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::find::notify;
use crate::status::{assert_schema, now, put, record};
use crate::world::{Ran, World, claude, eventually, finish, has_tool, static_tongs};

/// `tongs-agents watch` under way, or what prints lines like it, and the lines that
/// it has printed.
pub struct Watcher {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(world: &World, args: &[&str]) -> Watcher {
        let mut command = world.command("tongs-agents");
        command.arg("watch").args(args);
        Watcher::of(command)
    }

    pub fn of(mut command: Command) -> Watcher {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, kept) = (child.stdout.take().unwrap(), lines.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                kept.lock().unwrap().push(line.unwrap());
            }
        });
        Watcher { child, lines, reader: Some(reader) }
    }

    /// Starts it with `--json` and returns once it is ready.
    fn ready(world: &World, args: &[&str]) -> Watcher {
        let watcher = Watcher::start(world, &[&["--json"], args].concat());
        watcher.until("ready", |event| event["event"] == "ready");
        watcher
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub fn events(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for a line of which this holds.
    #[track_caller]
    pub fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(what, || self.events().into_iter().find(&is))
    }

    /// Waits for this event of this session.
    #[track_caller]
    fn sees(&self, event: &str, session: &str) -> Value {
        self.until(&format!("{event} {session}: {:?}", self.lines()), |e| {
            e["event"] == event && e["session"]["session_id"] == session
        })
    }

    /// Waits for a session to have this status.
    #[track_caller]
    fn sees_status(&self, session: &str, status: &str) {
        self.until(&format!("{session} is {status}"), |e| {
            e["session"]["session_id"] == session && e["session"]["status"] == status
        });
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        self.reader.take().unwrap().join().unwrap();
        let mut err = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut err).unwrap();
        let code = self.child.wait().unwrap().code();
        Ran { code, out: self.lines().concat(), err }
    }

    /// Ends it and returns what it said on standard error.
    pub fn stop(self) -> String {
        self.signal("-TERM");
        self.end().err
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replaces a record as writers do.
pub fn replace(world: &World, record: &Value) {
    let digest = record["canonical_id"].as_str().unwrap().rsplit(':').next().unwrap();
    let temp = world.sessions().join(".new");
    fs::write(&temp, record.to_string()).unwrap();
    fs::rename(temp, world.sessions().join(format!("fleet-v1-{digest}.json"))).unwrap();
}

/// A program in the world's `bin`. A shell makes it, for a file that another
/// thread's child still has open for writing cannot be run.
pub fn script(world: &World, name: &str, text: &str) -> PathBuf {
    let path = world.path("bin").join(name);
    let mut sh = Command::new("sh");
    sh.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(&path);
    assert_eq!(finish(sh, format!("#!/bin/sh\n{text}\n").as_bytes()).code, Some(0));
    path
}

#[test]
fn all_are_told_of_first_and_then_every_change() {
    let world = World::new();
    for session in ["a", "b"] {
        notify(&world, session, "running", None, "X=");
    }
    let watcher = Watcher::ready(&world, &[]);
    let first = watcher.events();
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first[..2].iter().all(|event| event["event"] == "added"));
    assert_eq!(first[2], json!({"event": "ready"}));
    let mut session = watcher.sees("added", "a")["session"].clone();
    let mut listed = world.session("a").unwrap();
    for object in [&mut session, &mut listed] {
        object.as_object_mut().unwrap().remove("age_seconds").unwrap();
    }
    assert_eq!(session, listed);

    notify(&world, "c", "idle", None, "X=");
    watcher.sees("added", "c");
    notify(&world, "a", "waiting", None, "X=");
    assert_eq!(watcher.sees("changed", "a")["session"]["status"], "waiting");
    fs::remove_file(&world.record_files()[0]).unwrap();
    let removed = watcher.until("a removal", |event| event["event"] == "removed");
    for id in ["canonical_id", "session_id", "harness_id", "short_id"] {
        assert!(!removed["session"][id].as_str().unwrap().is_empty(), "{removed}");
    }
    // What is written anew and is the same is not told of again.
    let same = record("same", json!({}));
    replace(&world, &same);
    watcher.sees("added", "same");
    for _ in 0..5 {
        replace(&world, &same);
    }
    notify(&world, "last", "running", None, "X=");
    watcher.sees("added", "last");
    let events = watcher.events();
    let of = |id: &'static str| events.iter().filter(move |e| e["session"]["session_id"] == id);
    assert_eq!(of("same").count(), 1, "{events:?}");
    assert_eq!(of("c").count(), 1 + usize::from(removed["session"]["session_id"] == "c"));
    for event in &events {
        assert_schema(&world, "watch", event);
    }
    assert_eq!(watcher.stop(), "");
}

#[test]
fn people_get_a_line_and_hostile_text_stays_on_it() {
    let world = World::new();
    let evil = "\u{1b}]0;x\u{7}\n\r\u{202e}#(id) \u{9b}31m";
    let hostile = json!({"repo": evil, "detail": evil, "branch": "b", "status": "waiting"});
    put(&world, &record("s", hostile), false);
    let watcher = Watcher::start(&world, &[]);
    eventually("ready", || watcher.lines().contains(&"ready".to_string()).then_some(()));
    notify(&world, "t", "running", None, "X=");
    eventually("two lines", || (watcher.lines().len() >= 3).then_some(()));
    let lines = watcher.lines();
    assert!(lines[0].starts_with("added  waiting  claude  \\u{1b}]0;x"), "{lines:?}");
    assert!(lines[2].starts_with("added  running  other  "), "{lines:?}");
    let clean = |line: &String| !line.chars().any(tongs::cli::is_hidden);
    assert!(lines.iter().all(clean), "{lines:?}");
    watcher.stop();

    let watcher = Watcher::ready(&world, &[]);
    assert!(watcher.lines().iter().all(clean));
    assert_eq!(watcher.sees("added", "s")["session"]["detail"], evil);
}

#[test]
fn the_store_may_be_made_wiped_and_replaced() {
    let world = World::new();
    let watcher = Watcher::ready(&world, &[]);
    assert!(!world.path("home/.local").exists());
    notify(&world, "one", "running", None, "X=");
    watcher.sees("added", "one");
    fs::remove_dir_all(world.sessions()).unwrap();
    watcher.sees("removed", "one");
    notify(&world, "two", "running", None, "X=");
    watcher.sees("added", "two");
    // Another one in its place, and the old one back.
    fs::rename(world.state(), world.path("home/before")).unwrap();
    watcher.sees("removed", "two");
    notify(&world, "three", "running", None, "X=");
    watcher.sees("added", "three");
    fs::rename(world.state(), world.path("home/after")).unwrap();
    fs::rename(world.path("home/before"), world.state()).unwrap();
    watcher.sees("removed", "three");
    eventually("two is back", || {
        let added = |e: &Value| e["event"] == "added" && e["session"]["session_id"] == "two";
        (watcher.events().into_iter().filter(added).count() == 2).then_some(())
    });
    fs::remove_dir_all(world.path("home/.local")).unwrap();
    notify(&world, "four", "running", None, "X=");
    watcher.sees("added", "four");
    assert_eq!(watcher.stop(), "");
}

#[test]
fn a_store_that_cannot_be_used_is_said_at_once() {
    let world = World::new();
    notify(&world, "s", "running", None, "X=");
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = Watcher::start(&world, &["--json"]).end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("is open to others"), "{ran:?}");
}

#[test]
fn a_burst_ends_in_the_right_state() {
    let world = World::new();
    put(&world, &record("s", json!({"detail": "begin"})), false);
    let watcher = Watcher::ready(&world, &[]);
    let began = std::time::Instant::now();
    for n in 0..1000 {
        replace(&world, &record("s", json!({"detail": format!("n{n}")})));
    }
    let ms = began.elapsed().as_millis() as usize;
    watcher.until("the last state", |event| event["session"]["detail"] == "n999");
    let changes = watcher.events().iter().filter(|e| e["event"] == "changed").count();
    assert!(changes <= ms / 50 + 2, "{changes} changes in {ms} ms");
    let events = watcher.events();
    assert!(events.iter().all(|e| e["event"] != "removed"), "{events:?}");
}

#[test]
fn more_events_than_the_queue_holds_lose_nothing() {
    let world = World::new();
    notify(&world, "first", "running", None, "X=");
    let watcher = Watcher::ready(&world, &[]);
    watcher.signal("-STOP");
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let (a, b) = (world.sessions().join(".a"), world.sessions().join(".b"));
    fs::write(&a, "").unwrap();
    for _ in 0..=queue.trim().parse::<usize>().unwrap() / 4 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    notify(&world, "first", "waiting", None, "X=");
    watcher.signal("-CONT");
    watcher.sees_status("first", "waiting");
    // It goes on to watch.
    notify(&world, "first", "idle", None, "X=");
    watcher.sees_status("first", "idle");
}

#[test]
fn a_reader_that_goes_away_ends_it_at_once() {
    let world = World::new();
    notify(&world, "s", "running", None, "X=");
    for args in [&["watch"][..], &["watch", "--json"]] {
        let mut command = world.command("tongs-agents");
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            out.read_line(&mut line).unwrap();
        }
        // Nothing is printed any more, so that only the closed pipe can tell.
        drop(out);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let mut err = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut err).unwrap();
        assert_eq!(err, "");
    }
    let mut command = Command::new("sh");
    world.bare(&mut command);
    command.args(["-c", "tongs-agents watch >/dev/full"]);
    assert_eq!(finish(command, b"").code, Some(74));
}

#[test]
fn a_signal_ends_it() {
    let world = World::new();
    for signal in ["-TERM", "-INT"] {
        let watcher = Watcher::ready(&world, &["--notify"]);
        watcher.signal(signal);
        let ran = watcher.end();
        assert_eq!((ran.code, ran.err.as_str()), (None, ""));
    }
}

#[test]
fn what_time_alone_changes_is_told_of() {
    let world = World::new();
    put(&world, &record("rests", json!({"status": "idle", "ts": now() - 119})), false);
    put(&world, &record("works", json!({"ts": now() - 899})), false);
    put(&world, &record("later", json!({"status": "waiting"})), false);
    world.agents(&["snooze", "later", "1500ms"]).silent();
    let watcher = Watcher::ready(&world, &[]);
    assert_eq!(watcher.sees("added", "rests")["session"]["needs_attention"], false);
    assert_eq!(watcher.sees("added", "works")["session"]["quiet"], false);
    assert_eq!(watcher.sees("added", "later")["session"]["seen"], true);
    assert_eq!(watcher.sees("changed", "rests")["session"]["needs_attention"], true);
    assert_eq!(watcher.sees("changed", "works")["session"]["quiet"], true);
    assert_eq!(watcher.sees("changed", "later")["session"]["seen"], false);
    assert_eq!(watcher.events().len(), 7);
}

#[test]
fn it_ends_when_somebody_asks() {
    let world = World::new();
    notify(&world, "s", "idle", None, "X=");
    let ran = Watcher::start(&world, &["--until-attention", "--timeout", "300ms"]).end();
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let watcher = Watcher::ready(&world, &["--until-attention"]);
    notify(&world, "s", "running", None, "X=");
    watcher.sees_status("s", "running");
    notify(&world, "s", "waiting", None, "X=");
    watcher.sees_status("s", "waiting");
    assert_eq!(watcher.end().code, Some(0));
    // At once, where one asks already; not where that is put off.
    assert_eq!(Watcher::start(&world, &["--until-attention"]).end().code, Some(0));
    world.agents(&["snooze", "s", "1h"]).silent();
    let args = ["--until-attention", "--timeout", "300ms"];
    assert_eq!(Watcher::start(&world, &args).end().code, Some(1));
    let watcher = Watcher::ready(&world, &["--until-attention"]);
    world.agents(&["snooze", "s", "0"]).silent();
    assert_eq!(watcher.end().code, Some(0));
    // An old rest asks, unless it was seen.
    put(&world, &record("old", json!({"status": "idle", "ts": now() - 500})), false);
    notify(&world, "s", "running", None, "X=");
    assert_eq!(Watcher::start(&world, &args).end().code, Some(0));
    world.agents(&["ack", "old"]).silent();
    assert_eq!(Watcher::start(&world, &args).end().code, Some(1));
}

#[test]
fn a_command_gets_every_change_in_order() {
    let world = World::new();
    notify(&world, "before", "running", None, "X=");
    let log = world.path("log");
    // A second one at the same time could not make the directory.
    let busy = world.path("busy");
    let line = format!(
        "mkdir '{0}' || echo two >&2; cat >>'{1}'; echo said; rmdir '{0}'",
        busy.display(),
        log.display()
    );
    let watcher = Watcher::ready(&world, &["--exec", "sh", "-c", &line]);
    for (n, status) in ["running", "idle", "waiting", "error"].into_iter().enumerate() {
        notify(&world, &format!("s{n}"), status, None, "X=");
        watcher.sees("added", &format!("s{n}"));
    }
    let told = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    eventually("four lines", || (told().len() == 4).then_some(()));
    // The same objects, in the same order, and none from before.
    assert_eq!(told(), watcher.events()[2..]);
    let err = watcher.stop();
    assert!(err.lines().all(|line| line == "said") && err.contains("said"), "{err}");
}

#[test]
fn a_command_that_fails_is_said_and_it_goes_on() {
    let world = World::new();
    let long = record("long", json!({"x": "y".repeat(60_000)}));
    let exec = |args: &[&str]| {
        let watcher = Watcher::ready(&world, args);
        // More than the command reads and a pipe takes.
        replace(&world, &long);
        watcher.sees("added", "long");
        notify(&world, "s", "running", None, "X=");
        watcher.sees("added", "s");
        notify(&world, "s", "idle", None, "X=");
        watcher.sees_status("s", "idle");
        fs::remove_dir_all(world.state()).unwrap();
        watcher.sees("removed", "s");
        watcher.stop()
    };
    fs::create_dir_all(world.sessions()).unwrap();
    for dir in [world.state(), world.sessions()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let err = exec(&["--exec", "--", "sh", "-c", "exit 3"]);
    assert!(err.lines().count() >= 3, "{err}");
    assert!(err.lines().all(|line| line == "tongs-agents: 'sh' ended with 3"), "{err}");
    fs::create_dir_all(world.sessions()).unwrap();
    for dir in [world.state(), world.sessions()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let err = exec(&["--exec", "no\u{1b}such"]);
    let want = "tongs-agents: cannot run 'no\\u{1b}such': no such file or directory";
    assert!(err.lines().count() >= 3 && err.lines().all(|line| line == want), "{err}");
}

#[test]
fn a_command_that_hangs_is_ended_with_what_it_started() {
    let world = World::new();
    let pid = world.path("pid");
    let line =
        format!("[ ! -e '{0}' ] || exit 0; sleep 1000 2>&- & echo $! >'{0}'; wait", pid.display());
    let watcher = Watcher::ready(&world, &["--exec", "sh", "-c", &line]);
    notify(&world, "s", "running", None, "X=");
    watcher.sees("added", "s");
    let pid = eventually("the command's child", || {
        fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'))
    });
    let stat = format!("/proc/{}/stat", pid.trim());
    eventually("its end", || {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        (text.is_empty() || text.contains(") Z ")).then_some(())
    });
    notify(&world, "s", "waiting", None, "X=");
    watcher.sees_status("s", "waiting");
    let err = watcher.stop();
    assert!(err.contains("'sh' was ended by a signal or took over 10 s"), "{err}");
}

#[test]
fn a_command_gets_no_more_time_than_is_left() {
    let world = World::new();
    put(&world, &record("s", json!({"status": "running"})), false);
    let begun = std::time::Instant::now();
    let watcher = Watcher::ready(&world, &["--timeout", "2s", "--exec", "sleep", "60"]);
    put(&world, &record("n", json!({})), false);
    watcher.sees("added", "n");
    let ran = watcher.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the time that was left"), "{ran:?}");
    assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
}

#[test]
fn wrong_command_lines_are_said_to_be() {
    let world = World::new();
    for args in [
        &["word"][..],
        &["--exec"],
        &["--exec", "--"],
        &["--timeout", "x"],
        &["--json-version", "2"],
        &["--no-such"],
    ] {
        let ran = world.agents(&[&["watch"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}

/// A world with a `notify-send` that notes its arguments, one a line, with `--`
/// before the title and the text.
struct Desktop {
    world: World,
}

impl Desktop {
    fn new() -> Desktop {
        let world = World::new();
        let log = world.path("notices");
        script(
            &world,
            "notify-send",
            &format!("{{ printf '%s\\n' \"$@\"; echo end; }} >>'{}'", log.display()),
        );
        Desktop { world }
    }

    fn watch(&self) -> Watcher {
        let mut command = self.world.command("tongs-agents");
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
        command.args(["watch", "--json", "--notify"]);
        let watcher = Watcher::of(command);
        watcher.until("ready", |event| event["event"] == "ready");
        watcher
    }

    /// The notices so far: the title, then the text.
    fn notices(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.path("notices")).unwrap_or_default();
        let whole = text.rfind("end\n").map_or("", |at| &text[..at]);
        let notices = whole.split("end\n").filter(|notice| !notice.is_empty());
        notices.map(|n| n.strip_prefix("--app-name=tongs-agents\n--\n").unwrap().into()).collect()
    }

    #[track_caller]
    fn until(&self, count: usize) -> Vec<String> {
        eventually(&format!("{count} notices: {:?}", self.notices()), || {
            Some(self.notices()).filter(|notices| notices.len() >= count)
        })
    }
}

#[test]
fn a_notice_comes_once_for_each_wait() {
    let desktop = Desktop::new();
    let world = &desktop.world;
    let mut waiting = record("s", json!({"status": "running", "repo": "r<b>", "status_ms": 1}));
    put(world, &waiting, false);
    let watcher = desktop.watch();
    let mut to = |status: &str, ms: u64, detail: &str| {
        waiting["status"] = status.into();
        waiting["status_ms"] = ms.into();
        waiting["detail"] = detail.into();
        replace(world, &waiting);
    };
    to("waiting", 2, "<i>a</i> & \u{1b}[31mb");
    assert_eq!(
        desktop.until(1),
        ["claude waits for you: r<b>\n&lt;i&gt;a&lt;/i&gt; &amp; \\u{1b}[31mb\n"]
    );
    // Another word of the same wait, and a new wait.
    to("waiting", 2, "more");
    watcher.until("the change", |event| event["session"]["detail"] == "more");
    to("waiting", 3, "again");
    assert_eq!(desktop.until(2)[1], "claude waits for you: r<b>\nagain\n");
    to("error", 4, "turn failed");
    assert_eq!(desktop.until(3)[2], "claude has failed: r<b>\nturn failed\n");
    // A rest once it is old, and not where it was seen.
    waiting["ts"] = (now() - 500).into();
    waiting["status"] = "idle".into();
    waiting["status_ms"] = 5.into();
    replace(world, &waiting);
    assert_eq!(desktop.until(4)[3], "claude is done: r<b>\nturn failed\n");
    world.agents(&["ack", "s"]).silent();
    watcher.until("the mark", |event| event["session"]["seen"] == true);
    // What is put off comes back.
    world.agents(&["snooze", "s", "300ms"]).silent();
    assert_eq!(desktop.until(5)[4], "claude is done: r<b>\nturn failed\n");
    assert_eq!(watcher.stop(), "");
    assert_eq!(desktop.notices().len(), 5);
}

#[test]
fn a_permission_that_is_answered_at_once_is_none_of_the_users() {
    let desktop = Desktop::new();
    let mut agent = desktop.world.harness("claude");
    let mut event = |name: &str, more: &str| {
        agent.hook(&["claude", name], &claude("s", more)).silent();
    };
    event("UserPromptSubmit", "");
    let watcher = desktop.watch();
    event("PermissionRequest", r#","tool_name":"Bash""#);
    watcher.sees_status("s", "waiting");
    event("PostToolUse", r#","tool_name":"Bash""#);
    watcher.until("the answer", |e| e["session"]["detail"] == "working");
    event("PermissionRequest", r#","tool_name":"Edit""#);
    let notices = desktop.until(1);
    assert!(notices[0].starts_with("claude needs a permission"), "{notices:?}");
    assert!(notices[0].ends_with("permission needed: Edit\n"), "{notices:?}");
    event("PostToolUse", r#","tool_name":"Edit""#);
    // A question is for nobody but the user.
    let began = std::time::Instant::now();
    event("PreToolUse", r#","tool_name":"AskUserQuestion""#);
    let notices = desktop.until(2);
    assert!(notices[1].starts_with("claude asks a question"), "{notices:?}");
    assert!(began.elapsed().as_millis() < 4000);
    assert_eq!((watcher.stop().as_str(), desktop.notices().len()), ("", 2));
}

#[test]
fn a_store_that_was_away_brings_no_notice_again() {
    let desktop = Desktop::new();
    let world = &desktop.world;
    put(world, &record("s", json!({"status": "running"})), false);
    let watcher = desktop.watch();
    replace(world, &record("s", json!({"status": "waiting", "status_ms": 5, "detail": "one"})));
    desktop.until(1);
    let count = |event: &str| watcher.events().iter().filter(|e| e["event"] == event).count();
    let next = |event: &str, before: usize| {
        eventually(event, || (count(event) > before).then_some(()));
    };
    for _ in 0..3 {
        let (removed, added) = (count("removed"), count("added"));
        fs::rename(world.state(), world.path("away")).unwrap();
        next("removed", removed);
        fs::rename(world.path("away"), world.state()).unwrap();
        next("added", added);
    }
    replace(world, &record("other", json!({"status": "waiting", "detail": "two"})));
    let notices = desktop.until(2);
    assert_eq!(notices.iter().filter(|notice| notice.contains("one")).count(), 1, "{notices:?}");
    // A newer wait is told of.
    replace(world, &record("s", json!({"status": "waiting", "status_ms": 6, "detail": "three"})));
    assert!(desktop.until(3)[2].contains("three"));
}

#[test]
fn a_permission_that_was_seen_while_it_was_held_back_is_not_told_of() {
    let desktop = Desktop::new();
    let world = &desktop.world;
    put(world, &record("s", json!({"status": "running"})), false);
    let watcher = desktop.watch();
    let asks = |id: &str, waiting_for: &str| {
        let fields =
            json!({"status": "waiting", "waiting_for": waiting_for, "status_ms": 9, "detail": id});
        replace(world, &record(id, fields));
    };
    asks("s", "permission");
    watcher.sees_status("s", "waiting");
    world.agents(&["ack", "s"]).silent();
    asks("later", "permission");
    let notices = desktop.until(1);
    assert!(notices.len() == 1 && notices[0].contains("later"), "{notices:?}");
}

#[test]
fn a_notifier_that_hangs_holds_up_no_line() {
    let desktop = Desktop::new();
    let world = &desktop.world;
    let log = world.path("notices");
    let text = format!("echo begun >>'{}'; echo noise >&2; exec sleep 60", log.display());
    script(world, "notify-send", &text);
    put(world, &record("s", json!({"status": "running"})), false);
    let watcher = desktop.watch();
    replace(world, &record("s", json!({"status": "waiting"})));
    eventually("it hangs", || fs::read_to_string(&log).ok().filter(|text| !text.is_empty()));
    let begun = std::time::Instant::now();
    put(world, &record("t", json!({"status": "running"})), false);
    watcher.sees("added", "t");
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
    let err = watcher.stop();
    assert!(!err.contains("noise"), "{err}");
}

#[test]
fn many_at_one_moment_are_one_notice() {
    let desktop = Desktop::new();
    for n in 0..7 {
        let status = if n < 4 { "waiting" } else { "error" };
        put(&desktop.world, &record(&format!("s{n}"), json!({"status": status})), false);
    }
    let watcher = desktop.watch();
    let notices = desktop.until(1);
    assert!(notices[0].starts_with("7 agents ask for you: 4 waiting, 3 error\n"), "{notices:?}");
    assert_eq!(notices[0].lines().count(), 7, "{notices:?}");
    assert!(notices[0].ends_with("and 2 more\n"));
    // And the next one is a notice of its own.
    replace(&desktop.world, &record("next", json!({"status": "waiting"})));
    assert!(desktop.until(2)[1].starts_with("claude waits for you"));
    assert_eq!(watcher.stop(), "");
}

#[test]
fn a_notifier_that_fails_is_said_once() {
    let desktop = Desktop::new();
    let world = &desktop.world;
    script(world, "notify-send", "exit 5");
    let watch = |bus: bool| {
        let mut command = Command::new("setsid");
        world.bare(&mut command);
        command.arg("-w").arg(world.path("bin/tongs-agents")).args(["watch", "--json", "--notify"]);
        if bus {
            command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
        }
        command.args(["--timeout", "2s"]);
        Watcher::of(command)
    };
    if !has_tool("setsid", "a_notifier_that_fails_is_said_once") {
        return;
    }
    for (bus, why) in [
        (true, "'notify-send' ended with 5"),
        (false, "there is no notify-send with a session bus, and no terminal"),
    ] {
        put(world, &record("a", json!({"status": "running"})), false);
        put(world, &record("b", json!({"status": "running"})), false);
        let watcher = watch(bus);
        watcher.until("ready", |event| event["event"] == "ready");
        replace(world, &record("a", json!({"status": "waiting"})));
        watcher.sees_status("a", "waiting");
        replace(world, &record("b", json!({"status": "waiting"})));
        watcher.sees_status("b", "waiting");
        let ran = watcher.end();
        assert_eq!(ran.code, Some(1));
        assert_eq!(ran.err, format!("tongs-agents: cannot show notices: {why}\n"));
    }
}

#[test]
fn without_a_desktop_the_terminal_is_told() {
    let test = "without_a_desktop_the_terminal_is_told";
    if !has_tool("script", test) {
        return;
    }
    let world = World::new();
    put(&world, &record("s", json!({"status": "waiting", "detail": "a;b\u{7}"})), false);
    for (name, value, want) in [
        ("TERM_PROGRAM", "WezTerm", "\x1b]9;claude waits for you: r: a,b\\u{7}\x1b\\"),
        ("TERM", "foot", "\x1b]777;notify;claude waits for you: r;a,b\\u{7}\x1b\\"),
        ("TERM", "xterm", "\x07"),
    ] {
        let mut command = Command::new("script");
        world.bare(&mut command);
        command.env(name, value).args(["-qec"]);
        command.arg("tongs-agents watch --notify --timeout 100ms >/dev/null").arg("/dev/null");
        let ran = finish(command, b"");
        assert!(ran.out.contains(want), "{ran:?}");
    }
}

/// Runs a watch under strace, which may make a call fail or slow.
fn traced(world: &World, spoil: &str, args: &[&str]) -> (Watcher, PathBuf) {
    let trace = world.path("trace");
    let _ = fs::remove_file(&trace);
    let mut command = Command::new("strace");
    world.bare(&mut command);
    command.arg("-o").arg(&trace);
    if !spoil.is_empty() {
        command.arg("-e").arg(format!("inject={spoil}"));
    }
    command.arg(world.path("bin/tongs-agents")).args(["watch", "--json"]).args(args);
    (Watcher::of(command), trace)
}

#[test]
fn who_sleeps_does_nothing() {
    if !has_tool("strace", "who_sleeps_does_nothing") {
        return;
    }
    let world = World::new();
    for (session, status) in [("a", "running"), ("b", "idle"), ("c", "waiting")] {
        notify(&world, session, status, None, "X=");
    }
    let (watcher, trace) = traced(&world, "", &["--timeout", "1500ms"]);
    assert_eq!(watcher.end().code, Some(1));
    let trace = fs::read_to_string(trace).unwrap();
    let slept =
        trace.lines().filter(|l| l.contains("poll(") && !l.contains("tv_sec=0, tv_nsec=0}"));
    // One sleep, and one look before and after it.
    assert_eq!(slept.count(), 1, "{trace}");
    let looks = trace.lines().filter(|l| l.contains("getdents64(") && !l.contains(" = 0"));
    assert_eq!(looks.count(), 2, "{trace}");
}

#[test]
fn a_session_that_is_put_off_again_costs_nothing_when_the_first_time_is_over() {
    if !has_tool("strace", "a_session_that_is_put_off_again") {
        return;
    }
    let world = World::new();
    put(&world, &record("s", json!({"status": "waiting"})), false);
    world.agents(&["snooze", "s", "1500ms"]).silent();
    let (watcher, trace) = traced(&world, "", &["--timeout", "3s"]);
    watcher.until("ready", |event| event["event"] == "ready");
    world.agents(&["snooze", "s", "1h"]).silent();
    assert_eq!(watcher.end().code, Some(1));
    let trace = fs::read_to_string(trace).unwrap();
    let looks = trace.lines().filter(|l| l.contains("getdents64(") && !l.contains(" = 0"));
    // The first, one or two for the second mark, and the last.
    assert!(looks.count() <= 5, "{trace}");
}

#[test]
fn without_inotify_it_looks_again_and_again() {
    if !has_tool("strace", "without_inotify_it_looks_again_and_again") {
        return;
    }
    for spoilt in ["inotify_init1:error=EMFILE", "inotify_add_watch:error=ENOSPC"] {
        let world = World::new();
        let (watcher, trace) = traced(&world, spoilt, &["--timeout", "60s"]);
        watcher.until("ready", |event| event["event"] == "ready");
        notify(&world, "s", "running", None, "X=");
        watcher.sees("added", "s");
        assert!(fs::read_to_string(trace).unwrap().contains("(INJECTED)"));
    }
}

#[test]
fn what_comes_just_before_it_watches_is_seen() {
    if !has_tool("strace", "what_comes_just_before_it_watches") {
        return;
    }
    for call in ["inotify_init1", "inotify_add_watch", "getdents64"] {
        let world = World::new();
        notify(&world, "other", "running", None, "X=");
        let spoil = format!("{call}:delay_enter=1000000:when=1");
        let (watcher, trace) = traced(&world, &spoil, &["--timeout", "60s"]);
        eventually(call, || {
            let text = fs::read_to_string(&trace).unwrap_or_default();
            text.contains(&format!("{call}(")).then_some(())
        });
        notify(&world, "s", "running", None, "X=");
        watcher.sees("added", "s");
    }
}

#[test]
fn a_better_record_takes_the_place_of_another() {
    let world = World::new();
    let watcher = Watcher::ready(&world, &[]);
    notify(&world, "none", "running", None, "X=");
    put(
        &world,
        &record(
            "s",
            json!({"instance_id": "unresolved", "pid": "", "process_start": "",
        "process_identity": "unresolved"}),
        ),
        false,
    );
    let worse = watcher.sees("added", "s");
    replace(&world, &record("s", json!({})));
    let gone = watcher.sees("removed", "s");
    assert_eq!(gone["session"]["canonical_id"], worse["session"]["canonical_id"]);
    let added = |e: &Value| e["event"] == "added" && e["session"]["session_id"] == "s";
    let events = watcher.events();
    let added: Vec<&Value> = events.iter().filter(|e| added(e)).collect();
    assert_eq!(added.len(), 2, "{events:?}");
}

#[test]
fn the_units_are_installed_and_are_what_systemd_takes() {
    let test = "the_units_are_installed_and_are_what_systemd_takes";
    if static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let world = World::new();
    let prefix = world.path("usr");
    let make = |target: &str| {
        let mut make = Command::new("make");
        make.args(["-s", "-C", env!("CARGO_MANIFEST_DIR"), target]);
        make.arg(format!("prefix={}", prefix.display()));
        let ran = finish(make, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    make("install");
    let units = [
        "tongs-notify.service",
        "tongs-cleanup.service",
        "tongs-bridge@.service",
        "tongs-cleanup.timer",
    ]
    .map(|unit| prefix.join("lib/systemd/user").join(unit));
    let program = prefix.join("bin/tongs-agents").display().to_string();
    for unit in &units[..3] {
        assert!(fs::read_to_string(unit).unwrap().contains(&format!("ExecStart={program} ")));
    }
    for plist in ["tongs.notify.plist", "tongs.cleanup.plist"] {
        let text = fs::read_to_string(prefix.join("share/tongs/launchd").join(plist)).unwrap();
        assert!(text.contains(&format!("<string>{program}</string>")), "{text}");
    }
    let share = prefix.join("share/tongs/examples");
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/examples")).unwrap() {
        let name = entry.unwrap().file_name();
        let text = fs::read_to_string(share.join(&name)).unwrap();
        assert!(!text.contains("/usr/local"), "{text}");
        let mode = fs::metadata(share.join(&name)).unwrap().permissions().mode();
        let script = text.starts_with("#!");
        assert_eq!(mode & 0o777, if script { 0o755 } else { 0o644 }, "{name:?}");
    }
    let snippet = fs::read_to_string(share.join("tmux.conf")).unwrap();
    assert!(snippet.contains(&format!(" '{}'\n", share.join("pick-session.sh").display())));
    if has_tool("systemd-analyze", test) {
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", "--user"]).args(&units);
        verify.env("XDG_RUNTIME_DIR", world.path("home"));
        let ran = finish(verify, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    }
    for (from, to) in [
        ("bash-completion/completions/tongs-hook", "tongs.bash"),
        ("zsh/site-functions/_tongs", "_tongs"),
        ("fish/vendor_completions.d/tongs-agents.fish", "tongs.fish"),
    ] {
        let installed = fs::read(prefix.join("share").join(from)).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(installed == fs::read(root.join("packaging/completions").join(to)).unwrap());
    }
    make("uninstall");
    let mut find = Command::new("find");
    find.arg(&prefix).args(["!", "-type", "d"]);
    assert_eq!(finish(find, b"").out, "");
}

#[test]
fn the_example_pushes_the_beginning_of_a_wait() {
    let test = "the_example_pushes_the_beginning_of_a_wait";
    if !has_tool("jq", test) {
        return;
    }
    let world = World::new();
    let example =
        concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/examples/push-to-phone.sh").to_string();
    let log = world.path("pushed");
    script(
        &world,
        "curl",
        &format!("{{ printf '%s\\n' \"$@\"; cat; echo; }} >>'{}'", log.display()),
    );
    let watcher = Watcher::ready(&world, &["--exec", &example]);
    notify(&world, "s", "running", None, "X=");
    let args = ["--harness", "other", "--session", "s", "--status", "waiting", "--detail"];
    let say = |detail: &str| {
        world.agents(&[&["notify"], &args[..], &[detail]].concat()).silent();
        watcher.until(detail, |event| event["session"]["detail"] == detail);
    };
    say("which $(one)?");
    say("still");
    notify(&world, "s", "idle", None, "X=");
    watcher.sees_status("s", "idle");
    let text = eventually("a push", || {
        fs::read_to_string(&log).ok().filter(|text| text.contains("which"))
    });
    assert!(text.contains("Title: other waiting: project\n"), "{text}");
    assert!(text.contains("\nhttps://push.example/my-topic\nwhich $(one)?\n"), "{text}");
    assert_eq!(watcher.stop(), "");
    assert!(!fs::read_to_string(&log).unwrap().contains("still"));
}
