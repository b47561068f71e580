//! The suite: one program, one module a subject. Everything that can be is
//! tested from outside: the built program, a throw-away home, real files, real
//! processes. `world` is what all modules share.
//!
//! Set TONGS_BIN to test another build than cargo's own; `make check` sets it
//! to the static one that is installed.

mod world;

/// Marks of what was seen.
mod ack;
/// Records from elsewhere, without a bridge and over one.
mod bridge_import;
/// Sessions of elsewhere.
mod bridges;
/// Exact budgets: system calls, processes, memory.
mod budget;
/// Building and installing where something is missing or in the way.
mod build;
/// What went wrong in other monitors, as scenarios.
mod cases;
/// The maintainer.
mod cleanup;
mod completions;
/// Finding the session behind a launch, a terminal, a process or an id.
mod find;
/// Going to a session's pane.
mod focus;
/// What single harnesses have of their own.
mod harness;
/// One event into one record, as a harness does it.
mod hook;
/// The repository checks itself: layers, names, forgotten files.
mod house;
/// Hooks in the settings of harnesses.
mod install;
/// Turns that were interrupted, by the harness's own note.
mod interrupt;
/// The writer side for launchers.
mod launcher;
/// The man pages: lint, names, examples.
mod man;
/// The server for agents.
mod mcp;
mod monitor;
/// What is dispatched to what.
mod multi;
/// Writing for programs that have no hook.
mod notify;
mod packages;
/// The sample payloads of every harness that has a row.
mod payloads;
/// The other processor of Linux.
mod platforms;
/// The plugins, in programs that play their harnesses.
mod plugins;
/// What stands in packaging/examples, in the shells and programs that it is for.
mod prompts;
/// The scanner and the check against an independent reading of the rules.
mod record;
/// Faults that were found once.
mod regress;
/// The status rules, every kind on every state.
mod rules;
/// The commands that read.
mod status;
/// The locks, the directory, hostile files, full disks.
mod store;
/// One session after another in one process.
mod supersede;
/// Waiting for a session.
mod wait;
/// Being told of every change: lines, commands, notices.
mod watch;
