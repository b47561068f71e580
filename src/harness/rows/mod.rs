//! The rows: one for each harness, in a file for each family, and `other` for
//! any program that reports by itself.
//!
//! Facts are from the harnesses' own documentation, sources and schemas; man
//! page tongs-hook(1) has the same tables for users. A new harness is a new row;
//! a new payload key is a new line in [`Want`](super::Want).

mod editors;
mod forks;
mod natives;
mod plugins;
mod shells;

use super::Want as W;
use super::{EnvNames, EventRow, Fields, Identity, Kind as K, Looks, Pick, Row, Sessions};

const fn on(native: &'static str, normal: &'static str, kind: K) -> EventRow {
    EventRow { native, normal, pick: Pick::Is(kind) }
}

const fn by(
    native: &'static str,
    normal: &'static str,
    want: W,
    kinds: &'static [(&'static str, K)],
    or: K,
) -> EventRow {
    EventRow { native, normal, pick: Pick::By(want, kinds, or) }
}

const fn set(
    native: &'static str,
    normal: &'static str,
    kinds: &'static [(W, K)],
    or: K,
) -> EventRow {
    EventRow { native, normal, pick: Pick::Set(kinds, or) }
}

/// An event that has no name but the harness's own.
const fn own(native: &'static str, kind: K) -> EventRow {
    on(native, native, kind)
}

/// The row of a program that is no harness.
pub static OTHER: Row = shells::OTHER;

/// Every harness that this build knows.
pub static ROWS: &[Row] = &[
    natives::CLAUDE,
    natives::CODEX,
    plugins::PI,
    forks::GEMINI,
    forks::QWEN,
    forks::DROID,
    forks::KIMI,
    forks::DEVIN,
    natives::COPILOT,
    natives::GROK,
    editors::CURSOR,
    editors::ANTIGRAVITY,
    editors::WINDSURF,
    editors::CLINE,
    editors::KIRO,
    plugins::OPENCODE,
    plugins::AMP,
    plugins::HERMES,
    shells::GOOSE,
    shells::CRUSH,
    shells::OTHER,
];

/// What most rows say; a row names what it has otherwise.
const PLAIN: Row = Row {
    id: "",
    aliases: &[],
    name: "",
    process: Identity::Emitter(LOOKS),
    sessions: Sessions::One,
    tool_use_answers: false,
    compact_ends: true,
    resume: "",
    holds_stdin: &[],
    marks: &[],
    env: EnvNames::NONE,
    reply: "",
    nameless: false,
    fields: FIELDS,
    events: &[],
};

const LOOKS: Looks = Looks { names: &[], scripts: &[], helpers: &[], hosts: &[] };

const FIELDS: Fields = Fields {
    session: &[W::SessionId],
    cwd: &[W::Cwd],
    event: &[W::HookEventName],
    tool: &[W::ToolName],
    turn: &[],
    subagent: &[],
    child: &[],
    message: &[],
    error: &[],
    background: &[],
    title: &[],
};

const COMPACT: &[(&str, K)] = &[("compact", K::CompactKeep)];

const COMPACT_END: &[(&str, K)] = &[("manual", K::CompactEndManual), ("auto", K::CompactEndAuto)];
