//! `tongs-agents wait`: sleeps until a session is there, has a status, has
//! replied or is gone.
//!
//! Nothing is asked again and again: the store's directory and the end of the
//! process wake the sleeper, and then everything is read anew. Only where the
//! system has no means for that, everything is read every [`TICK_MS`]
//! milliseconds.

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{stdout, trouble};
use super::super::find::{Look, Match, Selector, several, unread};
use super::super::store::{Found, find};
use super::super::view::Row;
use super::{bad_value, check_version, options};
use crate::cli::{Exit, Fail, Shown, duration};
use crate::probe::tree::Limits;
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
use crate::sys::watch::sleep;

/// Milliseconds between two looks where nothing wakes the sleeper.
const TICK_MS: u64 = 50;
/// How long is waited where nobody says.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Wait until a session is there, has a status, has replied or is gone.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents wait --tree $$ --until idle,waiting --timeout 10m",
    note = "See tongs-agents(1).",
    error_code(0, "it holds"),
    error_code(1, "it did not in time, the process ended, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// the session of this process
    #[argh(option, arg_name = "PID")]
    pid: Option<u32>,
    /// the session of this process or of one below it
    #[argh(option, arg_name = "PID")]
    tree: Option<u32>,
    /// the session of this launch
    #[argh(option, arg_name = "X")]
    launch_id: Option<String>,
    /// the session in this terminal
    #[argh(option, arg_name = "X")]
    terminal_id: Option<String>,
    /// what for: present, gone, replied, or statuses with commas; default: present
    #[argh(option, arg_name = "WHAT")]
    until: Option<String>,
    /// for how long, such as 250ms, 5s or 2m; default: 5s
    #[argh(option, arg_name = "D", from_str_fn(duration))]
    timeout: Option<Duration>,
    /// only sessions with an event after this time, epoch milliseconds
    #[argh(option, arg_name = "MS")]
    since: Option<u64>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// the session with this id, or whose id begins so
    #[argh(positional, arg_name = "ID")]
    id: Option<String>,
}

/// What is waited for.
#[derive(PartialEq)]
enum Until {
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
    fn of(words: &str) -> Result<Until, Fail> {
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
enum Why {
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
    fn name(&self) -> &'static str {
        match self {
            Why::Timeout => "timeout",
            Why::ProcessEnded => "process-ended",
            Why::NoProcess => "no-process",
            Why::Several(_) => "several",
            Why::StoreUnavailable(_) => "store-unavailable",
        }
    }

    fn text(&self) -> &'static str {
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
type Answer = Result<Option<Match>, Why>;

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("wait", words)?;
    check_version(options.json_version)?;
    let by = selector(&options)?;
    let until = Until::of(options.until.as_deref().unwrap_or("present"))?;
    if until == Until::Gone && options.since.is_some() {
        return Err(Fail::new(Exit::Usage, "--since does not go with --until gone"));
    }
    let began = Now::read().mono_ms;
    let timeout = u64::try_from(options.timeout.unwrap_or(TIMEOUT).as_millis()).unwrap_or(u64::MAX);
    let mut wait = Wait::new(&by, &until, options.since);
    let answer = wait.run(env, began.saturating_add(timeout))?;
    let latency_ms = Now::read().mono_ms.saturating_sub(began);

    let json = options.json || options.json_version.is_some();
    let mut out = stdout();
    if json {
        out.append(|sink| put_json(sink, &until, &answer, latency_ms))?;
    } else if let Ok(Some(found)) = &answer {
        writeln!(out, "{}", Shown(&found.row.field("session_id")))?;
    }
    out.flush()?;
    match answer {
        Ok(_) => Ok(Exit::Ok),
        Err(Why::Several(rows)) => Err(several(&by.to_string(), &rows)),
        Err(Why::StoreUnavailable(text)) => Err(Fail::new(Exit::No, text)),
        Err(_) if json => Ok(Exit::No),
        Err(why) => Err(Fail::cannot(Exit::No, "wait for", by, why.text())),
    }
}

fn selector(options: &Options) -> Result<Selector, Fail> {
    let ways = [
        options.pid.map(|pid| Ok(Selector::Pid(pid))),
        options.tree.map(|pid| Ok(Selector::Below(pid, Limits::DEFAULT.depth))),
        options.launch_id.as_deref().map(Selector::launch),
        options.terminal_id.as_deref().map(Selector::terminal),
        options.id.as_deref().map(Selector::id),
    ];
    let mut given = ways.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(way), None) => way,
        _ => Err(Fail::new(
            Exit::Usage,
            "one of --pid, --tree, --launch-id, --terminal-id and an id must be given",
        )),
    }
}

/// A wait under way.
struct Wait<'w> {
    by: &'w Selector,
    until: &'w Until,
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
    /// Closing it takes its time, so that it outlives the answer.
    watch: Option<StoreWatch>,
}

impl<'w> Wait<'w> {
    fn new(by: &'w Selector, until: &'w Until, since: Option<u64>) -> Wait<'w> {
        let pid = match by {
            Selector::Pid(pid) | Selector::Below(pid, _) => Some(*pid),
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
            watch: None,
        }
    }

    /// Looks and sleeps in turn until there is an answer or the time is over.
    fn run(&mut self, env: &Env<'_>, deadline: u64) -> Result<Answer, Fail> {
        let mut first = true;
        loop {
            if let Some(answer) = self.look_at_store(env, first)? {
                return Ok(answer);
            }
            if Now::read().mono_ms >= deadline {
                return Ok(Err(Why::Timeout));
            }
            if first {
                // What holds at once needs no watch. What has changed until now
                // is seen by another look.
                self.watch = Root::find(env).ok().and_then(|root| StoreWatch::begin(&root).ok());
                first = false;
            } else {
                self.sleep(deadline);
            }
        }
    }

    /// Looks at the store. It is closed again, for a directory that is held
    /// open does not tell of its removal.
    fn look_at_store(&mut self, env: &Env<'_>, first: bool) -> Result<Option<Answer>, Fail> {
        // First, so that what a process wrote before its end is seen.
        self.note_ends();
        match find(env) {
            Found::Open(store) => self.look(Some(&store)),
            Found::Unavailable(why, root) if first => {
                Ok(Some(Err(Why::StoreUnavailable(trouble(why, &root)))))
            }
            // It may be about to be made.
            Found::Missing | Found::Unavailable(..) => self.look(None),
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

    fn look(&mut self, store: Option<&Store>) -> Result<Option<Answer>, Fail> {
        let look = Look::new(self.here);
        let mut found = match store.map(|store| look.find(store, self.by)) {
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
        if *self.until == Until::Gone {
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
        match self.until {
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

    /// Sleeps until there is something to look at or the time is over.
    fn sleep(&mut self, deadline: u64) {
        let blind = self.watch.is_none() || self.lives().any(|life| life.alarm().is_none());
        loop {
            let left = deadline.saturating_sub(Now::read().mono_ms);
            let store = self.watch.iter().map(StoreWatch::alarm);
            let alarms: Vec<_> = store.chain(self.lives().filter_map(Life::alarm)).collect();
            sleep(&alarms, if blind { left.min(TICK_MS) } else { left });
            let changed = match self.watch.as_mut().map(StoreWatch::has_changed) {
                None => false,
                Some(Ok(changed)) => changed,
                Some(Err(_)) => {
                    self.watch = None;
                    true
                }
            };
            if changed || blind || left == 0 || self.lives().any(Life::is_over) {
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

fn put_json(sink: &mut Vec<u8>, until: &Until, answer: &Answer, latency_ms: u64) {
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
    sink.put(b"\n");
}
