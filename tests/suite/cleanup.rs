//! The maintainer: what it finds, what it removes, and what it leaves alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::world::{World, claude, finish, has_tool};

fn cleanup(world: &World, args: &[&str]) -> Value {
    let ran = world.agents(&[&["cleanup", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()
}

/// Runs the maintainer and returns the sessions that went. Agents of other
/// tests are discovered too: this machine's processes are everybody's.
fn removed(world: &World) -> Vec<String> {
    let before = names(world);
    cleanup(world, &[]);
    let after = names(world);
    before.into_iter().filter(|name| !after.contains(name)).collect()
}

/// Whether a session is of this process.
fn is_of(session: &Value, pid: u32) -> bool {
    session["pid"] == json!(pid.to_string())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Changes fields of the only record that this session has.
fn edit(world: &World, session: &str, changes: &[(&str, Value)]) {
    for file in world.record_files() {
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        if record["session_id"] == session {
            for (key, value) in changes {
                record[*key] = value.clone();
            }
            fs::write(&file, record.to_string()).unwrap();
        }
    }
}

/// Makes a record's last event so many seconds older on all clocks.
fn age(world: &World, session: &str, seconds: u64) {
    for file in world.record_files() {
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        if record["session_id"] == session {
            record["ts"] = (record["ts"].as_u64().unwrap() - seconds).into();
            for key in ["mono_ms", "boot_ms"] {
                record[key] = record[key].as_u64().unwrap().saturating_sub(seconds * 1000).into();
            }
            fs::write(&file, record.to_string()).unwrap();
        }
    }
}

fn set_old(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

/// The sessions that were reported, hidden ones included.
fn names(world: &World) -> Vec<String> {
    let ran = world.agents(&["status", "--jsonl", "--all"]);
    let mut names: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|s| s["record_kind"] != "process")
        .map(|s| s["session_id"].as_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dead_agents_record_goes_and_a_living_ones_stays() {
    let world = World::new();
    let (mut one, mut two) = (world.harness("claude"), world.harness("codex"));
    one.hook(&["claude", "SessionStart"], &claude("one", "")).silent();
    two.hook(&["codex", "SessionStart"], &claude("two", "")).silent();
    assert!(removed(&world).is_empty());
    let pid = one.pid();
    one.kill();
    let before = world.files();
    let dry = cleanup(&world, &["--dry-run"]);
    assert!(dry["removed"].as_u64().unwrap() >= 1 && dry["dry_run"] == true, "{dry}");
    assert_eq!(world.files(), before);
    assert_eq!(removed(&world), ["one"]);
    assert_eq!(names(&world), ["two"]);
    let of = |pid: u32| world.files().contains(&format!(".tongs-proc-v1-{pid}"));
    assert!(!of(pid) && of(two.pid()));
}

#[test]
fn a_zombie_is_dead() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    // Ended, and not waited for: its entry is still there.
    assert!(
        Command::new("kill").args(["-9", &agent.pid().to_string()]).status().unwrap().success()
    );
    let stat = format!("/proc/{}/stat", agent.pid());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    assert_eq!(removed(&world), ["s"]);
}

#[test]
fn a_pid_that_is_another_process_now_is_dead() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    // The same pid, another start.
    let file = world.record_files()[0].clone();
    let text = fs::read_to_string(&file).unwrap();
    let start = world.record()["process_start"].as_str().unwrap().to_string();
    fs::remove_file(&file).unwrap();
    let pid = agent.pid().to_string();
    let ran = world.agents(&[
        "notify",
        "--harness",
        "claude",
        "--session",
        "s",
        "--status",
        "idle",
        "--pid",
        &pid,
        "--instance",
        "x",
    ]);
    ran.silent();
    edit(&world, "s", &[("process_start", json!("1"))]);
    assert!(text.contains(&start));
    assert_eq!(removed(&world), ["s"]);
    // A process that is not the harness, though pid and start are right.
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    world
        .agents(&[
            "notify",
            "--harness",
            "claude",
            "--session",
            "t",
            "--status",
            "idle",
            "--pid",
            &pid,
        ])
        .silent();
    world
        .agents(&[
            "notify",
            "--harness",
            "other",
            "--session",
            "u",
            "--status",
            "idle",
            "--pid",
            &pid,
        ])
        .silent();
    cleanup(&world, &[]);
    assert!(!names(&world).contains(&"t".to_string()), "sleep is no claude");
    assert!(names(&world).contains(&"u".to_string()), "an emitter's process may be anything");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    cleanup(&world, &[]);
    assert!(!names(&world).contains(&"u".to_string()));
}

#[test]
fn a_record_of_another_boot_is_dead_and_a_missing_boot_is_no_mismatch() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let file = world.record_files()[0].clone();
    let mut record = world.record();
    record.as_object_mut().unwrap().remove("boot_id");
    record.as_object_mut().unwrap().remove("pid_ns");
    fs::write(&file, record.to_string()).unwrap();
    assert!(removed(&world).is_empty());
    edit(&world, "s", &[("boot_id", json!("00000000-0000-0000-0000-000000000000"))]);
    assert_eq!(removed(&world), ["s"]);
}

#[test]
fn ages_are_strict_and_follow_the_documented_limits() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    agent.hook(&["claude", "SessionEnd"], &claude("s", "")).silent();
    age(&world, "s", 295);
    assert!(removed(&world).is_empty());
    age(&world, "s", 10);
    assert_eq!(removed(&world), ["s"], "ended more than five minutes ago");

    world
        .agents(&["notify", "--harness", "other", "--session", "p", "--status", "running"])
        .silent();
    age(&world, "p", 595);
    assert!(removed(&world).is_empty());
    age(&world, "p", 10);
    assert_eq!(removed(&world), ["p"], "no process, and no event for ten minutes");
}

#[test]
fn a_step_of_the_wall_clock_or_a_suspend_expires_nothing() {
    let world = World::new();
    world
        .agents(&["notify", "--harness", "other", "--session", "p", "--status", "running"])
        .silent();
    // As after a step forward: the wall says hours, the monotonic clock seconds.
    edit(&world, "p", &[("ts", json!(now() - 9000)), ("ts_ms", json!((now() - 9000) * 1000))]);
    assert!(removed(&world).is_empty());
    // A record of another boot has only the wall clock.
    edit(&world, "p", &[("boot_id", json!("00000000-0000-0000-0000-000000000000"))]);
    assert_eq!(removed(&world), ["p"]);
}

#[test]
fn a_record_of_another_pid_namespace_is_kept_for_a_day_and_shown_unverified() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    edit(&world, "s", &[("pid_ns", json!("17"))]);
    agent.kill();
    assert!(removed(&world).is_empty());
    assert_eq!(world.session("s").unwrap()["unverified"], true);
    edit(&world, "s", &[("boot_id", json!("")), ("ts", json!(now() - 24 * 3600 - 5))]);
    assert_eq!(removed(&world), ["s"]);
}

#[test]
fn a_containers_live_agent_is_found_by_its_namespace_and_inner_pid() {
    if !has_tool("unshare", "a_containers_live_agent") {
        return;
    }
    let world = World::new();
    world.stub("claude");
    let payload = world.path("p.json");
    fs::write(&payload, claude("inside", "")).unwrap();
    // Inside, the agent has a small pid; outside, another one.
    let line = format!(
        "mount -t proc proc /proc && exec claude --norc -c \"sh -c 'tongs-hook claude SessionStart <{}; :'; echo ready; read line\"",
        payload.display()
    );
    let mut command = Command::new("unshare");
    world.bare(&mut command);
    command
        .args(["-rpfm", "--kill-child", "sh", "-c", &line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 6];
    if std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).is_err() {
        eprintln!("skipped a_containers_live_agent: no pid namespace can be made here");
        let _ = child.wait();
        return;
    }
    let record = world.record();
    assert_eq!(record["session_id"], "inside");
    // Old enough to go, were it unknown.
    edit(&world, "inside", &[("ts", json!(now() - 25 * 3600)), ("mono_ms", json!(0))]);
    assert!(removed(&world).is_empty(), "it was found");
    // `unshare` forks; its child is the agent, as seen from here.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let outer = format!("proc-{}", children.trim());
    assert!(world.session(&outer).is_none(), "and not recorded a second time");
    drop(child.stdin.take());
    child.wait().unwrap();
    edit(&world, "inside", &[("boot_id", json!(""))]);
    assert_eq!(removed(&world), ["inside"], "now it is unknown, and older than a day");
}

#[test]
fn agents_that_no_hook_reported_are_discovered_once_and_never_beside_a_record() {
    let world = World::new();
    let quiet = world.harness("claude");
    let mut known = world.harness("codex");
    known.hook(&["codex", "SessionStart"], &claude("known", "")).silent();
    let ours = |world: &World| -> Vec<Value> {
        world.sessions_json().into_iter().filter(|s| is_of(s, quiet.pid())).collect()
    };
    cleanup(&world, &[]);
    let found = ours(&world);
    assert_eq!(found.len(), 1);
    let session = &found[0];
    for (key, want) in [
        ("session_id", json!(format!("proc-{}", quiet.pid()))),
        ("record_kind", json!("process")),
        ("source", json!("process")),
        ("status", json!("discovered")),
        ("harness_id", json!("claude")),
        ("cwd", json!(world.path("project").to_str().unwrap())),
        ("terminal", json!("")),
    ] {
        assert_eq!(session[key], want, "{key}");
    }
    assert!(
        !world
            .sessions_json()
            .iter()
            .any(|s| is_of(s, known.pid()) && s["record_kind"] == "process")
    );
    cleanup(&world, &[]);
    assert_eq!(ours(&world).len(), 1);
    // The first hook's record hides it; it goes with the process.
    let mut quiet = quiet;
    quiet.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let all: Vec<Value> =
        world.sessions_json().into_iter().filter(|s| is_of(s, quiet.pid())).collect();
    assert_eq!((all.len(), &all[0]["session_id"]), (1, &json!("s")));
    let process = format!("proc-{}", quiet.pid());
    quiet.kill();
    assert_eq!(removed(&world), ["s"]);
    assert!(world.session(&process).is_none());
}

#[test]
fn helpers_are_not_discovered() {
    let world = World::new();
    world.stub("claude");
    fs::write(world.path("project/mcp"), "read line").unwrap();
    let mut command = Command::new(world.path("bin/claude"));
    world.bare(&mut command);
    let mut child = command.arg("mcp").stdin(Stdio::piped()).spawn().unwrap();
    cleanup(&world, &[]);
    assert!(!world.sessions_json().iter().any(|s| is_of(s, child.id())));
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_pidless_record_of_a_launch_goes_with_the_launch() {
    let world = World::new();
    let mut agent = world.harness("claude");
    launched(&world, "side");
    assert!(removed(&world).is_empty(), "no process of the launch is known: it has not ended");
    agent
        .hook_with("env TONGS_AGENTS_LAUNCH_ID=L", &["claude", "SessionStart"], &claude("main", ""))
        .silent();
    assert!(removed(&world).is_empty());
    agent.kill();
    assert_eq!(removed(&world), ["main", "side"]);
    assert!(names(&world).is_empty());
}

/// A record without a process of the launch "L".
fn launched(world: &World, session: &str) {
    let mut command = world.command("tongs-agents");
    command
        .args(["notify", "--harness", "other", "--session", session, "--status", "running"])
        .env("TONGS_AGENTS_LAUNCH_ID", "L");
    finish(command, b"").silent();
}

#[test]
fn a_launch_goes_on_while_one_of_its_agents_lives() {
    let world = World::new();
    let (mut outer, mut inner) = (world.harness("claude"), world.harness("codex"));
    let env = "env TONGS_AGENTS_LAUNCH_ID=L";
    outer.hook_with(env, &["claude", "SessionStart"], &claude("outer", "")).silent();
    inner.hook_with(env, &["codex", "SessionStart"], &claude("inner", "")).silent();
    launched(&world, "side");
    // Another launch's end is nobody's business.
    let mut other = world.harness("claude");
    let env = "env TONGS_AGENTS_LAUNCH_ID=M";
    other.hook_with(env, &["claude", "SessionStart"], &claude("other", "")).silent();
    other.kill();
    assert_eq!(removed(&world), ["other"]);
    outer.kill();
    assert_eq!(removed(&world), ["outer"], "the inner agent lives");
    inner.kill();
    assert_eq!(removed(&world), ["inner", "side"]);
}

#[test]
fn a_launch_goes_on_while_one_of_its_processes_is_unknown() {
    let world = World::new();
    let (mut here, mut there) = (world.harness("claude"), world.harness("claude"));
    let env = "env TONGS_AGENTS_LAUNCH_ID=L";
    here.hook_with(env, &["claude", "SessionStart"], &claude("here", "")).silent();
    there.hook_with(env, &["claude", "SessionStart"], &claude("there", "")).silent();
    edit(&world, "there", &[("pid_ns", json!("17"))]);
    launched(&world, "side");
    here.kill();
    there.kill();
    assert_eq!(removed(&world), ["here"]);
    // Seen from here after all, it is dead.
    let ns = world.record_of("side")["pid_ns"].clone();
    edit(&world, "there", &[("pid_ns", ns)]);
    assert_eq!(removed(&world), ["side", "there"]);
}

#[test]
fn the_end_of_a_session_is_not_that_of_its_process() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let env = "env TONGS_AGENTS_LAUNCH_ID=L";
    agent.hook_with(env, &["claude", "SessionStart"], &claude("s", "")).silent();
    launched(&world, "side");
    agent.hook(&["claude", "SessionEnd"], &claude("s", "")).silent();
    assert!(removed(&world).is_empty(), "the process may open another");
    agent.kill();
    assert_eq!(removed(&world), ["s", "side"]);
}

#[test]
fn only_a_pidless_record_of_a_program_that_is_no_harness_ends_with_its_launch() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let env = "env TONGS_AGENTS_LAUNCH_ID=L";
    agent.hook_with(env, &["claude", "SessionStart"], &claude("s", "")).silent();
    launched(&world, "side");
    // A hook whose agent was not found; and a program with a process of its own.
    let mut command = world.command("tongs-hook");
    command.args(["codex", "SessionStart"]).env("TONGS_AGENTS_LAUNCH_ID", "L");
    finish(command, claude("pidless", "").as_bytes()).silent();
    agent.kill();
    assert_eq!(removed(&world), ["s", "side"]);
    assert_eq!(names(&world), ["pidless"]);
}

/// The maintainer judges, and while it waits for the lock of the record without
/// a process, an agent of the launch appears.
#[test]
fn a_launch_that_goes_on_after_all_keeps_its_records() {
    if !has_tool("flock", "a_launch_that_goes_on_after_all") {
        return;
    }
    let world = World::new();
    let env = "env TONGS_AGENTS_LAUNCH_ID=L";
    launched(&world, "side");
    let lock = world.files().into_iter().find(|f| f.starts_with(".fleet-v1-")).unwrap();
    let mut outer = world.harness("claude");
    outer.hook_with(env, &["claude", "SessionStart"], &claude("outer", "")).silent();
    outer.kill();
    let mut inner = world.harness("codex");
    let mut holder = Command::new("flock")
        .arg(world.sessions().join(&lock))
        .args(["sh", "-c", "echo held; read line; :"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();
    let mut command = world.command("tongs-agents");
    let cleanup = command.arg("cleanup").stdout(Stdio::null()).spawn().unwrap();
    let waits = format!("-> FLOCK  ADVISORY  WRITE {} ", cleanup.id());
    while !fs::read_to_string("/proc/locks").unwrap().contains(&waits) {
        std::thread::yield_now();
    }
    inner.hook_with(env, &["codex", "SessionStart"], &claude("inner", "")).silent();
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(cleanup.wait_with_output().unwrap().status.success());
    assert_eq!(names(&world), ["inner", "side"]);
}

#[test]
fn a_launch_without_any_process_on_record_has_not_ended() {
    let world = World::new();
    launched(&world, "side");
    let mut agent = world.launched(&["--launch-id", "L"], "claude");
    assert!(removed(&world).is_empty());
    // The record of the process itself is one too, and no hook has to speak.
    agent.shell("true").silent();
    agent.kill();
    assert_eq!(removed(&world), ["side"]);
}

#[test]
fn legacy_records_are_judged_without_a_lock() {
    let world = World::new();
    cleanup(&world, &[]);
    let put = |name: &str, record: Value| {
        fs::write(world.sessions().join(name), record.to_string()).unwrap()
    };
    let agent = world.harness("claude");
    put(
        "live.json",
        json!({"session_id": "live", "agent": "claude", "pid": agent.pid().to_string(), "ts": now()}),
    );
    put(
        "dead.json",
        json!({"session_id": "dead", "agent": "claude", "pid": "4194304", "ts": now()}),
    );
    put("old.json", json!({"session_id": "old", "agent": "claude", "ts": now() - 700}));
    put("new.json", json!({"session_id": "new", "agent": "claude", "ts": now() - 100}));
    put("proc-x.json", json!({"session_id": "proc-4194304", "agent": "claude", "ts": now()}));
    let legacy = || world.files().into_iter().filter(|f| !f.contains("fleet-"));
    let before: Vec<String> = legacy().collect();
    cleanup(&world, &[]);
    assert_eq!(names(&world), ["live", "new"]);
    let gone: Vec<String> =
        before.into_iter().filter(|f| legacy().all(|left| left != *f)).collect();
    assert_eq!(gone, ["dead.json", "old.json", "proc-x.json"]);
}

/// The two lock files of the session "s" of this agent.
fn own_locks(world: &World, agent: &crate::world::Harness<'_>) -> Vec<String> {
    use tongs::record::id::{File, Part, canonical, identity};
    let instance = world.record_of("s")["instance_id"].as_str().unwrap().to_string();
    assert!(instance.starts_with(&format!("{}:", agent.pid())));
    let (claude, s) = (Part::Plain("claude"), Part::Plain("s"));
    let record = File::RecordLock.name(&canonical(claude, s, Part::Plain(&instance)));
    let identity = File::IdentityLock.name(&identity(claude, s));
    vec![record.text().to_string(), identity.text().to_string()]
}

#[test]
fn leftovers_of_dead_writers_go_when_they_are_old() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let digest = "0".repeat(64);
    let put = |name: &str, seconds: u64| {
        let path = world.sessions().join(name);
        fs::write(&path, "").unwrap();
        set_old(&path, seconds);
    };
    put(".fleet-tmp-1-0.tmp", 590);
    put(".fleet-tmp-2-0.tmp", 610);
    put(&format!(".fleet-v1-{digest}.lock"), 24 * 3600 - 60);
    put(&format!(".fleet-v1-1{}.lock", &digest[1..]), 24 * 3600 + 60);
    put(&format!(".fleet-identity-v1-2{}.lock", &digest[1..]), 24 * 3600 + 60);
    put(".tongs-proc-v1-4194304", 0);
    put("notes.txt", 1_000_000);
    // The living session's own locks are old too.
    let own: Vec<String> = own_locks(&world, &agent);
    for name in &own {
        set_old(&world.sessions().join(name), 30 * 3600);
    }
    cleanup(&world, &[]);
    let files = world.files();
    let has = |name: &str| files.iter().any(|f| f == name);
    assert!(has(".fleet-tmp-1-0.tmp") && !has(".fleet-tmp-2-0.tmp"), "{files:?}");
    assert!(
        has(&format!(".fleet-v1-{digest}.lock"))
            && !has(&format!(".fleet-v1-1{}.lock", &digest[1..])),
        "{files:?}"
    );
    assert!(
        !has(&format!(".fleet-identity-v1-2{}.lock", &digest[1..]))
            && !has(".tongs-proc-v1-4194304"),
        "{files:?}"
    );
    assert!(has("notes.txt"), "not ours");
    assert!(own.iter().all(|lock| has(lock)), "{files:?}");
}

#[test]
fn removing_a_record_keeps_its_lock_files_for_a_day() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let locks = own_locks(&world, &agent);
    for lock in &locks {
        set_old(&world.sessions().join(lock), 40 * 3600);
    }
    agent.kill();
    assert_eq!(removed(&world), ["s"]);
    for lock in &locks {
        assert!(world.sessions().join(lock).exists(), "{lock}");
    }
    for lock in &locks {
        set_old(&world.sessions().join(lock), 40 * 3600);
    }
    cleanup(&world, &[]);
    assert!(locks.iter().all(|lock| !world.sessions().join(lock).exists()));
}

#[test]
fn one_run_at_a_time_and_one_every_five_seconds() {
    let test = "one_run_at_a_time";
    if !has_tool("flock", test) {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    agent.kill();
    let stamp = world.sessions().join(".fleet-maintenance.stamp");
    // A run a moment ago: an unforced one is not needed, a forced one works.
    fs::write(&stamp, (now() - 1).to_string()).unwrap();
    fs::set_permissions(&stamp, fs::Permissions::from_mode(0o600)).unwrap();
    world.agents(&["cleanup", "--if-due"]).silent();
    assert_eq!(names(&world), ["s"]);
    // A stamp in the future or unreadable does not count.
    for text in [(now() + 3).to_string(), "x".into(), String::new()] {
        fs::write(&stamp, &text).unwrap();
        let before = fs::read(&stamp).unwrap();
        world.agents(&["cleanup", "--if-due"]).silent();
        assert_ne!(fs::read(&stamp).unwrap(), before, "{text}");
    }
    assert!(names(&world).is_empty());
    let text = fs::read_to_string(&stamp).unwrap();
    assert!(text.parse::<u64>().unwrap().abs_diff(now()) < 60, "epoch seconds");

    let lock = world.sessions().join(".fleet-maintenance.lock");
    let held = |args: &str| {
        let mut command = Command::new("flock");
        world.bare(&mut command);
        command.arg(&lock).args(["sh", "-c", &format!("tongs-agents {args}; echo $?")]);
        finish(command, b"")
    };
    let ran = held("cleanup --json");
    assert_eq!(
        ran.out,
        "{\"removed\":0,\"discovered\":0,\"interrupted\":0,\"dry_run\":false,\"skipped\":\"busy\"}\n1\n"
    );
    assert_eq!(ran.err, "tongs-agents: another run is at work\n");
    let ran = held("cleanup --if-due");
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0\n", ""));
}

#[test]
fn a_held_record_lock_makes_the_run_unavailable_and_keeps_its_stamp() {
    if !has_tool("flock", "a_held_record_lock") {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    agent.kill();
    let lock = world.files().into_iter().find(|f| f.starts_with(".fleet-v1-")).unwrap();
    let mut command = Command::new("flock");
    world.bare(&mut command);
    command.arg(world.sessions().join(lock)).args([
        "sh",
        "-c",
        "tongs-agents cleanup --json; echo $?",
    ]);
    let ran = finish(command, b"");
    assert!(ran.out.contains("\"skipped\":\"unavailable\"") && ran.out.ends_with("1\n"), "{ran:?}");
    assert!(world.sessions().join(".fleet-maintenance.stamp").exists());
    assert_eq!(names(&world), ["s"]);
    assert_eq!(removed(&world), ["s"]);
}

/// The promise that a newer record is never removed: the maintainer judges, and
/// while it waits for the record's lock its holder writes a newer version.
#[test]
fn a_record_that_changed_after_it_was_judged_is_kept() {
    if !has_tool("flock", "a_record_that_changed_after_it_was_judged") {
        return;
    }
    let world = World::new();
    world
        .agents(&["notify", "--harness", "other", "--session", "s", "--status", "running"])
        .silent();
    age(&world, "s", 700);
    let record = world.record_files()[0].clone();
    let lock = world.files().into_iter().find(|f| f.starts_with(".fleet-v1-")).unwrap();
    // The newer version, which is over as well: judged again, it would go.
    let newer = world.path("newer");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&newer, text.replace("\"arrival_sequence\":1", "\"arrival_sequence\":2")).unwrap();
    fs::set_permissions(&newer, fs::Permissions::from_mode(0o600)).unwrap();
    let mut holder = Command::new("flock");
    holder.arg(world.sessions().join(&lock)).args([
        "sh",
        "-c",
        &format!("echo held; read line; mv '{}' '{}'", newer.display(), record.display()),
    ]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();
    let mut command = world.command("tongs-agents");
    let cleanup = command
        .args(["cleanup", "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The kernel lists who waits for which lock.
    let waits = format!("-> FLOCK  ADVISORY  WRITE {} ", cleanup.id());
    while !fs::read_to_string("/proc/locks").unwrap().contains(&waits) {
        std::thread::yield_now();
    }
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(cleanup.wait_with_output().unwrap().status.success());
    assert_eq!(world.record_of("s")["arrival_sequence"], 2);
    assert_eq!(removed(&world), ["s"], "the next run judges it by itself");
}
