//! Asking sysctl(3) of FreeBSD: thin, one call a fact. Type-checked and never run.

pub use super::bsd::*;
use super::kinfo::{self, kinfo_proc};
use super::{CMDLINE, EXE, Process, Unread};
use crate::sys::fs::Errno;
use crate::sys::sysctl;

/// `CTL_KERN`, `KERN_PROC`
pub const PROC: [i32; 2] = [1, 14];
/// `KERN_PROC_PID`
pub const BY_PID: i32 = 1;
/// `KERN_PROC_ARGS`
pub const ARGS: i32 = 7;
/// `KERN_PROC_PROC`
pub const ALL: i32 = 8;
/// `KERN_PROC_PATHNAME`
pub const PATHNAME: i32 = 12;
/// `KERN_PROC_CWD`
pub const CWD: i32 = 42;
/// Bytes of `struct kinfo_file`.
pub const KINFO_FILE_SIZE: usize = 1392;
/// Where the path stands in it, of 1024 bytes.
pub const KINFO_FILE_PATH: usize = 368;

fn ask<'b>(what: i32, pid: u32, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let pid = i32::try_from(pid).map_err(|_| Errno::SRCH)?;
    let len = sysctl::numbered(&[PROC[0], PROC[1], what, pid], buffer)?;
    buffer.get(..len).filter(|bytes| !bytes.is_empty()).ok_or(Errno::SRCH)
}

fn boot_us() -> Result<u64, Errno> {
    let mut bytes = [0; 16];
    let len = sysctl::named(c"kern.boottime", &mut bytes)?;
    bytes.get(..len).and_then(kinfo::of_timeval).ok_or(Errno::INVAL)
}

impl Process {
    /// Asks for a process.
    pub fn read(pid: u32) -> Result<Process, Unread> {
        let mut bytes = [0; kinfo_proc::SIZE];
        let bytes = ask(BY_PID, pid, &mut bytes)?;
        kinfo::of_kinfo_proc(bytes, boot_us()?)
            .filter(|process| process.pid == pid)
            .ok_or(Unread::Hidden)
    }

    /// The path of the program's file.
    pub fn exe<'b>(&self, buffer: &'b mut [u8; EXE]) -> Option<&'b [u8]> {
        ask(PATHNAME, self.pid, buffer).ok()?.split(|byte| *byte == 0).next()
    }

    /// The start of the command line, arguments ended by NULs.
    pub fn cmdline<'b>(&self, buffer: &'b mut [u8; CMDLINE]) -> Option<&'b [u8]> {
        ask(ARGS, self.pid, buffer).ok()
    }

    /// The current directory.
    pub fn cwd<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let file = ask(CWD, self.pid, &mut buffer[..KINFO_FILE_SIZE]).ok()?;
        let path = file.get(KINFO_FILE_PATH..)?.split(|byte| *byte == 0).next()?;
        Some(path).filter(|path| !path.is_empty())
    }

    /// The terminal that controls it, such as `pts/3`.
    pub fn tty<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let mut bytes = [0; kinfo_proc::SIZE];
        let bytes = ask(BY_PID, self.pid, &mut bytes).ok()?;
        sysctl::terminal_name(kinfo::tty_of_kinfo_proc(bytes)?, buffer)
    }
}

/// The owner of a process.
pub fn uid(pid: u32) -> Option<u32> {
    let mut bytes = [0; kinfo_proc::SIZE];
    kinfo::uid_at(ask(BY_PID, pid, &mut bytes).ok()?, kinfo_proc::UID)
}

/// Every process.
pub fn all() -> Vec<Process> {
    read_all().unwrap_or_default()
}

fn read_all() -> Result<Vec<Process>, Errno> {
    let name = [PROC[0], PROC[1], ALL];
    // Some room for those that come meanwhile.
    let mut bytes = vec![0; sysctl::size(&name)? + 32 * kinfo_proc::SIZE];
    let len = sysctl::numbered(&name, &mut bytes)?;
    bytes.truncate(len);
    let boot_us = boot_us()?;
    let one = |bytes: &[u8]| kinfo::of_kinfo_proc(bytes, boot_us);
    Ok(bytes.chunks_exact(kinfo_proc::SIZE).filter_map(one).collect())
}

/// Calls `each` with every pid.
pub fn pids(mut each: impl FnMut(u32)) -> Result<(), Errno> {
    read_all()?.iter().map(|process| process.pid).for_each(&mut each);
    Ok(())
}
