//! What is known of each terminal: one row per terminal.
//!
//! The order of the rows is the order in which the environment is asked, so a
//! terminal that runs inside others stands before them. A row says what its
//! processes are called, how the environment shows it and which variables are
//! kept. Values are checked here for form only: whether a path or a pane still
//! exists is for the one who uses it.

use crate::sys::env::Var::{self, *};

/// One terminal.
pub struct Row {
    /// The name in the record.
    pub name: &'static str,
    /// Process names in full; `*` at the end stands for any rest.
    pub comms: &'static [&'static str],
    /// How the environment shows it.
    pub shown: Shown,
    /// What is kept.
    pub keys: &'static [Key],
}

/// How many of the clues must hold.
pub enum Shown {
    /// One is enough.
    Any(&'static [Clue]),
    /// All are needed.
    All(&'static [Clue]),
}

/// What a variable must be for its terminal to be assumed.
pub enum Clue {
    /// Not empty.
    Set(Var),
    /// Exactly this.
    Is(Var, &'static str),
    /// Something that starts with this.
    Begins(Var, &'static str),
    /// Text that a record can hold and the check accepts.
    Valid(Var, Check),
}

/// A variable that is kept where `check` accepts it.
pub struct Key {
    /// The variable, whose name is the key in the record.
    pub var: Var,
    /// What a value must be.
    pub check: Check,
    /// What a variable without such a value leaves.
    pub missing: Missing,
}

/// What stands in the record for a variable that is absent or refused.
#[derive(Clone, Copy)]
pub enum Missing {
    /// The key with "", as readers of the reference's records expect.
    Empty,
    /// Nothing.
    Omitted,
}

/// Judges a value that is short and clean already.
pub type Check = fn(&str) -> bool;

const fn kept(var: Var) -> Key {
    kept_if(var, any)
}

const fn kept_if(var: Var, check: Check) -> Key {
    Key { var, check, missing: Missing::Empty }
}

const fn only_if(var: Var, check: Check) -> Key {
    Key { var, check, missing: Missing::Omitted }
}

/// Every terminal that has a name.
pub const TERMINALS: &[Row] = &[
    Row {
        name: "tmux",
        comms: &["tmux", "tmux:*"],
        shown: Shown::Any(&[Clue::Set(TMUX)]),
        keys: &[kept(TMUX), only_if(TMUX_PANE, tmux_pane)],
    },
    Row {
        name: "zellij",
        comms: &["zellij"],
        shown: Shown::Any(&[Clue::Set(ZELLIJ)]),
        keys: &[
            kept(ZELLIJ),
            kept(ZELLIJ_SESSION_NAME),
            only_if(ZELLIJ_PANE_ID, number),
            only_if(ZELLIJ_SOCKET_DIR, absolute),
        ],
    },
    Row {
        name: "konsole",
        comms: &["konsole"],
        shown: Shown::Any(&[Clue::Set(KONSOLE_VERSION)]),
        keys: &[kept(KONSOLE_DBUS_SERVICE), kept(KONSOLE_DBUS_SESSION), kept(KONSOLE_VERSION)],
    },
    Row {
        name: "ghostty",
        comms: &["ghostty"],
        shown: Shown::Any(&[Clue::Is(TERM_PROGRAM, "ghostty")]),
        keys: &[kept(TERM_PROGRAM), kept(GHOSTTY_BIN_DIR)],
    },
    Row {
        name: "iterm2",
        comms: &[],
        shown: Shown::Any(&[Clue::Set(ITERM_SESSION_ID)]),
        keys: &[kept_if(ITERM_SESSION_ID, iterm_session)],
    },
    Row {
        name: "macos_terminal",
        comms: &[],
        shown: Shown::Any(&[Clue::Is(TERM_PROGRAM, "Apple_Terminal")]),
        keys: &[kept_if(TERM_SESSION_ID, uuid)],
    },
    Row {
        name: "gnome",
        comms: &["gnome-terminal", "gnome-terminal-server"],
        shown: Shown::Any(&[
            Clue::Set(GNOME_TERMINAL_SERVICE),
            Clue::Is(TERM_PROGRAM, "gnome-terminal"),
        ]),
        keys: &[kept(VTE_VERSION), kept(GNOME_TERMINAL_SERVICE), kept(GNOME_TERMINAL_SCREEN)],
    },
    Row {
        name: "terminator",
        comms: &["terminator"],
        shown: Shown::Any(&[Clue::Set(TERMINATOR_UUID)]),
        keys: &[kept(TERMINATOR_UUID), kept(TERMINATOR_DBUS_NAME), kept(TERMINATOR_DBUS_PATH)],
    },
    Row {
        name: "windows_terminal",
        comms: &[],
        shown: Shown::Any(&[Clue::Set(WT_SESSION)]),
        keys: &[kept(WT_SESSION)],
    },
    Row {
        name: "kitty",
        comms: &["kitty"],
        shown: Shown::Any(&[Clue::Valid(KITTY_WINDOW_ID, number)]),
        keys: &[
            only_if(KITTY_WINDOW_ID, number),
            only_if(KITTY_PID, number),
            only_if(KITTY_LISTEN_ON, kitty_socket),
            only_if(WINDOWID, long_number),
        ],
    },
    Row {
        name: "screen",
        comms: &["screen", "SCREEN"],
        shown: Shown::All(&[Clue::Valid(STY, screen_session), Clue::Valid(WINDOW, number)]),
        keys: &[kept_if(STY, screen_session), kept_if(WINDOW, number)],
    },
    // From here on the reference knows no name. Editors come first: one that
    // is started from a terminal passes that terminal's variables on.
    Row {
        name: "vscode",
        comms: &["code", "code-oss", "code-insiders", "codium", "cursor"],
        shown: Shown::Any(&[Clue::Is(TERM_PROGRAM, "vscode")]),
        keys: &[only_if(VSCODE_PID, number), only_if(VSCODE_IPC_HOOK_CLI, absolute)],
    },
    Row {
        name: "wezterm",
        comms: &["wezterm-gui", "wezterm-mux-server"],
        shown: Shown::Any(&[Clue::Valid(WEZTERM_PANE, long_number)]),
        keys: &[only_if(WEZTERM_PANE, long_number), only_if(WEZTERM_UNIX_SOCKET, absolute)],
    },
    Row {
        name: "ptyxis",
        comms: &["ptyxis", "ptyxis-agent"],
        shown: Shown::Any(&[Clue::Set(PTYXIS_VERSION), Clue::Set(PTYXIS_PROFILE)]),
        keys: &[
            only_if(PTYXIS_VERSION, any),
            only_if(PTYXIS_PROFILE, any),
            only_if(VTE_VERSION, any),
        ],
    },
    Row {
        name: "alacritty",
        comms: &["alacritty"],
        shown: Shown::Any(&[Clue::Valid(ALACRITTY_WINDOW_ID, long_number)]),
        keys: &[
            only_if(ALACRITTY_WINDOW_ID, long_number),
            only_if(ALACRITTY_SOCKET, absolute),
            only_if(WINDOWID, long_number),
        ],
    },
    // TERM is the weakest clue: ssh(1) carries it to other machines.
    Row {
        name: "foot",
        comms: &["foot", "footclient"],
        shown: Shown::Any(&[Clue::Begins(TERM, "foot")]),
        keys: &[],
    },
];

/// Terminals without a name of their own, and whatever shows itself nowhere.
///
/// They end the walk: an ancestor behind them is not the agent's terminal.
#[rustfmt::skip]
pub const GENERIC: &Row = &Row {
    name: "generic",
    comms: &[
        "xterm", "urxvt", "urxvtd", "urxvt256c", "urxvt256cd", "urxvt256c-ml", "urxvt256c-mld",
        "rxvt", "rxvt-unicode", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal",
        "tilix", "kgx", "terminology", "sakura", "tilda", "guake", "cool-retro-term", "contour",
    ],
    shown: Shown::All(&[]),
    keys: &[only_if(WINDOWID, long_number)],
};

const _: () = {
    let mut at = 0;
    while at < TERMINALS.len() {
        assert!(TERMINALS[at].keys.len() <= super::MAX_KEYS);
        at += 1;
    }
    assert!(GENERIC.keys.len() <= super::MAX_KEYS && super::MAX_KEYS <= super::MAX_ITEMS);
};

fn any(_: &str) -> bool {
    true
}

fn digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// A pid or a small id: 1 to 12 digits, the reference's bound.
pub fn number(text: &str) -> bool {
    digits(text, 12)
}

/// A window's id, which may fill 64 bits: 1 to 20 digits.
pub fn long_number(text: &str) -> bool {
    digits(text, 20)
}

/// An absolute path.
pub fn absolute(text: &str) -> bool {
    text.starts_with('/')
}

/// A pane of tmux(1): `%` and 1 to 9 digits.
pub fn tmux_pane(text: &str) -> bool {
    text.strip_prefix('%').is_some_and(|id| digits(id, 9))
}

/// A socket of kitty that is on this machine: `unix:/path` or `unix:@name`.
pub fn kitty_socket(text: &str) -> bool {
    text.len() > "unix:/".len() && (text.starts_with("unix:/") || text.starts_with("unix:@"))
}

/// A session of screen(1): `digits.name`, at most 256 bytes, no space or `/`.
pub fn screen_session(text: &str) -> bool {
    let (pid, name) = text.split_once('.').unwrap_or_default();
    text.len() <= 256 && digits(pid, 256) && !name.is_empty() && !name.contains([' ', '/'])
}

/// A session of iTerm2: `w0t0p0:` and a UUID, each number of 1 to 9 digits.
pub fn iterm_session(text: &str) -> bool {
    let parts = || {
        let (window, rest) = text.strip_prefix('w')?.split_once('t')?;
        let (tab, rest) = rest.split_once('p')?;
        let (pane, id) = rest.split_once(':')?;
        Some([window, tab, pane].iter().all(|part| digits(part, 9)) && uuid(id))
    };
    parts() == Some(true)
}

/// A UUID in its usual form: 8-4-4-4-12 hexadecimal digits of either case.
pub fn uuid(text: &str) -> bool {
    let fits = |(at, b): (usize, u8)| match at {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}
