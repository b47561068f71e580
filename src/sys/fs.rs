//! Files, always relative to an open directory, never through a final link.
//!
//! Paths are C strings so that no call allocates. Interrupted calls are tried
//! again, except waiting for a lock: there the interruption is the deadline.

use core::ffi::CStr;
use core::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, Timespec, Timestamps};
pub use rustix::io::Errno;

/// How a file is opened. All ways refuse a final link, do not wait for the
/// other end of a FIFO, and close on exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading.
    Read,
    /// For writing to what is there.
    Write,
    /// For reading and writing, created 0600 where missing.
    Lock,
    /// For writing, created 0600; an existing file is an error.
    New,
    /// For appending, created 0600 where missing.
    Append,
    /// For writing with these permission bits, whatever the umask is; an
    /// existing file is an error.
    NewWith(u32),
}

/// What [`Dir::may`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Writing.
    Write,
    /// Running a file, searching a directory.
    Run,
}

/// A directory to work in.
#[derive(Debug)]
pub struct Dir(Option<OwnedFd>);

/// An open file.
#[derive(Debug)]
pub struct File(OwnedFd);

/// What tongs asks of a file's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The device, together with `ino` the file's identity.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Hard links.
    pub links: u64,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Time of the last change of the contents, seconds since the epoch.
    pub mtime: i64,
    /// Its nanoseconds.
    pub mtime_ns: i64,
}

impl Meta {
    #[allow(clippy::unnecessary_cast)] // their types differ between systems
    fn of(stat: &rustix::fs::Stat) -> Meta {
        Meta {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            links: stat.st_nlink as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: stat.st_mode as u32,
            mtime: stat.st_mtime as i64,
            mtime_ns: stat.st_mtime_nsec as i64,
        }
    }

    #[allow(clippy::unnecessary_cast)] // the type differs between systems
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as RawMode)
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// Whether it is a socket.
    pub fn is_socket(&self) -> bool {
        self.kind() == FileType::Socket
    }

    /// Whether both are the same file.
    pub fn same(&self, other: &Meta) -> bool {
        self.dev == other.dev && self.ino == other.ino
    }
}

fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

impl Dir {
    /// The current directory, without opening it; also the place to start from
    /// with an absolute path.
    pub const fn cwd() -> Dir {
        Dir(None)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Some(fd) => fd.as_fd(),
            None => rustix::fs::CWD,
        }
    }

    /// Opens a directory for work in it. A final link is refused.
    pub fn open_dir(&self, path: &CStr) -> Result<Dir, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        again(|| rustix::fs::openat(self.fd(), path, flags, Mode::empty())).map(|fd| Dir(Some(fd)))
    }

    /// Opens a directory through any links.
    pub fn follow_dir(&self, path: &CStr) -> Result<Dir, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        again(|| rustix::fs::openat(self.fd(), path, flags, Mode::empty())).map(|fd| Dir(Some(fd)))
    }

    /// Opens a file.
    pub fn open(&self, path: &CStr, how: Open) -> Result<File, Errno> {
        let flags = match how {
            Open::Read => OFlags::RDONLY,
            Open::Write => OFlags::WRONLY,
            Open::Lock => OFlags::RDWR | OFlags::CREATE,
            Open::New | Open::NewWith(_) => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            Open::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
        } | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = again(|| rustix::fs::openat(self.fd(), path, flags, mode)).map(File)?;
        if let Open::NewWith(mode) = how {
            #[allow(clippy::unnecessary_cast)] // its type differs between systems
            let mode = Mode::from_raw_mode(mode as RawMode);
            again(|| rustix::fs::fchmod(&file.0, mode))?;
        }
        Ok(file)
    }

    /// Makes a directory, 0700 less the umask.
    pub fn make_dir(&self, path: &CStr) -> Result<(), Errno> {
        again(|| rustix::fs::mkdirat(self.fd(), path, Mode::RWXU))
    }

    /// Makes a directory for others to look into, 0755 less the umask.
    pub fn make_open_dir(&self, path: &CStr) -> Result<(), Errno> {
        let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
        again(|| rustix::fs::mkdirat(self.fd(), path, mode))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &CStr) -> Result<(), Errno> {
        again(|| rustix::fs::unlinkat(self.fd(), path, AtFlags::REMOVEDIR))
    }

    /// Whether this user may do these things to what a path leads to.
    pub fn may(&self, path: &CStr, access: May) -> bool {
        let access = match access {
            May::Write => rustix::fs::Access::WRITE_OK,
            May::Run => rustix::fs::Access::EXEC_OK,
        };
        again(|| rustix::fs::accessat(self.fd(), path, access, AtFlags::EACCESS)).is_ok()
    }

    /// Writes the directory's entries to the disk.
    pub fn sync(&self) -> Result<(), Errno> {
        again(|| rustix::fs::fsync(self.fd()))
    }

    /// The status of the directory itself.
    pub fn meta(&self) -> Result<Meta, Errno> {
        again(|| rustix::fs::fstat(self.fd())).map(|s| Meta::of(&s))
    }

    /// The status of an entry, of a link and not what it points to.
    pub fn entry(&self, name: &CStr) -> Result<Meta, Errno> {
        again(|| rustix::fs::statat(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW))
            .map(|s| Meta::of(&s))
    }

    /// The status of what a path leads to.
    pub fn follow(&self, path: &CStr) -> Result<Meta, Errno> {
        again(|| rustix::fs::statat(self.fd(), path, AtFlags::empty())).map(|s| Meta::of(&s))
    }

    /// Reads a symbolic link into `buffer`; a longer target is cut.
    pub fn read_link<'b>(&self, path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        again(|| rustix::fs::readlinkat_raw(self.fd(), path, &mut *buffer))
            .and_then(|len| buffer.get(..len).ok_or(Errno::NAMETOOLONG))
    }

    /// Whether its file system is one where a read may hang: another machine's or
    /// a program's. One that does not say counts as near.
    pub fn is_far(&self) -> bool {
        again(|| rustix::fs::fstatfs(self.fd())).is_ok_and(|s| is_far(&s))
    }

    /// Makes a symbolic link.
    pub fn link(&self, target: &CStr, name: &CStr) -> Result<(), Errno> {
        again(|| rustix::fs::symlinkat(target, self.fd(), name))
    }

    /// Removes a file.
    pub fn unlink(&self, name: &CStr) -> Result<(), Errno> {
        again(|| rustix::fs::unlinkat(self.fd(), name, AtFlags::empty()))
    }

    /// Renames within the directory, replacing what stood there.
    pub fn rename(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        again(|| rustix::fs::renameat(self.fd(), from, self.fd(), to))
    }

    /// Renames within the directory where nothing stands there; EEXIST else.
    /// ENOSYS, EINVAL or EOPNOTSUPP where the system or the file system cannot.
    pub fn rename_new(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        again(|| rename_new(self.fd(), from, to))
    }

    /// Swaps two entries of the directory. ENOSYS, EINVAL or EOPNOTSUPP where
    /// the system or the file system cannot.
    pub fn exchange(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        again(|| exchange(self.fd(), from, to))
    }

    /// Sets an entry's times to now.
    pub fn touch(&self, name: &CStr) -> Result<(), Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        again(|| rustix::fs::utimensat(self.fd(), name, &times, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Calls `each` with the name of every entry, in directory order, until it
    /// says `false`. `buffer` holds one system call's worth of entries.
    #[cfg(target_os = "linux")]
    pub fn list(
        &self,
        buffer: &mut [MaybeUninit<u8>],
        mut each: impl FnMut(&CStr) -> bool,
    ) -> Result<(), Errno> {
        // The descriptor remembers how far the last listing came.
        again(|| rustix::fs::seek(self.fd(), rustix::fs::SeekFrom::Start(0)))?;
        let mut entries = rustix::fs::RawDir::new(self.fd(), buffer);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if each(entry.file_name()) => {}
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Calls `each` with the name of every entry, in directory order, until it
    /// says `false`. The C library has a buffer of its own.
    #[cfg(not(target_os = "linux"))]
    pub fn list(
        &self,
        _buffer: &mut [MaybeUninit<u8>],
        mut each: impl FnMut(&CStr) -> bool,
    ) -> Result<(), Errno> {
        // Opened anew, so that it begins at the first.
        for entry in again(|| rustix::fs::Dir::read_from(self.fd()))? {
            match entry {
                Ok(entry) if each(entry.file_name()) => {}
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl File {
    /// The status of the file.
    pub fn status(&self) -> Result<Meta, Errno> {
        again(|| rustix::fs::fstat(&self.0)).map(|s| Meta::of(&s))
    }

    /// Reads once, at most `buffer.len()` bytes; 0 is the end.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        again(|| rustix::io::read(&self.0, &mut *buffer))
    }

    /// Reads until the end or until `buffer` is full.
    pub fn read_all(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut len = 0;
        while let Some(room) = buffer.get_mut(len..).filter(|room| !room.is_empty()) {
            match self.read(room)? {
                0 => break,
                n => len += n,
            }
        }
        Ok(len)
    }

    /// Writes everything.
    pub fn write_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match again(|| rustix::io::write(&self.0, bytes))? {
                0 => return Err(Errno::IO),
                n => bytes = bytes.get(n..).unwrap_or(b""),
            }
        }
        Ok(())
    }

    /// Takes the lock and waits for it. EINTR where a signal came first: the
    /// caller has the deadline.
    pub fn lock(&self) -> Result<(), Errno> {
        rustix::fs::flock(&self.0, FlockOperation::LockExclusive)
    }

    /// Takes the lock, or says EWOULDBLOCK at once.
    pub fn try_lock(&self) -> Result<(), Errno> {
        again(|| rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockExclusive))
    }

    /// Takes the lock beside others that do so, or says EWOULDBLOCK at once.
    pub fn try_lock_shared(&self) -> Result<(), Errno> {
        again(|| rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockShared))
    }

    /// Writes the contents to the disk.
    pub fn sync(&self) -> Result<(), Errno> {
        again(|| rustix::fs::fsync(&self.0))
    }

    /// Gives the file to an owner and a group.
    pub fn give(&self, uid: u32, gid: u32) -> Result<(), Errno> {
        let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        again(|| rustix::fs::fchown(&self.0, Some(uid), Some(gid)))
    }

    /// Takes over the extended attributes of another file, access lists among
    /// them; those of a security module are its own business.
    pub fn take_attributes(&self, from: &File) -> Result<(), Errno> {
        take_attributes(self.0.as_fd(), from.0.as_fd())
    }

    /// Writes these contents over the old ones, without ever being empty.
    pub fn rewrite(&self, bytes: &[u8]) -> Result<(), Errno> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match again(|| rustix::io::pwrite(&self.0, rest, at as u64))? {
                0 => return Err(Errno::IO),
                n => at += n,
            }
        }
        again(|| rustix::fs::ftruncate(&self.0, bytes.len() as u64))
    }

    /// Drops the contents.
    pub fn empty(&self) -> Result<(), Errno> {
        again(|| rustix::fs::ftruncate(&self.0, 0))
    }
}

/// File systems of other machines and of programs: NFS, SMB, CIFS, SMB2, FUSE, 9P,
/// AFS, Ceph, Coda, NCP, Lustre, BeeGFS, autofs, vboxsf, prl_fs; statfs(2), magic.h.
#[cfg(target_os = "linux")]
const FAR: [u64; 15] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
    0x7375_7245,
    0x564c,
    0x0bd0_0bd0,
    0x1983_0326,
    0x0187,
    0x786f_4256,
    0x7c7c_6673,
];

#[cfg(target_os = "linux")]
fn is_far(stat: &rustix::fs::StatFs) -> bool {
    FAR.contains(&(stat.f_type as u64))
}

/// `MNT_LOCAL` of macOS and FreeBSD.
#[cfg(not(target_os = "linux"))]
pub const LOCAL: u64 = 0x1000;

#[cfg(not(target_os = "linux"))]
fn is_far(stat: &rustix::fs::StatFs) -> bool {
    u64::from(stat.f_flags) & LOCAL == 0
}

#[cfg(not(target_os = "freebsd"))]
fn rename_new(dir: BorrowedFd<'_>, from: &CStr, to: &CStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(target_os = "freebsd"))]
fn exchange(dir: BorrowedFd<'_>, from: &CStr, to: &CStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::EXCHANGE)
}

/// FreeBSD has no such calls.
#[cfg(target_os = "freebsd")]
fn rename_new(_: BorrowedFd<'_>, _: &CStr, _: &CStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// FreeBSD has no such calls.
#[cfg(target_os = "freebsd")]
fn exchange(_: BorrowedFd<'_>, _: &CStr, _: &CStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(not(target_os = "freebsd"))]
fn take_attributes(to: BorrowedFd<'_>, from: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut names = [0; 4096];
    let len = match rustix::fs::flistxattr(from, &mut names[..]) {
        Ok(len) => len,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(e) => return Err(e),
    };
    for name in names[..len].split_inclusive(|b| *b == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if name.to_bytes().starts_with(b"security.") {
            continue;
        }
        let mut value = vec![0; 64 * 1024];
        let len = rustix::fs::fgetxattr(from, name, &mut value[..])?;
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::fsetxattr(to, name, &value[..len], flags)?;
    }
    Ok(())
}

/// FreeBSD's have calls of their own, which are not used here: a file that has some
/// is taken for one that has none.
#[cfg(target_os = "freebsd")]
fn take_attributes(_: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(())
}

/// The effective user id.
pub fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective group id.
pub fn egid() -> u32 {
    rustix::process::getegid().as_raw()
}
