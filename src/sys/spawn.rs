//! Running another program to its end, within a time.
//!
//! [`run`] is for answers, [`feed`] for telling.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, kill_process_group};

use super::clock::Now;
use super::fs::Errno;
use super::guard::{Standard, standard};
use super::watch::End;

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

/// Runs a program, looked for as execvp(3) does, with this one's environment and
/// `input` on its standard input, and returns its exit status. What it prints
/// goes to standard error, for standard output is the caller's. Once
/// `limit_ms` milliseconds are over it is killed with all of its process group;
/// `None` is for that, and for one that a signal ended.
pub fn feed(words: &[&str], input: &[u8], limit_ms: u64) -> Result<Option<i32>, Errno> {
    let begin = Now::read().mono_ms;
    let (program, args) = words.split_first().ok_or(Errno::INVAL)?;
    let err = || standard(Standard::Err).try_clone_to_owned().map(Stdio::from).map_err(errno);
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(err()?)
        .stderr(err()?)
        .process_group(0)
        .spawn()
        .map_err(errno)?;
    let (end, mut pipe, mut rest) = (End::of(child.id()), child.stdin.take(), input);
    if let Some(pipe) = &pipe {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    loop {
        let left = limit_ms.saturating_sub(Now::read().mono_ms.saturating_sub(begin));
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.code()),
            Ok(None) if left > 0 => {}
            Ok(None) | Err(_) => {
                kill(&mut child);
                return Ok(None);
            }
        }
        pipe = pipe.filter(|pipe| !is_fed(pipe, &mut rest));
        let ms = if end.is_some() { left } else { left.min(TICK_MS) };
        let end = end.as_ref().map(|end| PollFd::from_borrowed_fd(end.fd(), PollFlags::IN));
        let pipe = pipe.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
        let mut fds: Vec<PollFd<'_>> = end.into_iter().chain(pipe).collect();
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        let wait = Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
        let _ = poll(&mut fds, Some(&wait));
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
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits so many milliseconds, or until a signal comes.
pub fn pause(ms: i64) {
    let wait = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    let _ = poll(&mut [], Some(&wait));
}
