//! Going to a session: which one is meant, the way there, and what came of it.
//!
//! Who goes to a session has seen it: what it was in is marked as seen.

use super::bridges::{Bridge, all};
use super::fail::trouble;
use super::find::{Look, Match, Selector, several, unread};
use super::marking::see;
use super::store::{Found, find};
use super::view::{Row, rank};
use crate::cli::{Exit, Fail};
use crate::focus::{self, Outcome, Runner, State, Target};
use crate::probe::Here;
use crate::record::out::{Object, Sink, Style, string};
use crate::store::Store;
use crate::sys::process::Verdict;

/// Goes to the session that is meant, or finds out how, where the runner only
/// plans. Fails where there is none, or where there are several, which are then
/// listed. Of those that ask, the first one after the one in view is gone to that
/// can be brought before the user; where none can, it is the first one of all.
pub fn go(selector: &Selector, run: &mut Runner<'_>) -> Result<(Match, Outcome), Fail> {
    let store = match find(run.env) {
        Found::Open(store) => store,
        Found::Missing => return Err(nobody(selector)),
        Found::Unavailable(why, root) => return Err(Fail::new(Exit::No, trouble(why, &root))),
    };
    let look = Look::new(Here::of_reader());
    let found = look.find(&store, selector).map_err(unread)?;
    if !matches!(selector, Selector::Asks) {
        let found = choose(found, selector)?;
        let outcome = go_to(&store, &found, run);
        return Ok((found, outcome));
    }
    let mut first = None;
    for found in round(found, run)? {
        let calls = run.calls.len();
        let outcome = go_to(&store, &found, run);
        if matches!(outcome.state, State::Complete | State::Planned) {
            return Ok((found, outcome));
        }
        if run.dry_run {
            run.calls.truncate(calls);
        }
        first.get_or_insert((found, outcome));
    }
    first.ok_or_else(|| Fail::new(Exit::No, "nobody asks for you who can be gone to from here"))
}

/// The one session that is meant, which lives as far as can be seen.
fn choose(mut found: Vec<Match>, selector: &Selector) -> Result<Match, Fail> {
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

/// Goes to a session. Where it is then before its user, what it was in when it was
/// found is marked as seen; a mark that cannot be written changes nothing of the
/// outcome.
fn go_to(store: &Store, found: &Match, run: &mut Runner<'_>) -> Outcome {
    let outcome = match target(found) {
        Ok(target) => focus::go(&target, run),
        Err(reason) => Outcome { command: way(store, &found.row), ..Outcome::unavailable(reason) },
    };
    // What is put off is marked already, and stays put off.
    if outcome.state == State::Complete && !found.row.derived.seen {
        let _ = see(store, found.row.phase.as_slice());
    }
    outcome
}

/// Writes what came of going to a session into an object.
pub fn put_json(object: &mut Object<'_, Vec<u8>>, row: &Row, outcome: &Outcome, run: &Runner<'_>) {
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

fn nobody(selector: &Selector) -> Fail {
    let text = match selector {
        Selector::Asks => "nobody asks for you".to_string(),
        selector => format!("no session matches '{selector}'"),
    };
    Fail::new(Exit::No, text)
}

/// Those that ask, from the one behind the one that the user looks at, in the
/// order of `status`. The one that is looked at need not ask any more: it was seen,
/// and keeps its place here.
fn round(mut found: Vec<Match>, run: &Runner<'_>) -> Result<Vec<Match>, Fail> {
    found.retain(Match::is_live);
    if !found.iter().any(|m| m.row.asks()) {
        return Err(nobody(&Selector::Asks));
    }
    found.retain(|m| target(m).is_ok_and(|target| target.is_reachable(run)));
    let targets: Vec<Target> = found.iter().filter_map(|m| target(m).ok()).collect();
    let seen = focus::in_view(&targets, run).and_then(|at| Some(found.get(at)?.row.id.clone()));
    let mut rows: Vec<Row> = found.iter().map(|m| m.row.clone()).collect();
    rows.sort_by_cached_key(|row| {
        (rank(row), u64::MAX - row.derived.age_seconds, row.repo.clone(), row.id.clone())
    });
    let first = rows.iter().position(|row| Some(&row.id) == seen.as_ref()).map_or(0, |at| at + 1);
    rows.rotate_left(first);
    rows.retain(Row::asks);
    let take = |row: &Row| {
        let at = found.iter().position(|m| m.row.id == row.id)?;
        Some(found.swap_remove(at))
    };
    Ok(rows.iter().filter_map(take).collect())
}

/// The command that goes to a session where its bridge leads: that of the user's
/// own list, for what a record says of machines is not to be run. Empty where
/// there is none.
fn way(store: &Store, row: &Row) -> Vec<String> {
    let named = |all: Vec<Bridge>| all.into_iter().find(|bridge| bridge.name == row.bridge);
    let bridge = Some(row).filter(|row| !row.bridge.is_empty()).and_then(|_| all(store).ok());
    let way = bridge.and_then(named).and_then(|bridge| bridge.way_to(&row.field("session_id")));
    way.unwrap_or_default()
}

/// Where a session is; else why it cannot be gone to.
fn target(found: &Match) -> Result<Target, String> {
    let session: serde_json::Value = serde_json::from_slice(&found.row.json).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_string();
    if !found.row.bridge.is_empty() {
        return Err(format!("it is elsewhere, behind the bridge {}", found.row.bridge));
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
