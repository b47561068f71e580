//! SHA-256 (FIPS 180-4), streaming, without allocation.

pub(super) const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

pub(super) const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// A digest as 64 lower-case hex digits.
pub type Hex = [u8; 64];

/// A hash under way.
pub struct Sha256 {
    state: [u32; 8],
    block: [u8; 64],
    filled: usize,
    bytes: u64,
}

impl Default for Sha256 {
    fn default() -> Self {
        Sha256 { state: START, block: [0; 64], filled: 0, bytes: 0 }
    }
}

impl Sha256 {
    /// Takes more bytes of the message.
    #[inline(always)]
    pub fn update(&mut self, mut data: &[u8]) {
        self.bytes += data.len() as u64;
        while !data.is_empty() {
            let take = data.len().min(64 - self.filled);
            let (now, later) = data.split_at(take);
            self.block[self.filled..self.filled + take].copy_from_slice(now);
            self.filled += take;
            data = later;
            if self.filled == 64 {
                compress(&mut self.state, &self.block);
                self.filled = 0;
            }
        }
    }

    /// Ends the message and returns its digest.
    pub fn finish(mut self) -> [u8; 32] {
        self.block[self.filled] = 0x80;
        self.block[self.filled + 1..].fill(0);
        if self.filled >= 56 {
            compress(&mut self.state, &self.block);
            self.block.fill(0);
        }
        self.block[56..].copy_from_slice(&(self.bytes * 8).to_be_bytes());
        compress(&mut self.state, &self.block);
        let mut digest = [0; 32];
        for (out, word) in digest.chunks_exact_mut(4).zip(self.state) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    /// Ends the message and returns its digest as lower-case hex.
    pub fn finish_hex(self) -> Hex {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.finish()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        hex
    }
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    #[cfg(target_arch = "x86_64")]
    if super::sha_ni::compress(state, block, &K) {
        return;
    }
    by_hand(state, block);
}

pub(super) fn by_hand(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for i in 16..64 {
        let (a, b) = (w[i - 15], w[i - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    // One round; the names turn from one to the next instead of the values.
    macro_rules! round {
        ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $kw:expr) => {
            let s1 = $e.rotate_right(6) ^ $e.rotate_right(11) ^ $e.rotate_right(25);
            let choose = $g ^ ($e & ($f ^ $g));
            let t1 = $h.wrapping_add(s1).wrapping_add(choose).wrapping_add($kw);
            let s0 = $a.rotate_right(2) ^ $a.rotate_right(13) ^ $a.rotate_right(22);
            let majority = ($a & $b) | ($c & ($a | $b));
            $d = $d.wrapping_add(t1);
            $h = t1.wrapping_add(s0.wrapping_add(majority));
        };
    }
    for (k, w) in K.chunks_exact(8).zip(w.chunks_exact(8)) {
        round!(a b c d e f g h, k[0].wrapping_add(w[0]));
        round!(h a b c d e f g, k[1].wrapping_add(w[1]));
        round!(g h a b c d e f, k[2].wrapping_add(w[2]));
        round!(f g h a b c d e, k[3].wrapping_add(w[3]));
        round!(e f g h a b c d, k[4].wrapping_add(w[4]));
        round!(d e f g h a b c, k[5].wrapping_add(w[5]));
        round!(c d e f g h a b, k[6].wrapping_add(w[6]));
        round!(b c d e f g h a, k[7].wrapping_add(w[7]));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(parts: &[&[u8]]) -> String {
        let mut hash = Sha256::default();
        parts.iter().for_each(|p| hash.update(p));
        String::from_utf8(hash.finish_hex().to_vec()).unwrap()
    }

    #[test]
    fn nist_vectors() {
        // FIPS 180-4 examples and the NIST CAVS short-message and long-message ends.
        for (message, want) in [
            (&b""[..], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            (
                b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
            ),
            (&[0xbd], "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"),
        ] {
            assert_eq!(hex(&[message]), want);
        }
        assert_eq!(
            hex(&vec![&[b'a'; 1000][..]; 1000]),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }

    #[test]
    fn cutting_a_message_anywhere_changes_nothing() {
        let message: Vec<u8> = (0..200u8).collect();
        for len in [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200] {
            let whole = hex(&[&message[..len]]);
            for cut in 0..=len {
                assert_eq!(hex(&[&message[..cut], &message[cut..len]]), whole);
            }
        }
    }
}
