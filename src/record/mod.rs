//! The record as bytes: finding its fields, checking them, its canonical id,
//! and writing JSON.
//!
//! Everything here is pure: no file, no clock, no environment. [`scan`] and
//! [`check`] never allocate and take time linear in the record's length; both
//! facts are tested. tongs-record(5) describes the format.

pub mod check;
pub mod id;
pub mod out;
pub mod scan;
pub mod sha256;
#[cfg(target_arch = "x86_64")]
mod sha_ni;
pub mod text;

pub use check::{Checked, Status};
pub use scan::{Fault, FaultKind, Kind, Scan};
pub use text::Text;

/// Largest record, in bytes.
pub const MAX_BYTES: usize = 65_536;

/// Byte limits of the text fields, as UTF-8 after unescaping.
pub mod limit {
    /// session_id, instance_id, repo, last_event, desktop_target.
    pub const ID: usize = 512;
    /// cwd, worktree.
    pub const PATH: usize = 4096;
    /// detail, title, branch.
    pub const DETAIL: usize = 512;
    /// tool, waiting_tool.
    pub const TOOL: usize = 256;
    /// harness_id, terminal.
    pub const NAME: usize = 64;
    /// pid, status, source, record_kind.
    pub const SHORT: usize = 32;
    /// process_start, canonical_id, a key of terminal_env.
    pub const TOKEN: usize = 128;
    /// process_identity.
    pub const IDENTITY: usize = 16;
    /// Entries of terminal_env.
    pub const ENV_ITEMS: usize = 32;
    /// A value of terminal_env.
    pub const ENV_VALUE: usize = 1024;
    /// Seconds that a written `ts` may lie in the future.
    pub const FUTURE: u64 = 300;
}

macro_rules! keys {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A key that tongs knows; all other keys are kept as they are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Key { $(#[doc = concat!("`", $name, "`")] $variant),* }

        impl Key {
            /// Every known key, in the order in which records are written.
            pub const ALL: &'static [Key] = &[$(Key::$variant),*];

            /// The key as it stands in a record.
            pub const fn name(self) -> &'static str {
                match self { $(Key::$variant => $name),* }
            }

        }
    };
}

keys! {
    SchemaVersion = "schema_version",
    RecordKind = "record_kind",
    CanonicalId = "canonical_id",
    SessionId = "session_id",
    InstanceId = "instance_id",
    HarnessId = "harness_id",
    Agent = "agent",
    Repo = "repo",
    Cwd = "cwd",
    Pid = "pid",
    ProcessStart = "process_start",
    ProcessIdentity = "process_identity",
    Status = "status",
    Detail = "detail",
    Tool = "tool",
    Ts = "ts",
    Started = "started",
    Source = "source",
    LastEvent = "last_event",
    Terminal = "terminal",
    TerminalEnv = "terminal_env",
    FocusTarget = "focus_target",
    Sequence = "sequence",
    ArrivalSequence = "arrival_sequence",
    // ours, kept by a reference reader
    BootId = "boot_id",
    PidNs = "pid_ns",
    TsMs = "ts_ms",
    BootMs = "boot_ms",
    MonoMs = "mono_ms",
    StatusMs = "status_ms",
    Turn = "turn",
    TurnId = "turn_id",
    PrevTurnId = "prev_turn_id",
    WaitingFor = "waiting_for",
    WaitingSince = "waiting_since",
    WaitingTool = "waiting_tool",
    WaitingAgent = "waiting_agent",
    WaitingFrom = "waiting_from",
    Background = "background",
    Branch = "branch",
    Worktree = "worktree",
    Title = "title",
    Method = "method",
    LaunchId = "launch_id",
    ProfileId = "profile_id",
    TerminalId = "terminal_id",
    Bridge = "bridge",
    Host = "host",
    // derived by readers: never stored, dropped where found
    ShortId = "short_id",
    AgeSeconds = "age_seconds",
    NeedsAttention = "needs_attention",
    Seen = "seen",
    Quiet = "quiet",
    Unverified = "unverified",
}

/// Slots of the table that keys are found by: a power of two, mostly empty.
const SLOTS: usize = 256;

/// A slot for a name: its length and three of its bytes tell most keys apart.
const fn slot(name: &[u8]) -> usize {
    match name.len() {
        0 => 0,
        n => {
            let (first, middle, last) =
                (name[0] as usize, name[n / 2] as usize, name[n - 1] as usize);
            (n * 7 + first * 31 + middle * 17 + last * 5) % SLOTS
        }
    }
}

/// For each slot a key's place in [`Key::ALL`] plus one; 0 is empty. A taken
/// slot passes the key on to the next.
const TABLE: [u8; SLOTS] = {
    let mut table = [0; SLOTS];
    let mut i = 0;
    while i < Key::ALL.len() {
        let mut s = slot(Key::ALL[i].name().as_bytes());
        while table[s] != 0 {
            s = (s + 1) % SLOTS;
        }
        table[s] = i as u8 + 1;
        i += 1;
    }
    table
};

/// A key as it stands in a compact record, `"NAME":`.
#[derive(Clone, Copy)]
struct Label {
    words: [u64; 3],
    len: u32,
}

/// The labels of [`Key::ALL`].
static LABELS: [Label; Key::ALL.len()] = {
    let mut labels = [Label { words: [0; 3], len: 0 }; Key::ALL.len()];
    let mut i = 0;
    while i < labels.len() {
        let name = Key::ALL[i].name().as_bytes();
        let mut at = 0;
        while at < name.len() + 3 {
            let byte = match at {
                0 => b'"',
                at if at <= name.len() => name[at - 1],
                at if at == name.len() + 1 => b'"',
                _ => b':',
            };
            labels[i].words[at / 8] |= (byte as u64) << (at % 8 * 8);
            at += 1;
        }
        labels[i].len = at as u32;
        i += 1;
    }
    labels
};

impl Key {
    /// The key of this place in [`Key::ALL`] and the length of its label, if
    /// `bytes` begin with that: most records have their keys in one order and no
    /// blanks around them.
    #[inline(always)]
    pub(crate) fn labels(place: usize, bytes: &[u8]) -> Option<(Key, usize)> {
        let (key, label) = (*Key::ALL.get(place)?, LABELS.get(place)?);
        let [a, b, c] = [0, 8, 16].map(|at| text::word_at(bytes, at));
        let (a, b, c) = (a? ^ label.words[0], b? ^ label.words[1], c? ^ label.words[2]);
        // What stands behind the label is shifted out.
        let differs = match label.len {
            0..=8 => a << (64 - 8 * label.len),
            9..=16 => a | b << (128 - 8 * label.len),
            _ => a | b | c << (192 - 8 * label.len),
        };
        (differs == 0).then_some((key, label.len as usize))
    }

    /// Finds a key by its unescaped name.
    pub fn find(name: &[u8]) -> Option<Key> {
        let mut s = slot(name);
        loop {
            let key = Key::ALL[usize::from(TABLE[s]).checked_sub(1)?];
            if text::same_bytes(key.name().as_bytes(), name) {
                return Some(key);
            }
            s = (s + 1) % SLOTS;
        }
    }

    /// Whether readers compute this field, so that a stored one is dropped.
    pub const fn is_derived(self) -> bool {
        self as u8 >= Key::ShortId as u8
    }
    /// Bytes that a text under this key may have, where the format sets a limit
    /// that readers check too; the ids of schema 1 are checked apart.
    pub const fn checked_limit(self) -> Option<usize> {
        Some(match self {
            Key::Cwd => limit::PATH,
            Key::Repo | Key::InstanceId | Key::LastEvent => limit::ID,
            Key::Detail => limit::DETAIL,
            Key::Tool => limit::TOOL,
            Key::Terminal => limit::NAME,
            Key::ProcessStart | Key::CanonicalId => limit::TOKEN,
            Key::ProcessIdentity => limit::IDENTITY,
            Key::Status | Key::Source | Key::RecordKind => limit::SHORT,
            _ => return None,
        })
    }

    /// Whether a reader shows a value of this type under this key; the check
    /// has already refused wrong types where the format says so.
    pub const fn has_shape(self, kind: Kind) -> bool {
        match self {
            Key::SchemaVersion
            | Key::Ts
            | Key::Started
            | Key::Sequence
            | Key::ArrivalSequence
            | Key::TsMs
            | Key::BootMs
            | Key::MonoMs
            | Key::StatusMs
            | Key::Turn
            | Key::WaitingSince
            | Key::Background => matches!(kind, Kind::Integer),
            Key::TerminalEnv | Key::FocusTarget => matches!(kind, Kind::Object),
            _ => matches!(kind, Kind::Text { .. }),
        }
    }
}
