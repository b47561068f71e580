//! Runs of the maintainer.

use super::fail::trouble;
use super::processes::{Table, boot};
use super::rest::Notes;
use super::store::{Found, LOCKS_MS, find, make};
use crate::probe::Here;
use crate::store::maintain::{Done, Mode, Outcome, maintain_store};
use crate::store::{Patience, Store};
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::{guard, stdio};

/// Opens the store; a run that may write makes it, so that the agents that are
/// already at work are seen.
pub fn open(env: &Env<'_>, mode: Mode) -> Result<Option<Store>, String> {
    match find(env) {
        Found::Open(store) => Ok(Some(store)),
        Found::Missing if mode == Mode::Forced => make(env).map(Some).map_err(|fail| fail.text),
        Found::Missing => Ok(None),
        Found::Unavailable(why, root) => Err(trouble(why, &root)),
    }
}

/// Runs the maintainer once.
pub fn maintain(store: &Store, mode: Mode, env: &Env<'_>) -> Outcome {
    let Some(ticking) = guard::tick_only(LOCKS_MS) else {
        return Outcome::Unavailable(Done::default());
    };
    stdio::private_umask();
    let patience = Patience::of(ticking, LOCKS_MS);
    let (now, here) = (Now::read(), Here::read());
    let mut table = Table::new(&here, now, patience, Notes::find(env));
    let outcome = maintain_store(store, mode, &now, patience, boot(&here), &mut table);
    guard::tick_no_more();
    outcome
}
