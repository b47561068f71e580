//! FreeBSD, 64 bits: signal.h, time.h and sys/time.h of its base system.

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
pub type Usec = i64;

/// `sigset_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sigset([u32; 4]);

impl Sigset {
    /// The set in which signal n is bit n - 1.
    pub const fn of(signals: u64) -> Sigset {
        Sigset([signals as u32, (signals >> 32) as u32, 0, 0])
    }

    /// Its first 64 signals, likewise.
    pub const fn low(&self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }
}

/// `struct sigaction`.
#[repr(C)]
pub struct Sigaction {
    /// The handler, or 0 for the default, or 1 to ignore.
    pub handler: usize,
    /// SA_* flags.
    pub flags: c_int,
    /// Signals blocked while the handler runs.
    pub mask: Sigset,
}

impl Sigaction {
    /// An action with a handler, and no signal blocked while it runs.
    pub const fn new(handler: usize, flags: c_int) -> Sigaction {
        Sigaction { handler, flags, mask: Sigset::of(0) }
    }
}

/// `CLOCK_MONOTONIC`
pub const CLOCK_MONOTONIC: c_int = 4;
/// `CLOCK_UPTIME`, since boot.
pub const CLOCK_BOOTTIME: c_int = 5;

/// The real-time signals.
pub const REAL_TIME: core::ops::RangeInclusive<c_int> = 65..=126;

/// The environment of this process: a null-terminated array.
pub fn own_environment() -> *const *const c_char {
    // SAFETY: the C library has set it before the process entry, and there is one
    // thread.
    unsafe { environ }
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
    // SAFETY: as the caller says; execvpe(3) is not in every release.
    unsafe {
        environ = environment;
        execvp(file, words);
    }
}

unsafe extern "C" {
    fn execvp(file: *const c_char, words: *const *const c_char) -> c_int;
    static mut environ: *const *const c_char;
}
