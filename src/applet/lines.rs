//! The lines of an input that nobody vouches for, in constant memory.

use memchr::memchr;

use crate::record::MAX_BYTES;
use crate::sys::fs::Errno;

/// Bytes that are held: a line of the greatest length, and as much again, so that
/// a line is moved once at most.
const BUFFER: usize = 2 * (MAX_BYTES + 2);

/// A line of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// What stands in it, without its end; `None` where that is longer than a
    /// record may be.
    pub text: Option<&'a [u8]>,
}

/// An input on its way.
pub struct Lines {
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    /// Whether the line under way is too long, and its beginning gone.
    over: bool,
    at_end: bool,
    number: u64,
}

impl Default for Lines {
    fn default() -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Lines { buffer, from: 0, to: 0, over: false, at_end: false, number: 0 }
    }
}

impl Lines {
    /// The next line of what was read; `None` where more must be read.
    pub fn next(&mut self) -> Option<Line<'_>> {
        let held = &self.buffer[self.from..self.to];
        let (len, end) = match memchr(b'\n', held) {
            Some(at) => (at, at + 1),
            // The last line need not have an end, but it must be there.
            None if self.at_end && (self.over || !held.is_empty()) => (held.len(), held.len()),
            None => {
                // The longest line may end in CR and LF.
                if held.len() > MAX_BYTES + 1 {
                    self.over = true;
                }
                if self.over {
                    self.from = self.to;
                }
                return None;
            }
        };
        let len = len - usize::from(held[..len].ends_with(b"\r"));
        let line = self.from..self.from + len;
        self.from += end;
        self.number += 1;
        let over = core::mem::take(&mut self.over) || len > MAX_BYTES;
        Some(Line { number: self.number, text: self.buffer.get(line).filter(|_| !over) })
    }

    /// Reads once; says whether there may be more lines.
    pub fn read(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<bool, Errno> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        let len = read(&mut self.buffer[self.to..])?;
        self.to += len;
        self.at_end = len == 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of an input that comes in pieces of `piece` bytes.
    fn all(input: &[u8], piece: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let (mut lines, mut rest, mut found) = (Lines::default(), input, Vec::new());
        let mut more = true;
        while more {
            more = lines
                .read(|buffer| {
                    let len = rest.len().min(piece).min(buffer.len());
                    buffer[..len].copy_from_slice(&rest[..len]);
                    rest = &rest[len..];
                    Ok(len)
                })
                .unwrap();
            while let Some(line) = lines.next() {
                found.push((line.number, line.text.map(<[u8]>::to_vec)));
            }
        }
        found
    }

    #[test]
    fn lines_are_whole_in_whatever_pieces_they_come() {
        let longest = vec![b'x'; MAX_BYTES];
        let over = vec![b'y'; MAX_BYTES + 1];
        let with_cr = [&longest[..], b"\r"].concat();
        let over_with_cr = [&over[..], b"\r"].concat();
        let far_over = vec![b'z'; 5 * MAX_BYTES];
        let input = [
            &b"a\n\n"[..],
            &longest,
            b"\n",
            &over,
            b"\nb\r\n",
            &far_over,
            b"\n",
            &with_cr,
            b"\n",
            &over_with_cr,
            b"\nend",
        ]
        .concat();
        let want = [
            (1, Some(b"a".to_vec())),
            (2, Some(Vec::new())),
            (3, Some(longest.clone())),
            (4, None),
            (5, Some(b"b".to_vec())),
            (6, None),
            (7, Some(longest.clone())),
            (8, None),
            (9, Some(b"end".to_vec())),
        ];
        for piece in [1000, 4096, MAX_BYTES, MAX_BYTES + 1, usize::MAX] {
            assert!(all(&input, piece) == want, "{piece}");
        }
        assert!(all(&[b"\n", &far_over[..]].concat(), 7000) == [(1, Some(Vec::new())), (2, None)]);
        assert!(all(b"", 1).is_empty());
    }
}
