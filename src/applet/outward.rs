//! A session as another host may have it: what names something of this machine
//! stays here.
//!
//! What is told is a list of keys and not what is left of a record, so that a key
//! that some other program has put into one goes nowhere. The result is a record
//! without a process, and the id is made anew for it: all instances of a session
//! are one there.

use serde_json::Value;

use super::draft::UNRESOLVED;
use crate::probe::{self, Here, Life, Recorded};
use crate::record::id::{self, Part};
use crate::record::out::{Object, Sink, Style, int, string};
use crate::record::sha256::Hex;
use crate::record::text::cut;
use crate::record::{Key, Kind, MAX_BYTES, Status, limit};
use crate::store::maintain::{PIDLESS, UNKNOWN};
use crate::sys::clock::Now;
use crate::sys::process::Verdict;

/// Most characters of a host's name.
pub const HOST: usize = 64;

/// What is told as it stands, besides the ids.
const PLAIN: [Key; 13] = [
    Key::Repo,
    Key::Cwd,
    Key::Ts,
    Key::Started,
    Key::Source,
    Key::LastEvent,
    Key::TsMs,
    Key::Turn,
    Key::Background,
    Key::Branch,
    Key::Worktree,
    Key::Title,
    Key::Method,
];

/// What goes with a status, and is over with it.
const OF_STATUS: [Key; 8] = [
    Key::Status,
    Key::Detail,
    Key::Tool,
    Key::StatusMs,
    Key::WaitingFor,
    Key::WaitingSince,
    Key::WaitingTool,
    Key::WaitingAgent,
];

/// More bytes than a sequence and the end of a line take.
const END: usize = 48;

/// What is told of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct Outward {
    /// The digest of the canonical id that it has elsewhere.
    pub id: Hex,
    /// Whether the session has ended.
    pub ended: bool,
    /// The members of the object, in two parts, each with a comma behind it.
    head: Vec<u8>,
    status: Vec<u8>,
}

impl Outward {
    /// Makes a session safe for elsewhere; `session` is its JSON as readers have
    /// it. Nothing of a session that a bridge brought here, of a record of schema
    /// 0, or of one that grew too long by its escapes.
    pub fn of(session: &Value, host: &str) -> Option<Outward> {
        if session["schema_version"] != 1 || !text(session, Key::Bridge).is_empty() {
            return None;
        }
        let (harness, mut name) =
            (text(session, Key::HarnessId), text(session, Key::SessionId).to_string());
        let kind = text(session, Key::RecordKind);
        if kind == "process" || text(session, Key::Source) == "process" {
            // Made of a pid, which other hosts have as well.
            name = format!("{name}@{host}");
        }
        let id = id::canonical(Part::Plain(harness), Part::Plain(&name), Part::Plain(UNRESOLVED));
        let mut canonical = Vec::new();
        id::put_canonical(&mut canonical, harness, &id);
        let canonical = String::from_utf8(canonical).ok()?;

        let mut head = Vec::new();
        for (key, value) in [
            (Key::RecordKind, kind),
            (Key::CanonicalId, &canonical),
            (Key::SessionId, &name),
            (Key::InstanceId, UNRESOLVED),
            (Key::HarnessId, harness),
            (Key::Agent, harness),
            (Key::ProcessIdentity, "unresolved"),
            (Key::Terminal, "generic"),
            (Key::Host, host),
        ] {
            put_text(&mut head, key, value);
        }
        head.put(b"\"focus_target\":{\"kind\":\"unavailable\"},");
        PLAIN.iter().for_each(|key| put(&mut head, *key, session));
        let mut status = Vec::new();
        OF_STATUS.iter().for_each(|key| put(&mut status, *key, session));
        let ended = text(session, Key::Status) == Status::Ended.name();
        let fits = head.len() + status.len() + END <= MAX_BYTES;
        fits.then_some(Outward { id, ended, head, status })
    }

    /// The same session, which has ended since.
    pub fn end(&self, wall_ms: u64) -> Outward {
        let mut status = Vec::new();
        for (key, value) in
            [(Key::Status, Status::Ended.name()), (Key::Detail, "session closed"), (Key::Tool, "")]
        {
            put_text(&mut status, key, value);
        }
        put_int(&mut status, Key::StatusMs, wall_ms);
        Outward { id: self.id, ended: true, head: self.head.clone(), status }
    }

    /// Writes it as a line, with its place in the order of the lines of its
    /// session.
    pub fn put_line(&self, sink: &mut Vec<u8>, sequence: u64) {
        let mut object = Object::open(sink);
        object.int(Key::SchemaVersion.name(), 1).int(Key::Sequence.name(), sequence);
        sink.put(b",");
        sink.put(&self.head);
        sink.put(self.status.strip_suffix(b",").unwrap_or(b""));
        sink.put(b"}\n");
    }
}

fn text(session: &Value, key: Key) -> &str {
    session[key.name()].as_str().unwrap_or("")
}

fn put_text(sink: &mut Vec<u8>, key: Key, value: &str) {
    put_key(sink, key);
    // One that a terminal acts on is escaped: lines are looked at, too.
    string(sink, value, Style::Shown);
    sink.put(b",");
}

fn put_int(sink: &mut Vec<u8>, key: Key, value: u64) {
    put_key(sink, key);
    int(sink, value);
    sink.put(b",");
}

fn put_key(sink: &mut Vec<u8>, key: Key) {
    sink.put(b"\"");
    sink.put(key.name().as_bytes());
    sink.put(b"\":");
}

/// Bytes of a text that an importer takes. Our writers write no more.
fn most(key: Key) -> usize {
    match key {
        Key::Branch | Key::Title => limit::DETAIL,
        Key::Worktree => limit::PATH,
        Key::WaitingTool => limit::TOOL,
        Key::WaitingAgent => limit::ID,
        Key::WaitingFor | Key::Method => limit::SHORT,
        // Those that the check of records has looked at.
        _ => usize::MAX,
    }
}

/// Writes a member as the session has it, where it has one of the right type.
fn put(sink: &mut Vec<u8>, key: Key, session: &Value) {
    match &session[key.name()] {
        Value::String(value) if key.has_shape(Kind::Text { escaped: false }) => {
            put_text(sink, key, cut(value, most(key)));
        }
        Value::Number(value) if key.has_shape(Kind::Integer) => {
            if let Some(value) = value.as_u64() {
                put_int(sink, key, value);
            }
        }
        _ => {}
    }
}

/// The process of a session, as far as the exporter asks for it.
pub struct Owner {
    /// The pid, where there is one.
    pid: Option<u64>,
    start: String,
    boot: String,
    pid_ns: Option<u64>,
    /// When its last event was, epoch seconds.
    ts: u64,
}

impl Owner {
    /// The process that a session names.
    pub fn of(session: &Value) -> Owner {
        Owner {
            pid: text(session, Key::Pid).parse().ok(),
            start: text(session, Key::ProcessStart).to_string(),
            boot: text(session, Key::BootId).to_string(),
            pid_ns: text(session, Key::PidNs).parse().ok(),
            ts: session[Key::Ts.name()].as_u64().unwrap_or(0),
        }
    }

    /// Whether the session goes on as far as can be seen now. What cannot be seen
    /// is believed for as long as the maintainer would believe it.
    pub fn lives(&self, here: &Here, now: &Now) -> bool {
        let age = now.secs().saturating_sub(self.ts);
        match self.verdict(here) {
            None => age <= PIDLESS,
            Some(Verdict::Unknown) => age <= UNKNOWN,
            Some(verdict) => verdict == Verdict::Alive,
        }
    }

    /// Whether its process is seen to live.
    pub fn is_seen(&self, here: &Here) -> bool {
        self.verdict(here) == Some(Verdict::Alive)
    }

    fn verdict(&self, here: &Here) -> Option<Verdict> {
        let Owner { start, boot, pid_ns, .. } = self;
        let recorded = Recorded { pid: self.pid?, start, boot, pid_ns: *pid_ns };
        if start.is_empty() {
            return Some(Verdict::Dead);
        }
        Some(probe::judge(&recorded, here, |_| Some(true)))
    }

    /// Holds on to the process, where it lives and can be held.
    pub fn hold(&self, here: &Here) -> Option<Life> {
        let pid = self.pid.and_then(|pid| u32::try_from(pid).ok())?;
        let life = self.is_seen(here).then(|| Life::of(pid, self.start.parse().ok()));
        life.filter(|life| life.alarm().is_some())
    }
}
