//! The keys that a terminal sends, from its bytes.
//!
//! What is not a key that somebody may mean is passed over whole: a sequence of
//! an unknown kind never turns into the letters that it is made of, and what is
//! pasted never into keys.

use std::collections::VecDeque;

/// Bytes of a sequence; a longer one is passed over.
const SEQUENCE: usize = 32;
/// Bytes of a paste that are kept.
const PASTE: usize = 4096;

/// A key, or what was pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, the space among them.
    Char(char),
    /// A letter with Control, as the lower-case letter.
    Control(char),
    /// Return.
    Enter,
    /// Escape alone.
    Escape,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Text that was pasted.
    Paste(String),
}

/// Bytes that came, and the keys among them.
#[derive(Debug, Default)]
pub struct Keys {
    held: VecDeque<u8>,
    /// What was pasted so far, while the paste goes on.
    pasted: Option<Vec<u8>>,
}

impl Keys {
    /// Takes bytes from the terminal.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend(bytes);
    }

    /// Whether bytes are held that may be the beginning of a key.
    pub fn are_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next key. What may go on with the next bytes is held back unless
    /// `last` says that none came in time.
    pub fn next(&mut self, last: bool) -> Option<Key> {
        loop {
            let bytes = self.held.make_contiguous();
            let (len, key) = match (&mut self.pasted, first(bytes)) {
                (_, First::Nothing) => return None,
                (_, First::Part) if !last => return None,
                (None, First::Part) => (bytes.len(), (bytes == b"\x1b").then_some(Key::Escape)),
                (Some(text), First::Part) => {
                    text.extend_from_slice(bytes);
                    (bytes.len(), None)
                }
                (pasted @ Some(_), First::Sequence(len)) if &bytes[..len] == b"\x1b[201~" => {
                    let text = pasted.take().unwrap_or_default();
                    (len, Some(Key::Paste(String::from_utf8_lossy(&text).into_owned())))
                }
                (Some(text), First::Sequence(len) | First::Plain(len, _)) => {
                    let room = PASTE.saturating_sub(text.len());
                    text.extend_from_slice(&bytes[..len.min(room)]);
                    (len, None)
                }
                (pasted, First::Sequence(len)) => {
                    if &bytes[..len] == b"\x1b[200~" {
                        *pasted = Some(Vec::new());
                    }
                    (len, sequence(&bytes[..len]))
                }
                (None, First::Plain(len, c)) => (len, plain(c)),
            };
            self.held.drain(..len);
            if key.is_some() {
                return key;
            }
        }
    }
}

/// What bytes begin with.
enum First {
    Nothing,
    /// Something that the next bytes may go on with.
    Part,
    /// A sequence of so many bytes.
    Sequence(usize),
    /// A character of so many bytes; `None` where they are none.
    Plain(usize, Option<char>),
}

fn first(bytes: &[u8]) -> First {
    match bytes {
        [] => First::Nothing,
        [0x1b] | [0x1b, b'O'] => First::Part,
        [0x1b, b'O', _, ..] => First::Sequence(3),
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().take(SEQUENCE).position(|b| !(0x20..=0x3f).contains(b));
            match end {
                // A byte that cannot stand there is the next key's.
                Some(at) if !(0x40..=0x7e).contains(&rest[at]) => First::Sequence(2 + at),
                Some(at) => First::Sequence(3 + at),
                None if rest.len() < SEQUENCE => First::Part,
                None => First::Sequence(2 + SEQUENCE),
            }
        }
        [0x1b, 0x1b, ..] => First::Plain(1, Some('\x1b')),
        // A key with Alt.
        [0x1b, rest @ ..] => match first(rest) {
            First::Plain(len, _) => First::Sequence(1 + len),
            _ => First::Part,
        },
        [lead, ..] => {
            let len = match lead {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            match bytes.get(..len).map(std::str::from_utf8) {
                Some(Ok(text)) => First::Plain(len, text.chars().next()),
                Some(Err(_)) => First::Plain(1, None),
                None if bytes[1..].iter().all(|b| b & 0xc0 == 0x80) => First::Part,
                None => First::Plain(1, None),
            }
        }
    }
}

fn plain(c: Option<char>) -> Option<Key> {
    Some(match c? {
        '\r' | '\n' => Key::Enter,
        '\t' => Key::Tab,
        '\x08' | '\x7f' => Key::Backspace,
        '\x1b' => Key::Escape,
        c @ '\x01'..='\x1a' => Key::Control((c as u8 - 1 + b'a') as char),
        c if c.is_control() => return None,
        c => Key::Char(c),
    })
}

/// The key of a sequence, whatever it was held with.
fn sequence(bytes: &[u8]) -> Option<Key> {
    let (end, rest) = bytes.split_last().filter(|_| matches!(bytes.get(1), Some(b'[' | b'O')))?;
    let number = rest.get(2..).and_then(|r| r.split(|b| *b == b';').next()).unwrap_or(b"");
    Some(match (end, number) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'M', b"") if bytes == b"\x1bOM" => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of bytes that come in these pieces.
    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut keys = Keys::default();
        let mut got = Vec::new();
        for piece in pieces {
            keys.push(piece);
            got.extend(std::iter::from_fn(|| keys.next(false)));
        }
        got.extend(std::iter::from_fn(|| keys.next(true)));
        assert!(!keys.are_held());
        got
    }

    #[test]
    fn keys_are_told_apart() {
        let got = keys(&[b"aZ \r\n\t\x7f\x08\x03\x0c\x00\x1c\xc3\xa9\xe6\x97\xa5"]);
        let want = [
            Key::Char('a'),
            Key::Char('Z'),
            Key::Char(' '),
            Key::Enter,
            Key::Enter,
            Key::Tab,
            Key::Backspace,
            Key::Backspace,
            Key::Control('c'),
            Key::Control('l'),
            Key::Char('é'),
            Key::Char('日'),
        ];
        assert_eq!(got, want);
        for (bytes, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5A", Key::Up),
            (b"\x1b[H", Key::Home),
            (b"\x1b[1~", Key::Home),
            (b"\x1bOF", Key::End),
            (b"\x1b[4~", Key::End),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6;2~", Key::PageDown),
            (b"\x1bOM", Key::Enter),
            (b"\x1b", Key::Escape),
        ] {
            assert_eq!(keys(&[bytes]), [key], "{bytes:?}");
        }
        assert_eq!(keys(&[b"\x1b\x1b[Bj"]), [Key::Escape, Key::Down, Key::Char('j')]);
        assert_eq!(keys(&[b"\x1bAj\x1b\xc3\xa9k\x1b\r"]), [Key::Char('j'), Key::Char('k')]);
    }

    #[test]
    fn a_key_may_come_in_pieces_of_any_size() {
        let bytes = "\x1b[B日\x1b[200~q\x1b[Aé\x1b[201~\x1bOAx\x1b[6~".as_bytes();
        let whole = keys(&[bytes]);
        assert_eq!(whole.len(), 6);
        assert_eq!(whole[2], Key::Paste("q\x1b[Aé".into()));
        for at in 0..bytes.len() {
            assert_eq!(keys(&[&bytes[..at], &bytes[at..]]), whole, "{at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(keys(&single), whole);
    }

    #[test]
    fn an_unknown_sequence_is_no_text() {
        let long = [b"\x1b[".to_vec(), vec![b'1'; 2 * SEQUENCE], b"q".to_vec()].concat();
        for bytes in
            [&b"\x1b[<35;10;4M"[..], b"\x1b[?62;4c", b"\x1b[3~", b"\x1bOq", b"\x1b[I", b"\x1b["]
        {
            assert_eq!(keys(&[bytes]), [], "{bytes:?}");
        }
        assert!(keys(&[&long]).iter().all(|key| matches!(key, Key::Char('1' | 'q'))));
        assert_eq!(keys(&[b"\x1b[12\x1b[A"]), [Key::Up]);
        assert_eq!(keys(&[b"\xff\xc3a\xe6\x97"]), [Key::Char('a')]);
    }

    #[test]
    fn a_paste_is_bounded_and_may_stay_open() {
        let paste = [b"\x1b[200~".to_vec(), vec![b'q'; 3 * PASTE], b"\x1b[201~j".to_vec()].concat();
        assert_eq!(keys(&[&paste]), [Key::Paste("q".repeat(PASTE)), Key::Char('j')]);
        assert_eq!(keys(&[b"\x1b[200~abc"]), []);
    }
}
