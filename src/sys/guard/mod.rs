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
//! A program that takes this one's place must find everything as the caller had
//! it: what is changed here is noted, and [`hand_back`] undoes it.
//!
//! A program that has changed its terminal has signals of its own: those that
//! someone may send wake its sleep ([`note`]), and those that end it at once give
//! the terminal back first ([`mourn`]).
//!
//! `unsafe` stands here because rustix has none of these calls: they change the
//! whole process. The layouts of [`abi`] are checked against the C headers by a
//! test.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use super::fs::Errno;

#[cfg(not(target_os = "linux"))]
mod bsd;

/// The C types and functions that are used here, as each system has them.
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "darwin.rs")]
#[cfg_attr(target_os = "freebsd", path = "freebsd.rs")]
pub mod abi;

use abi::{Itimerval, Sigaction, Sigset, Stack, Timespec, Timeval};

/// Period of the timer, in milliseconds.
pub const TICK_MS: u64 = 10;

/// Bytes of the stack that handlers run on: a handler calls one system call,
/// and the kernel's own frame with AVX-512 state is under 4 KiB.
const STACK_BYTES: usize = 16 * 1024;

/// `SIG_DFL`
const DEFAULT: usize = 0;
/// `SIG_IGN`
const IGNORE: usize = 1;

/// Monotonic milliseconds past which the timer ends the process; 0 is never.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// What the caller had set before this program changed it.
struct Caller {
    /// The signals whose action is another now, as a set: signal n is bit n - 1.
    changed: AtomicU64,
    /// Those of them that were ignored.
    ignored: AtomicU64,
    /// The signals that were blocked and are not any more, likewise.
    unblocked: AtomicU64,
    /// Whether the timer is ours.
    ticking: AtomicBool,
    /// Microseconds that the caller's timer had left; 0 where none ran.
    alarm_us: AtomicU64,
    /// Its period.
    period_us: AtomicU64,
    /// Monotonic milliseconds when ours took its place.
    since_ms: AtomicU64,
}

static CALLER: Caller = Caller {
    changed: AtomicU64::new(0),
    ignored: AtomicU64::new(0),
    unblocked: AtomicU64::new(0),
    ticking: AtomicBool::new(false),
    alarm_us: AtomicU64::new(0),
    period_us: AtomicU64::new(0),
    since_ms: AtomicU64::new(0),
};

/// A set of one signal.
const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

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

/// Reads a clock, in milliseconds. A clock that cannot be read is 0.
pub fn now_ms(clock: Clock) -> u64 {
    let id = match clock {
        Clock::Wall => abi::CLOCK_REALTIME,
        Clock::Monotonic => abi::CLOCK_MONOTONIC,
        Clock::Boot => abi::CLOCK_BOOTTIME,
    };
    let mut time = Timespec { sec: 0, nsec: 0 };
    // SAFETY: `time` is a timespec that outlives the call.
    unsafe { abi::read_clock(id, &raw mut time) };
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

#[inline(never)] // of its seventeen calls most would be unrolled
fn handle(signal: c_int, handler: usize, flags: c_int) -> bool {
    let action = Sigaction::new(handler, flags);
    // SAFETY: `action` is a complete sigaction; its handler is 0, 1 or one of
    // the two functions above, which call only async-signal-safe functions.
    unsafe { abi::sigaction(signal, &action, core::ptr::null_mut()) == 0 }
}

/// As [`handle`], noting whether the caller ignored the signal.
fn handle_noted(signal: c_int, handler: usize) -> bool {
    let action = Sigaction::new(handler, 0);
    let mut before = Sigaction::new(DEFAULT, 0);
    // SAFETY: as in `handle`; `before` is a complete sigaction as well.
    let done = unsafe { abi::sigaction(signal, &action, &mut before) == 0 };
    CALLER.changed.fetch_or(bit(signal), Ordering::Relaxed);
    if before.handler == IGNORE {
        CALLER.ignored.fetch_or(bit(signal), Ordering::Relaxed);
    }
    done
}

const NO_TIMER: Itimerval =
    Itimerval { interval: Timeval { sec: 0, usec: 0 }, value: Timeval { sec: 0, usec: 0 } };

/// Sets the timer, in microseconds; 0 is never. Gives the one before; `None`
/// where the system refuses.
fn set_timer(first_us: u64, period_us: u64) -> Option<Itimerval> {
    let time =
        |us: u64| Timeval { sec: (us / 1_000_000) as i64, usec: (us % 1_000_000) as abi::Usec };
    let timer = Itimerval { interval: time(period_us), value: time(first_us) };
    let mut before = NO_TIMER;
    // SAFETY: both are complete itimervals that outlive the call.
    let done = unsafe { abi::setitimer(abi::ITIMER_REAL, &timer, &mut before) == 0 };
    done.then_some(before)
}

fn start_timer(first_ms: u64) -> bool {
    let Some(before) = set_timer(first_ms * 1000, TICK_MS * 1000) else { return false };
    CALLER.ticking.store(true, Ordering::Relaxed);
    let us = |time: &Timeval| time.sec as u64 * 1_000_000 + time.usec as u64;
    if us(&before.value) != 0 {
        CALLER.alarm_us.store(us(&before.value), Ordering::Relaxed);
        CALLER.period_us.store(us(&before.interval), Ordering::Relaxed);
        CALLER.since_ms.store(now_ms(Clock::Monotonic), Ordering::Relaxed);
    }
    true
}

/// Makes a write to a closed pipe and a file that grows past its limit into
/// errors of the call instead of signals. Every program of ours does this.
pub fn ignore_write_signals() {
    handle_noted(abi::SIGPIPE, IGNORE);
    handle_noted(abi::SIGXFSZ, IGNORE);
}

/// Keeps programs that are started from here from being stopped by the terminal,
/// in whose background they are: what they would ask there fails at once.
pub fn ignore_terminal_stops() {
    handle_noted(abi::SIGTTIN, IGNORE);
    handle_noted(abi::SIGTTOU, IGNORE);
}

/// Proof that the timer runs, so that a wait for a lock ends.
#[derive(Clone, Copy, Debug)]
pub struct Ticking(());

/// Starts the timer for programs whose lock waits must end: a blocking call is
/// interrupted after `first_ms` and from then on every [`TICK_MS`]. `None` where
/// the system refuses.
pub fn tick_only(first_ms: u64) -> Option<Ticking> {
    let caught = handle_noted(abi::SIGALRM, tick as *const () as usize);
    unblock(bit(abi::SIGALRM));
    (caught && start_timer(first_ms)).then_some(Ticking(()))
}

/// Stops that timer, for a program that goes on and would be woken by it for
/// nothing. No wait for a lock may begin until it is started again.
pub fn tick_no_more() {
    set_timer(0, 0);
}

/// The signals that came and were not taken, as a set: signal n is bit n - 1.
static NOTED: AtomicU64 = AtomicU64::new(0);

/// The descriptor that a noted signal writes a byte to.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// Signals that were noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals(u64);

impl Signals {
    /// Takes those that came since the last call.
    pub fn take() -> Signals {
        Signals(NOTED.swap(0, Ordering::Relaxed))
    }

    /// Whether there is one that nobody took.
    pub fn have_come() -> bool {
        NOTED.load(Ordering::Relaxed) != 0
    }

    /// Whether this one is among them.
    pub fn has(self, signal: c_int) -> bool {
        self.0 & bit(signal) != 0
    }
}

extern "C" fn noted(signal: c_int) {
    NOTED.fetch_or(bit(signal), Ordering::Relaxed);
    let bell = BELL.load(Ordering::Relaxed);
    if bell >= 0 {
        // SAFETY: `note` was given a descriptor that stays open. The call is the
        // system call alone, without errno.
        let bell = unsafe { rustix::fd::BorrowedFd::borrow_raw(bell) };
        let _ = rustix::io::write(bell, &[1]);
    }
}

/// Notes these signals from here on, and writes to `bell`, a descriptor that does
/// not block and is never closed, whenever one comes. One that the caller ignored stays ignored.
pub fn note(signals: &[c_int], bell: c_int) {
    BELL.store(bell, Ordering::Relaxed);
    for &signal in signals {
        handle_noted(signal, noted as *const () as usize);
        if CALLER.ignored.load(Ordering::Relaxed) & bit(signal) != 0 {
            handle(signal, IGNORE, 0);
        }
    }
    unblock(signals.iter().fold(0, |set, signal| set | bit(*signal)));
}

/// What a signal does by default: the process ends or stops as its caller
/// expects, and where it goes on the signal is noted again.
pub fn obey(signal: c_int) {
    handle(signal, DEFAULT, 0);
    // SAFETY: raise(3) takes any signal.
    unsafe { abi::raise(signal) };
    handle(signal, noted as *const () as usize, 0);
}

extern "C" fn mourning(signal: c_int) {
    super::tty::restore();
    // The action is the default one again by SA_RESETHAND.
    // SAFETY: raise(3) takes any signal and may be called by a handler.
    unsafe { abi::raise(signal) };
}

/// Gives the terminal back before a signal ends the process that nobody waits
/// for.
pub fn mourn() {
    stand_on_own_stack();
    for signal in abi::DEADLY.into_iter().chain(abi::REAL_TIME) {
        handle(signal, mourning as *const () as usize, abi::SA_ONSTACK | abi::SA_RESETHAND);
    }
}

/// Unblocks a set of signals, noting which of them the caller had blocked.
fn unblock(signals: u64) {
    let set = Sigset::of(signals);
    let mut before = Sigset::of(0);
    // SAFETY: both are complete sigset_t that outlive the call.
    unsafe { abi::sigprocmask(abi::SIG_UNBLOCK, &set, &mut before) };
    CALLER.unblocked.fetch_or(before.low() & signals, Ordering::Relaxed);
}

/// Gives signals, their mask and the timer back to the caller's settings, for a
/// program that takes this one's place; the hook never does that. The caller's
/// own timer goes on from where it would be by now.
pub fn hand_back() {
    let ticking = CALLER.ticking.swap(false, Ordering::Relaxed);
    if ticking {
        set_timer(0, 0);
    }
    let changed = CALLER.changed.swap(0, Ordering::Relaxed);
    let ignored = CALLER.ignored.swap(0, Ordering::Relaxed);
    for signal in [abi::SIGPIPE, abi::SIGXFSZ, abi::SIGALRM] {
        if changed & bit(signal) != 0 {
            let was_ignored = ignored & bit(signal) != 0;
            handle(signal, if was_ignored { IGNORE } else { DEFAULT }, 0);
        }
    }
    let set = Sigset::of(CALLER.unblocked.swap(0, Ordering::Relaxed));
    // SAFETY: `set` is a complete sigset_t that outlives the call.
    unsafe { abi::sigprocmask(abi::SIG_BLOCK, &set, core::ptr::null_mut()) };
    let alarm_us = CALLER.alarm_us.swap(0, Ordering::Relaxed);
    if alarm_us != 0 {
        let since = CALLER.since_ms.load(Ordering::Relaxed);
        let passed = now_ms(Clock::Monotonic).saturating_sub(since) * 1000;
        set_timer(alarm_us.saturating_sub(passed).max(1), CALLER.period_us.load(Ordering::Relaxed));
    }
}

/// The whole environment, each entry as it stands.
pub fn environment() -> impl Iterator<Item = &'static CStr> {
    let mut at = abi::own_environment();
    core::iter::from_fn(move || {
        // SAFETY: environ(7) is a null-terminated array of C strings, nothing
        // of ours changes it, and `at` has not passed its end.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let entry = CStr::from_ptr(*at);
            at = at.add(1);
            Some(entry)
        }
    })
}

/// Runs another program in this one's place, looked for as execvp(3) does.
/// Comes back only where that failed, with the reason.
pub fn exec(words: &[&CStr], environment: &[&CStr]) -> Errno {
    let array = |strings: &[&CStr]| -> Vec<*const c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([core::ptr::null()]).collect()
    };
    let (words, environment) = (array(words), array(environment));
    if words.len() < 2 {
        return Errno::NOENT;
    }
    // SAFETY: both are null-terminated arrays of C strings that outlive the
    // call, and the first of `words` is one.
    unsafe { abi::execute(words[0], words.as_ptr(), environment.as_ptr()) };
    let why = std::io::Error::last_os_error().raw_os_error();
    why.map_or(Errno::NOENT, Errno::from_raw_os_error)
}

/// Puts up the whole guard: from here on this process ends with status 0
/// whatever happens, and not after `limit_ms` of the monotonic clock. The timer
/// is as in [`tick_only`].
pub fn stand(limit_ms: u64, first_ms: u64) -> Ticking {
    stand_on_own_stack();
    LIMIT.store(limit_ms, Ordering::Relaxed);
    ignore_write_signals();
    // Reading from the terminal as a background job is an error, and no stop.
    handle(abi::SIGTTIN, IGNORE, 0);
    for signal in abi::FATAL {
        handle(signal, end as *const () as usize, abi::SA_ONSTACK);
    }
    let caught = handle(abi::SIGALRM, tick as *const () as usize, abi::SA_ONSTACK);
    unblock(abi::FATAL.iter().fold(bit(abi::SIGALRM), |set, signal| set | bit(*signal)));
    // Without its timer the hook has no deadline, and without the handler the
    // timer would kill it: then this event is better lost.
    if !(caught && start_timer(first_ms)) {
        exit_now(0)
    }
    Ticking(())
}

/// Gives handlers a stack of their own, for a fault may be that there is none.
#[inline(always)] // a hook has it where it needs it
fn stand_on_own_stack() {
    static mut HANDLER_STACK: [u8; STACK_BYTES] = [0; STACK_BYTES];
    let stack = Stack { sp: &raw mut HANDLER_STACK as *mut c_void, flags: 0, size: STACK_BYTES };
    // SAFETY: the stack is static memory that nothing else touches.
    unsafe { abi::sigaltstack(&stack, core::ptr::null_mut()) };
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
