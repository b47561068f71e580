//! Linux: what glibc and musl have in common.

use super::{c_char, c_int, c_long, c_void};

/// `struct timespec` with 64-bit time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timespec {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: c_long,
}

/// `struct timeval` with 64-bit time.
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

/// `struct itimerval`.
#[repr(C)]
pub struct Itimerval {
    /// The period.
    pub interval: Timeval,
    /// Time to the next expiry.
    pub value: Timeval,
}

/// `sigset_t` of the C library: 128 bytes in glibc and musl.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sigset([u64; 16]);

impl Sigset {
    /// The set in which signal n is bit n - 1.
    pub const fn of(signals: u64) -> Sigset {
        let mut set = [0; 16];
        set[0] = signals;
        Sigset(set)
    }

    /// Its first 64 signals, likewise.
    pub const fn low(&self) -> u64 {
        self.0[0]
    }
}

/// `struct sigaction` of the C library, glibc and musl alike.
#[repr(C)]
pub struct Sigaction {
    /// The handler, or 0 for the default, or 1 to ignore.
    pub handler: usize,
    /// Signals blocked while the handler runs.
    pub mask: Sigset,
    /// SA_* flags.
    pub flags: c_int,
    /// Set by the C library.
    pub restorer: usize,
}

impl Sigaction {
    /// An action with a handler, and no signal blocked while it runs.
    pub const fn new(handler: usize, flags: c_int) -> Sigaction {
        Sigaction { handler, mask: Sigset::of(0), flags, restorer: 0 }
    }
}

/// `stack_t`.
#[repr(C)]
pub struct Stack {
    /// Lowest address.
    pub sp: *mut c_void,
    /// SS_* flags.
    pub flags: c_int,
    /// Bytes.
    pub size: usize,
}

/// `SA_ONSTACK`
pub const SA_ONSTACK: c_int = 0x0800_0000;
/// `SA_RESETHAND`
pub const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;
/// `SIG_BLOCK`
pub const SIG_BLOCK: c_int = 0;
/// `SIG_UNBLOCK`
pub const SIG_UNBLOCK: c_int = 1;
/// `ITIMER_REAL`
pub const ITIMER_REAL: c_int = 0;
/// `CLOCK_REALTIME`
pub const CLOCK_REALTIME: c_int = 0;
/// `CLOCK_MONOTONIC`
pub const CLOCK_MONOTONIC: c_int = 1;
/// `CLOCK_BOOTTIME`
pub const CLOCK_BOOTTIME: c_int = 7;
/// `SYS_clock_gettime`, where its `struct timespec` is [`Timespec`].
pub const SYS_CLOCK_GETTIME: Option<c_long> = if cfg!(not(target_pointer_width = "64")) {
    None
} else if cfg!(target_arch = "x86_64") {
    Some(228)
} else if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) {
    Some(113)
} else {
    None
};

/// Reads a clock.
///
/// By the system call and not through the vDSO: that is two more pages to touch
/// and a table of symbols to search, many times the price of the four calls that
/// a hook makes. A reader of thousands of records looks at the clock once.
///
/// # Safety
/// `time` can be written to.
pub unsafe fn read_clock(clock: c_int, time: *mut Timespec) {
    // SAFETY: as the caller says; the number's own call takes this timespec.
    unsafe {
        match SYS_CLOCK_GETTIME {
            Some(number) => syscall(number, clock, time),
            None => clock_gettime(clock, time).into(),
        }
    };
}

/// The environment of this process: a null-terminated array.
pub fn own_environment() -> *const *const c_char {
    // SAFETY: the C library has set it before the process entry.
    unsafe { environ }
}

/// Runs another program in this one's place, as execvpe(3). Comes back only where
/// that failed.
///
/// # Safety
/// `file` is a C string and both arrays are null-terminated arrays of those.
pub unsafe fn execute(
    file: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
) {
    // SAFETY: as the caller says.
    unsafe { execvpe(file, words, environment) };
}

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
pub const SIGCONT: c_int = 18;
/// `SIGTSTP`
pub const SIGTSTP: c_int = 20;
/// `SIGWINCH`
pub const SIGWINCH: c_int = 28;
/// The signals that end the hook: HUP INT QUIT ILL ABRT BUS FPE USR1 SEGV
/// USR2 TERM XCPU SYS. Others whose default is to end a process are sent by
/// nobody who does not mean it: TRAP, VTALRM, PROF, POLL, PWR, STKFLT and
/// the real-time signals.
pub const FATAL: [c_int; 13] = [1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 15, 24, 31];
/// The other signals that end a process and that a program with a terminal has no
/// use for: ILL TRAP ABRT BUS FPE USR1 SEGV USR2 STKFLT XCPU VTALRM PROF IO PWR SYS.
pub const DEADLY: [c_int; 15] = [4, 5, 6, 7, 8, 10, 11, 12, 16, 24, 26, 27, 29, 30, 31];
/// The real-time signals; those before them are the C library's own.
pub const REAL_TIME: core::ops::RangeInclusive<c_int> = 35..=64;

unsafe extern "C" {
    /// sigaction(2)
    pub fn sigaction(signal: c_int, new: *const Sigaction, old: *mut Sigaction) -> c_int;
    /// sigprocmask(2)
    pub fn sigprocmask(how: c_int, set: *const Sigset, old: *mut Sigset) -> c_int;
    /// sigaltstack(2)
    pub fn sigaltstack(new: *const Stack, old: *mut Stack) -> c_int;
    /// setitimer(2)
    pub fn setitimer(which: c_int, new: *const Itimerval, old: *mut Itimerval) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    /// raise(3)
    pub fn raise(signal: c_int) -> c_int;
    /// _exit(2)
    pub fn _exit(status: c_int) -> !;
    fn execvpe(
        file: *const c_char,
        words: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    static environ: *const *const c_char;
}
