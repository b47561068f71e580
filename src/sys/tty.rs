//! The terminal as a screen: keys as they are pressed, the other screen, and
//! everything as it was before at every end.
//!
//! Signals from the keyboard stay on, so that a key and a `kill` are one way: a
//! signal is noted, wakes the sleeper, and is obeyed between two of his steps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

use super::fs::Errno;
use super::guard::{Signals, Standard, abi, mourn, obey, standard};
use super::stdio::write_out;
use super::watch::{Alarm, Bell};

/// The other screen, no cursor, no wrap at the margin, pastes in brackets.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h";
/// The opposite. Where there is no other screen, the last line is left empty for
/// whoever comes next.
const LEAVE: &[u8] = b"\x1b[0m\x1b[9999;1H\x1b[2K\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Milliseconds that a terminal which takes nothing is waited for at the end.
const STUCK_MS: u64 = 200;

/// Columns and rows where the terminal does not say.
const SIZE: (usize, usize) = (80, 24);

/// The modes of the terminal when this program began.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Whether the terminal is changed.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Nothing.
    Nothing,
    /// To draw everything anew: another size, or back after a stop.
    Redraw,
    /// To end, as on a key.
    Quit,
    /// To end by this signal.
    End(i32),
}

/// The terminal of standard input and output as a screen; as it was before when
/// dropped.
#[derive(Debug)]
pub struct Tty {
    bell: Bell,
}

impl Tty {
    /// Makes a screen of the terminal. Standard input and output must be one.
    pub fn enter() -> Result<Tty, Errno> {
        let modes = tcgetattr(standard(Standard::In))?;
        let _ = BEFORE.set(modes);
        let bell = Bell::note(&[
            abi::SIGHUP,
            abi::SIGINT,
            abi::SIGQUIT,
            abi::SIGTERM,
            abi::SIGTSTP,
            abi::SIGCONT,
            abi::SIGWINCH,
        ])?;
        mourn();
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            say(info);
        }));
        let tty = Tty { bell };
        change()?;
        Ok(tty)
    }

    /// What wakes a sleeper when a signal comes.
    pub fn alarm(&self) -> Alarm<'_> {
        self.bell.alarm()
    }

    /// What the signals that came ask for. One that stops the process has done
    /// so before this returns.
    pub fn call(&self) -> Result<Call, Errno> {
        self.bell.hush();
        let signals = Signals::take();
        if let Some(signal) =
            [abi::SIGTERM, abi::SIGHUP, abi::SIGQUIT].into_iter().find(|s| signals.has(*s))
        {
            return Ok(Call::End(signal));
        }
        if signals.has(abi::SIGINT) {
            return Ok(Call::Quit);
        }
        let stop = signals.has(abi::SIGTSTP);
        if stop {
            restore();
            obey(abi::SIGTSTP);
        }
        if stop || signals.has(abi::SIGCONT) {
            change()?;
            return Ok(Call::Redraw);
        }
        Ok(if signals.has(abi::SIGWINCH) { Call::Redraw } else { Call::Nothing })
    }

    /// Gives the terminal back and ends the process by a signal.
    pub fn end(self, signal: i32) {
        drop(self);
        obey(signal);
    }

    /// Columns and rows, at least 1 each.
    pub fn size(&self) -> (usize, usize) {
        let Ok(size) = tcgetwinsize(standard(Standard::Out)) else { return SIZE };
        let or = |told: u16, usual| if told == 0 { usual } else { usize::from(told) };
        (or(size.ws_col, SIZE.0), or(size.ws_row, SIZE.1))
    }

    /// Writes to the terminal. One that takes nothing holds up nobody who is to
    /// end: a signal that came meanwhile leaves the rest out. Says whether that was
    /// all.
    pub fn write(&self, mut rest: &[u8]) -> Result<bool, Errno> {
        while !rest.is_empty() && !Signals::have_come() {
            match rustix::io::write(standard(Standard::Out), rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or(b""),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(rest.is_empty())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

/// Keys come one by one and are not echoed.
fn change() -> Result<(), Errno> {
    let Some(mut modes) = BEFORE.get().cloned() else { return Err(Errno::NOTTY) };
    modes.input_modes &= !(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
    modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    set(&modes)?;
    CHANGED.store(true, Ordering::Relaxed);
    write(ENTER)
}

/// Sets the modes. In the background that stops the process until it is in front.
fn set(modes: &Termios) -> Result<(), Errno> {
    loop {
        match tcsetattr(standard(Standard::In), OptionalActions::Now, modes) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Gives the terminal back as it was, where it is changed. May be called by the
/// handler of a signal.
pub(super) fn restore() {
    if CHANGED.swap(false, Ordering::Relaxed) {
        if can_take(STUCK_MS) {
            let _ = write(LEAVE);
        }
        if let Some(modes) = BEFORE.get() {
            let _ = set(modes);
        }
    }
}

/// Whether the terminal takes bytes, at last after so many milliseconds. Memory is
/// not asked for, as the handler of a signal must not.
fn can_take(ms: u64) -> bool {
    let out = standard(Standard::Out);
    let mut fds = [PollFd::new(&out, PollFlags::OUT)];
    let wait = Timespec { tv_sec: 0, tv_nsec: ms as i64 * 1_000_000 };
    poll(&mut fds, Some(&wait)) != Ok(0)
}

fn write(mut rest: &[u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        let len = write_out(rest)?;
        rest = rest.get(len..).unwrap_or(b"");
    }
    Ok(())
}
