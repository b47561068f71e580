//! `tongs-agents show`: one session, by any of its ids.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{stdout, trouble};
use super::super::find::{by_id, several};
use super::super::store::{Found, find};
use super::super::view;
use super::{check_version, options};
use crate::cli::{Exit, Fail};

/// Show one session.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents show 3f1c2a90",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "no session or several sessions match, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
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
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("show", words)?;
    check_version(options.json_version)?;
    if options.id.is_empty() {
        return Err(Fail::new(Exit::Usage, "the id is empty"));
    }
    let none = || Fail::new(Exit::No, format!("no session has the id '{}'", options.id));
    let store = match find(env) {
        Found::Open(store) => store,
        Found::Missing => return Err(none()),
        Found::Unavailable(why, root) => return Err(Fail::new(Exit::No, trouble(why, &root))),
    };
    let mut rows = by_id(&store, &options.id)?;
    if rows.len() > 1 {
        return Err(several(&options.id, &rows));
    }
    let Some(row) = rows.pop() else { return Err(none()) };
    let mut out = stdout();
    if options.json || options.json_version.is_some() {
        out.put(&row.json)?;
        out.put(b"\n")?;
    } else {
        out.put(view::lines(&row).as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
