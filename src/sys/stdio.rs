//! The three standard descriptors and the terminal behind them.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Mode, OFlags, RawMode};

use super::fs::Errno;
use super::guard::{Standard, standard};
use super::watch::{Alarm, sleep};

/// The standard descriptors that were closed when this program began, as a set:
/// descriptor n is bit n.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Opens `/dev/null` on each of the descriptors 0 to 2 that is closed, and,
/// when `silent`, on 1 and 2 whatever they are: nothing that this process
/// prints by mistake reaches its harness.
pub fn settle(silent: bool) {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    // open(2) gives the lowest free number, so the first that is above 2 says
    // that all three are open.
    let null = loop {
        match rustix::fs::open(c"/dev/null", flags, Mode::empty()) {
            Ok(fd) if fd.as_raw_fd() <= 2 => {
                let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty());
                CLOSED.fetch_or(1 << fd.as_raw_fd(), Ordering::Relaxed);
                core::mem::forget(fd);
            }
            Ok(fd) => break fd,
            Err(_) => return,
        }
    };
    if silent {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    // It closes by itself when the process ends or another one takes its place.
    core::mem::forget(null);
}

/// The umask before it was set to 077; what no umask can be while it was not.
static UMASK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Sets the umask to 077.
pub fn private_umask() {
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    #[allow(clippy::unnecessary_cast)] // its type differs between systems
    let before = before.as_raw_mode() as u32;
    let _ = UMASK.compare_exchange(u32::MAX, before, Ordering::Relaxed, Ordering::Relaxed);
}

/// Gives umask and descriptors back to the caller's settings, for a program that
/// takes this one's place: what [`settle`] opened closes as soon as it does.
pub fn hand_back() {
    let umask = UMASK.swap(u32::MAX, Ordering::Relaxed);
    if umask != u32::MAX {
        #[allow(clippy::unnecessary_cast)] // its type differs between systems
        rustix::process::umask(Mode::from_raw_mode(umask as RawMode));
    }
    let closed = CLOSED.swap(0, Ordering::Relaxed);
    for descriptor in [Standard::In, Standard::Out, Standard::Err] {
        if closed & 1 << descriptor as u8 != 0 {
            let _ = rustix::io::fcntl_setfd(standard(descriptor), rustix::io::FdFlags::CLOEXEC);
        }
    }
}

/// Reads from standard input once; 0 is the end.
pub fn read(buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(stdin(), &mut *buffer) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// What waiting for standard input gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Bytes, or the end, can be read without waiting.
    Yes,
    /// The other end is closed and nothing is left.
    Closed,
    /// Nothing came in time.
    No,
}

/// Waits at most `ms` milliseconds for standard input. An interruption ends the
/// wait.
pub fn wait(ms: i64) -> Ready {
    let input = stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let timeout = Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
    match poll(&mut fds, Some(&timeout)) {
        Ok(n) if n > 0 => {
            if fds[0].revents().contains(PollFlags::IN) {
                Ready::Yes
            } else {
                Ready::Closed
            }
        }
        _ => Ready::No,
    }
}

/// What wakes a sleeper when standard input has something, or its end.
pub fn in_alarm() -> Alarm<'static> {
    Alarm::of(stdin())
}

/// Writes to standard output once.
pub fn write_out(bytes: &[u8]) -> Result<usize, Errno> {
    write(standard(Standard::Out), bytes)
}

/// Writes to standard error once.
pub fn write_err(bytes: &[u8]) -> Result<usize, Errno> {
    write(standard(Standard::Err), bytes)
}

fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::write(fd, bytes) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

fn stdin() -> BorrowedFd<'static> {
    standard(Standard::In)
}

/// What wakes a sleeper when whoever reads standard output goes away.
pub fn out_alarm() -> Alarm<'static> {
    Alarm::of_reader(standard(Standard::Out))
}

/// Whether nobody reads standard output any more.
pub fn out_is_gone() -> bool {
    sleep(&[out_alarm()], 0)
}

/// Whether standard input and standard output are terminals.
pub fn is_interactive() -> bool {
    rustix::termios::isatty(standard(Standard::In)) && out_is_terminal()
}

/// Whether standard output is a terminal.
pub fn out_is_terminal() -> bool {
    rustix::termios::isatty(standard(Standard::Out))
}

/// The terminal's width in columns, where standard output is one.
pub fn out_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(standard(Standard::Out)).ok()?;
    Some(usize::from(size.ws_col)).filter(|w| *w > 0)
}
