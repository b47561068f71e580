//! `tongs-agents lookup`: the session behind a launch, a terminal, a process or
//! an id.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{stdout, trouble};
use super::super::find::{Look, Match, Selector, several, unread};
use super::super::store::{Found, find};
use super::super::view;
use super::{bad_value, check_version, hint, limits, options};
use crate::cli::{Exit, Fail};
use crate::probe::Here;
use crate::probe::tree::{Limits, Tree};
use crate::record::out::{Object, Sink, Style, string};
use crate::store::Store;
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::process::Verdict;

/// Find the session behind a launch, a terminal, a process or an id.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents lookup --terminal-id cl-1 --tree $$ --json",
    note = "See tongs-agents(1).",
    error_code(0, "found"),
    error_code(1, "no session or several sessions match, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// the session of this launch: tried first
    #[argh(option, arg_name = "X")]
    launch_id: Option<String>,
    /// the session in this terminal: tried second
    #[argh(option, arg_name = "X")]
    terminal_id: Option<String>,
    /// the session of this process or of one below it: tried third
    #[argh(option, arg_name = "PID")]
    tree: Option<u32>,
    /// the session of this process: tried fourth
    #[argh(option, arg_name = "PID")]
    pid: Option<u32>,
    /// the session with this id, or whose id begins so: tried last
    #[argh(option, arg_name = "S")]
    session: Option<String>,
    /// generations below the process of --tree; default: 5
    #[argh(option, arg_name = "N")]
    max_depth: Option<usize>,
    /// processes of --tree; default: 100
    #[argh(option, arg_name = "N")]
    max_nodes: Option<usize>,
    /// every session that matches, not only the best one
    #[argh(switch)]
    all: bool,
    /// also sessions that have ended or whose process is gone
    #[argh(switch)]
    include_dead: bool,
    /// how a session is printed: record or session-state
    #[argh(option, arg_name = "FORM")]
    format: Option<String>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
}

/// What a session is looked up by.
enum By {
    Selector(Selector),
    Tree(u32),
}

/// What came of it.
#[derive(Default)]
struct Answer {
    matched_by: Option<&'static str>,
    matches: Vec<Match>,
    truncated: bool,
}

/// How it is printed.
#[derive(PartialEq)]
enum Form {
    Table,
    Json,
    SessionState,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("lookup", words)?;
    check_version(options.json_version)?;
    let form = match options.format.as_deref() {
        Some("session-state") => Form::SessionState,
        None | Some("record") if options.json || options.json_version.is_some() => Form::Json,
        None | Some("record") => Form::Table,
        Some(other) => return Err(bad_value("format", other, &["record", "session-state"])),
    };
    let ways = ways(&options)?;
    let limits = limits(options.max_depth, options.max_nodes)?;
    let (store, answer) = match find(env) {
        Found::Open(store) => ("ok", answer(&store, ways, limits, &options, &form)?),
        Found::Missing => ("missing", Answer::default()),
        Found::Unavailable(why, root) => {
            hint(&trouble(why, &root));
            ("unavailable", Answer::default())
        }
    };
    // An id that is one session's is expected; anything else may be several's.
    let ambiguous =
        answer.matched_by == Some("session") && answer.matches.len() > 1 && !options.all;
    let shown = match (options.all || ambiguous, answer.matches.len()) {
        (false, 1..) => 1,
        (_, len) => len,
    };
    print(&form, env, store, &answer, shown)?;
    if ambiguous {
        let id = options.session.as_deref().unwrap_or("");
        return Err(several(id, answer.matches.iter().map(|m| &m.row)));
    }
    match (answer.matches.is_empty(), &form) {
        (false, _) => Ok(Exit::Ok),
        (true, Form::Table | Form::SessionState) if store != "unavailable" => {
            Err(Fail::new(Exit::No, "no session matches"))
        }
        (true, _) => Ok(Exit::No),
    }
}

/// The ways to try, in their order.
fn ways(options: &Options) -> Result<Vec<By>, Fail> {
    let mut ways = Vec::new();
    if let Some(id) = &options.launch_id {
        ways.push(By::Selector(Selector::launch(id)?));
    }
    if let Some(id) = &options.terminal_id {
        ways.push(By::Selector(Selector::terminal(id)?));
    }
    ways.extend(options.tree.map(By::Tree));
    ways.extend(options.pid.map(|pid| By::Selector(Selector::Pid(pid))));
    if let Some(id) = &options.session {
        ways.push(By::Selector(Selector::id(id)?));
    }
    if ways.is_empty() {
        return Err(Fail::new(
            Exit::Usage,
            "nothing to look for: give --launch-id, --terminal-id, --tree, --pid or --session",
        ));
    }
    if options.tree.is_none() && (options.max_depth.is_some() || options.max_nodes.is_some()) {
        return Err(Fail::new(Exit::Usage, "--max-depth and --max-nodes go with --tree"));
    }
    Ok(ways)
}

/// Tries one way after the other.
fn answer(
    store: &Store,
    ways: Vec<By>,
    limits: Limits,
    options: &Options,
    form: &Form,
) -> Result<Answer, Fail> {
    let look = Look::new(Here::of_reader());
    let mut truncated = false;
    for way in ways {
        let selector = match way {
            By::Selector(selector) => selector,
            By::Tree(pid) => {
                let Ok(tree) = Tree::below(pid, limits) else { continue };
                truncated = tree.truncated;
                Selector::Among(tree.nodes.iter().map(|(process, _)| process.pid).collect())
            }
        };
        let mut matches = look.find(store, &selector).map_err(unread)?;
        matches.retain(|m| {
            (options.include_dead || m.is_live())
                && (*form != Form::SessionState || m.pid.is_some() && !m.nameless)
        });
        if !matches.is_empty() {
            return Ok(Answer { matched_by: Some(selector.name()), matches, truncated });
        }
    }
    Ok(Answer { truncated, ..Answer::default() })
}

fn print(
    form: &Form,
    env: &Env<'_>,
    store: &str,
    answer: &Answer,
    shown: usize,
) -> Result<(), Fail> {
    let shown = &answer.matches[..shown];
    let mut out = stdout();
    match form {
        Form::Json => out.append(|sink| put_json(sink, store, answer, shown))?,
        Form::SessionState => {
            for found in shown {
                out.append(|sink| put_session_state(sink, found))?;
            }
        }
        Form::Table if shown.is_empty() => {}
        Form::Table => {
            let mut rows: Vec<view::Row> = Vec::new();
            for found in shown {
                let mut row = found.row.clone();
                if found.life == Verdict::Dead {
                    row.status_text.push_str(" (dead)");
                }
                rows.push(row);
            }
            view::put_table(&mut out, env, &view::table(&rows, true))?;
        }
    }
    out.flush()
}

fn put_json(sink: &mut Vec<u8>, store: &str, answer: &Answer, shown: &[Match]) {
    let mut object = Object::open(sink);
    object.int("schema_version", 1).str("store", store).int("generated_at", Now::read().secs());
    match answer.matched_by {
        Some(name) => {
            object.str("matched_by", name);
        }
        None => object.key("matched_by").put(b"null"),
    }
    object.int("matches", answer.matches.len() as u64);
    put_list(object.key("sessions"), shown, |sink, found| sink.put(&found.row.json));
    put_list(object.key("liveness"), shown, |sink, found| {
        string(sink, liveness(found.life), Style::Stored);
    });
    object.bool("truncated", answer.truncated);
    object.close();
    sink.put(b"\n");
}

fn put_list(sink: &mut Vec<u8>, list: &[Match], put: impl Fn(&mut Vec<u8>, &Match)) {
    sink.put(b"[");
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            sink.put(b",");
        }
        put(sink, item);
    }
    sink.put(b"]");
}

fn liveness(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Alive => "alive",
        Verdict::Dead => "dead",
        Verdict::Unknown => "unknown",
    }
}

/// Writes a session in the form of session-tracker's `SessionState`, keys in its
/// order, those without a value left out.
fn put_session_state(sink: &mut Vec<u8>, found: &Match) {
    let row = &found.row;
    let mut object = Object::open(sink);
    let text = |object: &mut Object<'_, Vec<u8>>, name: &str| {
        let value = row.field(name);
        if !value.is_empty() {
            string(object.key(name), &value, Style::Shown);
        }
    };
    text(&mut object, "session_id");
    text(&mut object, "agent");
    string(object.key("cwd"), &row.field("cwd"), Style::Shown);
    object.int("pid", found.pid.unwrap_or(0).into());
    text(&mut object, "terminal_id");
    text(&mut object, "launch_id");
    object.int("ts", found.ts_ms);
    string(object.key("method"), &found.method(), Style::Shown);
    object.close();
    sink.put(b"\n");
}
