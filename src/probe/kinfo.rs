//! What macOS and FreeBSD tell of processes, as their kernels lay it out: pure.
//!
//! Offsets are those of 64-bit systems; `tests/layouts.rs` compares them with the
//! declarations of the `libc` crate where it is compiled for these systems.

use super::Process;

/// Status of a process of which only the entry is left, `SZOMB`.
pub const ZOMBIE: u32 = 5;

/// `struct proc_bsdinfo` of macOS.
pub mod bsdinfo {
    /// Bytes of it.
    pub const SIZE: usize = 136;
    /// `pbi_status`, u32
    pub const STATUS: usize = 4;
    /// `pbi_pid`, u32
    pub const PID: usize = 12;
    /// `pbi_ppid`, u32
    pub const PPID: usize = 16;
    /// `pbi_uid`, u32: the effective one
    pub const UID: usize = 20;
    /// `pbi_comm`, 16 bytes
    pub const COMM: usize = 48;
    /// `e_tdev`, u32
    pub const TTY: usize = 108;
    /// `pbi_start_tvsec` and `pbi_start_tvusec`, u64 each
    pub const START: usize = 120;
}

/// `struct proc_bsdshortinfo` of macOS.
pub mod bsdshortinfo {
    /// Bytes of it.
    pub const SIZE: usize = 64;
    /// `pbsi_pid`, u32
    pub const PID: usize = 0;
    /// `pbsi_ppid`, u32
    pub const PPID: usize = 4;
    /// `pbsi_status`, u32
    pub const STATUS: usize = 12;
    /// `pbsi_comm`, 16 bytes
    pub const COMM: usize = 16;
    /// `pbsi_uid`, u32
    pub const UID: usize = 36;
}

/// `struct kinfo_proc` of FreeBSD.
pub mod kinfo_proc {
    /// Bytes of it.
    pub const SIZE: usize = 1088;
    /// `ki_structsize`, i32: the kernel's own idea of the size
    pub const STRUCTSIZE: usize = 0;
    /// `ki_pid`, i32
    pub const PID: usize = 72;
    /// `ki_ppid`, i32
    pub const PPID: usize = 76;
    /// `ki_uid`, u32: the effective one
    pub const UID: usize = 168;
    /// `ki_start`: i64 seconds and i64 microseconds
    pub const START: usize = 336;
    /// `ki_stat`, i8
    pub const STATUS: usize = 388;
    /// `ki_comm`, 20 bytes
    pub const COMM: usize = 447;
    /// `ki_tdev`, u64
    pub const TTY: usize = 560;
    /// `ki_numthreads`, i32
    pub const THREADS: usize = 596;
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Microseconds of two numbers, seconds and microseconds.
fn micros_at(bytes: &[u8], at: usize) -> Option<u64> {
    u64_at(bytes, at)?.checked_mul(1_000_000)?.checked_add(u64_at(bytes, at + 8)?)
}

/// A name of at most so many bytes.
fn name_at(bytes: &[u8], at: usize, room: usize) -> Option<&[u8]> {
    bytes.get(at..at + room)?.split(|byte| *byte == 0).next()
}

/// Reads a `proc_bsdinfo`. The start is in microseconds since the epoch, as the
/// clock was then: the kernel keeps it as it is.
pub fn of_bsdinfo(bytes: &[u8]) -> Option<Process> {
    use bsdinfo as at;
    let process = Process {
        pid: u32_at(bytes, at::PID)?,
        ppid: u32_at(bytes, at::PPID)?,
        start: micros_at(bytes, at::START)?,
        dead: u32_at(bytes, at::STATUS)? == ZOMBIE,
        ..Process::NOBODY
    };
    Some(process.called(name_at(bytes, at::COMM, 16)?))
}

/// Reads a `proc_bsdshortinfo`, which is all that is shown of another user's
/// process: its start is not.
pub fn of_bsdshortinfo(bytes: &[u8]) -> Option<Process> {
    use bsdshortinfo as at;
    let process = Process {
        pid: u32_at(bytes, at::PID)?,
        ppid: u32_at(bytes, at::PPID)?,
        dead: u32_at(bytes, at::STATUS)? == ZOMBIE,
        ..Process::NOBODY
    };
    Some(process.called(name_at(bytes, at::COMM, 16)?))
}

/// Reads a `kinfo_proc`. The kernel keeps the start since boot and adds the time of
/// the boot, which moves when the clock is set; it is taken off again here.
/// `boot_us` is that time, read at the same moment. One of a kernel that lays it
/// out in another way is refused.
pub fn of_kinfo_proc(bytes: &[u8], boot_us: u64) -> Option<Process> {
    use kinfo_proc as at;
    if u32_at(bytes, at::STRUCTSIZE)? as usize != at::SIZE {
        return None;
    }
    let process = Process {
        pid: u32_at(bytes, at::PID)?,
        ppid: u32_at(bytes, at::PPID)?,
        start: micros_at(bytes, at::START)?.saturating_sub(boot_us),
        dead: u32::from(*bytes.get(at::STATUS)?) == ZOMBIE,
        threaded: u32_at(bytes, at::THREADS)? > 1,
        ..Process::NOBODY
    };
    Some(process.called(name_at(bytes, at::COMM, 20)?))
}

/// The microseconds of a `struct timeval`.
pub fn of_timeval(bytes: &[u8]) -> Option<u64> {
    micros_at(bytes, 0)
}

/// The owner in a structure of one of the kinds above.
pub fn uid_at(bytes: &[u8], at: usize) -> Option<u32> {
    u32_at(bytes, at)
}

/// The terminal in a `kinfo_proc`, a device number.
pub fn tty_of_kinfo_proc(bytes: &[u8]) -> Option<u64> {
    u64_at(bytes, kinfo_proc::TTY).filter(|device| *device != u64::MAX)
}

/// The terminal in a `proc_bsdinfo`, a device number.
pub fn tty_of_bsdinfo(bytes: &[u8]) -> Option<i32> {
    u32_at(bytes, bsdinfo::TTY).filter(|device| *device != u32::MAX).map(|n| n as i32)
}

/// Finds the arguments, ended by NULs, in what KERN_PROCARGS2 of macOS gives: their
/// number, the program's path, NULs up to a boundary, the arguments, and then the
/// environment, which is not touched.
pub fn of_procargs(bytes: &[u8]) -> Option<&[u8]> {
    let count = u32_at(bytes, 0)?;
    let rest = bytes.get(4..)?;
    let path = rest.iter().position(|byte| *byte == 0)?;
    let rest = rest.get(path..)?;
    let rest = &rest[rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len())..];
    let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at + 1);
    let last = usize::try_from(count).ok()?.checked_sub(1)?;
    // A command line that is longer than the buffer was cut.
    Some(&rest[..ends.nth(last).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    #[test]
    fn a_process_of_macos() {
        let mut bytes = [0xee; bsdinfo::SIZE];
        put(&mut bytes, bsdinfo::STATUS, &2_u32.to_ne_bytes());
        put(&mut bytes, bsdinfo::PID, &501_u32.to_ne_bytes());
        put(&mut bytes, bsdinfo::PPID, &1_u32.to_ne_bytes());
        put(&mut bytes, bsdinfo::UID, &502_u32.to_ne_bytes());
        put(&mut bytes, bsdinfo::COMM, b"claude\0");
        put(&mut bytes, bsdinfo::TTY, &0x1000_0003_u32.to_ne_bytes());
        put(&mut bytes, bsdinfo::START, &1_790_000_000_u64.to_ne_bytes());
        put(&mut bytes, bsdinfo::START + 8, &999_999_u64.to_ne_bytes());
        let process = of_bsdinfo(&bytes).unwrap();
        assert_eq!((process.pid, process.ppid, process.dead), (501, 1, false));
        assert_eq!(process.start, 1_790_000_000_999_999);
        assert_eq!(process.comm(), b"claude");
        assert_eq!(uid_at(&bytes, bsdinfo::UID), Some(502));
        assert_eq!(tty_of_bsdinfo(&bytes), Some(0x1000_0003));
        put(&mut bytes, bsdinfo::STATUS, &ZOMBIE.to_ne_bytes());
        put(&mut bytes, bsdinfo::COMM, b"sixteen-letters-");
        put(&mut bytes, bsdinfo::TTY, &u32::MAX.to_ne_bytes());
        let process = of_bsdinfo(&bytes).unwrap();
        assert_eq!((process.dead, process.comm()), (true, &b"sixteen-letters-"[..]));
        assert_eq!(tty_of_bsdinfo(&bytes), None);
        for len in 0..bsdinfo::SIZE {
            assert!(of_bsdinfo(&bytes[..len]).is_none(), "{len}");
        }
        put(&mut bytes, bsdinfo::START, &u64::MAX.to_ne_bytes());
        assert!(of_bsdinfo(&bytes).is_none());
    }

    #[test]
    fn another_users_process_of_macos() {
        let mut bytes = [0xee; bsdshortinfo::SIZE];
        put(&mut bytes, bsdshortinfo::PID, &99_u32.to_ne_bytes());
        put(&mut bytes, bsdshortinfo::PPID, &98_u32.to_ne_bytes());
        put(&mut bytes, bsdshortinfo::STATUS, &1_u32.to_ne_bytes());
        put(&mut bytes, bsdshortinfo::COMM, b"login\0");
        let process = of_bsdshortinfo(&bytes).unwrap();
        assert_eq!((process.pid, process.ppid, process.start), (99, 98, 0));
        assert_eq!(process.comm(), b"login");
        assert!(of_bsdshortinfo(&bytes[..31]).is_none());
    }

    #[test]
    fn a_process_of_freebsd() {
        let mut bytes = [0xee; kinfo_proc::SIZE];
        put(&mut bytes, kinfo_proc::STRUCTSIZE, &1088_u32.to_ne_bytes());
        put(&mut bytes, kinfo_proc::PID, &7_u32.to_ne_bytes());
        put(&mut bytes, kinfo_proc::PPID, &6_u32.to_ne_bytes());
        put(&mut bytes, kinfo_proc::START, &1_790_000_100_u64.to_ne_bytes());
        put(&mut bytes, kinfo_proc::START + 8, &5_u64.to_ne_bytes());
        put(&mut bytes, kinfo_proc::STATUS, &[3]);
        put(&mut bytes, kinfo_proc::COMM, b"node\0");
        put(&mut bytes, kinfo_proc::THREADS, &11_u32.to_ne_bytes());
        let boot = [1_790_000_000_u64.to_ne_bytes(), 7_u64.to_ne_bytes()].concat();
        let boot_us = of_timeval(&boot).unwrap();
        let process = of_kinfo_proc(&bytes, boot_us).unwrap();
        assert_eq!((process.pid, process.ppid, process.start), (7, 6, 99_999_998));
        assert_eq!((process.dead, process.threaded, process.comm()), (false, true, &b"node"[..]));
        // Both times move by the same when the clock is set.
        put(&mut bytes, kinfo_proc::START, &1_790_003_700_u64.to_ne_bytes());
        assert_eq!(of_kinfo_proc(&bytes, boot_us + 3_600_000_000).unwrap().start, 99_999_998);
        put(&mut bytes, kinfo_proc::STATUS, &[5]);
        assert!(of_kinfo_proc(&bytes, boot_us).unwrap().dead);
        put(&mut bytes, kinfo_proc::STRUCTSIZE, &1096_u32.to_ne_bytes());
        assert!(of_kinfo_proc(&bytes, boot_us).is_none());
        assert!(of_kinfo_proc(&bytes[..400], boot_us).is_none());
    }

    #[test]
    fn arguments_end_where_the_environment_begins() {
        let mut bytes = 2_u32.to_ne_bytes().to_vec();
        bytes.extend(b"/opt/bin/node\0\0\0\0node\0/opt/cli.js\0SECRET=1\0");
        assert_eq!(of_procargs(&bytes), Some(&b"node\0/opt/cli.js\0"[..]));
        assert_eq!(of_procargs(&bytes[..26]), Some(&b"node\0"[..]));
        assert_eq!(of_procargs(&bytes[..30]), Some(&b"node\0/opt"[..]));
        assert_eq!(of_procargs(&bytes[..18]), Some(&b""[..]));
        assert_eq!(of_procargs(&0_u32.to_ne_bytes()), None);
        let none = [&0_u32.to_ne_bytes()[..], b"/bin/x\0\0SECRET=1\0"].concat();
        assert_eq!(of_procargs(&none), None);
    }
}
