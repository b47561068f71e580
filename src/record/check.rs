//! Whether scanned fields make up a record, and the few values that decide
//! things, read once.
//!
//! Schema 1 is checked in full, the canonical id included. Schema 0 (no
//! `schema_version`, or 0) has the same bounds, an unchecked status and none of
//! the later keys. tongs-record(5) is the list of rules.

use super::id::{self, Part};
use super::scan::{Entries, Field, Kind, quoted};
use super::sha256::Hex;
use super::text::same_bytes;
use super::{Fault, FaultKind, Key, Scan, Text, limit};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Open, no prompt yet.
    Started,
    /// A turn is under way.
    Running,
    /// The prompt is the user's.
    Idle,
    /// Blocked until the user answers.
    Waiting,
    /// The turn ended in an error.
    Error,
    /// The session is over.
    Ended,
    /// A process that no hook has reported.
    Discovered,
}

impl Status {
    /// Every status, in the order of the summary.
    pub const ALL: [Status; 7] = [
        Status::Started,
        Status::Running,
        Status::Idle,
        Status::Waiting,
        Status::Error,
        Status::Ended,
        Status::Discovered,
    ];

    /// The status as records and users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Started => "started",
            Status::Running => "running",
            Status::Idle => "idle",
            Status::Waiting => "waiting",
            Status::Error => "error",
            Status::Ended => "ended",
            Status::Discovered => "discovered",
        }
    }

    /// Finds a status by its name.
    pub fn find(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// A record that passed the check: its bytes, its fields, its key facts.
#[derive(Clone, Copy)]
pub struct Checked<'a> {
    bytes: &'a [u8],
    scan: &'a Scan,
    /// Schema 0: written by a program that is long gone.
    pub legacy: bool,
    /// The status; `None` for a schema 0 status that schema 1 does not know.
    pub status: Option<Status>,
    /// The process, where the record names one; `u64::MAX` for a number no
    /// process can have.
    pub pid: Option<u64>,
    /// Wall time of the last event, epoch seconds.
    pub ts: u64,
    /// Digest of the canonical id; zeros for schema 0.
    pub digest: Hex,
    /// Whether the record is of a process that no hook has reported.
    pub process: bool,
    /// Whether the bytes are already what a reader shows.
    pub verbatim: bool,
}

impl<'a> Checked<'a> {
    /// The record's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The record's fields.
    pub fn fields(&self) -> &'a [Field] {
        self.scan.fields()
    }

    /// The field of a known key.
    pub fn field(&self, key: Key) -> Option<&'a Field> {
        self.scan.get(key)
    }

    /// A text field; `None` where it is missing or something else. Keys that
    /// schema 0 does not have are missing there.
    #[inline(always)]
    pub fn text_at(&self, key: Key) -> Option<Text<'a>> {
        let field = self.scan.get(key).filter(|_| !(self.legacy && dropped_from_legacy(key)));
        field.and_then(|f| f.text(self.bytes))
    }

    /// A text field; empty where it is missing or something else.
    pub fn text(&self, key: Key) -> Text<'a> {
        self.text_at(key).unwrap_or(Text::EMPTY)
    }

    /// A whole number; `None` where it is missing or something else.
    pub fn int(&self, key: Key) -> Option<u64> {
        let field = self.scan.get(key).filter(|_| !(self.legacy && dropped_from_legacy(key)))?;
        integer(field, self.bytes)
    }

    /// A value as it stands.
    pub fn raw(&self, key: Key) -> Option<&'a [u8]> {
        self.scan.get(key).map(|f| f.value(self.bytes))
    }

    /// The harness: `harness_id`, in schema 0 `agent` or else `claude`.
    pub fn harness(&self) -> Text<'a> {
        if !self.legacy {
            return self.text(Key::HarnessId);
        }
        let agent = self.scan.get(Key::Agent).and_then(|f| f.text(self.bytes));
        agent.unwrap_or(Text::new(b"claude", false))
    }

    /// Digest of the identity, which all instances of the session share.
    pub fn identity(&self) -> Hex {
        id::identity(Part::Stored(self.harness()), Part::Stored(self.text(Key::SessionId)))
    }

    /// Whether a process was found for the session.
    pub fn identified(&self) -> bool {
        !self.legacy && self.pid.is_some()
    }
}

/// Keys that mean nothing in schema 0 and are dropped on reading.
pub fn dropped_from_legacy(key: Key) -> bool {
    matches!(
        key,
        Key::ArrivalSequence
            | Key::CanonicalId
            | Key::FocusTarget
            | Key::InstanceId
            | Key::ProcessIdentity
            | Key::ProcessStart
            | Key::Sequence
    )
}

/// What is asked of a record beyond its form.
#[derive(Clone, Copy)]
pub enum Door {
    /// It is read: a time in the future is tolerated, the reader clamps it.
    Read,
    /// It is written: schema 1 only, and `ts` at most 300 s past this time.
    Write {
        /// Epoch seconds.
        now: u64,
        /// The digest of the three ids, where the writer has computed it from
        /// the very ids that it put in: it is not computed a second time.
        made: Option<Hex>,
    },
}

/// Checks scanned fields. `known` says which harness ids are registered.
pub fn check<'a>(
    bytes: &'a [u8],
    scan: &'a Scan,
    door: Door,
    known: fn(&str) -> bool,
) -> Result<Checked<'a>, Fault> {
    Check { bytes, scan }.run(door, known)
}

struct Check<'a> {
    bytes: &'a [u8],
    scan: &'a Scan,
}

impl<'a> Check<'a> {
    fn fault<T>(&self, key: Key) -> Result<T, Fault> {
        match self.scan.get(key) {
            Some(field) => Err(Fault { at: field.at(), kind: FaultKind::Invalid(key) }),
            None => Err(Fault { at: 0, kind: FaultKind::Missing(key) }),
        }
    }

    fn schema(&self) -> Result<bool, Fault> {
        let Some(field) = self.scan.get(Key::SchemaVersion) else { return Ok(true) };
        match integer(field, self.bytes) {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(Fault { at: field.at(), kind: FaultKind::Schema }),
        }
    }

    /// Optional text within `max` bytes; missing is empty.
    fn text(&self, key: Key, max: usize) -> Result<Text<'a>, Fault> {
        let Some(field) = self.scan.get(key) else { return Ok(Text::new(b"", false)) };
        match field.text(self.bytes) {
            Some(text) if fits(text, max) => Ok(text),
            _ => self.fault(key),
        }
    }

    fn required(&self, key: Key, max: usize) -> Result<Text<'a>, Fault> {
        let text = self.text(key, max)?;
        if text.is_empty() { self.fault(key) } else { Ok(text) }
    }

    /// Optional whole number of at least `least`; missing and null are `None`.
    #[inline(always)]
    fn int(&self, key: Key, least: u64) -> Result<Option<u64>, Fault> {
        let Some(field) = self.scan.get(key) else { return Ok(None) };
        if field.kind == Kind::Null {
            return Ok(None);
        }
        match integer(field, self.bytes) {
            Some(value) if value >= least => Ok(Some(value)),
            _ => self.fault(key),
        }
    }

    /// The pid: decimal text or a whole number, above zero; "" is none.
    fn pid(&self) -> Result<Option<u64>, Fault> {
        let Some(field) = self.scan.get(Key::Pid) else { return Ok(None) };
        let value = field.value(self.bytes);
        let digits = match field.kind {
            Kind::Integer => value,
            Kind::Text { escaped: false } => &value[1..value.len() - 1],
            _ => return self.fault(Key::Pid),
        };
        if digits.is_empty() {
            return Ok(None);
        }
        if digits.len() > limit::SHORT || !digits.iter().all(u8::is_ascii_digit) {
            return self.fault(Key::Pid);
        }
        match digits
            .iter()
            .fold(0u64, |n, d| n.saturating_mul(10).saturating_add((d - b'0').into()))
        {
            0 => self.fault(Key::Pid),
            pid => Ok(Some(pid)),
        }
    }

    fn run(&self, door: Door, known: fn(&str) -> bool) -> Result<Checked<'a>, Fault> {
        let legacy = self.schema()?;
        if let (true, Door::Write { .. }) = (legacy, door) {
            return Err(Fault { at: 0, kind: FaultKind::Schema });
        }
        let session = self.required(Key::SessionId, limit::ID)?;
        if legacy && self.scan.get(Key::Agent).is_some() {
            self.required(Key::Agent, limit::NAME)?;
        }
        let as_shown = self.texts()?;
        let pid = self.pid()?;
        let ts = self.int(Key::Ts, 0)?;
        self.int(Key::Started, 0)?;
        self.int(Key::Sequence, 0)?;
        self.int(Key::ArrivalSequence, 1)?;
        if let Door::Write { now, .. } = door {
            if ts.is_some_and(|ts| ts > now + limit::FUTURE) {
                return self.fault(Key::Ts);
            }
        }
        if let Some(field) = self.scan.get(Key::TerminalEnv) {
            if field.kind != Kind::Object || !env_fits(field.value(self.bytes)) {
                return self.fault(Key::TerminalEnv);
            }
        }
        let status = match self.scan.get(Key::Status) {
            None => Some(Status::Discovered),
            Some(field) => field
                .text(self.bytes)
                .and_then(|text| Status::ALL.into_iter().find(|s| text.is(s.name()))),
        };
        let is_process = |key| {
            self.scan.get(key).and_then(|f| f.text(self.bytes)).is_some_and(|t| t.is("process"))
        };
        let mut checked = Checked {
            bytes: self.bytes,
            scan: self.scan,
            legacy,
            status,
            pid,
            ts: ts.unwrap_or(0),
            digest: [b'0'; 64],
            process: is_process(Key::RecordKind) || is_process(Key::Source),
            verbatim: false,
        };
        if !legacy {
            let made = if let Door::Write { made, .. } = door { made } else { None };
            checked.digest = self.schema_1(session, pid, status, known, made)?;
            checked.verbatim = as_shown && self.is_settled();
        }
        Ok(checked)
    }

    fn schema_1(
        &self,
        session: Text<'a>,
        pid: Option<u64>,
        status: Option<Status>,
        known: fn(&str) -> bool,
        made: Option<Hex>,
    ) -> Result<Hex, Fault> {
        let harness = self.required(Key::HarnessId, limit::NAME)?;
        let is_known = match harness.plain() {
            Some(plain) => known(plain),
            None => harness.copy(&mut [0; limit::NAME]).is_some_and(known),
        };
        if !is_known {
            return self.fault(Key::HarnessId);
        }
        if !self.required(Key::Agent, limit::NAME)?.same(harness) {
            return self.fault(Key::Agent);
        }
        let instance = self.required(Key::InstanceId, limit::ID)?;
        let canonical = self.required(Key::CanonicalId, limit::TOKEN)?;
        if status.is_none() {
            return self.fault(Key::Status);
        }
        // No process means the one instance "unresolved", and the reverse.
        let unresolved = match self.text(Key::ProcessIdentity, limit::IDENTITY)? {
            t if t.is("identified") => false,
            t if t.is("unresolved") => true,
            t if t.is_empty() => instance.is("unresolved") && pid.is_none(),
            _ => return self.fault(Key::ProcessIdentity),
        };
        let start = self.text(Key::ProcessStart, limit::TOKEN)?;
        if unresolved && (!instance.is("unresolved") || pid.is_some() || !start.is_empty()) {
            return self.fault(Key::InstanceId);
        }
        if !unresolved && pid.is_none() {
            return self.fault(Key::Pid);
        }
        self.focus_target(unresolved)?;
        let compute =
            || id::canonical(Part::Stored(harness), Part::Stored(session), Part::Stored(instance));
        let digest = made.unwrap_or_else(compute);
        // An id that needs an escape is none: harness ids and digests need none.
        let tail = canonical.raw().strip_prefix(b"fleet:v1:").unwrap_or(b"");
        let (id_harness, id_digest) = tail.split_at(tail.len().saturating_sub(digest.len()));
        let id_harness = id_harness.strip_suffix(b":").and_then(|id| core::str::from_utf8(id).ok());
        if !id_harness.is_some_and(|id| harness.is(id)) || !same_bytes(id_digest, &digest) {
            let at = self.scan.get(Key::CanonicalId).map_or(0, Field::at);
            return Err(Fault { at, kind: FaultKind::Forged });
        }
        Ok(digest)
    }

    fn focus_target(&self, unresolved: bool) -> Result<(), Fault> {
        let Some(field) = self.scan.get(Key::FocusTarget) else { return Ok(()) };
        let value = field.value(self.bytes);
        if field.kind != Kind::Object {
            // Other programs write an empty list or null for "no target".
            let empty = match field.kind {
                Kind::Null | Kind::False => true,
                Kind::Array => value.iter().filter(|b| !b.is_ascii_whitespace()).eq(b"[]"),
                Kind::Text { .. } => value == b"\"\"",
                Kind::Integer => value == b"0",
                _ => false,
            };
            return if empty { Ok(()) } else { self.fault(Key::FocusTarget) };
        }
        if !unresolved && self.is_made_of_own(value) {
            return Ok(());
        }
        for (key, kind, value) in Entries::of(value) {
            let text = quoted(kind, value);
            let good = if key.is("kind") {
                text.is_some_and(|t| {
                    t.is("unavailable") || (!unresolved && (t.is("terminal") || t.is("desktop")))
                })
            } else if key.is("terminal") {
                text.is_some_and(|t| fits(t, limit::NAME))
            } else if key.is("desktop_target") {
                text.is_some_and(|t| fits(t, limit::ID))
            } else if key.is("terminal_env") {
                kind == Kind::Object && env_fits(value)
            } else {
                true
            };
            if !good {
                return self.fault(Key::FocusTarget);
            }
        }
        Ok(())
    }

    /// Whether a target is the one that is usually written: a terminal, with the
    /// same bytes as the record's own two fields, which were checked.
    fn is_made_of_own(&self, target: &[u8]) -> bool {
        let own = |key| self.scan.get(key).map_or(&b""[..], |f| f.value(self.bytes));
        let (name, env) = (own(Key::Terminal), own(Key::TerminalEnv));
        let mut rest = target;
        for part in [br#"{"kind":"terminal","terminal":"#, name, br#","terminal_env":"#, env, b"}"]
        {
            match rest.split_at_checked(part.len()) {
                Some((head, tail)) if !part.is_empty() && same_bytes(head, part) => rest = tail,
                _ => return false,
            }
        }
        rest.is_empty()
    }

    /// Checks the texts that have a limit, and says whether a reader may show
    /// every field as it stands: nothing to escape, to drop or to leave out.
    fn texts(&self) -> Result<bool, Fault> {
        let mut as_shown = self.scan.compact;
        for field in self.scan.fields() {
            let Some(key) = field.known else { continue };
            if let Some(max) = key.checked_limit() {
                if !field.text(self.bytes).is_some_and(|text| fits(text, max)) {
                    return self.fault(key);
                }
            }
            as_shown &= !key.is_derived() && key.has_shape(field.kind);
        }
        Ok(as_shown)
    }

    /// Whether the fields stand that a reader would fill in.
    fn is_settled(&self) -> bool {
        let identity = self.scan.get(Key::ProcessIdentity).map(|f| f.value(self.bytes));
        identity.is_some_and(|value| value != b"\"\"")
            && [Key::Pid, Key::Status, Key::Ts].iter().all(|key| self.scan.get(*key).is_some())
    }
}

#[inline(always)]
fn fits(text: Text<'_>, max: usize) -> bool {
    // Unescaping never makes a text longer.
    (text.raw().len() <= max || text.len() <= max) && !text.has_nul()
}

fn env_fits(object: &[u8]) -> bool {
    let mut count = 0;
    Entries::of(object).all(|(key, kind, value)| {
        count += 1;
        count <= limit::ENV_ITEMS
            && !key.is_empty()
            && fits(key, limit::TOKEN)
            && quoted(kind, value).is_some_and(|t| fits(t, limit::ENV_VALUE))
    })
}

/// A whole number from 0 to `i64::MAX`.
#[inline(always)]
fn integer(field: &Field, bytes: &[u8]) -> Option<u64> {
    let digits = field.value(bytes);
    // One of twenty digits is too large in any case, for none begins with a zero.
    if field.kind != Kind::Integer || digits.len() > 19 {
        return None;
    }
    let value = digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit.wrapping_sub(b'0')));
    (value <= i64::MAX as u64).then_some(value)
}
