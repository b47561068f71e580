//! The edits of YAML: whole lines, put in and taken out. What is edited is read
//! again, and has to say what was meant.

use std::ops::Range;

use super::super::{BOM, Edit, Fault, Step, Value, line_end, quoted, splice};
use super::scalar::kind_of;
use super::{Kind, Node, Shape, parse};

/// What a document says.
#[derive(Clone, Debug, PartialEq)]
pub enum Sense {
    Text(String),
    /// What is neither string nor null, as it is written.
    Other(String),
    Null,
    List(Vec<Sense>),
    Map(Vec<(String, Sense)>),
}

impl Sense {
    pub fn of(text: &str, node: &Node) -> Sense {
        match &node.kind {
            Kind::Text(text) => Sense::Text(text.clone()),
            Kind::Other => Sense::Other(text.get(node.span.clone()).unwrap_or("").to_string()),
            Kind::Null => Sense::Null,
            Kind::List(list) => {
                Sense::List(list.iter().map(|node| Sense::of(text, node)).collect())
            }
            Kind::Map(members) => {
                let members = members.iter();
                Sense::Map(members.map(|(k, node)| (k.clone(), Sense::of(text, node))).collect())
            }
        }
    }

    fn from(value: &Value) -> Sense {
        match value {
            Value::Text(text) => Sense::Text(text.clone()),
            Value::Int(int) => Sense::Other(int.to_string()),
            Value::Bool(bool) => Sense::Other(bool.to_string()),
            Value::List(list) => Sense::List(list.iter().map(Sense::from).collect()),
            Value::Map(members) => {
                Sense::Map(members.iter().map(|(k, v)| (k.clone(), Sense::from(v))).collect())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Sense::Null => true,
            Sense::List(list) => list.is_empty(),
            Sense::Map(members) => members.is_empty(),
            _ => false,
        }
    }

    /// Adds an item to the list at a path, or, where `whole`, puts it there.
    fn add(&mut self, path: &[&str], item: Sense, whole: bool) {
        match path {
            [] if whole => *self = item,
            [] => {
                if self.is_empty() {
                    *self = Sense::List(Vec::new());
                }
                if let Sense::List(list) = self {
                    list.push(item);
                }
            }
            [key, rest @ ..] => {
                if self.is_empty() {
                    *self = Sense::Map(Vec::new());
                }
                let Sense::Map(members) = self else { return };
                if let Some((_, value)) = members.iter_mut().find(|(k, _)| k == key) {
                    return value.add(rest, item, whole);
                }
                let mut value = Sense::Null;
                value.add(rest, item, whole);
                members.push((key.to_string(), value));
            }
        }
    }

    fn remove(&mut self, path: &[Step]) {
        let Some((step, rest)) = path.split_first() else { return };
        let n = match (&*self, step) {
            (Sense::Map(members), Step::Key(key)) => members.iter().position(|(k, _)| k == key),
            (Sense::List(_), Step::Item(n)) => Some(*n),
            _ => None,
        };
        match (self, n) {
            (Sense::List(list), Some(n)) if n < list.len() && rest.is_empty() => {
                drop(list.remove(n))
            }
            (Sense::Map(members), Some(n)) if rest.is_empty() => drop(members.remove(n)),
            (Sense::List(list), Some(n)) => {
                list.iter_mut().skip(n).take(1).for_each(|s| s.remove(rest))
            }
            (Sense::Map(members), Some(n)) => {
                members.iter_mut().skip(n).take(1).for_each(|(_, s)| s.remove(rest));
            }
            _ => {}
        }
    }
}

/// How a document is written.
struct Style {
    eol: &'static str,
    /// Columns from a key to those below it.
    unit: usize,
    /// Columns from a key to the dashes below it.
    dash: usize,
}

impl Style {
    /// By the first example in `near`, or in the whole document.
    fn of(text: &str, root: &Node, near: &Node) -> Style {
        let is_map = |kind: &Kind| matches!(kind, Kind::Map(_));
        let is_list = |kind: &Kind| matches!(kind, Kind::List(_));
        let unit = offset(near, is_map).or_else(|| offset(root, is_map)).unwrap_or(2).max(1);
        let dash = offset(near, is_list).or_else(|| offset(root, is_list)).unwrap_or(unit);
        Style { eol: line_end(text), unit, dash }
    }

    /// Appends the lines of an item below `keys`, of which the first stands at
    /// `column`; of a map that is their value where `whole`.
    fn put(&self, out: &mut String, column: usize, keys: &[&str], value: &Value, whole: bool) {
        out.push_str(&" ".repeat(column));
        if let [key, rest @ ..] = keys {
            out.extend([&scalar(key), ":", self.eol]);
            let deeper = if rest.is_empty() && !whole { self.dash } else { self.unit };
            return self.put(out, column + deeper, rest, value, whole);
        }
        let deeper = if whole { 0 } else { 2 };
        out.push_str(if whole { "" } else { "- " });
        match value {
            Value::Map(members) if !members.is_empty() => {
                for (n, (key, value)) in members.iter().enumerate() {
                    if n > 0 {
                        out.push_str(&" ".repeat(column + deeper));
                    }
                    out.extend([&scalar(key), ": ", &written(value), self.eol]);
                }
            }
            value => out.extend([&written(value), self.eol]),
        }
    }
}

/// How much deeper than a key the first block collection of a kind stands that
/// is a key's value.
fn offset(node: &Node, kind: fn(&Kind) -> bool) -> Option<usize> {
    node.members()
        .iter()
        .find_map(|(_, value)| match (node.shape, value.shape) {
            (Shape::Block(outer), Shape::Block(inner)) if kind(&value.kind) => {
                inner.checked_sub(outer)
            }
            _ => None,
        })
        .or_else(|| node.values().find_map(|value| offset(value, kind)))
}

fn fault(text: &str, node: &Node, what: &'static str) -> Edit {
    Fault::new(text, node.span.start, what).into()
}

/// The edited text, if it says what it should.
fn checked(text: &str, node: &Node, new: String, meant: &Sense) -> Result<String, Edit> {
    let good = parse(&new).is_ok_and(|root| Sense::of(&new, &root) == *meant);
    if good { Ok(new) } else { Err(fault(text, node, "this cannot be edited safely")) }
}

/// A fault if a collection is written so that lines cannot be added or removed.
fn check_block(text: &str, node: &Node) -> Result<(), Edit> {
    match node.shape {
        Shape::Flow => Err(fault(text, node, "this is written in brackets")),
        Shape::Fixed => Err(fault(text, node, "this has an anchor, an alias or a tag")),
        _ => Ok(()),
    }
}

/// Adds an item to the sequence below some keys. Keys that are missing are made;
/// null and empty brackets give way.
pub fn push(text: &str, path: &[&str], value: &Value) -> Result<String, Edit> {
    add(text, path, value, false)
}

/// Puts a map that is not empty below some keys, of which the last is missing.
pub fn put(text: &str, path: &[&str], value: &Value) -> Result<String, Edit> {
    add(text, path, value, true)
}

fn add(text: &str, path: &[&str], value: &Value, whole: bool) -> Result<String, Edit> {
    let root = parse(text)?;
    let mut meant = Sense::of(text, &root);
    meant.add(path, Sense::from(value), whole);
    let (mut above, mut node) = (None, &root);
    let mut rest = path;
    let missing = loop {
        if node.shape == Shape::Fixed {
            check_block(text, node)?;
        }
        if is_vacant(node) {
            break false;
        }
        let Some((key, deeper)) = rest.split_first() else { break false };
        let Kind::Map(members) = &node.kind else { return Err(Edit::NoSuchPath) };
        check_block(text, node)?;
        match members.iter().find(|(k, _)| k == key) {
            Some((_, value)) => (above, node, rest) = (Some(node), value, deeper),
            None if members.iter().any(|(k, _)| k == "<<") => {
                return Err(fault(text, node, "a merge key may hold it already"));
            }
            None => break true,
        }
    };
    let style = Style::of(text, &root, if missing { node } else { above.unwrap_or(node) });
    let mut lines = String::new();
    if is_vacant(node) {
        let column = match above.map(|above| above.shape) {
            Some(Shape::Block(column)) if rest.is_empty() && !whole => column + style.dash,
            Some(Shape::Block(column)) => column + style.unit,
            _ => 0,
        };
        style.put(&mut lines, column, rest, value, whole);
        return checked(text, node, fill(text, node, above.is_none(), lines, &style)?, &meant);
    }
    match (node.shape, &node.kind) {
        (Shape::Block(column), Kind::List(_)) if !whole => {
            style.put(&mut lines, column, &[], value, whole);
        }
        (Shape::Block(column), _) if missing => style.put(&mut lines, column, rest, value, whole),
        (Shape::Flow, Kind::List(_)) => check_block(text, node)?,
        _ => return Err(Edit::NoSuchPath),
    }
    let add = lines_after(text, node.span.end, lines, style.eol);
    checked(text, node, splice(text, &[add]), &meant)
}

/// Whether something else may be written in the place of a value.
fn is_vacant(node: &Node) -> bool {
    let empty = node.shape == Shape::Flow && node.values().next().is_none();
    empty || (node.kind == Kind::Null && node.shape == Shape::Scalar)
}

/// The text with lines in the place of a vacant value.
fn fill(text: &str, node: &Node, root: bool, lines: String, style: &Style) -> Result<String, Edit> {
    if !root {
        let cut = node.lead..node.span.end;
        if text.get(cut.clone()).is_some_and(|t| t.contains('#')) {
            return Err(fault(text, node, "a comment stands in the way"));
        }
        let add = lines_after(text, node.span.end, lines, style.eol);
        return Ok(splice(text, &[(cut, String::new()), add]));
    }
    if node.span.is_empty() {
        let before = text.get(..node.span.start).unwrap_or("").trim_start_matches(BOM);
        let add = match before.is_empty() || before.ends_with('\n') {
            true => (node.span.clone(), lines),
            false => lines_after(text, node.span.start, lines, style.eol),
        };
        return Ok(splice(text, &[add]));
    }
    let lines = lines.strip_suffix(style.eol).unwrap_or(&lines).to_string();
    Ok(splice(text, &[(node.span.clone(), lines)]))
}

/// How to put lines behind the line of `at`. A last line without an end stays
/// one.
fn lines_after(text: &str, at: usize, lines: String, eol: &str) -> (Range<usize>, String) {
    match text.get(at..).and_then(|rest| rest.find('\n')) {
        Some(newline) => (at + newline + 1..at + newline + 1, lines),
        None => {
            let lines = lines.strip_suffix(eol).unwrap_or(&lines);
            (text.len()..text.len(), [eol, lines].concat())
        }
    }
}

/// Takes out an item or a key with its lines. The last of a collection leaves
/// empty brackets.
pub fn remove(text: &str, path: &[Step]) -> Result<String, Edit> {
    let root = parse(text)?;
    let mut meant = Sense::of(text, &root);
    meant.remove(path);
    let (last, above) = path.split_last().ok_or(Edit::NoSuchPath)?;
    let mut node = &root;
    for step in above {
        let n = find(node, step).ok_or(Edit::NoSuchPath)?;
        check_block(text, node)?;
        node = node.values().nth(n).ok_or(Edit::NoSuchPath)?;
    }
    let n = find(node, last).ok_or(Edit::NoSuchPath)?;
    check_block(text, node)?;
    let entry = node.values().nth(n).ok_or(Edit::NoSuchPath)?;
    let start = *node.starts.get(n).ok_or(Edit::NoSuchPath)?;
    let new = match node.starts.as_slice() {
        [_] => empty(text, node, std::ptr::eq(node, &root)),
        // The first item of a collection behind a dash.
        [_, next, ..] if n == 0 && !begins_line(text, start) => {
            let end = line_of(text, entry.span.end).end;
            let between = text.get(end..*next).unwrap_or("");
            let bare = text.get(..start).unwrap_or("").trim_end_matches([' ', '\t']).len();
            let line = text.get(..end).unwrap_or("").trim_end_matches(['\r', '\n']).len();
            let cut = if between.trim().is_empty() { start..*next } else { bare..line };
            splice(text, &[(cut, String::new())])
        }
        _ => without_lines(text, start..entry.span.end, None),
    };
    checked(text, node, new, &meant)
}

/// Takes out what stands at a path, and then what holds nothing any more above
/// it. What was there before, by that document, stays as empty as it was.
pub fn prune(text: &str, path: &[Step], before: Option<&str>) -> Result<String, Edit> {
    let before = before.map(parse).transpose()?;
    let mut text = remove(text, path)?;
    let mut path = path.to_vec();
    while path.pop().is_some() && !path.is_empty() {
        let root = parse(&text)?;
        let Some(node) = root.at(&path).filter(|node| is_vacant(node)) else { break };
        if let Some(was) = before.as_ref().and_then(|before| before.at(&path)) {
            if was.kind == Kind::Null && was.span.is_empty() {
                text.replace_range(node.lead..node.span.end, "");
            }
            return Ok(text);
        }
        text = remove(&text, &path)?;
    }
    // An empty map is written for a file in which nothing is left.
    let root = parse(&text)?;
    if matches!(root.kind, Kind::Map(_)) && text.get(root.span.clone()) == Some("{}") {
        let end = root.span.end;
        let line = line_of(&text, end).end;
        if text.get(end..line).is_some_and(|rest| rest.trim().is_empty()) {
            text.replace_range(root.span.start..line, "");
        }
    }
    Ok(text)
}

/// Replaces the string at a path of keys.
pub fn set_text(text: &str, path: &[Step], new: &str) -> Result<String, Edit> {
    let root = parse(text)?;
    let node = root.at(path).filter(|node| node.text().is_some()).ok_or(Edit::NoSuchPath)?;
    check_block(text, node)?;
    let new_text = splice(text, &[(node.span.clone(), scalar(new))]);
    let is_it = |root: &Node| root.at(path).and_then(Node::text) == Some(new);
    let rest = |text: &str, root: &Node| {
        let mut sense = Sense::of(text, root);
        sense.remove(path);
        sense
    };
    let good = parse(&new_text)
        .is_ok_and(|after| is_it(&after) && rest(&new_text, &after) == rest(text, &root));
    if good { Ok(new_text) } else { Err(fault(text, node, "this cannot be edited safely")) }
}

/// The number of an item or a key in a collection.
fn find(node: &Node, step: &Step) -> Option<usize> {
    match (&node.kind, step) {
        (Kind::Map(members), Step::Key(key)) => members.iter().position(|(k, _)| k == key),
        (Kind::List(list), Step::Item(n)) => (*n < list.len()).then_some(*n),
        _ => None,
    }
}

/// The text with empty brackets for a collection.
fn empty(text: &str, node: &Node, root: bool) -> String {
    let brackets = if matches!(node.kind, Kind::Map(_)) { "{}" } else { "[]" };
    if root || !begins_line(text, node.span.start) {
        return splice(text, &[(node.span.clone(), brackets.to_string())]);
    }
    without_lines(text, node.span.clone(), Some((node.lead, [" ", brackets].concat())))
}

/// The text without the lines of a span, and with something put in before them.
fn without_lines(text: &str, span: Range<usize>, put: Option<(usize, String)>) -> String {
    let mut cut = line_of(text, span.start).start..line_of(text, span.end).end;
    let open = cut.end == text.len() && !text.ends_with('\n');
    if let Some(before) = text.get(..cut.start).and_then(|t| t.strip_suffix('\n')).filter(|_| open)
    {
        cut.start = before.strip_suffix('\r').unwrap_or(before).len();
    }
    let put = put.map(|(at, put)| (at..at, put));
    let edits: Vec<_> = put.into_iter().chain([(cut, String::new())]).collect();
    splice(text, &edits)
}

/// The line of `at`, with its end.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |n| n + 1);
    let start = if start == 0 && text.starts_with(BOM) { BOM.len_utf8() } else { start };
    let end = text.get(at..).and_then(|t| t.find('\n')).map_or(text.len(), |n| at + n + 1);
    start..end
}

fn begins_line(text: &str, at: usize) -> bool {
    text.get(line_of(text, at).start..at).is_some_and(|t| t.trim().is_empty())
}

/// A string, without quotes where no reader can take it for something else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _-./".contains(c);
    let starts = |c: char| c.is_ascii_alphabetic() || c == '/' || c == '_';
    let good = text.starts_with(starts) && text.chars().all(plain) && !text.ends_with(' ');
    if good && matches!(kind_of(text.to_string()), Kind::Text(_)) {
        return text.to_string();
    }
    let mut out = String::new();
    for c in quoted(text).chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | BOM | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// A value on one line.
fn written(value: &Value) -> String {
    let all = |values: Vec<String>| values.join(", ");
    match value {
        Value::Text(text) => scalar(text),
        Value::Int(int) => int.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::List(list) => ["[", &all(list.iter().map(written).collect()), "]"].concat(),
        Value::Map(members) => {
            let member =
                |(key, value): &(String, Value)| [&scalar(key), ": ", &written(value)].concat();
            ["{", &all(members.iter().map(member).collect()), "}"].concat()
        }
    }
}
