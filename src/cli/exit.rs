//! How a command ends: the exit codes of all programs but the hook, and the
//! failure that carries one of them up to `main`.
//!
//! The numbers are those of sysexits(3) where it has one. 2, 101 and 126 to
//! 255 are never used: harnesses, shells and panics have given them meanings.

use std::fmt::Display;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; also after help, and when the reader of our output went away.
    Ok = 0,
    /// Ran, and the answer is no.
    No = 1,
    /// The command line is wrong.
    Usage = 64,
    /// The input is malformed, corrupt or newer than this build.
    Data = 65,
    /// A tool or harness that the command needs is missing.
    Unavailable = 69,
    /// Reading or writing failed.
    Io = 74,
    /// Someone else holds it; trying again may help.
    Busy = 75,
    /// The lease was lost to another owner.
    Lost = 76,
    /// Refused: not ours, unsafe, or against policy.
    Refused = 77,
}

impl Exit {
    /// Gives the number for exit(3).
    pub fn code(self) -> i32 {
        i32::from(self as u8)
    }
}

/// Why a command stops early: the exit code and the message that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// The code that the program ends with; may be [`Exit::Ok`].
    pub exit: Exit,
    /// One line without the program's name, not yet escaped; empty: say nothing.
    pub text: String,
}

impl Fail {
    /// Makes a failure with a message.
    pub fn new(exit: Exit, text: impl Into<String>) -> Fail {
        Fail { exit, text: text.into() }
    }

    /// Makes a failure that prints nothing.
    pub fn silent(exit: Exit) -> Fail {
        Fail { exit, text: String::new() }
    }

    /// Makes a failure that says `cannot VERB 'SUBJECT': REASON`.
    pub fn cannot(exit: Exit, verb: &str, subject: impl Display, reason: impl Display) -> Fail {
        Fail { exit, text: format!("cannot {verb} '{subject}': {reason}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_numbers_of_the_contract() {
        let all = [
            (Exit::Ok, 0),
            (Exit::No, 1),
            (Exit::Usage, 64),
            (Exit::Data, 65),
            (Exit::Unavailable, 69),
            (Exit::Io, 74),
            (Exit::Busy, 75),
            (Exit::Lost, 76),
            (Exit::Refused, 77),
        ];
        assert!(all.iter().all(|(exit, code)| exit.code() == *code));
    }

    #[test]
    fn a_failure_says_what_it_could_not_do() {
        let fail = Fail::cannot(Exit::Busy, "lock", "/s/lock", "held for more than 2 s");
        assert_eq!(fail.text, "cannot lock '/s/lock': held for more than 2 s");
        assert_eq!(Fail::silent(Exit::No), Fail::new(Exit::No, ""));
    }
}
