//! Notices for the user: which sessions are worth one, what it says, and how it
//! gets out.
//!
//! A session is told of once for each wait, error or rest that asks for its
//! user, and again when one that was put off comes back. What is due at one
//! moment is one notice, so that a start, a wake-up of the machine or a burst
//! does not ring many times.

use std::ffi::CString;

use super::fail::errno;
use super::fleet::{Fleet, Known, Told};
use super::view::{Row, rank};
use crate::cli::{Shown, push_cut};
use crate::record::Status;
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::fs::{Dir, May, Open};
use crate::sys::spawn::Feeding;
use crate::sys::watch::{Alarm, sleep};

/// Milliseconds that a permission must be waited for: harnesses answer most of
/// them themselves.
const HOLD_MS: u64 = 4000;
/// Milliseconds that a program that shows a notice may take.
const LIMIT_MS: u64 = 5000;
/// Cells of a title.
const TITLE: usize = 80;
/// Cells of a line of the text.
const LINE: usize = 120;
/// Sessions that one notice names.
const NAMED: usize = 5;

/// One notice. Both texts are escaped and bounded.
struct Notice {
    title: String,
    /// Lines; the last one has no newline.
    body: String,
}

/// Which sessions are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// All that ask for their user.
    All,
    /// Those that wait for an answer.
    Waiting,
    /// None.
    None,
}

impl Level {
    /// All levels, the loudest first.
    pub const ALL: [Level; 3] = [Level::All, Level::Waiting, Level::None];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Level::All => "all",
            Level::Waiting => "waiting",
            Level::None => "none",
        }
    }

    fn takes(self, row: &Row) -> bool {
        match self {
            Level::All => true,
            Level::Waiting => row.status == Some(Status::Waiting),
            Level::None => false,
        }
    }
}

/// The notices of one watch: at most one is on its way out, and what begins to
/// ask meanwhile is in the next.
#[derive(Default)]
pub struct Notices {
    begun: bool,
    complained: bool,
    showing: Option<Showing>,
}

impl Notices {
    /// Goes on with the notice that is on its way out, and begins the next one as
    /// soon as it is due. A permission that is there at the first call is not held
    /// back. What the level passes over is not told of later. Says what failed,
    /// once.
    pub fn tend(&mut self, fleet: &mut Fleet, level: Level, env: &Env<'_>) -> Option<String> {
        let mut failed = self.step();
        if self.showing.is_none() {
            if let Some(notice) = self.due(fleet, level, Now::read().mono_ms) {
                self.showing = Some(Showing::begin(notice, env));
                failed = failed.or(self.step());
            }
        }
        failed
    }

    /// Waits until the notice that is on its way is out.
    pub fn finish(&mut self) -> Option<String> {
        let mut failed = None;
        while let Some(showing) = &self.showing {
            sleep(&showing.alarms().collect::<Vec<_>>(), showing.due_ms().unwrap_or(0));
            failed = failed.or(self.step());
        }
        failed
    }

    /// When there is something to do though nothing wakes the sleeper, on
    /// CLOCK_MONOTONIC.
    pub fn next_ms(&self, fleet: &Fleet) -> u64 {
        match &self.showing {
            Some(showing) => Now::read().mono_ms.saturating_add(showing.due_ms().unwrap_or(0)),
            None => {
                let held = fleet.sessions().filter_map(|known| known.notice.until_ms());
                held.min().unwrap_or(u64::MAX)
            }
        }
    }

    /// What wakes a sleeper when there is something to do.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        self.showing.iter().flat_map(Showing::alarms)
    }

    fn step(&mut self) -> Option<String> {
        let done = self.showing.as_mut()?.step()?;
        self.showing = None;
        let why = done.err()?;
        let first = !core::mem::replace(&mut self.complained, true);
        first.then(|| format!("cannot show notices: {why}"))
    }

    fn due(&mut self, fleet: &mut Fleet, level: Level, mono_ms: u64) -> Option<Notice> {
        let mut due: Vec<&Known> = Vec::new();
        for known in fleet.sessions_mut().filter(|known| known.row.asks()) {
            let hold = if known.waiting_for == "permission" && self.begun { HOLD_MS } else { 0 };
            known.notice = match known.notice {
                // Its user has seen it meanwhile.
                _ if known.row.derived.seen => Told::Yes,
                Told::No if hold > 0 => Told::Held(mono_ms.saturating_add(hold)),
                Told::Held(until_ms) if until_ms > mono_ms => Told::Held(until_ms),
                Told::Yes => continue,
                Told::No | Told::Held(_) => Told::Yes,
            };
            let told = known.notice == Told::Yes && !known.row.derived.seen;
            if told && level.takes(&known.row) {
                due.push(known);
            }
        }
        self.begun = true;
        due.sort_by_key(|known| (rank(&known.row), known.row.id.clone()));
        notice(&due)
    }
}

/// A notice on its way out, by the first way that works.
struct Showing {
    notice: Notice,
    ways: Vec<Way>,
    bell: Bell,
    running: Option<(Way, Feeding<'static>)>,
    failed: Option<String>,
}

impl Showing {
    fn begin(notice: Notice, env: &Env<'_>) -> Showing {
        let mut ways: Vec<Way> = ways(env).collect();
        ways.reverse();
        Showing { notice, ways, bell: Bell::of(env), running: None, failed: None }
    }

    /// Goes on; says how it ended, once it has: an error is the last way's, or the
    /// one before the way that worked.
    fn step(&mut self) -> Option<Result<(), String>> {
        loop {
            if let Some((way, feeding)) = &mut self.running {
                let done = match feeding.step()? {
                    Some(0) => Ok(()),
                    Some(code) => Err(format!("'{}' ended with {code}", way.name())),
                    None => Err(format!("'{}' was ended by a signal or took too long", way.name())),
                };
                self.running = None;
                match done {
                    Ok(()) => return Some(self.failed.take().map_or(Ok(()), Err)),
                    Err(failed) => self.failed = Some(failed),
                }
            }
            let Some(way) = self.ways.pop() else {
                let none = "there is no notify-send with a session bus, and no terminal";
                return Some(Err(self.failed.take().unwrap_or_else(|| none.to_string())));
            };
            match way.start(&self.notice, &self.bell) {
                Ok(Some(feeding)) => self.running = Some((way, feeding)),
                Ok(None) => return Some(self.failed.take().map_or(Ok(()), Err)),
                Err(failed) => self.failed = Some(failed),
            }
        }
    }

    /// What wakes a sleeper when there is another step.
    fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        self.running.iter().flat_map(|(_, feeding)| feeding.alarms())
    }

    /// Milliseconds until the next step is due though nothing wakes the sleeper.
    fn due_ms(&self) -> Option<u64> {
        self.running.as_ref().map(|(_, feeding)| feeding.due_ms())
    }
}

fn notice(due: &[&Known]) -> Option<Notice> {
    let (first, more) = due.split_first()?;
    let mut title = String::new();
    let mut body = String::new();
    if more.is_empty() {
        push_cut(&mut title, &line(first), TITLE);
        push_cut(&mut body, &first.row.detail, LINE);
        return Some(Notice { title, body });
    }
    let count = |status| due.iter().filter(|known| known.row.status == Some(status)).count();
    let counts: Vec<String> = [Status::Waiting, Status::Error, Status::Idle]
        .into_iter()
        .map(|status| (status, count(status)))
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{count} {}", status.name()))
        .collect();
    push_cut(
        &mut title,
        &format!("{} agents ask for you: {}", due.len(), counts.join(", ")),
        TITLE,
    );
    for known in due.iter().take(NAMED) {
        if !body.is_empty() {
            body.push('\n');
        }
        let detail = &known.row.detail;
        let more = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        push_cut(&mut body, &(line(known) + &more), LINE);
    }
    if due.len() > NAMED {
        body.push_str(&format!("\nand {} more", due.len() - NAMED));
    }
    Some(Notice { title, body })
}

fn line(known: &Known) -> String {
    let row = &known.row;
    let does = match (row.status, &*known.waiting_for) {
        (Some(Status::Waiting), "permission") => "needs a permission",
        (Some(Status::Waiting), "question") => "asks a question",
        (Some(Status::Waiting), "plan") => "has a plan",
        (Some(Status::Waiting), _) => "waits for you",
        (Some(Status::Error), _) => "has failed",
        _ => "is done",
    };
    match row.place() {
        place if place.is_empty() => format!("{} {does}", row.harness),
        place => format!("{} {does}: {place}", row.harness),
    }
}

/// A way for a notice to get out.
enum Way {
    NotifySend,
    Osascript,
    Terminal,
}

/// The ways that there are here, the best one first.
fn ways(env: &Env<'_>) -> impl Iterator<Item = Way> {
    let desktop = (has_bus(env) && is_program(env, "notify-send")).then_some(Way::NotifySend);
    let mac = is_program(env, "osascript").then_some(Way::Osascript);
    let terminal = Dir::cwd().open(c"/dev/tty", Open::Write).is_ok().then_some(Way::Terminal);
    [desktop, mac, terminal].into_iter().flatten()
}

fn has_bus(env: &Env<'_>) -> bool {
    let is_there = |dir: &[u8]| {
        let path = CString::new([dir, b"/bus"].concat());
        path.is_ok_and(|path| Dir::cwd().follow(&path).is_ok())
    };
    env.get(Var::DBUS_SESSION_BUS_ADDRESS).is_some()
        || env.absolute(Var::XDG_RUNTIME_DIR).is_some_and(is_there)
}

fn is_program(env: &Env<'_>, name: &str) -> bool {
    let dirs = env.get(Var::PATH).unwrap_or(b"/usr/bin:/bin").split(|byte| *byte == b':');
    dirs.filter(|dir| dir.first() == Some(&b'/')).any(|dir| {
        let path = CString::new([dir, b"/", name.as_bytes()].concat());
        path.is_ok_and(|path| {
            Dir::cwd().follow(&path).is_ok_and(|meta| meta.is_file())
                && Dir::cwd().may(&path, May::Run)
        })
    })
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Way::NotifySend => "notify-send",
            Way::Osascript => "osascript",
            Way::Terminal => "/dev/tty",
        }
    }

    /// Begins to show a notice; nothing is left to be done where that was all.
    fn start(&self, notice: &Notice, bell: &Bell) -> Result<Option<Feeding<'static>>, String> {
        let Notice { title, body } = notice;
        let name = self.name();
        let run = |words: &[&str]| match Feeding::start(words, b"", LIMIT_MS, true) {
            Ok(feeding) => Ok(Some(feeding)),
            Err(e) => Err(format!("cannot run '{name}': {}", errno(e))),
        };
        match self {
            Way::NotifySend => run(&[name, "--app-name=tongs-agents", "--", title, &markup(body)]),
            Way::Osascript => run(&[
                name,
                "-e",
                "on run argv",
                "-e",
                "display notification (item 2 of argv) with title (item 1 of argv)",
                "-e",
                "end run",
                title,
                body,
            ]),
            Way::Terminal => {
                let failed = |e| format!("cannot write '{name}': {}", errno(e));
                let tty = Dir::cwd().open(c"/dev/tty", Open::Write).map_err(failed)?;
                tty.write_all(&bell.bytes(notice)).map_err(failed)?;
                Ok(None)
            }
        }
    }
}

/// Escapes text for the body of a desktop notice, which has markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// How a terminal is told.
#[derive(Debug, PartialEq, Eq)]
enum Bell {
    /// OSC 9, a text.
    Nine,
    /// OSC 777, a title and a text.
    Seven,
    /// BEL alone.
    Plain,
}

impl Bell {
    /// What this terminal understands. A multiplexer passes nothing on but a
    /// bell, which it shows by itself.
    fn of(env: &Env<'_>) -> Bell {
        let set = |var| env.get(var).is_some();
        let program = env.get(Var::TERM_PROGRAM).unwrap_or(b"");
        let term = env.get(Var::TERM).unwrap_or(b"");
        if set(Var::TMUX) || set(Var::ZELLIJ) || set(Var::STY) {
            Bell::Plain
        } else if set(Var::KITTY_WINDOW_ID)
            || set(Var::GHOSTTY_BIN_DIR)
            || matches!(program, b"iTerm.app" | b"WezTerm" | b"ghostty")
        {
            Bell::Nine
        } else if set(Var::VTE_VERSION) || term.starts_with(b"foot") || term.starts_with(b"rxvt") {
            Bell::Seven
        } else {
            Bell::Plain
        }
    }

    fn bytes(&self, notice: &Notice) -> Vec<u8> {
        let Notice { title, body } = notice;
        // Each part ends at a semicolon or a control character.
        let plain = |text: &str| Shown(&text.replace('\n', ", ")).to_string().replace(';', ",");
        let text = match self {
            Bell::Nine if body.is_empty() => format!("\x1b]9;{}\x1b\\", plain(title)),
            Bell::Nine => format!("\x1b]9;{}: {}\x1b\\", plain(title), plain(body)),
            Bell::Seven => format!("\x1b]777;notify;{};{}\x1b\\", plain(title), plain(body)),
            Bell::Plain => "\x07".to_string(),
        };
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_in_its_own_way_and_nothing_ends_the_sequence_early() {
        let notice = Notice { title: "a;b".into(), body: "c\nd \u{1b}\u{7}\u{9c}".into() };
        for (entry, want) in [
            (&b"TERM_PROGRAM=WezTerm"[..], "\x1b]9;a,b: c, d \\u{1b}\\u{7}\\u{9c}\x1b\\"),
            (b"TERM=foot-extra", "\x1b]777;notify;a,b;c, d \\u{1b}\\u{7}\\u{9c}\x1b\\"),
            (b"TERM=xterm", "\x07"),
        ] {
            let mut env = Env::empty();
            env.take(entry);
            assert_eq!(Bell::of(&env).bytes(&notice), want.as_bytes());
            env.take(b"TMUX=/tmp/s,1,0");
            assert_eq!(Bell::of(&env), Bell::Plain);
        }
    }

    #[test]
    fn a_body_has_no_markup() {
        assert_eq!(markup("<b>a</b> &amp;"), "&lt;b&gt;a&lt;/b&gt; &amp;amp;");
    }
}
