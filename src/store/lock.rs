//! Locks with a deadline.
//!
//! A lock waits in the kernel, which wakes waiters in turn; polling was
//! measured to lose dozens of 256 writers. The wait ends because a timer
//! interrupts it, which is why [`Patience`] can only be made while that timer
//! runs.

use core::ffi::CStr;

use super::place::Store;
use crate::sys::fs::{Errno, File, Open};
use crate::sys::guard::{Clock, Ticking, now_ms};

/// How long to wait for locks, for all locks of one write together.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    until_ms: u64,
}

impl Patience {
    /// Waits at most `ms` milliseconds from now. The timer must run.
    pub fn of(_ticking: Ticking, ms: u64) -> Patience {
        Patience { until_ms: now_ms(Clock::Monotonic) + ms }
    }

    fn is_over(&self) -> bool {
        now_ms(Clock::Monotonic) >= self.until_ms
    }
}

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code)] File);

/// Why a lock was not had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// Somebody held it for too long.
    Busy,
    /// What stands at its path is no lock file of ours.
    Unsafe,
    /// The system refused.
    Io(Errno),
}

impl Lock {
    /// Takes the lock file `name`, made where missing, and waits for it.
    pub fn take(store: &Store, name: &CStr, patience: &Patience) -> Result<Lock, LockError> {
        Self::take_by(store, name, |file| {
            loop {
                match file.lock() {
                    Err(Errno::INTR) if patience.is_over() => return Err(LockError::Busy),
                    Err(Errno::INTR) => {}
                    done => return done.map_err(LockError::Io),
                }
            }
        })
    }

    /// Takes the lock file `name` if nobody holds it.
    pub fn try_take(store: &Store, name: &CStr) -> Result<Lock, LockError> {
        Self::take_by(store, name, |file| match file.try_lock() {
            Err(Errno::WOULDBLOCK) => Err(LockError::Busy),
            done => done.map_err(LockError::Io),
        })
    }

    fn take_by(
        store: &Store,
        name: &CStr,
        lock: impl Fn(&File) -> Result<(), LockError>,
    ) -> Result<Lock, LockError> {
        loop {
            let file = store.sessions.open(name, Open::Lock).map_err(|e| match e {
                Errno::LOOP | Errno::ISDIR | Errno::NXIO => LockError::Unsafe,
                e => LockError::Io(e),
            })?;
            lock(&file)?;
            let held = file.status().map_err(LockError::Io)?;
            if !store.owns(&held) {
                return Err(LockError::Unsafe);
            }
            // The file may have been removed while this process waited.
            match store.sessions.entry(name) {
                Ok(entry) if entry.same(&held) => return Ok(Lock(file)),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(e) => return Err(LockError::Io(e)),
            }
        }
    }
}
