//! tongs: which coding agent works, which one waits for you, and where it is.
//!
//! The layers, bottom first; `src/README.md` is the map.

pub mod sys;
pub mod harness;
pub mod record;
pub mod probe;
pub mod store;
pub mod terminal;
pub mod cli;
pub mod applet;
