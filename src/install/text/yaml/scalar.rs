//! The scalars of YAML.

use super::{Fault, Kind, Node, Outer, Reader, Shape};

impl<'a> Reader<'a> {
    /// Whether a scalar without quotes begins here. In brackets readers differ
    /// on `?` and `:`.
    pub fn is_plain_start(&self, flow: bool) -> bool {
        let followed = !self.is_gap(1) && !self.byte(1).is_some_and(|b| flow && is_flow(b));
        match self.peek() {
            None | Some(b' ' | b'\t' | b'\r' | b'\n') => false,
            Some(b'-') => followed,
            Some(b'?' | b':') => followed && !flow,
            Some(b) => !b"#&*!|>'\"%@`".contains(&b) && !is_flow(b),
        }
    }

    /// What one line has of a scalar without quotes.
    pub fn plain_line(&mut self, flow: bool) -> Result<&'a str, Fault> {
        let start = self.at;
        let mut end = self.at;
        while let Some(b) = self.peek() {
            let stops = match b {
                b'\r' | b'\n' => true,
                b':' => self.is_gap(1) || (flow && self.byte(1).is_some_and(is_flow)),
                b'#' => end < self.at,
                b'?' if flow => return self.fault("a ? in brackets"),
                b => flow && is_flow(b),
            };
            if stops {
                break;
            }
            self.at += 1;
            if b != b' ' && b != b'\t' {
                end = self.at;
            }
        }
        self.at = end;
        Ok(self.text.get(start..end).unwrap_or(""))
    }

    /// A scalar without quotes outside of brackets, over lines that are indented
    /// deeper than `outer`.
    pub fn plain(&mut self, outer: Outer) -> Result<Node, Fault> {
        if !self.is_plain_start(false) {
            return self.fault("a value is missing or not valid");
        }
        let start = self.at;
        let mut text = self.plain_line(false)?.to_string();
        loop {
            let (end, line) = (self.at, self.line);
            let next = self.continues(outer)?;
            let Some(empty) = next.filter(|_| self.peek() != Some(b'#')) else {
                (self.at, self.line) = (end, line);
                return Ok(self.finish_plain(start, text));
            };
            fold(&mut text, empty);
            text.push_str(self.plain_line(false)?);
        }
    }

    /// Goes to the text of the next line that has any, if that is deeper than
    /// `outer`, and gives the number of empty lines before it.
    fn continues(&mut self, outer: Outer) -> Result<Option<usize>, Fault> {
        self.blanks();
        if !self.newline() {
            self.no_colon()?;
            return Ok(None);
        }
        let mut empty = 0;
        loop {
            while self.peek() == Some(b' ') {
                self.at += 1;
            }
            let column = self.at - self.line;
            let tab = self.blanks();
            if self.newline() {
                empty += 1;
                continue;
            }
            if self.at == self.text.len() || self.is_marker() {
                return Ok(None);
            }
            if outer.is_some_and(|outer| column <= outer) {
                return Ok(None);
            }
            if tab && self.peek() != Some(b'#') {
                return self.fault("a tab in the indentation");
            }
            return Ok(Some(empty));
        }
    }

    /// A fault where a colon makes a key of what is none.
    fn no_colon(&self) -> Result<(), Fault> {
        if self.peek() == Some(b':') { self.fault("a key cannot stand here") } else { Ok(()) }
    }

    fn finish_plain(&self, start: usize, text: String) -> Node {
        Node::new(start..self.at, kind_of(text), Shape::Scalar)
    }

    /// A scalar without quotes in brackets.
    pub fn flow_plain(&mut self) -> Result<Node, Fault> {
        if !self.is_plain_start(true) {
            return self.fault("a value is missing or not valid");
        }
        let start = self.at;
        let mut text = self.plain_line(true)?.to_string();
        loop {
            let (end, line) = (self.at, self.line);
            self.blanks();
            let mut empty = 0;
            let mut lines = 0;
            while self.newline() {
                lines += 1;
                empty = lines - 1;
                self.blanks();
            }
            let ends =
                self.at == self.text.len() || self.peek().is_some_and(|b| is_flow(b) || b == b'#');
            if lines == 0 || ends || self.is_marker() {
                (self.at, self.line) = (end, line);
                return Ok(self.finish_plain(start, text));
            }
            self.no_colon()?;
            fold(&mut text, empty);
            text.push_str(self.plain_line(true)?);
        }
    }

    /// A scalar in quotes. Lines that it goes on in are indented deeper than
    /// `outer`.
    pub fn quoted(&mut self, outer: Outer) -> Result<String, Fault> {
        let Some(quote) = self.peek() else { return self.fault("a string is missing") };
        self.at += 1;
        let mut text = String::new();
        // What an escape gave is not trimmed.
        let mut kept = 0;
        loop {
            let start = self.at;
            while self.peek().is_some_and(|b| b != quote && !b"\\\r\n".contains(&b)) {
                self.at += 1;
            }
            text.push_str(self.text.get(start..self.at).unwrap_or(""));
            match self.peek() {
                None => return self.fault("a string has no end"),
                Some(b'\\') if quote == b'\'' => {
                    self.at += 1;
                    text.push('\\');
                }
                Some(b'\\') => {
                    match self.escape()? {
                        Some(c) => text.push(c),
                        None => {
                            let empty = self.next_line(outer)?;
                            text.push_str(&"\n".repeat(empty));
                        }
                    }
                    kept = text.len();
                }
                Some(b) if b == quote => {
                    self.at += 1;
                    if b == b'"' || self.peek() != Some(b'\'') {
                        return Ok(text);
                    }
                    self.at += 1;
                    text.push('\'');
                }
                Some(_) => {
                    let bare = text.trim_end_matches([' ', '\t']).len();
                    text.truncate(bare.max(kept));
                    let empty = self.next_line(outer)?;
                    fold(&mut text, empty);
                    kept = text.len();
                }
            }
        }
    }

    /// In a quoted scalar, goes from a line's end to the text of the next line
    /// that has any, and gives the number of empty lines before it.
    fn next_line(&mut self, outer: Outer) -> Result<usize, Fault> {
        let mut lines: usize = 0;
        while self.newline() {
            lines += 1;
            while self.peek() == Some(b' ') {
                self.at += 1;
            }
            let column = self.at - self.line;
            let marker = self.is_marker();
            self.blanks();
            let blank = self.is_line_end();
            if marker || (!blank && outer.is_some_and(|outer| column <= outer)) {
                return self.fault("a string goes on without indentation");
            }
        }
        Ok(lines.saturating_sub(1))
    }

    /// What an escape stands for; `None` for one at the line's end, where the
    /// reader is then.
    fn escape(&mut self) -> Result<Option<char>, Fault> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            return self.fault("a string has no end");
        };
        if matches!(c, '\r' | '\n') {
            return Ok(None);
        }
        self.at += c.len_utf8();
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let plain = match c {
            '0' => Some('\0'),
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            't' | '\t' => Some('\t'),
            'n' => Some('\n'),
            'v' => Some('\u{b}'),
            'f' => Some('\u{c}'),
            'r' => Some('\r'),
            'e' => Some('\u{1b}'),
            ' ' | '"' | '/' | '\\' => Some(c),
            'N' => Some('\u{85}'),
            '_' => Some('\u{a0}'),
            'L' => Some('\u{2028}'),
            'P' => Some('\u{2029}'),
            'x' | 'u' | 'U' => {
                let hex = self.text.get(self.at..self.at + digits);
                let hex = hex.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                hex.and_then(|hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?))
            }
            _ => None,
        };
        self.at += digits;
        plain.map_or_else(|| Err(Fault::new(self.text, start, "no such escape")), |c| Ok(Some(c)))
    }

    /// A scalar behind `|` or `>`, with all its lines.
    pub fn block_scalar(&mut self, outer: Outer) -> Result<Node, Fault> {
        let start = self.at;
        let Some(outer) = outer else { return self.fault("a block scalar without a collection") };
        let folded = self.peek() == Some(b'>');
        self.at += 1;
        let (mut chomp, mut given) = (None, None);
        loop {
            match self.peek() {
                Some(sign @ (b'+' | b'-')) if chomp.is_none() => chomp = Some(sign),
                Some(digit @ b'1'..=b'9') if given.is_none() => {
                    given = Some(usize::from(digit - b'0'))
                }
                _ => break,
            }
            self.at += 1;
        }
        let mut end = self.at;
        self.trail()?;

        let mut indent = given.map(|given| outer + given);
        let mut text = String::new();
        // Empty lines since the last text, and the spaces of the widest.
        let (mut empty, mut widest) = (0, 0);
        // Whether the last text folds with the next; `None` before the first.
        let mut before = None;
        let mut ended = false;
        while self.at < self.text.len() {
            let line = self.rest().lines().next().unwrap_or("");
            let spaces = line.len() - line.trim_start_matches(' ').len();
            let line_end = self.at + line.len();
            let newline = line_end < self.text.len();
            if spaces == line.len() && indent.is_none_or(|indent| spaces <= indent) {
                empty += usize::from(newline);
                widest = widest.max(spaces);
                if chomp == Some(b'+') {
                    end = line_end;
                }
            } else {
                let indent = *indent.get_or_insert(spaces);
                if indent <= outer || spaces < indent {
                    break;
                }
                if widest > indent {
                    return self.fault("an empty line before it is indented deeper");
                }
                let content = line.get(indent..).unwrap_or("");
                let folds = folded && !content.starts_with([' ', '\t']);
                match before {
                    Some(true) if folds => fold(&mut text, empty),
                    Some(_) => text.push_str(&"\n".repeat(empty + 1)),
                    None => text.push_str(&"\n".repeat(empty)),
                }
                text.push_str(content);
                before = Some(folds);
                (empty, widest) = (0, 0);
                (end, ended) = (line_end, newline);
            }
            self.skip_line();
        }
        if chomp != Some(b'-') && ended {
            text.push('\n');
        }
        if chomp == Some(b'+') {
            text.push_str(&"\n".repeat(empty));
        }
        Ok(Node::new(start..end, Kind::Text(text), Shape::Scalar))
    }
}

/// What a scalar without quotes is, if YAML 1.1 and 1.2 agree; else `Other`.
pub fn kind_of(text: String) -> Kind {
    let low = text.to_ascii_lowercase();
    if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Kind::Null;
    }
    let bare = low.strip_prefix(['+', '-']).unwrap_or(&low);
    let word = matches!(
        bare,
        "true"
            | "false"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "y"
            | "n"
            | "null"
            | ".inf"
            | ".nan"
            | "="
            | "<<"
    );
    // Numbers in all their forms, sexagesimal ones among them, dates and times.
    let numeric = low.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && low.contains(|c: char| c.is_ascii_digit())
        && low.chars().all(|c| c.is_ascii_hexdigit() || "xotz_+-.: \t".contains(c));
    if word || numeric { Kind::Other } else { Kind::Text(text) }
}

fn is_flow(b: u8) -> bool {
    b",[]{}".contains(&b)
}

/// Joins two lines with so many empty ones between them.
fn fold(text: &mut String, empty: usize) {
    if empty == 0 {
        text.push(' ');
    }
    text.push_str(&"\n".repeat(empty));
}
