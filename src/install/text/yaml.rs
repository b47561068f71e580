//! YAML as a tree that knows where everything stands: as much of YAML 1.2 as
//! configuration files have. What it does not know, and what readers of YAML 1.1
//! and 1.2 read differently, is a fault.

mod edit;
mod scalar;

use std::collections::HashSet;
use std::ops::Range;

pub use super::Edit;
use super::{BOM, Fault, MAX_DEPTH, Step};
pub use edit::{prune, push, put, remove, set_text};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its text, without what follows on its last line. Empty behind the colon
    /// or dash of a value that is not written.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
    shape: Shape,
    /// The start of each item's dash or each member's key.
    starts: Vec<usize>,
    /// Where the colon or dash before it ends.
    lead: usize,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// What every reader takes for a string.
    Text(String),
    /// A mapping. Keys that are no strings are as they are written.
    Map(Vec<(String, Node)>),
    /// A sequence.
    List(Vec<Node>),
    /// `null`, `~` or nothing.
    Null,
    /// A number, a boolean, a date, an alias; anything with a tag.
    Other,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// A collection by indentation, at this column.
    Block(usize),
    /// A collection in brackets.
    Flow,
    /// With an anchor or a tag, or an alias: more than this place depends on it.
    Fixed,
    Scalar,
}

impl Node {
    fn new(span: Range<usize>, kind: Kind, shape: Shape) -> Node {
        Node { lead: span.start, span, kind, shape, starts: Vec::new() }
    }

    fn null(at: usize) -> Node {
        Node::new(at..at, Kind::Null, Shape::Scalar)
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[Step<'_>]) -> Option<&Node> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Item(_) => None,
        })
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The items of a sequence; else none.
    pub fn list(&self) -> &[Node] {
        if let Kind::List(list) = &self.kind { list } else { &[] }
    }

    /// The members of a mapping; else none.
    fn members(&self) -> &[(String, Node)] {
        if let Kind::Map(members) = &self.kind { members } else { &[] }
    }

    /// The items of a sequence, or the values of a mapping.
    fn values(&self) -> impl Iterator<Item = &Node> {
        self.list().iter().chain(self.members().iter().map(|(_, node)| node))
    }
}

/// Parses a file with one document. A text without a value is null.
///
/// A byte order mark may lead. Faults are, beyond what is not YAML: a second
/// document, directives, `? ` keys, keys that are no scalars, a key that stands
/// twice, tabs in the indentation, characters that YAML 1.1 takes for line ends,
/// and more than 128 levels.
pub fn parse(text: &str) -> Result<Node, Fault> {
    let at = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    check_characters(text, at)?;
    let mut reader = Reader { text, at, line: at };
    if reader.ahead()?.is_none() && reader.eat("---") {
        reader.trail()?;
    }
    let node = match reader.ahead()? {
        Some(_) => reader.node(None, true, true, 0)?,
        None => Node::null(reader.at),
    };
    let more = reader.ahead()?.is_some();
    if !more && reader.eat("...") {
        reader.trail()?;
        if reader.ahead()?.is_none() && reader.at == text.len() {
            return Ok(node);
        }
    }
    if reader.at < text.len() {
        return reader.fault(if more {
            "not indented as it should be"
        } else {
            "more than one document"
        });
    }
    Ok(node)
}

/// A fault for the first character that YAML does not allow or not every reader
/// takes for the same.
fn check_characters(text: &str, start: usize) -> Result<(), Fault> {
    let mut chars = text.char_indices().skip_while(|(at, _)| *at < start).peekable();
    while let Some((at, c)) = chars.next() {
        let good = match c {
            '\r' => chars.peek().is_some_and(|(_, next)| *next == '\n'),
            '\t' | '\n' | ' '..='~' => true,
            '\u{2028}' | '\u{2029}' | BOM | '\u{fffe}' | '\u{ffff}' => false,
            c => c >= '\u{a0}',
        };
        if !good {
            return Err(Fault::new(text, at, "a character that cannot stand here"));
        }
    }
    Ok(())
}

/// Most bytes of a key, which has one line. YAML allows 1024 characters.
const MAX_KEY: usize = 1000;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Where the line began.
    line: usize,
}

/// The indentation that a value has to exceed; `None` for the root.
type Outer = Option<usize>;

impl<'a> Reader<'a> {
    fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault::new(self.text, self.at, what))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn peek(&self) -> Option<u8> {
        self.byte(0)
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Whether a blank, a line end or the end stands so many bytes ahead.
    fn is_gap(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
    }

    fn is_line_end(&self) -> bool {
        matches!(self.peek(), None | Some(b'\r' | b'\n'))
    }

    fn is_dash(&self) -> bool {
        self.peek() == Some(b'-') && self.is_gap(1)
    }

    fn is_comment(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at));
        let apart = self.at == self.line || matches!(before, Some(b' ' | b'\t'));
        apart && self.peek() == Some(b'#')
    }

    /// Whether `---` or `...` stands at the start of the line.
    fn is_marker(&self) -> bool {
        let word = self.rest().starts_with("---") || self.rest().starts_with("...");
        self.at == self.line && word && self.is_gap(3)
    }

    /// Takes blanks; whether there were any.
    fn blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    fn newline(&mut self) -> bool {
        let found = self.eat("\n") || self.eat("\r\n");
        if found {
            self.line = self.at;
        }
        found
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
        self.newline();
    }

    /// Takes what may follow a value on its line: blanks, a comment, the end.
    fn trail(&mut self) -> Result<(), Fault> {
        self.blanks();
        if !self.is_line_end() && !self.is_comment() {
            return self.fault("the line should end here");
        }
        self.skip_line();
        Ok(())
    }

    /// Goes to the next token, which is the first of its line, and gives its
    /// column; `None` at the end of the document.
    fn ahead(&mut self) -> Result<Option<usize>, Fault> {
        loop {
            while self.peek() == Some(b' ') {
                self.at += 1;
            }
            let column = self.at - self.line;
            let start = self.at;
            let tab = self.blanks();
            match self.peek() {
                None => return Ok(None),
                Some(b'#' | b'\r' | b'\n') => self.skip_line(),
                Some(_) if tab => {
                    self.at = start;
                    return self.fault("a tab in the indentation");
                }
                Some(_) if self.is_marker() => return Ok(None),
                Some(_) => return Ok(Some(column)),
            }
        }
    }

    /// A value that begins here. `collections`: whether it may be a block
    /// collection. `level`: whether a sequence may stand at the outer column.
    fn node(
        &mut self,
        outer: Outer,
        collections: bool,
        level: bool,
        depth: usize,
    ) -> Result<Node, Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'&' | b'!') => return self.with_properties(outer, level, depth),
            Some(b'-') if self.is_gap(1) && collections => return self.sequence(depth),
            Some(b'?') if self.is_gap(1) => return self.fault("a ? key"),
            _ => {}
        }
        if collections && self.is_key()? {
            return self.mapping(depth);
        }
        let node = match self.peek() {
            Some(b'[' | b'{') => self.flow(depth)?,
            Some(b'*') => self.alias()?,
            Some(b'|' | b'>') => return self.block_scalar(outer),
            Some(b'"' | b'\'') => {
                let text = self.quoted(outer)?;
                Node::new(start..self.at, Kind::Text(text), Shape::Scalar)
            }
            _ => self.plain(outer)?,
        };
        self.trail()?;
        Ok(node)
    }

    /// What stands behind a dash or a colon, there or on the next lines.
    fn value(
        &mut self,
        outer: Outer,
        collections: bool,
        level: bool,
        depth: usize,
    ) -> Result<Node, Fault> {
        let lead = self.at;
        self.blanks();
        let mut node = if !self.is_line_end() && !self.is_comment() {
            let tab = self.text.get(lead..self.at).is_some_and(|t| t.contains('\t'));
            if collections && tab {
                return self.fault("a tab in the indentation");
            }
            self.node(outer, collections, level, depth)?
        } else {
            self.trail()?;
            match self.ahead()? {
                Some(column) if outer.is_none_or(|outer| column > outer) => {
                    self.node(outer, true, false, depth)?
                }
                Some(column) if level && Some(column) == outer && self.is_dash() => {
                    self.sequence(depth)?
                }
                _ => Node::null(lead),
            }
        };
        node.lead = lead;
        Ok(node)
    }

    /// A value behind an anchor, a tag or both.
    fn with_properties(&mut self, outer: Outer, level: bool, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        if depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        let mut tagged = false;
        while let Some(sign @ (b'&' | b'!')) = self.peek() {
            tagged |= sign == b'!';
            self.at += 1;
            self.name();
            if !self.is_gap(0) {
                return self.fault("a blank is missing");
            }
            let end = self.at;
            self.blanks();
            if self.is_line_end() || self.is_comment() {
                self.at = end;
                break;
            }
        }
        if self.is_dash() || self.is_key()? {
            return self.fault("an anchor or a tag before a key or a dash");
        }
        let mut node = self.value(outer, false, level, depth + 1)?;
        if tagged {
            node.kind = Kind::Other;
        }
        node.shape = Shape::Fixed;
        node.span = start..node.span.end;
        Ok(node)
    }

    /// Takes the name of an anchor, an alias or a tag.
    fn name(&mut self) {
        while !self.is_gap(0) && !self.peek().is_some_and(|b| b",[]{}".contains(&b)) {
            self.at += 1;
        }
    }

    fn alias(&mut self) -> Result<Node, Fault> {
        let start = self.at;
        self.at += 1;
        self.name();
        if self.at == start + 1 {
            return self.fault("an alias without a name");
        }
        Ok(Node::new(start..self.at, Kind::Other, Shape::Fixed))
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, Fault> {
        let (start, column) = (self.at, self.at - self.line);
        let (mut list, mut starts) = (Vec::new(), Vec::new());
        if depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        loop {
            starts.push(self.at);
            self.at += 1;
            list.push(self.value(Some(column), true, false, depth + 1)?);
            match self.ahead()? {
                Some(next) if next == column && self.is_dash() => {}
                Some(next) if next > column => return self.fault("not indented as it should be"),
                _ => break,
            }
        }
        let end = list.last().map_or(start, |node| node.span.end);
        Ok(Node { starts, ..Node::new(start..end, Kind::List(list), Shape::Block(column)) })
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, Fault> {
        let (start, column) = (self.at, self.at - self.line);
        let (mut members, mut starts) = (Vec::new(), Vec::new());
        if depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        loop {
            starts.push(self.at);
            let key = self.key()?;
            self.blanks();
            if self.peek() != Some(b':') || !self.is_gap(1) {
                return self.fault("a colon is missing");
            }
            self.at += 1;
            members.push((key, self.value(Some(column), false, true, depth + 1)?));
            match self.ahead()? {
                Some(next) if next == column && !self.is_dash() => {}
                Some(next) if next >= column => return self.fault("not indented as it should be"),
                _ => break,
            }
        }
        check_keys(self.text, &members, &starts)?;
        let end = members.last().map_or(start, |(_, node)| node.span.end);
        Ok(Node { starts, ..Node::new(start..end, Kind::Map(members), Shape::Block(column)) })
    }

    /// Whether a key and its colon stand here.
    fn is_key(&mut self) -> Result<bool, Fault> {
        let (start, line) = (self.at, self.line);
        match self.peek() {
            Some(b'"' | b'\'') => drop(self.quoted(None)?),
            _ if self.is_plain_start(false) => drop(self.plain_line(false)?),
            _ => return Ok(false),
        }
        self.blanks();
        let colon = self.peek() == Some(b':') && self.is_gap(1);
        (self.at, self.line) = (start, line);
        Ok(colon)
    }

    fn key(&mut self) -> Result<String, Fault> {
        let (start, line) = (self.at, self.line);
        let key = match self.peek() {
            Some(b'"' | b'\'') => self.quoted(None)?,
            Some(b'?') if self.is_gap(1) => return self.fault("a ? key"),
            _ if !self.is_plain_start(false) => return self.fault("a key is missing"),
            _ => self.plain_line(false)?.to_string(),
        };
        if self.line != line || self.at - start > MAX_KEY {
            return Err(Fault::new(self.text, start, "a key that is too long"));
        }
        Ok(key)
    }

    /// A collection in brackets.
    fn flow(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        if depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        let map = self.eat("{");
        let close = if map { "}" } else { "]" };
        self.at += usize::from(!map);
        let (mut list, mut members, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        self.flow_space()?;
        while !self.eat(close) {
            starts.push(self.at);
            let first = self.at;
            let quoted = matches!(self.peek(), Some(b'"' | b'\''));
            let node = self.flow_node(depth)?;
            let end = self.at;
            self.blanks();
            let colon = self.peek() == Some(b':')
                && (quoted
                    || self.is_gap(1)
                    || self.byte(1).is_some_and(|b| b",[]{}".contains(&b)));
            let mut value = Node::null(end);
            if colon {
                self.at += 1;
                self.flow_space()?;
                if !matches!(self.peek(), Some(b',' | b']' | b'}')) {
                    value = self.flow_node(depth)?;
                }
            }
            if map || colon {
                let key = match (&node.kind, node.shape) {
                    (Kind::Text(key), _) => key.clone(),
                    (_, Shape::Scalar) => {
                        self.text.get(node.span.clone()).unwrap_or("").to_string()
                    }
                    _ => return Err(Fault::new(self.text, first, "a key that is no scalar")),
                };
                let written = self.text.get(first..end).unwrap_or("");
                if written.contains('\n') || written.len() > MAX_KEY {
                    return Err(Fault::new(self.text, first, "a key that is too long"));
                }
                if map {
                    members.push((key, value));
                } else {
                    let span = node.span.start..value.span.end;
                    list.push(Node::new(span, Kind::Map(vec![(key, value)]), Shape::Flow));
                }
            } else {
                list.push(node);
            }
            self.flow_space()?;
            if !self.eat(",") && !self.rest().starts_with(close) {
                return self.fault("a comma or a closing bracket is missing");
            }
            self.flow_space()?;
        }
        check_keys(self.text, &members, &starts)?;
        let kind = if map { Kind::Map(members) } else { Kind::List(list) };
        Ok(Node { starts, ..Node::new(start..self.at, kind, Shape::Flow) })
    }

    fn flow_node(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        let mut fixed = None;
        while let Some(sign @ (b'&' | b'!')) = self.peek() {
            fixed = Some(fixed == Some(true) || sign == b'!');
            self.at += 1;
            self.name();
            if !self.is_gap(0) {
                return self.fault("a blank is missing");
            }
            self.flow_space()?;
        }
        let mut node = match self.peek() {
            Some(b'[' | b'{') => self.flow(depth + 1)?,
            Some(b'*') => self.alias()?,
            Some(b'"' | b'\'') => {
                let start = self.at;
                let text = self.quoted(None)?;
                Node::new(start..self.at, Kind::Text(text), Shape::Scalar)
            }
            _ => self.flow_plain()?,
        };
        if let Some(tagged) = fixed {
            if tagged {
                node.kind = Kind::Other;
            }
            node.shape = Shape::Fixed;
            node.span.start = start;
        }
        Ok(node)
    }

    /// Takes blanks, line ends and comments in brackets.
    fn flow_space(&mut self) -> Result<(), Fault> {
        loop {
            self.blanks();
            if self.is_comment() {
                self.skip_line();
            } else if !self.newline() {
                return Ok(());
            }
            if self.is_marker() {
                return self.fault("a bracket is not closed");
            }
        }
    }
}

fn check_keys(text: &str, members: &[(String, Node)], starts: &[usize]) -> Result<(), Fault> {
    let mut seen = HashSet::with_capacity(members.len());
    match members.iter().zip(starts).find(|((key, _), _)| !seen.insert(key.as_str())) {
        Some((_, start)) => Err(Fault::new(text, *start, "a key stands twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
