//! `tongs-agents show`: one session, by any of its ids.

use argh::FromArgs;

use super::super::fail::{errno, stdout, trouble};
use super::super::store::{Found, find};
use super::super::view::{self, Row};
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown};
use crate::record::{Checked, Key, Text};
use crate::store::{Reader, Store};
use crate::sys::clock::Now;
use crate::sys::env::Env;

/// Show one session.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents show 3f1c2a90",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "no session or several sessions match, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// canonical id, short id or session id, or the start of one
    #[argh(positional, arg_name = "ID")]
    id: String,
}

/// Runs the command.
pub fn run(words: &[&str], env: &Env<'_>) -> Result<Exit, Fail> {
    let options: Options = options("show", words)?;
    check_version(options.json_version)?;
    if options.id.is_empty() {
        return Err(Fail::new(Exit::Usage, "the id is empty"));
    }
    let none = || Fail::new(Exit::No, format!("no session has the id '{}'", options.id));
    let store = match find(env) {
        Found::Open(store) => store,
        Found::Missing => return Err(none()),
        Found::Unavailable(why, root) => return Err(Fail::new(Exit::No, trouble(why, &root))),
    };
    let mut rows = matching(&store, &options.id)?;
    if rows.len() > 1 {
        let ids: Vec<String> = rows.iter().map(|row| Shown(&row.id).to_string()).collect();
        return Err(Fail::new(
            Exit::No,
            format!("several sessions match '{}': {}", options.id, ids.join(" ")),
        ));
    }
    let Some(row) = rows.pop() else { return Err(none()) };
    let mut out = stdout();
    if options.json || options.json_version.is_some() {
        out.put(&row.json)?;
        out.put(b"\n")?;
    } else {
        out.put(view::lines(&row).as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// The sessions that an id names: those that have exactly this one, else those
/// that have one that begins with it.
fn matching(store: &Store, id: &str) -> Result<Vec<Row>, Fail> {
    let view = view::of(&Now::read());
    let (mut exact, mut starts) = (Vec::new(), Vec::new());
    let mut reader = Reader::default();
    store
        .read_sessions(&mut reader, &view, view::is_seen, |record, derived| {
            let ids = |hit: &dyn Fn(Text<'_>) -> bool| {
                hit(record.text(Key::CanonicalId)) || hit(record.text(Key::SessionId))
            };
            let short = derived.short_id();
            if ids(&|t| t.is(id)) || (!record.legacy && short == id) {
                exact.push(Row::of(record, derived));
            } else if ids(&|t| begins(t, id)) || digest_begins(record, id) {
                starts.push(Row::of(record, derived));
            }
            true
        })
        .map_err(|e| Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e))))?;
    Ok(if exact.is_empty() { starts } else { exact })
}

fn begins(text: Text<'_>, start: &str) -> bool {
    let mut chars = text.chars();
    start.chars().all(|c| chars.next() == Some(c))
}

/// The short id is the start of the digest, so a longer start of that will do.
fn digest_begins(record: &Checked<'_>, start: &str) -> bool {
    !record.legacy && record.digest.starts_with(start.as_bytes())
}
