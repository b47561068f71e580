//! The fault log of the hook: what went wrong, in codes and lengths.
//!
//! `hook-faults.log` in the state root: one line a fault, `TIME CODE HARNESS
//! EVENT NUMBER`. No text of a payload, no path and no id gets in. At most
//! 64 KiB; when it is full the file starts again.

use crate::record::out::{Fixed, Sink, int};
use crate::sys::fs::{Dir, Errno, Open, euid};

/// The log's name in the state root.
pub const LOG: &str = "hook-faults.log";
/// Most bytes of the log.
pub const MAX_LOG: u64 = 64 * 1024;

/// One fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// Wall time, epoch seconds.
    pub now: u64,
    /// A code of this program.
    pub code: &'a str,
    /// A registered harness, or `-`.
    pub harness: &'a str,
    /// An event of that harness, or `-`.
    pub event: &'a str,
    /// An error number or a length, whatever the code is about.
    pub number: u64,
}

/// Adds a line to the log. A log that cannot be written is let be.
pub fn log(root: &Dir, fault: &Fault<'_>) -> Result<(), Errno> {
    let mut line = [0; 256];
    let mut out = Fixed::new(&mut line);
    int(&mut out, fault.now);
    for word in [fault.code, fault.harness, fault.event] {
        out.put(b" ");
        out.put(word.as_bytes());
    }
    out.put(b" ");
    int(&mut out, fault.number);
    out.put(b"\n");
    let line = out.bytes().ok_or(Errno::NAMETOOLONG)?;
    let file = root.open(c"hook-faults.log", Open::Append)?;
    let meta = file.status()?;
    if !meta.is_file() || meta.uid != euid() || meta.links > 1 {
        return Err(Errno::PERM);
    }
    if meta.size + line.len() as u64 > MAX_LOG {
        file.empty()?;
    }
    // One write with O_APPEND: lines of two hooks do not mix.
    file.write_all(line)
}
