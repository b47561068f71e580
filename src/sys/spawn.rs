//! Running another program to its end.
//!
//! [`run`] is for answers, [`feed`] for telling, and a [`Source`] is read while it
//! runs.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, kill_process_group};

use super::clock::Now;
use super::fs::Errno;
use super::guard::{Standard, standard};
use super::watch::{Alarm, End, sleep};

/// What a program did.
pub struct Ran {
    /// Its exit status; `None` where a signal or the time limit ended it.
    pub code: Option<i32>,
    /// Its standard output; nothing where it was ended.
    pub out: Vec<u8>,
    /// Milliseconds from its start to its end.
    pub ms: u64,
}

/// Most bytes that are kept of standard output.
const KEPT: u64 = 64 * 1024;

/// Runs a program with these arguments, these variables and no others. Input and
/// output are at most what a pipe takes; a program that writes more, or takes
/// longer than `limit_ms` milliseconds, is killed. Standard error goes nowhere.
pub fn run(
    program: &str,
    args: &[&str],
    vars: &[(&str, &str)],
    stdin: &[u8],
    limit_ms: u64,
) -> Result<Ran, Errno> {
    let begin = Now::read().mono_ms;
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(vars.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(errno)?;
    if let Some(mut input) = child.stdin.take() {
        // A program that reads nothing is none the worse.
        let _ = input.write_all(stdin);
    }
    loop {
        let ms = Now::read().mono_ms.saturating_sub(begin);
        match child.try_wait() {
            Ok(Some(status)) => {
                let out = kept(&mut child);
                return Ok(Ran { code: status.code(), out, ms });
            }
            Ok(None) if ms < limit_ms => pause(1),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Ran { code: None, out: Vec::new(), ms });
            }
        }
    }
}

/// What a program left in its pipe when it ended.
fn kept(child: &mut Child) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        let _ = pipe.take(KEPT).read_to_end(&mut out);
    }
    out
}

fn errno(e: std::io::Error) -> Errno {
    e.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Milliseconds between two looks at a program whose end wakes nobody.
const TICK_MS: u64 = 10;

/// A program that was started and is fed.
pub struct Feeding<'i> {
    child: Child,
    end: Option<End>,
    pipe: Option<ChildStdin>,
    rest: &'i [u8],
    begin_ms: u64,
    limit_ms: u64,
}

impl<'i> Feeding<'i> {
    /// Starts a program, looked for as execvp(3) does, with this one's environment
    /// and `input` on its standard input. What it prints goes to standard error,
    /// for standard output is the caller's, or nowhere where it is `silent`. Once
    /// `limit_ms` milliseconds are over it is killed with all of its process
    /// group.
    pub fn start(
        words: &[&str],
        input: &'i [u8],
        limit_ms: u64,
        silent: bool,
    ) -> Result<Feeding<'i>, Errno> {
        let begin_ms = Now::read().mono_ms;
        let (program, args) = words.split_first().ok_or(Errno::INVAL)?;
        let to = || {
            let err = || standard(Standard::Err).try_clone_to_owned().map(Stdio::from);
            if silent { Ok(Stdio::null()) } else { err().map_err(errno) }
        };
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(to()?)
            .stderr(to()?)
            .process_group(0)
            .spawn()
            .map_err(errno)?;
        let (end, pipe) = (End::of(child.id()), child.stdin.take());
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Feeding { child, end, pipe, rest: input, begin_ms, limit_ms })
    }

    /// Feeds it what it takes now, and says how it ended: with its exit status, or
    /// with `None` where a signal or the limit ended it. Nothing while it runs.
    pub fn step(&mut self) -> Option<Option<i32>> {
        match self.child.try_wait() {
            Ok(Some(status)) => return Some(status.code()),
            Ok(None) if self.left_ms() > 0 => {}
            Ok(None) | Err(_) => {
                kill(&mut self.child);
                return Some(None);
            }
        }
        let rest = &mut self.rest;
        self.pipe = self.pipe.take().filter(|pipe| !is_fed(pipe, rest));
        None
    }

    /// Milliseconds that it may still take.
    fn left_ms(&self) -> u64 {
        self.limit_ms.saturating_sub(Now::read().mono_ms.saturating_sub(self.begin_ms))
    }

    /// Milliseconds until the next step is due though nothing wakes the sleeper.
    pub fn due_ms(&self) -> u64 {
        if self.end.is_some() { self.left_ms() } else { self.left_ms().min(TICK_MS) }
    }

    /// What wakes a sleeper: its end, or that it takes more.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        let pipe = self.pipe.as_ref().map(|pipe| Alarm::of_room(pipe.as_fd()));
        self.end.as_ref().map(End::alarm).into_iter().chain(pipe)
    }
}

/// Runs a program to its end as [`Feeding::start`] does, not silent; `None` is for
/// one that a signal or the limit ended.
pub fn feed(words: &[&str], input: &[u8], limit_ms: u64) -> Result<Option<i32>, Errno> {
    let mut feeding = Feeding::start(words, input, limit_ms, false)?;
    loop {
        if let Some(code) = feeding.step() {
            return Ok(code);
        }
        sleep(&feeding.alarms().collect::<Vec<_>>(), feeding.due_ms());
    }
}

/// A program whose standard output and standard error are read while it runs.
pub struct Source {
    child: Child,
    end: Option<End>,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
}

impl Source {
    /// Starts a program, looked for as execvp(3) does, in a process group of its
    /// own, with this one's environment and nothing to read.
    pub fn start(words: &[String]) -> Result<Source, Errno> {
        let (program, args) = words.split_first().ok_or(Errno::INVAL)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(errno)?;
        let end = End::of(child.id());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let pipes = [out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Source { child, end, out, err })
    }

    /// Reads what is there of its output; 0 is the end. EAGAIN where nothing is.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let Some(pipe) = &self.out else { return Ok(0) };
        match rustix::io::read(pipe, &mut *buffer) {
            // What it has started may hold the pipe open for longer.
            Err(Errno::AGAIN) if self.end.as_ref().is_some_and(End::has_come) => {
                match rustix::io::read(pipe, buffer) {
                    Err(Errno::AGAIN) => Ok(0),
                    done => done,
                }
            }
            done => done,
        }
    }

    /// Reads what is there of its standard error; nothing where that has ended.
    pub fn read_err(&mut self, buffer: &mut [u8]) -> usize {
        let Some(pipe) = &self.err else { return 0 };
        match rustix::io::read(pipe, buffer) {
            Ok(len) if len > 0 => len,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            _ => {
                self.err = None;
                0
            }
        }
    }

    /// What wakes a sleeper: something to read of its output, or its end.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        let pipe = self.out.as_ref().map(|pipe| Alarm::of(pipe.as_fd()));
        self.end.as_ref().map(End::alarm).into_iter().chain(pipe)
    }

    /// What wakes a sleeper when there is something on its standard error.
    pub fn err_alarm(&self) -> Option<Alarm<'_>> {
        self.err.as_ref().map(|pipe| Alarm::of(pipe.as_fd()))
    }

    /// Waits at most so many milliseconds for its own end; says whether it came.
    pub fn ends_within(&mut self, ms: u64) -> bool {
        let until_ms = Now::read().mono_ms + ms;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            let left_ms = until_ms.saturating_sub(Now::read().mono_ms);
            if left_ms == 0 {
                return false;
            }
            let alarms: Vec<_> = self.end.iter().map(End::alarm).collect();
            sleep(&alarms, if alarms.is_empty() { left_ms.min(TICK_MS) } else { left_ms });
        }
    }

    /// Ends it, where it has not ended, with all of its process group: politely,
    /// and after so many milliseconds for good. Says its exit status; `None` where
    /// a signal ended it.
    pub fn end(mut self, grace_ms: u64) -> Option<i32> {
        (self.out, self.err) = (None, None);
        let over = |child: &mut Child| child.try_wait().ok().flatten();
        let mut status = over(&mut self.child);
        if status.is_none() {
            signal_group(&self.child, Signal::TERM);
            self.ends_within(grace_ms);
            status = over(&mut self.child);
        }
        // What it has left behind goes, too.
        signal_group(&self.child, Signal::KILL);
        if status.is_none() {
            kill(&mut self.child);
        }
        status.and_then(|status| status.code())
    }
}

/// Writes what a pipe takes; says whether that was all or nobody reads it.
fn is_fed(mut pipe: &ChildStdin, rest: &mut &[u8]) -> bool {
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(len) => *rest = rest.get(len..).unwrap_or(b""),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return e.kind() != ErrorKind::WouldBlock,
        }
    }
    true
}

/// Kills a program and its process group, and takes its end from the system.
fn kill(child: &mut Child) {
    signal_group(child, Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

fn signal_group(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// Waits so many milliseconds, or until a signal comes.
pub fn pause(ms: i64) {
    let wait = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    let _ = poll(&mut [], Some(&wait));
}
