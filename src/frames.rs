//! The stack's frames, of which there are none: a panic aborts and its message
//! goes without them, for their names are stripped.
//!
//! These are the functions of the unwinder that Rust's library calls. As they are
//! ours and say so, neither the unwinder nor the reader of debug information is
//! linked, a fifth of the program. `packaging/flags.sh` finds out whether these
//! are all that this compiler's library needs, and sets `frameless` if so.

#![allow(unsafe_code, non_snake_case)]

use core::ffi::c_int;

unsafe extern "C" {
    safe fn abort() -> !;
}

/// Calls back for every frame.
#[unsafe(no_mangle)]
pub extern "C" fn _Unwind_Backtrace(_: *const (), _: *const ()) -> c_int {
    const END_OF_STACK: c_int = 5;
    END_OF_STACK
}

macro_rules! uncalled {
    ($($name:ident)*) => {
        $(
            /// Asks about a frame or leaves it; nobody ever has one.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> ! {
                abort()
            }
        )*
    };
}

uncalled! {
    _Unwind_FindEnclosingFunction _Unwind_GetCFA _Unwind_GetDataRelBase
    _Unwind_GetIP _Unwind_GetIPInfo _Unwind_GetLanguageSpecificData
    _Unwind_GetRegionStart _Unwind_GetTextRelBase _Unwind_Resume _Unwind_SetGR
    _Unwind_SetIP
}
