//! The end of a turn of which no hook tells: the user broke it off.
//!
//! Claude Code notes for itself that it is idle. The maintainer, and nobody
//! else, believes that of a process that lives, is the one that the note names
//! and has had no event since; and it goes this one way only, from running or
//! waiting to idle.

use std::ffi::CString;

use super::draft;
use super::processes::recorded;
use crate::harness::note;
use crate::probe::Recorded;
use crate::record::{Checked, Key, Status};
use crate::store::maintain::Rest;
use crate::store::{Decide, Patience, Scratch, Session, Store, WriteError};
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::fs::{Dir, Open, euid};

/// The harness that keeps notes.
const CLAUDE: &str = "claude";

/// Where the notes are.
pub struct Notes {
    dir: Option<Vec<u8>>,
}

impl Notes {
    /// Finds the directory: `sessions` in `$CLAUDE_CONFIG_DIR`, else in
    /// `$HOME/.claude`. A variable that is no absolute path counts as unset.
    pub fn find(env: &Env<'_>) -> Notes {
        let own = env.absolute(Var::CLAUDE_CONFIG_DIR).map(|dir| [dir, b"/sessions"].concat());
        let home = || env.absolute(Var::HOME).map(|dir| [dir, b"/.claude/sessions"].concat());
        Notes { dir: own.or_else(home) }
    }

    /// Says when the turn of a record ended by its process's own word. Whether
    /// the process lives is for the caller to say.
    pub fn rest(&self, record: &Checked<'_>, now: &Now) -> Option<Rest> {
        let (row, recorded) = recorded(record)?;
        if row.id != CLAUDE || !may_rest(record) {
            return None;
        }
        let at_ms = self.read(&recorded)?;
        let is_later = at_ms > last_event(record) && at_ms <= now.wall_ms;
        is_later.then(|| Rest {
            identity: record.identity(),
            digest: record.digest,
            pid: recorded.pid,
            at_ms,
        })
    }

    /// Reads the note of a process: a regular file of ours, through no link and
    /// without waiting.
    fn read(&self, recorded: &Recorded<'_>) -> Option<u64> {
        let mut path = self.dir.clone()?;
        path.extend_from_slice(format!("/{}.json", recorded.pid).as_bytes());
        let file = Dir::cwd().open(&CString::new(path).ok()?, Open::Read).ok()?;
        let meta = file.status().ok()?;
        if !meta.is_file() || meta.uid != euid() || meta.size > note::MAX as u64 {
            return None;
        }
        let mut bytes = vec![0; note::MAX];
        let len = file.read_all(&mut bytes).ok()?;
        note::idle_since(bytes.get(..len)?, recorded.pid, recorded.start)
    }
}

/// Whether a record says that its main agent is at work or waits. A wait of a
/// subagent is none of the main agent's, which may well be idle.
fn may_rest(record: &Checked<'_>) -> bool {
    let of_subagent =
        [Key::WaitingAgent, Key::WaitingFrom].iter().any(|key| !record.text(*key).is_empty());
    !record.legacy
        && !record.process
        && match record.status {
            Some(Status::Running) => true,
            Some(Status::Waiting) => !of_subagent,
            _ => false,
        }
}

/// Wall time of a record's last event, in milliseconds; the latest that it may
/// have been where only the second is known.
fn last_event(record: &Checked<'_>) -> u64 {
    let second = record.ts.saturating_mul(1000);
    record.int(Key::TsMs).map_or(second.saturating_add(999), |ms| ms.max(second))
}

/// Writes the end of a turn into its record, unless there was an event since.
pub fn settle(
    store: &Store,
    rest: &Rest,
    now: &Now,
    patience: Patience,
    scratch: &mut Scratch,
) -> Result<bool, WriteError> {
    let session = Session::lock(store, &rest.identity, patience)?;
    session.update(&rest.digest, now.secs(), scratch, |stored, out| match stored {
        Some(stored)
            if may_rest(stored)
                && stored.pid == Some(rest.pid)
                && last_event(stored) < rest.at_ms =>
        {
            // No event came: the clocks that order events stay as they are.
            let idle = (Status::Idle, "interrupted");
            draft::put_status(out, stored, idle, rest.at_ms, None);
            Decide::Amend(true)
        }
        _ => Decide::Leave(false),
    })
}
