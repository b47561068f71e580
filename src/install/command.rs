//! The commands that harnesses get to run: written in one exact shape, so that
//! they can be told from anybody else's.
//!
//! A command does nothing, and fails nothing, when the program is gone: some
//! harnesses refuse a tool call when a hook fails.

use crate::harness;

/// The name that the hook's file must have.
pub const HOOK: &str = "tongs-hook";

/// How a harness runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// By a shell.
    Shell,
    /// By a shell, and it reads this from standard output.
    Reply(&'static str),
    /// Without a shell, split into words as a shell would.
    Words,
}

/// A command of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The hook's absolute path.
    pub hook: String,
    /// The harness, as [`harness::named`] takes it.
    pub agent: String,
    /// The event, as the row of the harness has it.
    pub event: String,
}

impl Command {
    /// The command as text.
    pub fn text(&self, runs: Runs) -> String {
        let hook = quoted(&self.hook);
        let call = format!("{hook} {} {}", self.agent, self.event);
        match runs {
            Runs::Shell => format!("[ ! -x {hook} ] || exec {call}"),
            Runs::Reply(reply) => {
                format!("if [ -x {hook} ]; then exec {call}; else echo {}; fi", quoted(reply))
            }
            Runs::Words => format!("sh -c {}", quoted(&self.text(Runs::Shell))),
        }
    }

    /// Reads a command that has exactly one of the shapes of [`Command::text`],
    /// whatever its path and its harness; `None` for any other text.
    pub fn read(text: &str) -> Option<Command> {
        if let Some(word) = text.strip_prefix("sh -c ") {
            let (inner, rest) = unquoted(word)?;
            return Command::read(&inner)
                .filter(|read| rest.is_empty() && text == read.text(Runs::Words));
        }
        let quoted_hook = text.strip_prefix("[ ! -x ").or_else(|| text.strip_prefix("if [ -x "))?;
        let (hook, rest) = unquoted(quoted_hook)?;
        let call = rest.split_once("exec ")?.1;
        let (_, words) = unquoted(call)?;
        let mut words = words.split([' ', ';']).skip(1);
        let (agent, event) = (words.next()?, words.next()?);
        let row = harness::named(agent)?;
        row.event(event)?;
        let read = Command { hook, agent: agent.into(), event: event.into() };
        let ours = base_name(&read.hook) == HOOK
            && (text == read.text(Runs::Shell) || text == read.text(Runs::Reply(row.reply)));
        ours.then_some(read)
    }
}

/// A text in single quotes, for a POSIX shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Takes a text in single quotes, as [`quoted`] writes it, from the start; the
/// rest goes with it.
pub(super) fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut whole = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        whole.push_str(part);
        match after.strip_prefix("\\''") {
            Some(more) => {
                whole.push('\'');
                rest = more;
            }
            None => return Some((whole, after)),
        }
    }
}

/// The last component of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(hook: &str, agent: &str, event: &str) -> Command {
        Command { hook: hook.into(), agent: agent.into(), event: event.into() }
    }

    #[test]
    fn the_text_is_guarded_and_reads_back() {
        let plain = command("/usr/bin/tongs-hook", "claude", "Stop");
        assert_eq!(
            plain.text(Runs::Shell),
            "[ ! -x '/usr/bin/tongs-hook' ] || exec '/usr/bin/tongs-hook' claude Stop"
        );
        let reply = command("/usr/bin/tongs-hook", "antigravity", "Stop");
        assert_eq!(
            reply.text(Runs::Reply("{}")),
            "if [ -x '/usr/bin/tongs-hook' ]; then exec '/usr/bin/tongs-hook' antigravity Stop; else echo '{}'; fi"
        );
        let odd = command("/a b/it's/\u{e9}\"$x/tongs-hook", "hermes", "on_session_start");
        for (command, runs) in [
            (plain, Runs::Shell),
            (reply, Runs::Reply("{}")),
            (odd.clone(), Runs::Shell),
            (odd, Runs::Words),
        ] {
            assert_eq!(Command::read(&command.text(runs)), Some(command));
        }
    }

    #[test]
    fn anything_else_is_not_ours() {
        let ours = command("/usr/bin/tongs-hook", "claude", "Stop").text(Runs::Shell);
        for text in [
            "",
            "sh -c ",
            "sh -c ''",
            "/usr/bin/tongs-hook claude Stop",
            "'/usr/bin/tongs-hook' claude Stop",
            "[ ! -x '/usr/bin/tongs-hook' ] || exec '/usr/bin/other-hook' claude Stop",
            "[ ! -x '/usr/bin/my-tongs-hook' ] || exec '/usr/bin/my-tongs-hook' claude Stop",
            "[ ! -x '/usr/bin/tongs-hook' ] || exec '/usr/bin/tongs-hook' nobody Stop",
            "[ ! -x '/usr/bin/tongs-hook' ] || exec '/usr/bin/tongs-hook' claude NoEvent",
            "[ ! -x '/usr/bin/tongs-hook' ] || exec '/usr/bin/tongs-hook' claude",
            &format!("{ours} "),
            &format!(" {ours}"),
            &format!("{ours}; rm -rf x"),
            &format!("echo {ours}"),
        ] {
            assert_eq!(Command::read(text), None, "{text}");
        }
        assert!(Command::read(&ours).is_some());
    }
}
