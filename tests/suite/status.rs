//! The commands that read: every form, every filter, hostile text, every
//! output against its schema.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::{World, claude, finish, has_tool};

/// Checks a value against the part of JSON Schema that our schemas use; says
/// where it does not hold.
pub fn violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let known = [
        "$schema",
        "title",
        "description",
        "type",
        "required",
        "properties",
        "items",
        "enum",
        "const",
        "minimum",
        "pattern",
        "additionalProperties",
    ];
    for key in schema.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "the validator does not know {key}");
    }
    let nullable = schema["type"].as_array().map(|types| {
        assert_eq!(types[1], "null", "the validator knows types and null");
        &types[0]
    });
    if nullable.is_some() && value.is_null() {
        return wrong;
    }
    let fits = match nullable.unwrap_or(&schema["type"]).as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some(other) => panic!("the validator does not know the type {other}"),
    };
    if !fits {
        wrong.push(format!("{at} is {value}"));
    }
    if schema.get("const").is_some_and(|c| c != value) {
        wrong.push(format!("{at} is not {}", schema["const"]));
    }
    if let Some(values) = schema["enum"].as_array() {
        if !values.contains(value) {
            wrong.push(format!("{at} is {value}, none of {values:?}"));
        }
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        assert_eq!(pattern, "^[0-9a-f]{12}$", "the validator knows one pattern");
        let text = value.as_str().unwrap_or("");
        if text.len() != 12 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            wrong.push(format!("{at} is {value}"));
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            wrong.push(format!("{at} lacks {name}"));
        }
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            wrong.extend(violations(part, value, &format!("{at}.{name}")));
        }
    }
    if let (Some(rest), Some(object)) = (schema.get("additionalProperties"), value.as_object()) {
        for (name, value) in object {
            wrong.extend(violations(rest, value, &format!("{at}.{name}")));
        }
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (i, value) in list.iter().enumerate() {
            wrong.extend(violations(items, value, &format!("{at}[{i}]")));
        }
    }
    wrong
}

/// Asserts that a command's output is as its schema says.
#[track_caller]
pub fn assert_schema(world: &World, command: &str, value: &Value) {
    let ran = world.agents(&["schema", command]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let wrong = violations(&ran.json(), value, command);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_validator_can_say_no() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 0}}});
    assert!(violations(&schema, &json!({"a": 1}), "x").is_empty());
    assert_eq!(violations(&schema, &json!({"a": "1"}), "x").len(), 1);
    assert_eq!(violations(&schema, &json!({}), "x").len(), 1);
    assert_eq!(violations(&json!({"type": "string", "enum": ["a"]}), &json!("b"), "x").len(), 1);
    assert!(violations(&json!({"type": ["string", "null"]}), &json!(null), "x").is_empty());
    assert_eq!(violations(&json!({"type": ["string", "null"]}), &json!(1), "x").len(), 1);
}

/// Puts a record into the store as it is; returns its file's name.
pub fn put(world: &World, record: &Value, legacy: bool) -> String {
    fs::create_dir_all(world.sessions()).unwrap();
    for dir in [world.state(), world.sessions()] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let name = if legacy {
        format!("{}.json", record["session_id"].as_str().unwrap())
    } else {
        let digest =
            record["canonical_id"].as_str().unwrap().rsplit(':').next().unwrap().to_string();
        format!("fleet-v1-{digest}.json")
    };
    fs::write(world.sessions().join(&name), record.to_string()).unwrap();
    name
}

/// A schema 1 record with these fields changed.
pub fn record(session: &str, changes: Value) -> Value {
    use tongs::record::id::{Part, canonical};
    let mut record = json!({
        "schema_version": 1, "record_kind": "session", "session_id": session, "instance_id": "1:2",
        "harness_id": "claude", "agent": "claude", "repo": "r", "cwd": "/r", "pid": "1", "process_start": "2",
        "process_identity": "identified", "status": "running", "detail": "d", "tool": "", "ts": now(),
        "started": 1, "source": "hook", "last_event": "claude.x", "terminal": "", "terminal_env": {},
        "arrival_sequence": 1,
    });
    for (key, value) in changes.as_object().unwrap() {
        record[key] = value.clone();
    }
    let text = |key: &str| record[key].as_str().unwrap().to_string();
    let (harness, session, instance) =
        (text("harness_id"), text("session_id"), text("instance_id"));
    let digest = canonical(Part::Plain(&harness), Part::Plain(&session), Part::Plain(&instance));
    record["canonical_id"] =
        format!("fleet:v1:{harness}:{}", std::str::from_utf8(&digest).unwrap()).into();
    record
}

pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn ids(world: &World, args: &[&str]) -> Vec<String> {
    let ran = world.agents(&[&["status", "-o", "session_id"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out.lines().map(str::to_string).collect()
}

#[test]
fn a_missing_store_is_no_error_and_is_not_made() {
    let world = World::new();
    let ran = world.agents(&["status"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "No sessions.\n", ""));
    let ran = world.agents(&["status", "--json"]);
    let value = ran.json();
    assert_eq!(
        (ran.code, &value["store"], &value["sessions"]),
        (Some(0), &json!("missing"), &json!([]))
    );
    assert_schema(&world, "status", &value);
    assert_eq!(world.agents(&["status", "--exit-code", "-q"]).code, Some(1));
    assert_eq!(world.agents(&["show", "x"]).code, Some(1));
    assert!(!world.state().exists());
}

#[test]
fn every_json_output_is_as_its_schema_says() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent
        .hook_with("env TMUX=/s,1,2 TMUX_PANE=%1", &["claude", "SessionStart"], &claude("a", ""))
        .silent();
    agent
        .hook(
            &["claude", "PermissionRequest"],
            &claude("a", r#","tool_name":"Bash","prompt_id":"p""#),
        )
        .silent();
    agent.hook(&["claude", "Stop"], &claude("b", r#","background_tasks":[1,2]"#)).silent();
    put(&world, &json!({"session_id": "old", "agent": "gone", "ts": 5, "status": "weird"}), true);
    put(
        &world,
        &record(
            "odd",
            json!({"pid": 7, "ts": null, "turn": "x", "title": 5, "launch_id": 1, "short_id": "forged"}),
        ),
        false,
    );
    let value = world.agents(&["status", "--json", "--all"]).json();
    assert_eq!(value["summary"]["total"], 4);
    assert_schema(&world, "status", &value);
    for session in value["sessions"].as_array().unwrap() {
        assert_schema(&world, "show", session);
    }
    let odd =
        value["sessions"].as_array().unwrap().iter().find(|s| s["session_id"] == "odd").unwrap();
    assert_eq!(
        (&odd["pid"], &odd["ts"], odd.get("turn"), odd.get("title"), &odd["launch_id"]),
        (&json!("7"), &json!(0), None, None, &json!(""))
    );
    assert_ne!(odd["short_id"], "forged");
    assert_eq!(
        value["sessions"].as_array().unwrap().iter().find(|s| s["session_id"] == "b").unwrap()["background"],
        2
    );
    assert_schema(&world, "show", &world.agents(&["show", "a", "--json"]).json());
    assert_schema(&world, "paths", &world.agents(&["paths", "--json"]).json());
    assert_schema(
        &world,
        "notify",
        &world
            .agents(&[
                "notify",
                "--harness",
                "other",
                "--session",
                "n",
                "--status",
                "idle",
                "--json",
            ])
            .json(),
    );
    let pid = agent.pid().to_string();
    let record =
        ["record", "--agent", "claude", "--pid", &pid, "--cwd", "/", "--method", "process"];
    assert_schema(&world, "record", &world.agents(&[&record[..], &["--json"]].concat()).json());
    assert_schema(&world, "forget", &world.agents(&["forget", "--pid", "1", "--json"]).json());
    assert_schema(&world, "cleanup", &world.agents(&["cleanup", "--json"]).json());
    assert_schema(&world, "cleanup", &world.agents(&["cleanup", "--json", "--dry-run"]).json());
    assert_schema(&world, "hook", &agent.strict(&["claude", "Stop"], &claude("b", "")));
    assert_schema(&world, "hook", &agent.strict(&["x", "Stop"], ""));
    let names = world.agents(&["schema"]).out;
    assert_eq!(
        names,
        "ack\nbridge\nbridge-import\ncleanup\ndoctor\nfocus\nforget\nhook\ninstall\ninstall-list\nlookup\nnotify\npaths\nrecord\n\
         session-state\nshow\nsnooze\nstatus\ntree\nuninstall\nwait\nwatch\n"
    );
    assert_eq!(world.agents(&["schema", "nothing"]).code, Some(1));
}

#[test]
fn lists_are_the_same_sessions_in_every_form() {
    let world = World::new();
    for (i, status) in ["waiting", "idle", "running", "error"].iter().enumerate() {
        put(
            &world,
            &record(&format!("s{i}"), json!({"status": status, "repo": format!("r{}", 9 - i)})),
            false,
        );
    }
    let json: Vec<Value> = world.sessions_json();
    let lines: Vec<Value> = world
        .agents(&["status", "--jsonl"])
        .out
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(json, lines);
    let mut sorted = ids(&world, &[]);
    sorted.sort();
    assert_eq!(sorted, ["s0", "s1", "s2", "s3"]);
    assert_eq!(ids(&world, &["--sort", "status"]), ["s0", "s3", "s2", "s1"]);
    assert_eq!(ids(&world, &["--sort", "repo"]), ["s3", "s2", "s1", "s0"]);
    let value = world.agents(&["status", "--json", "--sort", "repo"]).json();
    let order: Vec<&str> = value["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["s3", "s2", "s1", "s0"]);
    for (status, count) in [
        ("waiting", 1),
        ("idle", 1),
        ("running", 1),
        ("error", 1),
        ("started", 0),
        ("total", 4),
        ("needs_attention", 1),
    ] {
        assert_eq!(value["summary"][status], count, "{status}");
    }
    let table = world.agents(&["status"]).out;
    assert!(table.lines().nth(1).unwrap().starts_with("waiting"), "{table}");
    assert_eq!(table.lines().count(), 5);
}

#[test]
fn filters_take_what_they_say() {
    let world = World::new();
    put(&world, &record("wait", json!({"status": "waiting"})), false);
    put(&world, &record("idle-old", json!({"status": "idle", "ts": now() - 300})), false);
    put(&world, &record("idle-new", json!({"status": "idle"})), false);
    put(
        &world,
        &record("codex", json!({"harness_id": "codex", "agent": "codex", "status": "error"})),
        false,
    );
    put(
        &world,
        &record(
            "proc-9",
            json!({"record_kind": "process", "source": "process", "status": "discovered", "pid": "9"}),
        ),
        false,
    );
    put(&world, &record("odd id;", json!({})), false);
    let sorted = |args: &[&str]| {
        let mut ids = ids(&world, args);
        ids.sort();
        ids
    };
    assert_eq!(sorted(&["--attention"]), ["idle-old", "wait"]);
    assert_eq!(sorted(&["--harness", "codex"]), ["codex"]);
    assert_eq!(
        sorted(&[
            "--harness",
            "codex",
            "--harness=claude",
            "--status",
            "error",
            "--status",
            "waiting"
        ]),
        ["codex", "wait"]
    );
    assert_eq!(sorted(&["--resumable"]), ["codex", "idle-new", "idle-old", "wait"]);
    assert_eq!(sorted(&["--harness", "nobody"]), Vec::<String>::new());
    assert_eq!(world.agents(&["status", "-q", "--exit-code", "--harness", "nobody"]).code, Some(1));
    assert_eq!(world.agents(&["status", "-q", "--exit-code", "--harness", "codex"]).code, Some(0));
}

#[test]
fn better_records_hide_others_and_all_shows_them() {
    let world = World::new();
    put(
        &world,
        &record("a", json!({"pid": "11", "process_start": "5", "instance_id": "11:5"})),
        false,
    );
    put(
        &world,
        &record(
            "a",
            json!({"pid": "", "process_start": "", "instance_id": "unresolved", "process_identity": "unresolved"}),
        ),
        false,
    );
    put(&world, &json!({"session_id": "a", "agent": "claude", "ts": 1}), true);
    put(
        &world,
        &record(
            "proc-11",
            json!({"pid": "11", "process_start": "5", "instance_id": "11:5", "record_kind": "process"}),
        ),
        false,
    );
    put(
        &world,
        &record(
            "proc-12",
            json!({"pid": "12", "process_start": "5", "instance_id": "12:5", "record_kind": "process"}),
        ),
        false,
    );
    put(&world, &json!({"session_id": "b", "agent": "claude", "pid": "13", "ts": 1}), true);
    put(
        &world,
        &record(
            "proc-13",
            json!({"pid": "13", "process_start": "7", "instance_id": "13:7", "record_kind": "process"}),
        ),
        false,
    );
    put(
        &world,
        &record(
            "c",
            json!({"pid": "", "process_start": "", "instance_id": "unresolved", "process_identity": "unresolved"}),
        ),
        false,
    );
    let mut live = ids(&world, &[]);
    live.sort();
    assert_eq!(live, ["a", "b", "c", "proc-12"]);
    assert_eq!(ids(&world, &["--all"]).len(), 8);
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let world = World::new();
    let evil = "a\u{1b}[31m\r\n\t\u{9b}2J\u{202e}\u{200b}\u{2028}\u{7f}\u{e0041}é😀#{x}";
    put(
        &world,
        &record(
            evil,
            json!({"repo": evil, "detail": evil, "status": "waiting", "title": evil, "cwd": evil}),
        ),
        false,
    );
    let forms: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["status", "--jsonl"],
        &["status", "-o", "repo,detail,cwd,session_id"],
        &["status", "--line", "plain"],
        &["status", "--line", "tmux"],
        &["show", "a"],
        &["show", "a", "--json"],
        &["show", evil],
        &["status", "--pane", evil],
        &["show", "no\u{1b}such"],
        &["status", "--sort", evil],
        &["\u{202e}"],
    ];
    for args in forms {
        let ran = world.agents(args);
        for text in [&ran.out, &ran.err] {
            for (i, line) in text.lines().enumerate() {
                let hidden = line.chars().find(|c| tongs::record::out::is_hidden(*c) && *c != '\t');
                assert_eq!(hidden, None, "{args:?} line {i}: {line:?}");
            }
        }
    }
    let ran = world.agents(&["status", "-o", "repo,detail"]);
    assert_eq!(ran.out.lines().count(), 1);
    assert_eq!(ran.out.matches('\t').count(), 1);
    let value = world.agents(&["status", "--json"]).json();
    assert_eq!(value["sessions"][0]["detail"], evil, "escaped, and still the same text");
    let line = world.agents(&["status", "--line", "tmux"]).out;
    assert!(line.contains("##{x}") || !line.contains('#'), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn columns_are_scriptable() {
    let world = World::new();
    put(&world, &record("s", json!({"repo": "a\tb", "turn": 3})), false);
    let ran = world.agents(&[
        "status",
        "-o",
        "repo,turn,needs_attention,branch,terminal_env",
        "--header",
        "-z",
    ]);
    assert_eq!(
        ran.out,
        "repo\tturn\tneeds_attention\tbranch\tterminal_env\0a\\u{9}b\t3\tfalse\t\t{}\0"
    );
    let ran = world.agents(&["status", "-o", "repo,nope"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
    assert!(ran.err.contains("'nope'") && ran.err.contains("session_id"), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1);
}

#[test]
fn the_table_fits_the_width_it_is_given() {
    let world = World::new();
    for i in 0..5 {
        put(
            &world,
            &record(
                &format!("s{i}"),
                json!({"repo": "wide 幅広い名前 repository name", "detail": "d".repeat(300)}),
            ),
            false,
        );
    }
    for width in [20usize, 40, 60, 80, 200] {
        let mut command = world.command("tongs-agents");
        command.arg("status").env("COLUMNS", width.to_string());
        let ran = finish(command, b"");
        for line in ran.out.lines() {
            assert!(tongs::cli::width_of(line) <= width, "{width}: {line}");
        }
    }
    assert!(!world.agents(&["status"]).out.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn the_line_says_who_asks_and_nothing_else() {
    let world = World::new();
    let line = |style: &str| {
        let ran = world.agents(&["status", "--line", style]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.out
    };
    assert_eq!(line("plain"), "");
    put(&world, &record("a", json!({"status": "running"})), false);
    put(&world, &record("b", json!({"status": "idle"})), false);
    assert_eq!(line("plain"), "");
    put(&world, &record("c", json!({"status": "error", "detail": "turn failed"})), false);
    put(
        &world,
        &record(
            "d",
            json!({"status": "waiting", "repo": "lantern", "branch": "main", "detail": "permission needed: Bash #1"}),
        ),
        false,
    );
    put(&world, &record("e", json!({"status": "idle", "ts": now() - 200})), false);
    let text = line("plain");
    assert!(text.starts_with("1 waiting, 1 error, 1 idle: lantern@main permission"), "{text}");
    assert!(tongs::cli::width_of(text.trim_end()) <= 60, "{text}");
    let narrow = world.agents(&["status", "--line", "plain", "--width", "20"]).out;
    assert_eq!(narrow, "1 waiting, 1 error,…\n");
    assert_eq!(world.agents(&["status", "--line", "other"]).code, Some(64));
}

#[test]
fn show_finds_by_any_id_or_the_start_of_one() {
    let world = World::new();
    put(&world, &record("alpha-1", json!({})), false);
    put(&world, &record("alpha-2", json!({})), false);
    put(&world, &record("alpha", json!({})), false);
    let all = world.sessions_json();
    let short = |id: &str| {
        all.iter().find(|s| s["session_id"] == id).unwrap()["short_id"]
            .as_str()
            .unwrap()
            .to_string()
    };
    let canonical = all.iter().find(|s| s["session_id"] == "alpha-2").unwrap()["canonical_id"]
        .as_str()
        .unwrap()
        .to_string();
    for (id, want) in [
        ("alpha", "alpha"),
        ("alpha-1", "alpha-1"),
        (short("alpha-2").as_str(), "alpha-2"),
        (canonical.as_str(), "alpha-2"),
        (&short("alpha-1")[..10], "alpha-1"),
    ] {
        let ran = world.agents(&["show", id, "--json"]);
        assert_eq!(ran.json()["session_id"], want, "{id}");
    }
    let ran = world.agents(&["show", "alph"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!((ran.err.lines().count(), ran.err.matches("fleet:v1:claude:").count()), (1, 3));
    let ran = world.agents(&["show", "beta"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(1), "tongs-agents: no session has the id 'beta'\n")
    );
    assert_eq!(world.agents(&["show", ""]).code, Some(64));
    assert_eq!(world.agents(&["show"]).code, Some(64));
}

#[test]
fn derived_fields_follow_their_rules() {
    let world = World::new();
    let cases = [
        ("future", json!({"ts": now() + 4000}), "age_seconds", json!(0)),
        ("quiet", json!({"ts": now() - 1000}), "quiet", json!(true)),
        ("busy", json!({"ts": now() - 10}), "quiet", json!(false)),
        ("waits", json!({"status": "waiting"}), "needs_attention", json!(true)),
        ("idle", json!({"status": "idle", "ts": now() - 125}), "needs_attention", json!(true)),
        ("done", json!({"status": "ended", "ts": now() - 125}), "needs_attention", json!(false)),
        ("foreign", json!({"pid_ns": "1"}), "unverified", json!(true)),
        ("here", json!({}), "unverified", json!(false)),
        ("launched", json!({"launch_id": "L"}), "launch_id", json!("L")),
        ("plain", json!({}), "launch_id", json!("")),
    ];
    for (id, changes, ..) in &cases {
        put(&world, &record(id, changes.clone()), false);
    }
    let all = world.sessions_json();
    for (id, _, key, want) in &cases {
        let session = all.iter().find(|s| s["session_id"] == *id).unwrap();
        assert_eq!(session[key], *want, "{id}");
    }
    assert!(world.agents(&["status"]).out.contains("running?"), "quiet is shown");
    assert!(world.agents(&["status"]).out.contains("running (unverified)"));
}

#[test]
fn one_hint_when_nobody_maintains_the_store() {
    let world = World::new();
    put(&world, &record("s", json!({})), false);
    let hint = |args: &[&str]| world.agents(args).err;
    assert_eq!(hint(&["status"]).lines().count(), 1);
    assert!(hint(&["status", "--json"]).contains("tongs-agents cleanup"));
    assert_eq!(hint(&["status", "-q"]), "");
    assert_eq!(hint(&["status", "--line", "plain"]), "");
    let stamp = world.sessions().join(".fleet-maintenance.stamp");
    for (text, hinted) in [
        (now() - 10, false),
        (now() - 3500, false),
        (now() - 3700, true),
        (now() + 30, false),
        (now() + 100, true),
    ] {
        fs::write(&stamp, text.to_string()).unwrap();
        assert_eq!(!hint(&["status"]).is_empty(), hinted, "{text}");
    }
    fs::write(&stamp, "no number").unwrap();
    assert!(!hint(&["status"]).is_empty());
}

#[test]
fn wrong_command_lines_are_one_line_and_64() {
    let world = World::new();
    for args in [
        &["statu"][..],
        &["--bogus"],
        &["status", "--bogus"],
        &["status", "x"],
        &["status", "--json", "--jsonl"],
        &["status", "--json-version", "2"],
        &["status", "--json=1"],
        &["status", "--sort"],
        &["status", "--sort", "x"],
        &["status", "--status", "sleeping"],
        &["status", "--header"],
        &["status", "--width", "40"],
        &["status", "--line", "plain", "--width", "0"],
        &["status", "--line", "plain", "--width", "x"],
        &["show", "a", "b"],
        &["cleanup", "--if-due", "--json"],
        &["notify"],
        &["notify", "--harness", "x", "--session", "s", "--status", "idle"],
        &["notify", "--harness", "other", "--session", "s", "--status", "discovered"],
        &["notify", "--harness", "other", "--session", "s", "--status", "idle", "--pid", "x"],
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        assert!(ran.err.starts_with("tongs-agents: "), "{ran:?}");
    }
    let ran = world.agents(&[]);
    assert_eq!((ran.code, ran.err.as_str(), ran.out.starts_with("Usage: ")), (Some(64), "", true));
    for args in [
        &["--help"][..],
        &["-h"],
        &["status", "--help"],
        &["show", "-h"],
        &["notify", "--help"],
        &["cleanup", "--help"],
        &["paths", "--help"],
        &["schema", "--help"],
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(
            ran.out.contains("xample")
                && ran.out.contains("tongs-agents(1)")
                && ran.out.contains("64"),
            "{args:?}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    let world = World::new();
    for i in 0..200 {
        put(&world, &record(&format!("s{i}"), json!({"detail": "x".repeat(500)})), false);
    }
    let mut command = world.command("tongs-agents");
    let mut child = command
        .args(["status", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for args in ["status --json", "status", "--help", "paths", "schema", "show s1", "--version"] {
        let mut command = Command::new("sh");
        world.bare(&mut command);
        command.args(["-c", &format!("tongs-agents {args} >/dev/full")]);
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(74), "{args}");
        assert!(
            ran.err.contains("cannot write 'standard output': no space left on device"),
            "{ran:?}"
        );
    }
}

#[test]
fn ten_thousand_sessions_are_listed_in_little_memory() {
    let world = World::new();
    for i in 0..10_000 {
        put(&world, &record(&format!("session-{i}"), json!({"detail": "y".repeat(200)})), false);
    }
    let mut command = Command::new("sh");
    world.bare(&mut command);
    // Address space, not only what is resident; three times more than that.
    command.args(["-c", "ulimit -v 6144; tongs-agents status --json | tail -c 200"]);
    let ran = finish(command, b"");
    if crate::world::static_tongs("ten_thousand_sessions_in_little_memory").is_some() {
        assert!(ran.out.contains("\"total\":10000"), "{ran:?}");
    }
    if has_tool("jq", "ten_thousand_sessions") {
        let mut command = Command::new("sh");
        world.bare(&mut command);
        command.args([
            "-c",
            "tongs-agents status --json | jq '.sessions | map(.session_id) | unique | length'",
        ]);
        assert_eq!(finish(command, b"").out, "10000\n");
    }
}

#[test]
fn one_session_twice_in_one_listing_never() {
    // A hook replaces the record all the time while readers list the store.
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    for i in 0..50 {
        put(&world, &record(&format!("other-{i}"), json!({})), false);
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let loops = "i=0; while [ $i -lt 150 ]; do tongs-hook claude PreToolUse <\"$HOME/../p.json\"; i=$((i+1)); done";
            fs::write(world.path("p.json"), claude("s", "")).unwrap();
            agent.shell(loops).silent();
        });
        while !writer.is_finished() {
            let mut seen = BTreeMap::new();
            for session in world.sessions_json() {
                *seen.entry(session["session_id"].as_str().unwrap().to_string()).or_insert(0) += 1;
            }
            assert_eq!(seen.get("s"), Some(&1));
            assert_eq!(seen.len(), 51);
        }
    });
}
