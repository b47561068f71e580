//! `tongs-agents snooze`: what a session is in now is for later.

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::marking::{Wanted, mark};
use super::{check_version, options};
use crate::cli::{Exit, Fail, duration};

/// Put off what a session asks for, until the time is over or it changes.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents snooze 3f1c2a90 20m",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "no session or several sessions match"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or written"),
    error_code(75, "another process holds the lock"),
    error_code(77, "the store is not ours or not safe")
)]
struct Options {
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// canonical id, short id or session id, or the start of one
    #[argh(positional, arg_name = "ID")]
    id: String,
    /// for how long, such as 30s or 20m; 0 takes a mark away
    #[argh(positional, arg_name = "D", from_str_fn(duration))]
    time: Duration,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("snooze", words)?;
    check_version(options.json_version)?;
    if options.id.is_empty() {
        return Err(Fail::new(Exit::Usage, "the id is empty"));
    }
    let ids = [options.id];
    let marked = mark(start.env, &Wanted::Ids(&ids), Some(options.time))?;
    if options.json || options.json_version.is_some() {
        marked.print()?;
    }
    Ok(Exit::Ok)
}
