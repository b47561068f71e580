//! Hooks in YAML: below `hooks` a list for each event, of maps with `command`
//! and `timeout`.

use super::super::text::yaml::{self, Kind, Node};
use super::super::text::{Edit, Value};
use super::*;

pub(super) struct Doc;

/// Seconds.
const TIMEOUT: i64 = 5;

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
        let Some(hooks) = root.get("hooks") else { return Ok(entries) };
        let events = match &hooks.kind {
            Kind::Map(events) => events,
            Kind::Null => return Ok(entries),
            Kind::List(list) if list.is_empty() => return Ok(entries),
            _ => return Err(Refusal::Shape("'hooks' is not a map of events".into())),
        };
        for (event, list) in events {
            let Kind::List(items) = &list.kind else { continue };
            for (at, item) in items.iter().enumerate() {
                let Some(command) = item.get("command").and_then(Node::text) else { continue };
                let keys = match &item.kind {
                    Kind::Map(members) => members.len(),
                    _ => 0,
                };
                let timeout = item.get("timeout").and_then(|node| text.get(node.span.clone()));
                let timeout = timeout.and_then(|n| n.parse().ok());
                entries.push(Entry {
                    exact: keys == 2 && command == want(event) && timeout == Some(TIMEOUT),
                    narrowed: item.get("matcher").is_some(),
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
        Ok(yaml::prune(text, &steps(owned), before)?)
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
