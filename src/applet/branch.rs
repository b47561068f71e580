//! The git branch of a directory, read as data and by bounded reads.
//!
//! `.git` is looked for in the directory and a few above it. Only a real
//! directory `.git` is entered, and only its `HEAD` is read: a `.git` file that
//! points elsewhere is not followed, so nothing outside of the working tree is
//! opened. Network and FUSE file systems are left alone, for a read there may
//! hang.

use crate::record::limit;
use crate::record::out::{Fixed, Sink};
use crate::record::text::cut;
use crate::sys::fs::{Dir, Errno, Open};

/// Levels that are looked at, the directory itself included.
const LEVELS: usize = 8;

/// What was found, in memory of its own.
pub struct Branch {
    text: [u8; limit::DETAIL],
    len: usize,
    /// Bytes of the directory's path up to the working tree's top; 0 where no
    /// `.git` was found.
    top: usize,
}

impl Branch {
    /// Nothing found.
    pub const fn none() -> Branch {
        Branch { text: [0; limit::DETAIL], len: 0, top: 0 }
    }

    /// The branch's name, or the first digits of a detached commit.
    pub fn name(&self) -> &str {
        core::str::from_utf8(&self.text[..self.len]).unwrap_or("")
    }

    /// The top of the working tree, which `cwd`, the directory that was asked
    /// for, lies in.
    pub fn worktree<'c>(&self, cwd: &'c str) -> &'c str {
        cwd.get(..self.top).unwrap_or("")
    }

    /// Looks for the branch of an absolute directory. Whatever is in the way
    /// leaves it unknown.
    pub fn find(cwd: &str) -> Branch {
        let mut branch = Branch::none();
        let _ = branch.look(cwd);
        branch
    }

    fn look(&mut self, cwd: &str) -> Result<(), Errno> {
        if !cwd.starts_with('/') || cwd.len() > limit::PATH - 16 {
            return Ok(());
        }
        let mut path = [0; limit::PATH];
        path[..cwd.len()].copy_from_slice(cwd.as_bytes());
        let mut end = cwd.trim_end_matches('/').len();
        let dir = Dir::cwd().follow_dir(c_path(&mut path, end, b"")?)?;
        if dir.is_far() {
            return Ok(());
        }
        for _ in 0..LEVELS {
            match Dir::cwd().entry(c_path(&mut path, end, b"/.git")?) {
                Ok(meta) => {
                    self.top = end.max(1);
                    if meta.is_dir() {
                        self.head(c_path(&mut path, end, b"/.git/HEAD")?)?;
                    }
                    return Ok(());
                }
                Err(Errno::NOENT) if end > 0 => {
                    end = cwd.as_bytes()[..end].iter().rposition(|b| *b == b'/').unwrap_or(0);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn head(&mut self, path: &core::ffi::CStr) -> Result<(), Errno> {
        let mut text = [0; 1024];
        let len = Dir::cwd().open(path, Open::Read)?.read(&mut text)?;
        let text = core::str::from_utf8(&text[..len]).map_err(|_| Errno::INVAL)?;
        let line = text.lines().next().unwrap_or("");
        let name = match line.strip_prefix("ref: refs/heads/") {
            Some(name) => cut(name, limit::DETAIL),
            // A detached head is a commit id.
            None if line.len() >= 40 && line.bytes().all(|b| b.is_ascii_hexdigit()) => {
                cut(line, 12)
            }
            None => "",
        };
        self.text[..name.len()].copy_from_slice(name.as_bytes());
        self.len = name.len();
        Ok(())
    }
}

/// The first `end` bytes of the path with `tail` behind them, as a C string.
fn c_path<'p>(
    path: &'p mut [u8; limit::PATH],
    end: usize,
    tail: &[u8],
) -> Result<&'p core::ffi::CStr, Errno> {
    let tail = if end == 0 && tail.is_empty() { b"/" } else { tail };
    let mut out = Fixed::new(path.get_mut(end..).ok_or(Errno::NAMETOOLONG)?);
    out.put(tail);
    out.put(b"\0");
    out.bytes().ok_or(Errno::NAMETOOLONG)?;
    core::ffi::CStr::from_bytes_until_nul(path).map_err(|_| Errno::INVAL)
}
