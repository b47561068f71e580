//! `tongs-agents wait`: sleeps until a session is there, has a status, has
//! replied or is gone.

use std::time::Duration;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::stdout;
use super::super::find::{Selector, several};
use super::super::waiting::{Until, Wait, Why, put_json};
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown, duration};
use crate::probe::tree::Limits;
use crate::record::out::Sink;
use crate::sys::clock::Now;

/// How long is waited where nobody says.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Wait until a session is there, has a status, has replied or is gone.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents wait --tree $$ --until idle,waiting --timeout 10m",
    note = "See tongs-agents(1).",
    error_code(0, "it holds"),
    error_code(1, "it did not in time, the process ended, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// the session of this process
    #[argh(option, arg_name = "PID")]
    pid: Option<u32>,
    /// the session of this process or of one below it
    #[argh(option, arg_name = "PID")]
    tree: Option<u32>,
    /// the session of this launch
    #[argh(option, arg_name = "X")]
    launch_id: Option<String>,
    /// the session in this terminal
    #[argh(option, arg_name = "X")]
    terminal_id: Option<String>,
    /// what for: present, gone, replied, or statuses with commas; default: present
    #[argh(option, arg_name = "WHAT")]
    until: Option<String>,
    /// for how long, such as 250ms, 5s or 2m; default: 5s
    #[argh(option, arg_name = "D", from_str_fn(duration))]
    timeout: Option<Duration>,
    /// only sessions with an event after this time, epoch milliseconds
    #[argh(option, arg_name = "MS")]
    since: Option<u64>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// the session with this id, or whose id begins so
    #[argh(positional, arg_name = "ID")]
    id: Option<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("wait", words)?;
    check_version(options.json_version)?;
    let by = selector(&options)?;
    let until = Until::of(options.until.as_deref().unwrap_or("present"))?;
    if until == Until::Gone && options.since.is_some() {
        return Err(Fail::new(Exit::Usage, "--since does not go with --until gone"));
    }
    let began = Now::read().mono_ms;
    let timeout = u64::try_from(options.timeout.unwrap_or(TIMEOUT).as_millis()).unwrap_or(u64::MAX);
    let mut wait = Wait::new(by, until, options.since);
    let answer = wait.run(env, began.saturating_add(timeout))?;
    let latency_ms = Now::read().mono_ms.saturating_sub(began);

    let json = options.json || options.json_version.is_some();
    let mut out = stdout();
    if json {
        out.append(|sink| {
            put_json(sink, &wait.until, &answer, latency_ms);
            sink.put(b"\n");
        })?;
    } else if let Ok(Some(found)) = &answer {
        writeln!(out, "{}", Shown(&found.row.field("session_id")))?;
    }
    out.flush()?;
    match answer {
        Ok(_) => Ok(Exit::Ok),
        Err(Why::Several(rows)) => Err(several(&wait.by.to_string(), &rows)),
        Err(Why::StoreUnavailable(text)) => Err(Fail::new(Exit::No, text)),
        Err(_) if json => Ok(Exit::No),
        Err(why) => Err(Fail::cannot(Exit::No, "wait for", &wait.by, why.text())),
    }
}

fn selector(options: &Options) -> Result<Selector, Fail> {
    let ways = [
        options.pid.map(|pid| Ok(Selector::Pid(pid))),
        options.tree.map(|pid| Ok(Selector::Below(pid, Limits::DEFAULT.depth))),
        options.launch_id.as_deref().map(Selector::launch),
        options.terminal_id.as_deref().map(Selector::terminal),
        options.id.as_deref().map(Selector::id),
    ];
    let mut given = ways.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(way), None) => way,
        _ => Err(Fail::new(
            Exit::Usage,
            "one of --pid, --tree, --launch-id, --terminal-id and an id must be given",
        )),
    }
}
