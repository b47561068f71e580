//! Telling harnesses to run the hook: their settings files, edited by text span.
//!
//! [`recipe`] is the table of harnesses, [`places`] finds their files, [`plan`]
//! says what a file should hold, [`text`] edits it, [`file`] replaces it and
//! [`backup`] keeps what it was. What is parsed is no more than what is needed,
//! and what is not ours is never rewritten.

pub mod backup;
pub mod codex;
pub mod command;
pub mod file;
pub mod places;
pub mod plan;
pub mod plugins;
pub mod recipe;
pub mod server;
pub mod text;
