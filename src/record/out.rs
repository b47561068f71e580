//! Writing JSON: into a fixed buffer on the hook's path, into a growing one for
//! readers, into a hash for ids.

use super::Text;
use super::scan::is_easy;
use super::sha256::Sha256;

/// Something that takes bytes.
pub trait Sink {
    /// Takes `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Sink for Sha256 {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }
}

/// A buffer that never grows. What does not fit is noticed, never written past.
pub struct Fixed<'b> {
    buffer: &'b mut [u8],
    len: usize,
    full: bool,
}

impl<'b> Fixed<'b> {
    /// Starts empty in `buffer`.
    pub fn new(buffer: &'b mut [u8]) -> Fixed<'b> {
        Fixed { buffer, len: 0, full: false }
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.len = 0;
        self.full = false;
    }

    /// As [`Sink::put`] of bytes whose number is known: so few are written without
    /// a call, which costs more than they do.
    #[inline(always)]
    pub fn put_array<const N: usize>(&mut self, bytes: &[u8; N]) {
        match self.buffer.get_mut(self.len..).and_then(|b| b.first_chunk_mut()) {
            Some(room) if !self.full => {
                *room = *bytes;
                self.len += N;
            }
            _ => self.full = true,
        }
    }

    /// What was written; `None` when something did not fit.
    pub fn bytes(&self) -> Option<&[u8]> {
        if self.full { None } else { self.buffer.get(..self.len) }
    }

    /// What was written as text; `None` when something did not fit.
    pub fn text(&self) -> Option<&str> {
        core::str::from_utf8(self.bytes()?).ok()
    }
}

impl Sink for Fixed<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.buffer.get_mut(self.len..end) {
            Some(room) if !self.full => {
                room.copy_from_slice(bytes);
                self.len = end;
            }
            _ => self.full = true,
        }
    }
}

/// How characters beyond JSON's own rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As a record is stored: everything that JSON allows stands literally.
    Stored,
    /// As a person's terminal may get it: characters that a terminal acts on,
    /// or that cannot be seen, are escaped too.
    Shown,
}

/// Whether a character acts on a terminal or hides in text: C0, DEL, C1, bidi
/// controls, zero-width and tag characters, line separators, fillers and blanks
/// that are no space, and what is no character.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Writes one character of a JSON string.
fn put_char(sink: &mut impl Sink, c: char, style: Style) {
    match c {
        '"' => sink.put(b"\\\""),
        '\\' => sink.put(b"\\\\"),
        '\n' => sink.put(b"\\n"),
        '\r' => sink.put(b"\\r"),
        '\t' => sink.put(b"\\t"),
        '\u{8}' => sink.put(b"\\b"),
        '\u{c}' => sink.put(b"\\f"),
        c if c < ' ' || (style == Style::Shown && is_hidden(c)) => {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digit = |shift: u16| DIGITS[usize::from(*unit >> shift & 15)];
                sink.put(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
            }
        }
        c => sink.put(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Writes a string with its quotes.
pub fn string(sink: &mut impl Sink, text: &str, style: Style) {
    sink.put(b"\"");
    let mut rest = text;
    loop {
        let (plain, tail) = rest.split_at(plain_end(rest, style));
        sink.put(plain.as_bytes());
        let mut chars = tail.chars();
        let Some(c) = chars.next() else { break };
        put_char(sink, c, style);
        rest = chars.as_str();
    }
    sink.put(b"\"");
}

/// Where the start of a text ends that is written as it stands.
#[inline(never)]
fn plain_end(text: &str, style: Style) -> usize {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' | b'\\' | ..=0x1f => break,
            0x7f.. if style == Style::Shown => match text[at..].chars().next() {
                Some(c) if !is_hidden(c) => at += c.len_utf8(),
                _ => break,
            },
            _ => at += 1,
        }
    }
    at
}

/// Where the next string or blank of a JSON value begins.
#[inline(never)]
fn mark_at(json: &str) -> Option<usize> {
    json.bytes().position(|b| matches!(b, b'"' | b' ' | b'\t' | b'\n' | b'\r'))
}

/// Where a string ends whose opening quote was passed, and whether it holds an
/// escape.
#[inline(never)]
fn string_end(text: &str) -> (usize, bool) {
    let mut end = 0;
    let mut escaped = false;
    while let Some(b) = text.as_bytes().get(end).filter(|b| **b != b'"') {
        escaped |= *b == b'\\';
        end += if *b == b'\\' { 2 } else { 1 };
    }
    (end, escaped)
}

/// Writes a scanned text with its quotes, unescaped and escaped again.
pub fn text(sink: &mut impl Sink, text: Text<'_>, style: Style) {
    if style == Style::Stored && !text.is_escaped() {
        // Without an escape it stands as it is written.
        sink.put(b"\"");
        sink.put(text.raw());
        return sink.put(b"\"");
    }
    if let Some(plain) = text.plain() {
        return string(sink, plain, style);
    }
    sink.put(b"\"");
    text.chars().for_each(|c| put_char(sink, c, style));
    sink.put(b"\"");
}

/// Writes a whole number.
pub fn int(sink: &mut impl Sink, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    sink.put(&digits[at..]);
}

/// Writes a JSON value that was scanned before, compactly, its strings in the
/// given style.
pub fn value(sink: &mut impl Sink, json: &[u8], style: Style) {
    let mut rest = core::str::from_utf8(json).unwrap_or("null");
    while let Some(at) = mark_at(rest) {
        sink.put(&rest.as_bytes()[..at]);
        let tail = &rest[at + 1..];
        if rest.as_bytes()[at] != b'"' {
            rest = tail;
            continue;
        }
        let (end, escaped) = string_end(tail);
        text(sink, Text::new(tail.get(..end).unwrap_or("").as_bytes(), escaped), style);
        rest = tail.get(end + 1..).unwrap_or("");
    }
    sink.put(rest.as_bytes());
}

/// Writes the members of one object, with the commas between them.
pub struct Object<'s, S: Sink> {
    sink: &'s mut S,
    first: bool,
}

impl<'s, S: Sink> Object<'s, S> {
    /// Opens an object.
    pub fn open(sink: &'s mut S) -> Object<'s, S> {
        sink.put(b"{");
        Object { sink, first: true }
    }

    /// Writes a key of plain ASCII and returns the sink for its value.
    #[inline(always)]
    pub fn key(&mut self, name: &str) -> &mut S {
        self.sink.put(if self.first { b"\"" } else { b",\"" });
        self.first = false;
        self.sink.put(name.as_bytes());
        self.sink.put(b"\":");
        self.sink
    }

    /// Writes any key, raw as it was scanned, and returns the sink.
    pub fn raw_key(&mut self, name: Text<'_>, style: Style) -> &mut S {
        if !self.first {
            self.sink.put(b",");
        }
        self.first = false;
        match style {
            Style::Stored => {
                self.sink.put(b"\"");
                self.sink.put(name.raw());
                self.sink.put(b"\"");
            }
            Style::Shown => text(self.sink, name, style),
        }
        self.sink.put(b":");
        self.sink
    }

    /// Writes a text member as it is stored.
    pub fn str(&mut self, name: &str, value: &str) -> &mut Self {
        string(self.key(name), value, Style::Stored);
        self
    }

    /// Writes a number member.
    pub fn int(&mut self, name: &str, value: u64) -> &mut Self {
        int(self.key(name), value);
        self
    }

    /// Writes a boolean member.
    #[inline(always)]
    pub fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        let sink = self.key(name);
        if value {
            sink.put(b"true")
        } else {
            sink.put(b"false")
        }
        self
    }

    /// Closes the object.
    pub fn close(self) {
        self.sink.put(b"}");
    }
}

/// What is generic is compiled with its user, for size; this is not, for a list
/// of sessions does it for every field.
impl Object<'_, Vec<u8>> {
    /// Writes a member that was scanned, as a terminal may get it.
    #[inline(never)]
    pub fn shown(&mut self, name: Text<'_>, json: &[u8]) {
        let name_stands = is_easy(name.raw());
        let sink = self.raw_key(name, if name_stands { Style::Stored } else { Style::Shown });
        // Within a string or a number no blank is one too many.
        if is_easy(json) && !matches!(json.first(), Some(b'{' | b'[')) {
            sink.put(json);
        } else {
            value(sink, json, Style::Shown);
        }
    }
}
