//! What readers add to a record: the one place that derives it.
//!
//! The stored record is not touched. A compact ASCII record is copied as it
//! stands and the derived fields are put behind it; any other is written anew,
//! in the same order, with every character escaped that a terminal acts on.

use super::seen::Seen;
use crate::record::check::dropped_from_legacy;
use crate::record::out::{self, Fixed, Object, Sink, Style};
use crate::record::{Checked, Key, Status};
use crate::sys::clock::BootId;

/// Seconds after which an idle session needs attention.
pub const IDLE_ATTENTION: u64 = 120;
/// Seconds without an event after which a running session is quiet.
pub const QUIET: u64 = 900;
/// Milliseconds after its last line at which a bridge's session is not vouched for
/// any more: an export tells of every session that lives within four minutes.
pub const SILENT_MS: u64 = 5 * 60 * 1000;
/// Characters of a short id.
pub const SHORT_ID: usize = 12;

/// What a reader knows of its own moment and place.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Wall time, epoch milliseconds.
    pub now_ms: u64,
    /// Time since boot with suspends, in milliseconds.
    pub boot_ms: u64,
    /// The boot, where it can be read.
    pub boot: Option<BootId>,
    /// The inode number of the reader's pid namespace.
    pub pid_ns: Option<u64>,
}

/// The derived fields of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// First digits of the canonical id's digest; zeros for schema 0.
    pub short_id: [u8; SHORT_ID],
    /// Seconds since the last event; an event in the future is 0 seconds old.
    pub age_seconds: u64,
    /// Waiting, or idle for more than [`IDLE_ATTENTION`].
    pub needs_attention: bool,
    /// Whether this status was acknowledged, or is put off for now.
    pub seen: bool,
    /// Whether it is put off for now; not shown.
    pub snoozed: bool,
    /// Running without an event for more than [`QUIET`].
    pub quiet: bool,
    /// The process lives in another pid namespace, so that its pid means
    /// nothing here, or the bridge that brought it has been silent about it.
    pub unverified: bool,
}

/// Derives the fields of a record. `seen` says what its user did about its
/// present status.
pub fn annotate_session(record: &Checked<'_>, view: &View, seen: Seen) -> Derived {
    let age_seconds = (view.now_ms / 1000).saturating_sub(record.ts);
    let status = record.status;
    let theirs = record.text(Key::PidNs);
    Derived {
        short_id: record.digest.first_chunk().copied().unwrap_or([b'0'; SHORT_ID]),
        age_seconds,
        needs_attention: status == Some(Status::Waiting)
            || (status == Some(Status::Idle) && age_seconds > IDLE_ATTENTION),
        seen: seen != Seen::No,
        snoozed: seen == Seen::Snoozed,
        quiet: status == Some(Status::Running) && age_seconds > QUIET,
        unverified: is_silent(record, view)
            || !theirs.is_empty()
                && view
                    .pid_ns
                    .is_some_and(|ours| theirs.plain().and_then(|t| t.parse().ok()) != Some(ours)),
    }
}

/// Whether a bridge that brought a session has said nothing of it for too long.
fn is_silent(record: &Checked<'_>, view: &View) -> bool {
    if !is_brought(record) {
        return false;
    }
    let same_boot = view.boot.is_some_and(|boot| {
        core::str::from_utf8(&boot).is_ok_and(|boot| record.text(Key::BootId).is(boot))
    });
    let then = record.int(Key::BootMs).filter(|_| same_boot);
    then.is_none_or(|then| view.boot_ms > then.saturating_add(SILENT_MS))
}

/// Whether only its bridge can say that a session goes on.
fn is_brought(record: &Checked<'_>) -> bool {
    !record.legacy
        && record.pid.is_none()
        && record.status != Some(Status::Ended)
        && !record.text(Key::Bridge).is_empty()
}

/// When [`Derived::unverified`] becomes true by time alone, wall time in milliseconds.
pub fn silent_ms(record: &Checked<'_>, derived: &Derived, view: &View) -> Option<u64> {
    let waits = !derived.unverified && is_brought(record);
    let then = record.int(Key::BootMs).filter(|_| waits)?;
    let left = (then.saturating_add(SILENT_MS) + 1).saturating_sub(view.boot_ms);
    Some(view.now_ms.saturating_add(left))
}

impl Derived {
    /// The short id as text.
    pub fn short_id(&self) -> &str {
        core::str::from_utf8(&self.short_id).unwrap_or("")
    }
}

/// Writes a session: the record with its derived fields, as one object on one
/// line.
pub fn put_session(sink: &mut Vec<u8>, record: &Checked<'_>, derived: &Derived) {
    if record.verbatim {
        let bytes = record.bytes();
        sink.put(bytes.get(..bytes.len() - 1).unwrap_or(b"{"));
    } else {
        put_anew(sink, record);
    }
    macro_rules! member {
        ($key:ident) => {
            const { &member::<{ Key::$key.name().len() + 4 }>(Key::$key.name()) }
        };
    }
    let mut room = [0; TAIL];
    let mut tail = Fixed::new(&mut room);
    if record.text_at(Key::LaunchId).is_none() {
        tail.put_array(member!(LaunchId));
        tail.put_array(b"\"\"");
    }
    if record.text_at(Key::ProfileId).is_none() {
        tail.put_array(member!(ProfileId));
        tail.put_array(b"\"\"");
    }
    tail.put_array(member!(ShortId));
    tail.put_array(b"\"");
    tail.put_array(&derived.short_id);
    tail.put_array(b"\"");
    tail.put_array(member!(AgeSeconds));
    out::int(&mut tail, derived.age_seconds);
    macro_rules! flag {
        ($key:ident, $is_so:expr) => {
            tail.put_array(member!($key));
            if $is_so {
                tail.put_array(b"true");
            } else {
                tail.put_array(b"false");
            }
        };
    }
    flag!(NeedsAttention, derived.needs_attention);
    flag!(Seen, derived.seen);
    flag!(Quiet, derived.quiet);
    flag!(Unverified, derived.unverified);
    tail.put_array(b"}");
    sink.put(tail.bytes().unwrap_or(b"}"));
}

/// More bytes than the derived fields take.
const TAIL: usize = 256;

/// `,"NAME":` as a constant, four bytes longer than the name.
const fn member<const N: usize>(name: &str) -> [u8; N] {
    let mut text = [b'"'; N];
    text[0] = b',';
    let mut at = 0;
    while at < name.len() {
        text[2 + at] = name.as_bytes()[at];
        at += 1;
    }
    text[N - 1] = b':';
    text
}

/// Writes a record's fields, normalised, without the closing brace.
fn put_anew(sink: &mut Vec<u8>, record: &Checked<'_>) {
    let bytes = record.bytes();
    let mut object = Object::open(sink);
    for field in record.fields() {
        match field.known {
            Some(key) if key.is_derived() || is_settled(key) => {}
            Some(key) if record.legacy && dropped_from_legacy(key) => {}
            Some(key) if !key.has_shape(field.kind) => {}
            _ => object.shown(field.key(bytes), field.value(bytes)),
        }
    }
    // What a reader may rely on, whatever the writer left out.
    let harness = record.harness();
    for key in [Key::HarnessId, Key::Agent] {
        out::text(object.key(key.name()), harness, Style::Shown);
    }
    match record.pid {
        Some(pid) => {
            let sink = object.key(Key::Pid.name());
            sink.put(b"\"");
            out::int(sink, pid);
            sink.put(b"\"");
        }
        None => {
            object.str(Key::Pid.name(), "");
        }
    }
    match record.status {
        Some(status) => {
            object.str(Key::Status.name(), status.name());
        }
        None => out::text(object.key(Key::Status.name()), record.text(Key::Status), Style::Shown),
    }
    object.int(Key::Ts.name(), record.ts);
    if !record.legacy {
        let identity = if record.identified() { "identified" } else { "unresolved" };
        object.str(Key::ProcessIdentity.name(), identity);
    }
}

/// Keys that [`put_anew`] writes in their settled form.
fn is_settled(key: Key) -> bool {
    matches!(
        key,
        Key::HarnessId | Key::Agent | Key::Pid | Key::Status | Key::Ts | Key::ProcessIdentity
    )
}
