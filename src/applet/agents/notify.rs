//! `tongs-agents notify`: a record for a program that has no hook. The same
//! rules, checks and locks as the hook's.

use argh::FromArgs;

use super::super::Start;
use super::super::dir::absolute;
use super::super::draft::{Draft, Owner, UNRESOLVED};
use super::super::fail::{errno, no_timer, stdout, unwritten};
use super::super::processes;
use super::super::store::{LOCKS_MS, make};
use super::super::writer::{Writer, Wrote, marks};
use super::{check_version, harness, options};
use crate::cli::{Exit, Fail};
use crate::harness::rules::{Event, Kind, Words, put_instance};
use crate::probe::{Ancestry, Here};
use crate::record::id::{self, Part};
use crate::record::out::{Fixed, Object, Sink};
use crate::record::text::cut;
use crate::record::{Key, Status, limit};
use crate::store::{Reader, Scratch, Store};
use crate::sys::clock::Now;
use crate::sys::{guard, stdio};

/// Write a record for a program that has no hook.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents notify --harness other --session build --status running --detail 'make all'",
    note = "See tongs-agents(1).",
    error_code(0, "the record was written"),
    error_code(1, "refused: the process does not live, or the order is not kept"),
    error_code(64, "usage"),
    error_code(65, "a field is too long or the stored record is newer"),
    error_code(74, "the record could not be written"),
    error_code(75, "another process holds the record's lock"),
    error_code(77, "the store is not private or not ours")
)]
struct Options {
    /// the harness, such as other
    #[argh(option, arg_name = "H")]
    harness: String,
    /// the session's id
    #[argh(option, arg_name = "S")]
    session: String,
    /// started, running, idle, waiting, error or ended
    #[argh(option, arg_name = "ST")]
    status: String,
    /// what it is doing
    #[argh(option, arg_name = "TEXT")]
    detail: Option<String>,
    /// the tool in use
    #[argh(option, arg_name = "TEXT")]
    tool: Option<String>,
    /// the directory; default: the current one
    #[argh(option, arg_name = "DIR")]
    cwd: Option<String>,
    /// the session's process, which must live
    #[argh(option, arg_name = "N")]
    pid: Option<u32>,
    /// the program's own order, which must grow
    #[argh(option, arg_name = "N")]
    sequence: Option<u64>,
    /// the instance's id; default: from the process
    #[argh(option, arg_name = "ID")]
    instance: Option<String>,
    /// when it happened, epoch seconds; default: now
    #[argh(option, arg_name = "T")]
    ts: Option<u64>,
    /// the event's name; default: notify
    #[argh(option, arg_name = "NAME")]
    event: Option<String>,
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
    let options: Options = options("notify", words)?;
    check_version(options.json_version)?;
    let row = harness(&options.harness)?;
    let status = Status::find(&options.status).filter(|s| *s != Status::Discovered).ok_or_else(|| {
        Fail::new(
            Exit::Usage,
            format!("unknown status '{}': it is one of started, running, idle, waiting, error, ended", options.status),
        )
    })?;
    let instance_given = options.instance.as_deref().unwrap_or("");
    for (name, text, max) in [
        ("session", options.session.as_str(), limit::ID),
        ("instance", instance_given, limit::ID),
        ("cwd", options.cwd.as_deref().unwrap_or(""), limit::PATH),
    ] {
        // Ids and paths are never cut: half of one is another one.
        if text.len() > max {
            return Err(Fail::new(Exit::Data, format!("--{name} is longer than {max} bytes")));
        }
    }
    if options.session.is_empty() {
        return Err(Fail::new(Exit::Usage, "--session is empty"));
    }
    let process = options.pid.map(processes::living).transpose()?;
    if process.is_none() && !matches!(instance_given, "" | UNRESOLVED) {
        return Err(Fail::new(
            Exit::Usage,
            "--instance goes with --pid: without a process it is 'unresolved'",
        ));
    }
    if process.is_some() && instance_given == UNRESOLVED {
        return Err(Fail::new(Exit::Usage, "--instance cannot be 'unresolved' with --pid"));
    }

    let now = Now::read();
    let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
    stdio::private_umask();
    let here = Here::read();
    let store = make(env)?;
    // Without a process the report is about the process that is known.
    let known = if process.is_none() && instance_given.is_empty() {
        known_process(&store, row.id, &options.session, &here)?
    } else {
        None
    };
    let start = match (&process, &known) {
        (Some(process), _) => process.start.to_string(),
        (None, Some(known)) => known.start.clone(),
        (None, None) => String::new(),
    };
    let mut own_instance = [0; 32];
    let mut own_instance = Fixed::new(&mut own_instance);
    if let Some(process) = process {
        put_instance(&mut own_instance, process.pid, process.start);
    }
    let instance = match (&process, &known) {
        (None, Some(known)) => known.instance.as_str(),
        (None, None) => UNRESOLVED,
        (Some(_), _) if !instance_given.is_empty() => instance_given,
        (Some(_), _) => own_instance.text().unwrap_or(UNRESOLVED),
    };
    let pid = process.map(|p| p.pid).or(known.as_ref().map(|k| k.pid));
    let plain = Part::Plain;
    let digest = id::canonical(plain(row.id), plain(&options.session), plain(instance));
    let cwd = absolute(options.cwd.as_deref());
    let tool = cut(options.tool.as_deref().unwrap_or(""), limit::TOOL);
    let event = format!("{}.{}", row.id, options.event.as_deref().unwrap_or("notify"));
    let mut draft = Draft {
        row,
        session: &options.session,
        instance,
        digest,
        owner: pid.map(|pid| Owner { pid, start: &start }),
        boot: processes::boot(&here),
        pid_ns: here.pid_ns,
        cwd: &cwd,
        cwd_else: "",
        now,
        ts: options.ts.unwrap_or(now.secs()),
        event: Event {
            kind: Kind::Report(status),
            boot_ms: Some(now.boot_ms).filter(|_| options.sequence.is_none()),
            subagent: "",
            turn_id: "",
            tool,
            background: None,
            tool_use_answers: row.tool_use_answers,
            compact_ends: row.compact_ends,
        },
        words: Words {
            tool,
            message: "",
            error: "",
            reported: cut(options.detail.as_deref().unwrap_or(""), limit::DETAIL),
        },
        last_event: &event,
        method: "notify",
        source: "notify",
        kind: "session",
        title: "",
        sequence: options.sequence,
        marks: marks(env),
        inherited: None,
        surroundings: None,
    };
    let mut scratch: Box<Scratch> = Box::default();
    let mut writer =
        Writer { store: &store, scratch: &mut scratch, env, ticking, locks_ms: LOCKS_MS };
    let mut ancestry = Ancestry::from(here.parent);
    let written = writer.write(&mut draft, &mut ancestry, process).map_err(|e| {
        let (exit, why) = unwritten(e);
        Fail::cannot(exit, "write session", &options.session, why)
    })?;
    let Wrote::Record(status) = written else {
        return Err(Fail::cannot(
            Exit::No,
            "write session",
            &options.session,
            "the rules keep it as it is",
        ));
    };
    if options.json || options.json_version.is_some() {
        let mut canonical = Vec::new();
        id::put_canonical(&mut canonical, row.id, &digest);
        let mut line = Vec::new();
        let mut object = Object::open(&mut line);
        object
            .str("canonical_id", &String::from_utf8_lossy(&canonical))
            .str("status", status.name());
        object.close();
        line.put(b"\n");
        let mut out = stdout();
        out.put(&line)?;
        out.flush()?;
    }
    Ok(Exit::Ok)
}

/// The process that a session's record names.
struct Known {
    instance: String,
    pid: u32,
    start: String,
    ts: u64,
}

/// Finds the process of a session by its newest record, where that is of this
/// boot and this pid namespace: only there does its pid mean anything here.
fn known_process(
    store: &Store,
    harness: &str,
    session: &str,
    here: &Here,
) -> Result<Option<Known>, Fail> {
    let (boot, pid_ns) = (processes::boot(here), here.pid_ns.map(|ns| ns.to_string()));
    let mut newest: Option<Known> = None;
    let mut reader = Reader::default();
    store
        .read_stored_sessions(&mut reader, |_, record| {
            let Some(pid) = record.pid.and_then(|pid| u32::try_from(pid).ok()) else { return true };
            let ours = record.text(Key::BootId).is(boot)
                && pid_ns.as_ref().is_some_and(|ns| record.text(Key::PidNs).is(ns));
            let same = record.harness().is(harness) && record.text(Key::SessionId).is(session);
            if ours && same && !record.legacy && !record.process {
                let newer = newest.as_ref().is_none_or(|known| record.ts >= known.ts);
                if newer {
                    newest = Some(Known {
                        instance: record.text(Key::InstanceId).to_string(),
                        pid,
                        start: record.text(Key::ProcessStart).to_string(),
                        ts: record.ts,
                    });
                }
            }
            true
        })
        .map_err(|e| Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e))))?;
    Ok(newest)
}
