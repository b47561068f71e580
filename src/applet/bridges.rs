//! The bridges that a user has set up: a name, and the command whose output is
//! imported under it, an array of words that no shell sees.

use serde_json::Value;

use super::fail::unwritten;
use crate::cli::{Exit, Fail};
use crate::record::out::{Object, Sink, Style, string};
use crate::store::{Patience, Store, WriteError, bridges};

/// Most characters of a name.
const MAX_NAME: usize = 64;
/// Most bridges.
const MOST: usize = 1000;

/// The options of ssh(1) that take a value.
const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";
/// Those that would keep a terminal from being used.
const WITHOUT_TERMINAL: &str = "nNfT";

/// One bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// The words of its command.
    pub command: Vec<String>,
}

impl Bridge {
    /// The words that go to a session with this id where the bridge leads, in a
    /// terminal; none where the command is not ssh's, or the id is not one that
    /// can stand on a shell's line as it is.
    pub fn way_to(&self, session: &str) -> Option<Vec<String>> {
        let (program, rest) = self.command.split_first()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        // Of a process without a session, the name of its machine is not a part.
        let session = session.split_once('@').map_or(session, |(process, _)| process);
        let takes = !session.is_empty() && !session.starts_with('-');
        if program.rsplit('/').next() != Some("ssh") || !takes || !session.chars().all(is_plain) {
            return None;
        }
        let mut way = vec![program.clone()];
        let mut words = rest.iter();
        let host = loop {
            let word = words.next()?;
            let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                break word;
            };
            if !letters.chars().all(|c| WITHOUT_TERMINAL.contains(c)) {
                way.push(word.clone());
            }
            // The first letter that takes a value has the rest of the word, or the
            // next one.
            if letters.find(|c| WITH_VALUE.contains(c)) == Some(letters.len() - 1) {
                way.push(words.next()?.clone());
            }
        };
        way.extend(["-t".to_string(), host.clone()]);
        let there: Vec<&String> = words.collect();
        match there.iter().position(|word| *word == "export") {
            Some(at) if at > 0 => way.extend(there[..at].iter().map(|word| (*word).clone())),
            _ => way.push("tongs-agents".to_string()),
        }
        way.extend(["focus", session, "--attach"].map(str::to_string));
        Some(way)
    }
}

/// Whether a name can be one of a bridge.
pub fn check_name(name: &str) -> Result<(), Fail> {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let fits = (1..=MAX_NAME).contains(&name.len()) && !name.starts_with(['.', '-']);
    if fits && name.bytes().all(good) {
        return Ok(());
    }
    let text = format!(
        "'{name}' is no name of a bridge: it is 1 to {MAX_NAME} letters, digits, '.', '_' and '-', \
         and begins with none of '.' and '-'"
    );
    Err(Fail::new(Exit::Usage, text))
}

/// Reads all bridges, in the order of their names.
pub fn all(store: &Store) -> Result<Vec<Bridge>, Fail> {
    parse(&bridges::load(store).map_err(unusable)?)
}

/// Changes the bridges, under a lock.
pub fn change(
    store: &Store,
    patience: &Patience,
    change: impl FnOnce(&mut Vec<Bridge>) -> Result<(), Fail>,
) -> Result<(), Fail> {
    let changed = bridges::change(store, patience, |bytes| {
        let mut all = parse(bytes)?;
        change(&mut all)?;
        if all.len() > MOST {
            return Err(Stop::Fail(Fail::new(
                Exit::No,
                format!("there are {MOST} bridges already"),
            )));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let mut text = Vec::new();
        put(&mut text, &all, &|_, _| {});
        Ok(text)
    });
    changed.map_err(|stop| match stop {
        Stop::Fail(fail) => fail,
        Stop::Store(e) => unusable(e),
    })
}

/// Writes bridges as JSON, on a line, and behind what is kept of each what `more`
/// adds to the one at its place.
pub fn put(sink: &mut Vec<u8>, bridges: &[Bridge], more: &dyn Fn(usize, &mut Object<'_, Vec<u8>>)) {
    let list = |sink: &mut Vec<u8>, len: usize, put: &dyn Fn(&mut Vec<u8>, usize)| {
        sink.put(b"[");
        for at in 0..len {
            sink.put(if at > 0 { b"," } else { b"" });
            put(sink, at);
        }
        sink.put(b"]");
    };
    let mut object = Object::open(sink);
    list(object.int("schema_version", 1).key("bridges"), bridges.len(), &|sink, at| {
        let Bridge { name, command } = &bridges[at];
        let mut object = Object::open(sink);
        list(object.str("name", name).key("command"), command.len(), &|sink, at| {
            string(sink, &command[at], Style::Shown);
        });
        more(at, &mut object);
        object.close();
    });
    object.close();
    sink.put(b"\n");
}

enum Stop {
    Fail(Fail),
    Store(WriteError),
}

impl From<WriteError> for Stop {
    fn from(e: WriteError) -> Stop {
        Stop::Store(e)
    }
}

impl From<Fail> for Stop {
    fn from(fail: Fail) -> Stop {
        Stop::Fail(fail)
    }
}

fn unusable(e: WriteError) -> Fail {
    let (exit, why) = match e {
        WriteError::Unsafe => (Exit::Refused, "it is not a file of ours".to_string()),
        WriteError::Malformed(_) => (Exit::Data, "it would be too long".to_string()),
        e => unwritten(e),
    };
    Fail::cannot(exit, "use", "bridges.json", why)
}

fn parse(bytes: &[u8]) -> Result<Vec<Bridge>, Fail> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let bad = |why: &str| Fail::cannot(Exit::Data, "read", "bridges.json", why);
    let value: Value = serde_json::from_slice(bytes).map_err(|_| bad("it is not JSON"))?;
    if value["schema_version"] != 1 {
        return Err(bad("it is of another version of tongs"));
    }
    let one = |bridge: &Value| {
        let name = bridge["name"].as_str().filter(|name| check_name(name).is_ok())?.to_string();
        let words = bridge["command"].as_array()?.iter();
        let command: Option<Vec<String>> = words.map(|w| w.as_str().map(str::to_string)).collect();
        Some(Bridge { name, command: command.filter(|command| !command.is_empty())? })
    };
    let all = value["bridges"].as_array().and_then(|all| all.iter().map(one).collect());
    all.ok_or_else(|| bad("it is not a list of names and commands"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(command: &str, session: &str) -> Option<String> {
        let command = command.split(' ').map(str::to_string).collect();
        let bridge = Bridge { name: "b".to_string(), command };
        bridge.way_to(session).map(|words| words.join(" "))
    }

    #[test]
    fn the_way_over_ssh_is_the_bridges_own_with_a_terminal() {
        for (command, want) in [
            ("ssh box tongs-agents export --follow", "ssh -t box tongs-agents"),
            ("/usr/bin/ssh box", "/usr/bin/ssh -t box tongs-agents"),
            (
                "ssh -p 22 -oX=y -i k -4C u@box /opt/t agents export",
                "ssh -p 22 -oX=y -i k -4C -t u@box /opt/t agents",
            ),
            ("ssh -nT -T -n -4p 7 box tongs-agents export", "ssh -4p 7 -t box tongs-agents"),
            ("ssh -J a,b box export", "ssh -J a,b -t box tongs-agents"),
        ] {
            assert_eq!(way(command, "s1"), Some(format!("{want} focus s1 --attach")), "{command}");
        }
        assert_eq!(
            way("ssh b", "proc-7@h;x").as_deref(),
            Some("ssh -t b tongs-agents focus proc-7 --attach")
        );
        for (command, session) in [
            ("docker exec box tongs-agents export", "s"),
            ("ssh", "s"),
            ("ssh -p", "s"),
            ("ssh box", ""),
            ("ssh box", "-x"),
            ("ssh box", "a;reboot"),
            ("ssh box", "a b"),
            ("ssh box", "$(x)"),
        ] {
            assert_eq!(way(command, session), None, "{command} {session}");
        }
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let bridge =
            Bridge { name: "b".to_string(), command: vec!["a \u{1b}\"".into(), String::new()] };
        let mut text = Vec::new();
        put(&mut text, &[bridge.clone(), bridge.clone()], &|_, _| {});
        assert_eq!(parse(&text), Ok(vec![bridge.clone(), bridge]));
        assert_eq!(parse(b""), Ok(Vec::new()));
        for bad in [
            "{",
            r#"{"schema_version":2,"bridges":[]}"#,
            r#"{"schema_version":1}"#,
            r#"{"schema_version":1,"bridges":[{"name":"../x","command":["a"]}]}"#,
            r#"{"schema_version":1,"bridges":[{"name":"x","command":"a b"}]}"#,
            r#"{"schema_version":1,"bridges":[{"name":"x","command":[]}]}"#,
            r#"{"schema_version":1,"bridges":[{"name":"x","command":["a",1]}]}"#,
        ] {
            assert_eq!(parse(bad.as_bytes()).map_err(|fail| fail.exit), Err(Exit::Data), "{bad}");
        }
    }
}
