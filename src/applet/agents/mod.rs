//! `tongs-agents`: the commands for people and scripts, one file each.

mod ack;
mod bridge;
mod cleanup;
mod doctor;
mod export;
mod focus;
mod forget;
mod install;
mod lookup;
mod mcp;
mod monitor;
mod notify;
mod paths;
mod record;
mod run;
mod schema;
mod show;
mod snooze;
mod status;
mod tree;
mod uninstall;
mod wait;
mod watch;

use super::fail::{Stderr, bad_value, early, end, stdout, words};
use super::{Start, settle_command};
use crate::cli::{Exit, Fail, complain, parse};
use crate::harness::{self, ROWS, Row};
use crate::probe::tree::Limits;

/// The program's name in messages.
pub const PROG: &str = "tongs-agents";

/// One command.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[&str], &Start<'_>) -> Result<Exit, Fail>,
}

const COMMANDS: &[Command] = &[
    Command { name: "status", about: "show the live sessions", run: status::run },
    Command { name: "show", about: "show one session", run: show::run },
    Command {
        name: "watch",
        about: "tell of every change, also by notices and commands",
        run: watch::run,
    },
    Command {
        name: "monitor",
        about: "show the sessions on a full screen, and go to them",
        run: monitor::run,
    },
    Command { name: "ack", about: "mark what sessions ask for as seen", run: ack::run },
    Command { name: "snooze", about: "put off what a session asks for", run: snooze::run },
    Command {
        name: "lookup",
        about: "find the session behind a pid, a terminal or a launch",
        run: lookup::run,
    },
    Command { name: "tree", about: "show the processes below a process", run: tree::run },
    Command {
        name: "wait",
        about: "wait until a session is there, or rests, or is gone",
        run: wait::run,
    },
    Command { name: "focus", about: "go to a session's pane or tab", run: focus::run },
    Command { name: "notify", about: "report for a program that has no hook", run: notify::run },
    Command { name: "record", about: "tell of a process that was launched", run: record::run },
    Command { name: "forget", about: "remove the records of a process", run: forget::run },
    Command {
        name: "cleanup",
        about: "find unreported agents, remove what is over",
        run: cleanup::run,
    },
    Command {
        name: "install",
        about: "put hooks into the settings of harnesses",
        run: install::run,
    },
    Command { name: "uninstall", about: "take the hooks out again", run: uninstall::run },
    Command {
        name: "doctor",
        about: "look for what keeps sessions from being seen",
        run: doctor::run,
    },
    Command {
        name: "export",
        about: "print the sessions for another host to import",
        run: export::run,
    },
    Command { name: "bridge", about: "list and run bridges to other machines", run: bridge::run },
    Command { name: "mcp", about: "serve the sessions to agents", run: mcp::run },
    Command { name: "paths", about: "print the files and directories in use", run: paths::run },
    Command { name: "schema", about: "print the JSON Schema of an output", run: schema::run },
];

/// The command whose words are, for the most part, those of another program,
/// which need not be text.
const RUN: (&str, &str) = ("run", "start an agent with a launch id");

/// Runs the command that the command line names.
pub fn run(start: &Start<'_>) -> i32 {
    settle_command();
    end(PROG, command(start))
}

fn command(start: &Start<'_>) -> Result<Exit, Fail> {
    let args = start.args.get(1..).unwrap_or(&[]);
    if let Some((_, rest)) = args.split_first().filter(|(name, _)| **name == RUN.0.as_bytes()) {
        return run::run(rest, start);
    }
    let words = words(args)?;
    match words.split_first() {
        None => help(Exit::Usage),
        Some((&("--help" | "-h"), _)) => help(Exit::Ok),
        Some((&"--version", _)) => {
            let mut out = stdout();
            writeln!(out, "{PROG} {}", env!("CARGO_PKG_VERSION"))?;
            out.flush()?;
            Ok(Exit::Ok)
        }
        Some((name, rest)) => match COMMANDS.iter().find(|c| c.name == *name) {
            Some(command) => (command.run)(rest, start),
            None => Err(Fail::new(
                Exit::Usage,
                format!("unknown command or option '{name}' (see '{PROG} --help')"),
            )),
        },
    }
}

fn help(exit: Exit) -> Result<Exit, Fail> {
    let mut out = stdout();
    out.put(b"Usage: tongs-agents COMMAND [OPTION ...]\n\nShows and maintains the sessions of coding agents.\n\n")?;
    for (name, about) in COMMANDS.iter().map(|c| (c.name, c.about)).chain([RUN]) {
        writeln!(out, "  {name:<10} {about}")?;
    }
    out.put(
        b"\n  -h, --help   print this help; after a command, that command's\n  --version    print the version\n\n\
        Example: tongs-agents status --attention\n\n\
        Exit codes: 0 done, 1 no, 64 usage, 65 data, 69 missing, 74 input or output, 75 busy, 77 refused.\n\
        See tongs-agents(1).\n",
    )?;
    out.flush()?;
    Ok(exit)
}

/// Parses a command's options.
fn options<T: argh::FromArgs>(command: &str, words: &[&str]) -> Result<T, Fail> {
    parse(&format!("{PROG} {command}"), words).map_err(early)
}

/// The harness that an option names.
fn harness(word: &str) -> Result<&'static Row, Fail> {
    harness::named(word).ok_or_else(|| {
        let ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        let ids = ids.join(", ");
        Fail::new(Exit::Usage, format!("unknown harness '{word}': it is one of {ids}"))
    })
}

/// Refuses a version of the JSON output that this build does not have.
fn check_version(version: Option<u32>) -> Result<(), Fail> {
    match version {
        None | Some(1) => Ok(()),
        Some(n) => {
            Err(Fail::new(Exit::Usage, format!("there is no JSON version {n}: this build has 1")))
        }
    }
}

/// The limits of a walk as a command line gives them.
fn limits(depth: Option<usize>, nodes: Option<usize>) -> Result<Limits, Fail> {
    if nodes == Some(0) {
        return Err(Fail::new(Exit::Usage, "--max-nodes is at least 1"));
    }
    let default = Limits::DEFAULT;
    Ok(Limits { depth: depth.unwrap_or(default.depth), nodes: nodes.unwrap_or(default.nodes) })
}

/// Says something on standard error that does not end the command.
fn hint(text: &str) {
    complain(&mut Stderr, PROG, text);
}
