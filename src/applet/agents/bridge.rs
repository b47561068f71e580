//! `tongs-agents bridge`: the bridges that a user has set up, and running one: a
//! command whose output is imported, started again whenever it ends.

use std::ffi::CString;

use argh::FromArgs;

use super::super::Start;
use super::super::bridges::{Bridge, all, change, check_name, put};
use super::super::fail::{early, errno, no_timer, stdout, unusable, unwritten};
use super::super::importing::Importing;
use super::super::imports::{is_of, retire, unread};
use super::super::store::{Found, LOCKS_MS, find, make};
use super::super::upkeep::maintain;
use super::super::view::{age, put_table};
use super::{PROG, check_version, hint, options};
use crate::cli::{Cell, Column, Exit, Fail, Table, parse_with_command, shell_line};
use crate::record::out::Sink;
use crate::record::{Key, Status};
use crate::store::lock::{Lock, LockError};
use crate::store::maintain::Mode;
use crate::store::place::Root;
use crate::store::{Patience, Reader, Store, WriteError, bridges};
use crate::sys::clock::{Now, boot_id};
use crate::sys::fs::{Dir, Errno};
use crate::sys::process::random;
use crate::sys::spawn::{Source, pause};
use crate::sys::watch::{Calls, sleep};
use crate::sys::{guard, stdio};

/// Milliseconds until the first new start, and the most that they become by
/// doubling.
const FIRST_MS: u64 = 1000;
const MOST_MS: u64 = 60_000;
/// Milliseconds after which a command that ends was a good one, so that the first
/// new start is soon again.
const GOOD_MS: u64 = 60_000;
/// Milliseconds that a command has to end when it is asked to.
const GRACE_MS: u64 = 2000;
/// How often a lock is tried again, and milliseconds between two times.
const HOLDS: usize = 10;
const HOLD_MS: i64 = 10;
/// Milliseconds between two runs of the maintainer.
const UPKEEP_MS: u64 = 60_000;
/// Most lines of a command's standard error that are passed on in a window, the
/// length of that in milliseconds, and most bytes of a line.
const MURMURS: u64 = 20;
const MURMUR_MS: u64 = 60_000;
const MURMUR_BYTES: usize = 500;
/// Milliseconds for which one that says more is not listened to after each look, so
/// that a flood waits in its pipe.
const DEAF_MS: u64 = 1000;

/// Set up bridges, list or remove them, or run one: a command whose output, that of
/// an export elsewhere, is imported under the bridge's name.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents bridge add box -- ssh box tongs-agents export --follow",
    note = "add NAME CMD..., list, remove NAME and run NAME. See tongs-agents(1).",
    error_code(0, "done; of run: it was asked to end"),
    error_code(1, "there is no such bridge, or there is one already"),
    error_code(64, "usage"),
    error_code(65, "the list of bridges cannot be read"),
    error_code(69, "the bridge's command is not there"),
    error_code(74, "the store could not be read or changed"),
    error_code(75, "the bridge runs, or another process holds a lock"),
    error_code(77, "the store is not private or not ours")
)]
struct Options {
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// what to do, with which bridge, and for add its command
    #[argh(positional, greedy, arg_name = "WORD")]
    words: Vec<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    // What follows the name of a new bridge is another program's command line.
    let (options, action) = match words.split_first() {
        Some((&"add", rest)) => {
            let prog = format!("{PROG} bridge add");
            (parse_with_command::<Options>(&prog, rest).map_err(early)?, "add".to_string())
        }
        _ => {
            let mut options: Options = options("bridge", words)?;
            let action =
                if options.words.is_empty() { None } else { Some(options.words.remove(0)) };
            (options, action.unwrap_or_default())
        }
    };
    check_version(options.json_version)?;
    let json = options.json || options.json_version.is_some();
    let usage = |text: &str| {
        Err(Fail::new(Exit::Usage, format!("{text} (see 'tongs-agents bridge --help')")))
    };
    if json && action != "list" {
        return usage("--json goes with list");
    }
    let mut words = options.words.into_iter();
    let name = words.next();
    let mut rest: Vec<String> = words.collect();
    match (action.as_str(), name) {
        ("list", None) => list(start, json),
        ("add", Some(name)) => {
            let marked = rest.first().is_some_and(|word| word == "--");
            if marked {
                rest.remove(0);
            }
            check_name(&name)?;
            match rest.first() {
                None => return usage("missing argument: CMD"),
                Some(word) if word.is_empty() => return usage("missing argument: CMD"),
                // Meant for this program, most likely.
                Some(word) if word.starts_with('-') && !marked => {
                    return usage(&format!("unexpected argument: {word}"));
                }
                Some(_) => {}
            }
            add(start, Bridge { name, command: rest })
        }
        ("remove" | "run", Some(name)) if rest.is_empty() => {
            check_name(&name)?;
            let store = make(start.env)?;
            let bridge = all(&store)?.into_iter().find(|bridge| bridge.name == name);
            let none = || Fail::new(Exit::No, format!("there is no bridge '{name}'"));
            let bridge = bridge.ok_or_else(none)?;
            if action == "run" { supervise(start, &bridge) } else { remove(&store, &bridge) }
        }
        ("add" | "remove" | "run", None) => usage("missing argument: NAME"),
        ("list" | "remove" | "run", _) => usage("unexpected argument"),
        _ => usage("say one of add, list, remove and run"),
    }
}

/// What a bridge has brought, and whether it is at work.
#[derive(Default)]
struct State {
    runs: bool,
    sessions: u64,
    /// Seconds since the last line that was taken.
    age_seconds: Option<u64>,
}

fn states(store: &Store, bridges: &[Bridge]) -> Result<Vec<State>, Fail> {
    let (now, boot) = (Now::read(), boot_id());
    let boot = boot.as_ref().and_then(|boot| core::str::from_utf8(boot).ok()).unwrap_or("");
    let run =
        |bridge: &Bridge| State { runs: bridges::is_held(store, &bridge.name), ..State::default() };
    let mut states: Vec<State> = bridges.iter().map(run).collect();
    store
        .read_stored_sessions(&mut Reader::default(), |_, record| {
            let of = bridges.iter().position(|bridge| is_of(record, &bridge.name));
            let Some(state) = of.and_then(|at| states.get_mut(at)) else { return true };
            let same_boot = record.text(Key::BootId).is(boot);
            let then = record.int(Key::BootMs).filter(|_| same_boot);
            let age = then.map(|then| now.boot_ms.saturating_sub(then) / 1000);
            state.sessions += u64::from(record.status != Some(Status::Ended));
            state.age_seconds = state.age_seconds.into_iter().chain(age).min();
            true
        })
        .map_err(unread)?;
    Ok(states)
}

fn list(start: &Start<'_>, json: bool) -> Result<Exit, Fail> {
    let (bridges, states) = match find(start.env) {
        Found::Open(store) => {
            let bridges = all(&store)?;
            let states = states(&store, &bridges)?;
            (bridges, states)
        }
        Found::Missing => (Vec::new(), Vec::new()),
        Found::Unavailable(why, root) => return Err(unusable(why, &root)),
    };
    let mut out = stdout();
    if json {
        out.append(|sink| {
            put(sink, &bridges, &|at, object| {
                let state = &states[at];
                object.int("sessions", state.sessions);
                let age = state.age_seconds.map_or("null".to_string(), |age| age.to_string());
                object.key("age_seconds").put(age.as_bytes());
                object.key("running").put(if state.runs { b"true" } else { b"false" });
            });
        })?;
    } else if bridges.is_empty() {
        out.put(b"No bridges.\n")?;
    } else {
        let columns = ["NAME", "STATE", "SESSIONS", "AGE", "COMMAND"];
        let mut table = Table::new(columns.into_iter().map(Column::new).collect());
        for (Bridge { name, command }, state) in bridges.into_iter().zip(states) {
            table.push(vec![
                Cell::new(name),
                Cell::new(if state.runs { "running" } else { "stopped" }),
                Cell::new(state.sessions.to_string()),
                Cell::new(state.age_seconds.map_or("-".to_string(), age)),
                Cell::new(shell_line(&command)),
            ]);
        }
        put_table(&mut out, start.env, &table)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

fn patience() -> Result<Patience, Fail> {
    stdio::private_umask();
    Ok(Patience::of(guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?, LOCKS_MS))
}

fn add(start: &Start<'_>, bridge: Bridge) -> Result<Exit, Fail> {
    let patience = patience()?;
    let store = make(start.env)?;
    change(&store, &patience, |all| {
        match all.iter().find(|known| known.name == bridge.name) {
            Some(known) if *known == bridge => {}
            Some(known) => {
                let line = shell_line(&known.command);
                let text = format!("there is a bridge '{}' already: {line}", bridge.name);
                return Err(Fail::new(Exit::No, text));
            }
            None => all.push(bridge),
        }
        Ok(())
    })?;
    Ok(Exit::Ok)
}

/// Takes the lock of a bridge that does not run.
fn hold(store: &Store, name: &str) -> Result<Lock, Fail> {
    let mut held = bridges::hold(store, name);
    // Whoever lists the bridges holds it for a moment.
    for _ in 0..HOLDS {
        if !matches!(held, Err(LockError::Busy)) {
            break;
        }
        pause(HOLD_MS);
        held = bridges::hold(store, name);
    }
    held.map_err(|e| match e {
        LockError::Busy => Fail::new(Exit::Busy, format!("the bridge '{name}' runs")),
        e => {
            let (exit, why) = unwritten(WriteError::from(e));
            Fail::cannot(exit, "lock", name, why)
        }
    })
}

fn remove(store: &Store, bridge: &Bridge) -> Result<Exit, Fail> {
    let patience = patience()?;
    let held = hold(store, &bridge.name)?;
    // Its records first: a bridge without records can be removed again, records
    // without a bridge cannot.
    if let (_, Some(failed)) = retire(store, &bridge.name)? {
        return Err(failed);
    }
    change(store, &patience, |all| {
        all.retain(|known| known.name != bridge.name);
        Ok(())
    })?;
    bridges::let_go(store, &bridge.name, &held);
    Ok(Exit::Ok)
}

/// Runs a bridge until a signal asks it to end.
fn supervise(start: &Start<'_>, bridge: &Bridge) -> Result<Exit, Fail> {
    stdio::private_umask();
    guard::ignore_terminal_stops();
    let mut place = Place::find(start, bridge)?;
    let calls = Calls::note()
        .map_err(|e| Fail::new(Exit::Io, format!("cannot note signals: {}", errno(e))))?;
    let say = |text: &str| hint(&format!("bridge '{}': {text}", bridge.name));
    let mut wait_ms = FIRST_MS;
    loop {
        let begin_ms = Now::read().mono_ms;
        let source = Source::start(&bridge.command).map_err(|e| {
            let exit = match e {
                Errno::NOENT | Errno::NOTDIR => Exit::Unavailable,
                Errno::ACCESS | Errno::PERM => Exit::Refused,
                _ => Exit::Io,
            };
            Fail::cannot(exit, "run", bridge.command.first().map_or("", |word| word), errno(e))
        })?;
        say("started");
        let end = carry(start, &place, bridge, source, &calls, &say)?;
        if calls.have_come() {
            return Ok(Exit::Ok);
        }
        if Now::read().mono_ms.saturating_sub(begin_ms) >= GOOD_MS {
            wait_ms = FIRST_MS;
        }
        let ms = jitter(wait_ms);
        let end = match end {
            End::Moved => "the store is another one now".to_string(),
            End::Signal => "was ended by a signal".to_string(),
            End::Code(code) => format!("ended with {code}"),
        };
        say(&format!("{end}, again in {}.{} s", ms / 1000, ms % 1000 / 100));
        let until_ms = Now::read().mono_ms + ms;
        while Now::read().mono_ms < until_ms {
            if calls.have_come() {
                return Ok(Exit::Ok);
            }
            sleep(&[calls.alarm()], until_ms.saturating_sub(Now::read().mono_ms));
        }
        wait_ms = (wait_ms * 2).min(MOST_MS);
        if !place.stands() {
            place = Place::find(start, bridge)?;
        }
    }
}

/// The store that a bridge runs into, and its lock there.
struct Place {
    store: Store,
    path: CString,
    _held: Lock,
}

impl Place {
    fn find(start: &Start<'_>, bridge: &Bridge) -> Result<Place, Fail> {
        let store = make(start.env)?;
        let held = hold(&store, &bridge.name)?;
        let root = Root::find(start.env).map_err(|why| unusable(why, b""))?;
        let path = [root.path(), b"/sessions"].concat();
        let path = CString::new(path).map_err(|_| Fail::new(Exit::Io, "the path has a NUL"))?;
        Ok(Place { store, path, _held: held })
    }

    /// Whether the store is still the one at its path.
    fn stands(&self) -> bool {
        let there = Dir::cwd().entry(&self.path);
        matches!((there, self.store.sessions.meta()), (Ok(there), Ok(ours)) if there.same(&ours))
    }
}

/// How a command ended.
enum End {
    Code(i32),
    Signal,
    /// It was ended, for the store was replaced: it is to tell everything again.
    Moved,
}

/// Imports what a command prints until it ends or a signal has come. The store is
/// maintained meanwhile, for what a bridge brought goes by time alone.
fn carry(
    start: &Start<'_>,
    place: &Place,
    bridge: &Bridge,
    mut source: Source,
    calls: &Calls,
    say: &dyn Fn(&str),
) -> Result<End, Fail> {
    let store = &place.store;
    maintain(store, Mode::Due, start.env);
    let mut importing = Importing::new(store, &bridge.name)?;
    let (mut refused, mut more) = (0_u64, true);
    let mut murmur = Murmur::default();
    let mut upkeep_ms = Now::read().mono_ms + UPKEEP_MS;
    while more && !calls.have_come() {
        let now_ms = Now::read().mono_ms;
        let quiet_ms = murmur.quiet_ms(now_ms);
        let heard = source.err_alarm().filter(|_| quiet_ms == 0);
        let alarms: Vec<_> = source.alarms().chain([calls.alarm()]).chain(heard).collect();
        let wait_ms = upkeep_ms.saturating_sub(now_ms);
        let wait_ms = if quiet_ms > 0 { wait_ms.min(quiet_ms) } else { wait_ms };
        sleep(&alarms, wait_ms);
        murmur.hear(&mut source, say);
        let now_ms = Now::read().mono_ms;
        if now_ms >= upkeep_ms {
            maintain(store, Mode::Due, start.env);
            upkeep_ms = now_ms + UPKEEP_MS;
        }
        if !place.stands() {
            source.end(GRACE_MS);
            return Ok(End::Moved);
        }
        more = importing.step(&mut |buffer| source.read(buffer), &mut |number, why| {
            refused += 1;
            // A bridge that lies does not fill the log.
            if refused == 1 {
                say(&format!("line {number} was refused: {why}"));
            }
        })?;
    }
    if refused > 1 {
        say(&format!("{refused} lines were refused"));
    }
    // Who has printed all is about to end, and says how.
    if !more {
        source.ends_within(GRACE_MS / 2);
    }
    murmur.hear(&mut source, say);
    murmur.finish(say);
    Ok(source.end(GRACE_MS).map_or(End::Signal, End::Code))
}

/// What a command says on its standard error: passed on with the bridge's name, line
/// by line, and no more of it than somebody reads. It may come from a sandbox.
#[derive(Default)]
struct Murmur {
    line: Vec<u8>,
    /// Lines that were passed on in this window.
    told: u64,
    /// Lines that were not.
    left_out: u64,
    /// When the window began, on CLOCK_MONOTONIC.
    since_ms: u64,
    /// When it was last listened to.
    heard_ms: u64,
}

impl Murmur {
    /// Milliseconds for which it is not listened to.
    fn quiet_ms(&self, now_ms: u64) -> u64 {
        let full = self.told >= MURMURS && now_ms < self.since_ms + MURMUR_MS;
        if full { (self.heard_ms + DEAF_MS).saturating_sub(now_ms) } else { 0 }
    }

    fn hear(&mut self, source: &mut Source, say: &dyn Fn(&str)) {
        let now_ms = Now::read().mono_ms;
        if self.quiet_ms(now_ms) > 0 {
            return;
        }
        let mut bytes = [0; 16 * 1024];
        let len = source.read_err(&mut bytes);
        if len == 0 {
            return;
        }
        self.heard_ms = now_ms;
        if now_ms >= self.since_ms + MURMUR_MS {
            self.count(say);
            (self.told, self.since_ms) = (0, now_ms);
        }
        for piece in bytes[..len].split_inclusive(|byte| *byte == b'\n') {
            let room = MURMUR_BYTES.saturating_sub(self.line.len());
            self.line.extend(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.pass_on(say);
            }
        }
    }

    fn pass_on(&mut self, say: &dyn Fn(&str)) {
        let line = core::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if text.is_empty() {
            return;
        }
        if self.told < MURMURS {
            self.told += 1;
            say(&format!("it says: {text}"));
        } else {
            self.left_out += 1;
        }
    }

    /// Says how much was not passed on.
    fn count(&mut self, say: &dyn Fn(&str)) {
        let left_out = core::mem::take(&mut self.left_out);
        if left_out > 0 {
            say(&format!("it says {left_out} lines more"));
        }
    }

    fn finish(mut self, say: &dyn Fn(&str)) {
        self.pass_on(say);
        self.count(say);
    }
}

/// A time between a half and the whole of one, so that bridges that lost one
/// machine do not come back at one moment.
fn jitter(ms: u64) -> u64 {
    let mut bytes = [0; 8];
    let _ = random(&mut bytes);
    ms / 2 + u64::from_ne_bytes(bytes) % (ms / 2 + 1)
}
