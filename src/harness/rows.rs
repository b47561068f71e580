//! The rows: Claude Code, Codex, Pi, and `other` for any program that reports
//! by itself.
//!
//! Facts are from the harnesses' own documentation and schemas; man page
//! tongs-hook(1) has the same table for users. A new harness is a new row; a
//! new payload key is a new line in [`Want`](super::Want).

use super::Want as W;
use super::{EventRow, Fields, Identity, Kind as K, Looks, Pick, Row, Sessions};

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

/// An event that has no name but the harness's own.
const fn own(native: &'static str, kind: K) -> EventRow {
    on(native, native, kind)
}

/// Every harness that this build knows.
pub static ROWS: &[Row] = &[CLAUDE, CODEX, PI, OTHER];

const COMPACT_END: &[(&str, K)] = &[("manual", K::CompactEndManual), ("auto", K::CompactEndAuto)];

const CLAUDE: Row = Row {
    id: "claude",
    name: "Claude Code",
    process: Identity::Discoverable(Looks {
        names: &["claude", "claude.exe"],
        scripts: &["bin/claude", "claude-code/cli.js"],
        helpers: &["daemon", "server", "mcp", "--bg-spare", "--bg-pty-host"],
    }),
    sessions: Sessions::One,
    tool_use_answers: false,
    compact_ends: true,
    resume: "claude --resume ID",
    holds_stdin: &["SessionEnd"],
    marks: &[],
    fields: Fields {
        session: &[W::SessionId],
        cwd: &[W::Cwd],
        event: &[W::HookEventName],
        tool: &[W::ToolName],
        turn: &[W::PromptId],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage],
        error: &[W::Error],
        background: &[W::BackgroundTasks],
        title: &[W::SessionTitle],
    },
    events: &[
        by("SessionStart", "session-start", W::Source, &[("compact", K::CompactKeep)], K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        by(
            "PreToolUse",
            "tool-use",
            W::ToolName,
            &[("AskUserQuestion", K::Question), ("ExitPlanMode", K::Plan)],
            K::ToolUse,
        ),
        on("PostToolUse", "tool-done", K::ToolDone),
        own("PostToolUseFailure", K::ToolDone),
        own("PermissionDenied", K::ToolDone),
        on("PermissionRequest", "permission-request", K::Permission),
        on("Elicitation", "elicitation", K::Elicitation),
        own("ElicitationResult", K::ToolDone),
        by(
            "Notification",
            "notification",
            W::NotificationType,
            &[
                ("permission_prompt", K::Permission),
                ("elicitation_dialog", K::Elicitation),
                ("elicitation_url_dialog", K::Elicitation),
                ("elicitation_complete", K::ToolDone),
                ("elicitation_response", K::ToolDone),
                ("idle_prompt", K::IdleSign),
            ],
            K::Keep,
        ),
        on("Stop", "stop", K::Stop),
        on("StopFailure", "stop-failure", K::StopFailure),
        on("SubagentStart", "subagent-start", K::SubagentStart),
        on("SubagentStop", "subagent-stop", K::SubagentStop),
        on("PreCompact", "pre-compact", K::CompactStart),
        by("PostCompact", "post-compact", W::Trigger, COMPACT_END, K::CompactEndAuto),
        on("SessionEnd", "session-end", K::End),
        own("MessageDisplay", K::Progress),
        own("PostToolBatch", K::Progress),
        own("UserPromptExpansion", K::Progress),
        own("TaskCreated", K::Progress),
        own("TaskCompleted", K::Progress),
        own("CwdChanged", K::Keep),
        own("TeammateIdle", K::Keep),
    ],
};

const CODEX: Row = Row {
    id: "codex",
    name: "Codex",
    process: Identity::Discoverable(Looks {
        names: &["codex", "codex.exe"],
        scripts: &["bin/codex", "bin/codex.js"],
        helpers: &["mcp-server", "app-server", "mcp", "exec-server"],
    }),
    sessions: Sessions::One,
    tool_use_answers: false,
    compact_ends: true,
    resume: "codex resume ID",
    holds_stdin: &[],
    marks: &[W::ThreadIdDash],
    fields: Fields {
        session: &[W::SessionId, W::ThreadIdDash],
        cwd: &[W::Cwd],
        event: &[W::HookEventName, W::Type],
        tool: &[W::ToolName],
        turn: &[W::TurnId, W::TurnIdDash],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage, W::LastAssistantMessageDash],
        error: &[W::Error],
        background: &[],
        title: &[],
    },
    events: &[
        by("SessionStart", "session-start", W::Source, &[("compact", K::CompactKeep)], K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        by(
            "PreToolUse",
            "tool-use",
            W::ToolName,
            &[("request_user_input", K::Question)],
            K::ToolUse,
        ),
        on("PostToolUse", "tool-done", K::ToolDone),
        on("PermissionRequest", "permission-request", K::Permission),
        on("Stop", "stop", K::Stop),
        on("Interrupt", "interrupt", K::Interrupt),
        on("SubagentStart", "subagent-start", K::SubagentStart),
        on("SubagentStop", "subagent-stop", K::SubagentStop),
        on("PreCompact", "pre-compact", K::CompactStart),
        by("PostCompact", "post-compact", W::Trigger, COMPACT_END, K::CompactEndAuto),
        on("SessionEnd", "session-end", K::End),
        own("PreModelRequest", K::Progress),
        own("PostModelRequest", K::Keep),
        by("notify", "notification", W::Type, &[("agent-turn-complete", K::Stop)], K::None),
        own("agent-turn-complete", K::Stop),
    ],
};

const PI: Row = Row {
    id: "pi",
    name: "Pi",
    process: Identity::Emitter(Looks {
        names: &["pi"],
        scripts: &["bin/pi", "pi-coding-agent/dist/cli.js"],
        helpers: &[],
    }),
    sessions: Sessions::One,
    tool_use_answers: false,
    compact_ends: true,
    resume: "pi --session ID",
    holds_stdin: &[],
    marks: &[W::CtxSessionId],
    fields: Fields {
        session: &[W::CtxSessionId, W::SessionId],
        cwd: &[W::CtxCwd, W::Cwd],
        event: &[W::EventType],
        tool: &[W::EventToolName],
        turn: &[],
        subagent: &[],
        message: &[],
        error: &[],
        background: &[],
        title: &[],
    },
    events: &[
        by("session_start", "session-start", W::EventReason, &[("reload", K::Keep)], K::Start),
        on("before_agent_start", "prompt-submit", K::Prompt),
        own("agent_start", K::Progress),
        own("turn_start", K::Progress),
        own("turn_end", K::Progress),
        on("tool_execution_start", "tool-use", K::ToolUse),
        on("tool_execution_end", "tool-done", K::ToolDone),
        on("session_before_compact", "pre-compact", K::CompactStart),
        own("session_compact", K::Keep),
        own("agent_end", K::Keep),
        on("agent_settled", "stop", K::Stop),
        on("ui_prompt_start", "elicitation", K::Question),
        own("ui_prompt_end", K::ToolDone),
        on("session_shutdown", "session-end", K::End),
    ],
};

const OTHER: Row = Row {
    id: "other",
    name: "Other",
    process: Identity::Emitter(Looks { names: &[], scripts: &[], helpers: &[] }),
    sessions: Sessions::Many,
    tool_use_answers: false,
    compact_ends: true,
    resume: "",
    holds_stdin: &[],
    marks: &[],
    fields: Fields {
        session: &[W::SessionId],
        cwd: &[W::Cwd],
        event: &[W::HookEventName],
        tool: &[W::ToolName],
        turn: &[W::TurnId],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage],
        error: &[W::Error],
        background: &[],
        title: &[W::SessionTitle],
    },
    events: &[
        by("session-start", "session-start", W::Source, &[("compact", K::CompactKeep)], K::Start),
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
};
