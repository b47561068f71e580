//! What launchers and other trackers say of a process: a record ahead of what
//! its hooks report, or the launcher's ids beside that.
//!
//! The hooks know better. Where a session of the process has spoken, a launcher
//! adds its ids to that record and no other. A hook that speaks first looks for
//! the record of its process after it wrote its own, and a launcher looks for
//! sessions after it wrote: whoever comes second sees the other.

use super::draft::Draft;
use super::fail::{errno, unwritten};
use super::processes::{self, Names};
use super::writer::{Ids, Writer, Wrote};
use crate::cli::{Exit, Fail};
use crate::harness::{self, Sessions};
use crate::probe::{Ancestry, Here, Process};
use crate::record::{Checked, Key, Status, id, limit};
use crate::store::{Reader, Store};

/// A record that stands for a process.
pub struct Stands {
    /// Its canonical id.
    pub canonical: String,
    /// The session's id.
    pub session: String,
    /// Its status.
    pub status: Status,
}

/// Refuses an id of a launcher that cannot be one: empty, longer than 512 bytes
/// or with a control character.
pub fn check_id(option: &str, id: &str) -> Result<(), Fail> {
    if id.is_empty() {
        return Err(Fail::new(Exit::Usage, format!("{option} is empty")));
    }
    if id.len() > limit::ID {
        return Err(Fail::new(Exit::Data, format!("{option} is longer than {} bytes", limit::ID)));
    }
    if id.chars().any(char::is_control) {
        return Err(Fail::new(Exit::Data, format!("{option} has a control character in it")));
    }
    Ok(())
}

/// Tells of a process, whose record `draft` would be.
pub fn tell<'e>(
    writer: &mut Writer<'_, 'e>,
    draft: &mut Draft<'e>,
    names: &Names,
    process: &Process,
    here: &Here,
) -> Result<Stands, Fail> {
    if let Some(stands) = join(writer, draft, names, process, here)? {
        return Ok(stands);
    }
    let status = write(writer, draft, names, process)?;
    if let Some(stands) = join(writer, draft, names, process, here)? {
        let ids = Ids { identity: names.identity, digest: names.digest };
        if stands.session != names.session {
            let _ = writer.remove_found(&ids);
        }
        return Ok(stands);
    }
    let mut canonical = Vec::new();
    id::put_canonical(&mut canonical, draft.row.id, &names.digest);
    Ok(Stands {
        canonical: String::from_utf8_lossy(&canonical).into_owned(),
        session: names.session.clone(),
        status,
    })
}

/// Writes the record that `draft` is.
pub fn write<'e>(
    writer: &mut Writer<'_, 'e>,
    draft: &mut Draft<'e>,
    names: &Names,
    process: &Process,
) -> Result<Status, Fail> {
    let mut ancestry = Ancestry::from(process.ppid);
    match writer.write(draft, &mut ancestry, Some(*process)) {
        Ok(Wrote::Record(status)) => Ok(status),
        Ok(Wrote::Nothing(_)) => Ok(Status::Discovered),
        Err(e) => {
            let (exit, why) = unwritten(e);
            Err(Fail::cannot(exit, "write session", &names.session, why))
        }
    }
}

/// A session that has spoken for a process.
struct Spoken {
    ids: Ids,
    stands: Stands,
    ts: u64,
}

/// Adds the launcher's ids to the sessions that have spoken for the process, and
/// gives the newest of them.
fn join(
    writer: &mut Writer<'_, '_>,
    draft: &Draft<'_>,
    names: &Names,
    process: &Process,
    here: &Here,
) -> Result<Option<Stands>, Fail> {
    let wanted = |record: &Checked<'_>| {
        spoke_for(record, process, here)
            && (names.is_process()
                || record.text(Key::SessionId).is(&names.session)
                || holds_one(record))
    };
    let spoken = spoken(writer.store, wanted)?;
    for session in &spoken {
        let Ids { identity, digest } = &session.ids;
        writer.mark(identity, digest, draft.now, &draft.marks).map_err(|e| {
            let (exit, why) = unwritten(e);
            Fail::cannot(exit, "write session", &session.stands.session, why)
        })?;
    }
    Ok(spoken.into_iter().max_by_key(|session| session.ts).map(|session| session.stands))
}

/// Whether a record is of a living session of exactly this process, and has had
/// an event.
fn spoke_for(record: &Checked<'_>, process: &Process, here: &Here) -> bool {
    let boot = processes::boot(here);
    let same = |key, text: &str| record.text(key).is_empty() || record.text(key).is(text);
    !record.legacy
        && !record.process
        && !matches!(record.status, Some(Status::Ended | Status::Discovered))
        && record.pid == Some(process.pid.into())
        && record.text(Key::ProcessStart).is(&process.start.to_string())
        && same(Key::BootId, boot)
        && same(Key::PidNs, &here.pid_ns.map(|ns| ns.to_string()).unwrap_or_default())
}

fn holds_one(record: &Checked<'_>) -> bool {
    let mut name = [0; limit::NAME];
    let row = record.harness().copy(&mut name).and_then(harness::find);
    row.is_some_and(|row| row.sessions == Sessions::One)
}

fn spoken(store: &Store, wanted: impl Fn(&Checked<'_>) -> bool) -> Result<Vec<Spoken>, Fail> {
    let mut all = Vec::new();
    store
        .read_stored_sessions(&mut Reader::default(), |_, record| {
            if wanted(record) {
                all.push(Spoken {
                    ids: Ids { identity: record.identity(), digest: record.digest },
                    stands: Stands {
                        canonical: record.text(Key::CanonicalId).to_string(),
                        session: record.text(Key::SessionId).to_string(),
                        status: record.status.unwrap_or(Status::Discovered),
                    },
                    ts: record.ts,
                });
            }
            true
        })
        .map_err(|e| Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e))))?;
    Ok(all)
}
