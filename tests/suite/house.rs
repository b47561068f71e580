//! The repository checks itself: the arrows between layers, the never-rules,
//! the names, the versions, files that nobody declares.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file with its path below `src`.
fn sources() -> Vec<(String, String)> {
    fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("src"), &mut files);
    files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root().join("src")).unwrap().to_str().unwrap().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The text of a file without its comments and its unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Which layers a layer may name.
const ARROWS: &[(&str, &[&str])] = &[
    ("record", &["record"]),
    ("sys", &["sys"]),
    ("probe", &["probe", "record", "sys"]),
    ("harness", &["harness", "record"]),
    ("terminal", &["terminal", "record", "sys"]),
    ("store", &["store", "record", "sys"]),
    ("install", &["install", "harness", "record", "sys"]),
    ("focus", &["focus", "terminal", "probe", "record", "sys"]),
    ("cli", &["cli", "record"]),
    (
        "applet",
        &[
            "applet", "cli", "focus", "store", "terminal", "harness", "install", "probe", "record",
            "sys",
        ],
    ),
];

fn layer_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The layers that some code names through `crate::`.
fn named_layers(code: &str) -> Vec<String> {
    code.match_indices("crate::")
        .map(|(at, word)| {
            let rest = &code[at + word.len()..];
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        })
        .filter(|name: &String| !name.is_empty())
        .collect()
}

/// What is wrong with a file of a layer by the arrows.
fn wrong_arrows(file: &str, text: &str) -> Vec<String> {
    let layer = layer_of(file);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == layer) else {
        return vec![format!("{file} is of no layer")];
    };
    named_layers(&code(text))
        .into_iter()
        .filter(|named| !allowed.contains(&named.as_str()))
        .map(|named| format!("{file} names {named}"))
        .collect()
}

#[test]
fn layers_only_look_down() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(file, _)| file.contains('/'))
        .flat_map(|(file, text)| wrong_arrows(file, text))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_arrow_upwards_would_be_noticed() {
    assert_eq!(wrong_arrows("record/x.rs", "use crate::cli::Shown;"), ["record/x.rs names cli"]);
    assert_eq!(
        wrong_arrows("store/x.rs", "fn f() { crate::probe::pids(|_| {}) }"),
        ["store/x.rs names probe"]
    );
    assert!(wrong_arrows("store/x.rs", "// crate::probe\nuse crate::sys::fs;").is_empty());
}

#[test]
fn words_stand_only_where_they_may() {
    // A word, and the starts of the paths where it may stand.
    let rules: &[(&str, &[&str])] = &[
        (
            "unsafe ",
            &[
                "main.rs",
                "frames.rs",
                "sys/guard/",
                "sys/sysctl.rs",
                "sys/watch/kqueue.rs",
                "record/sha_ni.rs",
            ],
        ),
        ("rustix::", &["sys/"]),
        ("process::exit", &[]),
        ("std::env::", &[]),
        ("std::process", &["sys/spawn.rs"]),
        ("println!", &[]),
        ("eprintln!", &[]),
        ("print!", &[]),
        ("argh::", &["applet/agents/", "applet/bridge_import.rs", "cli/words.rs"]),
        ("serde_json::", &["applet/", "focus/"]),
        (".unwrap()", &[]),
        (".expect(", &[]),
        ("todo!", &[]),
        ("unimplemented!", &[]),
        ("SystemTime", &[]),
        ("Instant::", &[]),
        ("thread::", &[]),
        ("exit_now", &["sys/guard/"]),
    ];
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        if file.ends_with("/tests.rs") {
            continue;
        }
        for (word, places) in rules {
            if code(&text).contains(word) && !places.iter().any(|p| file.starts_with(p)) {
                wrong.push(format!("{file} says {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_pure_layers_touch_nothing_and_the_record_never_allocates_while_checking() {
    for (file, text) in sources() {
        let code = code(&text);
        if matches!(layer_of(&file), "record" | "harness") {
            for word in ["std::fs", "std::io", "sys::", "File::open", "std::time"] {
                assert!(!code.contains(word), "{file} says {word}");
            }
        }
        if [
            "record/scan.rs",
            "record/check.rs",
            "record/sha256.rs",
            "record/sha_ni.rs",
            "record/id.rs",
            "harness/payload.rs",
            "harness/want.rs",
            "harness/rules.rs",
            "store/lock.rs",
            "store/replace.rs",
            "store/write.rs",
            "applet/draft.rs",
            "applet/writer.rs",
            "applet/hook.rs",
            "applet/branch.rs",
        ]
        .contains(&file.as_str())
        {
            for word in [
                "Vec<",
                "Vec::",
                "String",
                "format!",
                "to_string()",
                "to_owned()",
                "collect()",
                "Box<",
            ] {
                // `Box::default` of the scratch is the commands', not the hook's.
                assert!(!code.contains(word), "{file} says {word}");
            }
        }
    }
}

#[test]
fn no_applet_calls_another() {
    for (file, text) in sources() {
        let Some(name) = file.strip_prefix("applet/agents/") else { continue };
        // A command is a file or a directory.
        let name = name.split('/').next().unwrap().trim_end_matches(".rs");
        if name == "mod" {
            continue;
        }
        for other in [
            "status",
            "show",
            "watch",
            "ack",
            "snooze",
            "lookup",
            "tree",
            "wait",
            "notify",
            "record",
            "forget",
            "cleanup",
            "run",
            "install",
            "uninstall",
            "doctor",
            "focus",
            "monitor",
            "export",
            "bridge",
            "mcp",
            "paths",
            "schema",
        ] {
            if other != name {
                assert!(!code(&text).contains(&format!("{other}::run")), "{file} calls {other}");
            }
        }
    }
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    for (file, text) in sources() {
        if !file.ends_with("/tests.rs") {
            assert!(text.starts_with("//! "), "{file}");
        }
    }
}

#[test]
fn every_test_file_is_declared() {
    let main = fs::read_to_string(root().join("tests/suite/main.rs")).unwrap();
    for entry in fs::read_dir(root().join("tests/suite")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || main.contains(&format!("mod {module};")),
            "{name} is not declared"
        );
    }
}

#[test]
fn the_top_level_is_closed() {
    let known = [
        "Cargo.toml",
        "Cargo.lock",
        "Makefile",
        "README.md",
        "LICENSE",
        ".gitignore",
        ".ci",
        ".git",
        "src",
        "tests",
        "man",
        "packaging", // and what is built, which git does not see
        "target",
        "build",
        "dist",
    ];
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn the_product_has_only_the_dependencies_that_were_chosen() {
    for package in ["Cargo.toml", "src/record/Cargo.toml"] {
        let toml = fs::read_to_string(root().join(package)).unwrap();
        let section = toml.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
        for line in section.lines().filter(|l| l.contains('=') && !l.contains("path = \"src/")) {
            let name = line.split([' ', '=', '.']).next().unwrap();
            let card = ["argh", "serde", "serde_json", "rustix", "tempfile", "memchr", "fastrand"];
            assert!(card.contains(&name), "{name}");
        }
    }
}

/// The versions that the script of the peers names, by their programs.
fn peers(script: &str) -> Vec<(String, String)> {
    script
        .lines()
        .filter_map(|line| line.split_once("_version="))
        .filter(|(name, _)| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .map(|(name, version)| {
            let name = if name == "reference" { "claude-fleet-monitor" } else { name };
            (name.replace('_', "-"), version.to_string())
        })
        .collect()
}

/// What a text says that is not of these versions.
fn other_versions(text: &str, peers: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, version) in peers {
        let said: Vec<&str> = text
            .match_indices(&format!("{name} "))
            .map(|(at, found)| {
                text[at + found.len()..].split([' ', '|', ',', '\n']).next().unwrap()
            })
            .filter(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        if said.is_empty() {
            wrong.push(format!("no version of {name}"));
        }
        wrong.extend(said.iter().filter(|v| *v != version).map(|v| format!("{name} {v}")));
    }
    wrong
}

#[test]
fn the_benchmarks_are_of_the_versions_that_the_script_installs() {
    let script = fs::read_to_string(root().join("tests/bench/peers.sh")).unwrap();
    let text = fs::read_to_string(root().join("packaging/BENCHMARKS.md")).unwrap();
    let peers = peers(&script);
    assert_eq!(peers.len(), 4, "{peers:?}");
    assert!(other_versions(&text, &peers).is_empty(), "{:?}", other_versions(&text, &peers));
    let old = text.replace(&peers[1].1, "0.0.1");
    assert_eq!(other_versions(&old, &peers)[0], format!("{} 0.0.1", peers[1].0));
    // The interop check and the measurement are of one reference.
    let interop = fs::read_to_string(root().join("tests/interop/run.sh")).unwrap();
    assert!(interop.contains(&format!("\nversion={}\n", peers[0].1)));
}

#[test]
fn the_scripts_of_measurement_are_clean() {
    if !crate::world::has_tool("shellcheck", "the_scripts_of_measurement_are_clean") {
        return;
    }
    let mut check = std::process::Command::new("shellcheck");
    check.arg("-x").current_dir(root().join("tests/bench")).args([
        "run.sh",
        "peers.sh",
        "common.sh",
    ]);
    let ran = crate::world::finish(check, b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
}
