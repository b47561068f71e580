//! What other trackers of sessions write: one small object for each process, the
//! one of `lookup --format session-state` and an older one with four keys.
//!
//! It says that a process began a session, and nothing of its status. So it is
//! worth what a launcher's word is: a session that has spoken goes before it.

use super::branch::Branch;
use super::draft::{Marks, Surroundings, UNRESOLVED, repo_of};
use super::imports::{Importer, Refusal};
use super::launcher;
use super::processes::{Names, can_be, found};
use super::store::LOCKS_MS;
use super::writer::Writer;
use crate::cli::{Exit, Fail};
use crate::harness::{self, OTHER, Row};
use crate::probe::Process;
use crate::record::id::{self, Part};
use crate::record::out::Object;
use crate::record::{Fault, FaultKind, Key, Kind, Scan, Status, limit};
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::guard::Ticking;
use crate::terminal::Capture;

/// Times from this number on are milliseconds, below it seconds.
const MILLISECONDS: u64 = 100_000_000_000;
/// Milliseconds in a clock tick of a process's start.
const TICK_MS: u64 = 10;
/// Milliseconds by which a process may seem to begin after its session.
const SLACK_MS: u64 = 5000;

/// What such an object says.
pub struct Told {
    row: &'static Row,
    session: String,
    cwd: String,
    pid: u32,
    ts_ms: u64,
    method: String,
    launch: String,
    terminal: String,
}

impl Told {
    /// Reads one.
    pub fn read(bytes: &[u8], scan: &mut Scan) -> Result<Told, Refusal> {
        scan.scan(bytes)?;
        let fields = Fields { bytes, scan };
        let agent = fields.text(Key::Agent, limit::NAME)?;
        let session = fields.required(Key::SessionId, limit::ID)?;
        if session.is_empty() || session.contains(['/', '\\']) || matches!(&*session, "." | "..") {
            return Err(fields.fault(Key::SessionId));
        }
        let pid = u32::try_from(fields.number(Key::Pid)?).ok().filter(|pid| *pid > 0);
        let ts = fields.number(Key::Ts)?;
        let method = fields.text(Key::Method, limit::SHORT)?;
        Ok(Told {
            row: agent.as_deref().and_then(harness::named).unwrap_or(&OTHER),
            session,
            cwd: fields.required(Key::Cwd, limit::PATH)?,
            pid: pid.ok_or_else(|| fields.fault(Key::Pid))?,
            ts_ms: if ts < MILLISECONDS { ts * 1000 } else { ts },
            method: method.unwrap_or_else(|| "hook-stdin".to_string()),
            launch: fields.text(Key::LaunchId, limit::ID)?.unwrap_or_default(),
            terminal: fields.text(Key::TerminalId, limit::ID)?.unwrap_or_default(),
        })
    }

    /// The session as a record without a process: what a bridge may bring of it.
    /// Its time is its order.
    pub fn record(&self) -> Vec<u8> {
        let part = Part::Plain;
        let digest = id::canonical(part(self.row.id), part(&self.session), part(UNRESOLVED));
        let mut canonical = Vec::new();
        id::put_canonical(&mut canonical, self.row.id, &digest);
        let mut bytes = Vec::new();
        let mut object = Object::open(&mut bytes);
        object
            .int(Key::SchemaVersion.name(), 1)
            .str(Key::CanonicalId.name(), &String::from_utf8_lossy(&canonical))
            .str(Key::SessionId.name(), &self.session)
            .str(Key::InstanceId.name(), UNRESOLVED)
            .str(Key::HarnessId.name(), self.row.id)
            .str(Key::Agent.name(), self.row.id)
            .str(Key::Repo.name(), repo_of(&self.cwd))
            .str(Key::Cwd.name(), &self.cwd)
            .str(Key::Status.name(), Status::Discovered.name())
            .int(Key::Ts.name(), self.ts_ms / 1000)
            .int(Key::TsMs.name(), self.ts_ms)
            .int(Key::Sequence.name(), self.ts_ms);
        object.close();
        bytes
    }

    /// Tells of the process, which must live and be the one that is meant, as
    /// `tongs-agents record` does.
    pub fn tell(
        &self,
        importer: &mut Importer<'_>,
        env: &Env<'_>,
        ticking: Ticking,
        canonical: &mut String,
    ) -> Result<(), Refusal> {
        let Importer { store, here, scratch, .. } = importer;
        let now = Now::read();
        let gone = || Refusal::new("no-process", "its process is gone");
        let process = Process::read(self.pid).ok().filter(|p| !p.dead).ok_or_else(gone)?;
        // Another process may have got the pid since.
        let began_ms = process.start.saturating_mul(TICK_MS);
        let told_ms = now.boot_ms.saturating_sub(now.wall_ms.saturating_sub(self.ts_ms));
        if began_ms > told_ms.saturating_add(SLACK_MS) || can_be(self.row, &process) == Some(false)
        {
            return Err(Refusal::new("other-process", "its pid is another process's now"));
        }
        let names = Names::of(self.row, &process, Some(&self.session));
        let mut draft = found(&names, here, now);
        draft.cwd = &self.cwd;
        draft.ts = self.ts_ms / 1000;
        draft.method = &self.method;
        draft.source = "import";
        draft.marks = Marks { launch: &self.launch, profile: "", terminal: &self.terminal };
        let branch = Branch::find(&self.cwd);
        draft.surroundings = Some(Surroundings { terminal: Capture::NONE, branch });
        let mut writer = Writer { store, scratch, env, ticking, locks_ms: LOCKS_MS };
        let stands = launcher::tell(&mut writer, &mut draft, &names, &process, here)?;
        *canonical = stands.canonical;
        Ok(())
    }
}

impl From<Fail> for Refusal {
    fn from(fail: Fail) -> Refusal {
        let (code, exit) = match fail.exit {
            Exit::Busy => ("lock-busy", Exit::Busy),
            Exit::Io => ("write-failed", Exit::Io),
            _ => ("not-written", Exit::No),
        };
        Refusal { code, why: fail.text, exit }
    }
}

/// The fields of an object of a tracker.
struct Fields<'a> {
    bytes: &'a [u8],
    scan: &'a Scan,
}

impl Fields<'_> {
    fn fault(&self, key: Key) -> Refusal {
        match self.scan.get(key) {
            Some(field) => Fault { at: field.at(), kind: FaultKind::Invalid(key) }.into(),
            None => Fault { at: 0, kind: FaultKind::Missing(key) }.into(),
        }
    }

    /// A text without control characters; `None` where it is missing or null.
    fn text(&self, key: Key, max: usize) -> Result<Option<String>, Refusal> {
        let Some(field) = self.scan.get(key).filter(|field| field.kind != Kind::Null) else {
            return Ok(None);
        };
        let text = field.text(self.bytes).filter(|text| text.len() <= max);
        let text = text.filter(|text| !text.chars().any(char::is_control));
        text.map(|text| Some(text.to_string())).ok_or_else(|| self.fault(key))
    }

    fn required(&self, key: Key, max: usize) -> Result<String, Refusal> {
        self.text(key, max)?.ok_or_else(|| self.fault(key))
    }

    /// A number that is not negative, without its fraction.
    fn number(&self, key: Key) -> Result<u64, Refusal> {
        let field = self.scan.get(key).ok_or_else(|| self.fault(key))?;
        let digits = field.value(self.bytes).split(|b| *b == b'.').next().unwrap_or(b"");
        let whole = core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let is_number = matches!(field.kind, Kind::Integer | Kind::Number);
        let small = |n: &u64| *n <= i64::MAX as u64;
        whole.filter(|_| is_number).filter(small).ok_or_else(|| self.fault(key))
    }
}
