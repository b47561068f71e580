//! What a command line of the installers names: the home, the harnesses, the
//! path of the hook.

use super::Start;
use crate::cli::{Exit, Fail};
use crate::harness;
use crate::install::command::HOOK;
use crate::install::places::{Machine, is_program, is_same, is_there};
use crate::install::recipe::{RECIPES, Recipe, WITHOUT};
use crate::sys::env::Var;
use crate::sys::process::own_cwd;

/// The home that a command works in: the user's own with the variables that
/// move things, or the given one without them.
pub fn machine<'a>(start: &Start<'a>, home: Option<&str>) -> Result<Machine<'a>, Fail> {
    let path = start.env.text(Var::PATH).unwrap_or("");
    match home {
        Some(home) if home.starts_with('/') && !is_there(home) => {
            Err(Fail::new(Exit::Usage, format!("--home: '{home}' is not there")))
        }
        Some(home) if home.starts_with('/') => {
            let home = match home.trim_end_matches('/') {
                "" => "/",
                home => home,
            };
            Ok(Machine { home: home.to_string(), env: None, path })
        }
        Some(_) => Err(Fail::new(Exit::Usage, "--home is no absolute path")),
        None => {
            let home = start.env.text(Var::HOME).filter(|home| home.starts_with('/'));
            let home =
                home.ok_or_else(|| Fail::new(Exit::Usage, "HOME is not set to an absolute path"))?;
            Ok(Machine { home: home.trim_end_matches('/').to_string(), env: Some(start.env), path })
        }
    }
}

/// The recipes that words of a command line name.
pub fn named(agents: &[String]) -> Result<Vec<&'static Recipe>, Fail> {
    let mut chosen: Vec<&'static Recipe> = Vec::new();
    for word in agents {
        let exact: Vec<&Recipe> = RECIPES.iter().filter(|r| r.agent == word).collect();
        let row = harness::named(word);
        let of_row = || {
            let all = RECIPES.iter().filter(|r| row.is_some_and(|row| row.id == r.row));
            all.collect::<Vec<_>>()
        };
        let found = if exact.is_empty() { of_row() } else { exact };
        if found.is_empty() {
            let why = WITHOUT.iter().find(|w| row.is_some_and(|row| row.id == w.row));
            return Err(match why {
                Some(without) => {
                    Fail::new(Exit::Usage, format!("'{word}' takes no hooks: {}", without.why))
                }
                None => {
                    let ids: Vec<&str> = RECIPES.iter().map(|r| r.agent).collect();
                    Fail::new(
                        Exit::Usage,
                        format!("unknown agent '{word}': it is one of {}", ids.join(", ")),
                    )
                }
            });
        }
        for recipe in found {
            if !chosen.iter().any(|have| have.agent == recipe.agent) {
                chosen.push(recipe);
            }
        }
    }
    Ok(chosen)
}

/// The path that harnesses get for the hook: the given one, else the hook beside
/// the program that runs, by the name that it was called by. A path that an
/// update or a clean-up would take away is refused.
pub fn hook_path(start: &Start<'_>, given: Option<&str>) -> Result<String, Fail> {
    if let Some(path) = given {
        let named = path.rsplit('/').next() == Some(HOOK);
        return match () {
            () if !path.starts_with('/') => {
                Err(Fail::new(Exit::Usage, "--hook-path is no absolute path"))
            }
            () if !named => Err(Fail::new(
                Exit::Usage,
                format!("--hook-path is not the path of a file named {HOOK}"),
            )),
            () => Ok(path.to_string()),
        };
    }
    let called = String::from_utf8_lossy(start.called).into_owned();
    let path = match called.rsplit_once('/') {
        Some((dir, _)) if dir.starts_with('/') => Some(format!("{dir}/{HOOK}")),
        Some(("", _)) => Some(format!("/{HOOK}")),
        Some((dir, _)) => {
            own_directory().map(|cwd| format!("{cwd}/{}/{HOOK}", dir.trim_start_matches("./")))
        }
        None => {
            let path = start.env.text(Var::PATH).unwrap_or("");
            let search = Machine { home: String::new(), env: None, path };
            search.program(&called).map(|found| match found.rsplit_once('/') {
                Some((dir, _)) => format!("{dir}/{HOOK}"),
                None => found,
            })
        }
    };
    let path = path.map(|path| plain_path(&path)).filter(|path| is_program(path));
    let path = path.ok_or_else(|| {
        Fail::new(
            Exit::Unavailable,
            format!("there is no {HOOK} beside this program: make the links with 'tongs --install-links DIR', or say --hook-path"),
        )
    })?;
    match unstable(&path) {
        Some(why) => Err(Fail::cannot(
            Exit::Refused,
            "register",
            &path,
            format!("{why}; install tongs, or say --hook-path with a path that stays"),
        )),
        None => Ok(path),
    }
}

/// A path without `.` and `..`, where it leads to the same file so.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    if is_same(path, &plain) { plain } else { path.to_string() }
}

/// Why a path does not stay, where it does not.
fn unstable(path: &str) -> Option<&'static str> {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let build =
        dir.strip_suffix("/build").is_some_and(|top| is_there(&format!("{top}/Cargo.toml")));
    if path.starts_with("/nix/store/") || path.starts_with("/gnu/store/") {
        Some("a store path goes with the next update")
    } else if path.contains("/Cellar/") {
        Some("a path with a version in it goes with the next update")
    } else if build || dir.ends_with("/target/release") || dir.ends_with("/target/debug") {
        Some("it is in a directory that the program is built in")
    } else {
        None
    }
}

fn own_directory() -> Option<String> {
    let mut buffer = [0; 4096];
    let cwd = core::str::from_utf8(own_cwd(&mut buffer)).ok()?;
    Some(cwd.to_string()).filter(|cwd| !cwd.is_empty())
}
