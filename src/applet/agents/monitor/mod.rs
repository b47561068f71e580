//! `tongs-agents monitor`: the sessions on a full screen, who asks for you first.
//!
//! One loop: look if that is due, draw what is different, sleep until something
//! happens. Keys, signals, the end of a notice and changes of the store are all
//! things that happen; time is one only where it changes what is shown.

mod draw;
mod model;

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{errno, trouble};
use super::super::feed::{Place, SessionFeed, Woken};
use super::super::find::{Selector, by_id};
use super::super::going::go;
use super::super::marking::{Wanted, mark};
use super::super::notices::{Level, Notices};
use super::super::store::{Found, find};
use super::super::view::{self, Row};
use super::{bad_value, options};
use crate::cli::{Exit, Fail, Frame, Key, Keys, duration, shell_line};
use crate::focus::{Runner, State};
use crate::record::Status;
use crate::store::maintain::Mode;
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::fs::Errno;
use crate::sys::guard::Signals;
use crate::sys::stdio::{self, Ready};
use crate::sys::tty::{Call, Tty};
use crate::sys::watch::{Alarm, is_ringing};
use draw::Scene;
use model::Model;

/// Seconds between two runs of the maintainer and between two drawings of ages.
const REFRESH: Duration = Duration::from_secs(2);
/// The shortest such time.
const LEAST: Duration = Duration::from_millis(100);
/// Milliseconds in which the rest of a key must come.
const KEY_MS: i64 = 50;
/// Bytes of keys that are read at once.
const KEYS: usize = 4096;
/// How long a session is put off.
const PUT_OFF: Duration = Duration::from_secs(15 * 60);
/// Most characters of the words to find.
const WORDS: usize = 200;

/// The fields that come first among the details.
const FIRST: [&str; 14] = [
    "title",
    "detail",
    "waiting_for",
    "tool",
    "status",
    "harness_id",
    "repo",
    "branch",
    "cwd",
    "session_id",
    "short_id",
    "pid",
    "terminal",
    "event",
];

/// Show the sessions on a full screen.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents monitor --notify waiting",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "this is no terminal with a movable cursor, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the terminal could not be used")
)]
struct Options {
    /// run the maintainer and renew ages so often, such as 5 or 500ms; default: 2
    #[argh(option, arg_name = "S", default = "REFRESH", from_str_fn(duration))]
    refresh: Duration,
    /// show notices of all sessions that begin to ask for you, of waiting ones or of none; default: all
    #[argh(option, arg_name = "LEVEL")]
    notify: Option<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("monitor", words)?;
    let level = match options.notify.as_deref() {
        None => Level::All,
        Some(name) => Level::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| bad_value("notify", name, &Level::ALL.map(Level::name)))?,
    };
    if options.refresh < LEAST {
        return Err(Fail::new(Exit::Usage, "--refresh is at least 100ms"));
    }
    let env = start.env;
    let refused = |why: &str| {
        let text = format!("cannot show a full screen: {why} (see 'tongs-agents watch')");
        Err(Fail::new(Exit::No, text))
    };
    if !stdio::is_interactive() {
        return refused("standard input and output are not a terminal");
    }
    if view::is_dumb(env) || env.get(Var::TERM).is_none() {
        return refused("the terminal cannot move its cursor");
    }
    if let Found::Unavailable(why, root) = find(env) {
        return Err(Fail::new(Exit::No, trouble(why, &root)));
    }
    let tty = Tty::enter().map_err(unusable)?;
    let mut monitor = Monitor {
        env,
        refresh_ms: u64::try_from(options.refresh.as_millis()).unwrap_or(u64::MAX),
        colour: view::is_colourful(env),
        feed: SessionFeed::maintaining(env),
        looked: Now::read(),
        maintained_ms: 0,
        model: Model::default(),
        frame: Frame::default(),
        keys: Keys::default(),
        level,
        notices: Notices::default(),
        empty: String::new(),
        details: None,
        help: false,
        typing: false,
        message: String::new(),
        begun: false,
    };
    let ended = monitor.run(&tty);
    if let Ok(End::Signal(signal)) = ended {
        tty.end(signal);
        return Ok(Exit::Ok);
    }
    drop(tty);
    match ended {
        Ok(_) | Err(Errno::IO) => Ok(Exit::Ok),
        Err(e) => Err(unusable(e)),
    }
}

fn unusable(e: Errno) -> Fail {
    Fail::new(Exit::Io, format!("cannot use the terminal: {}", errno(e)))
}

/// How it ends.
enum End {
    /// By a key, or because the terminal is gone.
    Quit,
    /// By this signal.
    Signal(i32),
}

struct Monitor<'m> {
    env: &'m Env<'m>,
    refresh_ms: u64,
    colour: bool,
    feed: SessionFeed<'m>,
    /// When the last look was.
    looked: Now,
    /// When the maintainer was last run, on CLOCK_MONOTONIC.
    maintained_ms: u64,
    model: Model,
    frame: Frame,
    keys: Keys,
    level: Level,
    notices: Notices,
    /// Why there is nothing to list.
    empty: String,
    /// The fields of a session, by its id, where details are open.
    details: Option<Details>,
    help: bool,
    typing: bool,
    message: String,
    /// Whether there was a look.
    begun: bool,
}

/// What is known of one session.
#[derive(Default)]
struct Details {
    of: String,
    fields: Vec<(String, String)>,
}

impl Monitor<'_> {
    fn run(&mut self, tty: &Tty) -> Result<End, Errno> {
        let mut due = true;
        loop {
            if due {
                self.look();
            }
            self.draw(tty)?;
            due = self.sleep(tty) == Woken::ToLook;
            self.show_notices();
            match tty.call()? {
                Call::Nothing => {}
                Call::Redraw => self.frame.forget(),
                Call::Quit => return Ok(End::Quit),
                Call::End(signal) => return Ok(End::Signal(signal)),
            }
            if stdio::wait(0) != Ready::No && !self.read_keys()? {
                return Ok(End::Quit);
            }
            // What it changes wakes the next sleep.
            if !due && Now::read().mono_ms >= self.maintained_ms.saturating_add(self.refresh_ms) {
                self.maintained_ms = Now::read().mono_ms;
                self.feed.maintain(Mode::Due);
            }
        }
    }

    fn look(&mut self) {
        self.looked = Now::read();
        self.maintained_ms = self.looked.mono_ms;
        self.empty = match self.feed.look(&mut |_, _, _| Ok(())) {
            Ok(Place::Open) => {
                "No sessions. Agents are seen once 'tongs-agents install' has put hooks into their \
                 settings; 'r' looks for those that run."
                    .to_string()
            }
            Ok(Place::Missing) => {
                "No sessions: no hook has written one yet. 'tongs-agents install' puts hooks into \
                 the settings of agents; 'r' looks for those that run."
                    .to_string()
            }
            Ok(Place::Unavailable(why)) => why,
            Err(fail) => fail.text,
        };
        self.model.take(self.feed.fleet.sessions().map(|known| known.row.clone()).collect());
        if let Some(details) = &mut self.details {
            details.of.clear();
        }
        self.show_notices();
        self.begun = true;
    }

    fn show_notices(&mut self) {
        // Who looks at the screen needs no notice of what it shows at first.
        let level = if self.begun { self.level } else { Level::None };
        if let Some(failed) = self.notices.tend(&mut self.feed.fleet, level, self.env) {
            self.message = failed;
        }
    }

    /// Milliseconds since the last look.
    fn since_ms(&self) -> u64 {
        Now::read().mono_ms.saturating_sub(self.looked.mono_ms)
    }

    fn draw(&mut self, tty: &Tty) -> Result<(), Errno> {
        self.model.grow(self.since_ms() / 1000);
        self.read_details();
        let mut scene = Scene {
            model: &mut self.model,
            empty: &self.empty,
            details: self.details.as_ref().map(|details| details.fields.as_slice()),
            help: self.help,
            typing: self.typing,
            message: &self.message,
            notices: self.level,
        };
        let size = tty.size();
        let lines = draw::lines(&mut scene, size, self.colour);
        if !tty.write(self.frame.paint(lines, size).as_bytes())? {
            self.frame.forget();
        }
        Ok(())
    }

    /// Reads the fields of the chosen session, where they are to be shown and
    /// another one's are known.
    fn read_details(&mut self) {
        let Some(details) = &mut self.details else { return };
        let id = self.model.row().map_or("", |row| &row.id);
        if details.of == id && !id.is_empty() {
            return;
        }
        let found = match find(self.env) {
            Found::Open(store) if !id.is_empty() => by_id(&store, id).unwrap_or_default(),
            _ => Vec::new(),
        };
        let row = found.iter().find(|row| row.id == id);
        let mut fields = row.map(view::all_fields).unwrap_or_default();
        let place = |name: &str| FIRST.iter().position(|first| *first == name);
        fields.sort_by_key(|(name, _)| place(name).unwrap_or(FIRST.len()));
        *details = Details { of: id.to_string(), fields };
    }

    fn sleep(&mut self, tty: &Tty) -> Woken {
        let tick = self.maintained_ms.saturating_add(self.refresh_ms);
        let notice = self.notices.next_ms(&self.feed.fleet);
        let ringing: Vec<Alarm<'_>> = self.notices.alarms().collect();
        let own = [&[stdio::in_alarm(), tty.alarm()], &*ringing].concat();
        let is_called =
            || Signals::have_come() || stdio::wait(0) != Ready::No || is_ringing(&ringing);
        self.feed.sleep(&own, tick.min(notice), is_called)
    }

    /// Takes the keys that came; says whether to go on.
    fn read_keys(&mut self) -> Result<bool, Errno> {
        let mut buffer = [0; KEYS];
        loop {
            let len = stdio::read(&mut buffer)?;
            if len == 0 {
                return Ok(false);
            }
            self.keys.push(buffer.get(..len).unwrap_or(&[]));
            while let Some(key) = self.keys.next(false) {
                if !self.press(key) {
                    return Ok(false);
                }
            }
            if self.keys.are_held() && stdio::wait(KEY_MS) == Ready::Yes {
                continue;
            }
            while let Some(key) = self.keys.next(true) {
                if !self.press(key) {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
    }

    /// Does what a key asks for; says whether to go on.
    fn press(&mut self, key: Key) -> bool {
        self.message.clear();
        if self.typing {
            self.edit(key);
            return true;
        }
        if core::mem::take(&mut self.help) {
            return true;
        }
        let page = self.model.page();
        match key {
            Key::Char('q') => return false,
            Key::Char('?') => self.help = true,
            Key::Down | Key::Char('j') => self.model.down(1),
            Key::Up | Key::Char('k') => self.model.up(1),
            Key::PageDown | Key::Char(' ') | Key::Control('f' | 'd') => self.model.down(page),
            Key::PageUp | Key::Control('b' | 'u') => self.model.up(page),
            Key::Home | Key::Char('g') => self.model.first(),
            Key::End | Key::Char('G') => self.model.last(),
            Key::Char('n') => self.next_asking(true),
            Key::Char('N') => self.next_asking(false),
            Key::Char('s') => {
                self.model.next_order();
                self.message = format!("by {}", self.model.order_name());
            }
            Key::Char('1') => self.model.set_status(Some(Status::Running)),
            Key::Char('2') => self.model.set_status(Some(Status::Idle)),
            Key::Char('3') => self.model.set_status(Some(Status::Waiting)),
            Key::Char('4') => self.model.set_status(Some(Status::Error)),
            Key::Char('0') => self.model.set_status(None),
            Key::Escape => {
                self.model.set_status(None);
                self.model.set_words(String::new());
            }
            Key::Char('/') => self.typing = true,
            Key::Char('d') => {
                self.details = match self.details.take() {
                    Some(_) => None,
                    None => Some(Details::default()),
                }
            }
            Key::Char('m') => {
                let at = Level::ALL.iter().position(|level| *level == self.level).unwrap_or(0);
                self.level = Level::ALL[(at + 1) % Level::ALL.len()];
                self.message = format!("notices: {}", self.level.name());
            }
            Key::Char('a') => self.mark_chosen(None, "marked as seen"),
            Key::Char('z') => self.mark_chosen(Some(PUT_OFF), "put off for 15 minutes"),
            Key::Char('u') => self.mark_chosen(Some(Duration::ZERO), "not seen any more"),
            Key::Char('A') => self.mark_asking(),
            Key::Char('r') => {
                if !self.feed.maintain(Mode::Forced) {
                    self.message = "the store cannot be maintained".to_string();
                }
                self.look();
            }
            Key::Control('l') => self.frame.forget(),
            Key::Enter => self.go(),
            Key::Char(_) | Key::Control(_) | Key::Tab | Key::Backspace | Key::Paste(_) => {}
        }
        true
    }

    /// Changes the words that a session must have.
    fn edit(&mut self, key: Key) {
        let mut words = self.model.words().to_string();
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                words.clear();
            }
            Key::Backspace if words.is_empty() => self.typing = false,
            Key::Backspace => {
                words.pop();
            }
            Key::Control('u') => words.clear(),
            Key::Control('w') => {
                let end = words.trim_end().rfind(' ').map_or(0, |at| at + 1);
                words.truncate(end);
            }
            Key::Char(c) => words.push(c),
            Key::Paste(text) => words.extend(text.chars().filter(|c| !c.is_control())),
            Key::Down => self.model.down(1),
            Key::Up => self.model.up(1),
            _ => {}
        }
        if words.chars().count() <= WORDS && words != self.model.words() {
            self.model.set_words(words);
        }
    }

    fn next_asking(&mut self, forward: bool) {
        if !self.model.asking(forward) {
            self.message = "nobody in the list asks for you".to_string();
        }
    }

    fn mark_chosen(&mut self, put_off: Option<Duration>, done: &str) {
        let Some(row) = self.model.row() else { return };
        if row.may_ask() {
            let ids = [row.id.clone()];
            self.mark(&Wanted::Ids(&ids), put_off, done);
        } else {
            self.message = "it asks for nothing".to_string();
        }
    }

    fn mark_asking(&mut self) {
        if self.model.all().iter().any(Row::asks) {
            self.mark(&Wanted::Asking, None, "all who ask are marked as seen");
        } else {
            self.message = "nobody asks for you".to_string();
        }
    }

    /// Marks what sessions are in; the next look, which it wakes, shows it.
    fn mark(&mut self, wanted: &Wanted<'_>, put_off: Option<Duration>, done: &str) {
        self.message = match mark(self.env, wanted, put_off) {
            Ok(_) => done.to_string(),
            Err(fail) => fail.text,
        };
    }

    /// Goes to the chosen session.
    fn go(&mut self) {
        let Some(row) = self.model.row() else { return };
        let mut run = Runner::new(self.env);
        let gone = Selector::id(&row.id).and_then(|id| go(&id, &mut run));
        let gone = gone.map(|(found, outcome)| {
            let hint = shell_line(&outcome.command);
            let place = format!("{} in {}", row.harness, row.place());
            match outcome.state {
                State::Complete => format!("went to {place}, {}", found.row.field("terminal")),
                _ if hint.is_empty() => format!("cannot go to {place}: {}", outcome.reason),
                _ => format!("cannot go to {place}: {}; run {hint}", outcome.reason),
            }
        });
        self.message = gone.unwrap_or_else(|fail| fail.text);
    }
}
