//! Canonical ids and the file names that follow from them.
//!
//! A canonical id is `fleet:v1:HARNESS:DIGEST`, the digest being SHA-256 over
//! the compact JSON array `["harness","session","instance"]` with non-ASCII
//! text literal. The identity, which all instances of a session share, is the
//! digest of `["harness","session"]`.

use super::Text;
use super::out::{Fixed, Sink, Style, string, text};
use super::sha256::{Hex, Sha256};
use super::text::same_bytes;

/// A part of an id: text at hand, or text as it stands in a record.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// Unescaped text.
    Plain(&'a str),
    /// Text of a scanned record.
    Stored(Text<'a>),
}

fn digest(parts: &[Part<'_>]) -> Hex {
    let mut hash = Sha256::default();
    for (i, part) in parts.iter().enumerate() {
        hash.put(if i == 0 { b"[" } else { b"," });
        match part {
            Part::Plain(plain) => string(&mut hash, plain, Style::Stored),
            Part::Stored(stored) => text(&mut hash, *stored, Style::Stored),
        }
    }
    hash.put(b"]");
    hash.finish_hex()
}

/// Digest of the canonical id of one instance of a session.
pub fn canonical(harness: Part<'_>, session: Part<'_>, instance: Part<'_>) -> Hex {
    digest(&[harness, session, instance])
}

/// Digest of a session's identity, whatever its instance.
pub fn identity(harness: Part<'_>, session: Part<'_>) -> Hex {
    digest(&[harness, session])
}

/// Writes the canonical id: at most 138 bytes.
pub fn put_canonical(sink: &mut impl Sink, harness: &str, digest: &Hex) {
    sink.put(b"fleet:v1:");
    sink.put(harness.as_bytes());
    sink.put(b":");
    sink.put(digest);
}

/// The digest part of a canonical id, where it has the right form.
pub fn digest_of(canonical: &str) -> Option<Hex> {
    let (_, digest) = canonical.rsplit_once(':')?;
    let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let digest: &Hex = digest.as_bytes().try_into().ok()?;
    digest.iter().all(hex).then_some(*digest)
}

/// The files that belong to a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `fleet-v1-DIGEST.json`
    Record,
    /// `.fleet-v1-DIGEST.lock`
    RecordLock,
    /// `.fleet-identity-v1-DIGEST.lock`
    IdentityLock,
}

impl File {
    const fn around(self) -> (&'static str, &'static str) {
        match self {
            File::Record => ("fleet-v1-", ".json"),
            File::RecordLock => (".fleet-v1-", ".lock"),
            File::IdentityLock => (".fleet-identity-v1-", ".lock"),
        }
    }

    /// The name of this file, ended by a NUL for the system calls.
    pub fn name(self, digest: &Hex) -> Name {
        let (before, after) = self.around();
        let mut name = Name::default();
        let mut out = Fixed::new(&mut name.0);
        out.put(before.as_bytes());
        out.put(digest);
        out.put(after.as_bytes());
        name
    }

    /// Whether a file's name is the one of this kind and digest.
    pub fn is_name(self, name: &[u8], digest: &Hex) -> bool {
        let (before, after) = self.around();
        let middle =
            name.strip_prefix(before.as_bytes()).and_then(|n| n.strip_suffix(after.as_bytes()));
        middle.is_some_and(|middle| same_bytes(middle, digest))
    }

    /// The digest in a file's name, where it is a name of this kind.
    pub fn digest(self, name: &[u8]) -> Option<Hex> {
        let (before, after) = self.around();
        let name = core::str::from_utf8(name).ok()?;
        let middle = name.strip_prefix(before)?.strip_suffix(after)?;
        if middle.len() != 64 {
            return None;
        }
        let mut canonical = [0; 65];
        let mut out = Fixed::new(&mut canonical);
        out.put(b":");
        out.put(middle.as_bytes());
        digest_of(out.text()?)
    }
}

/// A file name in the store, ended by at least one NUL.
#[derive(Clone, Copy, Debug)]
pub struct Name([u8; 96]);

impl Default for Name {
    fn default() -> Self {
        Name([0; 96])
    }
}

impl Name {
    /// Builds a name from its pieces; what does not fit makes it empty, which
    /// no system call accepts as a file.
    pub fn of(pieces: &[&[u8]]) -> Name {
        let mut name = Name::default();
        let mut out = Fixed::new(&mut name.0[..95]);
        pieces.iter().for_each(|p| out.put(p));
        if out.bytes().is_none() { Name::default() } else { name }
    }

    /// The name for a system call.
    #[inline(never)] // the search for the end is long code
    pub fn c(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }

    /// The name as text.
    pub fn text(&self) -> &str {
        self.c().to_str().unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_text(session: &str, instance: &str) -> String {
        let hex = canonical(Part::Plain("claude"), Part::Plain(session), Part::Plain(instance));
        let mut out = Vec::new();
        put_canonical(&mut out, "claude", &hex);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_reference_vectors() {
        for (session, instance, want) in [
            ("s", "i", "a7685459841e832159904b1ec5ac02f06b94d53194f1dcd176e91f447219b520"),
            ("s", "1:2", "6d587904b9162bf2b1b583c4068744fa7c4fe48a43f2bb46e5671404c060d309"),
            (
                "s\u{e9}\u{2603}\"\\/\u{7f}\u{1}",
                "1:2",
                "0283dcf3d7a23dbe5f484e0cc84690618d407190de3250319eaf04cb1f7b29e7",
            ),
        ] {
            assert_eq!(canonical_text(session, instance), format!("fleet:v1:claude:{want}"));
        }
    }

    #[test]
    fn names_and_digests_go_back_and_forth() {
        let hex = identity(Part::Plain("codex"), Part::Plain("x"));
        for file in [File::Record, File::RecordLock, File::IdentityLock] {
            let name = file.name(&hex);
            assert_eq!(file.digest(name.text().as_bytes()), Some(hex));
            assert_eq!(file.digest(name.text().to_uppercase().as_bytes()), None);
        }
        assert_eq!(File::Record.digest(b"fleet-v1-.json"), None);
        assert_eq!(File::Record.digest(b".json"), None);
    }
}
