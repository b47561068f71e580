//! Hooks in TOML: a `[[hooks]]` table for each event, with `event`, `command`
//! and `timeout` and nothing else, for their harness refuses other keys.

use super::super::text::toml::{self, Item, Table};
use super::super::text::{Edit, Value};
use super::*;

pub(super) struct Doc;

/// Seconds.
const TIMEOUT: i64 = 5;

fn text_of<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    let entry = table.entries.iter().find(|e| e.key == [key])?;
    match &entry.value {
        Item::Text(text) => Some(text),
        _ => None,
    }
}

impl Document for Doc {
    fn entries(&self, text: &str, want: &dyn Fn(&str) -> String) -> Result<Vec<Entry>, Refusal> {
        let doc = toml::parse(text)?;
        let inline = doc.tables.iter().any(|table| {
            let at = |entry: &toml::Entry| {
                let path = table.path.iter().chain(&entry.key);
                path.take(1).eq(["hooks"]) && !(table.array && table.path == ["hooks"])
            };
            table.entries.iter().any(at)
                || !table.array && table.path.first().is_some_and(|key| key == "hooks")
        });
        if inline {
            return Err(Refusal::Shape("'hooks' is not a list of [[hooks]] tables".into()));
        }
        let entry = |table: &Table| {
            let (event, command) = (text_of(table, "event")?, text_of(table, "command")?);
            let timeout = table.entries.iter().find(|e| e.key == ["timeout"]).map(|e| &e.value);
            let exact = table.entries.len() == 3
                && command == want(event)
                && matches!(timeout, Some(Item::Int(TIMEOUT)));
            Some(Entry {
                event: event.to_string(),
                command: command.to_string(),
                narrowed: table.entries.iter().any(|e| e.key == ["matcher"]),
                exact,
                at: At::Span(table.span.clone()),
            })
        };
        Ok(doc.arrays(&["hooks"]).filter_map(entry).collect())
    }

    fn remove(&self, text: &str, entry: &Entry, _: Option<&str>) -> Result<String, Refusal> {
        match &entry.at {
            At::Span(span) => Ok(toml::remove(text, span.clone())),
            At::Path { .. } => Err(Edit::NoSuchPath.into()),
        }
    }

    fn replace(&self, text: &str, entry: &Entry, command: String) -> Result<String, Refusal> {
        let At::Span(span) = &entry.at else { return Err(Edit::NoSuchPath.into()) };
        let table = self.table(&entry.event, command)?;
        let (before, after) = (&text[..span.start], &text[span.end..]);
        let end = if text[span.clone()].ends_with('\n') { "" } else { "\n" };
        let table = table.strip_suffix(end).filter(|_| !end.is_empty()).unwrap_or(&table);
        let crlf = text.contains("\r\n");
        let table = if crlf { table.replace('\n', "\r\n") } else { table.to_string() };
        Ok([before, &table, after].concat())
    }

    fn add(&self, text: &str, event: &'static str, command: String) -> Result<String, Refusal> {
        let entries = [
            ("event", Value::Text(event.to_string())),
            ("command", Value::Text(command)),
            ("timeout", Value::Int(TIMEOUT)),
        ];
        Ok(toml::append_table(text, &["hooks"], true, &entries)?)
    }

    fn new_file(&self, entries: &[(&'static str, String)]) -> Result<String, Refusal> {
        let mut text = String::new();
        for (event, command) in entries {
            text = self.add(&text, event, command.clone())?;
        }
        Ok(text)
    }

    fn is_bare(&self, text: &str) -> Result<bool, Refusal> {
        Ok(text.trim().is_empty())
    }
}

impl Doc {
    /// One table as text, as it stands in a file of its own.
    fn table(&self, event: &str, command: String) -> Result<String, Refusal> {
        let entries = [
            ("event", Value::Text(event.to_string())),
            ("command", Value::Text(command)),
            ("timeout", Value::Int(TIMEOUT)),
        ];
        Ok(toml::append_table("", &["hooks"], true, &entries)?)
    }
}
