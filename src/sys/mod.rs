//! The operating system, thinly: files relative to a descriptor, locks,
//! clocks, processes, sleeping until something changes, the environment, the
//! terminal, the guard of the hook.
//!
//! Nothing here knows what a record is or holds a policy; callers pass paths,
//! limits and deadlines. This is the only layer that names `rustix`, and
//! `unsafe` stands only in [`guard`], and elsewhere than on Linux where kqueue(2)
//! and sysctl(3) are called.

pub mod clock;
pub mod env;
pub mod exec;
pub mod fs;
pub mod guard;
pub mod process;
pub mod spawn;
pub mod stdio;
#[cfg(not(target_os = "linux"))]
pub mod sysctl;
pub mod tty;
pub mod watch;
