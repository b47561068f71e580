//! Many hooks at once. A program of its own, so that nothing else of the tests
//! runs beside it: the promise is about the locks, not about a starved machine.

#[allow(dead_code)]
#[path = "suite/world.rs"]
mod world;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
use world::{World, claude};

/// A hook gives its locks up after 250 ms of wall time, so on a machine that has
/// no time for it an event may be lost: it is then in the fault log. Of some
/// tries one must lose nothing; none may tear, leave a file or lose in silence.
#[test]
fn two_hundred_and_fifty_six_hooks_at_once_lose_nothing_and_tear_nothing() {
    const TRIES: usize = 5;
    let lost: Vec<u64> = (0..TRIES).map_while(|_| Some(storm()).filter(|lost| *lost > 0)).collect();
    println!("lost before the try that lost none: {lost:?}");
    assert!(lost.len() < TRIES, "every try lost some: {lost:?}");
}

/// Runs 256 hooks at once and returns how many events were given up.
fn storm() -> u64 {
    const WRITERS: u64 = 256;
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let payload = world.path("tool.json");
    fs::write(&payload, claude("s", r#","tool_name":"Bash""#)).unwrap();
    let place = world.record_files()[0].clone();
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Reading by the open file, as a reader does: old or new.
                let text = fs::read(&place).unwrap();
                let record: Value = serde_json::from_slice(&text).expect("a torn record");
                assert_eq!(record["status"], "running");
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        // All writers sleep until somebody opens the FIFO for writing, and then
        // start together.
        let line = format!(
            "mkfifo go; i=0; while [ $i -lt {WRITERS} ]; do ( : <go; tongs-hook claude PreToolUse <'{}' ) & i=$((i+1)); done; exec 9>go; wait",
            payload.display()
        );
        agent.shell(&line).silent();
        stop.store(true, Ordering::Relaxed);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    assert!(!world.files().iter().any(|f| f.contains("tmp")), "{:?}", world.files());
    let log = fs::read_to_string(world.state().join("hook-faults.log")).unwrap_or_default();
    let busy = log.lines().filter(|line| line.contains(" lock-busy ")).count() as u64;
    assert_eq!(busy, log.lines().count() as u64, "{log}");
    let arrived = world.record()["arrival_sequence"].as_u64().unwrap();
    assert_eq!(arrived + busy, WRITERS + 1, "nothing is lost in silence");
    busy
}
