//! Looking at a store after a fault: what stands, and what must not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::scene::{After, Scene};
use crate::world::bytes;

/// How the record of a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Old,
    New,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// One of a few words, for counting.
    pub kind: String,
    /// The rest.
    pub text: String,
}

impl Wrong {
    pub fn new(kind: &str, text: impl Into<String>) -> Wrong {
        Wrong { kind: kind.into(), text: text.into() }
    }
}

/// What a look at the store gave.
#[derive(Default)]
pub struct Seen {
    /// The states of the records that the program is to change.
    pub states: Vec<State>,
    /// Temporary files.
    pub temps: Vec<PathBuf>,
    /// Records that name no process, because the fault hid it.
    pub unresolved: usize,
    /// Records that a run without faults did not get where they belong, and need
    /// not.
    pub missed_ends: usize,
    /// What must not be.
    pub wrong: Vec<Wrong>,
}

impl Scene<'_> {
    /// Looks at the store. After a run without faults the records must be new.
    pub fn look(&self, settled: bool) -> Seen {
        let mut seen = Seen::default();
        let mut states: Vec<Option<State>> = self.expected.iter().map(|_| None).collect();
        let status = self.world.agents(&["status", "--json"]);
        let listed = match serde_json::from_str::<Value>(&status.out) {
            Ok(listed) if status.code == Some(0) => listed,
            _ => {
                seen.wrong
                    .push(Wrong::new("torn", format!("the store cannot be listed: {status:?}")));
                return seen;
            }
        };
        if listed["skipped"] != 0 {
            seen.wrong
                .push(Wrong::new("torn", format!("{} files are no records", listed["skipped"])));
        }
        for path in self.world.record_files() {
            self.look_at(&path, settled, &mut states, &mut seen);
        }
        for (expect, state) in self.expected.iter().zip(&mut states) {
            let state = *state.get_or_insert_with(|| match (&expect.before, &expect.after) {
                (_, After::Gone) => State::New,
                (None, _) => State::Old,
                (Some(_), _) => {
                    seen.wrong.push(Wrong::new(
                        "lost",
                        format!("the record of {} is gone", expect.session),
                    ));
                    State::Old
                }
            });
            if !matches!(expect.after, After::Same) {
                seen.states.push(state);
                if settled && state == State::Old && expect.sure {
                    seen.wrong.push(Wrong::new(
                        "again",
                        format!("{} still stands as before", expect.session),
                    ));
                }
                seen.missed_ends += usize::from(state == State::Old && !expect.sure);
            }
        }
        self.look_at_list(listed["sessions"].as_array().unwrap(), settled, &mut seen);
        self.look_at_others(&mut seen);
        seen
    }

    fn look_at(&self, path: &Path, settled: bool, states: &mut [Option<State>], seen: &mut Seen) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let stored = bytes(path);
        let Ok(record) = serde_json::from_slice::<Value>(&stored) else {
            seen.wrong.push(Wrong::new(
                "torn",
                format!("{name} holds {} bytes that are no record", stored.len()),
            ));
            return;
        };
        let session = record["session_id"].as_str().unwrap_or("");
        let Some(at) = self.expected.iter().position(|e| e.session == session) else {
            // Agents of whoever runs the tests, or one of ours whose record could
            // not be read: its process record is hidden once it can.
            if record["record_kind"] != "process" {
                seen.wrong.push(Wrong::new("torn", format!("nobody wrote the session {session}")));
            }
            return;
        };
        let expect = &self.expected[at];
        if expect.before.as_deref() == Some(&stored) {
            states[at] = Some(State::Old);
            return;
        }
        let is_new = matches!(expect.after, After::New(status, event)
            if record["status"] == status && record["last_event"] == event);
        if !is_new {
            seen.wrong
                .push(Wrong::new("torn", format!("{session} is neither old nor new: {record}")));
        } else if record["pid"] == "" && record["bridge"].is_null() && !settled {
            seen.unresolved += 1;
            // Beside the record with the process it is hidden; alone it counts.
            if expect.before.is_none() {
                states[at].get_or_insert(State::New);
            }
        } else {
            states[at] = Some(State::New);
        }
    }

    /// What people see: each session once, and nothing else.
    fn look_at_list(&self, listed: &[Value], settled: bool, seen: &mut Seen) {
        let ours: Vec<String> = self.others.iter().map(|o| o.pid().to_string()).collect();
        let mut ids = BTreeSet::new();
        for record in listed {
            let id = record["session_id"].as_str().unwrap_or("");
            let pid = record["pid"].as_str().unwrap_or("");
            if record["record_kind"] == "process" && !ours.iter().any(|our| our == pid) {
                continue;
            }
            if !ids.insert(id) {
                seen.wrong.push(Wrong::new("torn", format!("{id} is listed twice")));
            }
            if !self.expected.iter().any(|e| e.session == id) {
                seen.wrong.push(Wrong::new("torn", format!("{id} is listed and is no session")));
            }
        }
        for expect in &self.expected {
            let must = match (&expect.before, &expect.after) {
                (Some(_), After::Same | After::New(..)) => true,
                (None, After::New(..)) => settled,
                _ => false,
            };
            if must && !ids.contains(expect.session.as_str()) {
                seen.wrong.push(Wrong::new("lost", format!("{} is not listed", expect.session)));
            }
        }
    }

    /// The files beside the records.
    fn look_at_others(&self, seen: &mut Seen) {
        for name in self.world.files() {
            let path = self.world.sessions().join(&name);
            if name.starts_with(".fleet-tmp-") {
                seen.temps.push(path);
            } else if name == ".fleet-maintenance.stamp" {
                let stamp = bytes(&path);
                if stamp.is_empty() || !stamp.iter().all(u8::is_ascii_digit) {
                    seen.wrong.push(Wrong::new("torn", "the stamp is no number"));
                }
            } else if name.starts_with(".tongs-proc-v1-") {
                let lines = bytes(&path);
                if lines.last() != Some(&b'\n')
                    || lines.iter().filter(|b| **b == b'\n').count() != 3
                {
                    seen.wrong.push(Wrong::new("torn", format!("{name} has not three lines")));
                }
            } else if name.ends_with(".lock") && fs::metadata(&path).unwrap().len() != 0 {
                seen.wrong.push(Wrong::new("torn", format!("{name} is not empty")));
            }
        }
    }
}
