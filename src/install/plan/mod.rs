//! What a harness's file should hold, what it holds, and the way from one to
//! the other: texts in, texts out.
//!
//! Only entries with a command in the exact shape of [`Command`] are ours;
//! everything else is kept to the byte. An entry of ours that is not as it
//! should be is set right where it stands; of two for one event the first stays.
//! Each kind of file is a [`Document`]; what is done to it is decided here, once.

mod in_json;
mod in_toml;
mod in_yaml;

pub use in_json::{Position, positions};

use super::command::Command;
use super::plugins::{self, Plugin};
use super::recipe::{Recipe, Shape, Switch};
use super::text::json::{self, Dialect};
use super::text::{Edit, Fault, Step, toml};

/// Why a file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read.
    Fault(Fault),
    /// It can be read, but this part is not what the harness documents.
    Shape(String),
    /// It has the name of our file and is somebody else's.
    NotOurs,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

impl From<Edit> for Refusal {
    fn from(edit: Edit) -> Refusal {
        match edit {
            Edit::Fault(fault) => Refusal::Fault(fault),
            Edit::NoSuchPath => Refusal::Shape("the place for a hook is not there".into()),
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refusal::Fault(fault) => write!(f, "{fault}"),
            Refusal::Shape(why) => f.write_str(why),
            Refusal::NotOurs => f.write_str("it is there and tongs did not write it"),
        }
    }
}

/// What a file has of ours, and of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Entries of ours.
    pub ours: usize,
    /// Events without an entry of ours as it should be.
    pub missing: Vec<&'static str>,
    /// Entries of ours that run another path than the wanted one: the paths.
    pub moved: Vec<String>,
    /// Entries of ours that are too many, behind a matcher or changed.
    pub wrong: usize,
    /// Other programs that the file runs: the event and the program's name.
    pub others: Vec<(String, String)>,
}

impl Look {
    /// Whether everything is as it should be.
    pub fn is_right(&self) -> bool {
        self.missing.is_empty() && self.moved.is_empty() && self.wrong == 0
    }
}

/// An entry that runs a command.
struct Entry {
    /// The event that it stands for.
    event: String,
    /// The command as it stands there.
    command: String,
    /// Whether a matcher keeps it from some of its events.
    narrowed: bool,
    /// Whether it is to the letter the one that is wanted.
    exact: bool,
    /// Where it is.
    at: At,
}

/// Where an entry is.
enum At {
    /// The keys and items that lead to it, and whether it is alone in its group,
    /// which then goes with it.
    Path { steps: Vec<Owned>, alone: bool },
    /// The bytes of its table.
    Span(core::ops::Range<usize>),
}

/// A [`Step`] that owns its key.
#[derive(Clone)]
enum Owned {
    Key(String),
    Item(usize),
}

fn steps(owned: &[Owned]) -> Vec<Step<'_>> {
    let step = |owned| match owned {
        &Owned::Item(at) => Step::Item(at),
        Owned::Key(key) => Step::Key(key),
    };
    owned.iter().map(step).collect()
}

/// A kind of file, with the recipe that it is for.
trait Document {
    /// The entries, in the order of the file. `want` gives the command for an
    /// event.
    fn entries(&self, text: &str, want: &dyn Fn(&str) -> String) -> Result<Vec<Entry>, Refusal>;
    /// Takes an entry out, and what is empty then, unless it was there `before`.
    fn remove(&self, text: &str, entry: &Entry, before: Option<&str>) -> Result<String, Refusal>;
    /// Takes all entries out at once, where nothing else stands around them; `None`
    /// where that cannot be done.
    fn remove_all(
        &self,
        _text: &str,
        _entries: &[Entry],
        _before: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        Ok(None)
    }
    /// Makes an entry what it should be.
    fn replace(&self, text: &str, entry: &Entry, command: String) -> Result<String, Refusal>;
    /// Adds the entry of an event.
    fn add(&self, text: &str, event: &'static str, command: String) -> Result<String, Refusal>;
    /// A new file with these entries.
    fn new_file(&self, entries: &[(&'static str, String)]) -> Result<String, Refusal>;
    /// Whether nothing is left but what a new file has besides its entries.
    fn is_bare(&self, text: &str) -> Result<bool, Refusal>;
}

fn document(recipe: &Recipe) -> Option<Box<dyn Document + '_>> {
    match &recipe.shape {
        Shape::Json(json) => Some(Box::new(in_json::Doc { json, recipe })),
        Shape::Toml => Some(Box::new(in_toml::Doc)),
        Shape::Yaml => Some(Box::new(in_yaml::Doc)),
        Shape::Plugin(_) => None,
    }
}

/// The plugin of one of a recipe's files.
fn plugin(recipe: &Recipe, event: &'static str) -> Option<Plugin> {
    match recipe.shape {
        Shape::Plugin(Plugin::Cline(_)) => Some(Plugin::Cline(event)),
        Shape::Plugin(plugin) => Some(plugin),
        _ => None,
    }
}

/// The command of an event.
fn command(recipe: &Recipe, hook: &str, event: &str) -> String {
    let command =
        Command { hook: hook.into(), agent: recipe.agent.into(), event: event.to_string() };
    command.text(recipe.runs)
}

/// The file as it should be. `old` is `None` where it is missing; `event` is the
/// one of a file that is for one event alone.
pub fn put(
    recipe: &Recipe,
    event: &'static str,
    old: Option<&str>,
    hook: &str,
) -> Result<String, Refusal> {
    let old = old.filter(|text| !text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty());
    if let Some(plugin) = plugin(recipe, event) {
        return match old {
            Some(text) if !plugins::is_ours(plugin, text) => Err(Refusal::NotOurs),
            _ => Ok(plugins::text(plugin, hook)),
        };
    }
    let Some(document) = document(recipe) else { return Err(Refusal::NotOurs) };
    let want = |event: &str| command(recipe, hook, event);
    let Some(old) = old else {
        let entries: Vec<_> = recipe.events.iter().map(|event| (*event, want(event))).collect();
        return document.new_file(&entries);
    };
    let mut text = old.to_string();
    // One by one, the last first: what stands before it stays where it is, and
    // what is next is found anew.
    let kept = loop {
        let entries = document.entries(&text, &want)?;
        let (kept, change) = settle(recipe, &entries);
        text = match change {
            None => break kept,
            Some((entry, true)) => document.replace(&text, entry, want(&entry.event))?,
            Some((entry, false)) => document.remove(&text, entry, None)?,
        };
    };
    for event in recipe.events.iter().filter(|event| !kept.iter().any(|kept| kept == *event)) {
        text = document.add(&text, event, want(event))?;
    }
    // What could not be taken out again is not put in.
    match take(recipe, event, &text, None) {
        Ok(_) => Ok(text),
        Err(_) => Err(Refusal::Shape("hooks could not be taken out of it again".into())),
    }
}

/// Says which events have their entry, and the last entry of ours that is to be
/// set right, or to go.
fn settle<'e>(recipe: &Recipe, entries: &'e [Entry]) -> (Vec<String>, Option<(&'e Entry, bool)>) {
    let (mut kept, mut change) = (Vec::new(), None);
    for entry in entries.iter().filter(|e| Command::read(&e.command).is_some()) {
        let wanted = recipe.events.contains(&entry.event.as_str());
        if !wanted || entry.narrowed || kept.contains(&entry.event) {
            change = Some((entry, false));
        } else {
            kept.push(entry.event.clone());
            if !entry.exact {
                change = Some((entry, true));
            }
        }
    }
    (kept, change)
}

/// A file without anything of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What is left.
    pub text: String,
    /// Whether that is no more than what a new file has besides its entries.
    pub bare: bool,
    /// The hook's path in the entries that were there; `None` where none were.
    pub hook: Option<String>,
}

/// Takes everything of ours out of a file. `before` is what it was without, where
/// that is known: what was empty then stays.
pub fn take(
    recipe: &Recipe,
    event: &'static str,
    old: &str,
    before: Option<&str>,
) -> Result<Taken, Refusal> {
    if let Some(plugin) = plugin(recipe, event) {
        return Ok(if plugins::is_ours(plugin, old) {
            let hook = Some(plugins::hook_path(plugin, old).unwrap_or_default());
            Taken { text: String::new(), bare: true, hook }
        } else {
            Taken { text: old.to_string(), bare: false, hook: None }
        });
    }
    let Some(document) = document(recipe) else { return Err(Refusal::NotOurs) };
    let (mut text, mut hook) = (old.to_string(), None);
    let ours = |entry: &Entry| Command::read(&entry.command).map(|ours| ours.hook);
    loop {
        let entries = document.entries(&text, &|_| String::new())?;
        let Some(entry) = entries.iter().rev().find(|entry| ours(entry).is_some()) else { break };
        hook = ours(entry);
        let all = entries.iter().all(|entry| ours(entry).is_some());
        let less = if all { document.remove_all(&text, &entries, before)? } else { None };
        let less = match less {
            Some(less) => less,
            None => document.remove(&text, entry, before)?,
        };
        if less.len() >= text.len() {
            return Err(Edit::NoSuchPath.into());
        }
        text = less;
    }
    let bare = hook.is_some() && document.is_bare(&text)?;
    Ok(Taken { text, bare, hook })
}

/// What the file has. `old` is `None` where it is missing.
pub fn look(
    recipe: &Recipe,
    event: &'static str,
    old: Option<&str>,
    hook: &str,
) -> Result<Look, Refusal> {
    let mut look = Look::default();
    let old = old.filter(|text| !text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty());
    let Some(old) = old else {
        look.missing =
            if plugin(recipe, event).is_some() { vec![event] } else { recipe.events.to_vec() };
        return Ok(look);
    };
    if let Some(plugin) = plugin(recipe, event) {
        if !plugins::is_ours(plugin, old) {
            return Err(Refusal::NotOurs);
        }
        look.ours = 1;
        match plugins::hook_path(plugin, old) {
            Some(path) if path != hook => look.moved.push(path),
            _ if old != plugins::text(plugin, hook) => look.wrong = 1,
            _ => {}
        }
        return Ok(look);
    }
    let Some(document) = document(recipe) else { return Err(Refusal::NotOurs) };
    let (mut have, mut good): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for entry in document.entries(old, &|event| command(recipe, hook, event))? {
        let Some(ours) = Command::read(&entry.command) else {
            look.others.push((entry.event, program(&entry.command)));
            continue;
        };
        look.ours += 1;
        let here = ours.hook == hook;
        if !here && !look.moved.contains(&ours.hook) {
            look.moved.push(ours.hook);
        }
        let wanted = recipe.events.contains(&entry.event.as_str());
        let right = entry.exact && wanted && !entry.narrowed && !good.contains(&entry.event);
        look.wrong += usize::from(here && !right);
        if right {
            good.push(entry.event.clone());
        }
        have.push(entry.event);
    }
    let missing = recipe.events.iter().filter(|event| !have.iter().any(|have| have == *event));
    look.missing = missing.copied().collect();
    Ok(look)
}

/// The name of the program that a command runs first, without its directory and
/// without its arguments, which may hold secrets.
fn program(command: &str) -> String {
    let command = command.trim_start();
    let word = match command.strip_prefix(['\'', '"']) {
        Some(rest) => rest.split(['\'', '"']).next(),
        None => command.split_whitespace().next(),
    };
    let word = word.unwrap_or("");
    word.rsplit('/').next().unwrap_or(word).chars().take(40).collect()
}

/// Whether a file's text turns hooks off. `text` is of the file that the switch
/// is in; a text that cannot be read turns nothing off.
pub fn is_off(switch: &Switch, text: &str) -> bool {
    let json = |path: &[&str]| {
        let root = json::parse(text, Dialect::Five).ok()?;
        let path: Vec<Step<'_>> = path.iter().map(|key| Step::Key(key)).collect();
        root.at(&path).cloned()
    };
    match switch {
        Switch::Here(path, off) | Switch::There(_, path, off) | Switch::System(_, path, off) => {
            json(path).is_some_and(|node| node.bool() == Some(*off))
        }
        Switch::Names(path, name) => {
            json(path).is_some_and(|node| node.list().iter().any(|item| item.text() == Some(name)))
        }
        Switch::Toml(_, path, off) => toml::parse(text)
            .is_ok_and(|doc| matches!(doc.get(path), Some(toml::Item::Bool(is)) if is == off)),
    }
}

#[cfg(test)]
mod tests {}
