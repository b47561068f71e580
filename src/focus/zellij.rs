//! Zellij: a pane by its number, which a session never gives again, of the
//! server that is an ancestor of the session's process.

use super::run::{Runner, Tool};
use super::{Outcome, Stop, Target, failed, no_way, soon};
use crate::probe::{Ancestry, CMDLINE};
use crate::sys::env::Var;

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let (session, pane) = (target.var(Var::ZELLIJ_SESSION_NAME), target.var(Var::ZELLIJ_PANE_ID));
    let Ok(pane) = pane.parse::<u32>() else {
        return Err(no_way("its pane of Zellij is not recorded"));
    };
    if session.is_empty() || session.starts_with('-') || session.contains('/') {
        return Err(no_way("its session of Zellij is not recorded"));
    }
    if !is_of_server(target.pid, session) {
        let why = format!("its process is not below a server of Zellij for '{session}'");
        return Err(Stop::Failed(why));
    }
    let mut tool = run.tool("zellij")?;
    let command = tool.words(&["attach", session]);
    let dir = target.var(Var::ZELLIJ_SOCKET_DIR);
    if dir.starts_with('/') {
        tool = tool.with_var(Var::ZELLIJ_SOCKET_DIR, dir);
    }
    let tool = tool.with(&["--session", session, "action"]);
    let pane = format!("terminal_{pane}");
    if shown(run, &tool)?.is_empty() {
        return Ok(Outcome::left(command, "no client shows its session of Zellij"));
    }
    run.act(&tool, &["focus-pane-id", &pane])?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    if !soon(|| Ok(shown(run, &tool)?.contains(&pane)))? {
        return Err(failed("no client of Zellij shows its pane"));
    }
    Ok(Outcome { command, ..Outcome::selected(None, "") })
}

/// The panes that the clients of a session have in focus.
fn shown(run: &Runner<'_>, tool: &Tool) -> Result<Vec<String>, Stop> {
    let text = run.ask(tool, &["list-clients"])?;
    // CLIENT_ID ZELLIJ_PANE_ID RUNNING_COMMAND
    let panes = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    Ok(panes.map(str::to_string).collect())
}

/// Whether a process is below the server of a session: `zellij --server
/// DIRECTORY/SESSION`.
fn is_of_server(pid: u32, session: &str) -> bool {
    let mut ancestry = Ancestry::from(pid);
    let mut line = [0; CMDLINE];
    let mut at = 0;
    while let Some(process) = ancestry.get(at) {
        let words = process.cmdline(&mut line).unwrap_or_default().split(|b| *b == 0);
        let mut words = words.skip_while(|word| *word != b"--server").skip(1);
        let name = words.next().and_then(|path| path.rsplit(|b| *b == b'/').next());
        if process.comm() == b"zellij" && name == Some(session.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}
