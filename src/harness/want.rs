//! The payload fields that the rows of the harnesses ask for.
//!
//! A path is keys with dots between them; `[0]` behind a key is the first
//! element of its array.

/// Bytes kept of a path, the longest limit of a record.
const MAX_PATH: usize = 4096;
/// Bytes kept of any other text: ids are at most half of it, and of a message a
/// tenth is shown.
const MAX_TEXT: usize = 1024;

macro_rules! wants {
    ($($variant:ident = $path:literal),* $(,)?) => {
        /// A payload field that some harness's row asks for, by its path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Want { $(#[doc = concat!("`", $path, "`")] $variant),* }

        impl Want {
            pub(super) const ALL: &'static [(Want, &'static [u8])] =
                &[$((Want::$variant, $path.as_bytes())),*];

            /// The field's path.
            pub const fn path(self) -> &'static str {
                match self { $(Want::$variant => $path),* }
            }
        }
    };
}

wants! {
    // The first is one that no row lists: a list of it alone would pass for an
    // empty C string, and those stand far from what a hook reads.
    SchemaVersion = "schema_version",
    SessionId = "session_id",
    ThreadIdDash = "thread-id",
    CtxSessionId = "ctx.sessionId",
    Cwd = "cwd",
    CtxCwd = "ctx.cwd",
    HookEventName = "hook_event_name",
    Type = "type",
    EventType = "event.type",
    EventReason = "event.reason",
    ToolName = "tool_name",
    EventToolName = "event.toolName",
    PromptId = "prompt_id",
    TurnId = "turn_id",
    TurnIdDash = "turn-id",
    AgentId = "agent_id",
    LastAssistantMessage = "last_assistant_message",
    LastAssistantMessageDash = "last-assistant-message",
    Error = "error",
    BackgroundTasks = "background_tasks",
    SessionTitle = "session_title",
    Source = "source",
    Trigger = "trigger",
    NotificationType = "notification_type",
    Message = "message",
    IsInterrupt = "is_interrupt",
    // gemini
    PromptResponse = "prompt_response",
    // cursor
    CursorVersion = "cursor_version",
    ConversationId = "conversation_id",
    GenerationId = "generation_id",
    WorkspaceRoot = "workspace_roots[0]",
    IsBackgroundAgent = "is_background_agent",
    SubagentId = "subagent_id",
    // copilot, in both spellings of its keys
    SessionIdCamel = "sessionId",
    ToolNameCamel = "toolName",
    AgentIdCamel = "agentId",
    AgentNameCamel = "agentName",
    AgentName = "agent_name",
    Recoverable = "recoverable",
    ErrorName = "error.name",
    // opencode
    PropertiesSessionId = "properties.sessionID",
    PropertiesInfoId = "properties.info.id",
    PropertiesInfoParentId = "properties.info.parentID",
    PropertiesInfoDirectory = "properties.info.directory",
    PropertiesInfoTitle = "properties.info.title",
    PropertiesErrorName = "properties.error.name",
    PropertiesStatusType = "properties.status.type",
    DataSessionId = "data.sessionID",
    DataInfoParentId = "data.info.parentID",
    DataInfoDirectory = "data.info.directory",
    DataInfoTitle = "data.info.title",
    LocationDirectory = "location.directory",
    Hook = "hook",
    InputSessionId = "input.sessionID",
    InputTool = "input.tool",
    ParentId = "parentID",
    // kimi
    ErrorType = "error_type",
    // grok
    HookEventNameCamel = "hookEventName",
    WorkspaceRootCamel = "workspaceRoot",
    PromptIdCamel = "promptId",
    SubagentIdCamel = "subagentId",
    SubagentType = "subagentType",
    LastAssistantMessageCamel = "lastAssistantMessage",
    BackgroundTasksCamel = "backgroundTasks",
    NotificationTypeCamel = "notificationType",
    Reason = "reason",
    // antigravity
    ConversationIdCamel = "conversationId",
    ArtifactDirectory = "artifactDirectoryPath",
    WorkspacePath = "workspacePaths[0]",
    ToolCallName = "toolCall.name",
    InvocationNum = "invocationNum",
    // goose, crush, amp
    EventName = "event",
    WorkingDir = "working_dir",
    // kiro
    AssistantResponse = "assistant_response",
    // windsurf
    AgentActionName = "agent_action_name",
    TrajectoryId = "trajectory_id",
    ExecutionId = "execution_id",
    ToolInfoCwd = "tool_info.cwd",
    ToolInfoResponse = "tool_info.response",
    // cline
    ClineVersion = "clineVersion",
    HookName = "hookName",
    TaskId = "taskId",
    WorkspaceRootsCamel = "workspaceRoots[0]",
    PreToolUseName = "preToolUse.toolName",
    PostToolUseName = "postToolUse.toolName",
    // amp
    DataThreadId = "data.thread.id",
    DataTool = "data.tool",
    DataStatus = "data.status",
    // hermes
    ExtraTurnId = "extra.turn_id",
    ExtraInterrupted = "extra.interrupted",
    ExtraFailed = "extra.failed",
    ExtraResponse = "extra.assistant_response",
    // the normalised event of programs that report by themselves
    EventId = "event_id",
    Status = "status",
    Detail = "detail",
    Tool = "tool",
    InstanceId = "instance_id",
    Pid = "pid",
    Sequence = "sequence",
    Ts = "ts",
}

impl Want {
    /// Bytes kept of the field's text.
    pub(super) const fn max(self) -> usize {
        match self {
            Want::Cwd
            | Want::CtxCwd
            | Want::WorkspaceRoot
            | Want::PropertiesInfoDirectory
            | Want::DataInfoDirectory
            | Want::LocationDirectory
            | Want::WorkspaceRootCamel
            | Want::WorkspacePath
            | Want::WorkingDir
            | Want::ToolInfoCwd
            | Want::WorkspaceRootsCamel => MAX_PATH,
            _ => MAX_TEXT,
        }
    }
}
