//! What harnesses say: a table row each, and nothing else.
//!
//! A [`Row`] tells how a harness names its events, where its payload keeps what
//! we want, and how its process looks. [`rows`] holds the data, [`payload`]
//! reads a payload, [`rules`] turns an event into a change of the record. All
//! of it is pure: bytes in, values out.

pub mod payload;
pub mod rows;
pub mod rules;

pub use payload::{Payload, Want};
pub use rows::ROWS;
pub use rules::{Change, Event, Kind, State, apply};

/// One harness.
pub struct Row {
    /// The id in records and on command lines.
    pub id: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// How its process is known.
    pub process: Identity,
    /// How many sessions one of its processes holds.
    pub sessions: Sessions,
    /// Whether the start of the next tool says that an answer was given, in a
    /// harness that has no event for the end of a tool.
    pub tool_use_answers: bool,
    /// Whether the end of a compaction is an event.
    pub compact_ends: bool,
    /// The command that takes a session up again, with `ID` for its id; empty
    /// where there is none.
    pub resume: &'static str,
    /// Events after which it keeps its end of standard input open.
    pub holds_stdin: &'static [&'static str],
    /// Payload keys that no other harness has.
    pub marks: &'static [Want],
    /// Where the payload keeps each thing, best first.
    pub fields: Fields,
    /// Its events.
    pub events: &'static [EventRow],
}

/// How a harness's process is known.
#[derive(Clone, Copy)]
pub enum Identity {
    /// By its program; its processes can be found without a hook.
    Discoverable(Looks),
    /// It tells its pid itself; where it does not, an ancestor is looked for.
    Emitter(Looks),
}

/// What a harness's process looks like. Names are lower case.
#[derive(Clone, Copy)]
pub struct Looks {
    /// Command name, program file or argv[0], without directories.
    pub names: &'static [&'static str],
    /// Ends of a script's path, for a harness that an interpreter runs.
    pub scripts: &'static [&'static str],
    /// First arguments of processes that are helpers or servers and hold no
    /// session of their own.
    pub helpers: &'static [&'static str],
}

/// How many sessions one process holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// One: a new session id ends the older session.
    One,
    /// Many, as in servers and editors.
    Many,
}

/// Where the payload keeps each thing, best first.
pub struct Fields {
    /// The session's id.
    pub session: &'static [Want],
    /// The directory.
    pub cwd: &'static [Want],
    /// The event's name, for when it is not an argument.
    pub event: &'static [Want],
    /// The tool's name.
    pub tool: &'static [Want],
    /// The id of the prompt or turn.
    pub turn: &'static [Want],
    /// The marks of a subagent.
    pub subagent: &'static [Want],
    /// The last assistant message.
    pub message: &'static [Want],
    /// The kind of an error.
    pub error: &'static [Want],
    /// Work that goes on in the background: an array or a number.
    pub background: &'static [Want],
    /// The session's title.
    pub title: &'static [Want],
}

/// One event of a harness.
pub struct EventRow {
    /// The harness's own name.
    pub native: &'static str,
    /// The name that all harnesses share; the native one where there is none.
    pub normal: &'static str,
    /// What it means.
    pub pick: Pick,
}

/// How an event's kind is found.
pub enum Pick {
    /// Always this kind.
    Is(Kind),
    /// By the text of one payload field, else the last kind.
    By(Want, &'static [(&'static str, Kind)], Kind),
}

impl Row {
    /// The looks of its process.
    pub fn looks(&self) -> &Looks {
        match &self.process {
            Identity::Discoverable(looks) | Identity::Emitter(looks) => looks,
        }
    }

    /// Whether its processes can be found and checked by their looks alone.
    pub fn is_discoverable(&self) -> bool {
        matches!(self.process, Identity::Discoverable(_))
    }

    /// Finds an event by its native or its shared name.
    pub fn event(&self, name: &str) -> Option<&'static EventRow> {
        let events = self.events;
        events
            .iter()
            .find(|e| e.native == name)
            .or_else(|| events.iter().find(|e| e.normal == name))
    }
}

impl EventRow {
    /// What the event means with this payload.
    pub fn kind(&self, payload: &Payload<'_>) -> Kind {
        match self.pick {
            Pick::Is(kind) => kind,
            Pick::By(want, kinds, or) => {
                let text = payload.text(&[want]);
                kinds.iter().find(|(value, _)| *value == text).map_or(or, |(_, kind)| *kind)
            }
        }
    }
}

/// Finds a harness by its id.
pub fn find(id: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.id == id)
}

/// Whether a harness with this id is registered.
pub fn is_known(id: &str) -> bool {
    find(id).is_some()
}

/// A process as the prober saw it.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    /// The command name.
    pub comm: &'a [u8],
    /// The program file's path.
    pub exe: Option<&'a [u8]>,
    /// The arguments, each ended by NUL; possibly cut.
    pub cmdline: Option<&'a [u8]>,
}

/// Interpreters that run harnesses, by command name; node's main thread calls
/// itself so since version 24.
const INTERPRETERS: &[&str] =
    &["node", "bun", "deno", "python", "mainthread", "nodejs", "node-mainthread"];

/// Whether a command name may be an interpreter's, so that its arguments say
/// what runs.
pub fn is_interpreter(comm: &[u8]) -> bool {
    INTERPRETERS.iter().any(|name| comm.eq_ignore_ascii_case(name.as_bytes()))
        || (comm.len() >= 6 && comm[..6].eq_ignore_ascii_case(b"python"))
}

/// Whether the process is this harness. `None` where a fact that would decide
/// was not given.
pub fn belongs(looks: &Looks, image: &Image<'_>) -> Option<bool> {
    let args = image.cmdline.map(|line| line.split(|b| *b == 0));
    let arg = |at| args.clone().and_then(|mut args| args.nth(at)).unwrap_or(b"");
    let by_name = looks.has_name(image.comm)
        || image.exe.is_some_and(|path| looks.has_name(base_name(path)))
        || looks.has_name(base_name(arg(0)));
    let by_script =
        is_interpreter(image.comm) && looks.scripts.iter().any(|s| is_script(arg(1), s));
    if !by_name && !by_script {
        // An interpreter's arguments would say what it runs.
        let all_seen =
            image.cmdline.is_some() || (image.exe.is_some() && !is_interpreter(image.comm));
        return if all_seen { Some(false) } else { None };
    }
    // Behind an interpreter the first argument is the script.
    let first = if is_interpreter(base_name(arg(0))) { arg(2) } else { arg(1) };
    Some(!looks.helpers.iter().any(|h| first == h.as_bytes()))
}

impl Looks {
    /// Whether a command name, program file or argv[0] is one of its names.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.names.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
    }
}

/// The last component of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Whether a script's path ends in these whole components.
fn is_script(path: &[u8], end: &str) -> bool {
    path.strip_suffix(end.as_bytes()).is_some_and(|head| head.is_empty() || head.ends_with(b"/"))
}

/// Says whose event it is, in the order of the signs: a key that only one
/// harness's payloads have; the nearest harness process among the ancestors;
/// the harness named on the command line.
pub fn caller(
    argument: &'static Row,
    payload: &Payload<'_>,
    nearest: Option<&'static Row>,
) -> &'static Row {
    let marked = || ROWS.iter().find(|row| row.marks.iter().any(|m| payload.has(*m)));
    marked().or(nearest).unwrap_or(argument)
}
