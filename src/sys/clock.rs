//! The time and the boot that it belongs to.

use super::fs::{Dir, Open};
use super::guard::{Clock, now_ms};

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
pub fn boot_id() -> Option<BootId> {
    let file = Dir::cwd().open(c"/proc/sys/kernel/random/boot_id", Open::Read).ok()?;
    let mut id = [0; 37];
    let len = file.read(&mut id).ok()?;
    id.first_chunk().copied().filter(|_| len >= 36)
}
