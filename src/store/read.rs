//! Reading records: one, all, or all that are not hidden by better ones.
//!
//! A reader opens and reads. It never writes, creates, locks, removes or looks
//! at a process.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::ffi::CString;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::annotate::{Derived, View, annotate_session};
use super::place::Store;
use super::seen::Marks;
use crate::record::check::{self, Door};
use crate::record::id::File as Kind;
use crate::record::{Checked, Fault, FaultKind, Key, MAX_BYTES, Scan, Text};
use crate::sys::fs::{Errno, Open};

/// Bytes of the buffer for directory entries.
const ENTRIES: usize = 32 * 1024;

/// Why a file is not a record that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// There is no such file.
    Absent,
    /// A link, another type of file, somebody else's, or one with two names.
    Unsafe,
    /// The contents are not an acceptable record.
    Malformed(Fault),
    /// The record is of a schema that this build does not know.
    Newer,
    /// The system refused.
    Io(Errno),
}

/// Reads the file `name` into the first [`MAX_BYTES`] + 1 bytes of `buffer` and
/// says how long it is.
pub(super) fn load(store: &Store, name: &CStr, buffer: &mut [u8]) -> Result<usize, Unreadable> {
    let file = store.sessions.open(name, Open::Read).map_err(|e| match e {
        Errno::NOENT => Unreadable::Absent,
        Errno::LOOP | Errno::NXIO => Unreadable::Unsafe,
        e => Unreadable::Io(e),
    })?;
    let meta = file.status().map_err(Unreadable::Io)?;
    if !store.owns(&meta) {
        return Err(Unreadable::Unsafe);
    }
    if meta.size > MAX_BYTES as u64 {
        return Err(Unreadable::Malformed(Fault {
            at: MAX_BYTES as u32,
            kind: FaultKind::TooLong,
        }));
    }
    // A record never changes once it has its name, so its size is its length.
    let room = buffer.len().min(MAX_BYTES + 1);
    match file.read(&mut buffer[..room]) {
        Ok(len) => Ok(len),
        Err(Errno::ISDIR) => Err(Unreadable::Unsafe),
        Err(e) => Err(Unreadable::Io(e)),
    }
}

/// Scans and checks the bytes of the file `name`.
pub(super) fn parse<'a>(
    name: &CStr,
    bytes: &'a [u8],
    scan: &'a mut Scan,
    known: fn(&str) -> bool,
) -> Result<Checked<'a>, Unreadable> {
    scan.scan(bytes).map_err(Unreadable::Malformed)?;
    let newer =
        |at| matches!(scan_schema(scan, bytes), Some(n) if n > 1) && at == FaultKind::Schema;
    let mut checked = check::check(bytes, scan, Door::Read, known).map_err(|fault| {
        if newer(fault.kind) { Unreadable::Newer } else { Unreadable::Malformed(fault) }
    })?;
    let name = name.to_bytes();
    if checked.legacy {
        checked.process |= name.starts_with(b"proc-");
        if checked.process && checked.pid.is_none() {
            checked.pid = pid_of_legacy(checked.text(Key::SessionId));
        }
    } else if !Kind::Record.is_name(name, &checked.digest) {
        return Err(Unreadable::Malformed(Fault { at: 0, kind: FaultKind::Forged }));
    }
    Ok(checked)
}

fn scan_schema(scan: &Scan, bytes: &[u8]) -> Option<u64> {
    let value = scan.get(Key::SchemaVersion)?.value(bytes);
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// A process record of schema 0 without pid is of the pid in its session id.
fn pid_of_legacy(session: Text<'_>) -> Option<u64> {
    let digits = session.plain()?.strip_prefix("proc-")?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().unwrap_or(u64::MAX))
        .filter(|pid| *pid > 0)
}

/// A file in the directory of the records that may be one.
pub(super) fn is_record_name(name: &[u8]) -> bool {
    name.ends_with(b".json") && !name.starts_with(b".")
}

/// The memory for reading records one after the other.
pub struct Reader {
    buffer: Box<[u8; MAX_BYTES + 1]>,
    scan: Box<Scan>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader { buffer: Box::new([0; MAX_BYTES + 1]), scan: Box::default() }
    }
}

impl Reader {
    /// Reads the file `name`.
    pub fn record(&mut self, store: &Store, name: &CStr) -> Result<Checked<'_>, Unreadable> {
        let len = load(store, name, &mut self.buffer[..])?;
        parse(name, &self.buffer[..len], &mut self.scan, store.known)
    }
}

/// What came of reading all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files that should be records and are not.
    pub skipped: u64,
}

impl Store {
    /// Reads one record by the digest of its canonical id.
    pub fn read_session_record<'r>(
        &self,
        reader: &'r mut Reader,
        digest: &crate::record::sha256::Hex,
    ) -> Result<Checked<'r>, Unreadable> {
        reader.record(self, Kind::Record.name(digest).c())
    }

    /// Reads every record, in directory order, until `each` says `false`.
    pub fn read_stored_sessions(
        &self,
        reader: &mut Reader,
        mut each: impl FnMut(&CStr, &Checked<'_>) -> bool,
    ) -> Result<Tally, Errno> {
        let (mut tally, mut want) = (Tally::default(), None);
        let mut entries = Box::new([MaybeUninit::uninit(); ENTRIES]);
        self.sessions.list(&mut entries[..], |name| {
            if !is_record_name(name.to_bytes()) {
                return true;
            }
            match reader.record(self, name) {
                Ok(checked) => return each(name, &checked),
                Err(Unreadable::Absent) => {}
                Err(Unreadable::Io(e)) if is_want(e) => {
                    want = Some(e);
                    return false;
                }
                Err(_) => tally.skipped += 1,
            }
            true
        })?;
        want.map_or(Ok(tally), Err)
    }

    /// Reads every record that no better one hides. Records that may be hidden
    /// come last; all others are in directory order. Stops when `each` says
    /// `false`.
    pub fn read_session_records(
        &self,
        reader: &mut Reader,
        mut each: impl FnMut(&Checked<'_>) -> bool,
    ) -> Result<Tally, Errno> {
        let mut on = true;
        let mut better = Better::default();
        let mut held: [Vec<CString>; 3] = Default::default();
        let mut tally =
            self.read_stored_sessions(reader, |name, checked| match Better::rank(checked) {
                Some(rank) => {
                    better.note_held(checked);
                    held[rank].push(name.to_owned());
                    true
                }
                None => {
                    better.note(checked);
                    on = each(checked);
                    on
                }
            })?;
        for (rank, names) in held.iter().enumerate() {
            for name in names.iter() {
                if !on {
                    return Ok(tally);
                }
                match reader.record(self, name) {
                    // It may have been replaced by another kind of record.
                    Ok(checked)
                        if Better::rank(&checked) == Some(rank) && better.hides(&checked, rank) => {
                    }
                    Ok(checked) => {
                        better.note(&checked);
                        on = each(&checked);
                    }
                    Err(Unreadable::Absent) => {}
                    Err(Unreadable::Io(e)) if is_want(e) => return Err(e),
                    Err(_) => tally.skipped += 1,
                }
            }
        }
        Ok(tally)
    }

    /// Reads every record that no better one hides, with its derived fields, as
    /// [`Store::read_session_records`] does. An order is the caller's to make.
    pub fn read_sessions(
        &self,
        reader: &mut Reader,
        view: &View,
        marks: &Marks,
        mut each: impl FnMut(&Checked<'_>, &Derived) -> bool,
    ) -> Result<Tally, Errno> {
        self.read_session_records(reader, |record| {
            each(record, &annotate_session(record, view, marks.of(record, view)))
        })
    }
}

/// Whether reading failed for want of something that is no fault of the file:
/// then nothing can be said of any.
fn is_want(e: Errno) -> bool {
    matches!(e, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Which records are hidden by better ones:
/// 0. a schema 0 session, by any schema 1 session of the same id;
/// 1. a session without a process, by one of the same id with a process;
/// 2. a process record, by a session of the same process.
///
/// Ids are kept as keyed 64-bit hashes, so that a large store takes little
/// memory and nobody can choose an id that hides another's.
#[derive(Default)]
struct Better {
    keys: RandomState,
    /// Schema 1 sessions without a process.
    unresolved: Hashes,
    /// Schema 1 sessions with a process.
    identified: Hashes,
    /// Processes of sessions.
    processes: Hashes,
}

/// A set of hashes that is filled first and asked later.
#[derive(Default)]
struct Hashes {
    all: Vec<u64>,
    sorted: usize,
}

impl Hashes {
    fn insert(&mut self, hash: u64) {
        self.all.push(hash);
    }

    fn contains(&mut self, hash: u64) -> bool {
        if self.sorted < self.all.len() {
            self.all.sort_unstable();
            self.sorted = self.all.len();
        }
        self.all.binary_search(&hash).is_ok()
    }
}

impl Better {
    /// In which round a record that may be hidden is looked at.
    fn rank(record: &Checked<'_>) -> Option<usize> {
        if record.process {
            Some(2)
        } else if record.legacy {
            Some(0)
        } else if record.pid.is_none() {
            Some(1)
        } else {
            None
        }
    }

    /// A record without a process still hides a schema 0 one, unless a bridge
    /// brought it: what comes from elsewhere hides nothing.
    fn note_held(&mut self, record: &Checked<'_>) {
        if !record.legacy && !record.process && record.text(Key::Bridge).is_empty() {
            self.unresolved.insert(self.session(record));
        }
    }

    fn note(&mut self, record: &Checked<'_>) {
        let Some(pid) = record.pid.filter(|_| !record.process) else { return };
        if !record.legacy {
            self.identified.insert(self.session(record));
        }
        self.processes.insert(self.process(record, pid, record.text(Key::ProcessStart)));
    }

    fn hides(&mut self, record: &Checked<'_>, rank: usize) -> bool {
        match (rank, record.pid) {
            (0, _) => {
                let session = self.session(record);
                self.identified.contains(session) || self.unresolved.contains(session)
            }
            (1, _) => self.identified.contains(self.session(record)),
            (_, Some(pid)) => {
                let exact = self.process(record, pid, record.text(Key::ProcessStart));
                let any = self.process(record, pid, Text::EMPTY);
                self.processes.contains(exact) || self.processes.contains(any)
            }
            (_, None) => false,
        }
    }

    fn session(&self, record: &Checked<'_>) -> u64 {
        let mut hasher = self.keys.build_hasher();
        feed(&mut hasher, record.harness());
        feed(&mut hasher, record.text(Key::SessionId));
        hasher.finish()
    }

    fn process(&self, record: &Checked<'_>, pid: u64, start: Text<'_>) -> u64 {
        let mut hasher = self.keys.build_hasher();
        feed(&mut hasher, record.harness());
        hasher.write_u64(pid);
        feed(&mut hasher, start);
        hasher.finish()
    }
}

fn feed(hasher: &mut impl Hasher, text: Text<'_>) {
    if text.is_escaped() {
        text.chars().for_each(|c| hasher.write(c.encode_utf8(&mut [0; 4]).as_bytes()));
    } else {
        hasher.write(text.raw());
    }
    hasher.write_u8(0xff);
}
