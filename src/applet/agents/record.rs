//! `tongs-agents record`: a launcher or another tracker tells of a process. The
//! same checks and locks as the hook's.

use argh::FromArgs;

use super::super::Start;
use super::super::branch::Branch;
use super::super::dir::absolute;
use super::super::draft::{Marks, Surroundings};
use super::super::fail::{no_timer, stdout};
use super::super::launcher::{check_id, tell};
use super::super::processes::{Names, found, living};
use super::super::store::LOCKS_MS;
use super::super::store::make;
use super::super::writer::Writer;
use super::{check_version, harness, options};
use crate::cli::{Exit, Fail};
use crate::probe::Here;
use crate::record::limit;
use crate::record::out::{Object, Sink};
use crate::store::Scratch;
use crate::sys::clock::Now;
use crate::sys::{guard, stdio};
use crate::terminal::Capture;

/// Ways in which a session's id may have been learnt.
const METHODS: [&str; 7] =
    ["hook-stdin", "hook-env", "hook-argv", "fs-watch", "stdout-banner", "notify", "process"];

/// Tell of a process that a launcher or another tracker knows.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents record --agent other --pid $$ --cwd . --launch-id L1 --method process",
    note = "See tongs-agents(1).",
    error_code(0, "the record was written, or its session has the ids"),
    error_code(1, "the process does not live"),
    error_code(64, "usage"),
    error_code(65, "an id or the directory cannot be one, or the stored record is newer"),
    error_code(74, "the record could not be written"),
    error_code(75, "another process holds the record's lock"),
    error_code(77, "the store is not private or not ours")
)]
struct Options {
    /// the harness, such as claude
    #[argh(option, arg_name = "H")]
    agent: String,
    /// the process, which must live
    #[argh(option, arg_name = "N")]
    pid: u32,
    /// the directory
    #[argh(option, arg_name = "DIR")]
    cwd: String,
    /// the session's id; without it, the record is of the process alone
    #[argh(option, arg_name = "S")]
    session_id: Option<String>,
    /// the launcher's id of the terminal
    #[argh(option, arg_name = "ID")]
    terminal_id: Option<String>,
    /// the launcher's id of the launch
    #[argh(option, arg_name = "ID")]
    launch_id: Option<String>,
    /// how it was learnt: hook-stdin, hook-env, hook-argv, fs-watch, stdout-banner, notify or process
    #[argh(option, arg_name = "M")]
    method: String,
    /// who tells: launcher, which is also the default
    #[argh(option, arg_name = "WHO", default = "String::from(\"launcher\")")]
    source: String,
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
    let options: Options = options("record", words)?;
    check_version(options.json_version)?;
    let row = harness(&options.agent)?;
    if !METHODS.contains(&options.method.as_str()) {
        return Err(Fail::new(
            Exit::Usage,
            format!("unknown method '{}': it is one of {}", options.method, METHODS.join(", ")),
        ));
    }
    if options.source != "launcher" {
        return Err(Fail::new(
            Exit::Usage,
            format!("unknown source '{}': it is launcher", options.source),
        ));
    }
    for (option, id) in [
        ("--session-id", &options.session_id),
        ("--terminal-id", &options.terminal_id),
        ("--launch-id", &options.launch_id),
    ] {
        id.as_deref().map(|id| check_id(option, id)).transpose()?;
    }
    options.session_id.as_deref().map(check_session).transpose()?;
    let cwd = options.cwd.as_str();
    if cwd.is_empty() {
        return Err(Fail::new(Exit::Usage, "--cwd is empty"));
    }
    if cwd.len() > limit::PATH {
        return Err(Fail::new(Exit::Data, format!("--cwd is longer than {} bytes", limit::PATH)));
    }
    let cwd = absolute(Some(cwd));
    let process = living(options.pid)?;

    let now = Now::read();
    let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
    stdio::private_umask();
    let here = Here::read();
    let store = make(env)?;
    let names = Names::of(row, &process, options.session_id.as_deref());
    let mut draft = found(&names, &here, now);
    draft.cwd = &cwd;
    draft.method = &options.method;
    draft.source = &options.source;
    draft.marks = Marks {
        launch: options.launch_id.as_deref().unwrap_or(""),
        profile: "",
        terminal: options.terminal_id.as_deref().unwrap_or(""),
    };
    // The terminal is the launcher's here; the first event looks for its own.
    draft.surroundings = Some(Surroundings { terminal: Capture::NONE, branch: Branch::find(&cwd) });
    let mut scratch: Box<Scratch> = Box::default();
    let mut writer =
        Writer { store: &store, scratch: &mut scratch, env, ticking, locks_ms: LOCKS_MS };
    let stands = tell(&mut writer, &mut draft, &names, &process, &here)?;
    if options.json || options.json_version.is_some() {
        let mut out = stdout();
        out.append(|line| {
            let mut object = Object::open(line);
            object
                .str("canonical_id", &stands.canonical)
                .str("session_id", &stands.session)
                .str("status", stands.status.name());
            object.close();
            line.put(b"\n");
        })?;
        out.flush()?;
    }
    Ok(Exit::Ok)
}

/// Refuses what is a path and no session's id. A harness's own word is taken as
/// it is, for ids are only hashed; here a person or a script may have mistaken
/// one for the other.
fn check_session(id: &str) -> Result<(), Fail> {
    if id.contains(['/', '\\']) || matches!(id, "." | "..") {
        return Err(Fail::new(Exit::Data, "--session-id is a path and not an id"));
    }
    Ok(())
}
