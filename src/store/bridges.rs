//! What is kept of bridges, besides the records that they bring: the list of them,
//! one file of the state root, and a lock for each that is held while it runs.
//!
//! The list names commands. Like a record it is read only where it is a regular
//! file of this user with one name, and it is replaced whole or not at all.

use core::ffi::CStr;

use super::lock::{Lock, LockError, Patience};
use super::place::Store;
use super::replace::{Target, replace};
use super::write::WriteError;
use crate::record::id::Name;
use crate::sys::fs::{Errno, Open};

/// The file's name.
pub const FILE: &CStr = c"bridges.json";
const LOCK_NAME: &CStr = c".tongs-bridges.lock";

/// Most bytes of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads the list; nothing where there is none.
pub fn load(store: &Store) -> Result<Vec<u8>, WriteError> {
    let file = match store.root.open(FILE, Open::Read) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(Errno::LOOP | Errno::NXIO) => return Err(WriteError::Unsafe),
        Err(e) => return Err(WriteError::Io(e)),
    };
    let meta = file.status().map_err(WriteError::Io)?;
    if !store.owns(&meta) || meta.size > MAX_BYTES {
        return Err(WriteError::Unsafe);
    }
    let mut bytes = vec![0; usize::try_from(meta.size).unwrap_or(0)];
    let len = file.read_all(&mut bytes).map_err(WriteError::Io)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Replaces the list by what `change` makes of it, under its lock.
pub fn change<E: From<WriteError>>(
    store: &Store,
    patience: &Patience,
    change: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let _lock = Lock::take(store, LOCK_NAME, patience).map_err(WriteError::from)?;
    let before = load(store)?;
    let after = change(&before)?;
    if after.len() as u64 > MAX_BYTES {
        return Err(WriteError::Malformed(None).into());
    }
    let stands = store.root.entry(FILE).is_ok();
    let target = if stands { Target::Regular } else { Target::Absent };
    Ok(replace(&store.root, FILE, target, &after).map_err(WriteError::Io)?)
}

/// Takes the lock of a bridge of this name, which whoever runs it holds.
pub fn hold(store: &Store, bridge: &str) -> Result<Lock, LockError> {
    Lock::try_take(store, lock_name(bridge).c())
}

/// Whether somebody holds it.
pub fn is_held(store: &Store, bridge: &str) -> bool {
    let file = store.sessions.open(lock_name(bridge).c(), Open::Read);
    file.is_ok_and(|file| file.try_lock_shared() == Err(Errno::WOULDBLOCK))
}

/// Removes that lock's file; the lock must be held.
pub fn let_go(store: &Store, bridge: &str, _held: &Lock) {
    let _ = store.sessions.unlink(lock_name(bridge).c());
}

fn lock_name(bridge: &str) -> Name {
    Name::of(&[b".tongs-bridge-", bridge.as_bytes(), b".lock"])
}
