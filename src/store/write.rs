//! Writing one record: lock, read, decide, check, replace.

use super::lock::{Lock, LockError, Patience};
use super::place::Store;
use super::read::{self, Unreadable};
use super::replace::{Target, replace};
use crate::record::check::{self, Door};
use crate::record::id::File;
use crate::record::out::Fixed;
use crate::record::sha256::Hex;
use crate::record::{Checked, Fault, Key, MAX_BYTES, Scan};
use crate::sys::fs::Errno;

/// The memory that writing takes, meant to be static or boxed: it is too large
/// for a small stack, and costs nothing where it is not touched.
#[repr(C)] // what is always used comes first, on few pages
pub struct Scratch {
    stored_scan: Scan,
    new_scan: Scan,
    /// The stored record, and the new one right behind it.
    records: [u8; MAX_BYTES + 1 + MAX_BYTES],
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

impl Scratch {
    /// Zeroed memory.
    pub const fn new() -> Scratch {
        Scratch {
            stored_scan: Scan::new(),
            new_scan: Scan::new(),
            records: [0; MAX_BYTES + 1 + MAX_BYTES],
        }
    }
}

impl Scratch {
    /// Looks at a stored record without a lock; `None` where there is none that
    /// counts.
    pub fn look<T>(
        &mut self,
        store: &Store,
        digest: &Hex,
        look: impl FnOnce(&Checked<'_>) -> T,
    ) -> Option<T> {
        let name = File::Record.name(digest);
        let len = read::load(store, name.c(), &mut self.records).ok()?;
        let stored = &self.records[..len];
        let record = read::parse(name.c(), stored, &mut self.stored_scan, store.known).ok()?;
        Some(look(&record))
    }
}

/// What the caller makes of the stored record.
pub enum Decide<T> {
    /// The new record is in the buffer: write it.
    Write(T),
    /// The same, and the record's own sequence stays as it is: the change is
    /// not its program's.
    Amend(T),
    /// As [`Decide::Write`], where no file stands in the record's place.
    Create(T),
    /// As [`Decide::Write`], and the stored record counts as absent.
    Replace(T),
    /// Nothing is to be written.
    Leave(T),
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// A lock was held for too long.
    Busy,
    /// What stands in the record's or a lock's place is not a file of ours.
    Unsafe,
    /// The stored record is of a newer schema.
    Newer,
    /// The new record does not fit or is not acceptable; a defect of ours or of
    /// what was imported.
    Malformed(Option<Fault>),
    /// The stored record is of another process.
    OtherProcess,
    /// The stored record has a sequence that the new one does not exceed.
    Sequence,
    /// The system refused.
    Io(Errno),
}

impl WriteError {
    /// The code for the fault log and `--strict`.
    pub fn code(self) -> &'static str {
        match self {
            WriteError::Busy => "lock-busy",
            WriteError::Unsafe => "record-unsafe",
            WriteError::Newer => "record-newer",
            WriteError::Malformed(_) => "record-malformed",
            WriteError::OtherProcess => "other-process",
            WriteError::Sequence => "sequence",
            WriteError::Io(_) => "write-failed",
        }
    }
}

impl From<LockError> for WriteError {
    fn from(e: LockError) -> WriteError {
        match e {
            LockError::Busy => WriteError::Busy,
            LockError::Unsafe => WriteError::Unsafe,
            LockError::Io(e) => WriteError::Io(e),
        }
    }
}

/// A session whose identity lock is held: its records may be written.
pub struct Session<'s> {
    store: &'s Store,
    patience: Patience,
    _identity: Lock,
}

impl<'s> Session<'s> {
    /// Takes the identity lock.
    pub fn lock(
        store: &'s Store,
        identity: &Hex,
        patience: Patience,
    ) -> Result<Session<'s>, WriteError> {
        let name = File::IdentityLock.name(identity);
        let _identity = Lock::take(store, name.c(), &patience)?;
        Ok(Session { store, patience, _identity })
    }

    /// Changes one record under its lock. `decide` sees the stored record, if
    /// there is one that counts, and puts the new one into the buffer; it must
    /// not allocate or wait. `now` is the wall time in seconds.
    pub fn update<T>(
        &self,
        digest: &Hex,
        now: u64,
        scratch: &mut Scratch,
        decide: impl FnOnce(Option<&Checked<'_>>, &mut Fixed<'_>) -> Decide<T>,
    ) -> Result<T, WriteError> {
        let dir = &self.store.sessions;
        let _lock = Lock::take(self.store, File::RecordLock.name(digest).c(), &self.patience)?;
        let name = File::Record.name(digest);
        let Scratch { stored_scan, new_scan, records } = scratch;
        let mut target = Target::Regular;
        let loaded = read::load(self.store, name.c(), records);
        let (stored, rest) = records.split_at_mut(loaded.unwrap_or(0));
        let new = &mut rest[..MAX_BYTES];
        let found =
            loaded.and_then(|_| read::parse(name.c(), stored, stored_scan, self.store.known));
        let stored = match found {
            Ok(checked) if !checked.legacy => Some(checked),
            // What cannot be read counts as absent and is written over.
            Ok(_) | Err(Unreadable::Malformed(_)) => None,
            Err(Unreadable::Absent) => {
                target = Target::Absent;
                None
            }
            Err(Unreadable::Unsafe) => return Err(WriteError::Unsafe),
            Err(Unreadable::Newer) => return Err(WriteError::Newer),
            Err(Unreadable::Io(e)) => return Err(WriteError::Io(e)),
        };
        let mut out = Fixed::new(new);
        let (answer, before, ordered) = match decide(stored.as_ref(), &mut out) {
            Decide::Leave(answer) => return Ok(answer),
            Decide::Create(_) if target == Target::Regular => return Err(WriteError::Unsafe),
            Decide::Write(answer) | Decide::Create(answer) => (answer, stored.as_ref(), true),
            Decide::Amend(answer) => (answer, stored.as_ref(), false),
            Decide::Replace(answer) => (answer, None, true),
        };
        let bytes = out.bytes().ok_or(WriteError::Malformed(None))?;
        let malformed = |fault| WriteError::Malformed(Some(fault));
        new_scan.scan(bytes).map_err(malformed)?;
        let record = check::check(
            bytes,
            new_scan,
            Door::Write { now, made: Some(*digest) },
            self.store.known,
        )
        .map_err(malformed)?;
        if record.digest != *digest {
            return Err(WriteError::Malformed(None));
        }
        admit(before, &record, ordered)?;
        replace(dir, name.c(), target, bytes).map_err(WriteError::Io)?;
        Ok(answer)
    }

    /// Removes a record of this session under its lock, if it is there and is
    /// still `wanted` gone, which sees `None` for one that is not acceptable.
    /// Says whether it was removed.
    pub fn remove(
        &self,
        digest: &Hex,
        scratch: &mut Scratch,
        wanted: impl FnOnce(Option<&Checked<'_>>) -> bool,
    ) -> Result<bool, WriteError> {
        let dir = &self.store.sessions;
        let name = File::Record.name(digest);
        match dir.entry(name.c()) {
            Err(Errno::NOENT) => return Ok(false),
            Ok(meta) if self.store.owns(&meta) => {}
            Ok(_) => return Err(WriteError::Unsafe),
            Err(e) => return Err(WriteError::Io(e)),
        }
        let lock = File::RecordLock.name(digest);
        let _lock = Lock::take(self.store, lock.c(), &self.patience)?;
        let Scratch { stored_scan, records, .. } = scratch;
        let found = match read::load(self.store, name.c(), records) {
            Ok(len) => read::parse(name.c(), &records[..len], stored_scan, self.store.known),
            Err(e) => Err(e),
        };
        let gone = match found {
            Ok(record) => wanted(Some(&record)),
            Err(Unreadable::Malformed(_)) => wanted(None),
            Err(Unreadable::Absent) => false,
            Err(Unreadable::Newer) => return Err(WriteError::Newer),
            Err(Unreadable::Unsafe) => return Err(WriteError::Unsafe),
            Err(Unreadable::Io(e)) => return Err(WriteError::Io(e)),
        };
        if !gone {
            return Ok(false);
        }
        match dir.unlink(name.c()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(e) => return Err(WriteError::Io(e)),
        }
        // The lock file is kept for a day from now.
        let _ = dir.touch(lock.c());
        Ok(true)
    }
}

/// Whether a record may follow the stored one: it is of the same process, and,
/// where order matters, a sequence grows once there is one.
fn admit(stored: Option<&Checked<'_>>, new: &Checked<'_>, ordered: bool) -> Result<(), WriteError> {
    let Some(stored) = stored else { return Ok(()) };
    let same = |key| stored.text(key).same(new.text(key));
    if stored.pid != new.pid || !same(Key::ProcessStart) {
        return Err(WriteError::OtherProcess);
    }
    match (stored.int(Key::Sequence), new.int(Key::Sequence)) {
        (None, _) => Ok(()),
        (Some(then), now) if !ordered && now == Some(then) => Ok(()),
        (Some(then), Some(now)) if now > then => Ok(()),
        _ => Err(WriteError::Sequence),
    }
}
