//! Sessions as commands show them: which are wanted, in which order, and their
//! fields as text.

use std::io::Write;

use crate::cli::{Cell, Colour, Column, Fail, Out, Shown, Table};
use crate::harness;
use crate::record::scan::{Entries, Kind, quoted};
use crate::record::{Checked, Key, Status, limit};
use crate::store::annotate::{Derived, View, put_session};
use crate::store::seen::Phase;
use crate::sys::clock::{Now, boot_id};
use crate::sys::env::{Env, Var};
use crate::sys::stdio;

/// Columns of a table where no terminal says.
const COLUMNS: usize = 80;

/// The view of a reader: now, and from here.
pub fn of(now: &Now) -> View {
    View {
        now_ms: now.wall_ms,
        boot_ms: now.boot_ms,
        boot: boot_id(),
        pid_ns: crate::probe::own_pid_ns(),
    }
}

/// Which sessions are wanted.
pub struct Filter {
    /// Of one of these harnesses; empty is any.
    pub harnesses: Vec<String>,
    /// With one of these statuses; empty is any.
    pub statuses: Vec<Status>,
    /// That need attention.
    pub attention: bool,
    /// In this pane.
    pub pane: Option<String>,
    /// That their harness can take up again.
    pub resumable: bool,
}

/// Variables that name a pane.
const PANES: [&str; 4] = ["TMUX_PANE", "ZELLIJ_PANE_ID", "WEZTERM_PANE", "KITTY_WINDOW_ID"];

impl Filter {
    /// Whether a session is wanted.
    pub fn takes(&self, record: &Checked<'_>, derived: &Derived) -> bool {
        let harness = record.harness();
        (self.harnesses.is_empty() || self.harnesses.iter().any(|h| harness.is(h)))
            && (self.statuses.is_empty()
                || record.status.is_some_and(|s| self.statuses.contains(&s)))
            && (!self.attention || derived.needs_attention)
            && self.pane.as_ref().is_none_or(|pane| in_pane(record, pane))
            && (!self.resumable || is_resumable(record))
    }
}

fn in_pane(record: &Checked<'_>, pane: &str) -> bool {
    record.raw(Key::TerminalEnv).is_some_and(|env| {
        Entries::of(env).any(|(key, kind, value)| {
            PANES.iter().any(|name| key.is(name)) && quoted(kind, value).is_some_and(|v| v.is(pane))
        })
    })
}

/// Whether the harness has a command that takes the session up again, and the
/// id is one that can stand in a command line.
fn is_resumable(record: &Checked<'_>) -> bool {
    let mut name = [0; limit::NAME];
    let row = record.harness().copy(&mut name).and_then(harness::find);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !record.process
        && row.is_some_and(|row| !row.resume.is_empty())
        && record.text(Key::SessionId).chars().all(plain)
}

/// A session that was read, kept.
#[derive(Clone)]
pub struct Row {
    /// The session as `status --json` prints it.
    pub json: Vec<u8>,
    /// The status; `None` for one that schema 1 does not know.
    pub status: Option<Status>,
    /// The status as it stands.
    pub status_text: String,
    /// The harness.
    pub harness: String,
    /// The last component of the directory.
    pub repo: String,
    /// The branch, where known.
    pub branch: String,
    /// The bridge that it came over; empty for a session of this machine.
    pub bridge: String,
    /// The machine that it says it is on, where a bridge brought it.
    pub host: String,
    /// The detail.
    pub detail: String,
    /// The canonical id; the session id for schema 0.
    pub id: String,
    /// The derived fields.
    pub derived: Derived,
    /// The status that it is in, as marks of what was seen tell it apart.
    pub phase: Option<Phase>,
}

impl Row {
    /// Keeps a session.
    pub fn of(record: &Checked<'_>, derived: &Derived) -> Row {
        let mut json = Vec::new();
        put_session(&mut json, record, derived);
        let text = |key| record.text(key).to_string();
        Row {
            json,
            status: record.status,
            status_text: match record.status {
                Some(status) => status.name().to_string(),
                None => text(Key::Status),
            },
            harness: record.harness().to_string(),
            repo: text(Key::Repo),
            branch: text(Key::Branch),
            bridge: text(Key::Bridge),
            host: text(Key::Host),
            detail: text(Key::Detail),
            id: if record.legacy { text(Key::SessionId) } else { text(Key::CanonicalId) },
            derived: *derived,
            phase: Phase::of(record),
        }
    }

    /// The repository, with its branch where that is known, and with the bridge
    /// behind which it is. The bridge's name is the user's; the machine's is only
    /// what the other side says, and never stands alone.
    pub fn place(&self) -> String {
        let mut place = self.bridge.clone();
        if !place.is_empty() {
            if !self.host.is_empty() && self.host != self.bridge {
                place.extend(["/", &self.host]);
            }
            place.push(':');
        }
        place.push_str(&self.repo);
        if !self.branch.is_empty() {
            place.extend(["@", &self.branch]);
        }
        place
    }

    /// The status for people.
    pub fn status_cell(&self) -> Cell {
        let colour = colour(self.status, self.derived.needs_attention);
        Cell::new(self.status_words()).colour(colour)
    }

    /// The status and what goes with it, in words.
    pub fn status_words(&self) -> String {
        let mut text = self.status_text.clone();
        if self.derived.quiet {
            text.push('?');
        }
        if self.derived.unverified {
            text.push_str(" (unverified)");
        }
        if self.derived.seen && self.may_ask() {
            text.push_str(if self.derived.snoozed { " (snoozed)" } else { " (seen)" });
        }
        text
    }

    /// Whether its status is one that may ask for its user.
    pub fn may_ask(&self) -> bool {
        matches!(self.status, Some(Status::Waiting | Status::Error | Status::Idle))
    }

    /// Whether the session asks for its user.
    pub fn asks(&self) -> bool {
        asks(self.status, &self.derived)
    }

    /// One field as text: a string as it is, anything else as its JSON; empty where
    /// the session does not have it.
    pub fn field(&self, name: &str) -> String {
        let found = Entries::of(&self.json).find(|(key, ..)| key.is(name));
        found.map_or_else(String::new, |(_, kind, value)| plain(kind, value))
    }
}

/// A value as text, as [`Row::field`] has it.
fn plain(kind: Kind, value: &[u8]) -> String {
    match quoted(kind, value) {
        Some(text) => text.to_string(),
        None if value == b"null" => String::new(),
        None => String::from_utf8_lossy(value).into_owned(),
    }
}

/// The colour of a status; of a rest, whether it needs attention.
pub fn colour(status: Option<Status>, needs_attention: bool) -> Colour {
    match status {
        Some(Status::Waiting) => Colour::Yellow,
        Some(Status::Error) => Colour::Red,
        Some(Status::Running) => Colour::Green,
        Some(Status::Started) => Colour::Blue,
        Some(Status::Idle) if needs_attention => Colour::Magenta,
        Some(Status::Ended | Status::Discovered) => Colour::Dim,
        Some(Status::Idle) | None => Colour::Plain,
    }
}

/// Whether a session with this status asks for its user: a wait or an error
/// until it is over, a rest until it was seen, and nothing that is put off.
pub fn asks(status: Option<Status>, derived: &Derived) -> bool {
    match status {
        Some(Status::Waiting | Status::Error) => !derived.snoozed,
        Some(Status::Idle) => derived.needs_attention && !derived.seen,
        _ => false,
    }
}

/// Whether a session with this status asks for its user, or did until it was seen
/// or put off.
pub fn may_ask(status: Option<Status>, derived: &Derived) -> bool {
    asks(status, &Derived { seen: false, snoozed: false, ..*derived })
}

/// The names of the fields that a session may have.
pub fn field_names() -> Vec<&'static str> {
    Key::ALL.iter().map(|key| key.name()).collect()
}

/// Reads a list of field names; the error is the first that is none.
pub fn fields(list: &str) -> Result<Vec<String>, String> {
    let known = field_names();
    let check = |name: &str| {
        if known.contains(&name) { Ok(name.to_string()) } else { Err(name.to_string()) }
    };
    list.split(',').map(check).collect()
}

/// An order of sessions.
#[derive(Clone, Copy)]
pub enum Order {
    /// Who needs attention first, then by status.
    Attention,
    /// By status.
    Status,
    /// The newest event first.
    Age,
    /// By repository.
    Repo,
}

impl Order {
    /// The names of the orders.
    pub const NAMES: &'static [&'static str] = &["attention", "status", "age", "repo"];

    /// Finds an order by its name.
    pub fn find(name: &str) -> Option<Order> {
        Some(match name {
            "attention" => Order::Attention,
            "status" => Order::Status,
            "age" => Order::Age,
            "repo" => Order::Repo,
            _ => return None,
        })
    }

    /// Sorts; what is equal goes by repository and id, so that the order does
    /// not change from one call to the next.
    pub fn sort(self, rows: &mut [Row]) {
        let key = |row: &Row| match self {
            // Who asks, the longest first.
            Order::Attention if row.asks() => {
                (false, rank(row), u64::MAX - row.derived.age_seconds)
            }
            Order::Attention => (true, rank(row), 0),
            Order::Status => (false, rank(row), 0),
            Order::Age => (false, 0, row.derived.age_seconds),
            Order::Repo => (false, 0, 0),
        };
        rows.sort_by(|a, b| (key(a), &a.repo, &a.id).cmp(&(key(b), &b.repo, &b.id)));
    }
}

/// The statuses in the order of urgency.
pub const URGENCY: [Status; 7] = [
    Status::Waiting,
    Status::Error,
    Status::Running,
    Status::Started,
    Status::Idle,
    Status::Discovered,
    Status::Ended,
];

/// The place of a status in the order of urgency.
pub fn rank(row: &Row) -> usize {
    URGENCY.iter().position(|s| Some(*s) == row.status).unwrap_or(URGENCY.len())
}

/// An age for people: `5s`, `12m`, `3h07m`, `2d4h`.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Sessions for people, one a line, with their ids or without.
pub fn table<'r>(rows: impl IntoIterator<Item = &'r Row>, ids: bool) -> Table {
    let mut columns = vec![
        Column::new("STATUS"),
        Column::new("AGE").right(),
        Column::new("AGENT"),
        Column::new("REPO").flex(),
        Column::new("DETAIL").flex(),
    ];
    columns.extend(ids.then(|| Column::new("ID")));
    let mut table = Table::new(columns);
    for row in rows {
        table.push(vec![
            row.status_cell(),
            Cell::new(age(row.derived.age_seconds)),
            Cell::new(row.harness.clone()),
            Cell::new(row.place()),
            Cell::new(row.detail.clone()),
            Cell::new(row.derived.short_id().to_string()).colour(Colour::Dim),
        ]);
    }
    table
}

/// Prints a table, as wide and as colourful as standard output is.
pub fn put_table<W: Write>(out: &mut Out<W>, env: &Env<'_>, table: &Table) -> Result<(), Fail> {
    let terminal = stdio::out_is_terminal();
    let told = env.text(Var::COLUMNS).and_then(|c| c.parse().ok()).filter(|c| *c > 0);
    let width = match told {
        Some(columns) => columns,
        None if terminal => stdio::out_width().unwrap_or(COLUMNS),
        None => usize::MAX,
    };
    out.put(table.render(width, terminal && is_colourful(env)).as_bytes())
}

/// Whether the user's terminal has colours and they are wanted.
pub fn is_colourful(env: &Env<'_>) -> bool {
    !is_dumb(env) && env.get(Var::NO_COLOR).is_none()
}

/// Whether the terminal cannot move its cursor.
pub fn is_dumb(env: &Env<'_>) -> bool {
    env.get(Var::TERM) == Some(b"dumb")
}

/// A session's fields as text, by name in its order; without those that are empty.
pub fn all_fields(row: &Row) -> Vec<(String, String)> {
    let entries = Entries::of(&row.json);
    let mut fields: Vec<(String, String)> = entries
        .map(|(name, kind, value)| (name.to_string(), plain(kind, value)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    fields.sort_unstable();
    fields
}

/// A session's fields for people, one a line.
pub fn lines(row: &Row) -> String {
    let line = |(name, value): &(String, String)| {
        format!("{:<18} {}\n", Shown(name).to_string(), Shown(value))
    };
    all_fields(row).iter().map(line).collect()
}
