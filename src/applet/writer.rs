//! Writing one event's draft: looking around, the locks, and what follows.

use super::branch::Branch;
use super::draft::{self, Draft, Marks, Surroundings, UNRESOLVED};
use crate::harness::rules::Ignored;
use crate::harness::{Change, Kind, Sessions, apply};
use crate::probe::{Ancestry, Process};
use crate::record::id::{self, File, Part};
use crate::record::out::Fixed;
use crate::record::sha256::Hex;
use crate::record::text::cut;
use crate::record::{Key, Status, limit};
use crate::store::{Decide, Patience, Scratch, Session, Store, WriteError, proc_file};
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::guard::Ticking;

/// How often a changed premise sends the writer back before the lock.
const ROUNDS: usize = 4;

/// What a writer works with.
pub struct Writer<'w, 'e> {
    /// The store.
    pub store: &'w Store,
    /// Its memory.
    pub scratch: &'w mut Scratch,
    /// The environment, for the terminal.
    pub env: &'w Env<'e>,
    /// The timer that ends lock waits.
    pub ticking: Ticking,
    /// Milliseconds to wait for the locks of one record.
    pub locks_ms: u64,
}

/// What became of a draft.
pub enum Wrote {
    /// The record stands, with this status.
    Record(Status),
    /// The rules ask for nothing.
    Nothing(Ignored),
}

/// What came of one look at the stored record.
enum Step {
    Ignored(Ignored),
    Written { status: Status, first: bool },
    LookAround,
}

impl<'e> Writer<'_, 'e> {
    /// Looks around where the rules ask for it and writes under the locks.
    pub fn write(
        &mut self,
        draft: &mut Draft<'e>,
        ancestry: &mut Ancestry,
        owner: Option<Process>,
    ) -> Result<Wrote, WriteError> {
        let plain = Part::Plain;
        let store = self.store;
        let patience = Patience::of(self.ticking, self.locks_ms);
        let identity = id::identity(plain(draft.row.id), plain(draft.session));
        // A start, and most likely a first event, needs the terminal and the
        // branch, which are looked at before the locks.
        let absent = store.sessions.entry(File::Record.name(&draft.digest).c()).is_err();
        if draft.event.kind == Kind::Start || absent {
            self.look_around(draft, ancestry);
        }
        for _ in 0..ROUNDS {
            let session = Session::lock(store, &identity, patience)?;
            let step =
                session.update(&draft.digest, draft.now.secs(), self.scratch, |stored, out| {
                    let state = stored.and_then(|s| draft::state(s, draft.boot, &draft.now));
                    let write = match apply(state.as_ref(), &draft.event) {
                        Change::Ignore(why) => return Decide::Leave(Step::Ignored(why)),
                        Change::Write(write) => write,
                    };
                    let moves = stored.is_some_and(|s| draft.moves(s));
                    if (write.fresh || moves) && draft.surroundings.is_none() {
                        return Decide::Leave(Step::LookAround);
                    }
                    draft.put(out, stored, &write);
                    Decide::Write(Step::Written { status: write.status, first: stored.is_none() })
                })?;
            match step {
                Step::Ignored(why) => return Ok(Wrote::Nothing(why)),
                Step::Written { status, first } => {
                    if first && owner.is_some() {
                        let unresolved = id::canonical(
                            plain(draft.row.id),
                            plain(draft.session),
                            plain(UNRESOLVED),
                        );
                        // The reader hides it meanwhile; it goes by itself too.
                        let _ = session.remove(&unresolved);
                    }
                    core::mem::drop(session);
                    if first || draft.event.kind == Kind::Start {
                        self.supersede(draft, owner);
                    }
                    return Ok(Wrote::Record(status));
                }
                Step::LookAround => {}
            }
            core::mem::drop(session);
            self.look_around(draft, ancestry);
        }
        Err(WriteError::Busy)
    }

    fn look_around(&self, draft: &mut Draft<'e>, ancestry: &mut Ancestry) {
        let mut at = 0;
        let comms = core::iter::from_fn(|| {
            at += 1;
            ancestry.get(at - 1).copied()
        });
        draft.surroundings = Some(Surroundings {
            terminal: crate::terminal::capture(comms, self.env),
            branch: Branch::find(draft.place()),
        });
    }

    /// Ends the session that the same process reported before, where a process
    /// holds one session at a time. The other session's locks are taken after
    /// this one's were let go.
    fn supersede(&mut self, draft: &Draft<'_>, owner: Option<Process>) {
        let Some(process) = owner else { return };
        if draft.row.sessions == Sessions::Many || !draft.event.subagent.is_empty() {
            return;
        }
        let mut canonical = [0; limit::TOKEN + 16];
        let mut canonical = Fixed::new(&mut canonical);
        id::put_canonical(&mut canonical, draft.row.id, &draft.digest);
        let file = proc_file::Process { pid: process.pid, start: process.start, boot: draft.boot };
        let Ok(last) = proc_file::Last::read(self.store, &file, canonical.text().unwrap_or(""))
        else {
            return;
        };
        if let Some(digest) = last.before {
            let patience = Patience::of(self.ticking, self.locks_ms);
            if end_session(self.store, self.scratch, &digest, draft.now, patience).is_err() {
                // The next start or new session of this process tries again.
                return;
            }
        }
        // Not noted, the maintainer removes the older one when the process ends.
        let _ = last.note(self.store);
    }
}

/// Ends a session by the digest of its canonical id.
fn end_session(
    store: &Store,
    scratch: &mut Scratch,
    digest: &Hex,
    now: Now,
    patience: Patience,
) -> Result<(), WriteError> {
    let Some(identity) = scratch.identity_of(store, digest) else { return Ok(()) };
    let session = Session::lock(store, &identity, patience)?;
    session.update(digest, now.secs(), scratch, |stored, out| match stored {
        Some(stored) if stored.status != Some(Status::Ended) => {
            draft::put_changed(
                out,
                stored,
                |key| {
                    matches!(
                        key,
                        Key::Status
                            | Key::Detail
                            | Key::Tool
                            | Key::Ts
                            | Key::TsMs
                            | Key::BootMs
                            | Key::MonoMs
                    ) || draft::WAIT.contains(&key)
                },
                |object| {
                    object
                        .str(Key::Status.name(), Status::Ended.name())
                        .str(Key::Detail.name(), "session closed")
                        .str(Key::Tool.name(), "")
                        .int(Key::Ts.name(), now.secs())
                        .int(Key::TsMs.name(), now.wall_ms)
                        .int(Key::BootMs.name(), now.boot_ms)
                        .int(Key::MonoMs.name(), now.mono_ms);
                },
            );
            Decide::Amend(())
        }
        _ => Decide::Leave(()),
    })
}

/// The launcher's ids in the environment.
pub fn marks<'e>(env: &Env<'e>) -> Marks<'e> {
    let text = |ours, foreign: Option<Var>| {
        let value = env.text(ours).or_else(|| env.text(foreign?)).unwrap_or("");
        cut(value, limit::ID)
    };
    Marks {
        launch: text(Var::TONGS_AGENTS_LAUNCH_ID, Some(Var::AGENT_LAUNCH_ID)),
        profile: text(Var::TONGS_AGENTS_PROFILE_ID, None),
        terminal: text(Var::TONGS_AGENTS_TERMINAL_ID, Some(Var::AGENT_TERMINAL_ID)),
    }
}
