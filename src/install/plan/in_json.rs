//! Hooks in JSON documents, with and without groups.

use super::super::recipe::{Base, Json, Nest};
use super::super::text::json::{self, Node};
use super::super::text::{Step, Value};
use super::*;

pub(super) struct Doc<'r> {
    pub json: &'r Json,
    pub recipe: &'r Recipe,
}

/// Where a hook stands in a file with groups.
pub struct Position {
    /// The event's name in the file.
    pub event: String,
    /// The group's place in the event's list.
    pub group: usize,
    /// The entry's place in the group.
    pub entry: usize,
    /// The group's matcher; empty for none.
    pub matcher: String,
    /// The command.
    pub command: String,
    /// The number that stands for its time limit, where it has one.
    pub timeout: Option<i64>,
}

/// Where the hooks of ours stand in a file with groups.
pub fn positions(recipe: &Recipe, text: &str) -> Result<Vec<Position>, Refusal> {
    let Shape::Json(json) = &recipe.shape else { return Ok(Vec::new()) };
    let doc = Doc { json, recipe };
    let root = json::parse(text, json.dialect)?;
    let mut positions = Vec::new();
    for entry in doc.entries(text, &|_| String::new())? {
        let At::Path { steps: owned, .. } = &entry.at else { continue };
        let path = steps(owned);
        let [.., Step::Item(group), Step::Key("hooks"), Step::Item(at)] = path[..] else {
            continue;
        };
        if Command::read(&entry.command).is_none() {
            continue;
        }
        let above = &path[..path.len() - 2];
        let matcher = root.at(above).and_then(|g| g.get("matcher")).and_then(Node::text);
        let timeout = root.at(&path).and_then(|e| e.get("timeout")).and_then(|n| n.int(text));
        positions.push(Position {
            matcher: matcher.unwrap_or("").to_string(),
            event: entry.event,
            command: entry.command,
            group,
            entry: at,
            timeout,
        });
    }
    Ok(positions)
}

impl Doc<'_> {
    /// Where the lists of the events are, or the list of all.
    fn below(&self) -> Vec<Step<'static>> {
        self.json.below.iter().map(|key| Step::Key(key)).collect()
    }

    fn value(&self, event: &str, command: String) -> Value {
        let entry = (self.json.entry)(command, event);
        if self.json.has_groups(event) {
            Value::Map(vec![("hooks".into(), Value::List(vec![entry]))])
        } else {
            entry
        }
    }

    /// What leads to the object of the events. A file that is there may have
    /// them at its top, as Droid's own.
    fn found_below(&self, root: &Node) -> Vec<Step<'static>> {
        let below = self.below();
        let flat_file = matches!(self.recipe.files, super::super::recipe::Files::Prefer(..))
            && root.at(&below).is_none()
            && root.members().iter().any(|m| self.recipe.events.contains(&m.key.as_str()));
        if flat_file { Vec::new() } else { below }
    }

    /// Adds what one list has.
    fn list(
        &self,
        (list, event, path): (&Node, Option<&str>, &[Owned]),
        text: &str,
        want: &dyn Fn(&str) -> String,
        entries: &mut Vec<Entry>,
    ) {
        for (at, item) in list.list().iter().enumerate() {
            let event = event.or_else(|| item.get("trigger").and_then(Node::text)).unwrap_or("");
            let mut take = |node: &Node, more: &[Owned], alone, narrowed| {
                let Some(command) = command_of(node) else { return };
                let steps = [path, &[Owned::Item(at)], more].concat();
                let exact = json::same(node, &(self.json.entry)(want(event), event), text);
                entries.push(Entry {
                    event: event.to_string(),
                    command: command.to_string(),
                    narrowed,
                    exact,
                    at: At::Path { steps, alone },
                });
            };
            match item.get("hooks") {
                Some(group) if self.json.has_groups(event) => {
                    let narrowed =
                        item.get("matcher").is_some_and(|m| !matches!(m.text(), Some("" | "*")));
                    let alone = group.list().len() == 1
                        && item.members().iter().all(|m| matches!(&*m.key, "hooks" | "matcher"));
                    for (at, node) in group.list().iter().enumerate() {
                        let more = [Owned::Key("hooks".into()), Owned::Item(at)];
                        take(node, &more, alone, narrowed);
                    }
                }
                _ => take(item, &[], true, item.get("matcher").is_some()),
            }
        }
    }
}

/// Whether a comment stands in or around an empty member, where its removal would
/// take it along.
fn has_comment(text: &str, root: &Node, path: &[Step<'_>]) -> bool {
    let [above @ .., Step::Key(key)] = path else { return false };
    let members = root.at(above).map_or(&[][..], Node::members);
    let Some(member) = members.iter().find(|member| member.key == *key) else { return false };
    let end = member.value.span.end;
    let behind = text[end..].find([',', '}', '\n']).map_or(text.len(), |at| end + at);
    let around = [&text[member.key_span.end..end], &text[end..behind]].concat();
    around.contains("//") || around.contains("/*")
}

/// The command of an entry, by whatever key its harness has it.
fn command_of(entry: &Node) -> Option<&str> {
    let action = entry.get("action");
    let node = entry.get("command").or_else(|| entry.get("bash"));
    node.or_else(|| action.and_then(|action| action.get("command"))).and_then(Node::text)
}

fn base_value(base: Base) -> Value {
    match base {
        Base::Int(n) => Value::Int(n),
        Base::Text(text) => Value::Text(text.to_string()),
    }
}

/// How a path is written in a message.
fn dotted(path: &[Step<'_>]) -> String {
    let part = |step: &Step<'_>| match step {
        Step::Key(key) => (*key).to_string(),
        Step::Item(at) => at.to_string(),
    };
    path.iter().map(part).collect::<Vec<_>>().join(".")
}

impl Document for Doc<'_> {
    fn entries(&self, text: &str, want: &dyn Fn(&str) -> String) -> Result<Vec<Entry>, Refusal> {
        let root = json::parse(text, self.json.dialect)?;
        if !root.is_map() {
            return Err(Refusal::Shape("its top level is not an object".into()));
        }
        let below = self.found_below(&root);
        let mut entries = Vec::new();
        let owned: Vec<Owned> = below
            .iter()
            .map(|s| match s {
                Step::Key(k) => Owned::Key((*k).into()),
                Step::Item(at) => Owned::Item(*at),
            })
            .collect();
        for end in 1..=below.len() {
            let Some(node) = root.at(&below[..end]) else { return Ok(entries) };
            let last = end == below.len() && self.json.nest == Nest::All;
            if !(if last { node.is_list() } else { node.is_map() }) {
                let kind = if last { "a list" } else { "an object" };
                return Err(Refusal::Shape(format!("'{}' is not {kind}", dotted(&below[..end]))));
            }
        }
        let Some(place) = root.at(&below) else { return Ok(entries) };
        if self.json.nest == Nest::All {
            self.list((place, None, &owned), text, want, &mut entries);
            return Ok(entries);
        }
        for member in place.members() {
            let known = self.recipe.events.contains(&member.key.as_str());
            if known && !member.value.is_list() {
                let path = [&below[..], &[Step::Key(&member.key)]].concat();
                return Err(Refusal::Shape(format!("'{}' is not a list", dotted(&path))));
            }
            let path = [&owned[..], &[Owned::Key(member.key.clone())]].concat();
            self.list((&member.value, Some(&member.key), &path), text, want, &mut entries);
        }
        Ok(entries)
    }

    fn remove(&self, text: &str, entry: &Entry, before: Option<&str>) -> Result<String, Refusal> {
        let At::Path { steps: owned, alone } = &entry.at else { return Ok(text.to_string()) };
        let dialect = self.json.dialect;
        let mut path = steps(owned);
        if *alone
            && path.len() >= 2
            && path[path.len() - 2] == Step::Key("hooks")
            && self.json.has_groups(&entry.event)
        {
            path.truncate(path.len() - 2);
        }
        let mut text = json::remove(text, dialect, &path)?;
        // What holds nothing any more goes as well, but for the top, for what was
        // there before, and for what has a comment of the user's.
        while path.pop().is_some() && !path.is_empty() {
            let root = json::parse(&text, dialect)?;
            let Some(node) = root.at(&path) else { break };
            let own_name = path == [Step::Key("tongs")]
                && !node.members().iter().any(|m| m.value.is_list() || m.value.is_map());
            let empty = node.list().is_empty() && node.members().is_empty();
            if !(empty || own_name) || has_comment(&text, &root, &path) {
                break;
            }
            let before = before.and_then(|before| json::parse(before, dialect).ok());
            if before.is_some_and(|before| before.at(&path).is_some()) {
                break;
            }
            text = json::remove(&text, dialect, &path)?;
        }
        Ok(text)
    }

    fn remove_all(
        &self,
        text: &str,
        entries: &[Entry],
        before: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        let root = json::parse(text, self.json.dialect)?;
        let below = self.found_below(&root);
        let ([_], Some(place)) = (&below[..], root.at(&below)) else { return Ok(None) };
        let lists = || place.members().iter().map(|member| &member.value);
        let items = place.list().len() + lists().map(|list| list.list().len()).sum::<usize>();
        let is_alone = |entry: &Entry| matches!(entry.at, At::Path { alone: true, .. });
        let written = text.get(place.span.clone()).unwrap_or("");
        let mixed = items != entries.len()
            || !entries.iter().all(is_alone)
            || lists().any(|list| list.list().is_empty())
            || ["//", "/*"].iter().any(|comment| written.contains(comment))
            || has_comment(text, &root, &below);
        let before = before.and_then(|before| json::parse(before, self.json.dialect).ok());
        if mixed || before.is_some_and(|before| before.at(&below).is_some()) {
            return Ok(None);
        }
        Ok(Some(json::remove(text, self.json.dialect, &below)?))
    }

    fn replace(&self, text: &str, entry: &Entry, command: String) -> Result<String, Refusal> {
        let At::Path { steps: owned, .. } = &entry.at else { return Ok(text.to_string()) };
        let value = (self.json.entry)(command, &entry.event);
        Ok(json::replace(text, self.json.dialect, &steps(owned), &value)?)
    }

    fn add(&self, text: &str, event: &'static str, command: String) -> Result<String, Refusal> {
        let dialect = self.json.dialect;
        let root = json::parse(text, dialect)?;
        let mut path = self.found_below(&root);
        if self.json.nest != Nest::All {
            path.push(Step::Key(event));
        }
        let value = self.value(event, command);
        if root.at(&path).is_some() {
            return Ok(json::push(text, dialect, &path, &value)?);
        }
        let mut text = json::insert_at(text, dialect, &path, Value::List(vec![value]))?;
        for (key, base) in self.json.base.iter().filter(|(key, _)| root.get(key).is_none()) {
            text = json::insert(&text, dialect, &[], key, &base_value(*base))?;
        }
        Ok(text)
    }

    fn new_file(&self, entries: &[(&'static str, String)]) -> Result<String, Refusal> {
        let each = |(event, command): &(&'static str, String)| {
            (*event, self.value(event, command.clone()))
        };
        let mut value = if self.json.nest == Nest::All {
            Value::List(entries.iter().map(|e| each(e).1).collect())
        } else {
            let list = |e| {
                let (event, value) = each(e);
                (event.to_string(), Value::List(vec![value]))
            };
            Value::Map(entries.iter().map(list).collect())
        };
        for (depth, key) in self.json.below.iter().enumerate().rev() {
            let mut members: Vec<(String, Value)> = Vec::new();
            if depth == 0 {
                let base = |(key, base): &(&str, Base)| ((*key).to_string(), base_value(*base));
                members.extend(self.json.base.iter().map(base));
            }
            members.push(((*key).to_string(), value));
            value = Value::Map(members);
        }
        Ok(json::write(&value))
    }

    fn is_bare(&self, text: &str) -> Result<bool, Refusal> {
        let root = json::parse(text, self.json.dialect)?;
        Ok(root.members().iter().all(|member| {
            self.json.base.iter().any(|(key, base)| {
                *key == member.key && json::same(&member.value, &base_value(*base), text)
            })
        }))
    }
}
