//! macOS, 64 bits: signal.h, time.h and sys/time.h of its SDK.

pub use super::bsd::*;
use super::{c_char, c_int};

/// `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timeval {
    /// Seconds.
    pub sec: i64,
    /// Microseconds.
    pub usec: Usec,
}

/// `suseconds_t`
pub type Usec = i32;

/// `sigset_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sigset(u32);

impl Sigset {
    /// The set in which signal n is bit n - 1; there are 31.
    pub const fn of(signals: u64) -> Sigset {
        Sigset(signals as u32)
    }

    /// Its signals, likewise.
    pub const fn low(&self) -> u64 {
        self.0 as u64
    }
}

/// `struct sigaction`.
#[repr(C)]
pub struct Sigaction {
    /// The handler, or 0 for the default, or 1 to ignore.
    pub handler: usize,
    /// Signals blocked while the handler runs.
    pub mask: Sigset,
    /// SA_* flags.
    pub flags: c_int,
}

impl Sigaction {
    /// An action with a handler, and no signal blocked while it runs.
    pub const fn new(handler: usize, flags: c_int) -> Sigaction {
        Sigaction { handler, mask: Sigset::of(0), flags }
    }
}

/// `CLOCK_UPTIME_RAW`, which stands still while the machine sleeps.
pub const CLOCK_MONOTONIC: c_int = 8;
/// `CLOCK_MONOTONIC_RAW`, which goes on then.
pub const CLOCK_BOOTTIME: c_int = 4;

/// There are no real-time signals.
pub const REAL_TIME: [c_int; 0] = [];

/// The environment of this process: a null-terminated array.
pub fn own_environment() -> *const *const c_char {
    // SAFETY: _NSGetEnviron(3) gives where the C library keeps it.
    unsafe { *_NSGetEnviron() }
}

/// Runs another program in this one's place, looked for as execvp(3) does. Comes
/// back only where that failed, and then the environment is the given one.
///
/// # Safety
/// `file` is a C string, both arrays are null-terminated arrays of those, and no
/// other thread looks at the environment.
pub unsafe fn execute(
    file: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
) {
    // SAFETY: as the caller says; there is no execvpe(3).
    unsafe {
        *_NSGetEnviron() = environment;
        execvp(file, words);
    }
}

unsafe extern "C" {
    fn execvp(file: *const c_char, words: *const *const c_char) -> c_int;
    fn _NSGetEnviron() -> *mut *const *const c_char;
}
