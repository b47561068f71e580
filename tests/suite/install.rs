//! Hooks in the settings of harnesses: put in, looked at, taken out, and what
//! they do when they run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tongs::harness;
use tongs::install::command::Command as Managed;
use tongs::install::recipe::{Files, Nest, RECIPES, Recipe, Shape};
use tongs::install::server::{Servers, Shape as Registry};
use tongs::install::text::json::Dialect;

use crate::status::assert_schema;
use crate::world::{Ran, World, claude, eventually, finish, has_tool};

/// Every file below a directory with its bytes, links as what they lead to.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            } else {
                files.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    files
}

/// The home without what tongs keeps of its own.
fn settings(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let state = world.state();
    tree(&world.path("home")).into_iter().filter(|(path, _)| !path.starts_with(&state)).collect()
}

/// Where a recipe's settings are in a bare environment; for a directory of
/// files, one of them.
fn file_of(world: &World, recipe: &Recipe) -> PathBuf {
    let config = if recipe.home.xdg { "home/.config" } else { "home" };
    let home = world.path(config).join(recipe.home.below);
    match recipe.files {
        Files::One(name) => home.join(name),
        Files::Prefer(_, name) => home.join(name),
        Files::Each(dir, end) => home.join(dir).join(format!("mine{end}")),
        Files::PerEvent(dir) => home.join(dir).join(recipe.events[0]),
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Settings of a user for a recipe, in many ways of writing.
fn users(recipe: &Recipe) -> Vec<String> {
    let mut texts = match &recipe.shape {
        Shape::Plugin(_) => return Vec::new(),
        Shape::Toml => vec![
            String::new(),
            "# mine\nmodel = \"k2\"\n\n[loop]\nsteps = 3 # few\n".to_string(),
            "model = 'k2'\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"say done\"\n\n# the end\n".into(),
            "[[hooks]]\nevent = 'Stop'\ncommand = 'say tongs-hook'\nmatcher = 'x'\n\n[z]\na = [\n  1, # one\n]"
                .into(),
        ],
        Shape::Yaml => vec![
            String::new(),
            "# mine\nmodel: x\nmcp_servers:\n  a:\n    command: b\n".to_string(),
            "hooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: ~/say.sh # loud\nother: 1\n"
                .into(),
            "model: x\nhooks: {}\nz: [1, 2]\n".into(),
            "a: |\n  hooks:\n    - not these\nb: 'it''s'\n".into(),
        ],
        Shape::Json(json) => {
            let event = recipe.events[recipe.events.len() - 1];
            let entry = r#"{"type": "command", "command": "say tongs-hook"}"#;
            let item = if json.has_groups(event) {
                format!(r#"{{"matcher": "x", "hooks": [{entry}]}}"#)
            } else {
                entry.to_string()
            };
            let list = format!("[{item}]");
            let hooks = match json.nest {
                Nest::All => list,
                _ => format!(r#"{{"{event}": {list}, "Mine": [{item}, 7]}}"#),
            };
            let below = json.below[0];
            let mut texts = vec![
                "{}".to_string(),
                "{}\n".to_string(),
                "{\n}\n".to_string(),
                "{\n\t\"b\": 1,\n\t\"a\": [1,2,  3]\n}".to_string(),
                format!("{{\"a\": 1, \"{below}\": {hooks}, \"z\": null}}\n"),
                format!("{{\n    \"{below}\" :  {hooks} ,\n    \"z\": \"\\u00e9\"\n}}\n"),
            ];
            if json.dialect != Dialect::Strict {
                texts.push(format!(
                    "// top\n{{\n  /* a */ \"a\": 1, // one\n  \"{below}\": {hooks}, // mine\n  // last\n}}\n// end\n"
                ));
                texts.push("{ // nothing yet\n}\n".to_string());
            }
            if json.dialect == Dialect::Five {
                texts.push("{ a: 'b', $c: 0x1F, d: +1, }\n".to_string());
            }
            texts
        }
    };
    // One harness of each kind of file gets all of them.
    if !["claude", "codex", "devin", "kiro-v3", "antigravity", "kimi-code", "hermes"]
        .contains(&recipe.agent)
    {
        return texts.split_off(texts.len().saturating_sub(3));
    }
    let dos: Vec<String> = texts.iter().map(|text| text.replace('\n', "\r\n")).collect();
    texts.extend(dos);
    let marked: Vec<String> =
        texts.iter().filter(|t| !t.is_empty()).map(|t| format!("\u{feff}{t}")).collect();
    texts.extend(marked);
    texts
}

#[track_caller]
fn fine(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn every_harness_installs_twice_the_same_and_uninstalls_to_what_was() {
    for recipe in &RECIPES {
        // With nothing there; a directory of files needs one.
        let world = World::new();
        if matches!(recipe.files, Files::Each(..)) {
            let ran = world.agents(&["install", "--agent", recipe.agent]);
            fine(&ran);
            assert!(ran.out.contains("skipped"), "{ran:?}");
            assert_eq!(settings(&world).len(), 0);
        } else {
            let ran = world.agents(&["install", "--agent", recipe.agent]);
            fine(&ran);
            let once = settings(&world);
            assert!(!once.is_empty(), "{}", recipe.agent);
            let ran = world.agents(&["install", "--agent", recipe.agent]);
            fine(&ran);
            assert!(!ran.out.contains("installed "), "{ran:?}");
            assert_eq!(settings(&world), once, "{}", recipe.agent);
            fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
            assert_eq!(settings(&world).len(), 0, "{}", recipe.agent);
        }
        // With settings of the user's own.
        for (n, text) in users(recipe).into_iter().enumerate() {
            let what = format!("{} {n} {text:?}", recipe.agent);
            let world = World::new();
            let file = file_of(&world, recipe);
            write(&file, &text);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let before = settings(&world);
            let ran = world.agents(&["install", "--agent", recipe.agent]);
            assert_eq!(ran.code, Some(0), "{what}: {ran:?}");
            let once = settings(&world);
            assert_ne!(once, before, "{what}");
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600, "{what}");
            let inode = fs::metadata(&file).unwrap().ino();
            fine(&world.agents(&["install", "--agent", recipe.agent]));
            assert_eq!(settings(&world), once, "{what}");
            assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "{what}");
            let ran = world.agents(&["install", "--check", "--agent", recipe.agent]);
            let trusted = recipe.row != "codex";
            assert_eq!(ran.code, Some(i32::from(!trusted)), "{what}: {ran:?}");
            // The backup is what was, and not beside the file.
            let backups: Vec<_> = tree(&world.state().join("backups"))
                .into_iter()
                .filter(|(path, _)| !path.ends_with(".lock"))
                .collect();
            assert!(backups.iter().any(|(_, bytes)| *bytes == text.as_bytes()), "{what}");
            fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
            assert_eq!(settings(&world), before, "{what}");
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600, "{what}");
        }
    }
}

/// Without the backup everything of the user's is kept, and what is parsed is
/// the same.
#[test]
fn uninstall_keeps_what_the_user_wrote_since() {
    for recipe in RECIPES.iter().filter(|r| matches!(&r.shape, Shape::Json(_))) {
        for text in users(recipe) {
            let world = World::new();
            let file = file_of(&world, recipe);
            write(&file, &text);
            fine(&world.agents(&["install", "--agent", recipe.agent]));
            fs::remove_dir_all(world.state().join("backups")).unwrap();
            fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
            let Ok(left) = fs::read_to_string(&file) else {
                assert!(
                    text.trim_matches(['\u{feff}', '{', '}', '\r', '\n']).len() < 20,
                    "{text:?}"
                );
                continue;
            };
            let Shape::Json(json) = &recipe.shape else { unreachable!() };
            let parse = |text: &str| tongs::install::text::json::parse(text, json.dialect).unwrap();
            let (was, is) = (parse(&text), parse(&left));
            for member in was.members() {
                let now = is.get(&member.key).unwrap_or_else(|| panic!("{text:?} -> {left:?}"));
                assert_eq!(&left[now.span.clone()], &text[member.value.span.clone()], "{text:?}");
            }
            for comment in
                ["// top", "/* a */", "// one", "// mine", "// last", "// end", "// nothing yet"]
            {
                assert_eq!(text.contains(comment), left.contains(comment), "{text:?} -> {left:?}");
            }
        }
    }
}

/// The commands of ours in a text, whatever its kind.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let unescaped = text.replace("\\\"", "\"").replace("\\\\", "\\");
    for start in ["[ ! -x '", "if [ -x '", "sh -c '"] {
        for (at, _) in unescaped.match_indices(start) {
            let rest = &unescaped[at..];
            let end = rest.find(['"', '\n']).unwrap_or(rest.len());
            let command = rest[..end].trim_end_matches('\r');
            if Managed::read(command).is_some() {
                found.push(command.to_string());
            }
        }
    }
    found
}

#[test]
fn every_registered_command_works_and_is_harmless_without_the_program() {
    for recipe in &RECIPES {
        if matches!(recipe.shape, Shape::Plugin(_)) {
            continue;
        }
        let world = World::new();
        let file = file_of(&world, recipe);
        if matches!(recipe.files, Files::Each(..)) {
            write(&file, "{}");
        }
        fine(&world.agents(&["install", "--agent", recipe.agent]));
        let text = fs::read_to_string(&file).unwrap();
        let commands = commands(&text);
        assert_eq!(commands.len(), recipe.events.len(), "{}: {text}", recipe.agent);
        let reply = harness::find(recipe.row).unwrap().reply;
        let run = |command: &str| {
            let mut shell = Command::new("sh");
            world.bare(&mut shell);
            shell.args(["-c", command]);
            finish(shell, br#"{"session_id":"s","cwd":"/tmp"}"#)
        };
        for command in &commands {
            let ran = run(command);
            assert_eq!((ran.code, ran.out.trim(), &*ran.err), (Some(0), reply, ""), "{command}");
        }
        fs::remove_file(world.path("bin/tongs-hook")).unwrap();
        for command in &commands {
            let ran = run(command);
            assert_eq!((ran.code, ran.out.trim(), &*ran.err), (Some(0), reply, ""), "{command}");
        }
    }
}

#[test]
fn links_stay_and_what_they_lead_to_is_changed() {
    let install = |world: &World| world.agents(&["install", "--agent", "claude"]);
    for way in ["relative", "absolute", "chained", "directory", "dangling"] {
        let world = World::new();
        let dots = world.path("home/dots");
        let (link, target) = (world.path("home/.claude/settings.json"), dots.join("claude.json"));
        fs::create_dir_all(&dots).unwrap();
        if way == "directory" {
            symlink("dots", world.path("home/.claude")).unwrap();
            fs::write(dots.join("settings.json"), "{\"a\": 1}\n").unwrap();
        } else {
            fs::create_dir_all(world.path("home/.claude")).unwrap();
            match way {
                "relative" => symlink("../dots/claude.json", &link).unwrap(),
                "absolute" => symlink(&target, &link).unwrap(),
                "dangling" => symlink("../dots/claude.json", &link).unwrap(),
                _ => {
                    symlink("../middle", &link).unwrap();
                    symlink("dots/claude.json", world.path("home/middle")).unwrap();
                }
            }
            if way != "dangling" {
                fs::write(&target, "{\"a\": 1}\n").unwrap();
            }
        }
        let target = if way == "directory" { dots.join("settings.json") } else { target };
        let before = fs::read(&target).ok();
        fine(&install(&world));
        assert!(way == "directory" || link.is_symlink(), "{way}");
        assert!(!target.is_symlink(), "{way}");
        assert!(fs::read_to_string(&target).unwrap().contains("tongs-hook"), "{way}");
        fine(&world.agents(&["uninstall", "--agent", "claude"]));
        assert_eq!(fs::read(&target).ok(), before, "{way}");
        assert!(way == "directory" || link.is_symlink(), "{way}");
    }
    let world = World::new();
    fs::create_dir_all(world.path("home/.claude")).unwrap();
    symlink("settings.json", world.path("home/.claude/settings.json")).unwrap();
    let ran = install(&world);
    assert_eq!(ran.code, Some(74), "{ran:?}");
}

#[test]
fn a_file_that_does_not_parse_stays_and_the_place_is_named() {
    let broken: &[(&str, &str, &str)] = &[
        ("claude", "{\"a\": 1,, }", "line 1, column 9"),
        ("claude", "{\n  \"hooks\": {\n", "line 3, column 1"),
        ("claude", "{\"a\": 1} x", "line 1, column 10"),
        ("claude", "{\"a\": 1, \"a\": 2}", "line 1, column 10"),
        ("codex", "{\"hooks\": {}, // no\n}", "line 1, column 15"),
        ("codex", "{\"hooks\": {},}", "line 1, column 14"),
        ("claude", "[1]", "top level is not an object"),
        ("claude", "{\"hooks\": []}", "'hooks' is not an object"),
        ("claude", "{\"hooks\": {\"Stop\": {}}}", "'hooks.Stop' is not a list"),
        ("kiro-v3", "{\"hooks\": {}}", "'hooks' is not a list"),
        ("kimi-code", "a = \n", "line 1, column"),
        ("kimi-code", "a = 1\na = 2\n", "line 2, column 1"),
        ("kimi-code", "hooks = [{event = \"Stop\", command = \"x\"}]\n", "[[hooks]]"),
        ("hermes", "hooks:\n\t- a\n", "line 2, column 1"),
        ("hermes", "hooks: [a]\n", "hooks"),
    ];
    for (agent, text, place) in broken {
        let recipe = RECIPES.iter().find(|r| r.agent == *agent).unwrap();
        let world = World::new();
        let file = file_of(&world, recipe);
        write(&file, text);
        let inode = fs::metadata(&file).unwrap().ino();
        for command in ["install", "uninstall"] {
            let ran = world.agents(&[command, "--agent", agent]);
            assert_eq!(ran.code, Some(65), "{text:?}: {ran:?}");
            assert!(ran.out.contains(place), "{text:?}: {ran:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), *text);
            assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
        }
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "{text:?}");
    }
}

#[test]
fn files_that_are_no_settings_are_left_alone() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "\u{feff}");
    fs::write(&file, b"{\"a\": \"\xff\"}").unwrap();
    assert_eq!(world.agents(&["install", "--agent", "claude"]).code, Some(65));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(world.agents(&["install", "--agent", "claude"]).code, Some(77));
    fs::remove_dir(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(world.agents(&["install", "--agent", "claude"]).code, Some(77));
    fs::remove_file(&file).unwrap();
    fs::write(&file, "{}").unwrap();
    fs::hard_link(&file, world.path("home/other")).unwrap();
    let ran = world.agents(&["install", "--agent", "claude"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    // A plugin's name that somebody else has.
    let plugin = world.path("home/.config/opencode/plugins/tongs.js");
    write(&plugin, "export const mine = 1\n");
    let ran = world.agents(&["install", "--agent", "opencode"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    fine(&world.agents(&["uninstall", "--agent", "opencode"]));
    assert_eq!(fs::read_to_string(&plugin).unwrap(), "export const mine = 1\n");
}

#[test]
fn read_only_settings_get_a_snippet_to_paste() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{\"a\": 1}\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = world.agents(&["install", "--agent", "claude"]);
    assert_eq!(ran.code, Some(74), "{ran:?}");
    assert!(ran.out.contains("settings.json: it is read-only"), "{ran:?}");
    let snippet = &ran.out[ran.out.find("\n{").unwrap()..];
    let snippet: Value = serde_json::from_str(snippet).unwrap();
    assert_eq!(snippet["hooks"].as_object().unwrap().len(), 18);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}\n");
    let json = world.agents(&["install", "--agent", "claude", "--json"]);
    assert_eq!(json.code, Some(74));
    assert_schema(&world, "install", &json.json());
    assert!(json.json()["files"][0]["snippet"].as_str().unwrap().contains("tongs-hook"));
}

#[test]
fn what_only_looks_like_ours_is_not_touched() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    let hook = world.path("bin/tongs-hook");
    let hook = hook.to_str().unwrap();
    let ours = format!("[ ! -x '{hook}' ] || exec '{hook}' claude Stop");
    let alike = [
        format!("{hook} claude Stop"),
        format!("'{hook}' claude Stop"),
        "tongs-hook claude Stop".to_string(),
        "/opt/my-tongs-hook claude Stop".to_string(),
        "[ ! -x '/opt/my-tongs-hook' ] || exec '/opt/my-tongs-hook' claude Stop".to_string(),
        format!("{ours} # mine"),
        format!("echo; {ours}"),
        "echo tongs-hook".to_string(),
    ];
    let entries: Vec<Value> = alike
        .iter()
        .map(|command| serde_json::json!({"hooks": [{"type": "command", "command": command}]}))
        .collect();
    let text = serde_json::json!({"hooks": {"Stop": entries}}).to_string();
    write(&file, &text);
    fine(&world.agents(&["install", "--agent", "claude"]));
    let installed = fs::read_to_string(&file).unwrap();
    for command in &alike {
        assert!(installed.contains(&serde_json::to_string(command).unwrap()), "{command}");
    }
    fs::remove_dir_all(world.state().join("backups")).unwrap();
    fine(&world.agents(&["uninstall", "--all"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_moved_program_is_set_right_where_it_stands() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    fs::create_dir(world.path("old")).unwrap();
    symlink(world.path("bin/tongs-hook"), world.path("old/tongs-hook")).unwrap();
    let old = world.path("old/tongs-hook");
    fine(&world.agents(&["install", "--agent", "claude", "--hook-path", old.to_str().unwrap()]));
    let first = fs::read_to_string(&file).unwrap();
    fs::remove_file(&old).unwrap();
    let check = world.agents(&["install", "--check"]);
    assert_eq!(check.code, Some(1));
    assert!(check.out.contains("moved") && check.out.contains("no program there"), "{check:?}");
    let doctor = world.agents(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.out.contains("fix: tongs-agents install --agent claude"), "{doctor:?}");
    fine(&world.agents(&["install", "--agent", "claude"]));
    let new = world.path("bin/tongs-hook");
    let want = first.replace(old.to_str().unwrap(), new.to_str().unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), want);
    fine(&world.agents(&["install", "--check"]));
}

/// The same of every harness, with a user's own settings around the hooks.
#[test]
fn a_moved_program_is_set_right_in_files_of_every_kind() {
    for recipe in &RECIPES {
        let user = users(recipe).into_iter().nth(2).unwrap_or_default();
        for user in [String::new(), user] {
            let world = World::new();
            let file = file_of(&world, recipe);
            if matches!(recipe.files, Files::Each(..)) || !user.is_empty() {
                write(&file, if user.is_empty() { "{}" } else { &user });
            }
            let old = world.path("bin/old/tongs-hook");
            fs::create_dir(world.path("bin/old")).unwrap();
            symlink(world.path("bin/tongs-hook"), &old).unwrap();
            let old = old.to_str().unwrap();
            fine(&world.agents(&["install", "--agent", recipe.agent, "--hook-path", old]));
            let first = fs::read_to_string(&file).unwrap();
            let check = world.agents(&["install", "--check", "--agent", recipe.agent]);
            assert!(check.out.contains("moved"), "{}: {check:?}", recipe.agent);
            fine(&world.agents(&["install", "--agent", recipe.agent]));
            let new = world.path("bin/tongs-hook");
            let want = first.replace(old, new.to_str().unwrap());
            assert_eq!(fs::read_to_string(&file).unwrap(), want, "{}", recipe.agent);
        }
    }
}

#[test]
fn entries_too_many_go_and_changed_ones_are_set_right() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    fine(&world.agents(&["install", "--agent", "claude"]));
    let right = fs::read_to_string(&file).unwrap();
    let mut value: Value = serde_json::from_str(&right).unwrap();
    let stop = value["hooks"]["Stop"][0].clone();
    value["hooks"]["Stop"].as_array_mut().unwrap().push(stop.clone());
    let mut narrow = stop.clone();
    narrow["matcher"] = "Bash".into();
    value["hooks"]["PreToolUse"] = serde_json::json!([narrow]);
    value["hooks"]["WorktreeCreate"] = serde_json::json!([stop]);
    value["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] = 600.into();
    fs::write(&file, value.to_string()).unwrap();
    assert_eq!(world.agents(&["install", "--check"]).code, Some(1));
    fine(&world.agents(&["install", "--agent", "claude"]));
    let healed: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(healed, serde_json::from_str::<Value>(&right).unwrap());
    fine(&world.agents(&["install", "--check"]));
}

#[test]
fn installers_at_the_same_time_take_turns() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{\"a\": 1}\n");
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = world.command("tongs-agents");
            command.args(["install", "--agent", "claude", "--agent", "gemini"]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(commands(&text).len(), 18);
    fine(&world.agents(&["uninstall", "--all"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}\n");
}

/// Another program writes the file between the rename and the look at it.
#[test]
fn a_harness_that_writes_its_settings_meanwhile_loses_nothing() {
    let test = "a_harness_that_writes_its_settings_meanwhile";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{\"a\": 1}\n");
    let mut strace = Command::new("strace");
    world.bare(&mut strace);
    let child = strace
        .args(["-qq", "-o", "/dev/null", "-e", "trace=fsync"])
        .args(["-e", "inject=fsync:delay_enter=400000:when=5"])
        .arg(world.path("bin/tongs-agents"))
        .args(["install", "--agent", "claude"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The new file stands, and the program waits before it looks again.
    eventually("the new file", || {
        fs::read_to_string(&file).ok().filter(|text| text.contains("tongs-hook"))
    });
    fs::write(world.path("home/.claude/new"), "{\"a\": 1, \"b\": 2}\n").unwrap();
    fs::rename(world.path("home/.claude/new"), &file).unwrap();
    let mut child = child;
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"b\": 2"), "{text}");
    assert_eq!(commands(&text).len(), 18, "{text}");
}

/// A program that counts in its settings every 10 ms and keeps what it does not
/// know, until `stop` is there. It ends with 3 when a count of its own is not
/// found again. By `way` it writes another file and renames it, or empties this
/// one; what has changed since it was read it reads anew.
const COUNTER: &str = r#"
import json, os, sys, time
file, way, stop, started = sys.argv[1:]
count = 0
def read():
    with open(file) as f:
        return f.read()
while not os.path.exists(stop):
    text = read()
    data = json.loads(text)
    if data["n"] != count:
        sys.exit(3)
    data["n"] = count + 1
    new = json.dumps(data, indent=2) + "\n"
    if way == "rename":
        with open(file + ".new", "w") as f:
            f.write(new)
        if read() != text:
            continue
        os.replace(file + ".new", file)
    else:
        if read() != text:
            continue
        fd = os.open(file, os.O_WRONLY | os.O_TRUNC)
        os.write(fd, new.encode())
        os.close(fd)
    count += 1
    open(started, "w").close()
    time.sleep(0.01)
sys.exit(0 if json.loads(read())["n"] == count else 3)
"#;

#[test]
fn a_program_that_writes_all_the_time_loses_nothing_and_leaves_a_turn() {
    if !has_tool("python3", "a_program_that_writes_all_the_time") {
        return;
    }
    for way in ["rename", "empty"] {
        let world = World::new();
        let file = world.path("home/.claude/settings.json");
        write(&file, "{\n  \"n\": 0\n}\n");
        let (stop, started) = (world.path("stop"), world.path("started"));
        let mut command = Command::new("python3");
        command.args(["-c", COUNTER]).arg(&file).arg(way).arg(&stop).arg(&started);
        let mut counter = command.spawn().unwrap();
        for _ in 0..5 {
            let _ = fs::remove_file(&started);
            eventually("a count", || started.exists().then_some(()));
            let ran = world.agents(&["install", "--agent", "claude", "--json"]);
            fine(&ran);
            assert_eq!(ran.json()["files"][0]["result"], "installed", "{way}: {ran:?}");
            // A count that was under way for long may have taken them out again.
            eventually("the hooks", || {
                let ran = world.agents(&["install", "--agent", "claude"]);
                fine(&ran);
                ran.out.contains("unchanged").then_some(())
            });
            let ran = world.agents(&["uninstall", "--agent", "claude", "--json"]);
            fine(&ran);
            assert!(counter.try_wait().unwrap().is_none(), "{way}: a count was lost");
        }
        fs::write(&stop, "").unwrap();
        assert_eq!(counter.wait().unwrap().code(), Some(0), "{way}: a count was lost");
        fine(&world.agents(&["uninstall", "--agent", "claude"]));
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("tongs-hook"), "{text}");
        let left = |name: &str| name.starts_with(".tongs-");
        let names = fs::read_dir(file.parent().unwrap()).unwrap();
        assert!(!names.into_iter().any(|e| left(e.unwrap().file_name().to_str().unwrap())));
    }
}

#[test]
fn a_program_that_writes_over_everything_is_left_alone_in_the_end() {
    let test = "a_program_that_writes_over_everything";
    if !has_tool("python3", test) || !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{\"n\": 0}\n");
    let (stop, started) = (world.path("stop"), world.path("started"));
    let script = "import os, sys\nfile, stop, started = sys.argv[1:]\nn = 0\n\
        while not os.path.exists(stop):\n    n += 1\n\
        \x20   with open(file + '.new', 'w') as f:\n        f.write('{\"n\": %d}\\n' % n)\n\
        \x20   os.replace(file + '.new', file)\n    open(started, 'w').close()\n";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(&file).arg(&stop).arg(&started);
    let mut writer = command.spawn().unwrap();
    eventually("a count", || started.exists().then_some(()));
    // On a slow disk.
    let mut strace = Command::new("strace");
    world.bare(&mut strace);
    strace.args(["-qq", "-o", "/dev/null", "-e", "trace=fsync"]);
    strace.args(["-e", "inject=fsync:delay_enter=20000"]);
    strace.arg(world.path("bin/tongs-agents")).args(["install", "--agent", "claude"]);
    let ran = finish(strace, b"");
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.out.contains("another program keeps changing it"), "{ran:?}");
    fs::write(&stop, "").unwrap();
    assert_eq!(writer.wait().unwrap().code(), Some(0));
    assert!(!fs::read_to_string(&file).unwrap().contains("tongs-hook"));
}

/// A program empties a file and takes its time to fill it again.
#[test]
fn a_file_that_is_about_to_be_written_is_not_taken_for_an_empty_one() {
    let test = "a_file_that_is_about_to_be_written";
    if !has_tool("strace", test) {
        return;
    }
    for half in ["", "{\"a\": 1, "] {
        let world = World::new();
        let file = world.path("home/.claude/settings.json");
        write(&file, half);
        let trace = world.path("trace");
        let mut strace = Command::new("strace");
        world.bare(&mut strace);
        // The pause before the second look is long enough to be seen.
        strace.args(["-qq", "-o"]).arg(&trace).args(["-e", "trace=poll,ppoll"]);
        strace.args(["-e", "inject=poll,ppoll:delay_enter=400000:when=1"]);
        strace.arg(world.path("bin/tongs-agents")).args(["install", "--agent", "claude"]);
        let mut child = strace.stdout(std::process::Stdio::null()).spawn().unwrap();
        eventually("the pause", || {
            fs::read_to_string(&trace).ok().filter(|text| text.contains("poll("))
        });
        fs::write(&file, "{\"a\": 1, \"b\": 2}\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{half}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"b\": 2"), "{text}");
        assert_eq!(commands(&text).len(), 18, "{text}");
    }
}

#[test]
fn the_variables_that_move_a_harness_are_honoured() {
    let moves = [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/tongs.json"),
        ("cursor", "CURSOR_CONFIG_DIR", "hooks.json"),
        ("opencode", "OPENCODE_CONFIG_DIR", "plugins/tongs.js"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/tongs.js"),
        ("pi", "PI_CODING_AGENT_DIR", "extensions/tongs.ts"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("kimi-code", "KIMI_CODE_HOME", "config.toml"),
        ("grok", "GROK_HOME", "hooks/tongs.json"),
        ("antigravity", "ANTIGRAVITY_CLI_CONFIG_DIR", "hooks.json"),
        ("hermes", "HERMES_HOME", "config.yaml"),
        ("devin", "XDG_CONFIG_HOME", "devin/config.json"),
        ("crush", "XDG_CONFIG_HOME", "crush/crush.json"),
        ("amp", "XDG_CONFIG_HOME", "amp/plugins/tongs.ts"),
    ];
    for (agent, var, file) in [
        ("cline", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml"),
        ("kimi-code", "KIMI_CODE_HOME", "mcp.json"),
        ("grok", "GROK_HOME", "config.toml"),
    ] {
        let world = World::new();
        let mut command = world.command("tongs-agents");
        command.env(var, world.path("else")).args(["install", "--agent", agent, "--mcp"]);
        fine(&finish(command, b""));
        let text = fs::read_to_string(world.path("else").join(file)).unwrap();
        assert!(text.contains("tongs-agents"), "{agent}: {text}");
    }
    for (agent, var, file) in moves {
        let world = World::new();
        let run = |args: &[&str]| {
            let mut command = world.command("tongs-agents");
            command.env(var, world.path("else")).args(args);
            finish(command, b"")
        };
        fine(&run(&["install", "--agent", agent]));
        assert!(world.path("else").join(file).exists(), "{agent} {var}");
        assert_eq!(settings(&world).len(), 0, "{agent} {var}");
        // A home that is named counts alone.
        let home = world.path("other");
        fs::create_dir(&home).unwrap();
        fine(&run(&["install", "--agent", agent, "--home", home.to_str().unwrap()]));
        assert!(!tree(&home).is_empty());
        fine(&run(&["uninstall", "--agent", agent]));
        assert!(!world.path("else").join(file).exists(), "{agent} {var}");
    }
}

#[test]
fn a_dry_run_prints_the_change_and_makes_none() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{\n  \"a\": 1 // one\n}\n");
    let ran = world.agents(&["install", "--dry-run", "--agent", "claude"]);
    fine(&ran);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"a\": 1 // one\n}\n");
    assert!(!world.state().exists());
    if has_tool("patch", "a_dry_run_prints_the_change") {
        let mut patch = Command::new("patch");
        patch.args(["-s", "-o", "-"]).arg(&file);
        let patched = finish(patch, ran.out.as_bytes());
        assert_eq!(patched.code, Some(0), "{patched:?}");
        fine(&world.agents(&["install", "--agent", "claude"]));
        assert_eq!(patched.out, fs::read_to_string(&file).unwrap());
        let ran = world.agents(&["uninstall", "--dry-run", "--agent", "claude"]);
        fine(&ran);
        let mut patch = Command::new("patch");
        patch.args(["-s", "-o", "-"]).arg(&file);
        assert_eq!(finish(patch, ran.out.as_bytes()).out, "{\n  \"a\": 1 // one\n}\n");
    }
}

#[test]
fn codex_is_trusted_only_when_that_is_asked_for() {
    let world = World::new();
    let config = world.path("home/.codex/config.toml");
    write(&config, "# mine\nmodel = \"o\"\n");
    let ran = world.agents(&["install", "--agent", "codex"]);
    fine(&ran);
    assert!(ran.err.contains("/hooks"), "{ran:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\nmodel = \"o\"\n");
    let check = world.agents(&["install", "--check"]);
    assert!(check.code == Some(1) && check.out.contains("untrusted"), "{check:?}");
    fine(&world.agents(&["install", "--agent", "codex", "--trust-codex"]));
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.starts_with("# mine\nmodel = \"o\"\n"), "{text}");
    // The hash is of the hook as sorted compact JSON.
    let (file, hook) = (world.path("home/.codex/hooks.json"), world.path("bin/tongs-hook"));
    let hook = hook.display();
    let described = format!(
        r#"{{"event_name":"session_start","hooks":[{{"async":false,"command":"[ ! -x '{hook}' ] || exec '{hook}' codex SessionStart","timeout":3,"type":"command"}}]}}"#
    );
    let sum = finish(Command::new("sha256sum"), described.as_bytes()).out;
    let hash = sum.split(' ').next().unwrap();
    let key = format!("[hooks.state.\"{}:session_start:0:0\"]", file.display());
    assert!(text.contains(&format!("{key}\ntrusted_hash = \"sha256:{hash}\"\n")), "{text}");
    fine(&world.agents(&["install", "--check"]));
    let before = (fs::read(&file).unwrap(), fs::read(&config).unwrap());
    fine(&world.agents(&["install", "--agent", "codex", "--trust-codex"]));
    assert_eq!((fs::read(&file).unwrap(), fs::read(&config).unwrap()), before);
    // What the user turned off stays off.
    let off = text.replace(&format!("{key}\n"), &format!("{key}\nenabled = false\n"));
    fs::write(&config, &off).unwrap();
    fine(&world.agents(&["install", "--agent", "codex", "--trust-codex"]));
    assert_eq!(fs::read_to_string(&config).unwrap(), off);
    let check = world.agents(&["install", "--check"]);
    assert!(check.code == Some(1) && check.out.contains("disabled"), "{check:?}");
    fs::write(&config, &text).unwrap();
    fine(&world.agents(&["uninstall", "--agent", "codex"]));
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\nmodel = \"o\"\n");
    assert!(!file.exists());
}

#[test]
fn hooks_that_a_setting_turns_off_are_called_disabled() {
    let switches = [
        ("claude", "home/.claude/settings.json", "{\"disableAllHooks\": true}"),
        ("gemini", "home/.gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"tongs\"]}}"),
        ("qwen", "home/.qwen/settings.json", "{\"disableAllHooks\": true}"),
        ("copilot", "home/.copilot/settings.json", "{\"disableAllHooks\": true}"),
        ("antigravity", "home/.gemini/config/hooks.json", "{\"tongs\": {\"enabled\": false}}"),
        ("codex", "home/.codex/config.toml", "[features]\nhooks = false\n"),
    ];
    for (agent, file, text) in switches {
        let world = World::new();
        write(&world.path(file), text);
        fine(&world.agents(&["install", "--agent", agent]));
        let check = world.agents(&["install", "--check", "--agent", agent]);
        assert_eq!(check.code, Some(1), "{check:?}");
        assert!(check.out.contains("disabled"), "{check:?}");
    }
}

#[test]
fn the_list_has_every_harness_and_the_profiles_that_are_there() {
    let world = World::new();
    write(&world.path("home/.claude-work/settings.json"), "{}");
    fs::create_dir_all(world.path("home/.claude-empty")).unwrap();
    fs::create_dir_all(world.path("home/.codex")).unwrap();
    let ran = world.agents(&["install", "--list", "--json"]);
    fine(&ran);
    assert_schema(&world, "install-list", &ran.json());
    let list = ran.json();
    let agents = list["agents"].as_array().unwrap();
    for row in harness::ROWS {
        assert!(agents.iter().any(|a| a["harness"] == row.id), "{}", row.id);
    }
    for agent in agents {
        let reason = agent["reason"].as_str().unwrap();
        assert_eq!(agent["path"] == "", !reason.is_empty(), "{agent}");
        assert_eq!(agent["found"], agent["agent"] == "codex", "{agent}");
    }
    let claude = agents.iter().find(|a| a["agent"] == "claude").unwrap();
    let work = world.path("home/.claude-work");
    assert_eq!(claude["profiles"], serde_json::json!([work.to_str().unwrap()]));
    let table = world.agents(&["install", "--list"]);
    assert!(table.out.contains(".claude-work (with CLAUDE_CONFIG_DIR)"), "{table:?}");
}

#[test]
fn a_path_that_does_not_stay_is_refused() {
    let world = World::new();
    for (dir, cargo) in
        [("x/Cellar/tongs/0.1/bin", false), ("y/build", true), ("z/target/release", false)]
    {
        let dir = world.path(dir);
        fs::create_dir_all(&dir).unwrap();
        if cargo {
            fs::write(dir.parent().unwrap().join("Cargo.toml"), "").unwrap();
        }
        for name in ["tongs-agents", "tongs-hook"] {
            symlink(crate::world::tongs(), dir.join(name)).unwrap();
        }
        let run = |more: &[&str]| {
            let mut command = Command::new(dir.join("tongs-agents"));
            world.bare(&mut command);
            command.args(["install", "--agent", "claude"]).args(more);
            finish(command, b"")
        };
        let ran = run(&[]);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(ran.err.contains("--hook-path"), "{ran:?}");
        fine(&run(&["--hook-path", world.path("bin/tongs-hook").to_str().unwrap()]));
    }
    for (path, code) in [("tongs-hook", 64), ("/bin/sh", 64), ("/no/such/tongs-hook", 64)] {
        let ran = world.agents(&["install", "--agent", "claude", "--hook-path", path]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
    // By whichever name the program was called.
    for args in [&["tongs", "agents"][..], &["tongs-agents"]] {
        let world = World::new();
        let mut command = Command::new(args[0]);
        world.bare(&mut command);
        command.env("PATH", format!("{}:/usr/bin:/bin", world.path("bin").display()));
        command.args(&args[1..]).args(["install", "--agent", "claude"]);
        fine(&finish(command, b""));
        let text = fs::read_to_string(world.path("home/.claude/settings.json")).unwrap();
        assert!(text.contains(world.path("bin/tongs-hook").to_str().unwrap()), "{text}");
    }
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    let world = World::new();
    for args in [
        &["install"][..],
        &["install", "--agent", "nobody"],
        &["install", "--agent", "other"],
        &["install", "--all", "--agent", "claude"],
        &["install", "--check", "--dry-run"],
        &["install", "--agent", "claude", "--home", "relative"],
        &["uninstall"],
        &["uninstall", "--all", "--agent", "claude"],
        &["uninstall", "--agent", "claude", "--purge"],
    ] {
        let ran = world.agents(args);
        assert_eq!(ran.code, Some(64), "{args:?} {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
    assert_eq!(tree(&world.path("home")).len(), 0);
}

#[test]
fn what_install_wrote_shows_a_session_and_purge_leaves_nothing() {
    let world = World::new();
    fine(&world.agents(&["install", "--agent", "claude"]));
    let text = fs::read_to_string(world.path("home/.claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let mut agent = world.harness("claude");
    for (event, more) in [
        ("SessionStart", r#","source":"startup""#),
        ("UserPromptSubmit", ""),
        ("PermissionRequest", r#","tool_name":"Bash""#),
    ] {
        let command = settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        fs::write(world.path("payload.json"), claude("s", more)).unwrap();
        let file = world.path("payload.json");
        agent.shell(&format!("cat '{}' | {{ {command}; }}", file.display())).silent();
    }
    let session = world.session("s").unwrap();
    assert_eq!(
        (&session["status"], &session["pid"]),
        (&"waiting".into(), &agent.pid().to_string().into())
    );
    let doctor = world.agents(&["doctor", "--json"]);
    assert_schema(&world, "doctor", &doctor.json());
    let uninstall = world.agents(&["uninstall", "--all", "--purge", "--json"]);
    fine(&uninstall);
    assert!(!world.state().exists());
    assert_eq!(tree(&world.path("home")).len(), 0);
}

#[test]
fn the_server_is_registered_beside_the_hooks_and_taken_out_again() {
    let with: Vec<(&Recipe, &Servers)> =
        RECIPES.iter().filter_map(|r| Some((r, r.servers.as_ref().ok()?))).collect();
    assert!(with.len() >= 21);
    for (recipe, servers) in with {
        let users = match &servers.shape {
            Registry::Json(..) => &[
                "",
                "{\n  // mine\n  \"a\": 1,\n  \"mcpServers\": {\"b\": {\"command\": \"x\"}}\n}\n",
                "{\n  // mine\n  \"mcpServers\": {},\n  \"mcp\": {}\n}\n",
            ][..],
            Registry::Toml => &["", "# mine\nmodel = 'x'\n\n[mcp_servers.b]\ncommand = 'x'\n"],
            Registry::Yaml(below, ..) => &[
                "",
                "# mine\na: 1\n",
                &format!("# mine\n{below}:\n    b:\n        command: x # one\nz: [1, 2]\n"),
                &format!("# mine\n{below}: {{}}\r\nz: 1"),
                &format!("{below}: # mine\n"),
            ],
        };
        for text in users {
            let world = World::new();
            if let Files::Each(..) = recipe.files {
                write(&file_of(&world, recipe), "{}\n");
            }
            let empty = settings(&world);
            let check = world.agents(&["install", "--check", "--mcp", "--agent", recipe.agent]);
            assert_eq!(check.code, Some(1), "{check:?}");
            // Where the server goes, and what a user may have there.
            fine(&world.agents(&["install", "--agent", recipe.agent, "--mcp"]));
            let ran = world.agents(&["install", "--agent", recipe.agent, "--mcp", "--json"]);
            fine(&ran);
            let files = ran.json()["files"].as_array().unwrap().clone();
            assert!(files.iter().all(|f| f["result"] == "unchanged"), "{files:?}");
            let file = PathBuf::from(files.last().unwrap()["path"].as_str().unwrap());
            let agents = world.path("bin/tongs-agents");
            let held = fs::read_to_string(&file).unwrap();
            assert!(held.contains(agents.to_str().unwrap()), "{held}");
            let check = ["install", "--check", "--mcp", "--json", "--agent", recipe.agent];
            let checked = world.agents(&check);
            assert_schema(&world, "install", &checked.json());
            let standing = |ran: &Ran| {
                ran.json()["files"].as_array().unwrap().last().unwrap()["result"].clone()
            };
            assert_eq!(standing(&checked), "registered", "{checked:?}");
            // A program that has moved is set right, in its place.
            let moved = held.replace(agents.to_str().unwrap(), "/old/tongs-agents");
            fs::write(&file, &moved).unwrap();
            assert_eq!(standing(&world.agents(&check)), "moved", "{}", recipe.agent);
            fine(&world.agents(&["install", "--agent", recipe.agent, "--mcp"]));
            assert_eq!(fs::read_to_string(&file).unwrap(), held, "{}", recipe.agent);
            fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
            assert_eq!(settings(&world), empty, "{}", recipe.agent);
            if text.is_empty()
                || matches!(&recipe.shape, Shape::Json(j) if j.dialect == Dialect::Strict && file_of(&world, recipe) == file)
            {
                continue;
            }
            write(&file, text);
            let before = settings(&world);
            let ran = world.agents(&["install", "--agent", recipe.agent, "--mcp", "--json"]);
            fine(&ran);
            assert_schema(&world, "install", &ran.json());
            assert!(fs::read_to_string(&file).unwrap().contains(" mine"), "{}", recipe.agent);
            let once = settings(&world);
            fine(&world.agents(&["install", "--agent", recipe.agent, "--mcp"]));
            assert_eq!(settings(&world), once, "{}", recipe.agent);
            fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
            assert_eq!(settings(&world), before, "{}", recipe.agent);
            // What else the user writes meanwhile stays.
            let ended = text.ends_with('\n');
            if let (true, Registry::Yaml(below, ..)) = (ended, &servers.shape) {
                fine(&world.agents(&["install", "--agent", recipe.agent, "--mcp"]));
                let with = fs::read_to_string(&file).unwrap();
                fs::write(&file, format!("{with}new: 2\n")).unwrap();
                fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
                let left = fs::read_to_string(&file).unwrap();
                assert_eq!(left, format!("{text}new: 2\n"), "{below}");
            }
        }
    }
}

#[test]
fn a_harness_without_servers_has_its_reason() {
    let world = World::new();
    for recipe in RECIPES.iter().filter(|r| r.servers.is_err()) {
        let why = recipe.servers.as_ref().err().unwrap();
        let ran = world.agents(&["install", "--agent", recipe.agent, "--mcp"]);
        fine(&ran);
        assert!(ran.err.contains(&format!("{}: {why}\n", recipe.agent)), "{ran:?}");
        let check = world.agents(&["install", "--check", "--mcp", "--agent", recipe.agent]);
        fine(&check);
    }
    let names: Vec<&str> = RECIPES.iter().filter(|r| r.servers.is_err()).map(|r| r.agent).collect();
    assert_eq!(names, ["pi"]);
}

#[test]
fn servers_that_are_written_in_brackets_or_by_reference_are_left_alone() {
    for text in [
        "mcp_servers: {b: {command: x}}\n",
        "mcp_servers: &all\n  b:\n    command: x\n",
        "mcp_servers:\n  <<: *all\n",
        "mcp_servers: none\n",
        "mcp_servers:\n  - b\n",
        "mcp_servers:\n\tb: 1\n",
    ] {
        let world = World::new();
        let file = world.path("home/.hermes/config.yaml");
        write(&file, text);
        let ran = world.agents(&["install", "--agent", "hermes", "--mcp"]);
        assert_eq!(ran.code, Some(65), "{text}: {ran:?}");
        assert!(!fs::read_to_string(&file).unwrap().contains("tongs-agents"), "{text}");
        assert!(fs::read_to_string(&file).unwrap().contains(text), "{text}");
    }
}

#[test]
fn a_server_of_somebody_else_by_our_name_stays() {
    for (agent, file, text) in [
        (
            "claude",
            "home/.claude.json",
            "{\"mcpServers\": {\"tongs\": {\"command\": \"mine\", \"args\": [\"mcp\"]}}}",
        ),
        (
            "opencode",
            "home/.config/opencode/opencode.json",
            "{\"mcp\": {\"tongs\": {\"type\": \"remote\", \"url\": \"x\"}}}",
        ),
        ("codex", "home/.codex/config.toml", "[mcp_servers.tongs]\ncommand = \"mine\"\n"),
        ("codex", "home/.codex/config.toml", "mcp_servers = {tongs = {command = \"mine\"}}\n"),
        ("grok", "home/.grok/config.toml", "[mcp_servers.tongs]\ncommand = \"mine\"\n"),
        ("hermes", "home/.hermes/config.yaml", "mcp_servers:\n  tongs:\n    command: mine\n"),
        ("hermes", "home/.hermes/config.yaml", "mcp_servers:\n  tongs:\n"),
        (
            "goose",
            "home/.config/goose/config.yaml",
            "extensions:\n  tongs: {type: stdio, cmd: /x/tongs-agents, args: [mcp, x]}\n",
        ),
    ] {
        let world = World::new();
        write(&world.path(file), text);
        let ran = world.agents(&["install", "--agent", agent, "--mcp"]);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        fine(&world.agents(&["uninstall", "--agent", agent]));
        assert_eq!(fs::read_to_string(world.path(file)).unwrap(), text);
    }
    // One of ours that moved is set right.
    let world = World::new();
    let file = world.path("home/.codex/config.toml");
    write(
        &file,
        "[mcp_servers.tongs]\ncommand = \"/old/tongs-agents\"\nargs = [\"mcp\"]\nenabled = false\n",
    );
    fine(&world.agents(&["install", "--agent", "codex", "--mcp"]));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(world.path("bin/tongs-agents").to_str().unwrap()), "{text}");
    assert!(text.contains("enabled = false"), "{text}");
    // The rest of an entry in YAML as well.
    let file = world.path("home/.hermes/config.yaml");
    let text = "mcp_servers:\n  tongs:\n    command: \"/old/tongs-agents\" # mine\n    args:\n      - mcp\n    timeout: 9\n";
    write(&file, text);
    fine(&world.agents(&["install", "--agent", "hermes", "--mcp"]));
    let held = fs::read_to_string(&file).unwrap();
    let agents = world.path("bin/tongs-agents").display().to_string();
    assert!(held.starts_with(&text.replace("\"/old/tongs-agents\"", &agents)), "{held}");
}

/// `make install` brings a file for managed settings for every harness.
#[test]
fn ready_made_files_are_installed_for_every_harness() {
    let test = "ready_made_files_are_installed_for_every_harness";
    if crate::world::static_tongs(test).is_none() || !has_tool("make", test) {
        return;
    }
    let world = World::new();
    let mut make = Command::new("make");
    make.current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-s", "install", "prefix=/usr"])
        .arg(format!("DESTDIR={}", world.path("a b").display()));
    fine(&finish(make, b""));
    let dir = world.path("a b/usr/share/tongs/hooks");
    let names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), RECIPES.len(), "{names:?}");
    for recipe in &RECIPES {
        let name = names.iter().find(|n| n.split('.').next() == Some(recipe.agent)).unwrap();
        let args =
            ["install", "--print", "--agent", recipe.agent, "--hook-path", "/usr/bin/tongs-hook"];
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), world.agents(&args).out);
    }
}

#[test]
fn other_profiles_are_cleared_as_well() {
    let world = World::new();
    let work = world.path("home/.claude-work");
    write(&work.join("settings.json"), "{\"mine\": 1}\n");
    let far = world.path("far/off");
    for dir in [&work, &far] {
        let mut command = world.command("tongs-agents");
        command.env("CLAUDE_CONFIG_DIR", dir).args(["install", "--agent", "claude", "--mcp"]);
        fine(&finish(command, b""));
    }
    fine(&world.agents(&["uninstall", "--all"]));
    assert_eq!(fs::read_to_string(work.join("settings.json")).unwrap(), "{\"mine\": 1}\n");
    assert_eq!(tree(&work).len(), 1);
    // What was made on the way is gone, the directory of somebody else is not.
    assert!(!far.exists());
    assert!(world.path("home").exists() && work.exists());
}

#[test]
fn nothing_of_ours_stays_whatever_was_edited_since() {
    // A table of TOML without an end of line, and settings whose only comment
    // stands where hooks went.
    let texts = [
        ("kimi-code", "model = \"k2\"", "k2", "k3"),
        ("kimi-cli", "model = \"k2\"\n", "k2", "k3"),
        (
            "claude",
            "{\n  \"model\": \"k2\",\n  \"hooks\": {\n    // off for now\n  }\n}\n",
            "k2",
            "k3",
        ),
        ("claude", "{\"model\": \"k2\", \"hooks\": /*c*/ {}}\n", "k2", "k3"),
        (
            "claude",
            "{\n  \"model\": \"k2\",\n  \"hooks\": {\"Stop\": [ /* none */ ], \"SessionEnd\": []}\n}\n",
            "k2",
            "k3",
        ),
        ("hermes", "# k2\n", "k2", "k3"),
        ("hermes", "model: k2\nhooks:\n", "k2", "k3"),
    ];
    for (agent, text, from, to) in texts {
        let recipe = RECIPES.iter().find(|r| r.agent == agent).unwrap();
        let world = World::new();
        let file = file_of(&world, recipe);
        write(&file, text);
        fine(&world.agents(&["install", "--agent", agent]));
        let edited = fs::read_to_string(&file).unwrap().replacen(from, to, 1);
        fs::write(&file, edited).unwrap();
        fine(&world.agents(&["uninstall", "--agent", agent]));
        let left = fs::read_to_string(&file).unwrap();
        assert!(!left.contains("tongs-hook"), "{agent}: {left}");
        for part in ["// off for now", "/*c*/", "/* none */", "\"hooks\"", "\"SessionEnd\": []"] {
            assert_eq!(left.contains(part), text.contains(part), "{agent}: {left}");
        }
        assert!(left.contains("k3") && !left.contains("{}\n{}"), "{left}");
        if !text.contains("hooks") {
            assert_eq!(left, text.replacen(from, to, 1), "{agent}");
        }
    }
}

#[test]
fn trust_is_given_only_where_it_can_be_taken_back() {
    for text in ["hooks = { state = {} }\n", "[hooks]\nstate = {}\n"] {
        let world = World::new();
        let config = world.path("home/.codex/config.toml");
        write(&config, text);
        let ran = world.agents(&["install", "--agent", "codex", "--trust-codex"]);
        assert_eq!(ran.code, Some(65), "{ran:?}");
        assert!(ran.out.contains("not written as tables"), "{ran:?}");
        assert_eq!(fs::read_to_string(&config).unwrap(), text);
    }
    let world = World::new();
    fine(&world.agents(&["install", "--agent", "codex", "--trust-codex"]));
    let ran = world.agents(&["uninstall", "--agent", "codex"]);
    fine(&ran);
    assert!(ran.out.contains("config.toml"), "{ran:?}");
    assert_eq!(settings(&world).len(), 0);
}

#[test]
fn directories_that_were_made_go_with_the_last_file_in_them() {
    for recipe in RECIPES.iter().filter(|r| !matches!(r.files, Files::Each(..))) {
        let world = World::new();
        fine(&world.agents(&["install", "--agent", recipe.agent, "--mcp", "--trust-codex"]));
        fine(&world.agents(&["uninstall", "--agent", recipe.agent]));
        let left: Vec<_> =
            fs::read_dir(world.path("home")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [".local"], "{}", recipe.agent);
        fine(&world.agents(&["doctor"]));
    }
    // One that was there stays, empty as it was.
    let world = World::new();
    fs::create_dir_all(world.path("home/.copilot/hooks")).unwrap();
    fine(&world.agents(&["install", "--agent", "copilot"]));
    fine(&world.agents(&["uninstall", "--agent", "copilot"]));
    assert!(world.path("home/.copilot/hooks").exists());
}

#[test]
fn what_a_killed_installer_left_is_swept() {
    let world = World::new();
    let dir = world.path("home/.claude");
    write(&dir.join(".tongs-0123456789abcdef.tmp"), "{}");
    write(&dir.join(".tongs-fedcba9876543210.tmp"), "{}");
    write(&dir.join(".tongs-mine.tmp"), "{}");
    for name in [".tongs-0123456789abcdef.tmp", ".tongs-mine.tmp"] {
        let touched = Command::new("touch").args(["-d", "1 hour ago"]).arg(dir.join(name)).status();
        assert!(touched.unwrap().success());
    }
    fine(&world.agents(&["install", "--agent", "claude"]));
    let names: Vec<_> = tree(&dir).into_keys().map(|p| p.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, [".tongs-fedcba9876543210.tmp", ".tongs-mine.tmp", "settings.json"]);
}

#[test]
fn attributes_of_a_file_are_kept() {
    let test = "attributes_of_a_file_are_kept";
    if !has_tool("setfattr", test) {
        return;
    }
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    write(&file, "{}\n");
    let set = Command::new("setfattr").args(["-n", "user.note", "-v", "mine"]).arg(&file).status();
    if !set.unwrap().success() {
        eprintln!("skipped {test}: the file system has no attributes");
        return;
    }
    fine(&world.agents(&["install", "--agent", "claude"]));
    let mut get = Command::new("getfattr");
    get.args(["--only-values", "-n", "user.note"]).arg(&file);
    assert_eq!(finish(get, b"").out, "mine");
}

#[test]
fn a_store_that_is_refused_keeps_nobody_from_uninstalling() {
    let world = World::new();
    fine(&world.agents(&["install", "--agent", "claude"]));
    fs::set_permissions(world.state(), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = world.agents(&["uninstall", "--all"]);
    fine(&ran);
    assert!(ran.err.contains("0700"), "{ran:?}");
    let left = fs::read_to_string(world.path("home/.claude/settings.json")).unwrap_or_default();
    assert!(!left.contains("tongs-hook"), "{left}");
    assert_eq!(world.agents(&["install", "--agent", "claude"]).code, Some(77));
}

#[test]
fn entries_that_were_changed_are_not_called_missing() {
    let world = World::new();
    let file = world.path("home/.claude/settings.json");
    fine(&world.agents(&["install", "--agent", "claude"]));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"timeout\": 5", "\"timeout\": 60")).unwrap();
    let check = world.agents(&["install", "--check"]);
    assert!(check.code == Some(1) && check.out.contains("changed"), "{check:?}");
    // The fix that doctor prints helps, with the path that it was asked about.
    fs::create_dir(world.path("other")).unwrap();
    symlink(world.path("bin/tongs-hook"), world.path("other/tongs-hook")).unwrap();
    let other = world.path("other/tongs-hook");
    let doctor = world.agents(&["doctor", "--hook-path", other.to_str().unwrap(), "--json"]);
    let fix = doctor.json()["findings"][0]["fix"].as_str().unwrap().to_string();
    let mut shell = Command::new("sh");
    world.bare(&mut shell);
    fine(&finish(
        {
            shell.args(["-c", &fix]);
            shell
        },
        b"",
    ));
    fine(&world.agents(&["doctor", "--hook-path", other.to_str().unwrap()]));
}

#[test]
fn a_machine_without_a_harness_is_told_so() {
    let world = World::new();
    for args in [&["install", "--all"][..], &["install", "--check"], &["doctor"]] {
        let mut command = world.command("tongs-agents");
        command.env("PATH", "/nowhere").args(args);
        let ran = finish(command, b"");
        fine(&ran);
        assert!(
            ran.out.contains("none was found here")
                || ran.out.contains("no harness was found here"),
            "{ran:?}"
        );
    }
    assert_eq!(world.agents(&["install", "--all", "--home", "/no/such/home"]).code, Some(64));
    // Links are made only where the program is.
    let ran = world.run("tongs", &["--install-links", world.path("home").to_str().unwrap()], b"");
    assert_eq!(ran.code, Some(77), "{ran:?}");
    // The same program by another spelling of its path is the same.
    fine(&world.agents(&["install", "--agent", "claude"]));
    let mut command = Command::new(world.path("project/../bin/./tongs-agents"));
    world.bare(&mut command);
    command.args(["install", "--check"]);
    fine(&finish(command, b""));
}
