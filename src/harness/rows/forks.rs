//! Harnesses whose hooks are shaped after Claude Code's: Gemini CLI, Qwen Code,
//! Droid, Kimi Code, Devin.

use super::*;

/// The end of a compaction is no event: one that the user asks for between turns
/// must not look like a turn.
const BY_HAND: &[(&str, K)] = &[("manual", K::Keep)];

pub(super) const GEMINI: Row = Row {
    id: "gemini",
    name: "Gemini CLI",
    process: Identity::Emitter(Looks {
        names: &["gemini", "gemini.exe"],
        scripts: &["bin/gemini", "@google/gemini-cli/*/*"],
        ..LOOKS
    }),
    compact_ends: false,
    resume: "gemini --resume ID",
    env: EnvNames { mark: "GEMINI_SESSION_ID", cwd: "GEMINI_CWD", ..EnvNames::NONE },
    fields: Fields { message: &[W::PromptResponse], ..FIELDS },
    events: &[
        on("SessionStart", "session-start", K::Start),
        on("BeforeAgent", "prompt-submit", K::Prompt),
        on("BeforeTool", "tool-use", K::ToolUse),
        on("AfterTool", "tool-done", K::ToolDone),
        by(
            "Notification",
            "notification",
            W::NotificationType,
            &[("ToolPermission", K::Permission)],
            K::Keep,
        ),
        on("AfterAgent", "stop", K::Stop),
        by("PreCompress", "pre-compact", W::Trigger, BY_HAND, K::CompactStart),
        on("SessionEnd", "session-end", K::End),
        own("BeforeModel", K::Progress),
        own("AfterModel", K::Progress),
        own("BeforeToolSelection", K::Progress),
    ],
    ..PLAIN
};

pub(super) const QWEN: Row = Row {
    id: "qwen",
    name: "Qwen Code",
    process: Identity::Emitter(Looks {
        names: &["qwen", "qwen.exe"],
        scripts: &["bin/qwen", "@qwen-code/qwen-code/*", "@qwen-code/qwen-code/*/*"],
        ..LOOKS
    }),
    resume: "qwen --resume ID",
    env: EnvNames { mark: "QWEN_PROJECT_DIR", ..EnvNames::NONE },
    fields: Fields {
        subagent: &[W::AgentId],
        message: &[W::LastAssistantMessage],
        error: &[W::Error],
        ..FIELDS
    },
    events: &[
        by("SessionStart", "session-start", W::Source, COMPACT, K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        on("PreToolUse", "tool-use", K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        set("PostToolUseFailure", "PostToolUseFailure", &[(W::IsInterrupt, K::Keep)], K::ToolDone),
        own("PermissionDenied", K::ToolDone),
        on("PermissionRequest", "permission-request", K::Permission),
        by(
            "Notification",
            "notification",
            W::NotificationType,
            &[("permission_prompt", K::Permission), ("idle_prompt", K::IdleSign)],
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
        own("TodoCreated", K::Progress),
        own("TodoCompleted", K::Progress),
        // Its session is the one that deletes.
        own("SessionDelete", K::Keep),
    ],
    ..PLAIN
};

pub(super) const DROID: Row = Row {
    id: "droid",
    name: "Factory Droid",
    process: Identity::Discoverable(Looks {
        names: &["droid", "droid.exe"],
        helpers: &["daemon"],
        ..LOOKS
    }),
    compact_ends: false,
    resume: "droid --resume ID",
    events: &[
        by("SessionStart", "session-start", W::Source, COMPACT, K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        on("PreToolUse", "tool-use", K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        // It has no type, only words for people.
        EventRow {
            native: "Notification",
            normal: "notification",
            pick: Pick::Within(
                W::Message,
                &[("permission", K::Permission), ("waiting for your input", K::IdleSign)],
                K::Keep,
            ),
        },
        on("Stop", "stop", K::Stop),
        on("SubagentStop", "subagent-stop", K::SubagentStop),
        by("PreCompact", "pre-compact", W::Trigger, BY_HAND, K::CompactStart),
        on("SessionEnd", "session-end", K::End),
    ],
    ..PLAIN
};

/// Kimi Code, and the older kimi-cli, whose events are among its own.
pub(super) const KIMI: Row = Row {
    id: "kimi",
    aliases: &["kimi-code", "kimi-cli"],
    name: "Kimi Code",
    process: Identity::Emitter(Looks {
        names: &["kimi", "kimi-code", "kimi-cli", "kimi.exe"],
        scripts: &["bin/kimi", "bin/kimi-cli", "bin/kimi-code"],
        ..LOOKS
    }),
    resume: "kimi --session ID",
    fields: Fields {
        turn: &[W::TurnId],
        subagent: &[W::AgentName],
        error: &[W::ErrorType],
        title: &[W::SessionTitle],
        ..FIELDS
    },
    events: &[
        on("SessionStart", "session-start", K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        by("PreToolUse", "tool-use", W::ToolName, &[("AskUserQuestion", K::Question)], K::ToolUse),
        on("PostToolUse", "tool-done", K::ToolDone),
        own("PostToolUseFailure", K::ToolDone),
        on("PermissionRequest", "permission-request", K::Permission),
        own("PermissionResult", K::ToolDone),
        on("Notification", "notification", K::Keep),
        on("Stop", "stop", K::Stop),
        on("StopFailure", "stop-failure", K::StopFailure),
        on("Interrupt", "interrupt", K::Interrupt),
        on("SubagentStart", "subagent-start", K::SubagentStart),
        on("SubagentStop", "subagent-stop", K::SubagentStop),
        on("PreCompact", "pre-compact", K::CompactStart),
        by("PostCompact", "post-compact", W::Trigger, COMPACT_END, K::CompactEndAuto),
        on("SessionEnd", "session-end", K::End),
        own("TurnStarted", K::Progress),
        own("UserPromptQueued", K::Keep),
        own("TaskStarted", K::Keep),
        own("SessionHeartbeat", K::Keep),
    ],
    ..PLAIN
};

/// Devin's own program, and the desktop's back end, which holds many sessions.
pub(super) const DEVIN: Row = Row {
    id: "devin",
    name: "Devin",
    process: Identity::Emitter(Looks {
        names: &["devin", "devin.exe"],
        helpers: &["acp", "worker"],
        ..LOOKS
    }),
    sessions: Sessions::Many,
    resume: "devin --resume ID",
    env: EnvNames { mark: "DEVIN_PROJECT_DIR", cwd: "DEVIN_PROJECT_DIR", ..EnvNames::NONE },
    fields: Fields { turn: &[W::PromptId], message: &[W::LastAssistantMessage], ..FIELDS },
    events: &[
        on("SessionStart", "session-start", K::Start),
        on("UserPromptSubmit", "prompt-submit", K::Prompt),
        by(
            "PreToolUse",
            "tool-use",
            W::ToolName,
            &[("ask_user_question", K::Question)],
            K::ToolUse,
        ),
        on("PostToolUse", "tool-done", K::ToolDone),
        on("PermissionRequest", "permission-request", K::Permission),
        on("Stop", "stop", K::Stop),
        on("PostCompaction", "post-compact", K::Progress),
        on("SessionEnd", "session-end", K::End),
    ],
    ..PLAIN
};
