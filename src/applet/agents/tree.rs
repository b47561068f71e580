//! `tongs-agents tree`: the processes below a process, and whose sessions they
//! are.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{stdout, trouble};
use super::super::find::{Look, Match, Selector, unread};
use super::super::store::{Found, find};
use super::super::view;
use super::{check_version, hint, limits, options};
use crate::cli::{Cell, Colour, Column, Exit, Fail, Table};
use crate::probe::tree::Tree;
use crate::probe::{Here, Process, Unread};
use crate::record::out::{Object, Sink, Style, string};

/// Show the processes below a process, breadth first, with their sessions.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents tree $$",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "no process has the pid, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// generations below the process; default: 5
    #[argh(option, arg_name = "N")]
    max_depth: Option<usize>,
    /// processes, the first one included; default: 100
    #[argh(option, arg_name = "N")]
    max_nodes: Option<usize>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// the process
    #[argh(positional, arg_name = "PID")]
    pid: u32,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("tree", words)?;
    check_version(options.json_version)?;
    let limits = limits(options.max_depth, options.max_nodes)?;
    let tree = Tree::below(options.pid, limits).map_err(|why| {
        let text = match why {
            Unread::Gone => "no process has the pid",
            Unread::Hidden | Unread::Failed => "the system does not show the process",
        };
        Fail::new(Exit::No, format!("{text} {}", options.pid))
    })?;
    let pids = tree.nodes.iter().map(|(process, _)| process.pid).collect();
    let (state, sessions) = match find(env) {
        Found::Open(store) => {
            let look = Look::new(Here::of_reader());
            ("ok", look.find(&store, &Selector::Among(pids)).map_err(unread)?)
        }
        Found::Missing => ("missing", Vec::new()),
        Found::Unavailable(why, root) => {
            hint(&trouble(why, &root));
            ("unavailable", Vec::new())
        }
    };
    let mut out = stdout();
    if options.json || options.json_version.is_some() {
        out.append(|sink| put_json(sink, state, &tree, &sessions))?;
    } else {
        view::put_table(&mut out, env, &table(&tree, &sessions))?;
        if tree.truncated {
            hint("there are more: see --max-depth and --max-nodes");
        }
    }
    out.flush()?;
    Ok(if state == "unavailable" { Exit::No } else { Exit::Ok })
}

/// The best session of a process.
fn session_of<'m>(process: &Process, sessions: &'m [Match]) -> Option<&'m Match> {
    sessions.iter().find(|m| m.process() == Some((process.pid, process.start)))
}

/// The name for people and for JSON; it may be any bytes.
fn name(process: &Process) -> String {
    String::from_utf8_lossy(process.comm()).into_owned()
}

fn table(tree: &Tree, sessions: &[Match]) -> Table {
    let mut table = Table::new(vec![
        Column::new("PID").right(),
        Column::new("PPID").right(),
        Column::new("DEPTH").right(),
        Column::new("COMMAND").flex(),
        Column::new("STATUS"),
        Column::new("ID"),
    ]);
    for (process, depth) in &tree.nodes {
        let session = session_of(process, sessions);
        let defunct = if process.dead { " (defunct)" } else { "" };
        let id = session.map_or("", |m| m.row.derived.short_id());
        table.push(vec![
            Cell::new(process.pid.to_string()),
            Cell::new(process.ppid.to_string()),
            Cell::new(depth.to_string()),
            Cell::new(name(process) + defunct),
            session.map_or(Cell::default(), |m| m.row.status_cell()),
            Cell::new(id).colour(Colour::Dim),
        ]);
    }
    table
}

fn put_json(sink: &mut Vec<u8>, store: &str, tree: &Tree, sessions: &[Match]) {
    let mut object = Object::open(sink);
    object.int("schema_version", 1).str("store", store);
    let mut nodes = tree.nodes.iter();
    if let Some((root, depth)) = nodes.next() {
        put_node(object.key("root"), root, *depth, session_of(root, sessions));
    }
    let list = object.key("descendants");
    list.put(b"[");
    for (i, (process, depth)) in nodes.enumerate() {
        if i > 0 {
            list.put(b",");
        }
        put_node(list, process, *depth, session_of(process, sessions));
    }
    list.put(b"]");
    object.bool("truncated", tree.truncated);
    object.close();
    sink.put(b"\n");
}

fn put_node(sink: &mut Vec<u8>, process: &Process, depth: usize, session: Option<&Match>) {
    let mut node = Object::open(sink);
    node.int("pid", process.pid.into()).int("ppid", process.ppid.into()).int("depth", depth as u64);
    string(node.key("comm"), &name(process), Style::Shown);
    node.bool("defunct", process.dead);
    match session {
        None => node.key("session").put(b"null"),
        Some(found) => {
            let mut session = Object::open(node.key("session"));
            session.str("short_id", found.row.derived.short_id());
            for key in ["canonical_id", "session_id", "harness_id", "status"] {
                string(session.key(key), &found.row.field(key), Style::Shown);
            }
            session.close();
        }
    }
    node.close();
}
