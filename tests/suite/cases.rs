//! Faults of other monitors of agents, as their users reported them in public,
//! each as a scenario through the built program. `TC-nn` is the number of a
//! report in this project's list of them. A test's comment says what went wrong
//! elsewhere and what is right here. Where the list proposes something else than
//! the status rules do, the rules stand and the comment says so.
//!
//! TC-32's other part, a notice that is held back for a few seconds, is in
//! `watch.rs`. Not tested, because there is nothing to test:
//!
//! * TC-10, in part: activity in a transcript as a sign that a prompt was
//!   dismissed. Transcripts are not read.
//! * TC-45, in part: which of two sessions in a pane is gone to. Both are listed,
//!   and going to either shows the same pane.
//! * TC-46, in part: the pane by the terminal of the process. A process that a
//!   daemon hosts has none of its own, so that its pane is said to be unavailable.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tongs::harness::{self, EventRow, Kind, Pick, ROWS, Row};

use crate::payloads::with_payload;
use crate::world::{Harness, World, bytes, claude};

/// The fields of a wait.
const WAIT: [&str; 5] =
    ["waiting_for", "waiting_since", "waiting_tool", "waiting_agent", "waiting_from"];

/// What a harness says at one moment, and the status of that session afterwards;
/// `none` where there is no session.
struct Moment {
    event: String,
    payload: Value,
    session: String,
    want: String,
}

/// A process of a harness, and the harness's word for its hooks.
struct Agent<'w> {
    process: Harness<'w>,
    harness: &'static str,
}

impl<'w> Agent<'w> {
    fn start(world: &'w World, harness: &'static str) -> Agent<'w> {
        Agent { process: world.harness(harness), harness }
    }

    fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Runs events one after the other, silently, and compares the status that
    /// readers see after each.
    #[track_caller]
    fn run(&mut self, moments: &[Moment]) {
        let mut script = String::new();
        for Moment { event, payload, .. } in moments {
            script.push_str(&format!(
                "tongs-hook {} {event} <<'END'\n{payload}\nEND\n\
                 tongs-agents status --all -o session_id,status 2>&1; echo =\n",
                self.harness
            ));
        }
        let ran = self.process.shell(&script);
        let seen: Vec<&str> = ran.out.split("=\n").collect();
        assert_eq!((seen.len(), ran.err.as_str()), (moments.len() + 1, ""), "{ran:?}");
        for (at, (moment, seen)) in moments.iter().zip(seen).enumerate() {
            let mut sessions = seen.lines().filter_map(|line| line.split_once('\t'));
            let found = sessions.find(|(id, _)| *id == moment.session);
            let status = found.map_or("none", |(_, status)| status);
            let events: Vec<&str> = moments[..=at].iter().map(|m| m.event.as_str()).collect();
            let case = format!("{} {events:?} {}: {seen}", self.harness, moment.payload);
            assert_eq!(status, moment.want, "{case}");
        }
    }

    /// Runs a scene: a line for each event, with its name, its fields and the
    /// status of its session afterwards. The session is `s` unless `session_id`
    /// says another. A field is `key=value`; a word alone is the tool, or the type
    /// of a notification.
    #[track_caller]
    fn play(&mut self, scene: &str) {
        self.run(&scene.lines().filter_map(moment).collect::<Vec<_>>());
    }

    /// Runs one event, as a line of a scene has it, and says what became of it.
    fn outcome(&mut self, line: &str) -> String {
        let said = moment(&format!("{line} ?")).unwrap();
        let report = self.process.strict(&[self.harness, &said.event], &said.payload.to_string());
        let word = |key: &str| report[key].as_str().unwrap().to_owned();
        format!("{} {}{}", word("outcome"), word("reason"), word("status"))
    }
}

/// A moment by its line in a scene; none of an empty line.
fn moment(line: &str) -> Option<Moment> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [event, fields @ .., want] = &words[..] else { return None };
    let mut payload = json!({"session_id": "s", "cwd": "/tmp"});
    for field in fields {
        let alone = if *event == "Notification" { "notification_type" } else { "tool_name" };
        let (key, value) = field.split_once('=').unwrap_or((alone, field));
        let value = serde_json::from_str(value).unwrap_or(json!(value));
        payload[key] = value;
    }
    let session = payload["session_id"].as_str().unwrap().to_owned();
    Some(Moment { event: event.to_string(), payload, session, want: want.to_string() })
}

/// The status of a session as readers see it; `none` where there is no session.
fn status(world: &World, id: &str) -> String {
    world.session(id).map_or("none".into(), |s| s["status"].as_str().unwrap().into())
}

/// Asserts that a record holds nothing of a wait.
#[track_caller]
fn waits_no_more(record: &Value) {
    let left: Vec<&str> = WAIT.into_iter().filter(|key| record.get(*key).is_some()).collect();
    assert!(left.is_empty(), "{left:?} in {record}");
}

/// The file of the stored record of a session.
#[track_caller]
fn file_of(world: &World, id: &str) -> PathBuf {
    let is_of =
        |file: &PathBuf| serde_json::from_slice::<Value>(&bytes(file)).unwrap()["session_id"] == id;
    world.record_files().into_iter().find(is_of).unwrap()
}

/// Changes a stored record, as time or another program would.
#[track_caller]
fn edit(world: &World, id: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let file = file_of(world, id);
    let mut record: Map<String, Value> = serde_json::from_slice(&bytes(&file)).unwrap();
    change(&mut record);
    fs::write(file, Value::Object(record).to_string()).unwrap();
}

/// Sets one field of a stored record.
#[track_caller]
fn set(world: &World, id: &str, key: &str, value: Value) {
    edit(world, id, |record| {
        record.insert(key.into(), value);
    });
}

/// Makes a record's last event so many seconds older on all clocks.
#[track_caller]
fn age(world: &World, id: &str, seconds: u64) {
    edit(world, id, |record| {
        for (key, unit) in [("ts", 1), ("ts_ms", 1000), ("mono_ms", 1000), ("boot_ms", 1000)] {
            let then = record[key].as_u64().unwrap().saturating_sub(seconds * unit);
            record.insert(key.into(), then.into());
        }
    });
}

/// Makes the next events older than a record by seconds, as if a hook that
/// began after theirs had been the faster one.
#[track_caller]
fn outrun(world: &World, id: &str) {
    edit(world, id, |record| {
        let later = record["boot_ms"].as_u64().unwrap() + 9000;
        record.insert("boot_ms".into(), later.into());
    });
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Runs the maintainer.
#[track_caller]
fn cleanup(world: &World) {
    let ran = world.agents(&["cleanup", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// The sessions of this process that have not ended.
fn living(world: &World, pid: u32) -> Vec<String> {
    let is_of = |s: &&Value| s["pid"] == json!(pid.to_string()) && s["status"] != "ended";
    let all = world.sessions_json();
    all.iter().filter(is_of).map(|s| s["session_id"].as_str().unwrap().into()).collect()
}

/// A shell line that runs a program of this name, which runs the hooks of a scene
/// as its children and ends without telling. The statuses are not looked at.
fn program(world: &World, name: &str, harness: &str, scene: &str) -> String {
    if !world.path("bin").join(name).exists() {
        world.stub(name);
    }
    let mut script = String::new();
    for Moment { event, payload, .. } in scene.lines().filter_map(moment) {
        script.push_str(&format!("tongs-hook {harness} {event} '{payload}'\n"));
    }
    let count = fs::read_dir(world.path("project")).unwrap().count();
    let file = world.path("project").join(format!("life-{count}"));
    fs::write(&file, script + ":\n").unwrap();
    format!("{name} --norc '{}'\n", file.display())
}

// ---- A: turns that end without a hook ----

/// TC-03 (Mr8BitHK/claude-terminal 1): a turn that ended without a word left its
/// mark until the next prompt, and not even that took all of it away. A prompt
/// begins a clean turn: nothing is left of the wait, the turns go on counting, and
/// what the broken turn still sends changes nothing.
#[test]
fn a_prompt_begins_a_clean_turn_whatever_became_of_the_one_before() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play("SessionStart started");
    for (at, (broken, next)) in [("A", "B"), ("B", "C"), ("C", "D")].into_iter().enumerate() {
        agent.play(&format!(
            "UserPromptSubmit prompt_id={broken}       running
             PreToolUse Bash prompt_id={broken}        running
             PermissionRequest Bash prompt_id={broken} waiting
             UserPromptSubmit prompt_id={next}         running"
        ));
        let record = world.record_of("s");
        waits_no_more(&record);
        assert_eq!(
            (&record["turn"], &record["turn_id"], &record["detail"], &record["tool"]),
            (&json!(2 * at + 2), &json!(next), &json!("processing prompt"), &json!(""))
        );
        for event in ["PermissionRequest Bash", "PostToolUse Bash", "Stop", "StopFailure"] {
            let late = agent.outcome(&format!("{event} prompt_id={broken}"));
            assert_eq!(late, "ignored late", "{event}");
        }
        assert_eq!(status(&world, "s"), "running");
    }
}

/// TC-04 (manaflow-ai/cmux 2488, 2489, 4390): a limit, an error of the service or
/// a permission that nobody gave in time ends the turn by another event than a
/// stop, and sessions stayed at work for ever. Such a turn is over. The list
/// proposes idle; by the status rules it is `error`, with what went wrong.
#[test]
fn a_turn_that_fails_is_over_and_says_why() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for why in ["rate_limit", "overloaded", "billing_error", "max_output_tokens", "unheard_of"] {
        // What comes late or by itself does not say that it is well again.
        agent.play(&format!(
            "UserPromptSubmit         running
             PreToolUse Bash          running
             PermissionRequest Bash   waiting
             StopFailure error={why}  error
             PostToolUse Bash         error
             MessageDisplay           error
             Notification idle_prompt error"
        ));
        let record = world.record_of("s");
        waits_no_more(&record);
        assert_eq!(record["detail"], format!("turn failed: {why}"));
    }
    agent.play(
        "UserPromptSubmit running
         Stop             idle",
    );
}

/// TC-05 (manaflow-ai/cmux 8628): where a stop is the only way out of being at
/// work, one lost hook spoils the session for good. There are others: the remark
/// that it is the user's turn, a failure, the next prompt, a new start, the end,
/// and the maintainer when the process is gone. The record says which event
/// decided. Until one comes the session is shown as quiet, and not as something
/// that nobody said.
#[test]
fn a_lost_stop_is_not_the_only_way_out_of_a_turn() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (way_out, decided) in [
        ("Notification idle_prompt   idle", "claude.notification"),
        ("StopFailure                error", "claude.stop-failure"),
        ("UserPromptSubmit           running", "claude.prompt-submit"),
        ("SessionStart source=resume started", "claude.session-start"),
        ("SessionEnd reason=other    ended", "claude.session-end"),
    ] {
        let turn = "UserPromptSubmit running
                    PreToolUse Bash  running
                    PostToolUse Bash running\n";
        agent.play(&format!("{turn}{way_out}"));
        assert_eq!(world.record_of("s")["last_event"], decided);
    }
    agent.play("UserPromptSubmit running");
    assert_eq!(world.session("s").unwrap()["quiet"], false);
    age(&world, "s", 901);
    let session = world.session("s").unwrap();
    assert_eq!(
        (&session["status"], &session["quiet"], &session["needs_attention"]),
        (&json!("running"), &json!(true), &json!(false))
    );
    agent.process.kill();
    cleanup(&world);
    assert_eq!(status(&world, "s"), "none");
}

/// TC-07 (im-ian/acorn 516), TC-20 (brizzai/fleet 113): a poll took a living
/// process for one at work, a look at the screen took a fresh wait away. Only an
/// event changes a status, and only one that is not older than the record: not
/// readers, not the maintainer, not whether the process runs, sleeps or stands.
#[test]
fn nothing_but_a_newer_event_changes_a_status() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let pid = agent.pid();
    for line in [
        "SessionStart           started",
        "UserPromptSubmit       running",
        "PermissionRequest Bash waiting",
        "StopFailure            error",
        "Stop                   idle",
        "SessionEnd             ended",
    ] {
        agent.play(line);
        let before = bytes(file_of(&world, "s"));
        for name in ["-CONT", "-STOP"] {
            signal(name, pid);
            for args in [
                &["status", "--json"][..],
                &["status", "--line", "plain"],
                &["show", "s"],
                &["cleanup"],
            ] {
                assert_eq!(world.agents(args).code, Some(0), "{args:?}");
            }
        }
        signal("-CONT", pid);
        assert_eq!(bytes(file_of(&world, "s")), before, "{line}");
    }
    agent.play(
        "UserPromptSubmit       running
         PermissionRequest Bash waiting",
    );
    outrun(&world, "s");
    let before = world.record_of("s");
    for event in ["UserPromptSubmit", "PostToolUse Bash", "Stop", "SessionStart"] {
        assert_eq!(agent.outcome(event), "written waiting", "{event}");
    }
    for key in WAIT.into_iter().chain(["status", "detail", "turn", "started", "last_event"]) {
        assert_eq!(world.record_of("s").get(key), before.get(key), "{key}");
    }
    age(&world, "s", 10);
    assert_eq!(agent.outcome("PostToolUse Bash"), "written running");
}

/// TC-10 (agent-of-empires 2941): a question that the user dismisses sends
/// nothing, for its tool never runs. It stays a wait and its age tells, until the
/// next prompt, the end of the turn or the remark that it is the user's turn. No
/// age by itself ends it.
#[test]
fn a_dismissed_question_stays_a_wait_with_its_age_until_something_is_said() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for sign in ["PermissionRequest Bash", "PreToolUse AskUserQuestion", "PreToolUse ExitPlanMode"]
    {
        for said in [
            "UserPromptSubmit         running",
            "Notification idle_prompt idle",
            "Stop                     idle",
            "SessionEnd               ended",
        ] {
            agent.play(&format!(
                "UserPromptSubmit running
                 {sign}           waiting"
            ));
            let long_ago = now() - 86_400;
            set(&world, "s", "waiting_since", json!(long_ago));
            age(&world, "s", 7200);
            cleanup(&world);
            let session = world.session("s").unwrap();
            assert_eq!(
                (&session["status"], &session["waiting_since"], &session["needs_attention"]),
                (&json!("waiting"), &json!(long_ago), &json!(true))
            );
            assert!(session["age_seconds"].as_u64().unwrap() >= 7200);
            agent.play(said);
            waits_no_more(&world.record_of("s"));
        }
    }
}

/// TC-11 (manaflow-ai/cmux 5129): killed agents, an end that was cut off and an
/// end without the session's id left marks behind. The process decides: when it
/// is gone, a zombie included, the maintainer removes the record, whatever it
/// says. The list proposes to find the session of such an end by its process; the
/// payload's id is what the format goes by, so that the event is dropped.
#[test]
fn an_end_that_is_lost_cut_off_or_nameless_leaves_nothing_behind() {
    let world = World::new();
    let mut agents: Vec<_> = (0..4).map(|_| Agent::start(&world, "claude")).collect();
    for (agent, last) in agents.iter_mut().zip([
        "PreToolUse Bash        session_id=killed   running",
        "PermissionRequest Bash session_id=zombie   waiting",
        "Stop                   session_id=nameless idle",
        "Stop                   session_id=living   idle",
    ]) {
        agent.play(last);
    }
    for payload in [r#"{"reason":"other"}"#, r#"{"session_id":"","reason":"other"}"#] {
        let report = agents[2].process.strict(&["claude", "SessionEnd"], payload);
        let told = (report["outcome"].as_str(), report["reason"].as_str());
        assert_eq!(told, (Some("dropped"), Some("session-id")));
        agents[2].process.hook(&["claude", "SessionEnd"], payload).silent();
    }
    assert_eq!(status(&world, "nameless"), "idle");
    let zombie = agents[1].pid();
    signal("-9", zombie);
    let stat = format!("/proc/{zombie}/stat");
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    agents.remove(2).process.kill();
    agents.remove(0).process.kill();
    cleanup(&world);
    let left = ["killed", "zombie", "nameless", "living"].map(|id| status(&world, id));
    assert_eq!(left, ["none", "none", "none", "idle"]);
}

// ---- B: waits that are missed or wrong ----

/// TC-12 (Ataraxy-Labs/opensessions 4), TC-13 (ingo-eichhorst/Irrlicht 488),
/// TC-14 (anthropics/claude-code 58965), TC-22 (y49/tlive 49): a session that asks
/// for a permission was shown at work, or one of the two signs was dropped and it
/// hung in silence. Each sign by itself makes a wait at once; both together make
/// one, in either order and any number of times.
#[test]
fn a_permission_is_a_wait_at_once_by_either_sign_and_once_by_both() {
    let (request, notice) = ("PermissionRequest Bash", "Notification permission_prompt");
    for harness in ["claude", "qwen"] {
        let world = World::new();
        let mut agent = Agent::start(&world, harness);
        for signs in [
            &[request][..],
            &[notice],
            &[request, notice],
            &[notice, request],
            &[notice, request, request, notice],
        ] {
            agent.play(&format!(
                "UserPromptSubmit running
                 PreToolUse Bash  running
                 {}               waiting",
                signs[0]
            ));
            let session = world.session("s").unwrap();
            let shown = (session["waiting_for"].as_str(), session["needs_attention"].as_bool());
            assert_eq!(shown, (Some("permission"), Some(true)));
            set(&world, "s", "waiting_since", json!(1_700_000_000));
            for sign in &signs[1..] {
                agent.play(&format!("{sign} waiting"));
                assert_eq!(world.record_of("s")["waiting_since"], 1_700_000_000, "{signs:?}");
            }
            agent.play(
                "PostToolUse Bash running
                 Stop             idle",
            );
            waits_no_more(&world.record_of("s"));
        }
        // Both at the same time.
        let both = [request, notice].map(|sign| {
            let Moment { event, payload, .. } = moment(&format!("{sign} ?")).unwrap();
            format!("tongs-hook {harness} {event} '{payload}' &")
        });
        for _ in 0..4 {
            agent.play("UserPromptSubmit running");
            agent.process.shell(&format!("{} wait", both.join(" "))).silent();
            assert_eq!(status(&world, "s"), "waiting");
            agent.play("PostToolUse Bash running");
        }
    }
}

/// TC-15 (anthropics/claude-code 85192), TC-29 (github/app 3054): a session with a
/// question was listed as idle, or as waiting without saying for what. A wait has
/// a status of its own, and says its reason and the tool.
#[test]
fn a_wait_is_no_idleness_and_says_what_it_is_for() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (sign, reason, tool) in [
        ("PermissionRequest Bash", "permission", "Bash"),
        ("PreToolUse AskUserQuestion", "question", "AskUserQuestion"),
        ("PermissionRequest AskUserQuestion", "question", "AskUserQuestion"),
        ("PreToolUse ExitPlanMode", "plan", "ExitPlanMode"),
        ("PermissionRequest ExitPlanMode", "plan", "ExitPlanMode"),
        ("Elicitation mcp_server_name=db", "elicitation", ""),
        ("Notification elicitation_dialog", "elicitation", ""),
        ("Notification permission_prompt", "permission", ""),
    ] {
        agent.play(&format!(
            "UserPromptSubmit running
             {sign}           waiting"
        ));
        let fields = "session_id,status,waiting_for,waiting_tool,needs_attention";
        let told = world.agents(&["status", "-o", fields]).out;
        assert_eq!(told, format!("s\twaiting\t{reason}\t{tool}\ttrue\n"), "{sign}");
        let all = world.agents(&["status", "--json"]).json();
        let counts = ["waiting", "idle", "running", "needs_attention"];
        assert_eq!(counts.map(|key| all["summary"][key].as_u64().unwrap()), [1, 0, 0, 1]);
    }
}

/// TC-16 (asheshgoplani/agent-deck 114), TC-17 (brizzai/fleet 137): a question or a
/// plan to be agreed to came as the start of a tool, and the session was shown at
/// work while the user was asked. It waits at once, and the permission that the
/// harness asks for the same tool does not make another wait of it. Answered,
/// refused or passed over by a new prompt, the wait is over.
#[test]
fn a_question_or_a_plan_waits_at_once_and_until_it_is_answered() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (tool, reason, detail) in [
        ("AskUserQuestion", "question", "waiting for user input"),
        ("ExitPlanMode", "plan", "plan ready for review"),
    ] {
        for answer in [
            &format!("PostToolUse {tool}        running"),
            &format!("PostToolUseFailure {tool} running"),
            &format!("PermissionDenied {tool}   running"),
            "UserPromptSubmit running",
            "Stop idle",
        ] {
            agent.play(&format!(
                "UserPromptSubmit  running
                 PreToolUse {tool} waiting"
            ));
            set(&world, "s", "waiting_since", json!(1_700_000_000));
            // Other tools that ran beside it are done.
            agent.play(&format!(
                "PermissionRequest {tool}       waiting
                 Notification permission_prompt waiting
                 PostToolUse Bash               waiting
                 PostToolBatch                  waiting"
            ));
            let record = world.record_of("s");
            assert_eq!(
                (&record["waiting_for"], &record["detail"], &record["waiting_since"]),
                (&json!(reason), &json!(detail), &json!(1_700_000_000))
            );
            agent.play(answer);
            waits_no_more(&world.record_of("s"));
        }
    }
}

/// An event of OpenCode's bus about a session, with the status of session `s`
/// afterwards.
fn bus(event: &str, id: &str, more: Value, want: &str) -> Moment {
    let mut properties = json!({"sessionID": id});
    properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let payload = json!({"type": event, "properties": properties});
    Moment { event: event.into(), payload, session: "s".into(), want: want.into() }
}

/// TC-19 (YoanWai/agent-manager 482): permissions and questions of OpenCode were
/// never seen. They are events of its bus, under a new and an older name.
#[test]
fn permissions_and_questions_of_opencode_are_waits() {
    let world = World::new();
    let mut agent = Agent::start(&world, "opencode");
    let busy = |want| bus("session.status", "s", json!({"status": {"type": "busy"}}), want);
    let ask = |event| bus(event, "s", json!({"permission": "bash", "patterns": ["rm"]}), "waiting");
    let question = || bus("question.asked", "s", json!({"questions": []}), "waiting");
    let replied = |event| bus(event, "s", json!({"requestID": "r", "reply": "once"}), "running");
    let tool = Moment {
        event: "tool.execute.before".into(),
        payload: json!({"input": {"tool": "bash", "sessionID": "s"}, "output": {}}),
        session: "s".into(),
        want: "running".into(),
    };
    let created = bus("session.created", "s", json!({"info": {"id": "s"}}), "started");
    agent.run(&[created, busy("running"), tool]);
    for (ask, reason, reply) in [
        (ask("permission.asked"), "permission", "permission.replied"),
        (ask("permission.updated"), "permission", "permission.replied"),
        (question(), "question", "question.replied"),
    ] {
        agent.run(&[ask, busy("waiting")]);
        assert_eq!(world.session("s").unwrap()["waiting_for"], reason);
        agent.run(&[replied(reply)]);
        waits_no_more(&world.record_of("s"));
    }
    let idle = bus("session.idle", "s", json!({}), "idle");
    agent.run(&[question(), idle]);
    waits_no_more(&world.record_of("s"));
}

/// TC-23 (hoangsonww/Claude-Code-Agent-Monitor 338): a remark that the agent is
/// idle has the words of one that asks, and was taken for a wait. Its type
/// decides. The list proposes to read the words where the type is not known; by
/// the status rules a row looks at one field, so that such a remark keeps what is.
/// Where a harness gives words only, they decide.
#[test]
fn the_type_of_a_remark_decides_and_not_its_words() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (kind, running, waiting, idle) in [
        ("permission_prompt", "waiting", "waiting", "waiting"),
        ("elicitation_dialog", "waiting", "waiting", "waiting"),
        ("idle_prompt", "idle", "idle", "idle"),
        ("auth_success", "running", "waiting", "idle"),
        ("agent_completed", "running", "waiting", "idle"),
        ("agent_needs_input", "running", "waiting", "idle"),
        ("elicitation_complete", "running", "waiting", "idle"),
        ("of_next_year", "running", "waiting", "idle"),
    ] {
        let mut moments = Vec::new();
        for (before, want) in [
            ("UserPromptSubmit       running", running),
            ("PermissionRequest Bash waiting", waiting),
            ("Stop                   idle", idle),
        ] {
            moments.extend(moment("UserPromptSubmit running"));
            moments.extend(moment(before));
            let mut remark = moment(&format!("Notification {kind} {want}")).unwrap();
            remark.payload["message"] = json!("Claude is waiting for your input");
            moments.push(remark);
        }
        agent.run(&moments);
    }
    let mut agent = Agent::start(&world, "droid");
    for (words, want) in [
        ("Droid needs your permission to run it", "waiting"),
        ("Droid is waiting for your input", "idle"),
    ] {
        let mut remark = moment(&format!("Notification session_id=d {want}")).unwrap();
        remark.payload["message"] = json!(words);
        let prompt = moment("UserPromptSubmit session_id=d running").unwrap();
        agent.run(&[prompt, remark]);
    }
}

/// TC-26 (manaflow-ai/cmux 1301), TC-27 (accessd/tmux-agent-indicator 16): the mark
/// of a permission stayed after it was given, because no event was heard that says
/// so. The end of the tool says it, and its failure and its refusal; so do a
/// prompt, a start and every end. The list has the start of a tool among them: in
/// a harness that tells the end of each tool, the start of another one, which runs
/// beside it, says nothing of the one that waits.
#[test]
fn a_wait_ends_with_what_answers_it_and_with_nothing_else() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let others = "PreToolUse Read                waiting
                  PostToolUse Read               waiting
                  PostToolUseFailure Read        waiting
                  PostToolUse Bash agent_id=a1   waiting
                  SubagentStop agent_id=a1       waiting
                  ElicitationResult              waiting
                  MessageDisplay                 waiting
                  PostToolBatch                  waiting
                  CwdChanged                     waiting
                  Notification permission_prompt waiting\n";
    for (at, answer) in [
        "PostToolUse Bash           running",
        "PostToolUseFailure Bash    running",
        "PermissionDenied Bash      running",
        "UserPromptSubmit           running",
        "Stop                       idle",
        "StopFailure                error",
        "SessionStart source=resume started",
        "SessionEnd                 ended",
    ]
    .into_iter()
    .enumerate()
    {
        agent.play(&format!(
            "UserPromptSubmit       running
             PermissionRequest Bash waiting
             {}{answer}",
            if at == 0 { others } else { "" }
        ));
        waits_no_more(&world.record_of("s"));
    }
}

/// TC-28 (manaflow-ai/cmux 9863): sessions that were gone went on asking for their
/// user. An ended session needs nobody, however long ago it ended and whatever it
/// asked; one whose process is gone is removed.
#[test]
fn a_session_that_is_over_needs_nobody() {
    let world = World::new();
    let (mut one, mut two) = (Agent::start(&world, "claude"), Agent::start(&world, "claude"));
    let asks = |id| format!("PermissionRequest Bash session_id={id} waiting\n");
    one.play(&(asks("s") + "SessionEnd ended"));
    two.play(&asks("dead"));
    two.process.kill();
    cleanup(&world);
    for seconds in [0, 200] {
        age(&world, "s", seconds);
        let session = world.session("s").unwrap();
        assert_eq!(
            (&session["status"], &session["needs_attention"], &session["quiet"]),
            (&json!("ended"), &json!(false), &json!(false))
        );
    }
    assert_eq!(status(&world, "dead"), "none");
    assert_eq!(world.agents(&["status", "--attention", "-o", "session_id"]).out, "");
    assert_eq!(world.agents(&["status", "--json"]).json()["summary"]["needs_attention"], 0);
    assert_eq!(world.agents(&["status", "--line", "plain"]).out.trim(), "");
    // Late words of the ended one do not wake it.
    for event in ["PermissionRequest Bash", "Notification permission_prompt", "Stop"] {
        assert_eq!(one.outcome(event), "ignored ended", "{event}");
    }
}

/// TC-31 (herdrdev/herdr 2268): agents that showed the list of sessions to take up
/// again were counted as idle. No hook tells of it. Such a process is
/// `discovered`, and a session before its first prompt `started`; neither is idle
/// and neither needs attention. The list proposes `unknown`, which the status rules
/// do not have.
#[test]
fn an_agent_before_its_first_prompt_is_not_idle() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let process = format!("proc-{}", agent.pid());
    cleanup(&world);
    assert_eq!(status(&world, &process), "discovered");
    age(&world, &process, 600);
    assert_eq!(world.session(&process).unwrap()["needs_attention"], false);
    agent.play("SessionStart source=resume started");
    assert_eq!(status(&world, &process), "none");
    age(&world, "s", 600);
    assert_eq!(world.session("s").unwrap()["needs_attention"], false);
    agent.play(
        "UserPromptSubmit running
         Stop             idle",
    );
}

/// TC-32 (flolep2607/cctop, its own description of 0.40.0): in auto mode most
/// permissions are decided by the harness within seconds. Each is a wait until it
/// is decided; given or refused, it is over, also when the hooks of both ran at the
/// same time and the request's was the slower one.
#[test]
fn a_permission_that_the_harness_decides_itself_is_soon_over() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play("UserPromptSubmit permission_mode=auto running");
    for (tool, decided) in [
        ("Bash", "PermissionDenied"),
        ("Edit", "PostToolUse"),
        ("Edit", "PostToolUseFailure"),
        ("Bash", "PermissionDenied"),
    ] {
        agent.play(&format!(
            "PreToolUse {tool} permission_mode=auto        running
             PermissionRequest {tool} permission_mode=auto waiting
             {decided} {tool} permission_mode=auto         running"
        ));
        waits_no_more(&world.record_of("s"));
        outrun(&world, "s");
        let slow = agent.outcome(&format!("PermissionRequest {tool} permission_mode=auto"));
        assert_eq!(slow, "written running");
        age(&world, "s", 60);
    }
    agent.play("Stop idle");
    let mut codex = Agent::start(&world, "codex");
    codex.play(
        "UserPromptSubmit session_id=c            running
         PermissionRequest shell session_id=c     waiting
         PostToolUse shell session_id=c           running
         Stop session_id=c                        idle",
    );
}

// ---- C: done too early, subagents, work in the background ----

/// TC-36 (anthropics/claude-code 80246), TC-41 (herdrdev/herdr 3414): with work in
/// the background a session was called done by one and at work by another. The
/// turn is over, so it is idle, and the number of what goes on stands beside it;
/// the reader chooses.
#[test]
fn work_in_the_background_is_a_number_beside_idle() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    for (tasks, count) in [("[]", 0), (r#"[{"id":"a"}]"#, 1), (r#"[{"id":"a"},{"id":"b"}]"#, 2)] {
        // The last one is the background's, and ends by itself.
        agent.play(&format!(
            "UserPromptSubmit              running
             PreToolUse Bash               running
             PostToolUse Bash              running
             Stop background_tasks={tasks} idle
             PostToolUse Bash              idle"
        ));
        assert_eq!(world.session("s").unwrap()["background"], count);
    }
    // Woken by what was in the background, the agent goes on without a prompt.
    agent.play(
        "PreToolUse Bash          running
         Stop background_tasks=[] idle",
    );
    assert_eq!(world.session("s").unwrap()["background"], 0);
    let mut grok = Agent::start(&world, "grok");
    let stop = r#"{"sessionId":"g","cwd":"/tmp","reason":"end_turn","backgroundTasks":[{},{}]}"#;
    grok.process.hook(&["grok", "stop"], stop).silent();
    let session = world.session("g").unwrap();
    assert_eq!((&session["status"], &session["background"]), (&json!("idle"), &json!(2)));
}

/// TC-38 (shuxueshuxue/Spexcode 60): the tools of a subagent run the hooks of its
/// parent, under the parent's id, and overwrote what the parent was doing. They
/// change nothing, whatever the parent does, and make no record. The list proposes
/// that they may say that the parent is at work; by the status rules they do not.
/// A name of a kind of agent is no sign of a subagent.
#[test]
fn what_a_subagent_does_says_nothing_of_its_parent() {
    for (dialect, mark) in dialects().iter().filter_map(|d| {
        let mark = match d.name.as_str() {
            "claude" | "codex" | "qwen" => "agent_id",
            "grok" => "subagentType",
            "copilot" => "agentId",
            _ => return None,
        };
        Some((d, mark))
    }) {
        let mut life = Life::of(dialect);
        let children = |life: &mut Life<'_>| {
            for kind in [Kind::Prompt, Kind::ToolUse, Kind::ToolDone, Kind::Stop, Kind::End] {
                let mut said = dialect.find(&[kind]).unwrap();
                said.payload[mark] = json!("a1");
                life.say(said, life.status);
            }
        };
        children(&mut life);
        for (kind, want) in [
            (Kind::Start, "started"),
            (Kind::Prompt, "running"),
            (Kind::Permission, "waiting"),
            (Kind::Stop, "idle"),
            (Kind::StopFailure, "error"),
            (Kind::End, "ended"),
        ] {
            life.go(&[kind], want);
            children(&mut life);
        }
        live(&life);
    }
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play(
        "SessionStart agent_type=reviewer           started
         PreToolUse Bash agent_type=reviewer        running
         PermissionRequest Bash agent_type=reviewer waiting
         PostToolUse Bash agent_type=reviewer       running",
    );
}

/// TC-39 (bobmatnyc/trusty-tools 6020): the end of a subagent came before the end
/// of the tool that told of it, and the books never balanced. A wait of a subagent
/// is over with whichever comes first, and what comes after it touches neither the
/// parent nor another subagent's wait.
#[test]
fn a_subagent_s_end_and_its_tool_s_end_come_in_any_order() {
    let (stop, done) = ("SubagentStop agent_id=a", "PostToolUse Bash agent_id=a");
    for (first, second) in [(stop, done), (done, stop)] {
        let world = World::new();
        let mut agent = Agent::start(&world, "claude");
        // `Task` is the parent's tool that started the subagent.
        agent.play(&format!(
            "UserPromptSubmit                  running
             SubagentStart agent_id=a          running
             SubagentStart agent_id=b          running
             PermissionRequest Bash agent_id=a waiting
             {first}                           running
             PermissionRequest Bash agent_id=b waiting
             {second}                          waiting
             PostToolUse Task                  waiting
             {first}                           waiting"
        ));
        assert_eq!(world.record_of("s")["waiting_agent"], "b");
        agent.play(&format!(
            "SubagentStop agent_id=b     running
             Stop                        idle
             PostToolUse Bash agent_id=b idle
             {second}                    idle
             PostToolUse Task            idle"
        ));
        waits_no_more(&world.record_of("s"));
    }
}

/// TC-40 (arthurzengg/opencui 148): subagents stayed at work after the session that
/// had started them was done. Here they have no record that could be left: what one
/// asks is a wait of its parent's session, and the parent's stop ends that too.
/// OpenCode gives them sessions of their own, whose events say the parent; its
/// screen shows their questions in the parent's session.
#[test]
fn a_parent_s_stop_leaves_no_child_behind() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play(
        "UserPromptSubmit                   running
         SubagentStart agent_id=a1          running
         PermissionRequest Bash agent_id=a1 waiting
         Stop                               idle",
    );
    waits_no_more(&world.record());
    assert_eq!(world.record_files().len(), 1);

    let world = World::new();
    let mut agent = Agent::start(&world, "opencode");
    let parent = |event, more, want| bus(event, "s", more, want);
    let marked = |event, more, want| {
        let mut moment = bus(event, "c", more, want);
        moment.payload["parentID"] = json!("s");
        moment
    };
    let is = |kind: &str| json!({"status": {"type": kind}});
    let info = json!({"info": {"id": "c", "parentID": "s", "title": "child", "directory": "/usr"}});
    let moments = [
        parent("session.created", json!({"info": {"id": "s", "directory": "/tmp"}}), "started"),
        parent("session.status", is("busy"), "running"),
        bus("session.created", "c", info.clone(), "running"),
        bus("session.updated", "c", info.clone(), "running"),
        marked("session.status", is("busy"), "running"),
        marked("permission.asked", json!({"permission": "bash"}), "waiting"),
        parent("session.status", is("busy"), "waiting"),
        marked("permission.replied", json!({"reply": "once"}), "running"),
        marked("question.asked", json!({"questions": []}), "waiting"),
        marked("question.replied", json!({"answers": []}), "running"),
        marked("session.error", json!({"error": {"name": "APIError"}}), "running"),
        marked("session.idle", json!({}), "running"),
        marked("permission.asked", json!({"permission": "bash"}), "waiting"),
        parent("session.idle", json!({}), "idle"),
        marked("session.status", is("idle"), "idle"),
        bus("session.deleted", "c", info, "idle"),
    ];
    for moment in moments {
        agent.run(&[moment]);
        // There is one, whatever was said.
        assert_eq!(world.record()["cwd"], "/tmp");
    }
    waits_no_more(&world.record());
    assert_eq!(world.record().get("title"), None);
}

/// TC-42 (brizzai/fleet 165), TC-43 (ingo-eichhorst/Irrlicht 658, agent-of-empires
/// 3236): minutes of compaction were shown as done, and afterwards, or when it was
/// broken off, as work that never ends. It is work while it lasts; one that the
/// user asked for ends idle, one in the middle of a turn goes on. The start that
/// follows keeps what is, whichever comes first. One that was broken off ends with
/// the next sign. A harness that does not tell the end is not shown at work for one
/// that the user asked for.
#[test]
fn a_compaction_is_work_while_it_lasts_and_no_longer() {
    for harness in ["claude", "codex", "qwen"] {
        let world = World::new();
        let mut agent = Agent::start(&world, harness);
        agent.play(
            "UserPromptSubmit          running
             Stop                      idle
             PreCompact trigger=manual running",
        );
        assert_eq!(world.record_of("s")["detail"], "compacting");
        let started = world.record_of("s")["started"].clone();
        set(&world, "s", "started", json!(started.as_u64().unwrap() - 60));
        agent.play(
            "PostCompact trigger=manual  idle
             SessionStart source=compact idle
             PreCompact trigger=manual   running
             SessionStart source=compact running
             PostCompact trigger=manual  idle
             UserPromptSubmit            running
             PreCompact trigger=auto     running
             PostCompact trigger=auto    running
             SessionStart source=compact running
             PreCompact trigger=auto     running
             SessionStart source=compact running
             PostCompact trigger=auto    running
             PreToolUse Bash             running
             Stop                        idle",
        );
        assert_eq!(world.record_of("s")["started"], started.as_u64().unwrap() - 60, "{harness}");
        // Broken off.
        agent.play(
            "PreCompact trigger=manual running
             UserPromptSubmit          running
             Stop                      idle
             PreCompact trigger=manual running
             Stop                      idle",
        );
        assert_eq!(world.record_of("s")["turn"], 3, "{harness}");
    }
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play(
        "Stop                      idle
         PreCompact trigger=manual running
         Notification idle_prompt  idle",
    );
    let mut agent = Agent::start(&world, "gemini");
    agent.play(
        "BeforeAgent session_id=g                running
         PreCompress session_id=g trigger=auto   running
         AfterAgent session_id=g                 idle
         PreCompress session_id=g trigger=manual idle",
    );
    let mut agent = Agent::start(&world, "pi");
    for (event, want) in [
        ("before_agent_start", "running"),
        ("session_before_compact", "running"),
        ("session_compact", "running"),
        ("agent_settled", "idle"),
        ("session_before_compact", "idle"),
        ("session_compact", "idle"),
    ] {
        agent.run(&[pi("p", event, "", want)]);
    }
}

// ---- D: whose session it is ----

/// TC-44 (herdrdev/herdr 511, 672), TC-45 (alexei-led/ccgram 62): an agent that
/// another agent, its plugin or its hook runs has the environment of the outer
/// one, and took over the session of that pane. A session is known by its own id
/// and process; the pane is a thing it has. The nested one has its own record and
/// never touches the outer one's, be it of the same harness or of another, and
/// both are listed for the pane. The list proposes a field for the parent, which
/// the format does not have.
#[test]
fn a_nested_agent_takes_nothing_from_the_one_around_it() {
    let world = World::new();
    let pane =
        "export TMUX=/tmp/tmux-0/default,1,2 TMUX_PANE=%7 TONGS_AGENTS_LAUNCH_ID=L CLAUDECODE=1\n";
    let mut outer = Agent::start(&world, "claude");
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse"] {
        let payload = claude("outer", r#","tool_name":"Bash""#);
        outer.process.shell(&format!("{pane}tongs-hook claude {event} '{payload}'")).silent();
    }
    let before = bytes(file_of(&world, "outer"));
    for (name, hooks, id, last, want) in [
        ("claude", "claude", "same", "SessionEnd", "ended"),
        ("claude", "claude", "lost", "Stop", "idle"),
        ("codex", "codex", "other", "Stop", "idle"),
        // With the hooks of the outer one's configuration.
        ("codex", "claude", "mixed", "Stop", "idle"),
    ] {
        let life = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", last]
            .map(|event| format!("{event} session_id={id} ?\n"))
            .concat();
        outer.process.shell(&format!("{pane}{}", program(&world, name, hooks, &life))).silent();
        let session = world.session(id).unwrap();
        assert_eq!((&session["status"], &session["harness_id"]), (&json!(want), &json!(name)));
        assert_ne!(session["pid"], outer.pid().to_string(), "{id}");
        assert_eq!(
            (&session["launch_id"], &session["terminal_env"]["TMUX_PANE"]),
            (&json!("L"), &json!("%7"))
        );
        assert_eq!(bytes(file_of(&world, "outer")), before, "{id}");
    }
    let listed = world.agents(&["status", "--pane", "%7", "-o", "session_id"]).out;
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, ["lost", "mixed", "other", "outer", "same"]);
    cleanup(&world);
    let left = ["outer", "lost", "other", "mixed"].map(|id| status(&world, id));
    assert_eq!(left, ["running", "none", "none", "none"]);
    assert_eq!(bytes(file_of(&world, "outer")), before);
    assert_eq!(living(&world, outer.pid()), ["outer"]);
}

/// A process with nobody above it that is an agent, in a pane, that has run its
/// script and stays until its input closes.
fn standing(world: &World, program: &str, args: &[&str]) -> Child {
    let mut command = Command::new(world.path("bin").join(program));
    world.bare(&mut command);
    let mut child = command
        .args(args)
        .env("TMUX", "/tmp/tmux-0/default,1,2")
        .env("TMUX_PANE", "%1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}

/// TC-46 (stablyai/orca 9237, 14615), TC-55 (ingo-eichhorst/Irrlicht 735, 734): one
/// process in the background holds the sessions of many windows, with the
/// environment of the window that started it, so that all of them were shown in
/// that window; and a spare process that lives for ever kept dead sessions alive.
/// Such helpers are no session's process and no agent. Their sessions have none:
/// they do not end each other, their pane is unavailable, and they go when nothing
/// was heard of them for ten minutes.
#[test]
fn a_helper_or_a_daemon_is_no_session_s_process() {
    let world = World::new();
    let mut window = Agent::start(&world, "claude");
    let pane = "env TMUX=/tmp/tmux-0/default,1,2 TMUX_PANE=%1";
    window.process.hook_with(pane, &["claude", "SessionStart"], &claude("window", "")).silent();
    world.stub("node");
    let script = world.path("lib/node_modules/@anthropic-ai/claude-code/cli.js");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    let hooks = |ids: [&str; 2]| {
        let line = |id| format!("tongs-hook claude UserPromptSubmit '{}'\n", claude(id, ""));
        ids.map(line).concat() + "echo ready; read line\n"
    };
    fs::write(world.path("project/daemon"), hooks(["d1", "d2"])).unwrap();
    fs::write(&script, hooks(["b1", "b2"])).unwrap();
    let mut helpers = [
        standing(&world, "claude", &["daemon"]),
        standing(&world, "node", &[script.to_str().unwrap(), "--bg-spare"]),
    ];
    cleanup(&world);
    for id in ["d1", "d2", "b1", "b2"] {
        let session = world.session(id).unwrap();
        for (key, want) in [("status", "running"), ("pid", ""), ("process_identity", "unresolved")]
        {
            assert_eq!(session[key], want, "{id} {key}");
        }
        assert_eq!(session["focus_target"]["kind"], "unavailable", "{id}");
    }
    assert_eq!(world.session("window").unwrap()["focus_target"]["kind"], "terminal");
    for helper in &helpers {
        assert!(living(&world, helper.id()).is_empty());
    }
    // One of them is taken up in a window of its own.
    let mut own = Agent::start(&world, "claude");
    own.play("SessionStart session_id=d1 source=resume started");
    assert_eq!(living(&world, own.pid()), ["d1"]);
    for id in ["d2", "b1", "b2"] {
        age(&world, id, 601);
    }
    cleanup(&world);
    let left = ["window", "d1", "d2", "b1", "b2"].map(|id| status(&world, id));
    assert_eq!(left, ["started", "started", "none", "none", "none"]);
    for helper in &mut helpers {
        assert!(helper.try_wait().unwrap().is_none(), "it was let alone");
        drop(helper.stdin.take());
        helper.wait().unwrap();
    }
}

/// TC-49 (Yeachan-Heo/oh-my-codex 305, 338), TC-50 (gastownhall/gastown 1681): a pid
/// that another process had got counted as alive, or the process that had it now
/// was taken for left over and killed. A process is its pid and its start; where
/// the start is another, the record goes, and never a process.
#[test]
fn a_pid_that_was_given_out_again_costs_the_record_and_no_process() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    let pid = agent.pid().to_string();
    // Under an instance of its own, so that the record may name any start.
    let args = ["notify", "--harness", "claude", "--session", "old", "--status", "waiting"];
    world.agents(&[&args[..], &["--pid", &pid, "--instance", "before"]].concat()).silent();
    cleanup(&world);
    assert_eq!(status(&world, "old"), "waiting");
    let start: u64 = world.record_of("old")["process_start"].as_str().unwrap().parse().unwrap();
    set(&world, "old", "process_start", json!((start - 1).to_string()));
    cleanup(&world);
    assert_eq!(status(&world, "old"), "none");
    assert_eq!(agent.process.shell("echo alive").out, "alive\n");
    agent.play("UserPromptSubmit running");
    cleanup(&world);
    assert_eq!(living(&world, agent.pid()), ["s"]);
}

/// TC-52 (realiti4/claude-swap 299): a step of the clock made a living process seem
/// younger than its record, and the record went. Starts are compared as the system
/// counts them, and ages run on a clock that is never set.
#[test]
fn a_step_of_the_clock_makes_no_process_another() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play("UserPromptSubmit running");
    let now = now();
    for wall in [now - 10 * 86_400, now + 200] {
        edit(&world, "s", |record| {
            record.insert("started".into(), wall.into());
            record.insert("ts".into(), wall.into());
            record.insert("ts_ms".into(), (wall * 1000).into());
        });
        cleanup(&world);
        assert_eq!(status(&world, "s"), "running", "{wall}");
    }
    agent.play("Stop idle");
    agent.process.kill();
    cleanup(&world);
    assert_eq!(status(&world, "s"), "none");
}

/// TC-56 (mjjo16/marmonitor 71): when the user clears a session the process goes on
/// under another id, and both were shown. The new one is the process's only session
/// that lives, whether the end of the old one came first, last or never; what is
/// still under way for the old one does not bring it back.
#[test]
fn a_cleared_session_is_followed_by_one_and_not_joined_by_it() {
    for order in ["end first", "start first", "no end"] {
        let world = World::new();
        let mut agent = Agent::start(&world, "claude");
        for n in 0..2 {
            let (old, new) = (format!("s{n}"), format!("s{}", n + 1));
            let end = format!("SessionEnd session_id={old} reason=clear ended\n");
            let start = format!("SessionStart session_id={new} source=clear started\n");
            let cleared = match order {
                "end first" => end + &start,
                "start first" => start + &end,
                _ => start,
            };
            agent.play(&format!(
                "UserPromptSubmit       session_id={old}         running
                 PermissionRequest Bash session_id={old}         waiting
                 {cleared}
                 PostToolUse Bash session_id={old}               ended
                 Notification permission_prompt session_id={old} ended
                 Stop session_id={old}                           ended"
            ));
            assert_eq!(living(&world, agent.pid()), [new.as_str()], "{order}");
            let over = world.session(&old).unwrap();
            assert_eq!(over["needs_attention"], false);
            waits_no_more(&over);
            assert_eq!(status(&world, &new), "started");
        }
    }
}

/// An event of Pi, as its plugin passes it on.
fn pi(session: &str, event: &str, reason: &str, want: &str) -> Moment {
    let ctx = json!({"sessionId": session, "cwd": "/tmp"});
    let mut payload = json!({"event": {"type": event}, "ctx": ctx});
    if !reason.is_empty() {
        payload["event"]["reason"] = json!(reason);
    }
    Moment { event: event.into(), payload, session: session.into(), want: want.into() }
}

/// TC-57 (herdrdev/herdr 1377): in one process of Pi one session follows another,
/// and all that the second one said was dropped. It is taken, by its start or by
/// its first event, and the first one is over. Loading the extensions again is no
/// end.
#[test]
fn a_new_session_of_pi_is_taken_in_the_same_process() {
    let world = World::new();
    let mut agent = Agent::start(&world, "pi");
    let turn = [
        ("before_agent_start", "running"),
        ("agent_start", "running"),
        ("ui_prompt_start", "waiting"),
        ("ui_prompt_end", "running"),
        ("agent_end", "running"),
        ("agent_settled", "idle"),
    ];
    let mut before = "p0".to_string();
    agent.run(&[pi(&before, "session_start", "startup", "started")]);
    for (n, how) in ["new", "resume", "fork", "unsaid"].into_iter().enumerate() {
        let next = format!("p{}", n + 1);
        let mut moments: Vec<_> =
            turn.iter().map(|(event, want)| pi(&before, event, "", want)).collect();
        if how != "unsaid" {
            moments.push(pi(&before, "session_shutdown", how, "ended"));
            moments.push(pi(&next, "session_start", how, "started"));
        }
        moments.push(pi(&next, "before_agent_start", "", "running"));
        agent.run(&moments);
        assert_eq!(living(&world, agent.pid()), [next.as_str()], "{how}");
        before = next;
    }
    let moments = [
        pi(&before, "agent_settled", "", "idle"),
        pi(&before, "session_shutdown", "reload", "idle"),
        pi(&before, "session_start", "reload", "idle"),
        pi(&before, "session_shutdown", "quit", "ended"),
    ];
    agent.run(&moments);
}

/// TC-58 (microsoft/intelligent-terminal 713): Copilot starts under an id that it
/// throws away, and two sessions were shown. The first event under the lasting id
/// ends the other, be it a start or a prompt, and late words of the thrown-away one
/// do not bring it back.
#[test]
fn a_session_id_that_is_thrown_away_leaves_one_session() {
    let said = |id: &str, event: &str, want: &str| Moment {
        event: event.into(),
        payload: json!({"sessionId": id, "cwd": "/tmp", "source": "startup"}),
        session: id.into(),
        want: want.into(),
    };
    for (swap, want) in
        [("sessionStart", "started"), ("userPromptSubmitted", "running"), ("preToolUse", "running")]
    {
        let world = World::new();
        let mut agent = Agent::start(&world, "copilot");
        let moments = [
            said("bootstrap", "sessionStart", "started"),
            said("lasting", swap, want),
            said("bootstrap", "postToolUse", "ended"),
            said("bootstrap", "agentStop", "ended"),
            said("bootstrap", "sessionEnd", "ended"),
            said("lasting", "userPromptSubmitted", "running"),
        ];
        agent.run(&moments);
        assert_eq!(living(&world, agent.pid()), ["lasting"], "{swap}");
    }
}

/// TC-60 (rjyo/moshi-skill 9): runs without a screen ended without their last hook,
/// and a third of the list were sessions that ran for ever. The maintainer removes
/// what has no process, however many there are and wherever they stopped, and
/// nothing that lives.
#[test]
fn runs_without_a_screen_leave_nothing_behind() {
    let world = World::new();
    let mut agent = Agent::start(&world, "claude");
    agent.play("UserPromptSubmit running");
    let whole = ["SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop"];
    let runs: String = (0..12)
        .map(|n| {
            let line = |event: &&str| format!("{event} session_id=run{n} ?\n");
            let scene: String = whole[..1 + n % 4].iter().map(line).collect();
            program(&world, "claude", "claude", &scene)
        })
        .collect();
    agent.process.shell(&runs).silent();
    let sessions = world.sessions_json();
    let all = |status: &str| sessions.iter().filter(|s| s["status"] == status).count();
    assert_eq!(["started", "running", "waiting", "idle"].map(all), [3, 4, 3, 3]);
    cleanup(&world);
    let mut left = world.sessions_json();
    left.retain(|s| s["record_kind"] == "session");
    assert_eq!(left.iter().map(|s| &s["session_id"]).collect::<Vec<_>>(), ["s"]);
}

// ---- every harness ----

/// A harness's payloads: its row and the samples that it has. A harness of two
/// generations has two dialects.
struct Dialect {
    name: String,
    row: &'static Row,
    samples: Vec<Sample>,
    /// Where its payloads keep the session's id.
    session: String,
}

struct Sample {
    event: &'static str,
    kind: Kind,
    payload: Value,
    /// Whether it is a subagent's.
    child: bool,
}

fn field<'j>(json: &'j Value, path: &str) -> &'j Value {
    path.split('.').fold(json, |at, key| &at[key])
}

fn put(json: &mut Value, path: &str, value: Value) {
    let mut at = json;
    for key in path.split('.') {
        at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
    }
    *at = value;
}

fn dialects() -> Vec<Dialect> {
    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/payloads");
    let read = |file: &str| -> Value {
        serde_json::from_slice(&bytes(format!("{FIXTURES}/{file}"))).unwrap()
    };
    let mut all: Vec<Dialect> = Vec::new();
    let index = read("index.json");
    let on_stdin = |entry: &&Value| entry["transport"] != "argv-last";
    for entry in index["payloads"].as_array().unwrap().iter().filter(on_stdin) {
        let text = |key: &str| entry[key].as_str().unwrap_or("").to_owned();
        let name = text("harness");
        if all.last().is_none_or(|d| d.name != name) {
            let row = harness::named(&name).unwrap();
            all.push(Dialect { name, row, samples: Vec::new(), session: String::new() });
        }
        let dialect = all.last_mut().unwrap();
        if dialect.session.is_empty() {
            dialect.session = text("session_id_field").split('|').next().unwrap().to_owned();
        }
        let Some(event) = dialect.row.event(&text("event")) else { continue };
        let payload = read(&text("file"));
        dialect.samples.push(Sample {
            event: event.native,
            kind: with_payload(&payload.to_string(), |payload| event.kind(payload)),
            payload,
            child: entry["subagent"] == true,
        });
    }
    for row in ROWS {
        if !all.iter().any(|d| d.row.id == row.id) {
            let session = row.fields.session[0].path().to_owned();
            all.push(Dialect { name: row.id.to_owned(), row, samples: Vec::new(), session });
        }
    }
    all
}

impl Dialect {
    /// What it says that is of one of these kinds, about the session `s`: a sample
    /// rather than what is made up after the row.
    fn find(&self, kinds: &[Kind]) -> Option<Moment> {
        let look = |make: &dyn Fn(&EventRow, Kind) -> Option<Value>| {
            let with = |kind, event: &EventRow| Some((event.native, make(event, kind)?));
            kinds.iter().find_map(|kind| self.row.events.iter().find_map(|e| with(*kind, e)))
        };
        let (event, mut payload) = look(&|e, kind| self.sample(e, kind))
            .or_else(|| look(&|e, kind| self.made_up(e, kind)))?;
        let marks: Vec<_> = self.row.fields.subagent.iter().map(|want| want.path()).collect();
        let mut paths = self.row.fields.session.iter().map(|want| want.path());
        let path = paths.find(|p| !marks.contains(p) && field(&payload, p).is_string());
        put(&mut payload, path.unwrap_or(&self.session), json!("s"));
        Some(Moment { event: event.into(), payload, session: "s".into(), want: String::new() })
    }

    fn sample(&self, event: &EventRow, kind: Kind) -> Option<Value> {
        let of_children = matches!(kind, Kind::SubagentStart | Kind::SubagentStop);
        let is = |sample: &&Sample| {
            (sample.event, sample.kind) == (event.native, kind) && (of_children || !sample.child)
        };
        self.samples.iter().find(is).map(|sample| sample.payload.clone())
    }

    /// The least that an event must say to be of a kind.
    fn made_up(&self, event: &EventRow, kind: Kind) -> Option<Value> {
        let (chosen, or) = match event.pick {
            Pick::Is(is) => (None, is),
            Pick::By(want, kinds, or) | Pick::Within(want, kinds, or) => {
                let value = kinds.iter().find(|(_, k)| *k == kind);
                (value.map(|(value, _)| (want, json!(value))), or)
            }
            Pick::Set(kinds, or) => {
                let want = kinds.iter().find(|(_, k)| *k == kind);
                (want.map(|(want, _)| (*want, json!(true))), or)
            }
        };
        let of_a_tool = matches!(kind, Kind::ToolUse | Kind::ToolDone | Kind::Permission);
        let mut payload = json!({});
        match (chosen, self.row.fields.tool.first()) {
            (Some((want, value)), _) => put(&mut payload, want.path(), value),
            (None, _) if or != kind => return None,
            (None, Some(want)) if of_a_tool => put(&mut payload, want.path(), json!("Bash")),
            (None, _) => {}
        }
        Some(payload)
    }

    /// What answers a question: the end of its tool, or, where that says nothing,
    /// that the agent goes on.
    fn answer(&self, asked: &Moment) -> Option<Moment> {
        if self.row.tool_use_answers {
            return self.find(&[Kind::Busy]);
        }
        let mut answer = self.find(&[Kind::ToolDone])?;
        let paths: Vec<_> = self.row.fields.tool.iter().map(|want| want.path()).collect();
        let in_payload =
            |said: &Moment| paths.iter().copied().find(|p| field(&said.payload, p).is_string());
        if let Some(of) = in_payload(asked) {
            let to = in_payload(&answer).unwrap_or(of);
            put(&mut answer.payload, to, field(&asked.payload, of).clone());
        }
        Some(answer)
    }
}

/// A life of the session `s`: moments, and the status after each.
struct Life<'d> {
    dialect: &'d Dialect,
    status: &'static str,
    turn: usize,
    moments: Vec<Moment>,
}

impl<'d> Life<'d> {
    fn of(dialect: &'d Dialect) -> Life<'d> {
        Life { dialect, status: "none", turn: 0, moments: Vec::new() }
    }

    fn say(&mut self, mut moment: Moment, want: &'static str) {
        self.status = want;
        moment.want = want.into();
        for path in self.dialect.row.fields.turn.iter().map(|want| want.path()) {
            if field(&moment.payload, path).is_string() {
                put(&mut moment.payload, path, json!(format!("turn {}", self.turn)));
            }
        }
        self.moments.push(moment);
    }

    /// Says what is of one of these kinds, where the harness has it; whether it
    /// has.
    fn go(&mut self, kinds: &[Kind], want: &'static str) -> bool {
        let Some(moment) = self.dialect.find(kinds) else { return false };
        self.turn += usize::from(kinds.contains(&Kind::Prompt));
        self.say(moment, want);
        true
    }

    /// Says what must change nothing.
    fn nothing_new(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            self.go(&[*kind], self.status);
        }
    }

    /// A turn with everything that the harness can tell of one.
    fn turn(&mut self) {
        self.go(&[Kind::Prompt, Kind::Busy], "running");
        self.go(&[Kind::Progress], "running");
        self.go(&[Kind::ToolUse], "running");
        self.nothing_new(&[Kind::Keep, Kind::ToolDone]);
        for asked in ASKS.iter().filter_map(|kind| self.dialect.find(&[*kind])) {
            let answer = self.dialect.answer(&asked).expect(&self.dialect.name);
            self.say(asked, "waiting");
            self.nothing_new(&[Kind::Keep, Kind::Progress]);
            self.say(answer, "running");
        }
        self.nothing_new(&[Kind::SubagentStart, Kind::SubagentStop]);
        self.nothing_new(&[Kind::CompactStart, Kind::CompactKeep, Kind::CompactEndAuto]);
        if self.go(&[Kind::Stop, Kind::Rest], "idle") {
            self.nothing_new(&[Kind::ToolDone, Kind::Progress, Kind::Keep, Kind::IdleSign]);
        }
    }

    /// What goes wrong, the end, and what comes after it.
    fn trouble(&mut self) {
        if self.status == "idle" {
            let ends = self.dialect.find(&[Kind::CompactEndManual]).is_some();
            self.go(&[Kind::CompactStart], if ends { "running" } else { "idle" });
            self.go(&[Kind::CompactEndManual], "idle");
            self.nothing_new(&[Kind::CompactKeep]);
        }
        self.go(&[Kind::Prompt, Kind::Busy], "running");
        if self.go(&[Kind::StopFailure], "error") {
            self.nothing_new(&[Kind::ToolDone, Kind::Progress, Kind::IdleSign]);
            self.go(&[Kind::ToolUse, Kind::Busy], "running");
        }
        if self.go(&[Kind::Interrupt], "idle") {
            self.nothing_new(&[Kind::ToolDone, Kind::Progress]);
            self.go(&[Kind::ToolUse, Kind::Busy], "running");
        }
        for kind in ASKS {
            for (over, want) in
                [(&[Kind::Stop, Kind::Rest][..], "idle"), (&[Kind::Prompt], "running")]
            {
                if self.dialect.find(over).is_some() && self.go(&[kind], "waiting") {
                    self.go(over, want);
                }
            }
        }
        if self.go(&[Kind::End], "ended") {
            self.nothing_new(&[Kind::ToolDone, Kind::ToolUse, Kind::Progress, Kind::Busy]);
            self.nothing_new(&[Kind::Permission, Kind::Stop, Kind::StopFailure, Kind::Keep]);
            self.go(&[Kind::Prompt], "running");
        }
        self.go(&[Kind::Start], "started");
    }
}

const ASKS: [Kind; 4] = [Kind::Permission, Kind::Question, Kind::Plan, Kind::Elicitation];

/// Lives through it in one process of the harness and compares what is stored after
/// each moment.
#[track_caller]
fn live(life: &Life<'_>) {
    let (name, row) = (&life.dialect.name, life.dialect.row);
    let world = World::new();
    let looks = row.looks();
    let mut agent = world.harness(looks.names.iter().chain(looks.hosts).next().unwrap_or(&"any"));
    let mut script = String::new();
    for Moment { event, payload, .. } in &life.moments {
        script.push_str(&format!(
            "tongs-hook {name} {event} >answer 2>&1 <<'END'\n{payload}\nEND\n\
             set -- '{}'/*.json; record=null\n\
             [ -f \"$1\" ] && read -r record <\"$1\"; printf '%s %s\\n' $# \"$record\"\n",
            world.sessions().display()
        ));
    }
    let ran = agent.shell(&script);
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (life.moments.len(), ""), "{name}");
    for (at, (line, moment)) in ran.out.lines().zip(&life.moments).enumerate() {
        let events: Vec<&str> = life.moments[..=at].iter().map(|m| m.event.as_str()).collect();
        let case = format!("{name} {events:?} {}: {line}", moment.payload);
        let record: Value = serde_json::from_str(line.strip_prefix("1 ").expect(&case)).unwrap();
        assert_eq!(record["status"].as_str().unwrap_or("none"), moment.want, "{case}");
        if moment.want != "none" {
            assert_eq!(
                (&record["harness_id"], &record["session_id"]),
                (&json!(row.id), &json!("s"))
            );
        }
        assert_eq!(record["waiting_since"].is_u64(), moment.want == "waiting", "{case}");
    }
}

/// Every harness, by its own events and its own payloads where there are samples:
/// a start, a turn with everything that it can tell, what goes wrong, the end, and
/// what comes too late after each of them.
#[test]
fn every_harness_lives_a_whole_life() {
    let dialects = dialects();
    let mut moments = 0;
    for dialect in &dialects {
        let mut life = Life::of(dialect);
        life.go(&[Kind::Start], "started");
        life.turn();
        life.trouble();
        live(&life);
        moments += life.moments.len();
    }
    assert!(ROWS.iter().all(|row| dialects.iter().any(|d| d.row.id == row.id)));
    assert!(moments > 25 * dialects.len(), "{moments}");
}

/// The same when hooks were installed while it ran: neither the start nor the
/// prompt was heard.
#[test]
fn every_harness_lives_on_when_its_start_never_came() {
    for dialect in &dialects() {
        let mut life = Life::of(dialect);
        life.turn();
        live(&life);
        let mut life = Life::of(dialect);
        life.go(&[Kind::ToolUse, Kind::Busy], "running");
        life.nothing_new(&[Kind::ToolDone]);
        life.go(&[Kind::Stop], "idle");
        live(&life);
    }
}
