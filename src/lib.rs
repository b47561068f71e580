//! tongs: which coding agent works, which one waits for you, and where it is.
//!
//! The layers, bottom first; `src/README.md` is the map.

/// A text file as a constant with a name of its own in the program, by which the
/// linker keeps it away from what a hook uses.
macro_rules! text_file {
    ($file:literal) => {{
        static TEXT: [u8; include_bytes!($file).len()] = *include_bytes!($file);
        match core::str::from_utf8(&TEXT) {
            Ok(text) => text,
            Err(_) => panic!(),
        }
    }};
}

pub mod applet;
pub mod cli;
pub mod focus;
pub mod harness;
pub mod install;
pub mod probe;
pub mod store;
pub mod sys;
pub mod terminal;

pub use tongs_record as record;
