//! The compression of SHA-256 by the processor's own instructions (Intel SHA
//! extensions, Intel 64 manual volume 2, `SHA256RNDS2` and `SHA256MSG1/2`).
//!
//! `unsafe` stands here because only the processor can say whether it has them.
//! All that is worked on are two arrays of a fixed size.

#![allow(unsafe_code)]

use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Blocks after which the processor is asked, for a hook has only a few. An
/// answer takes about ten CPUIDs, and a hypervisor traps each of them: 1.3 us
/// apiece where it was measured.
const ENOUGH: u8 = 100;

/// Blocks until now, and then [`HAS`] or [`HAS_NOT`].
static KNOWN: AtomicU8 = AtomicU8::new(0);

const HAS: u8 = u8::MAX;
const HAS_NOT: u8 = u8::MAX - 1;

/// Compresses a block, where the processor is known to be able to.
#[inline]
pub(super) fn compress(state: &mut [u32; 8], block: &[u8; 64], k: &[u32; 64]) -> bool {
    match KNOWN.load(Relaxed) {
        HAS => {}
        HAS_NOT => return false,
        count => {
            KNOWN.store(if count < ENOUGH { count + 1 } else { ask() }, Relaxed);
            return false;
        }
    }
    // SAFETY: the processor said that it has these instructions.
    unsafe { with_instructions(state, block, k) };
    true
}

#[cold]
fn ask() -> u8 {
    if is_x86_feature_detected!("sha") && is_x86_feature_detected!("sse4.1") {
        HAS
    } else {
        HAS_NOT
    }
}

/// # Safety
/// The processor has the features named here.
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
#[allow(unsafe_op_in_unsafe_fn)]
unsafe fn with_instructions(state: &mut [u32; 8], block: &[u8; 64], k: &[u32; 64]) {
    let four = |w: [u32; 4]| {
        let [w0, w1, w2, w3] = w.map(|w| w as i32);
        _mm_set_epi32(w3, w2, w1, w0)
    };
    let word = |i: usize| u32::from_be_bytes([block[i], block[i + 1], block[i + 2], block[i + 3]]);
    let words = |i: usize| four([word(i), word(i + 4), word(i + 8), word(i + 12)]);
    let mut m = [words(0), words(16), words(32), words(48)];
    let [a, b, c, d, e, f, g, h] = *state;
    let start = (four([f, e, b, a]), four([h, g, d, c]));
    let (mut abef, mut cdgh) = start;
    for (i, k) in k.chunks_exact(4).enumerate() {
        let now = m[i % 4];
        let kw = _mm_add_epi32(now, four([k[0], k[1], k[2], k[3]]));
        // Two rounds make a new `abef`; the old one is the new `cdgh`.
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, kw);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32::<0b1110>(kw));
        // The words of four groups later; those of the last four are not used.
        let (next, after, last) = (m[(i + 1) % 4], m[(i + 2) % 4], m[(i + 3) % 4]);
        let sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8::<4>(last, after));
        m[i % 4] = _mm_sha256msg2_epu32(sum, last);
    }
    let abef = _mm_add_epi32(abef, start.0);
    let cdgh = _mm_add_epi32(cdgh, start.1);
    *state = [
        _mm_extract_epi32::<3>(abef),
        _mm_extract_epi32::<2>(abef),
        _mm_extract_epi32::<3>(cdgh),
        _mm_extract_epi32::<2>(cdgh),
        _mm_extract_epi32::<1>(abef),
        _mm_extract_epi32::<0>(abef),
        _mm_extract_epi32::<1>(cdgh),
        _mm_extract_epi32::<0>(cdgh),
    ]
    .map(|w| w as u32);
}

#[cfg(test)]
mod tests {
    use super::super::sha256::{K, START, by_hand};
    use super::*;

    #[test]
    fn the_processor_and_the_portable_way_agree() {
        if ask() == HAS_NOT {
            eprintln!("the_processor_and_the_portable_way_agree: skipped, no SHA instructions");
            return;
        }
        let (mut hand, mut processor) = (START, START);
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        for _ in 0..1000 {
            let block: [u8; 64] = core::array::from_fn(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                (seed >> 56) as u8
            });
            by_hand(&mut hand, &block);
            // SAFETY: the processor was asked.
            unsafe { with_instructions(&mut processor, &block, &K) };
            assert_eq!(hand, processor);
        }
    }
}
