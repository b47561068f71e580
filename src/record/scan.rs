//! Finding the fields of one JSON object, in one pass.
//!
//! The acceptance rule: UTF-8; one object with nothing but white space around
//! it; JSON's grammar; at most 64 keys at the top, no two of them equal after
//! unescaping; at most 16 levels, the object itself being the first; strings
//! without lone surrogates. Numbers are checked against the grammar and not
//! converted, so `1e999` passes.

use memchr::memchr;

use super::text::word_at;
use super::{Key, MAX_BYTES, Text};

/// Most keys at the top of a record.
pub const MAX_KEYS: usize = 64;
/// Most levels of nesting, counting the record itself.
pub const MAX_DEPTH: usize = 16;

/// Why bytes are no acceptable record, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Offset of the offending byte or value.
    pub at: u32,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Longer than [`MAX_BYTES`].
    TooLong,
    /// Not UTF-8.
    Utf8,
    /// Not JSON, or not one object.
    Syntax,
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
    /// More than [`MAX_KEYS`] keys.
    Keys,
    /// The same key twice.
    Duplicate(Option<Key>),
    /// A field is missing.
    Missing(Key),
    /// A field has the wrong type, is too long or out of range.
    Invalid(Key),
    /// A schema that is not this build's, such as a newer one.
    Schema,
    /// The canonical id is not the one of the three ids.
    Forged,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.kind {
            FaultKind::TooLong => write!(f, "longer than {MAX_BYTES} bytes"),
            FaultKind::Utf8 => f.write_str("not UTF-8"),
            FaultKind::Syntax => f.write_str("not a JSON object"),
            FaultKind::Depth => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            FaultKind::Keys => write!(f, "more than {MAX_KEYS} keys"),
            FaultKind::Duplicate(Some(key)) => write!(f, "{} stands twice", key.name()),
            FaultKind::Duplicate(None) => f.write_str("a key stands twice"),
            FaultKind::Missing(key) => write!(f, "{} is missing", key.name()),
            FaultKind::Invalid(key) => write!(f, "{} is not valid", key.name()),
            FaultKind::Schema => f.write_str("schema_version is not 1"),
            FaultKind::Forged => f.write_str("canonical_id does not belong to these ids"),
        }
    }
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string; `escaped` says that it holds a backslash.
    Text {
        /// Whether a backslash stands in it.
        escaped: bool,
    },
    /// A number of digits alone: no sign, fraction or exponent.
    Integer,
    /// Any other number.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
    /// `{…}`
    Object,
    /// `[…]`
    Array,
}

/// One key and its value, as offsets into the scanned bytes.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    key: (u32, u32),
    value: (u32, u32),
    /// The type of the value.
    pub kind: Kind,
    /// The key, where tongs knows it.
    pub known: Option<Key>,
    key_escaped: bool,
}

impl Field {
    /// The key between its quotes.
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Text<'a> {
        text(bytes, self.key, self.key_escaped)
    }

    /// The value as it stands, quotes and brackets included.
    pub fn value<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.value.0 as usize..self.value.1 as usize).unwrap_or(b"")
    }

    /// The value as text, where it is a string.
    pub fn text<'a>(&self, bytes: &'a [u8]) -> Option<Text<'a>> {
        let Kind::Text { escaped } = self.kind else { return None };
        Some(text(bytes, (self.value.0 + 1, self.value.1 - 1), escaped))
    }

    /// Offset of the value.
    pub fn at(&self) -> u32 {
        self.value.0
    }
}

fn text(bytes: &[u8], span: (u32, u32), escaped: bool) -> Text<'_> {
    Text::new(bytes.get(span.0 as usize..span.1 as usize).unwrap_or(b""), escaped)
}

/// What a place holds that has no field yet: all zero bits, so that a static
/// `Scan` takes no room in the program and no page until it is used.
const NO_FIELD: Field = Field {
    key: (0, 0),
    value: (0, 0),
    kind: Kind::Text { escaped: false },
    known: Some(Key::SchemaVersion),
    key_escaped: false,
};

/// The fields of a record. One `Scan` is reused for many records.
pub struct Scan {
    fields: [Field; MAX_KEYS],
    len: usize,
    at: [u8; Key::ALL.len()],
    /// Whether the bytes are printable ASCII without white space outside of
    /// strings, so that they may be copied to any output.
    pub compact: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Scan::new()
    }
}

impl Scan {
    /// Holds no fields yet.
    pub const fn new() -> Scan {
        Scan { fields: [NO_FIELD; MAX_KEYS], len: 0, at: [0; Key::ALL.len()], compact: false }
    }

    /// The fields in the order in which they stand.
    pub fn fields(&self) -> &[Field] {
        &self.fields[..self.len]
    }

    /// The field of a known key.
    pub fn get(&self, key: Key) -> Option<&Field> {
        let at = usize::from(*self.at.get(key as usize)?);
        self.fields.get(at.checked_sub(1)?)
    }

    /// Scans `bytes`, replacing what was found before.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.len = 0;
        self.at.fill(0);
        let fault = |at: usize, kind| Fault { at: at as u32, kind };
        if bytes.len() > MAX_BYTES {
            return Err(fault(MAX_BYTES, FaultKind::TooLong));
        }
        // Most records are printable ASCII without a backslash: then a string
        // ends at the next quote, and nothing in it needs a look.
        let printable = is_printable(bytes);
        if !printable {
            if let Err(e) = core::str::from_utf8(bytes) {
                return Err(fault(e.valid_up_to(), FaultKind::Utf8));
            }
        }
        let easy = printable && memchr(b'\\', bytes).is_none();
        let mut c = Cursor { bytes, at: 0, spaced: false, easy };
        self.object(&mut c).map_err(|kind| fault(c.at.min(bytes.len()), kind))?;
        self.compact = !c.spaced && printable;
        Ok(())
    }

    fn object(&mut self, c: &mut Cursor<'_>) -> Result<(), FaultKind> {
        c.space();
        c.want(b'{')?;
        c.space();
        if !c.eat(b'}') {
            let mut next = 0;
            loop {
                let mut field = match Key::labels(next, c.rest()) {
                    Some((known, len)) => {
                        let start = c.at as u32 + 1;
                        c.at += len;
                        let key = (start, c.at as u32 - 2);
                        Field { key, known: Some(known), ..NO_FIELD }
                    }
                    None => c.any_key()?,
                };
                next = field.known.map_or(next, |key| key as usize + 1);
                c.space();
                let start = c.at;
                field.kind = c.value()?;
                field.value = (start as u32, c.at as u32);
                self.push(c.bytes, field)?;
                c.space();
                if c.eat(b',') {
                    c.space();
                    continue;
                }
                c.want(b'}')?;
                break;
            }
        }
        c.space();
        if c.at == c.bytes.len() { Ok(()) } else { Err(FaultKind::Syntax) }
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], field: Field) -> Result<(), FaultKind> {
        if self.len == MAX_KEYS {
            return Err(FaultKind::Keys);
        }
        match field.known {
            Some(key) if self.at[key as usize] != 0 => {
                return Err(FaultKind::Duplicate(Some(key)));
            }
            Some(key) => self.at[key as usize] = self.len as u8 + 1,
            None => {
                let name = field.key(bytes);
                let others = self.fields().iter().filter(|f| f.known.is_none());
                if others.map(|f| f.key(bytes)).any(|other| other.same(name)) {
                    return Err(FaultKind::Duplicate(None));
                }
            }
        }
        self.fields[self.len] = field;
        self.len += 1;
        Ok(())
    }
}

/// The entries of an object that was already scanned, such as `terminal_env`.
pub struct Entries<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Entries<'a> {
    /// Reads the entries of `object`, the bytes of a value of [`Kind::Object`].
    pub fn of(object: &'a [u8]) -> Entries<'a> {
        let easy = is_easy(object);
        Entries { cursor: Cursor { bytes: object, at: 0, spaced: false, easy } }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Text<'a>, Kind, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let c = &mut self.cursor;
        c.space();
        // The first entry follows `{`, the others a comma; `}` ends them.
        if !c.eat(b'{') && !c.eat(b',') {
            return None;
        }
        c.space();
        c.want(b'"').ok()?;
        let start = c.at as u32;
        let escaped = c.string().ok()?;
        let key = text(c.bytes, (start, c.at as u32 - 1), escaped);
        c.space();
        c.want(b':').ok()?;
        c.space();
        let start = c.at;
        let kind = c.value().ok()?;
        Some((key, kind, c.bytes.get(start..c.at)?))
    }
}

/// The text of a string value with its quotes, as [`Entries`] yields it.
pub fn quoted(kind: Kind, value: &[u8]) -> Option<Text<'_>> {
    let Kind::Text { escaped } = kind else { return None };
    Some(text(value, (1, value.len() as u32 - 1), escaped))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether white space was passed.
    spaced: bool,
    /// Whether all is printable ASCII without a backslash.
    easy: bool,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or(b"")
    }

    fn want(&mut self, byte: u8) -> Result<(), FaultKind> {
        if self.eat(byte) { Ok(()) } else { Err(FaultKind::Syntax) }
    }

    #[inline(always)]
    fn space(&mut self) {
        // All white space is at or below a blank, and most bytes are not.
        if self.peek().is_some_and(|byte| byte > b' ') {
            return;
        }
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
            self.spaced = true;
        }
    }

    /// Passes a string whose opening quote was eaten; says whether it holds an
    /// escape.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, FaultKind> {
        if self.easy {
            self.at = quote_at(self.bytes, self.at).ok_or(FaultKind::Syntax)? + 1;
            return Ok(false);
        }
        self.any_string()
    }

    #[inline(never)]
    fn any_string(&mut self) -> Result<bool, FaultKind> {
        let mut escaped = false;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(FaultKind::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<(), FaultKind> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                match self.hex4()? {
                    0xdc00..=0xdfff => Err(FaultKind::Syntax),
                    0xd800..=0xdbff => {
                        self.want(b'\\')?;
                        self.want(b'u')?;
                        match self.hex4()? {
                            0xdc00..=0xdfff => Ok(()),
                            _ => Err(FaultKind::Syntax),
                        }
                    }
                    _ => Ok(()),
                }
            }
            _ => Err(FaultKind::Syntax),
        }
    }

    fn hex4(&mut self) -> Result<u32, FaultKind> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            value = value * 16 + digit.ok_or(FaultKind::Syntax)?;
            self.at += 1;
        }
        Ok(value)
    }

    /// Passes a key and its colon; the field has no value yet.
    #[inline(never)]
    fn any_key(&mut self) -> Result<Field, FaultKind> {
        self.want(b'"')?;
        let start = self.at as u32;
        let key_escaped = self.string()?;
        let mut field = Field { key: (start, self.at as u32 - 1), key_escaped, ..NO_FIELD };
        let name = field.key(self.bytes);
        field.known = if key_escaped {
            name.copy(&mut [0; 32]).and_then(|n| Key::find(n.as_bytes()))
        } else {
            Key::find(name.raw())
        };
        self.space();
        self.want(b':')?;
        Ok(field)
    }

    /// Passes a value at level 2.
    #[inline(always)]
    fn value(&mut self) -> Result<Kind, FaultKind> {
        match self.peek() {
            Some(b'{' | b'[') => self.nested(),
            _ => self.scalar(),
        }
    }

    /// Passes a value that is no object and no array.
    #[inline(always)]
    fn scalar(&mut self) -> Result<Kind, FaultKind> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(Kind::Text { escaped: self.string()? })
            }
            Some(b't') => self.word(b"true", Kind::True),
            Some(b'f') => self.word(b"false", Kind::False),
            Some(b'n') => self.word(b"null", Kind::Null),
            _ => self.number(),
        }
    }

    /// Passes an object or array and all that is in it, without recursion: one
    /// bit a level says whether that level is an object.
    #[inline(never)]
    fn nested(&mut self) -> Result<Kind, FaultKind> {
        let mut objects = 0u32;
        let mut depth = 0;
        let mut outer = None;
        loop {
            let kind = match self.peek() {
                Some(b'{') => Kind::Object,
                Some(b'[') => Kind::Array,
                _ => self.scalar()?,
            };
            outer.get_or_insert(kind);
            if matches!(kind, Kind::Object | Kind::Array) {
                self.at += 1;
                depth += 1;
                // The record is level 1 and this value's own bracket level 2.
                if depth + 1 > MAX_DEPTH {
                    return Err(FaultKind::Depth);
                }
                let is_object = kind == Kind::Object;
                objects = objects << 1 | u32::from(is_object);
                self.space();
                if is_object && self.peek() != Some(b'}') {
                    self.name()?;
                    continue;
                }
                if !is_object && self.peek() != Some(b']') {
                    continue;
                }
            }
            // A value is complete: close every level that ends here.
            loop {
                if depth == 0 {
                    return outer.ok_or(FaultKind::Syntax);
                }
                self.space();
                let is_object = objects & 1 == 1;
                if self.eat(b',') {
                    self.space();
                    if is_object {
                        self.name()?;
                    }
                    break;
                }
                self.want(if is_object { b'}' } else { b']' })?;
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    fn name(&mut self) -> Result<(), FaultKind> {
        self.want(b'"')?;
        self.string()?;
        self.space();
        self.want(b':')?;
        self.space();
        Ok(())
    }

    #[inline(never)]
    fn word(&mut self, word: &[u8], kind: Kind) -> Result<Kind, FaultKind> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(kind)
        } else {
            Err(FaultKind::Syntax)
        }
    }

    fn digits(&mut self) -> Result<(), FaultKind> {
        let start = self.at;
        self.at = digits_end(self.bytes, start);
        if self.at > start { Ok(()) } else { Err(FaultKind::Syntax) }
    }

    #[inline(never)]
    fn number(&mut self) -> Result<Kind, FaultKind> {
        let minus = self.eat(b'-');
        let zero = self.eat(b'0');
        if !zero {
            self.digits()?;
        }
        let mut kind = if minus { Kind::Number } else { Kind::Integer };
        if self.eat(b'.') {
            self.digits()?;
            kind = Kind::Number;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
            kind = Kind::Number;
        }
        Ok(kind)
    }
}

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// Whether all bytes are printable ASCII without a backslash: a string of such
/// bytes ends at the next quote and means what it says.
pub(super) fn is_easy(bytes: &[u8]) -> bool {
    is_printable(bytes) && memchr(b'\\', bytes).is_none()
}

/// Whether all bytes are printable ASCII, eight at a time, four times a step.
#[inline(always)]
fn is_printable(bytes: &[u8]) -> bool {
    // Below 0x20 the subtraction borrows into the top bit; from 0x7f on, adding
    // one carries into it.
    let odd = |x: u64| (x.wrapping_sub(ONES * 0x20) | x.wrapping_add(ONES) | x) & TOPS;
    let mut seen = 0;
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for at in [0, 8, 16, 24] {
            seen |= odd(word_at(chunk, at).unwrap_or(u64::MAX));
        }
    }
    let (rest, mut at) = (chunks.remainder(), 0);
    while let Some(word) = word_at(rest, at) {
        seen |= odd(word);
        at += 8;
    }
    seen == 0 && rest[at..].iter().all(|b| (0x20..0x7f).contains(b))
}

/// The top bits of the bytes of `x` that are zero. Bits above the lowest may be
/// carries; the lowest is right.
#[inline(always)]
fn zeros(x: u64) -> u64 {
    x.wrapping_sub(ONES) & !x & TOPS
}

/// Where the first quote from `at` on stands. Strings of records are short: this
/// is less than a call of a vector search.
#[inline(always)]
fn quote_at(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(word) = word_at(bytes, at) {
        let hit = zeros(word ^ (ONES * b'"' as u64));
        if hit != 0 {
            return Some(at + hit.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes.get(at..)?.iter().position(|b| *b == b'"').map(|more| at + more)
}

/// Where the digits that start at `at` end.
#[inline(always)]
fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let value = word ^ (ONES * b'0' as u64);
        let hit = (value.wrapping_add(ONES * 0x76) | value) & TOPS;
        if hit != 0 {
            return at + hit.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Where the run that starts at `at`, without quote, backslash or control
/// character, ends.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let low = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let hit = low | zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64));
        if hit != 0 {
            return at + hit.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(b) = bytes.get(at) {
        if *b == b'"' || *b == b'\\' || *b < 0x20 {
            break;
        }
        at += 1;
    }
    at
}
