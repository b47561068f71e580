//! The one maintainer: finds agents that no hook reported, ends turns that were
//! interrupted where no hook tells, and removes what is over.
//!
//! A run takes the store-wide lock without waiting, looks at the stamp, writes
//! the stamp and then works: records it judged without a lock are judged again,
//! under their lock and with a fresh look at the process, before anything is
//! removed. A record that changed meanwhile is kept until the next run. No
//! error leaves this module as one: a run was busy, or not needed, or the store
//! was unavailable.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

use super::lock::{Lock, LockError, Patience};
use super::place::Store;
use super::proc_file;
use super::read::{Reader, Unreadable};
use super::replace::{TEMP_END, TEMP_START, Target, replace};
use super::write::WriteError;
use crate::record::id::File;
use crate::record::out::{Fixed, int};
use crate::record::sha256::{Hex, Sha256};
use crate::record::{Checked, Key, Status};
use crate::sys::clock::Now;
use crate::sys::fs::{Errno, Open};
use crate::sys::process::Verdict;

/// Seconds between two unforced runs.
pub const MIN_INTERVAL: u64 = 5;
/// Seconds that an ended session is listed.
pub const ENDED: u64 = 300;
/// Seconds that a record without a process lives without an event.
pub const PIDLESS: u64 = 600;
/// Seconds that a record is kept whose process cannot be seen from here.
pub const UNKNOWN: u64 = 24 * 3600;
/// Seconds after which a temporary file was left behind.
pub const TEMP: u64 = 600;
/// Seconds after which the lock file of a removed record goes.
pub const LOCK_FILE: u64 = 24 * 3600;
/// Seconds after which a store that nobody maintained is overdue.
pub const OVERDUE: u64 = 3600;

const LOCK_NAME: &CStr = c".fleet-maintenance.lock";
const STAMP_NAME: &CStr = c".fleet-maintenance.stamp";

/// How a run came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It worked.
    Done(Done),
    /// Another maintainer is at work.
    Busy,
    /// The last run was less than [`MIN_INTERVAL`] ago.
    Recent,
    /// The store could not be read or changed, or not all of it; this was done.
    Unavailable(Done),
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Records that were added for processes.
    pub discovered: u64,
    /// Records of turns that turned out to be interrupted.
    pub interrupted: u64,
    /// Records that were removed.
    pub removed: u64,
}

/// Whether a run must happen, and whether it may change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Unless the last run was a moment ago.
    Due,
    /// In any case.
    Forced,
    /// In any case, and only counts what it would do.
    Dry,
}

/// What the caller knows of processes: the store never asks itself.
pub trait Processes {
    /// Hears of every record before the look, so that it knows which other pid
    /// namespaces matter.
    fn note(&mut self, record: &Checked<'_>);

    /// Looks at all processes once.
    fn look(&mut self);

    /// Says from that look, or from a fresh one, whether the record's process
    /// lives.
    fn verdict(&mut self, record: &Checked<'_>, fresh: bool) -> Verdict;

    /// Says whether a process with this pid exists, for files named by one.
    fn exists(&mut self, pid: u32) -> bool;

    /// The agent processes that were seen: a harness, a pid, a start.
    fn agents(&self) -> Vec<Agent>;

    /// Writes a process record for one of them; whether it was written.
    fn record(&mut self, store: &Store, agent: &Agent) -> bool;

    /// Says when, after the last event of this record, its turn ended by the
    /// word of its own process.
    fn rest(&mut self, record: &Checked<'_>) -> Option<Rest>;

    /// Writes that into the record, unless there was an event meanwhile; whether
    /// it was written.
    fn settle(&mut self, store: &Store, rest: &Rest) -> Result<bool, WriteError>;
}

/// The end of a turn of which no hook has told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Digest of the session's identity.
    pub identity: Hex,
    /// Digest of the record's canonical id.
    pub digest: Hex,
    /// The pid of the process that says so.
    pub pid: u64,
    /// When, in epoch milliseconds.
    pub at_ms: u64,
}

/// An agent process that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agent {
    /// The harness.
    pub harness: &'static str,
    /// The pid, here.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start: u64,
    /// The pid by which a record of its own namespace names it.
    pub inner: Option<u32>,
}

/// Runs the maintenance once.
pub fn maintain_store(
    store: &Store,
    mode: Mode,
    now: &Now,
    patience: Patience,
    boot: &str,
    processes: &mut dyn Processes,
) -> Outcome {
    // A dry run changes nothing, not even by making the lock file.
    let _lock = match (mode != Mode::Dry).then(|| Lock::try_take(store, LOCK_NAME)) {
        None => None,
        Some(Ok(lock)) => Some(lock),
        Some(Err(LockError::Busy)) => return Outcome::Busy,
        Some(Err(_)) => return Outcome::Unavailable(Done::default()),
    };
    if mode == Mode::Due && stamp(store).is_ok_and(|then| is_recent(then, now.secs())) {
        return Outcome::Recent;
    }
    let run = Run { store, now, patience, boot, dry: mode == Mode::Dry };
    // A stamp that cannot be written, on a full disk, does not keep a run from
    // making room.
    let stamped = run.stamp();
    let mut done = Done::default();
    match run.work(processes, &mut done).and(stamped) {
        Ok(()) => Outcome::Done(done),
        Err(Failed) => Outcome::Unavailable(done),
    }
}

/// Reads the stamp: epoch seconds of the last run.
fn stamp(store: &Store) -> Result<u64, Errno> {
    let file = store.sessions.open(STAMP_NAME, Open::Read)?;
    if !store.owns(&file.status()?) {
        return Err(Errno::PERM);
    }
    let mut text = [0; 32];
    let len = file.read(&mut text)?;
    let text = core::str::from_utf8(&text[..len]).map_err(|_| Errno::INVAL)?;
    text.trim_ascii().parse().map_err(|_| Errno::INVAL)
}

/// A stamp in the future does not count.
fn is_recent(then: u64, now: u64) -> bool {
    now.checked_sub(then).is_some_and(|age| age < MIN_INTERVAL)
}

/// Whether nobody has maintained the store for long: the stamp is missing,
/// unreadable, more than an hour old or over a minute in the future.
pub fn is_overdue(store: &Store, now: u64) -> bool {
    const FUTURE: u64 = 60;
    !stamp(store).is_ok_and(|then| now.saturating_sub(then) <= OVERDUE && then <= now + FUTURE)
}

/// A run stops at the first error; what it was does not matter to anyone.
struct Failed;

impl From<Errno> for Failed {
    fn from(_: Errno) -> Failed {
        Failed
    }
}

struct Run<'s> {
    store: &'s Store,
    now: &'s Now,
    patience: Patience,
    boot: &'s str,
    dry: bool,
}

/// A record that a first look found to be over.
struct Over {
    name: CString,
    /// Digest of the bytes that were judged.
    judged: [u8; 32],
    /// Digest of the session's identity; schema 0 has none.
    identity: Option<Hex>,
}

impl Over {
    fn of(name: &CStr, record: &Checked<'_>) -> Over {
        let identity = (!record.legacy).then(|| record.identity());
        Over { name: name.to_owned(), judged: version(record), identity }
    }
}

/// Tells two versions of a record apart.
fn version(record: &Checked<'_>) -> [u8; 32] {
    let mut hash = Sha256::default();
    hash.update(record.bytes());
    hash.finish()
}

impl Run<'_> {
    /// Writes the stamp, before the work, so that a run that fails still counts.
    fn stamp(&self) -> Result<(), Failed> {
        if self.dry {
            return Ok(());
        }
        let mut digits = [0; 20];
        let mut out = Fixed::new(&mut digits);
        int(&mut out, self.now.secs());
        let target = match self.store.sessions.entry(STAMP_NAME) {
            Ok(meta) if self.store.owns(&meta) => Target::Regular,
            Err(Errno::NOENT) => Target::Absent,
            _ => return Err(Failed),
        };
        Ok(replace(&self.store.sessions, STAMP_NAME, target, out.bytes().unwrap_or(b"0"))?)
    }

    fn work(&self, processes: &mut dyn Processes, done: &mut Done) -> Result<(), Failed> {
        let mut reader = Reader::default();
        let mut reported = HashSet::new();
        let mut identities = HashSet::new();
        let mut digests = HashSet::new();
        self.store.read_stored_sessions(&mut reader, |_, record| {
            processes.note(record);
            identities.insert(record.identity());
            digests.insert(record.digest);
            if let Some(pid) = record.pid {
                reported.insert((pid, start(record)));
            }
            true
        })?;
        processes.look();

        for agent in processes.agents() {
            let named = |pid: u32| {
                reported.contains(&(pid.into(), agent.start)) || reported.contains(&(pid.into(), 0))
            };
            if !named(agent.pid) && !agent.inner.is_some_and(named) {
                done.discovered += u64::from(self.dry || processes.record(self.store, &agent));
            }
        }

        let mut launches = Launches::default();
        let (mut over, mut launched, mut rests) = (Vec::new(), Vec::new(), Vec::new());
        self.store.read_stored_sessions(&mut reader, |name, record| {
            let verdict = processes.verdict(record, false);
            launches.take(record, verdict);
            if self.is_over(record, verdict) {
                over.push(Over::of(name, record));
            } else if is_launched(record) {
                launched.push((Over::of(name, record), record.text(Key::LaunchId).to_string()));
            } else {
                rests.extend(processes.rest(record));
            }
            true
        })?;
        // What cannot be changed, such as a record whose lock is held, does not
        // keep the others from it.
        let mut outcome = Ok(());
        for rest in rests {
            match if self.dry { Ok(true) } else { processes.settle(self.store, &rest) } {
                Ok(settled) => done.interrupted += u64::from(settled),
                Err(_) => outcome = Err(Failed),
            }
        }
        launched.retain(|(_, launch)| launches.has_ended(launch));
        // The records of a launch are the proof that it has ended: they go last.
        let launched = launched.into_iter().map(|(over, _)| over);
        for over in launched.chain(over) {
            match if self.dry { Ok(true) } else { self.remove(&over, processes, &mut reader) } {
                Ok(gone) => done.removed += u64::from(gone),
                Err(Failed) => outcome = Err(Failed),
            }
        }
        if !self.dry {
            self.sweep(&identities, &digests, processes)?;
        }
        outcome
    }

    /// Finds out by a fresh look at its processes whether a launch is over.
    fn has_ended(&self, launch: &str, processes: &mut dyn Processes) -> Result<bool, Failed> {
        let mut launches = Launches::default();
        self.store.read_stored_sessions(&mut Reader::default(), |_, record| {
            if record.text(Key::LaunchId).is(launch) {
                launches.take(record, processes.verdict(record, true));
            }
            true
        })?;
        Ok(launches.has_ended(launch))
    }

    /// Whether a record is over, launches aside.
    fn is_over(&self, record: &Checked<'_>, verdict: Verdict) -> bool {
        let age = self.age(record);
        (record.status == Some(Status::Ended) && age > ENDED)
            || match (record.pid, verdict) {
                (None, _) => age > PIDLESS,
                (Some(_), Verdict::Dead) => true,
                (Some(_), Verdict::Unknown) => age > UNKNOWN,
                (Some(_), Verdict::Alive) => false,
            }
    }

    /// Seconds since a record's last event. On the same boot the monotonic
    /// clock decides, which stands still while the machine sleeps: nothing
    /// expires in the moment of waking up, nor by a step of the wall clock.
    fn age(&self, record: &Checked<'_>) -> u64 {
        let same_boot = !self.boot.is_empty() && record.text(Key::BootId).is(self.boot);
        match record.int(Key::MonoMs).filter(|_| same_boot) {
            Some(then) => self.now.mono_ms.saturating_sub(then) / 1000,
            None => self.now.secs().saturating_sub(record.ts),
        }
    }

    /// Removes a record that is over, unless it changed or turns out not to be.
    fn remove(
        &self,
        over: &Over,
        processes: &mut dyn Processes,
        reader: &mut Reader,
    ) -> Result<bool, Failed> {
        let dir = &self.store.sessions;
        let digest = over.identity.and_then(|_| File::Record.digest(over.name.to_bytes()));
        let lock = digest.map(|d| File::RecordLock.name(&d));
        // A schema 0 record has no writer any more, and no lock.
        let _lock = match &lock {
            Some(name) => {
                Some(Lock::take(self.store, name.c(), &self.patience).map_err(|_| Failed)?)
            }
            None => None,
        };
        let record = match reader.record(self.store, &over.name) {
            Ok(record) => record,
            Err(Unreadable::Io(e)) => return Err(e.into()),
            Err(_) => return Ok(false),
        };
        if version(&record) != over.judged {
            return Ok(false);
        }
        let verdict = processes.verdict(&record, true);
        if !self.is_over(&record, verdict) {
            let launch = record.text(Key::LaunchId).to_string();
            if !is_launched(&record) || !self.has_ended(&launch, processes)? {
                return Ok(false);
            }
        }
        match dir.unlink(&over.name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        // From now on a day passes before the lock files go.
        for name in lock.iter().chain(over.identity.map(|d| File::IdentityLock.name(&d)).iter()) {
            let _ = dir.touch(name.c());
        }
        Ok(true)
    }

    /// Removes what dead writers and removed records left behind.
    fn sweep(
        &self,
        identities: &HashSet<Hex>,
        digests: &HashSet<Hex>,
        processes: &mut dyn Processes,
    ) -> Result<(), Failed> {
        let dir = &self.store.sessions;
        let mut old = Vec::new();
        let mut entries = Box::new([MaybeUninit::uninit(); 32 * 1024]);
        dir.list(&mut entries[..], |name| {
            let bytes = name.to_bytes();
            let unused_lock = |file: File, used: &HashSet<Hex>| {
                file.digest(bytes).is_some_and(|digest| !used.contains(&digest))
            };
            let age = if bytes.starts_with(TEMP_START.as_bytes())
                && bytes.ends_with(TEMP_END.as_bytes())
            {
                TEMP
            } else if unused_lock(File::RecordLock, digests)
                || unused_lock(File::IdentityLock, identities)
            {
                LOCK_FILE
            } else if proc_file::pid_of(bytes).is_some_and(|pid| !processes.exists(pid)) {
                0
            } else {
                return true;
            };
            old.push((name.to_owned(), age));
            true
        })?;
        for (name, age) in old {
            let Ok(meta) = dir.entry(&name) else { continue };
            let seconds = self.now.secs().saturating_sub(u64::try_from(meta.mtime).unwrap_or(0));
            if !self.store.owns(&meta) || seconds < age {
                continue;
            }
            // A lock file goes only while it is held, so that no writer can be
            // in between. Somebody who waits for it sees that it is gone.
            let held = if age == LOCK_FILE {
                Lock::try_take(self.store, &name).map(Some)
            } else {
                Ok(None)
            };
            if held.is_ok() {
                let _ = dir.unlink(&name);
            }
        }
        Ok(())
    }
}

fn start(record: &Checked<'_>) -> u64 {
    record.text(Key::ProcessStart).plain().and_then(|t| t.parse().ok()).unwrap_or(0)
}

/// Whether a record is one that ends with its launch.
fn is_launched(record: &Checked<'_>) -> bool {
    record.pid.is_none() && record.harness().is("other") && !record.text(Key::LaunchId).is_empty()
}

/// Which launches are over: some process of theirs has ended, and none lives or
/// may live. A session that has ended says nothing of its process.
#[derive(Default)]
struct Launches {
    ended: HashSet<String>,
    living: HashSet<String>,
}

impl Launches {
    fn take(&mut self, record: &Checked<'_>, verdict: Verdict) {
        let launch = record.text(Key::LaunchId);
        if launch.is_empty() || record.pid.is_none() {
            return;
        }
        let set = if verdict == Verdict::Dead { &mut self.ended } else { &mut self.living };
        set.insert(launch.to_string());
    }

    fn has_ended(&self, launch: &str) -> bool {
        self.ended.contains(launch) && !self.living.contains(launch)
    }
}
