//! Harnesses that load a plugin, which passes their events on: Pi, OpenCode, Amp,
//! Hermes. The envelopes are the plugins'.

use super::*;

/// Pi loads its extensions again, and the session goes on.
const RELOAD: &[(&str, K)] = &[("reload", K::Keep)];

pub(super) const PI: Row = Row {
    id: "pi",
    name: "Pi",
    process: Identity::Emitter(Looks {
        names: &["pi"],
        scripts: &["bin/pi", "pi-coding-agent/dist/cli.js"],
        ..LOOKS
    }),
    // Not every version says at the end whether the user had asked for it.
    compact_ends: false,
    resume: "pi --session ID",
    marks: &[W::CtxSessionId],
    fields: Fields {
        session: &[W::CtxSessionId, W::SessionId],
        cwd: &[W::CtxCwd, W::Cwd],
        event: &[W::EventType],
        tool: &[W::EventToolName],
        ..FIELDS
    },
    events: &[
        by("session_start", "session-start", W::EventReason, RELOAD, K::Start),
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
        by("session_shutdown", "session-end", W::EventReason, RELOAD, K::End),
    ],
    ..PLAIN
};

/// Both generations. A server holds many sessions, subagents' among them. What
/// says that one is a subagent's comes only when it is made or changed; so an idle
/// session that is not known is left alone. What a subagent asks is asked in its
/// parent's session, whose event it therefore is: our plugin, which remembers
/// whose child it is, names the parent as the session and the child in `agent_id`.
pub(super) const OPENCODE: Row = Row {
    id: "opencode",
    aliases: &["opencode-v2"],
    name: "OpenCode",
    process: Identity::Emitter(Looks {
        names: &["opencode", "opencode2", "opencode-cli", "opencode.exe"],
        scripts: &["bin/opencode", "bin/opencode2"],
        helpers: &["serve", "web", "--register"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    resume: "opencode --session ID",
    marks: &[W::PropertiesSessionId, W::DataSessionId, W::InputSessionId],
    fields: Fields {
        session: &[
            W::ParentId,
            W::PropertiesInfoParentId,
            W::DataInfoParentId,
            W::PropertiesSessionId,
            W::PropertiesInfoId,
            W::DataSessionId,
            W::InputSessionId,
        ],
        cwd: &[W::PropertiesInfoDirectory, W::DataInfoDirectory, W::LocationDirectory, W::Cwd],
        event: &[W::Type, W::Hook],
        tool: &[W::InputTool],
        // Our plugin asks a subagent's questions in the name of the parent.
        subagent: &[W::AgentId, W::ParentId, W::PropertiesInfoParentId, W::DataInfoParentId],
        child: &[W::AgentId, W::PropertiesSessionId, W::DataSessionId, W::InputSessionId],
        error: &[W::PropertiesErrorName],
        title: &[W::PropertiesInfoTitle, W::DataInfoTitle],
        ..FIELDS
    },
    events: &[
        on("session.created", "session-start", K::Start),
        on("chat.message", "prompt-submit", K::Prompt),
        by(
            "session.status",
            "session.status",
            W::PropertiesStatusType,
            &[("busy", K::Busy), ("idle", K::Rest)],
            K::Keep,
        ),
        on("tool.execute.before", "tool-use", K::ToolUse),
        on("tool.execute.after", "tool-done", K::ToolDone),
        on("permission.asked", "permission-request", K::Permission),
        own("permission.updated", K::Permission),
        own("permission.replied", K::ToolDone),
        on("question.asked", "elicitation", K::Question),
        own("question.replied", K::ToolDone),
        own("question.rejected", K::ToolDone),
        own("session.idle", K::Rest),
        // The user's breaking off comes as an error first.
        by(
            "session.error",
            "stop-failure",
            W::PropertiesErrorName,
            &[("MessageAbortedError", K::Interrupt)],
            K::StopFailure,
        ),
        own("session.compacted", K::Progress),
        own("session.updated", K::Keep),
        on("session.deleted", "session-end", K::End),
        own("session.execution.started", K::Prompt),
        on("session.execution.succeeded", "stop", K::Stop),
        own("session.execution.failed", K::StopFailure),
        on("session.execution.interrupted", "interrupt", K::Interrupt),
        own("session.renamed", K::Keep),
        own("session.retry.scheduled", K::Keep),
    ],
    ..PLAIN
};

pub(super) const AMP: Row = Row {
    id: "amp",
    name: "Amp",
    process: Identity::Emitter(Looks {
        names: &["amp"],
        scripts: &["bin/amp", "@sourcegraph/amp/dist/main.js"],
        helpers: &["--runner-id"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    resume: "amp threads continue ID",
    marks: &[W::DataThreadId],
    fields: Fields {
        session: &[W::DataThreadId],
        event: &[W::EventName],
        tool: &[W::DataTool],
        ..FIELDS
    },
    events: &[
        on("session.start", "session-start", K::Start),
        on("agent.start", "prompt-submit", K::Prompt),
        on("tool.call", "tool-use", K::ToolUse),
        on("tool.result", "tool-done", K::ToolDone),
        by(
            "agent.end",
            "stop",
            W::DataStatus,
            &[("error", K::StopFailure), ("cancelled", K::Interrupt)],
            K::Stop,
        ),
        // Our plugin's own word.
        on("session.end", "session-end", K::End),
    ],
    ..PLAIN
};

/// Its gateway holds many sessions. `on_session_end` is the end of a turn, and
/// what the turn came to stands in flags.
pub(super) const HERMES: Row = Row {
    id: "hermes",
    name: "Hermes",
    process: Identity::Emitter(Looks { names: &["hermes"], scripts: &["bin/hermes"], ..LOOKS }),
    sessions: Sessions::Many,
    resume: "hermes --resume ID",
    fields: Fields { turn: &[W::ExtraTurnId], message: &[W::ExtraResponse], ..FIELDS },
    events: &[
        on("on_session_start", "session-start", K::Start),
        on("pre_llm_call", "prompt-submit", K::Prompt),
        by("pre_tool_call", "tool-use", W::ToolName, &[("clarify", K::Question)], K::ToolUse),
        on("post_tool_call", "tool-done", K::ToolDone),
        on("pre_approval_request", "permission-request", K::Permission),
        own("post_approval_response", K::ToolDone),
        own("post_llm_call", K::Progress),
        set(
            "on_session_end",
            "stop",
            &[(W::ExtraInterrupted, K::Interrupt), (W::ExtraFailed, K::StopFailure)],
            K::Stop,
        ),
        on("on_session_finalize", "session-end", K::End),
    ],
    ..PLAIN
};
