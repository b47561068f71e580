//! Writing one event's draft: looking around, the locks, and what follows.

use super::branch::Branch;
use super::draft::{self, Draft, Inherited, Marks, Surroundings, UNRESOLVED, is_out_of_sight};
use crate::harness::rules::{Ignored, put_instance};
use crate::harness::{Change, Kind, OTHER, Row, Sessions, apply};
use crate::probe::{Ancestry, Process};
use crate::record::id::{self, File, Part};
use crate::record::out::{Fixed, Sink, int};
use crate::record::sha256::Hex;
use crate::record::text::cut;
use crate::record::{Checked, Key, Status, limit};
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
    fn patience(&self) -> Patience {
        Patience::of(self.ticking, self.locks_ms)
    }

    /// Looks around where the rules ask for it and writes under the locks.
    pub fn write(
        &mut self,
        draft: &mut Draft<'e>,
        ancestry: &mut Ancestry,
        owner: Option<Process>,
    ) -> Result<Wrote, WriteError> {
        let plain = Part::Plain;
        let store = self.store;
        let patience = self.patience();
        let identity = id::identity(plain(draft.row.id), plain(draft.session));
        // A start, and most likely a first event, needs the terminal and the
        // branch, which are looked at before the locks.
        let absent = store.sessions.entry(File::Record.name(&draft.digest).c()).is_err();
        if (draft.event.kind == Kind::Start || absent) && draft.surroundings.is_none() {
            self.look_around(draft, ancestry);
        }
        if let Some(process) = owner.filter(|_| absent) {
            for harness in recorders(draft.row) {
                self.inherit(draft, &process_record(harness, &process).digest);
            }
        }
        for _ in 0..ROUNDS {
            let session = Session::lock(store, &identity, patience)?;
            let step =
                session.update(&draft.digest, draft.now.secs(), self.scratch, |stored, out| {
                    // What a bridge brought says nothing of a session here.
                    let theirs = stored.is_some_and(|s| !s.text(Key::Bridge).is_empty());
                    let stored = stored.filter(|_| !theirs);
                    // That it was found says nothing of a session that spoke.
                    let spoke = |s: &&Checked<'_>| s.status != Some(Status::Discovered);
                    if let Some(stored) = stored.filter(|s| draft.is_discovery() && spoke(s)) {
                        let status = stored.status.unwrap_or(Status::Discovered);
                        let step = Step::Written { status, first: false };
                        return match draft::put_marked(out, stored, &draft.marks) {
                            true => Decide::Amend(step),
                            false => Decide::Leave(step),
                        };
                    }
                    let state = stored.and_then(|s| draft::state(s, draft.boot, &draft.now));
                    let write = match apply(state.as_ref(), &draft.event) {
                        Change::Ignore(why) => return Decide::Leave(Step::Ignored(why)),
                        Change::Write(write) => write,
                    };
                    let unseen = stored.is_some_and(|s| draft.moves(s) || is_out_of_sight(s));
                    if (write.fresh || unseen) && draft.surroundings.is_none() {
                        return Decide::Leave(Step::LookAround);
                    }
                    draft.put(out, stored, &write);
                    let step = Step::Written { status: write.status, first: stored.is_none() };
                    if theirs { Decide::Replace(step) } else { Decide::Write(step) }
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
                        let _ = session.remove(&unresolved, self.scratch, |_| true);
                    }
                    core::mem::drop(session);
                    let begins = first || draft.event.kind == Kind::Start;
                    if let Some(process) = owner.filter(|_| begins) {
                        self.follow(draft, &process, &identity, first);
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

    /// Takes over the launcher's ids from the record of a process itself; says
    /// whether some were not known, and `None` where there is no such record.
    fn inherit(&mut self, draft: &mut Draft<'_>, digest: &Hex) -> Option<bool> {
        let inherited = &mut draft.inherited;
        let take = |record: &Checked<'_>| {
            record.process.then(|| inherited.get_or_insert(Inherited::NONE).take(record))
        };
        self.scratch.look(self.store, digest, take).flatten()
    }

    /// Puts a session in the place of what the same process had before: the
    /// record of the process itself and, where a process holds one session at a
    /// time, the session that it reported last. Their locks are taken after this
    /// one's were let go. What fails here goes by itself when the process ends.
    /// Only the first event and a start have anything to follow.
    #[inline(never)] // not on the way of most events
    fn follow(&mut self, draft: &mut Draft<'_>, process: &Process, identity: &Hex, first: bool) {
        let mut more = false;
        if first {
            for harness in recorders(draft.row) {
                let record = process_record(harness, process);
                if record.digest != draft.digest {
                    if let Some(had_more) = self.inherit(draft, &record.digest) {
                        more |= had_more;
                        let _ = self.remove_found(&record);
                    }
                }
            }
        }
        let supersedes = draft.row.sessions == Sessions::One
            && draft.event.subagent.is_empty()
            && draft.kind == "session";
        if supersedes {
            more |= self.supersede(draft, process);
        }
        if let Some(inherited) = draft.inherited.as_ref().filter(|_| more) {
            let _ = self.mark(identity, &draft.digest, draft.now, &inherited.marks());
        }
    }

    /// Removes a record that no event has told of yet, where it still is one.
    pub fn remove_found(&mut self, record: &Ids) -> Result<bool, WriteError> {
        let session = Session::lock(self.store, &record.identity, self.patience())?;
        let is_found =
            |r: Option<&Checked<'_>>| r.is_some_and(|r| r.status == Some(Status::Discovered));
        session.remove(&record.digest, self.scratch, is_found)
    }

    /// Adds a launcher's ids to a record, where it is there.
    pub fn mark(
        &mut self,
        identity: &Hex,
        digest: &Hex,
        now: Now,
        marks: &Marks<'_>,
    ) -> Result<(), WriteError> {
        let session = Session::lock(self.store, identity, self.patience())?;
        session.update(digest, now.secs(), self.scratch, |stored, out| {
            match stored.is_some_and(|stored| draft::put_marked(out, stored, marks)) {
                true => Decide::Amend(()),
                false => Decide::Leave(()),
            }
        })
    }

    /// Ends the session that the same process reported before; says whether it
    /// had ids of the launcher that were not known.
    fn supersede(&mut self, draft: &mut Draft<'_>, process: &Process) -> bool {
        let mut canonical = [0; limit::TOKEN + 16];
        let mut canonical = Fixed::new(&mut canonical);
        id::put_canonical(&mut canonical, draft.row.id, &draft.digest);
        let file = proc_file::Process { pid: process.pid, start: process.start, boot: draft.boot };
        let Ok(last) = proc_file::Last::read(self.store, &file, canonical.text().unwrap_or(""))
        else {
            return false;
        };
        let mut more = false;
        if let Some(digest) = last.before {
            match self.end_session(draft, &digest) {
                Ok(Some(had_more)) => more = had_more,
                // The next start or new session of this process tries again.
                Ok(None) | Err(_) => return false,
            }
        }
        // Not noted, the maintainer removes the older one when the process ends.
        let _ = last.note(self.store);
        more
    }

    /// Ends a session by the digest of its canonical id, and takes over the
    /// launcher's ids; says whether some were not known. `None` where a session
    /// that was only found does not end one that spoke.
    fn end_session(
        &mut self,
        draft: &mut Draft<'_>,
        digest: &Hex,
    ) -> Result<Option<bool>, WriteError> {
        let Some(identity) = self.scratch.look(self.store, digest, |record| record.identity())
        else {
            return Ok(Some(false));
        };
        let session = Session::lock(self.store, &identity, self.patience())?;
        let (now, is_discovery) = (draft.now, draft.is_discovery());
        let inherited = draft.inherited.get_or_insert(Inherited::NONE);
        session.update(digest, now.secs(), self.scratch, |stored, out| {
            let Some(stored) = stored else { return Decide::Leave(Some(false)) };
            let more = inherited.take(stored);
            match stored.status {
                Some(Status::Ended) => Decide::Leave(Some(more)),
                Some(status) if is_discovery && status != Status::Discovered => Decide::Leave(None),
                _ => {
                    let ended = (Status::Ended, "session closed");
                    draft::put_status(out, stored, ended, now.wall_ms, Some(&now));
                    Decide::Amend(Some(more))
                }
            }
        })
    }
}

/// The two digests by which a record is found.
#[derive(Clone, Copy)]
pub struct Ids {
    /// Of the session's identity.
    pub identity: Hex,
    /// Of the canonical id.
    pub digest: Hex,
}

/// Finds the record of a process itself, as discovery and launchers write it.
fn process_record(harness: &str, process: &Process) -> Ids {
    let (mut session, mut instance) = ([0; 16], [0; 32]);
    let (mut session, mut instance) = (Fixed::new(&mut session), Fixed::new(&mut instance));
    Sink::put(&mut session, b"proc-");
    int(&mut session, process.pid.into());
    put_instance(&mut instance, process.pid, process.start);
    let harness = Part::Plain(harness);
    let session = Part::Plain(session.text().unwrap_or(""));
    let instance = Part::Plain(instance.text().unwrap_or(""));
    Ids {
        identity: id::identity(harness, session),
        digest: id::canonical(harness, session, instance),
    }
}

/// The harnesses under which the process of a session may be recorded: its own,
/// and that of a command that a launcher did not know.
fn recorders(row: &'static Row) -> impl Iterator<Item = &'static str> {
    [row.id].into_iter().chain(Some(OTHER.id).filter(|other| row.id != *other))
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
