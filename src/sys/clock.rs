//! The time and the boot that it belongs to.

#[cfg(target_os = "linux")]
use super::fs::{Dir, Open};
use super::guard::{Clock, now_ms};
#[cfg(not(target_os = "linux"))]
use super::sysctl;

/// A boot id as the kernel prints it: 36 bytes of hex and dashes.
pub type BootId = [u8; 36];

/// One moment on three clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall time, milliseconds since the epoch.
    pub wall_ms: u64,
    /// CLOCK_BOOTTIME, milliseconds.
    pub boot_ms: u64,
    /// CLOCK_MONOTONIC, milliseconds.
    pub mono_ms: u64,
}

impl Now {
    /// Reads the clocks.
    pub fn read() -> Now {
        Now {
            wall_ms: now_ms(Clock::Wall),
            boot_ms: now_ms(Clock::Boot),
            mono_ms: now_ms(Clock::Monotonic),
        }
    }

    /// Wall time in whole seconds since the epoch.
    pub fn secs(&self) -> u64 {
        self.wall_ms / 1000
    }
}

/// Reads the id of this boot from random(4)'s `boot_id`.
#[cfg(target_os = "linux")]
pub fn boot_id() -> Option<BootId> {
    let file = Dir::cwd().open(c"/proc/sys/kernel/random/boot_id", Open::Read).ok()?;
    let mut id = [0; 37];
    let len = file.read(&mut id).ok()?;
    id.first_chunk().copied().filter(|_| len >= 36)
}

/// Reads the id of this boot, `kern.bootsessionuuid`.
#[cfg(target_os = "macos")]
pub fn boot_id() -> Option<BootId> {
    let mut id = [0; 64];
    let len = sysctl::named(c"kern.bootsessionuuid", &mut id).ok()?;
    id.first_chunk().copied().filter(|_| len >= 36)
}

/// Reads the id of this boot, the 16 bytes of `kern.boot_id`.
#[cfg(target_os = "freebsd")]
pub fn boot_id() -> Option<BootId> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0; 16];
    sysctl::named(c"kern.boot_id", &mut bytes).ok().filter(|len| *len == bytes.len())?;
    let mut id = [b'-'; 36];
    let places = (0..36).filter(|at| ![8, 13, 18, 23].contains(at));
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (at, digit) in places.zip(digits) {
        id[at] = HEX[usize::from(digit)];
    }
    Some(id)
}
