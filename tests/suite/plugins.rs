//! The plugins, each in a program that plays its harness, with the machine's own
//! node, or with what TONGS_TEST_NODE names, such as bun, which several of the
//! harnesses are made of. What counts is the record that comes of it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tongs::harness;
use tongs::install::plugins::{self, Plugin};

use crate::world::{World, eventually, finish, has_tool};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/plugins");

/// The program that runs the players.
fn node() -> OsString {
    std::env::var_os("TONGS_TEST_NODE").unwrap_or_else(|| "node".into())
}

/// A process of a harness's name that has the plugin loaded.
struct Play<'w> {
    world: &'w World,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// Everything that a player takes.
#[derive(Clone)]
struct Setup {
    which: Plugin,
    kind: &'static str,
    hook: PathBuf,
    env: Vec<(&'static str, &'static str)>,
}

impl Setup {
    /// A player of this kind with the real hook; `None` without node.
    fn new(world: &World, test: &str, which: Plugin, kind: &'static str) -> Option<Setup> {
        (node() != "node" || has_tool("node", test)).then(|| Setup {
            which,
            kind,
            hook: world.path("bin/tongs-hook"),
            env: Vec::new(),
        })
    }

    fn with_hook(mut self, hook: PathBuf) -> Setup {
        self.hook = hook;
        self
    }

    fn with_env(mut self, name: &'static str, value: &'static str) -> Setup {
        self.env.push((name, value));
        self
    }

    /// Starts the process; the plugin is not loaded yet.
    fn start<'w>(&self, world: &'w World) -> Play<'w> {
        let name = match self.which {
            Plugin::OpenCode => "opencode",
            Plugin::Pi => "pi",
            Plugin::Amp => "amp",
            Plugin::Cline(_) => panic!("not of this kind"),
        };
        let program = world.path("bin").join(name);
        if !program.exists() {
            fs::copy(format!("{FIXTURES}/harness.cjs"), &program).unwrap();
        }
        let plugin = world.path("plugin.mjs");
        fs::write(&plugin, plugins::text(self.which, self.hook.to_str().unwrap())).unwrap();
        let mut command = Command::new(node());
        world.bare(&mut command);
        command.args([&program, Path::new(&format!("{FIXTURES}/play.mjs"))]);
        command.arg(self.kind).arg(&plugin).envs(self.env.iter().copied());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Play { world, child, stdin, stdout }
    }

    /// Starts the process and loads the plugin for the project.
    fn load<'w>(&self, world: &'w World) -> Play<'w> {
        let mut play = self.start(world);
        play.load();
        play
    }
}

impl Play<'_> {
    fn write(&mut self, line: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Does one thing. The answer comes when the plugin's handlers are back, and
    /// it is all that is printed.
    #[track_caller]
    fn act(&mut self, line: Value) {
        self.write(&line);
        assert_eq!(self.answer(), "ok", "{line}");
    }

    fn load(&mut self) {
        let directory = self.world.path("project");
        self.act(json!({"do": "load", "directory": directory}));
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Ends as the harness does, and asserts that nothing was printed.
    #[track_caller]
    fn exit(mut self, code: i32) {
        self.write(&json!({"do": "exit", "code": code}));
        self.ended(Some(code));
    }

    /// Ends because there is nothing left to do.
    #[track_caller]
    fn close(mut self) {
        self.stdin = None;
        self.ended(Some(0));
    }

    #[track_caller]
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.ended(None);
    }

    #[track_caller]
    fn ended(&mut self, code: Option<i32>) {
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!((status.code(), out.as_str(), err.as_str()), (code, "", ""));
    }
}

impl Drop for Play<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The stored record of a session, if there is one.
fn record(world: &World, session: &str) -> Option<Value> {
    world
        .record_files()
        .iter()
        .filter_map(|file| serde_json::from_slice::<Value>(&fs::read(file).ok()?).ok())
        .find(|record| record["session_id"] == session)
}

/// Waits until a session's record has these values.
#[track_caller]
fn until(world: &World, session: &str, want: Value) -> Value {
    let mut last = Value::Null;
    let what = format!("{session} never had {want}");
    eventually(&what, || {
        last = record(world, session)?;
        let has = |(key, value): (&String, &Value)| last[key] == *value;
        want.as_object().unwrap().iter().all(has).then(|| last.clone())
    })
}

/// Makes a program of this text, as `World::stub` does.
fn script(world: &World, name: &str, body: &str) -> PathBuf {
    let (source, path) = (world.path(&format!("{name}.source")), world.path(name));
    fs::write(&source, format!("#!/bin/sh\n{body}")).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg(&source).arg(&path).status().unwrap().success());
    path
}

/// The hook in a directory of this name.
fn installed(world: &World, directory: &str) -> PathBuf {
    fs::create_dir(world.path(directory)).unwrap();
    let hook = world.path(directory).join("tongs-hook");
    symlink(world.path("bin/tongs-hook"), &hook).unwrap();
    hook
}

/// A hook that writes down the event and the payload before it does its work.
fn recorder(world: &World, before: &str) -> PathBuf {
    let log = world.path("log");
    let hook = world.path("bin/tongs-hook");
    script(
        world,
        "recorder",
        &format!(
            "payload=$(cat)\nprintf '%s %s %s\\n' \"$1\" \"$2\" \"$payload\" >>'{}'\n{before}\n\
             printf '%s' \"$payload\" | '{}' \"$@\"\n",
            log.display(),
            hook.display()
        ),
    )
}

/// What the recorder wrote: the event and the payload of each run.
fn log(world: &World) -> Vec<(String, Value)> {
    let text = fs::read_to_string(world.path("log")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let (_, event, payload) = (words.next(), words.next().unwrap(), words.next().unwrap());
            (event.to_owned(), serde_json::from_str(payload).unwrap())
        })
        .collect()
}

fn events(world: &World) -> Vec<String> {
    log(world).into_iter().map(|(event, _)| event).collect()
}

/// An event of the first generation of OpenCode.
fn bus(kind: &str, properties: Value) -> Value {
    json!({"do": "event", "event": {"type": kind, "properties": properties}})
}

fn created(id: &str, parent: Option<&str>) -> Value {
    let mut info = json!({"id": id, "title": "New session", "directory": "/tmp"});
    if let Some(parent) = parent {
        info["parentID"] = json!(parent);
    }
    bus("session.created", json!({"sessionID": id, "info": info}))
}

fn hook(name: &str, input: Value) -> Value {
    json!({"do": "hook", "name": name, "input": input})
}

fn prompt(id: &str) -> Value {
    hook("chat.message", json!({"sessionID": id, "messageID": "m"}))
}

fn idle(id: &str) -> [Value; 2] {
    [
        bus("session.status", json!({"sessionID": id, "status": {"type": "idle"}})),
        bus("session.idle", json!({"sessionID": id})),
    ]
}

fn permission(id: &str, request: &str, tool: &str, call: &str) -> Value {
    let asked = json!({"id": request, "sessionID": id, "permission": tool, "patterns": ["rm *"],
        "metadata": {"command": "SECRET"}, "tool": {"messageID": "m", "callID": call}});
    bus("permission.asked", asked)
}

fn replied(id: &str, request: &str) -> Value {
    bus("permission.replied", json!({"sessionID": id, "requestID": request, "reply": "once"}))
}

fn call(when: &str, id: &str, tool: &str, call: &str) -> Value {
    hook(
        &format!("tool.execute.{when}"),
        json!({"tool": tool, "sessionID": id, "callID": call, "args": {"command": "SECRET"}}),
    )
}

#[test]
fn an_opencode_turn_is_told_from_the_start_to_the_end() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_turn", Plugin::OpenCode, "opencode") else {
        return;
    };
    let mut play = setup.load(&world);
    play.act(created("ses_a", None));
    let record = until(&world, "ses_a", json!({"status": "started", "title": "New session"}));
    assert_eq!(
        (&record["harness_id"], &record["pid"], &record["cwd"]),
        (&json!("opencode"), &json!(play.pid()), &json!("/tmp"))
    );
    play.act(prompt("ses_a"));
    until(&world, "ses_a", json!({"status": "running", "turn": 1}));
    play.act(bus("session.status", json!({"sessionID": "ses_a", "status": {"type": "busy"}})));
    play.act(call("before", "ses_a", "bash", "c1"));
    until(&world, "ses_a", json!({"status": "running", "detail": "using bash"}));
    play.act(permission("ses_a", "per_1", "bash", "c1"));
    until(
        &world,
        "ses_a",
        json!({"status": "waiting", "waiting_for": "permission", "waiting_tool": "bash"}),
    );
    play.act(replied("ses_a", "per_1"));
    until(&world, "ses_a", json!({"status": "running"}));
    play.act(call("after", "ses_a", "bash", "c1"));
    play.act(bus("question.asked", json!({"id": "que_1", "sessionID": "ses_a", "questions": []})));
    until(&world, "ses_a", json!({"status": "waiting", "waiting_for": "question"}));
    play.act(bus("question.rejected", json!({"sessionID": "ses_a", "requestID": "que_1"})));
    until(&world, "ses_a", json!({"status": "running"}));
    let renamed = json!({"id": "ses_a", "title": "Lanterns", "directory": "/usr"});
    play.act(bus("session.updated", json!({"sessionID": "ses_a", "info": renamed})));
    until(&world, "ses_a", json!({"status": "running", "title": "Lanterns", "cwd": "/usr"}));
    idle("ses_a").into_iter().for_each(|event| play.act(event));
    until(&world, "ses_a", json!({"status": "idle", "turn": 1}));

    // An error counts when the session is idle after it, and two ways of telling
    // that are one.
    let error = |name: &str| {
        let error = json!({"name": name, "data": {"message": "SECRET"}});
        bus("session.error", json!({"sessionID": "ses_a", "error": error}))
    };
    play.act(prompt("ses_a"));
    play.act(error("ProviderAuthError"));
    idle("ses_a").into_iter().for_each(|event| play.act(event));
    let failed = "turn failed: ProviderAuthError";
    until(&world, "ses_a", json!({"status": "error", "detail": failed}));
    let renamed = json!({"id": "ses_a", "title": "Lamps"});
    play.act(bus("session.updated", json!({"sessionID": "ses_a", "info": renamed})));
    until(&world, "ses_a", json!({"status": "error", "detail": failed, "title": "Lamps"}));
    play.act(prompt("ses_a"));
    play.act(error("ContextOverflowError"));
    play.act(bus("session.compacted", json!({"sessionID": "ses_a"})));
    idle("ses_a").into_iter().for_each(|event| play.act(event));
    until(&world, "ses_a", json!({"status": "idle", "detail": "finished"}));
    play.act(prompt("ses_a"));
    play.act(error("MessageAbortedError"));
    idle("ses_a").into_iter().for_each(|event| play.act(event));
    until(&world, "ses_a", json!({"status": "idle", "detail": "interrupted", "turn": 4}));
    let gone = json!({"sessionID": "ses_a", "info": {"id": "ses_a"}});
    play.act(bus("session.deleted", gone));
    until(&world, "ses_a", json!({"status": "ended"}));
    play.exit(0);
}

#[test]
fn an_opencode_subagent_asks_in_its_parents_name_and_says_nothing_else() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_subagent", Plugin::OpenCode, "opencode") else {
        return;
    };
    let mut play = setup.load(&world);
    play.act(created("ses_a", None));
    play.act(prompt("ses_a"));
    play.act(created("ses_b", Some("ses_a")));
    play.act(created("ses_c", Some("ses_b")));
    play.act(prompt("ses_c"));
    play.act(call("before", "ses_c", "read", "c1"));
    play.act(permission("ses_c", "per_1", "read", "c1"));
    until(
        &world,
        "ses_a",
        json!({"status": "waiting", "waiting_tool": "read", "waiting_agent": "ses_c"}),
    );
    play.act(replied("ses_c", "per_1"));
    until(&world, "ses_a", json!({"status": "running"}));
    // One that is broken off while it asks asks no more.
    play.act(permission("ses_b", "per_2", "edit", "c2"));
    until(&world, "ses_a", json!({"status": "waiting", "waiting_agent": "ses_b"}));
    idle("ses_b").into_iter().for_each(|event| play.act(event));
    until(&world, "ses_a", json!({"status": "running"}));
    idle("ses_a").into_iter().for_each(|event| play.act(event));
    until(&world, "ses_a", json!({"status": "idle", "turn": 1}));

    // A subagent's session that another process made is taken up again: whose it
    // is comes after its first word.
    play.act(prompt("ses_old"));
    let info = json!({"id": "ses_old", "title": "x", "parentID": "ses_a"});
    play.act(bus("session.updated", json!({"sessionID": "ses_old", "info": info})));
    play.act(bus("session.status", json!({"sessionID": "ses_old", "status": {"type": "busy"}})));
    // And a session of the user's, likewise.
    play.act(prompt("ses_mine"));
    play.act(bus("session.status", json!({"sessionID": "ses_mine", "status": {"type": "busy"}})));
    until(&world, "ses_mine", json!({"status": "running", "turn": 1}));
    assert_eq!(world.record_files().len(), 2);
    play.exit(0);
}

#[test]
fn while_one_of_two_opencode_requests_is_open_the_user_is_waited_for() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_requests", Plugin::OpenCode, "opencode") else {
        return;
    };
    let mut play = setup.load(&world);
    play.act(created("ses_a", None));
    play.act(prompt("ses_a"));
    let question = bus("question.asked", json!({"id": "que_1", "sessionID": "ses_a"}));
    for (first, then) in [("per_1", "per_2"), ("per_2", "per_1")] {
        play.act(permission("ses_a", "per_1", "bash", "c1"));
        play.act(permission("ses_a", "per_2", "edit", "c2"));
        until(&world, "ses_a", json!({"status": "waiting", "waiting_tool": "edit"}));
        play.act(replied("ses_a", first));
        let left = if then == "per_1" { "bash" } else { "edit" };
        play.act(call("after", "ses_a", left, "c9"));
        // The rest of the queue is through when this is.
        play.act(bus("session.compacted", json!({"sessionID": "ses_a"})));
        until(
            &world,
            "ses_a",
            json!({"status": "waiting", "waiting_tool": left, "last_event": "opencode.session.compacted"}),
        );
        play.act(replied("ses_a", then));
        until(&world, "ses_a", json!({"status": "running"}));
    }
    // A question has no tool, and the end of a call is the answer to its request.
    play.act(permission("ses_a", "per_1", "bash", "c1"));
    play.act(question);
    play.act(call("after", "ses_a", "bash", "c1"));
    until(&world, "ses_a", json!({"status": "waiting", "waiting_for": "question"}));
    play.act(bus("question.replied", json!({"sessionID": "ses_a", "requestID": "que_1"})));
    until(&world, "ses_a", json!({"status": "running"}));
    play.exit(0);
}

/// An event of the second generation of OpenCode.
fn event2(id: &str, kind: &str, data: Value) -> Value {
    json!({"do": "event", "event": {"id": id, "created": 1, "type": kind, "data": data}})
}

#[test]
fn opencode_2_tells_the_same_once_however_many_directories_it_serves() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_2", Plugin::OpenCode, "opencode2") else {
        return;
    };
    let hook = recorder(&world, "");
    let mut play = setup.with_hook(hook).load(&world);
    play.act(json!({"do": "load", "directory": "/usr"}));
    let mut count = 0;
    let mut tell = |play: &mut Play<'_>, kind: &str, data: Value| {
        count += 1;
        play.act(event2(&format!("evt_{count}"), kind, data));
    };
    let a = |more: Value| {
        let mut data = json!({"sessionID": "ses_a"});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        data
    };
    tell(
        &mut play,
        "session.created",
        a(json!({"projectID": "p", "location": {"directory": "/tmp"}, "title": "First"})),
    );
    let record = until(&world, "ses_a", json!({"status": "started", "cwd": "/tmp"}));
    assert_eq!((&record["pid"], &record["title"]), (&json!(play.pid()), &json!("First")));
    tell(&mut play, "session.execution.started", a(json!({})));
    until(&world, "ses_a", json!({"status": "running", "turn": 1}));
    tell(&mut play, "session.text.delta", a(json!({"delta": "SECRET"})));
    tell(&mut play, "session.tool.input.started", a(json!({"id": "c1", "name": "bash"})));
    tell(&mut play, "session.tool.called", a(json!({"id": "c1", "input": {"cmd": "SECRET"}})));
    until(&world, "ses_a", json!({"detail": "using bash"}));
    let source = json!({"type": "tool", "messageID": "m", "id": "c1"});
    tell(
        &mut play,
        "permission.asked",
        a(json!({"id": "per_1", "action": "bash", "resources": ["SECRET"], "source": source})),
    );
    until(&world, "ses_a", json!({"status": "waiting", "waiting_tool": "bash"}));
    tell(&mut play, "permission.replied", a(json!({"requestID": "per_1", "reply": "once"})));
    until(&world, "ses_a", json!({"status": "running"}));
    tell(&mut play, "session.tool.success", a(json!({"id": "c1", "content": ["SECRET"]})));
    let form = json!({"id": "frm_1", "sessionID": "ses_a", "title": "SECRET"});
    tell(&mut play, "form.created", json!({"form": form}));
    tell(&mut play, "form.created", json!({"form": {"id": "frm_2", "sessionID": "global"}}));
    until(&world, "ses_a", json!({"status": "waiting", "waiting_for": "question"}));
    tell(&mut play, "form.cancelled", a(json!({"id": "frm_1"})));
    until(&world, "ses_a", json!({"status": "running"}));
    tell(&mut play, "session.renamed", a(json!({"title": "Second"})));
    until(&world, "ses_a", json!({"title": "Second"}));
    let failed = json!({"error": {"type": "provider.auth", "message": "SECRET"}});
    tell(&mut play, "session.execution.failed", a(failed));
    tell(&mut play, "session.idle", a(json!({})));
    tell(&mut play, "session.error", a(json!({})));
    until(&world, "ses_a", json!({"status": "error", "detail": "turn failed: provider.auth"}));
    tell(&mut play, "session.execution.started", a(json!({})));
    tell(&mut play, "session.status", a(json!({"status": {"type": "idle"}})));
    tell(&mut play, "session.execution.interrupted", a(json!({"reason": "user"})));
    until(&world, "ses_a", json!({"status": "idle", "detail": "interrupted", "turn": 2}));

    // Sessions of before: the server knows whose they are and where.
    let mine = json!({"id": "ses_m", "location": {"directory": "/usr"}, "title": "Old"});
    play.act(json!({"do": "know", "session": mine}));
    play.act(json!({"do": "know", "session": {"id": "ses_c", "parentID": "ses_a"}}));
    for id in ["ses_c", "ses_m", "ses_x"] {
        tell(&mut play, "session.execution.started", json!({"sessionID": id}));
    }
    until(&world, "ses_m", json!({"status": "running", "cwd": "/usr", "title": "Old"}));
    until(&world, "ses_x", json!({"status": "running"}));
    tell(&mut play, "session.deleted", a(json!({})));
    until(&world, "ses_a", json!({"status": "ended"}));
    assert_eq!(world.record_files().len(), 3);

    // Both directories' plugins heard everything, and it was told once.
    let told = events(&world);
    let times = |event: &str| told.iter().filter(|e| *e == event).count();
    assert_eq!((times("session.created"), times("permission.asked")), (1, 1), "{told:?}");
    assert_eq!((times("session.execution.started"), times("session.idle")), (4, 0), "{told:?}");
    // When they are unloaded nothing is told any more, and the end is.
    play.act(json!({"do": "unload"}));
    tell(&mut play, "session.execution.succeeded", json!({"sessionID": "ses_m"}));
    play.exit(0);
    until(&world, "ses_m", json!({"status": "ended", "turn": 1}));
    assert!(!events(&world).contains(&"session.execution.succeeded".to_owned()));
}

#[test]
fn builds_of_opencode_that_call_every_export_find_functions_only() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_exports", Plugin::OpenCode, "opencode") else {
        return;
    };
    let hook = recorder(&world, "");
    let setup = setup.with_hook(hook);
    // The first generation says who it is.
    let first = setup.clone().with_env("OPENCODE", "1");
    let mut play = first.start(&world);
    play.write(&json!({"do": "exports"}));
    assert_eq!(play.answer(), r#"[["TongsPlugin","function"],["default","function"]]"#);
    assert_eq!(play.answer(), "ok");
    play.load();
    play.act(created("ses_a", None));
    play.act(prompt("ses_a"));
    until(&world, "ses_a", json!({"status": "running", "turn": 1}));
    play.exit(0);
    assert_eq!(events(&world), ["session.created", "chat.message", "session.deleted"]);

    // One that was started by the first generation is not it.
    for other in [setup.clone(), first.with_env("OPENCODE_PID", "1")] {
        let mut play = other.start(&world);
        play.write(&json!({"do": "exports"}));
        assert_eq!(play.answer(), r#"[["TongsPlugin","function"],["default","object"]]"#);
        assert_eq!(play.answer(), "ok");
        play.exit(0);
    }
}

#[test]
fn a_directory_that_opencode_closes_ends_its_sessions_until_it_opens_it_again() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "opencode_dispose", Plugin::OpenCode, "opencode") else {
        return;
    };
    let mut play = setup.load(&world);
    play.act(created("ses_a", None));
    play.act(prompt("ses_a"));
    until(&world, "ses_a", json!({"status": "running", "turn": 1}));
    // It is ended when the handler is back, for the process may be gone then.
    play.act(json!({"do": "dispose"}));
    assert_eq!(record(&world, "ses_a").unwrap()["status"], "ended");
    play.load();
    until(&world, "ses_a", json!({"status": "started", "turn": 1}));
    play.act(prompt("ses_a"));
    until(&world, "ses_a", json!({"status": "running", "turn": 2}));
    let directory = world.path("project");
    play.act(bus("server.instance.disposed", json!({"directory": directory})));
    assert_eq!(record(&world, "ses_a").unwrap()["status"], "ended");
    play.exit(0);
    assert_eq!(record(&world, "ses_a").unwrap()["status"], "ended");
}

/// An event of Pi.
fn pi(kind: &str, session: &str, more: Value) -> Value {
    let mut event = json!({"type": kind, "prompt": "SECRET", "args": {"command": "SECRET"}});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"do": "event", "session": session, "cwd": "/tmp", "event": event})
}

#[test]
fn a_pi_turn_is_told_from_the_start_to_the_end() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "pi_turn", Plugin::Pi, "pi") else { return };
    let mut play = setup.load(&world);
    play.act(pi("session_start", "p1", json!({"reason": "startup"})));
    let record = until(&world, "p1", json!({"status": "started", "cwd": "/tmp"}));
    assert_eq!((&record["harness_id"], &record["pid"]), (&json!("pi"), &json!(play.pid())));
    play.act(pi("before_agent_start", "p1", json!({})));
    play.act(pi("agent_start", "p1", json!({})));
    play.act(pi("turn_start", "p1", json!({"turnIndex": 0})));
    until(&world, "p1", json!({"status": "running", "turn": 1}));
    play.act(pi("tool_execution_start", "p1", json!({"toolName": "bash", "toolCallId": "c"})));
    until(&world, "p1", json!({"detail": "using bash"}));
    play.act(pi("ui_prompt_start", "p1", json!({"title": "SECRET"})));
    until(&world, "p1", json!({"status": "waiting", "waiting_for": "question"}));
    play.act(pi("ui_prompt_end", "p1", json!({})));
    until(&world, "p1", json!({"status": "running"}));
    play.act(pi("tool_execution_end", "p1", json!({"toolName": "bash", "toolCallId": "c"})));
    play.act(pi("turn_end", "p1", json!({})));
    play.act(pi("agent_end", "p1", json!({"messages": ["SECRET"]})));
    play.act(pi("agent_settled", "p1", json!({})));
    until(&world, "p1", json!({"status": "idle", "turn": 1}));

    // The session of a subagent in the same process is none of the user's.
    play.act(json!({"do": "load"}));
    play.act(pi("session_start", "inner", json!({})));
    play.act(pi("before_agent_start", "inner", json!({})));
    play.act(pi("session_shutdown", "inner", json!({})));
    let mut outer = pi("before_agent_start", "p1", json!({}));
    outer["copy"] = json!(0);
    play.act(outer);
    until(&world, "p1", json!({"status": "running", "turn": 2}));
    assert_eq!(world.record_files().len(), 1);

    let mut shutdown = pi("session_shutdown", "p1", json!({"reason": "quit"}));
    shutdown["copy"] = json!(0);
    play.act(shutdown);
    play.exit(0);
    until(&world, "p1", json!({"status": "ended"}));
}

#[test]
fn a_reload_of_pi_ends_nothing_and_another_session_ends_the_last() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "pi_reload", Plugin::Pi, "pi") else { return };
    let hook = recorder(&world, "");
    let mut play = setup.with_hook(hook).load(&world);
    play.act(pi("session_start", "p1", json!({"reason": "startup"})));
    play.act(pi("before_agent_start", "p1", json!({})));
    play.act(pi("agent_settled", "p1", json!({})));
    play.act(pi("session_shutdown", "p1", json!({"reason": "reload"})));
    play.load();
    play.act(pi("session_start", "p1", json!({"reason": "reload"})));
    until(&world, "p1", json!({"status": "idle", "last_event": "pi.session-start"}));
    assert!(!events(&world).contains(&"session_shutdown".to_owned()));

    // Older builds do not say why they shut the session down.
    play.act(pi("session_shutdown", "p1", json!({})));
    until(&world, "p1", json!({"status": "ended"}));
    play.load();
    play.act(pi("session_start", "p1", json!({"reason": "reload"})));
    until(&world, "p1", json!({"status": "started"}));

    play.act(pi("session_shutdown", "p1", json!({"reason": "new"})));
    play.load();
    play.act(pi("session_start", "p2", json!({"reason": "new"})));
    play.act(pi("session_start", "p2", json!({"reason": "new"})));
    until(&world, "p1", json!({"status": "ended"}));
    until(&world, "p2", json!({"status": "started"}));

    // Forks change the session under the same plugin.
    play.act(pi("session_switch", "p3", json!({"reason": "resume"})));
    until(&world, "p2", json!({"status": "ended"}));
    until(&world, "p3", json!({"status": "started"}));
    play.act(pi("session_branch", "p3", json!({})));
    play.act(pi("before_agent_start", "p3", json!({})));
    until(&world, "p3", json!({"status": "running", "turn": 1}));
    play.exit(0);
    until(&world, "p3", json!({"status": "ended"}));
    let starts = events(&world).into_iter().filter(|e| e == "session_start").count();
    assert_eq!(starts, 5);
}

#[test]
fn a_pi_without_all_events_is_idle_when_its_turn_is_over() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "pi_fork", Plugin::Pi, "pi") else { return };
    let mut play = setup.start(&world);
    let lacking = ["agent_settled", "ui_prompt_start", "session_compact_failed", "session_fork"];
    play.act(json!({"do": "lack", "events": lacking}));
    play.load();
    play.act(pi("session_start", "p1", json!({})));
    play.act(pi("before_agent_start", "p1", json!({})));
    play.act(json!({"do": "busy", "times": 1}));
    play.act(pi("agent_end", "p1", json!({})));
    until(&world, "p1", json!({"status": "idle", "turn": 1, "last_event": "pi.stop"}));
    play.write(&json!({"do": "left"}));
    assert_eq!([play.answer(), play.answer()], ["left -1", "ok"]);
    // A run that goes on is not over.
    play.act(pi("before_agent_start", "p1", json!({})));
    play.act(pi("agent_end", "p1", json!({"willContinue": true})));
    play.act(pi("tool_execution_start", "p1", json!({"toolName": "read"})));
    until(&world, "p1", json!({"status": "running", "turn": 2, "detail": "using read"}));
    // A compaction that the user asks for has no other end.
    play.act(pi("agent_end", "p1", json!({})));
    play.act(pi("session_before_compact", "p1", json!({"preparation": "SECRET"})));
    until(&world, "p1", json!({"status": "running"}));
    play.act(pi("session_compact", "p1", json!({})));
    until(&world, "p1", json!({"status": "idle"}));
    play.close();
    until(&world, "p1", json!({"status": "ended"}));
}

/// An event of Amp.
fn amp(event: &str, thread: &str, more: Value) -> Value {
    let mut data = json!({"thread": {"id": thread}, "message": "SECRET", "id": 1});
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"do": "event", "event": event, "data": data})
}

#[test]
fn an_amp_turn_is_told_and_nothing_is_decided() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "amp_turn", Plugin::Amp, "amp") else { return };
    let hook = recorder(&world, "");
    let mut play = setup.with_hook(hook).load(&world);
    play.act(amp("session.start", "T-1", json!({})));
    let record = until(&world, "T-1", json!({"status": "started"}));
    let project = world.path("project");
    assert_eq!(
        (&record["harness_id"], &record["pid"], &record["cwd"]),
        (&json!("amp"), &json!(play.pid()), &json!(project))
    );
    play.act(amp("agent.start", "T-1", json!({})));
    until(&world, "T-1", json!({"status": "running", "turn": 1}));
    // Looked at again while it works.
    play.act(amp("session.start", "T-1", json!({})));
    // Whoever listens here decides; the player would tell.
    play.act(amp("tool.call", "T-1", json!({"tool": "Bash", "input": {"cmd": "SECRET"}})));
    play.act(amp("tool.result", "T-1", json!({"tool": "Bash", "output": "SECRET"})));
    play.act(amp("agent.end", "T-1", json!({"status": "done", "messages": ["SECRET"]})));
    until(&world, "T-1", json!({"status": "idle", "turn": 1, "detail": "finished"}));
    for (status, want) in [("error", "error"), ("cancelled", "idle")] {
        play.act(amp("agent.start", "T-1", json!({})));
        until(&world, "T-1", json!({"status": "running"}));
        play.act(amp("agent.end", "T-1", json!({"status": status})));
        until(&world, "T-1", json!({"status": want}));
    }
    until(&world, "T-1", json!({"detail": "interrupted", "turn": 3}));
    // The beginning of this turn came before the plugin.
    play.act(amp("tool.result", "T-2", json!({"tool": "Read"})));
    until(&world, "T-2", json!({"status": "running", "turn": 1}));
    // And this is a subagent's thread.
    let mut child = amp("agent.start", "T-3", json!({}));
    child["parent"] = json!("T-1");
    play.act(child);
    play.act(amp("agent.end", "T-2", json!({"status": "done"})));
    until(&world, "T-2", json!({"status": "idle"}));
    assert_eq!(world.record_files().len(), 2);
    let told = events(&world);
    assert_eq!(told.iter().filter(|e| *e == "session.start").count(), 1, "{told:?}");

    play.act(json!({"do": "dispose"}));
    for thread in ["T-1", "T-2"] {
        assert_eq!(self::record(&world, thread).unwrap()["status"], "ended");
    }
    play.load();
    until(&world, "T-1", json!({"status": "started"}));
    until(&world, "T-2", json!({"status": "started"}));
    play.exit(0);
    for thread in ["T-1", "T-2"] {
        assert_eq!(self::record(&world, thread).unwrap()["status"], "ended");
    }
    let told = fs::read_to_string(world.path("log")).unwrap();
    assert!(!told.contains("tool.call") && !told.contains("SECRET"), "{told}");
}

#[test]
fn a_plugin_of_amps_cloud_is_quiet() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "amp_remote", Plugin::Amp, "amp") else { return };
    let mut play = setup.start(&world);
    play.act(json!({"do": "load", "directory": "/tmp", "remote": true}));
    play.act(amp("agent.start", "T-1", json!({})));
    play.exit(0);
    assert!(world.record_files().is_empty());
}

#[test]
fn a_cline_script_answers_what_cline_asks_for_and_passes_the_event_on() {
    let world = World::new();
    let payload = |event: &str| {
        json!({"clineVersion": "4.1.17", "hookName": event, "taskId": "t1",
            "workspaceRoots": ["/tmp"], "preToolUse": {"toolName": "read_file"},
            "userPromptSubmit": {"prompt": "x".repeat(1 << 20)}})
        .to_string()
    };
    let run = |event: &'static str, hook: &Path| {
        let text = plugins::text(Plugin::Cline(event), hook.to_str().unwrap());
        let source = world.path("script.source");
        fs::write(&source, text).unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        let file = world.path("Cline Hooks").join(event);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert!(Command::new("cp").arg(&source).arg(&file).status().unwrap().success());
        let mut command = Command::new(&file);
        world.bare(&mut command);
        finish(command, payload(event).as_bytes())
    };
    let answered = |ran: crate::world::Ran| {
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert_eq!(ran.json(), json!({"cancel": false}));
    };
    // Nothing there, whole megabytes to read: as if there were no script.
    answered(run("UserPromptSubmit", Path::new("/nowhere/it's gone")));
    assert!(world.record_files().is_empty());
    let odd = installed(&world, "it's \"a\" $(hook)\\ \n of ours");
    for (event, status) in [
        ("TaskStart", "running"),
        ("PreToolUse", "running"),
        ("TaskComplete", "idle"),
        ("UserPromptSubmit", "running"),
        ("TaskCancel", "idle"),
    ] {
        answered(run(event, &odd));
        assert_eq!(world.record()["status"], status, "{event}");
    }
    let noisy = script(&world, "noisy", "echo out; echo err >&2; exit 3\n");
    let ran = run("TaskStart", &noisy);
    assert_eq!((ran.json(), ran.err.as_str()), (json!({"cancel": false}), ""));
    let row = harness::find("cline").unwrap();
    for event in row.events {
        let text = plugins::text(Plugin::Cline(event.native), "/h");
        assert!(text.contains(&format!("exec '/h' cline {} ", event.native)));
    }
}

#[test]
fn the_plugins_know_every_event_of_their_rows_but_two() {
    for (which, id, left_out) in [
        (Plugin::OpenCode, "opencode", "session.retry.scheduled"),
        (Plugin::Pi, "pi", ""),
        (Plugin::Amp, "amp", "tool.call"),
    ] {
        let text = plugins::text(which, "/h");
        for event in harness::find(id).unwrap().events {
            let told = text.contains(&format!("\"{}\"", event.native));
            assert_eq!(told, event.native != left_out, "{id}: {}", event.native);
        }
    }
}

/// A turn of OpenCode in one line of input, a thousand times.
fn burst(play: &mut Play<'_>, times: u32) {
    let of = [
        prompt("ses_a"),
        call("before", "ses_a", "bash", "c1"),
        call("after", "ses_a", "bash", "c1"),
        idle("ses_a")[1].clone(),
    ];
    play.act(json!({"do": "burst", "times": times, "of": of}));
}

#[test]
fn a_thousand_events_wait_for_no_hook_and_the_last_of_them_stands() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "burst", Plugin::OpenCode, "opencode") else { return };
    let go = world.path("go");
    let gate = format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display());
    let hook = recorder(&world, &gate);
    let mut play = setup.with_hook(hook).load(&world);
    play.act(created("ses_a", None));
    burst(&mut play, 250);
    play.act(prompt("ses_a"));
    play.act(permission("ses_a", "per_1", "bash", "c1"));
    // All handlers are back, and no hook has come to its end.
    assert!(world.record_files().is_empty());
    fs::write(&go, "").unwrap();
    until(&world, "ses_a", json!({"status": "waiting", "waiting_tool": "bash"}));
    let told = events(&world);
    // One that ran, and what the queue held; a slow machine may have ended one.
    assert!((256..=259).contains(&told.len()), "{}", told.len());
    assert_eq!(told[0], "session.created");
    // No tool was kept while something that has a status went.
    assert!(!told[1..].iter().any(|e| e.starts_with("tool.")), "{told:?}");
    play.exit(0);
}

#[test]
fn noise_goes_before_anything_that_has_a_status() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "noise", Plugin::OpenCode, "opencode") else { return };
    let go = world.path("go");
    let gate = format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display());
    let hook = recorder(&world, &gate);
    let mut play = setup.with_hook(hook).load(&world);
    // Sessions that each began a turn, then tools without end.
    for n in 0..80 {
        let id = format!("ses_{n}");
        play.act(created(&id, None));
        play.act(prompt(&id));
    }
    let tool = call("before", "ses_0", "bash", "c1");
    play.act(json!({"do": "burst", "times": 1000, "of": [tool]}));
    for n in 0..80 {
        play.act(idle(&format!("ses_{n}"))[1].clone());
    }
    fs::write(&go, "").unwrap();
    for n in 0..80 {
        until(&world, &format!("ses_{n}"), json!({"status": "idle", "turn": 1}));
    }
    play.kill();
}

#[test]
fn hooks_run_one_after_another_in_the_order_of_the_events() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "order", Plugin::Pi, "pi") else { return };
    // Two at a time would meet.
    let busy = world.path("busy");
    let alone = format!(
        "mkdir '{0}' || echo 'pi two {{}}' >>'{1}'\nsleep 0.02\nrmdir '{0}'",
        busy.display(),
        world.path("log").display()
    );
    let hook = recorder(&world, &alone);
    let mut play = setup.with_hook(hook).load(&world);
    let order = [
        "session_start",
        "before_agent_start",
        "agent_start",
        "tool_execution_start",
        "tool_execution_end",
        "ui_prompt_start",
        "ui_prompt_end",
        "agent_end",
        "agent_settled",
        "before_agent_start",
    ];
    for event in order {
        play.act(pi(event, "p1", json!({"toolName": "x"})));
    }
    until(&world, "p1", json!({"status": "running", "turn": 2}));
    assert_eq!(events(&world), order);
    play.exit(0);
}

#[test]
fn a_hook_that_fails_or_hangs_is_passed_over() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "failing", Plugin::Pi, "pi") else { return };
    let pid = world.path("pid");
    let faults = format!(
        "case $2 in before_agent_start) exit 1 ;; agent_start) kill -9 $$ ;;\n\
         turn_start) echo $$ >'{}'; exec sleep 1000 ;; esac",
        pid.display()
    );
    let hook = recorder(&world, &faults);
    let mut play = setup.with_hook(hook).load(&world);
    for event in ["session_start", "before_agent_start", "agent_start", "turn_start"] {
        play.act(pi(event, "p1", json!({})));
    }
    play.act(pi("ui_prompt_start", "p1", json!({})));
    until(&world, "p1", json!({"status": "waiting"}));
    gone(&pid);
    play.exit(0);
    until(&world, "p1", json!({"status": "ended"}));
}

#[test]
fn without_the_program_a_plugin_is_quiet_and_looks_again_after_a_minute() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "missing", Plugin::OpenCode, "opencode") else { return };
    let hook = world.path("later/tongs-hook");
    let setup = setup.with_hook(hook.clone());
    // Not sooner: the program comes in between, and nothing is told.
    let mut play = setup.load(&world);
    play.act(created("ses_a", None));
    burst(&mut play, 10);
    fs::create_dir(world.path("later")).unwrap();
    symlink(world.path("bin/tongs-hook"), &hook).unwrap();
    burst(&mut play, 10);
    play.exit(0);
    assert!(world.record_files().is_empty());

    fs::remove_file(&hook).unwrap();
    let mut play = setup.with_env("PLAY_MINUTE", "50").load(&world);
    play.act(created("ses_a", None));
    play.act(created("ses_b", None));
    burst(&mut play, 300);
    play.act(permission("ses_a", "per_1", "bash", "c1"));
    symlink(world.path("bin/tongs-hook"), &hook).unwrap();
    until(&world, "ses_a", json!({"status": "waiting"}));
    until(&world, "ses_b", json!({"status": "started"}));
    play.exit(0);
}

#[test]
fn the_end_is_told_before_the_process_is_gone() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "end", Plugin::Pi, "pi") else { return };
    // Whether the end was told or not, and whatever was on its way.
    for (n, last) in ["session_shutdown", "agent_settled", "before_agent_start"].iter().enumerate()
    {
        for code in [0, 7] {
            let id = format!("p{n}{code}");
            let mut play = setup.load(&world);
            play.act(pi("session_start", &id, json!({"reason": "startup"})));
            until(&world, &id, json!({"status": "started"}));
            play.act(pi("before_agent_start", &id, json!({})));
            play.act(pi(last, &id, json!({})));
            play.exit(code);
            assert_eq!(record(&world, &id).unwrap()["status"], "ended", "{last}");
        }
    }
    // A program that has nothing left to do does not wait for the queue.
    let mut play = setup.clone().with_hook(recorder(&world, "sleep 0.5")).load(&world);
    for event in ["session_start", "before_agent_start", "ui_prompt_start", "agent_settled"] {
        play.act(pi(event, "q", json!({})));
    }
    eventually("no hook ran", || (!events(&world).is_empty()).then_some(()));
    play.close();
    assert_eq!(events(&world), ["session_start", "session_shutdown"]);
    // What was on its way does not come after it.
    let pid = world.path("pid");
    let slow = format!(
        "[ $2 = session_shutdown ] || {{ echo $$ >'{}'; exec sleep 1000; }}",
        pid.display()
    );
    let mut play = setup.clone().with_hook(recorder(&world, &slow)).load(&world);
    play.act(pi("before_agent_start", "p", json!({})));
    eventually("no hook ran", || pid.exists().then_some(()));
    play.exit(0);
    gone(&pid);
    // It is not waited for without end.
    let hook =
        script(&world, "sleeper", &format!("echo $$ >'{}'\nexec sleep 1000\n", pid.display()));
    let mut play = setup.with_hook(hook).load(&world);
    play.act(pi("session_start", "p", json!({})));
    play.act(pi("session_shutdown", "p", json!({})));
    play.exit(0);
    gone(&pid);
}

/// Waits until the process whose id is in this file lives no more.
fn gone(pid: &Path) {
    let pid = eventually("there was no process", || {
        fs::read_to_string(pid).ok()?.trim().parse::<u32>().ok()
    });
    let cmdline = PathBuf::from(format!("/proc/{pid}/cmdline"));
    eventually("a hook lives on", || {
        fs::read(&cmdline).map_or(true, |line| line.is_empty()).then_some(())
    });
}

#[test]
fn a_plugin_that_is_told_off_does_nothing() {
    let world = World::new();
    for (which, kind, event) in [
        (Plugin::OpenCode, "opencode", created("ses_a", None)),
        (
            Plugin::OpenCode,
            "opencode2",
            event2("e", "session.execution.started", json!({"sessionID": "s"})),
        ),
        (Plugin::Pi, "pi", pi("session_start", "p", json!({}))),
        (Plugin::Amp, "amp", amp("agent.start", "T-1", json!({}))),
    ] {
        let Some(setup) = Setup::new(&world, "told_off", which, kind) else { return };
        let hook = recorder(&world, "");
        let mut play = setup.with_hook(hook).with_env("TONGS_AGENTS_IGNORE", "1").load(&world);
        play.act(event);
        play.exit(0);
    }
    assert!(!world.path("log").exists() && world.record_files().is_empty());
}

#[test]
fn the_hooks_path_may_be_any() {
    let world = World::new();
    for (n, name) in ["it's \"a\" $(hook)", "back\\slash\\u0041", "new\nline", "日本 \u{2028} ü"]
        .into_iter()
        .enumerate()
    {
        let Some(setup) = Setup::new(&world, "odd_paths", Plugin::Pi, "pi") else { return };
        let mut play = setup.with_hook(installed(&world, name)).load(&world);
        let id = format!("p{n}");
        play.act(pi("session_start", &id, json!({})));
        until(&world, &id, json!({"status": "started"}));
        play.exit(0);
    }
}

#[test]
fn payloads_hold_what_the_row_reads_and_noise_runs_nothing() {
    let world = World::new();
    let Some(setup) = Setup::new(&world, "payloads", Plugin::OpenCode, "opencode") else { return };
    let hook = recorder(&world, "");
    let mut play = setup.with_hook(hook).load(&world);
    let title = format!("\u{d7ff}{}\u{1f980}", "t".repeat(100_000));
    let info = json!({"id": "ses_a", "title": title, "directory": "/tmp", "summary": "SECRET"});
    play.act(bus("session.created", json!({"sessionID": "ses_a", "info": info})));
    play.act(hook_message("ses_a"));
    let part = json!({"part": {"sessionID": "ses_a", "text": "SECRET"}, "sessionID": "ses_a"});
    for noise in
        ["message.part.updated", "message.updated", "session.diff", "file.edited", "todo.updated"]
    {
        play.act(bus(noise, part.clone()));
    }
    for _ in 0..100 {
        play.act(bus("session.status", json!({"sessionID": "ses_a", "status": {"type": "busy"}})));
        play.act(bus("session.updated", json!({"sessionID": "ses_a", "info": info})));
    }
    play.act(call("before", "ses_a", &"n".repeat(5000), "c1"));
    play.act(permission("ses_a", "per_1", "bash", "c1"));
    // Not events of a session, and not even events.
    for odd in [json!({}), json!({"sessionID": 7}), json!({"sessionID": ""}), json!(null)] {
        for kind in
            ["session.idle", "session.created", "permission.asked", "form.created", "constructor"]
        {
            play.act(bus(kind, odd.clone()));
        }
    }
    play.act(json!({"do": "event", "event": null}));
    play.act(json!({"do": "event", "event": {"type": 5}}));
    play.act(json!({"do": "hook", "name": "tool.execute.before", "input": null}));
    until(&world, "ses_a", json!({"status": "waiting"}));
    play.exit(0);
    let told = log(&world);
    let names: Vec<&str> = told.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(
        names,
        [
            "session.created",
            "chat.message",
            "tool.execute.before",
            "permission.asked",
            "session.deleted"
        ]
    );
    for (event, payload) in &told {
        let text = payload.to_string();
        assert!(text.len() < 1000, "{event}: {} bytes", text.len());
        assert!(!text.contains("SECRET") && !text.contains("rm *"), "{text}");
    }
    assert_eq!(told[0].1["properties"]["info"]["title"].as_str().unwrap().chars().count(), 200);
}

/// A prompt with all that OpenCode gives with it.
fn hook_message(id: &str) -> Value {
    let input =
        json!({"sessionID": id, "agent": "build", "parts": ["SECRET"], "message": "SECRET"});
    hook("chat.message", input)
}
