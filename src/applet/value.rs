//! Values of commands as JSON on one line, safe for a terminal.

use super::fail::Stdout;
use crate::cli::{Fail, Out};
use crate::install::text::Value;
use crate::record::out::{Sink, Style, string};

/// Prints a value and a newline.
pub fn print(out: &mut Out<Stdout>, value: &Value) -> Result<(), Fail> {
    out.append(|line| {
        put(line, value);
        line.put(b"\n");
    })
}

fn put(line: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => string(line, text, Style::Shown),
        Value::Int(n) => line.put(n.to_string().as_bytes()),
        Value::Bool(b) => line.put(if *b { b"true" } else { b"false" }),
        Value::List(list) => {
            line.put(b"[");
            for (n, item) in list.iter().enumerate() {
                if n > 0 {
                    line.put(b",");
                }
                put(line, item);
            }
            line.put(b"]");
        }
        Value::Map(members) => {
            line.put(b"{");
            for (n, (key, value)) in members.iter().enumerate() {
                if n > 0 {
                    line.put(b",");
                }
                string(line, key, Style::Shown);
                line.put(b":");
                put(line, value);
            }
            line.put(b"}");
        }
    }
}
