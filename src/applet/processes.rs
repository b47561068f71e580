//! Where processes meet harnesses and records.

use std::collections::HashMap;

use super::draft::{Draft, Marks, Owner};
use super::rest::{self, Notes};
use crate::cli::{Exit, Fail};
use crate::harness::rules::{Change, Event, Kind, Words, apply, put_instance};
use crate::harness::{self, Identity, Image, OTHER, ROWS, Row, Sessions, belongs};
use crate::probe::{self, Ancestry, CMDLINE, EXE, Here, Outside, Process, Recorded};
use crate::record::id::{self, Part};
use crate::record::out::Fixed;
use crate::record::sha256::Hex;
use crate::record::{Checked, Key, Status};
use crate::store::maintain::{Agent, Processes, Rest};
use crate::store::{Decide, Patience, Scratch, Session, Store, WriteError};
use crate::sys::clock::Now;
use crate::sys::fs::euid;
use crate::sys::process::Verdict;

/// A process that is a harness.
#[derive(Clone, Copy)]
pub struct Seen {
    /// The harness.
    pub row: &'static Row,
    /// The process.
    pub process: Process,
}

/// What a walk up the ancestors found.
pub enum Nearest {
    /// The nearest that is a harness, whichever it is.
    Found(Seen),
    /// None is one.
    None,
    /// One could not be seen for want of something: it may have been one.
    Unseen,
}

/// Finds the nearest ancestor that is a harness.
pub fn nearest(ancestry: &mut Ancestry) -> Nearest {
    let mut unseen = false;
    for at in 0..probe::MAX_ANCESTORS {
        let Some(process) = ancestry.get(at) else { break };
        match first_that_looks(process, |_| true) {
            Look::Is(row) => return Nearest::Found(Seen { row, process: *process }),
            Look::None => {}
            Look::Unseen => unseen = true,
        }
    }
    if unseen || ancestry.is_broken() { Nearest::Unseen } else { Nearest::None }
}

/// Finds the nearest ancestor that holds sessions of this harness without being
/// a sign of it: a server, an editor. Where a process holds one session only,
/// there is none.
pub fn host(ancestry: &mut Ancestry, row: &Row) -> Option<Process> {
    let looks = row.looks();
    if row.sessions == Sessions::One || looks.names.is_empty() && looks.hosts.is_empty() {
        return None;
    }
    for at in 0..probe::MAX_ANCESTORS {
        let process = ancestry.get(at)?;
        let mut exe = [0; EXE];
        let is_host = looks.has_host(process.comm())
            || process.exe(&mut exe).is_some_and(|path| looks.has_host(harness::base_name(path)));
        if is_host {
            return Some(*process);
        }
    }
    None
}

/// What a look at one process gave.
enum Look {
    Is(&'static Row),
    None,
    Unseen,
}

/// Says which of some harnesses a process looks like. The name decides first;
/// the program's file is asked for only where no name fits.
#[inline(never)] // its buffers are large, and its callers' stacks live longer
fn first_that_looks(process: &Process, wanted: fn(&Row) -> bool) -> Look {
    if harness::is_shell(process.comm()) {
        return Look::None;
    }
    let (mut exe, mut line) = ([0; EXE], [0; CMDLINE]);
    let named = ROWS.iter().any(|row| wanted(row) && row.looks().has_name(process.comm()));
    let image = Image {
        comm: process.comm(),
        exe: if named { None } else { process.exe(&mut exe) },
        cmdline: process.cmdline(&mut line),
    };
    let facts = image.facts();
    let mut look = Look::None;
    for row in ROWS.iter().filter(|row| wanted(row)) {
        match facts.belongs(row.looks()) {
            Some(true) => return Look::Is(row),
            Some(false) => {}
            None => look = Look::Unseen,
        }
    }
    look
}

/// Says which harness a command line starts; `other` for none.
pub fn of_command(words: &[&[u8]]) -> &'static Row {
    let name = harness::base_name(words.first().copied().unwrap_or(b""));
    let line = words.join(&0);
    let facts = Image { comm: name, exe: Some(name), cmdline: Some(&line) }.facts();
    let looks = |row: &&Row| facts.belongs(row.looks()) == Some(true);
    // A harness whose process has no looks of its own is known by its id.
    let named = || {
        let row = core::str::from_utf8(name).ok().and_then(harness::named);
        row.filter(|row| row.looks().names.is_empty())
    };
    ROWS.iter().find(looks).or_else(named).unwrap_or(&OTHER)
}

/// Says whether a process can be the one of a record of this harness. What an
/// emitter's process looks like is its own business.
pub fn can_be(row: &Row, process: &Process) -> Option<bool> {
    let Identity::Discoverable(looks) = &row.process else { return Some(true) };
    let (mut exe, mut line) = ([0; EXE], [0; CMDLINE]);
    let image = Image {
        comm: process.comm(),
        exe: if looks.has_name(process.comm()) { None } else { process.exe(&mut exe) },
        cmdline: process.cmdline(&mut line),
    };
    belongs(looks, &image)
}

/// The processes of this user that are this harness.
pub fn running(row: &'static Row) -> Vec<u32> {
    let uid = euid();
    let mut pids = Vec::new();
    // Without /proc none is seen.
    let _ = probe::pids(|pid| {
        if probe::uid(pid) != Some(uid) {
            return;
        }
        let Some(process) = Process::read(pid).ok().filter(|p| !p.dead) else { return };
        if matches!(first_that_looks(&process, |_| true), Look::Is(is) if is.id == row.id) {
            pids.push(pid);
        }
    });
    pids
}

/// The maintainer's view of the processes of this machine.
pub struct Table<'a> {
    here: &'a Here,
    now: Now,
    patience: Patience,
    notes: Notes,
    /// Pid namespaces of other places that records name.
    places: Vec<u64>,
    seen: HashMap<u32, Process>,
    outside: Outside,
    agents: Vec<Agent>,
    scratch: Box<Scratch>,
}

/// Milliseconds in which a process that a launcher named need not look like its
/// harness yet: what is started may be a chain of programs.
const LAUNCHING_MS: u64 = 10_000;

impl<'a> Table<'a> {
    /// Looks at nothing yet.
    pub fn new(here: &'a Here, now: Now, patience: Patience, notes: Notes) -> Table<'a> {
        Table {
            here,
            now,
            patience,
            notes,
            places: Vec::new(),
            seen: HashMap::new(),
            outside: Outside::default(),
            agents: Vec::new(),
            scratch: Box::default(),
        }
    }

    /// Judges a recorded process by the one look at all processes.
    fn known(&self, row: &Row, recorded: &Recorded<'_>) -> Option<Verdict> {
        if recorded.is_of_another_boot(self.here) {
            return Some(Verdict::Dead);
        }
        if recorded.is_foreign(self.here) {
            let alive = self.outside.find(recorded).is_some();
            return Some(if alive { Verdict::Alive } else { Verdict::Unknown });
        }
        let process = self.seen.get(&u32::try_from(recorded.pid).ok()?)?;
        let same = !process.dead && recorded.start.parse().ok() == Some(process.start);
        (same && can_be(row, process) == Some(true)).then_some(Verdict::Alive)
    }
}

/// The process with this pid, which must live.
pub fn living(pid: u32) -> Result<Process, Fail> {
    match Process::read(pid) {
        Ok(process) if !process.dead => Ok(process),
        _ => Err(Fail::new(Exit::No, format!("no process has the pid {pid}"))),
    }
}

/// This boot's id as text; empty where it cannot be read.
pub fn boot(here: &Here) -> &str {
    here.boot.as_ref().and_then(|id| core::str::from_utf8(id).ok()).unwrap_or("")
}

/// Whether a launcher has only just named the record's process.
fn is_launching(record: &Checked<'_>, here: &Here, now: &Now) -> bool {
    record.status == Some(Status::Discovered)
        && record.text(Key::Source).is("launcher")
        && record.text(Key::BootId).is(boot(here))
        && record
            .int(Key::MonoMs)
            .is_some_and(|then| now.mono_ms.saturating_sub(then) < LAUNCHING_MS)
}

/// Judges the process that a record names by a fresh look at that one alone.
pub fn verdict(record: &Checked<'_>, here: &Here, now: &Now) -> Verdict {
    let Some((row, recorded)) = recorded(record) else { return Verdict::Unknown };
    // A record of a process that does not say when it started is of none: any
    // process could have got the pid since. Schema 0 knew no starts.
    if recorded.start.is_empty() && !record.legacy {
        return Verdict::Dead;
    }
    let young = is_launching(record, here, now);
    let looks = |process: &Process| can_be(row, process).filter(|is| *is || !young);
    probe::judge(&recorded, here, looks)
}

/// The process that a record names, with its harness.
pub fn recorded<'r>(record: &Checked<'r>) -> Option<(&'static Row, Recorded<'r>)> {
    let mut name = [0; crate::record::limit::NAME];
    let row = harness::find(record.harness().copy(&mut name)?)?;
    let text = |key| record.text(key).plain().unwrap_or("");
    Some((
        row,
        Recorded {
            pid: record.pid?,
            start: text(Key::ProcessStart),
            boot: text(Key::BootId),
            pid_ns: text(Key::PidNs).parse().ok(),
        },
    ))
}

impl Processes for Table<'_> {
    fn note(&mut self, record: &Checked<'_>) {
        if let Some((_, recorded)) = recorded(record).filter(|(_, r)| r.is_foreign(self.here)) {
            self.places.extend(recorded.pid_ns.filter(|ns| !self.places.contains(ns)));
        }
    }

    fn look(&mut self) {
        let uid = euid();
        let (seen, agents, outside) = (&mut self.seen, &mut self.agents, &mut self.outside);
        let (here, places) = (self.here, &self.places);
        // Without /proc nothing is seen, and a record's process is asked for
        // one by one.
        let _ = probe::pids(|pid| {
            let ours = probe::uid(pid) == Some(uid);
            if !ours && places.is_empty() {
                return;
            }
            let Ok(process) = Process::read(pid) else { return };
            if !places.is_empty() {
                outside.take(&process, here);
            }
            if !ours {
                return;
            }
            seen.insert(pid, process);
            let row = discoverable(&process).filter(|_| !process.dead);
            if let Some(row) = row {
                let inner = outside.inner_pid(pid);
                agents.push(Agent { harness: row.id, pid, start: process.start, inner });
            }
        });
    }

    fn verdict(&mut self, record: &Checked<'_>, fresh: bool) -> Verdict {
        let Some((row, recorded)) = recorded(record) else { return Verdict::Unknown };
        if let Some(verdict) =
            self.known(row, &recorded).filter(|_| !fresh || recorded.is_foreign(self.here))
        {
            return verdict;
        }
        self::verdict(record, self.here, &self.now)
    }

    fn exists(&mut self, pid: u32) -> bool {
        self.seen.contains_key(&pid) || Process::read(pid).is_ok()
    }

    fn agents(&self) -> Vec<Agent> {
        self.agents.clone()
    }

    fn record(&mut self, store: &Store, agent: &Agent) -> bool {
        let Some(row) = harness::find(agent.harness) else { return false };
        let Some(process) = self.seen.get(&agent.pid).copied() else { return false };
        let mut buffer = [0; 4096];
        let cwd = process.cwd(&mut buffer).and_then(|cwd| core::str::from_utf8(cwd).ok());
        // A process whose directory cannot be seen is not ours to show.
        let Some(cwd) = cwd else { return false };
        let names = Names::of(row, &process, None);
        let mut draft = found(&names, self.here, self.now);
        draft.cwd = cwd;
        let written = Session::lock(store, &names.identity, self.patience).and_then(|locked| {
            locked.update(&names.digest, self.now.secs(), &mut self.scratch, |stored, out| {
                match (stored, apply(None, &draft.event)) {
                    (None, Change::Write(write)) => {
                        draft.put(out, None, &write);
                        Decide::Write(true)
                    }
                    _ => Decide::Leave(false),
                }
            })
        });
        written.unwrap_or(false)
    }

    fn rest(&mut self, record: &Checked<'_>) -> Option<Rest> {
        let rest = self.notes.rest(record, &self.now)?;
        let (_, recorded) = recorded(record).filter(|(_, r)| !r.is_foreign(self.here))?;
        let lives = !recorded.start.is_empty() && self.verdict(record, true) == Verdict::Alive;
        lives.then_some(rest)
    }

    fn settle(&mut self, store: &Store, rest: &Rest) -> Result<bool, WriteError> {
        rest::settle(store, rest, &self.now, self.patience, &mut self.scratch)
    }
}

/// The words of the record of a process that was found.
pub struct Names {
    row: &'static Row,
    /// The session's id; `proc-PID` where none is known.
    pub session: String,
    instance: String,
    pid: u32,
    start: String,
    detail: String,
    kind: &'static str,
    /// Digest of the session's identity.
    pub identity: Hex,
    /// Digest of the canonical id.
    pub digest: Hex,
}

impl Names {
    /// Finds them for a process of this harness.
    pub fn of(row: &'static Row, process: &Process, session: Option<&str>) -> Names {
        let mut buffer = [0; 4096];
        let tty = process.tty(&mut buffer).and_then(|tty| core::str::from_utf8(tty).ok());
        let detail = format!("PID {} {}", process.pid, tty.unwrap_or(""));
        let mut instance = [0; 32];
        let mut instance = Fixed::new(&mut instance);
        put_instance(&mut instance, process.pid, process.start);
        let instance = instance.text().unwrap_or("").to_string();
        let kind = if session.is_some() { "session" } else { "process" };
        let session = session.map_or_else(|| format!("proc-{}", process.pid), str::to_string);
        let plain = Part::Plain;
        Names {
            row,
            identity: id::identity(plain(row.id), plain(&session)),
            digest: id::canonical(plain(row.id), plain(&session), plain(&instance)),
            session,
            instance,
            pid: process.pid,
            start: process.start.to_string(),
            detail: detail.trim_end().to_string(),
            kind,
        }
    }
}

impl Names {
    /// Whether they are the process's own, no session being known.
    pub fn is_process(&self) -> bool {
        self.kind == "process"
    }
}

/// The record of a process that was found, as no event has told of it yet.
pub fn found<'a>(names: &'a Names, here: &'a Here, now: Now) -> Draft<'a> {
    Draft {
        row: names.row,
        session: &names.session,
        instance: &names.instance,
        digest: names.digest,
        owner: Some(Owner { pid: names.pid, start: &names.start }),
        boot: boot(here),
        pid_ns: here.pid_ns,
        cwd: "",
        cwd_else: "",
        now,
        ts: now.secs(),
        event: Event {
            kind: Kind::Report(Status::Discovered),
            boot_ms: None,
            subagent: "",
            turn_id: "",
            tool: "",
            background: None,
            tool_use_answers: false,
            compact_ends: false,
        },
        words: Words { tool: "", message: "", error: "", reported: &names.detail },
        last_event: "",
        method: "process",
        source: "process",
        kind: names.kind,
        title: "",
        sequence: None,
        marks: Marks::default(),
        inherited: None,
        surroundings: None,
    }
}

/// Says which discoverable harness a process is, asking as little as decides:
/// most processes are none, and their arguments are the dearest to read.
fn discoverable(process: &Process) -> Option<&'static Row> {
    let fits =
        |name: &[u8]| ROWS.iter().any(|row| row.is_discoverable() && row.looks().has_name(name));
    let mut exe = [0; EXE];
    let hopeful = fits(process.comm())
        || harness::is_interpreter(process.comm())
        || process.exe(&mut exe).is_some_and(|path| fits(harness::base_name(path)));
    match hopeful.then(|| first_that_looks(process, Row::is_discoverable)) {
        Some(Look::Is(row)) => Some(row),
        _ => None,
    }
}
