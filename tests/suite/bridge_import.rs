//! Records from elsewhere: the rules without a bridge, what a lying bridge
//! cannot do, hostile input, other trackers, and a model under random orders of
//! hooks and bridges.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::status::{assert_schema, now, put, record};
use crate::world::{Ran, World, bytes, claude, finish, has_tool};

const MAX_RECORDS: usize = 1000;
const MAX_TOTAL: usize = 4 * 1024 * 1024;

/// A record without a process, as another machine exports it.
fn brought(session: &str, changes: Value) -> Value {
    let mut record = record(session, json!({"instance_id": "unresolved"}));
    for key in ["pid", "process_start", "process_identity", "terminal", "terminal_env", "source"] {
        record.as_object_mut().unwrap().remove(key);
    }
    for (key, value) in changes.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().map(|record| format!("{record}\n")).collect::<String>().into_bytes()
}

fn import(world: &World, args: &[&str], input: &[u8]) -> Ran {
    world.run("tongs-bridge-import", args, input)
}

/// The results of an import, each against its schema.
fn results(world: &World, args: &[&str], input: &[u8]) -> Vec<Value> {
    let ran = import(world, &[&["--json"], args].concat(), input);
    let results: Vec<Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let refused = results.iter().filter(|r| r["result"] == "refused").count();
    assert_eq!(ran.code, Some(i32::from(refused > 0)), "{ran:?}");
    assert_eq!(
        ran.err,
        match refused {
            0 => String::new(),
            _ => format!("tongs-bridge-import: {refused} of {} were refused\n", results.len()),
        }
    );
    if let Some(result) = results.first() {
        assert_schema(world, "bridge-import", result);
    }
    results
}

/// The codes of the results; empty for an accepted one.
fn reasons(world: &World, args: &[&str], input: &[u8]) -> Vec<String> {
    let reason = |r: Value| r["reason"].as_str().unwrap().to_string();
    results(world, args, input).into_iter().map(reason).collect()
}

fn box_says(world: &World, record: &Value) -> String {
    reasons(world, &["--bridge", "box"], &lines(std::slice::from_ref(record))).remove(0)
}

/// The contents of every record, by its file.
fn contents(world: &World) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    world.record_files().iter().map(|path| (name(path), bytes(path))).collect()
}

#[test]
fn without_a_bridge_a_record_is_written_as_it_is() {
    let world = World::new();
    let mut one =
        record("a", json!({"x": {"deep": [1, 2.5e3, "é"]}, "sequence": 3, "bridge": "b"}));
    one["arrival_sequence"] = json!(99);
    one["age_seconds"] = json!(1);
    let ran = import(&world, &[], format!("{one}").as_bytes());
    let id = one["canonical_id"].as_str().unwrap();
    assert_eq!((ran.code, ran.out, ran.err.as_str()), (Some(0), format!("accepted {id}\n"), ""));
    one["arrival_sequence"] = json!(1);
    one.as_object_mut().unwrap().remove("age_seconds");
    assert_eq!(world.record(), one);

    // The order that its program gave it, and its process.
    let with = |changes: Value| {
        let mut next = one.clone();
        for (key, value) in changes.as_object().unwrap() {
            next[key] = value.clone();
        }
        next
    };
    let mut unordered = one.clone();
    unordered.as_object_mut().unwrap().remove("sequence");
    let before = contents(&world);
    let input = lines(&[
        with(json!({"sequence": 3})),
        with(json!({"sequence": 2})),
        unordered,
        with(json!({"sequence": 4, "pid": "7"})),
        with(json!({"sequence": 4, "process_start": "9"})),
    ]);
    let want = ["sequence", "sequence", "sequence", "other-process", "other-process"];
    assert_eq!(reasons(&world, &[], &input), want);
    assert_eq!(contents(&world), before);
    let input = lines(&[with(json!({"sequence": 4, "status": "idle"}))]);
    assert_eq!(reasons(&world, &["-"], &input), [""]);
    let stored = world.record();
    assert_eq!((&stored["status"], &stored["arrival_sequence"]), (&json!("idle"), &json!(2)));
}

#[test]
fn a_bad_line_is_refused_for_its_reason_and_keeps_no_other() {
    let world = World::new();
    let good = brought("good", json!({}));
    let with = |changes: Value| brought("bad", changes).to_string();
    let mut twice = with(json!({}));
    twice.insert_str(1, "\"ts\":1,");
    let mut none = brought("bad", json!({}));
    none.as_object_mut().unwrap().remove("session_id");
    let half = good.to_string();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let deepish = format!("{{\"x\":{}{}}}", "[".repeat(20), "]".repeat(20));
    let keys: String = (0..70).map(|n| format!("\"k{n}\":0,")).collect();
    let bad: Vec<(Vec<u8>, &str)> = vec![
        (half[..half.len() / 2].into(), "not-json"),
        (b"[]".to_vec(), "not-json"),
        (b"\xff{}".to_vec(), "not-utf8"),
        (b"{\"a\":\"\\ud800\"}".to_vec(), "not-json"),
        (deep.into(), "too-long"),
        (deepish.into(), "too-deep"),
        (format!("{{{keys}\"z\":0}}").into(), "too-many-keys"),
        (twice.into(), "duplicate-key"),
        (none.to_string().into(), "missing-field"),
        (with(json!({"schema_version": 2})).into(), "schema"),
        (with(json!({"schema_version": 0})).into(), "schema"),
        (with(json!({"canonical_id": good["canonical_id"]})).into(), "forged"),
        (with(json!({"session_id": "good"})).into(), "forged"),
        (with(json!({"agent": "codex"})).into(), "invalid-field"),
        (with(json!({"harness_id": "nobody", "agent": "nobody"})).into(), "invalid-field"),
        (with(json!({"status": "asleep"})).into(), "invalid-field"),
        (with(json!({"ts": now() + 1000})).into(), "invalid-field"),
        (with(json!({"ts": -1})).into(), "invalid-field"),
        (with(json!({"detail": "x".repeat(513)})).into(), "invalid-field"),
        (with(json!({"cwd": "/x\u{0}y"})).into(), "invalid-field"),
        (with(json!({"x": "y".repeat(70_000)})).into(), "too-long"),
    ];
    for args in [&[][..], &["--bridge", "box"]] {
        let world = World::new();
        let mut input = b"\n  \n".to_vec();
        for (line, _) in &bad {
            input.extend_from_slice(line);
            input.push(b'\n');
        }
        // Without a newline at its end.
        input.extend_from_slice(good.to_string().as_bytes());
        let results = results(&world, args, &input);
        let want: Vec<&str> = bad.iter().map(|(_, reason)| *reason).chain([""]).collect();
        let got: Vec<&str> = results.iter().map(|r| r["reason"].as_str().unwrap()).collect();
        assert_eq!(got, want);
        assert_eq!(results[0]["line"], 3, "blank lines count");
        assert_eq!(results.last().unwrap()["canonical_id"], good["canonical_id"]);
        assert_eq!(world.record()["session_id"], "good");
        assert_eq!(world.files().len(), 3, "what is refused leaves nothing: {:?}", world.files());
    }
    // For people.
    let ran = import(&world, &[], b"{\"a\":\"\x1b[1m\"}\n{}\n");
    assert_eq!(ran.out.lines().count(), 2);
    assert!(
        ran.out.starts_with("refused not-json: line 1: byte 6: not a JSON object\n"),
        "{ran:?}"
    );
    assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1));
}

#[test]
fn a_bridge_brings_what_is_of_no_process_and_no_terminal_here() {
    let world = World::new();
    let line = brought(
        "s",
        json!({
            "bridge": "other", "host": "far", "launch_id": "L", "profile_id": "P", "terminal_id": "T",
            "terminal": "tmux", "terminal_env": {"TMUX": "/s,1,2"}, "record_kind": "process",
            "source": "process", "method": "hook-stdin", "boot_id": "x", "pid_ns": "4026531836",
            "boot_ms": 5, "mono_ms": u64::MAX / 2 - 1, "turn_id": "t", "unknown": {"run": "rm"},
            "focus_target": {"kind": "unavailable", "terminal": "tmux"}, "title": "T\u{1f600}",
            "waiting_for": "permission", "waiting_since": 5, "ts_ms": 7000, "sequence": 1,
            "started": null, "branch": "main", "status_ms": 6000, "pid": "",
        }),
    );
    assert_eq!(box_says(&world, &line), "");
    let stored = world.record();
    let want = json!({
        "bridge": "box", "host": "far", "record_kind": "session", "source": "bridge",
        "method": "bridge", "terminal": "generic", "terminal_env": {}, "pid": "",
        "process_start": "", "process_identity": "unresolved", "instance_id": "unresolved",
        "focus_target": {"kind": "unavailable"}, "title": "T\u{1f600}", "branch": "main",
        "waiting_for": "permission", "waiting_since": 5, "ts_ms": 7000, "status_ms": 6000,
        "sequence": 1, "arrival_sequence": 1, "cwd": "/r", "detail": "d",
    });
    for (key, value) in want.as_object().unwrap() {
        assert_eq!(&stored[key], value, "{key}");
    }
    for key in ["launch_id", "profile_id", "terminal_id", "pid_ns", "turn_id", "unknown", "started"]
    {
        assert_eq!(stored.get(key), None, "{key}");
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(stored["boot_id"], boot.trim());
    assert!(stored["mono_ms"].as_u64().unwrap() < 1 << 50);
    let shown = world.session("s").unwrap();
    assert_eq!((&shown["bridge"], &shown["host"]), (&json!("box"), &json!("far")));
    assert_schema(&world, "show", &shown);

    // What it may not say.
    for (changes, reason) in [
        (json!({"pid": "1", "process_start": "1", "instance_id": "1:1"}), "names-process"),
        (json!({"host": "h".repeat(65)}), "invalid-field"),
        (json!({"host": 5}), "invalid-field"),
        (json!({"title": "t".repeat(513)}), "invalid-field"),
        (json!({"worktree": "w".repeat(4097)}), "invalid-field"),
        (json!({"turn": -1}), "invalid-field"),
        (json!({"started": now() + 1000}), "invalid-field"),
        (json!({"ts_ms": (now() + 1000) * 1000}), "invalid-field"),
        (json!({"status_ms": (now() + 1000) * 1000}), "invalid-field"),
        (json!({"waiting_since": -5}), "invalid-field"),
    ] {
        let line = match changes.get("instance_id") {
            Some(_) => record("s", changes),
            None => brought("t", changes),
        };
        assert_eq!(box_says(&world, &line), reason, "{line}");
    }
    assert_eq!(world.record(), stored);
    assert_eq!(box_says(&world, &brought("t", json!({"host": "é".repeat(64)}))), "");
}

#[test]
fn a_bridge_changes_only_its_own() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("live", "")).silent();
    // A hook that found no process: the very record that a bridge would write.
    world.run("tongs-hook", &["codex", "SessionStart"], claude("lone", "").as_bytes()).silent();
    let (live, lone) = (world.record_of("live"), world.record_of("lone"));
    assert_eq!(lone["instance_id"], "unresolved");
    let theirs = brought("theirs", json!({"sequence": 1}));
    assert_eq!(reasons(&world, &["--bridge", "far"], &lines(std::slice::from_ref(&theirs))), [""]);
    let torn = brought("torn", json!({}));
    let name = put(&world, &torn, false);
    fs::write(world.sessions().join(&name), "{\"half\":").unwrap();
    let old = json!({"session_id": "old", "agent": "claude", "ts": now()});
    put(&world, &old, true);
    let before = contents(&world);

    let like = |record: &Value, session: &str| {
        let mut like = crate::status::record(
            session,
            json!({"harness_id": record["harness_id"], "agent": record["harness_id"], "instance_id": "unresolved"}),
        );
        for key in ["pid", "process_start", "process_identity"] {
            like.as_object_mut().unwrap().remove(key);
        }
        like["sequence"] = json!(1u64 << 40);
        like
    };
    let input = lines(&[
        like(&lone, "lone"),
        like(&theirs, "theirs"),
        like(&torn, "torn"),
        like(&torn, "mine"),
        like(&live, "live"),
    ]);
    let want = ["not-own", "other-bridge", "record-unsafe", "", ""];
    assert_eq!(reasons(&world, &["--bridge", "box"], &input), want);
    let after = contents(&world);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    fs::remove_file(world.sessions().join(name)).unwrap();
    // The session of a living process is not hidden by the bridge's, but hides it.
    let live: Vec<Value> =
        world.sessions_json().into_iter().filter(|s| s["session_id"] == "live").collect();
    assert_eq!((live.len(), live[0].get("bridge")), (1, None));

    // A bridge's record hides no record of an older program either.
    assert_eq!(box_says(&world, &brought("old", json!({}))), "");
    assert_eq!(world.sessions_json().iter().filter(|s| s["session_id"] == "old").count(), 2);

    // Each bridge goes on with its own, in order.
    let next = |sequence: u64| brought("mine", json!({"sequence": sequence}));
    assert_eq!(box_says(&world, &next(1u64 << 40)), "sequence");
    assert_eq!(box_says(&world, &brought("mine", json!({}))), "sequence");
    assert_eq!(box_says(&world, &next((1u64 << 40) + 1)), "");
    assert_eq!(world.session("mine").unwrap()["arrival_sequence"], 2);
}

#[test]
fn a_local_event_takes_a_bridges_record_over() {
    let world = World::new();
    let told = |session: &str| {
        brought(
            session,
            json!({
                "sequence": i64::MAX, "status": "ended", "turn": 41, "title": "forged", "host": "far",
                "waiting_for": "plan", "harness_id": "claude",
            }),
        )
    };
    assert_eq!(box_says(&world, &told("s")), "");
    let ran =
        world.agents(&["notify", "--harness", "claude", "--session", "s", "--status", "idle"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stored = world.record_of("s");
    assert_eq!((&stored["status"], &stored["arrival_sequence"]), (&json!("idle"), &json!(1)));
    for key in ["bridge", "host", "sequence", "title", "waiting_for"] {
        assert_eq!(stored.get(key), None, "{key}");
    }
    let before = contents(&world);
    assert_eq!(box_says(&world, &told("s")), "not-own");
    assert_eq!(contents(&world), before);

    // And so does a hook, whatever the bridge said of the order of events.
    assert_eq!(box_says(&world, &told("h")), "");
    world.run("tongs-hook", &["claude", "PreToolUse"], claude("h", "").as_bytes()).silent();
    let stored = world.record_of("h");
    assert_eq!((&stored["status"], stored.get("bridge")), (&json!("running"), None));
    // One that has a process removes it.
    assert_eq!(box_says(&world, &told("p")), "");
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("p", "")).silent();
    assert_eq!(world.record_of("p")["pid"], agent.pid().to_string());
}

#[test]
fn a_bridge_has_so_many_records_and_bytes() {
    let world = World::new();
    let some = |from: usize, to: usize| -> Vec<Value> {
        (from..to).map(|n| brought(&format!("s{n}"), json!({"sequence": 1}))).collect()
    };
    // 30,000 lines.
    let (first, more) = (some(0, MAX_RECORDS), some(MAX_RECORDS, MAX_RECORDS + 250));
    let ran =
        import(&world, &["--bridge", "box"], &[lines(&first), lines(&more).repeat(116)].concat());
    assert_eq!(ran.code, Some(1));
    let count = |start: &str| ran.out.lines().filter(|l| l.starts_with(start)).count();
    assert_eq!(count("accepted "), MAX_RECORDS);
    assert_eq!(count("refused too-many-records: "), 29_000);
    assert!(ran.out.ends_with(": line 30000: the bridge has 1000 records\n"));
    assert_eq!(ran.err, "tongs-bridge-import: 29000 of 30000 were refused\n");
    assert_eq!(world.record_files().len(), MAX_RECORDS);
    assert_eq!(world.files().len(), 3 * MAX_RECORDS, "what is refused leaves no locks");
    // It may go on with what it has, another bridge has room of its own, and
    // what is removed makes room.
    let again = brought("s0", json!({"sequence": 2}));
    assert_eq!(box_says(&world, &again), "");
    let other = brought("far", json!({}));
    assert_eq!(reasons(&world, &["--bridge", "far"], &lines(&[other])), [""]);
    assert_eq!(box_says(&world, &brought("new", json!({}))), "too-many-records");
    let digest = again["canonical_id"].as_str().unwrap().rsplit(':').next().unwrap();
    fs::remove_file(world.sessions().join(format!("fleet-v1-{digest}.json"))).unwrap();
    assert_eq!(box_says(&world, &brought("new", json!({}))), "");
    let ran = import(&world, &["--bridge", "box", "--retire"], b"");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "removed 1000\n", ""));
    assert_eq!(world.record_files().len(), 1);
    let ran = import(&world, &["--bridge", "box", "--retire", "--json"], b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "{\"removed\":0}\n"));

    // Bytes: of new records, and of old ones that grow.
    let world = World::new();
    let worktree = "w".repeat(4000);
    let big = |n: usize, sequence: u64| {
        let large = json!({"sequence": sequence, "worktree": worktree, "cwd": worktree});
        brought(&format!("b{n}"), large)
    };
    let all: Vec<Value> = (0..550).map(|n| big(n, 1)).collect();
    let got = reasons(&world, &["--bridge", "box"], &lines(&all));
    let refused = got.iter().filter(|reason| *reason == "too-many-bytes").count();
    assert!(refused > 0 && got.iter().filter(|r| r.is_empty()).count() == got.len() - refused);
    let size = |world: &World| contents(world).values().map(Vec::len).sum::<usize>();
    assert!(size(&world) <= MAX_TOTAL && size(&world) > MAX_TOTAL - 20_000, "{}", size(&world));
    let world = World::new();
    let small: Vec<Value> = (0..550).map(|n| brought(&format!("b{n}"), json!({}))).collect();
    assert_eq!(import(&world, &["--bridge", "box"], &lines(&small)).code, Some(0));
    let grown: Vec<Value> = (0..550).map(|n| big(n, 2)).collect();
    let got = reasons(&world, &["--bridge", "box"], &lines(&grown));
    assert!(got.iter().any(|reason| reason == "too-many-bytes"));
    assert!(size(&world) <= MAX_TOTAL);
    // Old lines count for nothing.
    let stale: Vec<Value> =
        (0..550).map(|n| brought(&format!("b{n}"), json!({"sequence": 1}))).collect();
    import(&world, &["--bridge", "box"], &lines(&[stale, grown].concat()));
    assert!(size(&world) <= MAX_TOTAL);
}

#[test]
fn retiring_removes_what_is_the_bridges() {
    let world = World::new();
    let ran = import(&world, &["--bridge", "box", "--retire"], b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "removed 0\n"));
    assert!(!world.state().exists(), "nothing is made for it");
    let records: Vec<Value> = ["a", "b", "c"].map(|s| brought(s, json!({}))).into();
    assert_eq!(import(&world, &["--bridge", "box"], &lines(&records)).code, Some(0));
    assert_eq!(reasons(&world, &["--bridge", "boxer"], &lines(&[brought("d", json!({}))])), [""]);
    world.agents(&["notify", "--harness", "other", "--session", "e", "--status", "idle"]);
    let ran = import(&world, &["--retire", "--bridge=box"], b"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "removed 3\n"));
    let mut left: Vec<String> = world
        .sessions_json()
        .iter()
        .map(|s| s["session_id"].as_str().unwrap().to_string())
        .collect();
    left.sort();
    assert_eq!(left, ["d", "e"]);
}

#[test]
fn the_command_line_and_the_input_are_checked() {
    let world = World::new();
    for args in [
        &["--retire"][..],
        &["--retire", "--bridge", "b", "file"],
        &["--retire", "--bridge", "b", "-"],
        &["--bridge", ""],
        &["--bridge", ".b"],
        &["--bridge", "-b"],
        &["--bridge", "a/b"],
        &["--bridge", "é"],
        &["--format", "xml"],
        &["--json-version", "2"],
        &["--nonsense"],
        &["a", "b"],
    ] {
        let ran = import(&world, args, b"");
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.lines().count()),
            (Some(64), "", 1),
            "{args:?}"
        );
    }
    let long = "b".repeat(65);
    assert_eq!(import(&world, &["--bridge", &long], b"").code, Some(64));
    assert_eq!(import(&world, &["--bridge", &long[1..]], b"").code, Some(0));
    assert_eq!(import(&world, &["--version"], b"").code, Some(0));

    let path = |name: &str| world.path(name).to_str().unwrap().to_string();
    let good = lines(&[brought("s", json!({}))]);
    fs::write(world.path("good"), &good).unwrap();
    symlink(world.path("good"), world.path("link")).unwrap();
    fs::write(world.path("two"), &good).unwrap();
    fs::hard_link(world.path("two"), world.path("names")).unwrap();
    let made = Command::new("mkfifo").arg(world.path("fifo")).status().unwrap();
    assert!(made.success());
    for (name, code) in [("link", 77), ("names", 77), ("fifo", 65), ("home", 65), ("absent", 65)] {
        let ran = import(&world, &[&path(name)], b"");
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.lines().count()),
            (Some(code), "", 1),
            "{name}"
        );
    }
    assert!(world.record_files().is_empty());
    assert_eq!(import(&world, &[&path("good")], b"").code, Some(0));
    assert_eq!(world.record_files().len(), 1);

    // A store that is not private.
    let world = World::new();
    put(&world, &brought("s", json!({})), false);
    symlink(world.sessions(), world.path("elsewhere")).unwrap();
    fs::rename(world.sessions(), world.state().join("moved")).unwrap();
    symlink(world.state().join("moved"), world.sessions()).unwrap();
    for args in [&["--bridge", "b"][..], &["--bridge", "b", "--retire"]] {
        assert_eq!(import(&world, args, &good).code, Some(77));
    }
}

#[test]
fn a_line_without_end_takes_no_memory() {
    if !has_tool("bash", "a_line_without_end") {
        return;
    }
    let world = World::new();
    let good = brought("s", json!({}));
    fs::write(world.path("good"), lines(&[good])).unwrap();
    let script = format!(
        "ulimit -v 16384; {{ head -c 1073741824 /dev/zero; echo; cat '{}'; }} | tongs-bridge-import --bridge box",
        world.path("good").display()
    );
    let mut shell = Command::new("bash");
    world.bare(&mut shell);
    shell.args(["-c", &script]);
    let ran = finish(shell, b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.starts_with("refused too-long: line 1: "), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 2);
    assert!(world.session("s").is_some());
}

#[test]
fn a_result_is_out_before_the_next_line_is_in() {
    let world = World::new();
    let mut child = world
        .command("tongs-bridge-import")
        .args(["--bridge", "box", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for sequence in 1..4 {
        let line = lines(&[brought("s", json!({"sequence": sequence}))]);
        // In two pieces, as a pipe may bring it.
        input.write_all(&line[..40]).unwrap();
        input.write_all(&line[40..]).unwrap();
        let result: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!((&result["line"], &result["reason"]), (&json!(sequence), &json!("")));
        assert_eq!(world.session("s").unwrap()["sequence"], sequence);
    }
    // The connection breaks in the middle of a line; what is there stays, and a
    // new one goes on with it.
    input.write_all(b"{\"schema_version\":1,").unwrap();
    drop(input);
    let result: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
    assert_eq!(result["reason"], "not-json");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(box_says(&world, &brought("s", json!({"sequence": 3}))), "sequence");
    assert_eq!(box_says(&world, &brought("s", json!({"sequence": 9}))), "");
}

#[test]
fn what_a_bridge_brought_lives_for_ten_minutes_from_its_last_line() {
    let world = World::new();
    // The session has rested for two days, and its machine's clock is its own.
    let old = brought("s", json!({"sequence": 1, "status": "idle", "ts": now() - 2 * 86_400}));
    assert_eq!(box_says(&world, &old), "");
    let left = |world: &World| {
        assert_eq!(world.agents(&["cleanup"]).code, Some(0));
        world.session("s").is_some()
    };
    assert!(left(&world));
    assert!(world.session("s").unwrap()["age_seconds"].as_u64().unwrap() >= 2 * 86_400);
    let age = |world: &World, seconds: u64| {
        let mut stored = world.record_of("s");
        let then = stored["mono_ms"].as_u64().unwrap().checked_sub(seconds * 1000);
        stored["mono_ms"] = json!(then?);
        put(world, &stored, false);
        Some(())
    };
    if age(&world, 590).is_none() {
        return eprintln!("skipped the ages: this machine was started a moment ago");
    }
    assert!(left(&world));
    // A heartbeat: the same with a greater sequence.
    let mut beat = old.clone();
    beat["sequence"] = json!(2);
    assert_eq!(box_says(&world, &beat), "");
    age(&world, 590);
    assert!(left(&world));
    age(&world, 20);
    assert!(!left(&world));
}

#[test]
fn two_importers_of_one_bridge_keep_the_order() {
    let world = World::new();
    const SESSIONS: u64 = 20;
    const LAST: u64 = 40;
    let input = |first: u64| -> Vec<u8> {
        let mut records = Vec::new();
        for sequence in (first..=LAST).step_by(2) {
            for session in 0..SESSIONS {
                let detail = format!("step {sequence}");
                let changes = json!({"sequence": sequence, "detail": detail});
                records.push(brought(&format!("s{session}"), changes));
            }
        }
        lines(&records)
    };
    let codes = std::thread::scope(|scope| {
        let one = scope.spawn(|| import(&world, &["--bridge", "box"], &input(1)));
        let other = scope.spawn(|| import(&world, &["--bridge", "box"], &input(2)));
        [one.join().unwrap(), other.join().unwrap()]
    });
    for ran in codes {
        assert!(
            ran.out
                .lines()
                .all(|l| l.starts_with("accepted ") || l.starts_with("refused sequence:"))
        );
    }
    for session in 0..SESSIONS {
        let stored = world.record_of(&format!("s{session}"));
        assert_eq!((&stored["sequence"], &stored["detail"]), (&json!(LAST), &json!("step 40")));
    }
    assert!(world.files().iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn other_trackers_tell_of_living_processes() {
    let world = World::new();
    let agent = world.harness("claude");
    let other = world.harness("codex");
    let ms = now() * 1000;
    let state = |session: &str, agent: &str, pid: u32| {
        json!({"session_id": session, "agent": agent, "cwd": "/srv/x", "pid": pid, "terminal_id": "T1",
               "launch_id": "L1", "ts": ms, "method": "hook-env"})
    };
    let gone = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let legacy = json!({"session_id": "four", "cwd": "/srv/y", "pid": other.pid(), "ts": now() as f64 + 0.5});
    let mut before = state("past", "claude", agent.pid());
    before["ts"] = json!(ms - 3_600_000);
    let input = lines(&[
        state("one", "claude", agent.pid()),
        legacy,
        state("dead", "claude", gone),
        state("not", "claude", other.pid()),
        before,
        json!({"session_id": "a/b", "cwd": "/", "pid": 5, "ts": 5}),
        json!({"session_id": "x", "cwd": "/", "ts": 5}),
        json!({"session_id": "x", "cwd": 5, "pid": 5, "ts": 5}),
        json!({"session_id": "x", "cwd": "/", "pid": -5, "ts": 5}),
        json!({"session_id": "x", "cwd": "/", "pid": "5", "ts": 5}),
        json!({"session_id": "x", "cwd": "/", "pid": 5, "ts": "5"}),
        json!({"session_id": "", "cwd": "/", "pid": 5, "ts": 5}),
        json!({"session_id": "x", "agent": "y\u{7}", "cwd": "/", "pid": 5, "ts": 5}),
    ]);
    let args = ["--format", "session-state"];
    let got = reasons(&world, &args, &input);
    let bad = ["missing-field", "invalid-field"];
    assert_eq!(got[..5], ["", "", "no-process", "other-process", "other-process"]);
    assert!(got[5..].iter().all(|reason| bad.contains(&reason.as_str())), "{got:?}");
    let one = world.session("one").unwrap();
    let want = json!({"status": "discovered", "harness_id": "claude", "pid": agent.pid().to_string(),
                      "cwd": "/srv/x", "launch_id": "L1", "terminal_id": "T1", "method": "hook-env",
                      "ts": ms / 1000, "source": "import"});
    for (key, value) in want.as_object().unwrap() {
        assert_eq!(&one[key], value, "{key}");
    }
    let four = world.session("four").unwrap();
    assert_eq!((&four["harness_id"], &four["method"]), (&json!("other"), &json!("hook-stdin")));

    // What lookup prints goes in again; a session that has spoken keeps its status.
    let mut agent = agent;
    agent.hook(&["claude", "UserPromptSubmit"], &claude("one", "")).silent();
    let pid = agent.pid().to_string();
    let ran = world.agents(&["lookup", "--pid", &pid, "--format", "session-state"]);
    assert_eq!(reasons(&world, &args, ran.out.as_bytes()), [""]);
    assert_eq!(world.session("one").unwrap()["status"], "running");

    // A whole directory, what is no file of ours left out.
    let dir = world.path("sessions");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("1.json"), state("file", "codex", other.pid()).to_string()).unwrap();
    fs::write(dir.join("2.json"), "").unwrap();
    fs::write(dir.join("3.json"), "x".repeat(70_000)).unwrap();
    fs::write(dir.join("4.txt"), "{}").unwrap();
    symlink(dir.join("1.json"), dir.join("5.json")).unwrap();
    fs::write(dir.join(".6.json"), "{}").unwrap();
    let dir = dir.to_str().unwrap();
    let got = results(&world, &["--format", "session-state", dir], b"");
    let short: Vec<(&str, &str)> =
        got.iter().map(|r| (r["file"].as_str().unwrap(), r["reason"].as_str().unwrap())).collect();
    let want =
        [("1.json", ""), ("2.json", "not-json"), ("3.json", "too-long"), ("5.json", "unreadable")];
    assert_eq!(short, want);
    assert!(world.session("file").is_some());
    assert_eq!(import(&world, &[dir], b"").code, Some(65));
}

#[test]
fn over_a_bridge_other_trackers_name_no_process() {
    let world = World::new();
    let line = json!({"session_id": "s", "agent": "kimi-cli", "cwd": "/srv/x", "pid": 1, "launch_id": "L",
                      "ts": (now() - 90_000) * 1000});
    let args = ["--bridge", "box", "--format", "session-state"];
    let input = lines(&[line.clone(), line]);
    assert_eq!(reasons(&world, &args, &input), ["", "sequence"]);
    let stored = world.record();
    let want = json!({"pid": "", "harness_id": "kimi", "status": "discovered", "bridge": "box", "repo": "x"});
    for (key, value) in want.as_object().unwrap() {
        assert_eq!(&stored[key], value, "{key}");
    }
    assert_eq!(stored.get("launch_id"), None);
}

/// What a step of the model does.
#[derive(Debug)]
enum Step {
    /// An event of this machine on a session, without a process.
    Hook(usize),
    /// The end of such a session, if it has one.
    Notify(usize),
    /// Lines of a bridge: sessions with sequences, some of them lies.
    Bridge(usize, Vec<(usize, u64, u8)>),
    Retire(usize),
}

/// Who owns a record in the model, and the last sequence of a bridge's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Here,
    Bridge(usize, u64),
}

const BRIDGES: [&str; 2] = ["box", "far"];

/// After any order of hooks and two bridges every record belongs to whom the model
/// says, records of this machine change only by its own events, and what bridges
/// have told is the last that they could.
#[test]
fn hooks_and_bridges_in_any_order_are_as_the_model_says() {
    for seed in 0..24 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = World::new();
        let mut model: BTreeMap<usize, Owner> = BTreeMap::new();
        let mut local: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for step in 0..30 {
            let session = rng.usize(..6);
            let step = match rng.u8(..10) {
                0 | 1 => Step::Hook(session),
                2 => Step::Notify(session),
                3 if step > 10 => Step::Retire(rng.usize(..2)),
                _ => {
                    let line =
                        |rng: &mut fastrand::Rng| (rng.usize(..6), rng.u64(1..40), rng.u8(..6));
                    Step::Bridge(
                        rng.usize(..2),
                        (0..rng.usize(1..8)).map(|_| line(&mut rng)).collect(),
                    )
                }
            };
            play(&world, &step, &mut model);
            // What is of this machine changes in steps of this machine alone.
            let records = contents(&world);
            let owner = |bytes: &[u8]| {
                let record: Value = serde_json::from_slice(bytes).unwrap();
                record["bridge"].as_str().map(str::to_string)
            };
            let ours: BTreeMap<String, Vec<u8>> = records
                .iter()
                .filter(|(_, b)| owner(b).is_none())
                .map(|(n, b)| (n.clone(), b.clone()))
                .collect();
            if matches!(step, Step::Bridge(..) | Step::Retire(_)) {
                assert_eq!(ours, local, "seed {seed}: {step:?}");
            }
            local = ours;
            let mut found: BTreeMap<usize, Owner> = BTreeMap::new();
            for bytes in records.values() {
                let record: Value = serde_json::from_slice(bytes).unwrap();
                let session = record["session_id"].as_str().unwrap()[1..].parse().unwrap();
                let owner = match record["bridge"].as_str() {
                    None => Owner::Here,
                    Some(name) => Owner::Bridge(
                        BRIDGES.iter().position(|b| *b == name).unwrap(),
                        record["sequence"].as_u64().unwrap(),
                    ),
                };
                assert_eq!(record["pid"], "");
                assert!(found.insert(session, owner).is_none());
            }
            assert_eq!(found, model, "seed {seed}: {step:?}");
        }
    }
}

/// Plays a step on the store and on the model.
fn play(world: &World, step: &Step, model: &mut BTreeMap<usize, Owner>) {
    match step {
        Step::Hook(session) => {
            let payload = claude(&format!("s{session}"), "");
            world.run("tongs-hook", &["claude", "UserPromptSubmit"], payload.as_bytes()).silent();
            model.insert(*session, Owner::Here);
        }
        Step::Notify(session) => {
            let id = format!("s{session}");
            let args = ["notify", "--harness", "claude", "--session", &id, "--status", "ended"];
            assert_eq!(world.agents(&args).code, Some(0));
            model.insert(*session, Owner::Here);
        }
        Step::Bridge(bridge, told) => {
            let mut want = Vec::new();
            let mut input = Vec::new();
            for (session, sequence, lie) in told {
                let id = format!("s{session}");
                let line = match lie {
                    0 => record(&id, json!({"pid": "1", "sequence": sequence})),
                    1 => brought(&id, json!({"canonical_id": "fleet:v1:claude:0"})),
                    _ => brought(&id, json!({"sequence": sequence, "bridge": BRIDGES[1 - bridge]})),
                };
                input.push(line);
                want.push(match (lie, model.get(session)) {
                    (0, _) => "names-process",
                    (1, _) => "forged",
                    (_, Some(Owner::Here)) => "not-own",
                    (_, Some(Owner::Bridge(owner, _))) if owner != bridge => "other-bridge",
                    (_, Some(Owner::Bridge(_, last))) if sequence <= last => "sequence",
                    _ => {
                        model.insert(*session, Owner::Bridge(*bridge, *sequence));
                        ""
                    }
                });
            }
            assert_eq!(reasons(world, &["--bridge", BRIDGES[*bridge]], &lines(&input)), want);
        }
        Step::Retire(bridge) => {
            let ran = import(world, &["--bridge", BRIDGES[*bridge], "--retire"], b"");
            let before = model.len();
            model.retain(|_, owner| !matches!(owner, Owner::Bridge(b, _) if b == bridge));
            assert_eq!(ran.out, format!("removed {}\n", before - model.len()));
        }
    }
}

#[test]
fn what_is_over_makes_room_where_nobody_maintains() {
    let world = World::new();
    let first: Vec<Value> =
        (0..MAX_RECORDS).map(|n| brought(&format!("s{n}"), json!({}))).collect();
    assert_eq!(import(&world, &["--bridge", "box"], &lines(&first)).code, Some(0));
    assert_eq!(box_says(&world, &brought("one-more", json!({}))), "too-many-records");
    // Two of them were last told of more than ten minutes ago, one in another boot.
    for (id, change) in [("s1", json!({"mono_ms": 0})), ("s2", json!({"boot_id": "another"}))] {
        let file = world.record_files().into_iter().find(|file| {
            serde_json::from_slice::<Value>(&bytes(file)).unwrap()["session_id"] == id
        });
        let file = file.unwrap();
        let mut record: Value = serde_json::from_slice(&bytes(&file)).unwrap();
        for (key, value) in change.as_object().unwrap() {
            record[key] = value.clone();
        }
        fs::write(file, record.to_string()).unwrap();
    }
    let up: f64 =
        fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
    let room = if up > 660.0 { 2 } else { 1 };
    // A first line that does not fit waits for a count that is a second old.
    let mut child = world.command("tongs-bridge-import");
    child
        .args(["--bridge", "box"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = BufReader::new(output).lines();
    let mut accepted = 0;
    for n in 0.. {
        input.write_all(&lines(&[brought(&format!("new{n}"), json!({}))])).unwrap();
        if answers.next().unwrap().unwrap().starts_with("accepted") {
            accepted += 1;
        }
        if accepted == room {
            break;
        }
        assert!(n < 100_000, "there is no room");
    }
    drop(input);
    child.wait().unwrap();
    let left = world.sessions_json();
    assert_eq!(left.len(), MAX_RECORDS);
    assert!(!left.iter().any(|session| session["session_id"] == "s2"));
}

#[test]
fn a_line_that_leaves_out_time_and_directory_name_gets_them() {
    let world = World::new();
    let mut record = brought("s", json!({"cwd": "/srv/pit \u{e9}"}));
    for key in ["ts", "repo", "ts_ms", "started", "status_ms"] {
        record.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(box_says(&world, &record), "");
    let session = world.session("s").unwrap();
    assert_eq!(session["repo"], "pit \u{e9}");
    assert!(session["age_seconds"].as_u64().unwrap() < 60, "{session}");
}
