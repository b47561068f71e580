//! `tongs-agents export`: the sessions as another host may have them, a record a
//! line. Only reads.

use argh::FromArgs;

use super::super::Start;
use super::super::exporter::Exporter;
use super::super::fail::{Stdout, stdout};
use super::super::feed::{Place, SessionFeed};
use super::super::outward::HOST;
use super::options;
use crate::cli::{Exit, Fail, Out, is_hidden};
use crate::probe::Here;
use crate::sys::clock::Now;
use crate::sys::process::host_name;
use crate::sys::stdio;
use crate::sys::watch::is_ringing;

/// Print the sessions as records that another host may import. Only reads.
#[derive(FromArgs)]
#[argh(
    example = "ssh box tongs-agents export | tongs-bridge-import --bridge box",
    note = "See tongs-agents(1) and tongs-bridges(7).",
    error_code(0, "done, or nobody reads any more"),
    error_code(1, "the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// print one JSON object a line, which is the only form
    #[argh(switch)]
    #[allow(dead_code)] // what it asks for happens in any case
    jsonl: bool,
    /// go on with changes as they happen
    #[argh(switch)]
    follow: bool,
    /// the name of this host in the records; default: what the system says
    #[argh(option, arg_name = "NAME")]
    origin: Option<String>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("export", words)?;
    let host = match options.origin {
        Some(name) => name,
        None => host_name().unwrap_or_default().chars().take(HOST).collect(),
    };
    if host.is_empty() || host.chars().count() > HOST || host.chars().any(is_hidden) {
        let text = format!("--origin is a name of 1 to {HOST} characters that can be seen");
        return Err(Fail::new(Exit::Usage, text));
    }
    let mut feed = SessionFeed::reading(start.env);
    let mut exporter = Exporter::new(host, Here::of_reader());
    let mut out = stdout();
    if let Place::Unavailable(why) = look(&mut feed, &mut exporter)? {
        return Err(Fail::new(Exit::No, why));
    }
    tell(&mut exporter, &mut out)?;
    if !options.follow {
        return Ok(Exit::Ok);
    }
    loop {
        let alarms: Vec<_> = exporter.alarms().collect();
        let own: Vec<_> = alarms.iter().copied().chain([stdio::out_alarm()]).collect();
        feed.sleep(&own, exporter.due_ms(&Now::read()), || {
            stdio::out_is_gone() || is_ringing(&alarms)
        });
        if stdio::out_is_gone() {
            return Ok(Exit::Ok);
        }
        // What a process wrote before its end is seen first.
        look(&mut feed, &mut exporter)?;
        exporter.note_ends();
        tell(&mut exporter, &mut out)?;
    }
}

fn look(feed: &mut SessionFeed<'_>, exporter: &mut Exporter) -> Result<Place, Fail> {
    let now = Now::read();
    feed.look(&mut |event, row, json| {
        let session = serde_json::from_slice(json).unwrap_or_default();
        exporter.take(event, &row.id, &session, &now);
        Ok(())
    })
}

fn tell(exporter: &mut Exporter, out: &mut Out<Stdout>) -> Result<(), Fail> {
    let mut told = Ok(());
    exporter.lines(&Now::read(), &mut |line| {
        if told.is_ok() {
            told = out.put(line);
        }
    });
    told?;
    out.flush()
}
