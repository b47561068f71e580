//! What harnesses say: a table row each, and nothing else.
//!
//! A [`Row`] tells how a harness names its events, where its payload keeps what
//! we want, and how its process looks. [`rows`] holds the data, [`payload`]
//! reads a payload, [`rules`] turns an event into a change of the record,
//! [`note`] reads what one harness says beside its hooks. All of it is pure: bytes in, values out.

pub mod note;
pub mod payload;
pub mod rows;
pub mod rules;
mod want;

pub use payload::Payload;
pub use rows::{OTHER, ROWS};
pub use rules::{Change, Event, Kind, State, apply};
pub use want::Want;

/// One harness.
pub struct Row {
    /// The id in records and on command lines.
    pub id: &'static str,
    /// Other ids that command lines may give; records never have them.
    pub aliases: &'static [&'static str],
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
    /// What its hooks find in their environment.
    pub env: EnvNames,
    /// What it must find on standard output, whatever becomes of the event;
    /// empty for nothing.
    pub reply: &'static str,
    /// Whether a session that it gives no id is known by its process.
    pub nameless: bool,
    /// Where the payload keeps each thing, best first.
    pub fields: Fields,
    /// Its events.
    pub events: &'static [EventRow],
}

/// Variables in the environment of a harness's hooks, by name; empty where there
/// is none.
#[derive(Clone, Copy)]
pub struct EnvNames {
    /// One that only hooks of this harness get.
    pub mark: &'static str,
    /// The session's id, for where the payload has none.
    pub session: &'static str,
    /// The directory, likewise.
    pub cwd: &'static str,
    /// The event's name, likewise.
    pub event: &'static str,
}

impl EnvNames {
    /// None at all.
    pub const NONE: EnvNames = EnvNames { mark: "", session: "", cwd: "", event: "" };
}

/// How a harness's process is known.
#[derive(Clone, Copy)]
pub enum Identity {
    /// By its program; its processes can be found without a hook.
    Discoverable(Looks),
    /// By its hooks: the program's name may be another program's too, or it is
    /// several processes, so that a list of processes would show too much. An
    /// ancestor is looked for where it does not tell its pid.
    Emitter(Looks),
}

/// What a harness's process looks like. Names are lower case.
#[derive(Clone, Copy)]
pub struct Looks {
    /// Command name, program file or argv[0], without directories.
    pub names: &'static [&'static str],
    /// Ends of a script's path, for a harness that an interpreter runs; `*`
    /// stands for any one component.
    pub scripts: &'static [&'static str],
    /// First arguments of processes that are helpers or servers and hold no
    /// session of their own.
    pub helpers: &'static [&'static str],
    /// Names of programs that hold its sessions and much besides, such as an
    /// editor. They are no sign of whose an event is, but its process once that
    /// is known.
    pub hosts: &'static [&'static str],
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
    /// The marks of a subagent. The first that is set is its id, unless `child`
    /// holds one.
    pub subagent: &'static [Want],
    /// The id of a marked subagent, where its marks are another's.
    pub child: &'static [Want],
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
    /// By words within the text of one payload field that is written for
    /// people, in any case, else the last kind.
    Within(Want, &'static [(&'static str, Kind)], Kind),
    /// By the first of these fields that is set, else the last kind.
    Set(&'static [(Want, Kind)], Kind),
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

    /// Finds an event by its native or its shared name, else by its native name
    /// in another spelling, as configurations have it: `PreToolUse` for
    /// `pre_tool_use`.
    pub fn event(&self, name: &str) -> Option<&'static EventRow> {
        let events = self.events;
        events
            .iter()
            .find(|e| e.native == name)
            .or_else(|| events.iter().find(|e| e.normal == name))
            .or_else(|| events.iter().find(|e| is_spelling(name, e.native)))
    }
}

impl Fields {
    /// The subagent that a payload is of; empty for the main agent.
    pub fn subagent_of<'p>(&self, payload: &'p Payload<'_>) -> &'p str {
        match (payload.mark(self.subagent), payload.text(self.child)) {
            ("", _) => "",
            (mark, "") => mark,
            (_, child) => child,
        }
    }
}

impl EventRow {
    /// What the event means with this payload.
    pub fn kind(&self, payload: &Payload<'_>) -> Kind {
        match self.pick {
            Pick::Is(kind) => kind,
            Pick::By(want, kinds, or) => {
                let said = kinds.iter().find(|(value, _)| payload.says(want, value));
                said.map_or(or, |(_, kind)| *kind)
            }
            Pick::Within(want, kinds, or) => {
                let text = payload.text(&[want]);
                let said = kinds.iter().find(|(words, _)| has_within(text, words));
                said.map_or(or, |(_, kind)| *kind)
            }
            Pick::Set(kinds, or) => {
                let set = kinds.iter().find(|(want, _)| payload.is_set(*want));
                set.map_or(or, |(_, kind)| *kind)
            }
        }
    }
}

/// Finds a harness by its id.
pub fn find(id: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.id == id)
}

/// Finds a harness by its id or another word for it, as command lines have it.
pub fn named(word: &str) -> Option<&'static Row> {
    find(word).or_else(|| ROWS.iter().find(|row| row.aliases.contains(&word)))
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

/// Shells, which harnesses run their hooks with. A harness that is a shell script
/// has its script's name.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"];

/// Whether a process of this command name is a shell, and so no harness: its
/// program and arguments need no look.
pub fn is_shell(comm: &[u8]) -> bool {
    SHELLS.iter().any(|name| comm == name.as_bytes())
}

/// Whether a command name may be an interpreter's, so that its arguments say
/// what runs.
pub fn is_interpreter(comm: &[u8]) -> bool {
    INTERPRETERS.iter().any(|name| comm.eq_ignore_ascii_case(name.as_bytes()))
        || (comm.len() >= 6 && comm[..6].eq_ignore_ascii_case(b"python"))
}

/// What a process's arguments say, taken apart once for all rows.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    comm: &'a [u8],
    exe: &'a [u8],
    argv0: &'a [u8],
    /// The script that an interpreter runs; else empty.
    script: &'a [u8],
    /// The first argument of the program, or of the script.
    first: &'a [u8],
    /// Whether enough was seen to say no.
    all_seen: bool,
}

impl<'a> Image<'a> {
    /// Takes it apart.
    pub fn facts(&self) -> Facts<'a> {
        let mut args = self.cmdline.unwrap_or(b"").split(|b| *b == 0);
        let argv0 = base_name(args.next().unwrap_or(b""));
        let interpreted = is_interpreter(self.comm);
        let exe = self.exe.map_or(&b""[..], base_name);
        let mut first = args.next().unwrap_or(b"");
        let mut script = first;
        let behind_interpreter = is_interpreter(argv0);
        if interpreted || behind_interpreter {
            // An interpreter's own options come before the script.
            for _ in 0..2 {
                if script.starts_with(b"-") {
                    script = args.next().unwrap_or(b"");
                }
            }
        }
        if behind_interpreter {
            first = args.next().unwrap_or(b"");
        }
        Facts {
            comm: self.comm,
            exe,
            argv0,
            script: if interpreted { script } else { b"" },
            first,
            // An interpreter's arguments would say what it runs.
            all_seen: self.cmdline.is_some() || (self.exe.is_some() && !interpreted),
        }
    }
}

impl Facts<'_> {
    /// Whether the process is this harness. `None` where a fact that would
    /// decide was not given.
    pub fn belongs(&self, looks: &Looks) -> Option<bool> {
        let by_name =
            looks.has_name(self.comm) || looks.has_name(self.exe) || looks.has_name(self.argv0);
        let by_script =
            !self.script.is_empty() && looks.scripts.iter().any(|s| is_script(self.script, s));
        if !by_name && !by_script {
            return if self.all_seen { Some(false) } else { None };
        }
        Some(!looks.helpers.iter().any(|h| self.first == h.as_bytes()))
    }
}

/// Whether the process is this harness. `None` where a fact that would decide
/// was not given.
pub fn belongs(looks: &Looks, image: &Image<'_>) -> Option<bool> {
    image.facts().belongs(looks)
}

impl Looks {
    /// Whether a command name, program file or argv[0] is one of its names.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.names.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
    }

    /// Whether a command name or program file is of a program that holds its
    /// sessions, be it a helper or server of its own or an editor.
    pub fn has_host(&self, name: &[u8]) -> bool {
        self.has_name(name) || self.hosts.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
    }
}

/// The last component of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Whether a script's path ends in these whole components.
fn is_script(path: &[u8], end: &str) -> bool {
    let mut have = path.rsplit(|b| *b == b'/');
    end.as_bytes()
        .rsplit(|b| *b == b'/')
        .all(|want| have.next().is_some_and(|have| want == b"*" || want == have))
}

/// Whether a name is another spelling of this one: letters and digits are the
/// same but for their case.
fn is_spelling(name: &str, of: &str) -> bool {
    let plain = |b: &u8| !matches!(b, b'_' | b'-');
    let mut letters = name.bytes().filter(plain).map(|b| b.to_ascii_lowercase());
    let mut wanted = of.bytes().filter(plain).map(|b| b.to_ascii_lowercase());
    loop {
        match (letters.next(), wanted.next()) {
            (None, None) => return true,
            (have, want) if have != want => return false,
            _ => {}
        }
    }
}

/// Whether a text has these words in it, in any case.
fn has_within(text: &str, words: &str) -> bool {
    text.as_bytes().windows(words.len()).any(|part| part.eq_ignore_ascii_case(words.as_bytes()))
}

/// Says whose event it is, in the order of the signs: a key that only one
/// harness's payloads have; the nearest harness process among the ancestors; a
/// variable that only one harness's hooks get; the harness named on the command
/// line.
pub fn caller(
    argument: &'static Row,
    payload: &Payload<'_>,
    nearest: Option<&'static Row>,
    by_env: Option<&'static Row>,
) -> &'static Row {
    let marked = || ROWS.iter().find(|row| row.marks.iter().any(|m| payload.has(*m)));
    marked().or(nearest).or(by_env).unwrap_or(argument)
}
