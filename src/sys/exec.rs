//! Another program in this one's place, with everything as the caller had it.

use core::ffi::CStr;
use std::borrow::Cow;
use std::ffi::CString;

use super::fs::Errno;
use super::{guard, stdio};

/// Runs another program in this one's place, looked for as execvp(3) does. It
/// gets this program's environment with these variables set, and finds signals,
/// timer, umask and descriptors as this one's caller had them. Comes back only
/// where that failed, with the reason.
pub fn exec(words: &[&[u8]], set: &[(&str, &str)]) -> Errno {
    let Ok(words) = words.iter().map(|word| CString::new(*word)).collect::<Result<Vec<_>, _>>()
    else {
        return Errno::INVAL;
    };
    let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    let is_set = |entry: &&CStr| {
        let name = entry.to_bytes().split(|byte| *byte == b'=').next();
        set.iter().any(|(set, _)| name == Some(set.as_bytes()))
    };
    let mut environment: Vec<Cow<'_, CStr>> =
        guard::environment().filter(|entry| !is_set(entry)).map(Cow::Borrowed).collect();
    for (name, value) in set {
        match CString::new(format!("{name}={value}")) {
            Ok(entry) => environment.push(Cow::Owned(entry)),
            Err(_) => return Errno::INVAL,
        }
    }
    let environment: Vec<&CStr> = environment.iter().map(|entry| &**entry).collect();
    guard::hand_back();
    stdio::hand_back();
    guard::exec(&words, &environment)
}
