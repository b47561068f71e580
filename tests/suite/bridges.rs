//! Sessions of elsewhere: the export, the list of bridges and their supervisor,
//! and two machines in one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::find::{edit, notify};
use crate::status::{assert_schema, now, put, record};
use crate::watch::{Watcher, script};
use crate::world::{Harness, World, claude, eventually, finish, has_tool};

/// The lines of an export.
fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An export that goes on.
fn follow(world: &World) -> Watcher {
    let mut command = world.command("tongs-agents");
    command.args(["export", "--follow", "--jsonl", "--origin", "box"]);
    Watcher::of(command)
}

/// Waits for a line of a session with this status.
#[track_caller]
fn told(export: &Watcher, session: &str, status: &str) -> Value {
    export.until(&format!("{session} is {status}: {:?}", export.lines()), |line| {
        line["session_id"] == session && line["status"] == status
    })
}

#[test]
fn an_export_is_of_records_that_name_nothing_here() {
    let world = World::new();
    let ran = world.agents(&["export"]);
    ran.silent();
    assert!(!world.state().exists());
    let mut agent = world.harness("claude");
    let env = "env TMUX=/s,1,2 TMUX_PANE=%1 AGENT_LAUNCH_ID=L TONGS_AGENTS_PROFILE_ID=P AGENT_TERMINAL_ID=T";
    agent.hook_with(env, &["claude", "SessionStart"], &claude("s", "")).silent();
    agent
        .hook(
            &["claude", "PermissionRequest"],
            &claude("s", r#","tool_name":"Bash","prompt_id":"p""#),
        )
        .silent();
    notify(&world, "plain", "idle", None, "X=");
    put(&world, &record("bridged", json!({"bridge": "b", "pid": agent.pid()})), false);
    put(&world, &json!({"session_id": "old", "agent": "gone", "ts": now()}), true);
    put(&world, &record("foreign", json!({"pid_ns": "17", "secret": "x"})), false);
    let ran = world.agents(&["export", "--origin", "box"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut told = lines(&ran.out);
    told.sort_by_key(|line| line["session_id"].as_str().unwrap().to_string());
    let ids: Vec<&str> = told.iter().map(|line| line["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["foreign", "plain", "s"]);
    for line in &told {
        for (key, want) in [
            ("schema_version", json!(1)),
            ("instance_id", json!("unresolved")),
            ("process_identity", json!("unresolved")),
            ("terminal", json!("generic")),
            ("focus_target", json!({"kind": "unavailable"})),
            ("host", json!("box")),
        ] {
            assert_eq!(line[key], want, "{key}");
        }
        for key in [
            "pid",
            "process_start",
            "pid_ns",
            "boot_id",
            "boot_ms",
            "mono_ms",
            "terminal_env",
            "launch_id",
            "profile_id",
            "terminal_id",
            "turn_id",
            "secret",
            "arrival_sequence",
            "short_id",
            "bridge",
        ] {
            assert!(line.get(key).is_none(), "{key} in {line}");
        }
        let changes = json!({"harness_id": line["harness_id"], "instance_id": "unresolved"});
        let same = record(line["session_id"].as_str().unwrap(), changes);
        assert_eq!(line["canonical_id"], same["canonical_id"]);
        assert!(line["sequence"].as_u64().unwrap() > (now() - 60) * 1000);
    }
    let stored = world.record_of("s");
    for key in ["detail", "tool", "waiting_for", "waiting_tool", "ts", "cwd", "repo", "status_ms"] {
        assert_eq!(told[2][key], stored[key], "{key}");
    }
    // Such a line is a record: a reader takes it.
    let there = World::new();
    told.iter().for_each(|line| drop(put(&there, line, false)));
    assert_eq!(there.sessions_json().len(), 3);

    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(lines(&world.agents(&["export"]).out)[0]["host"], name.trim());
    let long = "x".repeat(65);
    for origin in ["", "a\nb", &long] {
        assert_eq!(world.agents(&["export", "--origin", origin]).code, Some(64), "{origin:?}");
    }
    fs::set_permissions(world.state(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!(world.agents(&["export"]).code, Some(1));
}

#[test]
fn an_export_follows_changes_ends_and_deaths() {
    let world = World::new();
    let export = follow(&world);
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let started = told(&export, "s", "started");
    agent.hook(&["claude", "Stop"], &claude("s", "")).silent();
    let idle = told(&export, "s", "idle");
    assert!(idle["sequence"].as_u64() > started["sequence"].as_u64());
    // Its process is gone, and no maintainer has been here.
    agent.kill();
    let ended = told(&export, "s", "ended");
    assert_eq!(ended["detail"], "session closed");
    assert!(ended["sequence"].as_u64() > idle["sequence"].as_u64());
    assert_eq!(world.record_of("s")["status"], "idle");

    // One that ends by its own word and then goes is told of once.
    notify(&world, "n", "running", None, "X=");
    told(&export, "n", "running");
    notify(&world, "n", "ended", None, "X=");
    told(&export, "n", "ended");
    notify(&world, "gone", "running", None, "X=");
    told(&export, "gone", "running");
    for file in world.record_files() {
        fs::remove_file(file).unwrap();
    }
    told(&export, "gone", "ended");
    let ends = export.events().into_iter().filter(|line| line["status"] == "ended");
    assert_eq!(ends.count(), 3, "{:?}", export.lines());

    // What only readers add is not told.
    notify(&world, "m", "waiting", None, "X=");
    told(&export, "m", "waiting");
    world.agents(&["ack", "m"]).silent();
    notify(&world, "last", "idle", None, "X=");
    told(&export, "last", "idle");
    assert_eq!(export.events().iter().filter(|line| line["session_id"] == "m").count(), 1);
    assert_eq!(export.stop(), "");
}

#[test]
fn a_later_export_goes_on_counting() {
    let world = World::new();
    notify(&world, "a", "running", None, "X=");
    let mut last = 0;
    for _ in 0..3 {
        let export = follow(&world);
        let sequence = told(&export, "a", "running")["sequence"].as_u64().unwrap();
        assert!(sequence > last);
        last = sequence;
    }
}

#[test]
fn an_export_ends_when_nobody_reads() {
    let world = World::new();
    notify(&world, "a", "running", None, "X=");
    let mut export = world.command("tongs-agents");
    export.args(["export", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = export.spawn().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(export.stdout.as_mut().unwrap(), &mut byte).unwrap();
    drop(export.stdout.take());
    let ended = export.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_bridged_session_says_where_it_is() {
    let world = World::new();
    for (session, more) in [
        ("a", json!({"bridge": "box", "host": "box"})),
        ("b", json!({"bridge": "box", "host": "inner", "branch": "main"})),
        ("c", json!({"bridge": "box"})),
        ("d", json!({"host": "claimed"})),
    ] {
        put(&world, &record(session, more), false);
    }
    let table = world.agents(&["status"]).out;
    for place in [" box:r ", " box/inner:r@main ", " r "] {
        assert!(table.contains(place), "{place}: {table}");
    }
    assert!(!table.contains("claimed"), "{table}");
    let fields = world.agents(&["status", "-o", "session_id,bridge,host", "--sort", "repo"]).out;
    assert!(fields.contains("b\tbox\tinner\n"), "{fields}");
}

/// Adds a bridge with this command.
#[track_caller]
fn add(world: &World, name: &str, command: &[&str]) {
    world.agents(&[&["bridge", "add", name, "--"], command].concat()).silent();
}

/// A bridge that is run, and what it says.
struct Run<'w> {
    child: Child,
    world: &'w World,
    name: String,
}

impl<'w> Run<'w> {
    fn start(world: &'w World, name: &str) -> Run<'w> {
        let mut command = world.command("tongs-agents");
        command.args(["bridge", "run", name]);
        Run::of(world, name, command)
    }

    fn of(world: &'w World, name: &str, mut command: Command) -> Run<'w> {
        let said = fs::File::create(world.path(&format!("said-{name}"))).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(said).spawn().unwrap();
        Run { child, world, name: name.to_string() }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.world.path(&format!("said-{}", self.name))).unwrap()
    }

    /// Waits until it has said this so many times.
    #[track_caller]
    fn says(&self, what: &str, times: usize) {
        eventually(&format!("{what}: {}", self.said()), || {
            (self.said().matches(what).count() >= times).then_some(())
        });
    }

    /// Kills it.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end by this signal; says how it did.
    fn end(&mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // So that its command goes, too; one in a namespace of its own does not hear it.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status();
        for _ in 0..500 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sessions that came over bridges. Its maintainer sees agents of other tests.
fn brought(world: &World) -> Vec<Value> {
    world.sessions_json().into_iter().filter(|session| session["bridge"].is_string()).collect()
}

/// The words that export the sessions of another world.
fn export_of(there: &World) -> Vec<String> {
    let home = format!("HOME={}", there.path("home").display());
    let program = there.path("bin/tongs-agents").display().to_string();
    let words = ["env", "-i", &home, &program, "export", "--follow", "--origin", "inner"];
    words.map(str::to_string).to_vec()
}

/// Waits until a session has this status here.
#[track_caller]
fn shows(world: &World, session: &str, status: &str) -> Value {
    eventually(&format!("{session} is {status}"), || {
        world.session(session).filter(|s| s["status"] == status)
    })
}

#[test]
fn bridges_are_a_private_list_of_names_and_words() {
    let world = World::new();
    assert_eq!(world.agents(&["bridge", "list"]).out, "No bridges.\n");
    assert!(!world.state().exists());
    add(&world, "box", &["ssh", "box", "tongs-agents", "export", "--follow", "a b'c", ""]);
    world.agents(&["bridge", "add", "a.1", "docker", "--json"]).silent();
    // Once more is no change, and something else is none either.
    world.agents(&["bridge", "add", "a.1", "--", "docker", "--json"]).silent();
    let ran = world.agents(&["bridge", "add", "a.1", "podman"]);
    assert_eq!((ran.code, ran.err.contains("already: docker --json")), (Some(1), true), "{ran:?}");
    let ran = world.agents(&["bridge", "list"]);
    let rows: Vec<String> =
        ran.out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows[1], "a.1 stopped 0 - docker --json", "{ran:?}");
    assert!(rows[2].starts_with("box stopped 0 - ssh box"), "{ran:?}");
    assert!(ran.out.contains(r"'a b'\''c' ''"), "{ran:?}");
    let list = world.agents(&["bridge", "list", "--json"]).json();
    assert_schema(&world, "bridge", &list);
    assert_eq!(list["bridges"][1]["command"][5], "a b'c");
    let file = world.state().join("bridges.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);

    for args in [
        &["bridge"][..],
        &["bridge", "x"],
        &["bridge", "add"],
        &["bridge", "add", "x"],
        &["bridge", "add", "x", "--"],
        &["bridge", "add", "x", ""],
        &["bridge", "add", "../x", "c"],
        &["bridge", "add", ".x", "c"],
        &["bridge", "add", "a b", "c"],
        &["bridge", "add", "--json", "x", "c"],
        &["bridge", "add", "x", "--help"],
        &["bridge", "add", "x", "-v", "--", "c"],
        &["bridge", "remove"],
        &["bridge", "remove", "box", "x"],
        &["bridge", "run", "box", "--json"],
        &["bridge", "list", "box"],
        &["bridge", "list", "--json-version", "2"],
    ] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}: {ran:?}");
    }
    for action in ["remove", "run"] {
        assert_eq!(world.agents(&["bridge", action, "none"]).code, Some(1));
    }
    world.agents(&["bridge", "remove", "a.1"]).silent();
    assert_eq!(world.agents(&["bridge", "list"]).out.matches('\n').count(), 2);
    fs::write(&file, "{").unwrap();
    for args in [&["bridge", "list"][..], &["bridge", "add", "x", "c"], &["bridge", "run", "box"]] {
        assert_eq!(world.agents(args).code, Some(65), "{args:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"{");
    fs::rename(&file, world.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(world.path("elsewhere"), &file).unwrap();
    assert_eq!(world.agents(&["bridge", "run", "box"]).code, Some(77));
}

#[test]
fn a_bridge_brings_what_happens_elsewhere_and_comes_back() {
    let (here, there) = (World::new(), World::new());
    let mut own = here.harness("claude");
    own.hook(&["claude", "SessionStart"], &claude("own", "")).silent();
    let before = here.record_of("own");
    let command = export_of(&there);
    add(&here, "box", &command.iter().map(String::as_str).collect::<Vec<_>>());
    let mut run = Run::start(&here, "box");

    let mut agent = there.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let session = shows(&here, "s", "started");
    assert_eq!((&session["bridge"], &session["host"]), (&json!("box"), &json!("inner")));
    assert!(here.agents(&["status"]).out.contains("box/inner:tmp"));
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    shows(&here, "s", "running");
    for args in [["bridge", "run", "box"], ["bridge", "remove", "box"]] {
        assert_eq!(here.agents(&args).code, Some(75), "{args:?}");
    }

    // The connection breaks, something happens meanwhile, and it comes back.
    let pattern = format!("HOME={}", there.path("home").display());
    let exporter = exporter_of(&pattern);
    assert!(Command::new("kill").args(["-KILL", &exporter]).status().unwrap().success());
    run.says("was ended by a signal, again in 0.", 1);
    agent.hook(&["claude", "Stop"], &claude("s", "")).silent();
    shows(&here, "s", "idle");
    run.says(": started\n", 2);
    agent.kill();
    shows(&here, "s", "ended");
    assert!(!run.said().contains("refused"), "{}", run.said());
    let exporter = exporter_of(&pattern);
    assert_eq!(run.end("-TERM"), Some(0));
    assert!(!std::path::Path::new(&format!("/proc/{exporter}")).exists());

    // With the bridge goes what it brought, and nothing else.
    here.agents(&["bridge", "remove", "box"]).silent();
    assert!(brought(&here).is_empty());
    assert_eq!(here.record_of("own"), before);
    assert_eq!(here.agents(&["bridge", "list"]).out, "No bridges.\n");
    assert!(!here.files().iter().any(|name| name.contains("tongs-bridge-")), "{:?}", here.files());
}

/// The pid of the export whose environment has this.
fn exporter_of(variable: &str) -> String {
    eventually("an exporter", || {
        fs::read_dir("/proc").unwrap().find_map(|entry| {
            let dir = entry.unwrap().path();
            let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
            let has =
                |bytes: &[u8], word: &str| bytes.split(|b| *b == 0).any(|w| w == word.as_bytes());
            let found = has(&read("environ"), variable) && has(&read("cmdline"), "--follow");
            found.then(|| dir.file_name().unwrap().to_str().unwrap().to_string())
        })
    })
}

#[test]
fn a_bridge_that_fails_is_tried_again_and_one_that_is_not_there_is_not() {
    let world = World::new();
    add(&world, "none", &["no-such-program"]);
    let ran = world.agents(&["bridge", "run", "none"]);
    assert_eq!(ran.code, Some(69));
    assert!(ran.err.starts_with("tongs-agents: cannot run 'no-such-program': "), "{ran:?}");

    add(&world, "bad", &["sh", "-c", "echo nonsense; echo more; echo; exit 7"]);
    let mut run = Run::start(&world, "bad");
    run.says("ended with 7, again in 0.", 1);
    run.says("ended with 7, again in 1.", 1);
    let said = run.said();
    assert_eq!(said.matches("line 1 was refused: ").count(), 2, "{said}");
    assert_eq!(said.matches("bridge 'bad': 2 lines were refused\n").count(), 2, "{said}");
    assert_eq!(run.end("-INT"), Some(0));
    assert!(brought(&world).is_empty());

    // One that does not want to end, with something that it has started.
    let script = "trap '' TERM; sleep 1000 & echo $! >pid; echo x; while :; do wait; done";
    add(&world, "stubborn", &["sh", "-c", script]);
    let mut run = Run::start(&world, "stubborn");
    run.says("refused", 1);
    let sleeper = fs::read_to_string(world.path("project/pid")).unwrap();
    assert_eq!(run.end("-HUP"), Some(0));
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
        stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    };
    eventually("what it started is gone", gone);
}

#[test]
fn what_a_bridges_command_says_is_passed_on_harmless_and_in_measure() {
    let world = World::new();
    let script =
        r"printf '\033]52;c;cm0=\007tongs-agents: all is well\n\rx\n' >&2; exec sleep 1000";
    add(&world, "esc", &["sh", "-c", script]);
    let mut run = Run::start(&world, "esc");
    run.says("all is well", 1);
    run.says("x\n", 1);
    assert_eq!(run.end("-TERM"), Some(0));
    let said = run.said();
    assert!(!said.contains(['\u{1b}', '\u{7}', '\r']), "{said:?}");
    let named = |line: &str| line.starts_with("tongs-agents: bridge 'esc': ");
    assert!(said.lines().all(named), "{said}");

    // A flood, with a last line without an end.
    let script = "yes 'much to say' | head -n 300000 >&2; echo nonsense; printf end >&2; exit 3";
    add(&world, "flood", &["sh", "-c", script]);
    let mut run = Run::start(&world, "flood");
    run.says("it says: much to say", 20);
    // Its pipe is full, and it waits.
    assert_eq!(run.end("-TERM"), Some(0));
    assert!(run.said().len() < 2000, "{}", run.said().len());
    let said = run.said();
    assert_eq!(said.matches("it says: much to say").count(), 20, "{said}");
    assert!(said.contains(" lines more\n"), "{said}");
}

#[test]
fn a_command_that_closes_its_output_still_says_how_it_ends() {
    let world = World::new();
    add(
        &world,
        "x",
        &["sh", "-c", "exec >&-; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7"],
    );
    let mut run = Run::start(&world, "x");
    run.says("ended with 7, again in", 2);
    assert_eq!(run.end("-TERM"), Some(0));
    assert!(!run.said().contains("signal"), "{}", run.said());
}

#[test]
fn a_store_that_is_replaced_gets_everything_again() {
    let (here, there) = (World::new(), World::new());
    notify(&there, "s", "waiting", None, "X=");
    let command = export_of(&there);
    add(&here, "box", &command.iter().map(String::as_str).collect::<Vec<_>>());
    let mut run = Run::start(&here, "box");
    shows(&here, "s", "waiting");
    fs::rename(here.state(), here.path("old")).unwrap();
    notify(&there, "s", "running", None, "X=");
    run.says("the store is another one now, again in", 1);
    let session = shows(&here, "s", "running");
    assert_eq!(session["bridge"], "box");
    fs::remove_dir_all(here.state()).unwrap();
    notify(&there, "s", "idle", None, "X=");
    shows(&here, "s", "idle");
    assert_eq!(run.end("-TERM"), Some(0));
    assert!(!run.said().contains("refused"), "{}", run.said());
}

#[test]
fn whether_a_bridge_is_up_and_when_it_last_spoke_can_be_seen() {
    let (here, there) = (World::new(), World::new());
    notify(&there, "s", "running", None, "X=");
    let command = export_of(&there);
    add(&here, "box", &command.iter().map(String::as_str).collect::<Vec<_>>());
    add(&here, "none", &["true"]);
    let mut run = Run::start(&here, "box");
    shows(&here, "s", "running");
    let list = || here.agents(&["bridge", "list", "--json"]).json();
    let bridges = list();
    assert_schema(&here, "bridge", &bridges);
    let state = |at: usize| {
        let bridge = &bridges["bridges"][at];
        (bridge["running"].clone(), bridge["sessions"].clone(), bridge["age_seconds"].clone())
    };
    assert_eq!((state(0).0, state(0).1), (json!(true), json!(1)));
    assert!(state(0).2.as_u64().unwrap() < 60);
    assert_eq!(state(1), (json!(false), json!(0), json!(null)));
    assert!(here.agents(&["bridge", "list"]).out.contains("running"));
    assert_eq!(run.end("-TERM"), Some(0));
    assert_eq!(list()["bridges"][0]["running"], false);
    // For five minutes what it said last is believed.
    assert_eq!(here.session("s").unwrap()["unverified"], false);
    let record = here.record_of("s");
    let back = |key: &str, ms: u64| json!(record[key].as_u64().unwrap().saturating_sub(ms));
    edit(&here, "s", json!({"boot_ms": back("boot_ms", 301_000)}));
    assert_eq!(here.session("s").unwrap()["unverified"], true);
    assert!(here.agents(&["status"]).out.contains("running (unverified)"));
    edit(&here, "s", json!({"boot_ms": record["boot_ms"], "boot_id": "x"}));
    assert_eq!(here.session("s").unwrap()["unverified"], true, "of another boot");
    edit(&here, "s", json!({"boot_id": record["boot_id"], "status": "ended"}));
    assert_eq!(here.session("s").unwrap()["unverified"], false);
    // A bridge that runs maintains the store: what is over goes.
    edit(&here, "s", json!({"status": "running", "mono_ms": 1, "boot_id": "x", "ts": 1_000_000}));
    fs::rename(there.state(), there.path("away")).unwrap();
    let stamp = here.sessions().join(".fleet-maintenance.stamp");
    let _ = fs::remove_file(stamp);
    let mut run = Run::start(&here, "box");
    eventually("it is gone", || here.session("s").is_none().then_some(()));
    assert_eq!(run.end("-TERM"), Some(0));
}

#[test]
fn the_way_to_a_bridged_session_is_the_users_own_command() {
    let world = World::new();
    add(&world, "box", &["ssh", "-p", "22", "me@box", "/opt/tongs-agents", "export", "--follow"]);
    add(&world, "other", &["docker", "exec", "dev", "tongs-agents", "export"]);
    for (session, bridge) in [("s", "box"), ("d", "other"), ("n", "nobody"), ("x;reboot", "box")] {
        let more = json!({
            "bridge": bridge, "host": "evil -oProxyCommand=x", "pid": "", "process_start": "",
            "instance_id": "unresolved", "process_identity": "unresolved",
        });
        put(&world, &record(session, more), false);
    }
    let way = "ssh -p 22 -t me@box /opt/tongs-agents focus s --attach";
    for args in [&["focus", "s"][..], &["focus", "s", "--dry-run"]] {
        let ran = world.agents(args);
        assert_eq!((ran.code, ran.out.trim_end()), (Some(1), way), "{ran:?}");
        assert!(ran.err.contains("behind the bridge box"), "{ran:?}");
    }
    let outcome = world.agents(&["focus", "s", "--json"]).json();
    assert_schema(&world, "focus", &outcome);
    assert_eq!(outcome["command"], json!(way.split(' ').collect::<Vec<_>>()));
    assert_eq!(outcome["state"], "unavailable");
    for session in ["d", "n", "x;reboot"] {
        let outcome = world.agents(&["focus", session, "--json"]).json();
        assert_eq!(outcome["command"], json!([]), "{session}");
    }
}

#[test]
fn attach_never_runs_what_leads_elsewhere() {
    let test = "attach_never_runs_what_leads_elsewhere";
    if !has_tool("script", test) {
        return;
    }
    let world = World::new();
    script(&world, "ssh", &format!("touch '{}'", world.path("ran").display()));
    add(&world, "box", &["ssh", "box", "tongs-agents", "export"]);
    let more = json!({
        "bridge": "box", "pid": "", "process_start": "", "instance_id": "unresolved",
        "process_identity": "unresolved",
    });
    put(&world, &record("s", more), false);
    let mut command = Command::new("script");
    world.bare(&mut command);
    command.args(["-qec", "tongs-agents focus s --attach", "/dev/null"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("ssh -t box tongs-agents focus s --attach"), "{ran:?}");
    assert!(!world.path("ran").exists());
}

/// The pid here of the sandbox's process of this name.
fn inside(sandbox: &Harness<'_>, name: &str) -> String {
    let children = |pid: &str| {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        list.unwrap_or_default().split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    eventually(name, || {
        let first = children(&sandbox.pid().to_string()).pop()?;
        children(&first).into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
        })
    })
}

#[test]
fn a_sandbox_and_its_host_each_in_a_namespace_of_its_own() {
    let test = "a_sandbox_and_its_host";
    let (here, there) = (World::new(), World::new());
    let fifo = here.path("fifo").display().to_string();
    assert!(Command::new("mkfifo").args(["-m", "600", &fifo]).status().unwrap().success());
    let export = format!(
        "while :; do tongs-agents export --follow --origin inner >'{fifo}' || sleep 0.05; done"
    );
    let Some(mut agent) = there.sandboxed("claude", &export, test) else { return };
    add(&here, "box", &["cat", &fifo]);
    let host = || {
        let mut command = Command::new("unshare");
        here.bare(&mut command);
        command.args([
            "-rpfm",
            "--mount-proc",
            "--kill-child",
            "tongs-agents",
            "bridge",
            "run",
            "box",
        ]);
        Run::of(&here, "box", command)
    };
    let run = host();
    let mut own = here.harness("claude");
    own.hook(&["claude", "SessionStart"], &claude("own", "")).silent();

    // Both live.
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let session = shows(&here, "s", "started");
    assert_eq!((&session["pid"], &session["unverified"]), (&json!(""), &json!(false)));
    let pid: u32 = there.record_of("s")["pid"].as_str().unwrap().parse().unwrap();
    assert!(pid < 100, "the agent has a number of its own in there: {pid}");
    assert!(there.session("own").is_none());

    // The host's side is killed, and comes back to what has happened meanwhile.
    run.kill();
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    agent.hook(&["claude", "Stop"], &claude("s", "")).silent();
    assert_eq!(here.session("s").unwrap()["status"], "started");
    let mut run = host();
    shows(&here, "s", "idle");

    // The agent dies without a word: here that is seen, not guessed.
    let outer = inside(&agent, "claude");
    assert!(Command::new("kill").args(["-KILL", &outer]).status().unwrap().success());
    shows(&here, "s", "ended");
    agent.kill();

    // The whole sandbox is killed, and another one takes the session up again.
    let mut agent = there.sandboxed("claude", &export, test).unwrap();
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    shows(&here, "s", "started");
    agent.kill();
    run.says("ended with 0, again in", 1);
    // The export may have seen the agent die just before itself.
    let last = here.session("s").unwrap()["status"].clone();
    assert!(["started", "ended"].contains(&last.as_str().unwrap()), "{last}");
    here.agents(&["cleanup"]);
    assert!(here.session("s").is_some(), "for ten minutes from its last line");
    let mut agent = there.sandboxed("claude", &export, test).unwrap();
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    shows(&here, "s", "running");
    assert!(!run.said().contains("refused"), "{}", run.said());
    assert_eq!(here.session("own").unwrap()["status"], "started");
    agent.kill();
    run.end("-KILL");
}

#[test]
fn the_state_directory_of_a_container_is_exported_from_outside() {
    let there = World::new();
    let Some(mut agent) = there.sandboxed("claude", ":", "the_state_directory") else { return };
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let here = World::new();
    let export = || {
        let mut command = here.command("tongs-agents");
        command.arg("export").env("TONGS_AGENTS_STATE_DIR", there.state());
        lines(&finish(command, b"").out)
    };
    // By its number it would be another process here, or none.
    let told = export();
    assert_eq!((told.len(), &told[0]["status"]), (1, &json!("started")));
    assert!(told[0].get("pid").is_none());
    // The maintenance out here finds it, and keeps it however old it is.
    edit(&there, "s", json!({"ts": now() - 25 * 3600, "mono_ms": 0}));
    let cleanup = || {
        let mut command = here.command("tongs-agents");
        command.args(["cleanup", "--dry-run", "--json"]);
        command.env("TONGS_AGENTS_STATE_DIR", there.state());
        finish(command, b"").json()["removed"].clone()
    };
    assert_eq!(cleanup(), 0, "{}", there.record());
    agent.kill();
    edit(&there, "s", json!({"boot_id": ""}));
    eventually("nobody has seen it for a day", || (cleanup() == 1).then_some(()));
}

#[test]
fn many_machines_through_a_stream_of_redis() {
    let test = "many_machines_through_a_stream_of_redis";
    if !["redis-server", "redis-cli", "jq"].iter().all(|tool| has_tool(tool, test)) {
        return;
    }
    let here = World::new();
    let socket = here.path("redis").display().to_string();
    let mut redis = Command::new("redis-server");
    here.bare(&mut redis);
    redis.args(["--port", "0", "--unixsocket", &socket, "--unixsocketperm", "700", "--save", ""]);
    let mut redis = redis.stdout(Stdio::null()).spawn().unwrap();
    eventually("redis", || fs::metadata(&socket).ok());
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/examples");
    let machines = [World::new(), World::new()];
    let mut senders: Vec<Child> = machines
        .iter()
        .map(|there| {
            let mut send = Command::new("sh");
            there.bare(&mut send);
            send.arg(format!("{examples}/redis-send.sh")).args(["sessions", "-s", &socket]);
            send.process_group(0).spawn().unwrap()
        })
        .collect();
    notify(&machines[0], "a", "running", None, "X=");
    let receive = format!("{examples}/redis-receive.sh");
    add(&here, "fleet", &["sh", &receive, "sessions", "-s", &socket]);
    let mut run = Run::start(&here, "fleet");
    assert_eq!(shows(&here, "a", "running")["bridge"], "fleet");
    // What somebody else puts into the stream is no line, and does no harm.
    for fields in [
        &["record", "x\ny"][..],
        &["record", "9999999999999-0\nrecord\n{}"],
        &["9999999999999-0", "9999999999999-0"],
        &["record", "\u{1b}[2J", "more", "{}"],
        &["record", ""],
    ] {
        let mut put = Command::new("redis-cli");
        put.args(["-s", &socket, "XADD", "sessions", "*"]).args(fields);
        let ran = finish(put, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    notify(&machines[1], "b", "waiting", None, "X=");
    shows(&here, "b", "waiting");
    notify(&machines[0], "a", "idle", None, "X=");
    shows(&here, "a", "idle");
    assert_eq!(run.end("-TERM"), Some(0));
    for sender in &mut senders {
        let group = format!("-{}", sender.id());
        assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
        sender.wait().unwrap();
    }
    redis.kill().unwrap();
    redis.wait().unwrap();
}

#[test]
fn the_devcontainer_has_a_store_of_its_own() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/examples/devcontainer.json");
    let text = fs::read_to_string(path).unwrap();
    let (head, body): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.trim_start().starts_with("//"));
    let config: Value = serde_json::from_str(&body.join("\n")).unwrap();
    let mounts = config["mounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 1, "the program and nothing else");
    assert!(
        mounts[0].as_str().unwrap().starts_with("type=bind,readonly,source=/usr/local/bin/tongs,")
    );
    // The command for the host is one.
    let add = head.iter().find_map(|line| line.strip_prefix("//     tongs-agents ")).unwrap();
    let world = World::new();
    world.agents(&add.split(' ').collect::<Vec<_>>()).silent();
    let list = world.agents(&["bridge", "list", "--json"]).json();
    let command = &list["bridges"][0]["command"];
    assert_eq!(
        (&command[0], &command[1], &command[6]),
        (&json!("docker"), &json!("exec"), &json!("tongs-agents"))
    );
}
