//! The process entry: `main(argc, argv, envp)` as the C library calls it.
//!
//! There is no Rust start-up: it costs a third of a hook's own time, and what
//! it does for other programs is done in `sys::guard` and `sys::stdio`, in the
//! order that a hook needs. In particular `std::env::args` is empty here; the
//! words are passed on by hand.

#![no_main]
#![allow(unsafe_code)]

#[cfg(frameless)]
mod frames;

use core::ffi::{CStr, c_char, c_int};

use tongs::applet::{Start, dispatch};
use tongs::sys::env::{Env, Var};

/// Most words of a command line that are taken without allocating; a hook has
/// four.
const FEW: usize = 16;

/// Called by the C library.
///
/// # Safety
/// The C library's part: both arrays are null-terminated arrays of C strings
/// that stay as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(
    argc: c_int,
    argv: *const *const c_char,
    envp: *const *const c_char,
) -> c_int {
    let mut env = Env::empty();
    // SAFETY: the C library passes a null-terminated array of C strings that
    // live as long as the process and that nothing of ours changes.
    unsafe { take_wanted(&mut env, envp) };
    let mut few: [&[u8]; FEW] = [b""; FEW];
    // SAFETY: as above; `argv` is null-terminated, execve(2).
    let words = || unsafe { strings(argv) };
    let many: Vec<&[u8]>;
    let count = usize::try_from(argc).unwrap_or(0);
    let args = if count <= FEW {
        let mut taken = 0;
        for (slot, word) in few.iter_mut().zip(words()) {
            *slot = word;
            taken += 1;
        }
        &few[..taken]
    } else {
        many = words().collect();
        &many[..]
    };
    let called = args.first().copied().unwrap_or(b"");
    dispatch(&Start { args, called, env: &env })
}

/// Puts the variables that are wanted into `env`. The others, most of them and
/// some of them long, are looked at only up to the end of their names.
///
/// # Safety
/// As [`strings`].
unsafe fn take_wanted(env: &mut Env<'static>, envp: *const *const c_char) {
    let mut at = envp;
    // SAFETY: `at` has not passed the null pointer that ends the array, and the
    // name is read no further than to the string's end.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let entry = (*at).cast::<u8>();
            let mut len = 0;
            while len <= Var::LONGEST && !matches!(*entry.add(len), 0 | b'=') {
                len += 1;
            }
            if Var::may_be(core::slice::from_raw_parts(entry, len)) {
                env.take(CStr::from_ptr(*at).to_bytes());
            }
            at = at.add(1);
        }
    }
}

/// The strings of a null-terminated array.
///
/// # Safety
/// `array` is null or points to pointers to C strings up to a null pointer, and
/// all of it stays as it is until the process ends.
unsafe fn strings(array: *const *const c_char) -> impl Iterator<Item = &'static [u8]> {
    let mut at = array;
    core::iter::from_fn(move || {
        // SAFETY: `at` has not passed the null pointer that ends the array.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let string = CStr::from_ptr(*at);
            at = at.add(1);
            Some(string.to_bytes())
        }
    })
}
