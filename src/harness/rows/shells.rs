//! Harnesses with few events of their own, and programs that report by
//! themselves: Goose, Crush, `other`.

use super::*;

/// The command line program, and the desktop's server.
pub(super) const GOOSE: Row = Row {
    id: "goose",
    name: "Goose",
    process: Identity::Emitter(Looks { names: &["goose"], hosts: &["goosed"], ..LOOKS }),
    sessions: Sessions::Many,
    resume: "goose session --resume --session-id ID",
    fields: Fields {
        cwd: &[W::WorkingDir],
        event: &[W::EventName],
        message: &[W::LastAssistantMessage],
        ..FIELDS
    },
    events: &[
        on("SessionStart", "session-start", K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        on("PreToolUse", "tool-use", K::ToolUse),
        own("PreToolUseResult", K::Progress),
        on("PostToolUse", "tool-done", K::ToolDone),
        own("PostToolUseFailure", K::ToolDone),
        own("BeforeReadFile", K::ToolUse),
        own("BeforeShellExecution", K::ToolUse),
        own("AfterFileEdit", K::ToolDone),
        own("AfterShellExecution", K::ToolDone),
        on("Stop", "stop", K::Stop),
        on("SessionEnd", "session-end", K::End),
    ],
    ..PLAIN
};

/// It has one event, so that running is all that can be told.
pub(super) const CRUSH: Row = Row {
    id: "crush",
    name: "Crush",
    process: Identity::Discoverable(Looks { names: &["crush", "crush.exe"], ..LOOKS }),
    resume: "crush --session ID",
    env: EnvNames { mark: "CRUSH_EVENT", ..EnvNames::NONE },
    fields: Fields { event: &[W::EventName], ..FIELDS },
    events: &[on("PreToolUse", "tool-use", K::ToolUse)],
    ..PLAIN
};

pub(super) const OTHER: Row = Row {
    id: "other",
    name: "Other",
    process: Identity::Emitter(LOOKS),
    sessions: Sessions::Many,
    fields: Fields {
        turn: &[W::TurnId],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage],
        error: &[W::Error],
        title: &[W::SessionTitle],
        ..FIELDS
    },
    events: &[
        by("session-start", "session-start", W::Source, COMPACT, K::Start),
        own("prompt-submit", K::Prompt),
        own("tool-use", K::ToolUse),
        own("tool-done", K::ToolDone),
        own("permission-request", K::Permission),
        own("elicitation", K::Elicitation),
        own("notification", K::Keep),
        own("stop", K::Stop),
        own("stop-failure", K::StopFailure),
        own("interrupt", K::Interrupt),
        own("pre-compact", K::CompactStart),
        by("post-compact", "post-compact", W::Trigger, COMPACT_END, K::CompactEndAuto),
        own("subagent-start", K::SubagentStart),
        own("subagent-stop", K::SubagentStop),
        own("session-end", K::End),
    ],
    ..PLAIN
};
