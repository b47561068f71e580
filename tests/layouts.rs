//! The layouts and numbers that tongs declares by hand, against the declarations of
//! the `libc` crate. They hold where this compiles, so a type check for a system
//! that is not at hand checks them too.

#![allow(deprecated)] // libc says so of suseconds_t for musl

use std::mem::{offset_of, size_of};

use tongs::sys::guard::abi;

macro_rules! same {
    ($($ours:expr => $theirs:expr;)*) => {
        $(const _: () = assert!($ours as i128 == $theirs as i128, stringify!($ours));)*
    };
}

same! {
    size_of::<abi::Timespec>() => size_of::<libc::timespec>();
    offset_of!(abi::Timespec, nsec) => offset_of!(libc::timespec, tv_nsec);
    size_of::<abi::Timeval>() => size_of::<libc::timeval>();
    size_of::<abi::Usec>() => size_of::<libc::suseconds_t>();
    offset_of!(abi::Timeval, usec) => offset_of!(libc::timeval, tv_usec);
    size_of::<abi::Itimerval>() => size_of::<libc::itimerval>();
    offset_of!(abi::Itimerval, value) => offset_of!(libc::itimerval, it_value);
    size_of::<abi::Sigset>() => size_of::<libc::sigset_t>();
    size_of::<abi::Sigaction>() => size_of::<libc::sigaction>();
    offset_of!(abi::Sigaction, handler) => offset_of!(libc::sigaction, sa_sigaction);
    offset_of!(abi::Sigaction, mask) => offset_of!(libc::sigaction, sa_mask);
    offset_of!(abi::Sigaction, flags) => offset_of!(libc::sigaction, sa_flags);
    size_of::<abi::Stack>() => size_of::<libc::stack_t>();
    offset_of!(abi::Stack, sp) => offset_of!(libc::stack_t, ss_sp);
    offset_of!(abi::Stack, flags) => offset_of!(libc::stack_t, ss_flags);
    offset_of!(abi::Stack, size) => offset_of!(libc::stack_t, ss_size);
    abi::SA_ONSTACK => libc::SA_ONSTACK;
    abi::SIG_BLOCK => libc::SIG_BLOCK;
    abi::SIG_UNBLOCK => libc::SIG_UNBLOCK;
    abi::ITIMER_REAL => libc::ITIMER_REAL;
    abi::CLOCK_REALTIME => libc::CLOCK_REALTIME;
    abi::SIGALRM => libc::SIGALRM;
    abi::SIGPIPE => libc::SIGPIPE;
    abi::SIGXFSZ => libc::SIGXFSZ;
    abi::SIGTTIN => libc::SIGTTIN;
    abi::SIGTTOU => libc::SIGTTOU;
    abi::SIGHUP => libc::SIGHUP;
    abi::SIGINT => libc::SIGINT;
    abi::SIGQUIT => libc::SIGQUIT;
    abi::SIGTERM => libc::SIGTERM;
    abi::SIGCONT => libc::SIGCONT;
    abi::SIGTSTP => libc::SIGTSTP;
    abi::SIGWINCH => libc::SIGWINCH;
}

#[cfg(not(target_os = "linux"))]
same! {
    abi::SA_RESETHAND => libc::SA_RESETHAND;
}

// musl's constant is a negative number in the crate and glibc's is not.
#[cfg(target_os = "linux")]
same! {
    abi::SA_RESETHAND as u32 => libc::SA_RESETHAND as u32;
    abi::CLOCK_MONOTONIC => libc::CLOCK_MONOTONIC;
    abi::CLOCK_BOOTTIME => libc::CLOCK_BOOTTIME;
    offset_of!(abi::Sigaction, restorer) => offset_of!(libc::sigaction, sa_restorer);
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
const _: () = assert!(match abi::SYS_CLOCK_GETTIME {
    Some(number) => number == libc::SYS_clock_gettime,
    None => false,
});

/// Whether a set of signals is this one.
const fn is_set(ours: &[i32], theirs: &[i32]) -> bool {
    let mut at = 0;
    while at < ours.len() && at < theirs.len() {
        if ours[at] != theirs[at] {
            return false;
        }
        at += 1;
    }
    ours.len() == theirs.len()
}

#[cfg(target_os = "linux")]
const _: () = {
    use libc::*;
    assert!(is_set(
        &abi::FATAL,
        &[
            SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
            SIGTERM, SIGXCPU, SIGSYS,
        ]
    ));
    assert!(is_set(
        &abi::DEADLY,
        &[
            SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2, SIGSTKFLT,
            SIGXCPU, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS,
        ]
    ));
};

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
const _: () = {
    use libc::*;
    assert!(is_set(
        &abi::FATAL,
        &[
            SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGEMT, SIGFPE, SIGBUS, SIGSEGV, SIGSYS,
            SIGTERM, SIGXCPU, SIGUSR1, SIGUSR2,
        ]
    ));
    assert!(is_set(
        &abi::DEADLY,
        &[
            SIGILL, SIGTRAP, SIGABRT, SIGEMT, SIGFPE, SIGBUS, SIGSEGV, SIGSYS, SIGXCPU, SIGVTALRM,
            SIGPROF, SIGUSR1, SIGUSR2,
        ]
    ));
};

#[cfg(target_os = "macos")]
mod darwin {
    use super::*;
    use tongs::probe::kinfo::{ZOMBIE, bsdinfo, bsdshortinfo};

    same! {
        abi::CLOCK_MONOTONIC => libc::CLOCK_UPTIME_RAW;
        abi::CLOCK_BOOTTIME => libc::CLOCK_MONOTONIC_RAW;
        ZOMBIE => libc::SZOMB;
        bsdinfo::SIZE => size_of::<libc::proc_bsdinfo>();
        bsdinfo::STATUS => offset_of!(libc::proc_bsdinfo, pbi_status);
        bsdinfo::PID => offset_of!(libc::proc_bsdinfo, pbi_pid);
        bsdinfo::PPID => offset_of!(libc::proc_bsdinfo, pbi_ppid);
        bsdinfo::UID => offset_of!(libc::proc_bsdinfo, pbi_uid);
        bsdinfo::COMM => offset_of!(libc::proc_bsdinfo, pbi_comm);
        bsdinfo::TTY => offset_of!(libc::proc_bsdinfo, e_tdev);
        bsdinfo::START => offset_of!(libc::proc_bsdinfo, pbi_start_tvsec);
        bsdinfo::START + 8 => offset_of!(libc::proc_bsdinfo, pbi_start_tvusec);
        bsdshortinfo::SIZE => size_of::<libc::proc_bsdshortinfo>();
        bsdshortinfo::PID => offset_of!(libc::proc_bsdshortinfo, pbsi_pid);
        bsdshortinfo::PPID => offset_of!(libc::proc_bsdshortinfo, pbsi_ppid);
        bsdshortinfo::STATUS => offset_of!(libc::proc_bsdshortinfo, pbsi_status);
        bsdshortinfo::COMM => offset_of!(libc::proc_bsdshortinfo, pbsi_comm);
        bsdshortinfo::UID => offset_of!(libc::proc_bsdshortinfo, pbsi_uid);
        tongs::probe::system::VNODEPATHINFO_SIZE => size_of::<libc::proc_vnodepathinfo>();
        tongs::probe::system::CWD_PATH => offset_of!(libc::vnode_info_path, vip_path);
        tongs::probe::system::BSDINFO => libc::PROC_PIDTBSDINFO;
        tongs::probe::system::BSDSHORTINFO => libc::PROC_PIDT_SHORTBSDINFO;
        tongs::probe::system::VNODEPATHINFO => libc::PROC_PIDVNODEPATHINFO;
        tongs::probe::system::PROCARGS2[0] => libc::CTL_KERN;
        tongs::probe::system::PROCARGS2[1] => libc::KERN_PROCARGS2;
        tongs::sys::sysctl::CHARACTER => libc::S_IFCHR;
        size_of::<tongs::sys::sysctl::Device>() => size_of::<libc::dev_t>();
        size_of::<tongs::sys::sysctl::Mode>() => size_of::<libc::mode_t>();
        tongs::sys::fs::LOCAL => libc::MNT_LOCAL;
    }
}

#[cfg(target_os = "freebsd")]
mod freebsd {
    use super::*;
    use tongs::probe::kinfo::{ZOMBIE, kinfo_proc};

    same! {
        abi::CLOCK_MONOTONIC => libc::CLOCK_MONOTONIC;
        abi::CLOCK_BOOTTIME => libc::CLOCK_UPTIME;
        ZOMBIE => libc::SZOMB;
        kinfo_proc::SIZE => size_of::<libc::kinfo_proc>();
        kinfo_proc::STRUCTSIZE => offset_of!(libc::kinfo_proc, ki_structsize);
        kinfo_proc::PID => offset_of!(libc::kinfo_proc, ki_pid);
        kinfo_proc::PPID => offset_of!(libc::kinfo_proc, ki_ppid);
        kinfo_proc::UID => offset_of!(libc::kinfo_proc, ki_uid);
        kinfo_proc::START => offset_of!(libc::kinfo_proc, ki_start);
        kinfo_proc::STATUS => offset_of!(libc::kinfo_proc, ki_stat);
        kinfo_proc::COMM => offset_of!(libc::kinfo_proc, ki_comm);
        kinfo_proc::TTY => offset_of!(libc::kinfo_proc, ki_tdev);
        kinfo_proc::THREADS => offset_of!(libc::kinfo_proc, ki_numthreads);
        tongs::probe::system::KINFO_FILE_SIZE => size_of::<libc::kinfo_file>();
        tongs::probe::system::KINFO_FILE_PATH => offset_of!(libc::kinfo_file, kf_path);
        tongs::probe::system::PROC[0] => libc::CTL_KERN;
        tongs::probe::system::PROC[1] => libc::KERN_PROC;
        tongs::probe::system::BY_PID => libc::KERN_PROC_PID;
        tongs::probe::system::ARGS => libc::KERN_PROC_ARGS;
        tongs::probe::system::ALL => libc::KERN_PROC_PROC;
        tongs::probe::system::PATHNAME => libc::KERN_PROC_PATHNAME;
        tongs::probe::system::CWD => libc::KERN_PROC_CWD;
        tongs::sys::sysctl::CHARACTER => libc::S_IFCHR;
        size_of::<tongs::sys::sysctl::Device>() => size_of::<libc::dev_t>();
        size_of::<tongs::sys::sysctl::Mode>() => size_of::<libc::mode_t>();
        tongs::sys::fs::LOCAL => libc::MNT_LOCAL;
    }
}
