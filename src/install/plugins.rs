//! The plugins of harnesses that run them in their own process, and the scripts
//! of one that runs a file for each event. They pass on what happens, with the
//! few fields that the row reads, to the hook whose path they hold.

use super::command::{quoted, unquoted};

/// The version of the plugins. A new one is to replace an older one's files.
const VERSION: u32 = 1;

const QUEUE: &str = text_file!("plugins/queue.js");

/// A plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// Of OpenCode 1.x and 2.x.
    OpenCode,
    /// Of Pi and its forks.
    Pi,
    /// Of Amp.
    Amp,
    /// Of Cline, for the event of this name.
    Cline(&'static str),
}

impl Plugin {
    /// The id of the harness.
    fn harness(self) -> &'static str {
        match self {
            Plugin::OpenCode => "opencode",
            Plugin::Pi => "pi",
            Plugin::Amp => "amp",
            Plugin::Cline(_) => "cline",
        }
    }

    /// How the line begins that tells a file as ours; the version follows.
    fn marker(self) -> &'static str {
        match self {
            Plugin::Cline(_) => "# tongs plugin ",
            _ => "// tongs plugin ",
        }
    }

    /// How that line ends.
    fn removal(self) -> String {
        format!("tongs-agents uninstall --agent {}", self.harness())
    }

    /// The line that the path stands behind.
    fn before_path(self) -> &'static str {
        match self {
            Plugin::Cline(_) => "\n[ ! -x ",
            _ => "\nconst HOOK = ",
        }
    }
}

/// The plugin of a harness with the hook's path put in. The first line tells it
/// as ours, or the second where the first is the interpreter's.
pub fn text(which: Plugin, hook: &str) -> String {
    let marker = format!(
        "{}{VERSION}: tells tongs-hook what the agent does; to remove it: {}",
        which.marker(),
        which.removal()
    );
    let (more, body) = match which {
        Plugin::OpenCode => ("", text_file!("plugins/opencode.js")),
        Plugin::Pi => ("", text_file!("plugins/pi.ts")),
        // Early builds ask for this line.
        Plugin::Amp => (
            "// @i-know-the-amp-plugin-api-is-wip-and-very-experimental-right-now\n",
            text_file!("plugins/amp.ts"),
        ),
        Plugin::Cline(event) => {
            let word = quoted(hook);
            return text_file!("plugins/cline.sh")
                .replace("@MARKER@", &marker)
                .replace("@EVENT@", event)
                .replace("@HOOK@", &word);
        }
    };
    let (harness, hook) = (which.harness(), script_string(hook));
    format!(
        "{marker}\n{more}import {{ spawn, spawnSync }} from \"node:child_process\";\n\n\
         const HOOK = {hook};\nconst HARNESS = \"{harness}\";\n\n{QUEUE}\n{body}"
    )
}

/// Whether a text is one that this or an earlier build wrote, whatever the path.
pub fn is_ours(which: Plugin, text: &str) -> bool {
    let text = text.strip_prefix("#!/bin/sh\n").unwrap_or(text);
    let line = text.split('\n').next().unwrap_or("");
    let version = line.strip_prefix(which.marker()).and_then(|rest| rest.split_once(": "));
    version.is_some_and(|(number, rest)| {
        !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
            && rest.ends_with(&which.removal())
    })
}

/// The path of the hook in one of ours.
pub fn hook_path(which: Plugin, text: &str) -> Option<String> {
    if !is_ours(which, text) {
        return None;
    }
    let (_, rest) = text.split_once(which.before_path())?;
    // What stands there must be what would be written for it.
    let (path, written) = match which {
        Plugin::Cline(_) => {
            let (path, _) = unquoted(rest)?;
            let written = format!("{} ] || exec ", quoted(&path));
            (path, written)
        }
        _ => {
            let path = read_script_string(rest)?;
            let written = format!("{};\n", script_string(&path));
            (path, written)
        }
    };
    rest.starts_with(&written).then_some(path)
}

/// A text as a literal of JavaScript.
fn script_string(text: &str) -> String {
    let mut literal = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            // Line ends of the language, and what an editor would not show.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                literal.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// The text of a literal that [`script_string`] wrote, at the start of this.
fn read_script_string(literal: &str) -> Option<String> {
    let mut chars = literal.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => match chars.next()? {
                c @ ('"' | '\\') => text.push(c),
                'u' => {
                    let digits = chars.as_str().get(..4)?;
                    text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                    chars = chars.as_str().get(4..)?.chars();
                }
                _ => return None,
            },
            c if c.is_control() => return None,
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGINS: [Plugin; 4] =
        [Plugin::OpenCode, Plugin::Pi, Plugin::Amp, Plugin::Cline("TaskStart")];
    const PATHS: [&str; 7] = [
        "/usr/local/bin/tongs-hook",
        "/a b/it's \"here\"/tongs-hook",
        r"/back\slash\/u0041/tongs-hook",
        "/new\nline\r\t/tongs-hook",
        "/ünï/日本/\u{1f980}/\u{2028}\u{feff}/tongs-hook",
        "''''",
        "@HOOK@ @EVENT@ ; const HOOK = \"x\"; $(id) `id` ${x}",
    ];

    #[test]
    fn the_path_comes_back() {
        for which in PLUGINS {
            for path in PATHS {
                let text = text(which, path);
                assert!(is_ours(which, &text), "{which:?} {path}");
                assert_eq!(hook_path(which, &text).as_deref(), Some(path), "{which:?}");
                assert!(!text.contains("@MARKER@") && text.ends_with('\n'), "{which:?}");
            }
        }
    }

    #[test]
    fn a_file_is_ours_by_its_first_line_and_of_one_harness() {
        for which in PLUGINS {
            let ours = text(which, "/h");
            for other in PLUGINS {
                assert_eq!(is_ours(other, &ours), other == which, "{which:?} {other:?}");
            }
            let newer = ours.replacen("plugin 1:", "plugin 27: does more,", 1);
            assert!(is_ours(which, &newer), "{which:?}");
            assert!(is_ours(which, ours.lines().take(2).collect::<Vec<_>>().join("\n").as_str()));
            for (from, to) in
                [("plugin 1:", "plugin x:"), ("plugin 1:", "plugin :"), ("tongs p", "p")]
            {
                let not = ours.replacen(from, to, 1);
                assert!(!is_ours(which, &not) && hook_path(which, &not).is_none(), "{which:?}");
            }
            assert!(!is_ours(which, &format!("\n{ours}")) && !is_ours(which, ""));
            let damaged = ours.replace("/h\"", "").replace("/h'", "");
            assert_eq!(hook_path(which, &damaged), None, "{which:?}");
        }
        assert!(is_ours(Plugin::Cline("PreToolUse"), &text(Plugin::Cline("TaskStart"), "/h")));
    }

    #[test]
    fn what_is_no_literal_of_ours_is_none() {
        for text in [
            "",
            "x",
            "\"",
            "\"\\",
            "\"\\u00",
            "\"\\u00e\u{e9}\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\n\"",
        ] {
            assert_eq!(read_script_string(text), None, "{text}");
        }
        for word in ["", "x", "'"] {
            assert_eq!(unquoted(word), None, "{word}");
        }
    }
}
