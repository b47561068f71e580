//! iTerm2 and Terminal of macOS, by AppleScript. The scripts are constant; what
//! they look for is an argument.

use super::run::Runner;
use super::{Outcome, Stop, Target, failed, gone, no_way};
use crate::probe::Process;
use crate::sys::env::Var;

/// Selects the session with an id and says whether it is the current one.
const ITERM: &str = r#"on run argv
  tell application "iTerm2"
    repeat with w in windows
      repeat with t in tabs of w
        repeat with s in sessions of t
          if (id of s) is (item 1 of argv) then
            select w
            select t
            select s
            activate
            return (id of current session of current window) is (item 1 of argv)
          end if
        end repeat
      end repeat
    end repeat
  end tell
  return "none"
end run"#;

/// Selects the tab on a terminal and says whether it is the selected one in front.
const TERMINAL: &str = r#"on run argv
  tell application "Terminal"
    repeat with w in windows
      repeat with t in tabs of w
        if (tty of t) is (item 1 of argv) then
          set selected of t to true
          set index of w to 1
          activate
          return (tty of selected tab of front window) is (item 1 of argv)
        end if
      end repeat
    end repeat
  end tell
  return "none"
end run"#;

pub(super) fn iterm(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    match target.var(Var::ITERM_SESSION_ID).split_once(':') {
        Some((_, id)) if !id.is_empty() => script(ITERM, id, run),
        _ => Err(no_way("its session of iTerm2 is not recorded")),
    }
}

pub(super) fn terminal(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let mut buffer = [0; 4096];
    let process = Process::read(target.pid).ok();
    let tty = process.as_ref().and_then(|process| process.tty(&mut buffer));
    match tty.and_then(|tty| core::str::from_utf8(tty).ok()) {
        Some(tty) => script(TERMINAL, &format!("/dev/{tty}"), run),
        None => Err(no_way("the terminal of its process is not known")),
    }
}

fn script(script: &str, what: &str, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let tool = run.tool("osascript")?;
    let args = ["-e", script, what];
    if run.dry_run {
        run.act(&tool, &args)?;
        return Ok(Outcome::planned());
    }
    run.calls.push(tool.words(&args));
    match run.ask(&tool, &args)?.trim_end() {
        "true" => Ok(Outcome::selected(Some(true), "")),
        "none" => Err(gone("none of its tabs is the session's")),
        _ => Err(failed("its tab was not selected")),
    }
}
