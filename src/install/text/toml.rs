//! TOML 1.0 as tables and entries that know where they stand.

mod edit;
mod names;

use std::ops::Range;

use super::{BOM, Fault, MAX_DEPTH};
pub use edit::{append_table, remove, set};
use names::Names;

/// A document: the root table first, then a table for each header, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Doc {
    /// The tables. The root table is always there.
    pub tables: Vec<Table>,
}

/// The entries below one header.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The keys of its header; none for the root table.
    pub path: Vec<String>,
    /// Whether the header is `[[path]]`: an element of an array.
    pub array: bool,
    /// From the line of the header to that of the last entry, with its end.
    /// Blank lines and comments behind that do not belong to it.
    pub span: Range<usize>,
    /// Its entries, in order.
    pub entries: Vec<Entry>,
}

/// A line `key = value`; more than one if the value has more.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, in its dotted parts.
    pub key: Vec<String>,
    /// The value.
    pub value: Item,
    /// Its lines, with the last line's end.
    pub span: Range<usize>,
    /// The text of the value.
    pub value_span: Range<usize>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A string, unescaped.
    Text(String),
    /// A whole number.
    Int(i64),
    /// `true` or `false`
    Bool(bool),
    /// A float, a date, a time, or a whole number beyond 64 bits.
    Other,
    /// An array.
    List(Vec<Item>),
    /// An inline table: keys in their dotted parts, in order.
    Map(Vec<(Vec<String>, Item)>),
}

impl Doc {
    /// The value at the end of a path, across tables, dotted keys and inline
    /// tables, but not inside of arrays.
    pub fn get(&self, path: &[&str]) -> Option<&Item> {
        let (entry, rest) = self.entry(path)?;
        entry.value.get(rest)
    }

    /// The elements of the array `[[path]]`.
    pub fn arrays(&self, path: &[&str]) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(move |t| t.array && t.path == path)
    }

    /// The tables on the way along a path, with what is left of it there. Those
    /// in an array are not on it.
    fn on_way<'d, 'p>(
        &'d self,
        path: &'p [&'p str],
    ) -> impl Iterator<Item = (&'d Table, &'p [&'p str])> {
        let arrays = self.tables.iter().filter(|t| t.array && after(path, &t.path).is_some());
        let end = arrays.map(|t| t.path.len()).min().unwrap_or(usize::MAX);
        let near = self.tables.iter().filter(move |t| t.path.len() < end);
        near.filter_map(|table| Some((table, after(path, &table.path)?)))
    }

    /// The entry on the way along a path, with what is left of it there.
    fn entry<'p>(&self, path: &'p [&'p str]) -> Option<(&Entry, &'p [&'p str])> {
        self.on_way(path).find_map(|(table, rest)| {
            table.entries.iter().find_map(|entry| Some((entry, after(rest, &entry.key)?)))
        })
    }
}

impl Item {
    fn get(&self, path: &[&str]) -> Option<&Item> {
        match self {
            item if path.is_empty() => Some(item),
            Item::Map(members) => {
                members.iter().find_map(|(key, item)| item.get(after(path, key)?))
            }
            _ => None,
        }
    }
}

/// What is left of a path behind the keys with which it begins.
fn after<'p>(path: &'p [&'p str], keys: &[String]) -> Option<&'p [&'p str]> {
    let (start, rest) = path.split_at_checked(keys.len())?;
    (keys == start).then_some(rest)
}

/// Parses a document. A byte order mark may lead.
///
/// Faults are all that TOML 1.0 forbids, names that are defined twice among
/// them, and keys or values with more than 128 levels.
pub fn parse(text: &str) -> Result<Doc, Fault> {
    let at = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let mut reader = Reader { text, at };
    let mut names = Names::default();
    let root = Table { path: Vec::new(), array: false, span: at..at, entries: Vec::new() };
    let mut doc = Doc { tables: Vec::new() };
    let (mut table, mut space) = (root, names.root());
    while reader.at < text.len() {
        let start = reader.at;
        reader.blanks();
        match reader.peek() {
            Some(b'[') => {
                let at = reader.at;
                let (path, array) = reader.header()?;
                reader.line_end()?;
                let opened = names.open(&path, array);
                space = opened.ok_or_else(|| Fault::new(text, at, "a table stands twice"))?;
                let span = start..reader.at;
                let next = Table { path, array, span, entries: Vec::new() };
                doc.tables.push(std::mem::replace(&mut table, next));
            }
            None | Some(b'\n' | b'\r' | b'#') => reader.line_end()?,
            Some(_) => {
                let at = reader.at;
                let (key, value, value_span) = reader.pair(0)?;
                reader.line_end()?;
                if !names.define(space, &key, doc.tables.len()) {
                    return Err(Fault::new(text, at, "a key stands twice"));
                }
                table.span.end = reader.at;
                let span = start..reader.at;
                table.entries.push(Entry { key, value, span, value_span });
            }
        }
    }
    doc.tables.push(table);
    Ok(doc)
}

/// A key in its parts, its value, and where the value stands.
type Pair = (Vec<String>, Item, Range<usize>);

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault::new(self.text, self.at, what))
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

    /// Takes bytes as long as they are wanted.
    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.run(|b| b == b' ' || b == b'\t');
    }

    /// Takes one line end, if one stands here.
    fn newline(&mut self) -> bool {
        self.eat("\n") || self.eat("\r\n")
    }

    fn comment(&mut self) {
        if self.eat("#") {
            self.run(|b| !is_control(b));
        }
    }

    /// Takes blanks and a comment up to the line's end, and that.
    fn line_end(&mut self) -> Result<(), Fault> {
        self.blanks();
        self.comment();
        if self.newline() || self.at == self.text.len() {
            return Ok(());
        }
        self.fault("the line should end here")
    }

    /// Takes blanks, comments and line ends.
    fn space(&mut self) {
        loop {
            self.blanks();
            self.comment();
            if !self.newline() {
                return;
            }
        }
    }

    fn header(&mut self) -> Result<(Vec<String>, bool), Fault> {
        self.at += 1;
        let array = self.eat("[");
        self.blanks();
        let path = self.key()?;
        if !self.eat(if array { "]]" } else { "]" }) {
            return self.fault("a header has no end");
        }
        Ok((path, array))
    }

    /// A key of one or more parts, and the blanks behind it.
    fn key(&mut self) -> Result<Vec<String>, Fault> {
        let mut key = Vec::new();
        loop {
            if key.len() == MAX_DEPTH {
                return self.fault("nested too deep");
            }
            key.push(match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.basic(false)?
                }
                Some(b'\'') => {
                    self.at += 1;
                    self.literal(false)?
                }
                _ => match self.run(is_bare) {
                    "" => return self.fault("a key is missing"),
                    part => part.to_string(),
                },
            });
            self.blanks();
            if !self.eat(".") {
                return Ok(key);
            }
            self.blanks();
        }
    }

    fn pair(&mut self, depth: usize) -> Result<Pair, Fault> {
        let key = self.key()?;
        if !self.eat("=") {
            return self.fault("= is missing");
        }
        self.blanks();
        let start = self.at;
        let value = self.value(depth)?;
        Ok((key, value, start..self.at))
    }

    fn value(&mut self, depth: usize) -> Result<Item, Fault> {
        match self.peek() {
            Some(b'[' | b'{') if depth == MAX_DEPTH => self.fault("nested too deep"),
            Some(b'"') => {
                let long = self.eat("\"\"\"");
                self.at += usize::from(!long);
                Ok(Item::Text(self.basic(long)?))
            }
            Some(b'\'') => {
                let long = self.eat("'''");
                self.at += usize::from(!long);
                Ok(Item::Text(self.literal(long)?))
            }
            Some(b'[') => self.list(depth),
            Some(b'{') => {
                let members = self.inline(depth)?.into_iter();
                Ok(Item::Map(members.map(|(key, value, _)| (key, value)).collect()))
            }
            _ => self.scalar(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Item, Fault> {
        let mut list = Vec::new();
        self.at += 1;
        loop {
            self.space();
            if self.eat("]") {
                return Ok(Item::List(list));
            }
            list.push(self.value(depth + 1)?);
            self.space();
            if !self.eat(",") && self.peek() != Some(b']') {
                return self.fault("a comma or ] is missing");
            }
        }
    }

    /// The members of an inline table; the reader is at its bracket.
    fn inline(&mut self, depth: usize) -> Result<Vec<Pair>, Fault> {
        let mut members = Vec::new();
        let mut names = Names::default();
        self.at += 1;
        self.blanks();
        if self.eat("}") {
            return Ok(members);
        }
        loop {
            let start = self.at;
            let pair = self.pair(depth + 1)?;
            if !names.define(names.root(), &pair.0, 0) {
                return Err(Fault::new(self.text, start, "a key stands twice"));
            }
            members.push(pair);
            self.blanks();
            if self.eat("}") {
                return Ok(members);
            }
            if !self.eat(",") {
                return self.fault("a comma or } is missing");
            }
            self.blanks();
        }
    }

    /// A string in `"`, or a long one in `"""`; the reader is behind that.
    fn basic(&mut self, long: bool) -> Result<String, Fault> {
        let mut string = String::new();
        if long {
            self.newline();
        }
        loop {
            string.push_str(self.run(|b| b != b'"' && b != b'\\' && !is_control(b)));
            match self.peek() {
                Some(b'"') if self.closes("\"", long, &mut string) => return Ok(string),
                Some(b'"') => {}
                Some(b'\\') => string.extend(self.escape(long)?),
                _ if long && self.newline() => string.push('\n'),
                Some(_) => return self.fault("a control character in a string"),
                None => return self.fault("a string has no end"),
            }
        }
    }

    /// A string in `'`, or a long one in `'''`; the reader is behind that.
    fn literal(&mut self, long: bool) -> Result<String, Fault> {
        let mut string = String::new();
        if long {
            self.newline();
        }
        loop {
            string.push_str(self.run(|b| b != b'\'' && !is_control(b)));
            match self.peek() {
                Some(b'\'') if self.closes("'", long, &mut string) => return Ok(string),
                Some(b'\'') => {}
                _ if long && self.newline() => string.push('\n'),
                Some(_) => return self.fault("a control character in a string"),
                None => return self.fault("a string has no end"),
            }
        }
    }

    /// Takes the quotes that stand here, which end the string or are part of
    /// it: a long one ends with three and may have two before those.
    fn closes(&mut self, quote: &str, long: bool, string: &mut String) -> bool {
        let mut quotes = 0;
        while quotes < if long { 5 } else { 1 } && self.eat(quote) {
            quotes += 1;
        }
        let closes = !long || quotes >= 3;
        let inside = if closes { quotes - if long { 3 } else { 1 } } else { quotes };
        string.push_str(&quote.repeat(inside));
        closes
    }

    /// The character that an escape stands for; none for an escaped line end.
    fn escape(&mut self, long: bool) -> Result<Option<char>, Fault> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            return self.fault("a string has no end");
        };
        if long && matches!(c, ' ' | '\t' | '\n' | '\r') {
            self.blanks();
            if !self.newline() {
                return Err(Fault::new(self.text, start, "no such escape"));
            }
            while {
                self.blanks();
                self.newline()
            } {}
            return Ok(None);
        }
        self.at += c.len_utf8();
        let digits = match c {
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let plain = match c {
            '"' | '\\' => Some(c),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' | 'U' => {
                let hex = self.text.get(self.at..self.at + digits);
                let hex = hex.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                hex.and_then(|hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?))
            }
            _ => None,
        };
        self.at += digits;
        plain.map_or_else(|| Err(Fault::new(self.text, start, "no such escape")), |c| Ok(Some(c)))
    }

    /// A value without quotes or brackets.
    fn scalar(&mut self) -> Result<Item, Fault> {
        let start = self.at;
        let is_part = |b: u8| is_bare(b) || b"+.:".contains(&b);
        let mut word = self.run(is_part);
        // `1979-05-27 07:32:00`
        if is_date(word) && self.peek() == Some(b' ') {
            let after = self.rest().as_bytes();
            if after.get(1).is_some_and(u8::is_ascii_digit) {
                self.at += 1;
                self.run(is_part);
                word = self.text.get(start..self.at).unwrap_or("");
            }
        }
        let item = match word {
            "true" => Some(Item::Bool(true)),
            "false" => Some(Item::Bool(false)),
            word => number(word).or_else(|| is_moment(word).then_some(Item::Other)),
        };
        item.ok_or_else(|| Fault::new(self.text, start, "a value is missing or not valid"))
    }
}

/// What no comment and no string may hold, tab apart.
fn is_control(b: u8) -> bool {
    (b < b' ' && b != b'\t') || b == 0x7f
}

/// What a key without quotes is made of.
fn is_bare(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

fn number(word: &str) -> Option<Item> {
    let radix = match word.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    if radix != 10 {
        let digits = word.get(2..).filter(|d| is_digits(d, radix))?;
        let int = i64::from_str_radix(&digits.replace('_', ""), radix);
        return Some(int.map_or(Item::Other, Item::Int));
    }
    let bare = word.strip_prefix(['+', '-']).unwrap_or(word);
    if bare == "inf" || bare == "nan" {
        return Some(Item::Other);
    }
    let (mantissa, exponent) = match bare.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (bare, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent_digits = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    let good = is_digits(whole, 10)
        && (whole == "0" || !whole.starts_with('0'))
        && [fraction, exponent_digits].into_iter().flatten().all(|d| is_digits(d, 10));
    if !good {
        return None;
    }
    if fraction.is_some() || exponent.is_some() {
        return Some(Item::Other);
    }
    Some(word.replace('_', "").parse().map_or(Item::Other, Item::Int))
}

/// Digits, with underscores only between two of them.
fn is_digits(text: &str, radix: u32) -> bool {
    text.split('_').all(|run| !run.is_empty() && run.chars().all(|c| c.is_digit(radix)))
}

/// A number of exactly so many digits.
fn fixed(text: &str, digits: usize) -> Option<u32> {
    let good = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    if good { text.parse().ok() } else { None }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |digits| parts.next().and_then(|part| fixed(part, digits));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    };
    (1..=days).contains(&day) && parts.next().is_none()
}

fn is_minutes(text: &str) -> bool {
    let Some((hours, minutes)) = text.split_once(':') else { return false };
    fixed(hours, 2).is_some_and(|h| h < 24) && fixed(minutes, 2).is_some_and(|m| m < 60)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let Some((minutes, seconds)) = clock.rsplit_once(':') else { return false };
    let digits = |f: &str| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit());
    is_minutes(minutes) && fixed(seconds, 2).is_some_and(|s| s < 60) && fraction.is_none_or(digits)
}

/// A date, a time, or both, with or without an offset.
fn is_moment(word: &str) -> bool {
    let Some((date, time)) = word.split_once(['T', 't', ' ']) else {
        return is_date(word) || is_time(word);
    };
    let local = match time.strip_suffix(['Z', 'z']) {
        Some(local) => local,
        None => match time.rsplit_once(['+', '-']) {
            Some((local, offset)) if is_minutes(offset) => local,
            Some(_) => return false,
            None => time,
        },
    };
    is_date(date) && is_time(local)
}

#[cfg(test)]
mod tests;
