//! Going to a session: its pane or tab, and the window that shows it.
//!
//! Each terminal has an adapter that runs the terminal's own tool, with an
//! argument array and a time limit, and reads back what came of it. Where a
//! session is is never guessed: what a record says of a pane counts only where
//! the session's process is seen to be in it. What a tool gets from a record is
//! a number or a checked path; no other text of a record reaches one.

mod run;
mod tmux;

pub use run::Runner;
pub use tmux::Viewed;

use crate::probe::Ancestry;
use crate::sys::env::Var;

/// The session to go to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its process, which lives and is the recorded one.
    pub pid: u32,
    /// The terminal, as the record names it.
    pub terminal: String,
    /// What the record keeps of that terminal's variables.
    pub vars: Vec<(String, String)>,
}

impl Target {
    /// A variable of the terminal; empty where it was not kept.
    fn var(&self, var: Var) -> &str {
        let found = self.vars.iter().find(|(name, _)| name == var.name());
        found.map_or("", |(_, value)| value)
    }

    /// Whether there is an adapter for its terminal.
    pub fn is_reachable(&self) -> bool {
        adapter(&self.terminal).is_some()
    }
}

/// How far it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The session is before its user.
    Complete,
    /// Something was done, and something is left to do.
    Partial,
    /// Nothing was done: this is what would be.
    Planned,
    /// It was tried, and it did not work.
    Failed,
    /// There is no way from here.
    Unavailable,
}

impl State {
    /// Every state.
    pub const ALL: [State; 5] =
        [State::Complete, State::Partial, State::Planned, State::Failed, State::Unavailable];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Partial => "partial",
            State::Planned => "planned",
            State::Failed => "failed",
            State::Unavailable => "unavailable",
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// How far it went.
    pub state: State,
    /// Whether the pane or tab is now the one that its terminal shows.
    pub selected: bool,
    /// Whether its window is now the active one; `None` where that was not tried.
    pub raised: Option<bool>,
    /// Whether what is claimed was read back.
    pub verified: bool,
    /// Why it is not complete, or what is to be known of it; may be empty.
    pub reason: String,
    /// A command that shows the session in the terminal that runs it; empty
    /// where it is not needed or there is none.
    pub command: Vec<String>,
    /// The tool that is not installed, where it ended for that.
    pub missing: Option<&'static str>,
}

impl Outcome {
    /// Nothing was done.
    pub fn unavailable(reason: impl Into<String>) -> Outcome {
        Outcome {
            state: State::Unavailable,
            selected: false,
            raised: None,
            verified: false,
            reason: reason.into(),
            command: Vec::new(),
            missing: None,
        }
    }
}

/// Why an adapter ended early.
enum Stop {
    /// There is no way.
    Unavailable(String),
    /// It did not work.
    Failed(String),
    /// This tool is not installed.
    Missing(&'static str),
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Outcome {
        match stop {
            Stop::Unavailable(reason) => Outcome::unavailable(reason),
            Stop::Failed(reason) => {
                Outcome { state: State::Failed, ..Outcome::unavailable(reason) }
            }
            Stop::Missing(tool) => Outcome {
                missing: Some(tool),
                ..Outcome::unavailable(format!("{tool} is not installed"))
            },
        }
    }
}

type Adapter = fn(&Target, &mut Runner<'_>) -> Result<Outcome, Stop>;

/// The adapters by the name of the terminal.
const ADAPTERS: &[(&str, Adapter)] = &[("tmux", tmux::go)];

fn adapter(terminal: &str) -> Option<Adapter> {
    ADAPTERS.iter().find(|(name, _)| *name == terminal).map(|(_, go)| *go)
}

/// Goes to a session, or finds out how, where the runner only plans.
pub fn go(target: &Target, run: &mut Runner<'_>) -> Outcome {
    match adapter(&target.terminal) {
        Some(go) => go(target, run).unwrap_or_else(Outcome::from),
        None if target.terminal.is_empty() => Outcome::unavailable("its terminal is not known"),
        None => Outcome::unavailable(format!("there is no way to tabs of {}", target.terminal)),
    }
}

/// The place of the session that its user looks at, among these: the one whose
/// pane the caller runs in, else the one that the tmux client shows that was
/// used last.
pub fn in_view(targets: &[Target], run: &Runner<'_>) -> Option<usize> {
    let pane = tmux::pane_of_caller(run);
    if let Some(at) = pane.and_then(|pane| targets.iter().position(|t| is_below(t.pid, pane))) {
        return Some(at);
    }
    let shown = targets.iter().enumerate().filter(|(_, target)| target.terminal == "tmux");
    let shown = shown.filter_map(|(at, target)| Some((tmux::viewed(target, run)?.activity, at)));
    shown.max().map(|(_, at)| at)
}

/// Whether a process is another one or below it.
fn is_below(pid: u32, top: u32) -> bool {
    let mut ancestry = Ancestry::from(pid);
    (0..).map_while(|at| ancestry.get(at).map(|p| p.pid)).any(|pid| pid == top)
}
