//! All sessions as they were last seen, and what is different now.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::find::{read, unread};
use super::view::{self, Row};
use crate::cli::Fail;
use crate::record::id::File;
use crate::record::out::{Object, Sink, Style, string};
use crate::record::sha256::Hex;
use crate::record::{Checked, Key, Status};
use crate::store::annotate::{Derived, IDLE_ATTENTION, QUIET, View, annotate_session, silent_ms};
use crate::store::seen::{Marks, Phase};
use crate::store::{Reader, Store};
use crate::sys::clock::Now;
use crate::sys::fs::Errno;

/// Takes what is told: the event, the session, and its JSON.
pub type Tell<'t> = dyn FnMut(Event, &Row, &[u8]) -> Result<(), Fail> + 't;

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was not there before.
    Added,
    /// Its record or a derived field other than its age is another.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Event {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Event::Added => "added",
            Event::Changed => "changed",
            Event::Removed => "removed",
        }
    }
}

/// What was done about a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing.
    No,
    /// It is held back until this moment of CLOCK_MONOTONIC in milliseconds.
    Held(u64),
    /// It is out.
    Yes,
}

impl Told {
    /// Until when it is held back, where it is.
    pub fn until_ms(self) -> Option<u64> {
        match self {
            Told::Held(until_ms) => Some(until_ms),
            Told::No | Told::Yes => None,
        }
    }
}

/// A session that was seen.
pub struct Known {
    /// The session, without its JSON.
    pub row: Row,
    /// What it waits for, where that is known.
    pub waiting_for: String,
    /// What was done about a notice of its present status.
    pub notice: Told,
    session_id: String,
    digest: Option<Hex>,
    /// Whether a better record may hide it.
    hideable: bool,
    /// Of everything that makes a change.
    hash: u64,
    /// The look that it was last seen in.
    look: u64,
    /// When a derived field changes by time alone, wall time in milliseconds.
    turns_ms: Option<u64>,
}

impl Known {
    /// Writes the ids and the harness as an object.
    fn put_ids(&self, sink: &mut impl Sink) {
        let mut object = Object::open(sink);
        let canonical = if self.digest.is_some() { &self.row.id } else { "" };
        for (name, text) in [
            ("canonical_id", canonical),
            ("session_id", &self.session_id),
            ("harness_id", &self.row.harness),
            ("short_id", self.row.derived.short_id()),
        ] {
            string(object.key(name), text, Style::Shown);
        }
        object.close();
    }
}

/// Sessions that are gone and whose notices are remembered, at most.
const REMEMBERED: usize = 4096;

/// All sessions as they were last seen.
#[derive(Default)]
pub struct Fleet {
    known: HashMap<String, Known>,
    /// What was told of sessions that are gone: a store that was away for a moment
    /// brings them back as they were.
    told: HashMap<String, Phase>,
    looks: u64,
    keys: RandomState,
    reader: Reader,
}

impl Fleet {
    /// The sessions, in no order.
    pub fn sessions(&self) -> impl Iterator<Item = &Known> {
        self.known.values()
    }

    /// The same, to note what was done about them.
    pub fn sessions_mut(&mut self) -> impl Iterator<Item = &mut Known> {
        self.known.values_mut()
    }

    /// When the first derived field changes by time alone, wall time in
    /// milliseconds.
    pub fn turns_ms(&self) -> Option<u64> {
        self.known.values().filter_map(|known| known.turns_ms).min()
    }

    /// Looks at a store, or at none, and tells of every difference to the last
    /// look, with the session as JSON. What is removed comes last.
    pub fn look(&mut self, store: Option<&Store>, tell: &mut Tell<'_>) -> Result<(), Fail> {
        self.looks += 1;
        let view = view::of(&Now::read());
        if let Some(store) = store {
            let marks = Marks::read(store);
            let mut reader = core::mem::take(&mut self.reader);
            self.list(store, &view, &marks, &mut reader, tell)?;
            if self.passed_over(store, &view, &marks, &mut reader, tell)? {
                self.list(store, &view, &marks, &mut reader, tell)?;
            }
            self.reader = reader;
        }
        let gone = |known: &Known| known.look != self.looks;
        let mut removed: Vec<String> =
            self.known.iter().filter(|(_, k)| gone(k)).map(|(id, _)| id.clone()).collect();
        removed.sort();
        for id in removed {
            if let Some(known) = self.known.remove(&id) {
                if let Some(phase) = known.row.phase.filter(|_| known.notice == Told::Yes) {
                    if self.told.len() >= REMEMBERED {
                        self.told.clear();
                    }
                    self.told.insert(id.clone(), phase);
                }
                let mut json = Vec::new();
                known.put_ids(&mut json);
                tell(Event::Removed, &known.row, &json)?;
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        store: &Store,
        view: &View,
        marks: &Marks,
        reader: &mut Reader,
        tell: &mut Tell<'_>,
    ) -> Result<(), Fail> {
        let mut told = Ok(());
        let done = read(store, reader, view, marks, &mut |record, derived| {
            told = self.take(record, derived, marks, view, tell);
            told.is_ok()
        });
        told?;
        match done {
            // Removed at this moment.
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(unread(e)),
        }
    }

    /// Looks by name for what a listing did not have: it may pass over a record
    /// that is being replaced. Says whether one is there that may be hidden, which
    /// another listing must decide.
    fn passed_over(
        &mut self,
        store: &Store,
        view: &View,
        marks: &Marks,
        reader: &mut Reader,
        tell: &mut Tell<'_>,
    ) -> Result<bool, Fail> {
        let missing: Vec<(Option<Hex>, bool)> = self
            .known
            .values()
            .filter(|known| known.look != self.looks)
            .map(|known| (known.digest, known.hideable))
            .collect();
        let mut doubt = false;
        for (digest, hideable) in missing {
            let Some(digest) = digest else {
                doubt = true;
                continue;
            };
            if hideable {
                doubt |= store.sessions.entry(File::Record.name(&digest).c()).is_ok();
            } else if let Ok(record) = store.read_session_record(reader, &digest) {
                let derived = annotate_session(&record, view, marks.of(&record, view));
                self.take(&record, &derived, marks, view, tell)?;
            }
        }
        Ok(doubt)
    }

    fn take(
        &mut self,
        record: &Checked<'_>,
        derived: &Derived,
        marks: &Marks,
        view: &View,
        tell: &mut Tell<'_>,
    ) -> Result<(), Fail> {
        let hash = self.hash(record, derived);
        let turns_ms = turns_ms(record, derived, marks, view);
        let key = if record.legacy { Key::SessionId } else { Key::CanonicalId };
        let id = record.text(key).to_string();
        let before = self.known.get_mut(&id);
        let (event, phase, notice) = match before {
            Some(known) if known.hash == hash => {
                known.look = self.looks;
                known.turns_ms = turns_ms;
                known.row.derived.age_seconds = derived.age_seconds;
                return Ok(());
            }
            Some(known) => (Event::Changed, known.row.phase, known.notice),
            None => match self.told.remove(&id) {
                Some(phase) => (Event::Added, Some(phase), Told::Yes),
                None => (Event::Added, None, Told::No),
            },
        };
        let mut row = Row::of(record, derived);
        let json = core::mem::take(&mut row.json);
        tell(event, &row, &json)?;
        let goes_on = row.phase == phase && row.asks();
        let known = Known {
            row,
            notice: if goes_on { notice } else { Told::No },
            waiting_for: record.text(Key::WaitingFor).to_string(),
            session_id: record.text(Key::SessionId).to_string(),
            digest: Some(record.digest).filter(|_| !record.legacy),
            hideable: record.legacy || record.process || record.pid.is_none(),
            hash,
            look: self.looks,
            turns_ms,
        };
        self.known.insert(id, known);
        Ok(())
    }

    fn hash(&self, record: &Checked<'_>, derived: &Derived) -> u64 {
        let mut hasher = self.keys.build_hasher();
        hasher.write(record.bytes());
        let Derived { needs_attention, seen, snoozed, quiet, unverified, .. } = *derived;
        for flag in [needs_attention, seen, snoozed, quiet, unverified] {
            hasher.write_u8(flag.into());
        }
        hasher.finish()
    }
}

/// When a derived field of a record changes by time alone, wall time in
/// milliseconds.
fn turns_ms(record: &Checked<'_>, derived: &Derived, marks: &Marks, view: &View) -> Option<u64> {
    // The fields change once the age is more than their limit, in whole seconds.
    let past = |limit: u64| Some(record.ts.saturating_add(limit + 1).saturating_mul(1000));
    let by_age = match record.status {
        Some(Status::Idle) if !derived.needs_attention => past(IDLE_ATTENTION),
        Some(Status::Running) if !derived.quiet => past(QUIET),
        _ => None,
    };
    let by_mark = marks.end_ms(record).filter(|end| *end > view.now_ms);
    let by_silence = silent_ms(record, derived, view);
    by_age.into_iter().chain(by_mark).chain(by_silence).min()
}
