//! Writing results to standard output and messages to standard error.
//!
//! A reader that went away ends the program as a success, without a word. Any
//! other failure of standard output is one, whatever else went well: a full
//! disk must not pass for a written file.

use std::io::{self, ErrorKind, Write};

use super::{Exit, Fail, Shown};

/// Bytes gathered before a write(2).
const BUFFER: usize = 64 * 1024;

/// Standard output, buffered. What is not flushed before the drop is lost.
pub struct Out<W: Write> {
    to: W,
    held: Vec<u8>,
}

impl<W: Write> Out<W> {
    /// Makes an empty buffer before `to`; memory is taken as it fills.
    pub fn new(to: W) -> Out<W> {
        Out { to, held: Vec::new() }
    }

    /// Takes bytes that are already safe to print; the error is as in [`Out::flush`].
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Fail> {
        if self.held.len() + bytes.len() > BUFFER {
            self.send()?;
            if bytes.len() >= BUFFER {
                return self.to.write_all(bytes).map_err(|e| unwritten(&e));
            }
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the output of `write!` and `writeln!`; the error is as in [`Out::flush`].
    pub fn write_fmt(&mut self, args: std::fmt::Arguments<'_>) -> Result<(), Fail> {
        match args.as_str() {
            Some(text) => self.put(text.as_bytes()),
            None => self.put(args.to_string().as_bytes()),
        }
    }

    /// Lets `fill` append to the buffer, so that nothing is copied twice; the
    /// error is as in [`Out::flush`].
    pub fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fail> {
        fill(&mut self.held);
        if self.held.len() >= BUFFER { self.send() } else { Ok(()) }
    }

    /// Writes out all that was taken. The error says how the program ends:
    /// silent [`Exit::Ok`] when the reader is gone, else [`Exit::Io`].
    pub fn flush(&mut self) -> Result<(), Fail> {
        self.send()?;
        self.to.flush().map_err(|e| unwritten(&e))
    }

    fn send(&mut self) -> Result<(), Fail> {
        let sent = self.to.write_all(&self.held);
        self.held.clear();
        sent.map_err(|e| unwritten(&e))
    }
}

/// Turns an error of standard output into the end that it means.
fn unwritten(error: &io::Error) -> Fail {
    match error.kind() {
        ErrorKind::BrokenPipe => Fail::silent(Exit::Ok),
        _ => Fail::cannot(Exit::Io, "write", "standard output", reason(error)),
    }
}

/// Words an I/O error for the end of a message: lower case and without the
/// error number when it is the system's, as it stands when it is a program's.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error().and_then(|code| text.strip_suffix(&format!(" (os error {code})"))) {
        Some(text) => text.to_ascii_lowercase(),
        None => text,
    }
}

/// Writes `PROG: TEXT` as one line in one write(2); an empty text is silence.
/// Errors are passed over: there is nowhere left to complain to.
pub fn complain(err: &mut impl Write, prog: &str, text: &str) {
    if !text.is_empty() {
        let _ = err.write_all(format!("{}: {}\n", Shown(prog), Shown(text)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with an error number after so many bytes; counts the writes.
    struct Sink {
        got: Vec<u8>,
        room: usize,
        error: i32,
        writes: usize,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if self.got.len() >= self.room {
                return Err(io::Error::from_raw_os_error(self.error));
            }
            let taken = bytes.len().min(self.room - self.got.len());
            self.got.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn sink(room: usize, error: i32) -> Sink {
        Sink { got: Vec::new(), room, error, writes: 0 }
    }

    const ENOENT: i32 = 2;
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    const EPIPE: i32 = 32;

    #[test]
    fn output_is_gathered_and_arrives_in_order() {
        let mut out = Out::new(sink(usize::MAX, 0));
        let mut want = Vec::new();
        for n in 0..30_000 {
            writeln!(out, "{n}").unwrap();
            want.extend_from_slice(format!("{n}\n").as_bytes());
        }
        let big = vec![b'x'; BUFFER + 1];
        out.put(&big).unwrap();
        out.put(b"end").unwrap();
        want.extend_from_slice(&big);
        want.extend_from_slice(b"end");
        out.flush().unwrap();
        assert!(out.to.got == want);
        assert_eq!(out.to.writes, 5);
    }

    #[test]
    fn a_reader_that_went_away_is_success_and_stops() {
        let mut out = Out::new(sink(3, EPIPE));
        out.put(b"hello").unwrap();
        assert_eq!(out.flush(), Err(Fail::silent(Exit::Ok)));
        assert_eq!(out.to.got, b"hel");
    }

    #[test]
    fn a_full_disk_is_an_error_and_what_was_held_is_not_tried_again() {
        let mut out = Out::new(sink(0, ENOSPC));
        out.put(b"hello").unwrap();
        let fail = out.flush().unwrap_err();
        assert_eq!(fail.exit, Exit::Io);
        assert_eq!(fail.text, "cannot write 'standard output': no space left on device");
        assert_eq!(out.put(&[b'x'; BUFFER + 1]).unwrap_err().exit, Exit::Io);
        assert_eq!(out.flush(), Ok(()));
        assert!(out.to.got.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn dev_full_is_an_error() {
        let mut out = Out::new(std::fs::File::options().write(true).open("/dev/full").unwrap());
        write!(out, "x").unwrap();
        assert_eq!(out.flush().unwrap_err().exit, Exit::Io);
    }

    #[test]
    fn a_reason_is_lower_case_and_has_no_number() {
        assert_eq!(reason(&io::Error::from_raw_os_error(ENOENT)), "no such file or directory");
        // Words differ between libcs; musl's has capitals inside.
        let text = reason(&io::Error::from_raw_os_error(EIO));
        assert!(["input/output error", "i/o error"].contains(&text.as_str()), "{text}");
        assert_eq!(
            reason(&io::Error::other("'/A' is new (os error 2)")),
            "'/A' is new (os error 2)"
        );
    }

    #[test]
    fn a_complaint_is_one_line_in_one_write() {
        let mut err = sink(usize::MAX, 0);
        complain(&mut err, "tongs-agents", "cannot read 'a\nb\x1b[1m': gone");
        complain(&mut err, "tongs-agents", "");
        assert_eq!(err.got, b"tongs-agents: cannot read 'a\\u{a}b\\u{1b}[1m': gone\n");
        assert_eq!(err.writes, 1);
        complain(&mut sink(0, EPIPE), "tongs-agents", "nobody hears this");
    }
}
