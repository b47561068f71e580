//! What macOS and FreeBSD both do not have.

use super::Process;

/// There are no pid namespaces.
pub fn pid_ns(_: u32) -> Option<u64> {
    None
}

/// There are no pid namespaces.
pub fn own_pid_ns() -> Option<u64> {
    None
}

/// There are no pid namespaces.
pub fn pid_ns_of_parent(_: u32) -> Option<u64> {
    None
}

/// There are no pid namespaces.
pub fn innermost_pid(_: u32) -> Option<u32> {
    None
}

/// Nobody lists the children of a process alone.
pub fn children(_: &Process) -> Option<Vec<Process>> {
    None
}
