//! `tongs-agents run`: starts an agent with a launch id. The agent takes this
//! process's place, so that the record that is written first names it.

use argh::FromArgs;

use super::super::Start;
use super::super::dir::absolute;
use super::super::draft::Marks;
use super::super::fail::{Stderr, early, errno, no_timer};
use super::super::launcher::{self, check_id};
use super::super::processes::{Names, found, living, of_command};
use super::super::store::LOCKS_MS;
use super::super::store::make;
use super::super::writer::{Ids, Writer, marks};
use super::PROG;
use crate::cli::{Exit, Fail, complain, parse_with_command};
use crate::probe::Here;
use crate::store::Scratch;
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::exec::exec;
use crate::sys::fs::Errno;
use crate::sys::process::{own, random};
use crate::sys::{guard, stdio};

/// Start an agent with a launch id.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents run --profile work -- claude --resume",
    note = "See tongs-agents(1).",
    error_code(0, "of the command, as is every other code, once it has started"),
    error_code(64, "usage"),
    error_code(65, "an id cannot be one"),
    error_code(69, "the command is not there"),
    error_code(74, "the command could not be started"),
    error_code(77, "the command may not be run")
)]
struct Options {
    /// the profile's id; default: that of the environment
    #[argh(option, arg_name = "P")]
    profile: Option<String>,
    /// the launch's id; default: a new random one
    #[argh(option, arg_name = "X")]
    launch_id: Option<String>,
    /// the command and its arguments
    #[argh(positional, greedy, arg_name = "CMD")]
    command: Vec<String>,
}

/// Runs the command. The words of the agent's command line are not ours and may
/// be any bytes.
pub fn run(words: &[&[u8]], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let text: Vec<&str> = text.iter().map(|word| &**word).collect();
    let options: Options = parse_with_command(&format!("{PROG} run"), &text).map_err(early)?;
    let (own_words, command) = words.split_at(words.len() - options.command.len());
    if own_words.iter().any(|word| core::str::from_utf8(word).is_err()) {
        return Err(Fail::new(Exit::Usage, "an argument is not UTF-8"));
    }
    let Some(name) = command.first() else {
        return Err(Fail::new(
            Exit::Usage,
            "missing argument: CMD (see 'tongs-agents run --help')",
        ));
    };
    options.profile.as_deref().map(|id| check_id("--profile", id)).transpose()?;
    options.launch_id.as_deref().map(|id| check_id("--launch-id", id)).transpose()?;
    let launch = match options.launch_id {
        Some(id) => id,
        None => uuid()
            .map_err(|e| Fail::new(Exit::Io, format!("cannot make a launch id: {}", errno(e))))?,
    };
    let mut ids = marks(env);
    ids.launch = &launch;
    ids.profile = options.profile.as_deref().unwrap_or(ids.profile);

    // Whatever keeps the agent from being recorded does not keep it from starting.
    let recorded = record(env, command, ids).map_err(|fail| {
        complain(&mut Stderr, PROG, &format!("the launch is not recorded: {}", fail.text));
    });
    let mut set = vec![(Var::TONGS_AGENTS_LAUNCH_ID.name(), ids.launch)];
    if options.profile.is_some() {
        set.push((Var::TONGS_AGENTS_PROFILE_ID.name(), ids.profile));
    }
    let why = exec(command, &set);
    if let Ok(record) = recorded {
        forget(env, &record);
    }
    let exit = match why {
        Errno::NOENT | Errno::NOTDIR => Exit::Unavailable,
        Errno::ACCESS | Errno::PERM => Exit::Refused,
        _ => Exit::Io,
    };
    Err(Fail::cannot(exit, "run", String::from_utf8_lossy(name), errno(why)))
}

/// Writes the record of this process, which will be the agent's.
fn record(env: &Env<'_>, command: &[&[u8]], ids: Marks<'_>) -> Result<Ids, Fail> {
    let process = living(own())?;
    let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
    stdio::private_umask();
    let here = Here::read();
    let store = make(env)?;
    let names = Names::of(of_command(command), &process, None);
    let cwd = absolute(None);
    let mut draft = found(&names, &here, Now::read());
    draft.cwd = &cwd;
    draft.source = "launcher";
    draft.marks = ids;
    let mut scratch: Box<Scratch> = Box::default();
    let mut writer =
        Writer { store: &store, scratch: &mut scratch, env, ticking, locks_ms: LOCKS_MS };
    launcher::write(&mut writer, &mut draft, &names, &process)?;
    Ok(Ids { identity: names.identity, digest: names.digest })
}

/// Removes that record again. Where that fails it goes with its process, which
/// ends here.
fn forget(env: &Env<'_>, record: &Ids) {
    let (Some(ticking), Ok(store)) = (guard::tick_only(LOCKS_MS), make(env)) else { return };
    stdio::private_umask();
    let mut scratch: Box<Scratch> = Box::default();
    let mut writer =
        Writer { store: &store, scratch: &mut scratch, env, ticking, locks_ms: LOCKS_MS };
    let _ = writer.remove_found(record);
}

/// A random UUID, version 4 of RFC 9562.
fn uuid() -> Result<String, Errno> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = format!("{:032x}", u128::from_be_bytes(bytes));
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    Ok(text)
}
