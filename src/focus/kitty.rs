//! kitty: a window of its own kind, in a tab, by its remote control.
//!
//! It needs `allow_remote_control` and `listen_on` in kitty.conf. The record's
//! kitty must be an ancestor of the session's process, and so must what the
//! window runs.

use serde_json::Value;

use super::run::{Runner, Tool};
use super::{Outcome, Stop, Target, failed, gone, is_below, no_way, soon};
use crate::sys::env::Var;

/// One window, with what it is in.
struct Window {
    pid: u32,
    is_active: bool,
    is_focused: bool,
}

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let (socket, id) = (target.var(Var::KITTY_LISTEN_ON), target.var(Var::KITTY_WINDOW_ID));
    let number = |text: &str| text.parse::<u32>().ok();
    let (Some(id), Some(kitty)) = (number(id), number(target.var(Var::KITTY_PID))) else {
        return Err(no_way("its window of kitty is not recorded"));
    };
    if !(socket.starts_with("unix:/") || socket.starts_with("unix:@")) {
        let why =
            "its kitty has no remote control (listen_on and allow_remote_control in kitty.conf)";
        return Err(no_way(why));
    }
    if !is_below(target.pid, kitty) {
        return Err(gone("its process is not below the recorded kitty"));
    }
    let filter = format!("id:{id}");
    // Older ones have one program, which cannot list a single window.
    let (tool, ls) = match run.tool("kitten") {
        Ok(tool) => (tool, vec!["ls", "--match", &filter]),
        Err(_) => (run.tool("kitty").map_err(|_| Stop::Missing("kitten"))?, vec!["ls"]),
    };
    let tool = tool.with(&["@", "--to", socket]);
    let window = look(run, &tool, &ls, id)?;
    if !window.is_some_and(|window| is_below(target.pid, window.pid)) {
        return Err(gone("no window of its kitty holds its process"));
    }
    run.act(&tool, &["focus-window", "--match", &filter])?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    let mut window = None;
    soon(|| {
        window = look(run, &tool, &ls, id)?;
        Ok(window.as_ref().is_some_and(|window| window.is_active && window.is_focused))
    })?;
    match window {
        Some(Window { is_active: true, is_focused: true, .. }) => {
            Ok(Outcome::selected(Some(true), ""))
        }
        Some(Window { is_active: true, .. }) => {
            let why = "the window system did not make kitty's the active window";
            Ok(Outcome::selected(Some(false), why))
        }
        _ => Err(failed("kitty did not select its window")),
    }
}

fn look(run: &Runner<'_>, tool: &Tool, ls: &[&str], id: u32) -> Result<Option<Window>, Stop> {
    Ok(find(&run.ask_json(tool, ls)?, id))
}

/// Finds a window in what `ls` prints: windows of the system, their tabs, the
/// windows of these.
fn find(list: &Value, id: u32) -> Option<Window> {
    for system in list.as_array()? {
        for tab in system["tabs"].as_array()? {
            let Some(window) = tab["windows"].as_array()?.iter().find(|w| w["id"] == id) else {
                continue;
            };
            return Some(Window {
                pid: window["pid"].as_u64()?.try_into().ok()?,
                is_active: is_active(tab) && is_active(window),
                is_focused: system["is_focused"] == true,
            });
        }
    }
    None
}

/// Whether a tab or a window is the one in front of what it is in. Older kittys
/// have only `is_focused`, which meant that.
fn is_active(item: &Value) -> bool {
    item.get("is_active").or(item.get("is_focused")) == Some(&Value::Bool(true))
}
