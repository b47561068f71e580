//! Running another program to its end, within a time.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::event::{Timespec, poll};

use super::clock::Now;
use super::fs::Errno;

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
        .map_err(|e| e.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
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

/// Waits so many milliseconds, or until a signal comes.
fn pause(ms: i64) {
    let wait = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    let _ = poll(&mut [], Some(&wait));
}
