//! The edits of TOML.

use std::ops::Range;

use super::super::{BOM, Edit, Fault, Value, line_end, quoted, splice};
use super::{Doc, Entry, Pair, Reader, after, is_bare, parse};

/// Adds a table at the end of the file, after one blank line. With `array` it is
/// one more element of `[[path]]`.
pub fn append_table(
    text: &str,
    path: &[&str],
    array: bool,
    entries: &[(&str, Value)],
) -> Result<String, Fault> {
    parse(text)?;
    let eol = line_end(text);
    let [open, close] = if array { ["[[", "]]"] } else { ["[", "]"] };
    let mut table = [open, &dotted(path), close, eol].concat();
    for (key, value) in entries {
        table.extend([entry(&[key], value).as_str(), eol]);
    }
    let new = [text, &at_end(text, eol, &table)].concat();
    checked(text, text.len(), new)
}

/// What to add to a text so that `lines` are its last, after a blank line. Its
/// last line goes without an end if that of the text does.
fn at_end(text: &str, eol: &str, lines: &str) -> String {
    if text.trim_start_matches(BOM).is_empty() {
        lines.to_string()
    } else if text.ends_with('\n') {
        [eol, lines].concat()
    } else {
        [eol, eol, lines.strip_suffix(eol).unwrap_or(lines)].concat()
    }
}

/// The edited text, if it can be read; else a fault at the place of the edit.
fn checked(text: &str, at: usize, new: String) -> Result<String, Fault> {
    match parse(&new) {
        Ok(_) => Ok(new),
        Err(fault) => Err(Fault::new(text, at, fault.what)),
    }
}

/// Sets a key of a table: replaces its value, or adds an entry behind those
/// that the table has. A table may be one by its header, by dotted keys or
/// inline. None is made: without one there is no such path.
pub fn set(text: &str, table: &[&str], key: &str, value: &Value) -> Result<String, Edit> {
    let doc = parse(text)?;
    let path = [table, &[key]].concat();
    let (at, new) = match doc.entry(&path) {
        Some((found, rest)) => {
            let (span, rest) = inner(text, found.value_span.clone(), rest);
            if rest.is_empty() {
                (span, written(value))
            } else {
                add_inline(text, span, &entry(rest, value)).ok_or(Edit::NoSuchPath)?
            }
        }
        None => add_entry(text, &doc, table, key, value).ok_or(Edit::NoSuchPath)?,
    };
    let start = at.start;
    Ok(checked(text, start, splice(text, &[(at, new)]))?)
}

/// Follows a path into a value: the innermost inline table on the way, or the
/// value at its end, with what is left of the path there.
fn inner<'p>(
    text: &str,
    mut span: Range<usize>,
    mut path: &'p [&'p str],
) -> (Range<usize>, &'p [&'p str]) {
    loop {
        let next = inline(text, &span).into_iter().flatten();
        let next = next.filter(|_| !path.is_empty());
        match next.into_iter().find_map(|(key, _, value)| Some((value, after(path, &key)?))) {
            Some(next) => (span, path) = next,
            None => return (span, path),
        }
    }
}

/// The members of the inline table that stands at `span`, if one does.
fn inline(text: &str, span: &Range<usize>) -> Option<Vec<Pair>> {
    let mut reader = Reader { text, at: span.start };
    if reader.peek() == Some(b'{') { reader.inline(0).ok() } else { None }
}

/// How to add an entry to the inline table at `span`.
fn add_inline(text: &str, span: Range<usize>, entry: &str) -> Option<(Range<usize>, String)> {
    match inline(text, &span)?.last() {
        Some((_, _, last)) => Some((last.end..last.end, [", ", entry].concat())),
        None => Some((span, ["{ ", entry, " }"].concat())),
    }
}

/// How to add an entry to a table that has a header or dotted keys.
fn add_entry(
    text: &str,
    doc: &Doc,
    table: &[&str],
    key: &str,
    value: &Value,
) -> Option<(Range<usize>, String)> {
    let (found, above, end) = doc.on_way(table).find_map(|(found, above)| {
        if above.is_empty() {
            return Some((found, above, found.span.end));
        }
        let dotted =
            |e: &&Entry| e.key.len() > above.len() && e.key.iter().zip(above).all(|(a, b)| a == b);
        let last = found.entries.iter().rev().find(dotted)?;
        Some((found, above, last.span.end))
    })?;
    let entry = entry(&[above, &[key]].concat(), value);
    let eol = line_end(text);
    if found.path.is_empty() && found.entries.is_empty() {
        return Some(first_entry(text, doc, &[&entry, eol].concat(), eol));
    }
    let model = found.entries.last().map_or(found.span.start, |e| e.span.start);
    let model = text.get(model..).unwrap_or("");
    let bare = model.trim_start_matches([' ', '\t']);
    let indent = model.get(..model.len() - bare.len()).unwrap_or("");
    let ended = text.get(..end).is_some_and(|before| before.ends_with('\n'));
    let line = if ended { [indent, &entry, eol] } else { [eol, indent, &entry] };
    Some((end..end, line.concat()))
}

/// How to add the first entry of the root table: before all headers, but behind
/// a comment that leads the file and does not belong to one.
fn first_entry(text: &str, doc: &Doc, line: &str, eol: &str) -> (Range<usize>, String) {
    let end = text.len();
    if doc.tables.len() == 1 {
        return (end..end, at_end(text, eol, line));
    }
    let start = end - text.trim_start_matches(BOM).len();
    let mut at = start;
    for full in text.get(start..).unwrap_or("").split_inclusive('\n') {
        if full.starts_with('#') {
            at += full.len();
            continue;
        }
        let ends = at > start && full.trim_end_matches(['\r', '\n']).is_empty();
        at = if ends { at + full.len() } else { start };
        break;
    }
    (at..at, [line, eol].concat())
}

/// The text without a table or an entry, by its span, and without the blank line
/// that would be left over: of two the second, and the last of the file.
pub fn remove(text: &str, span: Range<usize>) -> String {
    let (Some(mut before), Some(mut after)) = (text.get(..span.start), text.get(span.end..)) else {
        return text.to_string();
    };
    let open = !text.ends_with('\n');
    let above = without_line_end(before);
    let blank_above =
        above.is_some_and(|a| a.trim_start_matches(BOM).is_empty() || a.ends_with('\n'));
    if after.is_empty() {
        if let (true, Some(above)) = (blank_above, above) {
            before = above;
        }
        if open {
            before = without_line_end(before).unwrap_or(before);
        }
    } else if blank_above || before.trim_start_matches(BOM).is_empty() {
        let rest = after.strip_prefix("\r\n").or(after.strip_prefix('\n'));
        after = rest.unwrap_or(after);
    }
    [before, after].concat()
}

fn without_line_end(text: &str) -> Option<&str> {
    let bare = text.strip_suffix('\n')?;
    Some(bare.strip_suffix('\r').unwrap_or(bare))
}

fn dotted(key: &[&str]) -> String {
    let part = |part: &&str| match part.is_empty() || !part.bytes().all(is_bare) {
        true => string(part),
        false => part.to_string(),
    };
    key.iter().map(part).collect::<Vec<_>>().join(".")
}

fn entry(key: &[&str], value: &Value) -> String {
    [&dotted(key), " = ", &written(value)].concat()
}

fn string(text: &str) -> String {
    quoted(text).replace('\u{7f}', "\\u007f")
}

/// A value on one line.
fn written(value: &Value) -> String {
    let all = |values: Vec<String>| values.join(", ");
    match value {
        Value::Text(text) => string(text),
        Value::Int(int) => int.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::List(list) => ["[", &all(list.iter().map(written).collect()), "]"].concat(),
        Value::Map(members) if members.is_empty() => "{}".to_string(),
        Value::Map(members) => {
            let members = members.iter().map(|(key, value)| entry(&[key], value));
            ["{ ", &all(members.collect()), " }"].concat()
        }
    }
}
