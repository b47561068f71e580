//! How the commands speak: exit codes, messages, tables, escaping, options.
//!
//! Promises: text that came from outside reaches a terminal through [`Shown`]
//! alone; a reader that went away is no failure; one message is one line, in
//! the form `PROG: cannot VERB 'SUBJECT': REASON`. This layer opens nothing,
//! asks the system nothing and knows no store: the width of the terminal and
//! whether there is one are arguments.

mod duration;
mod exit;
mod frame;
mod keys;
mod report;
mod shown;
mod table;
mod width;
mod words;

pub use duration::duration;
pub use exit::{Exit, Fail};
pub use frame::Frame;
pub use keys::{Key, Keys};
pub use report::{Out, complain, reason};
pub use shown::{Shown, is_hidden, push_cut, shell_line, tmux, wrap};
pub use table::{Cell, Colour, Column, Table};
pub use width::{of as width_of, of_char as width_of_char};
pub use words::{Early, parse, parse_with_command};
