//! `harness::rules::apply` on every kind of event and every kind of record,
//! against the table of the status rules. The table stands here as data, a
//! letter for each cell, and is read by nothing but these tests.

use tongs::harness::rules::{
    Change, Detail, Event, Ids, Ignored, Kind, State, Wait, Waiting, Words, Write, apply,
    put_detail, put_instance, put_last_event,
};
use tongs::record::{Key, Scan, Status, Text};

/// What the main agent's events do.
///
/// Columns: the stored status (Started, Running, Idle, Waiting, Error, eXnded,
/// Discovered), then no record; then the detail that comes with a new status.
///
/// `s r i w e x d` that status afterwards; `.` written, status, wait and detail
/// as they were; `-` nothing is written; `a` where the event answers the wait,
/// the status that the wait interrupted, else `.`; `t` running where a starting
/// tool answers, else `.`; `c` running where compaction has an end event, else
/// `.`; `m` idle where the main agent waits, else `-`.
const MAIN: &str = "
    kind                S R I W E X D  none  detail      create
    start               s s s s s s s  s     started     started
    compact-keep        . . . . . - .  r     -           working
    prompt              r r r r r r r  r     processing  processing
    progress            r . . . . - r  r     working     working
    busy                r . r t r - r  r     working     working
    tool-use            r r r t r - r  r     using       using
    tool-done           . . . a . - .  r     working     working
    permission          w w w w w - w  w     permission  permission
    question            w w w w w - w  w     input       input
    plan                w w w w w - w  w     plan        plan
    elicitation         w w w w w - w  w     input       input
    stop                i i i i i - i  i     finished    finished
    rest                i i i i i - i  -     finished    -
    idle-sign           i i - m - - i  i     finished    finished
    stop-failure        e e e e e - e  e     failed      failed
    interrupt           i i i i i - i  i     interrupted interrupted
    compact-start       c c c c c - c  r     compacting  compacting
    compact-end-manual  i i i i i - i  -     finished    -
    compact-end-auto    r r r r r - r  -     working     -
    subagent-start      . . . . . - .  r     -           working
    subagent-stop       . . . . . - .  -     -           -
    end                 x x x x x - x  -     closed      -
    keep                . . . . . - .  -     -           -
    none                - - - - - - -  -     -           -
    report-started      s s s s s s s  s     reported    reported
    report-running      r r r r r r r  r     reported    reported
    report-idle         i i i i i i i  i     reported    reported
    report-waiting      w w w w w w w  w     reported    reported
    report-error        e e e e e e e  e     reported    reported
    report-ended        x x x x x x x  x     reported    reported
    report-discovered   d d d d d d d  d     reported    reported
";

/// What a subagent's events do; a kind that is not here does nothing. `z`: `a`
/// for a wait of this very agent, whatever its tool, else `.`; `A` and `T` as
/// `a` and `t`, but `-` and not `.` where they do not answer.
const SUBAGENT: &str = "
    kind                S R I W E X D  none  detail      create
    permission          w w w w w - w  w     permission  permission
    question            w w w w w - w  w     input       input
    plan                w w w w w - w  w     plan        plan
    elicitation         w w w w w - w  w     input       input
    tool-done           - - - A - - -  -     working     -
    tool-use            - - - T - - -  -     working     -
    subagent-start      . . . . . - .  r     -           working
    subagent-stop       . . . z . - .  -     working     -
";

const KINDS: [(&str, Kind); 31] = [
    ("start", Kind::Start),
    ("compact-keep", Kind::CompactKeep),
    ("prompt", Kind::Prompt),
    ("progress", Kind::Progress),
    ("busy", Kind::Busy),
    ("tool-use", Kind::ToolUse),
    ("tool-done", Kind::ToolDone),
    ("permission", Kind::Permission),
    ("question", Kind::Question),
    ("plan", Kind::Plan),
    ("elicitation", Kind::Elicitation),
    ("stop", Kind::Stop),
    ("rest", Kind::Rest),
    ("idle-sign", Kind::IdleSign),
    ("stop-failure", Kind::StopFailure),
    ("interrupt", Kind::Interrupt),
    ("compact-start", Kind::CompactStart),
    ("compact-end-manual", Kind::CompactEndManual),
    ("compact-end-auto", Kind::CompactEndAuto),
    ("subagent-start", Kind::SubagentStart),
    ("subagent-stop", Kind::SubagentStop),
    ("end", Kind::End),
    ("keep", Kind::Keep),
    ("none", Kind::None),
    ("report-started", Kind::Report(Status::Started)),
    ("report-running", Kind::Report(Status::Running)),
    ("report-idle", Kind::Report(Status::Idle)),
    ("report-waiting", Kind::Report(Status::Waiting)),
    ("report-error", Kind::Report(Status::Error)),
    ("report-ended", Kind::Report(Status::Ended)),
    ("report-discovered", Kind::Report(Status::Discovered)),
];

/// A new kind must be added to the tables above.
fn name(kind: Kind) -> &'static str {
    KINDS.iter().find(|(_, k)| *k == kind).unwrap_or_else(|| panic!("{kind:?} is in no table")).0
}

const STATUSES: [(char, Status); 7] = [
    ('s', Status::Started),
    ('r', Status::Running),
    ('i', Status::Idle),
    ('w', Status::Waiting),
    ('e', Status::Error),
    ('x', Status::Ended),
    ('d', Status::Discovered),
];

/// One row of a table.
struct Line {
    cells: [char; 8],
    detail: &'static str,
    create: &'static str,
}

fn line(table: &'static str, kind: Kind) -> Option<Line> {
    let words = table.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let words = words.into_iter().find(|w| w.first() == Some(&name(kind)))?;
    let mut cells = [' '; 8];
    for (cell, word) in cells.iter_mut().zip(&words[1..9]) {
        *cell = word.chars().next().unwrap();
    }
    Some(Line { cells, detail: words[9], create: words[10] })
}

fn detail(word: &str) -> Detail {
    [
        ("started", Detail::Started),
        ("processing", Detail::Processing),
        ("working", Detail::Working),
        ("using", Detail::Using),
        ("permission", Detail::Permission),
        ("input", Detail::Input),
        ("plan", Detail::Plan),
        ("finished", Detail::Finished),
        ("failed", Detail::Failed),
        ("interrupted", Detail::Interrupted),
        ("compacting", Detail::Compacting),
        ("closed", Detail::Closed),
        ("reported", Detail::Reported),
    ]
    .into_iter()
    .find(|(w, _)| *w == word)
    .unwrap_or_else(|| panic!("no detail {word}"))
    .1
}

/// A text as a record holds it; `raw` is what stands between the quotes.
fn text(raw: &str) -> Text<'static> {
    let bytes: &'static [u8] = format!("{{\"x\":\"{raw}\"}}").leak().as_bytes();
    let mut scan = Scan::new();
    scan.scan(bytes).unwrap();
    scan.fields()[0].text(bytes).unwrap()
}

/// A record as the rules see it, with the texts at hand.
#[derive(Clone, Copy)]
struct Stored {
    state: State<'static>,
    tool: &'static str,
    agent: &'static str,
    turn: &'static str,
    prev: &'static str,
}

impl Stored {
    fn is_waiting(&self) -> bool {
        self.state.status == Status::Waiting
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} turn {} ids {:?} {:?} boot {:?} waits {:?} tool {:?} agent {:?} from {:?}",
            self.state.status,
            self.state.turn,
            self.turn,
            self.prev,
            self.state.boot_ms,
            self.state.waiting_for,
            self.tool,
            self.agent,
            self.state.waiting_from
        )
    }
}

/// How an event lies in time to the record.
const TIMES: [(Option<u64>, Option<u64>); 5] = [
    (Some(1000), Some(999)),
    (Some(1000), Some(1000)),
    (Some(1000), Some(2000)),
    // the record is of another boot
    (None, Some(5)),
    // another order holds
    (Some(1000), None),
];

fn records() -> Vec<Stored> {
    let mut all = Vec::new();
    let (empty, bash, sub) = (text(""), text("Bash"), text("sub-1"));
    let waits = |status| match status {
        Status::Waiting => {
            let reasons = [
                None,
                Some(Waiting::Permission),
                Some(Waiting::Question),
                Some(Waiting::Plan),
                Some(Waiting::Elicitation),
            ];
            let mut waits = Vec::new();
            for reason in reasons {
                for (tool, raw_tool) in [("", empty), ("Bash", bash)] {
                    waits.push((reason, tool, raw_tool, "", empty, None));
                    // Only a subagent's wait interrupts what is not running.
                    for from in [None, Some(Status::Idle), Some(Status::Error)] {
                        waits.push((reason, tool, raw_tool, "sub-1", sub, from));
                    }
                }
            }
            waits
        }
        // The remains of a wait must not be taken for one.
        _ => vec![
            (None, "", empty, "", empty, None),
            (Some(Waiting::Permission), "Bash", bash, "sub-1", sub, Some(Status::Idle)),
        ],
    };
    let (now, before) = (text("now"), text("before"));
    let ids = [("", empty, "", empty), ("now", now, "", empty), ("now", now, "before", before)];
    for (_, status) in STATUSES {
        for (waiting_for, tool, waiting_tool, agent, waiting_agent, waiting_from) in waits(status) {
            for (turn, turn_id, prev, prev_turn_id) in ids {
                all.push(Stored {
                    state: State {
                        status,
                        turn: 7,
                        turn_id,
                        prev_turn_id,
                        boot_ms: None,
                        waiting_for,
                        waiting_tool,
                        waiting_agent,
                        waiting_from,
                    },
                    tool,
                    agent,
                    turn,
                    prev,
                });
            }
        }
    }
    all
}

/// Calls `each` with every case: what is stored, the event, the change.
fn every(mut each: impl FnMut(Option<&Stored>, &Event<'static>, Change)) {
    let records = records();
    let mut cases = 0;
    for (_, kind) in KINDS {
        for subagent in ["", "sub-1", "sub-2"] {
            for tool in ["", "Bash", "Edit"] {
                for turn_id in ["", "now", "before", "next"] {
                    for (tool_use_answers, compact_ends, background) in [
                        (false, true, Some(3)),
                        (true, true, None),
                        (false, false, None),
                        (true, false, Some(0)),
                    ] {
                        let mut event = Event {
                            kind,
                            boot_ms: Some(1),
                            subagent,
                            turn_id,
                            tool,
                            background,
                            tool_use_answers,
                            compact_ends,
                        };
                        each(None, &event, apply(None, &event));
                        for (then, now) in TIMES {
                            event.boot_ms = now;
                            for record in &records {
                                let mut stored = *record;
                                stored.state.boot_ms = then;
                                each(Some(&stored), &event, apply(Some(&stored.state), &event));
                                cases += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(cases > 1_000_000, "{cases}");
}

fn shown(event: &Event<'_>) -> String {
    format!(
        "{} of {:?} turn {:?} tool {:?} boot {:?} answers {} ends {} background {:?}",
        name(event.kind),
        event.subagent,
        event.turn_id,
        event.tool,
        event.boot_ms,
        event.tool_use_answers,
        event.compact_ends,
        event.background
    )
}

fn is_report(kind: Kind) -> bool {
    matches!(kind, Kind::Report(_))
}

fn is_stale(stored: &Stored, event: &Event<'_>) -> bool {
    matches!((stored.state.boot_ms, event.boot_ms), (Some(then), Some(now)) if now < then)
}

/// An event of the turn before, which is dropped.
fn is_late(stored: &Stored, event: &Event<'_>) -> bool {
    event.subagent.is_empty()
        && !matches!(event.kind, Kind::Start | Kind::End)
        && !event.turn_id.is_empty()
        && event.turn_id == stored.prev
}

/// The event is of the agent that waits, and of the tool where that is known. A
/// wait between turns that names nobody is any agent's.
fn answers(stored: &Stored, event: &Event<'_>) -> bool {
    let anyones =
        stored.state.waiting_from.is_some() && stored.agent.is_empty() && stored.tool.is_empty();
    (anyones || stored.agent == event.subagent)
        && (stored.tool.is_empty() || event.tool == stored.tool)
}

/// The status after a wait that was answered.
fn back(stored: &Stored) -> Status {
    stored.state.waiting_from.unwrap_or(Status::Running)
}

/// What a kind asks for.
fn reason(kind: Kind) -> Option<Waiting> {
    let reasons = [
        ("permission", Waiting::Permission),
        ("question", Waiting::Question),
        ("plan", Waiting::Plan),
        ("elicitation", Waiting::Elicitation),
    ];
    reasons.into_iter().find(|(n, _)| *n == name(kind)).map(|(_, r)| r)
}

/// What a sign of a wait does to the wait of the record.
fn wait(stored: Option<&Stored>, event: &Event<'_>) -> Wait {
    let begin = Wait::Begin(reason(event.kind));
    let Some(stored) = stored.filter(|s| s.is_waiting()) else { return begin };
    if is_report(event.kind) {
        return Wait::Keep;
    }
    // What names neither tool nor subagent, such as a notification, never
    // replaces a wait that has a reason.
    if event.tool.is_empty() && event.subagent.is_empty() {
        return if stored.state.waiting_for.is_some() { Wait::Keep } else { begin };
    }
    match reason(event.kind) {
        Some(asks) if stored.state.waiting_for == Some(asks) => {
            if (stored.tool, stored.agent) == (event.tool, event.subagent) {
                Wait::Keep
            } else if (stored.tool, stored.agent) == ("", "") {
                Wait::Name(asks)
            } else {
                begin
            }
        }
        _ => begin,
    }
}

/// What the table says of one case.
#[derive(Debug)]
enum Says {
    Nothing(Ignored),
    Kept,
    Turns(Status, Detail),
    Open,
}

fn says(
    tables: &[(Kind, Option<Line>, Option<Line>)],
    stored: Option<&Stored>,
    event: &Event<'_>,
) -> Says {
    let (_, main, sub) = tables.iter().find(|(k, ..)| *k == event.kind).unwrap();
    let by_subagent = !event.subagent.is_empty();
    if by_subagent && is_report(event.kind) {
        // The page has no word on a subagent that reports by itself.
        return Says::Open;
    }
    let line = if by_subagent { sub } else { main };
    // Why nothing is written, where that is so.
    let nothing = Says::Nothing(match stored {
        _ if event.kind == Kind::None => Ignored::Uninteresting,
        None => Ignored::NoRecord,
        Some(s) if s.state.status == Status::Ended => Ignored::Ended,
        Some(_) if by_subagent => Ignored::Subagent,
        Some(_) => Ignored::Known,
    });
    let Some(line) = line else { return nothing };
    let column = stored
        .map_or(7, |s| STATUSES.iter().position(|(_, status)| *status == s.state.status).unwrap());
    let (cell, words) =
        (line.cells[column], if stored.is_some() { line.detail } else { line.create });
    let turns = |when, status, or| if when { Says::Turns(status, detail(words)) } else { or };
    // Back to what a subagent's wait interrupted, with the words for that.
    let answered = |when: bool, s: &Stored, or| match back(s) {
        _ if !when => or,
        Status::Idle => Says::Turns(Status::Idle, Detail::Finished),
        Status::Error => Says::Turns(Status::Error, Detail::Failed),
        status => Says::Turns(status, detail(words)),
    };
    match (cell, stored) {
        ('-', _) => nothing,
        ('.', _) => Says::Kept,
        ('a', Some(s)) => answered(answers(s, event), s, Says::Kept),
        ('A', Some(s)) => answered(answers(s, event), s, nothing),
        ('m', Some(s)) if s.state.waiting_from.is_some() || !s.agent.is_empty() => nothing,
        ('m', _) => Says::Turns(Status::Idle, detail(words)),
        // Whether another agent's or another tool's start answers is left open.
        ('t', Some(s)) if event.tool_use_answers && !answers(s, event) => Says::Open,
        ('t', Some(_)) => turns(event.tool_use_answers, Status::Running, Says::Kept),
        ('T', Some(s)) => answered(event.tool_use_answers && answers(s, event), s, nothing),
        ('c', _) => turns(event.compact_ends, Status::Running, Says::Kept),
        ('z', Some(s)) => answered(s.agent == event.subagent, s, Says::Kept),
        (letter, _) => {
            let status = STATUSES.iter().find(|(l, _)| *l == letter).unwrap().1;
            Says::Turns(status, detail(words))
        }
    }
}

fn tables() -> Vec<(Kind, Option<Line>, Option<Line>)> {
    KINDS.into_iter().map(|(_, kind)| (kind, line(MAIN, kind), line(SUBAGENT, kind))).collect()
}

#[test]
fn every_kind_on_every_record_does_what_the_table_says() {
    let tables = tables();
    assert!(tables.iter().all(|(kind, main, _)| main.is_some() || panic!("{kind:?}")));
    every(|stored, event, change| {
        let case = || format!("{} on {stored:?} gave {change:?}", shown(event));
        if stored.is_some_and(|s| is_late(s, event) || is_stale(s, event)) {
            return;
        }
        match says(&tables, stored, event) {
            Says::Open => {}
            Says::Nothing(why) => assert_eq!(change, Change::Ignore(why), "{}", case()),
            Says::Kept => {
                let Change::Write(write) = change else { panic!("{}", case()) };
                let Some(stored) = stored else { panic!("{}", case()) };
                assert_eq!(
                    (write.status, write.fresh, write.wait, write.detail),
                    (stored.state.status, false, Wait::Keep, Detail::Keep),
                    "{}",
                    case()
                );
            }
            Says::Turns(status, detail) => {
                let Change::Write(write) = change else { panic!("{}", case()) };
                assert_eq!(write.status, status, "{}", case());
                // A sign that adds nothing to the wait changes no word either.
                let adds_nothing =
                    reason(event.kind).is_some() && wait(stored, event) == Wait::Keep;
                assert_eq!(
                    write.detail,
                    if adds_nothing { Detail::Keep } else { detail },
                    "{}",
                    case()
                );
            }
        }
    });
}

#[test]
fn a_wait_begins_once_and_ends_with_the_status() {
    every(|stored, event, change| {
        let Change::Write(write) = change else { return };
        if write.stale {
            return;
        }
        let case = || format!("{} on {stored:?} gave {change:?}", shown(event));
        let waited = stored.is_some_and(Stored::is_waiting);
        match (waited, write.status == Status::Waiting) {
            (_, true) if reason(event.kind).is_some() || is_report(event.kind) => {
                assert_eq!(write.wait, wait(stored, event), "{}", case());
            }
            (true, true) => assert_eq!(write.wait, Wait::Keep, "{}", case()),
            (false, true) => panic!("nothing asked: {}", case()),
            (true, false) => assert_eq!(write.wait, Wait::Clear, "{}", case()),
            // There is no wait to speak of, and none begins.
            (false, false) => assert!(matches!(write.wait, Wait::Keep | Wait::Clear), "{}", case()),
        }
    });
}

#[test]
fn an_event_older_than_the_record_changes_nothing_but_the_count() {
    let tables = tables();
    every(|stored, event, change| {
        let case = || format!("{} on {stored:?} gave {change:?}", shown(event));
        let stale = stored.is_some_and(|s| is_stale(s, event));
        match change {
            Change::Write(write) => {
                assert_eq!(write.stale, stale, "{}", case());
                if let Some(stored) = stored.filter(|_| stale) {
                    let nothing = Write {
                        status: stored.state.status,
                        fresh: false,
                        stale: true,
                        turn: stored.state.turn,
                        ids: Ids::Keep,
                        wait: Wait::Keep,
                        detail: Detail::Keep,
                        background: None,
                    };
                    assert_eq!(write, nothing, "{}", case());
                }
            }
            Change::Ignore(_) => {}
        }
        // It is counted unless it would do nothing on time either: what does
        // nothing leaves no trace, whenever it comes.
        if let Some(s) = stored.filter(|s| stale && !is_late(s, event)) {
            match says(&tables, stored, event) {
                Says::Nothing(why) => assert_eq!(change, Change::Ignore(why), "{}", case()),
                _ => assert!(matches!(change, Change::Write(_)), "{} {s:?}", case()),
            }
        }
    });
}

#[test]
fn an_ended_session_is_revived_by_start_prompt_and_report_only() {
    every(|stored, event, change| {
        if stored.is_none_or(|s| s.state.status != Status::Ended) {
            return;
        }
        let revives = matches!(event.kind, Kind::Start | Kind::Prompt) && event.subagent.is_empty()
            || is_report(event.kind);
        if !revives {
            assert!(matches!(change, Change::Ignore(_)), "{} gave {change:?}", shown(event));
        }
    });
}

#[test]
fn a_subagent_changes_nothing_but_a_wait() {
    every(|stored, event, change| {
        let (Some(stored), false) = (stored, event.subagent.is_empty() || is_report(event.kind))
        else {
            return;
        };
        let Change::Write(write) = change else { return };
        let case = || format!("{} on {stored:?} gave {change:?}", shown(event));
        assert_eq!(
            (write.turn, write.ids, write.fresh, write.background),
            (stored.state.turn, Ids::Keep, false, None),
            "{}",
            case()
        );
        if write.status != stored.state.status {
            let asks = write.status == Status::Waiting && reason(event.kind).is_some();
            let answered = stored.is_waiting()
                && write.status == back(stored)
                && stored.agent == event.subagent;
            assert!(asks || answered, "{}", case());
        }
    });
}

#[test]
fn only_a_prompt_counts_as_a_turn() {
    every(|stored, event, change| {
        let Change::Write(write) = change else { return };
        let before = stored.map_or(0, |s| s.state.turn);
        let counts = event.kind == Kind::Prompt && !write.stale;
        assert_eq!(write.turn, before + u64::from(counts), "{} on {stored:?}", shown(event));
    });
}

#[test]
fn an_event_of_the_turn_before_is_dropped_and_only_a_prompt_begins_another() {
    every(|stored, event, change| {
        let case = || format!("{} on {stored:?} gave {change:?}", shown(event));
        if stored.is_some_and(|s| is_late(s, event)) {
            // The end of the session comes before the order of its turns.
            let over = stored.is_some_and(|s| s.state.status == Status::Ended)
                && event.kind != Kind::Prompt
                && !is_report(event.kind);
            let why = match event.kind {
                Kind::None => Ignored::Uninteresting,
                _ if over => Ignored::Ended,
                _ => Ignored::Late,
            };
            assert_eq!(change, Change::Ignore(why), "{}", case());
            return;
        }
        assert!(!matches!(change, Change::Ignore(Ignored::Late)), "{}", case());
        let Change::Write(write) = change else { return };
        if write.stale || is_report(event.kind) && !event.subagent.is_empty() {
            return;
        }
        // An event that is two turns late has an unknown id too: it is applied,
        // and the order stays as it is.
        let begins = match stored {
            None => true,
            Some(s) if s.turn.is_empty() => true,
            Some(s) => event.kind == Kind::Prompt && s.turn != event.turn_id,
        };
        let ids = match event.kind {
            Kind::Start if stored.is_some() => Ids::Clear,
            Kind::End => Ids::Keep,
            _ if !event.subagent.is_empty() || event.turn_id.is_empty() => Ids::Keep,
            _ if begins => Ids::Advance,
            _ => Ids::Keep,
        };
        assert_eq!(write.ids, ids, "{}", case());
    });
}

#[test]
fn only_a_start_and_a_first_event_look_around() {
    every(|stored, event, change| {
        let Change::Write(write) = change else { return };
        let starts =
            matches!(event.kind, Kind::Start | Kind::Report(Status::Started)) && !write.stale;
        assert_eq!(
            write.fresh,
            stored.is_none() || starts,
            "{} on {stored:?} gave {change:?}",
            shown(event)
        );
    });
}

#[test]
fn only_a_stop_says_how_much_goes_on_in_the_background() {
    every(|_, event, change| {
        let Change::Write(write) = change else { return };
        let stops = matches!(event.kind, Kind::Stop | Kind::Rest | Kind::IdleSign);
        let told = event.background.filter(|_| stops && !write.stale);
        assert_eq!(write.background, told, "{} gave {change:?}", shown(event));
    });
}

#[test]
fn nobody_but_the_prober_calls_a_session_discovered() {
    every(|stored, event, change| {
        let Change::Write(write) = change else { return };
        if write.status == Status::Discovered
            && stored.is_none_or(|s| s.state.status != Status::Discovered)
        {
            assert_eq!(
                event.kind,
                Kind::Report(Status::Discovered),
                "{} on {stored:?}",
                shown(event)
            );
        }
    });
}

/// A plain event of the main agent, for the tests below.
fn event(kind: Kind) -> Event<'static> {
    Event {
        kind,
        boot_ms: Some(2000),
        subagent: "",
        turn_id: "",
        tool: "",
        background: None,
        tool_use_answers: false,
        compact_ends: true,
    }
}

fn state(status: Status) -> State<'static> {
    State {
        status,
        turn: 1,
        turn_id: text(""),
        prev_turn_id: text(""),
        boot_ms: Some(1000),
        waiting_for: None,
        waiting_tool: text(""),
        waiting_agent: text(""),
        waiting_from: None,
    }
}

#[test]
fn ids_and_names_are_compared_after_unescaping() {
    let prev = State { prev_turn_id: text("t\\u002d\\ud83d\\ude00"), ..state(Status::Running) };
    let late = Event { turn_id: "t-😀", ..event(Kind::Stop) };
    assert_eq!(apply(Some(&prev), &late), Change::Ignore(Ignored::Late));
    let same = State { turn_id: text("\\u0074\\/1"), ..state(Status::Running) };
    let Change::Write(write) =
        apply(Some(&same), &Event { turn_id: "t/1", ..event(Kind::Progress) })
    else {
        panic!()
    };
    assert_eq!(write.ids, Ids::Keep);
    let waits = State {
        waiting_for: Some(Waiting::Permission),
        waiting_tool: text("B\\u0061sh"),
        waiting_agent: text("a\\\"1"),
        ..state(Status::Waiting)
    };
    let done = Event { tool: "Bash", subagent: "a\"1", ..event(Kind::ToolDone) };
    let Change::Write(write) = apply(Some(&waits), &done) else { panic!() };
    assert_eq!(write.status, Status::Running);
}

/// The life of a wait, as harnesses tell it: the request, the notification of
/// the same, a parallel tool of the same agent, and the answer.
#[test]
fn a_permission_stays_asked_until_its_own_tool_is_done() {
    let Change::Write(asked) =
        apply(Some(&state(Status::Running)), &Event { tool: "Bash", ..event(Kind::Permission) })
    else {
        panic!()
    };
    assert_eq!(
        (asked.status, asked.wait),
        (Status::Waiting, Wait::Begin(Some(Waiting::Permission)))
    );
    let waits = State {
        waiting_for: Some(Waiting::Permission),
        waiting_tool: text("Bash"),
        ..state(Status::Waiting)
    };
    for (event, status) in [
        (event(Kind::Permission), Status::Waiting),
        (event(Kind::ToolDone), Status::Waiting),
        (Event { tool: "Read", ..event(Kind::ToolDone) }, Status::Waiting),
        (Event { tool: "Bash", subagent: "sub", ..event(Kind::ToolDone) }, Status::Waiting),
        (event(Kind::Progress), Status::Waiting),
        (Event { tool: "Bash", ..event(Kind::ToolUse) }, Status::Waiting),
        (event(Kind::Keep), Status::Waiting),
        (Event { tool: "Bash", ..event(Kind::ToolDone) }, Status::Running),
        (Event { tool: "Bash", tool_use_answers: true, ..event(Kind::ToolUse) }, Status::Running),
        (event(Kind::Prompt), Status::Running),
        (event(Kind::Stop), Status::Idle),
        (event(Kind::IdleSign), Status::Idle),
        (event(Kind::Interrupt), Status::Idle),
    ] {
        match apply(Some(&waits), &event) {
            Change::Write(write) => assert_eq!(write.status, status, "{}", shown(&event)),
            Change::Ignore(_) => assert_eq!(status, Status::Waiting, "{}", shown(&event)),
        }
    }
}

/// A background subagent asks while the prompt is the user's.
#[test]
fn a_subagent_s_wait_goes_back_to_what_it_interrupted() {
    let asks = Event { tool: "Bash", subagent: "a1", ..event(Kind::Permission) };
    for from in [None, Some(Status::Idle), Some(Status::Error)] {
        let waits = State {
            waiting_for: Some(Waiting::Permission),
            waiting_tool: text("Bash"),
            waiting_agent: text("a1"),
            waiting_from: from,
            ..state(Status::Waiting)
        };
        let status = from.unwrap_or(Status::Running);
        for (kind, status) in [
            (Kind::ToolDone, status),
            (Kind::SubagentStop, status),
            (Kind::Prompt, Status::Waiting),
        ] {
            match apply(Some(&waits), &Event { kind, ..asks }) {
                Change::Write(write) => {
                    assert_eq!((write.status, write.wait), (status, Wait::Clear), "{kind:?}")
                }
                Change::Ignore(_) => assert_eq!(status, Status::Waiting, "{kind:?}"),
            }
        }
        // What the main agent does is not what was interrupted.
        for (kind, status) in [
            (Kind::Prompt, Status::Running),
            (Kind::Stop, Status::Idle),
            (Kind::StopFailure, Status::Error),
        ] {
            let Change::Write(write) = apply(Some(&waits), &event(kind)) else { panic!() };
            assert_eq!((write.status, write.wait), (status, Wait::Clear), "{kind:?}");
        }
    }
}

fn put(detail: Detail, words: &Words<'_>) -> String {
    let mut out = Vec::new();
    put_detail(&mut out, detail, words);
    String::from_utf8(out).unwrap()
}

const NO_WORDS: Words<'static> = Words { tool: "", message: "", error: "", reported: "" };

#[test]
fn details_read_as_the_format_says() {
    let some =
        Words { tool: "Bash", message: "All done.", error: "rate_limit", reported: "step 3" };
    for (detail, with, without) in [
        (Detail::Keep, "", ""),
        (Detail::Started, "session started", "session started"),
        (Detail::Processing, "processing prompt", "processing prompt"),
        (Detail::Working, "working", "working"),
        (Detail::Using, "using Bash", "using tool"),
        (Detail::Permission, "permission needed: Bash", "permission needed: tool"),
        (Detail::Input, "waiting for user input", "waiting for user input"),
        (Detail::Plan, "plan ready for review", "plan ready for review"),
        (Detail::Finished, "All done.", "finished"),
        (Detail::Failed, "turn failed: rate_limit", "turn failed (API error)"),
        (Detail::Interrupted, "interrupted", "interrupted"),
        (Detail::Compacting, "compacting", "compacting"),
        (Detail::Closed, "session closed", "session closed"),
        (Detail::Reported, "step 3", ""),
    ] {
        assert_eq!(put(detail, &some), with);
        assert_eq!(put(detail, &NO_WORDS), without);
    }
}

#[test]
fn a_message_is_cut_after_120_characters_with_three_dots() {
    for c in ["x", "é", "☃", "😀"] {
        let message =
            |n: usize| put(Detail::Finished, &Words { message: &c.repeat(n), ..NO_WORDS });
        assert_eq!(message(119), c.repeat(119));
        assert_eq!(message(120), c.repeat(120));
        assert_eq!(message(121), format!("{}...", c.repeat(120)));
        assert_eq!(message(4000), format!("{}...", c.repeat(120)));
        let error = put(Detail::Failed, &Words { error: &c.repeat(121), ..NO_WORDS });
        assert_eq!(error, format!("turn failed: {}...", c.repeat(120)));
    }
}

#[test]
fn a_message_stands_on_one_line() {
    for (message, want) in [
        ("a\nb", "a b"),
        ("a\r\nb\r\n", "a b "),
        ("\n\n", "  "),
        ("a\0b", "ab"),
        ("tab\tstays", "tab\tstays"),
    ] {
        assert_eq!(put(Detail::Finished, &Words { message, ..NO_WORDS }), want);
    }
    // What is left out does not count, at the end either.
    let message = format!("{}\r\r\0", "y".repeat(120));
    assert_eq!(put(Detail::Finished, &Words { message: &message, ..NO_WORDS }), "y".repeat(120));
    let message = format!("\r{}", "\n".repeat(121));
    assert_eq!(
        put(Detail::Finished, &Words { message: &message, ..NO_WORDS }),
        format!("{}...", " ".repeat(120))
    );
    assert_eq!(put(Detail::Using, &Words { tool: "a\nb\rc", ..NO_WORDS }), "using a bc");
    assert_eq!(put(Detail::Reported, &Words { reported: "a\nb", ..NO_WORDS }), "a b");
}

#[test]
fn event_names_and_instances_have_their_form() {
    let mut out = Vec::new();
    put_last_event(&mut out, "claude", "tool-use");
    assert_eq!(out, b"claude.tool-use");
    let mut out = Vec::new();
    put_instance(&mut out, u32::MAX, u64::MAX);
    assert_eq!(out, b"4294967295:18446744073709551615");
    let mut out = Vec::new();
    put_instance(&mut out, 1, 0);
    assert_eq!(out, b"1:0");
}

#[test]
fn the_names_of_waits_and_statuses_are_the_format_s() {
    assert_eq!(Waiting::ALL.map(Waiting::name), ["permission", "question", "plan", "elicitation"]);
    let statuses = ["started", "running", "idle", "waiting", "error", "ended", "discovered"];
    assert_eq!(Status::ALL.map(Status::name), statuses);
    for name in statuses {
        assert_eq!(Status::find(name).map(Status::name), Some(name));
    }
    assert!(Status::find("Running").is_none() && Status::find("").is_none());
    assert!(Key::ALL.iter().all(|key| Key::find(key.name().as_bytes()) == Some(*key)));
}
