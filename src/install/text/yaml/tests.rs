use std::io::Write;
use std::process::{Command, Stdio};

use fastrand::Rng;

use super::super::{Edit, Step, Value};
use super::edit::Sense;
use super::{parse, push, remove};

fn sense(text: &str) -> Sense {
    match parse(text) {
        Ok(root) => Sense::of(text, &root),
        Err(fault) => panic!("{fault}\n{text}"),
    }
}

/// Scalars as they are written, `@` for the indentation of their next lines,
/// and the string that they are.
const TEXTS: [(&str, &str); 24] = [
    ("plain", "plain"),
    ("two words", "two words"),
    ("a#b:c", "a#b:c"),
    ("http://x:80/y?z", "http://x:80/y?z"),
    ("-x", "-x"),
    ("?x :y", "?x :y"),
    ("x, [y] {z}", "x, [y] {z}"),
    ("/bin/sh -c 'a b'", "/bin/sh -c 'a b'"),
    ("'it''s: # \"'", "it's: # \""),
    ("''", ""),
    ("\"a\\n\\u00e9 \\x41\\U0001F600\\t\\\"\\\\\\/ #: \"", "a\n\u{e9} A\u{1f600}\t\"\\/ #: "),
    ("plain\n@more\n\n\n@- last", "plain more\n\n- last"),
    ("\"q \n\n@ r\\\n@ s \\ \n@t\"", "q\nrs   t"),
    ("'q\n@r ''\n\n@s'", "q r '\ns"),
    ("|\n@one\n@  two\n\n@three\n", "one\n  two\n\nthree\n"),
    ("|-\n@# no comment\n@k: v\n", "# no comment\nk: v"),
    ("|+ # keeps\n@x\n\n\n", "x\n\n\n"),
    (">\n@a\n@b\n\n@c\n@  d\n@e\n\n\n@f\n", "a b\nc\n  d\ne\n\nf\n"),
    (">-\n\n@a\n@b\n\n", "\na b"),
    (">+\n@a\n@b\n\n", "a b\n\n"),
    ("|\n\n\n", ""),
    ("yes sir", "yes sir"),
    ("1.2.3-rc.1", "1.2.3-rc.1"),
    ("\u{fc}\u{1f600}", "\u{fc}\u{1f600}"),
];

const OTHERS: [&str; 14] = [
    "5",
    "-1.5e3",
    "0x1F",
    "0o17",
    "1_000",
    "true",
    "No",
    "1:30",
    "2001-12-14 21:59:43.10 -5",
    ".inf",
    "!t x",
    "!!str 5",
    "!x [a, b]",
    "!y {a: 1}",
];

const NULLS: [&str; 4] = ["", "~", "null", "NULL"];

const FLOWS: [&str; 8] = [
    "[]",
    "{}",
    "[a, 'b', \"c\", 5, [d], {e: f}, g: h]",
    "{a: b, \"c\":d, 'e': , f, g: [h, ], i: ~}",
    "[a b,\n c # no\n  , d\n]",
    "{\n  x: y z,\n  # c\n  w: 1,\n}",
    "[a\n b\n\n c, \"d\n  e\"]",
    "{http://x: y, u: http://z}",
];

const KEYS: [(&str, &str); 9] = [
    ("hooks", "hooks"),
    ("a", "a"),
    ("b c", "b c"),
    ("'d: '", "d: "),
    ("\"e\\n\"", "e\n"),
    ("/f/g", "/f/g"),
    ("1", "1"),
    ("true ", "true"),
    ("on_start", "on_start"),
];

/// Writes documents and says what they are.
struct Writer<'r> {
    rng: &'r mut Rng,
    unit: usize,
    dash: usize,
    notes: bool,
    out: String,
}

impl Writer<'_> {
    fn document(rng: &mut Rng) -> (String, Sense) {
        let mut writer = Writer {
            unit: rng.usize(1..5),
            dash: rng.usize(0..3),
            notes: rng.bool(),
            out: ["", "", "\u{feff}", "# top\n", "---\n", "--- # x\n\n"][rng.usize(0..6)].into(),
            rng,
        };
        let sense = writer.map(0, 0);
        let end = ["", "", "# end\n", "...\n", "\n\n"];
        let ends = if writer.out.ends_with("\n\n") { 4 } else { 5 };
        let end = end[writer.rng.usize(0..ends)];
        let mut out = std::mem::take(&mut writer.out);
        out.push_str(end);
        if rng.u8(0..4) == 0 {
            out = out.replace('\n', "\r\n");
        }
        if rng.u8(0..4) == 0 && !out.ends_with("\n\n") && !out.ends_with("\n\r\n") {
            let bare = out.trim_end_matches(['\r', '\n']).len();
            // What a block scalar is depends on its last line end.
            if matches!(parse(&out[..bare]), Ok(root) if Sense::of(&out[..bare], &root) == sense) {
                out.truncate(bare);
            }
        }
        (out, sense)
    }

    fn note(&mut self, column: usize) {
        match self.rng.u8(0..8) {
            // More empty lines would belong to a `|+` before them.
            0 if self.notes && !self.out.ends_with("\n\n") => self.out.push('\n'),
            1 if self.notes => self.out.extend([&" ".repeat(column), "# of the next\n"]),
            2 if self.notes => self.out.push_str("# of none\n"),
            _ => {}
        }
    }

    fn end(&mut self) {
        let note = if self.notes { self.rng.usize(0..4) } else { 0 };
        self.out.push_str(["", "", " # note", " "][note]);
        self.out.push('\n');
    }

    fn map(&mut self, column: usize, depth: usize) -> Sense {
        let mut members: Vec<(String, Sense)> = Vec::new();
        for n in 0..self.rng.usize(1..4) {
            let (written, key) = KEYS[self.rng.usize(0..KEYS.len())];
            if members.iter().any(|(k, _)| k == key) {
                continue;
            }
            if n > 0 {
                self.note(column);
                self.out.push_str(&" ".repeat(column));
            }
            self.out.extend([written, ":"]);
            let sense = self.value(column, depth, true);
            members.push((key.to_string(), sense));
        }
        Sense::Map(members)
    }

    fn list(&mut self, column: usize, depth: usize) -> Sense {
        let mut list = Vec::new();
        for n in 0..self.rng.usize(1..4) {
            if n > 0 {
                self.note(column);
                self.out.push_str(&" ".repeat(column));
            }
            self.out.push('-');
            let sense = self.value(column, depth, false);
            list.push(sense);
        }
        Sense::List(list)
    }

    /// What stands behind a colon or a dash.
    fn value(&mut self, column: usize, depth: usize, key: bool) -> Sense {
        let deeper = column + self.unit;
        match self.rng.u8(0..if depth < 3 { 12 } else { 6 }) {
            0 => {
                let null = NULLS[self.rng.usize(0..NULLS.len())];
                self.out.extend([if null.is_empty() { "" } else { " " }, null]);
                self.end();
                Sense::Null
            }
            1 => {
                let other = OTHERS[self.rng.usize(0..OTHERS.len())];
                self.out.extend([" ", other]);
                self.end();
                Sense::Other(other.into())
            }
            2 => {
                let flow = FLOWS[self.rng.usize(0..FLOWS.len())];
                self.out.extend([" ", flow]);
                self.end();
                sense(flow)
            }
            3..=5 => {
                let (written, text) = TEXTS[self.rng.usize(0..TEXTS.len())];
                let block = written.starts_with(['|', '>']);
                self.out.extend([" ", &written.replace('@', &" ".repeat(deeper))]);
                if !block {
                    self.end();
                }
                Sense::Text(text.into())
            }
            kind @ (6 | 7) if !key => {
                // `- a: b`, `- - a`
                let pad = 1 + usize::from(self.rng.u8(0..4) == 0);
                self.out.push_str(&" ".repeat(pad));
                match kind {
                    6 => self.list(column + 1 + pad, depth + 1),
                    _ => self.map(column + 1 + pad, depth + 1),
                }
            }
            kind => {
                self.end();
                let list = kind % 2 == 0;
                let deeper = if key && list { column + self.dash } else { deeper };
                self.note(deeper);
                self.out.push_str(&" ".repeat(deeper));
                if list { self.list(deeper, depth + 1) } else { self.map(deeper, depth + 1) }
            }
        }
    }
}

fn mutated(rng: &mut Rng, text: &str) -> String {
    const PIECES: [&str; 36] = [
        "\"", "'", "[", "]", "{", "}", ":", ": ", "- ", "-", "? ", ",", "#", " #", "\n", "\r\n",
        " ", "  ", "\t", "|", ">", "|2\n", "&a ", "*a", "!t ", "%", "@", "`", "---\n", "...\n",
        "<<: ", "~", "\\", "\u{85}", "\u{2028}", "\n\n",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..=chars.len());
        match rng.u8(0..5) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => {
                let other = rng.usize(0..chars.len());
                chars.swap(at, other);
            }
            2 => chars.truncate(at.max(chars.len() * 3 / 4)),
            _ => {
                let piece = PIECES[rng.usize(0..PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

/// What Python's yaml takes each text for; `None` for no YAML. A list of a
/// letter for the kind and what belongs to it.
fn pyyaml(texts: &[String]) -> Option<Vec<Option<serde_json::Value>>> {
    const SCRIPT: &str = r"
import json, sys, yaml
P = 'tag:yaml.org,2002:'
def plain(n):
    if isinstance(n, yaml.ScalarNode):
        if n.tag == P + 'str': return ['text', n.value.encode().decode()]
        return ['null'] if n.tag == P + 'null' else ['other']
    if n.tag not in (P + 'map', P + 'seq'): return ['other']
    if isinstance(n, yaml.SequenceNode): return ['list', [plain(x) for x in n.value]]
    return ['map', [[k.value if isinstance(k, yaml.ScalarNode) else '?', plain(v)] for k, v in n.value]]
def load(text):
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return [plain(node) if node else ['null']]
    except (yaml.YAMLError, RecursionError, ValueError): return []
json.dump([load(t) for t in json.load(sys.stdin)], sys.stdout)
";
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().ok()?;
    let input = serde_json::to_vec(texts).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("ModuleNotFoundError") {
        return None;
    }
    assert!(output.status.success(), "{error}");
    let all: Vec<Vec<serde_json::Value>> = serde_json::from_slice(&output.stdout).unwrap();
    Some(all.into_iter().map(|mut one| one.pop()).collect())
}

/// Whether what we read is what Python read. `Other` is right for any scalar
/// and for what we do not look into.
fn agrees(ours: &Sense, theirs: &serde_json::Value) -> bool {
    match ours {
        Sense::Other(_) => true,
        Sense::Null => theirs[0] == "null",
        Sense::Text(text) => theirs[0] == "text" && theirs[1] == text.as_str(),
        Sense::List(list) => {
            let theirs = theirs[1].as_array().filter(|_| theirs[0] == "list");
            theirs.is_some_and(|t| {
                t.len() == list.len() && list.iter().zip(t).all(|(o, t)| agrees(o, t))
            })
        }
        Sense::Map(members) => {
            let theirs = theirs[1].as_array().filter(|_| theirs[0] == "map");
            let same = |((key, ours), theirs): (&(String, Sense), &serde_json::Value)| {
                theirs[0] == key.as_str() && agrees(ours, &theirs[1])
            };
            theirs.is_some_and(|t| t.len() == members.len() && members.iter().zip(t).all(same))
        }
    }
}

#[test]
fn a_document_says_what_was_written() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..250 {
        let (text, written) = Writer::document(&mut rng);
        assert_eq!(sense(&text), written, "{text}");
    }
}

#[test]
fn what_is_read_is_what_pyyaml_reads() {
    let mut rng = Rng::with_seed(2);
    let mut texts: Vec<String> = GOOD.iter().chain(BAD).map(|t| t.to_string()).collect();
    for _ in 0..120 {
        let (text, _) = Writer::document(&mut rng);
        texts.push(mutated(&mut rng, &text));
        texts.push(text);
    }
    let Some(theirs) = pyyaml(&texts) else {
        eprintln!("skipped what_is_read_is_what_pyyaml_reads: no python3 with yaml");
        return;
    };
    let mut both = 0;
    for (text, theirs) in texts.iter().zip(theirs) {
        let Ok(root) = parse(text) else { continue };
        let ours = Sense::of(text, &root);
        match theirs {
            Some(theirs) => {
                both += 1;
                assert!(agrees(&ours, &theirs), "{text}\n{text:?}\n{ours:?}\n{theirs}");
            }
            // It knows no tab as a blank, and which anchors there are.
            None => assert!(text.contains(['\t', '&', '*', '!']), "{text}\n{text:?}\n{ours:?}"),
        }
    }
    assert!(both > 120, "{both}");
}

const GOOD: &[&str] = &[
    "",
    "# only a comment",
    "---\n...\n",
    "a: 1",
    "a:\n- b\n-\n  c\n- d: 1\n  e: 2\nf:\n",
    "- - a\n  - b\n-\n  - c\n",
    "a: b\n  c\n  d # e\nf: g\n",
    "a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n",
    "a: !t\n  b: 1\nc: !!map {d: 1}\n",
    "a: |2\n    x\n   y\n",
    "plain\n",
    "[a, b]",
    "{a: 1,\n b: 2}",
    "\"a\": 'b'\n",
    "a: [\n]\n",
    "a: {b: c}\n",
    "a : b",
    "a:\n  - b\n\n  # c\n\n  - d\n# e\n",
    "a: b#c\n",
    "a: 'x\n\n  y'\n",
];

const BAD: &[&str] = &[
    "a: b: c",
    "a: b\n c: d",
    "a\nb: c",
    "a: - b",
    "- a\nb: c",
    "a: b\n- c",
    "a:\n  b: 1\n c: 2",
    "a:\n    b: 1\n  c: 2",
    "  a: 1\nb: 2",
    "a: [b",
    "a: [b}",
    "a: [b,,c]",
    "a: 'b",
    "a: \"b",
    "a: \"\\q\"",
    "a: \"\\ud83d\"",
    "a: 'b' c",
    "a: [b] c",
    "a: 1\na: 2",
    "a: 1\n'a': 2",
    "{a: 1, a: 2}",
    "a: 1\n---\nb: 2",
    "a: 1\n...\nb: 2",
    "%YAML 1.2\n---\na: 1",
    "--- a",
    "? a\n: b",
    "[a]: b",
    "*a : b",
    "&a b: c",
    "- &a b: c",
    "\ta: 1",
    "a:\n\tb: 1",
    "a: @b",
    "a: `b",
    "a: %b",
    "a: b\u{2028}c",
    "a: b\rc: d",
    "a: \u{1}",
    "a: 'b\nc'",
    "a: |\n x\n  y\nz",
    "a: |\n   \n x\n",
    "a: |x\n",
    "a: >1-2\n",
    "a: [b?c]",
    "a: {b\n : c}",
    "a: 1\n'b\n\n ': 2",
    "'a\n b': 2",
    "a: b\n  # c\n  d",
    "a: #b\n c\n d: e",
    "a: [b#c, d] #e\n ]",
];

#[test]
fn good_documents_are_read_and_bad_ones_are_not() {
    for text in GOOD {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
    for text in BAD {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
    let fault = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        fault("a: 1\nb: [1 2\n"),
        "line 3, column 1: a comma or a closing bracket is missing"
    );
    assert_eq!(fault("\u{fc}: 1\n\u{fc}: 2\n"), "line 2, column 1: a key stands twice");
    assert_eq!(fault("a: \u{fc} \u{85}"), "line 1, column 6: a character that cannot stand here");
    assert!(parse(&"- ".repeat(128)).is_ok());
    for deep in ["- ", "[", "{a: ", "- {a: [", "&a\n", "!a &b\n"] {
        assert!(parse(&deep.repeat(5000)).is_err(), "{deep}");
    }
}

fn value(rng: &mut Rng) -> Value {
    match rng.u8(0..5) {
        0 => "x y".into(),
        1 => Value::Map(vec![]),
        2 => [("args", Value::List(vec!["a".into(), Value::Int(1)])), ("n", Value::Bool(true))]
            .into(),
        3 => [("command", "run 'it' \"x\": # \n\\\u{7f}\u{2028}".into()), ("on", "yes".into())]
            .into(),
        _ => [("command", "/bin/tongs-hook hermes".into()), ("timeout", Value::Int(5))].into(),
    }
}

/// The paths to all values.
fn paths<'a>(sense: &'a Sense, path: &[Step<'a>], found: &mut Vec<Vec<Step<'a>>>) {
    found.push(path.to_vec());
    match sense {
        Sense::List(list) => {
            list.iter()
                .enumerate()
                .for_each(|(n, s)| paths(s, &[path, &[Step::Item(n)]].concat(), found));
        }
        Sense::Map(members) => {
            members.iter().for_each(|(k, s)| paths(s, &[path, &[Step::Key(k)]].concat(), found));
        }
        _ => {}
    }
}

fn at<'s>(sense: &'s Sense, path: &[&str]) -> Option<&'s Sense> {
    path.iter().try_fold(sense, |sense, key| match sense {
        Sense::Map(members) => members.iter().find(|(k, _)| k == key).map(|(_, s)| s),
        _ => None,
    })
}

#[test]
fn what_was_pushed_and_is_removed_leaves_every_byte() {
    let mut rng = Rng::with_seed(3);
    let (mut pushed, mut exact, mut refused) = (0, 0, 0);
    for _ in 0..250 {
        let (text, said) = Writer::document(&mut rng);
        let mut all = Vec::new();
        paths(&said, &[], &mut all);
        for mut path in all {
            if rng.bool() {
                path.push(Step::Key("new"));
            }
            let keys: Option<Vec<&str>> =
                path.iter().map(|s| if let Step::Key(k) = s { Some(*k) } else { None }).collect();
            let Some(mut keys) = keys else { continue };
            let value = value(&mut rng);
            let before = at(&said, &keys).cloned();
            let Ok(new) = push(&text, &keys, &value) else {
                refused += 1;
                continue;
            };
            pushed += 1;
            let Some(Sense::List(list)) = at(&sense(&new), &keys).cloned() else { panic!("{new}") };
            // Lines are only added, and the value that gives way is nothing.
            let mut lines = new.lines();
            for line in text.trim_start_matches('\u{feff}').lines() {
                let kept = |new: &str| {
                    let new = new.trim_start_matches('\u{feff}');
                    let nothing = ["~", "null", "NULL", "{}", "[]"].map(|v| [" ", v].concat());
                    new == line || nothing.iter().any(|v| line.replacen(v, "", 1) == new)
                };
                assert!(lines.any(kept), "{line}\n{text}\n---\n{new}");
            }
            let mut steps: Vec<Step> = keys.iter().map(|k| Step::Key(k)).collect();
            match &before {
                Some(Sense::List(old)) if !old.is_empty() => steps.push(Step::Item(list.len() - 1)),
                None if at(&said, &keys[..keys.len() - 1])
                    .is_some_and(|s| matches!(s, Sense::Map(m) if !m.is_empty())) => {}
                _ => continue,
            }
            exact += 1;
            match remove(&new, &steps) {
                Ok(old) => assert_eq!(old, text, "{steps:?}\n{new}"),
                Err(edit) => panic!("{edit} {steps:?}\n{text}\n---\n{new}"),
            }
            keys.clear();
        }
    }
    assert!(pushed > 150 && exact > 80 && refused < 4 * pushed, "{pushed} {exact} {refused}");
}

/// Where an item or a member begins, and where its last line ends.
fn lines(text: &str, path: &[Step]) -> (usize, usize) {
    let root = parse(text).unwrap();
    let (mut node, mut start) = (&root, 0);
    for step in path {
        let n = match step {
            Step::Item(n) => *n,
            Step::Key(key) => node.members().iter().position(|(k, _)| k == key).unwrap(),
        };
        start = node.starts[n];
        node = node.values().nth(n).unwrap();
    }
    let end = text[node.span.end..].find('\n').map_or(text.len(), |n| node.span.end + n);
    (start, end)
}

#[test]
fn a_removal_takes_what_it_should() {
    let mut rng = Rng::with_seed(4);
    let (mut removed, mut refused) = (0, 0);
    for _ in 0..250 {
        let (text, said) = Writer::document(&mut rng);
        let mut all = Vec::new();
        paths(&said, &[], &mut all);
        for path in all {
            match remove(&text, &path) {
                // That the text says what it should is checked by the edit.
                Ok(new) => {
                    removed += 1;
                    let (start, end) = lines(&text, &path);
                    let notes = |text: &str| text.matches("# of the next").count();
                    let around = notes(&text[..start]) + notes(&text[end..]);
                    assert_eq!(notes(&new), around, "{path:?}\n{text}\n---\n{new}");
                }
                Err(Edit::Fault(fault)) => {
                    refused += 1;
                    let known =
                        ["brackets", "anchor", "safely"].iter().any(|w| fault.what.contains(w));
                    assert!(known, "{fault}");
                }
                Err(Edit::NoSuchPath) => assert!(path.is_empty(), "{path:?}\n{text}"),
            }
        }
    }
    assert!(removed > 300 && refused < removed, "{removed} {refused}");
}

fn hook() -> Value {
    [("command", "tongs-hook hermes".into()), ("timeout", Value::Int(5))].into()
}

#[test]
fn an_item_comes_where_a_person_would_write_it() {
    let pushes = |text: &str, path: &[&str], expected: &str| {
        assert_eq!(push(text, path, &hook()).unwrap(), expected, "{text}");
    };
    let path = &["hooks", "on_start"][..];
    let item = "- command: tongs-hook hermes\n      timeout: 5\n";
    let made = format!("hooks:\n  on_start:\n    {item}");
    pushes("", path, &made);
    pushes("# c\n", path, &format!("# c\n{made}"));
    pushes("# c", path, &format!("# c\n{}", made.trim_end()));
    pushes("a: 1\n\n# end\n", path, &format!("a: 1\n{made}\n# end\n"));
    pushes(
        "hooks: {} # none\na: 1\n",
        path,
        &made.replacen(":\n", ": # none\n", 1).replace("5\n", "5\na: 1\n"),
    );
    pushes("hooks:\na: 1\n", path, &format!("{made}a: 1\n"));
    pushes("hooks: ~\r\n", path, &made.replace('\n', "\r\n"));
    pushes("hooks: []", path, made.trim_end());
    pushes(
        "hooks:\n    on_stop:\n    - command: x\n",
        path,
        "hooks:\n    on_stop:\n    - command: x\n    on_start:\n    - command: tongs-hook hermes\n      timeout: 5\n",
    );
    pushes(
        "hooks:\n  on_start: # mine\n    - command: x # one\n    # none\na: 1\n",
        path,
        &format!(
            "hooks:\n  on_start: # mine\n    - command: x # one\n    {item}    # none\na: 1\n"
        ),
    );
    pushes("{}\n", path, &made);
    pushes("- a\n", &[], "- a\n- command: tongs-hook hermes\n  timeout: 5\n");
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let refused = |text: &str, what: &str| {
        let edit = push(text, &["hooks", "on_start"], &hook()).unwrap_err();
        assert!(matches!(edit, Edit::Fault(f) if f.what.contains(what)), "{text}: {edit}");
    };
    refused("hooks: {a: 1}\n", "brackets");
    refused("{\"hooks\": {}}\n", "brackets");
    refused("hooks:\n  on_start: [a]\n", "brackets");
    refused("x: &a\n  y: 1\nhooks: &b\n  z: 1\n", "anchor");
    refused("x: &a {}\nhooks: *a\n", "anchor");
    refused("hooks: !t\n  z: 1\n", "anchor");
    refused("x: &a\n  on_start: []\nhooks:\n  <<: *a\n", "merge");
    refused("hooks: # of hooks\n  {}\n", "comment");
    refused("a: |\n  no line end", "safely");
    let no = |text: &str| push(text, &["hooks", "on_start"], &hook()).unwrap_err();
    assert_eq!(no("hooks: 1\n"), Edit::NoSuchPath);
    assert_eq!(no("hooks:\n  - a\n"), Edit::NoSuchPath);
    assert_eq!(no("hooks:\n  on_start:\n    a: 1\n"), Edit::NoSuchPath);
    assert_eq!(no("hooks:\n  on_start: x\n"), Edit::NoSuchPath);
    assert!(matches!(no("hooks: [\n"), Edit::Fault(_)));
}

#[test]
fn an_item_or_a_key_goes_with_its_lines() {
    let removes = |text: &str, path: &[Step], expected: &str| {
        assert_eq!(remove(text, path).unwrap(), expected, "{text}");
    };
    let (a, b) = (Step::Key("a"), Step::Key("b"));
    removes("a:\n  - 1\n  # of 2\n  - 2 # two\n", &[a, Step::Item(1)], "a:\n  - 1\n  # of 2\n");
    removes("a:\n  - 1\nb: 2\n", &[a, Step::Item(0)], "a: []\nb: 2\n");
    removes("a: # x\n- b: 1\n", &[a, Step::Item(0), b], "a: # x\n- {}\n");
    removes("- a: 1\n  b: 2\n", &[Step::Item(0), a], "- b: 2\n");
    removes("- a: 1\n  # of b\n  b: 2\n", &[Step::Item(0), a], "-\n  # of b\n  b: 2\n");
    removes("a: 1\nb:\n  c: |\n    x\n\nd: 1\n", &[b], "a: 1\n\nd: 1\n");
    removes("a: 1\r\nb: 2", &[b], "a: 1");
    removes("a: 1\n", &[a], "{}\n");
    assert_eq!(remove("a: 1\n", &[b]), Err(Edit::NoSuchPath));
    assert_eq!(remove("a: 1\n", &[]), Err(Edit::NoSuchPath));
    assert_eq!(remove("a: {}\n", &[a, b]), Err(Edit::NoSuchPath));
    assert!(matches!(remove("a: {b: 1}\n", &[a, b]), Err(Edit::Fault(_))));
}

#[test]
fn no_text_makes_it_panic_and_every_edit_can_be_read_again() {
    let mut rng = Rng::with_seed(5);
    for _ in 0..250 {
        let (text, said) = Writer::document(&mut rng);
        let text = mutated(&mut rng, &text);
        let mut all = Vec::new();
        paths(&said, &[], &mut all);
        let path = &all[rng.usize(0..all.len())];
        let keys: Vec<&str> = path
            .iter()
            .filter_map(|s| if let Step::Key(k) = s { Some(*k) } else { None })
            .collect();
        for new in [push(&text, &keys, &value(&mut rng)), remove(&text, path)].into_iter().flatten()
        {
            assert!(parse(&new).is_ok(), "{text}\n---\n{new}");
        }
    }
}

#[test]
fn large_documents_take_linear_time() {
    let start = std::time::Instant::now();
    let group = "- command: \"a b\"\n  args: [1, 'x']\n  text: |\n    one\n\n    two\n";
    for text in
        [group.repeat(1000), "- x\n".repeat(10_000), format!("- '{}'\n", "x\n ".repeat(10_000))]
    {
        let new = push(&text, &[], &hook()).unwrap();
        let Sense::List(list) = sense(&new) else { panic!("no list") };
        assert_eq!(remove(&new, &[Step::Item(list.len() - 1)]).unwrap(), text);
    }
    assert!(start.elapsed().as_secs() < 20);
}
