//! Linux: inotify(7), pidfd_open(2), timerfd_create(2).

use core::ffi::CStr;
use core::mem::MaybeUninit;

use rustix::event::Timespec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::super::fs::Errno;
use super::{Alarm, Happened, Scope, sleep};

/// Bytes of the buffer for events: about a hundred of them.
const EVENTS: usize = 8 * 1024;

/// A directory that is watched: the same one for the same directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched(i32);

/// Watches directories, with inotify(7). Closing it takes the kernel ten
/// milliseconds and more, which the end of the process waits for.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Result<Watch, Errno> {
        inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map(Watch)
    }

    /// Watches the directory that a path leads to. One that is watched already
    /// is watched in this way from now on.
    pub fn add(&self, dir: &CStr, scope: Scope) -> Result<Watched, Errno> {
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        let entries =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ATTRIB;
        let flags = if scope == Scope::Entries { itself | entries } else { itself };
        inotify::add_watch(&self.0, dir, flags).map(Watched)
    }

    /// Passes on what has happened, without waiting.
    pub fn take(&self, mut each: impl FnMut(Happened<'_>)) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); EVENTS];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e),
            };
            each(match event.file_name() {
                _ if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => Happened::Lost,
                Some(name) => Happened::Entry(Watched(event.wd()), name),
                None => Happened::Directory,
            });
        }
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm::of(self.0.as_fd())
    }
}

/// The end of one process, with pidfd_open(2): a pid that is used again is not
/// taken for it.
#[derive(Debug)]
pub struct End(OwnedFd);

impl End {
    /// Holds on to the process that has this pid now; `None` where there is none
    /// or the system has no such call.
    pub fn of(pid: u32) -> Option<End> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(End)
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

/// Jumps of the wall clock, with timerfd_create(2): it was set, or the machine
/// slept.
#[derive(Debug)]
pub struct Jumps(OwnedFd);

impl Jumps {
    /// Begins to watch; `None` where the system has no such call.
    pub fn watch() -> Option<Jumps> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags).ok()?;
        let never = Timespec { tv_sec: NEVER, tv_nsec: 0 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: never };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&timer, flags, &once).ok()?;
        Some(Jumps(timer))
    }

    /// Whether there was one since the last call.
    pub fn has_come(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]) == Err(Errno::CANCELED)
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm::of(self.0.as_fd())
    }
}

/// The time that the timer for [`Jumps`] is set to, epoch seconds: in the year
/// 2242.
const NEVER: i64 = 1 << 33;
