//! The sample payloads of every harness, run through the hook as the harness
//! runs it, and whose event one is.

use std::collections::HashMap;
use std::fs;

use serde_json::{Map, Value, json};
use tongs::harness::payload::{self, Payload, Room};
use tongs::harness::{self, EventRow, Image, Kind, Pick, ROWS, Row, belongs, caller};
use tongs::sys::env::Var;

use crate::world::{Harness, Ran, World, bytes};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/payloads");

/// One sample of the index.
struct Sample {
    row: &'static Row,
    file: String,
    harness: String,
    event: String,
    on_command_line: bool,
    session: String,
    at: String,
    expect: String,
    text: String,
    json: Value,
}

/// A field by its path with dots.
fn field<'j>(json: &'j Value, path: &str) -> &'j Value {
    path.split('.').fold(json, |at, key| &at[key])
}

/// An object with this value at the end of the path, in what is there already.
fn put(json: &mut Value, path: &str, value: &str) {
    let mut at = json;
    for key in path.split('.') {
        at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
    }
    *at = json!(value);
}

/// The program under whose name a harness runs its hooks.
fn program(harness: &str) -> &str {
    match harness {
        "antigravity" => "agy",
        "cursor" => "cursor-agent",
        "kimi-cli" => "kimi",
        "kiro-cli-v2" | "kiro-v3" => "kiro-cli-chat",
        "opencode-v2" => "opencode",
        name => name,
    }
}

/// A session that a subagent's samples have as their parent.
const PARENT: &str = "ses_4f2a1b3c5d6eAbCdEfGhIjKlMn";

fn samples() -> Vec<Sample> {
    let index: Value = serde_json::from_slice(&bytes(format!("{FIXTURES}/index.json"))).unwrap();
    let text = |entry: &Value, key: &str| {
        entry[key].as_str().unwrap_or_else(|| panic!("{key}: {entry}")).to_owned()
    };
    let samples: Vec<Sample> = index["payloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let file = text(entry, "file");
            let raw = fs::read_to_string(format!("{FIXTURES}/{file}")).unwrap();
            let json: Value = serde_json::from_str(&raw).unwrap();
            let paths = entry["session_id_field"].as_str().unwrap_or("");
            // The index does not tell of plugin hooks, whose input has it.
            let mut paths = paths.split('|').chain(["input.sessionID"]);
            let found = paths.find_map(|path| Some((path, field(&json, path).as_str()?)));
            let (at, session) = found.unwrap_or(("", ""));
            Sample {
                row: harness::named(&text(entry, "harness")).unwrap(),
                harness: text(entry, "harness"),
                event: text(entry, "event"),
                on_command_line: entry["transport"] == "argv-last",
                // Where the id stands, and what it is; empty for none.
                at: at.to_owned(),
                session: session.to_owned(),
                expect: text(entry, "expect_status"),
                text: raw,
                file,
                json,
            }
        })
        .collect();
    assert!(samples.len() >= 302, "{}", samples.len());
    samples
}

impl Sample {
    /// The id of the session that runs before the event.
    fn before(&self) -> &str {
        match self.session.as_str() {
            "ses_child" => PARENT,
            "" if self.harness != "kiro-cli-v2" => "s",
            session => session,
        }
    }

    /// The id of the session as the record has it.
    fn recorded(&self, stub: &Harness<'_>) -> String {
        match self.before() {
            "" => format!("proc-{}", stub.pid()),
            session => session.to_owned(),
        }
    }

    /// The path and the id of the turn, where there is one.
    fn turn(&self) -> Option<(&'static str, &str)> {
        let paths = self.row.fields.turn.iter().map(|want| want.path());
        paths.into_iter().find_map(|path| Some((path, field(&self.json, path).as_str()?)))
    }

    /// The prompt that came before, of the same session and turn; else what
    /// says that it runs.
    fn prompt(&self) -> (&'static str, String) {
        let kind = |kind| {
            let is = |e: &&EventRow| matches!(e.pick, Pick::Is(k) if k == kind);
            self.row.events.iter().find(is)
        };
        let event = kind(Kind::Prompt).or_else(|| kind(Kind::Busy)).or_else(|| kind(Kind::ToolUse));
        let mut json = json!({"cwd": "/tmp"});
        if !self.before().is_empty() {
            let at = if self.at.is_empty() { "conversation_id" } else { &self.at };
            put(&mut json, at, self.before());
        }
        if let Some((path, turn)) = self.turn() {
            put(&mut json, path, turn);
        }
        if self.row.id == "antigravity" {
            json["invocationNum"] = json!(0);
            return ("PreInvocation", json.to_string());
        }
        (event.unwrap().native, json.to_string())
    }

    /// Runs the hook as the harness does, with these words for the event.
    fn run(&self, stub: &mut Harness<'_>, event: &[&str]) -> Ran {
        let words = [&[self.harness.as_str()], event].concat();
        if self.on_command_line {
            let one_line = self.json.to_string();
            assert!(!one_line.contains('\''));
            return stub.shell(&format!("tongs-hook {} '{one_line}' </dev/null", words.join(" ")));
        }
        stub.hook(&words, &self.text)
    }

    /// The ways in which the event is named: by the argument, by the payload,
    /// by the name that all harnesses share.
    fn ways(&self) -> Vec<Vec<&str>> {
        let mut ways = vec![vec![self.event.as_str()]];
        let mut paths = self.row.fields.event.iter().map(|want| want.path());
        if paths.any(|path| field(&self.json, path).is_string()) {
            ways.push(vec![]);
        }
        if let Some(event) = self.row.event(&self.event).filter(|e| e.normal != e.native) {
            // The shared name may be another event's own.
            if self.row.event(event.normal).is_some_and(|e| e.native == event.native) {
                ways.push(vec![event.normal]);
            }
        }
        ways
    }
}

/// Texts that must never be stored: prompts, and what tools take and give.
fn private_texts(json: &Value) -> Vec<String> {
    fn leaves(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::String(s) if s.len() > 5 => all.push(s.clone()),
            Value::Array(items) => items.iter().for_each(|v| leaves(v, all)),
            Value::Object(items) => items.values().for_each(|v| leaves(v, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for key in [
        "prompt",
        "tool_input",
        "tool_response",
        "delta",
        "content",
        "input-messages",
        "message",
        "compact_summary",
        "task_description",
    ] {
        leaves(&json[key], &mut all);
    }
    leaves(&json["event"]["prompt"], &mut all);
    leaves(&json["event"]["args"], &mut all);
    all
}

/// A sample's record after it, further than its status.
const MORE: [(&str, &str, &str); 25] = [
    ("claude/PreToolUse-AskUserQuestion.json", "waiting_for", "question"),
    ("claude/PreToolUse-AskUserQuestion.json", "waiting_tool", "AskUserQuestion"),
    ("claude/PreToolUse-ExitPlanMode.json", "waiting_for", "plan"),
    ("claude/PreToolUse-ExitPlanMode.json", "detail", "plan ready for review"),
    ("claude/PermissionRequest-subagent.json", "waiting_for", "permission"),
    ("claude/PermissionRequest-subagent.json", "waiting_tool", "Bash"),
    ("claude/PermissionRequest-subagent.json", "waiting_agent", "a4d2c8f1e0b3a297"),
    ("claude/PermissionRequest-subagent.json", "detail", "permission needed: Bash"),
    ("claude/Elicitation-url.json", "waiting_for", "elicitation"),
    ("claude/Notification-elicitation_dialog.json", "waiting_for", "elicitation"),
    ("claude/Stop.json", "detail", "Retry added."),
    ("claude/StopFailure-overloaded.json", "detail", "turn failed: overloaded"),
    ("claude/SessionEnd-clear.json", "detail", "session closed"),
    ("claude/CwdChanged.json", "cwd", "/home/dev/src/lantern/src"),
    ("claude/CwdChanged.json", "repo", "src"),
    ("codex/PermissionRequest.json", "waiting_tool", "Bash"),
    ("codex/PreToolUse-apply_patch.json", "detail", "using apply_patch"),
    ("codex/PreToolUse-apply_patch.json", "tool", "apply_patch"),
    ("codex/Interrupt.json", "detail", "interrupted"),
    ("codex/notify-agent-turn-complete.json", "detail", "Renamed."),
    ("codex/notify-agent-turn-complete.json", "method", "hook-argv"),
    ("codex/UserPromptSubmit.json", "last_event", "codex.prompt-submit"),
    ("pi/tool_execution_start.json", "detail", "using bash"),
    ("pi/ui_prompt_start.json", "waiting_for", "question"),
    ("pi/agent_settled.json", "last_event", "pi.stop"),
];

fn stored(world: &World) -> Map<String, Value> {
    let Value::Object(record) = world.record() else { panic!() };
    record
}

/// Nothing is printed but what the harness demands.
#[track_caller]
fn answered(ran: &Ran, row: &Row) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), row.reply, ""));
}

fn harnesses(samples: &[Sample]) -> Vec<String> {
    let mut names: Vec<String> = samples.iter().map(|s| s.harness.clone()).collect();
    names.dedup();
    for row in ROWS.iter().filter(|row| row.id != "other") {
        assert!(names.iter().any(|n| harness::named(n).unwrap().id == row.id), "{}", row.id);
    }
    names
}

#[test]
fn every_sample_does_to_a_running_session_what_the_index_says() {
    let samples = samples();
    for name in harnesses(&samples) {
        let world = World::new();
        let mut stub = world.harness(program(&name));
        let mut prepared: HashMap<(String, String), (std::path::PathBuf, Vec<u8>)> = HashMap::new();
        for sample in samples.iter().filter(|s| s.harness == name) {
            let (event, prompt) = sample.prompt();
            let key = (sample.recorded(&stub), prompt.clone());
            let (file, before) = prepared.entry(key).or_insert_with(|| {
                world.record_files().iter().for_each(|f| fs::remove_file(f).unwrap());
                answered(&stub.hook(&[&name, event], &prompt), sample.row);
                let file = world.record_files().pop().unwrap_or_else(|| panic!("{}", sample.file));
                let before = bytes(&file);
                (file, before)
            });
            for way in sample.ways() {
                world.record_files().iter().for_each(|f| fs::remove_file(f).unwrap());
                fs::write(&*file, &*before).unwrap();
                answered(&sample.run(&mut stub, &way), sample.row);
                let after = bytes(&*file);
                let text = String::from_utf8(after.clone()).unwrap();
                let case = format!("{} {way:?}: {text}", sample.file);
                // There is no second one, of a subagent.
                assert_eq!(world.record_files().len(), 1, "{case}");
                let record = stored(&world);
                let status = match sample.expect.as_str() {
                    "keep" | "ignore" | "none" => "running",
                    status => status,
                };
                assert_eq!(record["status"], status, "{case}");
                let untouched = matches!(sample.expect.as_str(), "ignore" | "none");
                assert_eq!(after == *before, untouched, "{case}");
                for (key, want) in [
                    ("harness_id", sample.row.id),
                    ("agent", sample.row.id),
                    ("session_id", &sample.recorded(&stub)),
                    ("pid", &stub.pid().to_string()),
                    ("method", if sample.on_command_line { "hook-argv" } else { "hook-stdin" }),
                ] {
                    assert_eq!(record[key], want, "{key}: {case}");
                }
                for private in private_texts(&sample.json) {
                    let told = json!(private).to_string();
                    let known = record["cwd"] == private;
                    let told = told.trim_matches('"');
                    assert!(known || !text.contains(told), "{private} is stored: {case}");
                }
                if let Some(waits) = record.get("waiting_since") {
                    assert!(status == "waiting" && waits.is_u64(), "{case}");
                }
                for (_, key, want) in MORE.iter().filter(|(f, ..)| *f == sample.file) {
                    assert_eq!(record[*key], *want, "{key}: {case}");
                }
            }
        }
        assert!(!world.state().join("hook-faults.log").exists(), "{name}");
    }
}

#[test]
fn every_sample_makes_a_record_of_its_own_or_none() {
    let samples = samples();
    for name in harnesses(&samples) {
        let world = World::new();
        let mut stub = world.harness(program(&name));
        for sample in samples.iter().filter(|s| s.harness == name) {
            world.record_files().iter().for_each(|f| fs::remove_file(f).unwrap());
            answered(&sample.run(&mut stub, &[&sample.event]), sample.row);
            let kind = sample.row.event(&sample.event).map_or(Kind::None, |event| {
                with_payload(&sample.text, |payload| event.kind(payload))
            });
            let joins = matches!(
                kind,
                Kind::End | Kind::Keep | Kind::Rest | Kind::CompactEndManual | Kind::CompactEndAuto
            );
            let want = match sample.expect.as_str() {
                _ if sample.file.ends_with("SessionStart-compact.json") => Some("running"),
                "keep" | "ignore" | "none" => None,
                _ if joins => None,
                status => Some(status),
            };
            let found = world.record_files();
            assert_eq!(found.len(), usize::from(want.is_some()), "{}", sample.file);
            let Some(want) = want else { continue };
            let record = stored(&world);
            assert_eq!(
                (&record["status"], &record["session_id"]),
                (&json!(want), &json!(sample.recorded(&stub))),
                "{}: {record:?}",
                sample.file
            );
            assert_eq!(record["arrival_sequence"], 1, "{}", sample.file);
            // The samples' directory, or, where they have none, the hook's own.
            let own = world.path("project").canonicalize().unwrap();
            let cwd = record["cwd"].as_str().unwrap();
            let told = sample.text.contains(&format!("{cwd:?}"));
            assert!(told || cwd == own.to_str().unwrap(), "{}: {cwd}", sample.file);
            let first = ["workspace_roots", "workspacePaths", "workspaceRoots"]
                .iter()
                .find_map(|key| sample.json[*key][0].as_str());
            if let Some(first) = first {
                assert_eq!(cwd, first, "{}", sample.file);
            }
        }
    }
}

#[test]
fn samples_without_text_that_we_want_still_count() {
    let world = World::new();
    let mut stub = world.harness("claude");
    for (event, fields, status, detail) in [
        (
            "Stop",
            json!({"last_assistant_message": null, "background_tasks": null}),
            "idle",
            "finished",
        ),
        (
            "Stop",
            json!({"last_assistant_message": {"a": [1]}, "background_tasks": "x"}),
            "idle",
            "finished",
        ),
        ("Stop", json!({"last_assistant_message": 7}), "idle", "finished"),
        ("StopFailure", json!({"error": {"type": "x"}}), "error", "turn failed (API error)"),
        ("PreToolUse", json!({"tool_name": null}), "running", "using tool"),
        ("PreToolUse", json!({"tool_name": ["Bash"], "prompt_id": 9}), "running", "using tool"),
        (
            "PermissionRequest",
            json!({"tool_name": 1, "agent_id": null}),
            "waiting",
            "permission needed: tool",
        ),
        ("Notification", json!({"notification_type": null}), "running", "processing prompt"),
    ] {
        stub.hook(&["claude", "UserPromptSubmit"], r#"{"session_id":"s","cwd":"/tmp"}"#).silent();
        let mut payload = json!({"session_id": "s", "cwd": null});
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        stub.hook(&["claude", event], &payload.to_string()).silent();
        let record = stored(&world);
        assert_eq!(
            (&record["status"], &record["detail"]),
            (&json!(status), &json!(detail)),
            "{event} {payload}"
        );
    }
}

// ---- whose event it is ----

fn row(id: &str) -> &'static Row {
    harness::find(id).unwrap()
}

/// Reads a payload and hands it on.
pub fn with_payload<T>(json: &str, give: impl FnOnce(&Payload<'_>) -> T) -> T {
    let mut room = Box::new(Room::new());
    let mut rest = json.as_bytes();
    let payload =
        payload::read(&mut room, &mut |buffer| std::io::Read::read(&mut rest, buffer).unwrap())
            .unwrap();
    give(&payload)
}

#[test]
fn a_mark_in_the_payload_goes_before_the_ancestor_and_that_before_the_argument() {
    for (json, nearest, argument, want) in [
        ("{}", None, "claude", "claude"),
        ("{}", Some("codex"), "claude", "codex"),
        ("{}", Some("claude"), "other", "claude"),
        (r#"{"session_id":"s","hook_event_name":"Stop"}"#, Some("claude"), "codex", "claude"),
        (r#"{"thread-id":"t"}"#, None, "claude", "codex"),
        (r#"{"thread-id":"t"}"#, Some("claude"), "claude", "codex"),
        (r#"{"ctx":{"sessionId":"t"}}"#, Some("codex"), "claude", "pi"),
        (r#"{"ctx":{"sessionId":""}}"#, None, "claude", "pi"),
        // no marks: absent, null, elsewhere, in another spelling
        (r#"{"ctx":{"sessionId":null}}"#, Some("codex"), "claude", "codex"),
        (r#"{"thread-id":false}"#, None, "claude", "claude"),
        (r#"{"ctx":{"ctx":{"sessionId":"t"}}}"#, None, "claude", "claude"),
        (r#"{"a":{"thread-id":"t","ctx":{"sessionId":"t"}}}"#, None, "claude", "claude"),
        (r#"{"ctx":"sessionId","Thread-Id":"t"}"#, None, "claude", "claude"),
        (r#"{"ctx.sessionId":"t"}"#, Some("codex"), "claude", "codex"),
        (r#"{"ctx\u002esessionId":"t"}"#, None, "claude", "claude"),
    ] {
        let got =
            with_payload(json, |payload| caller(row(argument), payload, nearest.map(row), None).id);
        assert_eq!(got, want, "{json} {nearest:?} {argument}");
    }
}

#[test]
fn a_variable_goes_before_the_argument_and_after_a_process() {
    let grok = Some(row("grok"));
    for (json, nearest, want) in [
        ("{}", None, "grok"),
        ("{}", Some("claude"), "claude"),
        (r#"{"cursor_version":"3"}"#, None, "cursor"),
        (r#"{"cursor_version":"3"}"#, Some("claude"), "cursor"),
        (r#"{"hookEventName":"stop"}"#, Some("claude"), "grok"),
    ] {
        let got = with_payload(json, |p| caller(row("claude"), p, nearest.map(row), grok).id);
        assert_eq!(got, want, "{json} {nearest:?}");
    }
}

#[test]
fn the_nearest_agent_owns_the_event_whatever_the_command_line_says() {
    let world = World::new();
    let mut codex = world.harness("codex");
    drop(world.harness("claude"));
    codex.hook(&["claude", "UserPromptSubmit"], r#"{"session_id":"s","cwd":"/tmp"}"#).silent();
    let record = stored(&world);
    assert_eq!(
        (&record["harness_id"], &record["pid"]),
        (&json!("codex"), &json!(codex.pid().to_string()))
    );
    // claude in codex's shell is claude
    let inner = r#"claude --norc -c "echo '{\"session_id\":\"t\",\"cwd\":\"/tmp\"}' | tongs-hook codex UserPromptSubmit; true""#;
    codex.shell(inner).silent();
    let inner = world.sessions_json().into_iter().find(|s| s["session_id"] == "t").unwrap();
    assert_eq!(inner["harness_id"], "claude", "{inner}");
    assert_ne!(inner["pid"], codex.pid().to_string());
}

/// A process: command name, program file, arguments with spaces for NULs.
fn is(id: &str, comm: &str, exe: Option<&str>, args: Option<&str>) -> Option<bool> {
    let line = args.map(|a| if a.is_empty() { String::new() } else { a.replace(' ', "\0") + "\0" });
    let image = Image {
        comm: comm.as_bytes(),
        exe: exe.map(str::as_bytes),
        cmdline: line.as_deref().map(str::as_bytes),
    };
    belongs(row(id).looks(), &image)
}

#[test]
fn a_process_is_the_harness_that_its_names_or_its_script_say() {
    for (id, comm, exe, args) in [
        ("claude", "claude", Some("/opt/claude"), Some("claude")),
        ("claude", "CLAUDE", None, Some("x")),
        ("claude", "claude.exe", None, Some("x")),
        ("claude", "claude", None, None),
        // installed under its version, started by its name
        (
            "claude",
            "2.1.206",
            Some("/home/u/.local/share/claude/versions/2.1.206"),
            Some("claude --resume s"),
        ),
        ("claude", "x", Some("/usr/bin/claude"), Some("x")),
        ("claude", "x", None, Some("/usr/local/bin/claude -p hello")),
        (
            "claude",
            "node",
            Some("/usr/bin/node"),
            Some("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"),
        ),
        ("claude", "node", Some("/usr/bin/node"), Some("node /usr/bin/claude --continue")),
        ("claude", "node", Some("/usr/bin/node"), Some("node bin/claude")),
        ("claude", "MainThread", Some("/usr/bin/node"), Some("node /usr/bin/claude")),
        ("claude", "node-MainThread", Some("/usr/bin/node"), Some("/usr/bin/node /usr/bin/claude")),
        ("claude", "bun", Some("/usr/bin/bun"), Some("bun /x/claude-code/cli.js")),
        ("claude", "deno", Some("/usr/bin/deno"), Some("deno /x/bin/claude")),
        // a helper's word that is not the first argument is a user's
        ("claude", "claude", Some("/opt/claude"), Some("claude -p mcp")),
        ("claude", "claude", Some("/opt/claude"), Some("claude -p daemon")),
        ("codex", "codex", Some("/opt/codex"), Some("codex resume s")),
        (
            "codex",
            "node",
            Some("/usr/bin/node"),
            Some("node /usr/lib/node_modules/@openai/codex/bin/codex.js"),
        ),
        ("codex", "python3.11", Some("/usr/bin/python3.11"), Some("python3.11 /x/bin/codex")),
        ("pi", "pi", Some("/usr/bin/pi"), Some("pi")),
        ("pi", "node", Some("/usr/bin/node"), Some("node /x/pi-coding-agent/dist/cli.js")),
        ("pi", "node", Some("/usr/bin/node"), Some("node /usr/bin/pi")),
        ("gemini", "MainThread", Some("/usr/bin/node"), Some("node --no-warnings /usr/bin/gemini")),
        (
            "gemini",
            "node",
            Some("/usr/bin/node"),
            Some("node /x/node_modules/@google/gemini-cli/dist/index.js -p hi"),
        ),
        (
            "qwen",
            "node-MainThread",
            Some("/usr/bin/node"),
            Some("node /x/node_modules/@qwen-code/qwen-code/dist/index.js"),
        ),
        (
            "cursor",
            "cursor-agent",
            Some("/x/node"),
            Some("cursor-agent --use-system-ca /x/index.js"),
        ),
        (
            "cursor",
            "node",
            Some("/x/cursor-agent/versions/2026.10.08/node"),
            Some("/x/node --use-system-ca /x/cursor-agent/versions/2026.10.08/index.js"),
        ),
        ("copilot", "node", Some("/usr/bin/node"), Some("node /x/@github/copilot/index.js")),
        ("copilot", "copilot", Some("/usr/bin/copilot"), Some("copilot --resume=s")),
        ("opencode", "opencode", Some("/usr/bin/opencode"), Some("opencode run serve")),
        ("opencode", "bun", Some("/usr/bin/bun"), Some("bun /x/bin/opencode")),
        ("kimi", "kimi-code", Some("/usr/bin/node"), Some("kimi-code")),
        ("kimi", "python3", Some("/usr/bin/python3"), Some("python3 /home/u/.local/bin/kimi")),
        ("kiro", "kiro-cli-chat", Some("/usr/bin/kiro-cli-chat"), Some("kiro-cli-chat chat")),
        ("antigravity", "agy", Some("/usr/bin/agy"), Some("agy --conversation c")),
        ("grok", "grok", Some("/usr/bin/grok"), Some("grok")),
        ("goose", "goose", Some("/usr/bin/goose"), Some("goose session")),
        ("droid", "droid", Some("/usr/bin/droid"), Some("droid exec daemon")),
        ("devin", "devin", Some("/usr/bin/devin"), Some("devin")),
        ("crush", "crush", Some("/usr/bin/crush"), Some("crush")),
        ("amp", "node", Some("/usr/bin/node"), Some("node /x/@sourcegraph/amp/dist/main.js")),
        ("hermes", "python3.12", Some("/usr/bin/python3.12"), Some("python3 /x/bin/hermes")),
    ] {
        for other in ROWS {
            assert_eq!(
                is(other.id, comm, exe, args) == Some(true),
                other.id == id,
                "{} {comm} {exe:?} {args:?}",
                other.id
            );
        }
    }
}

#[test]
fn a_process_that_only_speaks_of_a_harness_is_none() {
    for (comm, exe, args) in [
        ("bash", "/bin/bash", "bash"),
        ("vim", "/usr/bin/vim", "vim /usr/bin/claude"),
        ("node", "/usr/bin/node", "node /x/notbin/claude"),
        ("node", "/usr/bin/node", "node /x/my-claude-code/cli.js"),
        ("node", "/usr/bin/node", "node /x/claude-code/cli.js.map"),
        ("node", "/usr/bin/node", "node /x/server.js /usr/bin/claude"),
        ("node", "/usr/bin/node", "node"),
        ("node", "/usr/bin/node", ""),
        ("npm", "/usr/bin/node", "npm /usr/bin/claude"),
        ("claude-monitor", "/usr/bin/claude-monitor", "claude-monitor"),
        ("pip", "/usr/bin/pip", "pip install pi"),
        ("sh", "/claude/bin/sh", "sh -c claude"),
        ("tail", "/usr/bin/tail", "tail -f /home/u/.codex/log"),
        ("", "", ""),
        ("codex-linux-san", "/usr/bin/codex-linux-sandbox", "codex-linux-sandbox -- ls"),
        // editors, their helpers, and what runs in them
        ("cursor", "/usr/share/cursor/cursor", "/usr/share/cursor/cursor"),
        ("cursor", "/usr/share/cursor/cursor", "/usr/share/cursor/cursor --type=renderer"),
        ("Cursor Helper", "/x/Cursor Helper", "Cursor-Helper --type=utility"),
        ("windsurf", "/usr/share/windsurf/windsurf", "windsurf"),
        ("kiro", "/usr/share/kiro/kiro", "kiro --type=zygote"),
        ("antigravity", "/usr/share/antigravity/antigravity", "antigravity"),
        ("language_server", "/x/language_server_linux_x64", "language_server_linux_x64"),
        ("code", "/usr/share/code/code", "code --type=utility"),
        ("node", "/usr/bin/node", "node /x/extensions/cline/server.js"),
        ("node", "/usr/bin/node", "node /x/copilot-language-server/dist/language-server.js"),
        ("copilot-languag", "/x/copilot-language-server", "copilot-language-server --stdio"),
        ("goosed", "/usr/bin/goosed", "goosed agent"),
        ("kiro-cli-term", "/usr/bin/kiro-cli-term", "kiro-cli-term"),
        ("agent", "/usr/bin/agent", "agent"),
        ("node", "/usr/bin/node", "node --x /x/gemini /usr/bin/gemini"),
        ("node", "/usr/bin/node", "node /x/cursor-agent/versions/index.js"),
    ] {
        for row in ROWS {
            assert_eq!(
                is(row.id, comm, Some(exe), Some(args)),
                Some(false),
                "{} {comm} {args}",
                row.id
            );
        }
    }
    // Too little was seen to say no.
    assert_eq!(is("claude", "node", None, None), None);
    assert_eq!(is("claude", "x", None, None), None);
}

#[test]
fn helpers_and_servers_hold_no_session() {
    for (id, args) in [
        ("claude", "claude daemon"),
        ("claude", "claude server --port 1"),
        ("claude", "claude mcp serve"),
        ("claude", "claude --bg-spare"),
        ("claude", "claude --bg-pty-host x"),
        ("codex", "codex mcp-server"),
        ("codex", "codex app-server"),
        ("codex", "codex mcp"),
        ("codex", "codex exec-server"),
        ("opencode", "opencode serve"),
        ("opencode", "opencode web"),
    ] {
        let name = args.split(' ').next().unwrap();
        assert_eq!(
            is(id, name, Some(&format!("/usr/bin/{name}")), Some(args)),
            Some(false),
            "{args}"
        );
        let script = format!("node /usr/bin/{args}");
        assert_eq!(is(id, "node", Some("/usr/bin/node"), Some(&script)), Some(false), "{script}");
        // The same words with something before them are a user's.
        let asked = args.replacen(' ', " -p ", 1);
        assert_eq!(is(id, name, None, Some(&asked)), Some(true), "{asked}");
    }
}

#[test]
fn the_rows_say_each_thing_once() {
    let mut ids = Vec::new();
    for row in ROWS {
        assert!(!ids.contains(&row.id), "{} stands twice", row.id);
        ids.push(row.id);
        for event in row.events {
            let natives = row.events.iter().filter(|e| e.native == event.native).count();
            assert_eq!(natives, 1, "{} {}", row.id, event.native);
            assert!(row.event(event.native).is_some_and(|e| e.native == event.native));
            assert!(row.event(event.normal).is_some(), "{} {}", row.id, event.normal);
            let lower = |b: u8| b.is_ascii_lowercase() || b == b'-';
            assert!(
                event.normal == event.native || event.normal.bytes().all(lower),
                "{} {}",
                row.id,
                event.normal
            );
        }
        let looks = row.looks();
        for word in row.aliases {
            assert!(harness::named(word).is_some_and(|r| r.id == row.id), "{word}");
            assert!(!harness::is_known(word), "no record says {word}");
        }
        for name in [row.env.mark, row.env.session, row.env.cwd, row.env.event] {
            let known = Var::find(name.as_bytes()).is_some();
            assert!(name.is_empty() || known, "{name} is not in sys::env");
        }
        assert!(row.resume.is_empty() || row.resume.contains("ID"), "{}", row.id);
        for text in looks.hosts {
            assert!(!looks.has_name(text.as_bytes()), "{text} is both");
        }
        for text in looks.names.iter().chain(looks.hosts) {
            assert_eq!(*text, text.to_lowercase(), "{}", row.id);
        }
        assert!(row.event("no-such-event").is_none() && row.event("").is_none());
    }
    assert!(harness::is_known("claude") && !harness::is_known("Claude") && !harness::is_known(""));
}
