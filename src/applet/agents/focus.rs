//! `tongs-agents focus`: goes to a session's pane or tab.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{errno, stdout, trouble};
use super::super::find::{Look, Match, Selector, several, unread};
use super::super::store::{Found, find};
use super::super::view::{Order, Row};
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown};
use crate::focus::{self, Outcome, Runner, State, Target};
use crate::probe::Here;
use crate::record::out::{Object, Sink, Style, string};
use crate::store::Store;
use crate::sys::env::Var;
use crate::sys::process::Verdict;
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
    let store = match find(start.env) {
        Found::Open(store) => store,
        Found::Missing => return Err(nobody(&selector)),
        Found::Unavailable(why, root) => return Err(Fail::new(Exit::No, trouble(why, &root))),
    };
    let found = choose(&store, &selector, &run)?;
    let outcome = match target(&found) {
        Ok(target) => focus::go(&target, &mut run),
        Err(reason) => Outcome::unavailable(reason),
    };
    let json = options.json || options.json_version.is_some();
    if options.attach && !outcome.command.is_empty() {
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

fn nobody(selector: &Selector) -> Fail {
    let text = match selector {
        Selector::Asks => "nobody asks for you".to_string(),
        selector => format!("no session matches '{selector}'"),
    };
    Fail::new(Exit::No, text)
}

/// The session that is meant.
fn choose(store: &Store, selector: &Selector, run: &Runner<'_>) -> Result<Match, Fail> {
    let look = Look::new(Here::of_reader());
    let mut found = look.find(store, selector).map_err(unread)?;
    if matches!(selector, Selector::Asks) {
        return next(found, run);
    }
    let over = found.iter().find(|m| !m.is_live()).map(|m| m.row.place());
    found.retain(Match::is_live);
    // Of a session and a process without one, the session is meant.
    if found.iter().any(|m| !m.nameless) {
        found.retain(|m| !m.nameless);
    }
    if found.len() > 1 {
        return Err(several(&selector.to_string(), found.iter().map(|m| &m.row)));
    }
    let over = || match over {
        Some(place) => Fail::cannot(Exit::No, "go to", place, "the session is over"),
        None => nobody(selector),
    };
    found.pop().ok_or_else(over)
}

/// The one that asks, behind the one that the user looks at, in the order of
/// `status`.
fn next(mut found: Vec<Match>, run: &Runner<'_>) -> Result<Match, Fail> {
    found.retain(Match::is_live);
    if found.is_empty() {
        return Err(nobody(&Selector::Asks));
    }
    found.retain(|m| target(m).is_ok_and(|target| target.is_reachable(run)));
    let mut rows: Vec<Row> = found.iter().map(|m| m.row.clone()).collect();
    Order::Attention.sort(&mut rows);
    found.sort_by_cached_key(|m| rows.iter().position(|row| row.id == m.row.id));
    let targets: Vec<Target> = found.iter().filter_map(|m| target(m).ok()).collect();
    let at = focus::in_view(&targets, run).map_or(0, |at| (at + 1) % found.len());
    let none = || Fail::new(Exit::No, "nobody asks for you who can be gone to from here");
    found.into_iter().nth(at).ok_or_else(none)
}

/// Where a session is; else why it cannot be gone to.
fn target(found: &Match) -> Result<Target, String> {
    let session: serde_json::Value = serde_json::from_slice(&found.row.json).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_string();
    let bridge = text(&session["bridge"]);
    if !bridge.is_empty() {
        return Err(format!("it is on another machine, behind the bridge {bridge}"));
    }
    let Some(pid) = found.pid.filter(|_| found.life == Verdict::Alive) else {
        return Err("its process cannot be seen from here".to_string());
    };
    let vars = session["terminal_env"].as_object().into_iter().flatten();
    Ok(Target {
        pid,
        terminal: text(&session["terminal"]),
        vars: vars.map(|(name, value)| (name.clone(), text(value))).collect(),
    })
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
        out.append(|sink| put_json(sink, row, outcome, run))?;
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

/// A command as a line for a shell.
fn shell_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%,=+".contains(c);
    let quote = |word: &String| {
        let plain = !word.is_empty() && word.chars().all(is_plain);
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn put_json(sink: &mut Vec<u8>, row: &Row, outcome: &Outcome, run: &Runner<'_>) {
    let mut object = Object::open(sink);
    object.int("schema_version", 1);
    string(object.key("canonical_id"), &row.id, Style::Shown);
    string(object.key("terminal"), &row.field("terminal"), Style::Shown);
    object.str("state", outcome.state.name()).bool("selected", outcome.selected);
    match outcome.raised {
        Some(raised) => {
            object.bool("raised", raised);
        }
        None => object.key("raised").put(b"null"),
    }
    object.bool("verified", outcome.verified);
    string(object.key("reason"), &outcome.reason, Style::Shown);
    put_words(object.key("command"), &outcome.command);
    put_list(object.key("commands"), &run.calls, |sink, call| put_words(sink, call));
    object.close();
    sink.put(b"\n");
}

fn put_words(sink: &mut Vec<u8>, words: &[String]) {
    put_list(sink, words, |sink, word| string(sink, word, Style::Shown));
}

fn put_list<T>(sink: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    sink.put(b"[");
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            sink.put(b",");
        }
        put(sink, item);
    }
    sink.put(b"]");
}
