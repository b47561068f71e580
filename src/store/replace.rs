//! Putting a new file in an old one's place, whole or not at all.
//!
//! Where the old file exists the two are swapped (`RENAME_EXCHANGE`) and the
//! old one is removed under its temporary name. Renaming over it would do the
//! same, but on ext4 that starts writing the data out inside the call, which
//! costs five times everything else. A crash between the two steps leaves the
//! old record as a temporary file, which the maintainer removes.

use core::ffi::CStr;

use crate::record::id::Name;
use crate::record::out::{Fixed, int};
use crate::sys::fs::{Dir, Errno, File, Open};
use crate::sys::process;

/// Start of a temporary file's name; the end is [`TEMP_END`].
pub const TEMP_START: &str = ".fleet-tmp-";
/// End of a temporary file's name.
pub const TEMP_END: &str = ".tmp";

/// How many temporary names are tried. One process uses one at a time, so a
/// second try means a file that a dead process of the same pid left behind.
const TRIES: u64 = 64;

/// What is known of the file to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// There is none.
    Absent,
    /// It is a regular file of ours.
    Regular,
}

/// Writes `bytes` to the file `name`, replacing what stood there.
pub fn replace(dir: &Dir, name: &CStr, target: Target, bytes: &[u8]) -> Result<(), Errno> {
    let (temp, file) = create(dir)?;
    let done = file.write_all(bytes).and_then(|()| swap(dir, temp.c(), name, target));
    if done.is_err() {
        let _ = dir.unlink(temp.c());
    }
    done
}

fn create(dir: &Dir) -> Result<(Name, File), Errno> {
    let mut tries = 0..TRIES;
    loop {
        let Some(number) = tries.next() else { return Err(Errno::EXIST) };
        let (mut pid, mut count) = ([0; 10], [0; 2]);
        let (mut p, mut c) = (Fixed::new(&mut pid), Fixed::new(&mut count));
        int(&mut p, process::own().into());
        int(&mut c, number);
        let name = Name::of(&[
            TEMP_START.as_bytes(),
            p.bytes().unwrap_or(b""),
            b"-",
            c.bytes().unwrap_or(b""),
            TEMP_END.as_bytes(),
        ]);
        match dir.open(name.c(), Open::New) {
            Ok(file) => return Ok((name, file)),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
    }
}

fn swap(dir: &Dir, temp: &CStr, name: &CStr, target: Target) -> Result<(), Errno> {
    if target == Target::Regular {
        match dir.exchange(temp, name) {
            // The new record stands. A leftover is the maintainer's to sweep.
            Ok(()) => return dir.unlink(temp).or(Ok(())),
            // Gone meanwhile, or a file system that cannot.
            Err(Errno::NOENT | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => {}
            Err(e) => return Err(e),
        }
    }
    dir.rename(temp, name)
}
