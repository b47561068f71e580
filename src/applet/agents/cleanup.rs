//! `tongs-agents cleanup`: one run of the maintainer.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::stdout;
use super::super::upkeep::{maintain, open};
use super::{check_version, options};
use crate::cli::{Exit, Fail};
use crate::record::out::{Object, Sink};
use crate::store::maintain::{Done, Mode, Outcome};

/// Find agents that no hook reported and turns that were interrupted, and remove records that are over.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents cleanup --if-due",
    note = "See tongs-agents(1).",
    error_code(0, "done; with --if-due also: busy or done a moment ago"),
    error_code(1, "another run is at work, or the store is unavailable"),
    error_code(64, "usage"),
    error_code(74, "standard output could not be written")
)]
struct Options {
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// change nothing and print what would be done
    #[argh(switch)]
    dry_run: bool,
    /// run only if the last run was at least 5 seconds ago, and print nothing
    #[argh(switch)]
    if_due: bool,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("cleanup", words)?;
    check_version(options.json_version)?;
    let json = options.json || options.json_version.is_some();
    if options.if_due && (options.dry_run || json) {
        return Err(Fail::new(Exit::Usage, "--if-due is silent and goes with no other option"));
    }
    let mode = match (options.dry_run, options.if_due) {
        (true, _) => Mode::Dry,
        (_, true) => Mode::Due,
        _ => Mode::Forced,
    };
    let mut why =
        String::from("cannot maintain the store: a lock is held, or a file cannot be changed");
    let outcome = match open(env, mode) {
        Ok(Some(store)) => maintain(&store, mode, env),
        // There is nothing to look through, and a dry run makes nothing.
        Ok(None) => Outcome::Done(Done::default()),
        Err(unusable) => {
            why = unusable;
            Outcome::Unavailable(Done::default())
        }
    };
    if options.if_due {
        return Ok(if matches!(outcome, Outcome::Unavailable(_)) { Exit::No } else { Exit::Ok });
    }
    let (done, skipped) = match outcome {
        Outcome::Done(done) => (done, ""),
        Outcome::Busy => (Done::default(), "busy"),
        // Only of a run that is not forced, which prints nothing.
        Outcome::Recent => (Done::default(), ""),
        Outcome::Unavailable(done) => (done, "unavailable"),
    };
    let mut out = stdout();
    if json {
        out.append(|line| {
            let mut object = Object::open(line);
            object
                .int("removed", done.removed)
                .int("discovered", done.discovered)
                .int("interrupted", done.interrupted)
                .bool("dry_run", options.dry_run);
            if !skipped.is_empty() {
                object.str("skipped", skipped);
            }
            object.close();
            line.put(b"\n");
        })?;
    } else if skipped.is_empty() {
        let would = if options.dry_run { "would be " } else { "" };
        let Done { removed, discovered, interrupted } = done;
        writeln!(out, "{removed} {would}removed, {discovered} {would}discovered")?;
        if interrupted > 0 {
            writeln!(out, "{interrupted} {would}found interrupted")?;
        }
    }
    out.flush()?;
    match outcome {
        Outcome::Busy => Err(Fail::new(Exit::No, "another run is at work")),
        Outcome::Unavailable(_) => Err(Fail::new(Exit::No, why)),
        Outcome::Done(_) | Outcome::Recent => Ok(Exit::Ok),
    }
}
