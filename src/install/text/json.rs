//! JSON, JSONC and JSON5 as a tree that knows where everything stands.

mod edit;

use std::collections::HashSet;
use std::ops::Range;

pub use super::Edit;
use super::{BOM, Fault, MAX_DEPTH, Step, Value};
pub use edit::{insert, push, remove, replace, write};

/// What a file may hold beyond JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// JSON, RFC 8259.
    Strict,
    /// JSONC: `//` and `/* */` comments, commas before closing brackets.
    Comments,
    /// JSON5: that, and its strings, numbers, keys and blanks.
    Five,
}

impl Dialect {
    fn is_blank(self, c: char) -> bool {
        match c {
            ' ' | '\t' | '\n' | '\r' => true,
            '\u{85}' => false,
            BOM => self == Dialect::Five,
            c => self == Dialect::Five && c.is_whitespace(),
        }
    }

    /// Whether `c` ends a line, and with it a `//` comment.
    fn is_newline(self, c: char) -> bool {
        matches!(c, '\n' | '\r') || (self == Dialect::Five && matches!(c, '\u{2028}' | '\u{2029}'))
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its text, quotes and brackets included.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; its text is at its span.
    Number,
    /// A string, unescaped.
    Text(String),
    /// `[…]`
    List(Vec<Node>),
    /// `{…}`
    Map(Vec<Member>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key, unescaped.
    pub key: String,
    /// Its text, quotes included.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value of a key, in a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|m| m.key == key).map(|m| &m.value)
    }

    /// The value at the end of a path.
    pub fn at(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Item(item) => node.list().get(*item),
        })
    }

    /// The text, of a string.
    pub fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The elements, of a list; else none.
    pub fn list(&self) -> &[Node] {
        if let Kind::List(list) = &self.kind { list } else { &[] }
    }

    /// The members, of a map; else none.
    pub fn members(&self) -> &[Member] {
        if let Kind::Map(members) = &self.kind { members } else { &[] }
    }

    /// Which of `true` and `false` it is.
    pub fn bool(&self) -> Option<bool> {
        if let Kind::Bool(bool) = self.kind { Some(bool) } else { None }
    }

    /// The whole number that it is. `text` is the text that was parsed.
    pub fn int(&self, text: &str) -> Option<i64> {
        if self.kind != Kind::Number {
            return None;
        }
        let digits = text.get(self.span.clone())?;
        let (sign, bare) = match digits.strip_prefix('-') {
            Some(bare) => (-1, bare),
            None => (1, digits.strip_prefix('+').unwrap_or(digits)),
        };
        match bare.strip_prefix("0x").or(bare.strip_prefix("0X")) {
            Some(hex) => i64::from_str_radix(hex, 16).ok()?.checked_mul(sign),
            None => digits.parse().ok(),
        }
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }
}

/// Parses a document: one value with nothing but blanks and comments around it.
///
/// A byte order mark may lead. Text without a value is a fault, and so are a
/// key that stands twice in a map, half of a surrogate pair, a number that no
/// double holds, and more than 128 levels: readers differ on what they mean.
pub fn parse(text: &str, dialect: Dialect) -> Result<Node, Fault> {
    let at = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let mut reader = Reader { text, at, dialect };
    reader.space()?;
    let node = reader.value(0)?;
    reader.space()?;
    if reader.at < text.len() { reader.fault("more than one value") } else { Ok(node) }
}

/// What may stand between tokens.
enum Trivia {
    Blank,
    /// A `//` comment, without its line end.
    Line,
    /// A `/* */` comment.
    Block,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault::new(self.text, self.at, what))
    }

    fn five(&self) -> bool {
        self.dialect == Dialect::Five
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Takes bytes as long as they are wanted; how many they were.
    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.at - start
    }

    /// The next run of blanks or the next comment, if one stands here.
    fn trivia(&mut self) -> Result<Option<Trivia>, Fault> {
        let rest = self.rest();
        let bare = rest.trim_start_matches(|c| self.dialect.is_blank(c));
        if bare.len() < rest.len() {
            self.at += rest.len() - bare.len();
            return Ok(Some(Trivia::Blank));
        }
        if self.dialect == Dialect::Strict {
            return Ok(None);
        }
        if rest.starts_with("//") {
            self.at += rest.find(|c| self.dialect.is_newline(c)).unwrap_or(rest.len());
            return Ok(Some(Trivia::Line));
        }
        if let Some(inside) = rest.strip_prefix("/*") {
            let Some(end) = inside.find("*/") else { return self.fault("a comment has no end") };
            self.at += end + 4;
            return Ok(Some(Trivia::Block));
        }
        Ok(None)
    }

    fn space(&mut self) -> Result<(), Fault> {
        while self.trivia()?.is_some() {}
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'\'') if self.five() => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'+' | b'.' | b'I' | b'N') if self.five() => self.number()?,
            Some(b't') if self.eat("true") => Kind::Bool(true),
            Some(b'f') if self.eat("false") => Kind::Bool(false),
            Some(b'n') if self.eat("null") => Kind::Null,
            _ => return self.fault("a value is missing"),
        };
        Ok(Node { span: start..self.at, kind })
    }

    /// After an element or a member: whether another may follow.
    fn more(&mut self, close: &str, what: &'static str) -> Result<bool, Fault> {
        self.space()?;
        if self.eat(close) {
            return Ok(false);
        }
        if !self.eat(",") {
            return self.fault(what);
        }
        self.space()?;
        if self.rest().starts_with(close) && self.dialect == Dialect::Strict {
            return self.fault("a comma before a closing bracket");
        }
        Ok(!self.eat(close))
    }

    /// Takes the opening bracket; whether something stands behind it.
    fn open(&mut self, depth: usize, close: &str) -> Result<bool, Fault> {
        if depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        self.at += 1;
        self.space()?;
        Ok(!self.eat(close))
    }

    fn list(&mut self, depth: usize) -> Result<Kind, Fault> {
        let mut list = Vec::new();
        let mut more = self.open(depth, "]")?;
        while more {
            list.push(self.value(depth + 1)?);
            more = self.more("]", "a comma or ] is missing")?;
        }
        Ok(Kind::List(list))
    }

    fn map(&mut self, depth: usize) -> Result<Kind, Fault> {
        let mut members = Vec::new();
        let mut more = self.open(depth, "}")?;
        while more {
            let start = self.at;
            let key = match self.peek() {
                Some(b'"') => self.string()?,
                Some(b'\'') if self.five() => self.string()?,
                _ if self.five() => self.identifier()?,
                _ => return self.fault("a key is missing"),
            };
            let key_span = start..self.at;
            self.space()?;
            if !self.eat(":") {
                return self.fault("a colon is missing");
            }
            self.space()?;
            let value = self.value(depth + 1)?;
            members.push(Member { key, key_span, value });
            more = self.more("}", "a comma or } is missing")?;
        }
        let mut seen = HashSet::with_capacity(members.len());
        if let Some(twin) = members.iter().find(|m| !seen.insert(m.key.as_str())) {
            return Err(Fault::new(self.text, twin.key_span.start, "a key stands twice"));
        }
        Ok(Kind::Map(members))
    }

    /// A string; the reader is at its quote.
    fn string(&mut self) -> Result<String, Fault> {
        let Some(quote) = self.peek() else { return self.fault("a string is missing") };
        self.at += 1;
        let five = self.five();
        let mut string = String::new();
        loop {
            let start = self.at;
            self.run(|b| {
                b != quote && b != b'\\' && (b >= b' ' || (five && !b"\n\r".contains(&b)))
            });
            string.push_str(self.text.get(start..self.at).unwrap_or(""));
            match self.peek() {
                Some(b'\\') => string.extend(self.escape()?),
                Some(b) if b == quote => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(_) => return self.fault("a control character in a string"),
                None => return self.fault("a string has no end"),
            }
        }
    }

    /// The character that an escape stands for; none for an escaped line end.
    fn escape(&mut self) -> Result<Option<char>, Fault> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            return self.fault("a string has no end");
        };
        self.at += c.len_utf8();
        let plain = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode(start)?,
            '\r' if self.five() => {
                self.eat("\n");
                return Ok(None);
            }
            c if self.five() && self.dialect.is_newline(c) => return Ok(None),
            'v' if self.five() => '\u{b}',
            '0' if self.five() && !self.peek().is_some_and(|b| b.is_ascii_digit()) => '\0',
            'x' if self.five() => match self.hex(2).and_then(char::from_u32) {
                Some(c) => c,
                None => return Err(Fault::new(self.text, start, "\\x without two digits")),
            },
            c if self.five() && !c.is_ascii_digit() => c,
            _ => return Err(Fault::new(self.text, start, "no such escape")),
        };
        Ok(Some(plain))
    }

    /// The character of a `\u` that began at `start`.
    fn unicode(&mut self, start: usize) -> Result<char, Fault> {
        let fault = |what| Err(Fault::new(self.text, start, what));
        let no_digits = "\\u without four digits";
        let Some(high) = self.hex(4) else { return fault(no_digits) };
        let mut code = high;
        if (0xd800..0xdc00).contains(&high) && self.eat("\\u") {
            match self.hex(4) {
                Some(low @ 0xdc00..0xe000) => {
                    code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                }
                Some(_) => {}
                None => return fault(no_digits),
            }
        }
        char::from_u32(code).map_or_else(|| fault("half of a surrogate pair"), Ok)
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let hex = self.text.get(self.at..self.at + digits)?;
        self.at += digits;
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(hex, 16).ok()
    }

    /// A key without quotes, as ECMAScript 5.1 has it, but for the combining
    /// marks.
    fn identifier(&mut self) -> Result<String, Fault> {
        let mut name = String::new();
        while let Some(first) = self.rest().chars().next() {
            let start = self.at;
            self.at += first.len_utf8();
            let c = match first {
                '\\' if self.eat("u") => self.unicode(start)?,
                c => c,
            };
            let begins = matches!(c, '$' | '_') || c.is_alphabetic();
            let goes_on = c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}');
            if !begins && (name.is_empty() || !goes_on) {
                self.at = start;
                break;
            }
            name.push(c);
        }
        if name.is_empty() { self.fault("a key is missing") } else { Ok(name) }
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        let five = self.five();
        let digit = |b: u8| b.is_ascii_digit();
        if !self.eat("-") && five {
            self.eat("+");
        }
        if five && (self.eat("Infinity") || self.eat("NaN")) {
            return Ok(Kind::Number);
        }
        if five && (self.eat("0x") || self.eat("0X")) {
            return match self.run(|b| b.is_ascii_hexdigit()) {
                0 => self.fault("a digit is missing"),
                _ => Ok(Kind::Number),
            };
        }
        let zero = self.peek() == Some(b'0');
        let whole = self.run(digit);
        if zero && whole > 1 {
            return Err(Fault::new(self.text, start, "a number with a zero before it"));
        }
        let point = self.eat(".");
        let fraction = if point { self.run(digit) } else { 0 };
        let bare = (whole == 0 && (!five || fraction == 0)) || (point && fraction == 0 && !five);
        if bare || ((self.eat("e") || self.eat("E")) && !self.exponent()) {
            return self.fault("a digit is missing");
        }
        Ok(Kind::Number)
    }

    fn exponent(&mut self) -> bool {
        if !self.eat("-") {
            self.eat("+");
        }
        self.run(|b| b.is_ascii_digit()) > 0
    }
}

/// Whether a node of a text is this value; the order of keys does not matter.
pub fn same(node: &Node, value: &Value, text: &str) -> bool {
    match (value, &node.kind) {
        (Value::Text(want), Kind::Text(have)) => want == have,
        (Value::Bool(want), Kind::Bool(have)) => want == have,
        (Value::Int(want), Kind::Number) => node.int(text) == Some(*want),
        (Value::List(want), Kind::List(have)) => {
            want.len() == have.len() && want.iter().zip(have).all(|(w, h)| same(h, w, text))
        }
        (Value::Map(want), Kind::Map(have)) => {
            want.len() == have.len()
                && want.iter().all(|(key, w)| node.get(key).is_some_and(|h| same(h, w, text)))
        }
        _ => false,
    }
}

/// Puts a value at a path of keys of which none but the last, or some more at its
/// end, are missing; what is missing on the way is made.
pub fn insert_at(
    text: &str,
    dialect: Dialect,
    path: &[Step<'_>],
    mut value: Value,
) -> Result<String, Edit> {
    let root = parse(text, dialect)?;
    let mut rest = path;
    while let [above @ .., Step::Key(key)] = rest {
        if root.at(above).is_some() {
            return insert(text, dialect, above, key, &value);
        }
        value = Value::Map(vec![((*key).to_string(), value)]);
        rest = above;
    }
    Err(Edit::NoSuchPath)
}

#[cfg(test)]
mod tests;
