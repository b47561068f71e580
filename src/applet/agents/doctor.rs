//! `tongs-agents doctor`: what is wrong with the hooks and the store, and the
//! command that sets it right.

use core::mem::MaybeUninit;
use std::collections::BTreeMap;
use std::ffi::CString;

use argh::FromArgs;

use super::super::Start;
use super::super::chosen::{hook_path, machine};
use super::super::fail::{errno, stdout, trouble};
use super::super::installer::{Installer, text_at};
use super::super::store::{Found, find};
use super::super::value;
use super::{check_version, options};
use crate::cli::{Exit, Fail, Shown};
use crate::harness;
use crate::install::command::quoted;
use crate::install::recipe::{RECIPES, Recipe};
use crate::install::text::Value;
use crate::store::maintain::is_overdue;
use crate::store::place::{Root, Which};
use crate::store::{Store, Trouble, fault};
use crate::sys::clock::Now;
use crate::sys::fs::{Dir, Open};
use crate::sys::{process, spawn};

/// Milliseconds that the program may take to say its version.
const LIMIT_MS: u64 = 2000;
/// Milliseconds that a hook may take before it is called slow.
const SLOW_MS: u64 = 50;
/// How often the hook is timed.
const RUNS: usize = 5;
/// Seconds of the fault log that count.
const RECENT: u64 = 24 * 3600;

/// Look for what keeps sessions from being seen.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents doctor",
    note = "See tongs-agents(1).",
    error_code(0, "nothing is wrong"),
    error_code(1, "something is wrong"),
    error_code(64, "usage"),
    error_code(74, "standard output could not be written")
)]
struct Options {
    /// look at this home and heed no variable of a harness
    #[argh(option, arg_name = "DIR")]
    home: Option<String>,
    /// the hook's path; default: beside this program
    #[argh(option, arg_name = "P")]
    hook_path: Option<String>,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
}

/// One thing that is wrong.
struct Finding {
    code: &'static str,
    subject: String,
    what: String,
    fix: String,
}

/// Another program in a harness's hooks.
struct Other {
    agent: &'static str,
    path: String,
    event: String,
    program: String,
}

/// All that was seen.
#[derive(Default)]
struct Seen {
    findings: Vec<Finding>,
    others: Vec<Other>,
    /// What was looked at, with what it looked like.
    checked: Vec<(String, String)>,
}

impl Seen {
    fn wrong(
        &mut self,
        code: &'static str,
        subject: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.findings.push(Finding {
            code,
            subject: subject.into(),
            what: what.into(),
            fix: fix.into(),
        });
    }

    fn fine(&mut self, what: impl Into<String>, how: impl Into<String>) {
        self.checked.push((what.into(), how.into()));
    }
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("doctor", words)?;
    check_version(options.json_version)?;
    let machine = machine(start, options.home.as_deref())?;
    let mut seen = Seen::default();
    let now = Now::read();
    let store = look_at_store(start, &now, &mut seen);
    let hook = match hook_path(start, options.hook_path.as_deref()) {
        Ok(hook) => {
            look_at_hook(start, &hook, store.as_ref(), &mut seen);
            hook
        }
        Err(fail) if fail.exit == Exit::Usage => return Err(fail),
        Err(fail) => {
            let fix = match fail.exit {
                Exit::Refused => "sudo make install",
                _ => "tongs --install-links \"$(dirname \"$(command -v tongs)\")\"",
            };
            seen.wrong("hook", "tongs-hook", fail.text, fix);
            String::new()
        }
    };
    let installer = Installer { machine, hook, backups: None };
    let mut more = String::new();
    for (option, value) in [("--home", &options.home), ("--hook-path", &options.hook_path)] {
        if let Some(value) = value {
            more.push_str(&format!(" {option} {}", quoted(value)));
        }
    }
    let found: Vec<_> = RECIPES.iter().filter(|recipe| installer.machine.has(recipe)).collect();
    if found.is_empty() {
        seen.fine("harnesses", "none was found here (see 'tongs-agents install --list')");
    }
    for recipe in found {
        look_at_harness(&installer, recipe, &more, &mut seen);
    }
    tell(&seen, options.json || options.json_version.is_some())?;
    Ok(if seen.findings.is_empty() { Exit::Ok } else { Exit::No })
}

fn look_at_store(start: &Start<'_>, now: &Now, seen: &mut Seen) -> Option<Store> {
    match find(start.env) {
        Found::Open(store) => {
            if has_records(&store) && is_overdue(&store, now.secs()) {
                seen.wrong(
                    "maintenance",
                    "store",
                    "nobody has removed what is over for a while",
                    "tongs-agents cleanup",
                );
            }
            faults(&store, &root_of(start), now, seen);
            seen.fine("store", "private and ours");
            Some(store)
        }
        Found::Missing => {
            seen.fine("store", "not there yet: no hook has run");
            None
        }
        Found::Unavailable(why, root) => {
            let root = String::from_utf8_lossy(&root).into_owned();
            let dir = match why {
                Trouble::Unsafe(Which::Sessions, _) => format!("{root}/sessions"),
                Trouble::Unsafe(Which::Parent, _) => {
                    root.rsplit_once('/').map_or("/".to_string(), |(dir, _)| dir.to_string())
                }
                _ => root.clone(),
            };
            let fix = match why {
                Trouble::Unsafe(Which::Parent, _) => format!("chmod go-w {}", quoted(&dir)),
                Trouble::Unsafe(_, what) if what.contains("mode") => {
                    format!("chmod 700 {}", quoted(&dir))
                }
                Trouble::NoHome => "export HOME".to_string(),
                _ => format!("mv {0} {1}", quoted(&dir), quoted(&format!("{dir}.old"))),
            };
            seen.wrong("store", root.clone(), trouble(why, root.as_bytes()), fix);
            None
        }
    }
}

/// The state root's path.
fn root_of(start: &Start<'_>) -> String {
    let root = Root::find(start.env).ok();
    root.map_or(String::new(), |root| String::from_utf8_lossy(root.path()).into_owned())
}

/// Whether the store has a record.
fn has_records(store: &Store) -> bool {
    let mut found = false;
    let mut buffer = [MaybeUninit::uninit(); 8192];
    // A store that cannot be listed has other troubles.
    let _ = store.sessions.list(&mut buffer, |name| {
        found = name.to_bytes().starts_with(b"fleet-v1-");
        !found
    });
    found
}

/// The faults of the last day, by code and harness.
fn faults(store: &Store, root: &str, now: &Now, seen: &mut Seen) {
    let log = format!("{root}/{}", fault::LOG);
    let Ok(file) = store.root.open(c"hook-faults.log", Open::Read) else { return };
    let mut bytes = vec![0; usize::try_from(fault::MAX_LOG).unwrap_or(0)];
    let len = file.read_all(&mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [then, code, harness, ..] = words[..] else { continue };
        let recent = then.parse().is_ok_and(|then: u64| now.secs().saturating_sub(then) <= RECENT);
        if recent {
            *counts.entry((code.to_string(), harness.to_string())).or_default() += 1;
        }
    }
    for ((code, harness), count) in counts {
        let events = if count == 1 { "event was" } else { "events were" };
        seen.wrong(
            "faults",
            harness,
            format!("{count} {events} lost in the last 24 hours: {code} (see tongs-hook(1))"),
            format!("rm {}", quoted(&log)),
        );
    }
}

/// Whether the hook is this version's, and how long it takes here.
fn look_at_hook(start: &Start<'_>, hook: &str, store: Option<&Store>, seen: &mut Seen) {
    let dir = hook.rsplit_once('/').map_or("/", |(dir, _)| dir);
    let links = format!("tongs --install-links {}", quoted(dir));
    let own = concat!("tongs-hook ", env!("CARGO_PKG_VERSION"), "\n");
    match spawn::run(hook, &["--version"], &[], b"", LIMIT_MS) {
        Ok(ran) if ran.code == Some(0) && ran.out == own.as_bytes() => {}
        Ok(ran) if ran.code == Some(0) => {
            let says = String::from_utf8_lossy(&ran.out).trim().to_string();
            seen.wrong(
                "version",
                hook,
                format!("it is '{says}' and this program is '{}'", own.trim()),
                links,
            );
        }
        Ok(_) => return seen.wrong("hook", hook, "it does not run", links),
        Err(e) => return seen.wrong("hook", hook, errno(e), links),
    }
    let Some(store) = store else { return };
    let Some(median) = time(hook, store, start) else {
        let root = root_of(start);
        let fix = format!("df {}", quoted(&root));
        return seen.wrong("store", root, "no event can be written there", fix);
    };
    if median > SLOW_MS {
        seen.wrong(
            "slow",
            hook,
            format!("a hook takes {median} ms here: the state directory may be on a slow disk"),
            "export TONGS_AGENTS_STATE_DIR=/a/directory/on/a/local/disk",
        );
    } else {
        seen.fine("hook", format!("{hook}, {median} ms an event"));
    }
}

/// The median of some runs in a store of their own beside the real one, in
/// milliseconds.
fn time(hook: &str, store: &Store, start: &Start<'_>) -> Option<u64> {
    let mut random = [0; 8];
    process::random(&mut random).ok()?;
    let name = format!(".doctor-{:016x}", u64::from_ne_bytes(random));
    let c_name = CString::new(name.as_str()).ok()?;
    store.root.make_dir(&c_name).ok()?;
    let dir = store.root.open_dir(&c_name).ok()?;
    let root = Root::find(start.env).ok();
    let root = root.as_ref().and_then(|root| core::str::from_utf8(root.path()).ok());
    let path = root.map(|root| format!("{root}/{name}"));
    let mut times = Vec::new();
    if let Some(path) = &path {
        let payload = b"{\"session_id\":\"doctor\",\"cwd\":\"/\"}";
        let vars = [("TONGS_AGENTS_STATE_DIR", path.as_str())];
        for _ in 0..RUNS {
            let ran =
                spawn::run(hook, &["--strict", "other", "session-start"], &vars, payload, LIMIT_MS);
            times.extend(ran.ok().filter(|ran| ran.code == Some(0)).map(|ran| ran.ms));
        }
    }
    if let Ok(sessions) = dir.open_dir(c"sessions") {
        empty(&sessions);
    }
    let _ = dir.remove_dir(c"sessions");
    empty(&dir);
    let _ = store.root.remove_dir(&c_name);
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn empty(dir: &Dir) {
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let _ = dir.list(&mut buffer, |name| {
        names.push(name.to_owned());
        true
    });
    for name in names {
        let _ = dir.unlink(&name);
    }
}

fn look_at_harness(
    installer: &Installer<'_>,
    recipe: &'static Recipe,
    more: &str,
    seen: &mut Seen,
) {
    let name = harness::find(recipe.row).map_or(recipe.agent, |row| row.name);
    let install = format!("tongs-agents install --agent {}{more}", recipe.agent);
    let mut told = Vec::new();
    for site in installer.machine.sites(recipe) {
        match installer.look(recipe, &site) {
            Ok(look) => {
                for (event, program) in &look.others {
                    seen.others.push(Other {
                        agent: recipe.agent,
                        path: site.path.clone(),
                        event: event.clone(),
                        program: program.clone(),
                    });
                }
                let (result, why) = installer.standing(recipe, &site, &look);
                let (code, what, fix) = match result {
                    "missing" => ("missing", format!("{name} has no hook"), install.clone()),
                    "partial" => ("partial", why, install.clone()),
                    "moved" => ("moved", why, install.clone()),
                    "changed" => ("changed", why, install.clone()),
                    "disabled" => {
                        let file = installer.switched_off(recipe, &site);
                        let file = file.unwrap_or_else(|| codex_config(installer, recipe));
                        ("disabled", why, format!("{} {}", editor(), quoted(&file)))
                    }
                    "untrusted" => ("untrusted", why, format!("{install} --trust-codex")),
                    _ => {
                        seen.fine(recipe.agent, site.path.clone());
                        continue;
                    }
                };
                let by_hand =
                    format!("tongs-agents install --print --agent {}{more}", recipe.agent);
                let fix = match installer.is_fixed(&site) && fix == install {
                    true => by_hand,
                    false => fix,
                };
                // One finding for a harness with a file for each event.
                if !told.contains(&code) {
                    told.push(code);
                    seen.wrong(code, site.path.clone(), what, fix);
                }
            }
            Err(problem) => {
                let fix = match problem.exit {
                    Exit::Refused => {
                        format!(
                            "mv {} {}",
                            quoted(&site.path),
                            quoted(&format!("{}.other", site.path))
                        )
                    }
                    _ => format!("{} {}", editor(), quoted(&site.path)),
                };
                seen.wrong("unreadable", site.path.clone(), problem.why, fix);
            }
        }
    }
    for profile in installer.machine.profiles(recipe) {
        let Some(var) = recipe.home.var else { continue };
        let base = match recipe.home.below_var {
            "" => profile.clone(),
            below => profile.trim_end_matches(below).trim_end_matches('/').to_string(),
        };
        let fix = format!("{}={} {install}", var.name(), quoted(&base));
        let text = match recipe.files {
            crate::install::recipe::Files::One(file) => text_at(&format!("{profile}/{file}")),
            _ => None,
        };
        if !text.is_some_and(|text| text.contains("tongs-hook")) {
            seen.wrong("profile", profile, format!("another profile of {name} has no hook"), fix);
        }
    }
}

/// Where Codex keeps which hooks are on.
fn codex_config(installer: &Installer<'_>, recipe: &Recipe) -> String {
    format!("{}/config.toml", installer.machine.home_of(&recipe.home))
}

fn editor() -> &'static str {
    "${EDITOR:-vi}"
}

fn tell(seen: &Seen, json: bool) -> Result<(), Fail> {
    let mut out = stdout();
    let host = process::host_name().unwrap_or_else(|| "this machine".to_string());
    if json {
        let finding = |f: &Finding| {
            Value::from([
                ("code", f.code.into()),
                ("subject", f.subject.as_str().into()),
                ("what", f.what.as_str().into()),
                ("fix", f.fix.as_str().into()),
            ])
        };
        let other = |o: &Other| {
            Value::from([
                ("agent", o.agent.into()),
                ("path", o.path.as_str().into()),
                ("event", o.event.as_str().into()),
                ("program", o.program.as_str().into()),
            ])
        };
        let fine = |(subject, what): &(String, String)| {
            Value::from([("subject", subject.as_str().into()), ("what", what.as_str().into())])
        };
        let object = Value::from([
            ("host", host.into()),
            ("findings", seen.findings.iter().map(finding).collect::<Vec<_>>().into()),
            ("fine", seen.checked.iter().map(fine).collect::<Vec<_>>().into()),
            ("others", seen.others.iter().map(other).collect::<Vec<_>>().into()),
        ]);
        value::print(&mut out, &object)?;
        return out.flush();
    }
    writeln!(out, "on {}", Shown(&host))?;
    for (what, how) in &seen.checked {
        writeln!(out, "  fine       {}: {}", Shown(what), Shown(how))?;
    }
    for finding in &seen.findings {
        writeln!(
            out,
            "  {:<10} {}: {}",
            finding.code,
            Shown(&finding.subject),
            Shown(&finding.what)
        )?;
        writeln!(out, "             fix: {}", Shown(&finding.fix))?;
    }
    let mut files: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for other in &seen.others {
        match files.iter_mut().find(|(_, path, _)| *path == other.path) {
            Some((.., programs)) if !programs.contains(&other.program.as_str()) => {
                programs.push(&other.program);
            }
            Some(_) => {}
            None => files.push((other.agent, &other.path, vec![&other.program])),
        }
    }
    for (agent, path, programs) in files {
        let programs = programs.join(", ");
        writeln!(out, "  others     {agent}: {} runs {} as well", Shown(path), Shown(&programs))?;
    }
    out.flush()
}
