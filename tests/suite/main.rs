//! The suite: one program, one module a subject. Everything that can be is
//! tested from outside: the built program, a throw-away home, real files, real
//! processes. `world` is what all modules share.
//!
//! Set TONGS_BIN to test another build than cargo's own; `make check` sets it
//! to the static one that is installed.

mod world;

/// The repository checks itself: layers, names, forgotten files.
mod house;
/// What is dispatched to what.
mod multi;
/// One event into one record, as a harness does it.
mod hook;
/// Faults that were found once.
mod regress;
/// The sample payloads of every harness that has a row.
mod payloads;
/// The locks, the directory, hostile files, full disks.
mod store;
/// Exact budgets: system calls, processes, memory.
mod budget;
/// The commands that read.
mod status;
/// Writing for programs that have no hook.
mod notify;
/// The maintainer.
mod cleanup;
/// The status rules, every kind on every state.
mod rules;
/// The scanner and the check against an independent reading of the rules.
mod record;
/// The man pages: lint, names, examples.
mod man;
