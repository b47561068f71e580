//! Records on disk.
//!
//! Every session has one file, `fleet-v1-DIGEST.json`, in a private directory.
//! A **writer** takes two locks, the session's identity and then the record,
//! reads the record, writes the new one to a temporary file beside it and swaps
//! the two. A **reader** takes no lock and sees the old record or the new one.
//! The **maintainer** ([`maintain`]) is the only other one that changes
//! anything; it takes a record's lock before it removes it. Whoever waits for a
//! change sleeps on a [`watch`].
//!
//! Locks are `flock(2)` on files of their own, so the kernel drops a dead
//! holder's lock. A lock file may be removed, by the maintainer and only while
//! it holds it; whoever gets a lock therefore checks that the path still leads
//! to the locked file, and else tries again.
//!
//! Nothing is synced: after a power cut every recorded process is gone, and a
//! torn record reads as absent. The store never asks whether a process lives;
//! the caller passes the answer.

pub mod annotate;
pub mod bridges;
pub mod fault;
pub mod lock;
pub mod maintain;
pub mod place;
pub mod proc_file;
pub mod read;
pub mod replace;
pub mod seen;
pub mod watch;
pub mod write;

pub use lock::Patience;
pub use place::{Store, Trouble};
pub use read::Reader;
pub use write::{Decide, Scratch, Session, WriteError};
