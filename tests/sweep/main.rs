//! The sweep: one fault at every system call of the programs that write.
//!
//! A trace without a fault gives the calls. For each of them the store is put
//! back, the program runs under strace(1), which kills it there or makes the
//! call fail, and then everything is looked at: the records, what is left
//! over, how the program ended, and whether the next run works.
//!
//! By default a kill and a full disk; with TONGS_TEST_SWEEP=all every error
//! that a call can give (`make sweep`).

#[allow(dead_code)]
#[path = "../suite/world.rs"]
mod world;

/// Calls and what they can answer.
mod faults;
/// What stands after a fault.
mod look;
/// Prepared stores and what may come of them.
mod scene;
/// Running and counting.
mod tally;

use std::io::Write;
use std::process::{Command, Stdio};

use faults::Extent;
use scene::{Scene, Subject};
use serde_json::{Value, json};
use tally::{Share, Sweep, Tally, Tools};
use world::World;

/// For the parts of a sweep: which one it is and where its report goes.
const PART: &str = "TONGS_TEST_SWEEP_PART";
const REPORT: &str = "TONGS_TEST_SWEEP_REPORT";

/// Prints although the test may pass: the totals are the point of a sweep.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn tools(test: &str) -> Option<Tools> {
    Tools::find().map_err(|why| say(&format!("skipped {test}: {why}"))).ok()
}

fn sweep_all(tools: &Tools, share: Share) -> Vec<Tally> {
    let sweep = |subject| {
        let world = World::new();
        let scene = Scene::prepare(&world, subject);
        Sweep::new(&world, tools, scene).run(Extent::of_env(), share)
    };
    Subject::ALL.into_iter().map(sweep).collect()
}

/// The words that start a program among processes of its own, where that is
/// permitted: then the maintainer looks through the same few processes in every
/// run, and none of the person's who runs the tests.
fn alone() -> Option<Vec<&'static str>> {
    let ways = [
        vec!["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
        vec![
            "unshare",
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
        ],
    ];
    ways.into_iter().find(|way| {
        let tried = Command::new(way[0]).args(&way[1..]).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    })
}

/// Runs every share in a process of its own and returns the reports.
fn sweep_in_parts(way: &[&str], count: usize) -> Vec<Vec<Tally>> {
    let dir = tempfile::tempdir().unwrap();
    let parts: Vec<_> = (0..count)
        .map(|index| {
            let report = dir.path().join(index.to_string());
            let child = Command::new(way[0])
                .args(&way[1..])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "one_part_of_the_sweep", "--ignored", "--nocapture"])
                .env(PART, format!("{index}/{count}"))
                .env(REPORT, &report)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            (child, report)
        })
        .collect();
    let read = |(child, report): (std::process::Child, std::path::PathBuf)| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&world::bytes(report)).unwrap();
        report.as_array().unwrap().iter().map(Tally::of_json).collect()
    };
    parts.into_iter().map(read).collect()
}

#[test]
#[ignore = "the sweep starts it"]
fn one_part_of_the_sweep() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (index, of) = part.split_once('/').unwrap();
    let share = Share { index: index.parse().unwrap(), of: of.parse().unwrap() };
    let mut tallies = sweep_all(&Tools::find().unwrap(), share);
    let report: Vec<Value> = tallies.iter_mut().map(Tally::json).collect();
    std::fs::write(std::env::var_os(REPORT).unwrap(), json!(report).to_string()).unwrap();
}

#[test]
fn a_fault_at_any_call_leaves_whole_records_a_silent_hook_and_a_store_that_works() {
    let Some(tools) = tools("the sweep") else {
        return;
    };
    let count = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let parts = match alone() {
        Some(way) => sweep_in_parts(&way, count),
        None => std::thread::scope(|scope| {
            let shares = (0..count).map(|index| Share { index, of: count });
            let threads: Vec<_> = shares
                .map(|share| {
                    scope.spawn({
                        let tools = &tools;
                        move || sweep_all(tools, share)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        }),
    };
    let mut totals: Vec<Tally> = Subject::ALL.map(|_| Tally::default()).into();
    for part in parts {
        totals.iter_mut().zip(part).for_each(|(total, tally)| total.add(tally));
    }
    let mut wrong: Vec<String> = Vec::new();
    for (subject, total) in Subject::ALL.iter().zip(&mut totals) {
        say(&format!("{}: {}", subject.name(), total.line()));
        say(&format!("    left out: {}", total.left_out.join(", ")));
        assert!(total.missed * 10 <= total.runs, "{}: the faults miss their calls", subject.name());
        wrong.extend(findings(total));
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

fn findings(tally: &Tally) -> Vec<String> {
    tally.wrong.iter().map(|w| format!("{}: {}", w.kind, w.text)).collect()
}

#[test]
fn a_hook_whose_guard_is_incomplete_ends_all_the_same_while_a_lock_is_held() {
    let Some(tools) = tools("the sweep of the guard") else {
        return;
    };
    let world = World::new();
    let scene = Scene::prepare(&world, Subject::Stop);
    let mut tally = Sweep::new(&world, &tools, scene).run_held();
    say(&format!("hook, stop, locks held: {}", tally.line()));
    assert!(tally.points > 0 && tally.missed == 0, "{tally:?}");
    assert!(tally.wrong.is_empty(), "{}", findings(&tally).join("\n"));
}

/// Sweeps a script in the hook's place. It starts as the hook does, by opening
/// /dev/null.
fn sweep_stand_in(tools: &Tools, script: impl Fn(&std::path::Path, &str) -> String) -> Tally {
    let world = World::new();
    let mut scene = Scene::prepare(&world, Subject::Tool);
    scene.stand_in(|file, record| {
        format!("#!/bin/sh\nexec 2>/dev/null\n{}\n", script(file, record))
    });
    Sweep::new(&world, tools, scene).run(Extent::Short, Share::WHOLE)
}

#[test]
fn a_hook_that_writes_in_place_is_caught_tearing_records() {
    let Some(tools) = tools("the sweep of a wrong hook") else {
        return;
    };
    let mut tally = sweep_stand_in(&tools, |file, record| {
        format!(": >'{0}'\nprintf %s '{record}' >>'{0}'\nexit 0", file.display())
    });
    say(&format!("a hook that writes in place: {}", tally.line()));
    assert!(tally.torn > 0 && tally.count("torn") > 0, "{tally:?}");
}

#[test]
fn a_hook_that_gives_up_half_way_is_caught_by_its_exit_status_and_its_temporary_file() {
    let Some(tools) = tools("the sweep of a wrong hook") else {
        return;
    };
    let mut tally = sweep_stand_in(&tools, |file, record| {
        let temp = file.with_file_name(".fleet-tmp-1-0.tmp");
        format!(
            "printf %s '{record}' >'{0}' || exit 1\nmv -f '{0}' '{1}'\nexit 0",
            temp.display(),
            file.display()
        )
    });
    say(&format!("a hook that gives up half way: {}", tally.line()));
    assert!(tally.count("temp") > 0 && tally.count("exit") > 0, "{tally:?}");
    // It renames, so the same look at the store must find nothing torn.
    assert_eq!((tally.torn, tally.count("lost")), (0, 0), "{tally:?}");
}
