//! Hooks in YAML: below `hooks` a list for each event, of maps with `command`
//! and `timeout`.

use super::super::text::yaml::{self, Kind, Node};
use super::super::text::{Edit, Value};
use super::*;

pub(super) struct Doc;

/// Seconds.
const TIMEOUT: i64 = 5;

fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.kind {
        Kind::Map(members) => members.iter().find(|(name, _)| name == key).map(|(_, node)| node),
        _ => None,
    }
}

fn at<'n>(root: &'n Node, path: &[Step<'_>]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, step| match step {
        Step::Key(key) => member(node, key),
        Step::Item(_) => None,
    })
}

fn text_of<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match &member(node, key)?.kind {
        Kind::Text(text) => Some(text),
        _ => None,
    }
}

fn value(command: String) -> Value {
    Value::Map(vec![
        ("command".into(), Value::Text(command)),
        ("timeout".into(), Value::Int(TIMEOUT)),
    ])
}

impl Document for Doc {
    fn entries(&self, text: &str, want: &dyn Fn(&str) -> String) -> Result<Vec<Entry>, Refusal> {
        let root = yaml::parse(text)?;
        let mut entries = Vec::new();
        let Some(hooks) = member(&root, "hooks") else { return Ok(entries) };
        let events = match &hooks.kind {
            Kind::Map(events) => events,
            Kind::Null => return Ok(entries),
            Kind::List(list) if list.is_empty() => return Ok(entries),
            _ => return Err(Refusal::Shape("'hooks' is not a map of events".into())),
        };
        for (event, list) in events {
            let Kind::List(items) = &list.kind else { continue };
            for (at, item) in items.iter().enumerate() {
                let Some(command) = text_of(item, "command") else { continue };
                let keys = match &item.kind {
                    Kind::Map(members) => members.len(),
                    _ => 0,
                };
                let timeout = member(item, "timeout").and_then(|node| text.get(node.span.clone()));
                let timeout = timeout.and_then(|n| n.parse().ok());
                entries.push(Entry {
                    exact: keys == 2 && command == want(event) && timeout == Some(TIMEOUT),
                    narrowed: member(item, "matcher").is_some(),
                    event: event.clone(),
                    command: command.to_string(),
                    at: At::Path {
                        steps: vec![
                            Owned::Key("hooks".into()),
                            Owned::Key(event.clone()),
                            Owned::Item(at),
                        ],
                        alone: true,
                    },
                });
            }
        }
        Ok(entries)
    }

    fn remove(&self, text: &str, entry: &Entry, before: Option<&str>) -> Result<String, Refusal> {
        let At::Path { steps: owned, .. } = &entry.at else {
            return Err(Edit::NoSuchPath.into());
        };
        let mut path = steps(owned);
        let mut text = yaml::remove(text, &path)?;
        let before = before.map(yaml::parse).transpose()?;
        // What holds nothing any more goes as well, unless it was there before.
        while path.pop().is_some() && !path.is_empty() {
            let root = yaml::parse(&text)?;
            let node = at(&root, &path);
            if before.as_ref().is_some_and(|before| at(before, &path).is_some()) {
                break;
            }
            let empty = match node.map(|node| &node.kind) {
                Some(Kind::Map(members)) => members.is_empty(),
                Some(Kind::List(items)) => items.is_empty(),
                Some(Kind::Null) => true,
                _ => false,
            };
            if !empty {
                break;
            }
            text = yaml::remove(&text, &path)?;
        }
        // An empty map is written for a file in which nothing is left.
        let root = yaml::parse(&text)?;
        let is_empty = matches!(&root.kind, Kind::Map(members) if members.is_empty());
        if is_empty && text.get(root.span.clone()) == Some("{}") {
            let end = root.span.end;
            let line = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
            if text[end..line].trim().is_empty() {
                text.replace_range(root.span.start..line, "");
            }
        }
        Ok(text)
    }

    fn replace(&self, text: &str, entry: &Entry, command: String) -> Result<String, Refusal> {
        let At::Path { steps: owned, .. } = &entry.at else {
            return Err(Edit::NoSuchPath.into());
        };
        let text = yaml::remove(text, &steps(owned))?;
        Ok(yaml::push(&text, &["hooks", &entry.event], &value(command))?)
    }

    fn add(&self, text: &str, event: &'static str, command: String) -> Result<String, Refusal> {
        Ok(yaml::push(text, &["hooks", event], &value(command))?)
    }

    fn new_file(&self, entries: &[(&'static str, String)]) -> Result<String, Refusal> {
        let mut text = String::new();
        for (event, command) in entries {
            text = self.add(&text, event, command.clone())?;
        }
        Ok(text)
    }

    fn is_bare(&self, text: &str) -> Result<bool, Refusal> {
        Ok(matches!(text.trim(), "" | "{}"))
    }
}
