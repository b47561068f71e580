//! `tongs-agents install`: hooks into the settings of harnesses, and a look at
//! the ones that are there.

use argh::FromArgs;

use super::super::Start;
use super::super::chosen::{hook_path, machine, named};
use super::super::fail::stdout;
use super::super::installer::{Changed, Installer, Problem, put_diff, put_line, take_turn};
use super::super::{processes, value};
use super::{check_version, hint, options};
use crate::cli::{Exit, Fail, Shown};
use crate::harness;
use crate::install::places::{Machine, Site, is_program};
use crate::install::plan;
use crate::install::recipe::{Files, RECIPES, Recipe, WITHOUT};
use crate::install::text::Value;

/// Put hooks into the settings of harnesses.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents install --agent claude --agent codex",
    note = "See tongs-agents(1) and tongs-harnesses(7).",
    error_code(0, "done, or nothing to do"),
    error_code(1, "with --check: hooks are missing, old or turned off"),
    error_code(64, "usage"),
    error_code(65, "a settings file cannot be read; it was left as it is"),
    error_code(69, "there is no tongs-hook beside this program"),
    error_code(74, "a file is read-only or could not be written"),
    error_code(75, "another program keeps changing the file"),
    error_code(77, "refused: the file or the hook's path is not a safe one")
)]
struct Options {
    /// a harness, as --list has it; may be given several times
    #[argh(option, arg_name = "A")]
    agent: Vec<String>,
    /// every harness that is found on this machine
    #[argh(switch)]
    all: bool,
    /// change nothing and print what would change
    #[argh(switch)]
    dry_run: bool,
    /// change nothing and say how the hooks stand
    #[argh(switch)]
    check: bool,
    /// list the harnesses and their files
    #[argh(switch)]
    list: bool,
    /// print what a file with nothing but the hooks looks like
    #[argh(switch)]
    print: bool,
    /// work in this home and heed no variable of a harness
    #[argh(option, arg_name = "DIR")]
    home: Option<String>,
    /// the hook's path; default: beside this program
    #[argh(option, arg_name = "P")]
    hook_path: Option<String>,
    /// register 'tongs-agents mcp' with the harnesses as well
    #[argh(switch)]
    mcp: bool,
    /// tell Codex that its hooks were reviewed
    #[argh(switch)]
    trust_codex: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
}

/// One file in the report.
struct Line {
    agent: &'static str,
    row: &'static str,
    path: String,
    result: &'static str,
    why: String,
    backup: Option<String>,
    snippet: Option<String>,
    diff: String,
}

impl Line {
    fn new(recipe: &Recipe, site: &Site, result: &'static str) -> Line {
        Line {
            agent: recipe.agent,
            row: recipe.row,
            path: site.path.clone(),
            result,
            why: String::new(),
            backup: None,
            snippet: None,
            diff: String::new(),
        }
    }

    fn failed(recipe: &Recipe, site: &Site, problem: Problem) -> Line {
        Line { why: problem.why, snippet: problem.snippet, ..Line::new(recipe, site, "failed") }
    }

    fn value(&self) -> Value {
        Value::from([
            ("agent", self.agent.into()),
            ("harness", self.row.into()),
            ("path", self.path.as_str().into()),
            ("result", self.result.into()),
            ("reason", self.why.as_str().into()),
            ("backup", self.backup.as_deref().unwrap_or("").into()),
            ("snippet", self.snippet.as_deref().unwrap_or("").into()),
        ])
    }
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let options: Options = options("install", words)?;
    check_version(options.json_version)?;
    let modes = [options.dry_run, options.check, options.list, options.print];
    if modes.iter().filter(|mode| **mode).count() > 1 {
        return Err(Fail::new(
            Exit::Usage,
            "--dry-run, --check, --list and --print exclude one another",
        ));
    }
    if options.all && !options.agent.is_empty() {
        return Err(Fail::new(Exit::Usage, "--all and --agent exclude one another"));
    }
    let machine = machine(start, options.home.as_deref())?;
    let json = options.json || options.json_version.is_some();
    if options.list {
        return list(&machine, json);
    }
    let found = || RECIPES.iter().filter(|recipe| machine.has(recipe)).collect::<Vec<_>>();
    let recipes = match named(&options.agent)? {
        named if !named.is_empty() => named,
        _ if options.all || options.check => found(),
        _ => {
            let ids: Vec<&str> = found().iter().map(|recipe| recipe.agent).collect();
            let ids = if ids.is_empty() { "none".to_string() } else { ids.join(", ") };
            return Err(Fail::new(
                Exit::Usage,
                format!("say which harness with --agent, or --all (on this machine: {ids})"),
            ));
        }
    };
    let hook = hook_path(start, options.hook_path.as_deref())?;
    if options.print {
        return print(&recipes, &hook);
    }
    if !options.check && !is_program(&hook) {
        return Err(Fail::cannot(Exit::Usage, "register", &hook, "it is not a program"));
    }
    let turn = if options.check || options.dry_run { None } else { Some(take_turn(start)?) };
    let (store, backups) = turn.unzip();
    let installer = Installer { machine, hook, backups };
    let report = if options.check {
        check(&installer, &recipes, options.mcp)
    } else {
        install(&installer, &recipes, &options)
    };
    drop(store);
    tell(&report, &installer, json, options.dry_run)?;
    Ok(report.exit)
}

/// What a run found or did.
struct Report {
    lines: Vec<Line>,
    /// What the user has to do now.
    notes: Vec<String>,
    exit: Exit,
}

impl Report {
    fn fails(&mut self, exit: Exit) {
        if self.exit == Exit::Ok {
            self.exit = exit;
        }
    }
}

fn install(installer: &Installer<'_>, recipes: &[&'static Recipe], options: &Options) -> Report {
    let (dry, trust) = (options.dry_run, options.trust_codex);
    let mut report = Report { lines: Vec::new(), notes: Vec::new(), exit: Exit::Ok };
    for recipe in recipes {
        let sites = installer.machine.sites(recipe);
        if sites.is_empty() {
            report.lines.push(nowhere(&installer.machine, recipe));
        }
        let mut anything = false;
        for site in &sites {
            match installer.put(recipe, site, dry) {
                Ok(Changed { changed, diff, backup, .. }) => {
                    anything |= changed;
                    let result = if changed { "installed" } else { "unchanged" };
                    report.lines.push(Line { diff, backup, ..Line::new(recipe, site, result) });
                }
                Err(problem) => {
                    report.fails(problem.exit);
                    report.lines.push(Line::failed(recipe, site, problem));
                }
            }
            codex_trust(installer, recipe, site, dry, trust, &mut report);
        }
        if options.mcp {
            anything |= register(installer, recipe, dry, &mut report);
        }
        if anything && !dry {
            notes(recipe, &mut report);
        }
    }
    report
}

/// Registers the server for agents; says whether that changed anything.
fn register(
    installer: &Installer<'_>,
    recipe: &'static Recipe,
    dry: bool,
    report: &mut Report,
) -> bool {
    let Some((site, changed)) = installer.register(recipe, dry) else {
        let why = recipe.servers.as_ref().err().copied().unwrap_or_default();
        report.notes.push(format!("{}: {why}", recipe.agent));
        return false;
    };
    match changed {
        Ok(Changed { changed, diff, backup, .. }) => {
            let result = if changed { "registered" } else { "unchanged" };
            report.lines.push(Line { diff, backup, ..Line::new(recipe, &site, result) });
            changed
        }
        Err(problem) => {
            report.fails(problem.exit);
            report.lines.push(Line::failed(recipe, &site, problem));
            false
        }
    }
}

/// A harness that has no file to put hooks into.
fn nowhere(machine: &Machine<'_>, recipe: &Recipe) -> Line {
    let (dir, end) = match recipe.files {
        Files::Each(dir, end) => (dir, end),
        _ => ("", ""),
    };
    let dir = format!("{}/{dir}", machine.home_of(&recipe.home));
    let site = Site { path: dir, event: "", mode: 0, whole: None };
    Line {
        why: format!("its hooks belong to an agent, and there is no *{end} here"),
        ..Line::new(recipe, &site, "skipped")
    }
}

/// What is to be done after an installation.
fn notes(recipe: &Recipe, report: &mut Report) {
    let name = harness::find(recipe.row).map_or(recipe.agent, |row| row.name);
    let open = harness::find(recipe.row).map(processes::running).unwrap_or_default();
    if !open.is_empty() {
        let pids: Vec<String> = open.iter().map(u32::to_string).collect();
        report.notes.push(format!(
            "open sessions of {name} may know nothing of the hooks until they are started anew (pid {})",
            pids.join(", ")
        ));
    }
    if !recipe.then.is_empty() {
        report.notes.push(format!("{name}: {}", recipe.then));
    }
}

/// Writes Codex's trust where that was asked for.
fn codex_trust(
    installer: &Installer<'_>,
    recipe: &'static Recipe,
    site: &Site,
    dry: bool,
    trust: bool,
    report: &mut Report,
) {
    if !trust || dry {
        return;
    }
    let Some((wanted, config)) = installer.codex_trust(recipe, site) else { return };
    let site = Site { path: config.clone(), ..site.clone() };
    match installer.trust(&wanted, &config, dry) {
        Ok(Changed { changed, diff, backup, .. }) => {
            let result = if changed { "trusted" } else { "unchanged" };
            report.lines.push(Line { diff, backup, ..Line::new(recipe, &site, result) });
        }
        Err(problem) => {
            report.fails(problem.exit);
            report.lines.push(Line::failed(recipe, &site, problem));
        }
    }
}

fn check(installer: &Installer<'_>, recipes: &[&'static Recipe], servers: bool) -> Report {
    let mut report = Report { lines: Vec::new(), notes: Vec::new(), exit: Exit::Ok };
    for recipe in recipes {
        let sites = installer.machine.sites(recipe);
        if sites.is_empty() {
            report.lines.push(nowhere(&installer.machine, recipe));
        }
        let hooks = sites.into_iter().map(|site| {
            let look = installer.look(recipe, &site);
            let standing = look.map(|look| installer.standing(recipe, &site, &look));
            (site, standing)
        });
        let server = Some(recipe).filter(|_| servers).and_then(|r| installer.registered(r));
        let server = server.map(|(site, standing)| (site, standing.map(|s| (s, String::new()))));
        for (site, standing) in hooks.chain(server) {
            let line = match standing {
                Ok((result, why)) => Line { why, ..Line::new(recipe, &site, result) },
                Err(problem) => Line::failed(recipe, &site, problem),
            };
            if !matches!(line.result, "installed" | "registered") {
                report.fails(Exit::No);
            }
            report.lines.push(line);
        }
    }
    report
}

fn tell(report: &Report, installer: &Installer<'_>, json: bool, dry: bool) -> Result<(), Fail> {
    let mut out = stdout();
    if json {
        let texts =
            |texts: &[String]| Value::List(texts.iter().map(|t| t.as_str().into()).collect());
        let object = Value::from([
            ("hook", installer.hook.as_str().into()),
            ("dry_run", dry.into()),
            ("files", report.lines.iter().map(Line::value).collect::<Vec<_>>().into()),
            ("notes", texts(&report.notes)),
        ]);
        value::print(&mut out, &object)?;
        return out.flush();
    }
    if report.lines.is_empty() {
        out.put(b"no harness was found here (see 'tongs-agents install --list')\n")?;
    }
    for line in &report.lines {
        put_diff(&mut out, &line.diff)?;
    }
    for line in &report.lines {
        let result = match (dry, line.result) {
            (true, "installed" | "registered") => "would change",
            (_, result) => result,
        };
        put_line(&mut out, line.agent, result, &line.path, &line.why)?;
    }
    for line in report.lines.iter().filter(|line| line.snippet.is_some()) {
        writeln!(out, "\nput this into {} by hand:\n", Shown(&line.path))?;
        out.put(line.snippet.as_deref().unwrap_or("").as_bytes())?;
    }
    out.flush()?;
    for note in &report.notes {
        hint(note);
    }
    Ok(())
}

/// Prints files with nothing but the hooks in them.
fn print(recipes: &[&'static Recipe], hook: &str) -> Result<Exit, Fail> {
    let [recipe] = recipes else {
        return Err(Fail::new(Exit::Usage, "--print takes one --agent"));
    };
    let event = match recipe.files {
        Files::PerEvent(_) => recipe.events.first().copied().unwrap_or(""),
        _ => "",
    };
    let text = plan::put(recipe, event, None, hook)
        .map_err(|refusal| Fail::new(Exit::Data, refusal.to_string()))?;
    let mut out = stdout();
    out.put(text.as_bytes())?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// Lists every harness: what it takes, where, or why it takes nothing.
fn list(machine: &Machine<'_>, json: bool) -> Result<Exit, Fail> {
    let mut out = stdout();
    let mut rows = Vec::new();
    for recipe in &RECIPES {
        let name = harness::find(recipe.row).map_or("", |row| row.name);
        let paths: Vec<String> = match recipe.files {
            Files::PerEvent(dir) => vec![format!("{}/{dir}", machine.home_of(&recipe.home))],
            Files::Each(dir, _) => vec![format!("{}/{dir}", machine.home_of(&recipe.home))],
            _ => machine.sites(recipe).into_iter().take(1).map(|site| site.path).collect(),
        };
        let path = paths.into_iter().next().unwrap_or_default();
        let found = machine.has(recipe);
        let profiles = machine.profiles(recipe);
        if json {
            rows.push(entry(recipe.agent, recipe.row, found, &path, recipe.events, &profiles, ""));
            continue;
        }
        let found = if found { "found" } else { "-" };
        writeln!(out, "{:<12} {found:<6} {name:<20} {}", recipe.agent, Shown(&path))?;
        for profile in profiles {
            let var = recipe.home.var.map_or("", |var| var.name());
            writeln!(out, "{:<12} {:<6} {:<20} {} (with {var})", "", "also", "", Shown(&profile))?;
        }
    }
    for without in WITHOUT {
        let name = harness::find(without.row).map_or("", |row| row.name);
        if json {
            rows.push(entry(without.row, without.row, false, "", &[], &[], without.why));
        } else {
            writeln!(out, "{:<12} {:<6} {name:<20} {}", without.row, "-", without.why)?;
        }
    }
    if json {
        value::print(&mut out, &Value::from([("agents", rows.into())]))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// One harness of the list.
fn entry(
    agent: &str,
    row: &str,
    found: bool,
    path: &str,
    events: &[&str],
    profiles: &[String],
    why: &str,
) -> Value {
    let name = harness::find(row).map_or("", |row| row.name);
    let events = events.iter().map(|event| Value::from(*event)).collect::<Vec<_>>();
    let profiles = profiles.iter().map(|path| Value::from(path.as_str())).collect::<Vec<_>>();
    Value::from([
        ("agent", agent.into()),
        ("harness", row.into()),
        ("name", name.into()),
        ("found", found.into()),
        ("path", path.into()),
        ("events", events.into()),
        ("profiles", profiles.into()),
        ("reason", why.into()),
    ])
}
