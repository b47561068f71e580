//! What an export tells, and when: every session once, then its changes, and
//! again before an importer forgets it.
//!
//! Several records here may be one session elsewhere, for instances are not told
//! apart there: the one with the newest event speaks for it, but first one that is
//! seen to live. What cannot be seen was left behind, most likely, where a newer one
//! is over. Each session's lines are numbered by the wall clock, so that
//! the numbers go on where another export, before a reconnect or a reboot, left
//! off.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde_json::Value;

use super::fleet::Event;
use super::outward::{Outward, Owner};
use crate::probe::{Here, Life};
use crate::record::sha256::Hex;
use crate::sys::clock::Now;
use crate::sys::watch::Alarm;

/// Milliseconds after which a session that lives is told of again: an importer
/// forgets one without a process ten minutes after its last line.
pub const HEARTBEAT_MS: u64 = 4 * 60 * 1000;

/// Most processes whose end is waited for, a descriptor each. That of any other
/// is seen at its next line.
const HELD: usize = 256;

/// A record here.
struct Source {
    said: Rc<Outward>,
    owner: Owner,
    life: Option<Life>,
    /// Whether its process was seen to live.
    seen: bool,
    /// Whether its process has been seen to be over.
    over: bool,
    /// When its last event was, epoch milliseconds.
    ts_ms: u64,
}

impl Source {
    fn is_ended(&self) -> bool {
        self.over || self.said.ended
    }
}

/// The last line of a session.
struct Sent {
    said: Rc<Outward>,
    sequence: u64,
    /// When, on CLOCK_BOOTTIME: an importer's clock goes on while this machine
    /// sleeps.
    at_ms: u64,
}

/// The sessions of an export.
pub struct Exporter {
    host: String,
    here: Here,
    /// By the id here.
    sources: BTreeMap<String, Source>,
    /// By the id elsewhere.
    sent: HashMap<Hex, Sent>,
    /// Those of which something changed since the last lines.
    touched: BTreeSet<Hex>,
    held: usize,
}

impl Exporter {
    /// An export of nothing yet, under this host's name.
    pub fn new(host: String, here: Here) -> Exporter {
        Exporter {
            host,
            here,
            sources: BTreeMap::new(),
            sent: HashMap::new(),
            touched: BTreeSet::new(),
            held: 0,
        }
    }

    /// Takes a change of a session, by its id here.
    pub fn take(&mut self, event: Event, id: &str, session: &Value, now: &Now) {
        let before = self.sources.remove(id);
        if let Some(before) = &before {
            self.touched.insert(before.said.id);
            self.held -= usize::from(before.life.is_some());
        }
        let said = Outward::of(session, &self.host).filter(|_| event != Event::Removed);
        let Some(said) = said else { return };
        self.touched.insert(said.id);
        let owner = Owner::of(session);
        let over = !said.ended && !owner.lives(&self.here, now);
        let seen = !said.ended && owner.is_seen(&self.here);
        let wanted = !over && !said.ended && self.held < HELD;
        let life = wanted.then(|| owner.hold(&self.here)).flatten();
        self.held += usize::from(life.is_some());
        let seconds = session["ts"].as_u64().unwrap_or(0);
        let ts_ms = session["ts_ms"].as_u64().unwrap_or(seconds.saturating_mul(1000));
        let source = Source { said: Rc::new(said), owner, life, seen, over, ts_ms };
        self.sources.insert(id.to_string(), source);
    }

    /// What wakes a sleeper when a process ends.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm<'_>> {
        self.sources.values().filter_map(|source| source.life.as_ref()?.alarm())
    }

    /// Takes note of the processes that have ended.
    pub fn note_ends(&mut self) {
        for source in self.sources.values_mut() {
            if source.life.as_ref().is_some_and(Life::is_over) {
                source.life = None;
                source.over = true;
                self.held -= 1;
                self.touched.insert(source.said.id);
            }
        }
    }

    /// When the next session is to be told of again, on CLOCK_MONOTONIC.
    pub fn due_ms(&self, now: &Now) -> u64 {
        let living = self.sent.values().filter(|sent| !sent.said.ended);
        let next_ms = living.map(|sent| sent.at_ms + HEARTBEAT_MS).min();
        next_ms.map_or(u64::MAX, |ms| now.mono_ms + ms.saturating_sub(now.boot_ms))
    }

    /// The lines that are due now.
    pub fn lines(&mut self, now: &Now, put: &mut dyn FnMut(&[u8])) {
        let mut due = core::mem::take(&mut self.touched);
        let again = |sent: &Sent| !sent.said.ended && sent.at_ms + HEARTBEAT_MS <= now.boot_ms;
        let late: BTreeSet<Hex> =
            self.sent.iter().filter(|(_, sent)| again(sent)).map(|(id, _)| *id).collect();
        for source in self.sources.values_mut().filter(|source| late.contains(&source.said.id)) {
            source.over |= !source.said.ended && !source.owner.lives(&self.here, now);
        }
        due.extend(&late);
        if due.is_empty() {
            return;
        }
        let mut best: HashMap<Hex, &Source> = HashMap::new();
        for source in self.sources.values().filter(|source| due.contains(&source.said.id)) {
            let rank = |source: &Source| (source.seen && !source.is_ended(), source.ts_ms);
            let known = best.entry(source.said.id).or_insert(source);
            if rank(source) > rank(known) {
                *known = source;
            }
        }
        let mut line = Vec::new();
        for id in due {
            let last = self.sent.get(&id);
            let said = match (best.get(&id), last) {
                (Some(source), Some(last)) if source.over && last.said.ended => last.said.clone(),
                (Some(source), _) if source.over => Rc::new(source.said.end(now.wall_ms)),
                (Some(source), _) => source.said.clone(),
                (None, Some(last)) if !last.said.ended => Rc::new(last.said.end(now.wall_ms)),
                (None, _) => {
                    // It is over for good.
                    self.sent.remove(&id);
                    continue;
                }
            };
            if last.is_some_and(|last| last.said == said) && !late.contains(&id) {
                continue;
            }
            let sequence = now.wall_ms.max(last.map_or(0, |last| last.sequence + 1));
            line.clear();
            said.put_line(&mut line, sequence);
            put(&line);
            self.sent.insert(id, Sent { said, sequence, at_ms: now.boot_ms });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::check::{Door, check};
    use crate::record::scan::Scan;

    const HERE: Here = Here { boot: None, pid_ns: Some(1), parent: 0 };

    fn at(ms: u64) -> Now {
        Now { wall_ms: 1_000_000_000 + ms, boot_ms: ms, mono_ms: ms }
    }

    /// A session that another pid namespace wrote: its process cannot be seen, so
    /// that it is believed.
    fn session(id: &str, status: &str, more: Value) -> Value {
        let mut session = json!({
            "schema_version": 1, "record_kind": "session", "harness_id": "claude", "agent": "claude",
            "session_id": id, "instance_id": "7:8", "pid": "7", "process_start": "8", "pid_ns": "2",
            "boot_id": "b", "boot_ms": 5, "mono_ms": 5, "launch_id": "l", "profile_id": "p",
            "terminal_id": "t", "terminal": "tmux", "terminal_env": {"TMUX": "/s"}, "turn_id": "x",
            "status": status, "ts": 1_000_000, "foreign": "secret", "title": "a\u{202e}b",
            "waiting_for": "plan", "focus_target": {"kind": "terminal"}, "background": "no",
        });
        for (key, value) in more.as_object().unwrap() {
            session[key] = value.clone();
        }
        session
    }

    fn lines(exporter: &mut Exporter, now: &Now) -> Vec<Value> {
        let mut lines = Vec::new();
        exporter.lines(now, &mut |line| {
            let (line, end) = line.split_at(line.len() - 1);
            assert_eq!(end, b"\n");
            let mut scan = Scan::new();
            scan.scan(line).unwrap();
            let door = Door::Write { now: now.secs(), made: None };
            let checked = check(line, &scan, door, |id| id == "claude").unwrap();
            assert!(checked.pid.is_none() && line.is_ascii());
            lines.push(serde_json::from_slice(line).unwrap());
        });
        lines
    }

    fn exporter() -> Exporter {
        Exporter::new("box".to_string(), HERE)
    }

    #[test]
    fn a_line_is_a_record_without_anything_of_this_machine() {
        let mut exporter = exporter();
        exporter.take(Event::Added, "a", &session("s", "waiting", json!({})), &at(0));
        let line = lines(&mut exporter, &at(0)).remove(0);
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "agent",
                "canonical_id",
                "focus_target",
                "harness_id",
                "host",
                "instance_id",
                "process_identity",
                "record_kind",
                "schema_version",
                "sequence",
                "session_id",
                "status",
                "terminal",
                "title",
                "ts",
                "waiting_for"
            ]
        );
        assert_eq!((&line["host"], &line["terminal"]), (&json!("box"), &json!("generic")));
        assert_eq!(
            (&line["title"], &line["sequence"]),
            (&json!("a\u{202e}b"), &json!(1_000_000_000))
        );
        assert_eq!(line["focus_target"], json!({"kind": "unavailable"}));
    }

    #[test]
    fn what_lives_is_told_of_again_in_time_and_what_has_ended_is_not() {
        let mut exporter = exporter();
        exporter.take(Event::Added, "a", &session("live", "idle", json!({})), &at(0));
        exporter.take(Event::Added, "b", &session("over", "ended", json!({})), &at(0));
        assert_eq!(exporter.due_ms(&at(0)), u64::MAX);
        assert_eq!(lines(&mut exporter, &at(0)).len(), 2);
        assert_eq!(exporter.due_ms(&at(0)), HEARTBEAT_MS);
        let slept = Now { boot_ms: HEARTBEAT_MS + 7, ..at(9) };
        assert_eq!(exporter.due_ms(&slept), 9, "at once after a long sleep");
        const { assert!(HEARTBEAT_MS * 2 < crate::store::maintain::PIDLESS * 1000) };
        assert!(lines(&mut exporter, &at(HEARTBEAT_MS - 1)).is_empty());
        let again = lines(&mut exporter, &at(HEARTBEAT_MS));
        assert_eq!(again.len(), 1);
        assert_eq!(
            (&again[0]["session_id"], &again[0]["status"]),
            (&json!("live"), &json!("idle"))
        );
        assert_eq!(again[0]["sequence"], 1_000_000_000 + HEARTBEAT_MS);
        // One that nobody has seen for a day is not believed any more.
        let day = at(25 * 3600 * 1000);
        let last = lines(&mut exporter, &day);
        assert_eq!((last.len(), &last[0]["status"]), (1, &json!("ended")));
        assert!(lines(&mut exporter, &at(26 * 3600 * 1000)).is_empty());
    }

    #[test]
    fn the_end_is_told_once_and_without_the_wait() {
        let mut exporter = exporter();
        exporter.take(Event::Added, "a", &session("s", "waiting", json!({})), &at(0));
        lines(&mut exporter, &at(0));
        exporter.take(Event::Removed, "a", &json!({}), &at(1));
        let end = lines(&mut exporter, &at(1)).remove(0);
        assert_eq!((&end["status"], &end["detail"]), (&json!("ended"), &json!("session closed")));
        assert!(end.get("waiting_for").is_none() && end["title"].is_string());
        assert!(lines(&mut exporter, &at(2)).is_empty());
        // It is told of anew where it comes back, even at the same moment.
        exporter.take(Event::Added, "a", &session("s", "running", json!({})), &at(1));
        let back = lines(&mut exporter, &at(1)).remove(0);
        assert!(back["sequence"].as_u64() > end["sequence"].as_u64());
        // What has ended by its own word is not told of again when it goes.
        exporter.take(Event::Changed, "a", &session("s", "ended", json!({})), &at(3));
        assert_eq!(lines(&mut exporter, &at(3)).len(), 1);
        exporter.take(Event::Removed, "a", &json!({}), &at(4));
        assert!(lines(&mut exporter, &at(4)).is_empty());
    }

    #[test]
    fn the_newest_of_several_instances_speaks_for_the_session() {
        let mut exporter = exporter();
        exporter.take(Event::Added, "a", &session("s", "idle", json!({"ts_ms": 5})), &at(0));
        exporter.take(Event::Added, "b", &session("s", "running", json!({"ts_ms": 9})), &at(0));
        let both = lines(&mut exporter, &at(0));
        assert_eq!((both.len(), &both[0]["status"]), (1, &json!("running")));
        // What cannot be seen says nothing where a newer one is over.
        let gone = json!({"ts_ms": 10, "pid": "4194303", "pid_ns": "1"});
        exporter.take(Event::Changed, "b", &session("s", "running", gone), &at(1));
        assert_eq!(lines(&mut exporter, &at(1))[0]["status"], "ended");
        // What is seen to live goes before what is newer.
        let (pid, ns) = (std::process::id(), json!("1"));
        let start = crate::probe::Process::read(pid).unwrap().start.to_string();
        let living =
            json!({"ts_ms": 5, "pid": pid.to_string(), "pid_ns": ns, "process_start": start});
        exporter.take(Event::Changed, "a", &session("s", "idle", living), &at(2));
        assert_eq!(lines(&mut exporter, &at(2))[0]["status"], "idle");
        exporter.take(Event::Removed, "b", &json!({}), &at(3));
        assert!(lines(&mut exporter, &at(3)).is_empty(), "nothing is different");
        exporter.take(Event::Removed, "a", &json!({}), &at(4));
        assert_eq!(lines(&mut exporter, &at(4))[0]["status"], "ended");
    }

    #[test]
    fn what_a_bridge_brought_goes_no_further_and_a_process_is_named_with_its_host() {
        let mut exporter = exporter();
        for (id, more) in [
            ("bridged", json!({"bridge": "b"})),
            ("proc-7", json!({"record_kind": "process"})),
            ("old", json!({"schema_version": 0})),
        ] {
            exporter.take(Event::Added, id, &session(id, "idle", more), &at(0));
        }
        let told = lines(&mut exporter, &at(0));
        assert_eq!((told.len(), &told[0]["session_id"]), (1, &json!("proc-7@box")));
    }
}
