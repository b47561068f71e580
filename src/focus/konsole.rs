//! Konsole: a tab, over D-Bus, of the session object whose program is an
//! ancestor of the session's process.

use super::run::{Runner, Tool};
use super::{Outcome, Stop, Target, failed, gone, is_below, no_way, soon, window};
use crate::sys::env::Var;

const SESSION: &str = "org.kde.konsole.Session";
const WINDOW: &str = "org.kde.konsole.Window";

pub(super) fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let service = target.var(Var::KONSOLE_DBUS_SERVICE);
    let path = target.var(Var::KONSOLE_DBUS_SESSION);
    let number = path.strip_prefix("/Sessions/").and_then(|number| number.parse::<u32>().ok());
    let (Some(number), true) = (number, is_name(service)) else {
        return Err(no_way("its tab of Konsole is not recorded"));
    };
    let tool = run.tool("dbus-send")?;
    let to = format!("--dest={service}");
    let tool = tool.with(&["--session", "--print-reply=literal", "--reply-timeout=900", &to]);
    let bus = Bus { tool };
    let shell = bus.number(run, path, SESSION, "processId")?;
    if !is_below(target.pid, shell) {
        return Err(gone("its tab of Konsole does not hold its process"));
    }
    let Some(window) = bus.window_of(run, number)? else {
        return Err(gone("no window of Konsole has its tab"));
    };
    // In a window that is not the active one Konsole changes the tab, and goes on
    // to name the old one.
    let window::Raised { is: raised, reason } = window::raise(target.pid, run);
    let set = format!("{WINDOW}.setCurrentSession");
    run.act(&bus.tool, &[&window, &set, &format!("int32:{number}")])?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    if !soon(|| Ok(bus.number(run, &window, WINDOW, "currentSession")? == number))? {
        return Err(failed("Konsole does not say that it selected its tab"));
    }
    Ok(Outcome::selected(raised, reason))
}

/// A name on the bus.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    text.contains('.') && !text.starts_with('-') && text.len() <= 255 && text.chars().all(fits)
}

/// One Konsole on the bus.
struct Bus {
    tool: Tool,
}

impl Bus {
    /// Asks for a number, which is the last word of the answer.
    fn number(
        &self,
        run: &Runner<'_>,
        path: &str,
        interface: &str,
        method: &str,
    ) -> Result<u32, Stop> {
        let said = run.ask(&self.tool, &[path, &format!("{interface}.{method}")])?;
        let number = said.split_whitespace().last().and_then(|word| word.parse().ok());
        number.ok_or_else(|| self.tool.odd())
    }

    /// The path of the window that has a tab.
    fn window_of(&self, run: &Runner<'_>, number: u32) -> Result<Option<String>, Stop> {
        let introspect = "org.freedesktop.DBus.Introspectable.Introspect";
        let xml = run.ask(&self.tool, &["/Windows", introspect])?;
        let names = xml.split("<node name=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for name in names.filter(|name| name.parse::<u32>().is_ok()) {
            let path = format!("/Windows/{name}");
            let list = run.ask(&self.tool, &[&path, &format!("{WINDOW}.sessionList")])?;
            let mut words = list.split(|c: char| !c.is_ascii_digit());
            if words.any(|word| word.parse() == Ok(number)) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}
