//! The environment variables that tongs reads: all of them, in one list.
//!
//! The process entry walks `environ` once and keeps the values of the names
//! below; nothing else looks at the environment. Values are bytes: a variable
//! need not be UTF-8. Nothing is allocated.

macro_rules! vars {
    ($($name:ident),* $(,)?) => {
        /// A variable that tongs reads; the variant is the variable's own name.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Var { $(#[doc = concat!("`", stringify!($name), "`")] $name),* }

        impl Var {
            /// Every variable, in the order of the enum.
            pub const ALL: &'static [Var] = &[$(Var::$name),*];

            /// The variable's name as it stands in the environment.
            pub const fn name(self) -> &'static str {
                match self { $(Var::$name => stringify!($name)),* }
            }

            /// Finds the variable with exactly this name.
            pub fn find(name: &[u8]) -> Option<Var> {
                $(if name == stringify!($name).as_bytes() { return Some(Var::$name); })*
                None
            }
        }
    };
}

vars! {
    // ours
    TONGS_AGENTS_STATE_DIR, TONGS_AGENTS_LAUNCH_ID, TONGS_AGENTS_PROFILE_ID,
    TONGS_AGENTS_TERMINAL_ID, TONGS_AGENTS_DETAIL, TONGS_AGENTS_IGNORE,
    AGENT_LAUNCH_ID, AGENT_TERMINAL_ID, AGENT_HINT,
    // where things live
    XDG_STATE_HOME, HOME,
    // how to print
    NO_COLOR, COLUMNS, TERM,
    // how to show notices
    DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR,
    // which terminal
    TMUX, TMUX_PANE,
    ZELLIJ, ZELLIJ_SESSION_NAME, ZELLIJ_PANE_ID, ZELLIJ_SOCKET_DIR,
    KONSOLE_VERSION, KONSOLE_DBUS_SERVICE, KONSOLE_DBUS_SESSION,
    TERM_PROGRAM, GHOSTTY_BIN_DIR,
    ITERM_SESSION_ID, TERM_SESSION_ID,
    VTE_VERSION, GNOME_TERMINAL_SERVICE, GNOME_TERMINAL_SCREEN,
    PTYXIS_PROFILE, PTYXIS_VERSION,
    TERMINATOR_UUID, TERMINATOR_DBUS_NAME, TERMINATOR_DBUS_PATH,
    WT_SESSION,
    KITTY_WINDOW_ID, KITTY_PID, KITTY_LISTEN_ON,
    STY, WINDOW, WINDOWID,
    WEZTERM_PANE, WEZTERM_UNIX_SOCKET,
    ALACRITTY_WINDOW_ID, ALACRITTY_SOCKET,
    VSCODE_PID, VSCODE_IPC_HOOK_CLI,
    // where the window is
    DISPLAY, XAUTHORITY, WAYLAND_DISPLAY,
    SWAYSOCK, HYPRLAND_INSTANCE_SIGNATURE, NIRI_SOCKET, SCREENDIR,
    // whose hook it is, and what only variables say of the session
    GROK_HOOK_EVENT, GROK_SESSION_ID, GROK_WORKSPACE_ROOT,
    CURSOR_VERSION, GEMINI_SESSION_ID, GEMINI_CWD,
    QWEN_PROJECT_DIR, DEVIN_PROJECT_DIR, CRUSH_EVENT,
    // where programs and the settings of harnesses are
    PATH, XDG_CONFIG_HOME,
    CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, COPILOT_HOME, CURSOR_CONFIG_DIR,
    OPENCODE_CONFIG_DIR, PI_CODING_AGENT_DIR, QWEN_HOME, KIMI_CODE_HOME, GROK_HOME,
    ANTIGRAVITY_CLI_CONFIG_DIR, HERMES_HOME, CLINE_DATA_DIR,
}

impl Var {
    /// Bytes of the longest name.
    pub const LONGEST: usize = {
        let (mut longest, mut i) = (0, 0);
        while i < Var::ALL.len() {
            let len = Var::ALL[i].name().len();
            longest = if len > longest { len } else { longest };
            i += 1;
        }
        longest
    };

    /// For each length of a name, a bit for each letter that one begins with.
    const FIRST: [u32; Var::LONGEST + 1] = {
        let mut first = [0; Var::LONGEST + 1];
        let mut i = 0;
        while i < Var::ALL.len() {
            let name = Var::ALL[i].name().as_bytes();
            first[name.len()] |= 1 << (name[0] & 31);
            i += 1;
        }
        first
    };

    /// Whether a name may be one of these: a quick no for most of an
    /// environment.
    pub fn may_be(name: &[u8]) -> bool {
        let bit = |first: &u8| 1u32 << (first & 31);
        let wanted = Var::FIRST.get(name.len()).copied().unwrap_or(0);
        name.first().is_some_and(|first| wanted & bit(first) != 0)
    }
}

/// The values of the variables of [`Var`], borrowed from the process entry.
#[derive(Clone)]
pub struct Env<'a> {
    values: [Option<&'a [u8]>; Var::ALL.len()],
}

impl<'a> Env<'a> {
    /// An environment in which nothing is set.
    pub const fn empty() -> Env<'a> {
        Env { values: [None; Var::ALL.len()] }
    }

    /// Takes one `NAME=value` entry of `environ`; unknown names are passed over
    /// and, as in getenv(3), the first of two entries counts.
    pub fn take(&mut self, entry: &'a [u8]) {
        let Some(eq) = entry.iter().position(|&b| b == b'=') else { return };
        if let Some(var) = Var::find(&entry[..eq]) {
            let slot = &mut self.values[var as usize];
            if slot.is_none() {
                *slot = Some(&entry[eq + 1..]);
            }
        }
    }

    /// The value of `var`; an empty value is the same as none.
    pub fn get(&self, var: Var) -> Option<&'a [u8]> {
        self.values[var as usize].filter(|v| !v.is_empty())
    }

    /// The value of the variable with this name, where it is one of ours and
    /// UTF-8.
    pub fn named(&self, name: &str) -> Option<&'a str> {
        self.text(Var::find(name.as_bytes())?)
    }

    /// The value of `var` where it is UTF-8.
    pub fn text(&self, var: Var) -> Option<&'a str> {
        core::str::from_utf8(self.get(var)?).ok()
    }

    /// The value of `var` where it is an absolute path without NUL.
    pub fn absolute(&self, var: Var) -> Option<&'a [u8]> {
        self.get(var).filter(|v| v[0] == b'/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_whole_and_the_first_entry_counts() {
        let mut env = Env::empty();
        env.take(b"TMUX_PANE=%3");
        env.take(b"TMUX_PANE=%4");
        env.take(b"XTMUX=1");
        env.take(b"TMU");
        env.take(b"HOME=");
        assert_eq!(env.get(Var::TMUX_PANE), Some(&b"%3"[..]));
        assert_eq!(env.get(Var::TMUX), None);
        assert_eq!(env.get(Var::HOME), None);
        for var in Var::ALL {
            assert_eq!(Var::find(var.name().as_bytes()), Some(*var));
            assert!(Var::may_be(var.name().as_bytes()) && var.name().len() <= Var::LONGEST);
        }
    }
}
