use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use fastrand::Rng;

use super::super::{Edit, Value};
use super::{Doc, Item, append_table, parse, remove, set};

/// What a document says, as the oracle below prints it.
#[derive(Clone, Debug, PartialEq)]
enum Sense {
    Leaf(serde_json::Value),
    Map(BTreeMap<String, Sense>),
    List(Vec<Sense>),
}

impl Sense {
    fn of(doc: &Doc) -> Sense {
        let mut root = Sense::Map(BTreeMap::new());
        for table in &doc.tables {
            if let Some((last, above)) = table.path.split_last().filter(|_| table.array) {
                let list = root.below(above).member(last, Sense::List(Vec::new()));
                let Sense::List(list) = list else { panic!("no array") };
                list.push(Sense::Map(BTreeMap::new()));
            }
            root.below(&table.path);
            for entry in &table.entries {
                root.below(&table.path).put(&entry.key, &entry.value);
            }
        }
        root
    }

    fn member(&mut self, key: &str, or: Sense) -> &mut Sense {
        let Sense::Map(members) = self else { panic!("no table") };
        members.entry(key.to_string()).or_insert(or)
    }

    /// The table at a path, made if it is not there; of an array the last.
    fn below(&mut self, path: &[String]) -> &mut Sense {
        path.iter().fold(self, |sense, key| match sense.member(key, Sense::Map(BTreeMap::new())) {
            Sense::List(list) => list.last_mut().unwrap(),
            table => table,
        })
    }

    fn put(&mut self, key: &[String], item: &Item) {
        let (last, above) = key.split_last().unwrap();
        self.below(above).member(last, Sense::item(item));
    }

    fn item(item: &Item) -> Sense {
        match item {
            Item::Text(text) => Sense::Leaf(serde_json::json!(text)),
            Item::Int(int) => Sense::Leaf(serde_json::json!(int)),
            Item::Bool(bool) => Sense::Leaf(serde_json::json!(bool)),
            Item::Other => Sense::Leaf(serde_json::Value::Null),
            Item::List(list) => Sense::List(list.iter().map(Sense::item).collect()),
            Item::Map(members) => {
                let mut map = Sense::Map(BTreeMap::new());
                members.iter().for_each(|(key, item)| map.put(key, item));
                map
            }
        }
    }

    fn json(json: serde_json::Value) -> Sense {
        match json {
            serde_json::Value::Array(list) => {
                Sense::List(list.into_iter().map(Sense::json).collect())
            }
            serde_json::Value::Object(map) => {
                Sense::Map(map.into_iter().map(|(k, v)| (k, Sense::json(v))).collect())
            }
            leaf => Sense::Leaf(leaf),
        }
    }
}

fn item(value: &Value) -> Item {
    match value {
        Value::Text(text) => Item::Text(text.clone()),
        Value::Int(int) => Item::Int(*int),
        Value::Bool(bool) => Item::Bool(*bool),
        Value::List(list) => Item::List(list.iter().map(item).collect()),
        Value::Map(map) => Item::Map(map.iter().map(|(k, v)| (vec![k.clone()], item(v))).collect()),
    }
}

const VALUES: [&str; 34] = [
    "1",
    "-17",
    "+0",
    "1_000",
    "0xDEAD_beef",
    "0o17",
    "0b101",
    "9223372036854775808",
    "3.14",
    "-1e5",
    "6.6_2E-3_4",
    "inf",
    "-nan",
    "true",
    "false",
    "\"\"",
    "\"a\\n\\\"\\u00e9\\U0001F600 #\"",
    "'c:\\x\"'",
    "\"\"\"\na\r\nb\"\"\"",
    "\"\"\"a\"\"b\"\"\"\"\"",
    "\"\"\"a\\  \n\n  b\\\\\"\"\"",
    "'''\nit''s\n#'''''",
    "1979-05-27",
    "1979-05-27T07:32:00Z",
    "1979-05-27 07:32:00.999-07:00",
    "07:32:00",
    "2024-02-29t00:00:00",
    "[]",
    "[1, 'a', # c\n  [true],\n]",
    "[\n  { a = 1 }, {b=[]} ]",
    "{}",
    "{ a = 1, b.c = \"x\" }",
    "{x={y.z={}}, 'q q'=[\n1\n]}",
    "\"\u{fc}\u{2028}\"",
];

const KEYS: [&str; 9] = ["a", "b", "c", "hooks", "a.b", "a . c", "\"a b\"", "'x.y'", "b.\"\".1"];

/// A document of random lines, most of them good; names are few, so that they
/// collide.
fn document(rng: &mut Rng) -> String {
    let eol = ["\n", "\n", "\r\n"][rng.usize(0..3)];
    let mut text = String::new();
    for _ in 0..rng.usize(0..9) {
        let key = KEYS[rng.usize(0..KEYS.len())];
        let value = VALUES[rng.usize(0..VALUES.len())];
        let note = ["", "", "", " # note", "\t", "  #"][rng.usize(0..6)];
        let indent = ["", "", "  ", "\t"][rng.usize(0..4)];
        let line = match rng.u8(0..10) {
            0 => String::new(),
            1 => "# about it".into(),
            2 | 3 => format!("[{key}]"),
            4 => format!("[[{key}]]"),
            5 => format!("[ {key} . d ]"),
            6 => format!("{key}={value}"),
            _ => format!("{key} = {value}"),
        };
        text.extend([indent, &line, note, eol]);
    }
    if rng.bool() {
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    text
}

fn mutated(rng: &mut Rng, text: &str) -> String {
    const PIECES: [&str; 30] = [
        "\"", "'", "\"\"\"", "'''", "[", "]", "[[", "{", "}", "=", ".", ",", "#", "\n", "\r",
        "\r\n", " ", "_", "-", "+", ":", "0", "1", "e", "T", "Z", "\\", "\u{0}", "\u{7f}",
        "\u{e9}",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(0..=chars.len());
        match rng.u8(0..4) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => {
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

/// What Python's tomllib says of each text: `None` for no TOML. Values of other
/// types are null, and so are whole numbers beyond 64 bits.
fn tomllib(texts: &[String]) -> Option<Vec<Option<Sense>>> {
    const SCRIPT: &str = r"
import json, sys, tomllib
def plain(v):
    if isinstance(v, dict): return {k: plain(x) for k, x in v.items()}
    if isinstance(v, list): return [plain(x) for x in v]
    if isinstance(v, (bool, str)): return v
    return v if isinstance(v, int) and -2**63 <= v < 2**63 else None
def load(text):
    try: return [plain(tomllib.loads(text))]
    except tomllib.TOMLDecodeError: return []
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
    Some(all.into_iter().map(|mut one| one.pop().map(Sense::json)).collect())
}

#[test]
fn documents_are_those_that_tomllib_reads() {
    let mut rng = Rng::with_seed(1);
    let mut texts: Vec<String> = GOOD.iter().chain(BAD).map(|t| t.to_string()).collect();
    for _ in 0..1500 {
        let text = document(&mut rng);
        texts.push(mutated(&mut rng, &text));
        texts.push(text);
    }
    let Some(theirs) = tomllib(&texts) else {
        eprintln!("skipped documents_are_those_that_tomllib_reads: no python3 with tomllib");
        return;
    };
    let mut accepted = 0;
    for (text, theirs) in texts.iter().zip(theirs) {
        let ours = parse(text);
        assert_eq!(ours.is_ok(), theirs.is_some(), "{ours:?}\n{text}\n{text:?}");
        if let (Ok(ours), Some(theirs)) = (ours, theirs) {
            accepted += 1;
            assert_eq!(Sense::of(&ours), theirs, "{text}");
        }
    }
    assert!(accepted > 500, "{accepted}");
}

const GOOD: &[&str] = &[
    "",
    "# only a comment",
    "a = 1 # x\r\n\r\n[b]\r\n",
    "[a.b.c]\n[a]\nx = 1\n[a.d]",
    "[a.b.c]\n[a]\nb.x = 1",
    "[fruit]\napple.color = 1\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true",
    "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 1\n[[a.e]]\n[[a.e]]",
    "a.b = 1\nc = 2\na.d = 3",
    "\"\" = 1\n'a.b'.\"c\\u0064\" = 2\n1.2 = 3",
    "a = [1, [2,\n], # x\n]\nb = {c = {d = 1}, e.f = [{}]}",
    "a = \"\"\"\"quoted\"\"\"\"",
    "a = 1979-05-27 07:32:00\nb = 1979-05-27 # c",
    "a = '''\n\n'''\nb = \"\"\"\\\n   \\\n   x\"\"\"",
    "a = 00:00:00.123456789",
];

const BAD: &[&str] = &[
    "a",
    "a =",
    "= 1",
    "a = 1 b = 2",
    "a = 1\na = 2",
    "a.b = 1\na = 2",
    "a = 1\na.b = 2",
    "a = {}\na.b = 2",
    "a = {b = 1}\n[a]",
    "a = {b = 1}\n[a.c]",
    "a = []\n[[a]]",
    "[a]\n[a]",
    "[a]\n[[a]]",
    "[[a]]\n[a]",
    "[a.b]\n[a]\nb.c = 1",
    "[a]\nb.c = 1\n[a.b]",
    "[a]\nb.c = 1\n[a]\n",
    "[a.b]\n[[a]]",
    "[]",
    "[a",
    "[a]]",
    "[[a]",
    "[ [a] ]",
    "[a] b = 1",
    "a = [1,,]",
    "a = [,]",
    "a = [1 2]",
    "a = {b = 1,}",
    "a = {b = 1\n}",
    "a = {b = 1, b = 2}",
    "a = {b = {c = 1}, b.d = 2}",
    "a = 01",
    "a = 1__0",
    "a = _1",
    "a = 1.",
    "a = .5",
    "a = 1e",
    "a = +0x1",
    "a = 0xg",
    "a = True",
    "a = nan1",
    "a = 1979-02-29",
    "a = 1979-05-27T",
    "a = 1979-05-27T25:00:00",
    "a = 1979-05-27T00:00:00+1",
    "a = 07:32",
    "a = \"x",
    "a = \"x\ny\"",
    "a = 'x\ny'",
    "a = \"\\x41\"",
    "a = \"\\ud800\"",
    "a = \"\"\"x\"\"\"\"\"\"",
    "a = '''x",
    "a = \"\u{1}\"",
    "# \u{7f}",
    "a = 1\rb = 2",
    "\"\"\"a\"\"\" = 1",
    "a..b = 1",
    "a. = 1",
    "a b = 1",
    "\u{e9} = 1",
];

#[test]
fn good_documents_are_read_and_bad_ones_are_not() {
    for text in GOOD {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        assert!(parse(&format!("\u{feff}{text}")).is_ok(), "{text}");
    }
    for text in BAD {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse("a = 1\n\u{feff}b = 2").is_err());
    let deep = |n: usize| format!("a = {}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(&deep(128)).is_ok());
    assert_eq!(parse(&deep(129)).unwrap_err().to_string(), "line 1, column 133: nested too deep");
    assert!(parse(&format!("[{}a]", "a.".repeat(1_000_000))).is_err());
    assert!(parse(&"a = {b".repeat(1_000_000)).is_err());
}

#[test]
fn values_and_their_places_are_found() {
    let text = "\u{feff}top = 1\r\nf.hooks = true # on\r\n\r\n# of a\r\n[a] # x\r\n  in = {x.y = [1], z = 'q'}\r\n\r\n\
                # of h\r\n[[h]]\r\nk = \"\"\"\r\nx\"\"\"\r\n[h.sub]\r\nk = 2\r\n[[h]]\r\n\r\n# end";
    let doc = parse(text).unwrap();
    assert_eq!(doc.get(&["top"]), Some(&Item::Int(1)));
    assert_eq!(doc.get(&["f", "hooks"]), Some(&Item::Bool(true)));
    assert_eq!(doc.get(&["a", "in", "x", "y"]), Some(&Item::List(vec![Item::Int(1)])));
    assert_eq!(doc.get(&["a", "in", "z"]), Some(&Item::Text("q".into())));
    for path in
        [&["f"][..], &["a"], &["a", "in", "x"], &["h", "k"], &["h", "sub", "k"], &[], &["no"]]
    {
        assert_eq!(doc.get(path), None, "{path:?}");
    }
    let spans: Vec<_> = doc.tables.iter().map(|t| &text[t.span.clone()]).collect();
    assert_eq!(
        spans,
        [
            "top = 1\r\nf.hooks = true # on\r\n",
            "[a] # x\r\n  in = {x.y = [1], z = 'q'}\r\n",
            "[[h]]\r\nk = \"\"\"\r\nx\"\"\"\r\n",
            "[h.sub]\r\nk = 2\r\n",
            "[[h]]\r\n",
        ]
    );
    assert_eq!(doc.arrays(&["h"]).count(), 2);
    let entry = &doc.arrays(&["h"]).next().unwrap().entries[0];
    assert_eq!(entry.value, Item::Text("x".into()));
    assert_eq!(&text[entry.value_span.clone()], "\"\"\"\r\nx\"\"\"");
}

fn value(rng: &mut Rng) -> Value {
    match rng.u8(0..6) {
        0 => Value::Int(rng.i64(..)),
        1 => Value::Bool(rng.bool()),
        2 => {
            Value::List(vec!["x".into(), Value::List(vec![]), [("k q", Value::Bool(true))].into()])
        }
        3 => Value::Map(vec![]),
        4 => [("command", "run 'it' \"x\"\n\\".into()), ("timeout", Value::Int(5))].into(),
        _ => "\u{fc} \u{7f}\u{1}\t'".into(),
    }
}

fn path(rng: &mut Rng) -> Vec<&'static str> {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "hooks", "a b", "x.y", "new"];
    (0..rng.usize(0..4)).map(|_| NAMES[rng.usize(0..NAMES.len())]).collect()
}

#[test]
fn a_table_that_was_added_and_is_removed_leaves_every_byte() {
    let mut rng = Rng::with_seed(2);
    let mut added = 0;
    for n in 0..3000 {
        let mut text = document(&mut rng);
        match n % 7 {
            0 => text.insert(0, '\u{feff}'),
            1 | 2 => text = mutated(&mut rng, &text),
            _ => {}
        }
        let (mut path, array) = (path(&mut rng), rng.bool());
        path.push("x y");
        let entries = [("event", value(&mut rng)), ("a b", value(&mut rng))];
        let entries = &entries[..rng.usize(0..3)];
        let Ok(doc) = parse(&text) else {
            assert!(append_table(&text, &path, array, entries).is_err());
            continue;
        };
        let Ok(new) = append_table(&text, &path, array, entries) else { continue };
        added += 1;
        let new_doc = parse(&new).unwrap();
        let table = new_doc.tables.last().unwrap();
        assert_eq!(remove(&new, table.span.clone()), text, "{new}");
        assert!(new.starts_with(&text));
        let mut expected = doc.clone();
        expected.tables.push(table.clone());
        assert_eq!(Sense::of(&new_doc), Sense::of(&expected), "{new}");
        assert_eq!(
            (&table.path[..], table.array),
            (&path.iter().map(|p| p.to_string()).collect::<Vec<_>>()[..], array)
        );
        for ((key, value), entry) in entries.iter().zip(&table.entries) {
            assert_eq!((&entry.key[..], &entry.value), (&[key.to_string()][..], &item(value)));
        }
    }
    assert!(added > 800, "{added}");
}

#[test]
fn a_key_that_was_set_and_is_removed_leaves_every_byte() {
    let mut rng = Rng::with_seed(3);
    let (mut added, mut replaced, mut inline) = (0, 0, 0);
    for n in 0..8000 {
        let mut text = document(&mut rng);
        if n % 4 == 0 {
            text = mutated(&mut rng, &text);
        }
        let (table, value) = (path(&mut rng), value(&mut rng));
        let key = ["a", "b", "c", "new key"][rng.usize(0..4)];
        let Ok(doc) = parse(&text) else {
            assert!(set(&text, &table, key, &value).is_err());
            continue;
        };
        let Ok(new) = set(&text, &table, key, &value) else { continue };
        let new_doc = parse(&new).unwrap();
        let path = [&table[..], &[key]].concat();
        assert_eq!(new_doc.get(&path), Some(&item(&value)), "{path:?}\n{text}\n---\n{new}");
        let (entry, rest) = new_doc.entry(&path).unwrap();
        if doc.get(&path).is_some() {
            replaced += 1;
            let back = entry.value_span.start;
            assert_eq!(new[..back], text[..back]);
            assert_eq!(new_doc.tables.len(), doc.tables.len());
        } else if rest.is_empty() {
            added += 1;
            assert_eq!(remove(&new, entry.span.clone()), text, "{path:?}\n{text}\n---\n{new}");
        } else {
            inline += 1;
        }
    }
    assert!(added > 800 && replaced > 30 && inline > 4, "{added} {replaced} {inline}");
}

#[test]
fn a_table_comes_after_a_blank_line() {
    let entries = [("event", "Stop".into()), ("timeout", Value::Int(5))];
    let append = |text: &str| append_table(text, &["hooks"], true, &entries).unwrap();
    let table = "[[hooks]]\nevent = \"Stop\"\ntimeout = 5\n";
    assert_eq!(append(""), table);
    assert_eq!(append("a = 1\n"), format!("a = 1\n\n{table}"));
    assert_eq!(append("a = 1"), format!("a = 1\n\n{}", table.trim_end()));
    assert_eq!(append("a = 1\r\n"), format!("a = 1\n\n{table}").replace('\n', "\r\n"));
    assert_eq!(append(table), format!("{table}\n{table}"));
    let twice = append_table("[a]\n", &["a"], false, &[]).unwrap_err();
    assert_eq!(twice.to_string(), "line 2, column 1: a table stands twice");
    assert!(append_table("hooks = 1", &["hooks"], true, &entries).is_err());
    let quoted =
        append_table("", &["state", "/x/y.json:stop:0:0"], false, &[("", "\u{7f}".into())]);
    assert_eq!(quoted.unwrap(), "[state.\"/x/y.json:stop:0:0\"]\n\"\" = \"\\u007f\"\n");
}

#[test]
fn a_key_is_set_where_its_table_is() {
    let sets = |text: &str, table: &[&str], expected: &str| {
        let new = set(text, table, "k", &Value::Bool(true));
        assert_eq!(new.unwrap(), expected);
    };
    sets("[f]\nk = 1 # x\n", &["f"], "[f]\nk = true # x\n");
    sets("[f]\n  a = 1\n\n# g\n[g]\n", &["f"], "[f]\n  a = 1\n  k = true\n\n# g\n[g]\n");
    sets("[f]", &["f"], "[f]\nk = true");
    sets("f.a = 1\nb = 2\n", &["f"], "f.a = 1\nf.k = true\nb = 2\n");
    sets("f = { a = 1 }\n", &["f"], "f = { a = 1, k = true }\n");
    sets("f = {}\n", &["f"], "f = { k = true }\n");
    sets("f = {k=1, a=2}\n", &["f"], "f = {k=true, a=2}\n");
    sets("f = {a={}}\n", &["f", "a", "b c"], "f = {a={ \"b c\".k = true }}\n");
    sets("a = 1\n[f]\n", &[], "a = 1\nk = true\n[f]\n");
    sets("[f]\n", &[], "k = true\n\n[f]\n");
    sets("#:schema x\n\n[f]\n", &[], "#:schema x\n\nk = true\n\n[f]\n");
    sets("# of f\n[f]\n", &[], "k = true\n\n# of f\n[f]\n");
    sets("", &[], "k = true\n");
    let no = |text: &str, table: &[&str]| set(text, table, "k", &Value::Bool(true)).unwrap_err();
    assert_eq!(no("[f.g]\n", &["f"]), Edit::NoSuchPath);
    assert_eq!(no("[[f]]\n", &["f"]), Edit::NoSuchPath);
    assert_eq!(no("f = 1\n", &["f"]), Edit::NoSuchPath);
    assert_eq!(no("[k.x]\n", &[]).to_string(), "line 1, column 1: a table stands twice");
    assert!(matches!(no("f = {k.a = 1}\n", &["f"]), Edit::Fault(_)));
}

#[test]
fn what_is_removed_takes_one_blank_line_with_it() {
    let removes = |text: &str, table: usize, expected: &str| {
        let doc = parse(text).unwrap();
        assert_eq!(remove(text, doc.tables[table].span.clone()), expected, "{text}");
    };
    removes("a = 1\n\n[x]\nk = 1\n\n[y]\n", 1, "a = 1\n\n[y]\n");
    removes("a = 1\n\n[x]\nk = 1\n# of y\n[y]\n", 1, "a = 1\n\n# of y\n[y]\n");
    removes("a = 1\n[x]\n\n[y]\n", 1, "a = 1\n\n[y]\n");
    removes("[x]\nk = 1\n\n[y]\n", 1, "[y]\n");
    removes("[y]\n\n[x]", 2, "[y]");
    removes("[x]\n", 1, "");
    assert_eq!(remove("é", 1..2), "é");
}

#[test]
fn no_text_makes_it_panic_and_every_edit_can_be_read_again() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..2000 {
        let text = document(&mut rng);
        let text = mutated(&mut rng, &text);
        let (path, value) = (path(&mut rng), value(&mut rng));
        let results = [
            append_table(&text, &path, rng.bool(), &[("k", value.clone())]).map_err(Edit::Fault),
            set(&text, &path, "a", &value),
        ];
        for new in results.into_iter().flatten() {
            assert!(parse(&new).is_ok(), "{new}");
        }
        if let Ok(doc) = parse(&text) {
            let entries = doc.tables.iter().flat_map(|t| &t.entries).map(|e| &e.span);
            for span in doc.tables.iter().map(|t| &t.span).chain(entries) {
                remove(&text, span.clone());
            }
        }
    }
}

#[test]
fn large_documents_take_linear_time() {
    let start = std::time::Instant::now();
    let entries = [("event", "Stop".into())];
    let table = "[[hooks]]\nevent = \"Stop\"\nx = [1, 2, {a = '3'}] # n\n\n";
    let keys: String = (0..5000).map(|n| format!("k{n} = {n}\n")).collect();
    for text in [table.repeat(1000), keys, format!("a = [{}]\n", "1, ".repeat(20_000))] {
        let new = append_table(&text, &["hooks"], true, &entries).unwrap();
        let span = parse(&new).unwrap().tables.pop().unwrap().span;
        assert_eq!(remove(&new, span), text);
    }
    assert!(start.elapsed().as_secs() < 20);
}
