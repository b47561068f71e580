//! Which process is it, and is it still there.
//!
//! A process is known by three raw values: its pid, its start in clock ticks
//! and the boot that both belong to. They are compared as they were read and
//! never turned into wall time, so a step of the clock changes nothing. There
//! are three answers ([`Verdict`]): not being able to see is not proof of
//! death.
//!
//! Linux reads `/proc` ([`system`] is `linux.rs`), macOS asks libproc
//! (`darwin.rs`) and FreeBSD sysctl(3) (`freebsd.rs`). The parsers are apart
//! ([`stat`], [`kinfo`]) and work on bytes anywhere. Only Linux has pid namespaces.

#[cfg(not(target_os = "linux"))]
mod bsd;
pub mod kinfo;
pub mod stat;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "darwin.rs")]
#[cfg_attr(target_os = "freebsd", path = "freebsd.rs")]
pub mod system;
pub mod tree;

pub use system::{own_pid_ns, pid_ns, pids, uid};

use crate::sys::clock::{BootId, boot_id};
use crate::sys::fs::Errno;
use crate::sys::process::{self, Existence, Verdict, exists};
use crate::sys::watch::{Alarm, End};

/// Most ancestors that are looked at.
pub const MAX_ANCESTORS: usize = 64;

/// Bytes of a program's command name; kernel threads may have longer ones.
const COMM: usize = 16;
/// Bytes that a program file's path may have to be looked at.
pub const EXE: usize = 1024;
/// Bytes of a command line that are read: its first words.
pub const CMDLINE: usize = 2048;

/// Why a process could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// There is no such process, as far as this process may see.
    Gone,
    /// The system refuses to show it, or the text was not understood.
    Hidden,
    /// The system had no means to show it just now.
    Failed,
}

impl From<Errno> for Unread {
    fn from(e: Errno) -> Unread {
        match e {
            Errno::NOENT | Errno::SRCH | Errno::NOTDIR => Unread::Gone,
            Errno::ACCESS | Errno::PERM => Unread::Hidden,
            _ => Unread::Failed,
        }
    }
}

/// One process at the moment of reading. Name and start come from one read, so
/// they belong together; the rest is asked for when needed.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// The pid.
    pub pid: u32,
    /// The parent; 0 for none.
    pub ppid: u32,
    /// Start, in what the system counts in: clock ticks since boot on Linux,
    /// microseconds since the epoch on macOS and since boot on FreeBSD. 0 where the
    /// system does not show it.
    pub start: u64,
    /// Whether only the entry is left.
    pub dead: bool,
    /// Whether it has more than one thread.
    pub threaded: bool,
    comm: [u8; COMM],
    comm_len: u8,
}

impl Process {
    const NOBODY: Process = Process {
        pid: 0,
        ppid: 0,
        start: 0,
        dead: false,
        threaded: false,
        comm: [0; COMM],
        comm_len: 0,
    };

    /// The same with a command name, as much of it as there is room for.
    fn called(mut self, comm: &[u8]) -> Process {
        self.comm_len = 0;
        for (to, from) in self.comm.iter_mut().zip(comm) {
            *to = *from;
            self.comm_len += 1;
        }
        self
    }

    /// The command name.
    pub fn comm(&self) -> &[u8] {
        self.comm.get(..usize::from(self.comm_len)).unwrap_or(b"")
    }
}

impl AsRef<[u8]> for Process {
    fn as_ref(&self) -> &[u8] {
        self.comm()
    }
}

/// Where this process lives: its boot, its pid namespace, its parent.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// The boot, where it can be read.
    pub boot: Option<BootId>,
    /// Inode number of the pid namespace, where it can be read.
    pub pid_ns: Option<u64>,
    /// The parent's pid; 0 when it has none here.
    pub parent: u32,
}

impl Here {
    /// Reads them.
    pub fn read() -> Here {
        let parent = process::parent();
        Here { boot: boot_id(), pid_ns: system::pid_ns_of_parent(parent), parent }
    }

    /// Reads them without a look at another process, and so not the parent.
    pub fn of_reader() -> Here {
        Here { boot: boot_id(), pid_ns: own_pid_ns(), parent: 0 }
    }
}

/// A process as a record names it. Empty and `None` are "not recorded".
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The pid; `u64::MAX` is a number that no process can have.
    pub pid: u64,
    /// Its start, decimal: [`Process::start`].
    pub start: &'a str,
    /// The boot.
    pub boot: &'a str,
    /// Inode number of the pid namespace.
    pub pid_ns: Option<u64>,
}

impl Recorded<'_> {
    /// Whether the pid is a number of another pid namespace.
    pub fn is_foreign(&self, here: &Here) -> bool {
        matches!((self.pid_ns, here.pid_ns), (Some(theirs), Some(ours)) if theirs != ours)
    }

    /// Whether the record was written before this boot.
    pub fn is_of_another_boot(&self, here: &Here) -> bool {
        let boot = here.boot.as_ref().map_or(&b""[..], |id| id);
        !self.boot.is_empty() && !boot.is_empty() && self.boot.as_bytes() != boot
    }
}

/// Says whether the recorded process is still there. `belongs` looks at the
/// process that has the pid now and says whether it can be the recorded one:
/// `None` when it could not see enough.
///
/// A process of another pid namespace is unknown here; see [`Outside`].
pub fn judge(
    recorded: &Recorded<'_>,
    here: &Here,
    belongs: impl FnOnce(&Process) -> Option<bool>,
) -> Verdict {
    if recorded.is_of_another_boot(here) {
        return Verdict::Dead;
    }
    if recorded.is_foreign(here) {
        return Verdict::Unknown;
    }
    let Ok(pid) = u32::try_from(recorded.pid) else { return Verdict::Dead };
    let process = match Process::read(pid) {
        Ok(process) => process,
        // hidepid hides entries of processes that kill(2) still knows.
        Err(_) => {
            return if exists(pid) == Existence::No { Verdict::Dead } else { Verdict::Unknown };
        }
    };
    if process.dead || !starts_equal(process.start, recorded.start) {
        return Verdict::Dead;
    }
    match belongs(&process) {
        Some(true) => Verdict::Alive,
        Some(false) => Verdict::Dead,
        None => Verdict::Unknown,
    }
}

/// One process, held on to until it ends.
pub struct Life {
    /// The pid.
    pub pid: u32,
    /// Its start, where it is known.
    pub start: Option<u64>,
    end: Option<End>,
}

impl Life {
    /// Holds on to the process with this pid and start.
    pub fn of(pid: u32, start: Option<u64>) -> Life {
        let held = Life { pid, start, end: End::of(pid) };
        // What the descriptor holds may be a later process of the pid.
        if held.is_another() { Life { end: None, ..held } } else { held }
    }

    fn is_another(&self) -> bool {
        let start = Process::read(self.pid).ok().map(|process| process.start);
        start.is_some() && self.start.is_some() && start != self.start
    }

    /// Whether it has ended, as far as can be seen.
    pub fn is_over(&self) -> bool {
        match &self.end {
            Some(end) => end.has_come(),
            None => match Process::read(self.pid) {
                Ok(process) => process.dead || self.start.is_some_and(|s| s != process.start),
                Err(_) => exists(self.pid) == Existence::No,
            },
        }
    }

    /// What wakes a sleeper when it ends; `None` where the system has no means.
    pub fn alarm(&self) -> Option<Alarm<'_>> {
        self.end.as_ref().map(End::alarm)
    }
}

/// Whether a recorded start is this one; an unrecorded one is not compared.
fn starts_equal(start: u64, recorded: &str) -> bool {
    recorded.is_empty() || stat::number(recorded.as_bytes()) == Some(start)
}

/// The processes of other pid namespaces that can be seen from here, so that
/// records of containers can be matched: namespace, pid in there, start.
#[derive(Default)]
pub struct Outside {
    seen: Vec<(u64, u32, u64, u32)>,
}

impl Outside {
    /// Takes one process of the pass over `/proc`, where it lives elsewhere.
    pub fn take(&mut self, process: &Process, here: &Here) {
        let Some(ns) = pid_ns(process.pid).filter(|ns| Some(*ns) != here.pid_ns) else { return };
        if let Some(inner) = system::innermost_pid(process.pid) {
            self.seen.push((ns, inner, process.start, process.pid));
        }
    }

    /// The pid that a process of elsewhere has in its own namespace.
    pub fn inner_pid(&self, pid: u32) -> Option<u32> {
        self.seen.iter().find(|(.., outer)| *outer == pid).map(|(_, inner, ..)| *inner)
    }

    /// Finds the pid that a recorded process has here.
    pub fn find(&self, recorded: &Recorded<'_>) -> Option<u32> {
        let start = stat::number(recorded.start.as_bytes())?;
        self.seen
            .iter()
            .find(|(ns, inner, ticks, _)| {
                Some(*ns) == recorded.pid_ns && u64::from(*inner) == recorded.pid && *ticks == start
            })
            .map(|(.., pid)| *pid)
    }
}

/// This process's ancestors, nearest first, read one by one as they are asked
/// for. The walk ends behind pid 1, which in a container may be the agent, at a
/// cycle, at a process that cannot be read and after [`MAX_ANCESTORS`].
#[repr(C)] // what is always used comes first, on few pages
pub struct Ancestry {
    len: usize,
    next: u32,
    broken: bool,
    seen: [Process; MAX_ANCESTORS],
}

impl Default for Ancestry {
    fn default() -> Self {
        Ancestry::new()
    }
}

impl Ancestry {
    /// Nobody yet: all zero bits.
    pub const fn new() -> Ancestry {
        Ancestry { len: 0, next: 0, broken: false, seen: [Process::NOBODY; MAX_ANCESTORS] }
    }

    /// Starts with the process `first`.
    pub fn from(first: u32) -> Ancestry {
        Ancestry { next: first, ..Ancestry::new() }
    }

    /// Starts with the process `first`, usually this process's parent.
    pub fn start(&mut self, first: u32) {
        (self.len, self.next, self.broken) = (0, first, false);
    }

    /// The ancestor at a distance, 0 being the nearest.
    pub fn get(&mut self, at: usize) -> Option<&Process> {
        while self.len <= at && self.len < MAX_ANCESTORS {
            if self.next == 0 || self.seen().any(|p| p.pid == self.next) {
                self.next = 0;
                return None;
            }
            match Process::read(self.next) {
                Ok(process) => {
                    self.next = process.ppid;
                    self.seen[self.len] = process;
                    self.len += 1;
                }
                Err(why) => {
                    self.next = 0;
                    self.broken = why == Unread::Failed;
                    return None;
                }
            }
        }
        self.seen[..self.len].get(at)
    }

    /// Whether the walk ended for want of something and not at its end.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The ancestors that were read so far.
    pub fn seen(&self) -> impl Iterator<Item = &Process> {
        self.seen[..self.len].iter()
    }
}
