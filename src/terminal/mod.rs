//! Which terminal an agent runs in, and what to remember of it so that it can
//! be found again.
//!
//! The nearest ancestor that is a terminal decides. The environment counts
//! only where no ancestor is one, because it outlives the terminal that set
//! it. What is kept is short, clean text; a value that is not is treated as
//! absent and never costs the record. Nothing here reads a file, runs a
//! program or allocates. What is known of each terminal stands in `table`.

pub mod table;

use crate::sys::env::{Env, Var};
use table::{Check, Clue, GENERIC, Missing, Row, Shown, TERMINALS};

/// The most items that a record's `terminal_env` may hold.
pub const MAX_ITEMS: usize = 32;
/// The longest value, in bytes, that a record's `terminal_env` may hold.
pub const MAX_VALUE: usize = 1024;

/// The most keys that a row of the table may name.
const MAX_KEYS: usize = 8;
/// What Linux keeps of a process name: TASK_COMM_LEN without its NUL, proc(5).
const COMM_LEN: usize = 15;

/// What is remembered of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture<'a> {
    /// The terminal's name as a record has it; `generic` where it has none.
    pub terminal: &'static str,
    items: [(&'static str, &'a str); MAX_KEYS],
    len: usize,
}

impl<'a> Capture<'a> {
    /// Nobody has looked.
    pub const NONE: Capture<'static> =
        Capture { terminal: "", items: [("", ""); MAX_KEYS], len: 0 };

    /// Lists the variables that are kept, in the order of the table.
    pub fn items(&self) -> &[(&'static str, &'a str)] {
        self.items.get(..self.len).unwrap_or_default()
    }

    fn of(row: &Row, env: &Env<'a>) -> Capture<'a> {
        let mut capture = Capture { terminal: row.name, items: [("", ""); MAX_KEYS], len: 0 };
        for key in row.keys {
            let value = match (valid(env, key.var, key.check), key.missing) {
                (Some(value), _) => value,
                (None, Missing::Empty) => "",
                (None, Missing::Omitted) => continue,
            };
            if let Some(slot) = capture.items.get_mut(capture.len) {
                *slot = (key.var.name(), value);
                capture.len += 1;
            }
        }
        capture
    }
}

/// Decides which terminal it is and keeps what finds it again.
///
/// `comms` are the names of the ancestors, nearest first, as proc_pid_comm(5)
/// has them. No name is asked for after the one that decides, so the iterator
/// may read each process as it is asked.
pub fn capture<'a>(
    mut comms: impl Iterator<Item = impl AsRef<[u8]>>,
    env: &Env<'a>,
) -> Capture<'a> {
    let row = comms
        .find_map(|comm| row_by_comm(comm.as_ref()))
        .or_else(|| TERMINALS.iter().find(|row| row.shown.holds(env)))
        .unwrap_or(GENERIC);
    Capture::of(row, env)
}

/// Tells which terminal a process name stands for; None when it is none.
///
/// Programs that embed a terminal of another name, such as Yakuake, Kate and
/// Dolphin, are none: the environment says more than they do.
pub fn by_comm(comm: &[u8]) -> Option<&'static str> {
    row_by_comm(comm).map(|row| row.name)
}

fn row_by_comm(comm: &[u8]) -> Option<&'static Row> {
    let comm = cut(comm);
    let is = |name: &&str| match name.strip_suffix('*') {
        Some(start) => comm.starts_with(start.as_bytes()),
        None => comm == cut(name.as_bytes()),
    };
    TERMINALS.iter().chain([GENERIC]).find(|row| row.comms.iter().any(is))
}

fn cut(name: &[u8]) -> &[u8] {
    name.get(..COMM_LEN).unwrap_or(name)
}

impl Shown {
    fn holds(&self, env: &Env) -> bool {
        match self {
            Shown::Any(clues) => clues.iter().any(|clue| clue.holds(env)),
            Shown::All(clues) => clues.iter().all(|clue| clue.holds(env)),
        }
    }
}

impl Clue {
    // `Set` asks for no clean value: a multiplexer with a broken variable is
    // still the innermost layer, and the layer around it would be a wrong answer.
    fn holds(&self, env: &Env) -> bool {
        match *self {
            Clue::Set(var) => env.get(var).is_some(),
            Clue::Is(var, value) => env.get(var) == Some(value.as_bytes()),
            Clue::Begins(var, start) => {
                env.get(var).is_some_and(|value| value.starts_with(start.as_bytes()))
            }
            Clue::Valid(var, check) => valid(env, var, check).is_some(),
        }
    }
}

/// The value of `var` where a record can hold it and `check` accepts it.
fn valid<'a>(env: &Env<'a>, var: Var, check: Check) -> Option<&'a str> {
    let value = env.get(var).filter(|value| value.len() <= MAX_VALUE)?;
    let text = core::str::from_utf8(value).ok()?;
    (!text.contains(char::is_control) && check(text)).then_some(text)
}

#[cfg(test)]
mod tests;
