//! `tongs-agents schema`: the JSON Schema of every JSON output.

use argh::FromArgs;

use super::super::fail::stdout;
use super::options;
use crate::cli::{Exit, Fail};

/// Print the JSON Schema of a command's output, or list the commands that have one.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents schema status > status.schema.json",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "the command has no JSON output"),
    error_code(64, "usage"),
    error_code(74, "standard output could not be written")
)]
struct Options {
    /// the command; left out, their names are printed
    #[argh(positional, arg_name = "COMMAND")]
    command: Option<String>,
}

/// The schema of a session, which those of lists refer to as `"$SESSION"`.
const SESSION: &str = include_str!("schema/session.json");

/// The schemas by command; `hook` is the line of `tongs-hook --strict`,
/// `session-state` that of `lookup --format session-state`.
const SCHEMAS: &[(&str, &str)] = &[
    ("cleanup", include_str!("schema/cleanup.json")),
    ("doctor", include_str!("schema/doctor.json")),
    ("forget", include_str!("schema/forget.json")),
    ("hook", include_str!("schema/hook.json")),
    ("install", include_str!("schema/install.json")),
    ("install-list", include_str!("schema/install-list.json")),
    ("lookup", include_str!("schema/lookup.json")),
    ("notify", include_str!("schema/notify.json")),
    ("paths", include_str!("schema/paths.json")),
    ("record", include_str!("schema/record.json")),
    ("session-state", include_str!("schema/session-state.json")),
    ("show", SESSION),
    ("status", include_str!("schema/status.json")),
    ("tree", include_str!("schema/tree.json")),
    ("uninstall", include_str!("schema/uninstall.json")),
    ("wait", include_str!("schema/wait.json")),
];

/// Runs the command.
pub fn run(words: &[&str], _: &super::super::Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("schema", words)?;
    let mut out = stdout();
    match options.command {
        None => {
            for (name, _) in SCHEMAS {
                writeln!(out, "{name}")?;
            }
        }
        Some(command) => match SCHEMAS.iter().find(|(name, _)| *name == command) {
            Some((_, schema)) => {
                out.put(schema.replace("\"$SESSION\"", SESSION.trim_end()).as_bytes())?;
            }
            None => return Err(Fail::new(Exit::No, format!("'{command}' has no JSON output"))),
        },
    }
    out.flush()?;
    Ok(Exit::Ok)
}
