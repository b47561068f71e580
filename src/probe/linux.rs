//! Reading `/proc`: thin, one call a fact, nothing kept open.

use core::mem::MaybeUninit;

use super::stat::{self, Stat};
use super::{CMDLINE, EXE, Process, Unread};
use crate::record::id::Name;
use crate::record::out::{Fixed, int};
use crate::sys::fs::{Dir, Errno, Open};

/// Bytes of a stat line that are read: names are at most 64 bytes and 50
/// numbers at most 20 digits each, so none is longer.
const STAT_BYTES: usize = 1024;

fn path(pid: u32, file: &str) -> Name {
    let mut digits = [0; 10];
    let mut out = Fixed::new(&mut digits);
    int(&mut out, pid.into());
    Name::of(&[b"/proc/", out.bytes().unwrap_or(b"0"), file.as_bytes()])
}

impl Process {
    /// Reads `/proc/PID/stat`.
    pub fn read(pid: u32) -> Result<Process, Unread> {
        let mut line = [0; STAT_BYTES];
        let len = Dir::cwd().open(path(pid, "/stat").c(), Open::Read)?.read(&mut line)?;
        let stat = Stat::parse(&line[..len]).ok_or(Unread::Hidden)?;
        let (dead, threaded) = (stat.is_dead(), stat.threads > 1);
        let process =
            Process { pid, ppid: stat.ppid, start: stat.start, dead, threaded, ..Process::NOBODY };
        Ok(process.called(stat.comm))
    }

    /// The name of the program's file, without directories and without the
    /// mark of a file that was removed.
    pub fn exe<'b>(&self, buffer: &'b mut [u8; EXE]) -> Option<&'b [u8]> {
        let target = Dir::cwd().read_link(path(self.pid, "/exe").c(), buffer).ok()?;
        // A path that fills the buffer was cut, and its last component is none.
        if target.len() == EXE {
            return None;
        }
        Some(target.strip_suffix(b" (deleted)").unwrap_or(target))
    }

    /// The start of the command line, arguments ended by NULs.
    pub fn cmdline<'b>(&self, buffer: &'b mut [u8; CMDLINE]) -> Option<&'b [u8]> {
        let file = Dir::cwd().open(path(self.pid, "/cmdline").c(), Open::Read).ok()?;
        let len = file.read(buffer).ok()?;
        buffer.get(..len)
    }

    /// The current directory.
    pub fn cwd<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        Dir::cwd().read_link(path(self.pid, "/cwd").c(), buffer).ok()
    }

    /// The terminal behind standard input, such as `pts/3`.
    pub fn tty<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let target = Dir::cwd().read_link(path(self.pid, "/fd/0").c(), buffer).ok()?;
        target
            .strip_prefix(b"/dev/")
            .filter(|tty| tty.starts_with(b"pts/") || tty.starts_with(b"tty"))
    }
}

/// The owner of a process.
pub fn uid(pid: u32) -> Option<u32> {
    Dir::cwd().entry(path(pid, "").c()).ok().map(|meta| meta.uid)
}

/// The inode number of a process's pid namespace.
pub fn pid_ns(pid: u32) -> Option<u64> {
    Dir::cwd().follow(path(pid, "/ns/pid").c()).ok().map(|meta| meta.ino)
}

/// The inode number of this process's pid namespace.
pub fn own_pid_ns() -> Option<u64> {
    Dir::cwd().follow(c"/proc/self/ns/pid").ok().map(|meta| meta.ino)
}

/// The same by way of the parent, for writers, who look at it anyway: that is
/// measurably cheaper. A parent that has a number here lives in the same
/// namespace; it may be another user's, though, who does not show it.
pub fn pid_ns_of_parent(parent: u32) -> Option<u64> {
    let of_parent = Some(parent).filter(|pid| *pid != 0).and_then(pid_ns);
    of_parent.or_else(own_pid_ns)
}

/// The pid of a process in its own, innermost namespace.
pub fn innermost_pid(pid: u32) -> Option<u32> {
    let mut text = [0; 4096];
    let len =
        Dir::cwd().open(path(pid, "/status").c(), Open::Read).ok()?.read_all(&mut text).ok()?;
    stat::innermost_pid(text.get(..len)?)
}

/// Calls `each` with every pid that `/proc` lists.
pub fn pids(mut each: impl FnMut(u32)) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
    Dir::cwd().follow_dir(c"/proc")?.list(&mut buffer, |name| {
        number(name.to_bytes()).into_iter().for_each(&mut each);
        true
    })
}

/// Every process that `/proc` shows.
pub fn all() -> Vec<Process> {
    let mut all = Vec::new();
    let _ = pids(|pid| all.extend(Process::read(pid)));
    all
}

/// How often the children of a process are listed, at most.
const LISTINGS: usize = 4;

/// The children of a process; `None` where the kernel does not list them
/// (CONFIG_PROC_CHILDREN).
///
/// The kernel lists by position, so that it passes over a child when one that it
/// listed before goes away meanwhile. That one is missed here, and all are
/// listed again.
pub fn children(parent: &Process) -> Option<Vec<Process>> {
    let pid = parent.pid;
    let mut children = Vec::new();
    for _ in 0..LISTINGS {
        let mut whole = true;
        children.clear();
        // A child is listed with the thread that started it.
        for thread in if parent.threaded { threads(pid) } else { vec![pid] } {
            match listed_children(pid, thread) {
                Ok(pids) => {
                    for child in pids {
                        match Process::read(child) {
                            Ok(process) if process.ppid == pid => children.push(process),
                            _ => whole = false,
                        }
                    }
                }
                Err(Errno::NOENT) if thread == pid => return None,
                Err(_) => whole = false,
            }
        }
        if whole {
            break;
        }
    }
    Some(children)
}

fn threads(pid: u32) -> Vec<u32> {
    let mut buffer = [MaybeUninit::uninit(); 4 * 1024];
    let mut threads = Vec::new();
    if let Ok(dir) = Dir::cwd().follow_dir(path(pid, "/task").c()) {
        let _ = dir.list(&mut buffer, |name| {
            threads.extend(number(name.to_bytes()));
            true
        });
    }
    threads
}

fn listed_children(pid: u32, thread: u32) -> Result<Vec<u32>, Errno> {
    let (of_process, of_thread) = (path(pid, "/task/"), path(thread, "/children"));
    let of_thread = of_thread.text().strip_prefix("/proc/").unwrap_or("");
    let name = Name::of(&[of_process.text().as_bytes(), of_thread.as_bytes()]);
    let file = Dir::cwd().open(name.c(), Open::Read)?;
    let (mut page, mut text) = ([0; 4096], Vec::new());
    loop {
        match file.read(&mut page)? {
            0 => break,
            len => text.extend_from_slice(&page[..len]),
        }
    }
    Ok(text.split(|b| *b == b' ').filter_map(number).collect())
}

fn number(digits: &[u8]) -> Option<u32> {
    stat::number(digits).and_then(|n| u32::try_from(n).ok())
}
