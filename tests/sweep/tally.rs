//! Running a scene's faults and counting what came of them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::{Extent, Fault, Point, points};
use crate::look::{State, Wrong};
use crate::scene::{Scene, Subject};
use crate::world::{Ran, World};

/// The programs that a sweep takes.
#[derive(Clone)]
pub struct Tools {
    strace: PathBuf,
    timeout: PathBuf,
}

impl Tools {
    /// Finds them, or says why there is no sweep.
    pub fn find() -> Result<Tools, String> {
        let find = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found =
                std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists());
            found.ok_or(format!("{name} is not installed"))
        };
        let tools = Tools { strace: find("strace")?, timeout: find("timeout")? };
        let tried = std::process::Command::new(&tools.strace)
            .args(["-o", "/dev/null", "-e", "inject=close:error=EIO:when=60000", "true"])
            .output()
            .map_err(|e| format!("strace: {e}"))?;
        match tried.status.success() {
            true => Ok(tools),
            false => {
                Err(format!("strace may not: {}", String::from_utf8_lossy(&tried.stderr).trim()))
            }
        }
    }
}

/// A share of the points of every scene.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub index: usize,
    pub of: usize,
}

impl Share {
    /// Everything.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// Decides from the point alone, so that shares fit together even where two
    /// traces differ.
    fn has(self, point: &Point) -> bool {
        (point.name.len() + point.k) % self.of == self.index
    }
}

/// What came of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub points: usize,
    pub runs: usize,
    /// Runs after which all records that were to change stood as before.
    pub old: usize,
    /// Runs after which all were new.
    pub new: usize,
    /// Runs that changed some of several.
    pub some: usize,
    /// Runs that wrote a record without a process, because the fault hid it.
    pub unresolved: usize,
    /// Runs after which something was torn.
    pub torn: usize,
    /// Runs that left a temporary file.
    pub temps: usize,
    /// Runs with an exit status above 0.
    pub nonzero: usize,
    /// Runs of a command that the allocator ended, for want of memory.
    pub aborted: usize,
    /// Runs after which, and after the next, an earlier session is not ended.
    pub missed_ends: usize,
    /// Runs that did not come to their point.
    pub missed: usize,
    /// The longest run, in milliseconds.
    pub slowest_ms: usize,
    /// Calls that are no points.
    pub left_out: Vec<String>,
    /// What must not be.
    pub wrong: Vec<Wrong>,
}

impl Tally {
    fn numbers(&mut self) -> [(&'static str, &mut usize); 13] {
        [
            ("points", &mut self.points),
            ("runs", &mut self.runs),
            ("old", &mut self.old),
            ("new", &mut self.new),
            ("some new", &mut self.some),
            ("unresolved", &mut self.unresolved),
            ("torn", &mut self.torn),
            ("temp left", &mut self.temps),
            ("non-zero exits", &mut self.nonzero),
            ("out of memory", &mut self.aborted),
            ("ends missed", &mut self.missed_ends),
            ("faults missed", &mut self.missed),
            ("ms at most", &mut self.slowest_ms),
        ]
    }

    /// Adds another share's.
    pub fn add(&mut self, mut other: Tally) {
        let slowest = self.slowest_ms.max(other.slowest_ms);
        for ((_, mine), (_, theirs)) in self.numbers().into_iter().zip(other.numbers()) {
            *mine += *theirs;
        }
        self.slowest_ms = slowest;
        if self.left_out.is_empty() {
            self.left_out = other.left_out;
        }
        self.wrong.extend(other.wrong);
    }

    /// The totals on one line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        for (name, number) in self.numbers() {
            let _ = write!(line, "{}{number} {name}", if line.is_empty() { "" } else { ", " });
        }
        line
    }

    /// For the way from one process to another.
    pub fn json(&mut self) -> Value {
        let numbers: Vec<usize> = self.numbers().into_iter().map(|(_, n)| *n).collect();
        let wrong: Vec<[&str; 2]> =
            self.wrong.iter().map(|w| [w.kind.as_str(), w.text.as_str()]).collect();
        json!({ "numbers": numbers, "left_out": self.left_out, "wrong": wrong })
    }

    /// The other way.
    pub fn of_json(value: &Value) -> Tally {
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let list = |v: &Value| v.as_array().unwrap().clone();
        let mut tally = Tally {
            left_out: list(&value["left_out"]).iter().map(text).collect(),
            wrong: list(&value["wrong"])
                .iter()
                .map(|w| Wrong { kind: text(&w[0]), text: text(&w[1]) })
                .collect(),
            ..Tally::default()
        };
        for ((_, mine), theirs) in tally.numbers().into_iter().zip(list(&value["numbers"])) {
            *mine = theirs.as_u64().unwrap() as usize;
        }
        tally
    }

    /// How many findings are of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.wrong.iter().filter(|w| w.kind == kind).count()
    }
}

/// Seconds after which a program that still runs is a finding.
const WATCHDOG: u64 = 5;
/// What timeout(1) answers for a program that it had to end.
const TIMED_OUT: i32 = 124;
/// What a shell answers for a program that died of SIGKILL or SIGABRT.
const KILLED: i32 = 137;
const ABORTED: i32 = 134;

/// Sweeps one scene.
pub struct Sweep<'w> {
    scene: Scene<'w>,
    tools: Tools,
    trace: PathBuf,
    tally: Tally,
}

impl<'w> Sweep<'w> {
    pub fn new(world: &'w World, tools: &Tools, scene: Scene<'w>) -> Sweep<'w> {
        Sweep { scene, tools: tools.clone(), trace: world.path("trace"), tally: Tally::default() }
    }

    /// Does this share of the points.
    pub fn run(mut self, extent: Extent, share: Share) -> Tally {
        let (points, left_out) = self.baseline();
        self.tally.left_out = left_out;
        for point in points.iter().filter(|p| share.has(p)) {
            self.tally.points += 1;
            for fault in extent.faults(&point.name) {
                self.one(point, fault);
            }
        }
        self.tally
    }

    /// Fails the calls that put the guard up, one by one, while somebody else
    /// holds the locks: only then does the program need its timer.
    pub fn run_held(mut self) -> Tally {
        const GUARD: [&str; 4] = ["rt_sigaction", "rt_sigprocmask", "setitimer", "sigaltstack"];
        let (points, _) = self.baseline();
        self.scene.restore();
        let held = self.scene.hold();
        assert!(!held.is_empty());
        for point in points.iter().filter(|p| GUARD.contains(&p.name.as_str())) {
            self.tally.points += 1;
            let fault = Fault::Once("EINVAL");
            let (ran, took) = self.fail(point, fault);
            let mut wrong = self.ending(point, fault, &ran, took);
            let seen = self.scene.look(false);
            if seen.states.contains(&State::New) {
                wrong.push(Wrong::new("lock", "it wrote without the lock"));
            }
            wrong.extend(seen.wrong);
            self.report(point, fault, wrong);
        }
        self.tally
    }

    /// The words before the program's.
    fn before(&self, more: &str) -> String {
        let Tools { strace, timeout } = &self.tools;
        let trace = self.trace.display();
        format!(
            "'{}' -k 1 {WATCHDOG} '{}' -q -o '{trace}' -e signal=none {more}",
            timeout.display(),
            strace.display()
        )
    }

    fn baseline(&mut self) -> (Vec<Point>, Vec<String>) {
        self.scene.restore();
        let before = self.before("-e trace=all");
        let ran = self.scene.run(&before);
        assert_eq!(ran.code, Some(0), "without a fault: {ran:?}");
        let seen = self.scene.look(true);
        assert!(seen.wrong.is_empty(), "without a fault: {:?}", seen.wrong);
        assert!(seen.temps.is_empty(), "without a fault: {:?}", seen.temps);
        assert!(seen.states.iter().all(|s| *s == State::New), "without a fault: {:?}", seen.states);
        let (points, left_out) = points(&fs::read_to_string(&self.trace).unwrap());
        assert!(points.len() > 5, "the program makes next to no calls: {points:?}");
        (points, left_out)
    }

    fn one(&mut self, point: &Point, fault: Fault) {
        self.scene.restore();
        let (ran, took) = self.fail(point, fault);
        let mut wrong = self.ending(point, fault, &ran, took);
        let seen = self.scene.look(false);
        self.tally.torn += usize::from(seen.wrong.iter().any(|w| w.kind == "torn"));
        self.tally.unresolved += seen.unresolved;
        self.tally.temps += usize::from(!seen.temps.is_empty());
        let new = seen.states.iter().filter(|s| **s == State::New).count();
        match new {
            0 => self.tally.old += 1,
            n if n == seen.states.len() => self.tally.new += 1,
            _ => self.tally.some += 1,
        }
        // A file that could not be removed stays; a killed program removes none.
        let may_leave = match fault {
            Fault::On(_) if point.name.starts_with("unlink") => usize::MAX,
            _ => usize::from(fault == Fault::Kill || point.name.starts_with("unlink")),
        };
        if seen.temps.len() > may_leave {
            wrong
                .push(Wrong::new("temp", format!("{} temporary files are left", seen.temps.len())));
        }
        wrong.extend(seen.wrong);
        wrong.extend(self.again(may_leave.max(1)));
        self.report(point, fault, wrong);
    }

    /// Runs the program with a fault.
    fn fail(&mut self, point: &Point, fault: Fault) -> (Ran, Duration) {
        let before = self.before(&format!("-e trace={} -e {}", point.name, fault.inject(point)));
        let start = Instant::now();
        let ran = self.scene.run(&before);
        let took = start.elapsed();
        self.tally.runs += 1;
        self.tally.slowest_ms = self.tally.slowest_ms.max(took.as_millis() as usize);
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        let hit = match fault {
            Fault::Kill => ran.code == Some(KILLED),
            _ => trace.contains("(INJECTED)"),
        };
        self.tally.missed += usize::from(!hit);
        (ran, took)
    }

    fn report(&mut self, point: &Point, fault: Fault, wrong: Vec<Wrong>) {
        let name = self.scene.subject.name();
        let full = |Wrong { kind, text }| Wrong {
            kind,
            text: format!("{name}: {point}, {fault}: {text}"),
        };
        self.tally.wrong.extend(wrong.into_iter().map(full));
    }

    /// How the program may end.
    fn ending(&mut self, point: &Point, fault: Fault, ran: &Ran, took: Duration) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let is_hook = self.scene.subject.is_hook();
        let imports = self.scene.subject == Subject::Import;
        let code = ran.code.unwrap_or(-1);
        if code == TIMED_OUT || took > Duration::from_secs(WATCHDOG) {
            wrong.push(Wrong::new("hang", format!("it ran for {took:?}")));
        }
        if fault.is_error() {
            self.tally.nonzero += usize::from(code != 0);
            // Nothing of ours runs when Rust's allocator gets no memory. The
            // hook answers even that with 0.
            let starved = matches!(point.name.as_str(), "mmap" | "mremap");
            if !is_hook && code == ABORTED && starved {
                self.tally.aborted += 1;
            } else if !(code == 0
                || !is_hook && matches!(code, 1 | 74)
                || imports && matches!(code, 65 | 75 | 77))
            {
                wrong.push(Wrong::new(
                    "exit",
                    format!("it ended with {code}: {}{}", ran.out, ran.err),
                ));
            }
        } else if !matches!(code, 0 | KILLED) {
            wrong.push(Wrong::new("exit", format!("it ended with {code}")));
        }
        if is_hook && !(ran.out.is_empty() && ran.err.is_empty()) {
            wrong.push(Wrong::new("noise", format!("it printed {:?} and {:?}", ran.out, ran.err)));
        }
        wrong
    }

    /// The next run, without a fault, makes everything good.
    fn again(&mut self, may_leave: usize) -> Vec<Wrong> {
        let ran = self.scene.run("");
        let mut wrong = Vec::new();
        if ran.code != Some(0) {
            wrong.push(Wrong::new("again", format!("the next run ended so: {ran:?}")));
        }
        let seen = self.scene.look(true);
        if seen.temps.len() > may_leave {
            wrong.push(Wrong::new(
                "again",
                format!("{} temporary files are left", seen.temps.len()),
            ));
        }
        wrong.extend(seen.wrong);
        self.tally.missed_ends += seen.missed_ends;
        if !seen.temps.is_empty() && !self.scene.stand_in {
            wrong.extend(self.scene.age_and_clean(&seen.temps));
            wrong.extend(self.scene.look(true).wrong);
        }
        wrong
    }
}
