//! A throw-away world: a home, a store, stub harnesses, and nothing of the
//! environment of whoever runs the tests.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The program under test.
pub fn tongs() -> PathBuf {
    match std::env::var_os("TONGS_BIN") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_BIN_EXE_tongs")),
    }
}

/// The program under test as the static build, for exact budgets; `None` with a
/// printed reason where only cargo's own build is there.
pub fn static_tongs(test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("TONGS_BIN").map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped {test}: TONGS_BIN does not name the static build (run 'make check')");
    }
    path
}

/// Whether a tool is installed; says so where it is not.
pub fn has_tool(tool: &str, test: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(tool).exists()));
    if !found {
        eprintln!("skipped {test}: {tool} is not installed");
    }
    found
}

/// Whether a user, pid and mount namespace can be made; says so where not.
pub fn may_unshare(test: &str) -> bool {
    if !has_tool("unshare", test) {
        return false;
    }
    let mut probe = Command::new("unshare");
    probe.args(["-rpfm", "mount", "-t", "proc", "proc", "/proc"]);
    let may = finish(probe, b"").code == Some(0);
    if !may {
        eprintln!("skipped {test}: no pid namespace can be made here");
    }
    may
}

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts all three: the code, and that nothing was printed.
    #[track_caller]
    pub fn silent(&self) {
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (Some(0), "", ""));
    }
}

/// A home directory and all that is in it; removed when dropped.
pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    /// An empty home. The programs stand under their installed names in `bin`.
    pub fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let world = World { dir };
        fs::DirBuilder::new().mode(0o700).create(world.path("home")).unwrap();
        fs::create_dir(world.path("bin")).unwrap();
        fs::create_dir(world.path("project")).unwrap();
        for name in ["tongs", "tongs-hook", "tongs-agents", "tongs-bridge-import"] {
            symlink(tongs(), world.path("bin").join(name)).unwrap();
        }
        world
    }

    /// A path in the world.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The state root.
    pub fn state(&self) -> PathBuf {
        self.path("home/.local/state/tongs-agents")
    }

    /// The directory of the records.
    pub fn sessions(&self) -> PathBuf {
        self.state().join("sessions")
    }

    /// A program of ours by its installed name, with a bare environment.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(name));
        self.bare(&mut command);
        command
    }

    /// Gives a command the bare environment and the project's directory.
    pub fn bare(&self, command: &mut Command) {
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()))
            .current_dir(self.path("project"));
    }

    /// Runs a program of ours with this standard input.
    pub fn run(&self, name: &str, args: &[&str], stdin: &[u8]) -> Ran {
        let mut command = self.command(name);
        command.args(args);
        finish(command, stdin)
    }

    /// Runs `tongs-agents`.
    pub fn agents(&self, args: &[&str]) -> Ran {
        self.run("tongs-agents", args, b"")
    }

    /// The sessions of `status --json`.
    pub fn sessions_json(&self) -> Vec<Value> {
        let ran = self.agents(&["status", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()["sessions"].as_array().unwrap().clone()
    }

    /// The names in the directory of the records, sorted.
    pub fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.sessions()) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The record files.
    pub fn record_files(&self) -> Vec<PathBuf> {
        self.files()
            .iter()
            .filter(|n| n.ends_with(".json"))
            .map(|n| self.sessions().join(n))
            .collect()
    }

    /// The only record, as it is stored.
    #[track_caller]
    pub fn record(&self) -> Value {
        let files = self.record_files();
        assert_eq!(files.len(), 1, "{files:?}");
        serde_json::from_slice(&fs::read(&files[0]).unwrap()).unwrap()
    }

    /// Makes a program of this name: a copy of the shell, and not a link, for
    /// the program's file must have the name. `cp` makes it, because a file that
    /// another thread's child still has open for writing cannot be run.
    pub fn stub(&self, name: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        let copied = Command::new("cp").arg("/bin/bash").arg(&path).status().unwrap();
        assert!(copied.success());
        path
    }

    /// The session with this id, as `status --json` has it.
    pub fn session(&self, id: &str) -> Option<Value> {
        self.sessions_json().into_iter().find(|s| s["session_id"] == id)
    }

    /// The stored record of the session with this id.
    #[track_caller]
    pub fn record_of(&self, id: &str) -> Value {
        let records = self
            .record_files()
            .into_iter()
            .map(|f| serde_json::from_slice(&fs::read(f).unwrap()).unwrap());
        records.into_iter().find(|r: &Value| r["session_id"] == id).unwrap()
    }

    /// Starts a stub of a harness: a process of that name that runs what it is
    /// told and lives until it is dropped.
    pub fn harness(&self, name: &str) -> Harness<'_> {
        let stub = self.path("bin").join(name);
        if !stub.exists() {
            self.stub(name);
        }
        Harness::start(self, Command::new(stub))
    }

    /// The same in a user and pid namespace of its own, whose first process is a
    /// shell that runs this script beside it; `None` with a printed reason where
    /// there can be none.
    pub fn sandboxed(&self, name: &str, script: &str, test: &str) -> Option<Harness<'_>> {
        if !may_unshare(test) {
            return None;
        }
        self.stub(name);
        let first = format!(
            "exec 2>/dev/null; mount -t proc proc /proc; {{ {script}\n}} & {name} \"$@\"; while :; do sleep 1000; done"
        );
        let mut command = Command::new("unshare");
        command.args(["-rpfm", "--kill-child", "sh", "-c", &first, "sh"]);
        Some(Harness::start(self, command))
    }

    /// The same, started by `tongs-agents run` with these options.
    pub fn launched(&self, options: &[&str], name: &str) -> Harness<'_> {
        let stub = self.path("bin").join(name);
        if !stub.exists() {
            self.stub(name);
        }
        let mut command = Command::new(self.path("bin/tongs-agents"));
        command.arg("run").args(options).arg("--").arg(stub);
        Harness::start(self, command)
    }
}

/// Waits until there is a value: what other processes do takes its time. Fails
/// with these words when that is too long.
#[track_caller]
pub fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command to its end with this standard input.
pub fn finish(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut input = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // A program may end before it has read everything.
    let feeder = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A living process with a harness's name, whose children are the hooks.
///
/// It is a shell under that name that reads commands; `sh` runs each of them,
/// so the hook is a grandchild of the harness, as in life.
pub struct Harness<'w> {
    world: &'w World,
    child: Child,
    count: usize,
}

impl<'w> Harness<'w> {
    fn start(world: &'w World, mut command: Command) -> Harness<'w> {
        world.bare(&mut command);
        let child = command
            .args(["--norc", "--noprofile"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
            .unwrap();
        Harness { world, child, count: 0 }
    }

    /// The harness's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs a shell command as the harness's child and waits for it.
    pub fn shell(&mut self, command: &str) -> Ran {
        self.count += 1;
        let (out, err) = (
            self.world.path(&format!("out-{}-{}", self.pid(), self.count)),
            self.world.path(&format!("err-{}-{}", self.pid(), self.count)),
        );
        // A program of another name runs the command: a subshell of the stub
        // would be a second process of the harness.
        let script = self.world.path(&format!("script-{}-{}", self.pid(), self.count));
        fs::write(&script, command).unwrap();
        let line = format!(
            "sh '{}' >'{}' 2>'{}'; echo \"done $?\"\n",
            script.display(),
            out.display(),
            err.display()
        );
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while byte[0] != b'\n' {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "the stub ended during: {command}");
            answer.push(byte[0]);
        }
        let answer = String::from_utf8(answer).unwrap();
        let code = answer.trim().strip_prefix("done ").and_then(|n| n.parse().ok());
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Ran { code, out: read(&out), err: read(&err) }
    }

    /// Runs the hook as the harness does, the payload on standard input.
    pub fn hook(&mut self, args: &[&str], payload: &str) -> Ran {
        self.hook_with("", args, payload)
    }

    /// The same with a prefix such as `VAR=value` or `exec env …`.
    pub fn hook_with(&mut self, before: &str, args: &[&str], payload: &str) -> Ran {
        let file = self.world.path("payload.json");
        fs::write(&file, payload).unwrap();
        let args: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
        self.shell(&format!("cat '{}' | {before} tongs-hook {}", file.display(), args.join(" ")))
    }

    /// Runs the hook with `--strict` and returns its report.
    #[track_caller]
    pub fn strict(&mut self, args: &[&str], payload: &str) -> Value {
        let ran = self.hook(&[&["--strict"], args].concat(), payload);
        ran.json()
    }

    /// Kills the harness and waits until it is gone.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Harness<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A payload of Claude Code with these further fields.
pub fn claude(session: &str, more: &str) -> String {
    format!("{{\"session_id\":\"{session}\",\"cwd\":\"/tmp\"{more}}}")
}

/// Whether two paths hold the same bytes.
pub fn bytes(path: impl AsRef<OsStr>) -> Vec<u8> {
    fs::read(Path::new(path.as_ref())).unwrap()
}
