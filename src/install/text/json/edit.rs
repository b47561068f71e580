//! The edits of JSON: what to put in and to take out, so that each undoes the
//! other to the byte.

use std::ops::Range;

use super::super::{Edit, Fault, MAX_DEPTH, Step, Value, line_end, quoted, splice};
use super::{BOM, Dialect, Kind, Member, Node, Reader, Trivia, parse};

/// How a document is written.
struct Style<'a> {
    eol: &'static str,
    /// One level of indentation.
    unit: &'a str,
    /// After a colon, and after a comma that does not end its line.
    pad: &'static str,
    /// The whole document stands on one line.
    one_line: bool,
}

const PLAIN: Style = Style { eol: "\n", unit: "  ", pad: " ", one_line: false };

impl<'a> Style<'a> {
    fn of(text: &'a str, dialect: Dialect, root: &Node) -> Style<'a> {
        let tight = match first_member(root) {
            Some(member) => text.get(..member.value.span.start).is_some_and(|t| t.ends_with(':')),
            None => false,
        };
        let body = text.trim_matches(|c| c == BOM || dialect.is_blank(c));
        let empty = root.list().is_empty() && root.members().is_empty();
        Style {
            eol: line_end(text),
            unit: unit(text, dialect, root).unwrap_or(PLAIN.unit),
            pad: if tight { "" } else { PLAIN.pad },
            one_line: !empty && !body.contains(|c| dialect.is_newline(c)),
        }
    }

    /// Appends a value whose first line is indented by `indent`.
    fn put(&self, out: &mut String, value: &Value, indent: &str) {
        match value {
            Value::Text(text) => out.push_str(&quoted(text)),
            Value::Int(int) => out.push_str(&int.to_string()),
            Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
            Value::List(list) => {
                self.put_all(out, ["[", "]"], indent, list, |out, value, indent| {
                    self.put(out, value, indent);
                });
            }
            Value::Map(members) => {
                self.put_all(out, ["{", "}"], indent, members, |out, (key, value), indent| {
                    self.put_member(out, key, value, indent);
                });
            }
        }
    }

    fn put_member(&self, out: &mut String, key: &str, value: &Value, indent: &str) {
        out.extend([&quoted(key), ":", self.pad]);
        self.put(out, value, indent);
    }

    fn put_all<T>(
        &self,
        out: &mut String,
        [open, close]: [&str; 2],
        indent: &str,
        all: &[T],
        put: impl Fn(&mut String, &T, &str),
    ) {
        out.push_str(open);
        let deeper = [indent, self.unit].concat();
        for (n, one) in all.iter().enumerate() {
            match (n, self.one_line) {
                (0, true) => {}
                (0, false) => out.extend([self.eol, &deeper]),
                (_, true) => out.extend([",", self.pad]),
                (_, false) => out.extend([",", self.eol, &deeper]),
            }
            put(out, one, &deeper);
        }
        if !all.is_empty() && !self.one_line {
            out.extend([self.eol, indent]);
        }
        out.push_str(close);
    }
}

fn first_member(node: &Node) -> Option<&Member> {
    node.members().first().or_else(|| node.list().iter().find_map(first_member))
}

/// One level of indentation, by the first entry that begins a line.
fn unit<'a>(text: &'a str, dialect: Dialect, node: &Node) -> Option<&'a str> {
    let spans = entries(node);
    if let Some(own) = spans.first().and_then(|span| indent(text, dialect, span.start)) {
        let outer = indent_around(text, dialect, node.span.start);
        return own.strip_prefix(outer).filter(|unit| !unit.is_empty());
    }
    match &node.kind {
        Kind::List(list) => list.iter().find_map(|node| unit(text, dialect, node)),
        Kind::Map(members) => members.iter().find_map(|m| unit(text, dialect, &m.value)),
        _ => None,
    }
}

/// Where the elements or members of a container stand.
fn entries(node: &Node) -> Vec<Range<usize>> {
    let list = node.list().iter().map(|node| node.span.clone());
    let members = node.members().iter().map(|m| m.key_span.start..m.value.span.end);
    list.chain(members).collect()
}

/// What stands before `at` on its line, if that is blank; `None` when something
/// else stands there.
fn indent(text: &str, dialect: Dialect, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = before.trim_end_matches(|c| dialect.is_blank(c) && !dialect.is_newline(c));
    let begins = line.is_empty() || line.ends_with(|c| dialect.is_newline(c));
    if begins { before.get(line.len()..) } else { None }
}

/// The blanks that lead the line on which `at` stands.
fn indent_around(text: &str, dialect: Dialect, at: usize) -> &str {
    let before = text.get(..at).unwrap_or("").trim_start_matches(BOM);
    let line = before.rsplit(|c| dialect.is_newline(c)).next().unwrap_or("");
    let bare = line.trim_start_matches(|c| dialect.is_blank(c));
    line.get(..line.len() - bare.len()).unwrap_or("")
}

/// Where the line end begins that ends before `start`.
fn before_newline(text: &str, start: usize) -> usize {
    let before = text.get(..start).unwrap_or("");
    let newline = before.strip_suffix("\r\n").or_else(|| {
        let last = before.chars().next_back()?;
        before.strip_suffix(last)
    });
    newline.map_or(0, str::len)
}

/// Where the line end ends that begins at `at`.
fn after_newline(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    let long = rest.starts_with("\r\n").then_some(2);
    at + long.or_else(|| rest.chars().next().map(char::len_utf8)).unwrap_or(0)
}

/// What stands between two entries, or between an entry and a bracket.
#[derive(Default)]
struct Gap {
    comma: Option<usize>,
    /// Spans of comments, a line's without its end.
    comments: Vec<Range<usize>>,
    /// Whether the last comment is one that ends with its line.
    line_last: bool,
    /// Whether a line ends in it, outside of comments.
    breaks: bool,
}

impl Gap {
    fn scan(text: &str, dialect: Dialect, span: Range<usize>) -> Gap {
        let mut gap = Gap::default();
        let text = text.get(..span.end).unwrap_or("");
        let mut reader = Reader { text, at: span.start, dialect };
        loop {
            let start = reader.at;
            match reader.trivia() {
                Ok(Some(Trivia::Blank)) => {
                    let blank = text.get(start..reader.at).unwrap_or("");
                    gap.breaks |= blank.contains(|c| dialect.is_newline(c));
                }
                Ok(Some(comment)) => {
                    gap.comments.push(start..reader.at);
                    gap.line_last = matches!(comment, Trivia::Line);
                }
                _ if reader.eat(",") => gap.comma = Some(start),
                _ => return gap,
            }
        }
    }
}

/// A container and the text that it stands in.
struct Place<'a> {
    text: &'a str,
    dialect: Dialect,
    style: Style<'a>,
    /// Between its brackets.
    inside: Range<usize>,
    entries: Vec<Range<usize>>,
}

impl<'a> Place<'a> {
    fn new(text: &'a str, dialect: Dialect, root: &Node, node: &Node) -> Place<'a> {
        Place {
            text,
            dialect,
            style: Style::of(text, dialect, root),
            inside: node.span.start + 1..node.span.end - 1,
            entries: entries(node),
        }
    }

    /// What stands before the entry `n`, or behind the last one.
    fn gap(&self, n: usize) -> Gap {
        let start = n.checked_sub(1).and_then(|n| self.entries.get(n)).map(|e| e.end);
        let end = self.entries.get(n).map(|e| e.start);
        let span = start.unwrap_or(self.inside.start)..end.unwrap_or(self.inside.end);
        Gap::scan(self.text, self.dialect, span)
    }

    /// Whether no line ends before one of the first `n` entries.
    fn is_flat(&self, n: usize) -> bool {
        !(0..n).any(|n| self.gap(n).breaks)
    }

    /// The blanks behind the opening bracket; `None` if a comment stands there.
    fn padding(&self) -> Option<&'a str> {
        let start = self.entries.first()?.start;
        let padding = self.text.get(self.inside.start..start)?;
        padding.chars().all(|c| self.dialect.is_blank(c)).then_some(padding)
    }

    fn outer_indent(&self) -> &'a str {
        indent_around(self.text, self.dialect, self.inside.start)
    }

    /// The text with one more entry at the end, which `put` appends with the
    /// indentation that it is told.
    fn add(&self, put: impl Fn(&Style, &mut String, &str)) -> String {
        let (outer, style) = (self.outer_indent(), &self.style);
        let gap = self.gap(self.entries.len());
        let last = self.entries.last().map(|e| e.end);
        let content = [last, gap.comma.map(|at| at + 1), gap.comments.last().map(|c| c.end)];
        let tail = content.into_iter().flatten().max().unwrap_or(self.inside.start);
        let fresh = tail == self.inside.start;
        let bare = gap.comments.is_empty() && self.is_flat(self.entries.len());
        let separator = if last.is_some() && gap.comma.is_none() { "," } else { "" };
        let trailing = if gap.comma.is_some() { "," } else { "" };

        // `[a]`, `[a⏎]`: on the line of the last entry.
        if style.one_line || (bare && gap.breaks && !fresh) {
            let mut new = [separator, if fresh { "" } else { style.pad }].concat();
            put(style, &mut new, outer);
            new.push_str(trailing);
            let end = if fresh { self.inside.end } else { tail };
            return splice(self.text, &[(tail..end, new)]);
        }

        let own = self.entries.iter().rev().find_map(|e| indent(self.text, self.dialect, e.start));
        let deeper = own.map_or_else(|| [outer, style.unit].concat(), str::to_string);
        let mut new = [style.eol, &deeper].concat();
        put(style, &mut new, &deeper);
        new.push_str(trailing);
        // `[a]` becomes `[a,⏎b⏎]` if the blanks behind `a` are as those before
        // it, so that the bracket can be put back when `b` goes.
        let mut end = tail;
        let even = || self.text.get(tail..self.inside.end) == self.padding();
        if fresh || (bare && even()) {
            new.extend([style.eol, outer]);
            end = self.inside.end;
        }
        let comma = last.unwrap_or(tail);
        splice(self.text, &[(comma..comma, separator.to_string()), (tail..end, new)])
    }

    /// The text without the entry `n`.
    fn take(&self, n: usize) -> Option<String> {
        let entry = self.entries.get(n)?;
        let after = self.gap(n + 1);
        let end = after.comma.map_or(entry.end, |at| at + 1);
        let tail = Tail::scan(self, end);
        if n + 1 == self.entries.len() {
            return self.take_last(n, entry, &after, &tail);
        }
        let span = match (indent(self.text, self.dialect, entry.start), tail.newline) {
            (Some(own), Some(newline)) => {
                entry.start - own.len()..after_newline(self.text, newline)
            }
            // What comes after other entries on its line leaves the notes.
            (None, Some(_)) if n > 0 => self.blanks_before(entry.start)..end,
            (None, Some(newline)) => self.blanks_before(entry.start)..newline,
            (_, None) => entry.start..tail.next,
        };
        Some(splice(self.text, &[(span, String::new())]))
    }

    /// The text without the last entry, and without the comma before it.
    fn take_last(
        &self,
        n: usize,
        entry: &Range<usize>,
        after: &Gap,
        tail: &Tail,
    ) -> Option<String> {
        let before = self.gap(n);
        let lone = before.comments.is_empty() && after.comments.iter().all(|c| c.end <= tail.notes);
        let Some((comma, prior)) = before.comma.zip(n.checked_sub(1)) else {
            let span =
                if lone { self.inside.clone() } else { self.line(entry.start, &before, tail) };
            return Some(splice(self.text, &[(span, String::new())]));
        };
        // With a trailing comma the entry before keeps its own as one.
        let kept = after.comma.is_some();
        let begins = |at| indent(self.text, self.dialect, at).is_some();
        if lone && begins(entry.start) && tail.newline.is_some() && self.is_flat(n) {
            if let Some(padding) = self.padding() {
                let start = if kept { comma + 1 } else { self.entries.get(prior)?.end };
                return Some(splice(self.text, &[(start..self.inside.end, padding.to_string())]));
            }
        }
        // The comma goes with what is cut, or alone.
        let joined = !kept && self.blanks_before(entry.start) == comma + 1;
        let start = if joined { comma } else { entry.start };
        let span = if begins(start) {
            self.line(start, &before, tail)
        } else {
            self.blanks_before(start)..after.comma.map_or(entry.end, |at| at + 1)
        };
        let mut edits = vec![(span, String::new())];
        if !kept && !joined {
            edits.insert(0, (comma..comma + 1, String::new()));
        }
        Some(splice(self.text, &edits))
    }

    /// From the line end before an entry that begins its line, or from the
    /// blanks before another, to the end of its notes.
    fn line(&self, start: usize, before: &Gap, tail: &Tail) -> Range<usize> {
        let start = match indent(self.text, self.dialect, start) {
            // A `//` comment needs its line end if none comes after the entry.
            Some(own) if before.line_last && tail.newline.is_none() => start - own.len(),
            Some(own) => before_newline(self.text, start - own.len()),
            None => self.blanks_before(start),
        };
        start..tail.notes
    }

    /// Where the blanks begin that lead to `at` on its line.
    fn blanks_before(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or("");
        let blank = |c| self.dialect.is_blank(c) && !self.dialect.is_newline(c);
        before.trim_end_matches(blank).len()
    }
}

/// What follows an entry and its comma on their line.
struct Tail {
    /// Where its comments end.
    notes: usize,
    /// Where its line ends, if nothing but comments follows on it.
    newline: Option<usize>,
    /// The first comment, or what comes instead of one.
    next: usize,
}

impl Tail {
    fn scan(place: &Place, end: usize) -> Tail {
        let text = place.text.get(..place.inside.end).unwrap_or("");
        let mut reader = Reader { text, at: end, dialect: place.dialect };
        let mut tail = Tail { notes: end, newline: None, next: end };
        loop {
            let start = reader.at;
            let found = reader.trivia();
            let passed = text.get(start..reader.at).unwrap_or("");
            match found {
                Ok(Some(Trivia::Blank)) => {
                    let newline = passed.find(|c| place.dialect.is_newline(c));
                    if let Some(newline) = newline {
                        return Tail { newline: Some(start + newline), ..tail };
                    }
                    if start == end {
                        tail.next = reader.at;
                    }
                }
                Ok(Some(_)) => tail.notes = reader.at,
                _ => return tail,
            }
        }
    }
}

/// The levels of a value.
fn depth(value: &Value) -> usize {
    match value {
        Value::List(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Map(members) => 1 + members.iter().map(|(_, v)| depth(v)).max().unwrap_or(0),
        _ => 0,
    }
}

/// A fault if a value would be too deep below `node`.
fn check_depth(text: &str, node: &Node, above: usize, value: &Value) -> Result<(), Fault> {
    if above + depth(value) > MAX_DEPTH {
        return Err(Fault::new(text, node.span.start, "nested too deep"));
    }
    Ok(())
}

/// Adds `value` at the end of a list.
///
/// It comes behind all comments of the list; a trailing comma stays one.
pub fn push(text: &str, dialect: Dialect, path: &[Step], value: &Value) -> Result<String, Edit> {
    let root = parse(text, dialect)?;
    let list = root.at(path).filter(|node| node.is_list()).ok_or(Edit::NoSuchPath)?;
    check_depth(text, list, path.len() + 1, value)?;
    let place = Place::new(text, dialect, &root, list);
    Ok(place.add(|style, out, indent| style.put(out, value, indent)))
}

/// Adds a member at the end of a map. A key that is there already is a fault.
pub fn insert(
    text: &str,
    dialect: Dialect,
    path: &[Step],
    key: &str,
    value: &Value,
) -> Result<String, Edit> {
    let root = parse(text, dialect)?;
    let map = root.at(path).filter(|node| node.is_map()).ok_or(Edit::NoSuchPath)?;
    if let Some(twin) = map.members().iter().find(|m| m.key == key) {
        return Err(Fault::new(text, twin.key_span.start, "the key is there already").into());
    }
    check_depth(text, map, path.len() + 1, value)?;
    let place = Place::new(text, dialect, &root, map);
    Ok(place.add(|style, out, indent| style.put_member(out, key, value, indent)))
}

/// Puts `value` in the place of another. An empty path is the whole document.
pub fn replace(text: &str, dialect: Dialect, path: &[Step], value: &Value) -> Result<String, Edit> {
    let root = parse(text, dialect)?;
    let node = root.at(path).ok_or(Edit::NoSuchPath)?;
    check_depth(text, node, path.len(), value)?;
    let mut new = String::new();
    let indent = indent_around(text, dialect, node.span.start);
    Style::of(text, dialect, &root).put(&mut new, value, indent);
    Ok(splice(text, &[(node.span.clone(), new)]))
}

/// Takes out an element or a member, with its comma, its line, and the comments
/// behind it on that line. Comments on other lines stay.
pub fn remove(text: &str, dialect: Dialect, path: &[Step]) -> Result<String, Edit> {
    let root = parse(text, dialect)?;
    let (step, path) = path.split_last().ok_or(Edit::NoSuchPath)?;
    let node = root.at(path).ok_or(Edit::NoSuchPath)?;
    let n = match step {
        Step::Key(key) => node.members().iter().position(|m| m.key == *key),
        Step::Item(item) => node.is_list().then_some(*item),
    };
    let place = Place::new(text, dialect, &root, node);
    n.and_then(|n| place.take(n)).ok_or(Edit::NoSuchPath)
}

/// A new document of `value`: two spaces a level, with a line end.
pub fn write(value: &Value) -> String {
    let mut new = String::new();
    PLAIN.put(&mut new, value, "");
    new.push('\n');
    new
}
