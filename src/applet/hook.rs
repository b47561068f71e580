//! `tongs-hook`: one event of a harness into one record.
//!
//! Under a harness it is silent, exits 0 whatever happens and is gone within a
//! second. The order of work keeps the locks short: everything that does not
//! depend on the stored record is found out first; under the locks the record
//! is read, merged, checked and replaced, without allocation or other I/O.

use std::sync::{Mutex, PoisonError};

use super::draft::{Draft, Owner, UNRESOLVED};
use super::processes::{self, Nearest};
use super::writer::{Writer, Wrote, marks};
use super::{Start, fail};
use crate::cli::Exit;
use crate::harness::Want;
use crate::harness::payload::{self, Payload, Refused, Room};
use crate::harness::rules::{Ignored, Words, put_instance, put_last_event};
use crate::harness::{self, Event, Kind, Row};
use crate::probe::{Ancestry, Here, Process};
use crate::record::id::{self, Part};
use crate::record::out::{Fixed, Object, Sink, int};
use crate::record::sha256::Hex;
use crate::record::text::cut;
use crate::record::{Status, limit};
use crate::store::place::Root;
use crate::store::{Scratch, Store, Trouble, WriteError, fault};
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::guard::{self, Ticking};
use crate::sys::stdio;

/// Milliseconds after which the hook ends whatever it is doing.
const DEADLINE_MS: u64 = 1000;
/// Milliseconds that it waits for locks, all together.
const LOCKS_MS: u64 = 250;
/// Milliseconds that it waits for the rest of a payload.
const DRAIN_MS: i64 = 2;

const HELP: &str = "\
Usage: tongs-hook [--strict] [HARNESS [EVENT] [PAYLOAD]]

Writes one event of a coding agent into the record of its session. The payload
is one JSON object, on standard input or as the last argument. Without HARNESS
the variable AGENT_HINT names it.

  --strict    print the outcome as one JSON line and exit with a code that tells it
  -h, --help  print this help
  --version   print the version

Example: echo '{\"session_id\":\"s1\",\"cwd\":\"/tmp\"}' | tongs-hook --strict claude SessionStart

Exit codes: 0 always; with --strict 0, 1, 64, 65, 74, 75 or 77.
See tongs-hook(1).
";

/// What became of an event.
enum Outcome {
    Written(Status),
    Ignored(Ignored),
    /// The environment says that this agent is not to be reported.
    ToldOff,
    Dropped(Drop),
}

/// Why an event was dropped.
#[derive(Clone, Copy)]
enum Drop {
    /// The command line has no harness or one that is not registered.
    Harness,
    /// The event is not one of the harness's.
    Event,
    Payload(Refused),
    /// The payload has no session id that can be one.
    Session,
    /// A normalised event lacks a field or has a wrong one.
    Field,
    /// The process that the payload names does not live.
    Process,
    /// An ancestor could not be read for want of something, so that the agent
    /// among them may have been missed.
    Ancestor,
    Store(Trouble),
    Write(WriteError),
}

impl Drop {
    fn code(self) -> &'static str {
        match self {
            Drop::Harness => "harness-unknown",
            Drop::Event => "event-unknown",
            Drop::Payload(refused) => refused.code(),
            Drop::Session => "session-id",
            Drop::Field => "field",
            Drop::Process => "process",
            Drop::Ancestor => "ancestor-unread",
            Drop::Store(trouble) => trouble.code(),
            Drop::Write(error) => error.code(),
        }
    }

    fn number(self) -> u64 {
        match self {
            Drop::Store(Trouble::Io(_, e)) | Drop::Write(WriteError::Io(e)) => {
                u64::from(e.raw_os_error().unsigned_abs())
            }
            Drop::Write(WriteError::Malformed(Some(fault))) => fault.at.into(),
            _ => 0,
        }
    }

    fn exit(self) -> Exit {
        match self {
            Drop::Harness | Drop::Event => Exit::Usage,
            Drop::Payload(_) | Drop::Session | Drop::Field => Exit::Data,
            Drop::Process => Exit::No,
            Drop::Ancestor => Exit::Io,
            Drop::Store(trouble) => fail::unusable(trouble, b"").exit,
            Drop::Write(error) => fail::unwritten(error).0,
        }
    }
}

/// The words of the command line.
struct Line<'a> {
    harness: &'a str,
    event: &'a str,
    payload: Option<&'a [u8]>,
}

/// The hook's large buffers, all zero so that they take no room in the program
/// and no time until they are touched.
#[repr(C)] // what is always used comes first, on few pages
struct Memory {
    scratch: Scratch,
    ancestry: Ancestry,
    room: Room,
    cwd: [u8; limit::PATH],
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    scratch: Scratch::new(),
    ancestry: Ancestry::new(),
    room: Room::new(),
    cwd: [0; limit::PATH],
});

/// Runs the hook.
pub fn run(start: &Start<'_>) -> i32 {
    let now = Now::read();
    let mut words = [&b""[..]; 3];
    let mut count = 0;
    let mut strict = false;
    for word in start.args.iter().skip(1) {
        match *word {
            b"--strict" => strict = true,
            b"--help" | b"-h" if count == 0 => return tell(HELP),
            b"--version" if count == 0 => {
                return tell(concat!("tongs-hook ", env!("CARGO_PKG_VERSION"), "\n"));
            }
            word if count < words.len() => {
                words[count] = word;
                count += 1;
            }
            _ => {}
        }
    }
    let text = |word| core::str::from_utf8(word).unwrap_or("");
    // A registration that is the same for every harness names it beside.
    if words[0].is_empty() {
        words[0] = start.env.get(Var::AGENT_HINT).unwrap_or(b"");
    }
    // Some harness takes silence for a failure: it gets its answer before
    // anything else can go wrong, whatever becomes of the event.
    let reply = harness::named(text(words[0])).map_or("", |row| row.reply);
    let reply = if strict { "" } else { reply };
    stdio::settle(!strict && reply.is_empty());
    let ticking = if strict {
        guard::ignore_write_signals();
        match guard::tick_only(LOCKS_MS) {
            Some(ticking) => ticking,
            None => return fail::end("tongs-hook", Err(fail::no_timer())),
        }
    } else {
        guard::stand(now.mono_ms + DEADLINE_MS, LOCKS_MS)
    };
    if !reply.is_empty() {
        let _ = stdio::write_out(reply.as_bytes());
        stdio::settle(true);
    }
    stdio::private_umask();
    let json = words[1].first() == Some(&b'{');
    let line = Line {
        harness: text(words[0]),
        event: if json { "" } else { text(words[1]) },
        payload: if json { Some(words[1]) } else { Some(words[2]).filter(|_| count > 2) },
    };
    let mut event = Run {
        line: &line,
        env: start.env,
        now,
        ticking,
        row: None,
        name: "-",
        digest: None,
        input: Input::Open,
    };
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let told_off = start.env.get(Var::TONGS_AGENTS_IGNORE) == Some(b"1");
    let outcome = match if told_off { Ok(Outcome::ToldOff) } else { event.one(&mut memory) } {
        Ok(outcome) => outcome,
        Err(dropped) => {
            event.log(dropped);
            Outcome::Dropped(dropped)
        }
    };
    event.drain(&mut memory.room);
    if strict { event.report(&outcome) } else { 0 }
}

fn tell(text: &str) -> i32 {
    super::settle_command();
    let mut out = fail::stdout();
    let told = out.put(text.as_bytes()).and_then(|()| out.flush());
    fail::end("tongs-hook", told.map(|()| Exit::Ok))
}

/// How much of standard input was read.
#[derive(PartialEq)]
enum Input {
    /// Something may be left.
    Open,
    /// It ended, or is not to be read.
    Over,
}

/// One run of the hook.
struct Run<'a> {
    line: &'a Line<'a>,
    env: &'a Env<'a>,
    now: Now,
    ticking: Ticking,
    row: Option<&'static Row>,
    name: &'static str,
    digest: Option<Hex>,
    input: Input,
}

/// What the event says besides the kind.
struct Said<'p> {
    kind: Kind,
    name: &'static str,
    pid: Option<u32>,
    instance: &'p str,
    sequence: Option<u64>,
    ts: Option<u64>,
    detail: &'p str,
    tool: &'p str,
    event_id: &'p str,
}

impl<'a> Run<'a> {
    fn one(&mut self, memory: &mut Memory) -> Result<Outcome, Drop> {
        let argument = harness::named(self.line.harness).ok_or(Drop::Harness)?;
        self.row = Some(argument);
        let Memory { ancestry, scratch, room, cwd } = memory;
        let payload = match self.payload(room) {
            // Variables may tell it all.
            Err(Drop::Payload(Refused::Empty))
                if self.var(self.by_env().unwrap_or(argument).env.session).is_some() =>
            {
                Payload::none()
            }
            read => read?,
        };
        let here = Here::read();
        ancestry.start(here.parent);
        let walk = processes::nearest(ancestry);
        let nearest = if let Nearest::Found(seen) = walk { Some(seen) } else { None };
        let said = self.said(argument, &payload, nearest.map(|n| n.row))?;
        let row = self.row.unwrap_or(argument);

        let owner = match said.pid {
            Some(pid) => Some(Process::read(pid).ok().filter(|p| !p.dead).ok_or(Drop::Process)?),
            None => nearest
                .filter(|n| n.row.id == row.id)
                .map(|n| n.process)
                .or_else(|| processes::host(ancestry, row)),
        };
        // Half a walk is no proof that there is no agent: its session would get
        // a second record, without a process.
        if owner.is_none() && matches!(walk, Nearest::Unseen) {
            return Err(Drop::Ancestor);
        }
        let mut process_name = [0; 16];
        let mut process_name = Fixed::new(&mut process_name);
        if let (true, Some(process)) = (row.nameless, owner) {
            Sink::put(&mut process_name, b"proc-");
            int(&mut process_name, process.pid.into());
        }
        let unnamed = payload.text(row.fields.session).is_empty();
        let by_env = self.var(row.env.session).filter(|id| unnamed && id.len() <= limit::ID);
        let session = match by_env {
            Some(id) => id,
            None if unnamed && row.nameless && owner.is_some() => process_name.text().unwrap_or(""),
            None => payload.id(row.fields.session, limit::ID).ok_or(Drop::Session)?,
        };
        let mut start = [0; 20];
        let mut start = Fixed::new(&mut start);
        let mut instance = [0; 32];
        let mut instance = Fixed::new(&mut instance);
        if let Some(process) = owner {
            int(&mut start, process.start);
            put_instance(&mut instance, process.pid, process.start);
        }
        let instance = match owner {
            None => UNRESOLVED,
            Some(_) if !said.instance.is_empty() => said.instance,
            Some(_) => instance.text().unwrap_or(UNRESOLVED),
        };
        let plain = Part::Plain;
        let digest = id::canonical(plain(row.id), plain(session), plain(instance));
        self.digest = Some(digest);
        let mut last_event = [0; 96];
        let mut last_event = Fixed::new(&mut last_event);
        put_last_event(&mut last_event, row.id, said.name);
        let fields = &row.fields;
        let boot = here.boot.as_ref().and_then(|id| core::str::from_utf8(id).ok()).unwrap_or("");
        let detail_wanted = self.env.get(Var::TONGS_AGENTS_DETAIL) != Some(b"none");
        // Half a path is another path: one that is too long counts as none.
        let told = payload
            .id(fields.cwd, limit::PATH)
            .or_else(|| self.var(row.env.cwd).filter(|cwd| cwd.len() <= limit::PATH))
            .unwrap_or("");
        let turn_id = payload.id(fields.turn, limit::ID).unwrap_or("");
        let tool = cut(said.tool, limit::TOOL);
        let mut draft = Draft {
            row,
            session,
            instance,
            digest,
            owner: owner.map(|p| Owner { pid: p.pid, start: start.text().unwrap_or("") }),
            boot,
            pid_ns: here.pid_ns,
            cwd: told,
            cwd_else: if told.is_empty() { own_cwd(cwd) } else { "" },
            now: self.now,
            ts: said.ts.unwrap_or(self.now.secs()),
            event: Event {
                kind: said.kind,
                boot_ms: Some(self.now.boot_ms).filter(|_| said.sequence.is_none()),
                // A program that reports for itself has no subagents here.
                subagent: if said.event_id.is_empty() {
                    cut(fields.subagent_of(&payload), limit::ID)
                } else {
                    ""
                },
                turn_id,
                tool,
                background: payload.count(fields.background),
                tool_use_answers: row.tool_use_answers,
                compact_ends: row.compact_ends,
            },
            words: Words {
                tool,
                message: if detail_wanted { payload.text(fields.message) } else { "" },
                error: payload.text(fields.error),
                reported: if detail_wanted { cut(said.detail, limit::DETAIL) } else { "" },
            },
            last_event: if said.event_id.is_empty() {
                last_event.text().unwrap_or("")
            } else {
                said.event_id
            },
            method: match self.line.payload {
                _ if by_env.is_some() => "hook-env",
                Some(_) => "hook-argv",
                None => "hook-stdin",
            },
            source: "hook",
            kind: "session",
            title: payload.text(fields.title),
            sequence: said.sequence,
            marks: marks(self.env),
            inherited: None,
            surroundings: None,
        };
        if said.kind == Kind::None {
            return Ok(Outcome::Ignored(Ignored::Uninteresting));
        }
        let mut root = Root::find(self.env).map_err(Drop::Store)?;
        let store = Store::open_or_make(&mut root, harness::is_known).map_err(Drop::Store)?;
        let mut writer = Writer {
            store: &store,
            scratch,
            env: self.env,
            ticking: self.ticking,
            locks_ms: LOCKS_MS,
        };
        let written = writer.write(&mut draft, ancestry, owner);
        // Its descriptors close with the process.
        core::mem::forget(store);
        match written.map_err(Drop::Write)? {
            Wrote::Record(status) => Ok(Outcome::Written(status)),
            Wrote::Nothing(why) => Ok(Outcome::Ignored(why)),
        }
    }

    /// Reads the payload from the command line or from standard input.
    fn payload<'m>(&mut self, room: &'m mut Room) -> Result<Payload<'m>, Drop> {
        if let Some(mut rest) = self.line.payload {
            self.input = Input::Over;
            return payload::read(room, &mut |buffer| {
                let n = rest.len().min(buffer.len());
                let (now, later) = rest.split_at(n);
                buffer[..n].copy_from_slice(now);
                rest = later;
                n
            })
            .map_err(Drop::Payload);
        }
        let input = &mut self.input;
        payload::read(room, &mut |buffer| match stdio::read(buffer) {
            Ok(n) if n > 0 => n,
            _ => {
                *input = Input::Over;
                0
            }
        })
        .map_err(Drop::Payload)
    }

    /// The value of a variable by its name; `None` where that is empty.
    fn var(&self, name: &str) -> Option<&'a str> {
        self.env.named(name)
    }

    /// The harness whose hooks alone get a variable that is set.
    fn by_env(&self) -> Option<&'static Row> {
        harness::ROWS.iter().find(|row| self.var(row.env.mark).is_some())
    }

    /// Finds out whose event it is and what it means.
    fn said<'p>(
        &mut self,
        argument: &'static Row,
        payload: &'p Payload<'_>,
        nearest: Option<&'static Row>,
    ) -> Result<Said<'p>, Drop> {
        if self.line.event == "fleet-event" {
            self.name = "fleet-event";
            return fleet_event(argument, payload, self.now.secs());
        }
        let by_env = if nearest.is_none() { self.by_env() } else { None };
        let row = harness::caller(argument, payload, nearest, by_env);
        self.row = Some(row);
        let told = match payload.text(row.fields.event) {
            "" => self.var(row.env.event).unwrap_or(""),
            told => told,
        };
        let event = row
            .event(if self.line.event.is_empty() { told } else { self.line.event })
            // Another harness's hook file was run: its payload names the event.
            .or_else(|| row.event(told).filter(|_| row.id != argument.id))
            .ok_or(Drop::Event)?;
        self.name = event.native;
        if row.holds_stdin.contains(&event.native) {
            self.input = Input::Over;
        }
        Ok(Said {
            kind: event.kind(payload),
            name: event.normal,
            pid: None,
            instance: "",
            sequence: None,
            ts: None,
            detail: "",
            tool: payload.text(row.fields.tool),
            event_id: "",
        })
    }

    /// Takes what the harness still has to write, so that it meets no broken
    /// pipe.
    fn drain(&mut self, room: &mut Room) {
        let mut left = payload::MAX_PAYLOAD;
        while self.input == Input::Open && left > 0 {
            match stdio::wait(DRAIN_MS) {
                stdio::Ready::Yes => match stdio::read(room.window()) {
                    Ok(n) if n > 0 => left = left.saturating_sub(n as u64),
                    _ => self.input = Input::Over,
                },
                stdio::Ready::Closed | stdio::Ready::No => self.input = Input::Over,
            }
        }
    }

    #[inline(never)] // not on the way of a hook that works
    fn log(&self, dropped: Drop) {
        // An event of a newer harness is no fault, and an unusable store has no
        // log.
        if matches!(dropped, Drop::Event | Drop::Store(_)) {
            return;
        }
        let line = fault::Fault {
            now: self.now.secs(),
            code: dropped.code(),
            harness: self.row.map_or("-", |row| row.id),
            event: self.name,
            number: dropped.number(),
        };
        if let Ok(store) = Root::find(self.env).and_then(|r| Store::open(&r, harness::is_known)) {
            let _ = fault::log(&store.root, &line);
        }
    }

    #[inline(never)] // nor is this
    fn report(&self, outcome: &Outcome) -> i32 {
        let (word, reason, status, exit) = match outcome {
            Outcome::Written(status) => ("written", "", status.name(), Exit::Ok),
            Outcome::Ignored(why) => ("ignored", why.code(), "", Exit::Ok),
            Outcome::ToldOff => ("ignored", "told-off", "", Exit::Ok),
            Outcome::Dropped(why) => ("dropped", why.code(), "", why.exit()),
        };
        let mut canonical = [0; limit::TOKEN + 16];
        let mut id = Fixed::new(&mut canonical);
        if let (Some(digest), Some(row)) = (self.digest, self.row) {
            id::put_canonical(&mut id, row.id, &digest);
        }
        let mut line = [0; 512];
        let mut out = Fixed::new(&mut line);
        let mut object = Object::open(&mut out);
        object
            .str("outcome", word)
            .str("reason", reason)
            .str("canonical_id", id.text().unwrap_or(""))
            .str("status", status);
        object.close();
        Sink::put(&mut out, b"\n");
        let mut to = fail::stdout();
        let told = to.put(out.bytes().unwrap_or(b"")).and_then(|()| to.flush());
        fail::end("tongs-hook", told.map(|()| exit))
    }
}

/// Reads a normalised event: a program says its status itself.
fn fleet_event<'p>(
    row: &'static Row,
    payload: &'p Payload<'_>,
    now: u64,
) -> Result<Said<'p>, Drop> {
    if payload.int(Want::SchemaVersion) != Some(1) {
        return Err(Drop::Field);
    }
    let event_id = payload.id(&[Want::EventId], limit::ID).ok_or(Drop::Field)?;
    if event_id
        .strip_prefix(row.id)
        .and_then(|rest| rest.strip_prefix('.'))
        .is_none_or(str::is_empty)
    {
        return Err(Drop::Field);
    }
    let status = Status::find(payload.text(&[Want::Status])).filter(|s| *s != Status::Discovered);
    let pid = match payload.has(Want::Pid) {
        true => {
            Some(payload.int(Want::Pid).and_then(|n| u32::try_from(n).ok()).ok_or(Drop::Field)?)
        }
        false => None,
    };
    let within = |want, max| !payload.has(want) || payload.int(want).is_some_and(|n| n <= max);
    if !within(Want::Sequence, i64::MAX as u64) || !within(Want::Ts, now + limit::FUTURE) {
        return Err(Drop::Field);
    }
    let instance = match payload.has(Want::InstanceId) {
        true => payload.id(&[Want::InstanceId], limit::ID).ok_or(Drop::Field)?,
        false => "",
    };
    Ok(Said {
        kind: Kind::Report(status.ok_or(Drop::Field)?),
        name: "fleet-event",
        pid,
        instance,
        sequence: payload.int(Want::Sequence),
        ts: payload.int(Want::Ts),
        detail: payload.text(&[Want::Detail]),
        tool: payload.text(&[Want::Tool]),
        event_id,
    })
}

/// The directory that the hook runs in.
fn own_cwd(buffer: &mut [u8; limit::PATH]) -> &str {
    core::str::from_utf8(crate::sys::process::own_cwd(buffer)).unwrap_or("")
}
