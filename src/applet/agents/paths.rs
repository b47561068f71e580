//! `tongs-agents paths`: every file and directory that this build uses.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{stdout, unusable};
use super::super::value;
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown};
use crate::install::text::Value;
use crate::store::place::Root;
use crate::store::{bridges, fault};

/// Print the files and directories that are in use.
#[derive(FromArgs)]
#[argh(
    example = "ls -la \"$(tongs-agents paths --json | jq -r .sessions)\"",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(64, "usage"),
    error_code(74, "standard output could not be written"),
    error_code(77, "no variable says where the store is")
)]
struct Options {
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
    let options: Options = options("paths", words)?;
    check_version(options.json_version)?;
    let root = Root::find(env).map_err(|t| unusable(t, b""))?;
    let root = String::from_utf8_lossy(root.path()).into_owned();
    let paths = [
        ("state", root.clone()),
        ("sessions", format!("{root}/sessions")),
        ("maintenance_lock", format!("{root}/sessions/.fleet-maintenance.lock")),
        ("maintenance_stamp", format!("{root}/sessions/.fleet-maintenance.stamp")),
        ("fault_log", format!("{root}/{}", fault::LOG)),
        ("bridges", format!("{root}/{}", bridges::FILE.to_string_lossy())),
    ];
    let mut out = stdout();
    if options.json || options.json_version.is_some() {
        let object = paths.map(|(name, path)| (name, path.into()));
        value::print(&mut out, &Value::from(object))?;
    } else {
        for (name, path) in paths {
            writeln!(out, "{name:<18} {}", Shown(&path))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}
