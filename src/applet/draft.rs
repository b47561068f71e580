//! What a writer knows of a session, and how it becomes a record.
//!
//! The hook, `notify` and the discovery of processes all write through here, so
//! that a record looks the same whoever wrote it. Composing neither allocates
//! nor waits: it happens under the record's lock.

use super::branch::Branch;
use crate::harness::Row;
use crate::harness::rules::{
    Detail, Event, Ids, Kind as EventKind, State, Wait, Waiting, Words, Write, put_detail,
};
use crate::record::out::{Fixed, Object, Sink, Style, int, string};
use crate::record::sha256::Hex;
use crate::record::text::cut;
use crate::record::{Checked, Key, Kind, MAX_BYTES, Status, id, limit, scan};
use crate::sys::clock::Now;
use crate::terminal::Capture;

/// Instance of a session whose process was not found.
pub const UNRESOLVED: &str = "unresolved";

/// A process that a session belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The pid.
    pub pid: u32,
    /// Start in clock ticks since boot, decimal.
    pub start: &'a str,
}

/// What is looked at when a session starts or moves.
pub struct Surroundings<'a> {
    /// The terminal.
    pub terminal: Capture<'a>,
    /// The git branch.
    pub branch: Branch,
}

/// Ids that a launcher gives, in the environment or by `record`; empty where it
/// gives none.
#[derive(Clone, Copy, Default)]
pub struct Marks<'a> {
    /// `TONGS_AGENTS_LAUNCH_ID`
    pub launch: &'a str,
    /// `TONGS_AGENTS_PROFILE_ID`
    pub profile: &'a str,
    /// `TONGS_AGENTS_TERMINAL_ID`
    pub terminal: &'a str,
}

impl<'a> Marks<'a> {
    /// The ids by their keys.
    pub fn list(&self) -> [(Key, &'a str); 3] {
        [
            (Key::LaunchId, self.launch),
            (Key::ProfileId, self.profile),
            (Key::TerminalId, self.terminal),
        ]
    }
}

/// The launcher's ids that earlier records of a process have, in memory of their
/// own.
#[derive(Clone)]
pub struct Inherited {
    bytes: [[u8; limit::ID]; 3],
    lens: [usize; 3],
}

impl Inherited {
    /// None yet.
    pub const NONE: Inherited = Inherited { bytes: [[0; limit::ID]; 3], lens: [0; 3] };

    /// Takes the ids of a record that are not known yet; says whether it had
    /// one.
    pub fn take(&mut self, record: &Checked<'_>) -> bool {
        let mut more = false;
        for (at, (key, _)) in Marks::default().list().into_iter().enumerate() {
            if self.lens[at] == 0 {
                self.lens[at] = record.text(key).copy(&mut self.bytes[at]).map_or(0, str::len);
                more |= self.lens[at] > 0;
            }
        }
        more
    }

    /// The ids.
    pub fn marks(&self) -> Marks<'_> {
        let id = |at: usize| core::str::from_utf8(&self.bytes[at][..self.lens[at]]).unwrap_or("");
        Marks { launch: id(0), profile: id(1), terminal: id(2) }
    }
}

/// Everything that one event says of a session.
pub struct Draft<'a> {
    /// The harness.
    pub row: &'static Row,
    /// The session's id.
    pub session: &'a str,
    /// The instance's id.
    pub instance: &'a str,
    /// The digest of the canonical id of these three.
    pub digest: Hex,
    /// The process.
    pub owner: Option<Owner<'a>>,
    /// This boot; may be empty.
    pub boot: &'a str,
    /// This pid namespace.
    pub pid_ns: Option<u64>,
    /// The directory that the event names; empty keeps the stored one.
    pub cwd: &'a str,
    /// The directory of a new session whose event names none.
    pub cwd_else: &'a str,
    /// When it happened here.
    pub now: Now,
    /// When it happened by the program's own word, epoch seconds.
    pub ts: u64,
    /// The event for the rules.
    pub event: Event<'a>,
    /// The words of the detail.
    pub words: Words<'a>,
    /// The event as `HARNESS.EVENT`.
    pub last_event: &'a str,
    /// How the event came: `hook-stdin`, `hook-argv`, `notify`, `process`.
    pub method: &'a str,
    /// `hook`, `notify`, `launcher`, `process`: what wrote the record.
    pub source: &'a str,
    /// `session`, `process`: what the record is of.
    pub kind: &'a str,
    /// The session's title; empty keeps the stored one.
    pub title: &'a str,
    /// The program's own order.
    pub sequence: Option<u64>,
    /// Ids of the launcher.
    pub marks: Marks<'a>,
    /// The same, as earlier records of the process have them.
    pub inherited: Option<Inherited>,
    /// Terminal and branch, where they were looked at.
    pub surroundings: Option<Surroundings<'a>>,
}

/// The fields of a wait.
pub const WAIT: [Key; 5] =
    [Key::WaitingFor, Key::WaitingSince, Key::WaitingTool, Key::WaitingAgent, Key::WaitingFrom];

/// Milliseconds by which a record may be ahead of an event: no writer lives
/// longer. What is further ahead was not written by one.
const AHEAD_MS: u64 = 10_000;

/// What a background subagent's wait may interrupt.
const REST: [Status; 2] = [Status::Idle, Status::Error];

/// What the rules look at in a stored record.
pub fn state<'a>(stored: &Checked<'a>, boot: &str, now: &Now) -> Option<State<'a>> {
    let same_boot = !boot.is_empty() && stored.text(Key::BootId).is(boot);
    let in_order = |then: &u64| same_boot && *then <= now.boot_ms + AHEAD_MS;
    let waiting_for = stored.text(Key::WaitingFor);
    Some(State {
        status: stored.status?,
        turn: stored.int(Key::Turn).unwrap_or(0),
        turn_id: stored.text(Key::TurnId),
        prev_turn_id: stored.text(Key::PrevTurnId),
        boot_ms: stored.int(Key::BootMs).filter(in_order),
        waiting_for: Waiting::ALL.into_iter().find(|w| waiting_for.is(w.name())),
        waiting_tool: stored.text(Key::WaitingTool),
        waiting_agent: stored.text(Key::WaitingAgent),
        waiting_from: REST.into_iter().find(|s| stored.text(Key::WaitingFrom).is(s.name())),
    })
}

/// The last component of a directory after `.` and `..` are taken out; empty
/// for the root.
pub fn repo_of(cwd: &str) -> &str {
    let mut skip = 0;
    for part in cwd.rsplit('/') {
        match part {
            "" | "." => {}
            ".." => skip += 1,
            _ if skip > 0 => skip -= 1,
            name => return cut(name, limit::ID),
        }
    }
    ""
}

impl Draft<'_> {
    /// The directory of the event, else of whoever writes.
    pub fn place(&self) -> &str {
        if self.cwd.is_empty() { self.cwd_else } else { self.cwd }
    }

    /// Whether this says no more than that a process was found.
    pub fn is_discovery(&self) -> bool {
        self.event.kind == EventKind::Report(Status::Discovered)
    }

    /// Whether the stored record lies in another directory than the event.
    pub fn moves(&self, stored: &Checked<'_>) -> bool {
        !self.cwd.is_empty() && !stored.text(Key::Cwd).is(self.cwd)
    }

    /// Composes the record that follows `stored` by the change `write`.
    pub fn put(&self, out: &mut Fixed<'_>, stored: Option<&Checked<'_>>, write: &Write) {
        if let (true, Some(stored)) = (write.stale, stored) {
            return put_counted(out, stored);
        }
        // Nothing that another program has put into a record must make the
        // session unwritable: what does not fit is left behind, foreign keys
        // first.
        for (kept, foreign) in [(stored, true), (stored, false), (None, false)] {
            out.clear();
            self.put_with(out, kept, write, foreign, next_arrival(stored));
            if out.bytes().is_some() {
                return;
            }
        }
    }

    fn put_with(
        &self,
        out: &mut Fixed<'_>,
        stored: Option<&Checked<'_>>,
        write: &Write,
        foreign: bool,
        arrival: u64,
    ) {
        let mut o = Members { object: Object::open(out), stored, count: 0 };
        o.int(Key::SchemaVersion, 1);
        o.str(Key::RecordKind, self.kind);
        o.quoted(Key::CanonicalId, |sink| id::put_canonical(sink, self.row.id, &self.digest));
        o.str(Key::SessionId, self.session);
        o.str(Key::InstanceId, self.instance);
        o.str(Key::HarnessId, self.row.id);
        o.str(Key::Agent, self.row.id);
        if self.cwd.is_empty() && stored.is_some() {
            o.keep_or(Key::Repo, "");
            o.keep_or(Key::Cwd, "");
        } else {
            o.str(Key::Repo, repo_of(self.place()));
            o.str(Key::Cwd, self.place());
        }
        match self.owner {
            Some(owner) => {
                o.quoted(Key::Pid, |sink| int(sink, owner.pid.into()));
                o.str(Key::ProcessStart, owner.start);
                o.str(Key::ProcessIdentity, "identified");
            }
            None => {
                o.str(Key::Pid, "");
                o.str(Key::ProcessStart, "");
                o.str(Key::ProcessIdentity, "unresolved");
            }
        }
        o.str(Key::Status, write.status.name());
        self.put_detail(&mut o, write.detail);
        o.int(Key::Ts, self.ts);
        if write.fresh || !o.keep(Key::Started) {
            o.int(Key::Started, self.ts);
        }
        o.str(Key::Source, self.source);
        o.str(Key::LastEvent, cut(self.last_event, limit::ID));
        self.put_terminal(&mut o, write.fresh);
        match self.sequence {
            Some(sequence) => o.int(Key::Sequence, sequence),
            None => {
                o.keep(Key::Sequence);
            }
        }
        o.int(Key::ArrivalSequence, arrival);
        self.put_ours(&mut o, write);
        if foreign {
            o.keep_foreign();
        }
        o.object.close();
    }

    fn put_detail(&self, o: &mut Members<'_, '_, '_>, detail: Detail) {
        if detail == Detail::Keep && o.stored.is_some() {
            o.keep_or(Key::Detail, "");
            o.keep_or(Key::Tool, "");
            return;
        }
        let mut text = [0; 2 * limit::DETAIL];
        let mut line = Fixed::new(&mut text);
        put_detail(&mut line, detail, &self.words);
        o.str(Key::Detail, cut(line.text().unwrap_or(""), limit::DETAIL));
        let names_tool = matches!(
            detail,
            Detail::Using | Detail::Permission | Detail::Input | Detail::Plan | Detail::Reported
        );
        o.str(Key::Tool, if names_tool { self.words.tool } else { "" });
    }

    fn put_terminal(&self, o: &mut Members<'_, '_, '_>, fresh: bool) {
        let unknown = o.stored.is_none_or(is_out_of_sight);
        let seen = self.surroundings.as_ref().filter(|_| fresh || unknown);
        let Some(seen) = seen else {
            o.keep_or(Key::Terminal, "");
            if !o.keep(Key::TerminalEnv) {
                o.key(Key::TerminalEnv).put(b"{}");
            }
            if !o.keep(Key::FocusTarget) {
                o.key(Key::FocusTarget).put(b"{\"kind\":\"unavailable\"}");
            }
            return;
        };
        o.str(Key::Terminal, seen.terminal.terminal);
        put_env(o.key(Key::TerminalEnv), &seen.terminal);
        let reachable = self.owner.is_some() && !seen.terminal.terminal.is_empty();
        let mut target = Object::open(o.key(Key::FocusTarget));
        target
            .str("kind", if reachable { "terminal" } else { "unavailable" })
            .str("terminal", seen.terminal.terminal);
        put_env(target.key("terminal_env"), &seen.terminal);
        target.close();
    }

    fn put_ours(&self, o: &mut Members<'_, '_, '_>, write: &Write) {
        if !self.boot.is_empty() {
            o.str(Key::BootId, self.boot);
        }
        if let Some(ns) = self.pid_ns {
            o.quoted(Key::PidNs, |sink| int(sink, ns));
        }
        o.int(Key::TsMs, self.now.wall_ms);
        o.int(Key::BootMs, self.now.boot_ms);
        o.int(Key::MonoMs, self.now.mono_ms);
        if write.begins(o.stored.and_then(|s| s.status)) || !o.keep(Key::StatusMs) {
            o.int(Key::StatusMs, self.now.wall_ms);
        }
        o.int(Key::Turn, write.turn.min(i64::MAX as u64));
        match write.ids {
            Ids::Keep => {
                o.keep(Key::TurnId);
                o.keep(Key::PrevTurnId);
            }
            Ids::Advance => {
                o.str(Key::TurnId, self.event.turn_id);
                o.keep_as(Key::TurnId, Key::PrevTurnId);
            }
            Ids::Clear => {}
        }
        self.put_wait(o, write.wait);
        match write.background {
            Some(count) => o.int(Key::Background, count),
            None => {
                o.keep(Key::Background);
            }
        }
        let branch = self.surroundings.as_ref().map(|s| &s.branch);
        match branch {
            Some(branch) => {
                o.some(Key::Branch, branch.name());
                o.some(Key::Worktree, branch.worktree(self.place()));
            }
            None => {
                o.keep(Key::Branch);
                o.keep(Key::Worktree);
            }
        }
        o.str(Key::Method, self.method);
        if !o.some(Key::Title, cut(self.title, limit::DETAIL)) {
            o.keep(Key::Title);
        }
        self.put_marks(o);
    }

    /// Writes the launcher's ids. What a launcher said of this very process is
    /// better than the environment, which every descendant has too.
    fn put_marks(&self, o: &mut Members<'_, '_, '_>) {
        let inherited = self.inherited.as_ref().map(Inherited::marks).unwrap_or_default();
        let told_first = self.owner.is_none() || self.is_discovery();
        let ids = self.marks.list().into_iter().zip(inherited.list());
        for ((key, told), (_, inherited)) in ids {
            let known = o.stored.is_some_and(|s| !s.text(key).is_empty());
            let _ = (told_first && o.some(key, told))
                || (known && o.keep(key))
                || o.some(key, inherited)
                || o.some(key, told);
        }
    }

    fn put_wait(&self, o: &mut Members<'_, '_, '_>, wait: Wait) {
        match wait {
            Wait::Keep => {
                for key in WAIT {
                    o.keep(key);
                }
            }
            Wait::Clear => {}
            Wait::Name(reason) => {
                o.str(Key::WaitingFor, reason.name());
                o.keep(Key::WaitingSince);
                o.some(Key::WaitingTool, self.words.tool);
                o.some(Key::WaitingAgent, self.event.subagent);
                o.keep(Key::WaitingFrom);
            }
            Wait::Begin(reason) => {
                o.some(Key::WaitingFor, reason.map_or("", Waiting::name));
                o.int(Key::WaitingSince, self.ts);
                o.some(Key::WaitingTool, self.words.tool);
                o.some(Key::WaitingAgent, self.event.subagent);
                // Between turns only a subagent can ask; a sign without names is
                // taken for one.
                let subagents = !self.event.subagent.is_empty() || self.event.tool.is_empty();
                match o.stored.and_then(|s| s.status) {
                    // The wait under way knows what was before it.
                    Some(Status::Waiting) => {
                        o.keep(Key::WaitingFrom);
                    }
                    Some(before) if subagents && REST.contains(&before) => {
                        o.str(Key::WaitingFrom, before.name());
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Whether nobody has looked yet which terminal a session is in.
pub fn is_out_of_sight(stored: &Checked<'_>) -> bool {
    stored.text(Key::Terminal).is_empty()
}

/// Writes a stored record with these ids of its launcher; writes nothing and
/// says so where it has them all.
pub fn put_marked(out: &mut Fixed<'_>, stored: &Checked<'_>, marks: &Marks<'_>) -> bool {
    let ids = marks.list();
    let is_new = |(key, id): &(Key, &str)| !id.is_empty() && !stored.text(*key).is(id);
    let marked = ids.iter().any(is_new);
    if marked {
        let change = |key| ids.iter().any(|id| id.0 == key && is_new(id));
        put_changed(out, stored, ids.len(), change, |object| {
            for (key, id) in ids.iter().filter(|id| is_new(id)) {
                object.str(key.name(), id);
            }
        });
    }
    marked
}

/// Writes a stored record with another status and this detail, without tool and
/// wait, as of this wall time. The clocks that order events are left alone,
/// unless they are given too.
pub fn put_status(
    out: &mut Fixed<'_>,
    stored: &Checked<'_>,
    (status, detail): (Status, &str),
    wall_ms: u64,
    clocks: Option<&Now>,
) {
    let change = |key| {
        matches!(key, Key::Status | Key::Detail | Key::Tool | Key::Ts | Key::TsMs | Key::StatusMs)
            || WAIT.contains(&key)
            || clocks.is_some() && matches!(key, Key::BootMs | Key::MonoMs)
    };
    put_changed(out, stored, 8, change, |object| {
        object
            .str(Key::Status.name(), status.name())
            .str(Key::Detail.name(), detail)
            .str(Key::Tool.name(), "")
            .int(Key::Ts.name(), wall_ms / 1000)
            .int(Key::TsMs.name(), wall_ms)
            .int(Key::StatusMs.name(), wall_ms);
        if let Some(now) = clocks {
            object.int(Key::BootMs.name(), now.boot_ms).int(Key::MonoMs.name(), now.mono_ms);
        }
    });
}

/// The number of this arrival at a record.
pub fn next_arrival(stored: Option<&Checked<'_>>) -> u64 {
    stored.map_or(1, |s| {
        s.int(Key::ArrivalSequence).unwrap_or(0).saturating_add(1).min(i64::MAX as u64)
    })
}

/// Writes a stored record as it is, with one more arrival.
fn put_counted(out: &mut Fixed<'_>, stored: &Checked<'_>) {
    put_changed(out, stored, 0, |_| false, |_| {});
}

/// Writes a stored record with one more arrival, without the fields that
/// `change` replaces, which `put` then writes, at most `more` of them new.
fn put_changed(
    out: &mut Fixed<'_>,
    stored: &Checked<'_>,
    more: usize,
    change: impl Fn(Key) -> bool,
    put: impl FnOnce(&mut Object<'_, Fixed<'_>>),
) {
    let bytes = stored.bytes();
    // Where there is no room for so many more, foreign keys make it.
    let foreign = stored.fields().len() + more < scan::MAX_KEYS
        && bytes.len() < MAX_BYTES - limit::ID * (more + 1);
    let mut object = Object::open(out);
    for field in stored.fields() {
        match field.known {
            Some(key) if key == Key::ArrivalSequence || key.is_derived() || change(key) => {}
            None if !foreign => {}
            _ => object.raw_key(field.key(bytes), Style::Stored).put(field.value(bytes)),
        }
    }
    object.int(Key::ArrivalSequence.name(), next_arrival(Some(stored)));
    put(&mut object);
    object.close();
}

fn put_env(sink: &mut impl Sink, capture: &Capture<'_>) {
    let mut env = Object::open(sink);
    for (name, value) in capture.items() {
        env.str(name, value);
    }
    env.close();
}

/// The members of the record under way, and the stored one to keep from.
struct Members<'o, 'b, 'r> {
    object: Object<'o, Fixed<'b>>,
    stored: Option<&'r Checked<'r>>,
    count: usize,
}

impl<'b> Members<'_, 'b, '_> {
    #[inline(never)] // a record has some forty: one copy of the code is quicker to fetch
    fn key(&mut self, key: Key) -> &mut Fixed<'b> {
        self.count += 1;
        self.object.key(key.name())
    }

    /// Writes a text that needs no escapes.
    fn quoted(&mut self, key: Key, put: impl FnOnce(&mut Fixed<'b>)) {
        let sink = self.key(key);
        sink.put(b"\"");
        put(sink);
        sink.put(b"\"");
    }

    #[inline(never)] // as above
    fn str(&mut self, key: Key, value: &str) {
        string(self.key(key), value, Style::Stored);
    }

    #[inline(never)] // as above
    fn int(&mut self, key: Key, value: u64) {
        int(self.key(key), value);
    }

    /// Writes a text that is not empty; says whether it did.
    fn some(&mut self, key: Key, value: &str) -> bool {
        if !value.is_empty() {
            self.str(key, value);
        }
        !value.is_empty()
    }

    /// Keeps a stored field; says whether there was one.
    fn keep(&mut self, key: Key) -> bool {
        self.keep_as(key, key)
    }

    /// Keeps a stored field under another key, where it has the right type.
    fn keep_as(&mut self, from: Key, to: Key) -> bool {
        let Some(stored) = self.stored else { return false };
        let fits = |value: &[u8], kind| match kind {
            Kind::Text { .. } => value.len() <= limit::PATH + 2,
            Kind::Integer => stored.int(from).is_some(),
            _ => true,
        };
        let field = stored
            .field(from)
            .filter(|f| to.has_shape(f.kind) && fits(f.value(stored.bytes()), f.kind));
        if let Some(field) = field {
            self.key(to).put(field.value(stored.bytes()));
        }
        field.is_some()
    }

    fn keep_or(&mut self, key: Key, default: &str) {
        if !self.keep(key) {
            self.str(key, default);
        }
    }

    /// Keeps keys that tongs does not know, byte for byte, up to the limit of
    /// keys.
    fn keep_foreign(&mut self) {
        let Some(stored) = self.stored else { return };
        let bytes = stored.bytes();
        let room = scan::MAX_KEYS.saturating_sub(self.count);
        for field in stored.fields().iter().filter(|f| f.known.is_none()).take(room) {
            self.object.raw_key(field.key(bytes), Style::Stored).put(field.value(bytes));
        }
    }
}
