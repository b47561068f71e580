//! WezTerm: a pane by its number, where it is on the terminal of the session's
//! process.

use std::ffi::CString;

use serde_json::Value;

use super::run::Runner;
use super::{Outcome, Stop, Target, failed, gone, no_way, soon, window};
use crate::probe::Process;
use crate::sys::env::Var;
use crate::sys::fs::{Dir, euid};

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let (pane, socket) = (target.var(Var::WEZTERM_PANE), target.var(Var::WEZTERM_UNIX_SOCKET));
    let (Ok(pane), true) = (pane.parse::<u64>(), socket.starts_with('/')) else {
        return Err(no_way("its pane of WezTerm is not recorded"));
    };
    let meta = CString::new(socket).ok().and_then(|path| Dir::cwd().follow(&path).ok());
    if !meta.is_some_and(|meta| meta.is_socket() && meta.uid == euid()) {
        return Err(gone("the socket of its WezTerm is gone, or not ours"));
    }
    let tool = run.tool("wezterm")?.with(&["cli", "--no-auto-start"]);
    let tool = tool.with_var(Var::WEZTERM_UNIX_SOCKET, socket);
    let list = run.ask_json(&tool, &["list", "--format", "json"])?;
    let of_pane = |item: &&Value| item["pane_id"] == pane;
    let tty = list.as_array().and_then(|list| list.iter().find(of_pane)?["tty_name"].as_str());
    if tty.is_none() || tty != tty_of(target.pid).as_deref() {
        return Err(gone("its pane of WezTerm is not on its terminal"));
    }
    run.act(&tool, &["activate-pane", "--pane-id", &pane.to_string()])?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    let shows = |client: &Value| client["focused_pane_id"] == pane;
    let is_shown = || {
        let clients = run.ask_json(&tool, &["list-clients", "--format", "json"])?;
        Ok(clients.as_array().is_some_and(|clients| clients.iter().any(shows)))
    };
    if !soon(is_shown)? {
        return Err(failed("no client of WezTerm shows its pane"));
    }
    let window::Raised { is: raised, reason } = window::raise(target.pid, run);
    Ok(Outcome::selected(raised, reason))
}

/// The terminal of a process, as a path.
fn tty_of(pid: u32) -> Option<String> {
    let mut buffer = [0; 4096];
    let process = Process::read(pid).ok()?;
    let tty = process.tty(&mut buffer)?;
    Some(format!("/dev/{}", core::str::from_utf8(tty).ok()?))
}
