//! The programs, and which of them a command line asks for. The only place
//! where layers meet.
//!
//! The whole last component of argv[0] decides: `tongs-hook` is the hook,
//! `my-tongs-hook` is nobody. As `tongs` the first argument does, without the
//! prefix.

pub mod agents;
mod branch;
mod bridge_import;
mod bridges;
mod chosen;
mod dir;
mod draft;
mod exporter;
mod fail;
mod feed;
mod find;
mod fleet;
mod going;
pub mod hook;
mod importing;
mod imports;
mod installer;
mod launcher;
mod lines;
mod marking;
mod multi;
mod notices;
mod outward;
mod processes;
mod rest;
mod store;
mod trackers;
mod upkeep;
mod value;
mod view;
mod waiting;
mod writer;

use crate::sys::env::Env;
use crate::sys::{guard, stdio};

/// What the process entry hands on.
pub struct Start<'a> {
    /// The words of the command line, the program's name first.
    pub args: &'a [&'a [u8]],
    /// The path or name that the file was started by, whatever program of it
    /// that means.
    pub called: &'a [u8],
    /// The environment.
    pub env: &'a Env<'a>,
}

/// One program.
pub struct Applet {
    /// The name that it is installed under.
    pub name: &'static str,
    /// One line for the list.
    pub about: &'static str,
    run: fn(&Start<'_>) -> i32,
}

/// Every program, sorted by name.
pub const APPLETS: &[Applet] = &[
    Applet {
        name: "tongs-agents",
        about: "shows and maintains the sessions of coding agents",
        run: agents::run,
    },
    Applet {
        name: "tongs-bridge-import",
        about: "takes over records of sessions from elsewhere",
        run: bridge_import::run,
    },
    Applet {
        name: "tongs-hook",
        about: "writes one event of a coding agent into its record",
        run: hook::run,
    },
];

/// Runs the program that the command line asks for; returns its exit status.
pub fn dispatch(start: &Start<'_>) -> i32 {
    let name = start.args.first().map_or(&b""[..], |arg| base_name(arg));
    match APPLETS.iter().find(|a| a.name.as_bytes() == name) {
        Some(applet) => (applet.run)(start),
        None => multi::run(start),
    }
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// What every program but the hook does first.
fn settle_command() {
    stdio::settle(false);
    guard::ignore_write_signals();
}
