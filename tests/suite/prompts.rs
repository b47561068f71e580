//! The examples for prompts, in real shells, a real server of tmux and real fzf:
//! what agents wrote is shown as text and is neither run nor expanded. zsh, fish,
//! fzf and starship are left out where they are not installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::focus::{Mux, WAIT};
use crate::status::{now, put, record};
use crate::watch::script;
use crate::world::{Ran, World, eventually, finish, has_tool};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/examples");

/// What a shell might take for its own, as much as the line has room for.
const FOR_SHELLS: &str = "$(touch pwned)`touch pwned`%~%F{red}${HOME}!!\\w";
/// The same for tmux.
const FOR_TMUX: &str = "#(touch pwned)#[fg=red]%H%M";
/// What a terminal might.
const FOR_TERMINALS: &str = "\u{1b}[31mred\ttab\nline\u{202e}";

/// Puts the one session that asks, for the reason that `detail` tells.
fn ask(world: &World, detail: &str) {
    put(world, &record("a", json!({"status": "waiting", "detail": detail})), false);
}

/// Makes the store one that no reader takes.
fn spoil(world: &World) {
    fs::set_permissions(world.sessions(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(world.agents(&["status", "--line", "plain"]).code, Some(1));
}

/// The line, for which the program is asked itself.
fn line(world: &World, options: &[&str]) -> String {
    let ran = world.agents(&[&["status", "--line", "plain"], options].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.out.trim_end().to_string()
}

/// Asserts that nothing of a record was run.
#[track_caller]
fn nothing_ran(world: &World) {
    for dir in ["project", "home", "."] {
        assert!(!world.path(dir).join("pwned").exists(), "{dir}");
    }
}

/// Puts a script in the place of `tongs-agents` that keeps its arguments, a line
/// a call; returns the file.
fn logged(world: &World) -> PathBuf {
    let log = world.path("calls");
    fs::remove_file(world.path("bin/tongs-agents")).unwrap();
    script(
        world,
        "tongs-agents",
        &format!("echo \"$*\" >>'{}'; exec tongs agents \"$@\"", log.display()),
    );
    log
}

/// The lines of a pane that are not empty.
fn screen(mux: &Mux<'_>, pane: &str) -> Vec<String> {
    let text = mux.good(&["capture-pane", "-p", "-t", pane]);
    text.lines().filter(|l| !l.is_empty()).map(str::to_string).collect()
}

/// Waits until a pane ends in these lines.
#[track_caller]
fn ends_in(mux: &Mux<'_>, pane: &str, lines: &[&str]) {
    eventually(&format!("{lines:?}"), || {
        let screen = screen(mux, pane);
        screen.iter().rev().take(lines.len()).rev().eq(lines).then_some(())
    });
}

/// Tries the example of a shell. `start` is how it begins, and `settings` stand
/// before the example in its file of them and give it a prompt of the exit status
/// in angle brackets; `no_path` leaves it without programs.
fn shell(world: &World, name: &str, start: &str, settings: &str, no_path: &str) {
    let Some(mux) = Mux::start(world, name, name) else { return };
    let log = logged(world);
    fs::create_dir_all(world.path("rc/fish")).unwrap();
    fs::create_dir_all(world.path("empty")).unwrap();
    let text = format!("{settings}. '{EXAMPLES}/prompt.{name}'\n. '{EXAMPLES}/prompt.{name}'\n");
    for file in ["rc/.zshrc", "rc/fish/config.fish", "rc/bashrc"] {
        fs::write(world.path(file), &text).unwrap();
    }
    let rc = world.path("rc").display().to_string();
    let pane = mux.good(&[
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{pane_id}",
        "-e",
        &format!("ZDOTDIR={rc}"),
        "-e",
        &format!("XDG_CONFIG_HOME={rc}"),
        &start.replace("RC", &rc),
    ]);
    let typed = |text: &str| mux.good(&["send-keys", "-t", &pane, text, "Enter"]);

    // No store, and nobody asks.
    ends_in(&mux, &pane, &["<0>"]);
    assert_eq!(screen(&mux, &pane), ["<0>"], "{name}");
    // A failed command stays failed.
    ask(world, FOR_SHELLS);
    typed("false");
    let text = line(world, &[]);
    assert!(text.ends_with(FOR_SHELLS), "{text}");
    ends_in(&mux, &pane, &["<0>false", &text, "<1>"]);
    ask(world, FOR_TERMINALS);
    typed("true");
    ends_in(&mux, &pane, &["<1>true", &line(world, &[]), "<0>"]);
    // One program a prompt; the lines above asked twice.
    let calls = fs::read_to_string(&log).unwrap();
    assert_eq!(calls.lines().count(), 3 + 2, "{name}: {calls}");
    spoil(world);
    typed("false");
    ends_in(&mux, &pane, &["<0>false", "<1>"]);
    typed(no_path);
    ends_in(&mux, &pane, &[&format!("<1>{no_path}"), "<0>"]);
    nothing_ran(world);
}

#[test]
fn bash_shows_the_line_and_expands_nothing_in_it() {
    shell(
        &World::new(),
        "bash",
        "bash --rcfile RC/bashrc -i",
        // What the user has there already still runs, with the status as it was.
        "PROMPT_COMMAND='PS1=\"<$?>\"'\n",
        "PATH=../empty",
    );
}

#[test]
fn zsh_shows_the_line_and_expands_nothing_in_it() {
    if has_tool("zsh", "the prompt of zsh") {
        let settings = "setopt promptsubst\nPROMPT='<%?>'\n";
        shell(&World::new(), "zsh", "zsh -i", settings, "PATH=../empty");
    }
}

#[test]
fn fish_shows_the_line_and_expands_nothing_in_it() {
    if has_tool("fish", "the prompt of fish") {
        let settings = "set -g fish_greeting\nfunction fish_prompt; echo -n \"<$status>\"; end\n";
        shell(&World::new(), "fish", "fish -i", settings, "set PATH ../empty; true");
    }
}

/// A server with the example, and one in whose pane a client shows it: what is
/// on this client's screen, the status line at the end.
fn shown<'w>(world: &'w World, test: &str) -> Option<(Mux<'w>, Mux<'w>, String)> {
    let mux = Mux::start(world, "inner", test)?;
    let text = fs::read_to_string(format!("{EXAMPLES}/tmux.conf")).unwrap();
    let conf = world.path("tmux.conf");
    fs::write(&conf, text.replace("/usr/local/share/tongs/examples", EXAMPLES)).unwrap();
    for _ in 0..2 {
        mux.good(&["source-file", &conf.display().to_string()]);
    }
    mux.good(&["set-option", "-g", "status-interval", "1"]);
    let outer = Mux::start(world, "outer", test)?;
    let attach = format!("env -u TMUX tmux -S '{}' attach-session", mux.socket.display());
    outer.good(&["set-option", "-g", "status", "off"]);
    let pane = outer.good(&["new-window", "-P", "-F", "#{pane_id}", &attach]);
    outer.good(&["resize-window", "-t", &pane, "-x", "160", "-y", "24"]);
    eventually("the client", || (!mux.clients().is_empty()).then_some(()));
    Some((mux, outer, pane))
}

#[test]
fn tmux_shows_the_line_and_takes_nothing_in_it_for_a_format() {
    let world = World::new();
    // Without anybody who asks.
    put(&world, &record("a", json!({})), false);
    let Some((mux, outer, pane)) = shown(&world, "status-right") else { return };
    let option = |name: &str| mux.good(&["show-options", "-gv", name]);
    let right = option("status-right");
    assert_eq!(right.matches("tongs-agents").count(), 1, "{right}");
    assert_eq!(option("status-right-length"), "81");

    let bar = || screen(&outer, &pane).pop().unwrap_or_default();
    let until = |what: &str, is: &dyn Fn(&str) -> bool| {
        eventually(what, || Some(bar()).filter(|text| is(text)));
    };
    // The window, and what tmux has at the right by itself.
    let free = |text: &str| {
        let rest = text.strip_prefix("[base] 0:sh*").unwrap_or("");
        rest.starts_with("   ") && rest.trim_start().starts_with('"')
    };
    until("an empty status line", &free);
    for text in [FOR_TMUX, "#{pane_id}#,#}%%d", FOR_TERMINALS] {
        ask(&world, text);
        let text = line(&world, &["--width", "40"]);
        until(&text, &|bar| bar.contains(&format!(" {text} \"")));
        let styled = outer.good(&["capture-pane", "-p", "-e", "-t", &pane]);
        assert!(!styled.contains("\u{1b}[31m"), "{styled}");
    }
    spoil(&world);
    until("an empty status line again", &free);
    nothing_ran(&world);
}

#[test]
fn a_session_that_is_picked_in_a_popup_is_gone_to() {
    let test = "a_session_that_is_picked_in_a_popup_is_gone_to";
    if !has_tool("fzf", test) {
        return;
    }
    let world = World::new();
    ask(&world, FOR_TERMINALS);
    let Some((mux, outer, pane)) = shown(&world, test) else { return };
    let agent = mux.agent(&["new-window", "-d", "-t", "base:"], "s", WAIT);
    let keys = |keys: &[&str]| outer.good(&[&["send-keys", "-t", &pane], keys].concat());
    let has = |text: &str| screen(&outer, &pane).iter().any(|l| l.contains(text));
    let open = || eventually("the popup", || has("go to:").then_some(()));
    // With its frame, for the picker goes on when fzf has ended.
    let closed = || eventually("no popup", || (!has("┌")).then_some(()));
    let rows = |count: usize| {
        eventually("the rows", || {
            let rows = screen(&outer, &pane).into_iter().filter(|l| l.contains("waiting "));
            Some(rows.collect::<Vec<_>>()).filter(|rows| rows.len() == count)
        })
    };
    // fzf would take what it shows, and searches meanwhile.
    let choose = |word: &str| {
        keys(&[word]);
        rows(1);
        keys(&["Enter"]);
    };

    keys(&["C-b", "a"]);
    open();
    let both = rows(2);
    let hostile = both.iter().find(|r| r.contains("tab")).unwrap();
    assert!(hostile.contains("\\u{1b}[31mred\\u{9}tab\\u{a}line\\u{202e}"), "{both:?}");
    keys(&["Escape"]);
    closed();
    assert_ne!(mux.clients()[0].2, agent);

    keys(&["C-b", "a"]);
    open();
    rows(2);
    choose("permission");
    eventually("the agent's pane", || (mux.clients()[0].2 == agent).then_some(()));
    closed();

    // What cannot be gone to says so and stays.
    keys(&["C-b", "a"]);
    open();
    rows(2);
    choose("31m");
    eventually("the reason", || has("tongs-agents: cannot go to").then_some(()));
    keys(&["Escape"]);
    closed();
}

/// Runs the picker with an fzf that does this.
fn pick(world: &World, fzf: &str) -> Ran {
    script(world, "fzf", fzf);
    let mut command = Command::new(format!("{EXAMPLES}/pick-session.sh"));
    world.bare(&mut command);
    finish(command, b"")
}

#[test]
fn the_picker_offers_escaped_lines_and_takes_one() {
    let world = World::new();
    let log = logged(&world);
    let ran = pick(&world, "cat");
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "pick-session: no sessions\n"));
    for (at, detail) in ["plain", FOR_TERMINALS, FOR_SHELLS].iter().enumerate() {
        let changes = json!({"status": if at == 1 { "waiting" } else { "running" }, "detail": detail, "repo": "a b"});
        put(&world, &record(&at.to_string(), changes), false);
    }
    // Maintained, so that nothing is said of that.
    fs::write(world.sessions().join(".fleet-maintenance.stamp"), now().to_string()).unwrap();
    let offered = world.path("offered");
    let take =
        |line: &str| pick(&world, &format!("cat >'{0}'; sed -n {line} '{0}'", offered.display()));
    take("1p");
    let text = fs::read_to_string(&offered).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines.iter().all(|columns| columns.len() == 5 && columns[3] == "a b"), "{text}");
    assert_eq!(lines[0][1..3], ["waiting", "claude"]);
    assert!(text.contains(FOR_SHELLS) && !text.contains('\u{1b}'), "{text}");
    let calls = fs::read_to_string(&log).unwrap();
    assert_eq!(calls.lines().last().unwrap(), format!("focus {}", lines[0][0]));

    // Nothing is chosen: fzf's exit statuses for it, and those for its faults.
    for (status, code) in [(1, 0), (130, 0), (2, 1), (127, 1)] {
        let ran = pick(&world, &format!("exit {status}"));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(code), "", ""));
    }
    let mut command = Command::new("/bin/sh");
    world.bare(&mut command);
    command.arg(format!("{EXAMPLES}/pick-session.sh")).env("PATH", world.path("home"));
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(69), "pick-session: fzf is not installed\n"));
    nothing_ran(&world);
}

/// What bash makes of this text as its prompt.
fn in_bash(world: &World, prompt: &str) -> String {
    let mut bash = Command::new("bash");
    world.bare(&mut bash);
    bash.args(["-c", "shopt -s promptvars; printf %s \"${1@P}\"", "bash", prompt]);
    let ran = finish(bash, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out
}

/// The command alone, as starship runs it; bash then expands it as it did what
/// old versions of starship gave it.
#[test]
fn the_module_for_starship_gives_bash_nothing_to_run() {
    let world = World::new();
    let path = format!("{EXAMPLES}/starship.toml");
    let text = fs::read_to_string(&path).unwrap();
    let command = text.split("'''\n").nth(1).unwrap();
    if has_tool("python3", "the module for starship as TOML") {
        let mut python = Command::new("python3");
        let read =
            "import json, sys, tomllib; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))))";
        python.args(["-c", read, &path]);
        let ran = finish(python, b"");
        let module: &Value = &ran.json()["custom"]["tongs"];
        assert_eq!(module["command"], command);
        assert_eq!((&module["when"], &module["shell"]), (&json!(true), &json!(["sh"])));
    }
    let run = || {
        let mut sh = Command::new("sh");
        world.bare(&mut sh);
        sh.args(["-c", command]);
        let ran = finish(sh, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.out.trim().to_string()
    };
    assert_eq!(run(), "");
    for hostile in
        ["$(touch pwned)`touch pwned`%~", "\\$(touch pwned)\\`touch pwned\\`", "* ? #x %H"]
    {
        ask(&world, hostile);
        let text = run();
        let want: String = line(&world, &["--width", "40"]).replace(['$', '`', '\\'], " ");
        assert_eq!(text, want.trim_end());
        assert_eq!(in_bash(&world, &text), text);
    }
    spoil(&world);
    assert_eq!(run(), "");
    nothing_ran(&world);
}

#[test]
fn starship_shows_the_line_and_nothing_when_nobody_asks() {
    if !has_tool("starship", "the module in starship itself") {
        return;
    }
    let world = World::new();
    let starship = |words: &[&str]| {
        // Wherever it is installed.
        let mut command = Command::new("starship");
        world.bare(&mut command);
        let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("STARSHIP_CONFIG", format!("{EXAMPLES}/starship.toml"));
        command.env("STARSHIP_SHELL", "bash").args(words);
        let ran = finish(command, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.out
    };
    assert_eq!(starship(&["module", "custom.tongs"]), "");
    ask(&world, FOR_TMUX);
    let text = starship(&["module", "custom.tongs"]);
    assert!(text.contains(&line(&world, &["--width", "40"])), "{text}");
    ask(&world, FOR_SHELLS);
    let prompt = in_bash(&world, &starship(&["prompt"]));
    assert!(prompt.contains("1 waiting: r  (touch pwned) touch pwned"), "{prompt}");
    nothing_ran(&world);
}

#[test]
fn the_scripts_are_clean() {
    if !has_tool("shellcheck", "the lint of the examples") {
        return;
    }
    for name in ["pick-session.sh", "push-to-phone.sh", "prompt.bash"] {
        let mut check = Command::new("shellcheck");
        check.arg(format!("{EXAMPLES}/{name}"));
        let ran = finish(check, b"");
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    }
}
