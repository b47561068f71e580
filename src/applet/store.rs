//! Opening the store for a command.

use super::fail::unusable;
use crate::cli::Fail;
use crate::harness::is_known;
use crate::store::place::Root;
use crate::store::{Store, Trouble};
use crate::sys::env::Env;

/// Milliseconds that a command waits for locks.
pub const LOCKS_MS: u64 = 2000;

/// The store as a reader finds it.
pub enum Found {
    /// It is there.
    Open(Store),
    /// It does not exist yet.
    Missing,
    /// It cannot be used; the root's path is for the message.
    Unavailable(Trouble, Vec<u8>),
}

/// Opens the store for reading. Creates nothing.
pub fn find(env: &Env<'_>) -> Found {
    let root = match Root::find(env) {
        Ok(root) => root,
        Err(trouble) => return Found::Unavailable(trouble, Vec::new()),
    };
    match Store::open(&root, is_known) {
        Ok(store) => Found::Open(store),
        Err(Trouble::Missing) => Found::Missing,
        Err(trouble) => Found::Unavailable(trouble, root.path().to_vec()),
    }
}

/// Opens the store for a writing command, made where it is missing.
pub fn make(env: &Env<'_>) -> Result<Store, Fail> {
    let mut root = Root::find(env).map_err(|t| unusable(t, b""))?;
    Store::open_or_make(&mut root, is_known).map_err(|t| unusable(t, root.path()))
}
