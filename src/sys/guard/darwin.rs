//! macOS, 64 bits: signal.h, time.h and sys/time.h of its SDK.

use super::{c_char, c_int, c_long, c_void};

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timespec {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: c_long,
}

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

/// `struct itimerval`.
#[repr(C)]
pub struct Itimerval {
    /// The period.
    pub interval: Timeval,
    /// Time to the next expiry.
    pub value: Timeval,
}

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

/// `stack_t`.
#[repr(C)]
pub struct Stack {
    /// Lowest address.
    pub sp: *mut c_void,
    /// Bytes.
    pub size: usize,
    /// SS_* flags.
    pub flags: c_int,
}

/// `SA_ONSTACK`
pub const SA_ONSTACK: c_int = 1;
/// `SA_RESETHAND`
pub const SA_RESETHAND: c_int = 4;
/// `SIG_BLOCK`
pub const SIG_BLOCK: c_int = 1;
/// `SIG_UNBLOCK`
pub const SIG_UNBLOCK: c_int = 2;
/// `ITIMER_REAL`
pub const ITIMER_REAL: c_int = 0;
/// `CLOCK_REALTIME`
pub const CLOCK_REALTIME: c_int = 0;
/// `CLOCK_UPTIME_RAW`, which stands still while the machine sleeps.
pub const CLOCK_MONOTONIC: c_int = 8;
/// `CLOCK_MONOTONIC_RAW`, which goes on then.
pub const CLOCK_BOOTTIME: c_int = 4;

/// `SIGALRM`
pub const SIGALRM: c_int = 14;
/// `SIGPIPE`
pub const SIGPIPE: c_int = 13;
/// `SIGXFSZ`
pub const SIGXFSZ: c_int = 25;
/// `SIGTTIN`
pub const SIGTTIN: c_int = 21;
/// `SIGTTOU`
pub const SIGTTOU: c_int = 22;
/// `SIGHUP`
pub const SIGHUP: c_int = 1;
/// `SIGINT`
pub const SIGINT: c_int = 2;
/// `SIGQUIT`
pub const SIGQUIT: c_int = 3;
/// `SIGTERM`
pub const SIGTERM: c_int = 15;
/// `SIGCONT`
pub const SIGCONT: c_int = 19;
/// `SIGTSTP`
pub const SIGTSTP: c_int = 18;
/// `SIGWINCH`
pub const SIGWINCH: c_int = 28;
/// The signals that end the hook: HUP INT QUIT ILL ABRT EMT FPE BUS SEGV SYS TERM
/// XCPU USR1 USR2.
pub const FATAL: [c_int; 14] = [1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 15, 24, 30, 31];
/// The other signals that end a process and that a program with a terminal has no
/// use for: ILL TRAP ABRT EMT FPE BUS SEGV SYS XCPU VTALRM PROF USR1 USR2.
pub const DEADLY: [c_int; 13] = [4, 5, 6, 7, 8, 10, 11, 12, 24, 26, 27, 30, 31];
/// There are no real-time signals.
pub const REAL_TIME: [c_int; 0] = [];

/// Reads a clock.
///
/// # Safety
/// `time` can be written to.
pub unsafe fn read_clock(clock: c_int, time: *mut Timespec) {
    // SAFETY: as the caller says.
    unsafe { clock_gettime(clock, time) };
}

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
    /// sigaction(2)
    pub fn sigaction(signal: c_int, new: *const Sigaction, old: *mut Sigaction) -> c_int;
    /// sigprocmask(2)
    pub fn sigprocmask(how: c_int, set: *const Sigset, old: *mut Sigset) -> c_int;
    /// sigaltstack(2)
    pub fn sigaltstack(new: *const Stack, old: *mut Stack) -> c_int;
    /// setitimer(2)
    pub fn setitimer(which: c_int, new: *const Itimerval, old: *mut Itimerval) -> c_int;
    /// raise(3)
    pub fn raise(signal: c_int) -> c_int;
    /// _exit(2)
    pub fn _exit(status: c_int) -> !;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn execvp(file: *const c_char, words: *const *const c_char) -> c_int;
    fn _NSGetEnviron() -> *mut *const *const c_char;
}
