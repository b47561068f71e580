//! Scanning, checking and reading a payload never allocate and take time in
//! proportion to what they read. A program of its own, for it counts every
//! allocation of the thread that asks.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use tongs::harness::Want;
use tongs::harness::is_known;
use tongs::harness::payload::{self, Refused, Room};
use tongs::record::check::{self, Door};
use tongs::record::id::{self, Part};
use tongs::record::scan::{Entries, quoted};
use tongs::record::{MAX_BYTES, Scan};

/// The system's allocator, with a count for each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no count any more.
    let _ = COUNT.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator as it came; the
// count lives in a thread-local without destructor and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls to the allocator by this thread while `work` runs.
fn calls<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let before = COUNT.with(Cell::get);
    let result = work();
    (COUNT.with(Cell::get) - before, result)
}

#[test]
fn the_count_counts() {
    assert!(calls(|| drop(black_box(Box::new(1)))).0 >= 2);
    assert_eq!(calls(|| black_box(1)).0, 0);
}

/// A good record, with further members.
fn record(session: &str, more: &str) -> Vec<u8> {
    let hex = id::canonical(Part::Plain("claude"), Part::Plain(session), Part::Plain("1:2"));
    let hex = String::from_utf8(hex.to_vec()).unwrap();
    format!(
        "{{\"schema_version\":1,\"canonical_id\":\"fleet:v1:claude:{hex}\",\"session_id\":\"{session}\",\
         \"instance_id\":\"1:2\",\"harness_id\":\"claude\",\"agent\":\"claude\",\"cwd\":\"/tmp\",\"pid\":\"1\",\
         \"process_start\":\"2\",\"process_identity\":\"identified\",\"status\":\"running\",\"ts\":1,\
         \"terminal_env\":{{\"A\":\"b\"}},\"focus_target\":{{\"kind\":\"terminal\",\"terminal_env\":{{\"A\":\"b\"}}}}{more}}}"
    )
    .into_bytes()
}

/// A good record filled up with `unit` in one more text, to at most `size`
/// bytes.
fn filled(size: usize, unit: &str) -> Vec<u8> {
    let empty = record("s", ",\"x\":\"\"").len();
    record("s", &format!(",\"x\":\"{}\"", unit.repeat((size - empty) / unit.len())))
}

fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let brackets = |open: &str, n: usize| format!(",\"x\":{}", open.repeat(n));
    let keys = |n: usize, key: &dyn Fn(usize) -> String| -> String {
        (0..n).map(|n| format!(",\"{}\":{n}", key(n))).collect()
    };
    let deep = format!(",\"x\":{}1{}", "[".repeat(15), "]".repeat(15));
    let siblings = format!(",\"x\":[{}1]", "{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]},".repeat(1900));
    vec![
        ("valid", record("s", "")),
        ("valid, escaped", record("\\\"\\\\/\\b", ",\"detail\":\"\\ud83d\\ude00\\u0041\"")),
        ("valid, not ASCII", record("é☃😀", ",\"title\":\"é☃😀\"")),
        (
            "valid, spaced",
            [b" \n".to_vec(), record("s", " , \"x\" : [ 1 , 2 ] "), b"\n ".to_vec()].concat(),
        ),
        ("valid, deep", record("s", &deep)),
        ("too deep", record("s", &brackets("[", 20_000))),
        ("too deep, objects", record("s", &brackets("{\"a\":", 10_000))),
        ("many siblings", record("s", &siblings)),
        ("backslashes to the limit", filled(MAX_BYTES, "\\\\")),
        ("quotes to the limit", filled(MAX_BYTES, "\\\"")),
        ("escapes to the limit", filled(MAX_BYTES, "\\u0041")),
        ("pairs to the limit", filled(MAX_BYTES, "\\ud83d\\ude00")),
        ("long characters to the limit", filled(MAX_BYTES, "😀")),
        ("a large detail", record("s", &format!(",\"detail\":\"{}\"", "\\u0041".repeat(10_000)))),
        ("keys to the limit", record("s", &keys(50, &|n| format!("key-{n}")))),
        ("too many keys", record("s", &keys(9000, &|n| format!("k{n}")))),
        ("long keys", record("s", &keys(40, &|n| format!("{}{n}", "k".repeat(1500))))),
        ("long escaped keys", record("s", &keys(40, &|n| format!("{}{n}", "\\u006b".repeat(250))))),
        ("the same key, long", record("s", &keys(2, &|_| "\\u006b".repeat(5000)))),
        ("a long number", record("s", &format!(",\"x\":{}", "9".repeat(60_000)))),
        ("a long number of ours", record("s", &format!(",\"turn\":{}", "9".repeat(60_000)))),
        ("spaces", [record("s", ""), vec![b' '; 60_000]].concat()),
        (
            "a forged id",
            String::from_utf8(record("s", "")).unwrap().replace("\"s\"", "\"t\"").into_bytes(),
        ),
        (
            "another schema",
            String::from_utf8(record("s", "")).unwrap().replace(":1,", ":2,").into_bytes(),
        ),
        ("schema 0", b"{\"session_id\":\"s\",\"pid\":7,\"status\":\"odd\"}".to_vec()),
        ("too long", filled(MAX_BYTES + 1000, "x")),
        ("quotes only", vec![b'"'; MAX_BYTES]),
        ("backslashes only", vec![b'\\'; MAX_BYTES]),
        ("a string that does not end", [b"{\"".to_vec(), vec![b'\\'; MAX_BYTES - 2]].concat()),
        ("brackets only", vec![b'['; MAX_BYTES]),
        ("not UTF-8", [b"{\"x\":\"".to_vec(), vec![0xff; 1000]].concat()),
        (
            "UTF-8 cut off",
            [b"{\"x\":\"".to_vec(), "é".repeat(30_000).into_bytes(), vec![0xc3]].concat(),
        ),
        ("zeros", vec![0; MAX_BYTES]),
        ("nothing", Vec::new()),
        ("half a record", record("s", "")[..200].to_vec()),
    ]
}

#[test]
fn scanning_and_checking_never_allocate() {
    let mut scan = Box::new(Scan::new());
    let (mut good, mut bad) = (0, 0);
    for (name, bytes) in hostile() {
        for door in [Door::Read, Door::Write { now: 100, made: None }] {
            let (calls, accepted) = calls(|| {
                if scan.scan(&bytes).is_err() {
                    return false;
                }
                let Ok(record) = check::check(&bytes, &scan, door, is_known) else { return false };
                // What readers and writers ask of a record.
                for field in record.fields() {
                    black_box((
                        field.key(&bytes).len(),
                        field.text(&bytes).map(|t| (t.has_nul(), t.is("x"))),
                    ));
                    if matches!(field.kind, tongs::record::Kind::Object) {
                        for (_, kind, value) in Entries::of(field.value(&bytes)) {
                            black_box(quoted(kind, value));
                        }
                    }
                }
                black_box((record.harness().is("claude"), record.identified(), record.verbatim));
                true
            });
            assert_eq!(calls, 0, "{name}");
            if accepted { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 25 && bad > 25, "{good} {bad}");
}

/// A payload of about 10 MB whose bulk is one tool's result.
fn large_payload() -> Vec<u8> {
    let mut json =
        br#"{"session_id":"s","cwd":"/tmp","tool_name":"Bash","tool_response":{"out":""#.to_vec();
    let line = br#"a line of output with a \"quote\", a \\ and a bracket ]}\n"#;
    while json.len() < 10_000_000 {
        json.extend_from_slice(line);
    }
    json.extend_from_slice(br#"","list":["#);
    for _ in 0..10_000 {
        json.extend_from_slice(br#"{"a":[1,{"b":"]"}]},"#);
    }
    json.extend_from_slice(br#"0]},"last_assistant_message":""#);
    json.extend_from_slice("é\\n".repeat(100_000).as_bytes());
    json.extend_from_slice(br#"","hook_event_name":"PostToolUse"}"#);
    json
}

#[test]
fn a_payload_of_ten_megabytes_is_read_without_allocating() {
    let json = large_payload();
    for piece in [usize::MAX, 4096] {
        let mut room = Box::new(Room::new());
        let mut rest = &json[..];
        let (calls, event) = calls(|| {
            let payload = payload::read(&mut room, &mut |buffer| {
                let n = rest.len().min(piece).min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                rest = &rest[n..];
                n
            });
            let Ok(payload) = payload else { return false };
            payload.text(&[Want::HookEventName]) == "PostToolUse"
                && payload.id(&[Want::SessionId], 512) == Some("s")
                && payload.text(&[Want::LastAssistantMessage]).len() <= 4096
        });
        assert!(event, "pieces of {piece}");
        assert_eq!(calls, 0, "pieces of {piece}");
    }
}

#[test]
fn a_payload_that_is_refused_allocates_nothing_either() {
    let mut room = Box::new(Room::new());
    let long = vec![b'x'; payload::WINDOW];
    for (json, want) in [
        (&b"{\"cwd\":\"/a\",\"cwd\":\"/b\"}"[..], Refused::Duplicate),
        (b"{\"x\":", Refused::Short),
        (b"[1]", Refused::Malformed),
        (b"", Refused::Empty),
    ] {
        let mut rest = json;
        let (calls, refused) = calls(|| {
            payload::read(&mut room, &mut |b| std::io::Read::read(&mut rest, b).unwrap_or(0)).err()
        });
        assert_eq!((calls, refused), (0, Some(want)));
    }
    // Without an end, it is given up after so many bytes.
    let mut first = true;
    let (calls, refused) = calls(|| {
        payload::read(&mut room, &mut |buffer| {
            let start: &[u8] = if first { b"{\"x\":\"" } else { &long };
            first = false;
            buffer[..start.len()].copy_from_slice(start);
            start.len()
        })
        .err()
    });
    assert_eq!((calls, refused), (0, Some(Refused::TooLong)));
}

/// Processor time of this thread, so that a busy machine does not count; wall
/// time where there is no such clock.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn now() -> Duration {
    #[repr(C)]
    struct Spec {
        secs: i64,
        nanos: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, spec: *mut Spec) -> i32;
    }
    const THREAD_CPUTIME: i32 = 3;
    let mut spec = Spec { secs: 0, nanos: 0 };
    // SAFETY: `spec` has the layout of a timespec where long has 64 bits, and
    // lives during the call.
    assert_eq!(unsafe { clock_gettime(THREAD_CPUTIME, &mut spec) }, 0);
    Duration::new(spec.secs as u64, spec.nanos as u32)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// The shortest of several times that `work` takes.
fn time(mut work: impl FnMut()) -> Duration {
    let once = |work: &mut dyn FnMut()| {
        let start = now();
        work();
        now() - start
    };
    (0..RUNS).map(|_| once(&mut work)).min().unwrap_or_default()
}

/// Linear growth cannot be seen from outside without a clock. An input of eight
/// times the size may take 32 times as long: far from what a busy machine does
/// to the best of several runs, and half of what a quadratic scan would take.
const TIMES: usize = 8;
const SLACK: u32 = 4;
const RUNS: usize = 7;

/// Compares the times of a small input and of one of [`TIMES`] its size, a few
/// times over before it complains.
#[track_caller]
fn grows_linearly(name: &str, mut times: impl FnMut() -> (Duration, Duration)) {
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (small, large) = times();
        if large <= small.max(Duration::from_micros(5)) * TIMES as u32 * SLACK {
            return;
        }
        seen.push((small, large));
    }
    panic!("{name}: {seen:?}");
}

#[test]
fn eight_times_the_record_takes_at_most_32_times_as_long() {
    let text = |unit: &'static str| move |size: usize| filled(size, unit);
    let rest = |unit: &'static str| {
        move |size: usize| {
            let mut bytes = b"{\"x\":\"".to_vec();
            bytes.extend(unit.bytes().cycle().take(size - 6));
            bytes
        }
    };
    let list = |unit: &'static str| {
        move |size: usize| {
            let mut bytes = b"{\"x\":[".to_vec();
            while bytes.len() + unit.len() + 3 < size {
                bytes.extend_from_slice(unit.as_bytes());
            }
            [bytes, b"1]}".to_vec()].concat()
        }
    };
    // Sixty-four keys that agree in all but their ends, each one's length by size.
    let keys = |unit: &'static str| {
        move |size: usize| {
            let long = unit.repeat(size / 64 / unit.len() - 2);
            let members: Vec<String> = (0..60).map(|n| format!("\"{long}{n:02}\":0")).collect();
            format!("{{{}}}", members.join(",")).into_bytes()
        }
    };
    type Make<'m> = (&'static str, &'m dyn Fn(usize) -> Vec<u8>);
    let shapes: [Make<'_>; 12] = [
        ("plain text", &text("x")),
        ("backslashes", &text("\\\\")),
        ("quotes", &text("\\\"")),
        ("escapes", &text("\\u0041")),
        ("long characters", &text("😀")),
        ("backslashes without an end", &rest("\\")),
        ("escaped quotes without an end", &rest("\\\"")),
        ("brackets without an end", &|size| [b"{\"x\":".to_vec(), vec![b'['; size]].concat()),
        ("deep siblings", &list("[[[[[[[[[[[[[]]]]]]]]]]]]],")),
        ("objects", &list("{\"a\":{\"b\":\"\"}},")),
        ("long keys", &keys("k")),
        ("long escaped keys", &keys("\\u006b")),
    ];
    let mut scan = Box::new(Scan::new());
    for (name, make) in shapes {
        let (small, large) = (make(8000), make(8000 * TIMES));
        let mut look = |bytes: &[u8]| {
            time(|| {
                if black_box(&mut scan).scan(black_box(bytes)).is_ok() {
                    let _ = black_box(check::check(bytes, &scan, Door::Read, is_known).is_ok());
                }
            })
        };
        grows_linearly(name, || (look(&small), look(&large)));
    }
}

#[test]
fn eight_times_the_payload_takes_at_most_32_times_as_long() {
    let mut room = Box::new(Room::new());
    for (name, open, unit) in [
        ("text", "{\"x\":\"", "plain text "),
        ("backslashes", "{\"x\":\"", "\\\\"),
        ("quotes", "{\"x\":\"", "\\\""),
        ("brackets", "{\"x\":", "["),
        ("objects", "{\"x\":[", "{\"a\":[]},"),
        ("elements", "{\"background_tasks\":[", "\"\","),
        ("a wanted text", "{\"cwd\":\"", "\\u0041"),
        ("members", "{", "\"k\":0,"),
        ("a number", "{\"pid\":", "9"),
    ] {
        let mut read = |size: usize| {
            let bytes: Vec<u8> = open.bytes().chain(unit.bytes().cycle().take(size)).collect();
            time(|| {
                let mut rest = &bytes[..];
                let _ = black_box(
                    payload::read(&mut room, &mut |b| {
                        std::io::Read::read(&mut rest, b).unwrap_or(0)
                    })
                    .is_ok(),
                );
            })
        };
        grows_linearly(name, || (read(20_000), read(20_000 * TIMES)));
    }
}
