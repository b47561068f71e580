//! What Claude Code notes of its own process, in `sessions/PID.json` of its
//! configuration directory: since when it is idle.
//!
//! No hook tells that a user broke a turn off; this file does. It is nobody's
//! interface and may change: whatever is missing or of another type makes it say
//! nothing.

use crate::record::{Kind, Scan};

/// Largest note that is read, in bytes; it has a few hundred.
pub const MAX: usize = 64 * 1024;

/// When the process with this pid and start in clock ticks came to rest, in
/// epoch milliseconds, where the note says that it is of this process and that
/// the process is idle.
pub fn idle_since(note: &[u8], pid: u64, start: &str) -> Option<u64> {
    let mut scan = Scan::default();
    scan.scan(note).ok()?;
    let field = |name: &str| scan.fields().iter().find(|field| field.key(note).is(name));
    let is = |name, word: &str| {
        field(name).and_then(|field| field.text(note)).is_some_and(|text| text.is(word))
    };
    let number = |name| -> Option<u64> {
        let field = field(name).filter(|field| field.kind == Kind::Integer)?;
        core::str::from_utf8(field.value(note)).ok()?.parse().ok()
    };
    // Text so far; the same digits as a number mean the same.
    let is_start = is("procStart", start)
        || number("procStart").is_some_and(|ticks| start.parse() == Ok(ticks));
    if number("pid") != Some(pid) || !is_start || !is("status", "idle") {
        return None;
    }
    // The time of the status where there is one; the other one goes on with
    // every change.
    match field("statusUpdatedAt") {
        Some(_) => number("statusUpdatedAt"),
        None => number("updatedAt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = r#"{"pid":42,"sessionId":"s","cwd":"/x","startedAt":1,"procStart":"76830",
        "version":"2.1.278","kind":"interactive","status":"idle","updatedAt":2000,"statusUpdatedAt":1000}"#;

    fn said(from: &str, to: &str) -> Option<u64> {
        assert!(NOTE.contains(from), "{from}");
        idle_since(NOTE.replacen(from, to, 1).as_bytes(), 42, "76830")
    }

    #[test]
    fn the_time_of_the_status_is_better_than_that_of_the_last_change() {
        assert_eq!(said("", ""), Some(1000));
        assert_eq!(said(r#","statusUpdatedAt":1000"#, ""), Some(2000));
        assert_eq!(said(r#""procStart":"76830""#, r#""procStart":76830"#), Some(1000));
    }

    #[test]
    fn what_is_missing_or_of_another_type_or_process_says_nothing() {
        for (from, to) in [
            (r#""pid":42,"#, ""),
            (r#""pid":42"#, r#""pid":43"#),
            (r#""pid":42"#, r#""pid":"42""#),
            (r#""procStart":"76830","#, ""),
            (r#""procStart":"76830""#, r#""procStart":76831"#),
            (r#""procStart":"76830""#, r#""procStart":"76831""#),
            (r#""procStart":"76830""#, r#""procStart":"""#),
            (r#""procStart":"76830""#, r#""procStart":"Mon Nov 30 17:47:01 2026""#),
            (r#""status":"idle","#, ""),
            (r#""status":"idle""#, r#""status":"busy""#),
            (r#""status":"idle""#, r#""status":"shell""#),
            (r#""status":"idle""#, r#""status":["idle"]"#),
            (r#","updatedAt":2000,"statusUpdatedAt":1000"#, ""),
            (r#""statusUpdatedAt":1000"#, r#""statusUpdatedAt":"1000""#),
            (r#""statusUpdatedAt":1000"#, r#""statusUpdatedAt":1e3"#),
            (r#""statusUpdatedAt":1000"#, r#""statusUpdatedAt":-1000"#),
            (r#""statusUpdatedAt":1000"#, r#""statusUpdatedAt":null"#),
            (r#""status":"idle""#, r#""status":"busy","status":"idle""#),
        ] {
            assert_eq!(said(from, to), None, "{to}");
        }
        for bytes in [&b""[..], b"{", b"[]", b"null", b"\xff", &NOTE.as_bytes()[..NOTE.len() - 1]] {
            assert_eq!(idle_since(bytes, 42, "76830"), None);
        }
    }
}
