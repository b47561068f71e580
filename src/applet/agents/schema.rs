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
const SESSION: &str = text_file!("schema/session.json");

/// The schemas by command; `hook` is the line of `tongs-hook --strict`,
/// `bridge-import` that of `tongs-bridge-import`, `session-state` that of
/// `lookup --format session-state`.
const SCHEMAS: &[(&str, &str)] = &[
    ("ack", text_file!("schema/ack.json")),
    ("bridge", text_file!("schema/bridge.json")),
    ("bridge-import", text_file!("schema/bridge-import.json")),
    ("cleanup", text_file!("schema/cleanup.json")),
    ("doctor", text_file!("schema/doctor.json")),
    ("focus", text_file!("schema/focus.json")),
    ("forget", text_file!("schema/forget.json")),
    ("hook", text_file!("schema/hook.json")),
    ("install", text_file!("schema/install.json")),
    ("install-list", text_file!("schema/install-list.json")),
    ("lookup", text_file!("schema/lookup.json")),
    ("notify", text_file!("schema/notify.json")),
    ("paths", text_file!("schema/paths.json")),
    ("record", text_file!("schema/record.json")),
    ("session-state", text_file!("schema/session-state.json")),
    ("show", SESSION),
    ("snooze", text_file!("schema/ack.json")),
    ("status", text_file!("schema/status.json")),
    ("tree", text_file!("schema/tree.json")),
    ("uninstall", text_file!("schema/uninstall.json")),
    ("wait", text_file!("schema/wait.json")),
    ("watch", text_file!("schema/watch.json")),
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
