//! The last session of a process, in a small file of its own.
//!
//! `.tongs-proc-v1-PID` holds three lines: the process's start, its boot, and
//! the canonical id of the session that it reported last. A new session of the
//! same process reads it to end the older one without a scan of the store.

use super::place::Store;
use super::replace::{Target, replace};
use crate::record::id::{Name, digest_of};
use crate::record::out::{Fixed, Sink, int};
use crate::record::sha256::Hex;
use crate::sys::fs::{Errno, Open};

/// Start of the file's name; the pid follows.
pub const START: &str = ".tongs-proc-v1-";

/// A process, as the file names it.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// The pid.
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub start: u64,
    /// The boot id; may be empty.
    pub boot: &'a str,
}

/// Longest contents: three short lines.
const MAX: usize = 256;

fn name(pid: u32) -> Name {
    let mut digits = [0; 10];
    let mut out = Fixed::new(&mut digits);
    int(&mut out, pid.into());
    Name::of(&[START.as_bytes(), out.bytes().unwrap_or(b"")])
}

/// The pid in a file's name, where it is such a file.
pub fn pid_of(name: &[u8]) -> Option<u32> {
    core::str::from_utf8(name.strip_prefix(START.as_bytes())?).ok()?.parse().ok()
}

/// What the file has to say for a process whose session this is.
pub struct Last {
    name: Name,
    target: Target,
    new: [u8; MAX],
    len: usize,
    /// The digest of the session that the process reported before, if that was
    /// another one.
    pub before: Option<Hex>,
    noted: bool,
}

impl Last {
    /// Reads what `process` reported before the session with this canonical id.
    pub fn read(store: &Store, process: &Process<'_>, canonical: &str) -> Result<Last, Errno> {
        let name = name(process.pid);
        let mut new = [0; MAX];
        let mut out = Fixed::new(&mut new);
        int(&mut out, process.start);
        out.put(b"\n");
        out.put(process.boot.as_bytes());
        out.put(b"\n");
        let head = out.bytes().map_or(0, <[u8]>::len);
        out.put(canonical.as_bytes());
        out.put(b"\n");
        let len = out.bytes().ok_or(Errno::NAMETOOLONG)?.len();

        let mut old = [0; MAX];
        let (target, old) = match store.sessions.open(name.c(), Open::Read) {
            Ok(file) => {
                let len = file.read(&mut old)?;
                (Target::Regular, &old[..len])
            }
            Err(Errno::NOENT) => (Target::Absent, &old[..0]),
            Err(e) => return Err(e),
        };
        let noted = old == &new[..len];
        // Only the same process can have reported a session before.
        let before = old.strip_prefix(&new[..head]).and_then(|line| line.strip_suffix(b"\n"));
        let before = before.and_then(|id| core::str::from_utf8(id).ok()).and_then(digest_of);
        Ok(Last { name, target, new, len, before: before.filter(|_| !noted), noted })
    }

    /// Notes the new session, once the older one is ended: whoever comes
    /// between still finds that one.
    pub fn note(&self, store: &Store) -> Result<(), Errno> {
        if self.noted {
            return Ok(());
        }
        replace(&store.sessions, self.name.c(), self.target, &self.new[..self.len])
    }
}
