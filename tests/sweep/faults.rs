//! Which faults are put in, and where: the calls of a trace, and what each of
//! them can answer.

use std::fmt;

/// Which call of a program: the `k`th of this name. strace counts the calls of
/// each name apart, so a plain running number would miss most of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The system call's name.
    pub name: String,
    /// Counted from 1.
    pub k: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.k)
    }
}

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The program dies before the call is done.
    Kill,
    /// This call fails.
    Once(&'static str),
    /// This call and all later ones of its name fail.
    On(&'static str),
}

impl Fault {
    /// Whether the program goes on and may answer for itself.
    pub fn is_error(self) -> bool {
        self != Fault::Kill
    }

    /// The value for strace's `-e`.
    pub fn inject(self, point: &Point) -> String {
        let Point { name, k } = point;
        match self {
            Fault::Kill => format!("inject={name}:signal=SIGKILL:when={k}"),
            Fault::Once(errno) => format!("inject={name}:error={errno}:when={k}"),
            Fault::On(errno) => format!("inject={name}:error={errno}:when={k}+"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill => f.write_str("SIGKILL"),
            Fault::Once(errno) => f.write_str(errno),
            Fault::On(errno) => write!(f, "{errno} from here on"),
        }
    }
}

/// How much is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A kill and a full disk: seconds.
    Short,
    /// Everything that a call can answer, and lasting faults: minutes.
    All,
}

impl Extent {
    /// From the environment of the tests.
    pub fn of_env() -> Extent {
        match std::env::var_os("TONGS_TEST_SWEEP").is_some_and(|v| v == "all") {
            true => Extent::All,
            false => Extent::Short,
        }
    }

    /// The faults for calls of this name.
    pub fn faults(self, name: &str) -> Vec<Fault> {
        let mut faults = vec![Fault::Kill];
        if cannot_fail(name) {
            return faults;
        }
        // A full disk at a call that has nothing to do with one shows as well as
        // any other error what an unexpected answer does.
        let can_be = |fault: &Fault| {
            name != "getrandom" || !matches!(fault, Fault::Once("ENOSPC") | Fault::On(_))
        };
        faults.push(Fault::Once("ENOSPC"));
        if self == Extent::All {
            faults.extend(errors(name).iter().filter(|e| **e != "ENOSPC").map(|e| Fault::Once(e)));
            faults.extend(["ENOSPC", "EIO", "EMFILE"].map(Fault::On));
        }
        // The standard library's hash maps end the program where random bytes are
        // refused with what getrandom(2) never says.
        faults.retain(can_be);
        faults
    }
}

/// Calls that have no error, or that do not return. brk(2) answers with the old
/// break, and C libraries take an error for an address.
fn cannot_fail(name: &str) -> bool {
    matches!(
        name,
        "brk"
            | "exit"
            | "exit_group"
            | "getegid"
            | "geteuid"
            | "getgid"
            | "getuid"
            | "getpid"
            | "getppid"
            | "gettid"
            | "set_tid_address"
            | "umask"
    )
}

/// What a call of this name can answer, from the manual pages.
fn errors(name: &str) -> &'static [&'static str] {
    match name {
        "open" | "openat" | "openat2" | "creat" => &[
            "ENOSPC", "EIO", "EROFS", "EMFILE", "ENFILE", "EACCES", "EPERM", "EINTR", "ENOMEM",
            "ELOOP", "ENOENT", "EDQUOT",
        ],
        "read" | "pread64" | "readv" | "write" | "pwrite64" | "writev" => {
            &["EIO", "EINTR", "ENOSPC", "EDQUOT", "EAGAIN"]
        }
        // EAGAIN is EWOULDBLOCK by its other name.
        "flock" => &["EINTR", "ENOLCK", "EAGAIN"],
        "rename" | "renameat" | "renameat2" => {
            &["ENOSPC", "EIO", "EROFS", "EINVAL", "ENOSYS", "EDQUOT", "EPERM", "ENOENT"]
        }
        "stat" | "lstat" | "newfstatat" | "statx" => &["EIO", "ENOMEM", "EACCES", "ENOENT"],
        "fstat" | "fstatfs" => &["EIO", "ENOMEM"],
        "unlink" | "unlinkat" => &["EIO", "EROFS", "EACCES", "EPERM", "EBUSY", "ENOENT", "EINTR"],
        "mkdir" | "mkdirat" => {
            &["ENOSPC", "EIO", "EROFS", "EACCES", "EPERM", "EDQUOT", "ENOMEM", "EMLINK"]
        }
        "readlink" | "readlinkat" => &["EIO", "EACCES", "EPERM", "ENOENT", "ENOMEM"],
        "getdents64" => &["EIO", "EINTR", "ENOENT", "ENOMEM"],
        "lseek" => &["EINVAL", "ESPIPE"],
        "ftruncate" => &["EIO", "EINTR", "EROFS"],
        "utimensat" => &["EIO", "EROFS", "EACCES", "EPERM", "ENOENT"],
        "close" => &["EIO", "EINTR", "EDQUOT"],
        "poll" | "ppoll" => &["EINTR", "ENOMEM", "EINVAL"],
        "dup2" | "dup3" | "fcntl" => &["EINTR", "EBUSY", "EMFILE"],
        "mmap" | "mremap" | "mprotect" | "munmap" => &["ENOMEM", "EAGAIN"],
        "getrandom" => &["EINTR", "EINVAL", "ENOSYS", "EPERM"],
        "sigaltstack" => &["ENOMEM", "EPERM"],
        "rt_sigaction" | "rt_sigprocmask" | "setitimer" => &["EINVAL", "EPERM"],
        "kill" | "pidfd_open" => &["EPERM", "ESRCH", "EMFILE", "ENOSYS"],
        "execve" => &["ENOENT", "EACCES", "ENOMEM"],
        _ => &["EIO", "EINTR", "ENOMEM", "EPERM"],
    }
}

/// The points of a trace, and the calls that are left out with the reason.
pub fn points(trace: &str) -> (Vec<Point>, Vec<String>) {
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    let mut counts = std::collections::HashMap::new();
    // Before its first own call the program is the kernel's and the C
    // library's, and no code of ours could do anything about a fault.
    let mut ours = false;
    for line in trace.lines() {
        let Some((name, rest)) = line.split_once('(') else {
            continue;
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let k = counts.entry(name.to_owned()).and_modify(|k| *k += 1).or_insert(1);
        let point = Point { name: name.to_owned(), k: *k };
        ours |= rest.contains("\"/dev/null\"");
        // How often the timer interrupts is another number in every run.
        let timed = matches!(name, "rt_sigreturn" | "restart_syscall");
        if ours && !timed { points.push(point) } else { left_out.push(point.to_string()) }
    }
    (points, left_out)
}
