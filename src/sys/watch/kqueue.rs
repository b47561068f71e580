//! macOS and FreeBSD: kqueue(2).
//!
//! It tells that something happened to a directory and not to which entry, so
//! every change is [`Happened::Lost`]: whoever waits looks at everything anew.
//! `unsafe` stands here because the queue is given descriptors by their numbers.

#![allow(unsafe_code)]

use core::cell::RefCell;
use core::ffi::CStr;
use core::ptr::null_mut;

use rustix::event::Timespec;
use rustix::event::kqueue::{
    Event, EventFilter, EventFlags, ProcessEvents, VnodeEvents, kevent_timespec, kqueue,
};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::super::fs::Errno;
use super::{Alarm, Happened, Scope, sleep};

/// Events that are taken at a time.
const EVENTS: usize = 32;

/// A queue, which is not passed on to other programs.
fn queue() -> Result<OwnedFd, Errno> {
    let queue = kqueue()?;
    rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
    Ok(queue)
}

/// Puts an event on a queue.
fn put(queue: &OwnedFd, filter: EventFilter, flags: EventFlags) -> Result<(), Errno> {
    let mut none: [Event; 0] = [];
    let event = Event::new(filter, EventFlags::ADD | flags, null_mut());
    // SAFETY: the caller keeps a descriptor in the filter open for as long as the
    // queue; closing it takes the event off.
    unsafe { kevent_timespec(queue, &[event], &mut none[..], None)? };
    Ok(())
}

/// A directory that is watched: the same one for the same directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched(RawFd);

#[derive(Debug)]
struct Place {
    dir: OwnedFd,
    /// Device and inode.
    id: (u64, u64),
}

/// Watches directories. Each takes a descriptor.
#[derive(Debug)]
pub struct Watch {
    queue: OwnedFd,
    places: RefCell<Vec<Place>>,
}

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Result<Watch, Errno> {
        Ok(Watch { queue: queue()?, places: RefCell::default() })
    }

    /// Watches the directory that a path leads to. One that is watched already
    /// is watched in this way from now on.
    pub fn add(&self, dir: &CStr, scope: Scope) -> Result<Watched, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&dir)?;
        #[allow(clippy::unnecessary_cast)] // its type differs between systems
        let id = (stat.st_dev as u64, stat.st_ino as u64);
        let mut places = self.places.borrow_mut();
        let at = places.iter().position(|place| place.id == id).unwrap_or_else(|| {
            places.push(Place { dir, id });
            places.len() - 1
        });
        let dir = places[at].dir.as_raw_fd();
        let itself = VnodeEvents::DELETE | VnodeEvents::RENAME | VnodeEvents::REVOKE;
        let entries = VnodeEvents::WRITE | VnodeEvents::LINK | VnodeEvents::ATTRIBUTES;
        let what = if scope == Scope::Entries { itself | entries } else { itself };
        let filter = EventFilter::Vnode { vnode: dir, flags: what };
        put(&self.queue, filter, EventFlags::CLEAR).map(|()| Watched(dir))
    }

    /// Passes on what has happened, without waiting.
    pub fn take(&self, mut each: impl FnMut(Happened<'_>)) -> Result<(), Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            let mut events = Vec::with_capacity(EVENTS);
            let room = rustix::buffer::spare_capacity(&mut events);
            // SAFETY: nothing is put on the queue, and the descriptors of what is on
            // it are those of `places`.
            match unsafe { kevent_timespec(&self.queue, &[], room, Some(&now)) } {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e),
            }
            for event in &events {
                let EventFilter::Vnode { vnode, flags } = event.filter() else { continue };
                if flags.intersects(VnodeEvents::DELETE | VnodeEvents::REVOKE) {
                    self.places.borrow_mut().retain(|place| place.dir.as_raw_fd() != vnode);
                }
                let moved = VnodeEvents::DELETE | VnodeEvents::REVOKE | VnodeEvents::RENAME;
                each(if flags.intersects(moved) { Happened::Directory } else { Happened::Lost });
            }
            if events.len() < EVENTS {
                return Ok(());
            }
        }
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm::of(self.queue.as_fd())
    }
}

/// The end of one process: a pid that is used again is not taken for it.
#[derive(Debug)]
pub struct End(OwnedFd);

impl End {
    /// Holds on to the process that has this pid now; `None` where there is none.
    pub fn of(pid: u32) -> Option<End> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let queue = queue().ok()?;
        let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
        put(&queue, filter, EventFlags::empty()).ok().map(|()| End(queue))
    }

    /// Whether it has come. A zombie has ended.
    pub fn has_come(&self) -> bool {
        sleep(&[self.alarm()], 0)
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm::of(self.0.as_fd())
    }
}

/// Jumps of the wall clock, which kqueue(2) does not tell of: a sleep ends by
/// its own time.
#[derive(Debug)]
pub struct Jumps(core::convert::Infallible);

impl Jumps {
    /// There is none.
    pub fn watch() -> Option<Jumps> {
        None
    }

    /// Whether there was one since the last call.
    pub fn has_come(&self) -> bool {
        match self.0 {}
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        match self.0 {}
    }
}
