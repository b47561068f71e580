//! Puts hooks into the files of harnesses, takes them out, and looks.

use super::Start;
use super::fail::{Stdout, errno, no_timer};
use super::store::make;
use crate::cli::{Exit, Fail, Out, Shown};
use crate::install::backup::{Backups, Before};
use crate::install::codex::{self, Trust};
use crate::install::file::{Place, Trouble};
use crate::install::places::{Machine, Site, is_program};
use crate::install::plan::{self, Look, Refusal};
use crate::install::recipe::{Files, Recipe, Switch};
use crate::install::server;
use crate::install::text::diff;
use crate::store::Store;
use crate::sys::clock::Now;
use crate::sys::fs::{Dir, Errno};
use crate::sys::spawn::pause;
use crate::sys::{guard, process, stdio};

/// Milliseconds that an installer waits for another one.
const TURN_MS: u64 = 5000;
/// Milliseconds for which a file is taken up anew that another program writes.
const CONTEST_MS: u64 = 3000;
/// How often a file that is empty or broken is looked at again before it is
/// believed to be so, and the milliseconds between two looks: some programs empty
/// a file first and then write it.
const LOOKS: usize = 10;
const LOOK_MS: i64 = 20;
/// A file that was written so many milliseconds ago may be being written now.
const BROKEN_MS: i64 = 2000;
/// The same of one that looks well.
const BUSY_MS: i64 = 100;

/// Why one file was left as it is.
pub struct Problem {
    /// The code that it means for the command.
    pub exit: Exit,
    /// Why, for the end of a message.
    pub why: String,
    /// What to paste into the file by hand, where that would help.
    pub snippet: Option<String>,
}

/// What became of one file.
pub struct Changed {
    /// Whether it is another one now, or would be.
    pub changed: bool,
    /// The change, for a dry run.
    pub diff: String,
    /// The name of the backup that was taken now.
    pub backup: Option<String>,
    /// Where a file went: its directory, and the first one that was made for it.
    pub emptied: Option<(String, String)>,
}

impl Changed {
    fn nothing() -> Changed {
        Changed { changed: false, diff: String::new(), backup: None, emptied: None }
    }
}

/// What a command does with the files.
pub struct Installer<'a> {
    /// Where things are.
    pub machine: Machine<'a>,
    /// The hook's path.
    pub hook: String,
    /// The backups; `None` for what changes nothing.
    pub backups: Option<Backups>,
}

/// Opens the place of the backups, and waits for another installer's end.
pub fn take_turn(start: &Start<'_>) -> Result<(Store, Backups), Fail> {
    stdio::private_umask();
    let store = make(start.env)?;
    guard::tick_only(TURN_MS).ok_or_else(no_timer)?;
    let backups = Backups::open(&store.root).map_err(|e| match e {
        Errno::INTR => Fail::new(Exit::Busy, "another installation is at work"),
        e => Fail::cannot(Exit::Io, "open", "the backups in the state directory", errno(e)),
    })?;
    guard::tick_no_more();
    Ok((store, backups))
}

/// What a file should be.
enum Wanted {
    /// As it is.
    Same,
    /// This.
    Text(String),
    /// Not there.
    Nothing,
}

fn problem(trouble: &Trouble, snippet: &dyn Fn() -> Option<String>) -> Problem {
    let (exit, why, helps) = match trouble {
        Trouble::Io(e) => (Exit::Io, errno(*e), false),
        Trouble::ReadOnly => (Exit::Io, "it is read-only".to_string(), true),
        Trouble::NotAFile => (Exit::Refused, "it is not a regular file".to_string(), false),
        Trouble::Linked => {
            (Exit::Refused, "it has other names, which would keep the old text".into(), true)
        }
        Trouble::NotOurs => (Exit::Refused, "it belongs to somebody else".to_string(), true),
        Trouble::Attributes => {
            (Exit::Refused, "its extended attributes cannot be kept".to_string(), true)
        }
        Trouble::TooLarge => (Exit::Data, "it is larger than 16 MiB".to_string(), false),
        Trouble::NotText => (Exit::Data, "it is not UTF-8".to_string(), false),
        Trouble::Changed => (Exit::Busy, "another program keeps changing it".to_string(), false),
    };
    Problem { exit, why, snippet: if helps { snippet() } else { None } }
}

/// Why an attempt ended.
enum Stop {
    Trouble(Trouble),
    Problem(Problem),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        Stop::Trouble(trouble)
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Problem(problem)
    }
}

/// Some milliseconds, up to 15.
fn chance() -> i64 {
    let mut byte = [0];
    let _ = process::random(&mut byte);
    i64::from(byte[0] % 16)
}

fn refused(refusal: &Refusal) -> Problem {
    let exit = match refusal {
        Refusal::Fault(_) | Refusal::Shape(_) => Exit::Data,
        Refusal::NotOurs => Exit::Refused,
    };
    Problem { exit, why: refusal.to_string(), snippet: None }
}

impl Installer<'_> {
    /// The file with everything that is wanted in it.
    fn wanted(&self, recipe: &Recipe, site: &Site, old: Option<&str>) -> Result<String, Refusal> {
        match site.whole {
            None => plan::put(recipe, site.event, old, &self.hook),
            Some(text) => match old {
                Some(old) if !is_whole(old, text) => Err(Refusal::NotOurs),
                _ => Ok(text.to_string()),
            },
        }
    }

    /// Whether anything of ours is in a text.
    fn has_ours(&self, recipe: &Recipe, site: &Site, old: &str) -> Result<bool, Refusal> {
        Ok(match site.whole {
            Some(text) => is_whole(old, text),
            None => plan::take(recipe, site.event, old, None)?.hook.is_some(),
        })
    }

    /// Puts the hooks into one file; with `dry` only says what would change.
    pub fn put(&self, recipe: &Recipe, site: &Site, dry: bool) -> Result<Changed, Problem> {
        let snippet = || self.wanted(recipe, site, None).ok();
        let want = |old: Option<&str>| self.wanted(recipe, site, old).map(Wanted::Text);
        let had = |old: &str| self.has_ours(recipe, site, old).unwrap_or(false);
        self.change(recipe.agent, site, dry, &want, &had, &snippet)
    }

    /// Takes the hooks out of one file.
    pub fn take(&self, recipe: &Recipe, site: &Site, dry: bool) -> Result<Changed, Problem> {
        let want = |old: Option<&str>| match old.map(|old| self.left(recipe, site, old)) {
            None | Some(Ok(None) | Err(Refusal::NotOurs)) => Ok(Wanted::Same),
            Some(Ok(Some(Some(text)))) => Ok(Wanted::Text(text)),
            Some(Ok(Some(None))) => Ok(Wanted::Nothing),
            Some(Err(refusal)) => Err(refusal),
        };
        let changed = self.change(recipe.agent, site, dry, &want, &|_| true, &|| None)?;
        self.forget(recipe.agent, site, changed.changed && !dry);
        Ok(changed)
    }

    /// The path of the program that serves agents.
    fn server(&self) -> String {
        match self.hook.rsplit_once('/') {
            Some((dir, _)) => format!("{dir}/{}", server::PROGRAM),
            None => server::PROGRAM.to_string(),
        }
    }

    /// How the server for agents stands with a harness, in a word; `None` where it
    /// has none.
    pub fn registered(&self, recipe: &Recipe) -> Option<(Site, Result<&'static str, Problem>)> {
        let (servers, site) = (recipe.servers.as_ref().ok()?, self.machine.servers(recipe)?);
        let look = || {
            let was = Place::find(&site.path).and_then(|place| place.read());
            let was = was.map_err(|t| problem(&t, &|| None))?;
            server::look(servers, was.text.as_deref(), &self.server()).map_err(|r| refused(&r))
        };
        let standing = look();
        Some((site, standing))
    }

    /// Registers the server for agents with a harness; `None` where it has none.
    pub fn register(&self, recipe: &Recipe, dry: bool) -> Option<(Site, Result<Changed, Problem>)> {
        let (servers, site) = (recipe.servers.as_ref().ok()?, self.machine.servers(recipe)?);
        let program = self.server();
        let want = |old: Option<&str>| server::put(servers, old, &program).map(Wanted::Text);
        let had = |old: &str| {
            let hooks = self.machine.sites(recipe).into_iter().find(|s| s.path == site.path);
            let ours = hooks.is_some_and(|s| self.has_ours(recipe, &s, old).unwrap_or(false));
            ours || server::take(servers, old, None).is_ok_and(|taken| taken.is_some())
        };
        let snippet = || server::put(servers, None, &program).ok();
        let changed = self.change(recipe.agent, &site, dry, &want, &had, &snippet);
        Some((site, changed))
    }

    /// Takes the registration of the server out of a file; `shared` where hooks
    /// stand in it as well.
    pub fn unregister(
        &self,
        recipe: &Recipe,
        site: &Site,
        shared: bool,
        dry: bool,
    ) -> Result<Changed, Problem> {
        let Ok(servers) = &recipe.servers else { return Ok(Changed::nothing()) };
        let before = self.backups.as_ref().and_then(|b| b.find(recipe.agent, &site.path));
        let want = |old: Option<&str>| {
            let Some(old) = old else { return Ok(Wanted::Same) };
            let was = match &before {
                Some(Before::Text(text)) => Some(text.as_str()),
                _ => None,
            };
            let Some(text) = server::take(servers, old, was)? else { return Ok(Wanted::Same) };
            let made = matches!(before, Some(Before::Absent)) && !shared;
            let gone = made && server::is_bare(servers, &text);
            Ok(if gone { Wanted::Nothing } else { Wanted::Text(text) })
        };
        let changed = self.change(recipe.agent, site, dry, &want, &|_| true, &|| None)?;
        if !shared {
            self.forget(recipe.agent, site, changed.changed && !dry);
        }
        Ok(changed)
    }

    /// The files that may have something of ours: those with hooks and those with
    /// servers. Besides the ones that are used now they are those of other
    /// profiles, and those of which there is a backup.
    pub fn everywhere(&self, recipe: &Recipe) -> (Vec<Site>, Vec<Site>) {
        let mut hooks = self.machine.sites(recipe);
        let mut servers: Vec<Site> = self.machine.servers(recipe).into_iter().collect();
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        let elsewhere = |known: &[Site], path: &str| {
            let like = known.iter().find(|site| base(&site.path) == base(path))?;
            Some(Site { path: path.to_string(), ..like.clone() })
        };
        let mut paths: Vec<String> = Vec::new();
        if let Files::One(name) = recipe.files {
            let profiles = self.machine.profiles(recipe);
            paths.extend(profiles.into_iter().map(|dir| format!("{dir}/{name}")));
        }
        let kept = self.backups.as_ref().map(Backups::all).unwrap_or_default();
        paths
            .extend(kept.into_iter().filter(|(agent, _)| agent == recipe.agent).map(|kept| kept.1));
        for path in paths {
            for known in [&mut hooks, &mut servers] {
                if !known.iter().any(|site| site.path == path) {
                    let more = elsewhere(known, &path);
                    known.extend(more);
                }
            }
        }
        (hooks, servers)
    }

    fn forget(&self, agent: &str, site: &Site, taken: bool) {
        if let Some(backups) = self.backups.as_ref().filter(|_| taken) {
            // A backup that stays does no harm.
            let _ = backups.forget(agent, &site.path);
        }
    }

    /// Changes one file to what is wanted, and begins anew where another program
    /// was faster, at moments that do not keep step with it. What it was is kept,
    /// unless it had something of ours.
    fn change(
        &self,
        agent: &str,
        site: &Site,
        dry: bool,
        want: &dyn Fn(Option<&str>) -> Result<Wanted, Refusal>,
        had: &dyn Fn(&str) -> bool,
        snippet: &dyn Fn() -> Option<String>,
    ) -> Result<Changed, Problem> {
        let began = Now::read().mono_ms;
        let mut done = Changed::nothing();
        loop {
            match self.attempt(agent, site, dry, want, had, &mut done) {
                Ok(()) => return Ok(done),
                Err(Stop::Trouble(Trouble::Changed))
                    if Now::read().mono_ms.saturating_sub(began) < CONTEST_MS =>
                {
                    pause(chance());
                }
                Err(Stop::Trouble(t)) => return Err(problem(&t, snippet)),
                Err(Stop::Problem(problem)) => return Err(problem),
            }
        }
    }

    /// The same once. Adds to `done` what it did, though that may not stand.
    fn attempt(
        &self,
        agent: &str,
        site: &Site,
        dry: bool,
        want: &dyn Fn(Option<&str>) -> Result<Wanted, Refusal>,
        had: &dyn Fn(&str) -> bool,
        done: &mut Changed,
    ) -> Result<(), Stop> {
        let mut place = Place::find(&site.path)?;
        let mut was = place.read()?;
        let old = was.text.clone();
        let wanted = want(old.as_deref());
        let is_odd = |text: &str| text.trim().is_empty() || wanted.is_err();
        if old.as_deref().is_some_and(is_odd) && was.is_fresh(BROKEN_MS) {
            for _ in 0..LOOKS {
                pause(LOOK_MS);
                if place.read()? != was {
                    return Err(Trouble::Changed.into());
                }
            }
        }
        let mut new = match wanted.map_err(|r| refused(&r))? {
            Wanted::Same => return Ok(()),
            Wanted::Text(text) if old.as_ref() == Some(&text) => return Ok(()),
            Wanted::Text(text) => Some(text),
            Wanted::Nothing => None,
        };
        place.check(&was)?;
        let (is_busy, is_contested) = (was.is_fresh(BUSY_MS), done.changed);
        done.changed = true;
        if dry {
            done.diff = difference(&place, old.as_deref(), new.as_deref());
            return Ok(());
        }
        let backups = self.backups.as_ref();
        let kept = backups.filter(|_| !old.as_deref().is_some_and(had));
        let keep = |place: &Place, text: Option<&String>| {
            let before = text.map_or(Before::Absent, |text| Before::Text(text.clone()));
            let made = place.first_missing();
            let name = kept.map(|kept| kept.keep(agent, &site.path, &before, &made));
            name.transpose().map_err(|e| Problem {
                exit: Exit::Io,
                why: format!("its backup cannot be written: {}", errno(e)),
                snippet: None,
            })
        };
        if kept.is_some() {
            done.backup = keep(&place, old.as_ref())?;
        }
        match &mut new {
            Some(new) => place.write(&mut was, new, site.mode, &|text| match want(Some(text)) {
                Ok(Wanted::Text(new)) if !text.trim().is_empty() && new != text => Some(new),
                _ => None,
            })?,
            None => place.remove(&was)?,
        }
        if was.text != old {
            keep(&place, was.text.as_ref())?;
        }
        // Who read the file before and writes it now takes the change back: one
        // that is being written is looked at again.
        if is_busy || is_contested || was.text != old {
            pause(if is_contested { BUSY_MS } else { LOOK_MS });
            if place.read()?.text != new {
                return Err(Trouble::Changed.into());
            }
        }
        let made = backups.map(|b| b.made(agent, &site.path));
        let dir = place.target.rsplit_once('/').map_or("", |(dir, _)| dir);
        done.emptied = made
            .filter(|made| new.is_none() && !made.is_empty())
            .map(|made| (dir.to_string(), made));
        Ok(())
    }

    /// What a file is without anything of ours: `None` where nothing of ours is
    /// in it, `Some(None)` where there should be no file.
    fn left(
        &self,
        recipe: &Recipe,
        site: &Site,
        old: &str,
    ) -> Result<Option<Option<String>>, Refusal> {
        let before = self.backups.as_ref().and_then(|b| b.find(recipe.agent, &site.path));
        if let Some(text) = site.whole {
            return Ok(is_whole(old, text).then_some(None));
        }
        let text = match &before {
            Some(Before::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let taken = plan::take(recipe, site.event, old, text)?;
        let Some(hook) = &taken.hook else { return Ok(None) };
        // Where nothing else happened to it since, it is what it was.
        let again = |text: &str| plan::put(recipe, site.event, Some(text), hook);
        if let Some(text) = text.filter(|text| again(text).is_ok_and(|put| put == old)) {
            return Ok(Some(Some(text.to_string())));
        }
        let own_file = site.path.rsplit('/').next().is_some_and(|name| name.starts_with("tongs."));
        let made = matches!(before, Some(Before::Absent)) || (before.is_none() && own_file);
        let is_plugin = taken.text.is_empty();
        Ok(Some(if taken.bare && (made || is_plugin) { None } else { Some(taken.text) }))
    }

    /// Looks at one file.
    pub fn look(&self, recipe: &Recipe, site: &Site) -> Result<Look, Problem> {
        let trouble = |t: Trouble| problem(&t, &|| None);
        let was = Place::find(&site.path).and_then(|place| place.read()).map_err(trouble)?;
        let old = was.text.as_deref();
        match site.whole {
            None => plan::look(recipe, site.event, old, &self.hook).map_err(|r| refused(&r)),
            Some(text) => match old {
                Some(old) if is_whole(old, text) => Ok(Look { ours: 1, ..Look::default() }),
                Some(_) => Err(refused(&Refusal::NotOurs)),
                None => Ok(Look { missing: vec![""], ..Look::default() }),
            },
        }
    }

    /// Whether a file cannot be changed.
    pub fn is_fixed(&self, site: &Site) -> bool {
        let check = |place: Place| place.check(&place.read()?);
        Place::find(&site.path).and_then(check).is_err()
    }

    /// The file with a setting that turns this harness's hooks off, where one does.
    pub fn switched_off(&self, recipe: &Recipe, site: &Site) -> Option<String> {
        let home = self.machine.home_of(&recipe.home);
        recipe.switches.iter().find_map(|switch| {
            let path = match switch {
                Switch::Here(..) | Switch::Names(..) => site.path.clone(),
                Switch::There(file, ..) | Switch::Toml(file, ..) => format!("{home}/{file}"),
                Switch::System(path, ..) => (*path).to_string(),
            };
            let off = text_at(&path).is_some_and(|text| plan::is_off(switch, &text));
            off.then_some(path)
        })
    }

    /// The trust that Codex's hooks need as they stand now, and the file that
    /// says whether they have it.
    pub fn codex_trust(&self, recipe: &Recipe, site: &Site) -> Option<(Vec<Trust>, String)> {
        if recipe.row != "codex" {
            return None;
        }
        let place = Place::find(&site.path).ok()?;
        let text = place.read().ok()?.text?;
        let positions = plan::positions(recipe, &text).ok()?;
        let mut wanted = codex::wanted(&site.path, &positions);
        if place.target != site.path {
            wanted.extend(codex::wanted(&place.target, &positions));
        }
        Some((wanted, format!("{}/config.toml", self.machine.home_of(&recipe.home))))
    }

    /// How the hooks of one file stand, in a word and with the reason.
    pub fn standing(&self, recipe: &Recipe, site: &Site, look: &Look) -> (&'static str, String) {
        if look.ours == 0 {
            return ("missing", String::new());
        }
        if let Some(path) = look.moved.first() {
            let why =
                if is_program(path) { "another path than this one" } else { "no program there" };
            return ("moved", format!("{path}: {why}"));
        }
        if !look.missing.is_empty() {
            return ("partial", format!("no hook for {}", look.missing.join(", ")));
        }
        if look.wrong > 0 {
            return ("changed", "an entry is not as it was installed".to_string());
        }
        if let Some(path) = self.switched_off(recipe, site) {
            return ("disabled", format!("a setting in {path} turns hooks off"));
        }
        if let Some((wanted, config)) = self.codex_trust(recipe, site) {
            let text = text_at(&config);
            match codex::state(text.as_deref(), &wanted[..wanted.len().min(recipe.events.len())]) {
                Ok(codex::State { untrusted: 1.., .. }) => {
                    return ("untrusted", recipe.then.to_string());
                }
                Ok(codex::State { disabled: 1.., .. }) => {
                    return ("disabled", format!("{config} turns some off"));
                }
                Ok(_) => {}
                Err(why) => return ("untrusted", format!("{config}: {why}")),
            }
        }
        ("installed", String::new())
    }

    /// Writes the trust of Codex's hooks.
    pub fn trust(&self, wanted: &[Trust], config: &str, dry: bool) -> Result<Changed, Problem> {
        self.edit(config, dry, |old| codex::trust(old, wanted))
    }

    /// Takes the trust of Codex's hooks back.
    pub fn distrust(&self, gone: &[Trust], config: &str, dry: bool) -> Result<Changed, Problem> {
        self.edit(config, dry, |old| match old {
            Some(old) => codex::distrust(old, gone),
            None => Ok(String::new()),
        })
    }

    /// Changes `config.toml` of Codex, of which no backup is taken: what is put
    /// into it is taken out whole.
    fn edit(
        &self,
        path: &str,
        dry: bool,
        change: impl Fn(Option<&str>) -> Result<String, Refusal>,
    ) -> Result<Changed, Problem> {
        let site = Site { path: path.to_string(), event: "", mode: 0o600, whole: None };
        let want = |old: Option<&str>| match change(old)? {
            text if old.unwrap_or("") == text => Ok(Wanted::Same),
            text if text.is_empty() => Ok(Wanted::Nothing),
            text => Ok(Wanted::Text(text)),
        };
        self.change("codex", &site, dry, &want, &|_| true, &|| None)
    }
}

/// The text of a file, where it can be read.
pub fn text_at(path: &str) -> Option<String> {
    Place::find(path).and_then(|place| place.read()).ok()?.text
}

/// Removes the directories that were made for files that have gone, from the
/// innermost up, as far as nothing is in them.
pub fn remove_made(emptied: &[(String, String)]) {
    for (dir, made) in emptied {
        let mut dir = dir.as_str();
        while dir.starts_with(made.as_str()) {
            let gone = std::ffi::CString::new(dir).map(|dir| Dir::cwd().remove_dir(&dir));
            if !matches!(gone, Ok(Ok(()) | Err(Errno::NOENT))) {
                break;
            }
            dir = dir.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
}

/// Whether a text is one that this or another version wrote: the same but for
/// the line with the version.
fn is_whole(text: &str, ours: &str) -> bool {
    let plain = |line: &&str| !line.contains("\"version\"");
    text.lines().filter(plain).eq(ours.lines().filter(plain))
}

fn difference(place: &Place, old: Option<&str>, new: Option<&str>) -> String {
    let name = |text: Option<&str>| match text {
        Some(_) => place.target.clone(),
        None => "/dev/null".to_string(),
    };
    diff::unified(old.unwrap_or(""), new.unwrap_or(""), &name(old), &name(new))
}

/// Prints a change as it is, but for what acts on a terminal.
pub fn put_diff(out: &mut Out<Stdout>, diff: &str) -> Result<(), Fail> {
    for line in diff.split_terminator('\n') {
        let (line, end) = line.strip_suffix('\r').map_or((line, "\n"), |line| (line, "\r\n"));
        let parts: Vec<String> = line.split('\t').map(|part| Shown(part).to_string()).collect();
        write!(out, "{}{end}", parts.join("\t"))?;
    }
    Ok(())
}

/// Prints what became of one file.
pub fn put_line(
    out: &mut Out<Stdout>,
    agent: &str,
    result: &str,
    path: &str,
    why: &str,
) -> Result<(), Fail> {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    writeln!(out, "{agent:<12} {result:<12} {}{}", Shown(path), Shown(&why))
}
