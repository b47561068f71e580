//! A JSON string as it stands in a record: raw bytes between the quotes, known
//! to be well formed, read without allocating.

/// The inside of a well-formed JSON string.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Valid UTF-8, as the whole record is; turned into text where it is asked
    /// for, because that costs another look at every byte.
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    /// No text.
    pub const EMPTY: Text<'static> = Text { raw: b"", escaped: false };

    /// Wraps what stands between the quotes of a string that was already
    /// checked to be well formed; `escaped` says that it holds a backslash.
    pub(crate) fn new(raw: &'a [u8], escaped: bool) -> Text<'a> {
        Text { raw, escaped }
    }

    /// The bytes between the quotes, escapes and all.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    fn as_str(&self) -> &'a str {
        core::str::from_utf8(self.raw).unwrap_or("")
    }

    /// Whether a backslash stands between the quotes.
    pub fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// The text itself where it holds no escape, so that it can be borrowed.
    pub fn plain(&self) -> Option<&'a str> {
        (!self.escaped).then(|| self.as_str())
    }

    /// Whether nothing stands between the quotes.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The text's characters, unescaped.
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.as_str().chars() }
    }

    /// The text's length in UTF-8 bytes, unescaped.
    pub fn len(&self) -> usize {
        if self.escaped { self.chars().map(char::len_utf8).sum() } else { self.raw.len() }
    }

    /// Whether the text holds a NUL, which only an escape can bring in.
    pub fn has_nul(&self) -> bool {
        self.escaped && self.chars().any(|c| c == '\0')
    }

    /// Whether the text equals `other`.
    pub fn is(&self, other: &str) -> bool {
        if self.escaped {
            self.chars().eq(other.chars())
        } else {
            same_bytes(self.raw, other.as_bytes())
        }
    }

    /// Whether two texts are the same after unescaping.
    pub fn same(&self, other: Text<'_>) -> bool {
        if self.escaped || other.escaped {
            self.chars().eq(other.chars())
        } else {
            same_bytes(self.raw, other.raw)
        }
    }

    /// Copies the unescaped text into `buffer`; `None` when it does not fit.
    pub fn copy<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b str> {
        let mut len = 0;
        for c in self.chars() {
            let end = len + c.len_utf8();
            c.encode_utf8(buffer.get_mut(len..end)?);
            len = end;
        }
        core::str::from_utf8(&buffer[..len]).ok()
    }
}

/// Whether two short byte strings are equal, eight bytes at a time: the C
/// library's comparison of a static build goes byte by byte.
#[inline(always)]
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while let (Some(x), Some(y)) = (word_at(a, at), word_at(b, at)) {
        if x != y {
            return false;
        }
        at += 8;
    }
    // The last word overlaps with the one before; shorter strings have none.
    match a.len().checked_sub(8) {
        Some(last) => word_at(a, last) == word_at(b, last),
        None => a.iter().zip(b).all(|(x, y)| x == y),
    }
}

/// Eight bytes as a word, the first one lowest; `None` where fewer are left.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// The longest start of `text` within `max` bytes that ends at a character.
pub fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl core::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.chars().try_for_each(|c| core::fmt::Write::write_char(f, c))
    }
}

/// The characters of a [`Text`]; a surrogate pair is one character.
#[derive(Clone)]
pub struct Chars<'a> {
    rest: core::str::Chars<'a>,
}

impl Chars<'_> {
    fn hex4(&mut self) -> u32 {
        (0..4).fold(0, |value, _| {
            value * 16 + self.rest.next().and_then(|c| c.to_digit(16)).unwrap_or(0)
        })
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c != '\\' {
            return Some(c);
        }
        Some(match self.rest.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut code = self.hex4();
                if (0xd800..0xdc00).contains(&code) {
                    // The scanner saw the pair's other half: `\uDC00`..`\uDFFF`.
                    self.rest.next();
                    self.rest.next();
                    let low = self.hex4();
                    code = 0x10000 + ((code - 0xd800) << 10) + (low & 0x3ff);
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => other,
        })
    }
}
