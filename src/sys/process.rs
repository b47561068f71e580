//! Processes: whose child this is, where it is, whether a pid exists. And the
//! machine's name.

use rustix::process::Pid;

use super::fs::{Dir, Errno, Open};
#[cfg(not(target_os = "linux"))]
use super::sysctl;

/// This process's parent; 0 when the parent is outside of our pid namespace.
pub fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32)
}

/// This process.
pub fn own() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get() as u32
}

/// This machine's name, in a container the container's.
pub fn host_name() -> Option<String> {
    let mut bytes = [0; 256];
    #[cfg(target_os = "linux")]
    let len = {
        let file = Dir::cwd().open(c"/proc/sys/kernel/hostname", Open::Read).ok()?;
        file.read_all(&mut bytes).ok()?
    };
    #[cfg(not(target_os = "linux"))]
    let len = sysctl::named(c"kern.hostname", &mut bytes).ok()?;
    let text = bytes.get(..len)?.split(|byte| *byte == 0).next()?;
    let name = core::str::from_utf8(text).ok()?.trim();
    Some(name.to_string()).filter(|name| !name.is_empty())
}

/// The directory that this process is in, as the system names it; nothing where
/// it does not say.
#[cfg(target_os = "linux")]
pub fn own_cwd(buffer: &mut [u8]) -> &[u8] {
    Dir::cwd().read_link(c"/proc/self/cwd", buffer).unwrap_or(b"")
}

/// The directory that this process is in, as the system names it; nothing where
/// it does not say.
#[cfg(not(target_os = "linux"))]
pub fn own_cwd(buffer: &mut [u8]) -> &[u8] {
    let path = rustix::process::getcwd(Vec::new()).unwrap_or_default();
    let len = path.as_bytes().len().min(buffer.len());
    buffer[..len].copy_from_slice(&path.as_bytes()[..len]);
    &buffer[..len]
}

/// What the kernel says of a pid without looking at `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// A process, maybe a zombie, has the pid.
    Yes,
    /// No process has it.
    No,
    /// The kernel will not say.
    Hidden,
}

/// Asks whether a process has this pid, with kill(2) and signal 0.
pub fn exists(pid: u32) -> Existence {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Existence::No };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => Existence::Yes,
        Err(Errno::SRCH) => Existence::No,
        Err(_) => Existence::Hidden,
    }
}

/// Fills `buffer` with random bytes from getrandom(2).
#[cfg(target_os = "linux")]
pub fn random(buffer: &mut [u8]) -> Result<(), Errno> {
    let mut at = 0;
    while let Some(room) = buffer.get_mut(at..).filter(|room| !room.is_empty()) {
        match rustix::rand::getrandom(room, rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => at += n,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Fills `buffer` with random bytes from random(4).
#[cfg(not(target_os = "linux"))]
pub fn random(buffer: &mut [u8]) -> Result<(), Errno> {
    let len = Dir::cwd().open(c"/dev/random", Open::Read)?.read_all(buffer)?;
    if len == buffer.len() { Ok(()) } else { Err(Errno::IO) }
}

/// Whether a recorded process is still the one that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same process lives.
    Alive,
    /// It has ended, or its pid is another process's.
    Dead,
    /// The system will not say: another pid namespace, another user, hidepid.
    Unknown,
}
