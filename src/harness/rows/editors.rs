//! Harnesses that live in editors as well: Cursor, Antigravity, Windsurf, Cline,
//! Kiro. One process of an editor holds many sessions.

use super::*;

/// The editor and its command line program, which read the same hooks.
pub(super) const CURSOR: Row = Row {
    id: "cursor",
    name: "Cursor",
    process: Identity::Emitter(Looks {
        names: &["cursor-agent"],
        scripts: &["bin/cursor-agent", "cursor-agent/versions/*/index.js"],
        helpers: &["worker"],
        hosts: &["cursor"],
    }),
    sessions: Sessions::Many,
    compact_ends: false,
    resume: "cursor-agent --resume ID",
    marks: &[W::CursorVersion],
    env: EnvNames { mark: "CURSOR_VERSION", ..EnvNames::NONE },
    fields: Fields {
        session: &[W::ConversationId, W::SessionId],
        cwd: &[W::Cwd, W::WorkspaceRoot],
        turn: &[W::GenerationId],
        subagent: &[W::IsBackgroundAgent, W::SubagentId],
        ..FIELDS
    },
    events: &[
        on("sessionStart", "session-start", K::Start),
        on("beforeSubmitPrompt", "prompt-submit", K::Prompt),
        on("preToolUse", "tool-use", K::ToolUse),
        on("postToolUse", "tool-done", K::ToolDone),
        own("postToolUseFailure", K::ToolDone),
        own("beforeShellExecution", K::Busy),
        own("beforeMCPExecution", K::Busy),
        own("beforeReadFile", K::Busy),
        own("afterShellExecution", K::Progress),
        own("afterMCPExecution", K::Progress),
        own("afterFileEdit", K::Progress),
        own("afterAgentThought", K::Progress),
        own("afterAgentResponse", K::Keep),
        by(
            "stop",
            "stop",
            W::Status,
            &[("error", K::StopFailure), ("aborted", K::Interrupt)],
            K::Stop,
        ),
        on("subagentStart", "subagent-start", K::SubagentStart),
        on("subagentStop", "subagent-stop", K::SubagentStop),
        on("preCompact", "pre-compact", K::CompactStart),
        on("sessionEnd", "session-end", K::End),
    ],
    ..PLAIN
};

/// The editor and `agy`. The payload does not name the event.
pub(super) const ANTIGRAVITY: Row = Row {
    id: "antigravity",
    name: "Antigravity",
    process: Identity::Discoverable(Looks {
        names: &["agy", "agy.exe"],
        hosts: &["antigravity"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    // The editor's end of a tool does not say which; the next call of the model
    // says that all have ended.
    tool_use_answers: true,
    resume: "agy --conversation ID",
    marks: &[W::ArtifactDirectory],
    reply: "{}",
    fields: Fields {
        session: &[W::ConversationIdCamel],
        cwd: &[W::WorkspacePath],
        event: &[],
        tool: &[W::ToolCallName],
        error: &[W::Error],
        ..FIELDS
    },
    events: &[
        on("SessionStart", "session-start", K::Start),
        // The first call of the model in a turn.
        by("PreInvocation", "prompt-submit", W::InvocationNum, &[("0", K::Prompt)], K::Busy),
        own("PostInvocation", K::Progress),
        by("PreToolUse", "tool-use", W::ToolCallName, &[("ask_question", K::Question)], K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        set("Stop", "stop", &[(W::Error, K::StopFailure)], K::Stop),
    ],
    ..PLAIN
};

pub(super) const WINDSURF: Row = Row {
    id: "windsurf",
    name: "Windsurf",
    process: Identity::Emitter(Looks { hosts: &["windsurf"], ..LOOKS }),
    sessions: Sessions::Many,
    marks: &[W::TrajectoryId],
    fields: Fields {
        session: &[W::TrajectoryId],
        cwd: &[W::ToolInfoCwd],
        event: &[W::AgentActionName],
        tool: &[],
        turn: &[W::ExecutionId],
        message: &[W::ToolInfoResponse],
        ..FIELDS
    },
    events: &[
        on("pre_user_prompt", "prompt-submit", K::Prompt),
        on("pre_read_code", "tool-use", K::Busy),
        own("pre_write_code", K::Busy),
        own("pre_run_command", K::Busy),
        own("pre_mcp_tool_use", K::Busy),
        on("post_read_code", "tool-done", K::Progress),
        own("post_write_code", K::Progress),
        own("post_run_command", K::Progress),
        own("post_mcp_tool_use", K::Progress),
        on("post_cascade_response", "stop", K::Stop),
        own("post_cascade_response_with_transcript", K::Stop),
    ],
    ..PLAIN
};

/// The extension of several editors, and the program of that name.
pub(super) const CLINE: Row = Row {
    id: "cline",
    name: "Cline",
    process: Identity::Emitter(Looks {
        names: &["cline"],
        scripts: &["bin/cline"],
        hosts: &["code", "code-insiders", "codium", "cursor", "windsurf"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    compact_ends: false,
    marks: &[W::ClineVersion],
    fields: Fields {
        session: &[W::TaskId],
        cwd: &[W::WorkspaceRootsCamel],
        event: &[W::HookName],
        tool: &[W::PreToolUseName, W::PostToolUseName],
        ..FIELDS
    },
    events: &[
        on("TaskStart", "session-start", K::Busy),
        own("TaskResume", K::Busy),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        on("PreToolUse", "tool-use", K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        on("Notification", "notification", K::Keep),
        on("TaskComplete", "stop", K::Stop),
        on("TaskCancel", "interrupt", K::Interrupt),
        on("PreCompact", "pre-compact", K::CompactStart),
    ],
    ..PLAIN
};

/// The editor, and both generations of the command line program.
pub(super) const KIRO: Row = Row {
    id: "kiro",
    aliases: &["kiro-cli-v2", "kiro-v3"],
    name: "Kiro",
    process: Identity::Emitter(Looks {
        names: &["kiro-cli", "kiro-cli-chat"],
        hosts: &["kiro"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    resume: "kiro-cli chat --resume-id ID",
    nameless: true,
    fields: Fields { message: &[W::AssistantResponse], ..FIELDS },
    events: &[
        on("agentSpawn", "session-start", K::Start),
        on("userPromptSubmit", "prompt-submit", K::Prompt),
        on("preToolUse", "tool-use", K::ToolUse),
        on("postToolUse", "tool-done", K::ToolDone),
        on("stop", "stop", K::Stop),
        own("SessionStart", K::Start),
        own("UserPromptSubmit", K::Prompt),
        own("PreToolUse", K::ToolUse),
        own("PostToolUse", K::ToolDone),
        own("Stop", K::Stop),
    ],
    ..PLAIN
};
