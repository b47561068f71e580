//! Putting the hooks into the configuration files of other programs, and taking
//! them out again.
//!
//! Those files belong to their owners. What is not our entry keeps every byte:
//! comments, order, indentation, line ends. So a file is never written anew
//! from a parsed value; it is parsed to know where things stand, and the text
//! is edited there.

pub mod plugins;
pub mod text;
