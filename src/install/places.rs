//! Where the files of harnesses are on this machine.

use core::mem::MaybeUninit;
use std::ffi::CString;

use super::recipe::{Files, Home, RECIPES, Recipe, Shape};
use super::server::Listed;
use crate::harness;
use crate::sys::env::{Env, Var};
use crate::sys::fs::{Dir, May};

/// A home and the variables that move things out of it.
pub struct Machine<'a> {
    /// The home directory.
    pub home: String,
    /// The variables; `None` where only the home counts.
    pub env: Option<&'a Env<'a>>,
    /// `PATH`; empty where programs do not count.
    pub path: &'a str,
}

/// One file that takes hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its absolute path.
    pub path: String,
    /// The event that it is for; empty for all.
    pub event: &'static str,
    /// The permission bits of a new one.
    pub mode: u32,
    /// The text of a file that goes with the one with the hooks.
    pub whole: Option<&'static str>,
}

impl Machine<'_> {
    fn var(&self, var: Var) -> Option<&str> {
        self.env?.text(var).filter(|value| value.starts_with('/'))
    }

    /// The directory of a harness's settings, whether it is there or not.
    pub fn home_of(&self, home: &Home) -> String {
        let join = |base: &str, below: &str| {
            let base = base.trim_end_matches('/');
            if below.is_empty() { base.to_string() } else { format!("{base}/{below}") }
        };
        if let Some(base) = home.var.and_then(|var| self.var(var)) {
            return join(base, home.below_var);
        }
        match (home.xdg, self.var(Var::XDG_CONFIG_HOME)) {
            (true, Some(config)) => join(config, home.below),
            (true, None) => join(&format!("{}/.config", self.home), home.below),
            (false, _) => join(&self.home, home.below),
        }
    }

    /// Whether a harness is on this machine: its settings, a sign of it, or its
    /// program.
    pub fn has(&self, recipe: &Recipe) -> bool {
        let signs = recipe.signs.iter().map(|sign| format!("{}/{sign}", self.home));
        let home = !recipe.shares_home && is_dir(&self.home_of(&recipe.home));
        if home || signs.into_iter().any(|sign| is_there(&sign)) {
            return true;
        }
        // A name that several generations share says nothing of either.
        let alone = RECIPES.iter().filter(|other| other.row == recipe.row).count() == 1;
        let names = harness::find(recipe.row).map_or(&[][..], |row| row.looks().names);
        alone && names.iter().any(|name| self.program(name).is_some())
    }

    /// The path of a program, as the first directory of `PATH` has it.
    pub fn program(&self, name: &str) -> Option<String> {
        let candidates = self.path.split(':').filter(|dir| dir.starts_with('/'));
        candidates
            .map(|dir| format!("{}/{name}", dir.trim_end_matches('/')))
            .find(|p| is_program(p))
    }

    /// The files of a recipe; none where its harness has no place for them.
    pub fn sites(&self, recipe: &Recipe) -> Vec<Site> {
        let home = self.home_of(&recipe.home);
        let site = |path: String| Site { path, event: "", mode: 0o644, whole: None };
        match recipe.files {
            Files::One(name) => {
                let secret = matches!(recipe.shape, Shape::Toml | Shape::Yaml);
                let mode = if secret { 0o600 } else { 0o644 };
                let mut sites = vec![Site { mode, ..site(format!("{home}/{name}")) }];
                if let Shape::Json(json) = &recipe.shape {
                    let beside = |(name, text): &(&str, &'static str)| Site {
                        whole: Some(text),
                        ..site(format!("{home}/{name}"))
                    };
                    sites.extend(json.beside.iter().map(beside));
                }
                sites
            }
            Files::Prefer(first, second) => {
                let first = format!("{home}/{first}");
                let there = is_there(&first);
                vec![site(if there { first } else { format!("{home}/{second}") })]
            }
            Files::Each(dir, end) => {
                let dir = format!("{home}/{dir}");
                let mut names =
                    names_in(&dir, |name| name.ends_with(end) && !name.starts_with('.'));
                names.sort();
                names.into_iter().map(|name| site(format!("{dir}/{name}"))).collect()
            }
            Files::PerEvent(dir) => {
                let each = |event: &&'static str| Site {
                    path: format!("{home}/{dir}/{event}"),
                    event,
                    mode: 0o755,
                    whole: None,
                };
                recipe.events.iter().map(each).collect()
            }
        }
    }

    /// The file in which a harness lists its servers.
    pub fn servers(&self, recipe: &Recipe) -> Option<Site> {
        let home = self.home_of(&recipe.home);
        let path = match &recipe.servers.as_ref().ok()?.file {
            Listed::In(name) => format!("{home}/{name}"),
            Listed::Prefer(first, second) => {
                let first = format!("{home}/{first}");
                if is_there(&first) { first } else { format!("{home}/{second}") }
            }
            Listed::Beside(name) => {
                let moved = recipe.home.var.and_then(|var| self.var(var)).is_some();
                format!("{}/{name}", if moved { &home } else { &self.home })
            }
            Listed::Of(home, name) => format!("{}/{name}", self.home_of(home)),
        };
        Some(Site { path, event: "", mode: 0o600, whole: None })
    }

    /// Other directories of settings of the same harness, which the variable
    /// would lead to: such as `.claude-work` beside `.claude`.
    pub fn profiles(&self, recipe: &Recipe) -> Vec<String> {
        let Some(_) = recipe.home.var else { return Vec::new() };
        let used = self.home_of(&recipe.home);
        let usual = if recipe.home.xdg { return Vec::new() } else { recipe.home.below };
        if usual.contains('/') {
            return Vec::new();
        }
        let mut names = names_in(&self.home, |name| {
            name == usual
                || name.strip_prefix(usual).is_some_and(|rest| rest.starts_with(['-', '_', '.']))
        });
        names.sort();
        let holds = |dir: &String| {
            let file = match recipe.files {
                Files::One(name) => name,
                _ => "",
            };
            [file, "settings.json", "config.toml", "projects", "sessions"]
                .iter()
                .any(|name| !name.is_empty() && is_there(&format!("{dir}/{name}")))
        };
        let paths = names.into_iter().map(|name| format!("{}/{name}", self.home));
        paths.filter(|dir| *dir != used && is_dir(dir) && holds(dir)).collect()
    }
}

fn names_in(dir: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    let Some(dir) = CString::new(dir).ok().and_then(|dir| Dir::cwd().follow_dir(&dir).ok()) else {
        return names;
    };
    let mut buffer = [MaybeUninit::uninit(); 8192];
    // Half a list is as good as can be had.
    let _ = dir.list(&mut buffer, |name| {
        if let Some(name) = name.to_str().ok().filter(|name| wanted(name)) {
            names.push(name.to_string());
        }
        true
    });
    names
}

fn meta(path: &str) -> Option<crate::sys::fs::Meta> {
    Dir::cwd().follow(&CString::new(path).ok()?).ok()
}

/// Whether something is there.
pub fn is_there(path: &str) -> bool {
    meta(path).is_some()
}

/// Whether two paths lead to the same file.
pub fn is_same(one: &str, other: &str) -> bool {
    matches!((meta(one), meta(other)), (Some(one), Some(other)) if one.same(&other))
}

fn is_dir(path: &str) -> bool {
    meta(path).is_some_and(|meta| meta.is_dir())
}

/// Whether a path leads to a file that this user can run.
pub fn is_program(path: &str) -> bool {
    let may = || CString::new(path).is_ok_and(|path| Dir::cwd().may(&path, May::Run));
    meta(path).is_some_and(|meta| meta.is_file()) && may()
}
