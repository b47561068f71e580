//! Going to a session's pane, with real servers of tmux and real terminals for
//! their clients.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::find::edit;
use crate::status::{assert_schema, put, record};
use crate::world::{Ran, World, claude, eventually, finish, has_tool};

/// A server of tmux on a socket of its own; ends with its panes when dropped.
struct Mux<'w> {
    world: &'w World,
    socket: PathBuf,
}

impl Drop for Mux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

impl<'w> Mux<'w> {
    /// A server with one session, `base`, in which a shell runs; `None` where
    /// tmux is not installed.
    fn start(world: &'w World, socket: &str, test: &str) -> Option<Mux<'w>> {
        if !has_tool("tmux", test) {
            return None;
        }
        if !world.path("bin/claude").exists() {
            world.stub("claude");
        }
        let mux = Mux { world, socket: world.path(socket) };
        mux.good(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "base",
            "-x",
            "80",
            "-y",
            "24",
            "sh",
        ]);
        Some(mux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        self.world.bare(&mut command);
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").arg("-S").arg(&self.socket);
        command
    }

    fn tmux(&self, args: &[&str]) -> Ran {
        let mut command = self.command();
        command.args(args);
        finish(command, b"")
    }

    /// Runs tmux and returns what it prints, without the newline.
    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let ran = self.tmux(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.out.trim_end().to_string()
    }

    /// Starts an agent where `new` says, such as a new session or window; it has
    /// had these events. Returns its pane.
    #[track_caller]
    fn agent(&self, new: &[&str], session: &str, events: &[&str]) -> String {
        self.agent_below(0, new, session, events)
    }

    /// The same below so many shells.
    #[track_caller]
    fn agent_below(&self, shells: usize, new: &[&str], session: &str, events: &[&str]) -> String {
        let (world, payload) = (self.world, self.world.path(&format!("{session}.json")));
        fs::write(&payload, claude(session, ",\"tool_name\":\"Bash\"")).unwrap();
        let mut hooks = String::new();
        for event in events {
            hooks.push_str(&format!("tongs-hook claude {event} <'{}'\n", payload.display()));
        }
        let script = world.path(&format!("{session}.sh"));
        fs::write(&script, format!("{hooks}touch '{}'\n", world.path(session).display())).unwrap();
        // It outlives its pane, and not the test.
        let mut line = format!(
            "exec '{}' --norc --noprofile -c 'sh {script}; trap \"\" HUP; while [ -e {script} ]; do read x || sleep 1; done'",
            world.path("bin/claude").display(),
            script = script.display()
        );
        for at in 0..shells {
            let shell = world.path(&format!("{session}-{at}.sh"));
            fs::write(&shell, format!("{line}\n:\n").replace("exec ", "")).unwrap();
            line = format!("sh '{}'", shell.display());
        }
        let mut args = new.to_vec();
        args.extend(["-P", "-F", "#{pane_id}", &line]);
        let pane = self.good(&args);
        eventually("the agent's hooks", || world.path(session).exists().then_some(()));
        pane
    }

    /// Attaches a terminal to a session.
    fn client(&self, session: &str) -> Terminal {
        let mut command = self.command();
        command.args(["attach-session", "-t", session]);
        let before = self.clients().len();
        let terminal = Terminal::run(command);
        eventually("the client", || (self.clients().len() > before).then_some(()));
        terminal
    }

    /// The names of the clients with what they show: session, pane.
    fn clients(&self) -> Vec<(String, String, String)> {
        let text = self.good(&["list-clients", "-F", "#{client_name} #{session_name} #{pane_id}"]);
        let word = |line: &str, at: usize| line.split(' ').nth(at).unwrap().to_string();
        text.lines().map(|line| (word(line, 0), word(line, 1), word(line, 2))).collect()
    }

    /// What the client of a terminal shows: session, pane.
    #[track_caller]
    fn shown(&self, terminal: &Terminal) -> (String, String) {
        let clients = self.clients();
        let found = clients.iter().find(|(name, ..)| *name == terminal.name);
        let (_, session, pane) = found.unwrap_or_else(|| panic!("{}: {clients:?}", terminal.name));
        (session.clone(), pane.clone())
    }

    /// The pane that a session has active.
    fn active(&self, session: &str) -> String {
        self.good(&["display-message", "-p", "-t", &format!("{session}:"), "#{pane_id}"])
    }

    /// Runs a command by typing it into the shell of a pane.
    #[track_caller]
    fn typed(&self, pane: &str, command: &str) -> Ran {
        let path = |end: &str| self.world.path(&format!("typed-{}-{end}", &pane[1..]));
        let done = path("done");
        let _ = fs::remove_file(&done);
        let script = path("sh");
        let text = format!(
            "{command} >'{}' 2>'{}'\necho $? >'{}'\nmv '{}' '{}'\n",
            path("out").display(),
            path("err").display(),
            path("code").display(),
            path("code").display(),
            done.display()
        );
        fs::write(&script, text).unwrap();
        self.good(&["send-keys", "-t", pane, &format!("sh '{}'", script.display()), "Enter"]);
        let code = eventually("the typed command", || fs::read_to_string(&done).ok());
        let read = |end: &str| fs::read_to_string(path(end)).unwrap();
        Ran { code: code.trim().parse().ok(), out: read("out"), err: read("err") }
    }
}

/// A terminal in which a program runs.
struct Terminal {
    child: Child,
    name: String,
    keys: fs::File,
}

impl Terminal {
    fn run(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = fs::File::options().read(true).write(true).open(&name).unwrap();
        let stdio = || OwnedFd::from(slave.try_clone().unwrap());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keys = fs::File::from(master);
        let mut screen = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut page = [0; 4096];
            while screen.read(&mut page).is_ok_and(|len| len > 0) {}
        });
        Terminal { child, name, keys }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `focus --json` says, with its exit status.
#[track_caller]
fn focus(world: &World, args: &[&str]) -> (Option<i32>, Value) {
    let ran = world.agents(&[&["focus", "--json"], args].concat());
    assert_eq!(ran.err, "", "{args:?}");
    (ran.code, checked(world, &ran))
}

fn checked(world: &World, ran: &Ran) -> Value {
    let value = ran.json();
    assert_schema(world, "focus", &value);
    value
}

const START: &[&str] = &["SessionStart"];
const WAIT: &[&str] = &["SessionStart", "UserPromptSubmit", "PermissionRequest"];

#[test]
fn a_pane_is_selected_where_a_client_shows_its_session() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus") else { return };
    let pane = mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    mux.good(&["split-window", "-t", &pane, "sh"]);
    mux.good(&["select-window", "-t", "base:0"]);
    let terminal = mux.client("base");
    assert_ne!(mux.shown(&terminal).1, pane);

    let (code, value) = focus(&world, &["s"]);
    assert_eq!(code, Some(0), "{value}");
    let (_, shown) = mux.shown(&terminal);
    assert_eq!(shown, pane);
    for (key, is) in [
        ("state", json!("complete")),
        ("terminal", json!("tmux")),
        ("selected", json!(true)),
        ("verified", json!(true)),
        ("raised", json!(null)),
        ("reason", json!("")),
        ("canonical_id", world.record()["canonical_id"].clone()),
    ] {
        assert_eq!(value[key], is, "{key}");
    }
    // It is there already, and says so again.
    let ran = world.agents(&["focus", "s"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (Some(0), "claude in tmp, tmux\n", "")
    );
}

#[test]
fn a_session_without_a_client_is_selected_and_the_way_to_it_is_printed() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "so ck", "focus_detached") else { return };
    let pane = mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    assert_ne!(mux.active("base"), pane);
    let ran = world.agents(&["focus", "s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.err, "tongs-agents: cannot go to 'tmp': no client shows its session\n");
    assert_eq!(mux.active("base"), pane);
    let (code, value) = focus(&world, &["s"]);
    assert_eq!(
        (code, &value["state"], &value["selected"], &value["verified"]),
        (Some(1), &json!("partial"), &json!(true), &json!(true))
    );
    let socket = mux.socket.to_str().unwrap();
    assert_eq!(value["command"], json!(["tmux", "-S", socket, "attach-session", "-t", "$0"]));

    // What is printed is a line for a shell, and does what it says.
    let mut shell = Command::new("sh");
    world.bare(&mut shell);
    shell.env("TERM", "xterm").args(["-c", &ran.out]);
    let terminal = Terminal::run(shell);
    eventually("the client", || (!mux.clients().is_empty()).then_some(()));
    assert_eq!(mux.shown(&terminal), ("base".into(), pane));
}

#[test]
fn attach_shows_it_in_this_terminal() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_attach") else { return };
    let pane = mux.agent(&["new-session", "-d", "-s", "other"], "s", START);
    let mut command = world.command("tongs-agents");
    command.env("TERM", "xterm").args(["focus", "s", "--attach"]);
    let terminal = Terminal::run(command);
    eventually("the client", || (!mux.clients().is_empty()).then_some(()));
    assert_eq!(mux.shown(&terminal), ("other".into(), pane));
    let ran = world.agents(&["focus", "s", "--attach"]);
    assert_eq!((ran.code, ran.err.contains("not a terminal")), (Some(1), true), "{ran:?}");
}

#[test]
fn inside_tmux_the_caller_s_client_goes_there_and_no_other() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_inside") else { return };
    let other = mux.good(&["new-session", "-d", "-s", "other", "-P", "-F", "#{pane_id}", "sh"]);
    let pane = mux.agent(&["new-session", "-d", "-s", "agents"], "s", START);
    let (one, two) = (mux.client("base"), mux.client("other"));
    let ran = mux.typed(&other, "tongs-agents focus s --json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(checked(&world, &ran)["command"], json!([]));
    assert_eq!(mux.shown(&two), ("agents".into(), pane.clone()));
    assert_eq!(mux.shown(&one).0, "base");

    // Both clients show one session, and a third is named.
    let three = mux.client("base");
    let ran =
        mux.typed(&mux.active("base"), &format!("tongs-agents focus s --client '{}'", three.name));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((mux.shown(&one).0.as_str(), mux.shown(&three).1), ("base", pane));
    let (code, value) = focus(&world, &["s", "--client", "/dev/none"]);
    assert_eq!((code, &value["state"]), (Some(1), &json!("failed")));
    assert_eq!(value["reason"], "its tmux server has no client '/dev/none'");
}

#[test]
fn a_key_of_tmux_takes_the_client_that_pressed_it_round() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_key") else { return };
    let panes = [
        mux.agent(&["new-session", "-d", "-s", "a"], "s1", WAIT),
        mux.agent(&["new-session", "-d", "-s", "b"], "s2", WAIT),
    ];
    let idle = mux.client("base");
    let mut terminal = mux.client("base");
    mux.good(&["bind-key", "-n", "F5", "run-shell", "tongs-agents focus --next >/dev/null"]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let before = mux.shown(&terminal);
        terminal.keys.write_all(b"\x1b[15~").unwrap();
        let now =
            eventually("the next pane", || Some(mux.shown(&terminal)).filter(|s| *s != before));
        seen.push(now.1);
    }
    assert!(panes.contains(&seen[0]) && panes.contains(&seen[1]), "{seen:?} {panes:?}");
    assert!(seen[0] != seen[1] && seen[0] == seen[2], "{seen:?}");
    assert_eq!(mux.shown(&idle).0, "base");
}

#[test]
fn a_pane_that_was_moved_is_found_where_it_is() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_moved") else { return };
    let pane = mux.agent(&["split-window", "-d", "-t", "base:0"], "s", START);
    mux.good(&["new-session", "-d", "-s", "other", "sh"]);
    let terminal = mux.client("other");
    for way in ["break", "join"] {
        match way {
            "break" => mux.good(&["break-pane", "-d", "-s", &pane, "-t", "other:7"]),
            _ => mux.good(&["join-pane", "-d", "-s", &pane, "-t", "other:0"]),
        };
        assert_ne!(mux.shown(&terminal).1, pane);
        let (code, value) = focus(&world, &["s"]);
        assert_eq!((code, &value["verified"]), (Some(0), &json!(true)), "{way}: {value}");
        assert_eq!(mux.shown(&terminal), ("other".into(), pane.clone()), "{way}");
        mux.good(&["select-pane", "-t", "other:0.0"]);
        mux.good(&["select-window", "-t", "other:0"]);
    }
    // A window in two sessions is gone to where somebody looks.
    mux.good(&["link-window", "-s", "other:0", "-t", "base:9"]);
    let (code, value) = focus(&world, &["s"]);
    assert_eq!((code, value["state"].as_str()), (Some(0), Some("complete")), "{value}");
    assert_eq!(mux.shown(&terminal), ("other".into(), pane));
}

#[test]
fn an_agent_below_other_shells_is_in_their_pane() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_nested_shell") else { return };
    let pane = mux.agent_below(3, &["new-window", "-d", "-t", "base:"], "s", START);
    let terminal = mux.client("base");
    assert_eq!(focus(&world, &["s"]).0, Some(0));
    assert_eq!(mux.shown(&terminal).1, pane);
}

#[test]
fn a_pane_id_that_was_given_again_is_not_the_agent_s() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_reused") else { return };
    let pane = mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    let pid: u32 = world.record()["pid"].as_str().unwrap().parse().unwrap();
    // The agent survives its server.
    mux.good(&["kill-server"]);
    eventually("another server", || {
        let ran = mux.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "base", "sh"]);
        (ran.code == Some(0)).then_some(())
    });
    assert_eq!(
        mux.good(&["new-window", "-d", "-t", "base:", "-P", "-F", "#{pane_id}", "sh"]),
        pane
    );
    let terminal = mux.client("base");
    let before = mux.shown(&terminal);
    let (code, value) = focus(&world, &["s"]);
    assert_eq!(
        (code, &value["state"], &value["selected"]),
        (Some(1), &json!("failed"), &json!(false))
    );
    assert_eq!(value["reason"], "no pane of its tmux server holds its process");
    assert_eq!(value["commands"], json!([]));
    assert_eq!(mux.shown(&terminal), before);
    mux.good(&["kill-server"]);
    let (code, value) = focus(&world, &["s"]);
    assert_eq!((code, &value["state"]), (Some(1), &json!("failed")), "{value}");
    let mut kill = Command::new("kill");
    kill.args(["-9", &pid.to_string()]);
    assert_eq!(finish(kill, b"").code, Some(0));
    eventually("the agent's end", || {
        let ran = world.agents(&["focus", "s"]);
        (ran.err == "tongs-agents: cannot go to 'tmp': the session is over\n").then_some(())
    });
}

#[test]
fn another_server_is_gone_to_and_named_and_one_inside_is_shown() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "inner", "focus_other_server") else { return };
    let pane = mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    let Some(outer) = Mux::start(&world, "outer", "focus_other_server") else { return };
    let terminal = outer.client("base");
    let shell = outer.active("base");

    // Nobody shows it.
    let ran = outer.typed(&shell, "tongs-agents focus s --json");
    let value = checked(&world, &ran);
    assert_eq!((ran.code, &value["state"]), (Some(1), &json!("partial")));
    assert!(value["reason"].as_str().unwrap().contains("not the one that this runs in"), "{value}");
    let ran = outer.typed(&shell, "tongs-agents focus s --attach");
    assert_eq!(ran.code, Some(1));

    // Another terminal does.
    let inner = mux.client("base");
    let ran = outer.typed(&shell, "tongs-agents focus s --json");
    let value = checked(&world, &ran);
    assert_eq!((ran.code, &value["state"]), (Some(0), &json!("complete")));
    assert_eq!(value["reason"], "its tmux server is not the one that this runs in");
    assert_eq!(mux.shown(&inner).1, pane);
    assert_eq!(outer.shown(&terminal).1, shell);

    // A pane of the caller's own server does.
    let attach = format!("TMUX= exec tmux -S '{}' attach-session -t base", mux.socket.display());
    let nested =
        outer.good(&["new-window", "-d", "-t", "base:", "-P", "-F", "#{pane_id}", &attach]);
    eventually("the nested client", || (mux.clients().len() == 2).then_some(()));
    let ran = outer.typed(&shell, "tongs-agents focus s --json");
    let value = checked(&world, &ran);
    assert_eq!((ran.code, &value["reason"], &value["command"]), (Some(0), &json!(""), &json!([])));
    assert_eq!(outer.shown(&terminal).1, nested);
}

#[test]
fn next_goes_round_those_that_ask_in_the_order_of_status() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_next") else { return };
    let ran = world.agents(&["focus", "--next"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "tongs-agents: nobody asks for you\n"));
    let mut panes = Vec::new();
    for (session, events) in [
        ("busy", &["SessionStart", "UserPromptSubmit"][..]),
        ("fresh", &["SessionStart", "UserPromptSubmit", "Stop"]),
        ("idle", &["SessionStart", "UserPromptSubmit", "Stop"]),
        ("error", &["SessionStart", "UserPromptSubmit", "StopFailure"]),
        ("wait", WAIT),
    ] {
        panes.push((session, mux.agent(&["new-window", "-d", "-t", "base:"], session, events)));
    }
    let of = |session: &str| panes.iter().find(|(name, _)| *name == session).unwrap().1.clone();
    let long_ago = world.record_of("idle")["ts"].as_u64().unwrap() - 200;
    edit(&world, "idle", json!({"ts": long_ago}));
    // A session that cannot be gone to is passed over.
    edit(&world, "busy", json!({"status": "waiting", "terminal": "generic", "terminal_env": {}}));
    let terminal = mux.client("base");
    let sorted = world.agents(&["status", "--sort", "attention", "-o", "session_id"]);
    let order: Vec<&str> =
        sorted.out.lines().filter(|id| ["idle", "error", "wait"].contains(id)).collect();
    assert_eq!(order.len(), 3, "{sorted:?}");
    for session in order.iter().chain(&order).chain(&order[..1]) {
        let (code, value) = focus(&world, &["--next"]);
        assert_eq!(code, Some(0), "{value}");
        assert_eq!(mux.shown(&terminal).1, of(session), "{session}");
    }
    // From a pane that asks for nothing it begins with the first.
    mux.good(&["select-window", "-t", "base:0"]);
    assert_eq!(mux.typed(&mux.active("base"), "tongs-agents focus --next").code, Some(0));
    assert_eq!(mux.shown(&terminal).1, of(order[0]));
    for session in ["idle", "error", "wait"] {
        edit(&world, session, json!({"status": "running"}));
    }
    let ran = world.agents(&["focus", "--next"]);
    assert_eq!(ran.err, "tongs-agents: nobody asks for you who can be gone to from here\n");
}

#[test]
fn a_dry_run_prints_what_would_be_run_and_runs_nothing_of_it() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "so'ck", "focus_dry_run") else { return };
    let pane = mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    let (before, terminal) = (mux.active("base"), mux.client("base"));
    let (code, value) = focus(&world, &["s", "--dry-run"]);
    assert_eq!(
        (code, &value["state"], &value["selected"]),
        (Some(0), &json!("planned"), &json!(false))
    );
    assert_eq!(value["commands"].as_array().unwrap().len(), 2);
    let ran = world.agents(&["focus", "s", "--dry-run"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(mux.shown(&terminal).1, before);
    let mut shell = Command::new("sh");
    world.bare(&mut shell);
    shell.args(["-c", &ran.out]);
    assert_eq!(finish(shell, b"").code, Some(0));
    assert_eq!(mux.shown(&terminal).1, pane);
}

#[test]
fn what_a_record_says_of_its_server_is_not_believed() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_hostile") else { return };
    mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    let before = mux.active("base");
    let file = world.path("plain");
    fs::write(&file, "").unwrap();
    let plain = format!("{},1,0", file.display());
    let mark = world.path("mark");
    let shell = format!("/x;touch {m};#(touch {m}),1,0", m = mark.display());
    for (value, state) in [
        ("", "unavailable"),
        ("sock,1,0", "unavailable"),
        ("/x", "unavailable"),
        ("/none,1,0", "failed"),
        (plain.as_str(), "failed"),
        (shell.as_str(), "failed"),
    ] {
        edit(&world, "s", json!({"terminal_env": {"TMUX": value, "TMUX_PANE": "%0"}}));
        let (code, said) = focus(&world, &["s"]);
        assert_eq!((code, said["state"].as_str()), (Some(1), Some(state)), "{value}: {said}");
        assert_eq!((mux.active("base"), mark.exists()), (before.clone(), false), "{value}");
    }
}

#[test]
fn a_tool_that_is_not_installed_is_named() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_missing") else { return };
    mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    let mut command = world.command("tongs-agents");
    command.env("PATH", world.path("bin")).args(["focus", "s"]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(69), ""));
    assert_eq!(ran.err, "tongs-agents: cannot go to 'tmp': tmux is not installed\n");
}

#[test]
fn a_tool_that_hangs_is_not_waited_for() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_hangs") else { return };
    mux.agent(&["new-window", "-d", "-t", "base:"], "s", START);
    fs::create_dir(world.path("slow")).unwrap();
    let slow = world.path("slow/tmux");
    let mut sh = Command::new("sh");
    sh.arg("-c").arg(format!(
        "printf '#!/bin/sh\\nexec sleep 60\\n' >'{0}'; chmod +x '{0}'",
        slow.display()
    ));
    assert_eq!(finish(sh, b"").code, Some(0));
    let mut command = world.command("tongs-agents");
    command.env("PATH", format!("{}:/usr/bin:/bin", world.path("slow").display()));
    command.args(["focus", "s", "--json"]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, checked(&world, &ran)["state"].as_str()), (Some(1), Some("failed")));
    assert!(ran.out.contains("did not end within a second"), "{ran:?}");
}

#[test]
fn a_query_is_taken_in_full_before_in_part() {
    let world = World::new();
    let mut agents = Vec::new();
    for (session, cwd) in [("alpha-1", "/w/api"), ("beta-2", "/w/api-old"), ("gamma-3", "/w/Web")] {
        let mut agent = world.harness("claude");
        let payload = format!("{{\"session_id\":\"{session}\",\"cwd\":\"{cwd}\"}}");
        agent.hook(&["claude", "SessionStart"], &payload).silent();
        agents.push(agent);
    }
    edit(&world, "gamma-3", json!({"title": "Fix the login", "branch": "topic/x"}));
    let id = |session: &str| world.record_of(session)["canonical_id"].as_str().unwrap().to_string();
    let short = world.session("beta-2").unwrap()["short_id"].as_str().unwrap().to_string();
    let pid = agents[0].pid().to_string();
    for (query, session) in [
        ("alpha-1", "alpha-1"),
        ("api", "alpha-1"),
        ("api-old", "beta-2"),
        ("i-old", "beta-2"),
        ("web", "gamma-3"),
        ("LOGIN", "gamma-3"),
        ("topic", "gamma-3"),
        (&short, "beta-2"),
        (&pid, "alpha-1"),
        (&id("gamma-3"), "gamma-3"),
    ] {
        let (code, value) = focus(&world, &[query]);
        assert_eq!(code, Some(1), "{query}");
        assert_eq!(value["canonical_id"], id(session), "{query}");
        assert_eq!(value["state"], "unavailable");
    }
    for query in ["claude", "/w/", "API-"] {
        let ran = world.agents(&["focus", query]);
        let many =
            ran.err.starts_with(&format!("tongs-agents: several sessions match '{query}': "));
        assert_eq!((ran.code, many), (Some(1), query != "API-"), "{query}: {ran:?}");
    }
    let ran = world.agents(&["focus", "nothing"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(1), "tongs-agents: no session matches 'nothing'\n")
    );
    for args in [&["focus"][..], &["focus", ""], &["focus", "a", "--next"], &["focus", "a", "b"]] {
        assert_eq!(world.agents(args).code, Some(64), "{args:?}");
    }
    let mut ended = world.harness("claude");
    ended.hook(&["claude", "SessionStart"], &claude("over", "")).silent();
    ended.kill();
    let ran = world.agents(&["focus", "over"]);
    assert_eq!(ran.err, "tongs-agents: cannot go to 'tmp': the session is over\n");
}

#[test]
fn what_is_elsewhere_is_not_gone_to() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let terminal = json!({"terminal": "tmux", "terminal_env": {"TMUX": "/tmp/x,1,0"}});
    edit(&world, "s", terminal);
    edit(&world, "s", json!({"pid_ns": "1"}));
    let (code, value) = focus(&world, &["s"]);
    assert_eq!((code, &value["state"]), (Some(1), &json!("unavailable")));
    assert_eq!(value["reason"], "its process cannot be seen from here");
    edit(&world, "s", json!({"bridge": "box"}));
    let (code, value) = focus(&world, &["s"]);
    assert_eq!(code, Some(1));
    assert_eq!(value["reason"], "it is on another machine, behind the bridge box");
    put(
        &world,
        &record(
            "none",
            json!({"pid": "", "process_start": "", "instance_id": "unresolved",
        "process_identity": "unresolved"}),
        ),
        false,
    );
    let (code, _) = focus(&world, &["none"]);
    assert_eq!(code, Some(1));
}
