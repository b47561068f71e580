//! The full screen, in real terminals of tmux.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::focus::Terminal;
use crate::status::record;
use crate::watch::replace;
use crate::world::{Ran, World, claude, eventually, finish, has_tool};

/// A terminal of so many columns and rows with a shell in it; ends with all that
/// runs in it when dropped.
pub struct Screen<'w> {
    world: &'w World,
    socket: PathBuf,
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

impl<'w> Screen<'w> {
    /// `None` where tmux is not installed.
    pub fn start(world: &'w World, size: (usize, usize), test: &str) -> Option<Screen<'w>> {
        if !has_tool("tmux", test) {
            return None;
        }
        let screen = Screen { world, socket: world.path("tmux") };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        screen.good(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "env PS1='$ ' bash --norc --noprofile",
        ]);
        screen.until("the shell", |text| text.contains('$'));
        Some(screen)
    }

    /// The same with the monitor in it and its list on the screen.
    fn monitor(
        world: &'w World,
        size: (usize, usize),
        line: &str,
        test: &str,
    ) -> Option<Screen<'w>> {
        let screen = Screen::start(world, size, test)?;
        screen.run(line);
        Some(screen)
    }

    /// Runs the monitor from the shell.
    #[track_caller]
    fn run(&self, line: &str) {
        self.types(&format!("clear; {line}\n"));
        self.until(line, |text| {
            text.lines().next_back().is_some_and(|l| l.starts_with("Enter go"))
        });
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        self.world.bare(&mut command);
        command
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .arg("-S")
            .arg(&self.socket)
            .args(args);
        command
    }

    fn tmux(&self, args: &[&str]) -> Ran {
        finish(self.command(args), b"")
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let ran = self.tmux(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.out.trim_end_matches('\n').to_string()
    }

    /// What the screen shows.
    fn text(&self) -> String {
        self.good(&["capture-pane", "-p"])
    }

    /// The lines of the screen; the empty ones at its end are left out.
    fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_string).collect()
    }

    /// What tmux knows of the pane.
    fn ask(&self, format: &str) -> String {
        self.good(&["display-message", "-p", format])
    }

    /// Waits until this holds of the screen's text, and returns it.
    #[track_caller]
    pub fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::time::Instant::now() < end {
            last = self.text();
            if is(&last) {
                return last;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{what}:\n{last}");
    }

    /// Presses keys by tmux's names.
    pub fn keys(&self, keys: &[&str]) {
        self.good(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub fn types(&self, text: &str) {
        self.good(&["send-keys", "-l", text]);
    }

    /// Waits until the chosen line has this text.
    #[track_caller]
    fn chosen(&self, want: &str) {
        self.until(&format!("{want} is chosen"), |text| {
            text.lines().any(|line| line.starts_with("> ") && line.contains(want))
        });
    }

    /// The process of the program that runs in the shell.
    #[track_caller]
    fn pid(&self) -> String {
        let shell = self.ask("#{pane_pid}");
        eventually("the program", || {
            let path = format!("/proc/{shell}/task/{shell}/children");
            let children = fs::read_to_string(path).unwrap();
            children.split_whitespace().next().map(str::to_string)
        })
    }

    /// Waits until the shell asks for the next command, and checks that the
    /// terminal is as it was before.
    #[track_caller]
    fn is_given_back(&self, modes: &str, how: &str) {
        self.until(&format!("the shell after {how}"), |text| {
            text.trim_end().ends_with('$') && !text.contains("Enter go")
        });
        assert_eq!(self.ask("#{alternate_on} #{cursor_flag} #{wrap_flag}"), "0 1 1", "{how}");
        assert_eq!(self.modes(), modes, "{how}");
    }

    /// The modes of the terminal, as another program of it sees them.
    fn modes(&self) -> String {
        let mut stty = Command::new("stty");
        stty.args(["-a", "-F", &self.ask("#{pane_tty}")]);
        // The size may be another one by now.
        let ran = finish(stty, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.lines().filter(|line| !line.starts_with("speed")).collect::<Vec<_>>().join("\n")
    }
}

/// A record of a session by its id, with these fields and an event long ago.
fn session(world: &World, id: &str, more: Value) {
    let mut with = json!({"ts": 1_700_000_000_u64, "repo": id});
    with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(world.sessions()).unwrap();
    replace(world, &record(id, with));
}

/// Keeps the maintainer away: it would add the agents of other tests, and these
/// records are old.
#[must_use]
fn unmaintained(world: &World) -> fs::File {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(world.sessions()).unwrap();
    let path = world.sessions().join(".fleet-maintenance.lock");
    let lock = fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    lock
}

/// A few sessions, in the order of attention.
#[must_use]
fn few(world: &World) -> fs::File {
    let lock = unmaintained(world);
    session(world, "alpha", json!({"status": "waiting", "detail": "permission: Bash"}));
    session(world, "beta", json!({"status": "error", "detail": "rate limited"}));
    session(world, "gamma", json!({"status": "idle", "detail": "done"}));
    session(world, "delta", json!({"status": "ended", "detail": ""}));
    lock
}

#[test]
fn it_shows_who_asks_first_and_keys_go_round() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) =
        Screen::monitor(&world, (80, 12), "tongs-agents monitor", "it_shows_who_asks_first")
    else {
        return;
    };
    let lines = screen.lines();
    assert!(
        lines[0].starts_with("3 ask for you  1 waiting  1 error  1 idle  1 ended"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("  STATUS"), "{lines:?}");
    let order: Vec<&str> = ["alpha", "beta", "gamma", "delta"]
        .into_iter()
        .filter(|id| lines.join("").contains(id))
        .collect();
    assert_eq!(order.len(), 4);
    let at = |id: &str| lines.iter().position(|line| line.contains(id)).unwrap();
    assert!(
        at("alpha") == 2 && at("beta") == 3 && at("gamma") == 4 && at("delta") == 5,
        "{lines:?}"
    );
    assert!(lines[11].starts_with("Enter go"), "{lines:?}");
    screen.chosen("alpha");
    for (keys, want) in [
        (&["j"][..], "beta"),
        (&["Down"], "gamma"),
        (&["k"], "beta"),
        (&["Up", "Up", "Up"], "alpha"),
        (&["G"], "delta"),
        (&["n"], "alpha"),
        (&["n"], "beta"),
        (&["N"], "alpha"),
        (&["N"], "gamma"),
        (&["Home"], "alpha"),
        (&["End"], "delta"),
        (&["PageUp"], "alpha"),
        (&["NPage"], "delta"),
        (&["g"], "alpha"),
    ] {
        screen.keys(keys);
        screen.chosen(want);
    }
    // Every order by its name; a choice stays with its session.
    for (name, first) in
        [("status", "alpha"), ("age", "alpha"), ("repo", "alpha"), ("attention", "alpha")]
    {
        screen.keys(&["s"]);
        let by = |text: &str| text.lines().next_back().is_some_and(|l| l == format!("by {name}"));
        let text = screen.until(name, by);
        assert!(text.lines().nth(2).unwrap().contains(first), "{text}");
    }
    for (key, count, only) in [("3", 1, "alpha"), ("2", 1, "gamma"), ("4", 1, "beta")] {
        screen.keys(&[key]);
        screen.until(only, |text| {
            text.contains(&format!("{count} of 4 listed")) && text.contains(only)
        });
        screen.chosen(only);
    }
    screen.keys(&["1"]);
    screen.until("no running one", |text| text.contains("No session is like that."));
    screen.keys(&["0"]);
    screen.until("all", |text| !text.contains("listed"));
    screen.keys(&["?"]);
    screen.until("help", |text| text.contains("mark what all ask for as seen"));
    screen.keys(&["x"]);
    screen.until("no help", |text| text.contains("alpha"));
    for level in ["waiting", "none", "all"] {
        screen.keys(&["m"]);
        screen.until(level, |text| {
            text.lines().next_back().is_some_and(|l| l == format!("notices: {level}"))
        });
    }
}

#[test]
fn words_narrow_the_list_as_they_are_typed_and_a_paste_is_no_key() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) = Screen::monitor(&world, (80, 12), "tongs-agents monitor", "words_narrow")
    else {
        return;
    };
    screen.types("/RATE");
    screen.until("beta alone", |text| text.contains("beta") && text.contains("1 of 4 listed"));
    screen.until("the words", |text| text.contains("/RATE_"));
    screen.keys(&["BSpace", "BSpace", "BSpace", "BSpace"]);
    screen.until("all again", |text| !text.contains("listed"));
    // Letters are words here and no keys.
    screen.types("qdone");
    screen.until("nothing", |text| text.contains("No session is like that."));
    screen.keys(&["C-u"]);
    screen.types("done");
    screen.keys(&["Enter"]);
    screen.until("kept", |text| text.contains("1 of 4 listed with 'done'"));
    screen.chosen("gamma");
    screen.keys(&["Escape"]);
    screen.until("given up", |text| !text.contains("listed"));
    // Pasted text is what its user wants found while he types, and nothing else.
    screen.good(&["set-buffer", "q\nq日本"]);
    screen.good(&["paste-buffer", "-p"]);
    screen.keys(&["G"]);
    screen.chosen("delta");
    screen.keys(&["/"]);
    screen.until("typing", |text| text.contains("/_"));
    screen.good(&["paste-buffer", "-p"]);
    screen.until("the paste", |text| text.contains("/qq日本_"));
    screen.keys(&["Escape"]);
    screen.until("the list", |text| text.contains("Enter go"));
    screen.keys(&["q"]);
    screen.until("the end", |text| !text.contains("Enter go"));
}

#[test]
fn details_are_of_the_chosen_session_and_change_with_it() {
    let world = World::new();
    let _lock = few(&world);
    let long = json!({"status": "waiting", "detail": "x".repeat(100), "title": "a title"});
    session(&world, "alpha", long);
    let Some(screen) = Screen::monitor(&world, (60, 24), "tongs-agents monitor", "details") else {
        return;
    };
    screen.keys(&["d"]);
    let text = screen.until("details", |text| text.contains("title") && text.contains("a title"));
    assert!(text.contains(&format!("detail            {}", "x".repeat(42))), "{text}");
    assert!(text.contains(&format!("\n                  {}", "x".repeat(42))), "{text}");
    screen.keys(&["j"]);
    let beta = "detail            rate limited";
    screen.until("of beta", |text| text.contains(beta) && !text.contains("a title"));
    session(&world, "beta", json!({"status": "error", "detail": "rate limited again"}));
    screen.until("anew", |text| text.contains("detail            rate limited again"));
    screen.keys(&["d"]);
    screen.until("closed", |text| !text.contains("harness_id"));
}

#[test]
fn every_size_is_drawn_for_and_hostile_text_moves_nothing() {
    let world = World::new();
    let _lock = unmaintained(&world);
    let evil = "\u{1b}[2J\u{1b}]0;pwned\u{7}\r\n\u{202e}\u{9b}5A 日本語 e\u{301}";
    let hostile = json!({"status": "waiting", "repo": "\u{1b}c", "detail": evil, "branch": evil});
    session(&world, "evil", hostile);
    let wide = json!({"status": "idle", "repo": "日".repeat(80), "detail": "w".repeat(500)});
    session(&world, "wide", wide);
    let Some(screen) = Screen::monitor(&world, (80, 10), "tongs-agents monitor", "every_size")
    else {
        return;
    };
    for (columns, rows) in [(200, 50), (40, 10), (12, 4), (2, 2), (1, 1), (33, 3), (80, 10)] {
        screen.good(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        // Its first line, cut where the screen ends.
        let head: String = "2 ask for you  1 waiting".chars().take(columns).collect();
        let head = if columns < 24 {
            format!("{}…", head.chars().take(columns - 1).collect::<String>())
        } else {
            head
        };
        let foot =
            |text: &str| text.lines().nth(rows - 1).is_some_and(|l| l.starts_with("Enter go"));
        screen.until(&format!("{columns}x{rows}"), |text| {
            text.starts_with(&head) && (rows < 3 || columns < 20 || foot(text))
        });
    }
    let text = screen.text();
    assert!(text.contains("\\u{1b}c"), "{text}");
    assert!(!screen.ask("#{pane_title}").contains("pwned"));
}

#[test]
fn five_hundred_sessions_are_a_list_like_any_other() {
    let world = World::new();
    let _lock = unmaintained(&world);
    for n in 0..500 {
        let status = if n == 321 { "waiting" } else { "idle" };
        session(&world, &format!("s{n:03}"), json!({"status": status}));
    }
    let Some(screen) = Screen::monitor(&world, (80, 24), "tongs-agents monitor", "five_hundred")
    else {
        return;
    };
    screen.chosen("s321");
    assert!(screen.text().starts_with("500 ask for you  1 waiting  499 idle"));
    screen.keys(&["G"]);
    screen.chosen("s499");
    screen.keys(&["PageUp"]);
    screen.chosen("s479");
    screen.types("/s25");
    screen.until("ten of them", |text| text.contains("10 of 500 listed"));
    screen.keys(&["Escape"]);
    screen.until("all", |text| !text.contains("listed"));
    screen.keys(&["g"]);
    screen.chosen("s321");
    for id in ["s499", "s321"] {
        let is_it = |path: &PathBuf| {
            let record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            record["session_id"] == id
        };
        fs::remove_file(world.record_files().into_iter().find(is_it).unwrap()).unwrap();
    }
    screen.until("two fewer", |text| text.starts_with("498 ask for you  498 idle"));
    screen.chosen("s000");
}

#[test]
fn the_terminal_is_given_back_at_every_end() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) = Screen::start(&world, (80, 12), "the_terminal_is_given_back") else {
        return;
    };
    let modes = screen.modes();
    screen.run("tongs-agents monitor; echo \"ended $?\"");
    assert_eq!(screen.ask("#{alternate_on} #{cursor_flag} #{wrap_flag}"), "1 0 0");
    assert_ne!(screen.modes(), modes);
    screen.keys(&["q"]);
    screen.until("its status", |text| text.contains("ended 0"));
    screen.is_given_back(&modes, "q");
    screen.run("tongs-agents monitor; echo \"ended $?\"");
    screen.keys(&["C-c"]);
    // The shell's own list ends by the key as well.
    screen.is_given_back(&modes, "Control-C");
    for (signal, status) in [
        ("TERM", 143),
        ("HUP", 129),
        ("QUIT", 131),
        ("SEGV", 139),
        ("ABRT", 134),
        ("BUS", 135),
        ("USR1", 138),
        ("PWR", 158),
        ("64", 192),
    ] {
        screen.run("tongs-agents monitor; echo \"ended $?\"");
        let mut kill = Command::new("kill");
        kill.args([&format!("-{signal}"), &screen.pid()]);
        assert_eq!(finish(kill, b"").code, Some(0));
        screen.until(signal, |text| text.contains(&format!("ended {status}")));
        screen.is_given_back(&modes, signal);
    }
}

#[test]
fn it_stops_and_goes_on_as_the_shell_says() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) = Screen::start(&world, (80, 12), "it_stops_and_goes_on") else { return };
    let modes = screen.modes();
    screen.run("tongs-agents monitor");
    screen.keys(&["j"]);
    screen.chosen("beta");
    screen.keys(&["C-z"]);
    screen.until("stopped", |text| text.contains("Stopped"));
    screen.is_given_back(&modes, "Control-Z");
    screen.types("fg\n");
    screen.chosen("beta");
    assert_eq!(screen.ask("#{alternate_on} #{cursor_flag}"), "1 0");
    screen.keys(&["k"]);
    screen.chosen("alpha");
    screen.keys(&["q"]);
    screen.is_given_back(&modes, "q");
}

#[test]
fn it_waits_in_the_background_until_it_is_in_front_again() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) = Screen::start(&world, (80, 12), "it_waits_in_the_background") else {
        return;
    };
    let modes = screen.modes();
    screen.run("tongs-agents monitor");
    screen.keys(&["C-z"]);
    screen.until("stopped", |text| text.contains("Stopped"));
    screen.types("clear; bg\n");
    // The shell says so at its next prompt.
    screen.until("the background", |text| text.contains('&'));
    eventually("stopped by its terminal", || {
        screen.types("\n");
        screen.text().contains("Stopped").then_some(())
    });
    screen.is_given_back(&modes, "bg");
    screen.types("fg\n");
    screen.chosen("alpha");
    screen.keys(&["q"]);
    screen.is_given_back(&modes, "q");
    screen.types("clear; tongs-agents monitor &\n");
    eventually("stopped at once", || {
        screen.types("\n");
        screen.text().contains("Stopped").then_some(())
    });
    screen.types("fg\n");
    screen.chosen("alpha");
    screen.keys(&["q"]);
    screen.is_given_back(&modes, "q");
}

#[test]
fn a_terminal_that_takes_nothing_does_not_keep_it() {
    let world = World::new();
    let _lock = unmaintained(&world);
    for n in 0..500 {
        let detail = json!({"status": "waiting", "detail": "d".repeat(500)});
        session(&world, &format!("s{n}"), detail);
    }
    let mut command = world.command("tongs-agents");
    command.env("TERM", "xterm").arg("monitor");
    // Nobody reads what it writes.
    let mut terminal = Terminal::unread(command);
    let path = format!("/proc/{}", terminal.child.id());
    eventually("it is stuck", || {
        // It draws all anew, into a terminal that is full at last.
        terminal.keys.write_all(b"\x0c").unwrap();
        let wchan = fs::read_to_string(format!("{path}/wchan")).unwrap_or_default();
        wchan.contains("wait_woken").then_some(())
    });
    let mut kill = Command::new("kill");
    kill.args(["-TERM", &terminal.child.id().to_string()]);
    assert_eq!(finish(kill, b"").code, Some(0));
    eventually("its end", || terminal.child.try_wait().unwrap());
}

#[test]
fn a_panic_is_said_on_the_terminal_as_it_was() {
    let world = World::new();
    let Some(screen) = Screen::start(&world, (100, 24), "a_panic_is_said") else { return };
    let modes = screen.modes();
    let tests = std::env::current_exe().unwrap();
    screen.types(&format!(
        "clear; {} --exact monitor::panics_on_a_full_screen --ignored --nocapture\n",
        tests.display()
    ));
    // What is said before the terminal is given back goes with the other screen.
    screen.until("the reason", |text| text.contains("the reason of it") && text.contains("FAILED"));
    screen.types("clear\n");
    screen.is_given_back(&modes, "a panic");
}

#[test]
#[ignore = "a part of the test above"]
fn panics_on_a_full_screen() {
    let _tty = tongs::sys::tty::Tty::enter().unwrap();
    panic!("the reason of it");
}

#[test]
fn where_there_is_no_screen_it_says_so() {
    let world = World::new();
    let _lock = few(&world);
    let ran = world.agents(&["monitor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("not a terminal") && ran.err.contains("watch"), "{ran:?}");
    for bad in
        [&["monitor", "--notify", "loud"][..], &["monitor", "--refresh", "1ms"], &["monitor", "x"]]
    {
        let ran = world.agents(bad);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{ran:?}");
    }
    let Some(screen) = Screen::start(&world, (100, 12), "where_there_is_no_screen") else { return };
    let modes = screen.modes();
    for (before, why) in [
        ("TERM=dumb", "the terminal cannot move its cursor"),
        ("env -u TERM", "the terminal cannot move its cursor"),
        ("TONGS_AGENTS_STATE_DIR=/dev", "cannot use"),
    ] {
        screen.types(&format!("clear; {before} tongs-agents monitor; echo \"ended $?\"\n"));
        screen.until(before, |text| text.contains("ended 1") && text.contains(why));
        screen.is_given_back(&modes, before);
    }
}

#[test]
fn the_store_may_come_go_and_be_replaced() {
    let world = World::new();
    let (away, other) = (world.path("away"), world.path("other"));
    let _lock = few(&world);
    fs::rename(world.state(), &away).unwrap();
    let _other = unmaintained(&world);
    session(&world, "omega", json!({"status": "waiting"}));
    fs::rename(world.state(), &other).unwrap();
    let Some(screen) =
        Screen::monitor(&world, (80, 12), "tongs-agents monitor", "the_store_may_come")
    else {
        return;
    };
    screen.until("no store", |text| text.contains("no hook has written one yet"));
    fs::rename(&away, world.state()).unwrap();
    screen.chosen("alpha");
    fs::rename(world.state(), &away).unwrap();
    screen.until("gone", |text| text.contains("no hook has written one yet"));
    fs::rename(&other, world.state()).unwrap();
    screen.chosen("omega");
    fs::remove_dir_all(world.state()).unwrap();
    fs::rename(&away, world.state()).unwrap();
    screen.chosen("alpha");
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o777)).unwrap();
    screen.until("unsafe", |text| {
        text.contains("cannot use") && text.starts_with("nobody asks for you")
    });
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o700)).unwrap();
    screen.chosen("alpha");
}

#[test]
fn it_maintains_as_it_looks_and_a_watch_does_not() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("mine", "")).silent();
    let stamp = world.sessions().join(".fleet-maintenance.stamp");
    let mut watch = world.command("tongs-agents");
    watch.args(["watch", "--timeout", "10ms"]);
    assert_eq!(finish(watch, b"").code, Some(1));
    assert!(!stamp.exists());
    let line = "tongs-agents monitor --refresh 100ms";
    let Some(screen) = Screen::monitor(&world, (80, 12), line, "it_maintains") else { return };
    screen.until("mine", |text| text.contains("started"));
    assert!(stamp.exists());
    agent.kill();
    screen.until("gone", |text| !text.contains("started"));
    assert!(world.session("mine").is_none());
}

#[test]
fn only_what_changed_is_sent() {
    let world = World::new();
    let _lock = few(&world);
    let line = "tongs-agents monitor --refresh 100ms";
    let Some(screen) = Screen::monitor(&world, (80, 12), line, "only_what_changed") else { return };
    screen.chosen("alpha");
    let sent = world.path("sent");
    screen.good(&["pipe-pane", &format!("cat >'{}'", sent.display())]);
    screen.keys(&["j"]);
    screen.chosen("beta");
    // It is awake many times meanwhile.
    let pid = screen.pid();
    let sleeps = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = sleeps();
    eventually("ten ticks", || (sleeps() > before + 10).then_some(()));
    screen.keys(&["k"]);
    screen.chosen("alpha");
    let sent = eventually("both", || {
        let sent = String::from_utf8(fs::read(&sent).unwrap()).unwrap();
        (sent.matches("\x1b[?2026l").count() >= 2).then_some(sent)
    });
    assert_eq!(sent.matches("\x1b[?2026h").count(), 2, "{sent:?}");
    assert_eq!(sent.matches("\x1b[2K").count(), 4, "{sent:?}");
    assert!(!sent.contains("gamma") && !sent.contains("ask for you"), "{sent:?}");
}

#[test]
fn a_key_goes_to_the_session_and_marks_it_as_seen() {
    let world = World::new();
    let _lock = few(&world);
    world.stub("claude");
    let Some(screen) = Screen::start(&world, (80, 12), "a_key_goes_to_the_session") else { return };
    fs::write(world.path("payload"), claude("here", ",\"tool_name\":\"Bash\"")).unwrap();
    let pane = screen.good(&[
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{pane_id}",
        &format!(
            "exec '{}' --norc --noprofile -c 'tongs-hook claude PermissionRequest <{}; while :; do read x || exit; done'",
            world.path("bin/claude").display(),
            world.path("payload").display()
        ),
    ]);
    eventually("the agent", || world.session("here"));
    let monitor = screen.ask("#{pane_id}");
    let _client = Terminal::run(screen.command(&["attach-session"]));
    eventually("the client", || (screen.ask("#{session_attached}") == "1").then_some(()));
    screen.run("tongs-agents monitor");
    // Whom nobody can go to says why.
    screen.types("/alpha\n");
    screen.chosen("alpha");
    screen.keys(&["Enter"]);
    screen.until("why not", |text| text.contains("cannot go to 'alpha': the session is over"));
    screen.keys(&["Escape"]);
    screen.until("all", |text| !text.contains("listed"));
    screen.types("/Bash tmp\n");
    screen.until("one", |text| text.contains("1 of 5 listed"));
    screen.keys(&["Enter"]);
    eventually("its pane", || (screen.ask("#{pane_id}") == pane).then_some(()));
    eventually("the mark", || (world.session("here").unwrap()["seen"] == true).then_some(()));
    screen.good(&["select-window", "-t", &monitor]);
    screen.until("it says so", |text| {
        text.contains("went to claude in tmp") && text.contains("(seen)")
    });
}

#[test]
fn keys_mark_what_sessions_ask_for() {
    let world = World::new();
    let _lock = few(&world);
    let Some(screen) = Screen::monitor(&world, (80, 12), "tongs-agents monitor", "keys_mark")
    else {
        return;
    };
    screen.keys(&["j", "j"]);
    screen.chosen("gamma");
    screen.keys(&["a"]);
    screen.until("one", |text| {
        text.contains("idle (seen)") && text.contains("marked as seen") && text.starts_with("2 ask")
    });
    screen.chosen("gamma");
    screen.keys(&["g", "z"]);
    screen.until("put off", |text| {
        text.contains("waiting (snoozed)")
            && text.starts_with("1 asks")
            && text.contains("15 minutes")
    });
    screen.keys(&["A"]);
    // What is put off stays so, for a mark without end would let it ask again.
    screen.until("all", |text| text.matches("(seen)").count() == 2 && text.contains("(snoozed)"));
    for id in ["alpha", "beta", "gamma"] {
        assert_eq!(world.session(id).unwrap()["seen"], true);
    }
    screen.keys(&["j", "u"]);
    screen.until("asks again", |text| !text.contains("(snoozed)") && text.starts_with("2 ask"));
    screen.keys(&["G", "a"]);
    screen.until("nothing", |text| text.contains("it asks for nothing"));
}

/// A program that keeps what it was called with, one call a line, and then does
/// something.
fn notify_send(world: &World, then: &str) -> PathBuf {
    let calls = world.path("calls");
    fs::write(&calls, "").unwrap();
    let path = world.path("bin/notify-send");
    let text = format!(
        "#!/bin/sh\necho \"$*\" | tr '\\n' '|' >>'{0}'\necho >>'{0}'\n{then}\n",
        calls.display()
    );
    let mut sh = Command::new("sh");
    sh.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(&path);
    assert_eq!(finish(sh, text.as_bytes()).code, Some(0));
    calls
}

#[test]
fn what_begins_to_ask_is_told_of_once_by_the_level_that_is_set() {
    let world = World::new();
    let _lock = few(&world);
    let calls = notify_send(&world, "");
    let monitor = "DBUS_SESSION_BUS_ADDRESS=x tongs-agents monitor --notify waiting";
    let Some(screen) = Screen::monitor(&world, (80, 12), monitor, "what_begins_to_ask") else {
        return;
    };
    screen.chosen("alpha");
    let told = || fs::read_to_string(&calls).unwrap();
    session(&world, "one", json!({"status": "error", "detail": "passed over"}));
    screen.until("one", |text| text.contains("passed over"));
    session(&world, "two", json!({"status": "waiting", "waiting_for": "question"}));
    eventually("two", || told().contains("asks a question: two").then_some(()));
    screen.keys(&["m"]);
    screen.until("none", |text| text.contains("notices: none"));
    session(&world, "three", json!({"status": "waiting", "waiting_for": "question"}));
    screen.until("three", |text| text.contains("three"));
    screen.keys(&["m"]);
    screen.until("all", |text| text.contains("notices: all"));
    session(&world, "four", json!({"status": "error"}));
    eventually("four", || told().contains("has failed: four").then_some(()));
    // Not who asked already, nor who asked while none was wanted.
    assert_eq!(told().lines().count(), 2, "{}", told());
}

#[test]
fn a_notice_that_hangs_hinders_nobody() {
    let world = World::new();
    let _lock = few(&world);
    let pid = world.path("pid");
    let calls = notify_send(&world, &format!("echo $$ >'{}'; exec sleep 60", pid.display()));
    let monitor = "DBUS_SESSION_BUS_ADDRESS=x tongs-agents monitor";
    let Some(screen) = Screen::monitor(&world, (80, 12), monitor, "a_notice_that_hangs") else {
        return;
    };
    screen.chosen("alpha");
    session(&world, "late", json!({"status": "waiting", "waiting_for": "plan"}));
    let pid =
        eventually("the notice", || fs::read_to_string(&pid).ok().filter(|p| p.ends_with('\n')));
    screen.keys(&["G"]);
    screen.chosen("delta");
    let path = format!("/proc/{}", pid.trim());
    assert!(fs::exists(&path).unwrap(), "it hangs still");
    // After five seconds it is ended, and said to have failed.
    screen.until("said", |text| text.contains("cannot show notices"));
    assert!(!fs::exists(&path).unwrap());
    assert_eq!(fs::read_to_string(calls).unwrap().lines().count(), 1);
}

#[test]
fn it_ends_with_its_terminal() {
    let world = World::new();
    let _lock = few(&world);
    let line = "exec tongs-agents monitor";
    let Some(screen) = Screen::monitor(&world, (80, 12), line, "it_ends_with") else { return };
    let pid = screen.ask("#{pane_pid}");
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim(), "tongs-agents");
    screen.tmux(&["kill-server"]);
    eventually("its end", || (!fs::exists(format!("/proc/{pid}")).unwrap()).then_some(()));
}

/// Compares the screen with a capture that is kept, or writes it where
/// `TONGS_TEST_CAPTURE` is set: whoever does so looks at it.
#[track_caller]
fn like(screen: &Screen<'_>, name: &str, mark: &str) {
    let path = format!("{}/tests/fixtures/monitor/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TONGS_TEST_CAPTURE").is_some() {
        let text = screen.until(name, |text| text.starts_with("3 ask") && text.contains(mark));
        fs::write(&path, text).unwrap();
    }
    let want = fs::read_to_string(&path).unwrap();
    screen.until(&format!("{name} is not\n{want}"), |text| text == want.trim_end_matches('\n'));
}

#[test]
fn screens_are_as_they_were_looked_at() {
    let world = World::new();
    let _lock = unmaintained(&world);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for (id, harness, status, age, repo, branch, detail) in [
        ("a", "claude", "waiting", 125, "lantern", "main", "permission needed: Bash"),
        ("b", "codex", "running", 3_605, "harbour", "fix/keys", "using apply_patch"),
        ("c", "gemini", "idle", 90_005, "データ", "", "すべてのテストが通りました"),
        ("d", "copilot", "error", 605, "almanac", "", "rate limited\u{1b}[31m"),
        ("e", "pi", "running", 65, "sextant", "", "using bash"),
    ] {
        let more = json!({
            "harness_id": harness, "agent": harness, "status": status, "ts": now - age,
            "repo": repo, "branch": branch, "detail": detail, "cwd": format!("/src/{repo}"),
            "boot_id": "", "title": "a title"
        });
        session(&world, id, more);
    }
    let Some(screen) = Screen::monitor(&world, (90, 16), "tongs-agents monitor", "screens_are_as")
    else {
        return;
    };
    like(&screen, "list", "Enter");
    screen.keys(&["d"]);
    like(&screen, "details", "harness_id");
    screen.keys(&["d", "?"]);
    like(&screen, "help", "any key");
    screen.keys(&["x"]);
    screen.types("/r");
    like(&screen, "words", "/r_");
    screen.keys(&["Escape"]);
    screen.good(&["resize-window", "-x", "44", "-y", "8"]);
    like(&screen, "narrow", "find…");
    screen.good(&["resize-window", "-x", "20", "-y", "3"]);
    like(&screen, "tiny", "n next  a…");
}

#[test]
fn the_pictures_of_the_readme_are_what_the_program_shows() {
    let test = "the_pictures_of_the_readme";
    if !["tmux", "flock", "python3"].iter().all(|tool| has_tool(tool, test)) {
        return;
    }
    let world = World::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut make = Command::new("sh");
    world.bare(&mut make);
    make.arg(root.join("packaging/pictures/make.sh")).args([world.path("bin"), world.path("out")]);
    let ran = finish(make, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for name in ["monitor.svg", "status.svg"] {
        let kept = fs::read_to_string(root.join("packaging/pictures").join(name)).unwrap();
        let made = fs::read_to_string(world.path("out").join(name)).unwrap();
        assert!(kept == made, "{name} is an old one: run 'make pictures' and look at it");
        assert!(readme.contains(&format!("(packaging/pictures/{name})")));
    }
}
