//! The scenes that are swept: a prepared store, the program that changes it,
//! and what may stand there afterwards.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::look::Wrong;
use crate::world::{Harness, Ran, World, bytes, claude};

/// What is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The first event ever: there is no store.
    FirstEver,
    /// A session's first event, with another session's record beside it.
    Start,
    /// A session that follows another one of the same process.
    Second,
    /// An event in the middle.
    Tool,
    /// The end of a turn.
    Stop,
    /// The end of a session.
    End,
    /// The maintainer with something to remove and something to find.
    Cleanup,
    /// A bridge that brings a change and a new session.
    Import,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 8] = [
        Subject::FirstEver,
        Subject::Start,
        Subject::Second,
        Subject::Tool,
        Subject::Stop,
        Subject::End,
        Subject::Cleanup,
        Subject::Import,
    ];

    /// How the totals call it.
    pub fn name(self) -> &'static str {
        match self {
            Subject::FirstEver => "hook, first event ever",
            Subject::Start => "hook, session start",
            Subject::Second => "hook, next session",
            Subject::Tool => "hook, tool use",
            Subject::Stop => "hook, stop",
            Subject::End => "hook, session end",
            Subject::Cleanup => "cleanup",
            Subject::Import => "import",
        }
    }

    fn event(self) -> &'static str {
        match self {
            Subject::FirstEver | Subject::Start | Subject::Second => "SessionStart",
            Subject::Tool => "PreToolUse",
            Subject::Stop => "Stop",
            Subject::End => "SessionEnd",
            Subject::Cleanup | Subject::Import => "",
        }
    }

    /// Whether it is one of a hook, which ends with 0 and says nothing.
    pub fn is_hook(self) -> bool {
        !matches!(self, Subject::Cleanup | Subject::Import)
    }
}

/// How a record may stand after the program has done its work.
pub enum After {
    /// As before: it is none of the program's business.
    Same,
    /// Removed.
    Gone,
    /// New, with this status and last event.
    New(&'static str, &'static str),
}

/// What is expected of one session's record.
pub struct Expect {
    pub session: String,
    pub before: Option<Vec<u8>>,
    pub after: After,
    /// Whether a run without faults always gets it there.
    pub sure: bool,
}

/// A prepared store and the processes that its records name.
pub struct Scene<'w> {
    pub world: &'w World,
    /// What is swept.
    pub subject: Subject,
    /// The parent of the program: the harness for a hook.
    parent: Harness<'w>,
    /// Processes that records name; their pids must stay theirs.
    pub others: Vec<Harness<'w>>,
    /// The words that run the program, quoted for a shell.
    words: String,
    /// What may come of each session's record.
    pub expected: Vec<Expect>,
    /// Whether the program is not ours but one that is wrong on purpose.
    pub stand_in: bool,
}

const SESSION: &str = "s1";

impl<'w> Scene<'w> {
    /// Prepares a scene in an empty world.
    pub fn prepare(world: &'w World, subject: Subject) -> Scene<'w> {
        let mut scene = Scene {
            world,
            subject,
            parent: world.harness(if subject.is_hook() { "claude" } else { "driver" }),
            others: Vec::new(),
            words: String::new(),
            expected: Vec::new(),
            stand_in: false,
        };
        match subject {
            Subject::Cleanup => scene.prepare_cleanup(),
            Subject::Import => scene.prepare_import(),
            _ => scene.prepare_hook(),
        }
        scene.snapshot();
        scene
    }

    fn prepare_hook(&mut self) {
        use Subject::*;
        let payload = self.world.path("event.json");
        fs::write(&payload, claude(SESSION, ",\"tool_name\":\"Bash\"")).unwrap();
        let hook = self.world.path("bin/tongs-hook");
        self.words = format!(
            "'{}' claude {} <'{}'",
            hook.display(),
            self.subject.event(),
            payload.display()
        );
        if self.subject != FirstEver {
            let mut bystander = self.world.harness("claude");
            bystander.hook(&["claude", "SessionStart"], &claude("s0", "")).silent();
            self.others.push(bystander);
            self.expect("s0", After::Same, true);
        }
        let before: &[&str] = match self.subject {
            Tool | Stop => &["SessionStart", "UserPromptSubmit"],
            End => &["SessionStart"],
            _ => &[],
        };
        for event in before {
            self.hook(event, SESSION);
        }
        if self.subject == Second {
            self.hook("SessionStart", "earlier");
            // Ending the earlier session is tried once; a session whose end was
            // missed goes with its process.
            self.expect("earlier", After::New("ended", "claude.session-start"), false);
        }
        let after = match self.subject {
            Tool => After::New("running", "claude.tool-use"),
            Stop => After::New("idle", "claude.stop"),
            End => After::New("ended", "claude.session-end"),
            _ => After::New("started", "claude.session-start"),
        };
        self.expect(SESSION, after, true);
    }

    /// Runs the hook as the harness itself runs it, without a process between.
    fn hook(&mut self, event: &str, session: &str) {
        let file = self.world.path("before.json");
        fs::write(&file, claude(session, "")).unwrap();
        let hook = self.world.path("bin/tongs-hook");
        self.parent
            .shell(&format!("exec '{}' claude {event} <'{}'", hook.display(), file.display()))
            .silent();
    }

    fn prepare_cleanup(&mut self) {
        let event = |stub: &mut Harness<'_>, event: &str, session: &str| {
            let file = self.world.path("before.json");
            fs::write(&file, claude(session, "")).unwrap();
            stub.shell(&format!("exec tongs-hook claude {event} <'{}'", file.display())).silent();
        };
        let mut living = self.world.harness("claude");
        event(&mut living, "SessionStart", "over");
        event(&mut living, "SessionEnd", "over");
        event(&mut living, "SessionStart", "living");
        let mut dead = self.world.harness("claude");
        event(&mut dead, "SessionStart", "dead");
        dead.kill();
        let unreported = self.world.harness("claude");
        // Without its boot id a record's age is that of the wall clock, which can
        // be set back here further than the machine may be up.
        let path = self.file("over").unwrap();
        let mut record: Value = serde_json::from_slice(&bytes(&path)).unwrap();
        let fields = record.as_object_mut().unwrap();
        for key in ["boot_id", "boot_ms", "mono_ms", "ts_ms"] {
            fields.remove(key);
        }
        let ts = fields["ts"].as_u64().unwrap() - 1000;
        fields.insert("ts".into(), ts.into());
        fields.insert("started".into(), ts.into());
        fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();

        self.words = format!("'{}' cleanup", self.world.path("bin/tongs-agents").display());
        self.expect("living", After::Same, true);
        self.expect("over", After::Gone, true);
        self.expect("dead", After::Gone, true);
        self.expect(&format!("proc-{}", unreported.pid()), After::New("discovered", ""), true);
        self.others.extend([living, unreported]);
    }

    /// What is brought has no numbers, so that it can be brought again.
    fn prepare_import(&mut self) {
        let there = World::new();
        let line = |session: &str, status: &str| {
            let told = ["notify", "--harness", "other", "--session", session, "--status", status];
            there.agents(&told).silent();
            let lines = there.agents(&["export", "--origin", "inner"]).out;
            let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let mut line = lines.into_iter().find(|line| line["session_id"] == session).unwrap();
            line.as_object_mut().unwrap().remove("sequence");
            format!("{line}\n")
        };
        let mut bystander = self.world.harness("claude");
        bystander.hook(&["claude", "SessionStart"], &claude("s0", "")).silent();
        self.others.push(bystander);
        let before = line("known", "running");
        let import = ["--bridge", "box"];
        let ran = self.world.run("tongs-bridge-import", &import, before.as_bytes());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines = self.world.path("lines");
        fs::write(&lines, line("known", "waiting") + &line("new", "idle")).unwrap();
        let program = self.world.path("bin/tongs-bridge-import");
        self.words = format!("'{}' --bridge box <'{}'", program.display(), lines.display());
        self.expect("s0", After::Same, true);
        self.expect("known", After::New("waiting", "other.notify"), true);
        self.expect("new", After::New("idle", "other.notify"), true);
    }

    /// Puts another program in the hook's place, given what the hook itself
    /// would write and where.
    pub fn stand_in(&mut self, script: impl FnOnce(&Path, &str) -> String) {
        self.run("");
        let file = self.file(SESSION).unwrap();
        let record = String::from_utf8(bytes(&file)).unwrap();
        self.restore();
        let path = self.world.path("stand-in");
        fs::write(&path, script(&file, &record)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.words = format!("'{}'", path.display());
        self.stand_in = true;
    }

    fn expect(&mut self, session: &str, after: After, sure: bool) {
        let before = self.file(session).map(bytes);
        self.expected.push(Expect { session: session.into(), before, after, sure });
    }

    /// The file of a session's record.
    fn file(&self, session: &str) -> Option<PathBuf> {
        self.world.record_files().into_iter().find(|path| {
            serde_json::from_slice::<Value>(&bytes(path))
                .is_ok_and(|record| record["session_id"] == session)
        })
    }

    fn snapshot(&self) {
        if self.world.state().exists() {
            copy_dir(&self.world.state(), &self.world.path("prepared"));
        }
    }

    /// Puts the store back as it was prepared.
    pub fn restore(&self) {
        let _ = fs::remove_dir_all(self.world.path("home/.local"));
        let prepared = self.world.path("prepared");
        if prepared.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(self.world.state().parent().unwrap())
                .unwrap();
            copy_dir(&prepared, &self.world.state());
        }
    }

    /// Holds the locks of all sessions until the result is dropped.
    pub fn hold(&self) -> Vec<fs::File> {
        let is_lock = |name: &String| name.starts_with(".fleet-identity-v1-");
        let hold = |name: String| {
            let file = fs::File::open(self.world.sessions().join(name)).unwrap();
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
            file
        };
        self.world.files().into_iter().filter(is_lock).map(hold).collect()
    }

    /// Runs the program behind `before`, which is empty or the words of a
    /// program that runs it.
    pub fn run(&mut self, before: &str) -> Ran {
        // The shell between tells of a program that was killed, which is neither
        // the program's output nor worth reading a thousand times.
        self.parent.shell(&format!(
            "exec 3>&2 2>/dev/null\n(exec {before} {} 2>&3 3>&-)\nexit $?",
            self.words
        ))
    }

    /// Removes what is left over, as the maintainer does it when it is time.
    pub fn age_and_clean(&mut self, temps: &[PathBuf]) -> Vec<Wrong> {
        for temp in temps {
            let then = SystemTime::now() - Duration::from_secs(601);
            fs::File::options().write(true).open(temp).unwrap().set_modified(then).unwrap();
        }
        let ran = self.parent.shell("exec tongs-agents cleanup");
        let mut wrong = Vec::new();
        if ran.code != Some(0) {
            wrong.push(Wrong::new("again", format!("a later cleanup ended so: {ran:?}")));
        }
        if temps.iter().any(|temp| temp.exists()) {
            wrong.push(Wrong::new("again", "a later cleanup left an old temporary file"));
        }
        wrong
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}
