//! What settings files were before anything of ours came into them.
//!
//! One copy for each file, 0600, in `backups` of the state root and never beside
//! the file: some harnesses load whatever lies there. The name says whose it is:
//! `AGENT-NAME-HASH`, HASH being the first 12 hex digits of the SHA-256 of the
//! path; with `.absent` behind it where there was no file. `.about` beside
//! it says whose file it is and which directory was made for it.

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

    /// Keeps what a file was, and the first directory on the way to it that is
    /// missing yet; empty where none is.
    pub fn keep(
        &self,
        agent: &str,
        path: &str,
        before: &Before,
        made: &str,
    ) -> Result<String, Errno> {
        let names = Names::of(agent, path)?;
        let (keep, drop, text) = match before {
            Before::Text(text) => (&names.text, &names.absent, text.as_str()),
            Before::Absent => (&names.absent, &names.text, ""),
        };
        self.write(&names.about, &[agent, path, made].join("\0"))?;
        self.write(keep, text)?;
        gone(self.dir.unlink(drop))?;
        self.dir.sync()?;
        Ok(keep.to_string_lossy().into_owned())
    }

    fn write(&self, name: &CStr, text: &str) -> Result<(), Errno> {
        gone(self.dir.unlink(name))?;
        let file = self.dir.open(name, Open::New)?;
        file.write_all(text.as_bytes())?;
        file.sync()
    }

    /// The agent and the path of every file of which there is a backup.
    pub fn all(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 8192];
        // Half a list is as good as can be had.
        let _ = self.dir.list(&mut buffer, |name| {
            if name.to_bytes().ends_with(b".about") {
                names.push(name.to_owned());
            }
            true
        });
        let read = |name: CString| {
            let about = self.text(&name)?;
            let mut parts = about.split('\0');
            Some((parts.next()?.to_string(), parts.next()?.to_string()))
        };
        names.into_iter().filter_map(read).collect()
    }

    /// The first directory that was made on the way to a file; empty for none.
    pub fn made(&self, agent: &str, path: &str) -> String {
        let about = Names::of(agent, path).ok().and_then(|names| self.text(&names.about));
        about.and_then(|about| Some(about.split('\0').nth(2)?.to_string())).unwrap_or_default()
    }

    /// What a file was, where that was kept.
    pub fn find(&self, agent: &str, path: &str) -> Option<Before> {
        let names = Names::of(agent, path).ok()?;
        if let Some(text) = self.text(&names.text) {
            return Some(Before::Text(text));
        }
        self.dir.entry(&names.absent).is_ok().then_some(Before::Absent)
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
        let names = Names::of(agent, path)?;
        gone(self.dir.unlink(&names.about))?;
        gone(self.dir.unlink(&names.text))?;
        gone(self.dir.unlink(&names.absent))
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

/// The files of one backup.
struct Names {
    text: CString,
    absent: CString,
    about: CString,
}

impl Names {
    fn of(agent: &str, path: &str) -> Result<Names, Errno> {
        let mut hash = Sha256::default();
        hash.update(path.as_bytes());
        let hex = hash.finish_hex();
        let hex = String::from_utf8_lossy(&hex[..12]).into_owned();
        let base = path.rsplit('/').next().unwrap_or(path);
        let name = |end: &str| {
            CString::new(format!("{agent}-{base}-{hex}{end}")).map_err(|_| Errno::INVAL)
        };
        Ok(Names { text: name("")?, absent: name(".absent")?, about: name(".about")? })
    }
}
