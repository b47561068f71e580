//! Asking libproc of macOS: thin, one call a fact. Type-checked and never run.

pub use super::bsd::*;
use super::kinfo::{self, bsdinfo, bsdshortinfo};
use super::{CMDLINE, EXE, Process, Unread};
use crate::sys::fs::Errno;
use crate::sys::sysctl::{self, all_pids, process_info, program_path};

/// `PROC_PIDTBSDINFO`
pub const BSDINFO: i32 = 3;
/// `PROC_PIDT_SHORTBSDINFO`, which is told of other users' processes as well.
pub const BSDSHORTINFO: i32 = 13;
/// `PROC_PIDVNODEPATHINFO`
pub const VNODEPATHINFO: i32 = 9;
/// Asks for a process of which only the entry is left, too.
pub const ZOMBIES_TOO: u64 = 1;
/// Bytes of `struct proc_vnodepathinfo`.
pub const VNODEPATHINFO_SIZE: usize = 2352;
/// Where the path of the current directory stands in it, of 1024 bytes.
pub const CWD_PATH: usize = 152;
/// `CTL_KERN`, `KERN_PROCARGS2`
pub const PROCARGS2: [i32; 2] = [1, 49];
/// Bytes of a command line with its environment, `ARG_MAX`. The kernel fills only
/// what it needs of it.
pub const PROCARGS2_SIZE: usize = 1024 * 1024;

fn number(pid: u32) -> Result<i32, Unread> {
    i32::try_from(pid).map_err(|_| Unread::Gone)
}

fn info(pid: u32) -> Result<[u8; bsdinfo::SIZE], Errno> {
    let mut bytes = [0; bsdinfo::SIZE];
    let pid = i32::try_from(pid).map_err(|_| Errno::SRCH)?;
    process_info(pid, BSDINFO, ZOMBIES_TOO, &mut bytes)?;
    Ok(bytes)
}

fn short_info(pid: u32) -> Result<[u8; bsdshortinfo::SIZE], Errno> {
    let mut bytes = [0; bsdshortinfo::SIZE];
    let pid = i32::try_from(pid).map_err(|_| Errno::SRCH)?;
    process_info(pid, BSDSHORTINFO, ZOMBIES_TOO, &mut bytes)?;
    Ok(bytes)
}

impl Process {
    /// Asks for a process.
    pub fn read(pid: u32) -> Result<Process, Unread> {
        let process = match info(pid) {
            Ok(bytes) => kinfo::of_bsdinfo(&bytes),
            Err(Errno::PERM | Errno::ACCESS) => kinfo::of_bsdshortinfo(&short_info(pid)?),
            Err(e) => return Err(e.into()),
        };
        process.filter(|process| process.pid == pid).ok_or(Unread::Hidden)
    }

    /// The path of the program's file.
    pub fn exe<'b>(&self, buffer: &'b mut [u8; EXE]) -> Option<&'b [u8]> {
        program_path(number(self.pid).ok()?, buffer).ok()
    }

    /// The start of the command line, arguments ended by NULs.
    pub fn cmdline<'b>(&self, buffer: &'b mut [u8; CMDLINE]) -> Option<&'b [u8]> {
        let mut bytes = vec![0; PROCARGS2_SIZE];
        let [kern, procargs] = PROCARGS2;
        let name = [kern, procargs, number(self.pid).ok()?];
        let len = sysctl::numbered(&name, &mut bytes).ok()?;
        let line = kinfo::of_procargs(bytes.get(..len)?)?;
        let len = line.len().min(CMDLINE);
        buffer[..len].copy_from_slice(&line[..len]);
        Some(&buffer[..len])
    }

    /// The current directory.
    pub fn cwd<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let bytes = &mut buffer[..VNODEPATHINFO_SIZE];
        process_info(number(self.pid).ok()?, VNODEPATHINFO, 0, bytes).ok()?;
        let path = bytes[CWD_PATH..].split(|byte| *byte == 0).next()?;
        Some(path).filter(|path| !path.is_empty())
    }

    /// The terminal that controls it, such as `ttys003`.
    pub fn tty<'b>(&self, buffer: &'b mut [u8; 4096]) -> Option<&'b [u8]> {
        let device = kinfo::tty_of_bsdinfo(&info(self.pid).ok()?)?;
        sysctl::terminal_name(device, buffer)
    }
}

/// The owner of a process.
pub fn uid(pid: u32) -> Option<u32> {
    kinfo::uid_at(&short_info(pid).ok()?, bsdshortinfo::UID)
}

/// Calls `each` with every pid.
pub fn pids(mut each: impl FnMut(u32)) -> Result<(), Errno> {
    all_pids()?.into_iter().filter_map(|pid| u32::try_from(pid).ok()).for_each(&mut each);
    Ok(())
}

/// Every process.
pub fn all() -> Vec<Process> {
    let mut all = Vec::new();
    let _ = pids(|pid| all.extend(Process::read(pid)));
    all
}
