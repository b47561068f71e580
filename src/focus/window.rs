//! The windows of terminals: bringing one to the front, whatever is in it.
//!
//! A window is that of the nearest ancestor that owns one. Where that process
//! owns several, which one it is cannot be told, and none is brought to the
//! front.

use serde_json::Value;

use super::run::{Runner, Tool};
use super::{Outcome, State, Stop, Target, gone, no_way, soon};
use crate::probe::{Ancestry, Process};
use crate::sys::env::Var;
use crate::sys::process::host_name;

/// Programs whose windows hold one terminal each.
const WITHOUT_TABS: [&[u8]; 9] = [
    b"alacritty",
    b"foot",
    b"footclient",
    b"xterm",
    b"urxvt",
    b"urxvtd",
    b"urxvt256c",
    b"rxvt",
    b"rxvt-unicode",
];

/// A window system that can be asked for windows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Sway,
    Hyprland,
    Niri,
    X11,
}

/// A window of a process.
struct Window {
    id: String,
    pid: u32,
    active: bool,
}

/// What came of bringing a window to the front.
pub(super) struct Raised {
    /// Whether it is the active one; `None` where that was not tried.
    pub is: Option<bool>,
    /// Why not.
    pub reason: String,
}

impl System {
    fn find(run: &Runner<'_>) -> Option<System> {
        let all = [
            (Var::SWAYSOCK, System::Sway),
            (Var::HYPRLAND_INSTANCE_SIGNATURE, System::Hyprland),
            (Var::NIRI_SOCKET, System::Niri),
            (Var::DISPLAY, System::X11),
        ];
        all.iter().find(|(var, _)| run.env.get(*var).is_some()).map(|(_, system)| *system)
    }

    /// Whether it was tried with a real one.
    fn is_tried(self) -> bool {
        matches!(self, System::Sway | System::X11)
    }

    fn tool(self, run: &Runner<'_>) -> Result<Tool, Stop> {
        run.tool(match self {
            System::Sway => "swaymsg",
            System::Hyprland => "hyprctl",
            System::Niri => "niri",
            System::X11 => "wmctrl",
        })
    }

    fn windows(self, run: &Runner<'_>, tool: &Tool) -> Result<Vec<Window>, Stop> {
        let json = |args: &[&str]| run.ask_json(tool, args);
        let mut windows = Vec::new();
        match self {
            System::Sway => sway_windows(&json(&["-r", "-t", "get_tree"])?, &mut windows),
            System::Hyprland => {
                let active = json(&["activewindow", "-j"])?;
                for window in json(&["clients", "-j"])?.as_array().into_iter().flatten() {
                    let address = &window["address"];
                    windows.extend(Window::of(
                        address,
                        &window["pid"],
                        *address == active["address"],
                    ));
                }
            }
            System::Niri => {
                for window in json(&["msg", "--json", "windows"])?.as_array().into_iter().flatten()
                {
                    let active = window["is_focused"] == true;
                    windows.extend(Window::of(&window["id"], &window["pid"], active));
                }
            }
            System::X11 => {
                let root = run.ask(&run.tool("xprop")?, &["-root", "_NET_ACTIVE_WINDOW"])?;
                let active = root.trim_end().rsplit(' ').next().and_then(hex);
                let host = host();
                windows.extend(run.ask(tool, &["-lp"])?.lines().filter_map(|line| {
                    let mut words = line.split_whitespace();
                    let (id, _, pid) = (words.next()?, words.next()?, words.next()?);
                    let here = words.next()? == host;
                    let window =
                        Window { id: id.into(), pid: pid.parse().ok()?, active: hex(id) == active };
                    (here && hex(id).is_some()).then_some(window)
                }));
            }
        }
        Ok(windows)
    }

    fn activate(self, run: &mut Runner<'_>, tool: &Tool, id: &str) -> Result<(), Stop> {
        match self {
            System::Sway => run.act(tool, &[&format!("[con_id={id}] focus")]),
            System::Hyprland => {
                run.act(tool, &["dispatch", "focuswindow", &format!("address:{id}")])
            }
            System::Niri => run.act(tool, &["msg", "action", "focus-window", "--id", id]),
            System::X11 => run.act(tool, &["-i", "-a", id]),
        }
    }
}

impl Window {
    /// A window from JSON: an id is a number or hexadecimal.
    fn of(id: &Value, pid: &Value, active: bool) -> Option<Window> {
        let id = match id {
            Value::String(text) => hex(text).map(|_| text.clone())?,
            id => id.as_u64()?.to_string(),
        };
        Some(Window { id, pid: pid.as_u64()?.try_into().ok()?, active })
    }
}

fn sway_windows(node: &Value, windows: &mut Vec<Window>) {
    // Only views have a pid.
    windows.extend(Window::of(&node["id"], &node["pid"], node["focused"] == true));
    for list in ["nodes", "floating_nodes"] {
        for node in node[list].as_array().into_iter().flatten() {
            sway_windows(node, windows);
        }
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// This machine's name, as windows of X have it.
fn host() -> String {
    host_name().unwrap_or_default()
}

/// A window that was found, and the process that owns it.
struct Found {
    window: Window,
    owner: Process,
}

/// Finds the window of a process: that of its nearest ancestor that owns one.
fn find(pid: u32, hint: Option<u64>, windows: Vec<Window>) -> Result<Found, Stop> {
    let mut ancestry = Ancestry::from(pid);
    let owner = (0..)
        .map_while(|at| ancestry.get(at).copied())
        .find(|p| windows.iter().any(|w| w.pid == p.pid));
    let Some(owner) = owner else {
        return Err(gone("no window of its terminal can be seen"));
    };
    let mut own: Vec<Window> = windows.into_iter().filter(|w| w.pid == owner.pid).collect();
    if own.iter().any(|window| hint.is_some() && hex(&window.id) == hint) {
        own.retain(|window| hex(&window.id) == hint);
    }
    match (own.len(), own.pop()) {
        (1, Some(window)) => Ok(Found { window, owner }),
        (many, _) => Err(Stop::Failed(format!(
            "its terminal has {many} windows, and which one is its is not known"
        ))),
    }
}

/// Brings the window of a process to the front. `hint` is the id that X has
/// given it, where the record says so.
fn bring(
    system: System,
    pid: u32,
    hint: Option<u64>,
    run: &mut Runner<'_>,
) -> Result<(Process, bool), Stop> {
    let tool = system.tool(run)?;
    let Found { window, owner } = find(pid, hint, system.windows(run, &tool)?)?;
    if window.active {
        return Ok((owner, true));
    }
    system.activate(run, &tool, &window.id)?;
    if run.dry_run {
        return Ok((owner, false));
    }
    let is_active = |w: &Window| w.active && w.id == window.id;
    let raised = soon(|| Ok(system.windows(run, &tool)?.iter().any(is_active)))?;
    Ok((owner, raised))
}

/// Brings the window that a process is in to the front, where there is a way.
pub(super) fn raise(pid: u32, run: &mut Runner<'_>) -> Raised {
    let Some(system) = System::find(run) else {
        return Raised { is: None, reason: String::new() };
    };
    match bring(system, pid, None, run) {
        Ok((_, true)) => Raised { is: Some(true), reason: String::new() },
        Ok((_, false)) if run.dry_run => Raised { is: None, reason: String::new() },
        Ok((_, false)) => {
            Raised { is: Some(false), reason: "its window did not become the active one".into() }
        }
        Err(Stop::Missing(tool)) => Raised {
            is: None,
            reason: format!("its window was left as it is: {tool} is not installed"),
        },
        Err(Stop::Failed(why) | Stop::Unavailable(why)) => Raised { is: Some(false), reason: why },
    }
}

/// Whether there is a window system that can be told what to show.
pub(super) fn is_there(run: &Runner<'_>) -> bool {
    System::find(run).is_some()
}

/// Goes to the window of a session in a terminal that has no way to its tabs.
pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let Some(system) = System::find(run) else {
        let why = "there is no way to its terminal but by the window, and no window system to ask";
        return Err(no_way(why));
    };
    let hint = target.var(Var::WINDOWID).parse().ok();
    let (owner, is_raised) = bring(system, target.pid, hint, run)?;
    let tabs = !WITHOUT_TABS.contains(&owner.comm());
    let (state, reason) = match (run.dry_run, is_raised, tabs, system.is_tried()) {
        (true, ..) => (State::Planned, ""),
        (_, false, ..) => (State::Failed, "its window did not become the active one"),
        (_, _, true, _) => {
            (State::Partial, "its window is the active one, and there is no way to its tab")
        }
        (.., false) => (
            State::Partial,
            "its window is the active one, and this way has not been tried with a real window system",
        ),
        _ => (State::Complete, ""),
    };
    let raised = (!run.dry_run).then_some(is_raised);
    Ok(Outcome {
        state,
        raised,
        verified: is_raised && !run.dry_run,
        ..Outcome::unavailable(reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_s_windows_are_its_views() {
        let tree = serde_json::json!({"id": 1, "nodes": [
            {"id": 2, "focused": false, "nodes": [{"id": 5, "pid": 12, "focused": true}],
             "floating_nodes": [{"id": 6, "pid": 13, "focused": false}]}
        ]});
        let mut windows = Vec::new();
        sway_windows(&tree, &mut windows);
        let seen: Vec<_> = windows.iter().map(|w| (w.id.as_str(), w.pid, w.active)).collect();
        assert_eq!(seen, [("5", 12, true), ("6", 13, false)]);
    }

    #[test]
    fn an_id_is_a_number() {
        let of = |id: Value| Window::of(&id, &serde_json::json!(1), true).map(|w| w.id);
        assert_eq!(of("0x5f".into()).as_deref(), Some("0x5f"));
        assert_eq!(of(7.into()).as_deref(), Some("7"));
        assert_eq!(of("7;x".into()), None);
        assert_eq!(of(Value::Null), None);
    }
}
