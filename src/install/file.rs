//! A user's settings file: read, replaced as a whole, and looked at again.
//!
//! Links are followed, and stay: the new file takes the place of what the link
//! leads to. Mode, owner and group stay. The new text is on the disk before it
//! takes the old one's name. A program that writes the file at the same time is
//! noticed before and after; the caller begins anew.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::ffi::CString;

use crate::sys::clock::Now;
use crate::sys::fs::{Dir, Errno, May, Meta, Open, euid};
use crate::sys::process;

/// Largest settings file in bytes.
const MAX: u64 = 16 * 1024 * 1024;
/// Most links on the way to a file, as the kernel has it.
const MAX_LINKS: usize = 40;
/// Permission bits.
const BITS: u32 = 0o7777;
/// Seconds after which a temporary file is nobody's any more.
const LEFT_BEHIND: i64 = 600;

/// Why a file was not read or not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The system refused.
    Io(Errno),
    /// It cannot be changed: its mode, its directory or its file system says so.
    ReadOnly,
    /// It is not a regular file.
    NotAFile,
    /// It has other names, which would keep the old text.
    Linked,
    /// It belongs to somebody else.
    NotOurs,
    /// It is larger than what settings are.
    TooLarge,
    /// It is not UTF-8.
    NotText,
    /// It has attributes, such as an access list, that could not be kept.
    Attributes,
    /// Another program changed it meanwhile.
    Changed,
}

impl From<Errno> for Trouble {
    fn from(e: Errno) -> Trouble {
        match e {
            Errno::ROFS | Errno::ACCESS | Errno::PERM => Trouble::ReadOnly,
            e => Trouble::Io(e),
        }
    }
}

/// A file by its place: the directory that holds it, all links followed.
pub struct Place {
    /// The path that was asked for.
    pub path: String,
    /// The path behind all links.
    pub target: String,
    /// The directory; `None` where it is missing.
    dir: Option<Dir>,
    name: CString,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Was {
    /// The text; `None` where there is no file.
    pub text: Option<String>,
    meta: Option<Meta>,
}

fn c(path: &str) -> Result<CString, Trouble> {
    CString::new(path).map_err(|_| Trouble::Io(Errno::INVAL))
}

fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((dir, name)) => (dir, name),
        None => (".", path),
    }
}

impl Place {
    /// Finds the place of an absolute path, through links.
    pub fn find(path: &str) -> Result<Place, Trouble> {
        let mut target = path.to_string();
        for _ in 0..MAX_LINKS {
            let mut buffer = [0; 4096];
            match Dir::cwd().read_link(&c(&target)?, &mut buffer) {
                Ok(next) => {
                    let next = core::str::from_utf8(next).map_err(|_| Trouble::NotText)?;
                    target = if next.starts_with('/') {
                        next.to_string()
                    } else {
                        format!("{}/{next}", split(&target).0)
                    };
                }
                // Not a link, or nothing there.
                Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => {
                    let (dir, name) = split(&target);
                    let dir = match Dir::cwd().follow_dir(&c(dir)?) {
                        Ok(dir) => Some(dir),
                        Err(Errno::NOENT) => None,
                        Err(e) => return Err(e.into()),
                    };
                    let name = c(name)?;
                    return Ok(Place { path: path.to_string(), target, dir, name });
                }
                Err(e) => return Err(e.into()),
            }
        }
        Err(Trouble::Io(Errno::LOOP))
    }

    /// Reads what stands there.
    pub fn read(&self) -> Result<Was, Trouble> {
        match &self.dir {
            Some(dir) => read_at(dir, &self.name),
            None => Ok(Was { text: None, meta: None }),
        }
    }

    /// The first directory on the way to the file that is missing; empty where
    /// none is.
    pub fn first_missing(&self) -> String {
        let dir = split(&self.target).0;
        let ends = dir.match_indices('/').skip(1).map(|(at, _)| at).chain([dir.len()]);
        let missing = |end: &usize| {
            c(&dir[..*end]).is_ok_and(|path| Dir::cwd().follow(&path) == Err(Errno::NOENT))
        };
        ends.into_iter().find(missing).map_or(String::new(), |end| dir[..end].to_string())
    }

    /// Whether the file could be changed at all. Says nothing of the text.
    pub fn check(&self, was: &Was) -> Result<(), Trouble> {
        if let Some(meta) = &was.meta {
            if meta.links > 1 {
                return Err(Trouble::Linked);
            }
            if meta.uid != euid() && euid() != 0 {
                return Err(Trouble::NotOurs);
            }
            // A file that its owner must not write is meant to stay.
            if meta.mode & 0o200 == 0 {
                return Err(Trouble::ReadOnly);
            }
        }
        match &self.dir {
            Some(dir) if !dir.may(c".", May::Write) => Err(Trouble::ReadOnly),
            _ => Ok(()),
        }
    }

    /// Replaces what was read by `text`, or makes the file with these permission
    /// bits. [`Trouble::Changed`] where another program was faster: nothing was
    /// written, or it wrote over it.
    pub fn write(&mut self, was: &Was, text: &str, mode: u32) -> Result<(), Trouble> {
        self.check(was)?;
        self.make_dir()?;
        let Some(dir) = &self.dir else { return Err(Trouble::Changed) };
        let temp = temp_name()?;
        let mode = was.meta.map_or(mode, |meta| meta.mode & BITS);
        sweep(dir);
        let done =
            self.write_temp(dir, &temp, was, text, mode).and_then(|()| self.swap(dir, &temp, was));
        if done.is_err() {
            let _ = dir.unlink(&temp);
            return done;
        }
        dir.sync()?;
        if self.read()?.text.as_deref() == Some(text) { Ok(()) } else { Err(Trouble::Changed) }
    }

    /// Puts the new file into the place of the one that was read. What came out
    /// is looked at, and put back where it is another one.
    fn swap(&self, dir: &Dir, temp: &CStr, was: &Was) -> Result<(), Trouble> {
        if self.read()? != *was {
            return Err(Trouble::Changed);
        }
        if was.text.is_none() {
            // Of two that make it, one is first.
            return match dir.rename_new(temp, &self.name) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => Err(Trouble::Changed),
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    Ok(dir.rename(temp, &self.name)?)
                }
                Err(e) => Err(e.into()),
            };
        }
        match dir.exchange(temp, &self.name) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return Ok(dir.rename(temp, &self.name)?);
            }
            Err(e) => return Err(e.into()),
        }
        if read_at(dir, temp).is_ok_and(|out| out == *was) {
            return Ok(dir.unlink(temp)?);
        }
        dir.exchange(temp, &self.name)?;
        Err(Trouble::Changed)
    }

    fn write_temp(
        &self,
        dir: &Dir,
        temp: &CStr,
        was: &Was,
        text: &str,
        mode: u32,
    ) -> Result<(), Trouble> {
        let file = dir.open(temp, Open::NewWith(mode & 0o777))?;
        if let Some(meta) = &was.meta {
            let new = file.status()?;
            if (new.uid, new.gid) != (meta.uid, meta.gid) {
                file.give(meta.uid, meta.gid).map_err(|_| Trouble::NotOurs)?;
            }
            let old = dir.open(&self.name, Open::Read)?;
            file.take_attributes(&old).map_err(|_| Trouble::Attributes)?;
        }
        file.write_all(text.as_bytes())?;
        Ok(file.sync()?)
    }

    /// Removes the file that was read.
    pub fn remove(&self, was: &Was) -> Result<(), Trouble> {
        self.check(was)?;
        let Some(dir) = self.dir.as_ref().filter(|_| was.text.is_some()) else { return Ok(()) };
        sweep(dir);
        if self.read()? != *was {
            return Err(Trouble::Changed);
        }
        dir.unlink(&self.name)?;
        Ok(dir.sync()?)
    }

    /// Makes the directories that are missing above the file.
    fn make_dir(&mut self) -> Result<(), Trouble> {
        if self.dir.is_some() {
            return Ok(());
        }
        let dir = split(&self.target).0.to_string();
        for (at, _) in dir.match_indices('/').skip(1).chain([(dir.len(), "")]) {
            match Dir::cwd().make_open_dir(&c(&dir[..at])?) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.dir = Some(Dir::cwd().follow_dir(&c(&dir)?)?);
        Ok(())
    }
}

/// Reads a file of a directory.
fn read_at(dir: &Dir, name: &CStr) -> Result<Was, Trouble> {
    let file = match dir.open(name, Open::Read) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Was { text: None, meta: None }),
        Err(Errno::LOOP) => return Err(Trouble::Changed),
        Err(Errno::ACCESS) => return Err(Trouble::Io(Errno::ACCESS)),
        Err(e) => return Err(e.into()),
    };
    let meta = file.status()?;
    if !meta.is_file() {
        return Err(Trouble::NotAFile);
    }
    if meta.size > MAX {
        return Err(Trouble::TooLarge);
    }
    let mut bytes = vec![0; usize::try_from(meta.size).unwrap_or(0) + 1];
    let len = file.read_all(&mut bytes)?;
    if len == bytes.len() {
        return Err(Trouble::Changed);
    }
    bytes.truncate(len);
    let text = String::from_utf8(bytes).map_err(|_| Trouble::NotText)?;
    Ok(Was { text: Some(text), meta: Some(meta) })
}

/// A name for a temporary file that no harness takes for its own.
fn temp_name() -> Result<CString, Trouble> {
    let mut random = [0; 8];
    process::random(&mut random)?;
    c(&format!(".tongs-{:016x}.tmp", u64::from_ne_bytes(random)))
}

/// Removes what an installer left that was killed more than ten minutes ago.
fn sweep(dir: &Dir) {
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 8192];
    // A directory that cannot be listed is none to be swept.
    let _ = dir.list(&mut buffer, |name| {
        let bytes = name.to_bytes();
        let hex = bytes.strip_prefix(b".tongs-").and_then(|rest| rest.strip_suffix(b".tmp"));
        if hex.is_some_and(|hex| hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit)) {
            names.push(name.to_owned());
        }
        true
    });
    let now = i64::try_from(Now::read().secs()).unwrap_or(0);
    for name in names {
        if dir.entry(&name).is_ok_and(|meta| meta.is_file() && now - meta.mtime > LEFT_BEHIND) {
            let _ = dir.unlink(&name);
        }
    }
}
