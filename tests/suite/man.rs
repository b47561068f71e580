//! The man pages say what the programs do: names, options, exit codes,
//! variables, keys, events and codes are compared both ways, the examples are
//! run, and the source is linted where the tools are installed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tongs::harness::rows::ROWS;
use tongs::harness::{Kind, Pick};
use tongs::install::places::Machine;
use tongs::install::recipe::{Files, RECIPES, Recipe};
use tongs::record::Key;
use tongs::sys::env::Var;

use crate::world::{World, finish, has_tool};

type Names = BTreeSet<String>;

/// The pages with the exit codes that each one names.
const PAGES: [(&str, &[u32]); 9] = [
    ("tongs.1", &[0, 64, 74, 77]),
    ("tongs-hook.1", &[0, 1, 64, 65, 74, 75, 77]),
    ("tongs-agents.1", &[0, 1, 64, 65, 69, 74, 75, 77]),
    ("tongs-bridge-import.1", &[0, 1, 64, 65, 74, 75, 77]),
    ("tongs-record.5", &[1, 65, 75, 77]),
    ("tongs.7", &[0, 1, 64, 65, 69, 74, 75, 77]),
    ("tongs-harnesses.7", &[0]),
    ("tongs-terminals.7", &[]),
    ("tongs-bridges.7", &[0, 1, 64, 65, 69, 74, 75, 77]),
];

/// The order of the sections that the pages share.
const ORDER: [&str; 11] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "ENVIRONMENT",
    "FILES",
    "EXIT STATUS",
    "EXAMPLES",
    "SEE ALSO",
    "STANDARDS",
    "HISTORY",
    "CAVEATS",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn path(page: &str) -> PathBuf {
    root().join("man").join(page)
}

/// A page's lines, the escapes that stand for plain characters resolved.
fn lines(page: &str) -> Vec<String> {
    let text = fs::read_to_string(path(page)).unwrap();
    text.lines().map(plain).collect()
}

fn plain(line: &str) -> String {
    let mut line = line.to_string();
    for (escape, text) in [
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(dq", "\""),
        ("\\(ti", "~"),
        ("\\(ha", "^"),
        ("\\(ga", "`"),
        ("\\ ", " "),
        ("\\&", ""),
        ("\\e", "\\"),
    ] {
        line = line.replace(escape, text);
    }
    line
}

/// The lines below a heading, up to the next one of its level or above.
fn below(lines: &[String], macro_: &str, is: impl Fn(&str) -> bool) -> Vec<String> {
    let heading = |l: &String| l.strip_prefix(macro_).is_some_and(|title| is(title.trim()));
    let ends = |l: &String| l.starts_with(".Sh ") || (macro_ == ".Ss " && l.starts_with(".Ss "));
    let from = lines.iter().position(heading).unwrap_or_else(|| panic!("no such {macro_}"));
    lines[from + 1..].iter().take_while(|l| !ends(l)).cloned().collect()
}

fn section(page: &str, title: &str) -> Vec<String> {
    below(&lines(page), ".Sh ", |t| t == title)
}

fn subsection(page: &str, first_word: &str) -> Vec<String> {
    below(&lines(page), ".Ss ", |t| t.split(' ').next() == Some(first_word))
}

/// The first word of every list item that is marked with this macro.
fn items(lines: &[String], macro_: &str) -> Names {
    let start = format!(".It {macro_} ");
    lines
        .iter()
        .filter_map(|l| Some(l.strip_prefix(&start)?.split(' ').next()?.to_string()))
        .collect()
}

/// The options that lines name with Fl, with their hyphens.
fn flags<'a>(lines: impl IntoIterator<Item = &'a String>) -> Names {
    let mut flags = Names::new();
    for line in lines.into_iter().filter(|l| l.starts_with('.')) {
        let mut in_flag = false;
        for word in line[1..].split(' ') {
            let is_macro = word.len() == 2 && word.starts_with(|c: char| c.is_ascii_uppercase());
            let is_name =
                word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic());
            if in_flag && !is_macro && is_name {
                flags.insert(format!("-{word}"));
            }
            in_flag = word == "Fl" || (in_flag && !is_macro && is_name);
        }
    }
    flags
}

/// The lists' items only: where an option is described.
fn described(lines: &[String]) -> Names {
    flags(lines.iter().filter(|l| l.starts_with(".It ")))
}

/// What a program prints for `--help`.
fn help(name: &str, command: Option<&str>) -> String {
    let args: Vec<&str> = command.into_iter().chain(["--help"]).collect();
    let ran = World::new().run(name, &args, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out
}

/// The options in a help text: lines that begin with two spaces and a hyphen.
fn offered(help: &str) -> Names {
    let is_option = |l: &&str| l.starts_with("  -");
    let names = |l: &str| -> Vec<String> {
        let words = l.split_whitespace().map(|w| w.trim_end_matches(','));
        words.take_while(|w| w.starts_with('-')).map(str::to_string).collect()
    };
    help.lines().filter(is_option).flat_map(names).collect()
}

/// The commands of `tongs-agents`, from its help text.
fn commands() -> Names {
    let is_command = |l: &&str| l.starts_with("  ") && !l.trim_start().starts_with('-');
    let text = help("tongs-agents", None);
    text.lines()
        .filter(is_command)
        .filter_map(|l| Some(l.split_whitespace().next()?.to_string()))
        .collect()
}

/// The exit codes in a help text: a line of our own, or argh's list.
fn exits(help: &str) -> BTreeSet<u32> {
    if let Some(line) = help.lines().find(|l| l.starts_with("Exit codes:")) {
        return line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    }
    let list = help.lines().skip_while(|l| !l.starts_with("Error codes:")).skip(1);
    list.filter_map(|l| l.split_whitespace().next()?.parse().ok()).collect()
}

/// The displays of a section, each one's lines.
fn displays(lines: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut open = false;
    for line in lines {
        match line.as_str() {
            ".Ed" => open = false,
            l if l.starts_with(".Bd -literal") => {
                open = true;
                all.push(Vec::new());
            }
            _ if open => all.last_mut().unwrap().push(line.clone()),
            _ => {}
        }
    }
    all
}

/// `ToolDone` as the page has it: `tool-done`. Both ends of a compaction are one
/// kind there.
fn kind_name(kind: Kind) -> String {
    let mut name = String::new();
    for c in format!("{kind:?}").chars().take_while(|c| *c != '(') {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(c.to_ascii_lowercase());
    }
    for end in ["-manual", "-auto"] {
        name = name.strip_suffix(end).unwrap_or(&name).to_string();
    }
    name
}

#[test]
fn every_program_has_a_page_and_every_page_a_program() {
    let ran = World::new().run("tongs", &["--list"], b"");
    let mut programs: Names =
        ran.out.lines().filter_map(|l| Some(l.split(' ').next()?.to_string())).collect();
    programs.insert("tongs".to_string());
    let mut pages = Names::new();
    let mut files = Names::new();
    for entry in fs::read_dir(root().join("man")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(page) = file.strip_suffix(".1") {
            pages.insert(page.to_string());
        }
        files.insert(file);
    }
    assert_eq!(pages, programs);
    assert_eq!(files, PAGES.iter().map(|(page, _)| page.to_string()).collect());
    for (page, _) in PAGES {
        let (name, number) = page.split_once('.').unwrap();
        let lines = lines(page);
        assert!(lines.contains(&format!(".Dt {} {number}", name.to_uppercase())), "{page}");
        assert_eq!(section(page, "NAME")[0], format!(".Nm {name}"), "{page}");
        for line in lines.iter().filter_map(|l| l.strip_prefix(".Xr tongs")) {
            let mut words = line.split(' ');
            let file = format!("tongs{}.{}", words.next().unwrap(), words.next().unwrap());
            assert!(files.contains(&file), "{page} refers to {file}");
        }
    }
}

#[test]
fn the_sections_stand_in_their_order() {
    for (page, _) in PAGES {
        let titles: Vec<String> =
            lines(page).iter().filter_map(|l| Some(l.strip_prefix(".Sh ")?.to_string())).collect();
        let shared: Vec<usize> =
            titles.iter().filter_map(|t| ORDER.iter().position(|o| o == t)).collect();
        assert!(shared.is_sorted(), "{page}: {titles:?}");
        for title in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
            assert!(titles.iter().any(|t| t == title), "{page}: {title}");
        }
    }
}

#[test]
fn every_option_is_in_the_page_and_the_help() {
    let mut all = Names::new();
    for (page, program) in [
        ("tongs.1", "tongs"),
        ("tongs-hook.1", "tongs-hook"),
        ("tongs-bridge-import.1", "tongs-bridge-import"),
    ] {
        let offered = offered(&help(program, None));
        assert_eq!(described(&lines(page)), offered, "{page}");
        assert_eq!(flags(&lines(page)), offered, "{page}");
        all.extend(offered);
    }

    let page = lines("tongs-agents.1");
    let before: Vec<String> = page.iter().take_while(|l| !l.starts_with(".Ss ")).cloned().collect();
    let mut ours = offered(&help("tongs-agents", None));
    assert_eq!(described(&before), ours);
    let synopsis = section("tongs-agents.1", "SYNOPSIS");
    let listed =
        synopsis.iter().filter_map(|l| Some(l.strip_prefix(".Cm ")?.to_string())).collect();
    assert_eq!(commands(), listed);
    for command in commands() {
        let mut offered = offered(&help("tongs-agents", Some(&command)));
        // They are the same everywhere and stand once.
        assert!(offered.remove("-h") && offered.remove("--help"), "{command}");
        assert_eq!(described(&subsection("tongs-agents.1", &command)), offered, "{command}");
        ours.extend(offered);
    }
    all.extend(ours);
    for (page, _) in PAGES {
        let named = flags(&lines(page));
        assert!(named.is_subset(&all), "{page}: {:?}", named.difference(&all));
    }
}

#[test]
fn exit_codes_are_those_of_the_help() {
    for (page, known) in PAGES {
        let listed: BTreeSet<u32> = section(page, "EXIT STATUS")
            .iter()
            .filter_map(|l| l.strip_prefix(".It ")?.parse().ok())
            .collect();
        assert_eq!(listed, known.iter().copied().collect(), "{page}");
        if let Some(program) = page.strip_suffix(".1") {
            let said = exits(&help(program, None));
            // The short help may leave out what is rare.
            let complete = program == "tongs" || said == listed;
            assert!(complete && said.is_subset(&listed), "{page}: {said:?}");
        }
    }
    let section = section("tongs-agents.1", "EXIT STATUS");
    for command in commands() {
        let start = format!(".It Cm {command} Ta ");
        let row = section.iter().find_map(|l| l.strip_prefix(&start)).unwrap();
        let codes: BTreeSet<u32> =
            row.split(" Ta ").next().unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(codes, exits(&help("tongs-agents", Some(&command))), "{command}");
    }
}

#[test]
fn variables_are_documented_and_no_others_named() {
    let known: Names = Var::ALL.iter().map(|v| v.name().to_string()).collect();
    let mut documented = Names::new();
    for (page, _) in PAGES {
        let is_word = |c: char| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit();
        let words = |l: &String| -> Names {
            l.split(|c| !is_word(c)).filter(|w| w.len() > 2).map(str::to_string).collect()
        };
        let section = section(page, "ENVIRONMENT");
        documented.extend(section.iter().filter(|l| l.contains("Ev ")).flat_map(words));
        for line in lines(page) {
            let marked = line.starts_with(".Ev ") || line.starts_with(".It Ev ");
            for word in words(&line) {
                let is_ours = word.starts_with("TONGS_");
                assert!(!(marked || is_ours) || known.contains(&word), "{page} names {word}");
            }
        }
    }
    let ours = known.iter().filter(|n| n.starts_with("TONGS_AGENTS_")).map(String::as_str);
    for name in ours.chain(["HOME", "XDG_STATE_HOME", "NO_COLOR", "COLUMNS"]) {
        assert!(documented.contains(name), "{name} is in no ENVIRONMENT");
    }
}

#[test]
fn every_key_is_in_tongs_record() {
    let names = |derived: Option<bool>| -> Names {
        let wanted = |key: &&Key| derived.is_none_or(|d| key.is_derived() == d);
        Key::ALL.iter().filter(wanted).map(|key| key.name().to_string()).collect()
    };
    assert_eq!(items(&lines("tongs-record.5"), "Va"), names(None));
    assert_eq!(items(&subsection("tongs-record.5", "Derived"), "Va"), names(Some(true)));
}

#[test]
fn the_example_record_is_one() {
    let text = displays(&subsection("tongs-record.5", "Example"))[0].concat();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let digest = record["canonical_id"].as_str().unwrap().rsplit(':').next().unwrap();
    assert!(lines("tongs-record.5").contains(&format!(".Dl {digest}")));
    for key in record.as_object().unwrap().keys() {
        let known = Key::find(key.as_bytes());
        assert!(known.is_some_and(|k| !k.is_derived()), "{key}");
    }
    let world = World::new();
    fs::DirBuilder::new().mode(0o700).recursive(true).create(world.sessions()).unwrap();
    fs::write(world.sessions().join(format!("fleet-v1-{digest}.json")), text).unwrap();
    let sessions = world.sessions_json();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["session_id"], "s1");
}

/// The table of a harness's events in tongs-hook(1): native name, shared name,
/// kind; below an event, its other kinds by the value that chooses them.
#[test]
fn the_tables_of_events_are_the_rows() {
    let page = subsection("tongs-hook.1", "Events");
    let kinds = subsection("tongs-hook.1", "Kinds");
    let explained: Names = kinds
        .iter()
        .filter_map(|l| l.strip_prefix(".It Sy "))
        .flat_map(|names| names.split(" , ").map(str::to_string))
        .collect();
    for row in ROWS {
        let start = page
            .iter()
            .position(|l| l.starts_with(&format!(".Cm {} ,", row.id)))
            .unwrap_or_else(|| panic!("{} has no table", row.id));
        let table: Vec<&str> = page[start..]
            .iter()
            .take_while(|l| *l != ".El")
            .filter_map(|l| l.strip_prefix(".It "))
            .collect();
        let mut want = Vec::new();
        let one_name = row.id == "other";
        let mut put = |first: String, shared: &str, kind: Kind| {
            let shared = if shared.is_empty() { "\"\"" } else { shared };
            let kind = kind_name(kind);
            assert!(explained.contains(&kind), "{kind}");
            want.push(if one_name {
                format!("{first} Ta {kind}")
            } else {
                format!("{first} Ta {shared} Ta {kind}")
            });
        };
        for event in row.events {
            let shared = if event.normal == event.native { "" } else { event.normal };
            let name = format!("Cm {}", event.native);
            match &event.pick {
                Pick::Is(kind) => put(name, shared, *kind),
                Pick::Set(kinds, or) => {
                    put(name, shared, *or);
                    kinds.iter().for_each(|(_, kind)| put("* set".to_string(), "", *kind));
                }
                Pick::By(_, kinds, or) | Pick::Within(_, kinds, or) => {
                    put(name, shared, *or);
                    for (value, kind) in
                        kinds.iter().filter(|(_, k)| kind_name(*k) != kind_name(*or))
                    {
                        put(format!("* {value}"), "", *kind);
                    }
                }
            }
        }
        // The key that chooses is named by a word of the table's own.
        let got: Vec<String> = table
            .iter()
            .map(|l| match l.strip_prefix("\"  ") {
                Some(rest) => format!("* {}", rest.split_once(' ').unwrap().1.replacen('"', "", 1)),
                None => l.to_string(),
            })
            .collect();
        assert_eq!(got, want, "{}", row.id);
    }
}

/// tongs-harnesses(7) has every recipe, with its file, its variable and its
/// events.
#[test]
fn the_list_of_harnesses_is_the_recipes() {
    let page = subsection("tongs-harnesses.7", "Harnesses");
    let starts: Vec<usize> =
        (0..page.len()).filter(|at| page[*at].starts_with(".Bl -tag")).collect();
    assert_eq!(starts.len(), RECIPES.len());
    for (recipe, start) in RECIPES.iter().zip(starts) {
        let item: Vec<&String> = page[start..].iter().take_while(|l| *l != ".El").collect();
        let name = tongs::harness::find(recipe.row).unwrap().name;
        assert_eq!(*item[1], format!(".It Cm {} Pq {name}", recipe.agent));
        let file = match recipe.files {
            Files::One(file) => file,
            Files::Prefer(_, file) => file,
            Files::Each(dir, _) | Files::PerEvent(dir) => dir,
        };
        let config = if recipe.home.xdg { ".config/" } else { "" };
        let path = format!("~/{config}{}/{file}", recipe.home.below);
        let var = recipe.home.var.or(recipe.home.xdg.then_some(Var::XDG_CONFIG_HOME));
        match var {
            Some(var) => {
                assert_eq!(*item[2], format!(".Pa {path} ,"));
                assert_eq!(*item[3], format!(".Ev {} .", var.name()));
            }
            None => assert_eq!(*item[2], format!(".Pa {path} .")),
        }
        let words = item.iter().skip_while(|l| **l != "Events:").take_while(|l| **l != ".Pp");
        let events: Vec<&str> = words
            .filter_map(|l| l.strip_prefix(".Cm ")?.strip_suffix([',', '.'])?.strip_suffix(' '))
            .collect();
        assert_eq!(events, recipe.events, "{}", recipe.agent);
    }
}

/// Each terminal with its processes, and whether its way was tried.
#[test]
fn the_list_of_terminals_is_the_table() {
    use tongs::focus::{Way, way};
    use tongs::terminal::table::{GENERIC, TERMINALS};
    let page = subsection("tongs-terminals.7", "Terminals");
    let items: Vec<&[String]> =
        page.split(|l| l.starts_with(".It ") || l == ".El").skip(1).collect();
    let names: Vec<&str> = page.iter().filter_map(|l| l.strip_prefix(".It Cm ")).collect();
    let rows: Vec<_> = TERMINALS.iter().chain([GENERIC]).collect();
    assert_eq!(names, rows.iter().map(|row| row.name).collect::<Vec<_>>());
    for (row, item) in rows.iter().zip(items) {
        let name = row.name;
        if row.comms.is_empty() {
            assert_eq!(item[0], "Known by its variables only.", "{name}");
        } else if name != "generic" {
            assert_eq!(item[0], format!("Processes: {}.", row.comms.join(", ")), "{name}");
        }
        let last = item.iter().rev().find(|l| !l.is_empty()).unwrap();
        let want = match way(name) {
            None => "Not gone to.",
            Some(Way::Window) => "No way of its own: see below.",
            Some(Way::Tried) => "Tried with the real program.",
            Some(Way::Untested) => {
                "Untested: written by its manual, and not tried with the real program."
            }
        };
        assert_eq!(last, want, "{name}");
    }
}

/// And the file in which it lists its servers.
#[test]
fn the_files_with_servers_are_the_recipes() {
    let page = subsection("tongs-harnesses.7", "Servers");
    let rows: Vec<&String> = page.iter().filter(|l| l.starts_with(".It ")).collect();
    let machine = Machine { home: "~".to_string(), env: None, path: "" };
    let row = |recipe: &Recipe| {
        let file = match machine.servers(recipe) {
            Some(site) => format!("Pa {}", site.path),
            None => format!("none: {}", recipe.servers.as_ref().err().unwrap()),
        };
        (format!(".It Cm {} Ta ", recipe.agent), file)
    };
    assert_eq!(rows.len(), RECIPES.len());
    for (recipe, is) in RECIPES.iter().zip(rows) {
        let (head, file) = row(recipe);
        let rest = is.strip_prefix(&head).unwrap_or_else(|| panic!("{is}"));
        assert!(!rest.is_empty() && file.starts_with(rest), "{is}: {file}");
    }
}

#[test]
fn every_code_of_the_hook_is_explained() {
    let mut codes = Names::new();
    for file in [
        "applet/hook.rs",
        "harness/payload.rs",
        "harness/rules.rs",
        "store/place.rs",
        "store/write.rs",
    ] {
        let text = fs::read_to_string(root().join("src").join(file)).unwrap();
        let body =
            text.split("fn code(self)").nth(1).unwrap_or_else(|| panic!("{file} has no codes"));
        let body = body.split("\n    }\n").next().unwrap();
        codes.extend(body.split('"').skip(1).step_by(2).map(str::to_string));
    }
    let mut explained = items(&subsection("tongs-hook.1", "Strict"), "Cm");
    for key in ["outcome", "reason", "canonical_id", "status"] {
        assert!(explained.remove(key), "{key}");
    }
    assert_eq!(explained, codes);
}

#[test]
fn every_code_of_the_import_is_explained() {
    let text = |file: &str| fs::read_to_string(root().join("src").join(file)).unwrap();
    let mut codes = Names::new();
    for file in ["imports.rs", "trackers.rs", "bridge_import.rs"] {
        let text = text(&format!("applet/{file}"));
        for start in ["Refusal::new(\"", "Refusal::new(\n                \"", "Exit::No => (\""] {
            codes.extend(text.split(start).skip(1).map(|l| l.split('"').next().unwrap().into()));
        }
        let arms = text.split("let code = match fault.kind {").nth(1);
        let arms = arms.map_or("", |arms| arms.split("};").next().unwrap());
        codes.extend(arms.split('"').skip(1).step_by(2).map(str::to_string));
    }
    let write = text("store/write.rs");
    let body = write.split("fn code(self)").nth(1).unwrap().split("\n    }\n").next().unwrap();
    codes.extend(body.split('"').skip(1).step_by(2).map(str::to_string));
    codes.insert("not-written".to_string());
    let explained: Names = subsection("tongs-bridge-import.1", "Results")
        .iter()
        .filter_map(|l| l.strip_prefix(".It Cm "))
        .flat_map(|names| names.split(" , ").map(str::to_string))
        .collect();
    assert_eq!(explained, codes);
}

#[test]
fn the_examples_run() {
    let jq = has_tool("jq", "the examples with jq");
    for (page, _) in PAGES {
        let displays = displays(&section(page, "EXAMPLES"));
        let commands = displays.iter().flatten().count();
        assert!(commands >= 2, "{page} has {commands} commands");
        for display in displays {
            assert!(display.iter().all(|l| !l.starts_with(['$', '#', ' '])), "{page}: {display:?}");
            let runnable = |l: &&String| jq || !l.contains("jq ");
            let script: Vec<&str> = display.iter().filter(runnable).map(String::as_str).collect();
            let world = World::new();
            let mut shell = Command::new("sh");
            world.bare(&mut shell);
            shell.args(["-eu", "-c", &script.join("\n")]);
            let ran = finish(shell, b"");
            assert_eq!(ran.code, Some(0), "{page}: {script:?}: {ran:?}");
        }
    }
}

#[test]
fn the_pages_are_without_warnings() {
    let pages: Vec<PathBuf> = PAGES.iter().map(|(page, _)| path(page)).collect();
    if has_tool("mandoc", "the lint of the man pages") {
        quiet(Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(&pages));
    }
    if has_tool("groff", "groff's view of the man pages") {
        for page in &pages {
            let source = fs::read_to_string(page).unwrap();
            let mut groff = Command::new("groff");
            groff.args(["-man", "-ww", "-Tutf8", "-mdoc", "-z"]).arg(page);
            quiet(&mut groff);
            assert!(!source.lines().any(|l| l.ends_with(' ')), "{}", page.display());
        }
    }
}

/// Runs a command that has nothing to say.
#[track_caller]
fn quiet(command: &mut Command) {
    let ran = command.output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let about = command.get_args().last().map(Path::new);
    assert!(
        ran.status.success() && said.is_empty(),
        "{about:?}: {}",
        String::from_utf8_lossy(&said)
    );
}
