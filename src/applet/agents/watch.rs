//! `tongs-agents watch`: tells of every session and every change, in lines, in
//! notices and to a command. Only reads.
//!
//! The store is watched first and read then, and read again after whatever woke
//! the sleeper, so the last state is never missed; what comes in a burst is read
//! together. Nothing is asked again and again, but where the system has no means
//! to watch.

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{Stdout, early, errno, stdout, trouble};
use super::super::fleet::{Event, Fleet};
use super::super::notices::Notices;
use super::super::store::{Found, find};
use super::super::view::Row;
use super::{PROG, check_version, hint};
use crate::cli::{Exit, Fail, Out, Shown, duration, parse_with_command};
use crate::record::out::Sink;
use crate::store::place::Root;
use crate::store::watch::StoreWatch;
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::spawn::feed;
use crate::sys::stdio;
use crate::sys::watch::{Jumps, sleep};

/// Milliseconds between two looks where nothing wakes the sleeper.
const TICK_MS: u64 = 500;
/// Least milliseconds between the beginnings of two looks.
const PAUSE_MS: u64 = 50;
/// Milliseconds that a command may take.
const LIMIT_MS: u64 = 10_000;

/// Tell of every session and of every change. Only reads.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents watch --json | jq -r .session.status",
    note = "See tongs-agents(1).",
    error_code(0, "a session asks for you, or nobody reads any more"),
    error_code(1, "the time is over, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// print one JSON object a line
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// end as soon as a session asks for you
    #[argh(switch)]
    until_attention: bool,
    /// end after this time, such as 30s or 10m
    #[argh(option, arg_name = "D", from_str_fn(duration))]
    timeout: Option<Duration>,
    /// show a notice when a session begins to ask for you
    #[argh(switch)]
    notify: bool,
    /// run a command, the rest of the words, for every change, with its JSON on standard input
    #[argh(switch)]
    exec: bool,
    /// the command and its arguments
    #[argh(positional, greedy, arg_name = "CMD")]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = parse_with_command(&format!("{PROG} watch"), words).map_err(early)?;
    check_version(options.json_version)?;
    match (options.exec, options.command.first()) {
        (true, None) => {
            return Err(Fail::new(
                Exit::Usage,
                "option '--exec' needs a command (see 'tongs-agents watch --help')",
            ));
        }
        (false, Some(word)) => {
            return Err(Fail::new(
                Exit::Usage,
                format!("unexpected argument '{word}' (see 'tongs-agents watch --help')"),
            ));
        }
        _ => {}
    }
    let timeout = options.timeout.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
    let watcher = Watcher {
        env: start.env,
        json: options.json || options.json_version.is_some(),
        until_attention: options.until_attention,
        end_ms: timeout.map(|ms| Now::read().mono_ms.saturating_add(ms)),
        command: options.command.iter().map(String::as_str).collect(),
        out: stdout(),
        fleet: Fleet::default(),
        notices: options.notify.then(Notices::default),
        watch: None,
        jumps: Jumps::watch(),
        looked_ms: 0,
    };
    watcher.run()
}

/// Why a sleep is over.
#[derive(PartialEq)]
enum Woken {
    /// There may be something to look at, or the time is over.
    ToLook,
    /// Nobody reads any more.
    Unread,
}

struct Watcher<'w> {
    env: &'w Env<'w>,
    json: bool,
    until_attention: bool,
    /// When the time is over, as all of these on CLOCK_MONOTONIC.
    end_ms: Option<u64>,
    command: Vec<&'w str>,
    out: Out<Stdout>,
    fleet: Fleet,
    notices: Option<Notices>,
    watch: Option<StoreWatch>,
    jumps: Option<Jumps>,
    /// When the last look began.
    looked_ms: u64,
}

impl Watcher<'_> {
    fn run(mut self) -> Result<Exit, Fail> {
        let mut ready = false;
        loop {
            if self.watch.is_none() {
                let root = Root::find(self.env).ok();
                self.watch = root.and_then(|root| StoreWatch::begin(&root).ok());
            }
            self.looked_ms = Now::read().mono_ms;
            let told = self.look(!ready)?;
            if !ready {
                let line = if self.json { "{\"event\":\"ready\"}\n" } else { "ready\n" };
                self.out.put(line.as_bytes())?;
            }
            self.out.flush()?;
            self.notify();
            if ready {
                told.iter().for_each(|json| self.execute(json));
            }
            ready = true;
            if self.until_attention && self.fleet.sessions().any(|known| known.row.asks()) {
                return Ok(Exit::Ok);
            }
            if self.end_ms.is_some_and(|end| Now::read().mono_ms >= end) {
                return Ok(Exit::No);
            }
            if self.sleep() == Woken::Unread {
                return Ok(Exit::Ok);
            }
        }
    }

    /// Looks at the store and prints what is different; returns it for the
    /// command. The store is closed again, for a directory that is held open does
    /// not tell of its removal.
    fn look(&mut self, first: bool) -> Result<Vec<Vec<u8>>, Fail> {
        let store = match find(self.env) {
            Found::Open(store) => Some(store),
            Found::Unavailable(why, root) if first => {
                return Err(Fail::new(Exit::No, trouble(why, &root)));
            }
            // It may be about to be made.
            Found::Missing | Found::Unavailable(..) => None,
        };
        let Watcher { fleet, out, json: as_json, command, .. } = self;
        let mut told = Vec::new();
        fleet.look(store.as_ref(), &mut |event, row, session| {
            let wanted = *as_json || (!command.is_empty() && !first);
            let object = if wanted { object(event, session) } else { Vec::new() };
            if *as_json {
                out.put(&object)?;
            } else {
                out.put(text(event, row).as_bytes())?;
            }
            if !command.is_empty() && !first {
                told.push(object);
            }
            Ok(())
        })?;
        Ok(told)
    }

    fn notify(&mut self) {
        let Some(notices) = &mut self.notices else { return };
        if let Some(notice) = notices.due(&mut self.fleet, Now::read().mono_ms) {
            if let Some(failed) = notices.show(&notice, self.env) {
                hint(&failed);
            }
        }
    }

    fn execute(&self, json: &[u8]) {
        let name = self.command.first().copied().unwrap_or("");
        match feed(&self.command, json, LIMIT_MS) {
            Ok(Some(0)) => {}
            Ok(Some(code)) => hint(&format!("'{name}' ended with {code}")),
            Ok(None) => hint(&format!("'{name}' was ended by a signal or took over 10 s")),
            Err(e) => hint(&format!("cannot run '{name}': {}", errno(e))),
        }
    }

    /// When the next look is due without any change.
    fn next_ms(&self) -> u64 {
        let now = Now::read();
        let turns = self.fleet.turns_ms();
        let turns = turns.map(|ms| now.mono_ms.saturating_add(ms.saturating_sub(now.wall_ms)));
        let held = self.fleet.sessions().filter_map(|known| known.notice.until_ms()).min();
        let tick = self.watch.is_none().then_some(now.mono_ms + TICK_MS);
        [turns, held, tick, self.end_ms].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    fn sleep(&mut self) -> Woken {
        let due_ms = self.next_ms();
        loop {
            let left = due_ms.saturating_sub(Now::read().mono_ms);
            let store = self.watch.iter().map(StoreWatch::alarm);
            let jumps = self.jumps.iter().map(Jumps::alarm);
            let alarms: Vec<_> = store.chain(jumps).chain([stdio::out_alarm()]).collect();
            if sleep(&alarms, left) && stdio::out_is_gone() {
                return Woken::Unread;
            }
            let jumped = self.jumps.as_ref().is_some_and(Jumps::has_come);
            if self.has_changed() || jumped || Now::read().mono_ms >= due_ms {
                break;
            }
        }
        let pause_ms = self.looked_ms + PAUSE_MS;
        loop {
            let left = pause_ms.saturating_sub(Now::read().mono_ms);
            if left == 0 {
                break;
            }
            if sleep(&[stdio::out_alarm()], left) {
                return Woken::Unread;
            }
        }
        // What came meanwhile is seen by the look that follows.
        self.has_changed();
        Woken::ToLook
    }

    fn has_changed(&mut self) -> bool {
        match self.watch.as_mut().map(StoreWatch::has_changed) {
            None => false,
            Some(Ok(changed)) => changed,
            Some(Err(_)) => {
                self.watch = None;
                true
            }
        }
    }
}

/// A change as a line of JSON.
fn object(event: Event, session: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(session.len() + 40);
    line.put(b"{\"event\":\"");
    line.put(event.name().as_bytes());
    line.put(b"\",\"session\":");
    line.put(session);
    line.put(b"}\n");
    line
}

/// A change as a line for people.
fn text(event: Event, row: &Row) -> String {
    let Row { harness, detail, .. } = row;
    let words = [event.name(), &row.status_words(), harness, &row.place(), detail];
    let mut line = String::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        line.push_str(&format!("{}  ", Shown(word)));
    }
    line.push_str(row.derived.short_id());
    line.push('\n');
    line
}
