//! `tongs-agents uninstall`: hooks out of the settings of harnesses again.

use core::mem::MaybeUninit;

use argh::FromArgs;

use super::super::Start;
use super::super::chosen::{machine, named};
use super::super::fail::{errno, stdout};
use super::super::installer::{
    Changed, Installer, Problem, put_diff, put_line, remove_made, take_turn,
};
use super::super::value;
use super::{check_version, hint, options};
use crate::cli::{Exit, Fail};
use crate::install::places::Site;
use crate::install::recipe::{RECIPES, Recipe};
use crate::install::text::Value;
use crate::store::Store;
use crate::store::place::Root;
use crate::sys::fs::Errno;

/// Take the hooks out of the settings of harnesses.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents uninstall --all",
    note = "See tongs-agents(1).",
    error_code(0, "done, or nothing to do"),
    error_code(64, "usage"),
    error_code(65, "a settings file cannot be read; it was left as it is"),
    error_code(74, "a file is read-only or could not be written"),
    error_code(75, "another program keeps changing the file"),
    error_code(77, "refused: the file is not a safe one")
)]
struct Options {
    /// a harness, as 'install --list' has it; may be given several times
    #[argh(option, arg_name = "A")]
    agent: Vec<String>,
    /// every harness
    #[argh(switch)]
    all: bool,
    /// change nothing and print what would change
    #[argh(switch)]
    dry_run: bool,
    /// work in this home and heed no variable of a harness
    #[argh(option, arg_name = "DIR")]
    home: Option<String>,
    /// with --all: remove the records, the backups and the logs as well
    #[argh(switch)]
    purge: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("uninstall", words)?;
    check_version(options.json_version)?;
    if options.all != options.agent.is_empty() {
        return Err(Fail::new(Exit::Usage, "say which harness with --agent, or --all"));
    }
    if options.purge && (!options.all || options.dry_run) {
        return Err(Fail::new(Exit::Usage, "--purge goes with --all and without --dry-run"));
    }
    let recipes = if options.all { RECIPES.iter().collect() } else { named(&options.agent)? };
    let machine = machine(start, options.home.as_deref())?;
    let turn = match take_turn(start) {
        _ if options.dry_run => None,
        Ok(turn) => Some(turn),
        // Whoever wants tongs gone is not kept by what it left behind.
        Err(fail) if fail.exit == Exit::Refused && !options.purge => {
            hint(&format!("{}: no backup is heeded", fail.text));
            None
        }
        Err(fail) => return Err(fail),
    };
    let (store, backups) = turn.unzip();
    let mut installer = Installer { machine, hook: String::new(), backups };
    let mut gone = Gone { lines: Vec::new(), exit: Exit::Ok, emptied: Vec::new() };
    for recipe in recipes {
        let (hooks, servers) = installer.everywhere(recipe);
        // First, so that a file with both goes back to what it was.
        for site in servers {
            let shared = hooks.iter().any(|hook| hook.path == site.path);
            let done = installer.unregister(recipe, &site, shared, options.dry_run);
            // The hooks' own attempt says the same of a shared file.
            if !(shared && done.is_err()) {
                gone.note(recipe, site, done);
            }
        }
        for site in hooks {
            // The trust goes by the place of the hooks: it is found out first.
            let trust = installer.codex_trust(recipe, &site);
            let done = installer.take(recipe, &site, options.dry_run);
            let taken = done.as_ref().is_ok_and(|done| done.changed);
            gone.note(recipe, site.clone(), done);
            if let Some((hashes, config)) = trust.filter(|(hashes, _)| taken && !hashes.is_empty())
            {
                let done = installer.distrust(&hashes, &config, options.dry_run);
                gone.note(recipe, Site { path: config, ..site }, done);
            }
        }
    }
    remove_made(&gone.emptied);
    let Gone { lines, exit, .. } = gone;
    let mut out = stdout();
    if options.json || options.json_version.is_some() {
        let file = |(recipe, site, result, why, _): &(&Recipe, Site, &str, String, String)| {
            Value::from([
                ("agent", recipe.agent.into()),
                ("harness", recipe.row.into()),
                ("path", site.path.as_str().into()),
                ("result", (*result).into()),
                ("reason", why.as_str().into()),
            ])
        };
        let files = lines.iter().map(file).collect::<Vec<_>>();
        let object = Value::from([("dry_run", options.dry_run.into()), ("files", files.into())]);
        value::print(&mut out, &object)?;
    } else {
        for (.., diff) in &lines {
            put_diff(&mut out, diff)?;
        }
        for (recipe, site, result, why, _) in &lines {
            let result = if options.dry_run && *result == "removed" { "would go" } else { result };
            put_line(&mut out, recipe.agent, result, &site.path, why)?;
        }
        if lines.is_empty() {
            out.put(b"no hooks of tongs were found\n")?;
        }
    }
    out.flush()?;
    if options.purge && exit == Exit::Ok {
        if let (Some(store), Some(backups)) = (store, installer.backups.take()) {
            backups
                .purge(&store.root)
                .map_err(|e| Fail::cannot(Exit::Io, "remove", "the backups", errno(e)))?;
            purge(start, &store)?;
        }
    }
    Ok(exit)
}

/// What has gone, and what has not.
struct Gone {
    lines: Vec<(&'static Recipe, Site, &'static str, String, String)>,
    exit: Exit,
    emptied: Vec<(String, String)>,
}

impl Gone {
    fn note(&mut self, recipe: &'static Recipe, site: Site, done: Result<Changed, Problem>) {
        match done {
            Ok(done) if done.changed => {
                self.emptied.extend(done.emptied);
                self.lines.push((recipe, site, "removed", String::new(), done.diff));
            }
            Ok(_) => {}
            Err(problem) => {
                self.exit = if self.exit == Exit::Ok { problem.exit } else { self.exit };
                self.lines.push((recipe, site, "failed", problem.why, String::new()));
            }
        }
    }
}

/// Removes what the state root holds of ours, and the root where it is empty.
fn purge(start: &Start<'_>, store: &Store) -> Result<(), Fail> {
    let fail = |e| Fail::cannot(Exit::Io, "remove", "the state directory", errno(e));
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 8192];
    store
        .sessions
        .list(&mut buffer, |name| {
            let bytes = name.to_bytes();
            let ours = [&b"fleet-v1-"[..], b".fleet-", b".tongs-"];
            if ours.iter().any(|start| bytes.starts_with(start)) {
                names.push(name.to_owned());
            }
            true
        })
        .map_err(fail)?;
    let gone = |result: Result<(), Errno>| match result {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(e) => Err(fail(e)),
    };
    for name in names {
        gone(store.sessions.unlink(&name))?;
    }
    gone(store.root.unlink(c"hook-faults.log"))?;
    gone(store.root.remove_dir(c"sessions"))?;
    let root = Root::find(start.env).map_err(|t| super::super::fail::unusable(t, b""))?;
    gone(root.remove())
}
