//! WezTerm: a pane by its number, where it is on the terminal of the session's
//! process.

use std::ffi::CString;

use serde_json::Value;

use super::run::{Runner, Tool};
use super::{Outcome, State, Stop, Target, window};
use crate::probe::Process;
use crate::sys::env::Var;
use crate::sys::fs::{Dir, euid};

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let (pane, socket) = (target.var(Var::WEZTERM_PANE), target.var(Var::WEZTERM_UNIX_SOCKET));
    let (Ok(pane), true) = (pane.parse::<u64>(), socket.starts_with('/')) else {
        return Err(Stop::Unavailable("its pane of WezTerm is not recorded".to_string()));
    };
    let meta = CString::new(socket).ok().and_then(|path| Dir::cwd().follow(&path).ok());
    if !meta.is_some_and(|meta| meta.is_socket() && meta.uid == euid()) {
        return Err(Stop::Failed("the socket of its WezTerm is gone, or not ours".to_string()));
    }
    let tool = run.tool("wezterm")?.with(&["cli", "--no-auto-start"]);
    let tool = tool.with_var(Var::WEZTERM_UNIX_SOCKET, socket);
    let list = json(run, &tool, &["list", "--format", "json"])?;
    let of_pane = |item: &&Value| item["pane_id"] == pane;
    let tty = list.as_array().and_then(|list| list.iter().find(of_pane)?["tty_name"].as_str());
    if tty.is_none() || tty != tty_of(target.pid).as_deref() {
        return Err(Stop::Failed("its pane of WezTerm is not on its terminal".to_string()));
    }
    run.act(&tool, &["activate-pane", "--pane-id", &pane.to_string()])?;
    if run.dry_run {
        return Ok(Outcome { state: State::Planned, ..Outcome::unavailable("") });
    }
    let clients = json(run, &tool, &["list-clients", "--format", "json"])?;
    let shows = |client: &Value| client["focused_pane_id"] == pane;
    let selected = clients.as_array().is_some_and(|clients| clients.iter().any(shows));
    if !selected {
        return Err(Stop::Failed("no client of WezTerm shows its pane".to_string()));
    }
    let window::Raised { is: raised, reason } = window::raise(target.pid, run);
    let outcome = Outcome::unavailable(reason);
    Ok(Outcome { state: State::Complete, selected, raised, verified: true, ..outcome })
}

fn json(run: &Runner<'_>, tool: &Tool, args: &[&str]) -> Result<Value, Stop> {
    serde_json::from_str(&run.ask(tool, args)?).map_err(|_| tool.odd())
}

/// The terminal of a process, as a path.
fn tty_of(pid: u32) -> Option<String> {
    let mut buffer = [0; 4096];
    let process = Process::read(pid).ok()?;
    let tty = process.tty(&mut buffer)?;
    Some(format!("/dev/{}", core::str::from_utf8(tty).ok()?))
}
