//! The registration of `tongs-agents mcp` as a server with a harness: one entry
//! named `tongs` in the file that lists them.

use super::plan::Refusal;
use super::recipe::Home;
use super::text::json::{self, Dialect, Node};
use super::text::toml::{self, Item};
use super::text::yaml;
use super::text::{Step, Value};

/// The name of the entry.
const NAME: &str = "tongs";
/// The name that the server's program has.
pub const PROGRAM: &str = "tongs-agents";

/// Where a harness lists its servers.
pub struct Servers {
    /// The file.
    pub file: Listed,
    /// What it holds.
    pub shape: Shape,
}

/// The file with the servers.
pub enum Listed {
    /// In the directory of the settings.
    In(&'static str),
    /// The first one there if it exists, else the second.
    Prefer(&'static str, &'static str),
    /// Beside that directory, and in it where a variable moves it.
    Beside(&'static str),
    /// In a directory of its own.
    Of(Home, &'static str),
}

/// What the file holds.
pub enum Shape {
    /// JSON: the keys that lead to the servers, and the entry for a program.
    Json(Dialect, &'static [&'static str], fn(&str) -> Value),
    /// TOML: a table `mcp_servers.tongs`.
    Toml,
    /// YAML: the key of the servers, the key of an entry's program, and the entry
    /// for a program.
    Yaml(&'static str, &'static str, fn(&str) -> Value),
}

/// `command` and `args`, as most have it.
pub fn plain(program: &str) -> Value {
    Value::from([("command", program.into()), ("args", vec!["mcp".into()].into())])
}

/// The same with a type.
pub fn typed(program: &str) -> Value {
    Value::from([
        ("type", "stdio".into()),
        ("command", program.into()),
        ("args", vec!["mcp".into()].into()),
    ])
}

/// As Copilot has it.
pub fn local(program: &str) -> Value {
    Value::from([
        ("type", "local".into()),
        ("command", program.into()),
        ("args", vec!["mcp".into()].into()),
        ("tools", vec!["*".into()].into()),
    ])
}

/// As OpenCode has it: one list with all words.
pub fn listed(program: &str) -> Value {
    Value::from([
        ("type", "local".into()),
        ("command", vec![program.into(), "mcp".into()].into()),
        ("enabled", true.into()),
    ])
}

/// As goose has it, where it is an extension.
pub fn extension(program: &str) -> Value {
    Value::from([
        ("enabled", true.into()),
        ("type", "stdio".into()),
        ("name", NAME.into()),
        ("description", "Sessions of coding agents".into()),
        ("cmd", program.into()),
        ("args", vec!["mcp".into()].into()),
        ("timeout", 300.into()),
    ])
}

fn is_program(path: &str) -> bool {
    path.rsplit('/').next() == Some(PROGRAM)
}

/// Whether an entry runs our server.
fn is_ours(entry: &Node) -> bool {
    let words = |node: &Node| match node.text() {
        Some(text) => vec![text.to_string()],
        None => node.list().iter().filter_map(|n| Some(n.text()?.to_string())).collect(),
    };
    let part = |name| entry.get(name).map(words).unwrap_or_default();
    let all = [part("command"), part("args")].concat();
    matches!(&all[..], [program, mcp] if is_program(program) && mcp == "mcp")
}

fn steps<'k>(below: &'k [&'k str]) -> Vec<Step<'k>> {
    below.iter().map(|key| Step::Key(key)).collect()
}

/// The file with the server in it; `old` is `None` where there is none.
pub fn put(servers: &Servers, old: Option<&str>, program: &str) -> Result<String, Refusal> {
    let old = old.filter(|text| !text.trim().is_empty());
    let (dialect, below, entry) = match servers.shape {
        Shape::Json(dialect, below, entry) => (dialect, below, entry),
        Shape::Toml => return put_toml(old.unwrap_or(""), program),
        Shape::Yaml(below, key, entry) => {
            return put_yaml(old.unwrap_or(""), below, key, program, &entry(program));
        }
    };
    let entry = entry(program);
    let Some(old) = old else {
        let mut value = Value::Map(vec![(NAME.to_string(), entry)]);
        for key in below.iter().rev() {
            value = Value::Map(vec![((*key).to_string(), value)]);
        }
        return Ok(json::write(&value));
    };
    let root = json::parse(old, dialect)?;
    let mut path = steps(below);
    path.push(Step::Key(NAME));
    if let Some(node) = root.at(&path) {
        return match () {
            () if json::same(node, &entry, old) => Ok(old.to_string()),
            () if is_ours(node) => Ok(json::replace(old, dialect, &path, &entry)?),
            () => Err(Refusal::NotOurs),
        };
    }
    Ok(json::insert_at(old, dialect, &path, entry)?)
}

/// The file without the server; `None` where it is not in it. What holds nothing
/// any more goes as well, unless the file held it `before` the server.
pub fn take(servers: &Servers, old: &str, before: Option<&str>) -> Result<Option<String>, Refusal> {
    let (dialect, below) = match servers.shape {
        Shape::Json(dialect, below, _) => (dialect, below),
        Shape::Toml => return take_toml(old),
        Shape::Yaml(below, key, _) => return take_yaml(old, below, key, before),
    };
    if old.trim().is_empty() {
        return Ok(None);
    }
    let root = json::parse(old, dialect)?;
    let mut path = steps(below);
    path.push(Step::Key(NAME));
    if !root.at(&path).is_some_and(is_ours) {
        return Ok(None);
    }
    let mut text = json::remove(old, dialect, &path)?;
    let before = before.and_then(|text| json::parse(text, dialect).ok());
    while path.pop().is_some() && !path.is_empty() {
        if before.as_ref().is_some_and(|before| before.at(&path).is_some()) {
            break;
        }
        let root = json::parse(&text, dialect)?;
        if root.at(&path).is_none_or(|node| !node.members().is_empty()) {
            break;
        }
        text = json::remove(&text, dialect, &path)?;
    }
    Ok(Some(text))
}

/// How the server stands in a file: `registered`, `moved`, where another path than
/// this one is registered, or `missing`.
pub fn look(servers: &Servers, old: Option<&str>, program: &str) -> Result<&'static str, Refusal> {
    let Some(text) = old else { return Ok("missing") };
    Ok(match (put(servers, old, program)? == text, take(servers, text, None)?) {
        (true, _) => "registered",
        (false, Some(_)) => "moved",
        (false, None) => "missing",
    })
}

/// Whether nothing is left but what an empty file has.
pub fn is_bare(servers: &Servers, text: &str) -> bool {
    match servers.shape {
        Shape::Json(dialect, ..) => {
            json::parse(text, dialect).is_ok_and(|root| root.members().is_empty())
        }
        Shape::Toml | Shape::Yaml(..) => text.trim().is_empty(),
    }
}

const TABLE: [&str; 2] = ["mcp_servers", NAME];

fn in_toml(text: &str) -> Result<Option<(toml::Table, bool, bool)>, Refusal> {
    let doc = toml::parse(text)?;
    let inline = doc.get(&TABLE).is_some();
    let table = doc.tables.into_iter().find(|t| t.path == TABLE && !t.array);
    let Some(table) = table else {
        return if inline { Err(Refusal::NotOurs) } else { Ok(None) };
    };
    let value = |key: &str| table.entries.iter().find(|e| e.key == [key]).map(|e| &e.value);
    let program = match value("command") {
        Some(Item::Text(program)) => program.clone(),
        _ => String::new(),
    };
    let args = matches!(value("args"), Some(Item::List(args))
        if matches!(&args[..], [Item::Text(word)] if word == "mcp"));
    let ours = is_program(&program) && args;
    let plain = table.entries.len() == 2;
    Ok(Some((table, ours, plain)))
}

fn put_toml(old: &str, program: &str) -> Result<String, Refusal> {
    match in_toml(old)? {
        Some((_, false, _)) => Err(Refusal::NotOurs),
        Some((_, true, _)) => Ok(toml::set(old, &TABLE, "command", &program.into())?),
        None => {
            let args: Value = vec!["mcp".into()].into();
            Ok(toml::append_table(
                old,
                &TABLE,
                false,
                &[("command", program.into()), ("args", args)],
            )?)
        }
    }
}

fn take_toml(old: &str) -> Result<Option<String>, Refusal> {
    match in_toml(old) {
        Ok(Some((table, true, true))) => Ok(Some(toml::remove(old, table.span))),
        // One with more in it is the user's, too.
        Ok(_) | Err(Refusal::NotOurs) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// The program of our entry in YAML; `None` where there is no entry of its name.
fn in_yaml(text: &str, below: &str, key: &str) -> Result<Option<String>, Refusal> {
    let root = yaml::parse(text)?;
    let Some(entry) = root.get(below).and_then(|servers| servers.get(NAME)) else {
        return Ok(None);
    };
    let program = entry.get(key).and_then(yaml::Node::text).filter(|text| is_program(text));
    let args = entry.get("args").map_or(&[][..], yaml::Node::list);
    match (program, args) {
        (Some(program), [word]) if word.text() == Some("mcp") => Ok(Some(program.to_string())),
        _ => Err(Refusal::NotOurs),
    }
}

fn put_yaml(
    old: &str,
    below: &str,
    key: &str,
    program: &str,
    entry: &Value,
) -> Result<String, Refusal> {
    match in_yaml(old, below, key)? {
        Some(is) if is == program => Ok(old.to_string()),
        Some(_) => Ok(yaml::set_text(old, &steps(&[below, NAME, key]), program)?),
        None => Ok(yaml::put(old, &[below, NAME], entry)?),
    }
}

fn take_yaml(
    old: &str,
    below: &str,
    key: &str,
    before: Option<&str>,
) -> Result<Option<String>, Refusal> {
    match in_yaml(old, below, key) {
        Ok(Some(_)) => Ok(Some(yaml::prune(old, &steps(&[below, NAME]), before)?)),
        Ok(None) | Err(Refusal::NotOurs) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
