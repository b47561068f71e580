//! Harnesses with hook dialects of their own: Claude Code, Codex, Copilot, Grok.

use super::*;

/// Claude Code's tools whose use is a question to the user.
const QUESTIONS: &[(&str, K)] = &[("AskUserQuestion", K::Question), ("ExitPlanMode", K::Plan)];

pub(super) const CLAUDE: Row = Row {
    id: "claude",
    name: "Claude Code",
    process: Identity::Discoverable(Looks {
        names: &["claude", "claude.exe"],
        scripts: &["bin/claude", "claude-code/cli.js"],
        helpers: &["daemon", "server", "mcp", "--bg-spare", "--bg-pty-host"],
        ..LOOKS
    }),
    resume: "claude --resume ID",
    holds_stdin: &["SessionEnd"],
    fields: Fields {
        turn: &[W::PromptId],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage],
        error: &[W::Error],
        background: &[W::BackgroundTasks],
        title: &[W::SessionTitle],
        ..FIELDS
    },
    events: &[
        by("SessionStart", "session-start", W::Source, COMPACT, K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        by("PreToolUse", "tool-use", W::ToolName, QUESTIONS, K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        own("PostToolUseFailure", K::ToolDone),
        own("PermissionDenied", K::ToolDone),
        // Such a tool asks for its permission as well.
        by("PermissionRequest", "permission-request", W::ToolName, QUESTIONS, K::Permission),
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
    ..PLAIN
};

pub(super) const CODEX: Row = Row {
    id: "codex",
    name: "Codex",
    process: Identity::Discoverable(Looks {
        names: &["codex", "codex.exe"],
        scripts: &["bin/codex", "bin/codex.js"],
        helpers: &["mcp-server", "app-server", "mcp", "exec-server"],
        ..LOOKS
    }),
    resume: "codex resume ID",
    marks: &[W::ThreadIdDash],
    fields: Fields {
        session: &[W::SessionId, W::ThreadIdDash],
        event: &[W::HookEventName, W::Type],
        turn: &[W::TurnId, W::TurnIdDash],
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage, W::LastAssistantMessageDash],
        error: &[W::Error],
        ..FIELDS
    },
    events: &[
        by("SessionStart", "session-start", W::Source, COMPACT, K::Start),
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
    ..PLAIN
};

pub(super) const COPILOT: Row = Row {
    id: "copilot",
    name: "GitHub Copilot CLI",
    process: Identity::Emitter(Looks {
        names: &["copilot", "copilot.exe", "ghcs"],
        scripts: &["bin/copilot", "@github/copilot/*"],
        ..LOOKS
    }),
    compact_ends: false,
    resume: "copilot --resume=ID",
    // The spelling of an event's name in its configuration is the spelling of
    // the payload's keys.
    fields: Fields {
        session: &[W::SessionId, W::SessionIdCamel],
        tool: &[W::ToolName, W::ToolNameCamel],
        subagent: &[W::AgentId, W::AgentIdCamel, W::AgentName, W::AgentNameCamel],
        message: &[W::LastAssistantMessage],
        error: &[W::Error, W::ErrorName],
        ..FIELDS
    },
    events: &[
        on("sessionStart", "session-start", K::Start),
        on("userPromptSubmitted", "prompt-submit", K::Prompt),
        own("userPromptTransformed", K::Progress),
        on("preToolUse", "tool-use", K::ToolUse),
        on("postToolUse", "tool-done", K::ToolDone),
        own("postToolUseFailure", K::ToolDone),
        // It comes for every tool, before the rules decide.
        own("permissionRequest", K::Keep),
        by(
            "notification",
            "notification",
            W::NotificationType,
            &[("permission_prompt", K::Permission), ("elicitation_dialog", K::Elicitation)],
            K::Keep,
        ),
        on("agentStop", "stop", K::Stop),
        set("errorOccurred", "stop-failure", &[(W::Recoverable, K::Keep)], K::StopFailure),
        on("subagentStart", "subagent-start", K::SubagentStart),
        on("subagentStop", "subagent-stop", K::SubagentStop),
        on("preCompact", "pre-compact", K::CompactStart),
        on("sessionEnd", "session-end", K::End),
        own("SessionStart", K::Start),
        own("UserPromptSubmit", K::Prompt),
        own("PreToolUse", K::ToolUse),
        own("PostToolUse", K::ToolDone),
        own("PostToolUseFailure", K::ToolDone),
        own("PermissionRequest", K::Keep),
        own("Stop", K::Stop),
        set("ErrorOccurred", "ErrorOccurred", &[(W::Recoverable, K::Keep)], K::StopFailure),
        own("SubagentStart", K::SubagentStart),
        own("SubagentStop", K::SubagentStop),
        own("PreCompact", K::CompactStart),
        own("SessionEnd", K::End),
    ],
    ..PLAIN
};

pub(super) const GROK: Row = Row {
    id: "grok",
    name: "Grok",
    process: Identity::Discoverable(Looks { names: &["grok", "grok-build", "grok.exe"], ..LOOKS }),
    resume: "grok --resume ID",
    marks: &[W::HookEventNameCamel],
    env: EnvNames {
        mark: "GROK_HOOK_EVENT",
        session: "GROK_SESSION_ID",
        cwd: "GROK_WORKSPACE_ROOT",
        event: "GROK_HOOK_EVENT",
    },
    fields: Fields {
        session: &[W::SessionIdCamel, W::SessionId],
        cwd: &[W::Cwd, W::WorkspaceRootCamel],
        event: &[W::HookEventNameCamel, W::HookEventName],
        tool: &[W::ToolNameCamel],
        turn: &[W::PromptIdCamel],
        subagent: &[W::SubagentIdCamel, W::SubagentType],
        message: &[W::LastAssistantMessageCamel],
        error: &[W::Error],
        background: &[W::BackgroundTasksCamel],
        ..FIELDS
    },
    events: &[
        by("session_start", "session-start", W::Source, COMPACT, K::Start),
        on("user_prompt_submit", "prompt-submit", K::Prompt),
        on("pre_tool_use", "tool-use", K::ToolUse),
        on("post_tool_use", "tool-done", K::ToolDone),
        own("post_tool_use_failure", K::ToolDone),
        own("permission_denied", K::ToolDone),
        by(
            "notification",
            "notification",
            W::NotificationTypeCamel,
            &[
                ("permission_prompt", K::Permission),
                ("elicitation_dialog", K::Elicitation),
                ("idle_prompt", K::IdleSign),
            ],
            K::Keep,
        ),
        // One more comes when the session closes, for other reasons.
        by("stop", "stop", W::Reason, &[("end_turn", K::Stop)], K::Keep),
        on("stop_cancelled", "interrupt", K::Interrupt),
        on("stop_failure", "stop-failure", K::StopFailure),
        on("subagent_start", "subagent-start", K::SubagentStart),
        on("subagent_stop", "subagent-stop", K::SubagentStop),
        on("pre_compact", "pre-compact", K::CompactStart),
        by("post_compact", "post-compact", W::Source, COMPACT_END, K::CompactEndAuto),
        on("session_end", "session-end", K::End),
    ],
    ..PLAIN
};
