//! Completions in real shells, held against what the programs' help says.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::json;
use tongs::record::{Key, Status};

use crate::monitor::Screen;
use crate::status::{put, record};
use crate::world::{World, finish, has_tool};

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/completions").join(name)
}

type Words = BTreeSet<String>;

/// What bash offers for the last word of a line.
#[track_caller]
fn bash(world: &World, line: &[&str]) -> Words {
    let mut bash = Command::new("bash");
    world.bare(&mut bash);
    bash.args(["--norc", "--noprofile", "-c"])
        .arg(
            "set -u; source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
             _tongs_complete \"$1\"; printf '%s\\n' \"${COMPREPLY[@]}\"",
        )
        .arg("bash")
        .arg(script("tongs.bash"))
        .args(line);
    let ran = finish(bash, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line:?}: {ran:?}");
    ran.out.lines().filter(|line| !line.is_empty()).map(str::to_string).collect()
}

/// One fish, which is asked line by line: it reads what the programs say once.
struct Fish {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Fish {
    fn start(world: &World) -> Fish {
        let mut fish = Command::new("fish");
        world.bare(&mut fish);
        fish.args(["--no-config", "-c"])
            .arg(
                "source $argv[1]; while read -l line; \
                 complete -C (string replace -r '\\.$' '' -- $line | string collect); \
                 echo; end",
            )
            .arg(script("tongs.fish"));
        let mut child = fish.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Fish { child, answers }
    }

    /// What it offers for the last word of a line, without what it says of it.
    fn offers(&mut self, line: &[&str]) -> Words {
        // It takes spaces away at the end, and so a dot stands there.
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{}.\n", line.join(" ")).as_bytes()).unwrap();
        let answer = self.answers.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty());
        answer.map(|line| line.split('\t').next().unwrap().to_string()).collect()
    }
}

impl Drop for Fish {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The options of a command's help.
fn options(world: &World, command: &str) -> Words {
    let help = world.agents(&[command, "--help"]).out;
    let lines = help.lines().filter(|line| line.starts_with("  -"));
    // What it does stands behind them.
    let names = |line: &str| {
        let words: Vec<String> = line.split([' ', ',']).map(str::to_string).collect();
        words.into_iter().filter(|word| !word.is_empty()).take_while(|word| word.starts_with('-'))
    };
    lines.flat_map(names).collect()
}

fn commands(world: &World) -> Words {
    let help = world.agents(&["--help"]).out;
    let lines = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  -"));
    lines.map(|line| line.split_whitespace().next().unwrap().to_string()).collect()
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Words {
    words.into_iter().map(str::to_string).collect()
}

/// Checks what a shell offers everywhere.
fn offers(world: &World, mut shell: impl FnMut(&[&str]) -> Words) {
    put(world, &record("one", json!({"status": "idle", "repo": "a:b c"})), false);
    let id = world.session("one").unwrap()["short_id"].as_str().unwrap().to_string();
    let every = commands(world);
    assert!(every.len() > 20 && every.contains("run"), "{every:?}");
    let offered = shell(&["tongs-agents", ""]);
    assert!(every.is_subset(&offered), "{offered:?}");
    assert!(every.is_subset(&shell(&["tongs", "agents", ""])));
    assert!(words(["hook", "agents"]).is_subset(&shell(&["tongs", ""])));
    for command in &every {
        let want: Words =
            options(world, command).into_iter().filter(|o| o.starts_with("--")).collect();
        assert!(want.contains("--help"), "{command}");
        let offered = shell(&["tongs-agents", command, "--"]);
        let offered: Words = offered.into_iter().filter(|o| o.starts_with("--")).collect();
        assert_eq!(offered, want, "{command}");
    }
    let listed = world.agents(&["install", "--list"]).out;
    let harnesses = words(listed.lines().filter_map(|line| line.split(' ').next()));
    let of_install: Words = shell(&["tongs-agents", "install", "--agent", ""]);
    assert!(harnesses.len() > 15);
    assert_eq!(of_install, harnesses);
    assert!(of_install.is_subset(&shell(&["tongs-hook", ""])));
    assert!(of_install.is_subset(&shell(&["tongs-agents", "status", "--harness", ""])));
    let statuses = words(Status::ALL.map(Status::name));
    assert_eq!(shell(&["tongs-agents", "status", "--status", ""]), statuses);
    for command in ["show", "ack", "snooze", "wait", "focus"] {
        assert_eq!(shell(&["tongs-agents", command, ""]), words([id.as_str()]), "{command}");
    }
    let fields = shell(&["tongs-agents", "status", "-o", ""]);
    let known = words(Key::ALL.iter().map(|key| key.name()));
    assert!(fields.iter().all(|field| known.contains(field.trim_end_matches(','))), "{fields:?}");
    assert!(fields.len() >= known.len(), "{fields:?}");
    let schemas = world.agents(&["schema"]).out;
    assert_eq!(shell(&["tongs-agents", "schema", ""]), words(schemas.lines()));
    // Each word that is offered for an option is taken, and one that is not is none.
    for (command, option) in [("status", "--line"), ("status", "--sort"), ("monitor", "--notify")] {
        let offered = shell(&["tongs-agents", command, option, ""]);
        let said = world.agents(&[command, option, "none-of-them"]);
        assert_eq!(said.code, Some(64), "{said:?}");
        assert!(
            !offered.is_empty() && offered.iter().all(|word| said.err.contains(word)),
            "{said:?}"
        );
        let alternatives = said.err.rsplit("is one of ").next().unwrap();
        let count = alternatives.split(", ").count();
        assert_eq!(count, offered.len(), "{option}: {alternatives}");
    }
}

#[test]
fn bash_completes_what_the_help_says() {
    if has_tool("bash", "bash_completes") {
        let world = World::new();
        offers(&world, |line| bash(&world, line));
        let of = |line: &[&str]| bash(&world, line);
        assert_eq!(of(&["tongs-agents", "status", "--s"]), words(["--sort", "--status"]));
        assert_eq!(of(&["tongs-agents", "status", "-o", "repo,det"]), words(["repo,detail"]));
        assert_eq!(of(&["tongs-agents", "wait", "--until", "idle,wai"]), words(["idle,waiting"]));
        assert!(of(&["tongs-agents", "run", "--", "tongs-a"]).contains("tongs-agents"));
        assert_eq!(of(&["tongs-agents", "tree", ""]), Words::new());
    }
}

#[test]
fn fish_completes_what_the_help_says() {
    if has_tool("fish", "fish_completes") {
        let world = World::new();
        let mut fish = Fish::start(&world);
        offers(&world, |line| fish.offers(line));
    }
}

/// Its lists are made from the same help; here it is what a user types.
#[test]
fn zsh_completes_what_is_typed() {
    if !has_tool("zsh", "zsh_completes") {
        return;
    }
    let world = World::new();
    put(&world, &record("one", json!({"status": "idle", "repo": "a:b c"})), false);
    let id = world.session("one").unwrap()["short_id"].as_str().unwrap().to_string();
    let Some(screen) = Screen::start(&world, (120, 24), "zsh_completes") else { return };
    screen.types("clear; PS1='zsh> ' exec zsh -f\n");
    screen.until("zsh", |text| text.contains("zsh>"));
    let (dir, dump) = (script(""), world.path("zcompdump"));
    screen.types(&format!(
        "fpath=({} $fpath); autoload -U compinit; compinit -u -d {}; clear; echo ready\n",
        dir.display(),
        dump.display()
    ));
    screen.until("ready", |text| text.starts_with("ready"));
    for (typed, want) in [
        ("tongs-agents monit", "tongs-agents monitor"),
        ("tongs hoo", "tongs hook"),
        ("tongs agents status --resum", "tongs agents status --resumable"),
        ("tongs-agents status --sort att", "tongs-agents status --sort attention"),
        ("tongs-agents status --status dis", "tongs-agents status --status discovered"),
        ("tongs-agents status -o repo,waiting_si", "tongs-agents status -o repo,waiting_since"),
        ("tongs-agents install --agent claud", "tongs-agents install --agent claude"),
        ("tongs-hook gemi", "tongs-hook gemini"),
        ("tongs-agents schema install-l", "tongs-agents schema install-list"),
        ("tongs-agents show ", &format!("tongs-agents show {id}")),
        ("tongs-agents run -- tongs-hoo", "tongs-agents run -- tongs-hook"),
    ] {
        screen.keys(&["C-u"]);
        screen.types(typed);
        screen.keys(&["Tab"]);
        screen.until(want, |text| {
            // A list with commas may go on.
            let typed =
                |line: &str| line.trim_end().trim_end_matches(',') == format!("zsh> {want}");
            text.lines().any(typed)
        });
    }
}

#[test]
fn completions_say_nothing_where_tongs_is_gone() {
    if !has_tool("bash", "completions_say_nothing") {
        return;
    }
    let world = World::new();
    for name in ["tongs", "tongs-agents", "tongs-hook"] {
        std::fs::remove_file(world.path("bin").join(name)).unwrap();
    }
    for line in [&["tongs-agents", ""][..], &["tongs", ""], &["tongs-agents", "show", ""]] {
        assert_eq!(bash(&world, line), Words::new());
    }
}
