//! Waiting for a session: until it is there, has a status, has replied or is
//! gone.
//!
//! Nothing is asked again and again: the store's directory and the end of the
//! process wake the sleeper, and then everything is read anew. Only where the
//! system has no means for that, everything is read every [`TICK_MS`]
//! milliseconds.

use super::fail::{bad_value, trouble};
use super::find::{Look, Match, Selector, unread};
use super::store::{Found, find};
use super::view::Row;
use crate::cli::Fail;
use crate::probe::{Here, Life, Process};
use crate::record::Status;
use crate::record::out::{Object, Sink, Style, string};
use crate::store::Store;
use crate::store::place::Root;
use crate::store::watch::StoreWatch;
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::fs::Errno;
use crate::sys::process::Verdict;
use crate::sys::watch::{Alarm, sleep};

/// Milliseconds between two looks where nothing wakes the sleeper.
pub const TICK_MS: u64 = 50;

/// What is waited for.
#[derive(PartialEq)]
pub enum Until {
    /// A session that a hook has reported lives.
    Present,
    /// No session lives.
    Gone,
    /// A turn that was under way at the call or began after it is over.
    Replied,
    /// The session has one of these statuses.
    Status(Vec<Status>),
}

impl Until {
    /// Reads the words of a command line: `present`, `gone`, `replied`, or statuses
    /// with commas between them.
    pub fn of(words: &str) -> Result<Until, Fail> {
        Ok(match words {
            "present" => Until::Present,
            "gone" => Until::Gone,
            "replied" => Until::Replied,
            list => Until::Status(list.split(',').map(status).collect::<Result<_, _>>()?),
        })
    }
}

fn status(name: &str) -> Result<Status, Fail> {
    let words = ["present", "gone", "replied"].into_iter().chain(Status::ALL.map(Status::name));
    Status::find(name).ok_or_else(|| bad_value("until", name, &words.collect::<Vec<_>>()))
}

/// Why a wait ended without what it was for.
pub enum Why {
    /// The time is over.
    Timeout,
    /// The process has ended meanwhile.
    ProcessEnded,
    /// There was no such process.
    NoProcess,
    /// The id is several sessions'.
    Several(Vec<Row>),
    /// It cannot be used, for this reason.
    StoreUnavailable(String),
}

impl Why {
    /// The name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Why::Timeout => "timeout",
            Why::ProcessEnded => "process-ended",
            Why::NoProcess => "no-process",
            Why::Several(_) => "several",
            Why::StoreUnavailable(_) => "store-unavailable",
        }
    }

    /// The reason, for the end of a message.
    pub fn text(&self) -> &'static str {
        match self {
            Why::Timeout => "it took too long",
            Why::ProcessEnded => "the process has ended",
            Why::NoProcess => "no process has the pid",
            Why::Several(_) => "it is several sessions",
            Why::StoreUnavailable(_) => "the store cannot be used",
        }
    }
}

/// How a wait ends: it holds, of this session where there is one, or it will
/// not hold.
pub type Answer = Result<Option<Match>, Why>;

/// A wait under way.
pub struct Wait {
    /// The session that is meant.
    pub by: Selector,
    /// What is waited for.
    pub until: Until,
    since: Option<u64>,
    here: Here,
    /// The process that was named, until it ends, and its start.
    named: Option<Life>,
    named_start: Option<u64>,
    /// Why there is no such process any more.
    named_over: Option<Why>,
    /// The best session of the last look that had one.
    last: Option<Match>,
    /// Its process, until it ends.
    life: Option<Life>,
    life_over: bool,
    /// How the sessions stood at the call.
    before: Option<Vec<Standing>>,
    /// Whether the first look is over.
    looked: bool,
    /// Closing it takes its time, so that it outlives the answer.
    watch: Option<StoreWatch>,
}

impl Wait {
    /// Begins a wait; with `since` only for sessions with an event after that time,
    /// epoch milliseconds.
    pub fn new(by: Selector, until: Until, since: Option<u64>) -> Wait {
        let pid = match by {
            Selector::Pid(pid) | Selector::Below(pid, _) => Some(pid),
            _ => None,
        };
        let process = pid.and_then(|pid| Process::read(pid).ok()).filter(|p| !p.dead);
        let named_start = process.map(|process| process.start);
        let named = pid.map(|pid| Life::of(pid, named_start));
        let over = named.as_ref().is_some_and(Life::is_over);
        Wait {
            by,
            until,
            since,
            here: Here::of_reader(),
            named: named.filter(|_| !over),
            named_start,
            named_over: over.then_some(Why::NoProcess),
            last: None,
            life: None,
            life_over: false,
            before: None,
            looked: false,
            watch: None,
        }
    }

    /// Looks and sleeps in turn until there is an answer or the time is over.
    pub fn run(&mut self, env: &Env<'_>, deadline: u64) -> Result<Answer, Fail> {
        loop {
            if let Some(answer) = self.look(env)? {
                return Ok(answer);
            }
            if Now::read().mono_ms >= deadline {
                return Ok(Err(Why::Timeout));
            }
            self.sleep(deadline);
        }
    }

    /// Looks; `None` where it may still come to hold.
    pub fn look(&mut self, env: &Env<'_>) -> Result<Option<Answer>, Fail> {
        if self.looked {
            return self.look_at_store(env, false);
        }
        // What holds at once needs no watch. What has changed until there is one
        // is seen by another look.
        if let Some(answer) = self.look_at_store(env, true)? {
            return Ok(Some(answer));
        }
        self.looked = true;
        self.watch = Root::find(env).ok().and_then(|root| StoreWatch::begin(&root).ok());
        self.look_at_store(env, false)
    }

    /// Looks at the store. It is closed again, for a directory that is held
    /// open does not tell of its removal.
    fn look_at_store(&mut self, env: &Env<'_>, first: bool) -> Result<Option<Answer>, Fail> {
        // First, so that what a process wrote before its end is seen.
        self.note_ends();
        match find(env) {
            Found::Open(store) => self.look_at(Some(&store)),
            Found::Unavailable(why, root) if first => {
                Ok(Some(Err(Why::StoreUnavailable(trouble(why, &root)))))
            }
            // It may be about to be made.
            Found::Missing | Found::Unavailable(..) => self.look_at(None),
        }
    }

    fn note_ends(&mut self) {
        if self.named.as_ref().is_some_and(Life::is_over) {
            self.named = None;
            self.named_over = Some(Why::ProcessEnded);
        }
        if self.life.as_ref().is_some_and(Life::is_over) {
            self.life = None;
            self.life_over = true;
        }
    }

    fn look_at(&mut self, store: Option<&Store>) -> Result<Option<Answer>, Fail> {
        let look = Look::new(self.here);
        let mut found = match store.map(|store| look.find(store, &self.by)) {
            // Removed at this moment.
            None | Some(Err(Errno::NOENT)) => Vec::new(),
            Some(found) => found.map_err(unread)?,
        };
        if matches!(self.by, Selector::Pid(_)) && self.named_start.is_some() {
            // Of those that had the pid before, none is meant.
            found.retain(|m| m.life != Verdict::Dead || m.start == self.named_start);
        }
        let live = || found.iter().filter(|m| m.is_live());
        if matches!(self.by, Selector::Id(_)) && live().count() > 1 {
            return Ok(Some(Err(Why::Several(live().map(|m| m.row.clone()).collect()))));
        }
        if self.before.is_none() {
            self.before = Some(live().map(Standing::of).collect());
        }
        // What is followed is asked for by name: a listing may pass over a record
        // that is being replaced, and a process may have left its tree.
        if let (Some(store), Some(last)) = (store, &self.last) {
            if !found.iter().any(|m| m.row.id == last.row.id) {
                found.extend(look.again(store, last));
            }
        }
        let best = found.iter().find(|m| m.is_live());
        if self.until == Until::Gone {
            if best.is_none() {
                return Ok(self.gone(found));
            }
        } else if let Some(hit) = self.hit(&found) {
            return Ok(Some(Ok(Some(hit.clone()))));
        } else if let Some(why) = self.named_over.take() {
            return Ok(Some(Err(why)));
        } else if best.is_none() && self.life_over {
            return Ok(Some(Err(Why::ProcessEnded)));
        }
        if let Some(best) = best {
            self.follow(best);
        }
        Ok(None)
    }

    /// The session of which it holds.
    fn hit<'m>(&self, found: &'m [Match]) -> Option<&'m Match> {
        let mut fresh = found.iter().filter(|m| self.since.is_none_or(|since| m.ts_ms > since));
        match &self.until {
            Until::Gone => None,
            Until::Present => fresh.find(|m| m.is_live() && !m.nameless),
            Until::Replied => {
                let found = fresh.find(|m| m.is_live() && !m.nameless)?;
                let now = Standing::of(found);
                let before = self.before.iter().flatten().find(|before| before.id == now.id);
                now.has_replied(before).then_some(found)
            }
            Until::Status(list) => {
                let ended = |m: &Match| m.row.status == Some(Status::Ended);
                let found =
                    fresh.find(|m| m.is_live() || ended(m) && list.contains(&Status::Ended))?;
                found.row.status.is_some_and(|s| list.contains(&s)).then_some(found)
            }
        }
    }

    /// None lives: is it gone, or was it never there?
    fn gone(&self, found: Vec<Match>) -> Option<Answer> {
        let over = match &self.last {
            Some(last) => {
                let now = found.into_iter().find(|m| m.row.id == last.row.id);
                Some(now.unwrap_or_else(|| last.clone()))
            }
            None => found.into_iter().next(),
        };
        // An id names what was there once; a launch may be yet to come.
        let known = over.is_some() || matches!(self.by, Selector::Id(_));
        (known || self.named_over.is_some()).then_some(Ok(over))
    }

    /// Lets the end of a session's process wake us too.
    fn follow(&mut self, best: &Match) {
        let process = |of: &Match| (of.pid, of.start);
        let known = self.last.as_ref().is_some_and(|last| process(last) == process(best));
        if !known || self.life_over {
            let named = self.named.as_ref().map(|life| life.pid);
            self.life = best.pid.filter(|pid| named != Some(*pid)).map(|p| Life::of(p, best.start));
            self.life_over = false;
        }
        self.last = Some(best.clone());
    }

    /// The processes whose end matters.
    fn lives(&self) -> impl Iterator<Item = &Life> {
        self.named.iter().chain(&self.life)
    }

    /// Whether something may change without waking the sleeper.
    pub fn is_blind(&self) -> bool {
        self.watch.is_none() || self.lives().any(|life| life.alarm().is_none())
    }

    /// What wakes the sleeper.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        let store = self.watch.iter().map(StoreWatch::alarm);
        store.chain(self.lives().filter_map(Life::alarm))
    }

    /// Whether there is something to look at, after a sleep.
    pub fn is_stirred(&mut self) -> bool {
        let changed = match self.watch.as_mut().map(StoreWatch::has_changed) {
            None => false,
            Some(Ok(changed)) => changed,
            Some(Err(_)) => {
                self.watch = None;
                true
            }
        };
        changed || self.is_blind() || self.lives().any(Life::is_over)
    }

    /// Sleeps until there is something to look at or the time is over.
    fn sleep(&mut self, deadline: u64) {
        loop {
            let left = deadline.saturating_sub(Now::read().mono_ms);
            let alarms: Vec<_> = self.alarms().collect();
            sleep(&alarms, if self.is_blind() { left.min(TICK_MS) } else { left });
            drop(alarms);
            if self.is_stirred() || left == 0 {
                return;
            }
        }
    }
}

/// What tells whether a session has replied.
struct Standing {
    id: String,
    status: Option<Status>,
    turn: u64,
    event_ms: u64,
    waiting_since: String,
}

impl Standing {
    fn of(found: &Match) -> Standing {
        let number = |name| found.row.field(name).parse().ok();
        Standing {
            id: found.row.id.clone(),
            status: found.row.status,
            turn: number("turn").unwrap_or(0),
            event_ms: number("boot_ms").unwrap_or(found.ts_ms),
            waiting_since: found.row.field("waiting_since"),
        }
    }

    /// Whether a turn is over that was under way before or has begun since.
    fn has_replied(&self, before: Option<&Standing>) -> bool {
        let Some(before) = before else { return self.rests() && self.turn > 0 };
        let newer = self.event_ms > before.event_ms;
        let over = match before.status {
            Some(Status::Running) => newer,
            Some(Status::Waiting) => {
                newer
                    && (self.status != before.status || self.waiting_since != before.waiting_since)
            }
            // Nobody tells of its prompts.
            Some(Status::Idle | Status::Error) => newer && self.turn == 0,
            _ => false,
        };
        self.rests() && (over || self.turn > before.turn)
    }

    fn rests(&self) -> bool {
        matches!(self.status, Some(Status::Idle | Status::Waiting | Status::Error))
    }
}

/// Writes how a wait ended as one object.
pub fn put_json(sink: &mut Vec<u8>, until: &Until, answer: &Answer, latency_ms: u64) {
    let found = answer.as_ref().ok().and_then(Option::as_ref);
    let sure = |found: &Match| found.life == Verdict::Alive || *until == Until::Gone;
    let mut object = Object::open(sink);
    let text = |object: &mut Object<'_, Vec<u8>>, name: &str, value: Option<String>| match value
        .filter(|value| !value.is_empty())
    {
        Some(value) => string(object.key(name), &value, Style::Shown),
        None => object.key(name).put(b"null"),
    };
    let field = |name| found.map(|found| found.row.field(name));
    text(&mut object, "session_id", field("session_id"));
    text(&mut object, "method", found.map(Match::method));
    object.int("latency_ms", latency_ms);
    object.str("confidence", if found.is_some_and(sure) { "high" } else { "low" });
    for name in ["canonical_id", "short_id", "harness_id", "status"] {
        text(&mut object, name, field(name));
    }
    text(&mut object, "reason", answer.as_ref().err().map(|why| why.name().to_string()));
    object.close();
}
