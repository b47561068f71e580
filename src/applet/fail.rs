//! The errors of all layers as one line and one exit code, and how commands
//! print.

use std::io::{self, Write};

use crate::cli::{Early, Exit, Fail, Out, complain, reason};
use crate::store::place::Which;
use crate::store::{Trouble, WriteError};
use crate::sys::fs::Errno;
use crate::sys::stdio;

/// Standard output as a writer without a buffer.
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stdio::write_out(bytes).map_err(os)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error as a writer without a buffer.
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stdio::write_err(bytes).map_err(os)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn os(e: Errno) -> io::Error {
    io::Error::from_raw_os_error(e.raw_os_error())
}

/// Standard output, buffered.
pub fn stdout() -> Out<Stdout> {
    Out::new(Stdout)
}

/// Ends a program: says what failed and gives the exit status.
pub fn end(prog: &str, result: Result<Exit, Fail>) -> i32 {
    match result {
        Ok(exit) => exit.code(),
        Err(fail) => {
            complain(&mut Stderr, prog, &fail.text);
            fail.exit.code()
        }
    }
}

/// Ends the parsing of a command line early: help is printed, anything else is
/// a usage error.
pub fn early(early: Early) -> Fail {
    match early {
        Early::Help(text) => {
            let mut out = stdout();
            match out.put(text.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => Fail::silent(Exit::Ok),
                Err(fail) => fail,
            }
        }
        Early::Usage(text) => Fail::new(Exit::Usage, text),
    }
}

/// A timer that the system refuses: without it a wait for a lock has no end.
pub fn no_timer() -> Fail {
    Fail::new(Exit::Io, "cannot start a timer")
}

/// The words of a command line as text.
pub fn words<'a>(args: &'a [&'a [u8]]) -> Result<Vec<&'a str>, Fail> {
    let text = |arg: &&'a [u8]| {
        core::str::from_utf8(arg).map_err(|_| Fail::new(Exit::Usage, "an argument is not UTF-8"))
    };
    args.iter().map(text).collect()
}

/// An option whose value is none of those that it can have.
pub fn bad_value(option: &str, value: &str, values: &[&str]) -> Fail {
    Fail::new(
        Exit::Usage,
        format!("--{option} cannot be '{value}': it is one of {}", values.join(", ")),
    )
}

/// An error number in words.
pub fn errno(e: Errno) -> String {
    reason(&os(e))
}

/// A path of the store for a message.
fn place(which: Which, root: &[u8]) -> String {
    let root = String::from_utf8_lossy(root);
    match which {
        Which::Parent => root.rsplit_once('/').map_or("/", |(dir, _)| dir).to_string(),
        Which::Root => root.into_owned(),
        Which::Sessions => format!("{root}/sessions"),
    }
}

/// Why the store cannot be used, in words.
pub fn trouble(trouble: Trouble, root: &[u8]) -> String {
    match trouble {
        Trouble::NoHome => {
            "cannot find the store: HOME is not set to an absolute path of a directory".to_string()
        }
        Trouble::Missing => {
            format!("cannot open '{}': it does not exist", place(Which::Root, root))
        }
        Trouble::Unsafe(which, why) => format!("cannot use '{}': it {why}", place(which, root)),
        Trouble::Io(which, e) => format!("cannot open '{}': {}", place(which, root), errno(e)),
    }
}

/// A store that cannot be written to, as a failure.
pub fn unusable(t: Trouble, root: &[u8]) -> Fail {
    let exit = match t {
        Trouble::Unsafe(..) | Trouble::NoHome => Exit::Refused,
        Trouble::Io(_, Errno::ACCESS | Errno::PERM) => Exit::Refused,
        Trouble::Missing | Trouble::Io(..) => Exit::Io,
    };
    Fail::new(exit, trouble(t, root))
}

/// Which exit code a failed write is, and why in words.
pub fn unwritten(e: WriteError) -> (Exit, String) {
    match e {
        WriteError::Busy => (Exit::Busy, "another process holds its lock".into()),
        WriteError::Unsafe => {
            (Exit::Refused, "its place is taken by a file that is not a record of ours".into())
        }
        WriteError::Newer => {
            (Exit::Data, "the stored record is of a newer version of tongs".into())
        }
        WriteError::Malformed(Some(fault)) => (Exit::Data, fault.to_string()),
        WriteError::Malformed(None) => (Exit::Data, "it does not fit into a record".into()),
        WriteError::OtherProcess => (Exit::No, "the stored record is of another process".into()),
        WriteError::Sequence => (Exit::No, "its sequence is not above the stored one".into()),
        WriteError::Io(Errno::ACCESS | Errno::PERM) => (Exit::Refused, errno(Errno::ACCESS)),
        WriteError::Io(e) => (Exit::Io, errno(e)),
    }
}
