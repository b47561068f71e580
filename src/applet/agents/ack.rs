//! `tongs-agents ack`: what sessions are in now was seen.

use argh::FromArgs;

use super::super::Start;
use super::super::marking::{Wanted, mark};
use super::{check_version, options};
use crate::cli::{Exit, Fail};

/// Mark what sessions are in now as seen, until it changes.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents ack 3f1c2a90",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "no session or several sessions match"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or written"),
    error_code(75, "another process holds the lock"),
    error_code(77, "the store is not ours or not safe")
)]
struct Options {
    /// every session
    #[argh(switch)]
    all: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// canonical id, short id or session id, or the start of one
    #[argh(positional, arg_name = "ID")]
    ids: Vec<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("ack", words)?;
    check_version(options.json_version)?;
    let wanted = match (options.all, &options.ids[..]) {
        (true, []) => Wanted::All,
        (false, ids @ [_, ..]) if ids.iter().all(|id| !id.is_empty()) => Wanted::Ids(ids),
        _ => return Err(Fail::new(Exit::Usage, "either --all or ids must be given")),
    };
    let marked = mark(start.env, &wanted, None)?;
    if options.json || options.json_version.is_some() {
        marked.print()?;
    }
    Ok(Exit::Ok)
}
