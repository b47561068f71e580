//! Noticing that records change, while the store is made, removed and made
//! again.
//!
//! A writer gives a record its name by a rename, so renames and removals in the
//! directory of the records are all there is to see; the marks of what was seen
//! stand there too. Where that directory does
//! not exist, the nearest one above it is watched for the next on the way. The
//! directories further up are watched only for their own removal and move, so
//! that a busy one, such as `/tmp`, wakes nobody.
//!
//! Whoever waits for something looks at the store after he began to watch, and
//! again whenever it has changed; then no change goes unseen.

use std::ffi::CString;

use super::place::Root;
use super::read::is_record_name;
use super::seen;
use crate::sys::fs::{Dir, Errno};
use crate::sys::watch::{Alarm, Happened, Scope, Watch, Watched};

/// The store under watch.
pub struct StoreWatch {
    watch: Watch,
    /// The directories on the way, `/` first and that of the records last.
    way: Vec<CString>,
    /// The last one of them that exists, by its place on the way.
    end: usize,
    watched: Watched,
}

impl StoreWatch {
    /// Begins to watch. An error says that this cannot be done here: there may
    /// be too many that do, or a directory may not be read.
    pub fn begin(root: &Root) -> Result<StoreWatch, Errno> {
        let path = [root.path(), b"/sessions"].concat();
        let ends = (1..path.len()).filter(|at| path[*at] == b'/').chain([path.len()]);
        let mut way = vec![c"/".to_owned()];
        way.extend(ends.filter_map(|end| CString::new(&path[..end]).ok()));
        let watch = Watch::new()?;
        let (end, watched) = aim(&watch, &way)?;
        Ok(StoreWatch { watch, way, end, watched })
    }

    /// Takes note of what has happened; says whether records may have changed.
    pub fn has_changed(&mut self) -> Result<bool, Errno> {
        let (mut records, mut places) = (false, false);
        let next = self.way.get(self.end + 1);
        self.watch.take(|happened| match happened {
            Happened::Entry(dir, name) if dir == self.watched => match next {
                None => records |= is_record_name(name.to_bytes()) || name == seen::NAME,
                Some(path) => {
                    let next = path.to_bytes().rsplit(|b| *b == b'/').next();
                    places |= next == Some(name.to_bytes());
                }
            },
            // Of a directory that was watched more closely before.
            Happened::Entry(..) => {}
            Happened::Directory | Happened::Lost => places = true,
        })?;
        if places {
            (self.end, self.watched) = aim(&self.watch, &self.way)?;
        }
        Ok(records || places)
    }

    /// What wakes a sleeper.
    pub fn alarm(&self) -> Alarm<'_> {
        self.watch.alarm()
    }
}

/// Watches the last directory of a way that exists for what comes and goes in
/// it, and those before it for themselves.
fn aim(watch: &Watch, way: &[CString]) -> Result<(usize, Watched), Errno> {
    let exists = |path: &CString| Dir::cwd().follow(path).is_ok_and(|meta| meta.is_dir());
    loop {
        let end = way.iter().rposition(exists).unwrap_or(0);
        for path in &way[..end] {
            // As well as can be: some of them may not be ours to read.
            let _ = watch.add(path, Scope::Itself);
        }
        match watch.add(&way[end], Scope::Entries) {
            // Made before anybody watched for it?
            Ok(watched) if !way.get(end + 1).is_some_and(exists) => return Ok((end, watched)),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(e) => return Err(e),
        }
    }
}
