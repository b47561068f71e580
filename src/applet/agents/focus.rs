//! `tongs-agents focus`: goes to a session's pane or tab.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{errno, stdout};
use super::super::find::Selector;
use super::super::going::{go, put_json};
use super::super::view::Row;
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown, shell_line};
use crate::focus::{Outcome, Runner, State};
use crate::record::out::{Object, Sink};
use crate::sys::env::Var;
use crate::sys::{exec, stdio};

/// Go to a session's pane or tab.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents focus --next",
    note = "See tongs-agents(1).",
    error_code(0, "the session is before you, or with --dry-run there is a way"),
    error_code(1, "it is not, no session or several match, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(69, "the terminal's tool is not installed"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// go round the sessions that ask for you, from the one that you look at
    #[argh(switch)]
    next: bool,
    /// the client of tmux that is to show it; default: the one that you sit at
    #[argh(option, arg_name = "NAME")]
    client: Option<String>,
    /// show it in this terminal, by the terminal multiplexer's own attach command
    #[argh(switch)]
    attach: bool,
    /// change nothing and print the commands that would be run
    #[argh(switch)]
    dry_run: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// an id, harness, directory or title, or a part of one or of a branch
    #[argh(positional, arg_name = "QUERY")]
    query: Option<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("focus", words)?;
    check_version(options.json_version)?;
    let selector = match (&options.query, options.next) {
        (Some(query), false) => Selector::words(query)?,
        (None, true) => Selector::Asks,
        _ => return Err(Fail::new(Exit::Usage, "give a query or --next, and not both")),
    };
    if options.attach {
        check_attach(start, options.dry_run)?;
    }
    let mut run = Runner::new(start.env);
    run.dry_run = options.dry_run;
    run.client = options.client.as_deref();
    let (found, outcome) = go(&selector, &mut run)?;
    let json = options.json || options.json_version.is_some();
    // What leads to another machine is the user's to run.
    if options.attach && !outcome.command.is_empty() && found.row.bridge.is_empty() {
        return Err(attach(&outcome));
    }
    report(&found.row, &outcome, &run, json)
}

/// Refuses `--attach` where there is nothing to attach to.
fn check_attach(start: &Start<'_>, dry_run: bool) -> Result<(), Fail> {
    if dry_run {
        return Err(Fail::new(Exit::Usage, "--attach does not go with --dry-run"));
    }
    if !stdio::is_interactive() {
        return Err(Fail::new(Exit::No, "cannot attach: this is not a terminal"));
    }
    match start.env.get(Var::TMUX) {
        Some(_) => Err(Fail::new(Exit::No, "cannot attach: this is inside tmux")),
        None => Ok(()),
    }
}

/// Lets the attach command take this program's place.
fn attach(outcome: &Outcome) -> Fail {
    let words: Vec<&[u8]> = outcome.command.iter().map(|word| word.as_bytes()).collect();
    Fail::cannot(Exit::Io, "run", shell_line(&outcome.command), errno(exec::exec(&words, &[])))
}

fn report(row: &Row, outcome: &Outcome, run: &Runner<'_>, json: bool) -> Result<Exit, Fail> {
    let exit = match outcome.state {
        State::Complete | State::Planned => Exit::Ok,
        _ if outcome.missing.is_some() => Exit::Unavailable,
        State::Partial | State::Failed | State::Unavailable => Exit::No,
    };
    let mut out = stdout();
    if json {
        out.append(|sink| {
            let mut object = Object::open(sink);
            put_json(&mut object, row, outcome, run);
            object.close();
            sink.put(b"\n");
        })?;
        out.flush()?;
        return Ok(exit);
    }
    match outcome.state {
        State::Planned => {
            for call in &run.calls {
                writeln!(out, "{}", Shown(&shell_line(call)))?;
            }
        }
        State::Complete => {
            let terminal = row.field("terminal");
            writeln!(out, "{} in {}, {terminal}", row.harness, Shown(&row.place()))?;
        }
        _ => {}
    }
    if !outcome.command.is_empty() && exit != Exit::Ok {
        writeln!(out, "{}", Shown(&shell_line(&outcome.command)))?;
    }
    out.flush()?;
    if exit == Exit::Ok {
        return Ok(exit);
    }
    Err(Fail::cannot(exit, "go to", row.place(), &outcome.reason))
}
