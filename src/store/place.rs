//! Where the store is, and whether it may be trusted.
//!
//! Symbolic links are allowed above the state root and nowhere at or below it.
//! Each directory is opened once and checked through its descriptor; from then
//! on everything is relative to that descriptor, so nothing that happens to the
//! path later matters. A directory that is not private is refused and never
//! repaired: somebody may have put files into it already.

use core::ffi::CStr;

use crate::record::out::{Fixed, Sink};
use crate::sys::env::{Env, Var};
use crate::sys::fs::{Dir, Errno, Meta, egid, euid};

/// Longest path of the state root in bytes: on the stack of every hook.
const MAX_ROOT: usize = 1000;

/// The path of the state root, ended by a NUL.
pub struct Root {
    path: [u8; MAX_ROOT + 96],
    /// How much of the path must be there: a home is not ours to make.
    home: usize,
}

impl Root {
    /// Finds the state root: `$TONGS_AGENTS_STATE_DIR`, else
    /// `$XDG_STATE_HOME/tongs-agents`, else `$HOME/.local/state/tongs-agents`.
    /// A variable that is no absolute path counts as unset.
    pub fn find(env: &Env<'_>) -> Result<Root, Trouble> {
        let (base, below) = if let Some(dir) = env.absolute(Var::TONGS_AGENTS_STATE_DIR) {
            (dir, "")
        } else if let Some(state) = env.absolute(Var::XDG_STATE_HOME) {
            (state, "/tongs-agents")
        } else if let Some(home) = env.absolute(Var::HOME) {
            (home, "/.local/state/tongs-agents")
        } else {
            return Err(Trouble::NoHome);
        };
        let end = base.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
        let home = if below.starts_with("/.local") { end } else { 0 };
        let mut root = Root { path: [0; MAX_ROOT + 96], home };
        let mut out = Fixed::new(&mut root.path[..MAX_ROOT]);
        out.put(&base[..end]);
        out.put(below.as_bytes());
        match out.bytes() {
            Some(path) if !path.is_empty() => Ok(root),
            _ => Err(Trouble::NoHome),
        }
    }

    fn c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.path).unwrap_or(c"/")
    }

    /// The path.
    pub fn path(&self) -> &[u8] {
        self.c().to_bytes()
    }

    /// Removes the root, where nothing is in it any more.
    pub fn remove(&self) -> Result<(), Errno> {
        Dir::cwd().remove_dir(self.c())
    }

    /// Makes the root and what is missing above it, all 0700. The nearest
    /// directory that is there is checked first: nothing is made in a place that
    /// would be refused, nor in another user's home.
    #[inline(never)] // not on the way of most events
    fn make(&mut self, uid: u32) -> Result<(), Trouble> {
        let len = self.path().len();
        let mut trusted = None;
        // From the end: how much of the path is there.
        for at in (0..=len).rev() {
            if at != len && self.path[at] != b'/' {
                continue;
            }
            if at < self.home {
                return Err(Trouble::NoHome);
            }
            let found = self.at(at, |path| Dir::cwd().follow(path));
            match found {
                Ok(meta) if at == len && meta.is_dir() => return Ok(()),
                Ok(meta) => {
                    parent(Ok(meta), uid)?;
                    trusted = Some(at);
                    break;
                }
                Err(Errno::NOENT) => {}
                Err(e) => return Err(trouble(Which::Root, e)),
            }
        }
        for at in trusted.map_or(len, |at| at + 1)..=len {
            if at != len && self.path[at] != b'/' {
                continue;
            }
            match self.at(at, |path| Dir::cwd().make_dir(path)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(trouble(Which::Root, e)),
            }
        }
        Ok(())
    }

    /// Calls `with` the first `at` bytes of the path, the root of the file system
    /// for none.
    fn at<T>(&mut self, at: usize, with: impl Fn(&CStr) -> T) -> T {
        if at == 0 {
            return with(c"/");
        }
        let byte = core::mem::replace(&mut self.path[at], 0);
        let answer = with(self.c());
        self.path[at] = byte;
        answer
    }
}

/// Which directory of the store is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The directory that holds the state root.
    Parent,
    /// The state root.
    Root,
    /// The directory of the records.
    Sessions,
}

/// Why the store cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No variable says where it should be, or there is no such home.
    NoHome,
    /// It does not exist.
    Missing,
    /// A directory is not what it must be, for this reason.
    Unsafe(Which, &'static str),
    /// The system refused.
    Io(Which, Errno),
}

impl Trouble {
    /// The code for the fault log and `--strict`.
    pub fn code(self) -> &'static str {
        match self {
            Trouble::NoHome => "store-no-home",
            Trouble::Missing => "store-missing",
            Trouble::Unsafe(..) => "store-unsafe",
            Trouble::Io(..) => "store-io",
        }
    }
}

/// The open store.
pub struct Store {
    /// The state root.
    pub root: Dir,
    /// The directory of the records.
    pub sessions: Dir,
    /// Says which harness ids are registered.
    pub known: fn(&str) -> bool,
    /// The owner that every file must have.
    uid: u32,
}

impl Store {
    /// Opens the store as it is. Creates nothing.
    pub fn open(root: &Root, known: fn(&str) -> bool) -> Result<Store, Trouble> {
        let dir = Dir::cwd().open_dir(root.c()).map_err(|e| trouble(Which::Root, e))?;
        let uid = euid();
        private(Which::Root, dir.meta(), uid)?;
        parent(dir.follow(c".."), uid)?;
        let sessions = dir.open_dir(c"sessions").map_err(|e| trouble(Which::Sessions, e))?;
        private(Which::Sessions, sessions.meta(), uid)?;
        Ok(Store { root: dir, sessions, known, uid })
    }

    /// Whether a file is a regular one of ours with at most one name; with none
    /// it was replaced a moment ago.
    pub(super) fn owns(&self, meta: &Meta) -> bool {
        meta.is_file() && meta.uid == self.uid && meta.links <= 1
    }

    /// Opens the store and makes what is missing of it.
    pub fn open_or_make(root: &mut Root, known: fn(&str) -> bool) -> Result<Store, Trouble> {
        match Store::open(root, known) {
            Err(Trouble::Missing) => {}
            done => return done,
        }
        Store::make(root, known)
    }

    #[inline(never)] // nor is this
    fn make(root: &mut Root, known: fn(&str) -> bool) -> Result<Store, Trouble> {
        root.make(euid())?;
        let dir = Dir::cwd().open_dir(root.c()).map_err(|e| trouble(Which::Root, e))?;
        match dir.make_dir(c"sessions") {
            Ok(()) | Err(Errno::EXIST) => Store::open(root, known),
            Err(e) => Err(trouble(Which::Sessions, e)),
        }
    }
}

fn trouble(which: Which, e: Errno) -> Trouble {
    match e {
        Errno::NOENT => Trouble::Missing,
        Errno::LOOP => Trouble::Unsafe(which, "is a symbolic link"),
        // With O_DIRECTORY and O_NOFOLLOW a link is not a directory either.
        Errno::NOTDIR => Trouble::Unsafe(which, "is a symbolic link or not a directory"),
        e => Trouble::Io(which, e),
    }
}

fn private(which: Which, meta: Result<Meta, Errno>, uid: u32) -> Result<(), Trouble> {
    let meta = meta.map_err(|e| Trouble::Io(which, e))?;
    if meta.uid != uid {
        Err(Trouble::Unsafe(which, "belongs to somebody else"))
    } else if meta.mode & 0o077 != 0 {
        Err(Trouble::Unsafe(which, "is open to others (its mode must be 0700)"))
    } else {
        Ok(())
    }
}

fn parent(meta: Result<Meta, Errno>, uid: u32) -> Result<(), Trouble> {
    const STICKY: u32 = 0o1000;
    let meta = meta.map_err(|e| Trouble::Io(Which::Parent, e))?;
    let sticky = meta.mode & STICKY != 0;
    if meta.uid != uid && meta.uid != 0 {
        Err(Trouble::Unsafe(Which::Parent, "belongs to somebody else"))
    } else if meta.mode & 0o002 != 0 && !sticky {
        Err(Trouble::Unsafe(Which::Parent, "can be written by everybody"))
    } else if meta.mode & 0o020 != 0 && !sticky && (meta.uid != uid || meta.gid != egid()) {
        Err(Trouble::Unsafe(Which::Parent, "can be written by a group"))
    } else {
        Ok(())
    }
}
