//! How each harness is told to run the hook: a table.
//!
//! A [`Recipe`] says where a harness keeps its hooks, which events it gets a
//! hook for and how an entry looks there. Harnesses that load a plugin get a
//! file of ours. The facts are from the harnesses' documentation and sources;
//! tongs-harnesses(7) has them for users.

use super::command::Runs;
use super::plugins::Plugin;
use super::server::{self, Listed, Servers};
use super::text::{Step, Value, json::Dialect};
use crate::sys::env::Var;

/// One way to reach one harness.
pub struct Recipe {
    /// What the hook gets as HARNESS, and `--agent` takes.
    pub agent: &'static str,
    /// The harness's id in records.
    pub row: &'static str,
    /// The directory of its settings.
    pub home: Home,
    /// Files and directories below HOME that show that it is there, besides its
    /// program.
    pub signs: &'static [&'static str],
    /// Whether another harness has its settings below [`Recipe::home`] as well,
    /// so that the directory is no sign.
    pub shares_home: bool,
    /// The files that take the hooks.
    pub files: Files,
    /// What they hold.
    pub shape: Shape,
    /// The events, as the file names them.
    pub events: &'static [&'static str],
    /// How the harness runs a command.
    pub runs: Runs,
    /// The settings that turn hooks off.
    pub switches: &'static [Switch],
    /// Where it lists the servers that it starts for its agents; else why it has
    /// none.
    pub servers: Result<Servers, &'static str>,
    /// What the user has to do after the first installation; empty for nothing
    /// but starting open sessions anew.
    pub then: &'static str,
}

/// The directory of a harness's settings.
pub struct Home {
    /// The variable that moves it.
    pub var: Option<Var>,
    /// Where it is below the variable's value.
    pub below_var: &'static str,
    /// Whether it is below `XDG_CONFIG_HOME` where that is set.
    pub xdg: bool,
    /// Where it is else, below HOME; for `xdg` below `.config`.
    pub below: &'static str,
}

/// The files of a harness that take hooks, below its home.
pub enum Files {
    /// This one, made where it is missing.
    One(&'static str),
    /// The first one where it is there, else the second.
    Prefer(&'static str, &'static str),
    /// Every file of a directory whose name ends so; none is made.
    Each(&'static str, &'static str),
    /// One for each event, with the event's name, in this directory.
    PerEvent(&'static str),
}

/// What a file holds.
pub enum Shape {
    /// JSON, shared with the user's own settings or a file of ours alike.
    Json(Json),
    /// TOML: a `[[hooks]]` table for each event.
    Toml,
    /// YAML: a list below `hooks` for each event.
    Yaml,
    /// A file that is ours as a whole.
    Plugin(Plugin),
}

/// Where in a JSON document the entries are, and how they look.
pub struct Json {
    /// What the harness's own reader takes.
    pub dialect: Dialect,
    /// The keys that lead to the object of the events, or to the list of all.
    pub below: &'static [&'static str],
    /// How an entry is wrapped.
    pub nest: Nest,
    /// Members that a new file has besides.
    pub base: &'static [(&'static str, Base)],
    /// The entry for a command and an event.
    pub entry: fn(command: String, event: &str) -> Value,
    /// Files that go with this one, as a whole: path below the home and text.
    pub beside: &'static [(&'static str, &'static str)],
}

/// A member of a new file.
#[derive(Clone, Copy)]
pub enum Base {
    /// A number.
    Int(i64),
    /// A text.
    Text(&'static str),
}

/// How an entry is wrapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nest {
    /// A list of entries for each event.
    Flat,
    /// A list of groups for each event, each with a list of entries.
    Groups,
    /// A list of groups for these events, a list of entries for the others.
    GroupsFor(&'static [&'static str]),
    /// One list for all events; an entry names its event itself.
    All,
}

/// A setting that turns hooks off.
pub enum Switch {
    /// This member of the same file has this value.
    Here(&'static [&'static str], bool),
    /// The list at the first path has the text.
    Names(&'static [&'static str], &'static str),
    /// This member of another JSON file of the home has this value.
    There(&'static str, &'static [&'static str], bool),
    /// This member of another TOML file of the home has this value.
    Toml(&'static str, &'static [&'static str], bool),
    /// This member of a JSON file of the machine has this value.
    System(&'static str, &'static [&'static str], bool),
}

/// A harness for which there is nothing to install, and why.
pub struct Without {
    /// The harness's id.
    pub row: &'static str,
    /// Why, and what to do instead.
    pub why: &'static str,
}

fn map(members: Vec<(&str, Value)>) -> Value {
    Value::Map(members.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

/// `type`, `command` and `timeout`, as Claude Code has it.
fn typed(command: String, timeout: i64) -> Value {
    map(vec![
        ("type", text("command")),
        ("command", Value::Text(command)),
        ("timeout", Value::Int(timeout)),
    ])
}

fn typed_5(command: String, _: &str) -> Value {
    typed(command, 5)
}

/// Codex caps two events at 3, and a changed entry must be trusted again: one
/// number for all.
fn typed_3(command: String, _: &str) -> Value {
    typed(command, 3)
}

/// Milliseconds; Qwen read the number as such once and reads large ones so still.
fn typed_5000(command: String, _: &str) -> Value {
    typed(command, 5000)
}

fn named_5000(command: String, _: &str) -> Value {
    map(vec![
        ("type", text("command")),
        ("name", text("tongs")),
        ("command", Value::Text(command)),
        ("timeout", Value::Int(5000)),
    ])
}

fn plain_5(command: String, _: &str) -> Value {
    map(vec![("command", Value::Text(command)), ("timeout", Value::Int(5))])
}

fn named_5(command: String, _: &str) -> Value {
    map(vec![
        ("name", text("tongs")),
        ("command", Value::Text(command)),
        ("timeout", Value::Int(5)),
    ])
}

fn copilot(command: String, _: &str) -> Value {
    map(vec![
        ("type", text("command")),
        ("bash", Value::Text(command)),
        ("timeoutSec", Value::Int(5)),
    ])
}

fn windsurf(command: String, _: &str) -> Value {
    map(vec![("command", Value::Text(command)), ("show_output", Value::Bool(false))])
}

fn kiro_2(command: String, _: &str) -> Value {
    map(vec![("command", Value::Text(command)), ("timeout_ms", Value::Int(5000))])
}

fn kiro_3(command: String, event: &str) -> Value {
    map(vec![
        ("name", Value::Text(format!("tongs-{event}"))),
        ("trigger", text(event)),
        ("action", map(vec![("type", text("command")), ("command", Value::Text(command))])),
        ("timeout", Value::Int(10)),
        ("enabled", Value::Bool(true)),
    ])
}

/// What most harnesses with JSON have.
const NESTED: Json = Json {
    dialect: Dialect::Strict,
    below: &["hooks"],
    nest: Nest::Groups,
    base: &[],
    entry: typed_5,
    beside: &[],
};

const fn dot(below: &'static str) -> Home {
    Home { var: None, below_var: "", xdg: false, below }
}

const fn moved(var: Var, below: &'static str) -> Home {
    Home { var: Some(var), below_var: "", xdg: false, below }
}

const fn config(below: &'static str) -> Home {
    Home { var: None, below_var: "", xdg: true, below }
}

const fn json(below: &'static [&'static str], entry: fn(&str) -> Value) -> server::Shape {
    server::Shape::Json(Dialect::Comments, below, entry)
}

/// `mcpServers` in a file of the home.
const fn in_file(name: &'static str) -> Result<Servers, &'static str> {
    Ok(Servers { file: Listed::In(name), shape: json(&["mcpServers"], server::plain) })
}

const PLAIN: Recipe = Recipe {
    agent: "",
    row: "",
    home: dot(""),
    signs: &[],
    shares_home: false,
    files: Files::One(""),
    shape: Shape::Toml,
    events: &[],
    runs: Runs::Shell,
    switches: &[],
    servers: Err(""),
    then: "",
};

/// Every recipe, in the order of `install --list`.
pub static RECIPES: [Recipe; 22] = [
    Recipe {
        agent: "claude",
        row: "claude",
        home: moved(Var::CLAUDE_CONFIG_DIR, ".claude"),
        files: Files::One("settings.json"),
        shape: Shape::Json(Json { dialect: Dialect::Comments, ..NESTED }),
        // Never WorktreeCreate: a hook for it takes the place of git worktree.
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "PermissionDenied",
            "Notification",
            "Elicitation",
            "ElicitationResult",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "Stop",
            "StopFailure",
            "SessionEnd",
            "CwdChanged",
        ],
        switches: &[
            Switch::Here(&["disableAllHooks"], true),
            Switch::System(
                "/etc/claude-code/managed-settings.json",
                &["allowManagedHooksOnly"],
                true,
            ),
        ],
        servers: Ok(Servers {
            file: Listed::Beside(".claude.json"),
            shape: json(&["mcpServers"], server::typed),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "codex",
        row: "codex",
        home: moved(Var::CODEX_HOME, ".codex"),
        files: Files::One("hooks.json"),
        shape: Shape::Json(Json { entry: typed_3, ..NESTED }),
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PermissionRequest",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "Stop",
            "Interrupt",
            "SessionEnd",
        ],
        switches: &[Switch::Toml("config.toml", &["features", "hooks"], false)],
        then: "Codex runs no hook that was not reviewed: start codex, enter /hooks and trust them",
        servers: Ok(Servers { file: Listed::In("config.toml"), shape: server::Shape::Toml }),
        ..PLAIN
    },
    Recipe {
        agent: "gemini",
        row: "gemini",
        home: Home {
            var: Some(Var::GEMINI_CLI_HOME),
            below_var: ".gemini",
            xdg: false,
            below: ".gemini",
        },
        signs: &[".gemini/settings.json", ".gemini/oauth_creds.json", ".gemini/tmp"],
        shares_home: true,
        files: Files::One("settings.json"),
        shape: Shape::Json(Json { dialect: Dialect::Comments, entry: named_5000, ..NESTED }),
        events: &[
            "SessionStart",
            "BeforeAgent",
            "BeforeTool",
            "AfterTool",
            "Notification",
            "AfterAgent",
            "PreCompress",
            "SessionEnd",
        ],
        switches: &[
            Switch::Names(&["hooksConfig", "disabled"], "tongs"),
            Switch::Here(&["hooksConfig", "enabled"], false),
        ],
        servers: in_file("settings.json"),
        ..PLAIN
    },
    Recipe {
        agent: "copilot",
        row: "copilot",
        home: moved(Var::COPILOT_HOME, ".copilot"),
        files: Files::One("hooks/tongs.json"),
        shape: Shape::Json(Json {
            nest: Nest::Flat,
            base: &[("version", Base::Int(1))],
            entry: copilot,
            ..NESTED
        }),
        // Not permissionRequest, which comes for every tool and denies on failure.
        events: &[
            "sessionStart",
            "userPromptSubmitted",
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "notification",
            "agentStop",
            "errorOccurred",
            "subagentStart",
            "subagentStop",
            "preCompact",
            "sessionEnd",
        ],
        switches: &[Switch::There("settings.json", &["disableAllHooks"], true)],
        servers: Ok(Servers {
            file: Listed::In("mcp-config.json"),
            shape: json(&["mcpServers"], server::local),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "cursor",
        row: "cursor",
        home: moved(Var::CURSOR_CONFIG_DIR, ".cursor"),
        files: Files::One("hooks.json"),
        shape: Shape::Json(Json {
            dialect: Dialect::Comments,
            nest: Nest::Flat,
            base: &[("version", Base::Int(1))],
            entry: plain_5,
            ..NESTED
        }),
        events: &[
            "sessionStart",
            "beforeSubmitPrompt",
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "stop",
            "subagentStart",
            "subagentStop",
            "preCompact",
            "sessionEnd",
        ],
        servers: in_file("mcp.json"),
        ..PLAIN
    },
    Recipe {
        agent: "opencode",
        row: "opencode",
        home: Home {
            var: Some(Var::OPENCODE_CONFIG_DIR),
            below_var: "",
            xdg: true,
            below: "opencode",
        },
        files: Files::One("plugins/tongs.js"),
        shape: Shape::Plugin(Plugin::OpenCode),
        servers: Ok(Servers {
            file: Listed::Prefer("opencode.jsonc", "opencode.json"),
            shape: json(&["mcp"], server::listed),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "pi",
        row: "pi",
        home: moved(Var::PI_CODING_AGENT_DIR, ".pi/agent"),
        files: Files::One("extensions/tongs.ts"),
        shape: Shape::Plugin(Plugin::Pi),
        then: "enter /reload in open sessions",
        servers: Err(
            "it is no client of such servers; its agents can run 'tongs-agents status --json'",
        ),
        ..PLAIN
    },
    Recipe {
        agent: "qwen",
        row: "qwen",
        home: moved(Var::QWEN_HOME, ".qwen"),
        files: Files::One("settings.json"),
        shape: Shape::Json(Json { dialect: Dialect::Comments, entry: typed_5000, ..NESTED }),
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "Notification",
            "Stop",
            "StopFailure",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "SessionEnd",
        ],
        switches: &[Switch::Here(&["disableAllHooks"], true)],
        servers: in_file("settings.json"),
        ..PLAIN
    },
    Recipe {
        agent: "droid",
        row: "droid",
        home: dot(".factory"),
        files: Files::Prefer("hooks.json", "settings.json"),
        shape: Shape::Json(Json { dialect: Dialect::Comments, ..NESTED }),
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "Notification",
            "Stop",
            "SubagentStop",
            "PreCompact",
            "SessionEnd",
        ],
        then: "Droid asks for a review of changed hooks: start droid and enter /hooks",
        servers: Ok(Servers {
            file: Listed::In("mcp.json"),
            shape: json(&["mcpServers"], server::typed),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "kimi-code",
        row: "kimi",
        home: moved(Var::KIMI_CODE_HOME, ".kimi-code"),
        files: Files::One("config.toml"),
        shape: Shape::Toml,
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "TurnStarted",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "PermissionResult",
            "Stop",
            "StopFailure",
            "Interrupt",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "SessionEnd",
        ],
        servers: in_file("mcp.json"),
        ..PLAIN
    },
    Recipe {
        agent: "kimi-cli",
        row: "kimi",
        home: dot(".kimi"),
        files: Files::One("config.toml"),
        shape: Shape::Toml,
        // The older program refuses a configuration with an event that it does
        // not know.
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "StopFailure",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "SessionEnd",
        ],
        servers: in_file("mcp.json"),
        ..PLAIN
    },
    Recipe {
        agent: "grok",
        row: "grok",
        home: moved(Var::GROK_HOME, ".grok"),
        files: Files::One("hooks/tongs.json"),
        shape: Shape::Json(NESTED),
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionDenied",
            "Notification",
            "Stop",
            "StopCancelled",
            "StopFailure",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "SessionEnd",
        ],
        servers: Ok(Servers { file: Listed::In("config.toml"), shape: server::Shape::Toml }),
        ..PLAIN
    },
    Recipe {
        agent: "antigravity",
        row: "antigravity",
        home: moved(Var::ANTIGRAVITY_CLI_CONFIG_DIR, ".gemini/config"),
        signs: &[".gemini/antigravity-cli", ".gemini/antigravity"],
        files: Files::One("hooks.json"),
        shape: Shape::Json(Json {
            below: &["tongs"],
            nest: Nest::GroupsFor(&["PostToolUse"]),
            ..NESTED
        }),
        // Never PreToolUse: its answer would be a decision.
        events: &["PreInvocation", "PostToolUse", "Stop"],
        runs: Runs::Reply("{}"),
        switches: &[Switch::Here(&["tongs", "enabled"], false)],
        servers: in_file("mcp_config.json"),
        ..PLAIN
    },
    Recipe {
        agent: "goose",
        row: "goose",
        home: dot(".agents/plugins/tongs"),
        signs: &[".config/goose", ".local/share/goose"],
        files: Files::One("hooks/hooks.json"),
        shape: Shape::Json(Json { beside: &[("plugin.json", GOOSE_PLUGIN)], ..NESTED }),
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SessionEnd",
        ],
        servers: Ok(Servers {
            file: Listed::Of(config("goose"), "config.yaml"),
            shape: server::Shape::Yaml("extensions", "cmd", server::extension),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "kiro-v3",
        row: "kiro",
        home: dot(".kiro"),
        files: Files::One("hooks/tongs.json"),
        shape: Shape::Json(Json {
            nest: Nest::All,
            base: &[("version", Base::Text("v1"))],
            entry: kiro_3,
            ..NESTED
        }),
        events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
        servers: in_file("settings/mcp.json"),
        ..PLAIN
    },
    Recipe {
        agent: "kiro-cli-v2",
        row: "kiro",
        home: dot(".kiro"),
        files: Files::Each("agents", ".json"),
        shape: Shape::Json(Json { nest: Nest::Flat, entry: kiro_2, ..NESTED }),
        events: &["agentSpawn", "userPromptSubmit", "preToolUse", "postToolUse", "stop"],
        servers: in_file("settings/mcp.json"),
        ..PLAIN
    },
    Recipe {
        agent: "windsurf",
        row: "windsurf",
        home: dot(".codeium/windsurf"),
        files: Files::One("hooks.json"),
        shape: Shape::Json(Json { nest: Nest::Flat, entry: windsurf, ..NESTED }),
        events: &[
            "pre_user_prompt",
            "pre_read_code",
            "pre_write_code",
            "pre_run_command",
            "pre_mcp_tool_use",
            "post_read_code",
            "post_write_code",
            "post_run_command",
            "post_mcp_tool_use",
            "post_cascade_response",
        ],
        servers: in_file("mcp_config.json"),
        ..PLAIN
    },
    Recipe {
        agent: "devin",
        row: "devin",
        home: config("devin"),
        files: Files::One("config.json"),
        shape: Shape::Json(Json { dialect: Dialect::Five, ..NESTED }),
        // It refuses the whole file for an event that it does not know.
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PermissionRequest",
            "PostCompaction",
            "Stop",
            "SessionEnd",
        ],
        servers: Ok(Servers {
            file: Listed::In("config.json"),
            shape: server::Shape::Json(Dialect::Five, &["mcpServers"], server::plain),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "crush",
        row: "crush",
        home: config("crush"),
        files: Files::One("crush.json"),
        shape: Shape::Json(Json { nest: Nest::Flat, entry: named_5, ..NESTED }),
        events: &["PreToolUse"],
        servers: Ok(Servers {
            file: Listed::In("crush.json"),
            shape: json(&["mcp"], server::typed),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "cline",
        row: "cline",
        home: dot("Documents/Cline"),
        files: Files::PerEvent("Hooks"),
        shape: Shape::Plugin(Plugin::Cline("")),
        events: &[
            "TaskStart",
            "TaskResume",
            "TaskCancel",
            "TaskComplete",
            "PreToolUse",
            "PostToolUse",
            "UserPromptSubmit",
            "PreCompact",
        ],
        then: "turn hooks on in Cline's settings",
        servers: Ok(Servers {
            file: Listed::Of(
                Home {
                    var: Some(Var::CLINE_DATA_DIR),
                    below_var: "settings",
                    xdg: false,
                    below: ".cline/data/settings",
                },
                "cline_mcp_settings.json",
            ),
            shape: json(&["mcpServers"], server::typed),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "amp",
        row: "amp",
        home: config("amp"),
        files: Files::One("plugins/tongs.ts"),
        shape: Shape::Plugin(Plugin::Amp),
        servers: Ok(Servers {
            file: Listed::In("settings.json"),
            shape: json(&["amp.mcpServers"], server::plain),
        }),
        ..PLAIN
    },
    Recipe {
        agent: "hermes",
        row: "hermes",
        home: moved(Var::HERMES_HOME, ".hermes"),
        files: Files::One("config.yaml"),
        shape: Shape::Yaml,
        events: &[
            "on_session_start",
            "pre_llm_call",
            "pre_tool_call",
            "post_tool_call",
            "pre_approval_request",
            "post_approval_response",
            "on_session_end",
            "on_session_finalize",
        ],
        runs: Runs::Words,
        then: "Hermes asks for your consent to each hook when it starts the next time",
        servers: Ok(Servers {
            file: Listed::In("config.yaml"),
            shape: server::Shape::Yaml("mcp_servers", "command", server::plain),
        }),
        ..PLAIN
    },
];

const GOOSE_PLUGIN: &str = concat!(
    "{\n  \"name\": \"tongs\",\n  \"version\": \"",
    env!("CARGO_PKG_VERSION"),
    "\",\n  \"description\": \"Tells tongs-agents which session works and which one waits.\"\n}\n"
);

/// Harnesses without a recipe.
pub static WITHOUT: &[Without] = &[Without {
    row: "other",
    why: "a program that reports by itself calls 'tongs-agents notify'",
}];

impl Json {
    /// The keys that lead to an event's list.
    pub fn list<'a>(&self, event: &'a str) -> Vec<Step<'a>>
    where
        'static: 'a,
    {
        let mut path: Vec<Step<'a>> = self.below.iter().map(|key| Step::Key(key)).collect();
        if self.nest != Nest::All {
            path.push(Step::Key(event));
        }
        path
    }

    /// Whether an event's entries stand in groups.
    pub fn has_groups(&self, event: &str) -> bool {
        match self.nest {
            Nest::Groups => true,
            Nest::GroupsFor(events) => events.contains(&event),
            Nest::Flat | Nest::All => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, ROWS};

    #[test]
    fn every_harness_has_a_recipe_or_a_reason() {
        for row in ROWS {
            let recipes = RECIPES.iter().filter(|r| r.row == row.id).count();
            let reasons = WITHOUT.iter().filter(|w| w.row == row.id && !w.why.is_empty()).count();
            assert!((recipes > 0) != (reasons == 1), "{}", row.id);
        }
    }

    #[test]
    fn a_recipe_names_its_row_and_events_that_the_row_has() {
        for recipe in &RECIPES {
            let row = harness::named(recipe.agent).unwrap();
            assert_eq!(row.id, recipe.row, "{}", recipe.agent);
            for event in recipe.events {
                assert!(row.event(event).is_some(), "{} {event}", recipe.agent);
            }
            let mut sorted = recipe.events.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), recipe.events.len(), "{}", recipe.agent);
        }
    }

    #[test]
    fn a_recipe_without_servers_says_why() {
        for recipe in &RECIPES {
            assert!(recipe.servers.as_ref().err().is_none_or(|why| !why.is_empty()));
        }
    }

    #[test]
    fn what_must_not_be_registered_is_not() {
        let banned: &[(&str, &[&str])] = &[
            ("claude", &["WorktreeCreate", "MessageDisplay", "InstructionsLoaded"]),
            ("antigravity", &["PreToolUse"]),
            ("gemini", &["AfterModel", "BeforeModel", "BeforeToolSelection"]),
            ("copilot", &["permissionRequest"]),
        ];
        for (agent, events) in banned {
            let recipe = RECIPES.iter().find(|r| r.agent == *agent).unwrap();
            assert!(!events.iter().any(|event| recipe.events.contains(event)), "{agent}");
        }
    }
}
