//! Marking what sessions are in as seen, for good or for a time.

use std::time::Duration;

use super::fail::{no_timer, stdout, unusable, unwritten};
use super::find::{all, by_id, several};
use super::store::{Found, find};
use super::view::Row;
use crate::cli::{Exit, Fail};
use crate::record::out::{Object, Sink, Style, string};
use crate::store::seen::{self, Phase};
use crate::store::{Patience, Store};
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::guard;

/// Milliseconds to wait for the lock, and where nobody asked for the mark.
const LOCK_MS: u64 = 2000;
const BRIEF_MS: u64 = 200;

/// What is marked.
pub enum Wanted<'w> {
    /// The sessions with these ids.
    Ids(&'w [String]),
    /// Every session.
    All,
    /// Every session that asks for its user.
    Asking,
}

/// What was marked.
pub struct Marked {
    rows: Vec<Row>,
    until_ms: u64,
}

impl Marked {
    /// Prints it as one JSON object.
    pub fn print(&self) -> Result<(), Fail> {
        let mut out = stdout();
        out.append(|sink| {
            sink.put(b"{\"marked\":[");
            for (n, row) in self.rows.iter().enumerate() {
                sink.put(if n > 0 { b"," } else { b"" });
                let mut object = Object::open(sink);
                string(object.key("canonical_id"), &row.id, Style::Shown);
                object.str("short_id", row.derived.short_id());
                string(object.key("status"), &row.status_text, Style::Shown);
                match self.until_ms {
                    0 => object.key("until").put(b"null"),
                    ms => {
                        object.int("until", ms / 1000);
                    }
                }
                object.close();
            }
            sink.put(b"]}\n");
        })?;
        out.flush()
    }
}

/// Marks what these sessions are in as seen, or puts it off for a time. All of
/// them are found first: one that is not there leaves the others alone.
pub fn mark(env: &Env<'_>, wanted: &Wanted<'_>, put_off: Option<Duration>) -> Result<Marked, Fail> {
    let none = |id: &str| Fail::new(Exit::No, format!("no session has the id '{id}'"));
    let store = match (find(env), wanted) {
        (Found::Open(store), _) => store,
        (Found::Missing, Wanted::All | Wanted::Asking) => {
            return Ok(Marked { rows: Vec::new(), until_ms: 0 });
        }
        (Found::Missing, Wanted::Ids(ids)) => {
            return Err(none(ids.first().map_or("", String::as_str)));
        }
        (Found::Unavailable(why, root), _) => return Err(unusable(why, &root)),
    };
    let rows = match wanted {
        Wanted::All => {
            let mut rows = all(&store)?;
            rows.retain(|row| row.phase.is_some());
            rows
        }
        Wanted::Asking => {
            let mut rows = all(&store)?;
            rows.retain(|row| row.phase.is_some() && row.asks());
            rows
        }
        Wanted::Ids(ids) => {
            let mut rows: Vec<Row> = Vec::new();
            for id in *ids {
                let mut found = by_id(&store, id)?;
                if found.len() > 1 {
                    return Err(several(id, &found));
                }
                let row = found.pop().ok_or_else(|| none(id))?;
                if row.phase.is_none() {
                    let why = "its record is of an older format";
                    return Err(Fail::cannot(Exit::No, "mark session", id, why));
                }
                if rows.iter().all(|other| other.id != row.id) {
                    rows.push(row);
                }
            }
            rows
        }
    };
    // What is put off asks for nobody; a mark without end would let it ask again.
    let is_quiet = |row: &Row| put_off.is_none() && row.derived.snoozed;
    let phases: Vec<Phase> =
        rows.iter().filter(|row| !is_quiet(row)).filter_map(|row| row.phase).collect();
    let now_ms = Now::read().wall_ms;
    let until_ms = put_off.map_or(0, |time| {
        now_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    });
    write(&store, &phases, until_ms, now_ms, LOCK_MS)?;
    Ok(Marked { rows, until_ms })
}

/// Marks these phases of sessions as seen, in passing: a lock that is held is not
/// waited for long.
pub fn see(store: &Store, phases: &[Phase]) -> Result<(), Fail> {
    if phases.is_empty() {
        return Ok(());
    }
    write(store, phases, 0, Now::read().wall_ms, BRIEF_MS)
}

fn write(
    store: &Store,
    phases: &[Phase],
    until_ms: u64,
    now_ms: u64,
    lock_ms: u64,
) -> Result<(), Fail> {
    let ticking = guard::tick_only(lock_ms).ok_or_else(no_timer)?;
    let marked = seen::mark(store, &Patience::of(ticking, lock_ms), phases, until_ms, now_ms);
    guard::tick_no_more();
    marked.map_err(|e| {
        let (exit, why) = unwritten(e);
        Fail::cannot(exit, "write", "the marks of what was seen", why)
    })
}
