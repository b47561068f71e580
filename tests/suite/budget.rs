//! Exact budgets: what a hook may cost in system calls, processes and memory.
//! Times are the benchmark's.

use std::fs;
use std::process::Command;

use crate::world::{World, claude, finish, has_tool, static_tongs};

/// Most system calls of a hook whose record exists and whose agent is within
/// two ancestors, from execve to exit.
const CALLS: usize = 80;
/// And for a shell, whose name says enough.
const SHELL: usize = 3;
/// Calls that the start-up of a static glibc adds; the budget is the musl build's.
const GLIBC_CALLS: usize = 10;
/// Most more for the first event of a session.
const FIRST: usize = 20;
/// Exactly so many for each further ancestor that is no harness.
const ANCESTOR: usize = 7;

/// Whether the program under test was built with musl: glibc leaves its mark.
fn is_musl() -> bool {
    let program = fs::read(crate::world::tongs()).unwrap();
    !program.windows(5).any(|w| w == b"GLIBC" || w == b"glibc")
}

/// System calls of the hook before a tool, with `strace` and what `between` puts
/// around its command between it and the harness.
fn calls(
    world: &World,
    agent: &mut crate::world::Harness<'_>,
    between: impl Fn(&str) -> String,
) -> Vec<String> {
    let trace = world.path("trace");
    let payload = world.path("budget.json");
    let project = world.path("project");
    let text = claude("s", r#","tool_name":"Bash""#).replace("/tmp", project.to_str().unwrap());
    fs::write(&payload, text).unwrap();
    let line = format!(
        "strace -e signal=none -o '{}' tongs-hook claude PreToolUse <'{}'",
        trace.display(),
        payload.display()
    );
    agent.shell(&between(&line)).silent();
    let trace = fs::read_to_string(trace).unwrap();
    trace.lines().filter(|l| l.contains('(') && !l.starts_with("---")).map(str::to_string).collect()
}

#[test]
fn the_system_calls_of_a_hook_are_within_the_budget() {
    let test = "the_system_calls_of_a_hook";
    if static_tongs(test).is_none() || !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    // The store exists; the session's directory is the top of a repository.
    assert_eq!(world.agents(&["cleanup"]).code, Some(0));
    fs::create_dir(world.path("project/.git")).unwrap();
    fs::write(world.path("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let mut agent = world.harness("claude");
    let alone = |line: &str| line.to_string();
    let first = calls(&world, &mut agent, alone);
    assert_eq!(world.record_of("s")["branch"], "main");
    // The walk up to the terminal goes on from the agent, three calls each.
    let agent_at =
        first.iter().position(|l| l.contains(&format!("\"/proc/{}/stat\"", agent.pid()))).unwrap();
    let walked = first[agent_at + 1..].iter().filter(|l| l.contains("/stat\"")).count();
    let first = first.len() - 3 * walked;
    let steady = calls(&world, &mut agent, alone);
    // `timeout` stays between, and so does a shell that has more to do.
    let program = calls(&world, &mut agent, |line| format!("timeout 60 {line}"));
    let shell = calls(&world, &mut agent, |line| format!("sh -c \"{line}; :\""));
    // The harness, sh and strace: the agent is the third ancestor, so one
    // further ancestor's calls are not the hook's own.
    let own = steady.len() - ANCESTOR;
    println!("hook: {own} calls with a record, {} without", first - ANCESTOR);
    let calls = CALLS + if is_musl() { 0 } else { GLIBC_CALLS };
    assert!(own <= calls, "{own} calls:\n{}", steady.join("\n"));
    assert!(first - ANCESTOR <= own + FIRST, "{first} calls at the first event");
    for (more, with) in [(ANCESTOR, program), (SHELL, shell)] {
        let lists = format!("{}\n\n{}", steady.join("\n"), with.join("\n"));
        assert_eq!(with.len() - steady.len(), more, "{lists}");
    }
}

#[test]
fn a_hook_takes_less_than_a_mebibyte_whatever_the_payload() {
    let test = "a_hook_takes_less_than_a_mebibyte";
    let Some(tongs) = static_tongs(test) else { return };
    let world = World::new();
    let mut peaks = Vec::new();
    for size in [1 << 10, 10 << 20] {
        let payload = world.path("payload.json");
        fs::write(&payload, claude("s", &format!(r#","tool_response":"{}""#, "x".repeat(size))))
            .unwrap();
        // The limit on the address space makes the kernel measure it exactly:
        // the program fails to start where it does not fit.
        let fits = |kib: u32| {
            let _ = fs::remove_dir_all(world.path("home/.local"));
            let mut command = Command::new("sh");
            world.bare(&mut command);
            command.args([
                "-c",
                &format!(
                    "ulimit -v {kib}; exec '{}' hook claude Stop <'{}'",
                    tongs.display(),
                    payload.display()
                ),
            ]);
            finish(command, b"").code == Some(0) && world.record_files().len() == 1
        };
        assert!(!fits(64), "the limit works");
        peaks.push((128..=4096).step_by(64).find(|kib| fits(*kib)).unwrap());
    }
    println!("hook: {} KiB of address space with 1 kB, {} KiB with 10 MB", peaks[0], peaks[1]);
    // Beyond the program itself: its stack and its buffers, resident or not.
    let program = u32::try_from(fs::metadata(&tongs).unwrap().len() / 1024).unwrap();
    assert!(peaks[0] <= program + if is_musl() { 640 } else { 1536 }, "{peaks:?}, {program}");
    assert!(peaks[1] * 10 <= peaks[0] * 12, "{peaks:?}");
}

/// Most pages that a hook touches for the first time, mapped 64 KiB at once
/// where they are the program's, when the linker put together what it uses.
const FAULTS: u64 = 18;

#[test]
fn a_hook_touches_few_pages() {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(tongs) = static_tongs("a_hook_touches_few_pages") else { return };
    if !fs::read(tongs).unwrap().windows(11).any(|w| w == b"\0.text.hook") {
        println!("skipped: the linker was left to itself");
        return;
    }
    let world = World::new();
    let payload = world.path("payload.json");
    fs::write(&payload, claude("s", "")).unwrap();
    let mut least = u64::MAX;
    for _ in 0..5 {
        let mut command = Command::new(world.path("bin/tongs-hook"));
        world.bare(&mut command);
        let mut hook = command
            .args(["claude", "PreToolUse"])
            .stdin(fs::File::open(&payload).unwrap())
            .spawn()
            .unwrap();
        // It has ended, and its account is still there.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&hook)), options).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", hook.id())).unwrap();
        assert_eq!(hook.wait().unwrap().code(), Some(0));
        // proc_pid_stat(5): minflt is the tenth field, the eighth behind the name.
        let fields = stat.rsplit_once(')').unwrap().1;
        least = least.min(fields.split_whitespace().nth(7).unwrap().parse().unwrap());
    }
    assert_eq!(world.record_files().len(), 1);
    println!("hook: {least} page faults");
    assert!(least <= FAULTS, "{least} page faults");
}

#[test]
fn the_program_is_small() {
    let Some(tongs) = static_tongs("the_program_is_small") else { return };
    let program = fs::read(tongs).unwrap();
    let size = program.len();
    println!("tongs: {size} bytes");
    // The C library of GNU brings a megabyte of its own.
    let glibc = memchr::memmem::find(&program, b"GLIBC_TUNABLES").is_some();
    assert!(size <= if glibc { 5 << 19 } else { 3 << 19 }, "{size}");
}

/// Asserts that no call of a trace changes something or looks at a process
/// other than these. A line is "PID CALL(…" or "CALL(…".
fn assert_only_reads(trace: &str, may_see: &[u32]) {
    for line in trace.lines() {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let opens = call.starts_with("open");
        let writes = opens
            && ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|w| call.contains(w))
            && !call.contains("/dev/null");
        let changes = [
            "rename",
            "unlink",
            "mkdir",
            "rmdir",
            "link",
            "symlink",
            "chmod",
            "fchmod",
            "chown",
            "fchown",
            "flock",
            "truncate",
            "ftruncate",
            "utimens",
            "mknod",
            "fork",
            "vfork",
            "clone",
        ]
        .iter()
        .any(|w| call.starts_with(w));
        let (path, asks) = (call.split_once("\"/proc/"), call.split_once("kill("));
        let seen =
            path.or(asks.filter(|(before, after)| before.is_empty() && after.contains(", 0)")));
        let looks = match seen.map(|(_, rest)| rest) {
            None => call.contains("\"/proc\"") || call.starts_with("kill("),
            Some(rest) if rest.starts_with("self/") || rest.starts_with("sys/") => false,
            Some(rest) => {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
                !digits.parse().is_ok_and(|pid| may_see.contains(&pid))
            }
        };
        assert!(!writes && !changes && !looks, "{line}");
    }
}

#[test]
fn readers_only_read() {
    let test = "readers_only_read";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook_with("env AGENT_LAUNCH_ID=L", &["claude", "Stop"], &claude("s", "")).silent();
    let mut other = world.harness("claude");
    other.hook_with("env AGENT_LAUNCH_ID=L", &["claude", "Stop"], &claude("other", "")).silent();
    let dead = world.harness("claude");
    let gone = dead.pid();
    dead.kill();
    let trace = world.path("trace");
    // Who is recorded, what is above those, and what is below.
    let recorded = [agent.pid(), other.pid()];
    let mut above = recorded.to_vec();
    let mut next = std::process::id();
    while next != 0 {
        above.push(next);
        next = tongs::probe::Process::read(next).unwrap().ppid;
    }
    let pid = agent.pid().to_string();
    let gone = gone.to_string();
    for store in ["there", "missing"] {
        if store == "missing" {
            fs::remove_dir_all(world.state()).unwrap();
        }
        for (args, may_see) in [
            (&["lookup", "--session", "s"][..], &recorded[..]),
            (&["lookup", "--terminal-id", "T", "--pid", &pid, "--json"], &recorded),
            (&["lookup", "--launch-id", "L", "--all"], &above),
            (&["lookup", "--tree", &pid, "--format", "session-state"], &recorded),
            (&["lookup", "--tree", &gone], &[gone.parse().unwrap()]),
            (&["focus", "s"], &recorded),
            (&["focus", "--next", "--json"], &recorded),
            (&["export"], &recorded),
            (&["tree", &pid], &recorded),
            (&["tree", &pid, "--json"], &recorded),
            (&["wait", "s", "--timeout", "0"], &recorded),
            (&["wait", "s", "--until", "error", "--timeout", "50ms"], &recorded),
            (&["wait", "--pid", &pid, "--until", "error", "--timeout", "50ms"], &recorded),
            (&["wait", "--tree", &pid, "--until", "error", "--timeout", "50ms"], &above),
            (&["wait", "--launch-id", "L", "--until", "gone", "--timeout", "50ms"], &above),
            (&["wait", "--pid", &gone, "--json"], &[gone.parse().unwrap()]),
        ] {
            let mut command = Command::new("strace");
            world.bare(&mut command);
            command.arg("-f").arg("-o").arg(&trace).arg(world.path("bin/tongs-agents")).args(args);
            finish(command, b"");
            let trace = fs::read_to_string(&trace).unwrap();
            assert!(trace.contains("exit"), "{args:?}");
            assert_only_reads(&trace, may_see);
        }
        for args in [
            &["status"][..],
            &["status", "--json"],
            &["status", "--json", "--all"],
            &["status", "--jsonl", "--sort", "age"],
            &["status", "-o", "pid"],
            &["status", "--line", "tmux"],
            &["status", "-q", "--exit-code", "--attention"],
            &["show", "s"],
            &["show", "s", "--json"],
            &["watch", "--json", "--timeout", "50ms"],
            &["paths"],
            &["schema", "status"],
            &["cleanup", "--dry-run", "--help"],
        ] {
            let mut command = Command::new("strace");
            world.bare(&mut command);
            command.arg("-f").arg("-o").arg(&trace).arg(world.path("bin/tongs-agents")).args(args);
            finish(command, b"");
            let trace = fs::read_to_string(&trace).unwrap();
            assert!(trace.contains("exit"), "{args:?}");
            assert_only_reads(&trace, &[]);
        }
        assert_eq!(world.state().exists(), store == "there");
    }
}

#[test]
fn a_write_would_be_noticed() {
    for line in [
        "openat(3, \"x\", O_WRONLY|O_CREAT, 0600) = 4",
        "renameat2(3, \"a\", 3, \"b\", RENAME_EXCHANGE) = 0",
        "flock(4, LOCK_EX) = 0",
        "openat(AT_FDCWD, \"/proc/12/stat\", O_RDONLY) = 3",
        "4711  unlinkat(3, \"x\", 0) = 0",
        "4711 openat(3, \"x\", O_RDWR|O_CREAT, 0600) = 4",
        "openat(AT_FDCWD, \"/proc\", O_RDONLY) = 3",
        "kill(7, 0) = 0",
        "kill(77, SIGTERM) = 0",
    ] {
        assert!(
            std::panic::catch_unwind(|| assert_only_reads(line, &[77])).is_err()
                || cfg!(panic = "abort"),
            "{line}"
        );
    }
}

#[test]
fn maintenance_starts_no_process_and_looks_once() {
    let test = "maintenance_starts_no_process";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("s", "")).silent();
    let trace = world.path("trace");
    let mut command = Command::new("strace");
    world.bare(&mut command);
    command.arg("-f").arg("-o").arg(&trace).arg(world.path("bin/tongs-agents")).arg("cleanup");
    assert_eq!(finish(command, b"").code, Some(0));
    let trace = fs::read_to_string(&trace).unwrap();
    // A line is "PID CALL(…"; what calls read, such as other processes' command
    // lines, may hold any words.
    let calls: Vec<&str> = trace
        .lines()
        .filter_map(|l| l.split_once(' ').map(|(_, call)| call.trim_start()))
        .collect();
    let count = |start: &str| calls.iter().filter(|call| call.starts_with(start)).count();
    for call in ["clone", "fork", "vfork"] {
        assert_eq!(count(call), 0, "{call}");
    }
    assert_eq!(count("openat(AT_FDCWD, \"/proc\","), 1, "one pass");
    assert_eq!(count("execve("), 1);
}
