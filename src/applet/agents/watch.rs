//! `tongs-agents watch`: tells of every session and every change, in lines, in
//! notices and to a command. Only reads.

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{Stdout, early, errno, stdout};
use super::super::feed::{Place, SessionFeed, Woken};
use super::super::fleet::Event;
use super::super::notices::{Level, Notices};
use super::super::view::Row;
use super::{PROG, check_version, hint};
use crate::cli::{Exit, Fail, Out, Shown, duration, parse_with_command};
use crate::record::out::Sink;
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::spawn::feed;
use crate::sys::stdio;
use crate::sys::watch::{Alarm, is_ringing};

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
        feed: SessionFeed::reading(start.env),
        notices: options.notify.then(Notices::default),
    };
    watcher.run()
}

struct Watcher<'w> {
    env: &'w Env<'w>,
    json: bool,
    until_attention: bool,
    /// When the time is over, on CLOCK_MONOTONIC.
    end_ms: Option<u64>,
    command: Vec<&'w str>,
    out: Out<Stdout>,
    feed: SessionFeed<'w>,
    notices: Option<Notices>,
}

impl Watcher<'_> {
    fn run(mut self) -> Result<Exit, Fail> {
        let ended = self.watch();
        if let Some(failed) = self.notices.as_mut().and_then(Notices::finish) {
            hint(&failed);
        }
        ended
    }

    fn watch(&mut self) -> Result<Exit, Fail> {
        let mut ready = false;
        loop {
            let told = self.look(!ready)?;
            if !ready {
                let line = if self.json { "{\"event\":\"ready\"}\n" } else { "ready\n" };
                self.out.put(line.as_bytes())?;
            }
            self.out.flush()?;
            self.notify();
            if ready {
                told.iter().take_while(|json| self.execute(json)).for_each(drop);
            }
            ready = true;
            if self.until_attention && self.feed.fleet.sessions().any(|known| known.row.asks()) {
                return Ok(Exit::Ok);
            }
            if self.end_ms.is_some_and(|end| Now::read().mono_ms >= end) {
                return Ok(Exit::No);
            }
            if self.sleep() == Woken::Called && stdio::out_is_gone() {
                // Nobody reads any more.
                return Ok(Exit::Ok);
            }
        }
    }

    /// Sleeps until there is something to look at or the time is over.
    fn sleep(&mut self) -> Woken {
        loop {
            let Watcher { feed, notices, .. } = self;
            let notice_ms = notices.as_ref().map_or(u64::MAX, |n| n.next_ms(&feed.fleet));
            let end_ms = self.end_ms.unwrap_or(u64::MAX);
            let ringing: Vec<Alarm<'_>> = notices.iter().flat_map(Notices::alarms).collect();
            let own = [&[stdio::out_alarm()], &*ringing].concat();
            let is_called = || stdio::out_is_gone() || is_ringing(&ringing);
            let woken = feed.sleep(&own, notice_ms.min(end_ms), is_called);
            self.notify();
            let is_over = Now::read().mono_ms >= end_ms || stdio::out_is_gone();
            if woken == Woken::ToLook || is_over {
                return woken;
            }
        }
    }

    /// Looks at the store and prints what is different; returns it for the
    /// command.
    fn look(&mut self, first: bool) -> Result<Vec<Vec<u8>>, Fail> {
        let Watcher { feed, out, json: as_json, command, .. } = self;
        let mut told = Vec::new();
        let place = feed.look(&mut |event, row, session| {
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
        match place {
            Place::Unavailable(why) if first => Err(Fail::new(Exit::No, why)),
            // It may be about to be made.
            Place::Open | Place::Missing | Place::Unavailable(_) => Ok(told),
        }
    }

    fn notify(&mut self) {
        let Some(notices) = &mut self.notices else { return };
        if let Some(failed) = notices.tend(&mut self.feed.fleet, Level::All, self.env) {
            hint(&failed);
        }
    }

    /// Runs the command for a change; says whether there is time for another one.
    fn execute(&self, json: &[u8]) -> bool {
        let name = self.command.first().copied().unwrap_or("");
        let left_ms = self.end_ms.map(|end| end.saturating_sub(Now::read().mono_ms));
        let limit_ms = left_ms.map_or(LIMIT_MS, |left| left.min(LIMIT_MS));
        if limit_ms == 0 {
            return false;
        }
        match feed(&self.command, json, limit_ms) {
            Ok(Some(0)) => {}
            Ok(Some(code)) => hint(&format!("'{name}' ended with {code}")),
            Ok(None) => hint(&format!(
                "'{name}' was ended by a signal or took over {}",
                if limit_ms == LIMIT_MS { "10 s" } else { "the time that was left" }
            )),
            Err(e) => hint(&format!("cannot run '{name}': {}", errno(e))),
        }
        true
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
