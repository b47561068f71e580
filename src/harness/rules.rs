//! From an event to a change of the record: the one place that decides a
//! status. Pure; `src/README.md` and tongs-hook(1) hold the same table.

use crate::record::out::{Sink, int};
use crate::record::{Status, Text};

/// What an event means, whatever its harness calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A session opens.
    Start,
    /// A session goes on after its context was compacted.
    CompactKeep,
    /// The user sent a prompt.
    Prompt,
    /// The turn goes on.
    Progress,
    /// The agent is at work, also when it was idle before.
    Busy,
    /// A tool is about to run.
    ToolUse,
    /// A tool is done, failed or denied; an answer was given.
    ToolDone,
    /// The user is asked for permission.
    Permission,
    /// The user is asked a question.
    Question,
    /// The user is asked to agree to a plan.
    Plan,
    /// The user is asked for input by a tool's server.
    Elicitation,
    /// The turn is over.
    Stop,
    /// A session that may be anybody's is idle.
    Rest,
    /// The harness remarks that it is the user's turn.
    IdleSign,
    /// The turn ended in an error.
    StopFailure,
    /// The user broke the turn off.
    Interrupt,
    /// Compaction begins.
    CompactStart,
    /// Compaction that the user asked for is over.
    CompactEndManual,
    /// Compaction in the middle of a turn is over.
    CompactEndAuto,
    /// A subagent begins.
    SubagentStart,
    /// A subagent is done.
    SubagentStop,
    /// The session is over.
    End,
    /// Something else happened in a living session.
    Keep,
    /// Of no interest.
    None,
    /// A program says its status itself.
    Report(Status),
}

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A permission.
    Permission,
    /// The answer to a question.
    Question,
    /// Agreement to a plan.
    Plan,
    /// Input that a tool's server wants.
    Elicitation,
}

impl Waiting {
    /// Every reason.
    pub const ALL: [Waiting; 4] =
        [Waiting::Permission, Waiting::Question, Waiting::Plan, Waiting::Elicitation];

    /// The reason as records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Waiting::Permission => "permission",
            Waiting::Question => "question",
            Waiting::Plan => "plan",
            Waiting::Elicitation => "elicitation",
        }
    }
}

/// What the stored record says, as far as the rules look at it.
#[derive(Clone, Copy)]
pub struct State<'a> {
    /// Its status.
    pub status: Status,
    /// Prompts so far.
    pub turn: u64,
    /// The harness's id of the turn under way.
    pub turn_id: Text<'a>,
    /// The id of the turn before.
    pub prev_turn_id: Text<'a>,
    /// CLOCK_BOOTTIME of the last event in milliseconds; `None` when it was on
    /// another boot or is not known.
    pub boot_ms: Option<u64>,
    /// What it waits for.
    pub waiting_for: Option<Waiting>,
    /// The tool that it waits for.
    pub waiting_tool: Text<'a>,
    /// The subagent that waits.
    pub waiting_agent: Text<'a>,
    /// The status that a subagent's wait interrupted, where it was not running.
    pub waiting_from: Option<Status>,
}

/// One event.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// What it means.
    pub kind: Kind,
    /// CLOCK_BOOTTIME when it arrived, in milliseconds; `None` where another
    /// order holds, such as a sequence.
    pub boot_ms: Option<u64>,
    /// The subagent that it comes from; empty for the main agent.
    pub subagent: &'a str,
    /// The harness's id of the prompt or turn; may be empty.
    pub turn_id: &'a str,
    /// The tool's name; may be empty.
    pub tool: &'a str,
    /// Work that goes on in the background, where the event says.
    pub background: Option<u64>,
    /// Whether a starting tool says that an answer was given.
    pub tool_use_answers: bool,
    /// Whether the harness has an event for the end of a compaction.
    pub compact_ends: bool,
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The event is of no interest.
    Uninteresting,
    /// There is no record, and this event does not make one.
    NoRecord,
    /// It is a subagent's and concerns nobody else.
    Subagent,
    /// It is of the turn before.
    Late,
    /// The session is over.
    Ended,
    /// It says what the record says already.
    Known,
}

impl Ignored {
    /// The code for `--strict`.
    pub const fn code(self) -> &'static str {
        match self {
            Ignored::Uninteresting => "uninteresting",
            Ignored::NoRecord => "no-record",
            Ignored::Subagent => "subagent",
            Ignored::Late => "late",
            Ignored::Ended => "ended",
            Ignored::Known => "known",
        }
    }
}

/// What becomes of the turn ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// They stay.
    Keep,
    /// The event's id is a new turn's; the old one is the turn before.
    Advance,
    /// Both are dropped.
    Clear,
}

/// What becomes of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It stays as it is.
    Keep,
    /// It is over.
    Clear,
    /// It begins now, for this reason where one is known.
    Begin(Option<Waiting>),
    /// It goes on; what it is for is known better.
    Name(Waiting),
}

/// What becomes of `detail`, and with it of `tool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Both stay.
    Keep,
    /// "session started"
    Started,
    /// "processing prompt"
    Processing,
    /// "working"
    Working,
    /// "using X"
    Using,
    /// "permission needed: X"
    Permission,
    /// "waiting for user input"
    Input,
    /// "plan ready for review"
    Plan,
    /// The last assistant message, else "finished".
    Finished,
    /// "turn failed: X", else "turn failed (API error)".
    Failed,
    /// "interrupted"
    Interrupted,
    /// "compacting"
    Compacting,
    /// "session closed"
    Closed,
    /// What the program said.
    Reported,
}

/// A change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The status afterwards.
    pub status: Status,
    /// Whether the session starts anew: `started` is now, the terminal and the
    /// branch are looked at again.
    pub fresh: bool,
    /// Whether the event is older than the record: it is counted, and nothing
    /// of it is kept.
    pub stale: bool,
    /// Prompts so far.
    pub turn: u64,
    /// What becomes of the turn ids.
    pub ids: Ids,
    /// What becomes of the wait.
    pub wait: Wait,
    /// What becomes of the detail.
    pub detail: Detail,
    /// The number of background tasks; `None` keeps it.
    pub background: Option<u64>,
}

impl Write {
    /// Whether a state begins that its user has not seen: another status,
    /// another wait, or another end of a turn.
    pub fn begins(&self, before: Option<Status>) -> bool {
        let ends_turn =
            matches!(self.detail, Detail::Finished | Detail::Failed | Detail::Interrupted);
        self.fresh
            || before != Some(self.status)
            || matches!(self.wait, Wait::Begin(_))
            || ends_turn
    }
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing is written.
    Ignore(Ignored),
    /// The record is written.
    Write(Write),
}

/// Turns an event into a change of the stored record, or of none.
pub fn apply(stored: Option<&State<'_>>, event: &Event<'_>) -> Change {
    use Change::Ignore;
    let kind = event.kind;
    if kind == Kind::None {
        return Ignore(Ignored::Uninteresting);
    }
    let Some(state) = stored else { return create(event) };
    let from_subagent = !event.subagent.is_empty()
        && !matches!(kind, Kind::SubagentStart | Kind::SubagentStop | Kind::Report(_));
    let revives = matches!(kind, Kind::Start | Kind::Prompt | Kind::Report(_)) && !from_subagent;
    if state.status == Status::Ended && !revives {
        return Ignore(Ignored::Ended);
    }
    let kept = Write {
        status: state.status,
        fresh: false,
        stale: false,
        turn: state.turn,
        ids: Ids::Keep,
        wait: Wait::Keep,
        detail: Detail::Keep,
        background: None,
    };
    // Turn ids order the main agent's turns. A start begins a new order, and an
    // end is an end whatever turn it names. Only a prompt begins another turn:
    // an event that is two turns late has an unknown id too.
    let ordered = event.subagent.is_empty() && !matches!(kind, Kind::Start | Kind::End);
    let mut ids = if kind == Kind::Start { Ids::Clear } else { Ids::Keep };
    if ordered && !event.turn_id.is_empty() {
        if state.prev_turn_id.is(event.turn_id) {
            return Ignore(Ignored::Late);
        }
        if kind == Kind::Prompt && !state.turn_id.is(event.turn_id) || state.turn_id.is_empty() {
            ids = Ids::Advance;
        }
    }
    let change = if from_subagent {
        match subagent(state, event, kept) {
            Some(change) => change,
            None => return Ignore(Ignored::Subagent),
        }
    } else if kind == Kind::IdleSign && is_at_rest(state) {
        return Ignore(Ignored::Known);
    } else {
        main_agent(state, event, kept)
    };
    if matches!((event.boot_ms, state.boot_ms), (Some(now), Some(then)) if now < then) {
        return Change::Write(Write { stale: true, ..kept });
    }
    Change::Write(Write { ids, ..change })
}

/// An event for which there is no record yet.
fn create(event: &Event<'_>) -> Change {
    let begin = |status, wait, detail| {
        Change::Write(Write {
            status,
            fresh: true,
            stale: false,
            turn: u64::from(event.kind == Kind::Prompt),
            ids: if event.turn_id.is_empty() || !event.subagent.is_empty() {
                Ids::Keep
            } else {
                Ids::Advance
            },
            wait,
            detail,
            background: event
                .background
                .filter(|_| matches!(event.kind, Kind::Stop | Kind::IdleSign)),
        })
    };
    let asks = waiting(event.kind);
    // A subagent's tools say nothing of the main agent, but its questions and
    // its own start do.
    if !event.subagent.is_empty() && asks.is_none() && event.kind != Kind::SubagentStart {
        return Change::Ignore(Ignored::NoRecord);
    }
    match event.kind {
        Kind::Start => begin(Status::Started, Wait::Keep, Detail::Started),
        Kind::Prompt => begin(Status::Running, Wait::Keep, Detail::Processing),
        Kind::ToolUse => begin(Status::Running, Wait::Keep, Detail::Using),
        Kind::CompactStart => begin(Status::Running, Wait::Keep, Detail::Compacting),
        Kind::CompactKeep | Kind::Progress | Kind::Busy | Kind::ToolDone | Kind::SubagentStart => {
            begin(Status::Running, Wait::Keep, Detail::Working)
        }
        Kind::Permission | Kind::Question | Kind::Plan | Kind::Elicitation => {
            begin(Status::Waiting, Wait::Begin(asks), question(event.kind))
        }
        Kind::Stop | Kind::IdleSign => begin(Status::Idle, Wait::Keep, Detail::Finished),
        Kind::StopFailure => begin(Status::Error, Wait::Keep, Detail::Failed),
        Kind::Interrupt => begin(Status::Idle, Wait::Keep, Detail::Interrupted),
        Kind::Report(status) => {
            let wait = if status == Status::Waiting { Wait::Begin(None) } else { Wait::Keep };
            begin(status, wait, Detail::Reported)
        }
        Kind::CompactEndManual
        | Kind::CompactEndAuto
        | Kind::Rest
        | Kind::SubagentStop
        | Kind::End
        | Kind::Keep
        | Kind::None => Change::Ignore(Ignored::NoRecord),
    }
}

/// A subagent's event: only what the user must act on, and the end of that.
fn subagent(state: &State<'_>, event: &Event<'_>, kept: Write) -> Option<Write> {
    match event.kind {
        Kind::Permission | Kind::Question | Kind::Plan | Kind::Elicitation => {
            Some(ask(state, event, kept))
        }
        Kind::ToolDone if answers(state, event) => Some(resume(state, kept)),
        Kind::ToolUse if event.tool_use_answers && answers(state, event) => {
            Some(resume(state, kept))
        }
        _ => None,
    }
}

fn main_agent(state: &State<'_>, event: &Event<'_>, kept: Write) -> Write {
    let to = |status, detail| Write { status, detail, wait: Wait::Clear, ..kept };
    let status = state.status;
    match event.kind {
        Kind::Start => Write { fresh: true, ..to(Status::Started, Detail::Started) },
        Kind::Prompt => Write { turn: state.turn + 1, ..to(Status::Running, Detail::Processing) },
        Kind::Progress => match status {
            Status::Waiting | Status::Idle | Status::Error | Status::Ended => kept,
            Status::Running => kept,
            Status::Started | Status::Discovered => to(Status::Running, Detail::Working),
        },
        Kind::ToolUse => match status {
            Status::Waiting if !event.tool_use_answers => kept,
            _ => to(Status::Running, Detail::Using),
        },
        Kind::Busy => match status {
            Status::Running => kept,
            Status::Waiting if !event.tool_use_answers => kept,
            _ => to(Status::Running, Detail::Working),
        },
        Kind::ToolDone if answers(state, event) => resume(state, kept),
        Kind::Permission | Kind::Question | Kind::Plan | Kind::Elicitation => {
            ask(state, event, kept)
        }
        Kind::Stop | Kind::Rest | Kind::IdleSign => {
            Write { background: event.background, ..to(Status::Idle, Detail::Finished) }
        }
        Kind::StopFailure => to(Status::Error, Detail::Failed),
        Kind::Interrupt => to(Status::Idle, Detail::Interrupted),
        Kind::CompactStart if event.compact_ends => to(Status::Running, Detail::Compacting),
        Kind::CompactEndManual => to(Status::Idle, Detail::Finished),
        Kind::CompactEndAuto => to(Status::Running, Detail::Working),
        Kind::SubagentStop
            if status == Status::Waiting
                && !event.subagent.is_empty()
                && state.waiting_agent.is(event.subagent) =>
        {
            resume(state, kept)
        }
        Kind::End => to(Status::Ended, Detail::Closed),
        Kind::Report(Status::Waiting) if status == Status::Waiting => {
            Write { detail: Detail::Reported, ..kept }
        }
        Kind::Report(said) => {
            let wait = if said == Status::Waiting { Wait::Begin(None) } else { Wait::Clear };
            Write { fresh: said == Status::Started, wait, ..to(said, Detail::Reported) }
        }
        Kind::CompactKeep
        | Kind::ToolDone
        | Kind::CompactStart
        | Kind::SubagentStart
        | Kind::SubagentStop
        | Kind::Keep
        | Kind::None => kept,
    }
}

/// Whether a remark that it is the user's turn says nothing new: the turn is
/// over, or only a subagent waits.
fn is_at_rest(state: &State<'_>) -> bool {
    match state.status {
        Status::Idle | Status::Error => true,
        Status::Waiting => state.waiting_from.is_some() || !state.waiting_agent.is_empty(),
        _ => false,
    }
}

/// What a kind asks the user for.
fn waiting(kind: Kind) -> Option<Waiting> {
    match kind {
        Kind::Permission => Some(Waiting::Permission),
        Kind::Question => Some(Waiting::Question),
        Kind::Plan => Some(Waiting::Plan),
        Kind::Elicitation => Some(Waiting::Elicitation),
        _ => None,
    }
}

fn question(kind: Kind) -> Detail {
    match kind {
        Kind::Permission => Detail::Permission,
        Kind::Plan => Detail::Plan,
        _ => Detail::Input,
    }
}

/// The user is asked. What adds nothing to the wait under way, such as a
/// notification that names neither tool nor subagent, does not begin another.
fn ask(state: &State<'_>, event: &Event<'_>, kept: Write) -> Write {
    let Some(asks) = waiting(event.kind) else { return kept };
    let begins = Write {
        status: Status::Waiting,
        wait: Wait::Begin(Some(asks)),
        detail: question(event.kind),
        ..kept
    };
    if state.status != Status::Waiting {
        return begins;
    }
    let nameless = event.tool.is_empty() && event.subagent.is_empty();
    let same_reason = state.waiting_for == Some(asks);
    let known =
        same_reason && state.waiting_tool.is(event.tool) && state.waiting_agent.is(event.subagent);
    if nameless && state.waiting_for.is_some() || known {
        kept
    } else if same_reason && state.waiting_tool.is_empty() && state.waiting_agent.is_empty() {
        Write { wait: Wait::Name(asks), ..begins }
    } else {
        begins
    }
}

/// Whether an event ends the wait: it is of the same agent and, where the tool
/// that waits is known, of that tool. A wait without a tool is ended by the
/// agent's next finished tool too.
fn answers(state: &State<'_>, event: &Event<'_>) -> bool {
    // Between turns a wait without names is some subagent's.
    let anyones = state.waiting_from.is_some()
        && state.waiting_agent.is_empty()
        && state.waiting_tool.is_empty();
    state.status == Status::Waiting
        && (anyones || state.waiting_agent.is(event.subagent))
        && (state.waiting_tool.is_empty() || state.waiting_tool.is(event.tool))
}

/// The wait is over: the turn goes on, or, when a background subagent waited,
/// what was before.
fn resume(state: &State<'_>, kept: Write) -> Write {
    let (status, detail) = match state.waiting_from {
        Some(Status::Idle) => (Status::Idle, Detail::Finished),
        Some(Status::Error) => (Status::Error, Detail::Failed),
        _ => (Status::Running, Detail::Working),
    };
    Write { status, wait: Wait::Clear, detail, ..kept }
}

/// The words that a detail is made of.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The last assistant message; empty when it must not be kept.
    pub message: &'a str,
    /// The kind of error.
    pub error: &'a str,
    /// What a program said of itself.
    pub reported: &'a str,
}

/// Characters of a message that are kept.
const MESSAGE_CHARS: usize = 120;

/// Writes a detail's text, unescaped, on one line. Nothing for [`Detail::Keep`].
pub fn put_detail(sink: &mut impl Sink, detail: Detail, words: &Words<'_>) {
    let or = |text, default| if str::is_empty(text) { default } else { text };
    match detail {
        Detail::Keep => {}
        Detail::Started => sink.put(b"session started"),
        Detail::Processing => sink.put(b"processing prompt"),
        Detail::Working => sink.put(b"working"),
        Detail::Using => line(sink, "using ", or(words.tool, "tool"), usize::MAX),
        Detail::Permission => line(sink, "permission needed: ", or(words.tool, "tool"), usize::MAX),
        Detail::Input => sink.put(b"waiting for user input"),
        Detail::Plan => sink.put(b"plan ready for review"),
        Detail::Finished => line(sink, "", or(words.message, "finished"), MESSAGE_CHARS),
        Detail::Failed if words.error.is_empty() => sink.put(b"turn failed (API error)"),
        Detail::Failed => line(sink, "turn failed: ", words.error, MESSAGE_CHARS),
        Detail::Interrupted => sink.put(b"interrupted"),
        Detail::Compacting => sink.put(b"compacting"),
        Detail::Closed => sink.put(b"session closed"),
        Detail::Reported => line(sink, "", words.reported, usize::MAX),
    }
}

/// Writes text on one line: newlines are spaces, carriage returns and NULs are
/// left out, and three dots stand for what is beyond `max` characters.
fn line(sink: &mut impl Sink, before: &str, text: &str, max: usize) {
    sink.put(before.as_bytes());
    let mut chars = text.chars().filter(|c| *c != '\r' && *c != '\0');
    for _ in 0..max {
        match chars.next() {
            Some('\n') => sink.put(b" "),
            Some(c) => sink.put(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => return,
        }
    }
    if chars.next().is_some() {
        sink.put(b"...");
    }
}

/// Writes the name of an event as `last_event` has it: `HARNESS.EVENT`.
pub fn put_last_event(sink: &mut impl Sink, harness: &str, event: &str) {
    sink.put(harness.as_bytes());
    sink.put(b".");
    sink.put(event.as_bytes());
}

/// Writes the instance of a process: `PID:START`.
pub fn put_instance(sink: &mut impl Sink, pid: u32, start: u64) {
    int(sink, pid.into());
    sink.put(b":");
    int(sink, start);
}
