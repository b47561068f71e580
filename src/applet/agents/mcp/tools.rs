//! The tools: what they take, and their answers.

use super::super::super::find::{Selector, by_id};
use super::super::super::going;
use super::super::super::store::{Found, find};
use super::super::super::upkeep;
use super::super::super::view::{self, Row};
use super::super::super::waiting::{TICK_MS, Until, Wait, Why, put_json};
use crate::cli::Fail;
use crate::focus::{Runner, State};
use crate::harness;
use crate::install::text::json::Node;
use crate::probe::tree::Limits;
use crate::record::out::{Object, Sink, Style, int, string};
use crate::record::{Key, Status};
use crate::store::Reader;
use crate::store::maintain::{Done, Mode, Outcome};
use crate::store::seen::Marks;
use crate::sys::clock::Now;
use crate::sys::env::Env;

/// The list of the tools with their schemas, JSON.
pub static LIST: &str = text_file!("tools.json");

/// Milliseconds of a wait where nobody says, and at most.
const WAIT_MS: u64 = 5000;
const MAX_WAIT_MS: u64 = 60_000;

/// What a tool replied.
pub struct Reply {
    /// A JSON object, or words where it went wrong.
    pub text: String,
    /// Whether it went wrong.
    pub wrong: bool,
}

impl Reply {
    fn of(document: Vec<u8>) -> Reply {
        // What is written there is UTF-8 throughout.
        Reply { text: String::from_utf8(document).unwrap_or_default(), wrong: false }
    }

    /// A reply that says why there is none.
    pub fn error(why: impl Into<String>) -> Reply {
        Reply { text: why.into(), wrong: true }
    }
}

/// What became of a call.
pub enum Called {
    /// It is over.
    Done(Reply),
    /// It waits.
    Waits(Box<Pending>),
}

/// A wait that is under way.
pub struct Pending {
    /// The request's id as JSON.
    pub id: String,
    /// The wait.
    pub wait: Wait,
    began: u64,
    deadline: u64,
    looked: bool,
}

impl Pending {
    /// Milliseconds that it can be left alone for, unless its alarms go off.
    pub fn patience(&self, now: u64) -> u64 {
        let left = self.deadline.saturating_sub(now);
        match self.looked {
            false => 0,
            true if self.wait.is_blind() => left.min(TICK_MS),
            true => left,
        }
    }

    /// Looks, where there may be something to see; the reply where it is over.
    pub fn look(&mut self, env: &Env<'_>) -> Option<Reply> {
        let now = Now::read().mono_ms;
        let over = now >= self.deadline;
        if self.looked && !self.wait.is_stirred() && !over {
            return None;
        }
        self.looked = true;
        let answer = match self.wait.look(env) {
            Ok(Some(answer)) => answer,
            Ok(None) if over => Err(Why::Timeout),
            Ok(None) => return None,
            Err(fail) => return Some(Reply::error(fail.text)),
        };
        if let Err(Why::StoreUnavailable(text)) = answer {
            return Some(Reply::error(text));
        }
        let mut document = Vec::new();
        put_json(&mut document, &self.wait.until, &answer, now.saturating_sub(self.began));
        Some(Reply::of(document))
    }
}

/// The arguments of a call.
struct Arguments<'a> {
    node: Option<&'a Node>,
    line: &'a str,
}

impl<'a> Arguments<'a> {
    /// Whether each has one of these names.
    fn only(&self, names: &[&str]) -> bool {
        let members = self.node.map_or(&[][..], Node::members);
        members.iter().all(|member| names.contains(&member.key.as_str()))
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Reply> {
        match self.node.and_then(|node| node.get(name)) {
            None => Ok(None),
            Some(node) => match node.text() {
                Some(text) if !text.is_empty() => Ok(Some(text)),
                _ => Err(Reply::error(format!("'{name}' is no text, or empty"))),
            },
        }
    }

    fn flag(&self, name: &str) -> Result<bool, Reply> {
        match self.node.and_then(|node| node.get(name)) {
            None => Ok(false),
            Some(node) => node
                .bool()
                .ok_or_else(|| Reply::error(format!("'{name}' is neither true nor false"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Reply> {
        match self.node.and_then(|node| node.get(name)) {
            None => Ok(None),
            Some(node) => match node.int(self.line).and_then(|n| u64::try_from(n).ok()) {
                Some(n) => Ok(Some(n)),
                None => Err(Reply::error(format!("'{name}' is no whole number"))),
            },
        }
    }
}

/// Calls a tool; `None` where there is none of this name.
pub fn call(
    env: &Env<'_>,
    id: &str,
    name: &str,
    arguments: Option<&Node>,
    line: &str,
) -> Option<Called> {
    let arguments = Arguments { node: arguments, line };
    let names: &[&str] = match name {
        "fleet_status" | "fleet_sessions_needing_attention" | "fleet_cleanup" => &[],
        "fleet_session" => &["session_id"],
        "fleet_focus" => &["query", "next"],
        "agents_status" => &["launch_id", "harness", "status"],
        "agents_wait" => &[
            "session_id",
            "launch_id",
            "terminal_id",
            "pid",
            "tree",
            "until",
            "since",
            "timeout_ms",
        ],
        _ => return None,
    };
    if !arguments.only(names) {
        let why = format!("{name} takes no other arguments than: {}", names.join(", "));
        return Some(Called::Done(Reply::error(why)));
    }
    let done = match name {
        "fleet_status" => sessions(env, |_| true),
        "fleet_sessions_needing_attention" => attention(env),
        "fleet_session" => one(env, &arguments),
        "fleet_focus" => focus(env, &arguments),
        "fleet_cleanup" => Ok(cleanup(env)),
        "agents_status" => some(env, &arguments),
        _ => match wait(id, &arguments) {
            Ok(pending) => return Some(Called::Waits(Box::new(pending))),
            Err(reply) => Err(reply),
        },
    };
    Some(Called::Done(done.unwrap_or_else(|reply| reply)))
}

fn failed(fail: Fail) -> Reply {
    Reply::error(fail.text)
}

/// Reads the live sessions that are wanted.
fn read(env: &Env<'_>, wanted: impl Fn(&Row) -> bool) -> Result<Vec<Row>, Reply> {
    let store = match find(env) {
        Found::Open(store) => store,
        Found::Missing => return Ok(Vec::new()),
        Found::Unavailable(why, root) => {
            return Err(Reply::error(super::super::super::fail::trouble(why, &root)));
        }
    };
    let mut rows = Vec::new();
    let (mut reader, marks) = (Reader::default(), Marks::read(&store));
    let view = view::of(&Now::read());
    let read = store.read_sessions(&mut reader, &view, &marks, |record, derived| {
        let row = Row::of(record, derived);
        if wanted(&row) {
            rows.push(row);
        }
        true
    });
    match read {
        Ok(_) => Ok(rows),
        Err(e) => Err(Reply::error(super::super::super::fail::errno(e))),
    }
}

fn put_rows(sink: &mut Vec<u8>, rows: &[Row]) {
    sink.put(b"[");
    for (n, row) in rows.iter().enumerate() {
        if n > 0 {
            sink.put(b",");
        }
        sink.put(&row.json);
    }
    sink.put(b"]");
}

/// The sessions that are wanted, with their numbers.
fn sessions(env: &Env<'_>, wanted: impl Fn(&Row) -> bool) -> Result<Reply, Reply> {
    let rows = read(env, wanted)?;
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
    let has = |row: &Row, list: &[Status]| row.status.is_some_and(|s| list.contains(&s));
    let numbers = [
        ("total", rows.len() as u64),
        ("active", count(&|row| has(row, &[Status::Running, Status::Started]))),
        ("idle", count(&|row| has(row, &[Status::Idle]))),
        ("needs_attention", count(&|row| row.derived.needs_attention)),
    ];
    let mut document = Vec::new();
    let mut object = Object::open(&mut document);
    put_rows(object.key("sessions"), &rows);
    let mut summary = Object::open(object.key("summary"));
    for (name, number) in numbers {
        int(summary.key(name), number);
    }
    summary.close();
    object.close();
    Ok(Reply::of(document))
}

fn attention(env: &Env<'_>) -> Result<Reply, Reply> {
    let rows = read(env, |row| row.derived.needs_attention)?;
    let message = match rows.len() {
        0 => "All sessions healthy".to_string(),
        1 => "1 session may need input".to_string(),
        n => format!("{n} sessions may need input"),
    };
    let mut document = Vec::new();
    let mut object = Object::open(&mut document);
    object.str("message", &message);
    put_rows(object.key("sessions"), &rows);
    object.close();
    Ok(Reply::of(document))
}

fn one(env: &Env<'_>, arguments: &Arguments<'_>) -> Result<Reply, Reply> {
    let id = arguments.text("session_id")?;
    let id = id.ok_or_else(|| Reply::error("'session_id' is missing"))?;
    let none = || Reply::error(format!("no session has the id '{id}'"));
    let store = match find(env) {
        Found::Open(store) => store,
        Found::Missing => return Err(none()),
        Found::Unavailable(why, root) => {
            return Err(Reply::error(super::super::super::fail::trouble(why, &root)));
        }
    };
    let rows = by_id(&store, id).map_err(failed)?;
    match rows.as_slice() {
        [] => Err(none()),
        [row] => Ok(Reply::of(row.json.clone())),
        rows => {
            let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
            Err(Reply::error(format!("several sessions match '{id}': {}", ids.join(" "))))
        }
    }
}

/// Goes to a session, as the command does.
fn focus(env: &Env<'_>, arguments: &Arguments<'_>) -> Result<Reply, Reply> {
    let selector = match (arguments.text("query")?, arguments.flag("next")?) {
        (Some(query), false) => Selector::words(query).map_err(failed)?,
        (None, true) => Selector::Asks,
        _ => return Err(Reply::error("exactly one of query and next must be given")),
    };
    let mut run = Runner::new(env);
    let (found, outcome) = going::go(&selector, &mut run).map_err(failed)?;
    let is_there = outcome.state == State::Complete;
    let (name, text) = match is_there {
        true => {
            let Row { harness, .. } = &found.row;
            let (place, terminal) = (found.row.place(), found.row.field("terminal"));
            ("message", format!("{harness} in {place}, {terminal}"))
        }
        false => ("error", outcome.reason.clone()),
    };
    let mut document = Vec::new();
    let mut object = Object::open(&mut document);
    object.bool("success", is_there);
    string(object.key(name), &text, Style::Shown);
    going::put_json(&mut object, &found.row, &outcome, &run);
    object.close();
    Ok(Reply::of(document))
}

fn cleanup(env: &Env<'_>) -> Reply {
    let outcome = match upkeep::open(env, Mode::Forced) {
        Ok(Some(store)) => upkeep::maintain(&store, Mode::Forced, env),
        Ok(None) => Outcome::Done(Done::default()),
        Err(_) => Outcome::Unavailable(Done::default()),
    };
    let (done, skipped) = match outcome {
        Outcome::Done(done) => (done, ""),
        Outcome::Busy | Outcome::Recent => (Done::default(), "busy"),
        Outcome::Unavailable(done) => (done, "unavailable"),
    };
    let mut document = Vec::new();
    let mut object = Object::open(&mut document);
    object
        .int("removed", done.removed)
        .int("discovered", done.discovered)
        .int("interrupted", done.interrupted);
    if !skipped.is_empty() {
        object.str("skipped", skipped);
    }
    object.close();
    Reply::of(document)
}

fn some(env: &Env<'_>, arguments: &Arguments<'_>) -> Result<Reply, Reply> {
    let (launch, status) = (arguments.text("launch_id")?, arguments.text("status")?);
    let harness = match arguments.text("harness")? {
        Some(word) => {
            let row = harness::named(word);
            Some(row.ok_or_else(|| Reply::error(format!("unknown harness '{word}'")))?.id)
        }
        None => None,
    };
    if let Some(status) = status.filter(|status| Status::find(status).is_none()) {
        return Err(Reply::error(format!("unknown status '{status}'")));
    }
    let name = Key::LaunchId.name();
    sessions(env, |row| {
        harness.is_none_or(|harness| row.harness == harness)
            && status.is_none_or(|status| row.status_text == status)
            && launch.is_none_or(|launch| row.field(name) == launch)
    })
}

fn wait(id: &str, arguments: &Arguments<'_>) -> Result<Pending, Reply> {
    let pid = |name| match arguments.number(name)?.map(u32::try_from) {
        None => Ok(None),
        Some(Ok(pid)) if pid > 0 => Ok(Some(pid)),
        Some(_) => Err(Reply::error(format!("'{name}' can be no pid"))),
    };
    let ways = [
        arguments.text("session_id")?.map(Selector::id),
        arguments.text("launch_id")?.map(Selector::launch),
        arguments.text("terminal_id")?.map(Selector::terminal),
        pid("pid")?.map(|pid| Ok(Selector::Pid(pid))),
        pid("tree")?.map(|pid| Ok(Selector::Below(pid, Limits::DEFAULT.depth))),
    ];
    let mut given = ways.into_iter().flatten();
    let (Some(by), None) = (given.next(), given.next()) else {
        return Err(Reply::error(
            "exactly one of session_id, launch_id, terminal_id, pid and tree must be given",
        ));
    };
    let by = by.map_err(failed)?;
    let until = Until::of(arguments.text("until")?.unwrap_or("present")).map_err(failed)?;
    let since = arguments.number("since")?;
    let timeout = arguments.number("timeout_ms")?.unwrap_or(WAIT_MS).min(MAX_WAIT_MS);
    let began = Now::read().mono_ms;
    Ok(Pending {
        id: id.to_string(),
        wait: Wait::new(by, until, since),
        began,
        deadline: began.saturating_add(timeout),
        looked: false,
    })
}
