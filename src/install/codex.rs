//! Codex runs only hooks that its user has reviewed, each known by a hash.
//!
//! The hash is the SHA-256 of a hook's own description as compact JSON with
//! sorted keys; it stands in `config.toml` under `[hooks.state."KEY"]`, KEY being
//! `FILE:EVENT:GROUP:ENTRY`.

use super::plan::{Position, Refusal};
use super::text::{Value, quoted, toml};
use crate::record::sha256::Sha256;

/// A hook as Codex knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Where it stands.
    pub key: String,
    /// What it was when it was trusted.
    pub hash: String,
}

/// The trust that hooks at these places of a file need.
pub fn wanted(path: &str, positions: &[Position]) -> Vec<Trust> {
    positions
        .iter()
        .map(|at| {
            let event = snake(&at.event);
            let mut sha = Sha256::default();
            sha.update(description(&event, at).as_bytes());
            let hex = sha.finish_hex();
            let hex = core::str::from_utf8(&hex).unwrap_or("");
            Trust {
                key: format!("{path}:{event}:{}:{}", at.group, at.entry),
                hash: format!("sha256:{hex}"),
            }
        })
        .collect()
}

/// What is hashed.
fn description(event: &str, at: &Position) -> String {
    let matcher = match at.matcher.as_str() {
        "" => String::new(),
        matcher => format!(",\"matcher\":{}", quoted(matcher)),
    };
    format!(
        "{{\"event_name\":{},\"hooks\":[{{\"async\":false,\"command\":{},\"timeout\":{},\"type\":\"command\"}}]{matcher}}}",
        quoted(event),
        quoted(&at.command),
        at.timeout.unwrap_or(600).max(1),
    )
}

/// `SessionStart` as `session_start`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// How `config.toml` sees hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Hooks that were never trusted, or changed since.
    pub untrusted: usize,
    /// Hooks that the user turned off.
    pub disabled: usize,
}

/// Compares what is wanted with what `config.toml` says; `None` for no file.
pub fn state(config: Option<&str>, wanted: &[Trust]) -> Result<State, Refusal> {
    let mut state = State::default();
    let doc = config.map(toml::parse).transpose()?;
    for trust in wanted {
        let get =
            |name| doc.as_ref().and_then(|doc| doc.get(&["hooks", "state", &trust.key, name]));
        if !matches!(get("trusted_hash"), Some(toml::Item::Text(hash)) if *hash == trust.hash) {
            state.untrusted += 1;
        }
        if matches!(get("enabled"), Some(toml::Item::Bool(false))) {
            state.disabled += 1;
        }
    }
    Ok(state)
}

/// Writes what is wanted into the text of `config.toml`. A hook that the user
/// turned off stays off.
pub fn trust(config: Option<&str>, wanted: &[Trust]) -> Result<String, Refusal> {
    let mut text = config.unwrap_or("").to_string();
    for trust in wanted {
        let table = ["hooks", "state", &trust.key];
        let hash = Value::Text(trust.hash.clone());
        let doc = toml::parse(&text)?;
        let have = doc.get(&["hooks", "state", &trust.key, "trusted_hash"]);
        if matches!(have, Some(toml::Item::Text(hash)) if *hash == trust.hash) {
            continue;
        }
        let own = doc.tables.iter().any(|t| t.path.iter().map(String::as_str).eq(table));
        // Only what can be taken out again as a whole is put in.
        text = if own {
            toml::set(&text, &table, "trusted_hash", &hash)?
        } else {
            let whole = toml::append_table(&text, &table, false, &[("trusted_hash", hash)]);
            whole.map_err(|_| Refusal::Shape("'hooks.state' is not written as tables".into()))?
        };
    }
    Ok(text)
}

/// Takes the trust of hooks out of the text of `config.toml`.
pub fn distrust(config: &str, gone: &[Trust]) -> Result<String, Refusal> {
    let mut text = config.to_string();
    for trust in gone {
        let doc = toml::parse(&text)?;
        let table = doc
            .tables
            .iter()
            .find(|table| table.path.iter().map(String::as_str).eq(["hooks", "state", &trust.key]));
        // One with more in it is the user's, too.
        let ours = table.filter(|t| t.entries.iter().all(|e| e.key == ["trusted_hash"]));
        if let Some(span) = ours.map(|table| table.span.clone()) {
            text = toml::remove(&text, span);
        }
    }
    Ok(text)
}
