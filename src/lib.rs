//! tongs: which coding agent works, which one waits for you, and where it is.
//!
//! The layers, bottom first; `src/README.md` is the map.

pub mod applet;
pub mod cli;
pub mod harness;
pub mod install;
pub mod probe;
pub mod record;
pub mod store;
pub mod sys;
pub mod terminal;
