//! The directory that a command line names.

use crate::record::limit;
use crate::record::text::cut;
use crate::sys::process::own_cwd;

/// The directory that is given, taken from the current one where it is relative,
/// and else the current one; empty where that is not UTF-8.
pub fn absolute(given: Option<&str>) -> String {
    if let Some(path) = given.filter(|path| path.starts_with('/')) {
        return path.to_string();
    }
    let mut buffer = [0; limit::PATH];
    let here = core::str::from_utf8(own_cwd(&mut buffer)).unwrap_or("");
    match given {
        None => here.to_string(),
        Some(path) => cut(&format!("{here}/{path}"), limit::PATH).to_string(),
    }
}
