//! Going to a session's pane, with real servers of tmux and real terminals for
//! their clients.
//!
//! Public reports of what went wrong elsewhere, by their numbers in this project's
//! list: TC-107 and TC-112 (the pane that is looked at was taken for the agent's)
//! and TC-113 (an agent in tmux is not below its terminal):
//! `an_agent_below_other_shells_is_in_their_pane`, and every test whose client
//! looks at another pane; TC-110 (the wrong client of several, a nested attach that
//! hangs): `inside_tmux_the_caller_s_client_goes_there_and_no_other`,
//! `another_server_is_gone_to_and_named_and_one_inside_is_shown`; TC-111 (a pane's
//! number is another server's as well): `fifty_of_fifty_jumps_…` and
//! `a_pane_id_that_was_given_again_is_not_the_agent_s`. TC-103, settings of another
//! machine, is no matter of focus: `doctor` names the files that it read.

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
pub struct Mux<'w> {
    world: &'w World,
    pub socket: PathBuf,
}

impl Drop for Mux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

impl<'w> Mux<'w> {
    /// A server with one session, `base`, in which a shell runs; `None` where
    /// tmux is not installed.
    pub fn start(world: &'w World, socket: &str, test: &str) -> Option<Mux<'w>> {
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
    pub fn good(&self, args: &[&str]) -> String {
        let ran = self.tmux(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.out.trim_end().to_string()
    }

    /// Starts an agent where `new` says, such as a new session or window; it has
    /// had these events. Returns its pane.
    #[track_caller]
    pub fn agent(&self, new: &[&str], session: &str, events: &[&str]) -> String {
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
    pub fn clients(&self) -> Vec<(String, String, String)> {
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
pub struct Terminal {
    /// The program.
    pub child: Child,
    name: String,
    /// Where its keys go.
    pub keys: fs::File,
}

impl Terminal {
    /// Starts the program; it ends when this is dropped.
    pub fn run(command: Command) -> Terminal {
        let terminal = Terminal::unread(command);
        let mut screen = terminal.keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut page = [0; 4096];
            while screen.read(&mut page).is_ok_and(|len| len > 0) {}
        });
        terminal
    }

    /// The same with nobody who reads what it writes.
    pub fn unread(mut command: Command) -> Terminal {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = fs::File::options().read(true).write(true).open(&name).unwrap();
        let stdio = || OwnedFd::from(slave.try_clone().unwrap());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        Terminal { child, name, keys: fs::File::from(master) }
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
pub const WAIT: &[&str] = &["SessionStart", "UserPromptSubmit", "PermissionRequest"];

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
fn fifty_of_fifty_jumps_between_two_servers_end_in_the_right_pane() {
    let world = World::new();
    let Some(one) = Mux::start(&world, "one", "fifty_of_fifty") else { return };
    let Some(two) = Mux::start(&world, "two", "fifty_of_fifty") else { return };
    let mut agents = Vec::new();
    for (server, mux) in [&one, &two].into_iter().enumerate() {
        for n in 0..4 {
            let session = format!("s{server}{n}");
            // In windows of their own and beside others, so that numbers of panes
            // are those of the other server as well.
            let new = if n % 2 == 0 { "new-window" } else { "split-window" };
            let pane = mux.agent(&[new, "-d", "-t", "base:"], &session, START);
            agents.push((mux, session, pane));
        }
    }
    let terminals = [one.client("base"), two.client("base")];
    let other = one.client("base");
    let mut at = 0;
    for jump in 0..50 {
        at = (at + 1 + jump * 3 % (agents.len() - 1)) % agents.len();
        let (mux, session, pane) = &agents[at];
        if jump == 25 {
            // Somebody moves one of them meanwhile.
            let moved =
                one.good(&["new-session", "-d", "-s", "away", "-P", "-F", "#{window_id}", "sh"]);
            one.good(&["join-pane", "-d", "-s", &agents[1].2, "-t", &moved]);
        }
        let (code, value) = focus(&world, &[session]);
        let terminal = &terminals[usize::from(std::ptr::eq(*mux, &two))];
        if jump >= 25 && at == 1 {
            // No client shows that session, and this is said.
            assert_eq!((code, &value["state"]), (Some(1), &json!("partial")), "{jump}: {value}");
            assert_eq!(mux.active("away"), *pane, "{jump}");
            continue;
        }
        assert_eq!((code, &value["state"]), (Some(0), &json!("complete")), "{jump}: {value}");
        assert_eq!(mux.shown(terminal).1, *pane, "{jump}");
    }
    drop(other);
    // One whose pane is gone is not gone to.
    let (mux, session, pane) = &agents[6];
    mux.good(&["kill-pane", "-t", pane]);
    let (code, value) = focus(&world, &[session]);
    assert_eq!((code, &value["state"]), (Some(1), &json!("unavailable")), "{value}");
    assert_eq!(value["reason"], "no pane of its tmux server holds its process");
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
        (Some(1), &json!("unavailable"), &json!(false))
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
    // What rests asks no more once it was gone to, and what waits or failed still
    // does; the round goes on from where it is.
    let still: Vec<&str> = order.iter().copied().filter(|id| *id != "idle").collect();
    for session in order.iter().chain(&still).chain(&still).chain(&order[..1]) {
        let (code, value) = focus(&world, &["--next"]);
        assert_eq!(code, Some(0), "{value}");
        assert_eq!(mux.shown(&terminal).1, of(session), "{session}");
        assert_eq!(world.session(session).unwrap()["seen"], true, "{session}");
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
fn what_was_gone_to_was_seen_and_what_was_not_reached_was_not() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_seen") else { return };
    mux.agent(&["new-window", "-d", "-t", "base:"], "s", WAIT);
    let seen = || world.session("s").unwrap()["seen"] == true;
    let marks = || world.sessions().join(".tongs-seen-v1").exists();
    // No client shows it.
    let (_, value) = focus(&world, &["s"]);
    assert_eq!(value["state"], "partial", "{value}");
    let terminal = mux.client("base");
    let (_, value) = focus(&world, &["s", "--dry-run"]);
    assert_eq!(value["state"], "planned", "{value}");
    let (_, value) = focus(&world, &["s", "--client", "/dev/none"]);
    assert_eq!(value["state"], "failed", "{value}");
    assert!(!seen() && !marks());

    // What is put off stays put off.
    world.agents(&["snooze", "s", "1h"]).silent();
    assert_eq!(focus(&world, &["s"]).0, Some(0));
    assert!(world.agents(&["status"]).out.contains("waiting (snoozed)"));
    world.agents(&["snooze", "s", "0"]).silent();
    assert!(!seen());

    assert_eq!(focus(&world, &["s"]).0, Some(0));
    assert!(seen() && world.agents(&["status"]).out.contains("waiting (seen)"));
    // Another wait was not seen.
    let since = world.record_of("s")["status_ms"].as_u64().unwrap();
    edit(&world, "s", json!({"status_ms": since + 1}));
    assert!(!seen());
    drop(terminal);
}

#[test]
fn a_mark_that_cannot_be_written_fails_no_focus() {
    let test = "a_mark_that_cannot_be_written_fails_no_focus";
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", test) else { return };
    mux.agent(&["new-window", "-d", "-t", "base:"], "s", WAIT);
    let _terminal = mux.client("base");
    let lock = world.sessions().join(".tongs-seen-v1.lock");
    fs::create_dir(&lock).unwrap();
    let ran = world.agents(&["focus", "s"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    fs::remove_dir(&lock).unwrap();
    if !has_tool("flock", test) {
        return;
    }
    // Who holds the lock is not waited for long.
    let mut command = Command::new("flock");
    world.bare(&mut command);
    command.arg(&lock).args(["tongs-agents", "focus", "s"]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(world.session("s").unwrap()["seen"], false);
}

#[test]
fn rests_that_were_seen_lead_on_to_those_that_were_not() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_rests") else { return };
    let rest = &["SessionStart", "UserPromptSubmit", "Stop"][..];
    let sessions = [("a", WAIT), ("b", rest), ("c", rest), ("d", rest)];
    for (session, events) in sessions {
        mux.agent(&["new-window", "-d", "-t", "base:"], session, events);
        if session != "a" {
            let long_ago = world.record_of(session)["ts"].as_u64().unwrap() - 200;
            edit(&world, session, json!({"ts": long_ago}));
        }
    }
    let _terminal = mux.client("base");
    let sorted = world.agents(&["status", "--sort", "attention", "-o", "session_id"]);
    let order: Vec<&str> = sorted.out.lines().collect();
    for session in order.iter().chain(["a", "a"].iter()) {
        let (code, value) = focus(&world, &["--next"]);
        assert_eq!(code, Some(0), "{value}");
        let id = &world.record_of(session)["canonical_id"];
        assert_eq!(&value["canonical_id"], id, "{session} of {order:?}");
    }
}

#[test]
fn next_passes_over_whom_it_cannot_bring_before_the_user() {
    let world = World::new();
    let Some(mux) = Mux::start(&world, "sock", "focus_passes_over") else { return };
    let hidden = mux.agent(&["new-session", "-d", "-s", "hidden"], "a", WAIT);
    let shown = [
        mux.agent(&["new-window", "-d", "-t", "base:"], "b", WAIT),
        mux.agent(&["new-window", "-d", "-t", "base:"], "c", WAIT),
    ];
    let terminal = mux.client("base");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (code, value) = focus(&world, &["--next"]);
        assert_eq!((code, &value["state"]), (Some(0), &json!("complete")), "{value}");
        seen.push(mux.shown(&terminal).1);
    }
    assert!(seen[0] != seen[1] && seen[0] == seen[2] && seen[1] == seen[3], "{seen:?}");
    assert!(seen.iter().all(|pane| shown.contains(pane)), "{seen:?}");
    // Where nobody else asks, it is the one, and the way to it.
    for session in ["b", "c"] {
        world.agents(&["snooze", session, "1h"]).silent();
    }
    let (code, value) = focus(&world, &["--next"]);
    assert_eq!((code, &value["state"]), (Some(1), &json!("partial")), "{value}");
    assert!(value["command"].as_array().unwrap().len() > 3, "{value}");
    assert_eq!(mux.active("hidden"), hidden);
}

#[test]
fn next_begins_behind_the_pane_that_the_caller_s_variables_name() {
    let world = World::new();
    let mut agents = Vec::new();
    for pane in ["1", "2", "3"] {
        let mut agent = world.harness("claude");
        agent.hook(&["claude", "SessionStart"], &claude(pane, "")).silent();
        agents.push(agent);
        let vars = json!({"WEZTERM_PANE": pane, "WEZTERM_UNIX_SOCKET": "/none"});
        edit(
            &world,
            pane,
            json!({"status": "waiting", "terminal": "wezterm", "terminal_env": vars}),
        );
    }
    let sorted = world.agents(&["status", "--sort", "attention", "-o", "session_id"]);
    let order: Vec<&str> = sorted.out.lines().collect();
    assert_eq!(order.len(), 3, "{sorted:?}");
    for (at, pane) in order.iter().enumerate() {
        for (socket, next) in [("/none", order[(at + 1) % 3]), ("/other", order[0])] {
            let mut command = world.command("tongs-agents");
            command.env("WEZTERM_PANE", pane).env("WEZTERM_UNIX_SOCKET", socket);
            command.args(["focus", "--next", "--json"]);
            let said = checked(&world, &finish(command, b""));
            assert_eq!(said["canonical_id"], world.record_of(next)["canonical_id"], "{pane}");
        }
    }
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
        ("/none,1,0", "unavailable"),
        (plain.as_str(), "unavailable"),
        (shell.as_str(), "unavailable"),
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
fn tools_that_all_hang_are_given_up_together() {
    let world = World::new();
    let mut agents = Vec::new();
    let socket = world.path("sock");
    let _server = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for at in 0..9 {
        let session = at.to_string();
        let mut agent = world.harness("claude");
        agent.hook(&["claude", "SessionStart"], &claude(&session, "")).silent();
        agents.push(agent);
        let vars = json!({"TMUX": format!("{},1,0", socket.display()), "TMUX_PANE": "%0"});
        edit(
            &world,
            &session,
            json!({"status": "waiting", "terminal": "tmux", "terminal_env": vars}),
        );
    }
    let calls = world.path("calls");
    let text = format!("#!/bin/sh\necho >>'{}'\nexec sleep 60\n", calls.display());
    fs::write(world.path("tool"), text).unwrap();
    let mut sh = Command::new("sh");
    sh.args(["-c", "chmod +x \"$0\"; cp \"$0\" \"$1\""]);
    sh.arg(world.path("tool")).arg(world.path("bin/tmux"));
    assert_eq!(finish(sh, b"").code, Some(0));
    let (code, value) = focus(&world, &["--next"]);
    assert_eq!((code, value["state"].as_str()), (Some(1), Some("failed")), "{value}");
    assert_eq!(value["reason"], "its terminal's tools take too long");
    let calls = fs::read_to_string(&calls).unwrap().lines().count();
    assert!((1..=5).contains(&calls), "{calls}");
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
    assert_eq!(value["reason"], "it is elsewhere, behind the bridge box");
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

/// An agent in a terminal of its own, below a program of another name, and what
/// stands for the tools of terminals.
struct Alone<'w> {
    world: &'w World,
    terminal: Terminal,
}

impl<'w> Alone<'w> {
    /// Starts the agent, session `s`, below `above` with these further words.
    fn start(world: &'w World, above: &str, words: &[&str]) -> Alone<'w> {
        world.stub("claude");
        fs::create_dir(world.path("real")).unwrap();
        let program = world.path("real").join(above);
        let mut copy = Command::new("cp");
        copy.arg("/bin/bash").arg(&program);
        assert_eq!(finish(copy, b"").code, Some(0));
        let (payload, mark) = (world.path("s.json"), world.path("s.up"));
        fs::write(&payload, claude("s", "")).unwrap();
        let script = world.path("s.sh");
        let hook = format!("tongs-hook claude SessionStart <'{}'\n", payload.display());
        fs::write(&script, format!("{hook}touch '{}'\n", mark.display())).unwrap();
        let line = format!(
            "claude --norc --noprofile -c 'sh {script}; while [ -e {script} ]; do read x || sleep 1; done'; :",
            script = script.display()
        );
        let mut command = Command::new(program);
        world.bare(&mut command);
        command.args(["--norc", "--noprofile", "-c", &line]).args(words);
        let terminal = Terminal::run(command);
        eventually("the agent's hook", || mark.exists().then_some(()));
        Alone { world, terminal }
    }

    /// The pid of the agent.
    fn agent(&self) -> String {
        self.world.record()["pid"].as_str().unwrap().to_string()
    }

    /// The pid of what it is below.
    fn above(&self) -> u32 {
        self.terminal.child.id()
    }

    /// What the record says of the terminal.
    fn is_in(&self, terminal: &str, vars: Value) {
        edit(self.world, "s", json!({"terminal": terminal, "terminal_env": vars}));
    }

    /// A tool that notes its arguments, one call a line, and runs this script.
    fn tool(&self, name: &str, script: &str) {
        let text = format!(
            "#!/bin/sh\ncd '{}'\necho \"{name} $*\" >>calls\n{script}\n",
            self.world.path("").display()
        );
        fs::write(self.world.path("tool"), text).unwrap();
        // By a copy, as in `World::stub`.
        let mut sh = Command::new("sh");
        sh.args(["-c", "chmod +x \"$0\"; rm -f \"$1\"; cp \"$0\" \"$1\""]);
        sh.arg(self.world.path("tool")).arg(self.world.path("bin").join(name));
        assert_eq!(finish(sh, b"").code, Some(0));
    }

    /// Runs `focus s` with these variables; returns what it says and the calls of
    /// tools since the last time.
    #[track_caller]
    fn focus(&self, vars: &[(&str, &str)]) -> (Option<i32>, Value, String) {
        let _ = fs::remove_file(self.world.path("calls"));
        let mut command = self.world.command("tongs-agents");
        command.envs(vars.iter().copied()).args(["focus", "s", "--json"]);
        let ran = finish(command, b"");
        let calls = fs::read_to_string(self.world.path("calls")).unwrap_or_default();
        (ran.code, checked(self.world, &ran), calls)
    }

    /// The same, of which the state and the reason are these.
    #[track_caller]
    fn says(&self, code: i32, state: &str, reason: &str) -> String {
        let (is, value, calls) = self.focus(&[]);
        assert_eq!((is, &value["state"]), (Some(code), &json!(state)), "{value}");
        assert_eq!(value["reason"], reason);
        calls
    }
}

#[test]
fn a_window_of_kitty_is_selected_where_it_holds_the_agent() {
    let world = World::new();
    let alone = Alone::start(&world, "terminal", &[]);
    let vars = |pid: u32| json!({"KITTY_WINDOW_ID": "3", "KITTY_PID": pid.to_string(), "KITTY_LISTEN_ON": "unix:/run/k"});
    let ls = |pid: &str, focused: bool| {
        let list = json!([{"is_focused": focused, "tabs": [
            {"is_active": false, "windows": [{"id": 2, "pid": 1, "is_active": true}]},
            {"is_active": true, "windows": [{"id": 3, "pid": pid.parse::<u32>().unwrap(), "is_active": true}]},
        ]}]);
        fs::write(world.path("ls"), list.to_string()).unwrap();
    };
    alone.is_in("kitty", vars(alone.above()));
    let bare = world.path("bin").display().to_string();
    let (code, value, _) = alone.focus(&[("PATH", &bare)]);
    assert_eq!((code, &value["reason"]), (Some(69), &json!("kitten is not installed")));
    alone.tool("kitten", "case \"$*\" in *' ls '*) cat ls ;; esac");
    ls(&alone.agent(), true);
    let (code, value, calls) = alone.focus(&[]);
    assert_eq!(
        (code, &value["selected"], &value["raised"]),
        (Some(0), &json!(true), &json!(true)),
        "{value}"
    );
    assert_eq!(
        calls,
        "kitten @ --to unix:/run/k ls --match id:3\n\
         kitten @ --to unix:/run/k focus-window --match id:3\n\
         kitten @ --to unix:/run/k ls --match id:3\n"
    );
    // Selecting is one thing, and the window system's favour another.
    ls(&alone.agent(), false);
    let (code, value, _) = alone.focus(&[]);
    assert_eq!(
        (code, &value["selected"], &value["raised"]),
        (Some(0), &json!(true), &json!(false)),
        "{value}"
    );
    let other = world.harness("claude");
    ls(&other.pid().to_string(), true);
    let calls = alone.says(1, "unavailable", "no window of its kitty holds its process");
    assert!(!calls.contains("focus-window"), "{calls}");
    ls(&alone.agent(), true);
    alone.is_in("kitty", vars(other.pid()));
    alone.says(1, "unavailable", "its process is not below the recorded kitty");
    alone.tool("kitten", "exit 1");
    alone.is_in("kitty", vars(alone.above()));
    alone.says(1, "failed", "'kitten ls' failed");
}

#[test]
fn a_pane_of_wezterm_is_selected_on_the_agent_s_terminal() {
    let world = World::new();
    let alone = Alone::start(&world, "terminal", &[]);
    let socket = world.path("gui-sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    alone.is_in("wezterm", json!({"WEZTERM_PANE": "7", "WEZTERM_UNIX_SOCKET": socket}));
    alone.tool(
        "wezterm",
        "echo \"$WEZTERM_UNIX_SOCKET\" >>calls\ncase \"$*\" in\n\
         *'list --format json') cat list ;;\n\
         *activate-pane*) echo '[{\"focused_pane_id\":7}]' >clients ;;\n\
         *list-clients*) cat clients ;;\nesac",
    );
    let list = |tty: &str| {
        let list =
            json!([{"pane_id": 6, "tty_name": "/dev/pts/none"}, {"pane_id": 7, "tty_name": tty}]);
        fs::write(world.path("list"), list.to_string()).unwrap();
    };
    fs::write(world.path("clients"), "[{\"focused_pane_id\":6}]").unwrap();
    list("/dev/pts/none");
    let calls = alone.says(1, "unavailable", "its pane of WezTerm is not on its terminal");
    assert!(!calls.contains("activate"), "{calls}");
    list(&alone.terminal.name);
    let calls = alone.says(1, "partial", "the way to wezterm has not been tried with a real one");
    let socket_line = format!("{}\n", socket.display());
    assert_eq!(
        calls.replace(&socket_line, ""),
        "wezterm cli --no-auto-start list --format json\n\
         wezterm cli --no-auto-start activate-pane --pane-id 7\n\
         wezterm cli --no-auto-start list-clients --format json\n"
    );
    assert_eq!(calls.matches(&socket_line).count(), 3);
    drop(listener);
    fs::remove_file(&socket).unwrap();
    alone.says(1, "unavailable", "the socket of its WezTerm is gone, or not ours");
}

#[test]
fn a_pane_of_zellij_is_selected_below_its_server() {
    let world = World::new();
    let alone = Alone::start(&world, "zellij", &["--server", "/run/z/0.44/work"]);
    let vars = |session: &str| json!({"ZELLIJ": "0", "ZELLIJ_SESSION_NAME": session, "ZELLIJ_PANE_ID": "4"});
    alone.tool(
        "zellij",
        "case \"$*\" in\n*list-clients) cat clients ;;\n\
         *focus-pane-id*) echo '1 terminal_4 claude' >>clients ;;\nesac",
    );
    let head = "CLIENT_ID ZELLIJ_PANE_ID RUNNING_COMMAND\n";
    fs::write(world.path("clients"), head).unwrap();
    alone.is_in("zellij", vars("work"));
    alone.says(1, "partial", "no client shows its session of Zellij");
    assert_eq!(alone.focus(&[]).1["command"], json!(["zellij", "attach", "work"]));
    fs::write(world.path("clients"), format!("{head}1 terminal_2 sh\n")).unwrap();
    let calls = alone.says(1, "partial", "the way to zellij has not been tried with a real one");
    assert!(calls.contains("zellij --session work action focus-pane-id terminal_4\n"), "{calls}");
    alone.is_in("zellij", vars("other"));
    alone.says(1, "failed", "its process is not below a server of Zellij for 'other'");
    for session in ["--help", "a/b", ""] {
        alone.is_in("zellij", vars(session));
        assert_eq!(alone.says(1, "unavailable", "its session of Zellij is not recorded"), "");
    }
}

#[test]
fn a_tab_of_konsole_is_selected_where_it_holds_the_agent() {
    let world = World::new();
    let alone = Alone::start(&world, "terminal", &[]);
    let vars = |service: &str| json!({"KONSOLE_DBUS_SERVICE": service, "KONSOLE_DBUS_SESSION": "/Sessions/5"});
    alone.is_in("konsole", vars(":1.7"));
    alone.tool(
        "dbus-send",
        "case \"$*\" in\n*Session.processId) echo \"   int32 $(cat shell)\" ;;\n\
         */Windows\\ *Introspect) echo '<node><node name=\"1\"/><node name=\"2\"/></node>' ;;\n\
         */Windows/1\\ *sessionList) echo '   array [ 1 15 ]' ;;\n\
         */Windows/2\\ *sessionList) echo '   array [ 2 5 ]' ;;\n\
         *setCurrentSession*) echo 5 >current ;;\n\
         *currentSession) echo \"   int32 $(cat current)\" ;;\nesac",
    );
    fs::write(world.path("current"), "2").unwrap();
    let other = world.harness("claude");
    fs::write(world.path("shell"), other.pid().to_string()).unwrap();
    let calls = alone.says(1, "unavailable", "its tab of Konsole does not hold its process");
    assert!(!calls.contains("setCurrentSession"), "{calls}");
    fs::write(world.path("shell"), alone.agent()).unwrap();
    let calls = alone.says(0, "complete", "");
    assert!(
        calls.contains("--dest=:1.7 /Windows/2 org.kde.konsole.Window.setCurrentSession int32:5"),
        "{calls}"
    );
    for service in ["", "a b.c", "-x.y", "x.y;z"] {
        alone.is_in("konsole", vars(service));
        assert_eq!(alone.says(1, "unavailable", "its tab of Konsole is not recorded"), "");
    }
}

/// A window system in which window 8 is the agent's and 9 is active, until 8 is
/// told to be.
struct System {
    /// The variable that shows it.
    var: &'static str,
    /// Its tools, with what they run.
    tools: &'static [(&'static str, &'static str)],
    /// The call that tells it.
    told: &'static str,
    /// How far it goes.
    state: &'static str,
}

const SYSTEMS: [System; 4] = [
    System {
        var: "SWAYSOCK",
        tools: &[(
            "swaymsg",
            "a=$(cat active); p=$(cat owner); case \"$*\" in *get_tree) \
             [ $a = 8 ] && x=true || x=false; echo \"{\\\"id\\\":1,\\\"nodes\\\":[\
             {\\\"id\\\":9,\\\"pid\\\":4000000,\\\"focused\\\":false},{\\\"id\\\":8,\\\"pid\\\":$p,\\\"focused\\\":$x}]}\" ;; \
             *) echo 8 >active ;; esac",
        )],
        told: "swaymsg [con_id=8] focus",
        state: "complete",
    },
    System {
        var: "HYPRLAND_INSTANCE_SIGNATURE",
        tools: &[(
            "hyprctl",
            "case \"$*\" in activewindow*) echo \"{\\\"address\\\":\\\"0x$(cat active)\\\"}\" ;; \
             clients*) echo \"[{\\\"address\\\":\\\"0x9\\\",\\\"pid\\\":4000000},\
             {\\\"address\\\":\\\"0x8\\\",\\\"pid\\\":$(cat owner)}]\" ;; *) echo 8 >active ;; esac",
        )],
        told: "hyprctl dispatch focuswindow address:0x8",
        state: "partial",
    },
    System {
        var: "NIRI_SOCKET",
        tools: &[(
            "niri",
            "[ $(cat active) = 8 ] && x=true || x=false; case \"$*\" in *windows) \
             echo \"[{\\\"id\\\":9,\\\"pid\\\":4000000,\\\"is_focused\\\":false},\
             {\\\"id\\\":8,\\\"pid\\\":$(cat owner),\\\"is_focused\\\":$x}]\" ;; *) echo 8 >active ;; esac",
        )],
        told: "niri msg action focus-window --id 8",
        state: "partial",
    },
    System {
        var: "DISPLAY",
        tools: &[
            (
                "wmctrl",
                "h=$(cat /proc/sys/kernel/hostname); case \"$*\" in -lp) \
                 echo \"0x00000009  0 4000000 $h x\"; echo \"0x00000008 -1 $(cat owner) $h a b\"; \
                 echo \"0x00000007 0 $(cat owner) elsewhere y\" ;; *) echo 8 >active ;; esac",
            ),
            ("xprop", "echo \"_NET_ACTIVE_WINDOW(WINDOW): window id # 0x$(cat active)\""),
        ],
        told: "wmctrl -i -a 0x00000008",
        state: "complete",
    },
];

#[test]
fn a_window_is_brought_to_the_front_where_it_is_the_only_one_of_its_terminal() {
    for System { var, tools, told, state } in SYSTEMS {
        let world = World::new();
        let alone = Alone::start(&world, "foot", &[]);
        alone.is_in("foot", json!({}));
        let vars = [(var, "1")];
        let bare = world.path("bin").display().to_string();
        let (code, value, _) = alone.focus(&[(var, "1"), ("PATH", &bare)]);
        assert_eq!(code, Some(69), "{var}: {value}");
        for (name, script) in tools {
            alone.tool(name, script);
        }
        let set = |owner: u32| {
            fs::write(world.path("owner"), owner.to_string()).unwrap();
            fs::write(world.path("active"), "9").unwrap();
        };
        set(alone.above());
        let (code, value, calls) = alone.focus(&vars);
        assert_eq!(
            (code == Some(0), &value["state"]),
            (state == "complete", &json!(state)),
            "{var}: {value}"
        );
        assert_eq!(
            (&value["raised"], &value["selected"], &value["verified"]),
            (&json!(true), &json!(false), &json!(true))
        );
        assert!(calls.contains(told), "{var}: {calls}");
        // It is already.
        let (_, value, calls) = alone.focus(&vars);
        assert_eq!((&value["raised"], &value["commands"]), (&json!(true), &json!([])), "{var}");
        assert!(!calls.contains(told), "{var}: {calls}");
        // A window of nobody above it is not its window.
        let other = world.harness("claude");
        set(other.pid());
        let (code, value, calls) = alone.focus(&vars);
        assert_eq!((code, &value["state"]), (Some(1), &json!("unavailable")), "{var}: {value}");
        assert!(!calls.contains(told), "{var}: {calls}");
        // A window with tabs is only a part of the way.
        alone.is_in("ghostty", json!({}));
        set(alone.agent().parse().unwrap());
        let (code, value, _) = alone.focus(&vars);
        assert_eq!(
            (code, &value["state"], &value["raised"]),
            (Some(1), &json!("partial"), &json!(true)),
            "{var}"
        );
        let (code, value, _) = alone.focus(&[]);
        assert_eq!(
            (code, &value["state"], &value["raised"]),
            (Some(1), &json!("unavailable"), &json!(null)),
            "{var}"
        );
    }
}

#[test]
fn of_several_windows_none_is_taken_unless_the_record_names_it() {
    let world = World::new();
    let alone = Alone::start(&world, "xterm", &[]);
    alone.is_in("generic", json!({}));
    alone.tool(
        "wmctrl",
        "h=$(cat /proc/sys/kernel/hostname); case \"$*\" in -lp) for w in 8 9; do \
         echo \"0x0000000$w 0 $(cat owner) $h x\"; done ;; *) echo ${3#0x} >active ;; esac",
    );
    alone.tool("xprop", "echo \"_NET_ACTIVE_WINDOW(WINDOW): window id # 0x$(cat active)\"");
    fs::write(world.path("owner"), alone.above().to_string()).unwrap();
    fs::write(world.path("active"), "1").unwrap();
    let vars = [("DISPLAY", ":1")];
    let (code, value, calls) = alone.focus(&vars);
    assert_eq!(code, Some(1));
    assert_eq!(value["reason"], "its terminal has 2 windows, and which one is its is not known");
    assert!(!calls.contains("-i -a"), "{calls}");
    alone.is_in("generic", json!({"WINDOWID": "9"}));
    let (code, value, calls) = alone.focus(&vars);
    assert_eq!((code, &value["raised"]), (Some(0), &json!(true)), "{value}");
    assert!(calls.contains("wmctrl -i -a 0x00000009"), "{calls}");
}

#[test]
fn a_script_of_macos_gets_its_session_as_an_argument() {
    let world = World::new();
    let alone = Alone::start(&world, "terminal", &[]);
    let id = "8A2C3E1F-0000-4000-8000-0123456789AB";
    alone.is_in("iterm2", json!({"ITERM_SESSION_ID": format!("w0t1p0:{id}")}));
    alone.tool("osascript", "for last; do :; done; echo \"$last\" >last; cat answer");
    for (answer, state) in [("true", "partial"), ("false", "failed"), ("none", "unavailable")] {
        fs::write(world.path("answer"), answer).unwrap();
        let (code, value, _) = alone.focus(&[]);
        assert_eq!((code, &value["state"]), (Some(1), &json!(state)), "{answer}: {value}");
        assert_eq!(fs::read_to_string(world.path("last")).unwrap().trim(), id);
        assert!(!value["commands"][0][2].as_str().unwrap().contains(id));
    }
    fs::write(world.path("answer"), "true").unwrap();
    alone.is_in("macos_terminal", json!({"TERM_SESSION_ID": ""}));
    assert_eq!(alone.focus(&[]).1["state"], "partial");
    assert_eq!(fs::read_to_string(world.path("last")).unwrap().trim(), alone.terminal.name);
}

#[test]
fn a_terminal_without_a_way_says_so() {
    let world = World::new();
    let alone = Alone::start(&world, "terminal", &[]);
    for (terminal, reason) in [
        ("windows_terminal", "there is no way to windows_terminal"),
        ("", "its terminal is not known"),
        ("kitty", "its window of kitty is not recorded"),
        ("screen", "its window of screen is not recorded"),
        ("wezterm", "its pane of WezTerm is not recorded"),
        ("zellij", "its pane of Zellij is not recorded"),
        ("iterm2", "its session of iTerm2 is not recorded"),
    ] {
        alone.is_in(terminal, json!({}));
        alone.says(1, "unavailable", reason);
    }
}

#[test]
fn a_window_of_screen_is_selected_where_a_terminal_shows_it() {
    let test = "focus_screen";
    if !has_tool("screen", test) {
        return;
    }
    let world = World::new();
    world.stub("claude");
    let screen = |args: &[&str]| {
        let mut command = Command::new("screen");
        world.bare(&mut command);
        command.env("TERM", "xterm").env("SCREENDIR", world.path("screens")).args(args);
        command
    };
    fs::create_dir(world.path("screens")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(world.path("screens"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(world.path("s.json"), claude("s", "")).unwrap();
    fs::write(
        world.path("s.sh"),
        format!(
            "tongs-hook claude SessionStart <'{0}/s.json'; touch '{0}/s.up'",
            world.path("").display()
        ),
    )
    .unwrap();
    let (agent, script) = (world.path("bin/claude"), world.path("s.sh"));
    let line = format!("sh {0}; while [ -e {0} ]; do read x || sleep 1; done", script.display());
    let start = [
        "-c",
        "/dev/null",
        "-dmS",
        "t",
        agent.to_str().unwrap(),
        "--norc",
        "--noprofile",
        "-c",
        &line,
    ];
    assert_eq!(finish(screen(&start), b"").code, Some(0));
    eventually("the agent's hook", || world.path("s.up").exists().then_some(()));
    let sty = world.record()["terminal_env"]["STY"].as_str().unwrap().to_string();
    let quit = || finish(screen(&["-S", &sty, "-X", "quit"]), b"");
    let focus = || {
        let mut command = world.command("tongs-agents");
        command.env("SCREENDIR", world.path("screens")).args(["focus", "s", "--json"]);
        let ran = finish(command, b"");
        (ran.code, checked(&world, &ran))
    };
    let (code, value) = focus();
    assert_eq!((code, &value["reason"]), (Some(1), &json!("no terminal shows its screen")));
    assert_eq!(value["command"], json!(["screen", "-x", sty, "-p", "0"]));
    let terminal = Terminal::run(screen(&["-x", &sty]));
    let listed = || finish(screen(&["-ls", &sty]), b"").out.contains("ttached)");
    eventually("the terminal", || {
        (listed() && !finish(screen(&["-ls", &sty]), b"").out.contains("Detached")).then_some(())
    });
    assert_eq!(finish(screen(&["-S", &sty, "-X", "screen", "sh"]), b"").code, Some(0));
    let number = || finish(screen(&["-S", &sty, "-Q", "number"]), b"").out;
    eventually("another window", || number().starts_with('1').then_some(()));
    let (code, value) = focus();
    assert_eq!(
        (code, &value["state"], &value["verified"]),
        (Some(0), &json!("complete"), &json!(true)),
        "{value}"
    );
    assert!(number().starts_with('0'));
    drop(terminal);
    quit();
}
