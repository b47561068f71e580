//! What the user has seen: marks on the statuses that sessions are in, in one
//! small file beside the records.
//!
//! `.tongs-seen-v1` begins with a line that names its format; each further line
//! is a mark: the digest of the canonical id, the status, when it began in epoch
//! milliseconds, and until when the mark holds, 0 for as long as the status
//! does. A mark says nothing of any later status, and goes when the file is
//! written next. A file that is not like this counts as empty and is replaced.

use core::ffi::CStr;
use std::collections::HashSet;
use std::fmt::Write as _;

use super::annotate::View;
use super::lock::{Lock, Patience};
use super::place::Store;
use super::read::Reader;
use super::replace::{Target, replace};
use super::write::WriteError;
use crate::record::sha256::Hex;
use crate::record::{Checked, Key, Status};
use crate::sys::fs::Open;

/// The file's name.
pub const NAME: &CStr = c".tongs-seen-v1";
const LOCK_NAME: &CStr = c".tongs-seen-v1.lock";

/// The first line.
const HEAD: &str = "tongs-seen 1\n";
/// Most marks that are kept.
const MOST: usize = 16_384;
/// Most bytes of a file: that many of the longest lines.
const MAX_BYTES: usize = MOST * 120;

/// A status that a session is in, told apart from all its other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The digest of the session's canonical id.
    pub session: Hex,
    /// The status.
    pub status: Status,
    /// When it began, epoch milliseconds. Where the writer did not say so, the
    /// last event.
    pub since_ms: u64,
}

impl Phase {
    /// The phase of a record; `None` for schema 0 and for a status that schema 1
    /// does not know.
    pub fn of(record: &Checked<'_>) -> Option<Phase> {
        let status = record.status.filter(|_| !record.legacy)?;
        let since_ms = record
            .int(Key::StatusMs)
            .or_else(|| record.int(Key::TsMs))
            .unwrap_or(record.ts.saturating_mul(1000));
        Some(Phase { session: record.digest, status, since_ms })
    }
}

/// What the user did about a session's present status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    No,
    /// Acknowledged it.
    Yes,
    /// Put it off; the time is not over.
    Snoozed,
}

/// One mark; `until_ms` is 0 where it holds as long as the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    phase: Phase,
    until_ms: u64,
}

impl Mark {
    fn holds(&self, now_ms: u64) -> bool {
        self.until_ms == 0 || self.until_ms > now_ms
    }
}

/// All marks, sorted by session, one for each.
#[derive(Debug, Default)]
pub struct Marks(Vec<Mark>);

impl Marks {
    /// Reads the marks; none where there is no file of ours that can be read.
    pub fn read(store: &Store) -> Marks {
        load(store).and_then(|bytes| parse(&bytes)).unwrap_or_default()
    }

    /// Says what the user did about a record's present status.
    pub fn of(&self, record: &Checked<'_>, view: &View) -> Seen {
        match self.find(record) {
            Some(mark) if !mark.holds(view.now_ms) => Seen::No,
            Some(mark) if mark.until_ms > 0 => Seen::Snoozed,
            Some(_) => Seen::Yes,
            None => Seen::No,
        }
    }

    /// When the mark of a record's present status ends, epoch milliseconds;
    /// `None` where there is none that does.
    pub fn end_ms(&self, record: &Checked<'_>) -> Option<u64> {
        self.find(record).map(|mark| mark.until_ms).filter(|until| *until > 0)
    }

    fn find(&self, record: &Checked<'_>) -> Option<&Mark> {
        let at = self.0.binary_search_by(|mark| mark.phase.session.cmp(&record.digest)).ok()?;
        self.0.get(at).filter(|mark| Phase::of(record) == Some(mark.phase))
    }
}

/// Marks these phases until a time in epoch milliseconds, 0 for as long as they
/// last, and drops the marks of what is over.
pub fn mark(
    store: &Store,
    patience: &Patience,
    phases: &[Phase],
    until_ms: u64,
    now_ms: u64,
) -> Result<(), WriteError> {
    let _lock = Lock::take(store, LOCK_NAME, patience)?;
    let mut reader = Reader::default();
    let mut marks: Vec<Mark> =
        phases.iter().map(|phase| Mark { phase: *phase, until_ms }).collect();
    let anew: HashSet<Hex> = phases.iter().map(|phase| phase.session).collect();
    for old in Marks::read(store).0 {
        if anew.contains(&old.phase.session) || marks.len() >= MOST {
            continue;
        }
        let record = store.read_session_record(&mut reader, &old.phase.session);
        if record.is_ok_and(|record| Phase::of(&record) == Some(old.phase)) {
            marks.push(old);
        }
    }
    marks.retain(|mark| mark.holds(now_ms));
    let mut text = String::from(HEAD);
    for Mark { phase, until_ms } in &marks {
        let session = core::str::from_utf8(&phase.session).unwrap_or("");
        let status = phase.status.name();
        let _ = writeln!(text, "{session} {status} {} {until_ms}", phase.since_ms);
    }
    let stands = store.sessions.entry(NAME).is_ok_and(|meta| store.owns(&meta));
    let target = if stands { Target::Regular } else { Target::Absent };
    replace(&store.sessions, NAME, target, text.as_bytes()).map_err(WriteError::Io)
}

fn load(store: &Store) -> Option<Vec<u8>> {
    let file = store.sessions.open(NAME, Open::Read).ok()?;
    let meta = file.status().ok().filter(|meta| store.owns(meta))?;
    let size = usize::try_from(meta.size).ok().filter(|size| *size <= MAX_BYTES)?;
    let mut bytes = vec![0; size];
    let len = file.read_all(&mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}

fn parse(bytes: &[u8]) -> Option<Marks> {
    let text = core::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?;
    let mut marks = text.lines().map(line).collect::<Option<Vec<Mark>>>()?;
    marks.sort_by_key(|mark| mark.phase.session);
    Some(Marks(marks))
}

fn line(line: &str) -> Option<Mark> {
    let mut words = line.split(' ');
    let session = words.next()?.as_bytes().try_into().ok()?;
    let status = Status::find(words.next()?)?;
    let (since_ms, until_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mark = Mark { phase: Phase { session, status, since_ms }, until_ms };
    words.next().is_none().then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let good = format!("{HEAD}{b} idle 5 0\n{a} waiting 7 9\n");
        let marks = parse(good.as_bytes()).unwrap().0;
        assert_eq!(marks.iter().map(|m| m.phase.session[0]).collect::<Vec<_>>(), [b'a', b'b']);
        assert_eq!((marks[0].phase.status, marks[0].phase.since_ms), (Status::Waiting, 7));
        assert!(marks[0].holds(8) && !marks[0].holds(9) && marks[1].holds(u64::MAX));
        assert!(parse(HEAD.as_bytes()).unwrap().0.is_empty());
        for bad in [
            String::new(),
            format!("tongs-seen 2\n{a} idle 5 0\n"),
            format!("{HEAD}{a} idle 5\n"),
            format!("{HEAD}{a} idle 5 0 1\n"),
            format!("{HEAD}{a} asleep 5 0\n"),
            format!("{HEAD}aa idle 5 0\n"),
            format!("{HEAD}{a} idle -5 0\n"),
            format!("{HEAD}{a} idle 5 0\n\n"),
        ] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
