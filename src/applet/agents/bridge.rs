//! `tongs-agents bridge`: the bridges that a user has set up, and running one: a
//! command whose output is imported, started again whenever it ends.

use argh::FromArgs;

use super::super::Start;
use super::super::bridges::{Bridge, all, change, check_name, put};
use super::super::fail::{early, errno, no_timer, stdout, unusable, unwritten};
use super::super::importing::Importing;
use super::super::imports::retire;
use super::super::store::{Found, LOCKS_MS, find, make};
use super::super::view::put_table;
use super::{PROG, check_version, hint, options};
use crate::cli::{Cell, Column, Exit, Fail, Table, parse_with_command, shell_line};
use crate::store::lock::{Lock, LockError};
use crate::store::{Patience, Store, WriteError, bridges};
use crate::sys::clock::Now;
use crate::sys::fs::Errno;
use crate::sys::process::random;
use crate::sys::spawn::Source;
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
            if rest.first().is_some_and(|word| word == "--") {
                rest.remove(0);
            }
            check_name(&name)?;
            if rest.first().is_none_or(String::is_empty) {
                return usage("missing argument: CMD");
            }
            add(start, Bridge { name, command: rest })
        }
        ("remove" | "run", Some(name)) if rest.is_empty() => {
            check_name(&name)?;
            let store = make(start.env)?;
            let bridge = all(&store)?.into_iter().find(|bridge| bridge.name == name);
            let none = || Fail::new(Exit::No, format!("there is no bridge '{name}'"));
            let bridge = bridge.ok_or_else(none)?;
            if action == "run" { supervise(&store, &bridge) } else { remove(&store, &bridge) }
        }
        ("add" | "remove" | "run", None) => usage("missing argument: NAME"),
        ("list" | "remove" | "run", _) => usage("unexpected argument"),
        _ => usage("say one of add, list, remove and run"),
    }
}

fn list(start: &Start<'_>, json: bool) -> Result<Exit, Fail> {
    let bridges = match find(start.env) {
        Found::Open(store) => all(&store)?,
        Found::Missing => Vec::new(),
        Found::Unavailable(why, root) => return Err(unusable(why, &root)),
    };
    let mut out = stdout();
    if json {
        out.append(|sink| put(sink, &bridges))?;
    } else if bridges.is_empty() {
        out.put(b"No bridges.\n")?;
    } else {
        let mut table = Table::new(vec![Column::new("NAME"), Column::new("COMMAND")]);
        for Bridge { name, command } in bridges {
            table.push(vec![Cell::new(name), Cell::new(shell_line(&command))]);
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
    bridges::hold(store, name).map_err(|e| match e {
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
fn supervise(store: &Store, bridge: &Bridge) -> Result<Exit, Fail> {
    stdio::private_umask();
    let _held = hold(store, &bridge.name)?;
    guard::ignore_terminal_stops();
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
        let end = carry(store, bridge, source, &calls, &say)?;
        if calls.have_come() {
            return Ok(Exit::Ok);
        }
        if Now::read().mono_ms.saturating_sub(begin_ms) >= GOOD_MS {
            wait_ms = FIRST_MS;
        }
        let ms = jitter(wait_ms);
        let end =
            end.map_or("was ended by a signal".to_string(), |code| format!("ended with {code}"));
        say(&format!("{end}, again in {}.{} s", ms / 1000, ms % 1000 / 100));
        let until_ms = Now::read().mono_ms + ms;
        while Now::read().mono_ms < until_ms {
            if calls.have_come() {
                return Ok(Exit::Ok);
            }
            sleep(&[calls.alarm()], until_ms.saturating_sub(Now::read().mono_ms));
        }
        wait_ms = (wait_ms * 2).min(MOST_MS);
    }
}

/// Imports what a command prints until it ends or a signal has come; says how it
/// ended.
fn carry(
    store: &Store,
    bridge: &Bridge,
    mut source: Source,
    calls: &Calls,
    say: &dyn Fn(&str),
) -> Result<Option<i32>, Fail> {
    let mut importing = Importing::new(store, &bridge.name)?;
    let (mut refused, mut more) = (0_u64, true);
    while more && !calls.have_come() {
        let alarms: Vec<_> = source.alarms().chain([calls.alarm()]).collect();
        sleep(&alarms, u64::MAX);
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
    Ok(source.end(GRACE_MS))
}

/// A time between a half and the whole of one, so that bridges that lost one
/// machine do not come back at one moment.
fn jitter(ms: u64) -> u64 {
    let mut bytes = [0; 8];
    let _ = random(&mut bytes);
    ms / 2 + u64::from_ne_bytes(bytes) % (ms / 2 + 1)
}
