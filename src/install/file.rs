//! A user's settings file: read, replaced as a whole, and looked at again.
//!
//! Links are followed, and stay: the new file takes the place of what the link
//! leads to. Mode, owner and group stay. The new text is on the disk before it
//! takes the old one's name; only where a program writes the file all the time
//! that is a text for what stood there moments before. Such a program is noticed
//! before and after, and what it wrote is never lost: the caller begins anew.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::ffi::CString;

use crate::sys::clock::Now;
use crate::sys::fs::{Dir, Errno, File, May, Meta, Open, euid};
use crate::sys::process;
use crate::sys::spawn::pause;

/// Largest settings file in bytes.
const MAX: u64 = 16 * 1024 * 1024;
/// Most links on the way to a file, as the kernel has it.
const MAX_LINKS: usize = 40;
/// How often a new text is made at once for what another program wrote meanwhile.
const TRIES: usize = 20;
/// Milliseconds to wait for the next of its texts.
const WAIT_MS: usize = 25;
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

impl Was {
    /// Whether the file was written in the last so many milliseconds.
    pub fn is_fresh(&self, ms: i64) -> bool {
        let now = i64::try_from(Now::read().wall_ms).unwrap_or(0);
        let at = |meta: Meta| meta.mtime * 1000 + meta.mtime_ns / 1_000_000;
        self.meta.is_some_and(|meta| now - at(meta) <= ms)
    }

    /// Whether the file is there as well and has the same mode and owner.
    fn is_like(&self, other: &Was) -> bool {
        let of = |was: &Was| was.meta.map(|meta| (meta.mode, meta.uid, meta.gid, meta.links));
        self.meta.is_some() && of(self) == of(other)
    }
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
    /// bits. Where another program is faster, `again` says what the text is to be
    /// for what that wrote, and both arguments are then of that. [`Trouble::Changed`]
    /// where it stays faster, `again` says `None`, or it wrote over the new file.
    pub fn write(
        &mut self,
        was: &mut Was,
        text: &mut String,
        mode: u32,
        again: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), Trouble> {
        self.check(was)?;
        self.make_dir()?;
        let Some(dir) = &self.dir else { return Err(Trouble::Changed) };
        let temp = temp_name()?;
        let mode = was.meta.map_or(mode, |meta| meta.mode & BITS);
        sweep(dir);
        let done = self
            .write_temp(dir, &temp, was, text, mode)
            .and_then(|file| self.replace(dir, &temp, &file, was, text, again));
        if done.is_err() {
            let _ = dir.unlink(&temp);
            return done;
        }
        if self.read()?.text.as_ref() == Some(text) { Ok(()) } else { Err(Trouble::Changed) }
    }

    /// Puts the new file into its place. A program that writes all the time leaves
    /// no time to bring a text to the disk between two of its own, so that what is
    /// on the disk is written over for it, and brought there once it stands.
    fn replace(
        &self,
        dir: &Dir,
        temp: &CStr,
        file: &File,
        was: &mut Was,
        text: &mut String,
        again: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), Trouble> {
        let mut tries = 0;
        let is_out = loop {
            match self.swap(dir, temp, file, was, text) {
                Ok(is_out) => break is_out,
                Err(Trouble::Changed) if tries < TRIES => tries += 1,
                Err(t) => return Err(t),
            }
            // The next one is the further away the sooner this is planned.
            let now = if tries > 1 { self.read_new()? } else { self.read()? };
            let new = now.text.as_deref().filter(|_| now.is_like(was)).and_then(again);
            *text = new.ok_or(Trouble::Changed)?;
            *was = now;
            file.rewrite(text.as_bytes())?;
        };
        if tries > 0 {
            file.sync()?;
        }
        dir.sync()?;
        // Who had the old file open may have written into it since.
        if !is_out {
            return Ok(());
        }
        if read_at(dir, temp).as_ref() != Ok(was) {
            self.put_back(dir, temp, file, text)?;
            return Err(Trouble::Changed);
        }
        Ok(dir.unlink(temp)?)
    }

    /// Reads what stands there as soon as it has changed, or after a while.
    fn read_new(&self) -> Result<Was, Trouble> {
        let before = self.read()?;
        for _ in 0..WAIT_MS {
            pause(1);
            let now = self.read()?;
            if now != before {
                return Ok(now);
            }
        }
        Ok(before)
    }

    /// Puts the new file into the place of the one that was read. What came out
    /// is looked at, and put back where it is another one. Says whether the old
    /// file has the new one's name now.
    fn swap(
        &self,
        dir: &Dir,
        temp: &CStr,
        file: &File,
        was: &Was,
        text: &str,
    ) -> Result<bool, Trouble> {
        if self.read()? != *was {
            return Err(Trouble::Changed);
        }
        if was.text.is_none() {
            // Of two that make it, one is first.
            match dir.rename_new(temp, &self.name) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(Trouble::Changed),
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    dir.rename(temp, &self.name)?;
                }
                Err(e) => return Err(e.into()),
            }
            return Ok(false);
        }
        match dir.exchange(temp, &self.name) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return Ok(dir.rename(temp, &self.name).map(|()| false)?);
            }
            Err(e) => return Err(e.into()),
        }
        if read_at(dir, temp).as_ref() == Ok(was) {
            return Ok(true);
        }
        self.put_back(dir, temp, file, text)?;
        Err(Trouble::Changed)
    }

    /// Puts back what came out. Whatever comes out then that is not what was put
    /// in is newer, and is put back in its turn.
    fn put_back(&self, dir: &Dir, temp: &CStr, file: &File, text: &str) -> Result<(), Trouble> {
        let meta = Some(file.status()?);
        let mut inside = Ok(Was { text: Some(text.to_string()), meta });
        let mut outside = read_at(dir, temp);
        loop {
            dir.exchange(temp, &self.name)?;
            let out = read_at(dir, temp);
            if out == inside {
                return Ok(());
            }
            inside = core::mem::replace(&mut outside, out);
        }
    }

    fn write_temp(
        &self,
        dir: &Dir,
        temp: &CStr,
        was: &Was,
        text: &str,
        mode: u32,
    ) -> Result<File, Trouble> {
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
        file.sync()?;
        Ok(file)
    }

    /// Removes the file that was read. It is looked at once it has another name,
    /// and gets its own back where another program has written it.
    pub fn remove(&self, was: &Was) -> Result<(), Trouble> {
        self.check(was)?;
        let Some(dir) = self.dir.as_ref().filter(|_| was.text.is_some()) else { return Ok(()) };
        sweep(dir);
        if self.read()? != *was {
            return Err(Trouble::Changed);
        }
        let temp = temp_name()?;
        dir.rename(&self.name, &temp)?;
        dir.sync()?;
        if read_at(dir, &temp).as_ref() == Ok(was) {
            return Ok(dir.unlink(&temp)?);
        }
        match dir.rename_new(&temp, &self.name) {
            // What was written since is newer.
            Err(Errno::EXIST) => dir.unlink(&temp)?,
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => dir.rename(&temp, &self.name)?,
            done => done?,
        }
        Err(Trouble::Changed)
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
