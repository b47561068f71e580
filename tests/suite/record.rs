//! The scanner and the check against an independent reading of the rules, what
//! readers make of a record, and what a hook leaves alone.
//!
//! The oracle is `serde_json` for JSON itself, and a walk over brackets and
//! strings for the rest. Random inputs come from a fixed seed;
//! TONGS_TEST_SEED sets another.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tongs::harness::is_known;
use tongs::record::check::{self, Checked, Door};
use tongs::record::id::{self, File, Part};
use tongs::record::out::is_hidden;
use tongs::record::{Fault, FaultKind, Key, Kind, MAX_BYTES, Scan, Status};
use tongs::store::annotate::{View, annotate_session, put_session};
use tongs::store::seen::Seen;

use crate::world::{World, bytes, claude};

// ---- the oracle ----

/// Splits JSON text into what stands outside of strings and the strings, quotes
/// included; a string that does not end is the last piece.
fn pieces(json: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        pieces.push(&rest[..start]);
        let mut end = start + 1;
        let inside = rest.as_bytes();
        while end < inside.len() && inside[end] != b'"' {
            end += if inside[end] == b'\\' { 2 } else { 1 };
        }
        end = (end + 1).min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        pieces.push(&rest[start..end]);
        rest = &rest[end..];
    }
    pieces.push(rest);
    pieces
}

fn is_number(token: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let token = token.strip_prefix('-').unwrap_or(token);
    let (mantissa, exponent) = match token.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['+', '-']).unwrap_or(e))),
        None => (token, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((w, f)) => (w, Some(f)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// The same JSON with every number that JSON's grammar allows written as 0:
/// serde_json refuses numbers that no f64 holds, and a record may have them.
fn without_numbers(json: &str) -> String {
    let mut out = String::new();
    for (at, piece) in pieces(json).into_iter().enumerate() {
        if at % 2 == 1 {
            out.push_str(piece);
            continue;
        }
        let mut rest = piece;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c == '-') {
            out.push_str(&rest[..start]);
            let tail = &rest[start..];
            let end = tail
                .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
                .unwrap_or(tail.len());
            out.push_str(if is_number(&tail[..end]) { "0" } else { &tail[..end] });
            rest = &tail[end..];
        }
        out.push_str(rest);
    }
    out
}

/// The depth of nesting, for JSON that is known to be good.
fn depth(json: &str) -> usize {
    let (mut depth, mut most) = (0usize, 0);
    for piece in pieces(json).into_iter().step_by(2) {
        for c in piece.chars() {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            most = most.max(depth);
        }
    }
    most
}

/// The keys at the top, unescaped, in their order, for good JSON.
fn top_keys(json: &str) -> Vec<String> {
    let pieces = pieces(json);
    let (mut depth, mut keys) = (0, Vec::new());
    for at in 0..pieces.len() {
        if at % 2 == 0 {
            depth += pieces[at].matches(['{', '[']).count();
            depth -= pieces[at].matches(['}', ']']).count();
        } else if depth == 1 && pieces[at + 1].trim_start().starts_with(':') {
            keys.push(serde_json::from_str(pieces[at]).unwrap());
        }
    }
    keys
}

/// Whether the rules of a record's form allow these bytes.
fn is_acceptable(bytes: &[u8]) -> bool {
    let Ok(json) = std::str::from_utf8(bytes) else { return false };
    let plain = without_numbers(json);
    let parsed = serde_json::from_str::<Value>(&plain);
    match serde_json::from_slice::<Value>(bytes) {
        Ok(_) => assert!(parsed.is_ok(), "the oracle lost its way: {json}"),
        Err(e) => assert!(parsed.is_err() || e.to_string().contains("out of range"), "{e}: {json}"),
    }
    let Ok(Value::Object(_)) = parsed else { return false };
    let keys = top_keys(&plain);
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    bytes.len() <= MAX_BYTES
        && depth(&plain) <= 16
        && keys.len() <= 64
        && distinct.len() == keys.len()
}

/// Scans, and compares all that comes of it with the oracle.
#[track_caller]
fn agree(scan: &mut Scan, input: &[u8]) {
    let shown = || String::from_utf8_lossy(input).into_owned();
    let result = scan.scan(input);
    assert_eq!(result.is_ok(), is_acceptable(input), "{result:?}: {}", shown());
    if let Err(fault) = result {
        assert!(fault.at as usize <= input.len(), "{fault:?}: {}", shown());
        return;
    }
    let json = std::str::from_utf8(input).unwrap();
    let keys: Vec<String> = scan.fields().iter().map(|f| f.key(input).to_string()).collect();
    assert_eq!(keys, top_keys(json), "{}", shown());
    let outside_is_compact =
        pieces(json).iter().step_by(2).all(|p| !p.contains([' ', '\t', '\n', '\r']));
    let printable = json.bytes().all(|b| (b' '..=b'~').contains(&b));
    assert_eq!(scan.compact, outside_is_compact && printable, "{}", shown());
    for (field, key) in scan.fields().iter().zip(&keys) {
        assert_eq!(
            field.known.map(Key::name),
            Key::ALL.iter().map(|k| k.name()).find(|n| n == key),
            "{key}"
        );
        assert_eq!(
            field.known.and_then(|k| scan.get(k)).map(|f| f.at()),
            field.known.map(|_| field.at())
        );
        let raw = std::str::from_utf8(field.value(input)).unwrap();
        let kind = match serde_json::from_str(&without_numbers(raw)).unwrap() {
            Value::Null => matches!(field.kind, Kind::Null),
            Value::Bool(true) => matches!(field.kind, Kind::True),
            Value::Bool(false) => matches!(field.kind, Kind::False),
            Value::Array(_) => matches!(field.kind, Kind::Array),
            Value::Object(_) => matches!(field.kind, Kind::Object),
            Value::Number(_) if raw.bytes().all(|b| b.is_ascii_digit()) => {
                matches!(field.kind, Kind::Integer)
            }
            Value::Number(_) => matches!(field.kind, Kind::Number),
            Value::String(text) => {
                let found = field.text(input).unwrap();
                assert_eq!(found.to_string(), text, "{}", shown());
                matches!(field.kind, Kind::Text { escaped } if escaped == raw.contains('\\'))
            }
        };
        assert!(kind, "{:?} of {raw}", field.kind);
    }
    for key in Key::ALL {
        assert_eq!(
            scan.get(*key).is_some(),
            keys.iter().any(|k| k == key.name()),
            "{}",
            key.name()
        );
    }
}

// ---- random JSON ----

struct Random(fastrand::Rng);

impl Random {
    fn new(salt: u64) -> Random {
        let seed = std::env::var("TONGS_TEST_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(20_261_130);
        Random(fastrand::Rng::with_seed(seed ^ salt))
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.usize(..of.len())]
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    fn space(&mut self) -> &'static str {
        if self.chance(85) { "" } else { self.one(&[" ", "\n", "\t", "\r", "  \n", " \t\r\n"]) }
    }

    /// A string with its quotes.
    fn string(&mut self) -> String {
        let mut out = String::from("\"");
        for _ in 0..self.0.usize(..12) {
            match self.0.u32(..24) {
                0 => out += self.one(&["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"]),
                1 => out += &format!("\\u{:04x}", self.0.u32(..0xd800)),
                2 => out += &format!("\\uD83D\\uDE{:02X}", self.0.u32(..256)),
                3 => {
                    out += self.one(&[
                        "é",
                        "☃",
                        "😀",
                        "\u{7f}",
                        "\u{202e}",
                        "\u{feff}",
                        "\u{2028}",
                        "\u{e0041}",
                    ])
                }
                // seldom something that is not allowed
                4 if self.chance(2) => {
                    out += self.one(&[
                        "\\x",
                        "\\ud800",
                        "\\udc00",
                        "\\ud800\\u0041",
                        "\\u12g4",
                        "\n",
                        "\u{1}",
                        "\\ud800\\n",
                    ])
                }
                5 => out += self.one(&["{", "}", "[", "]", ",", ":", " ", "1", "-"]),
                _ => out.push(self.0.alphanumeric()),
            }
        }
        out + "\""
    }

    fn number(&mut self) -> String {
        match self.0.u32(..10) {
            0 => self
                .one(&[
                    "0",
                    "-0",
                    "0.0",
                    "-0.0e-0",
                    "1e5",
                    "1E+5",
                    "1e999",
                    "-1e999",
                    "1e-999",
                    "9223372036854775807",
                ])
                .to_owned(),
            1 => self
                .one(&[
                    "9223372036854775808",
                    "-9223372036854775809",
                    "18446744073709551616",
                    "340282366920938463463374607431768211456",
                ])
                .to_owned(),
            2 if self.chance(5) => self
                .one(&[
                    "01", "-", "1.", ".5", "1e", "+1", "-01", "1e+", "0x1", "NaN", "Infinity",
                    "1_0",
                ])
                .to_owned(),
            3 => format!("{}.{}", self.0.i32(..), self.0.u16(..)),
            4 => format!("{}e{}", self.0.i8(..), self.0.i8(..)),
            _ => self.0.i64(..).to_string(),
        }
    }

    fn value(&mut self, level: usize) -> String {
        let leaf = level == 0;
        match self.0.u32(..if leaf { 8 } else { 14 }) {
            0 => "null".to_owned(),
            1 => self.one(&["true", "false"]).to_owned(),
            2 | 3 => self.number(),
            4..=7 => self.string(),
            n => {
                let is_object = n % 2 == 0;
                let mut items = Vec::new();
                for _ in 0..self.0.usize(..4) {
                    let key = if is_object {
                        format!("{}{}:{}", self.string(), self.space(), self.space())
                    } else {
                        String::new()
                    };
                    items.push(format!(
                        "{}{key}{}{}",
                        self.space(),
                        self.value(level - 1),
                        self.space()
                    ));
                }
                let (open, close) = if is_object { ("{", "}") } else { ("[", "]") };
                format!(
                    "{open}{}{close}",
                    if items.is_empty() { self.space().to_owned() } else { items.join(",") }
                )
            }
        }
    }

    /// A value of exactly so many levels.
    fn nested(&mut self, levels: usize) -> String {
        let mut out = self.value(0);
        for _ in 0..levels {
            out = if self.0.bool() { format!("[{out}]") } else { format!("{{\"k\":{out}}}") };
        }
        out
    }

    fn key(&mut self) -> String {
        if self.chance(60) {
            let name = Key::ALL[self.0.usize(..Key::ALL.len())].name();
            if self.chance(20) {
                // the same key in another spelling
                let at = self.0.usize(..name.len());
                return format!(
                    "\"{}\\u{:04x}{}\"",
                    &name[..at],
                    name.as_bytes()[at],
                    &name[at + 1..]
                );
            }
            return format!("\"{name}\"");
        }
        self.string()
    }

    fn object(&mut self) -> String {
        let most = if self.chance(5) { 70 } else { 12 };
        let mut members = Vec::new();
        for n in 0..self.0.usize(..most) {
            let key = if most == 70 { format!("\"k{n}\"") } else { self.key() };
            let value = if self.chance(3) {
                let n = self.0.usize(12..18);
                self.nested(n)
            } else {
                self.value(3)
            };
            members.push(format!(
                "{}{key}{}:{}{value}{}",
                self.space(),
                self.space(),
                self.space(),
                self.space()
            ));
        }
        format!("{}{{{}}}{}", self.space(), members.join(","), self.space())
    }

    /// Changes a few bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const TELLING: &[u8] = b"\"\\{}[]:,0-9eE.+utfn \n\0\x1f\x7f\x80\xc3\xff\xed\xa0";
        for _ in 0..self.0.usize(1..4) {
            let at = self.0.usize(..=bytes.len());
            let byte = if self.chance(70) {
                TELLING[self.0.usize(..TELLING.len())]
            } else {
                self.0.u8(..)
            };
            match self.0.u32(..4) {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {
                    // a piece once more
                    let end = (at + self.0.usize(..20)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}

#[test]
fn the_scanner_accepts_what_an_independent_reading_accepts() {
    let mut random = Random::new(1);
    let mut scan = Scan::new();
    let (mut good, mut bad) = (0, 0);
    for _ in 0..10_500 {
        let mut json = random.object().into_bytes();
        if random.chance(60) {
            random.mutate(&mut json);
        }
        agree(&mut scan, &json);
        if scan.scan(&json).is_ok() { good += 1 } else { bad += 1 }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}

#[test]
fn the_scanner_agrees_on_the_awkward_cases() {
    let keys = |n: usize| {
        format!("{{{}}}", (0..n).map(|n| format!("\"k{n}\":0")).collect::<Vec<_>>().join(","))
    };
    let known = |n: usize| {
        let all =
            Key::ALL.iter().map(|k| k.name().to_owned()).chain((0..).map(|n| format!("k{n}")));
        format!("{{{}}}", all.take(n).map(|k| format!("\"{k}\":0")).collect::<Vec<_>>().join(","))
    };
    let deep = |n: usize, open: &str, close: &str| {
        format!("{{\"x\":{}0{}}}", open.repeat(n - 1), close.repeat(n - 1))
    };
    let long = |n: usize| format!("{{\"x\":\"{}\"}}", "y".repeat(n - 8));
    let mut scan = Scan::new();
    for (json, good) in [
        (String::new(), false),
        (" ".into(), false),
        ("{".into(), false),
        ("{}".into(), true),
        (" \r\n\t{ } \n".into(), true),
        ("{}{}".into(), false),
        ("{},".into(), false),
        ("{}\0".into(), false),
        ("\u{feff}{}".into(), false),
        ("{}\u{a0}".into(), false),
        ("[]".into(), false),
        ("null".into(), false),
        ("\"{}\"".into(), false),
        ("{\"\":1}".into(), true),
        ("{\"a\":1,}".into(), false),
        ("{,\"a\":1}".into(), false),
        ("{\"a\":1 \"b\":2}".into(), false),
        ("{\"a\" 1}".into(), false),
        ("{\"a\":}".into(), false),
        ("{a:1}".into(), false),
        ("{'a':1}".into(), false),
        ("{\"a\":1}//".into(), false),
        ("{\"a\":[1,]}".into(), false),
        ("{\"a\":[,]}".into(), false),
        ("{\"a\":[}".into(), false),
        ("{\"a\":{]}".into(), false),
        ("{\"a\":[{}}]}".into(), false),
        ("{\"a\":{\"b\"}}".into(), false),
        ("{\"a\":{1:2}}".into(), false),
        ("{\"a\":tru}".into(), false),
        ("{\"a\":truee}".into(), false),
        ("{\"a\":nul".into(), false),
        ("{\"a\":TRUE}".into(), false),
        ("{\"a\":1e999,\"b\":-1E+99999,\"c\":1e-99999}".into(), true),
        (format!("{{\"a\":{}}}", "9".repeat(5000)), true),
        (format!("{{\"a\":0.{}}}", "9".repeat(5000)), true),
        ("{\"a\":-0}".into(), true),
        ("{\"a\":-}".into(), false),
        ("{\"a\":--1}".into(), false),
        ("{\"a\":00}".into(), false),
        ("{\"a\":1.e1}".into(), false),
        ("{\"a\":1e1.0}".into(), false),
        ("{\"a\":1,\"a\":1}".into(), false),
        ("{\"a\":1,\"\\u0061\":1}".into(), false),
        ("{\"pid\":\"\",\"p\\u0069d\":\"\"}".into(), false),
        ("{\"\\ud83d\\ude00\":1,\"😀\":1}".into(), false),
        ("{\"\\/\":1,\"/\":1}".into(), false),
        ("{\"\":1,\"\":2}".into(), false),
        ("{\"a\":1,\"A\":1,\"a \":1,\"\\u0000a\":1}".into(), true),
        // a key that only one normal form makes equal is another key
        ("{\"\u{e9}\":1,\"e\u{301}\":1}".into(), true),
        ("{\"a\":{\"b\":1,\"b\":2}}".into(), true),
        ("{\"a\":\"\\ud800\"}".into(), false),
        ("{\"a\":\"\\udfff\"}".into(), false),
        ("{\"a\":\"\\ud800\\ud800\"}".into(), false),
        ("{\"a\":\"\\ud800\\udc00\"}".into(), true),
        ("{\"a\":\"\\uDBFF\\uDFFF\"}".into(), true),
        ("{\"\\ud800\":1}".into(), false),
        ("{\"a\":[\"\\ud800x\"]}".into(), false),
        ("{\"a\":\"\\u00e\"}".into(), false),
        ("{\"a\":\"\\U00e9\"}".into(), false),
        ("{\"a\":\"\\u+123\"}".into(), false),
        ("{\"a\":\"\\'\"}".into(), false),
        ("{\"a\":\"\\".into(), false),
        ("{\"a\":\"\\\"}".into(), false),
        ("{\"a\":\"\t\"}".into(), false),
        ("{\"a\":\"\u{7f}\u{80}\"}".into(), true),
        ("{\"a\":\"\\u0000\"}".into(), true),
        (keys(64), true),
        (keys(65), false),
        (known(64), true),
        (known(65), false),
        (deep(16, "[", "]"), true),
        (deep(17, "[", "]"), false),
        (deep(16, "{\"a\":", "}"), true),
        (deep(17, "{\"a\":", "}"), false),
        (format!("{{\"x\":{}{}}}", "[".repeat(15), "]".repeat(15)), true),
        (format!("{{\"x\":{}{}}}", "[".repeat(16), "]".repeat(16)), false),
        (format!("{{\"x\":{}}}", "[[],".repeat(8) + "1" + &"]".repeat(8)), true),
        (deep(MAX_BYTES / 2 - 10, "[", "]"), false),
        (long(MAX_BYTES), true),
        (long(MAX_BYTES + 1), false),
    ] {
        if json.len() < 10_000 {
            agree(&mut scan, json.as_bytes());
        }
        assert_eq!(scan.scan(json.as_bytes()).is_ok(), good, "{}", &json[..json.len().min(200)]);
    }
    for bad in [
        &b"{\"a\":\"\xff\"}"[..],
        b"{\"a\":\"\xc3\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":\"\xc0\x80\"}",
        b"{\"a\":\"\xf4\x90\x80\x80\"}",
        b"{}\x80",
    ] {
        agree(&mut scan, bad);
        assert_eq!(scan.scan(bad).map_err(|f| f.kind), Err(FaultKind::Utf8));
    }
}

#[test]
fn faults_say_what_is_wrong_and_where() {
    let mut scan = Scan::new();
    let keys: String = (0..65).map(|n| format!("\"k{n}\":0,")).collect();
    for (json, at, kind) in [
        ("[]".to_owned(), 0, FaultKind::Syntax),
        ("{\"a\":1x}".to_owned(), 6, FaultKind::Syntax),
        ("{\"a\":".to_owned(), 5, FaultKind::Syntax),
        (format!("{{\"a\":{}", "[".repeat(20)), 21, FaultKind::Depth),
        ("{\"pid\":1,\"pid\":2}".to_owned(), 16, FaultKind::Duplicate(Some(Key::Pid))),
        ("{\"odd\":1,\"odd\":2}".to_owned(), 16, FaultKind::Duplicate(None)),
        (format!("{{{keys}"), 0, FaultKind::Keys),
    ] {
        let fault = scan.scan(json.as_bytes()).unwrap_err();
        assert_eq!(fault.kind, kind, "{json}");
        assert!(at == 0 || fault.at.abs_diff(at) <= 1, "{json}: {fault:?}");
        assert!(fault.to_string().starts_with("byte "), "{fault}");
    }
    // What was found before is gone, whatever came of the scan.
    scan.scan(b"{\"pid\":1}").unwrap();
    scan.scan(b"{\"cwd\":1,").unwrap_err();
    assert!(scan.get(Key::Pid).is_none());
}

// ---- the check ----

/// A record in the making: members as raw JSON, in the hook's order.
#[derive(Clone)]
struct Made(Vec<(String, String)>);

impl Made {
    fn base() -> Made {
        let members = [
            ("schema_version", "1"),
            ("record_kind", "\"session\""),
            ("canonical_id", ""),
            ("session_id", "\"s\""),
            ("instance_id", "\"1:2\""),
            ("harness_id", "\"claude\""),
            ("agent", "\"claude\""),
            ("repo", "\"tmp\""),
            ("cwd", "\"/tmp\""),
            ("pid", "\"1\""),
            ("process_start", "\"2\""),
            ("process_identity", "\"identified\""),
            ("status", "\"running\""),
            ("detail", "\"working\""),
            ("tool", "\"\""),
            ("ts", "1000"),
            ("started", "900"),
            ("source", "\"hook\""),
            ("last_event", "\"claude.tool-use\""),
            ("terminal", "\"tmux\""),
            ("terminal_env", "{\"TMUX\":\"/tmp/x,1,0\"}"),
            ("focus_target", "{\"kind\":\"terminal\",\"terminal\":\"tmux\",\"terminal_env\":{}}"),
            ("arrival_sequence", "3"),
        ];
        Made(members.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    /// The base of a record without a process.
    fn unresolved() -> Made {
        Made::base()
            .with("instance_id", "\"unresolved\"")
            .with("pid", "\"\"")
            .with("process_start", "\"\"")
            .with("process_identity", "\"unresolved\"")
            .with("focus_target", "{\"kind\":\"unavailable\"}")
    }

    /// The base of a schema 0 record.
    fn legacy() -> Made {
        Made(
            [
                ("agent", "\"claude\""),
                ("session_id", "\"s\""),
                ("cwd", "\"/tmp\""),
                ("pid", "\"1\""),
                ("status", "\"running\""),
                ("ts", "1000"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .to_vec(),
        )
    }

    fn with(mut self, key: &str, raw: &str) -> Made {
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some(member) => member.1 = raw.to_owned(),
            None => self.0.push((key.to_owned(), raw.to_owned())),
        }
        self
    }

    fn without(mut self, key: &str) -> Made {
        self.0.retain(|(k, _)| k != key);
        self
    }

    fn text(&self, key: &str) -> String {
        let raw = self.0.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v);
        serde_json::from_str(raw).unwrap_or_default()
    }

    /// The digest that belongs to the ids.
    fn digest(&self) -> [u8; 64] {
        let [harness, session, instance] =
            ["harness_id", "session_id", "instance_id"].map(|k| self.text(k));
        id::canonical(Part::Plain(&harness), Part::Plain(&session), Part::Plain(&instance))
    }

    /// The record, its canonical id filled in where it is left empty.
    fn bytes(&self) -> Vec<u8> {
        let hex = String::from_utf8(self.digest().to_vec()).unwrap();
        let canonical = json!(format!("fleet:v1:{}:{hex}", self.text("harness_id"))).to_string();
        let member = |(k, v): &(String, String)| {
            let v = if k == "canonical_id" && v.is_empty() { &canonical } else { v };
            format!("\"{k}\":{v}")
        };
        format!("{{{}}}", self.0.iter().map(member).collect::<Vec<_>>().join(",")).into_bytes()
    }

    fn check(&self, door: Door) -> Result<Option<Status>, FaultKind> {
        let bytes = self.bytes();
        let mut scan = Scan::new();
        scan.scan(&bytes).unwrap_or_else(|f| panic!("{f}: {}", String::from_utf8_lossy(&bytes)));
        check::check(&bytes, &scan, door, is_known).map(|c| c.status).map_err(|f| f.kind)
    }

    #[track_caller]
    fn good(&self) {
        for door in [Door::Read, WRITE] {
            assert!(
                self.check(door).is_ok(),
                "{:?}: {}",
                self.check(door),
                String::from_utf8_lossy(&self.bytes())
            );
        }
    }

    #[track_caller]
    fn bad(&self, kind: FaultKind) {
        for door in [Door::Read, WRITE] {
            assert_eq!(self.check(door), Err(kind), "{}", String::from_utf8_lossy(&self.bytes()));
        }
    }

    /// Schema 0, which is only read.
    #[track_caller]
    fn old(&self, good: bool) {
        assert_eq!(
            self.check(Door::Read).is_ok(),
            good,
            "{:?}: {}",
            self.check(Door::Read),
            String::from_utf8_lossy(&self.bytes())
        );
        assert_eq!(self.check(WRITE), Err(FaultKind::Schema));
    }
}

const WRITE: Door = Door::Write { now: 2000, made: None };

/// A field and its limit in bytes, for schema 1.
const LIMITS: [(&str, Key, usize); 14] = [
    ("session_id", Key::SessionId, 512),
    ("instance_id", Key::InstanceId, 512),
    ("repo", Key::Repo, 512),
    ("cwd", Key::Cwd, 4096),
    ("process_start", Key::ProcessStart, 128),
    ("detail", Key::Detail, 512),
    ("tool", Key::Tool, 256),
    ("source", Key::Source, 32),
    ("record_kind", Key::RecordKind, 32),
    ("last_event", Key::LastEvent, 512),
    ("terminal", Key::Terminal, 64),
    // these have further rules; only the length is of interest here
    ("harness_id", Key::HarnessId, 64),
    ("canonical_id", Key::CanonicalId, 128),
    ("status", Key::Status, 32),
];

/// Texts of `n` bytes: plain, of long characters, escaped in every way.
fn texts_of(n: usize) -> Vec<String> {
    let fill =
        |unit: &str, size: usize| format!("\"{}{}\"", unit.repeat(n / size), "x".repeat(n % size));
    vec![
        fill("x", 1),
        fill("é", 2),
        fill("☃", 3),
        fill("😀", 4),
        fill("\\n", 1),
        fill("\\u0041", 1),
        fill("\\u00e9", 2),
        fill("\\u2603", 3),
        fill("\\ud83d\\ude00", 4),
        fill("\\\\", 1),
    ]
}

#[test]
fn every_text_may_have_its_limit_in_bytes_and_no_more() {
    Made::base().good();
    for (name, key, limit) in LIMITS {
        // The canonical id of an impossible harness would itself be too long.
        let base = if key == Key::HarnessId {
            Made::base().with("canonical_id", "\"x\"")
        } else {
            Made::base()
        };
        for raw in texts_of(limit + 1) {
            base.clone().with(name, &raw).bad(FaultKind::Invalid(key));
        }
        // An id of another form, of the right length, fails for another reason.
        if !matches!(key, Key::HarnessId | Key::CanonicalId | Key::Status) {
            for raw in texts_of(limit) {
                Made::base().with(name, &raw).good();
            }
        }
        for wrong in ["null", "1", "true", "[]", "{}", "\"a\\u0000b\"", "\"\\u0000\""] {
            base.clone().with(name, wrong).bad(FaultKind::Invalid(key));
        }
    }
}

#[test]
fn what_must_be_there_is_missed_and_what_may_be_left_out_is_not() {
    for key in [Key::SessionId, Key::InstanceId, Key::HarnessId, Key::Agent, Key::CanonicalId] {
        Made::base().without(key.name()).bad(FaultKind::Missing(key));
        Made::base().with(key.name(), "\"\"").bad(FaultKind::Invalid(key));
    }
    for key in [
        "record_kind",
        "repo",
        "cwd",
        "process_start",
        "process_identity",
        "status",
        "detail",
        "tool",
        "ts",
        "started",
        "source",
        "last_event",
        "terminal",
        "terminal_env",
        "focus_target",
        "arrival_sequence",
    ] {
        Made::base().without(key).good();
    }
    assert_eq!(Made::base().without("status").check(Door::Read), Ok(Some(Status::Discovered)));
    Made::base().without("pid").bad(FaultKind::Missing(Key::Pid));
    // Keys that tongs does not know may hold anything.
    Made::base().with("odd", "[1e999,{\"a\":null}]").with("é", "\"\\u0000\"").good();
}

#[test]
fn the_schema_is_1_and_for_reading_0() {
    for raw in
        ["2", "-1", "1.0", "1e0", "true", "\"1\"", "null", "[]", "99999999999999999999", "-0"]
    {
        Made::base().with("schema_version", raw).bad(FaultKind::Schema);
    }
    Made::base().with("schema_version", "0").old(true);
    Made::base().without("schema_version").old(true);
}

#[test]
fn statuses_are_the_seven() {
    for status in
        ["started", "running", "idle", "waiting", "error", "ended", "discovered", "\\u0069dle"]
    {
        Made::base().with("status", &format!("\"{status}\"")).good();
    }
    for raw in ["\"\"", "\"Running\"", "\"running \"", "\"busy\"", "\"run\\u0000\"", "1", "null"] {
        Made::base().with("status", raw).bad(FaultKind::Invalid(Key::Status));
    }
}

#[test]
fn a_pid_is_a_decimal_number_above_zero() {
    for raw in [
        "\"1\"",
        "1",
        "4194304",
        "\"4194304\"",
        "\"007\"",
        "18446744073709551616",
        &"9".repeat(32),
        &format!("\"{}\"", "9".repeat(32)),
    ] {
        Made::base().with("pid", raw).good();
    }
    for raw in [
        "0",
        "\"0\"",
        "\"000\"",
        "-1",
        "\"-1\"",
        "\"+1\"",
        "\" 1\"",
        "\"1 \"",
        "1.0",
        "1e3",
        "\"1e3\"",
        "\"0x1\"",
        "true",
        "null",
        "[]",
        "{}",
        "\"one\"",
        "\"\u{661}\"",
        "\"1\u{662}\"",
        "\"1\\u0000\"",
        &"9".repeat(33),
        &format!("\"{}\"", "9".repeat(33)),
        &format!("\"{}1\"", "0".repeat(32)),
    ] {
        Made::base().with("pid", raw).bad(FaultKind::Invalid(Key::Pid));
    }
}

#[test]
fn a_record_has_a_process_or_is_unresolved() {
    Made::unresolved().good();
    Made::unresolved().without("pid").without("process_start").without("focus_target").good();
    Made::unresolved().without("process_identity").good();
    Made::unresolved().with("process_identity", "\"\"").good();
    Made::base().with("process_identity", "\"\"").good();
    // identified needs a pid
    for made in [
        Made::base().with("pid", "\"\""),
        Made::base().with("pid", "\"\"").without("process_identity"),
    ] {
        made.bad(FaultKind::Invalid(Key::Pid));
    }
    Made::unresolved().with("process_identity", "\"identified\"").bad(FaultKind::Invalid(Key::Pid));
    // unresolved has none, and the one instance
    for made in [
        Made::unresolved().with("pid", "\"1\""),
        Made::unresolved().with("pid", "1"),
        Made::unresolved().with("process_start", "\"2\""),
        Made::unresolved().with("instance_id", "\"1:2\""),
        Made::unresolved().without("process_identity").with("process_start", "\"2\""),
    ] {
        made.bad(FaultKind::Invalid(Key::InstanceId));
    }
    // A process may call its instance what it likes.
    Made::base().with("instance_id", "\"unresolved\"").good();
    for raw in
        ["\"Identified\"", "\"yes\"", "1", "null", "\"identified \"", "\"identified-identified\""]
    {
        Made::base().with("process_identity", raw).bad(FaultKind::Invalid(Key::ProcessIdentity));
    }
}

#[test]
fn harness_and_agent_are_one_registered_name() {
    for harness in ["claude", "codex", "pi", "other"] {
        let raw = format!("\"{harness}\"");
        Made::base().with("harness_id", &raw).with("agent", &raw).good();
    }
    Made::base().with("harness_id", "\"cl\\u0061ude\"").good();
    Made::base().with("agent", "\"\\u0063laude\"").good();
    for raw in ["\"Claude\"", "\"claude \"", "\"nobody\"", "\"claude\\u0000\"", "1"] {
        Made::base()
            .with("canonical_id", "\"x\"")
            .with("harness_id", raw)
            .with("agent", raw)
            .bad(FaultKind::Invalid(Key::HarnessId));
    }
    for raw in ["\"codex\"", "\"Claude\"", "\"claud\"", "1", "null"] {
        Made::base().with("agent", raw).bad(FaultKind::Invalid(Key::Agent));
    }
}

#[test]
fn whole_numbers_are_within_63_bits_and_not_negative() {
    for (name, key, least) in [
        ("ts", Key::Ts, 0),
        ("started", Key::Started, 0),
        ("sequence", Key::Sequence, 0),
        ("arrival_sequence", Key::ArrivalSequence, 1),
    ] {
        let big = if key == Key::Ts { "2300" } else { "9223372036854775807" };
        for raw in [&*least.to_string(), "1", big, "null"] {
            Made::base().with(name, raw).good();
        }
        for raw in [
            "-1",
            "-0",
            "-9223372036854775808",
            "1.0",
            "1e3",
            "1.5",
            "true",
            "false",
            "\"1\"",
            "\"\"",
            "[]",
            "{}",
            "9223372036854775808",
            "18446744073709551616",
            &"9".repeat(400),
        ] {
            Made::base().with(name, raw).bad(FaultKind::Invalid(key));
        }
    }
    Made::base().with("arrival_sequence", "0").bad(FaultKind::Invalid(Key::ArrivalSequence));
}

#[test]
fn a_time_in_the_future_is_read_and_within_five_minutes_written() {
    let at = |ts: &str| Made::base().with("ts", ts);
    assert!(at("2300").check(WRITE).is_ok());
    assert_eq!(at("2301").check(WRITE), Err(FaultKind::Invalid(Key::Ts)));
    for ts in ["2301", "9223372036854775807"] {
        assert!(at(ts).check(Door::Read).is_ok());
    }
    assert!(
        at("9223372036854775807").check(Door::Write { now: i64::MAX as u64, made: None }).is_ok()
    );
    assert!(at("1").with("started", "9223372036854775807").check(WRITE).is_ok());
    // Readers clamp it.
    let bytes = at("9000").bytes();
    let shown = shown(&bytes, 5000);
    assert_eq!((shown["age_seconds"].as_u64(), shown["ts"].as_u64()), (Some(0), Some(9000)));
}

#[test]
fn terminal_env_is_bounded() {
    let env = |items: &[(String, String)]| {
        format!(
            "{{{}}}",
            items.iter().map(|(k, v)| format!("{k}:{v}")).collect::<Vec<_>>().join(",")
        )
    };
    let many = |n: usize| {
        env(&(0..n).map(|n| (format!("\"K{n}\""), "\"v\"".to_owned())).collect::<Vec<_>>())
    };
    let one = |k: &str, v: &str| env(&[(k.to_owned(), v.to_owned())]);
    let mut good = vec![
        "{}".to_owned(),
        " { } ".to_owned(),
        many(32),
        one("\"K\"", "\"\""),
        "{ \"A\" : \"b\" , \"C\":\"\" }".to_owned(),
    ];
    let mut bad = vec![
        many(33),
        one("\"\"", "\"v\""),
        one("\"K\\u0000\"", "\"v\""),
        one("\"K\"", "\"v\\u0000\""),
        "[]".into(),
        "null".into(),
        "\"\"".into(),
        "0".into(),
    ];
    for wrong in ["1", "null", "true", "[]", "{}"] {
        bad.push(one("\"K\"", wrong));
    }
    for (k, v) in texts_of(128).into_iter().zip(texts_of(1024)) {
        good.push(one(&k, &v));
    }
    for (k, v) in texts_of(129).into_iter().zip(texts_of(1025)) {
        bad.push(one(&k, "\"v\""));
        bad.push(one("\"K\"", &v));
    }
    let target = |env: &str| {
        format!("{{\"kind\":\"terminal\",\"terminal\":\"tmux\",\"terminal_env\":{env}}}")
    };
    for env in good {
        Made::base().with("terminal_env", &env).with("focus_target", &target(&env)).good();
    }
    for env in bad {
        Made::base().with("terminal_env", &env).bad(FaultKind::Invalid(Key::TerminalEnv));
        Made::base().with("focus_target", &target(&env)).bad(FaultKind::Invalid(Key::FocusTarget));
    }
}

#[test]
fn a_focus_target_is_a_terminal_a_desktop_or_none() {
    let good = |raw: &str| Made::base().with("focus_target", raw).good();
    let bad = |raw: &str| {
        Made::base().with("focus_target", raw).bad(FaultKind::Invalid(Key::FocusTarget))
    };
    for raw in [
        "{}",
        "[]",
        "null",
        "[ ]",
        "[\n\t]",
        "false",
        "0",
        "\"\"",
        "{\"kind\":\"unavailable\"}",
        "{\"kind\":\"desktop\",\"desktop_target\":\"x\"}",
        "{\"kind\":\"t\\u0065rminal\"}",
        "{\"odd\":{\"a\":[1]}}",
    ] {
        good(raw);
    }
    for raw in [
        "1",
        "-0",
        "0.0",
        "true",
        "\"terminal\"",
        "[1]",
        "[null]",
        "[[]]",
        "[ [ ] ]",
        "[[],[]]",
        "[[[]]]",
        "[{}]",
        "[\"\"]",
        "{\"kind\":\"\"}",
        "{\"kind\":\"window\"}",
        "{\"kind\":1}",
        "{\"kind\":null}",
        "{\"terminal\":1}",
        "{\"terminal\":\"a\\u0000\"}",
        "{\"desktop_target\":[]}",
        "{\"terminal_env\":[]}",
        "{\"kind\":\"terminal\",\"kind\":\"window\"}",
    ] {
        bad(raw);
    }
    for (name, limit) in [("terminal", 64), ("desktop_target", 512)] {
        texts_of(limit).iter().for_each(|t| good(&format!("{{\"{name}\":{t}}}")));
        texts_of(limit + 1).iter().for_each(|t| bad(&format!("{{\"{name}\":{t}}}")));
    }
    // Without a process nothing can be focused.
    for raw in ["{\"kind\":\"terminal\"}", "{\"kind\":\"desktop\"}"] {
        Made::unresolved().with("focus_target", raw).bad(FaultKind::Invalid(Key::FocusTarget));
    }
    for raw in ["{}", "[]", "null", "{\"kind\":\"unavailable\",\"terminal\":\"tmux\"}"] {
        Made::unresolved().with("focus_target", raw).good();
    }
}

#[test]
fn a_canonical_id_that_is_not_the_ids_own_is_forged() {
    let hex = String::from_utf8(Made::base().digest().to_vec()).unwrap();
    Made::base().with("canonical_id", &format!("\"fleet:v1:claude:{hex}\"")).good();
    let other =
        String::from_utf8(Made::base().with("session_id", "\"t\"").digest().to_vec()).unwrap();
    for canonical in [
        format!("fleet:v1:claude:{other}"),
        format!("fleet:v1:codex:{hex}"),
        format!("fleet:v1::{hex}"),
        format!("fleet:v2:claude:{hex}"),
        format!("fleet:v1:claude:{}", hex.to_uppercase()),
        format!("fleet:v1:claude:{}", &hex[1..]),
        format!("fleet:v1:claude:{hex}0"),
        format!("fleet:v1:claude::{hex}"),
        format!(" fleet:v1:claude:{hex}"),
        format!("fleet:v1:claude:{hex} "),
        hex.clone(),
        "x".into(),
    ] {
        Made::base().with("canonical_id", &format!("\"{canonical}\"")).bad(FaultKind::Forged);
    }
    // Each of the three ids counts.
    let canonical = format!("\"fleet:v1:claude:{hex}\"");
    for (key, raw) in
        [("session_id", "\"S\""), ("session_id", "\"s \""), ("instance_id", "\"1:3\"")]
    {
        Made::base().with("canonical_id", &canonical).with(key, raw).bad(FaultKind::Forged);
    }
    // Another spelling of the same ids is the same.
    Made::base()
        .with("canonical_id", &canonical)
        .with("session_id", "\"\\u0073\"")
        .with("instance_id", "\"1\\u003a2\"")
        .good();
}

#[test]
fn schema_0_has_the_bounds_and_few_of_the_rules() {
    Made::legacy().old(true);
    Made::legacy().with("schema_version", "0").old(true);
    Made::legacy().without("agent").old(true);
    Made::legacy().without("pid").without("cwd").without("ts").without("status").old(true);
    Made::legacy().with("agent", "\"nobody-knows\"").old(true);
    Made::legacy().with("status", "\"thinking\"").old(true);
    assert_eq!(Made::legacy().with("status", "\"thinking\"").check(Door::Read), Ok(None));
    // What has no meaning yet is not compared with anything.
    Made::legacy()
        .with("canonical_id", "\"x\"")
        .with("instance_id", "\"unresolved\"")
        .with("focus_target", "{\"kind\":\"x\"}")
        .old(true);
    Made::legacy().with("process_identity", "\"other\"").old(true);
    Made::legacy().without("session_id").old(false);
    Made::legacy().with("session_id", "\"\"").old(false);
    Made::legacy().with("agent", "\"\"").old(false);
    Made::legacy().with("pid", "\"x\"").old(false);
    Made::legacy().with("ts", "-1").old(false);
    Made::legacy().with("terminal_env", "[]").old(false);
    for (name, limit) in [
        ("session_id", 512),
        ("agent", 64),
        ("cwd", 4096),
        ("repo", 512),
        ("detail", 512),
        ("tool", 256),
        ("terminal", 64),
        ("last_event", 512),
        ("source", 32),
        ("record_kind", 32),
    ] {
        texts_of(limit).iter().for_each(|t| Made::legacy().with(name, t).old(true));
        texts_of(limit + 1).iter().for_each(|t| Made::legacy().with(name, t).old(false));
    }
    let bytes = Made::legacy()
        .without("agent")
        .with("instance_id", "\"1:2\"")
        .with("sequence", "4")
        .bytes();
    let mut scan = Scan::new();
    scan.scan(&bytes).unwrap();
    let record = check::check(&bytes, &scan, Door::Read, is_known).unwrap();
    assert!(record.legacy && record.harness().is("claude") && !record.identified());
    assert!(record.text(Key::InstanceId).is_empty() && record.int(Key::Sequence).is_none());
}

#[test]
fn no_prefix_and_no_changed_byte_brings_the_check_down() {
    // Short, for every byte of it gets every value.
    let optional = [
        "record_kind",
        "repo",
        "tool",
        "started",
        "source",
        "last_event",
        "terminal",
        "arrival_sequence",
    ];
    let short = optional.into_iter().fold(Made::base(), Made::without);
    let bytes = short
        .with("detail", "\"a\\u00e9\\ud83d\\ude00☃\"")
        .with("odd", "[1e9,{\"k\":[null,true]}]")
        .with("sequence", "1")
        .bytes();
    let mut scan = Scan::new();
    let look = |scan: &mut Scan, bytes: &[u8]| {
        if scan.scan(bytes).is_ok() {
            let _ = check::check(bytes, scan, WRITE, is_known).map(|c| c.verbatim);
        }
    };
    for end in 0..=bytes.len() {
        look(&mut scan, &bytes[..end]);
        assert_eq!(scan.scan(&bytes[..end]).is_ok(), end == bytes.len());
    }
    let mut edited = bytes.clone();
    for at in 0..bytes.len() {
        for byte in 0..=255 {
            edited[at] = byte;
            look(&mut scan, &edited);
        }
        edited[at] = bytes[at];
        edited[at] = b"\"\\{],0 \xc3"[at % 8];
        agree(&mut scan, &edited);
        edited[at] = bytes[at];
        let mut shorter = bytes.clone();
        shorter.remove(at);
        agree(&mut scan, &shorter);
        look(&mut scan, &shorter);
    }
}

#[test]
fn random_objects_never_bring_the_check_down() {
    let mut random = Random::new(2);
    let mut scan = Scan::new();
    let (mut good, mut seen) = (0, 0);
    for _ in 0..6000 {
        let mut made = if random.chance(20) {
            Made::legacy()
        } else if random.chance(30) {
            Made::unresolved()
        } else {
            Made::base()
        };
        for _ in 0..random.0.usize(..4) {
            let key = Key::ALL[random.0.usize(..Key::ALL.len())];
            let value = random.value(2);
            made = made.with(key.name(), &value);
        }
        let bytes = made.bytes();
        if scan.scan(&bytes).is_err() {
            continue;
        }
        seen += 1;
        if let Ok(record) = check::check(&bytes, &scan, Door::Read, is_known) {
            good += 1;
            assert!(record.legacy || record.status.is_some());
            assert!(record.legacy || record.digest == made.digest());
            if record.verbatim {
                assert!(scan.compact);
            }
        }
    }
    assert!(good > 500 && seen > 3000, "{good} {seen}");
}

// ---- what readers show ----

fn put(bytes: &[u8], now: u64) -> String {
    let mut scan = Scan::new();
    scan.scan(bytes).unwrap_or_else(|f| panic!("{f}: {}", String::from_utf8_lossy(bytes)));
    let record = check::check(bytes, &scan, Door::Read, is_known)
        .unwrap_or_else(|f| panic!("{f}: {}", String::from_utf8_lossy(bytes)));
    put_checked(&record, now)
}

fn put_checked(record: &Checked<'_>, now: u64) -> String {
    let view = View { now_ms: now * 1000, boot_ms: 0, boot: None, pid_ns: Some(77) };
    let derived = annotate_session(record, &view, Seen::No);
    let mut out = Vec::new();
    put_session(&mut out, record, &derived);
    String::from_utf8(out).unwrap()
}

/// What a reader shows of these bytes, after the checks that hold for all:
/// one object on one line, no key twice, nothing that a terminal acts on.
#[track_caller]
fn shown(bytes: &[u8], now: u64) -> BTreeMap<String, Value> {
    let out = put(bytes, now);
    let hidden: Vec<char> = out.chars().filter(|c| is_hidden(*c)).collect();
    assert!(hidden.is_empty(), "{hidden:?}: {out}");
    let keys = top_keys(&without_numbers(&out));
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(keys.len(), distinct.len(), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

const DERIVED: [&str; 6] =
    ["short_id", "age_seconds", "needs_attention", "seen", "quiet", "unverified"];
const LATER_THAN_SCHEMA_0: [&str; 7] = [
    "arrival_sequence",
    "canonical_id",
    "focus_target",
    "instance_id",
    "process_identity",
    "process_start",
    "sequence",
];
const NUMBERS: [&str; 12] = [
    "schema_version",
    "ts",
    "started",
    "sequence",
    "arrival_sequence",
    "ts_ms",
    "boot_ms",
    "mono_ms",
    "status_ms",
    "turn",
    "waiting_since",
    "background",
];

/// What a reader should show of a stored record, by the format's own words.
fn expected(bytes: &[u8], now: u64) -> BTreeMap<String, Value> {
    let stored: BTreeMap<String, Value> = serde_json::from_slice(bytes).unwrap();
    let legacy = stored.get("schema_version").is_none_or(|v| *v == json!(0));
    let text = |key: &str| stored.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut want = stored.clone();
    want.retain(|key, value| {
        let known = Key::ALL.iter().any(|k| k.name() == key);
        let shape = match key.as_str() {
            "terminal_env" | "focus_target" => value.is_object(),
            key if NUMBERS.contains(&key) => value.is_u64(),
            _ => value.is_string(),
        };
        !DERIVED.contains(&key.as_str())
            && (!legacy || !LATER_THAN_SCHEMA_0.contains(&key.as_str()))
            && (!known || shape)
    });
    let harness = text(if legacy { "agent" } else { "harness_id" }).unwrap_or("claude".into());
    let pid = match stored.get("pid") {
        Some(Value::Number(n)) => n.to_string(),
        Some(Value::String(s)) => s.clone(),
        _ => String::new(),
    };
    let status = text("status").unwrap_or("discovered".into());
    let ts = stored.get("ts").and_then(Value::as_u64).unwrap_or(0);
    let age = now.saturating_sub(ts);
    let digest = text("canonical_id")
        .filter(|_| !legacy)
        .map(|c| c.rsplit(':').next().unwrap()[..12].to_owned());
    if !legacy {
        want.insert(
            "process_identity".into(),
            json!(if pid.is_empty() { "unresolved" } else { "identified" }),
        );
    }
    let elsewhere = text("pid_ns").is_some_and(|ns| !ns.is_empty() && ns != "77");
    // The reader's boot is unknown here, so that no bridge has spoken in it.
    let brought = !legacy && pid.is_empty() && text("bridge").is_some_and(|b| !b.is_empty());
    let silent = brought && status != "ended";
    for (key, value) in [
        ("harness_id", json!(harness)),
        ("agent", json!(harness)),
        ("pid", json!(pid)),
        ("ts", json!(ts)),
        ("short_id", json!(digest.unwrap_or("0".repeat(12)))),
        ("age_seconds", json!(age)),
        ("needs_attention", json!(status == "waiting" || status == "idle" && age > 120)),
        ("seen", json!(false)),
        ("quiet", json!(status == "running" && age > 900)),
        ("unverified", json!(elsewhere || silent)),
        ("launch_id", json!(text("launch_id").unwrap_or_default())),
        ("profile_id", json!(text("profile_id").unwrap_or_default())),
        ("status", json!(status)),
    ] {
        want.insert(key.into(), value);
    }
    want
}

#[test]
fn a_compact_ascii_record_is_copied_and_the_derived_fields_follow() {
    for made in [
        Made::base(),
        Made::unresolved(),
        Made::base()
            .with("title", "\"\\u001b[31m \\u202e\\ud83d\\ude00\\u007f\"")
            .with("odd", "[1e999,{\"a\":\"\\u0000\"}]"),
        Made::base().with("pid", "\"0012\""),
        Made::base()
            .with("launch_id", "\"l\"")
            .with("profile_id", "\"p\"")
            .with("pid_ns", "\"78\""),
    ] {
        let bytes = made.bytes();
        let out = put(&bytes, 1121);
        assert!(out.as_bytes().starts_with(&bytes[..bytes.len() - 1]), "{out}");
        // Nothing is computed that a reader of the bytes would not find.
        if !out.contains("1e999") {
            assert_eq!(shown(&bytes, 1121), expected(&bytes, 1121), "{out}");
        }
    }
}

#[test]
fn any_other_record_is_written_anew_with_the_same_values() {
    let hidden = "\\u001b\u{7f}\u{9b}\u{ad}\u{61c}\u{180e}\u{200b}\u{200e}\u{2028}\u{202e}\u{2066}\u{feff}\u{fffb}\u{e0041}";
    for made in [
        Made::base().with("cwd", "\"/home/é\""),
        Made::base().with("title", &format!("\"{hidden}\"")),
        Made::base().with("terminal_env", &format!("{{\"A\u{200b}\":\"{hidden}\"}}")),
        Made::base()
            .with(&format!("key{hidden}"), &format!("[{{\"{hidden}\":\"{hidden}\\\\\\\"\"}}]")),
        Made::base().with("odd", " [ 1 , { \"a b\" : \" c \" } ] "),
        Made::base().with("session_id", "\"s\u{e9}\u{2603}\\\"\\\\/\u{7f}\\u0001\""),
        Made::base().with("pid", "42"),
        Made::base().without("status"),
        Made::base().without("ts"),
        Made::base().with("ts", "null").with("started", "null").with("sequence", "null"),
        Made::base().without("process_identity"),
        Made::base().with("process_identity", "\"\""),
        Made::unresolved().without("process_identity").without("pid"),
        Made::base().with("focus_target", "[]"),
        Made::base()
            .with("turn", "\"7\"")
            .with("title", "7")
            .with("branch", "[\"main\"]")
            .with("waiting_tool", "null")
            .with("boot_ms", "1.5"),
        Made::base()
            .with("turn", "-7")
            .with("background", "-0")
            .with("boot_ms", "-1")
            .with("waiting_since", "-9223372036854775808")
            .with("mono_ms", "0"),
        Made::base().with("launch_id", "7").with("profile_id", "{}"),
        Made::base().with("waiting_from", "3").with("waiting_agent", "\"\""),
        Made::base().with("waiting_from", "\"idle\"").with("turn", "-1"),
        Made::base()
            .with("short_id", "\"forged\"")
            .with("age_seconds", "9")
            .with("needs_attention", "true")
            .with("quiet", "\"\""),
        Made::base().with("se\\u0065n", "true").with("unverified", "false"),
        Made::legacy(),
        Made::legacy().with("pid", "7").with("status", "\"thinking \\u202e\"").without("agent"),
        Made::legacy().with("harness_id", "\"other\"").with("agent", "\"a\u{200b}\""),
        Made::legacy()
            .with("canonical_id", "\"x\"")
            .with("sequence", "3")
            .with("instance_id", "\"1:2\"")
            .with("odd", "[\"\u{202e}\"]"),
    ] {
        let bytes = made.bytes();
        assert_eq!(
            shown(&bytes, 2000),
            expected(&bytes, 2000),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
    // The order is the record's, as far as its fields are copied.
    let out = put(&Made::base().with("é", "1").bytes(), 2000);
    let keys = top_keys(&out);
    let at = |key: &str| keys.iter().position(|k| k == key).unwrap();
    assert!(
        at("schema_version") < at("session_id")
            && at("session_id") < at("detail")
            && at("detail") < at("é"),
        "{out}"
    );
}

#[test]
fn random_records_are_shown_as_they_are() {
    let mut random = Random::new(3);
    let mut scan = Scan::new();
    let mut compared = 0;
    for round in 0..5000u64 {
        let mut made = match random.0.u32(..4) {
            0 => Made::unresolved(),
            1 => Made::legacy(),
            _ => Made::base(),
        };
        for _ in 0..random.0.usize(..5) {
            let key = if random.chance(50) {
                Key::ALL[random.0.usize(..Key::ALL.len())].name().to_owned()
            } else {
                format!("x{}", random.0.u8(..))
            };
            let value = random.value(2);
            made = made.with(&key, &value);
        }
        let bytes = made.bytes();
        // serde_json keeps whole numbers of 64 bits only as they are.
        let exact = !String::from_utf8_lossy(&bytes).contains("e999");
        if scan.scan(&bytes).is_err()
            || check::check(&bytes, &scan, Door::Read, is_known).is_err()
            || !exact
        {
            continue;
        }
        let mut want = expected(&bytes, round);
        let mut got = shown(&bytes, round);
        // Which whole numbers serde_json calls whole ends at 64 bits.
        for key in NUMBERS {
            let whole = |v: Option<&Value>| v.is_none_or(|v| v.is_i64() || v.is_u64());
            if !whole(want.get(key)) || !whole(got.get(key)) {
                want.remove(key);
                got.remove(key);
            }
        }
        assert_eq!(got, want, "{}", String::from_utf8_lossy(&bytes));
        compared += 1;
    }
    assert!(compared > 1500, "{compared}");
}

#[test]
fn what_counts_as_hidden_is_what_terminals_act_on() {
    for c in [
        '\u{0}',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{9b}',
        '\u{9f}',
        '\u{ad}',
        '\u{61c}',
        '\u{200b}',
        '\u{200e}',
        '\u{202a}',
        '\u{202e}',
        '\u{2028}',
        '\u{2029}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e007f}',
    ] {
        assert!(is_hidden(c), "{:x}", c as u32);
    }
    for c in [' ', 'a', '~', '\u{a0}', 'é', '☃', '😀', '\u{fe0f}', '\u{301}'] {
        assert!(!is_hidden(c), "{:x}", c as u32);
    }
}

// ---- texts ----

#[test]
fn texts_are_compared_and_measured_after_unescaping() {
    let cases = [
        ("", ""),
        ("plain", "plain"),
        ("é☃😀", "é☃😀"),
        ("\\ud83d\\ude00", "😀"),
        ("a\\uD83D\\uDE00b", "a😀b"),
        ("\\ud800\\udc00\\udbff\\udfff", "\u{10000}\u{10ffff}"),
        ("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\u{8}\u{c}\n\r\t"),
        ("\\u0000", "\0"),
        ("\\\\u0041", "\\u0041"),
        ("\\u005cn", "\\n"),
        ("\\u00E9\\u00e9", "éé"),
    ];
    for (raw, plain) in cases {
        let bytes = format!("{{\"a\":\"{raw}\"}}").into_bytes();
        let mut scan = Scan::new();
        scan.scan(&bytes).unwrap();
        let text = scan.fields()[0].text(&bytes).unwrap();
        assert_eq!(
            (text.to_string().as_str(), text.len(), text.is_empty()),
            (plain, plain.len(), plain.is_empty()),
            "{raw}"
        );
        assert_eq!(AsRef::<[u8]>::as_ref(text.raw()), raw.as_bytes());
        assert_eq!(text.plain(), (!raw.contains('\\')).then_some(plain));
        assert_eq!(text.has_nul(), plain.contains('\0'));
        assert!(text.is(plain) && !text.is(&format!("{plain}x")) && !text.is(&format!("x{plain}")));
        assert!(plain.is_empty() || !text.is(&plain[..plain.char_indices().last().unwrap().0]));
        assert_eq!(text.is(raw), raw == plain);
        let mut room = vec![0; plain.len()];
        assert_eq!(text.copy(&mut room), Some(plain));
        if let Some(short) = plain.len().checked_sub(1) {
            assert_eq!(text.copy(&mut room[..short]), None, "{raw}");
        }
        for (other_raw, other_plain) in cases {
            let other_bytes = format!("{{\"a\":\"{other_raw}\"}}").into_bytes();
            let mut other_scan = Scan::new();
            other_scan.scan(&other_bytes).unwrap();
            let other = other_scan.fields()[0].text(&other_bytes).unwrap();
            assert_eq!(text.same(other), plain == other_plain, "{raw} {other_raw}");
        }
    }
}

// ---- canonical ids, end to end ----

const VECTORS: [(&str, &str, &str); 3] = [
    ("s", "i", "a7685459841e832159904b1ec5ac02f06b94d53194f1dcd176e91f447219b520"),
    ("s", "1:2", "6d587904b9162bf2b1b583c4068744fa7c4fe48a43f2bb46e5671404c060d309"),
    (
        "s\u{e9}\u{2603}\"\\/\u{7f}\u{1}",
        "1:2",
        "0283dcf3d7a23dbe5f484e0cc84690618d407190de3250319eaf04cb1f7b29e7",
    ),
];

#[test]
fn the_reference_s_canonical_ids_come_out_of_the_hook_and_of_status() {
    let world = World::new();
    let mut agent = world.harness("claude");
    for (session, instance, hex) in VECTORS {
        let event = json!({
            "schema_version": 1, "event_id": "claude.x", "status": "running", "session_id": session,
            "instance_id": instance, "cwd": "/tmp", "pid": agent.pid(),
        });
        let canonical = format!("fleet:v1:claude:{hex}");
        let report = agent.strict(&["claude", "fleet-event"], &event.to_string());
        assert_eq!(
            (report["outcome"].as_str(), report["canonical_id"].as_str()),
            (Some("written"), Some(canonical.as_str())),
            "{report}"
        );
        let file = world.sessions().join(format!("fleet-v1-{hex}.json"));
        let stored: Value = serde_json::from_slice(&bytes(&file)).unwrap();
        assert_eq!(
            (stored["canonical_id"].as_str(), stored["session_id"].as_str()),
            (Some(canonical.as_str()), Some(session))
        );
        let ids = |world: &World| {
            let all = world.sessions_json();
            all.iter()
                .map(|s| s["canonical_id"].as_str().unwrap().to_owned())
                .filter(|id| *id == canonical)
                .count()
        };
        assert_eq!(ids(&world), 1);
        // Under another name, or with another id in it, it is none.
        let good = bytes(&file);
        let forged = String::from_utf8(good.clone()).unwrap().replace(hex, &"0".repeat(64));
        fs::write(&file, forged).unwrap();
        assert_eq!(ids(&world), 0);
        fs::write(&file, &good).unwrap();
        fs::rename(&file, world.sessions().join(format!("fleet-v1-{}.json", "0".repeat(64))))
            .unwrap();
        assert_eq!(ids(&world), 0);
        fs::rename(world.sessions().join(format!("fleet-v1-{}.json", "0".repeat(64))), &file)
            .unwrap();
        assert_eq!(ids(&world), 1);
    }
}

#[test]
fn canonical_ids_are_the_sha256_of_compact_json() {
    let mut random = Random::new(4);
    for _ in 0..24 {
        let part = |random: &mut Random| {
            let n = random.0.usize(1..90);
            (0..n)
                .map(|_| match random.0.u32(..6) {
                    0 => random.0.char('\u{1}'..='\u{7f}'),
                    1 => random.0.char('\u{80}'..='\u{10ffff}'),
                    _ => random.0.alphanumeric(),
                })
                .collect::<String>()
        };
        let (session, instance) = (part(&mut random), part(&mut random));
        let hex =
            id::canonical(Part::Plain("claude"), Part::Plain(&session), Part::Plain(&instance));
        let sum = |json: Value| {
            let mut command = std::process::Command::new("sha256sum");
            command.env_clear();
            crate::world::finish(command, json.to_string().as_bytes()).out[..64].to_owned()
        };
        assert_eq!(
            String::from_utf8(hex.to_vec()).unwrap(),
            sum(json!(["claude", session, instance]))
        );
        let hex = id::identity(Part::Plain("claude"), Part::Plain(&session));
        assert_eq!(String::from_utf8(hex.to_vec()).unwrap(), sum(json!(["claude", session])));
        // Stored in other spellings it is the same.
        let spelled: String = session.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        let bytes = format!("{{\"session_id\":\"{spelled}\"}}").into_bytes();
        let mut scan = Scan::new();
        scan.scan(&bytes).unwrap();
        let stored = scan.get(Key::SessionId).unwrap().text(&bytes).unwrap();
        assert_eq!(hex, id::identity(Part::Plain("claude"), Part::Stored(stored)));
        assert_eq!(File::Record.digest(File::Record.name(&hex).text().as_bytes()), Some(hex));
    }
}

// ---- what a hook leaves alone ----

#[test]
fn keys_that_tongs_does_not_know_outlive_a_hook_byte_for_byte() {
    let foreign = [
        ("\"x-plain\"", "1"),
        ("\"x \\u0062 \\/\"", "\"\\u00e9\\ud83d\\ude00 \\/ \\\"\""),
        ("\"é☃\"", "[ 1e999 ,\t{ \"a\" : -0.0 , \"a\":\"b\" } ]"),
        ("\"\"", "null"),
        ("\"PID\"", "{ }"),
        ("\"x-big\"", "123456789012345678901234567890"),
    ];
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let file = &world.record_files()[0];
    let stored = String::from_utf8(bytes(file)).unwrap();
    let members: String = foreign.iter().map(|(k, v)| format!(" ,\n {k} \t:  {v}")).collect();
    let edited = format!("{}{members} }}\n", stored.strip_suffix('}').unwrap());
    for (round, event) in ["PreToolUse", "Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"]
        .into_iter()
        .enumerate()
    {
        if round == 0 {
            fs::write(file, &edited).unwrap();
        }
        agent.hook(&["claude", event], &claude("s", ",\"tool_name\":\"Bash\"")).silent();
        let now = String::from_utf8(bytes(file)).unwrap();
        for (key, value) in foreign {
            let member = format!(",{key}:{value}");
            assert!(now.contains(&member), "{event} lost {member}: {now}");
        }
        let arrivals = format!("\"arrival_sequence\":{}", round + 2);
        assert!(now.contains(&arrivals), "{event}: {now}");
    }
    // Readers show them too, numbers that no machine holds included.
    let out = world.agents(&["status", "--json"]).out;
    assert!(out.contains("[1e999,{\"a\":-0.0,\"a\":\"b\"}]"), "{out}");
    assert!(out.contains("\"x b /\":\"é😀 / \\\"\""), "{out}");
}

#[test]
fn a_derived_key_that_was_stored_does_not_outlive_a_hook() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let file = &world.record_files()[0];
    let stored = String::from_utf8(bytes(file)).unwrap();
    fs::write(
        file,
        format!("{},\"seen\":true,\"age_seconds\":1,\"x\":2}}", stored.strip_suffix('}').unwrap()),
    )
    .unwrap();
    let shown = world.sessions_json();
    assert_eq!((&shown[0]["seen"], &shown[0]["x"]), (&json!(false), &json!(2)));
    agent.hook(&["claude", "PreToolUse"], &claude("s", "")).silent();
    let now = world.record();
    assert_eq!(
        (now.get("seen"), now.get("age_seconds"), &now["x"]),
        (None, None, &json!(2)),
        "{now}"
    );
}

#[test]
fn another_program_s_keys_never_make_a_session_unwritable() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let file = &world.record_files()[0];
    let stored = String::from_utf8(bytes(file)).unwrap();
    let known = top_keys(&stored).len();
    let many: String = (known..64).map(|n| format!(",\"x{n}\":0")).collect();
    let large = format!(",\"x\":\"{}\"", "y".repeat(MAX_BYTES - stored.len() - 7));
    for more in [many, large] {
        let edited = format!("{}{more}}}", stored.strip_suffix('}').unwrap());
        assert!(edited.len() <= MAX_BYTES);
        fs::write(file, edited).unwrap();
        // A wait adds keys and text of ours.
        let payload = claude("s", ",\"tool_name\":\"Bash\",\"agent_id\":\"sub\"");
        agent.hook(&["claude", "PermissionRequest"], &payload).silent();
        let now = world.record();
        assert_eq!(
            (&now["status"], &now["waiting_agent"]),
            (&json!("waiting"), &json!("sub")),
            "{now}"
        );
    }
}

/// A fault of the check names a place in the record.
#[test]
fn a_fault_of_the_check_lies_at_the_value() {
    let bytes = Made::base().with("tool", "7").bytes();
    let mut scan = Scan::new();
    scan.scan(&bytes).unwrap();
    let Err(Fault { at, .. }) = check::check(&bytes, &scan, Door::Read, is_known) else { panic!() };
    assert!(bytes[at as usize..].starts_with(b"7,\"ts\""));
}
