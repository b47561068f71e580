//! What stands between the hook and its harness: signals, one timer, silence.
//!
//! The process entry has no Rust start-up, so everything that start-up would do
//! for us is here, written out. Under a harness every signal that would end the
//! process ends it with exit status 0 instead, on a stack of its own; panics
//! abort and so take the same way.
//!
//! One timer is both deadlines: it interrupts a blocking `flock(2)` (the handler
//! is installed without SA_RESTART), and past the hard limit its handler ends
//! the process. It first fires when the wait for locks may be over and then
//! every 10 ms. Not earlier: the kernel queues waiters in a chain, and each one
//! that is interrupted takes its place at the end again, a walk along the whole
//! chain; 256 waiters that do so every 10 ms leave no time for the work.
//!
//! `unsafe` stands here because rustix has none of these calls: they change the
//! whole process. The layouts of [`abi`] are checked against the C headers by a
//! test.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

/// The C types and functions that are used here, as Linux has them.
#[cfg(target_os = "linux")]
pub mod abi {
    use super::{c_int, c_long, c_void};

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
        pub usec: i64,
    }

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
    pub struct Sigset(pub [u64; 16]);

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

    /// `SIGALRM`
    pub const SIGALRM: c_int = 14;
    /// `SIGPIPE`
    pub const SIGPIPE: c_int = 13;
    /// `SIGXFSZ`
    pub const SIGXFSZ: c_int = 25;
    /// `SIGTTIN`
    pub const SIGTTIN: c_int = 21;
    /// The signals that end the hook: HUP INT QUIT ILL ABRT BUS FPE USR1 SEGV
    /// USR2 TERM XCPU SYS. Others whose default is to end a process are sent by
    /// nobody who does not mean it: TRAP, VTALRM, PROF, POLL, PWR, STKFLT and
    /// the real-time signals.
    pub const FATAL: [c_int; 13] = [1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 15, 24, 31];

    unsafe extern "C" {
        /// sigaction(2)
        pub fn sigaction(signal: c_int, new: *const Sigaction, old: *mut Sigaction) -> c_int;
        /// sigprocmask(2)
        pub fn sigprocmask(how: c_int, set: *const Sigset, old: *mut Sigset) -> c_int;
        /// sigaltstack(2)
        pub fn sigaltstack(new: *const Stack, old: *mut Stack) -> c_int;
        /// setitimer(2)
        pub fn setitimer(which: c_int, new: *const Itimerval, old: *mut Itimerval) -> c_int;
        /// clock_gettime(2)
        pub fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
        /// _exit(2)
        pub fn _exit(status: c_int) -> !;
    }
}

use abi::{Itimerval, Sigaction, Sigset, Stack, Timespec, Timeval};

/// Period of the timer, in milliseconds.
pub const TICK_MS: u64 = 10;

/// Bytes of the stack that handlers run on: a handler calls one system call,
/// and the kernel's own frame with AVX-512 state is under 4 KiB.
const STACK_BYTES: usize = 16 * 1024;

/// `SIG_IGN`
const IGNORE: usize = 1;

/// Monotonic milliseconds past which the timer ends the process; 0 is never.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// A clock of clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Wall time since the epoch.
    Wall,
    /// Time since boot without suspends.
    Monotonic,
    /// Time since boot with suspends.
    Boot,
}

/// Reads a clock, in milliseconds. Without a system call where the vDSO serves
/// it. A clock that cannot be read is 0.
pub fn now_ms(clock: Clock) -> u64 {
    let id = match clock {
        Clock::Wall => abi::CLOCK_REALTIME,
        Clock::Monotonic => abi::CLOCK_MONOTONIC,
        Clock::Boot => abi::CLOCK_BOOTTIME,
    };
    let mut time = Timespec { sec: 0, nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call.
    unsafe { abi::clock_gettime(id, &mut time) };
    let ms = (time.nsec / 1_000_000) as u64;
    u64::try_from(time.sec).unwrap_or(0).saturating_mul(1000).saturating_add(ms)
}

/// Ends the process at once with this status: no destructors, no buffers.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit(2) takes any status and does not return.
    unsafe { abi::_exit(status) }
}

extern "C" fn end(_signal: c_int) {
    exit_now(0)
}

extern "C" fn tick(_signal: c_int) {
    let limit = LIMIT.load(Ordering::Relaxed);
    if limit != 0 && now_ms(Clock::Monotonic) >= limit {
        exit_now(0)
    }
}

fn handle(signal: c_int, handler: usize, flags: c_int) -> bool {
    let action = Sigaction { handler, mask: Sigset([0; 16]), flags, restorer: 0 };
    // SAFETY: `action` is a complete sigaction; its handler is 0, 1 or one of
    // the two functions above, which call only async-signal-safe functions.
    unsafe { abi::sigaction(signal, &action, core::ptr::null_mut()) == 0 }
}

fn start_timer(first_ms: u64) -> bool {
    let time = |ms: u64| Timeval { sec: (ms / 1000) as i64, usec: (ms % 1000 * 1000) as i64 };
    let timer = Itimerval { interval: time(TICK_MS), value: time(first_ms) };
    // SAFETY: `timer` is a complete itimerval that outlives the call.
    unsafe { abi::setitimer(abi::ITIMER_REAL, &timer, core::ptr::null_mut()) == 0 }
}

/// Makes a write to a closed pipe and a file that grows past its limit into
/// errors of the call instead of signals. Every program of ours does this.
pub fn ignore_write_signals() {
    handle(abi::SIGPIPE, IGNORE, 0);
    handle(abi::SIGXFSZ, IGNORE, 0);
}

/// Proof that the timer runs, so that a wait for a lock ends.
#[derive(Clone, Copy, Debug)]
pub struct Ticking(());

/// Starts the timer for programs whose lock waits must end: a blocking call is
/// interrupted after `first_ms` and from then on every [`TICK_MS`]. `None` where
/// the system refuses.
pub fn tick_only(first_ms: u64) -> Option<Ticking> {
    let caught = handle(abi::SIGALRM, tick as *const () as usize, 0);
    unblock(&[abi::SIGALRM]);
    (caught && start_timer(first_ms)).then_some(Ticking(()))
}

fn unblock(signals: &[c_int]) {
    let mut set = Sigset([0; 16]);
    for signal in signals {
        // Signal n is bit n - 1 of the set.
        set.0[0] |= 1 << (signal - 1);
    }
    // SAFETY: `set` is a complete sigset_t that outlives the call.
    unsafe { abi::sigprocmask(abi::SIG_UNBLOCK, &set, core::ptr::null_mut()) };
}

/// Puts up the whole guard: from here on this process ends with status 0
/// whatever happens, and within `limit_ms` milliseconds. The timer is as in
/// [`tick_only`].
pub fn stand(limit_ms: u64, first_ms: u64) -> Ticking {
    static mut HANDLER_STACK: [u8; STACK_BYTES] = [0; STACK_BYTES];
    let stack = Stack { sp: &raw mut HANDLER_STACK as *mut c_void, flags: 0, size: STACK_BYTES };
    // SAFETY: the stack is static memory that nothing else touches.
    unsafe { abi::sigaltstack(&stack, core::ptr::null_mut()) };
    LIMIT.store(now_ms(Clock::Monotonic) + limit_ms, Ordering::Relaxed);
    ignore_write_signals();
    // Reading from the terminal as a background job is an error, and no stop.
    handle(abi::SIGTTIN, IGNORE, 0);
    for signal in abi::FATAL {
        handle(signal, end as *const () as usize, abi::SA_ONSTACK);
    }
    let caught = handle(abi::SIGALRM, tick as *const () as usize, abi::SA_ONSTACK);
    let mut all = [abi::SIGALRM; abi::FATAL.len() + 1];
    all[1..].copy_from_slice(&abi::FATAL);
    unblock(&all);
    // Without its timer the hook has no deadline, and without the handler the
    // timer would kill it: then this event is better lost.
    if !(caught && start_timer(first_ms)) {
        exit_now(0)
    }
    Ticking(())
}

/// A standard descriptor: 0, 1 or 2.
pub(super) fn standard(number: Standard) -> rustix::fd::BorrowedFd<'static> {
    // SAFETY: the descriptor is not -1; `stdio::settle` opened what was closed
    // when the process began and nothing of ours closes 0 to 2.
    unsafe { rustix::fd::BorrowedFd::borrow_raw(number as c_int) }
}

/// The three standard descriptors.
#[derive(Clone, Copy)]
pub(super) enum Standard {
    In = 0,
    Out = 1,
    Err = 2,
}
