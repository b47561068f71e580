//! sysctl(3) of macOS and FreeBSD and libproc of macOS: what the kernel says of
//! processes and of itself, as bytes.
//!
//! `unsafe` stands here because rustix has none of these calls.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::{null, null_mut};

use super::fs::Errno;

unsafe extern "C" {
    fn sysctl(
        name: *const c_int,
        words: c_uint,
        old: *mut c_void,
        old_len: *mut usize,
        new: *const c_void,
        new_len: usize,
    ) -> c_int;
    fn sysctlbyname(
        name: *const c_char,
        old: *mut c_void,
        old_len: *mut usize,
        new: *const c_void,
        new_len: usize,
    ) -> c_int;
}

fn errno() -> Errno {
    let why = std::io::Error::last_os_error().raw_os_error();
    why.map_or(Errno::IO, Errno::from_raw_os_error)
}

/// What a call gave, which set `len`. Where there was more than the buffer takes,
/// that is its start.
fn outcome(code: c_int, len: usize, room: usize) -> Result<usize, Errno> {
    match code {
        0 => Ok(len.min(room)),
        _ => match errno() {
            Errno::NOMEM => Ok(room),
            e => Err(e),
        },
    }
}

/// Reads a value by its numbers; gives its bytes, at most as many as there is room
/// for.
pub fn numbered(name: &[c_int], buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut len = buffer.len();
    let words = c_uint::try_from(name.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `name` has `words` numbers and `buffer` room for `len` bytes; nothing
    // is set.
    let code = unsafe {
        let old = buffer.as_mut_ptr().cast();
        sysctl(name.as_ptr(), words, old, &mut len, null(), 0)
    };
    outcome(code, len, buffer.len())
}

/// The bytes that a value has by now; it may have more at the next moment.
pub fn size(name: &[c_int]) -> Result<usize, Errno> {
    let mut len = 0;
    let words = c_uint::try_from(name.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: as above; without a buffer only the length is given.
    let code = unsafe { sysctl(name.as_ptr(), words, null_mut(), &mut len, null(), 0) };
    if code == 0 { Ok(len) } else { Err(errno()) }
}

/// Reads a value by its name, likewise.
pub fn named(name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut len = buffer.len();
    // SAFETY: `name` is a C string and `buffer` has room for `len` bytes; nothing is
    // set.
    let code =
        unsafe { sysctlbyname(name.as_ptr(), buffer.as_mut_ptr().cast(), &mut len, null(), 0) };
    outcome(code, len, buffer.len())
}

/// Writes the name of a terminal's device, which is below `/dev`.
pub fn terminal_name(device: Device, buffer: &mut [u8]) -> Option<&[u8]> {
    let room = c_int::try_from(buffer.len()).ok()?;
    // SAFETY: `buffer` has room for `room` bytes.
    unsafe {
        if devname_r(device, CHARACTER, buffer.as_mut_ptr().cast(), room).is_null() {
            return None;
        }
    }
    // A device without a name is `#C:…`, or `??`.
    let name = buffer.split(|byte| *byte == 0).next()?;
    name.first().filter(|first| first.is_ascii_alphabetic()).map(|_| name)
}

/// `dev_t`
#[cfg(target_os = "macos")]
pub type Device = i32;
/// `dev_t`
#[cfg(target_os = "freebsd")]
pub type Device = u64;
/// `S_IFCHR`
pub const CHARACTER: Mode = 0o020_000;
/// `mode_t`
pub type Mode = u16;

unsafe extern "C" {
    fn devname_r(device: Device, kind: Mode, name: *mut c_char, room: c_int) -> *mut c_char;
}

#[cfg(target_os = "macos")]
unsafe extern "C" {
    fn proc_pidinfo(pid: c_int, what: c_int, arg: u64, buffer: *mut c_void, room: c_int) -> c_int;
    fn proc_pidpath(pid: c_int, buffer: *mut c_void, room: u32) -> c_int;
    fn proc_listallpids(buffer: *mut c_void, room: c_int) -> c_int;
}

/// Reads one kind of information about a process, which fills the buffer.
#[cfg(target_os = "macos")]
pub fn process_info(pid: c_int, what: c_int, arg: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let room = c_int::try_from(buffer.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `buffer` has room for `room` bytes.
    let len = unsafe { proc_pidinfo(pid, what, arg, buffer.as_mut_ptr().cast(), room) };
    match len {
        _ if len == room => Ok(()),
        ..=0 => Err(errno()),
        _ => Err(Errno::INVAL),
    }
}

/// Reads the path of the program that a process runs.
#[cfg(target_os = "macos")]
pub fn program_path(pid: c_int, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let room = u32::try_from(buffer.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `buffer` has room for `room` bytes.
    let len = unsafe { proc_pidpath(pid, buffer.as_mut_ptr().cast(), room) };
    match usize::try_from(len) {
        Ok(len) if len > 0 => buffer.get(..len).ok_or(Errno::NAMETOOLONG),
        _ => Err(errno()),
    }
}

/// The pids of all processes.
#[cfg(target_os = "macos")]
pub fn all_pids() -> Result<Vec<c_int>, Errno> {
    let mut pids: Vec<c_int> = Vec::new();
    loop {
        // SAFETY: without a buffer only the number is given.
        let count = unsafe { proc_listallpids(null_mut(), 0) };
        let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(errno)?;
        // Some room for those that come meanwhile.
        pids.resize(count + count / 4 + 16, 0);
        let room = c_int::try_from(size_of_val(&pids[..])).map_err(|_| Errno::INVAL)?;
        // SAFETY: `pids` has room for `room` bytes.
        let got = unsafe { proc_listallpids(pids.as_mut_ptr().cast(), room) };
        let got = usize::try_from(got).ok().filter(|got| *got > 0).ok_or_else(errno)?;
        if got < pids.len() {
            pids.truncate(got);
            return Ok(pids);
        }
    }
}
