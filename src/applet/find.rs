//! Finding sessions: by launch, terminal, process or id, and which of several
//! is meant.
//!
//! A record is taken for a living session's only if its process, pid and start,
//! is there now; what cannot be seen counts as living and is marked. Nothing but
//! the recorded processes and their ancestors is looked at here.

use super::fail::errno;
use super::processes::verdict;
use super::view::{self, Row};
use crate::cli::{Exit, Fail, Shown};
use crate::harness::{self, Sessions};
use crate::probe::{Ancestry, Here, stat};
use crate::record::id::digest_of;
use crate::record::text::cut;
use crate::record::{Checked, Key, Status, Text, limit};
use crate::store::annotate::{Derived, View, annotate_session};
use crate::store::seen::Marks;
use crate::store::{Reader, Store};
use crate::sys::clock::Now;
use crate::sys::fs::Errno;
use crate::sys::process::Verdict;

/// By what a session is found.
pub enum Selector {
    /// The id of its launch.
    Launch(String),
    /// The id of its terminal.
    Terminal(String),
    /// One of these processes, the nearest first.
    Among(Vec<u32>),
    /// A process or one that is at most so many generations below it.
    Below(u32, usize),
    /// Its process.
    Pid(u32),
    /// Its canonical id, short id or session id, or the start of one.
    Id(String),
    /// Something of it: an id, its harness, directory, title or pid in full, or a
    /// part of one of these texts or of its branch.
    Words(String),
    /// That it asks for its user, or would if that had not been seen or put off.
    Asks,
}

impl Selector {
    /// A launch by an id as a command line gives it.
    pub fn launch(id: &str) -> Result<Selector, Fail> {
        text("--launch-id", id).map(Selector::Launch)
    }

    /// A terminal by an id as a command line gives it.
    pub fn terminal(id: &str) -> Result<Selector, Fail> {
        text("--terminal-id", id).map(Selector::Terminal)
    }

    /// A session by an id as a command line gives it.
    pub fn id(id: &str) -> Result<Selector, Fail> {
        text("the id", id).map(Selector::Id)
    }

    /// A session by whatever a command line says of it.
    pub fn words(words: &str) -> Result<Selector, Fail> {
        text("the query", words).map(Selector::Words)
    }

    /// The name of the selector in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Selector::Launch(_) => "launch_id",
            Selector::Terminal(_) => "terminal_id",
            Selector::Among(_) | Selector::Below(..) => "tree",
            Selector::Pid(_) => "pid",
            Selector::Id(_) => "session",
            Selector::Words(_) => "query",
            Selector::Asks => "attention",
        }
    }
}

impl core::fmt::Display for Selector {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Selector::Launch(id) => write!(f, "launch {id}"),
            Selector::Terminal(id) => write!(f, "terminal {id}"),
            Selector::Among(_) => f.write_str("processes"),
            Selector::Below(pid, _) => write!(f, "tree {pid}"),
            Selector::Pid(pid) => write!(f, "pid {pid}"),
            Selector::Id(id) | Selector::Words(id) => f.write_str(id),
            Selector::Asks => f.write_str("attention"),
        }
    }
}

/// An id that can be one: an empty one would fit every record without. Writers
/// cut long ones.
fn text(name: &str, id: &str) -> Result<String, Fail> {
    if id.is_empty() {
        return Err(Fail::new(Exit::Usage, format!("{name} is empty")));
    }
    Ok(cut(id, limit::ID).to_string())
}

/// A session that was found.
#[derive(Clone)]
pub struct Match {
    /// The session, marked as unverified where its process could not be seen.
    pub row: Row,
    /// Whether its process lives.
    pub life: Verdict,
    /// Its process, where the pid means something here.
    pub pid: Option<u32>,
    /// The start of that process, where it is recorded.
    pub start: Option<u64>,
    /// Whether no hook has reported it, so that its session id is made up.
    pub nameless: bool,
    /// Milliseconds since the epoch of its last event, by the clock of now.
    pub at_ms: u64,
    /// The same by the clock of then.
    pub ts_ms: u64,
    /// Whether the id was given in full.
    exact: bool,
    /// How far its process is from the one that was asked for.
    distance: usize,
    /// How many of the others its process is below.
    nesting: usize,
}

impl Match {
    /// Whether the session goes on, as far as can be seen.
    pub fn is_live(&self) -> bool {
        self.life != Verdict::Dead && self.row.status != Some(Status::Ended)
    }

    /// Its process, pid and start.
    pub fn process(&self) -> Option<(u32, u64)> {
        self.pid.zip(self.start)
    }

    /// How its last event came; records without it are of hooks that know one way.
    pub fn method(&self) -> String {
        Some(self.row.field("method")).filter(|m| !m.is_empty()).unwrap_or("hook-stdin".into())
    }

    /// Its place in the order: the better one is less.
    fn rank(&self) -> impl Ord + '_ {
        let verified = self.life == Verdict::Alive;
        let newest = core::cmp::Reverse(self.at_ms);
        (!self.is_live(), !verified, self.nesting, newest, self.distance, &self.row.id)
    }
}

/// The moment and the place of a look.
pub struct Look {
    here: Here,
    now: Now,
    view: View,
}

impl Look {
    /// Looks from here, now.
    pub fn new(here: Here) -> Look {
        let now = Now::read();
        let view = View {
            now_ms: now.wall_ms,
            boot_ms: now.boot_ms,
            boot: here.boot,
            pid_ns: here.pid_ns,
        };
        Look { here, now, view }
    }

    /// Reads the sessions that a selector takes, the best one first:
    ///
    /// 1. what lives before what is over, and what is seen to live before what
    ///    cannot be seen;
    /// 2. of one launch, the process that the others are below, for an agent
    ///    that an agent starts inherits the id;
    /// 3. the newest event.
    ///
    /// Of what lives, a process that can hold one session only has one here.
    pub fn find(&self, store: &Store, selector: &Selector) -> Result<Vec<Match>, Errno> {
        let mut found = Vec::new();
        let marks = Marks::read(store);
        read(store, &mut Reader::default(), &self.view, &marks, &mut |record, derived| {
            found.extend(self.take(selector, record, derived));
            true
        })?;
        if found.iter().any(|f| f.exact) {
            found.retain(|f| f.exact);
        }
        if matches!(selector, Selector::Launch(_)) && found.len() > 1 {
            nest(&mut found);
        }
        found.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let mut single = Vec::new();
        found.retain(|f| {
            let holds_one =
                harness::find(&f.row.harness).is_some_and(|row| row.sessions == Sessions::One);
            let process = f.process().filter(|_| holds_one && f.is_live());
            let again = process.is_some_and(|process| single.contains(&process));
            single.extend(process);
            !again
        });
        Ok(found)
    }

    /// Reads a session again, by the name of its record: a listing may pass over
    /// a record that is being replaced. `None` where it is gone.
    pub fn again(&self, store: &Store, found: &Match) -> Option<Match> {
        let digest = digest_of(&found.row.id)?;
        let (mut reader, marks) = (Reader::default(), Marks::read(store));
        let record = store.read_session_record(&mut reader, &digest).ok()?;
        let derived = annotate_session(&record, &self.view, marks.of(&record, &self.view));
        Some(self.judge(&record, &derived))
    }

    fn take(&self, by: &Selector, record: &Checked<'_>, derived: &Derived) -> Option<Match> {
        let (mut distance, mut exact) = (0, false);
        match by {
            Selector::Launch(id) if record.text(Key::LaunchId).is(id) => {}
            Selector::Terminal(id) if record.text(Key::TerminalId).is(id) => {}
            Selector::Pid(pid) if pid_here(record, derived) == Some(*pid) => {}
            Selector::Among(pids) => {
                let pid = pid_here(record, derived)?;
                distance = pids.iter().position(|p| *p == pid)?;
            }
            Selector::Below(..) => {}
            Selector::Id(id) => exact = fits(record, derived, id)?,
            Selector::Words(words) => exact = says(record, derived, words)?,
            Selector::Asks if view::may_ask(record.status, derived) => {}
            _ => return None,
        }
        let found = self.judge(record, derived);
        match by {
            // A pid of the tree is that of a process that lives.
            Selector::Among(_) if found.life == Verdict::Dead => return None,
            Selector::Below(..) if found.life != Verdict::Alive => return None,
            Selector::Below(top, most) => {
                distance = generations(found.pid?, *top).filter(|d| d <= most)?;
            }
            _ => {}
        }
        Some(Match { exact, distance, ..found })
    }

    /// Looks at a record's process.
    fn judge(&self, record: &Checked<'_>, derived: &Derived) -> Match {
        let start = record.text(Key::ProcessStart).plain();
        let start = start.and_then(|digits| stat::number(digits.as_bytes()));
        let life = match verdict(record, &self.here, &self.now) {
            // Nothing says that what has the pid now is the same process.
            Verdict::Alive if start.is_none() => Verdict::Unknown,
            life => life,
        };
        let unverified = derived.unverified || life == Verdict::Unknown;
        Match {
            row: Row::of(record, &Derived { unverified, ..*derived }),
            life,
            pid: pid_here(record, derived),
            start,
            nameless: record.process,
            at_ms: self.at_ms(record),
            ts_ms: ts_ms(record),
            exact: false,
            distance: 0,
            nesting: 0,
        }
    }

    /// When a record's last event was, by the clock of now: a step of the wall
    /// clock between two events does not change their order.
    fn at_ms(&self, record: &Checked<'_>) -> u64 {
        let boot = super::processes::boot(&self.here);
        let same_boot = !boot.is_empty() && record.text(Key::BootId).is(boot);
        match record.int(Key::BootMs).filter(|_| same_boot) {
            Some(then) => self.now.wall_ms.saturating_sub(self.now.boot_ms.saturating_sub(then)),
            None => ts_ms(record).min(self.now.wall_ms),
        }
    }
}

/// The pid of a record's process, where it is a number of this pid namespace.
fn pid_here(record: &Checked<'_>, derived: &Derived) -> Option<u32> {
    record.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|_| !derived.unverified)
}

fn ts_ms(record: &Checked<'_>) -> u64 {
    record.int(Key::TsMs).unwrap_or(record.ts.saturating_mul(1000))
}

/// How many generations a process is below another; 0 is the same one.
fn generations(pid: u32, top: u32) -> Option<usize> {
    let mut ancestry = Ancestry::from(pid);
    let mut distance = 0;
    while ancestry.get(distance)?.pid != top {
        distance += 1;
    }
    Some(distance)
}

/// Counts for each session how many of the others its process is below.
fn nest(found: &mut [Match]) {
    let processes: Vec<_> =
        found.iter().filter(|f| f.life == Verdict::Alive).filter_map(Match::process).collect();
    for f in found.iter_mut().filter(|f| f.life == Verdict::Alive) {
        let Some(pid) = f.pid else { continue };
        let mut ancestry = Ancestry::from(pid);
        // The first one is the process itself.
        let mut at = 1;
        while let Some(above) = ancestry.get(at) {
            f.nesting += usize::from(processes.contains(&(above.pid, above.start)));
            at += 1;
        }
    }
}

/// Whether an id names a record; `Some(true)` if it does so in full.
fn fits(record: &Checked<'_>, derived: &Derived, id: &str) -> Option<bool> {
    let texts = [record.text(Key::CanonicalId), record.text(Key::SessionId)];
    if texts.iter().any(|t| t.is(id)) || (!record.legacy && derived.short_id() == id) {
        return Some(true);
    }
    // The short id is the start of the digest, so a longer start of that will do.
    let digest = !record.legacy && record.digest.starts_with(id.as_bytes());
    (digest || texts.iter().any(|t| begins(*t, id))).then_some(false)
}

/// Whether a query is about a record; `Some(true)` if it says one thing in full.
fn says(record: &Checked<'_>, derived: &Derived, query: &str) -> Option<bool> {
    let text = |key| record.text(key);
    let whole = [record.harness(), text(Key::Repo), text(Key::Title)];
    if fits(record, derived, query) == Some(true)
        || whole.iter().any(|text| text.is(query))
        || pid_here(record, derived).is_some_and(|pid| pid.to_string() == query)
    {
        return Some(true);
    }
    let lower = query.to_ascii_lowercase();
    let rest = [Key::CanonicalId, Key::SessionId, Key::Cwd, Key::Branch].map(text);
    let holds = |text: &Text<'_>| text.to_string().to_ascii_lowercase().contains(&lower);
    whole.iter().chain(&rest).any(holds).then_some(false)
}

fn begins(text: Text<'_>, start: &str) -> bool {
    let mut chars = text.chars();
    start.chars().all(|c| chars.next() == Some(c))
}

/// Reads the sessions that an id names, living or not: those that have exactly
/// this one, else those that have one that begins with it. Looks at no process.
pub fn by_id(store: &Store, id: &str) -> Result<Vec<Row>, Fail> {
    let (mut exact, mut starts) = (Vec::new(), Vec::new());
    rows(store, &mut |record, derived| match fits(record, derived, id) {
        Some(true) => exact.push(Row::of(record, derived)),
        Some(false) => starts.push(Row::of(record, derived)),
        None => {}
    })?;
    Ok(if exact.is_empty() { starts } else { exact })
}

/// Reads every session. Looks at no process.
pub fn all(store: &Store) -> Result<Vec<Row>, Fail> {
    let mut all = Vec::new();
    rows(store, &mut |record, derived| all.push(Row::of(record, derived)))?;
    Ok(all)
}

fn rows(store: &Store, take: &mut dyn FnMut(&Checked<'_>, &Derived)) -> Result<(), Fail> {
    let (view, marks) = (view::of(&Now::read()), Marks::read(store));
    read(store, &mut Reader::default(), &view, &marks, &mut |record, derived| {
        take(record, derived);
        true
    })
    .map_err(unread)
}

/// Reads the sessions until `each` says `false`. There is one copy of this code
/// for all who do not count microseconds.
pub fn read(
    store: &Store,
    reader: &mut Reader,
    view: &View,
    marks: &Marks,
    each: &mut dyn FnMut(&Checked<'_>, &Derived) -> bool,
) -> Result<(), Errno> {
    store.read_sessions(reader, view, marks, each).map(|_| ())
}

/// A store that could not be read, as a failure.
pub fn unread(e: Errno) -> Fail {
    Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e)))
}

/// An id that names several sessions, as a failure that lists them.
pub fn several<'r>(id: &str, rows: impl IntoIterator<Item = &'r Row>) -> Fail {
    let ids: Vec<String> = rows.into_iter().map(|row| Shown(&row.id).to_string()).collect();
    Fail::new(Exit::No, format!("several sessions match '{id}': {}", ids.join(" ")))
}
