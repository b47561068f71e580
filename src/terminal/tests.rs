//! Every terminal from ancestry and from the environment, every check, and
//! the order in which they decide.

use super::table::*;
use super::*;

const UUID: &str = "0F8E4A6B-1c2d-4e5f-8091-A2B3C4D5E6F7";

fn env_of<'a>(entries: &[&'a [u8]]) -> Env<'a> {
    let mut env = Env::empty();
    entries.iter().for_each(|entry| env.take(entry));
    env
}

/// Asserts what ancestors named `comms` and the variables `entries` lead to.
#[track_caller]
fn expect(comms: &[&str], entries: &[&str], terminal: &str, items: &[(&str, &str)]) {
    let entries: Vec<&[u8]> = entries.iter().map(|entry| entry.as_bytes()).collect();
    let got = capture(comms.iter(), &env_of(&entries));
    assert_eq!((got.terminal, got.items()), (terminal, items));
    let named = comms.iter().find_map(|comm| by_comm(comm.as_bytes()));
    assert_eq!(named.unwrap_or(terminal), terminal);
}

#[track_caller]
fn judge(check: Check, accepted: &[&str], refused: &[&str]) {
    accepted.iter().for_each(|text| assert!(check(text), "refused {text:?}"));
    refused.iter().for_each(|text| assert!(!check(text), "accepted {text:?}"));
}

#[test]
fn tmux_is_known_by_its_server_and_by_tmux() {
    let set = ["TMUX=/tmp/tmux-1000/default,812,0", "TMUX_PANE=%12"];
    let kept = [("TMUX", "/tmp/tmux-1000/default,812,0"), ("TMUX_PANE", "%12")];
    expect(&["bash", "tmux: server", "systemd"], &set, "tmux", &kept);
    expect(&["tmux"], &[], "tmux", &[("TMUX", "")]);
    expect(&["tmux: client"], &["TMUX_PANE=12"], "tmux", &[("TMUX", "")]);
    expect(&[], &set, "tmux", &kept);
    assert_eq!(by_comm(b"tmuxinator"), None);
}

#[test]
fn zellij_keeps_two_names_always_and_pane_and_directory_where_valid() {
    let set =
        ["ZELLIJ=0", "ZELLIJ_SESSION_NAME=a b", "ZELLIJ_PANE_ID=4", "ZELLIJ_SOCKET_DIR=/run/z"];
    let kept = [
        ("ZELLIJ", "0"),
        ("ZELLIJ_SESSION_NAME", "a b"),
        ("ZELLIJ_PANE_ID", "4"),
        ("ZELLIJ_SOCKET_DIR", "/run/z"),
    ];
    expect(&["zsh", "zellij"], &set, "zellij", &kept);
    expect(&[], &set, "zellij", &kept);
    let bad = ["ZELLIJ_PANE_ID=-1", "ZELLIJ_SOCKET_DIR=run/z"];
    expect(&["zellij"], &bad, "zellij", &[("ZELLIJ", ""), ("ZELLIJ_SESSION_NAME", "")]);
}

#[test]
fn konsole_is_known_by_name_and_by_version() {
    let set = ["KONSOLE_VERSION=230805", "KONSOLE_DBUS_SERVICE=:1.7"];
    let kept = [
        ("KONSOLE_DBUS_SERVICE", ":1.7"),
        ("KONSOLE_DBUS_SESSION", ""),
        ("KONSOLE_VERSION", "230805"),
    ];
    expect(&["konsole"], &set, "konsole", &kept);
    expect(&[], &set, "konsole", &kept);
}

#[test]
fn ghostty_is_known_by_name_and_by_term_program() {
    let kept = [("TERM_PROGRAM", "ghostty"), ("GHOSTTY_BIN_DIR", "/usr/bin")];
    expect(&[], &["TERM_PROGRAM=ghostty", "GHOSTTY_BIN_DIR=/usr/bin"], "ghostty", &kept);
    expect(&["ghostty"], &[], "ghostty", &[("TERM_PROGRAM", ""), ("GHOSTTY_BIN_DIR", "")]);
}

#[test]
fn iterm2_is_known_by_its_session_even_where_that_is_refused() {
    let id = format!("w0t12p3:{UUID}");
    expect(&[], &[&format!("ITERM_SESSION_ID={id}")], "iterm2", &[("ITERM_SESSION_ID", &id)]);
    expect(&[], &["ITERM_SESSION_ID=w0"], "iterm2", &[("ITERM_SESSION_ID", "")]);
}

#[test]
fn macos_terminal_is_known_by_term_program() {
    let (program, id) = ("TERM_PROGRAM=Apple_Terminal", format!("TERM_SESSION_ID={UUID}"));
    expect(&[], &[program, &id], "macos_terminal", &[("TERM_SESSION_ID", UUID)]);
    let bad = [program, "TERM_SESSION_ID=7"];
    expect(&[], &bad, "macos_terminal", &[("TERM_SESSION_ID", "")]);
}

#[test]
fn gnome_terminal_is_known_by_its_server_by_service_and_by_term_program() {
    let absent =
        [("VTE_VERSION", ""), ("GNOME_TERMINAL_SERVICE", ""), ("GNOME_TERMINAL_SCREEN", "")];
    expect(&["gnome-terminal"], &[], "gnome", &absent);
    expect(&["gnome-terminal-"], &[], "gnome", &absent);
    expect(&[], &["TERM_PROGRAM=gnome-terminal"], "gnome", &absent);
    let set = ["VTE_VERSION=7600", "GNOME_TERMINAL_SERVICE=:1.9", "GNOME_TERMINAL_SCREEN=/s/1"];
    let kept = [
        ("VTE_VERSION", "7600"),
        ("GNOME_TERMINAL_SERVICE", ":1.9"),
        ("GNOME_TERMINAL_SCREEN", "/s/1"),
    ];
    expect(&[], &set, "gnome", &kept);
}

#[test]
fn terminator_is_known_by_name_and_by_uuid() {
    let kept = [
        ("TERMINATOR_UUID", "urn:1"),
        ("TERMINATOR_DBUS_NAME", ""),
        ("TERMINATOR_DBUS_PATH", "/t"),
    ];
    for comms in [&["terminator"][..], &[]] {
        expect(comms, &["TERMINATOR_UUID=urn:1", "TERMINATOR_DBUS_PATH=/t"], "terminator", &kept);
    }
}

#[test]
fn windows_terminal_is_known_by_its_session() {
    expect(&[], &["WT_SESSION=abc"], "windows_terminal", &[("WT_SESSION", "abc")]);
}

#[test]
fn kitty_is_known_by_name_and_by_a_valid_window() {
    let set = ["KITTY_WINDOW_ID=3", "KITTY_PID=99", "KITTY_LISTEN_ON=unix:@k", "WINDOWID=41943046"];
    let kept = [
        ("KITTY_WINDOW_ID", "3"),
        ("KITTY_PID", "99"),
        ("KITTY_LISTEN_ON", "unix:@k"),
        ("WINDOWID", "41943046"),
    ];
    expect(&["kitty"], &set, "kitty", &kept);
    expect(&[], &set, "kitty", &kept);
    expect(&["kitty"], &["KITTY_PID=x", "KITTY_LISTEN_ON=tcp:h:1"], "kitty", &[]);
    expect(&[], &["KITTY_WINDOW_ID=x"], "generic", &[]);
}

#[test]
fn screen_is_known_by_name_and_by_session_with_window() {
    let set = ["STY=81.pts-0.host", "WINDOW=0"];
    let kept = [("STY", "81.pts-0.host"), ("WINDOW", "0")];
    expect(&["SCREEN"], &set, "screen", &kept);
    expect(&["screen"], &["STY=host", "WINDOW=x"], "screen", &[("STY", ""), ("WINDOW", "")]);
    expect(&[], &set, "screen", &kept);
    expect(&[], &["STY=81.pts-0.host"], "generic", &[]);
    expect(&[], &["STY=host", "WINDOW=0"], "generic", &[]);
}

#[test]
fn editors_with_the_terminal_of_vscode_are_vscode() {
    let set = ["TERM_PROGRAM=vscode", "VSCODE_PID=5", "VSCODE_IPC_HOOK_CLI=/run/v.sock"];
    let kept = [("VSCODE_PID", "5"), ("VSCODE_IPC_HOOK_CLI", "/run/v.sock")];
    for comm in ["code", "code-oss", "code-insiders", "codium", "cursor"] {
        expect(&["node", comm], &set, "vscode", &kept);
    }
    expect(&[], &set, "vscode", &kept);
    expect(&["code"], &["VSCODE_PID=", "VSCODE_IPC_HOOK_CLI=v.sock"], "vscode", &[]);
}

#[test]
fn wezterm_is_known_by_window_by_server_and_by_pane() {
    let set = ["WEZTERM_PANE=2", "WEZTERM_UNIX_SOCKET=/run/gui-sock-50"];
    let kept = [("WEZTERM_PANE", "2"), ("WEZTERM_UNIX_SOCKET", "/run/gui-sock-50")];
    expect(&["wezterm-gui"], &set, "wezterm", &kept);
    expect(&["wezterm-mux-ser"], &set, "wezterm", &kept);
    expect(&[], &set, "wezterm", &kept);
    expect(&["wezterm-gui"], &["WEZTERM_PANE=x", "WEZTERM_UNIX_SOCKET=s"], "wezterm", &[]);
}

#[test]
fn ptyxis_is_known_by_name_by_version_and_by_profile() {
    let set = ["PTYXIS_VERSION=47.1", "PTYXIS_PROFILE=abc", "VTE_VERSION=7800"];
    let kept = [("PTYXIS_VERSION", "47.1"), ("PTYXIS_PROFILE", "abc"), ("VTE_VERSION", "7800")];
    expect(&["ptyxis-agent"], &set, "ptyxis", &kept);
    expect(&["ptyxis"], &[], "ptyxis", &[]);
    expect(&[], &set, "ptyxis", &kept);
    expect(&[], &["PTYXIS_PROFILE=abc"], "ptyxis", &[("PTYXIS_PROFILE", "abc")]);
}

#[test]
fn alacritty_is_known_by_name_and_by_window() {
    let set = ["ALACRITTY_WINDOW_ID=94", "ALACRITTY_SOCKET=/run/a.sock", "WINDOWID=94"];
    let kept =
        [("ALACRITTY_WINDOW_ID", "94"), ("ALACRITTY_SOCKET", "/run/a.sock"), ("WINDOWID", "94")];
    expect(&["alacritty"], &set, "alacritty", &kept);
    expect(&[], &set, "alacritty", &kept);
    expect(&["alacritty"], &["ALACRITTY_SOCKET=a", "WINDOWID=0x5e"], "alacritty", &[]);
}

#[test]
fn foot_is_known_by_name_and_by_term() {
    expect(&["foot"], &["WINDOWID=1"], "foot", &[]);
    expect(&["footclient"], &[], "foot", &[]);
    expect(&[], &["TERM=foot-extra"], "foot", &[]);
    expect(&[], &["TERM=xterm-foot"], "generic", &[]);
}

#[test]
fn other_terminals_are_generic_and_end_the_walk() {
    for comm in GENERIC.comms {
        expect(&[comm, "konsole"], &["TMUX=/t,1,0", "WINDOWID=7"], "generic", &[("WINDOWID", "7")]);
    }
    assert_eq!(GENERIC.comms.len(), 21);
    expect(&[], &[], "generic", &[]);
    expect(&["bash"], &["WINDOWID=7"], "generic", &[("WINDOWID", "7")]);
}

#[test]
fn programs_that_embed_a_terminal_are_passed_over() {
    for comm in ["yakuake", "kate", "dolphin", "kdevelop", "emacs", "nvim", "bash", "sshd", ""] {
        assert_eq!(by_comm(comm.as_bytes()), None, "{comm}");
    }
    let got = capture(["bash", "yakuake"].iter(), &env_of(&[b"KONSOLE_VERSION=1"]));
    assert_eq!(got.terminal, "konsole");
}

#[test]
fn names_are_compared_by_their_first_15_bytes() {
    for row in TERMINALS.iter().chain([GENERIC]) {
        for name in row.comms.iter().filter(|name| !name.ends_with('*')) {
            assert_eq!(by_comm(name.as_bytes()), Some(row.name), "{name}");
            assert_eq!(by_comm(cut(name.as_bytes())), Some(row.name), "{name}");
        }
    }
    assert_eq!(cut(b"gnome-terminal-server"), b"gnome-terminal-");
    assert_eq!(by_comm(b"wezterm-mux-se"), None);
    assert_eq!(by_comm(b"konsol"), None);
    assert_eq!(by_comm(b"konsole\xff"), None);
}

#[test]
fn the_nearest_ancestor_decides_whatever_the_environment_says() {
    let set = ["TMUX=/t,1,0", "KITTY_WINDOW_ID=1"];
    expect(&["bash", "kitty", "tmux: server"], &set, "kitty", &[("KITTY_WINDOW_ID", "1")]);
    expect(&["bash", "tmux: server", "kitty"], &set, "tmux", &[("TMUX", "/t,1,0")]);
}

#[test]
fn no_ancestor_is_asked_for_after_the_one_that_decides() {
    let mut asked = 0;
    let walk = ["bash", "foot", "systemd"].iter().inspect(|_| asked += 1);
    assert_eq!(capture(walk, &Env::empty()).terminal, "foot");
    assert_eq!(asked, 2);
}

#[test]
fn the_environment_is_asked_in_the_order_of_the_table() {
    // Each step adds the clue of a terminal that stands before the last one.
    let steps = [
        ("foot", "TERM=foot"),
        ("alacritty", "ALACRITTY_WINDOW_ID=1"),
        ("ptyxis", "PTYXIS_VERSION=1"),
        ("wezterm", "WEZTERM_PANE=1"),
        ("screen", "STY=1.a"),
        ("kitty", "KITTY_WINDOW_ID=1"),
        ("windows_terminal", "WT_SESSION=1"),
        ("terminator", "TERMINATOR_UUID=1"),
        ("gnome", "GNOME_TERMINAL_SERVICE=1"),
        ("iterm2", "ITERM_SESSION_ID=1"),
        ("konsole", "KONSOLE_VERSION=1"),
        ("zellij", "ZELLIJ=1"),
        ("tmux", "TMUX=1"),
    ];
    let mut env = env_of(&[b"WINDOW=1"]);
    for (terminal, entry) in steps {
        env.take(entry.as_bytes());
        assert_eq!(capture(core::iter::empty::<&[u8]>(), &env).terminal, terminal);
    }
    let order: Vec<_> = TERMINALS.iter().map(|row| row.name).collect();
    assert_eq!(
        order.join(" "),
        "tmux zellij konsole ghostty iterm2 macos_terminal gnome terminator windows_terminal \
         kitty screen vscode wezterm ptyxis alacritty foot"
    );
}

#[test]
fn a_value_that_is_too_long_or_not_clean_is_treated_as_absent() {
    let fits = [b"TMUX=".as_slice(), &[b'x'; MAX_VALUE]].concat();
    let long = [b"TMUX=".as_slice(), &[b'x'; MAX_VALUE + 1]].concat();
    let bad: [&[u8]; 7] = [
        &long,
        b"TMUX=\xff",
        b"TMUX=a\0b",
        b"TMUX=a\nb",
        b"TMUX=\x1b[0m",
        b"TMUX=\x7f",
        b"TMUX=\xc2\x9b", // U+009B: CSI in one character
    ];
    assert_eq!(capture(["tmux"].iter(), &env_of(&[&fits])).items()[0].1.len(), MAX_VALUE);
    for entry in bad {
        let env = env_of(&[entry, b"KONSOLE_VERSION=1"]);
        for comms in [&["tmux"][..], &[]] {
            let got = capture(comms.iter(), &env);
            assert_eq!((got.terminal, got.items()), ("tmux", &[("TMUX", "")][..]));
        }
    }
}

#[test]
fn no_row_lets_an_unclean_value_through() {
    let long = "/".repeat(MAX_VALUE + 1);
    for row in TERMINALS.iter().chain([GENERIC]) {
        for key in row.keys {
            for value in [long.as_bytes(), b"/\xff", b"/\0", b"/\x1b", b"1\n"] {
                let entry = [key.var.name().as_bytes(), b"=", value].concat();
                let got = Capture::of(row, &env_of(&[&entry]));
                assert!(got.items().iter().all(|item| item.1.is_empty()), "{}", key.var.name());
            }
        }
    }
}

#[test]
fn a_number_that_is_none_is_neither_a_clue_nor_kept() {
    let vars = [
        "KITTY_WINDOW_ID=x1",
        "KITTY_PID=x1",
        "WINDOWID=x1",
        "WEZTERM_PANE=x1",
        "ALACRITTY_WINDOW_ID=x1",
        "VSCODE_PID=x1",
        "STY=1.a",
        "WINDOW=x1",
    ];
    expect(&[], &vars, "generic", &[]);
    for terminal in ["kitty", "alacritty", "vscode", "wezterm", "generic"] {
        let Some(row) = TERMINALS.iter().chain([GENERIC]).find(|row| row.name == terminal) else {
            panic!("no row for {terminal}");
        };
        expect(&row.comms[..1], &vars, terminal, &[]);
    }
    expect(&["screen"], &vars, "screen", &[("STY", "1.a"), ("WINDOW", "")]);
}

#[test]
fn numbers_are_ascii_digits_within_their_bounds() {
    let refused = ["", "1234567890123", "-1", "+1", "1 ", "0x1", "\u{661}"];
    judge(number, &["0", "007", "123456789012"], &refused);
    judge(long_number, &["0", "18446744073709551615"], &["", "123456789012345678901", "1a"]);
}

#[test]
fn paths_are_absolute() {
    judge(absolute, &["/", "/run/x y"], &["", "run", "~/x", " /x"]);
}

#[test]
fn a_pane_of_tmux_is_a_percent_sign_and_up_to_9_digits() {
    judge(tmux_pane, &["%0", "%123456789"], &["", "%", "0", "%1234567890", "%%1", "%1;", "%-1"]);
}

#[test]
fn a_socket_of_kitty_is_a_path_or_an_abstract_name() {
    let refused = ["", "unix:", "unix:/", "unix:@", "unix:k", "tcp:localhost:1", "fd:3", "/k"];
    judge(kitty_socket, &["unix:/run/k", "unix:@kitty-9"], &refused);
}

#[test]
fn a_session_of_screen_is_digits_a_dot_and_a_name() {
    let (fits, long) = (format!("1.{}", "a".repeat(254)), format!("1.{}", "a".repeat(255)));
    let refused = ["", "1", "1.", ".a", "a.1", "1.a b", "1.a/b", "1/2.a", &long];
    judge(screen_session, &["1.a", "81.pts-0.host", &fits], &refused);
}

#[test]
fn a_session_of_iterm2_is_three_numbers_and_a_uuid() {
    let with = |place: &str| format!("{place}:{UUID}");
    for place in ["w0t0p0", "w123456789t1p2"] {
        judge(iterm_session, &[&with(place)], &[place, &format!("{place}:"), &with(place)[1..]]);
    }
    for place in ["", "w1234567890t1p2", "wt0p0", "w0tp0", "w0t0p", "w0t0", "w0p0t0", "x0t0p0"] {
        judge(iterm_session, &[], &[&with(place)]);
    }
}

#[test]
fn a_uuid_has_its_dashes_in_place() {
    let (short, odd) = (&UUID[1..], UUID.replace("-1c2d", "1-c2d"));
    judge(uuid, &[UUID], &["", short, &odd, &UUID.replace('F', "G"), &format!("{UUID}0")]);
}
