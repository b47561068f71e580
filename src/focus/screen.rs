//! GNU screen: a window by its number, of the server that is an ancestor of the
//! session's process.

use super::run::Runner;
use super::{Outcome, Stop, Target, failed, gone, is_below, no_way, soon};
use crate::sys::env::Var;

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let (session, number) = (target.var(Var::STY), target.var(Var::WINDOW));
    let server = session.split_once('.').and_then(|(pid, _)| pid.parse::<u32>().ok());
    let (Some(server), Ok(number)) = (server, number.parse::<u32>()) else {
        return Err(no_way("its window of screen is not recorded"));
    };
    if !is_below(target.pid, server) {
        return Err(gone("its process is not below the recorded screen"));
    }
    let (tool, number) = (run.tool("screen")?, number.to_string());
    let command = tool.words(&["-x", session, "-p", &number]);
    let list = run.hear(&tool, &["-ls", session])?;
    let of_session = |line: &&str| line.split_whitespace().next() == Some(session);
    let is_attached = |line: &str| line.contains("(Attached)") || line.contains("attached)");
    if !list.lines().find(of_session).is_some_and(is_attached) {
        // It selects windows for those who look at it, and so for nobody.
        return Ok(Outcome::left(command, "no terminal shows its screen"));
    }
    let tool = tool.with(&["-S", session]);
    run.act(&tool, &["-X", "select", &number])?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    let first = |said: String| said.split_whitespace().next() == Some(number.as_str());
    if !soon(|| Ok(first(run.ask(&tool, &["-Q", "number"])?)))? {
        return Err(failed("screen did not select its window"));
    }
    Ok(Outcome { command, ..Outcome::selected(None, "") })
}
