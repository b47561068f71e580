//! Options and arguments: argh behind the habits that users of git know.
//!
//! argh alone takes no `--x=v`, knows no `-h` and no `-`, reads an argument
//! `help` as a call for help and complains in several lines. So words are
//! sorted before argh sees them: options first, each with its value as a word
//! of its own, then `--`, after which argh takes every word as it stands.
//! Whether an option has a value is asked of argh itself, by parsing it alone;
//! there is no second list to keep. Subcommands are the caller's to choose.

use argh::FromArgs;

use super::Shown;

/// Why there is nothing to run. Both are without the program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Early {
    /// The text to print on standard output; ends in one newline.
    Help(String),
    /// What is wrong, in one line, for standard error and exit 64.
    Usage(String),
}

/// What argh says of a word that stands where options may.
enum Kind {
    Help,
    Switch,
    Value,
    Unknown,
}

/// Where options end, short of a literal `--`.
#[derive(PartialEq)]
enum Options {
    Nowhere,
    AtFirstArgument,
}

/// Parses options and arguments in any order, up to a literal `--`.
///
/// `prog` is the whole name of the command, such as `tongs-agents status`. `T`
/// must have no subcommand field.
pub fn parse<T: FromArgs>(prog: &str, words: &[&str]) -> Result<T, Early> {
    sort_and_parse(prog, words, Options::Nowhere)
}

/// Parses options up to the first argument: from there on, every word belongs
/// to another program's command line, which `T` takes as its last positional.
pub fn parse_with_command<T: FromArgs>(prog: &str, words: &[&str]) -> Result<T, Early> {
    sort_and_parse(prog, words, Options::AtFirstArgument)
}

fn sort_and_parse<T: FromArgs>(prog: &str, words: &[&str], end: Options) -> Result<T, Early> {
    let (mut sorted, mut plain) = (Vec::new(), Vec::new());
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        if word == "--" {
            break;
        }
        if !word.starts_with('-') || word == "-" {
            plain.push(word);
            if end == Options::AtFirstArgument {
                break;
            }
            continue;
        }
        let (name, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match (kind::<T>(name), value) {
            (Kind::Unknown, _) => return wrong(prog, &format!("unknown option '{name}'")),
            (Kind::Help, None) => return ask_argh(prog, &["--help"]),
            (Kind::Switch, None) => sorted.push(name),
            (Kind::Switch | Kind::Help, Some(_)) => {
                return wrong(prog, &format!("option '{name}' takes no value"));
            }
            (Kind::Value, value) => match value.or_else(|| rest.next()) {
                Some(value) => sorted.extend([name, value]),
                None => return wrong(prog, &format!("option '{name}' needs a value")),
            },
        }
    }
    sorted.push("--");
    sorted.extend(plain);
    sorted.extend(rest);
    ask_argh(prog, &sorted)
}

fn wrong<T>(prog: &str, text: &str) -> Result<T, Early> {
    Err(Early::Usage(format!("{} (see '{prog} --help')", Shown(text))))
}

fn ask_argh<T: FromArgs>(prog: &str, words: &[&str]) -> Result<T, Early> {
    match T::from_args(&[prog], words) {
        Ok(parsed) => Ok(parsed),
        Err(early) if early.status.is_err() => wrong(prog, &one_line(&early.output)),
        Err(early) => {
            // argh offers the word `help`, where we take `-h`.
            let text = early.output.replacen("\n  --help, help  ", "\n  -h, --help    ", 1);
            Err(Early::Help(format!("{}\n", text.trim_end())))
        }
    }
}

/// Asks argh, with the word alone, so no value is parsed and nothing happens.
fn kind<T: FromArgs>(word: &str) -> Kind {
    if word == "-h" || word == "--help" {
        return Kind::Help;
    }
    match T::from_args(&[""], &[word]) {
        Err(early) if early.output.starts_with("No value provided for option") => Kind::Value,
        Err(early) if early.output.starts_with("Unrecognized argument") => Kind::Unknown,
        // A switch, and perhaps a complaint of what else is missing.
        _ => Kind::Switch,
    }
}

/// argh's complaint in our form. What is missing it lists one word a line;
/// anything else is one line already but for what users typed.
fn one_line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if let Some(word) = text.strip_prefix("Unrecognized argument: ") {
        return format!("unexpected argument '{word}'");
    }
    if let Some(what) = text.strip_prefix("Error parsing ") {
        return format!("cannot parse {what}");
    }
    let text = text.replace(":\n    ", ": ").replace("\n    ", ", ").replace('\n', "; ");
    text.replace("Required positional arguments not provided", "missing argument")
        .replace("Required options not provided", "missing option")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::duration;
    use super::*;

    /// sample command
    #[derive(FromArgs, Debug, PartialEq, Default)]
    struct Sample {
        /// as json
        #[argh(switch)]
        json: bool,
        /// say nothing
        #[argh(switch, short = 'q')]
        quiet: bool,
        /// a title
        #[argh(option, short = 't')]
        title: Option<String>,
        /// time to wait
        #[argh(option, from_str_fn(duration))]
        timeout: Option<Duration>,
        /// some words
        #[argh(positional)]
        ids: Vec<String>,
    }

    /// strict command
    #[derive(FromArgs, Debug, PartialEq)]
    struct Strict {
        /// a status
        #[argh(option)]
        status: String,
        /// a harness
        #[argh(option)]
        harness: String,
        /// a switch
        #[argh(switch)]
        dry_run: bool,
        /// a pid
        #[argh(positional)]
        pid: u32,
    }

    /// command runner
    #[derive(FromArgs, Debug, PartialEq)]
    struct Run {
        /// a profile
        #[argh(option)]
        profile: Option<String>,
        /// a command
        #[argh(positional, greedy)]
        command: Vec<String>,
    }

    fn sample(words: &[&str]) -> Result<Sample, Early> {
        parse("tongs-agents sample", words)
    }

    fn usage<T: FromArgs + std::fmt::Debug>(words: &[&str]) -> String {
        match parse::<T>("tongs-agents x", words) {
            Err(Early::Usage(text)) => {
                text.strip_suffix(" (see 'tongs-agents x --help')").unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    fn ids(words: &[&str]) -> Vec<String> {
        sample(words).unwrap().ids
    }

    fn title(words: &[&str]) -> Option<String> {
        sample(words).unwrap().title
    }

    #[test]
    fn a_value_may_follow_an_equals_sign_or_a_space() {
        for words in [&["--title=a=b"][..], &["--title", "a=b"], &["-t", "a=b"]] {
            assert_eq!(title(words).as_deref(), Some("a=b"));
        }
        assert_eq!(title(&["--title="]).as_deref(), Some(""));
    }

    #[test]
    fn a_value_may_look_like_an_option_or_like_help() {
        for value in ["-v", "--json", "--", "-h", "--help", "help", "-", "--a=b"] {
            assert_eq!(title(&["--title", value]).as_deref(), Some(value));
            assert_eq!(title(&[&format!("--title={value}")]).as_deref(), Some(value));
        }
    }

    #[test]
    fn arguments_named_help_or_dash_are_arguments() {
        assert_eq!(ids(&["help", "--json", "-"]), ["help", "-"]);
        assert_eq!(
            ids(&["a", "--", "--json", "-h", "--", "--x=v"]),
            ["a", "--json", "-h", "--", "--x=v"]
        );
        assert_eq!(ids(&["a=b", "--json", ""]), ["a=b", ""]);
    }

    #[test]
    fn options_stand_anywhere_and_arguments_keep_their_order() {
        let got = sample(&["a", "-q", "b", "--timeout=2m", "c", "--json"]).unwrap();
        assert!(got.json && got.quiet);
        assert_eq!(got.timeout, Some(Duration::from_secs(120)));
        assert_eq!(got.ids, ["a", "b", "c"]);
        assert_eq!(sample(&[]), Ok(Sample::default()));
    }

    #[test]
    fn help_comes_wherever_an_option_may_stand() {
        for words in [&["-h"][..], &["--json", "--help", "--json"], &["x", "-h"]] {
            let Err(Early::Help(text)) = sample(words) else { panic!("{words:?}") };
            assert!(text.starts_with("Usage: tongs-agents sample [--json]"), "{text}");
            assert!(text.contains("\n  -h, --help        display usage information\n"), "{text}");
            assert!(!text.ends_with("\n\n"));
        }
        let strict = parse::<Strict>("tongs-agents x", &["--help", "--dry-run", "nan"]);
        assert!(matches!(strict, Err(Early::Help(_))));
    }

    #[test]
    fn a_wrong_option_is_named_in_one_line() {
        assert_eq!(usage::<Sample>(&["--json=1"]), "option '--json' takes no value");
        assert_eq!(usage::<Sample>(&["--help=1"]), "option '--help' takes no value");
        assert_eq!(usage::<Sample>(&["a", "--title"]), "option '--title' needs a value");
        assert_eq!(usage::<Sample>(&["--jso=1", "-h"]), "unknown option '--jso'");
        assert_eq!(usage::<Sample>(&["-x"]), "unknown option '-x'");
        assert_eq!(usage::<Sample>(&["--\x1b\n"]), "unknown option '--\\u{1b}\\u{a}'");
        assert_eq!(usage::<Run>(&["cmd", "--profil"]), "unknown option '--profil'");
    }

    #[test]
    fn what_argh_finds_is_said_in_one_line() {
        assert_eq!(
            usage::<Strict>(&["--dry-run"]),
            "missing argument: pid; missing option: --status, --harness"
        );
        let given = ["--status=a", "--harness=b"];
        assert_eq!(
            usage::<Strict>(&[&given[..], &["x\n    y"]].concat()),
            "cannot parse positional argument 'pid' with value 'x\\u{a}    y': \
             invalid digit found in string"
        );
        assert_eq!(
            usage::<Strict>(&[&given[..], &["1", "2\n"]].concat()),
            "unexpected argument '2\\u{a}'"
        );
        assert_eq!(
            usage::<Sample>(&["--title=a", "--title=b"]),
            "cannot parse option '--title' with value 'b': duplicate values provided"
        );
        assert_eq!(
            usage::<Sample>(&["--timeout=-5"]),
            "cannot parse option '--timeout' with value '-5': \
             not a duration, such as 5, 0.5s, 2m or 250ms"
        );
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        let run = |words: &[&str]| parse_with_command::<Run>("tongs-agents run", words);
        let want = |profile: Option<&str>, command: &[&str]| {
            Ok(Run {
                profile: profile.map(str::to_owned),
                command: command.iter().map(|&word| word.to_owned()).collect(),
            })
        };
        assert_eq!(
            run(&["--profile=p", "sh", "-h", "--", "help"]),
            want(Some("p"), &["sh", "-h", "--", "help"])
        );
        assert_eq!(run(&["--", "--profile=p", "--"]), want(None, &["--profile=p", "--"]));
        assert_eq!(run(&["help", "--profile", "x"]), want(None, &["help", "--profile", "x"]));
        assert_eq!(run(&["--profile", "p"]), want(Some("p"), &[]));
        assert!(matches!(run(&["-h", "sh"]), Err(Early::Help(_))));
    }
}
