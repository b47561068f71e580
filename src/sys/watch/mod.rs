//! Sleeping until a directory changes, a process ends or the clock is set.
//!
//! Linux has a descriptor for each of these ([`linux`]), the others have kqueue(2)
//! for the first two and nothing for the clock.

#[cfg(not(target_os = "linux"))]
mod kqueue;
#[cfg(target_os = "linux")]
mod linux;

use core::ffi::CStr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

#[cfg(not(target_os = "linux"))]
pub use kqueue::{End, Jumps, Watch, Watched};
#[cfg(target_os = "linux")]
pub use linux::{End, Jumps, Watch, Watched};

use super::fs::Errno;
use super::guard::{self, Signals, abi};

/// What of a directory is watched, besides its removal and its move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: what happens in it wakes nobody.
    Itself,
    /// Entries that come, go or change their names, and changes of its mode.
    /// Writing into a file is none of it.
    Entries,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Happened<'e> {
    /// Something to the entry of this name in the directory.
    Entry(Watched, &'e CStr),
    /// The directory itself was moved, removed or changed its mode.
    Directory,
    /// Too much at once: any of these.
    Lost,
}

/// What a noted signal rings, so that a sleeper wakes.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// Notes these signals from here on.
    pub fn note(signals: &[i32]) -> Result<Bell, Errno> {
        let (rung, rope) = rustix::pipe::pipe()?;
        for end in [&rung, &rope] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(end, true)?;
        }
        guard::note(signals, rope.into_raw_fd());
        Ok(Bell(rung))
    }

    /// Silences it.
    pub fn hush(&self) {
        let mut rings = [0; 64];
        while rustix::io::read(&self.0, &mut rings) == Ok(rings.len()) {}
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm::of(self.0.as_fd())
    }
}

/// The signals by which a program that stays is asked to end, noted.
#[derive(Debug)]
pub struct Calls(Bell);

impl Calls {
    /// Notes them from here on: INT, TERM, HUP and QUIT.
    pub fn note() -> Result<Calls, Errno> {
        Bell::note(&[abi::SIGINT, abi::SIGTERM, abi::SIGHUP, abi::SIGQUIT]).map(Calls)
    }

    /// Whether one has come.
    pub fn have_come(&self) -> bool {
        Signals::have_come()
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        self.0.alarm()
    }
}

/// Something that ends a sleep.
#[derive(Clone, Copy, Debug)]
pub struct Alarm<'f>(BorrowedFd<'f>, PollFlags);

impl<'f> Alarm<'f> {
    /// The end of whoever reads what is written to a descriptor.
    pub(super) fn of_reader(fd: BorrowedFd<'f>) -> Alarm<'f> {
        // Errors and hang-ups are told unasked.
        Alarm(fd, PollFlags::empty())
    }

    /// Goes off when a descriptor can be written, or has no other end any more.
    pub(super) fn of_room(fd: BorrowedFd<'f>) -> Alarm<'f> {
        Alarm(fd, PollFlags::OUT)
    }

    /// Goes off when a descriptor can be read, or has no other end any more.
    pub(super) fn of(fd: BorrowedFd<'f>) -> Alarm<'f> {
        Alarm(fd, PollFlags::IN)
    }
}

/// Whether one of the alarms has gone off.
pub fn is_ringing(alarms: &[Alarm<'_>]) -> bool {
    !alarms.is_empty() && sleep(alarms, 0)
}

/// Sleeps until one of the alarms goes off or `ms` milliseconds are over; says
/// whether one did. A signal may end it early.
pub fn sleep(alarms: &[Alarm<'_>], ms: u64) -> bool {
    let mut fds: Vec<PollFd<'_>> =
        alarms.iter().map(|alarm| PollFd::from_borrowed_fd(alarm.0, alarm.1)).collect();
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let timeout = Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
    poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
