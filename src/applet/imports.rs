//! Records that come from elsewhere, one at a time.
//!
//! Without a bridge a record is written as it is, like an event of a hook. A
//! bridge owns what it brings and nothing else, and what it brings is of no
//! process, no terminal and no launch here.

use core::fmt::Display;

use super::draft::{UNRESOLVED, next_arrival, repo_of};
use super::fail::{errno, no_timer, unwritten};
use super::processes::boot;
use super::store::LOCKS_MS;
use super::writer::Ids;
use crate::cli::{Exit, Fail};
use crate::probe::Here;
use crate::record::check::{self, Door};
use crate::record::out::{Fixed, Object, Sink, Style, string};
use crate::record::{Checked, Fault, FaultKind, Key, Kind, Scan, limit};
use crate::store::maintain::PIDLESS;
use crate::store::{Decide, Patience, Reader, Scratch, Session, Store, WriteError};
use crate::sys::clock::Now;
use crate::sys::fs::Errno;
use crate::sys::guard::{self, Ticking};
use crate::sys::stdio;

/// Most records of a bridge.
pub const MAX_RECORDS: usize = 1000;
/// Most bytes of them all.
pub const MAX_TOTAL: usize = 4 * 1024 * 1024;
/// Most characters of the name of a host.
const MAX_HOST: usize = 64;

/// Milliseconds for which a count of the bridge's records holds: another importer
/// of the same name adds to them, the maintenance takes away.
const COUNT_MS: u64 = 60_000;
/// The same once there seems to be no more room.
const FULL_MS: u64 = 1000;

/// Why something was not taken.
#[derive(Debug)]
pub struct Refusal {
    /// The code for programs.
    pub code: &'static str,
    /// The reason in words.
    pub why: String,
    /// What the program's end must tell: that the answer was no, or worse.
    pub exit: Exit,
}

impl Refusal {
    /// A refusal of what was brought.
    pub fn new(code: &'static str, why: impl Display) -> Refusal {
        Refusal { code, why: why.to_string(), exit: Exit::No }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let code = match fault.kind {
            FaultKind::TooLong => "too-long",
            FaultKind::Utf8 => "not-utf8",
            FaultKind::Syntax => "not-json",
            FaultKind::Depth => "too-deep",
            FaultKind::Keys => "too-many-keys",
            FaultKind::Duplicate(_) => "duplicate-key",
            FaultKind::Missing(_) => "missing-field",
            FaultKind::Invalid(_) => "invalid-field",
            FaultKind::Schema => "schema",
            FaultKind::Forged => "forged",
        };
        Refusal::new(code, fault)
    }
}

impl From<WriteError> for Refusal {
    fn from(e: WriteError) -> Refusal {
        let (exit, why) = unwritten(e);
        // A store that cannot be written to is no fault of what was brought.
        let failed = matches!(e, WriteError::Io(_));
        let exit = match exit {
            Exit::Busy => exit,
            _ if failed => Exit::Io,
            _ => Exit::No,
        };
        Refusal { code: e.code(), why, exit }
    }
}

/// A bridge, and how much of the store it has taken.
pub struct Bridge {
    name: String,
    records: usize,
    bytes: usize,
    /// When that was counted, on CLOCK_MONOTONIC.
    counted_ms: u64,
}

impl Bridge {
    /// Counts what the bridge of this name has.
    pub fn find(name: &str, store: &Store) -> Result<Bridge, Fail> {
        let mut bridge = Bridge { name: name.to_string(), records: 0, bytes: 0, counted_ms: 0 };
        bridge.count(store, &Now::read()).map_err(unread)?;
        Ok(bridge)
    }

    fn count(&mut self, store: &Store, now: &Now) -> Result<(), Errno> {
        (self.records, self.bytes, self.counted_ms) = (0, 0, now.mono_ms);
        store.read_stored_sessions(&mut Reader::default(), |_, record| {
            if is_of(record, &self.name) {
                self.records += 1;
                self.bytes += record.bytes().len();
            }
            true
        })?;
        Ok(())
    }

    /// Removes what is over of the bridge's, where no maintainer has: its records
    /// have no process, and go ten minutes after their last line.
    fn expire(&mut self, store: &Store, ticking: Ticking, now: &Now, boot: &str) {
        let is_over = |record: &Checked<'_>| {
            let same_boot = record.text(Key::BootId).is(boot);
            let then = record.int(Key::MonoMs).filter(|_| same_boot);
            is_of(record, &self.name)
                && then.is_none_or(|then| now.mono_ms.saturating_sub(then) > PIDLESS * 1000)
        };
        // What cannot be removed is counted.
        let _ = remove(store, ticking, &is_over);
    }

    /// Whether there is room for so many records and bytes more.
    fn admit(&self, records: usize, bytes: usize) -> Result<(), Bar> {
        if self.records + records > MAX_RECORDS {
            Err(Bar::Records)
        } else if bytes > 0 && self.bytes + bytes > MAX_TOTAL {
            Err(Bar::Bytes)
        } else {
            Ok(())
        }
    }

    /// The same, by a new count where the last one is too old for the answer.
    fn admit_now(
        &mut self,
        store: &Store,
        (ticking, now, boot): (Ticking, &Now, &str),
        (records, bytes): (usize, usize),
    ) -> Result<(), Refusal> {
        let old = now.mono_ms.saturating_sub(self.counted_ms);
        let full = self.admit(records, bytes).is_err();
        if old > COUNT_MS || old > FULL_MS && full {
            if full {
                self.expire(store, ticking, now, boot);
            }
            self.count(store, now).map_err(WriteError::Io)?;
        }
        Ok(self.admit(records, bytes)?)
    }

    /// What a record of `len` bytes adds that is new or had `old` bytes before,
    /// where there is room for it.
    fn growth(&self, old: Option<usize>, len: usize) -> Result<Growth, Bar> {
        let growth = Growth { records: old.is_none().into(), old: old.unwrap_or(0), len };
        self.admit(growth.records, len.saturating_sub(growth.old))?;
        Ok(growth)
    }

    fn grow(&mut self, growth: Growth) {
        self.records += growth.records;
        self.bytes = (self.bytes + growth.len).saturating_sub(growth.old);
    }

    /// Whether the bridge may change this record.
    fn judge(&self, stored: &Checked<'_>) -> Result<(), Bar> {
        let owner = stored.text(Key::Bridge);
        if owner.is(&self.name) {
            Ok(())
        } else {
            Err(if owner.is_empty() { Bar::NoBridge } else { Bar::OtherBridge })
        }
    }
}

/// What a written record adds to those of a bridge.
#[derive(Clone, Copy)]
struct Growth {
    records: usize,
    old: usize,
    len: usize,
}

/// What stands in the way of a bridge; made under locks, so without words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bar {
    NoBridge,
    OtherBridge,
    Records,
    Bytes,
}

impl From<Bar> for Refusal {
    fn from(bar: Bar) -> Refusal {
        match bar {
            Bar::NoBridge => Refusal::new("not-own", "the stored record came over no bridge"),
            Bar::OtherBridge => {
                Refusal::new("other-bridge", "the stored record came over another bridge")
            }
            Bar::Records => Refusal::new(
                "too-many-records",
                format_args!("the bridge has {MAX_RECORDS} records"),
            ),
            Bar::Bytes => Refusal::new(
                "too-many-bytes",
                format_args!("the bridge's records would have more than {MAX_TOTAL} bytes"),
            ),
        }
    }
}

/// A store that cannot be read, as a failure.
pub fn unread(e: Errno) -> Fail {
    Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e)))
}

/// Whether a record belongs to the bridge of this name.
pub fn is_of(record: &Checked<'_>, bridge: &str) -> bool {
    !record.legacy && record.text(Key::Bridge).is(bridge)
}

/// Takes records over into a store.
pub struct Importer<'s> {
    /// The store.
    pub store: &'s Store,
    /// Who brings them.
    pub bridge: Option<Bridge>,
    /// This place.
    pub here: Here,
    /// Memory for writing.
    pub scratch: Box<Scratch>,
    /// Memory for what is brought.
    pub scan: Box<Scan>,
}

impl Importer<'_> {
    /// Takes one record over. `canonical` becomes its canonical id as soon as
    /// that is known to be one.
    pub fn record(
        &mut self,
        bytes: &[u8],
        ticking: Ticking,
        canonical: &mut String,
    ) -> Result<(), Refusal> {
        let now = Now::read();
        let Importer { store, bridge, here, scratch, scan } = self;
        scan.scan(bytes)?;
        let door = Door::Write { now: now.secs(), made: None };
        let record = check::check(bytes, scan, door, store.known)?;
        *canonical = record.text(Key::CanonicalId).to_string();
        if let Some(bridge) = bridge.as_mut() {
            check_brought(&record, &now)?;
            // Without a lock first: what is refused leaves no lock files behind.
            let len = record.bytes().len();
            let at = (ticking, &now, boot(here));
            let look = |stored: &Checked<'_>| (bridge.judge(stored), stored.bytes().len());
            match scratch.look(store, &record.digest, look) {
                Some((judged, old)) => {
                    judged?;
                    // Only for the count; the record itself may be shorter.
                    let _ = bridge.admit_now(store, at, (0, len.saturating_sub(old)));
                }
                None => bridge.admit_now(store, at, (1, len))?,
            }
        }
        let patience = Patience::of(ticking, LOCKS_MS);
        let session = Session::lock(store, &record.identity(), patience)?;
        let taken = session.update(&record.digest, now.secs(), scratch, |stored, out| {
            let arrival = next_arrival(stored);
            let Some(bridge) = &bridge else {
                put_as_it_is(out, &record, arrival);
                return Decide::Write(Ok(None));
            };
            if let Some(Err(bar)) = stored.map(|stored| bridge.judge(stored)) {
                return Decide::Leave(Err(bar));
            }
            put_brought(out, &record, arrival, &bridge.name, &now, boot(here));
            let old = stored.map(|stored| stored.bytes().len());
            match bridge.growth(old, out.bytes().map_or(0, <[u8]>::len)) {
                Err(bar) => Decide::Leave(Err(bar)),
                Ok(growth) if old.is_none() => Decide::Create(Ok(Some(growth))),
                Ok(growth) => Decide::Write(Ok(Some(growth))),
            }
        })?;
        if let (Some(bridge), Some(growth)) = (bridge, taken?) {
            bridge.grow(growth);
        }
        Ok(())
    }
}

/// Fields that a bridge brings as they are; all others are the importer's or are
/// left out, those that nobody knows yet among them.
const BROUGHT: [Key; 26] = [
    Key::CanonicalId,
    Key::SessionId,
    Key::HarnessId,
    Key::Agent,
    Key::Repo,
    Key::Cwd,
    Key::Status,
    Key::Detail,
    Key::Tool,
    Key::Ts,
    Key::Started,
    Key::LastEvent,
    Key::Sequence,
    Key::TsMs,
    Key::StatusMs,
    Key::Turn,
    Key::WaitingFor,
    Key::WaitingSince,
    Key::WaitingTool,
    Key::WaitingAgent,
    Key::WaitingFrom,
    Key::Background,
    Key::Branch,
    Key::Worktree,
    Key::Title,
    Key::Host,
];

/// Refuses what a bridge may not say, in fields that the check of records leaves
/// alone: a process, wrong types, texts without measure, times to come.
fn check_brought(record: &Checked<'_>, now: &Now) -> Result<(), Refusal> {
    if record.pid.is_some() {
        return Err(Refusal::new("names-process", "a bridge's record cannot name a process"));
    }
    for key in BROUGHT {
        let Some(field) = record.field(key).filter(|field| field.kind != Kind::Null) else {
            continue;
        };
        let text = record.text(key);
        let good = match key {
            Key::Branch | Key::Title => text.len() <= limit::DETAIL,
            Key::Worktree => text.len() <= limit::PATH,
            Key::WaitingTool => text.len() <= limit::TOOL,
            Key::WaitingAgent => text.len() <= limit::ID,
            Key::WaitingFor | Key::WaitingFrom => text.len() <= limit::SHORT,
            Key::Host => text.chars().count() <= MAX_HOST,
            Key::Started | Key::WaitingSince => is_past(record.int(key), now.secs(), 1),
            Key::TsMs | Key::StatusMs => is_past(record.int(key), now.wall_ms, 1000),
            Key::Turn | Key::Background => record.int(key).is_some(),
            _ => true,
        };
        if !good || !key.has_shape(field.kind) || text.has_nul() {
            return Err(Fault { at: field.at(), kind: FaultKind::Invalid(key) }.into());
        }
    }
    Ok(())
}

/// Whether a time is one, and not further ahead than clocks differ.
fn is_past(time: Option<u64>, now: u64, second: u64) -> bool {
    time.is_some_and(|time| time <= now + limit::FUTURE * second)
}

/// Composes the record that a bridge brings: what it says of the session, as an
/// event that arrives now, for a clock of another machine says nothing here.
fn put_brought(
    out: &mut Fixed<'_>,
    record: &Checked<'_>,
    arrival: u64,
    bridge: &str,
    now: &Now,
    boot: &str,
) {
    let mut object = Object::open(out);
    for key in Key::ALL.iter().copied() {
        let name = key.name();
        match key {
            Key::SchemaVersion => object.int(name, 1),
            Key::RecordKind => object.str(name, "session"),
            Key::InstanceId | Key::ProcessIdentity => object.str(name, UNRESOLVED),
            Key::Pid | Key::ProcessStart => object.str(name, ""),
            Key::Source | Key::Method => object.str(name, "bridge"),
            Key::Terminal => object.str(name, "generic"),
            Key::Bridge => object.str(name, bridge),
            Key::ArrivalSequence => object.int(name, arrival),
            Key::BootId => object.str(name, boot),
            Key::BootMs => object.int(name, now.boot_ms),
            Key::MonoMs => object.int(name, now.mono_ms),
            Key::Ts if record.field(key).is_none() => object.int(name, now.secs()),
            Key::Repo if record.field(key).is_none() => {
                let mut path = [0; limit::PATH];
                let cwd = record.text(Key::Cwd).copy(&mut path).unwrap_or("");
                string(object.key(name), repo_of(cwd), Style::Stored);
                &mut object
            }
            _ => {
                let brought = record
                    .field(key)
                    .filter(|field| BROUGHT.contains(&key) && key.has_shape(field.kind));
                let value = match (key, brought) {
                    (Key::TerminalEnv, _) => b"{}",
                    (Key::FocusTarget, _) => &br#"{"kind":"unavailable"}"#[..],
                    (_, Some(field)) => field.value(record.bytes()),
                    (_, None) => continue,
                };
                object.key(name).put(value);
                continue;
            }
        };
    }
    object.close();
}

/// Composes a record as it is, but for the number of its arrival.
fn put_as_it_is(out: &mut Fixed<'_>, record: &Checked<'_>, arrival: u64) {
    let bytes = record.bytes();
    let mut object = Object::open(out);
    for field in record.fields() {
        if !field.known.is_some_and(|key| key == Key::ArrivalSequence || key.is_derived()) {
            object.raw_key(field.key(bytes), Style::Stored).put(field.value(bytes));
        }
    }
    object.int(Key::ArrivalSequence.name(), arrival);
    object.close();
}

/// Removes what is a bridge's. A record that cannot be removed does not keep the
/// others.
pub fn retire(store: &Store, bridge: &str) -> Result<(u64, Option<Fail>), Fail> {
    let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
    stdio::private_umask();
    remove(store, ticking, &|record| is_of(record, bridge))
}

/// Removes the records that are `over` when they are found and still when they are
/// locked.
fn remove(
    store: &Store,
    ticking: Ticking,
    over: &dyn Fn(&Checked<'_>) -> bool,
) -> Result<(u64, Option<Fail>), Fail> {
    let mut found: Vec<(Ids, String)> = Vec::new();
    store
        .read_stored_sessions(&mut Reader::default(), |_, record| {
            if over(record) {
                let ids = Ids { identity: record.identity(), digest: record.digest };
                found.push((ids, record.text(Key::SessionId).to_string()));
            }
            true
        })
        .map_err(unread)?;
    let mut scratch: Box<Scratch> = Box::default();
    let (mut removed, mut failed) = (0, None);
    for (ids, session) in found {
        let gone = Session::lock(store, &ids.identity, Patience::of(ticking, LOCKS_MS)).and_then(
            |locked| {
                let still = |record: Option<&Checked<'_>>| record.is_some_and(over);
                locked.remove(&ids.digest, &mut scratch, still)
            },
        );
        match gone {
            Ok(gone) => removed += u64::from(gone),
            Err(e) => {
                let (exit, why) = unwritten(e);
                failed.get_or_insert(Fail::cannot(exit, "remove session", session, why));
            }
        }
    }
    Ok((removed, failed))
}
