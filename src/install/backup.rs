//! What settings files were before anything of ours came into them.
//!
//! One copy for each file, 0600, in `backups` of the state root and never beside
//! the file: some harnesses load whatever lies there. The name says whose it is:
//! `AGENT-NAME-HASH`, HASH being the first 12 hex digits of the SHA-256 of the
//! path; with `.absent` behind it where there was no file.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::ffi::CString;

use crate::record::sha256::Sha256;
use crate::sys::fs::{Dir, Errno, Open};

/// The directory's name in the state root.
pub const DIR: &str = "backups";

/// The open directory of the backups.
pub struct Backups {
    dir: Dir,
    /// Held while files are changed, so that two installers take turns.
    lock: crate::sys::fs::File,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// It had this text.
    Text(String),
    /// There was none.
    Absent,
}

impl Backups {
    /// Opens the directory in the state root, made where it is missing, and
    /// waits for its lock; EINTR where a signal ends the wait.
    pub fn open(root: &Dir) -> Result<Backups, Errno> {
        match root.make_dir(c"backups") {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
        let dir = root.open_dir(c"backups")?;
        let lock = dir.open(c".lock", Open::Lock)?;
        lock.lock()?;
        Ok(Backups { dir, lock })
    }

    /// Keeps what a file was.
    pub fn keep(&self, agent: &str, path: &str, before: &Before) -> Result<String, Errno> {
        let (name, absent) = names(agent, path)?;
        let (keep, drop, text) = match before {
            Before::Text(text) => (&name, &absent, text.as_str()),
            Before::Absent => (&absent, &name, ""),
        };
        gone(self.dir.unlink(keep))?;
        let file = self.dir.open(keep, Open::New)?;
        file.write_all(text.as_bytes())?;
        file.sync()?;
        gone(self.dir.unlink(drop))?;
        self.dir.sync()?;
        Ok(keep.to_string_lossy().into_owned())
    }

    /// What a file was, where that was kept.
    pub fn find(&self, agent: &str, path: &str) -> Option<Before> {
        let (name, absent) = names(agent, path).ok()?;
        if let Some(text) = self.text(&name) {
            return Some(Before::Text(text));
        }
        self.dir.entry(&absent).is_ok().then_some(Before::Absent)
    }

    fn text(&self, name: &CStr) -> Option<String> {
        let file = self.dir.open(name, Open::Read).ok()?;
        let size = usize::try_from(file.status().ok()?.size).ok()?;
        let mut bytes = vec![0; size];
        let len = file.read_all(&mut bytes).ok()?;
        bytes.truncate(len);
        String::from_utf8(bytes).ok()
    }

    /// Forgets what a file was.
    pub fn forget(&self, agent: &str, path: &str) -> Result<(), Errno> {
        let (name, absent) = names(agent, path)?;
        gone(self.dir.unlink(&name))?;
        gone(self.dir.unlink(&absent))
    }

    /// Removes every backup and the directory.
    pub fn purge(self, root: &Dir) -> Result<(), Errno> {
        let mut names = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 8192];
        self.dir.list(&mut buffer, |name| {
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name.to_owned());
            }
            true
        })?;
        for name in names {
            gone(self.dir.unlink(&name))?;
        }
        drop(self.lock);
        root.remove_dir(c"backups")
    }
}

fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn names(agent: &str, path: &str) -> Result<(CString, CString), Errno> {
    let mut hash = Sha256::default();
    hash.update(path.as_bytes());
    let hex = hash.finish_hex();
    let hex = String::from_utf8_lossy(&hex[..12]).into_owned();
    let base = path.rsplit('/').next().unwrap_or(path);
    let name = format!("{agent}-{base}-{hex}");
    let c = |name: String| CString::new(name).map_err(|_| Errno::INVAL);
    Ok((c(name.clone())?, c(format!("{name}.absent"))?))
}
