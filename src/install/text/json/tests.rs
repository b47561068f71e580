use fastrand::Rng;

use super::super::{Edit, Step, Value};
use super::{Dialect, Kind, Node, insert, parse, push, remove, replace, write};

const DIALECTS: [Dialect; 3] = [Dialect::Strict, Dialect::Comments, Dialect::Five];

/// What a document says, without how it is written. Leaves are as JSON writes
/// them, numbers as they stand.
#[derive(Clone, Debug, PartialEq)]
enum Sense {
    Leaf(String),
    List(Vec<Sense>),
    Map(Vec<(String, Sense)>),
}

impl Sense {
    fn of(node: &Node, text: &str) -> Sense {
        match &node.kind {
            Kind::Null => Sense::Leaf("null".into()),
            Kind::Bool(bool) => Sense::Leaf(bool.to_string()),
            Kind::Number => Sense::Leaf(text[node.span.clone()].into()),
            Kind::Text(text) => Sense::Leaf(serde_json::to_string(text).unwrap()),
            Kind::List(list) => Sense::List(list.iter().map(|n| Sense::of(n, text)).collect()),
            Kind::Map(members) => Sense::Map(
                members.iter().map(|m| (m.key.clone(), Sense::of(&m.value, text))).collect(),
            ),
        }
    }

    fn parsed(text: &str, dialect: Dialect) -> Sense {
        match parse(text, dialect) {
            Ok(node) => Sense::of(&node, text),
            Err(fault) => panic!("{fault}\n{text}"),
        }
    }

    fn from(value: &Value) -> Sense {
        match value {
            Value::Text(text) => Sense::Leaf(serde_json::to_string(text).unwrap()),
            Value::Int(int) => Sense::Leaf(int.to_string()),
            Value::Bool(bool) => Sense::Leaf(bool.to_string()),
            Value::List(list) => Sense::List(list.iter().map(Sense::from).collect()),
            Value::Map(members) => {
                Sense::Map(members.iter().map(|(k, v)| (k.clone(), Sense::from(v))).collect())
            }
        }
    }

    fn at(&mut self, path: &[Step]) -> &mut Sense {
        path.iter().fold(self, |sense, step| match (sense, step) {
            (Sense::List(list), Step::Item(n)) => &mut list[*n],
            (Sense::Map(members), Step::Key(key)) => {
                &mut members.iter_mut().find(|(k, _)| k == key).unwrap().1
            }
            _ => panic!("no such path"),
        })
    }

    fn len(&self) -> usize {
        match self {
            Sense::Leaf(_) => 0,
            Sense::List(list) => list.len(),
            Sense::Map(members) => members.len(),
        }
    }

    fn random(rng: &mut Rng, depth: usize) -> Sense {
        match rng.u8(0..if depth < 4 { 9 } else { 5 }) {
            0 => Sense::Leaf(["null", "true", "false"][rng.usize(0..3)].into()),
            1 | 2 => Sense::Leaf(rng.i64(-50..1000).to_string()),
            3 | 4 => Sense::Leaf(serde_json::to_string(&word(rng)).unwrap()),
            5 | 6 => {
                Sense::List((0..rng.usize(0..4)).map(|_| Sense::random(rng, depth + 1)).collect())
            }
            _ => {
                let mut members: Vec<(String, Sense)> = Vec::new();
                for _ in 0..rng.usize(0..4) {
                    let key = word(rng);
                    if members.iter().all(|(k, _)| *k != key) {
                        members.push((key, Sense::random(rng, depth + 1)));
                    }
                }
                Sense::Map(members)
            }
        }
    }

    /// The paths to all containers.
    fn containers<'a>(&'a self, path: &[Step<'a>], found: &mut Vec<Vec<Step<'a>>>) {
        let to = |step| [path, &[step]].concat();
        match self {
            Sense::Leaf(_) => return,
            Sense::List(list) => {
                list.iter().enumerate().for_each(|(n, s)| s.containers(&to(Step::Item(n)), found));
            }
            Sense::Map(members) => {
                members.iter().for_each(|(k, s)| s.containers(&to(Step::Key(k)), found));
            }
        }
        found.push(path.to_vec());
    }
}

fn word(rng: &mut Rng) -> String {
    const WORDS: [&str; 12] = [
        "hooks",
        "a",
        "b",
        "c",
        "$x_1",
        "true",
        "über",
        "a b",
        "q\"\\/\n\t",
        "//no",
        "/*no*/,]}",
        "\u{1f600}\u{1}",
    ];
    WORDS[rng.usize(0..WORDS.len())].into()
}

fn value(rng: &mut Rng) -> Value {
    match rng.u8(0..5) {
        0 => Value::Int(rng.i64(..)),
        1 => Value::Bool(rng.bool()),
        2 => [
            ("command", "run 'it' \"x\"\n".into()),
            ("timeout", Value::Int(5)),
            ("none", Value::Map(vec![])),
        ]
        .into(),
        3 => Value::List(vec!["x".into(), Value::List(vec![]), [("k", Value::Bool(true))].into()]),
        _ => word(rng).into(),
    }
}

/// Writes a document in one of many ways.
struct Writer<'r> {
    rng: &'r mut Rng,
    dialect: Dialect,
    eol: &'static str,
    unit: &'static str,
    /// How much is written with a mind of its own, of 100.
    wild: u8,
    /// How a container stands otherwise: on lines of its own, or on one line.
    lines: bool,
    pad: &'static str,
    comments: usize,
    out: String,
}

impl Writer<'_> {
    fn document(rng: &mut Rng, dialect: Dialect, sense: &Sense) -> String {
        let mut writer = Writer {
            eol: ["\n", "\r\n"][rng.usize(0..2)],
            unit: ["  ", "\t", "    ", ""][rng.usize(0..4)],
            wild: [0, 0, 10, 50][rng.usize(0..4)],
            lines: rng.u8(0..3) > 0,
            pad: ["", " "][rng.usize(0..2)],
            comments: 0,
            out: ["", "\u{feff}"][usize::from(rng.u8(0..8) == 0)].to_string(),
            dialect,
            rng,
        };
        if writer.is_wild() {
            writer.gap(0);
        }
        writer.value(sense, 0);
        if writer.rng.bool() {
            writer.out.push_str(writer.eol);
        }
        writer.out
    }

    fn is_wild(&mut self) -> bool {
        self.rng.u8(0..100) < self.wild
    }

    fn gap(&mut self, depth: usize) {
        for _ in 0..self.rng.usize(0..4) {
            match self.rng.u8(0..8) {
                0 => self.out.push(' '),
                1 => self.out.push('\t'),
                2 => self.out.push_str(["\n", "\r\n", "\r"][self.rng.usize(0..3)]),
                3 | 4 => self.line(depth),
                5 if self.dialect != Dialect::Strict => {
                    self.comments += 1;
                    let end = [self.eol, "\n", "\r"][self.rng.usize(0..3)];
                    self.out.push_str(&format!("// <{}> ,]}}{end}", self.comments));
                }
                6 if self.dialect != Dialect::Strict => {
                    self.comments += 1;
                    let end = ["", "\n ", " "][self.rng.usize(0..3)];
                    self.out.push_str(&format!("/* <{}> ,]}}{end}*/", self.comments));
                }
                7 if self.dialect == Dialect::Five => {
                    self.out
                        .push(['\u{a0}', '\u{feff}', '\u{2028}', '\u{b}'][self.rng.usize(0..4)]);
                }
                _ => {}
            }
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push_str(self.eol);
        for _ in 0..depth {
            self.out.push_str(self.unit);
        }
    }

    fn between(&mut self, depth: usize, lines: bool, pad: &str) {
        if self.is_wild() {
            self.gap(depth);
        } else if lines {
            self.line(depth);
        } else {
            self.out.push_str(pad);
        }
    }

    fn value(&mut self, sense: &Sense, depth: usize) {
        match sense {
            Sense::Leaf(text) => self.out.push_str(text),
            Sense::List(list) => self.all("[]", list, depth, |writer, sense| {
                writer.value(sense, depth + 1);
            }),
            Sense::Map(members) => self.all("{}", members, depth, |writer, (key, sense)| {
                match key.as_str() {
                    "$x_1" | "a" | "über" | "true" if writer.dialect == Dialect::Five => {
                        writer.out.push_str(key);
                    }
                    key => writer.out.push_str(&serde_json::to_string(key).unwrap()),
                }
                if writer.is_wild() {
                    writer.gap(depth);
                }
                writer.out.push(':');
                writer.between(depth, false, writer.pad);
                writer.value(sense, depth + 1);
            }),
        }
    }

    fn all<T>(&mut self, brackets: &str, all: &[T], depth: usize, put: impl Fn(&mut Self, &T)) {
        self.out.push_str(&brackets[..1]);
        let lines = if self.rng.u8(0..10) == 0 { !self.lines } else { self.lines };
        let pad = if self.rng.u8(0..5) == 0 { " " } else { "" };
        for (n, one) in all.iter().enumerate() {
            if n > 0 {
                if self.is_wild() {
                    self.gap(depth + 1);
                }
                self.out.push(',');
            }
            self.between(depth + 1, lines, if n == 0 { pad } else { self.pad });
            put(self, one);
        }
        let end = self.out.len();
        if !all.is_empty() || self.rng.u8(0..10) == 0 {
            self.between(depth, lines, pad);
        }
        // A trailing comma, somewhere before the closing bracket.
        if !all.is_empty() && self.dialect != Dialect::Strict && self.rng.u8(0..4) == 0 {
            self.out.insert(end, ',');
        }
        self.out.push_str(&brackets[1..]);
    }
}

fn documents(seed: u64, count: usize) -> impl Iterator<Item = (Rng, Dialect, Sense, String)> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(move |n| {
        let dialect = DIALECTS[n % 3];
        let sense = Sense::random(&mut rng, 0);
        let text = Writer::document(&mut rng, dialect, &sense);
        (rng.fork(), dialect, sense, text)
    })
}

#[test]
fn a_document_says_what_was_written() {
    for (_, dialect, sense, text) in documents(1, 1200) {
        assert_eq!(Sense::parsed(&text, dialect), sense, "{text}");
        if dialect == Dialect::Strict {
            let json: serde_json::Value =
                serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
            assert_eq!(json, serde_json::from_str::<serde_json::Value>(&plain(&sense)).unwrap());
        }
    }
}

fn plain(sense: &Sense) -> String {
    match sense {
        Sense::Leaf(text) => text.clone(),
        Sense::List(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(",")),
        Sense::Map(members) => {
            let member = |(key, value): &(String, Sense)| {
                format!("{}:{}", serde_json::to_string(key).unwrap(), plain(value))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    }
}

#[test]
fn what_was_added_and_is_removed_leaves_every_byte() {
    for (mut rng, dialect, sense, text) in documents(2, 1800) {
        let mut paths = Vec::new();
        sense.containers(&[], &mut paths);
        let root = parse(&text, dialect).unwrap();
        for path in paths {
            let node = root.at(&path).unwrap();
            let value = value(&mut rng);
            let mut expected = sense.clone();
            let last = match expected.at(&path) {
                Sense::List(list) => {
                    list.push(Sense::from(&value));
                    Step::Item(list.len() - 1)
                }
                Sense::Map(members) => {
                    members.push(("new key".into(), Sense::from(&value)));
                    Step::Key("new key")
                }
                Sense::Leaf(_) => unreachable!(),
            };
            let added = match last {
                Step::Item(_) => push(&text, dialect, &path, &value),
                Step::Key(key) => insert(&text, dialect, &path, key, &value),
            }
            .unwrap();
            let said = format!("{dialect:?} {path:?}\n{text}\n--- added:\n{added}\n");
            assert_eq!(Sense::parsed(&added, dialect), expected, "{said}");
            assert!(added.starts_with(&text[..node.span.start + 1]), "{said}");
            assert!(added.ends_with(&text[node.span.end - 1..]), "{said}");
            let removed = remove(&added, dialect, &[path.as_slice(), &[last]].concat()).unwrap();
            let inside = text[node.span.start + 1..node.span.end - 1].trim();
            if inside.is_empty() && node.span.len() > 2 {
                // Blanks alone in an empty container are not kept.
                assert_eq!(Sense::parsed(&removed, dialect), sense, "{said}");
            } else if sense.clone().at(&path).len() > 0 || inside.is_empty() {
                assert_eq!(removed, text, "{said}--- removed:\n{removed}");
            }
        }
    }
}

#[test]
fn a_removal_leaves_the_neighbours_and_their_comments() {
    for (_, dialect, sense, text) in documents(3, 1800) {
        let mut paths = Vec::new();
        sense.containers(&[], &mut paths);
        let root = parse(&text, dialect).unwrap();
        for path in paths {
            for n in 0..sense.clone().at(&path).len() {
                let node = root.at(&path).unwrap();
                let mut expected = sense.clone();
                let (step, span) = match expected.at(&path) {
                    Sense::List(list) => {
                        list.remove(n);
                        (Step::Item(n), node.list()[n].span.clone())
                    }
                    Sense::Map(members) => {
                        members.remove(n);
                        let member = &node.members()[n];
                        (
                            Step::Key(member.key.as_str()),
                            member.key_span.start..member.value.span.end,
                        )
                    }
                    Sense::Leaf(_) => unreachable!(),
                };
                let removed = remove(&text, dialect, &[path.as_slice(), &[step]].concat()).unwrap();
                let said =
                    format!("{dialect:?} {path:?} {step:?}\n{text}\n--- removed:\n{removed}\n");
                assert_eq!(Sense::parsed(&removed, dialect), expected, "{said}");
                assert!(removed.starts_with(&text[..node.span.start + 1]), "{said}");
                assert!(removed.ends_with(&text[node.span.end - 1..]), "{said}");
                let before = &text[..span.start];
                for at in before.match_indices('<').map(|(at, _)| at) {
                    let mark = &before[at..];
                    if let Some(end) = mark.find('>') {
                        assert!(removed.contains(&mark[..=end]), "{mark}\n{said}");
                    }
                }
            }
        }
    }
}

#[test]
fn strict_documents_are_those_that_serde_reads() {
    let mut accepted = 0;
    for (mut rng, _, _, text) in documents(4, 2400).filter(|d| d.1 == Dialect::Strict) {
        for _ in 0..8 {
            let text = mutated(&mut rng, text.trim_start_matches('\u{feff}'));
            let ours = parse(&text, Dialect::Strict);
            if ours.as_ref().is_err_and(|f| f.what == "a key stands twice")
                || text.starts_with('\u{feff}')
            {
                continue;
            }
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}\n{text}");
            accepted += usize::from(ours.is_ok());
            if let (Ok(node), Ok(theirs)) = (ours, theirs) {
                let ours = plain(&Sense::of(&node, &text));
                assert_eq!(serde_json::from_str::<serde_json::Value>(&ours).unwrap(), theirs);
            }
        }
    }
    assert!(accepted > 500);
}

fn mutated(rng: &mut Rng, text: &str) -> String {
    const PIECES: [&str; 39] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "'",
        "\\",
        "\\u",
        "d83d",
        "\\ude00",
        "00",
        "0",
        "-",
        "+",
        ".",
        "e",
        "E5",
        "0x",
        "Infinity",
        "NaN",
        "null",
        "true",
        "//",
        "/*",
        "*/",
        "\n",
        "\r",
        " ",
        "\t",
        "\u{0}",
        "\u{7f}",
        "\u{feff}",
        "\u{2028}",
        "é",
        "\u{1f600}",
        "\"a\":",
        "\u{b}",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.usize(0..3) {
        let at = rng.usize(0..=chars.len());
        match rng.u8(0..4) {
            0 => chars.truncate(at),
            1 if at < chars.len() => drop(chars.remove(at)),
            2 if at < chars.len() => {
                let other = rng.usize(0..chars.len());
                chars.swap(at, other);
            }
            _ => {
                let piece = PIECES[rng.usize(0..PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_text_makes_it_panic_and_every_edit_can_be_read_again() {
    for (mut rng, _, sense, text) in documents(5, 1000) {
        let mut paths = Vec::new();
        sense.containers(&[], &mut paths);
        paths.push(vec![Step::Item(1)]);
        let text = mutated(&mut rng, &text);
        let path = &paths[rng.usize(0..paths.len())];
        let value = value(&mut rng);
        for dialect in DIALECTS {
            let results = [
                push(&text, dialect, path, &value),
                insert(&text, dialect, path, "key", &value),
                replace(&text, dialect, path, &value),
                remove(&text, dialect, path),
                remove(&text, dialect, &[path.as_slice(), &[Step::Item(0)]].concat()),
            ];
            for new in results.into_iter().flatten() {
                assert!(parse(&new, dialect).is_ok(), "{dialect:?} {path:?}\n{text}\n---\n{new}");
            }
        }
    }
}

const KEY: Step = Step::Key("k");

fn pushed(dialect: Dialect, text: &str, path: &[Step], expected: &str) {
    let new = push(text, dialect, path, &Value::Int(9)).unwrap();
    assert_eq!(new, expected);
    let last = parse(text, dialect).unwrap().at(path).unwrap().list().len();
    let old = remove(&new, dialect, &[path, &[Step::Item(last)]].concat()).unwrap();
    assert_eq!(old, text);
}

#[test]
fn an_element_comes_where_a_person_would_write_it() {
    use Dialect::{Comments, Strict};
    pushed(Strict, "[]", &[], "[\n  9\n]");
    pushed(Strict, "{\"k\":[]}\n", &[KEY], "{\"k\":[9]}\n");
    pushed(Strict, "{ \"k\": [ 1 ] }", &[KEY], "{ \"k\": [ 1, 9 ] }");
    pushed(Strict, "{\"k\":[1,2]}", &[KEY], "{\"k\":[1,2,9]}");
    pushed(Strict, "{\n\t\"k\": []\n}", &[KEY], "{\n\t\"k\": [\n\t\t9\n\t]\n}");
    pushed(Strict, "{\r\n  \"k\": [1]\r\n}", &[KEY], "{\r\n  \"k\": [1,\r\n    9\r\n  ]\r\n}");
    pushed(
        Strict,
        "{\n    \"k\": [\n        1\n    ]\n}",
        &[KEY],
        "{\n    \"k\": [\n        1,\n        9\n    ]\n}",
    );
    pushed(Comments, "[\n  1 // one\n  // none\n]", &[], "[\n  1, // one\n  // none\n  9\n]");
    pushed(Comments, "[\n  1, // one\n]", &[], "[\n  1, // one\n  9,\n]");
    pushed(Comments, "[\n  1 /* one */ ]", &[], "[\n  1, /* one */\n  9 ]");
    pushed(Comments, "[1 // one\n]", &[], "[1, // one\n  9\n]");
    pushed(Comments, "[1\n]", &[], "[1, 9\n]");
    let new = push("[\n  // none\n]", Comments, &[], &Value::Int(9)).unwrap();
    assert_eq!(new, "[\n  // none\n  9\n]");
    let new = push("{\"k\": [ ]}", Strict, &[KEY], &Value::Int(9)).unwrap();
    assert_eq!(new, "{\"k\": [9]}");
}

#[test]
fn a_member_is_written_in_the_style_of_the_file() {
    let value: Value = [("command", "x".into()), ("timeout", Value::Int(5))].into();
    let new = insert("{\n\t\"a\": 1\n}\n", Dialect::Strict, &[], "b", &value).unwrap();
    assert_eq!(
        new,
        "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"command\": \"x\",\n\t\t\"timeout\": 5\n\t}\n}\n"
    );
    let new = insert("{\"a\":1}", Dialect::Strict, &[], "b", &value).unwrap();
    assert_eq!(new, "{\"a\":1,\"b\":{\"command\":\"x\",\"timeout\":5}}");
    let new =
        replace("{\r\n  \"a\": [1]\r\n}", Dialect::Strict, &[Step::Key("a")], &value).unwrap();
    assert_eq!(new, "{\r\n  \"a\": {\r\n    \"command\": \"x\",\r\n    \"timeout\": 5\r\n  }\r\n}");
    assert_eq!(write(&value), "{\n  \"command\": \"x\",\n  \"timeout\": 5\n}\n");
}

fn removed(text: &str, n: usize, expected: &str) {
    assert_eq!(remove(text, Dialect::Comments, &[Step::Item(n)]).unwrap(), expected, "{text}");
}

#[test]
fn an_element_goes_with_its_comma_its_line_and_its_note() {
    removed("[1, 2, 3]", 0, "[2, 3]");
    removed("[1, 2, 3]", 1, "[1, 3]");
    removed("[1, 2, 3]", 2, "[1, 2]");
    removed("[ 1 ]", 0, "[]");
    removed("[\n  1, // one\n  2 // two\n]", 0, "[\n  2 // two\n]");
    removed("[\n  1, // one\n  2 // two\n]", 1, "[\n  1 // one\n]");
    removed("[\n  1, // one\n  2]", 1, "[\n  1 // one\n]");
    removed("[\n  // of 1\n  1,\n  // of 2\n  2\n]", 1, "[\n  // of 1\n  1\n  // of 2\n]");
    removed("[\n  1, 2, // both\n  3\n]", 1, "[\n  1, // both\n  3\n]");
    removed("[\n  1, 2, // both\n  3\n]", 0, "[\n  2, // both\n  3\n]");
    removed("[\n  1\n  , 2\n  , 3\n]", 2, "[\n  1\n  , 2\n]");
    removed("[\n  1\n  , 2\n  , 3\n]", 1, "[\n  1\n  , 3\n]");
    removed("[\n  1, // one\n]", 0, "[]");
    removed("[\n  // none\n  1,\n]", 0, "[\n  // none\n]");
}

#[test]
fn a_fault_says_where_and_why() {
    let fault = |text: &str, dialect| parse(text, dialect).unwrap_err().to_string();
    let strict = |text| fault(text, Dialect::Strict);
    assert_eq!(strict(""), "line 1, column 1: a value is missing");
    assert_eq!(strict("\u{feff}  \n"), "line 2, column 1: a value is missing");
    assert_eq!(strict("\u{feff}{é}"), "line 1, column 2: a key is missing");
    assert_eq!(strict("{\r\n  \"é\": ]"), "line 2, column 8: a value is missing");
    assert_eq!(strict("[1,]"), "line 1, column 4: a comma before a closing bracket");
    assert_eq!(strict("[1 2]"), "line 1, column 4: a comma or ] is missing");
    assert_eq!(strict("[1] 2"), "line 1, column 5: more than one value");
    assert_eq!(strict("{\"a\": 1, \"\\u0061\": 2}"), "line 1, column 10: a key stands twice");
    assert_eq!(strict("\"\\ud83d\""), "line 1, column 2: half of a surrogate pair");
    assert_eq!(strict("// x"), "line 1, column 1: a value is missing");
    assert_eq!(fault("[1, /*]", Dialect::Comments), "line 1, column 5: a comment has no end");
    assert_eq!(fault("{a: 1}", Dialect::Comments), "line 1, column 2: a key is missing");
    assert_eq!(fault("[,]", Dialect::Five), "line 1, column 2: a value is missing");
    let deep = |n: usize| ["[".repeat(n), "]".repeat(n)].concat();
    assert!(parse(&deep(128), Dialect::Strict).is_ok());
    assert_eq!(strict(&deep(129)), "line 1, column 129: nested too deep");
    assert!(parse(&"[".repeat(1_000_000), Dialect::Five).is_err());
    let path = [Step::Item(0); 127];
    let result = push(&deep(128), Dialect::Strict, &path, &Value::List(vec![]));
    assert!(matches!(result, Err(Edit::Fault(f)) if f.what == "nested too deep"));
    assert!(push(&deep(128), Dialect::Strict, &path, &Value::Int(1)).is_ok());
}

#[test]
fn an_edit_needs_its_place() {
    let (text, strict) = ("{\"a\": [1], \"b\": {}}", Dialect::Strict);
    let (a, b, one) = (Step::Key("a"), Step::Key("b"), Value::Int(1));
    assert_eq!(push(text, strict, &[b], &one), Err(Edit::NoSuchPath));
    assert_eq!(push(text, strict, &[a, Step::Item(0)], &one), Err(Edit::NoSuchPath));
    assert_eq!(insert(text, strict, &[a], "k", &one), Err(Edit::NoSuchPath));
    assert_eq!(replace(text, strict, &[a, Step::Item(1)], &one), Err(Edit::NoSuchPath));
    assert_eq!(remove(text, strict, &[a, Step::Item(1)]), Err(Edit::NoSuchPath));
    assert_eq!(remove(text, strict, &[Step::Item(0)]), Err(Edit::NoSuchPath));
    assert_eq!(remove(text, strict, &[]), Err(Edit::NoSuchPath));
    let twice = insert(text, strict, &[], "b", &one).unwrap_err();
    assert_eq!(twice.to_string(), "line 1, column 12: the key is there already");
    assert!(matches!(push("", strict, &[], &one), Err(Edit::Fault(_))));
}

#[test]
fn json5_is_read_as_its_specification_says() {
    let good = [
        "{a: 1, $b_: 2, ünï: 3, \\u0061b: 4, 'q\"': 5, \"r'\": 6, Infinity: 7, null: 8,}",
        "[.5, 5., -.5e1, +1, 0x1F, -0Xff, +Infinity, -Infinity, NaN, 0, 1e3,]",
        "['a\\'b', 'a\\\nb', 'a\\\r\nb', '\\x41\\v\\0\\q', 'tab\there', '\u{2028}']",
        "// c\u{2028}1",
        "\u{a0}\u{3000}\u{b}1\u{feff}",
    ];
    for text in good {
        assert!(parse(text, Dialect::Five).is_ok(), "{text}: {:?}", parse(text, Dialect::Five));
        assert!(parse(text, Dialect::Comments).is_err(), "{text}");
    }
    let bad = [
        "01",
        "0x",
        ".",
        "5.e",
        "+ 1",
        "'a\nb'",
        "'\\1'",
        "'\\01'",
        "'\\x4'",
        "{1a: 1}",
        "{a b: 1}",
        "{a}",
        "infinity",
        "\u{85}1",
        "[1,,]",
        "'a\"",
        "{\\u0031: 1}",
    ];
    for text in bad {
        assert!(parse(text, Dialect::Five).is_err(), "{text}");
    }
    let text = "['a\\\r\nb\\x41\\v\\0\\q', 0x1F, -0x10, +7, -9223372036854775808, 1.5, 1e2]";
    let node = parse(text, Dialect::Five).unwrap();
    assert_eq!(node.list()[0].text(), Some("abA\u{b}\0q"));
    let ints: Vec<_> = node.list().iter().map(|n| n.int(text)).collect();
    assert_eq!(ints, [None, Some(31), Some(-16), Some(7), Some(i64::MIN), None, None]);
}

#[test]
fn large_documents_take_linear_time() {
    let start = std::time::Instant::now();
    let long = format!("[{}1]", "{\"k\": [1, 2, \"x\"]}, ".repeat(3000));
    for text in [long.clone(), long.replace(' ', "\n"), "/* */".repeat(20_000) + "[1, 2]"] {
        let new = push(&text, Dialect::Comments, &[], &Value::Int(9)).unwrap();
        let last = parse(&new, Dialect::Comments).unwrap().list().len() - 1;
        assert_eq!(remove(&new, Dialect::Comments, &[Step::Item(last)]).unwrap(), text);
    }
    assert!(start.elapsed().as_secs() < 20);
}
