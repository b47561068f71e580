//! What macOS and FreeBSD have in common, 64 bits.

use super::abi::{Sigaction, Sigset, Timeval};
use super::{c_int, c_long, c_void};

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timespec {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: c_long,
}

/// `struct itimerval`.
#[repr(C)]
pub struct Itimerval {
    /// The period.
    pub interval: Timeval,
    /// Time to the next expiry.
    pub value: Timeval,
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
/// Reads a clock.
///
/// # Safety
/// `time` can be written to.
pub unsafe fn read_clock(clock: c_int, time: *mut Timespec) {
    // SAFETY: as the caller says.
    unsafe { clock_gettime(clock, time) };
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
}
