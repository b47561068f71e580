//! The text files of `/proc/PID` as bytes. Pure: nothing here opens a file.

use memchr::{memchr, memrchr};

/// What is needed of `/proc/PID/stat`, proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// The command name: at most 15 bytes for a program, any bytes but NUL.
    pub comm: &'a [u8],
    /// One letter: `Z` is a zombie, `X` is dead.
    pub state: u8,
    /// The parent's pid; 0 for none.
    pub ppid: u32,
    /// Its threads, field 20.
    pub threads: u64,
    /// Start in clock ticks since boot, field 22.
    pub start: u64,
}

impl<'a> Stat<'a> {
    /// Parses a stat line. The command name may hold spaces, newlines and `)`,
    /// so fields are counted from the last `)`.
    pub fn parse(line: &'a [u8]) -> Option<Stat<'a>> {
        let open = memchr(b'(', line)?;
        let close = memrchr(b')', line)?;
        let comm = line.get(open + 1..close)?;
        let mut fields =
            line.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
        // Fields 3, 4, 20 and 22 of the line.
        let state = *fields.next()?.first()?;
        let ppid = number(fields.next()?)?;
        let threads = number(fields.nth(15)?)?;
        let start = number(fields.nth(1)?)?;
        Some(Stat { comm, state, ppid: u32::try_from(ppid).ok()?, threads, start })
    }

    /// Whether the process has ended and only its entry is left.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// A decimal number; `None` for anything else or more than 64 bits.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, d| {
        let digit = d.is_ascii_digit().then(|| u64::from(d - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// The pid that a process has in its own, innermost namespace: the last number
/// of `NSpid:` in `/proc/PID/status`.
pub fn innermost_pid(status: &[u8]) -> Option<u32> {
    let line = status.split(|b| *b == b'\n').find_map(|l| l.strip_prefix(b"NSpid:"))?;
    let last = line.split(u8::is_ascii_whitespace).rfind(|f| !f.is_empty())?;
    u32::try_from(number(last)?).ok()
}

/// The last component of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(comm: &str) -> Vec<u8> {
        let mut line =
            format!("42 ({comm}) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 76830 1 2");
        line.push('\n');
        line.into_bytes()
    }

    #[test]
    fn a_name_with_brackets_spaces_or_newlines_does_not_shift_fields() {
        for comm in ["sh", "a) S 1 (", ") R 1 1", "a b\nc", "((", "", ")"] {
            let line = line(comm);
            let stat = Stat::parse(&line).unwrap();
            assert_eq!(
                (stat.comm, stat.state, stat.ppid, stat.threads, stat.start),
                (comm.as_bytes(), b'S', 7, 1, 76830)
            );
        }
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_survived() {
        let good = line("a) S 1 (");
        for end in 0..good.len() {
            let _ = Stat::parse(&good[..end]);
        }
        for at in 0..good.len() {
            for byte in [0, b' ', b'(', b')', b'9', 0xff] {
                let mut bad = good.clone();
                bad[at] = byte;
                let _ = Stat::parse(&bad);
            }
        }
        assert_eq!(Stat::parse(b""), None);
        assert_eq!(Stat::parse(b"1 ) ( S"), None);
        assert_eq!(number(b"18446744073709551616"), None);
    }

    #[test]
    fn the_innermost_pid_is_the_last() {
        assert_eq!(innermost_pid(b"Name:\tx\nNSpid:\t4242\t17\t1\nUid:\t0\n"), Some(1));
        assert_eq!(innermost_pid(b"NSpid:\t9\n"), Some(9));
        assert_eq!(innermost_pid(b"NSpid:\n"), None);
        assert_eq!(innermost_pid(b"Name:\tNSpid\n"), None);
    }
}
