//! `tongs-agents forget`: removes the records of a process.

use std::ffi::CString;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{errno, no_timer, stdout, unusable, unwritten};
use super::super::processes::recorded;
use super::super::store::LOCKS_MS;
use super::super::store::{Found, find};
use super::super::writer::Ids;
use super::{check_version, options};
use crate::cli::{Exit, Fail};
use crate::probe::{self, Here};
use crate::record::out::{Object, Sink};
use crate::record::{Checked, Key};
use crate::store::{Patience, Reader, Scratch, Session, Store, WriteError};
use crate::sys::fs::Errno;
use crate::sys::process::Verdict;
use crate::sys::{guard, stdio};

/// Remove the records of a process; none is no error.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents forget --pid 4242",
    note = "See tongs-agents(1).",
    error_code(0, "there is no record of the process any more"),
    error_code(64, "usage"),
    error_code(65, "a record is of a newer version of tongs"),
    error_code(74, "the store could not be read or changed"),
    error_code(75, "another process holds a record's lock"),
    error_code(77, "the store is not private or not ours")
)]
struct Options {
    /// the process, living or dead
    #[argh(option, arg_name = "N")]
    pid: u32,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("forget", words)?;
    check_version(options.json_version)?;
    let removed = match find(env) {
        Found::Open(store) => forget(&store, options.pid)?,
        Found::Missing => 0,
        Found::Unavailable(why, root) => return Err(unusable(why, &root)),
    };
    if options.json || options.json_version.is_some() {
        let mut out = stdout();
        out.append(|line| {
            let mut object = Object::open(line);
            object.int("removed", removed);
            object.close();
            line.put(b"\n");
        })?;
        out.flush()?;
    }
    Ok(Exit::Ok)
}

/// Removes the records of a process; says how many.
fn forget(store: &Store, pid: u32) -> Result<u64, Fail> {
    let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
    stdio::private_umask();
    let here = Here::read();
    let unread = |e| Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e)));
    let mut reader = Reader::default();
    let mut found: Vec<(CString, Option<Ids>, String)> = Vec::new();
    store
        .read_stored_sessions(&mut reader, |name, record| {
            if is_of(record, pid, &here) {
                let ids = Ids { identity: record.identity(), digest: record.digest };
                let session = record.text(Key::SessionId).to_string();
                found.push((name.to_owned(), Some(ids).filter(|_| !record.legacy), session));
            }
            true
        })
        .map_err(unread)?;
    let mut scratch: Box<Scratch> = Box::default();
    let mut removed = 0;
    for (name, ids, session) in found {
        let still = |record: Option<&Checked<'_>>| record.is_some_and(|r| is_of(r, pid, &here));
        let gone = match ids {
            Some(ids) => {
                let patience = Patience::of(ticking, LOCKS_MS);
                Session::lock(store, &ids.identity, patience)
                    .and_then(|locked| locked.remove(&ids.digest, &mut scratch, still))
            }
            // A record of schema 0 has no writer any more, and no lock.
            None => match reader.record(store, &name) {
                Ok(record) if still(Some(&record)) => match store.sessions.unlink(&name) {
                    Ok(()) => Ok(true),
                    Err(Errno::NOENT) => Ok(false),
                    Err(e) => Err(WriteError::Io(e)),
                },
                _ => Ok(false),
            },
        };
        removed += u64::from(gone.map_err(|e| {
            let (exit, why) = unwritten(e);
            Fail::cannot(exit, "remove session", &session, why)
        })?);
    }
    Ok(removed)
}

/// Whether a record is of the process that has this pid here, or of a dead one
/// that had it. What a bridge brought or another pid namespace wrote names
/// another process by the same number, and what the system hides may.
fn is_of(record: &Checked<'_>, pid: u32, here: &Here) -> bool {
    let Some((_, recorded)) = recorded(record) else { return false };
    recorded.pid == u64::from(pid)
        && record.text(Key::Bridge).is_empty()
        && !recorded.is_foreign(here)
        && probe::judge(&recorded, here, |_| Some(true)) != Verdict::Unknown
}
