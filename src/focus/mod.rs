//! Going to a session: its pane or tab, and the window that shows it.
//!
//! Each terminal has an adapter that runs the terminal's own tool, with an
//! argument array and a time limit, and reads back what came of it. Where a
//! session is is never guessed: what a record says of a pane counts only where
//! the session's process is seen to be in it. What a tool gets from a record is
//! a number or a checked path; no other text of a record reaches one.

mod apple;
mod kitty;
mod konsole;
mod run;
mod screen;
mod tmux;
mod wezterm;
mod window;
mod zellij;

pub use run::Runner;
pub use tmux::Viewed;

use crate::probe::Ancestry;
use crate::sys::env::Var;
use crate::sys::spawn::pause;

/// How often a change is looked for before it is given up, and the milliseconds
/// between two looks.
const LOOKS: usize = 10;
const LOOK_MS: i64 = 20;

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

    /// Whether there may be a way to it from here.
    pub fn is_reachable(&self, run: &Runner<'_>) -> bool {
        let by_window = || window::is_there(run);
        Adapter::of(&self.terminal).is_some_and(|a| !a.is_window || by_window())
    }

    /// Whether the caller runs where the session does, by the caller's variables.
    fn is_caller_s(&self, run: &Runner<'_>) -> bool {
        let keys = Adapter::of(&self.terminal).map_or(&[][..], |adapter| adapter.place);
        let same =
            |key: &Var| !self.var(*key).is_empty() && run.env.text(*key) == Some(self.var(*key));
        !keys.is_empty() && keys.iter().all(same)
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
    /// Its pane or tab is the one that its terminal shows, as was read back.
    fn selected(raised: Option<bool>, reason: impl Into<String>) -> Outcome {
        let outcome = Outcome { state: State::Complete, ..Outcome::unavailable(reason) };
        Outcome { selected: true, raised, verified: true, ..outcome }
    }

    /// Nothing was done but to find out.
    fn planned() -> Outcome {
        Outcome { state: State::Planned, ..Outcome::unavailable("") }
    }

    /// This command is left to do.
    fn left(command: Vec<String>, reason: &str) -> Outcome {
        Outcome { state: State::Partial, command, ..Outcome::unavailable(reason) }
    }

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

/// There is no way, for this reason.
#[cold]
#[inline(never)]
fn no_way(reason: &str) -> Stop {
    Stop::Unavailable(reason.to_string())
}

/// There is nothing to go to, for this reason.
#[cold]
#[inline(never)]
fn gone(reason: &str) -> Stop {
    Stop::Unavailable(reason.to_string())
}

/// It did not work, for this reason.
#[cold]
#[inline(never)]
fn failed(reason: &str) -> Stop {
    Stop::Failed(reason.to_string())
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Outcome {
        match stop {
            Stop::Unavailable(reason) => Outcome::unavailable(reason),
            Stop::Failed(reason) => {
                Outcome { state: State::Failed, ..Outcome::unavailable(reason) }
            }
            Stop::Missing(tool) => {
                let outcome = Outcome::unavailable(format!("{tool} is not installed"));
                Outcome { missing: Some(tool), ..outcome }
            }
        }
    }
}

/// How sessions in a terminal are gone to.
struct Adapter {
    /// The names of the terminals.
    terminals: &'static [&'static str],
    go: fn(&Target, &mut Runner<'_>) -> Result<Outcome, Stop>,
    /// Whether it was tried with the real program. What was not is never complete.
    is_tried: bool,
    /// Whether it can do no more than bring a window to the front.
    is_window: bool,
    /// The variables that say in which pane or tab of which program one is.
    place: &'static [Var],
}

const ADAPTERS: &[Adapter] = &[
    // Its place is asked for, for variables outlive it.
    Adapter { terminals: &["tmux"], go: tmux::go, is_tried: true, is_window: false, place: &[] },
    Adapter {
        terminals: &["zellij"],
        go: zellij::go,
        is_tried: false,
        is_window: false,
        place: &[Var::ZELLIJ_SESSION_NAME, Var::ZELLIJ_PANE_ID],
    },
    Adapter {
        terminals: &["screen"],
        go: screen::go,
        is_tried: true,
        is_window: false,
        place: &[Var::STY, Var::WINDOW],
    },
    Adapter {
        terminals: &["kitty"],
        go: kitty::go,
        is_tried: true,
        is_window: false,
        place: &[Var::KITTY_PID, Var::KITTY_WINDOW_ID],
    },
    Adapter {
        terminals: &["wezterm"],
        go: wezterm::go,
        is_tried: false,
        is_window: false,
        place: &[Var::WEZTERM_UNIX_SOCKET, Var::WEZTERM_PANE],
    },
    Adapter {
        terminals: &["konsole"],
        go: konsole::go,
        is_tried: true,
        is_window: false,
        place: &[Var::KONSOLE_DBUS_SERVICE, Var::KONSOLE_DBUS_SESSION],
    },
    Adapter {
        terminals: &["iterm2"],
        go: apple::iterm,
        is_tried: false,
        is_window: false,
        place: &[Var::ITERM_SESSION_ID],
    },
    Adapter {
        terminals: &["macos_terminal"],
        go: apple::terminal,
        is_tried: false,
        is_window: false,
        place: &[Var::TERM_SESSION_ID],
    },
    Adapter {
        terminals: &[
            "gnome",
            "ptyxis",
            "ghostty",
            "terminator",
            "vscode",
            "alacritty",
            "foot",
            "generic",
        ],
        go: window::go,
        is_tried: true,
        is_window: true,
        place: &[],
    },
];

impl Adapter {
    fn of(terminal: &str) -> Option<&'static Adapter> {
        ADAPTERS.iter().find(|adapter| adapter.terminals.contains(&terminal))
    }
}

/// What there is of a way to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A pane or tab, tried with the real program.
    Tried,
    /// A pane or tab, by the manual alone.
    Untested,
    /// No more than the window.
    Window,
}

/// The way to a terminal; `None` where there is none.
pub fn way(terminal: &str) -> Option<Way> {
    Adapter::of(terminal).map(|adapter| match adapter {
        Adapter { is_window: true, .. } => Way::Window,
        Adapter { is_tried: true, .. } => Way::Tried,
        _ => Way::Untested,
    })
}

/// Goes to a session, or finds out how, where the runner only plans.
pub fn go(target: &Target, run: &mut Runner<'_>) -> Outcome {
    let terminal = &target.terminal;
    match Adapter::of(terminal) {
        Some(adapter) => {
            let mut outcome = (adapter.go)(target, run).unwrap_or_else(Outcome::from);
            if outcome.state == State::Complete && !adapter.is_tried {
                outcome.state = State::Partial;
                outcome.reason =
                    format!("the way to {terminal} has not been tried with a real one");
            }
            outcome
        }
        None if terminal.is_empty() => Outcome::unavailable("its terminal is not known"),
        None => Outcome::unavailable(format!("there is no way to {terminal}")),
    }
}

/// The place of the session that its user looks at, among these: the one whose
/// pane or tab the caller runs in, else the one that the tmux client shows that was
/// used last.
pub fn in_view(targets: &[Target], run: &Runner<'_>) -> Option<usize> {
    let pane = tmux::pane_of_caller(run);
    if let Some(at) = pane.and_then(|pane| targets.iter().position(|t| is_below(t.pid, pane))) {
        return Some(at);
    }
    if let Some(at) = targets.iter().position(|target| target.is_caller_s(run)) {
        return Some(at);
    }
    let shown = targets.iter().enumerate().filter(|(_, target)| target.terminal == "tmux");
    let shown = shown.filter_map(|(at, target)| Some((tmux::viewed(target, run)?.activity, at)));
    shown.max().map(|(_, at)| at)
}

/// Looks until it is so, for a fifth of a second: what a terminal was told it does
/// in its own time.
fn soon(mut is_so: impl FnMut() -> Result<bool, Stop>) -> Result<bool, Stop> {
    for _ in 0..LOOKS {
        if is_so()? {
            return Ok(true);
        }
        pause(LOOK_MS);
    }
    is_so()
}

/// Whether a process is another one or below it.
fn is_below(pid: u32, top: u32) -> bool {
    let mut ancestry = Ancestry::from(pid);
    (0..).map_while(|at| ancestry.get(at).map(|p| p.pid)).any(|pid| pid == top)
}
