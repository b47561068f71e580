//! Editing JSON, TOML and YAML by text span.
//!
//! Text in, text out. Every byte that is no part of an edit survives; what is
//! put in has the line ends and the indentation of the file around it. Parsing
//! is strict: a text that two programs could read differently is a [`Fault`],
//! and a fault changes nothing. `diff` shows what an edit did.

pub mod diff;
pub mod json;
pub mod toml;
pub mod yaml;

use std::ops::Range;

use crate::record::out::{self, Style};

/// Most levels of nesting.
const MAX_DEPTH: usize = 128;

/// The byte order mark, which some editors put before the first character.
const BOM: char = '\u{feff}';

/// Where and why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl Fault {
    fn new(text: &str, at: usize, what: &'static str) -> Fault {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or("");
        Fault {
            line: 1 + before.bytes().filter(|b| *b == b'\n').count(),
            column: 1 + line.trim_start_matches(BOM).chars().count(),
            what,
        }
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

/// Why a text was not edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It cannot be read, or not be edited at that place.
    Fault(Fault),
    /// It has no such place, or something else stands there.
    NoSuchPath,
}

impl From<Fault> for Edit {
    fn from(fault: Fault) -> Edit {
        Edit::Fault(fault)
    }
}

impl core::fmt::Display for Edit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Edit::Fault(fault) => fault.fmt(f),
            Edit::NoSuchPath => f.write_str("no such place"),
        }
    }
}

/// One step of a path into a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// To the value of a key.
    Key(&'a str),
    /// To an item of a list, from 0.
    Item(usize),
}

/// A value to be written. Maps keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Int(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A list.
    List(Vec<Value>),
    /// A map. No key may stand twice.
    Map(Vec<(String, Value)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Value {
        Value::Int(int)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Value {
        Value::Bool(bool)
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Value {
        Value::List(list)
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Value {
    fn from(members: [(&str, Value); N]) -> Value {
        Value::Map(members.map(|(key, value)| (key.to_string(), value)).into())
    }
}

/// The line end that most lines have.
fn line_end(text: &str) -> &'static str {
    let all = text.bytes().filter(|b| *b == b'\n').count();
    let long = text.matches("\r\n").count();
    if long * 2 > all { "\r\n" } else { "\n" }
}

/// A string in JSON's quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    out::string(&mut bytes, text, Style::Stored);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Replaces spans, which stand in order and do not overlap.
fn splice(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut new = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (span, put) in edits {
        new.push_str(text.get(at..span.start).unwrap_or(""));
        new.push_str(put);
        at = span.end;
    }
    new.push_str(text.get(at..).unwrap_or(""));
    new
}
