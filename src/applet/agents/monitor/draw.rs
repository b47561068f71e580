//! The screen as lines, from the list and what is open beside it.

use super::model::Model;
use crate::applet::notices::Level;
use crate::applet::view::{self, Order};
use crate::cli::{Colour, Shown, push_cut, wrap};

/// Lines of a screen that has room for details.
const DETAILED: usize = 10;

/// Cells of a key with what it does.
const HELP: usize = 45;

/// Columns of a screen that has room for ids.
const ROOMY: usize = 80;

/// Most lines of a message.
const MESSAGE: usize = 3;

/// What stands before a session: the chosen one's mark and the others'.
const MARKS: [&str; 2] = ["> ", "  "];

/// What a screen shows.
pub struct Scene<'s> {
    /// The list.
    pub model: &'s mut Model,
    /// Why there is nothing, where there is nothing.
    pub empty: &'s str,
    /// The chosen session's fields, where they are open.
    pub details: Option<&'s [(String, String)]>,
    /// Whether the keys are explained.
    pub help: bool,
    /// Whether words are being typed.
    pub typing: bool,
    /// What was done, or went wrong.
    pub message: &'s str,
    /// The level of notices.
    pub notices: Level,
}

/// A text and its colour.
type Piece = (String, Colour);

/// The keys, what they do, and which of them the last line names.
const KEYS: [(&str, &str, &str); 17] = [
    ("Enter", "go to the session", "go"),
    ("n", "the next one that asks for you", "next"),
    ("N", "the one before that asks for you", ""),
    ("a", "mark what it asks for as seen", "seen"),
    ("A", "mark what all ask for as seen", ""),
    ("z", "put it off for 15 minutes", ""),
    ("u", "take such a mark away again", ""),
    ("d", "details", "details"),
    ("/", "list those that have some words", "find"),
    ("1 2 3 4", "list running, idle, waiting, error", ""),
    ("0, Esc", "list all", ""),
    ("s", "another order", "sort"),
    ("m", "notices: all, waiting, none", ""),
    ("r", "run the maintainer and look again", ""),
    ("j k g G", "down, up, first, last", ""),
    ("?", "this help", "help"),
    ("q", "quit", "quit"),
];

/// The lines of a screen of this size, columns and rows; none is wider or more
/// than it has.
pub fn lines(scene: &mut Scene<'_>, size: (usize, usize), colour: bool) -> Vec<String> {
    let (width, height) = size;
    let mut out = vec![strip(&head(scene), width, colour)];
    // A foot where the list keeps some lines.
    let mut foot = bottom(scene, width, colour);
    foot.truncate(match height {
        0..2 => 0,
        2 => usize::from(scene.typing),
        3..8 => 1,
        _ => MESSAGE,
    });
    let body = height.saturating_sub(1 + foot.len());
    if scene.help {
        out.extend(help(body, width, colour));
    } else {
        let below = match scene.details {
            Some(fields) if height >= DETAILED => details(fields, body / 2, width, colour),
            _ => Vec::new(),
        };
        out.extend(list(scene, body - below.len(), width, colour));
        out.resize(height - foot.len() - below.len(), String::new());
        out.extend(below);
    }
    out.resize(height - foot.len(), String::new());
    out.extend(foot);
    out
}

/// Pieces on one line of at most `width` cells.
fn strip(pieces: &[Piece], width: usize, colour: bool) -> String {
    let (mut line, mut used) = (String::new(), 0);
    for (text, paint) in pieces {
        let mut cut = String::new();
        used += push_cut(&mut cut, text, width - used);
        let paint = if colour { *paint } else { Colour::Plain };
        paint.paint(&mut line, &cut);
    }
    line
}

fn plain(text: impl Into<String>) -> Piece {
    (text.into(), Colour::Plain)
}

/// How many sessions there are, how many of them ask, and how they are listed.
fn head(scene: &Scene<'_>) -> Vec<Piece> {
    let model = &scene.model;
    let all = model.all();
    let asking = all.iter().filter(|row| row.asks()).count();
    let mut pieces = Vec::new();
    match asking {
        0 => pieces.push(plain("nobody asks for you")),
        1 => pieces.push(("1 asks for you".to_string(), Colour::Bold)),
        n => pieces.push((format!("{n} ask for you"), Colour::Bold)),
    }
    if model.len() < all.len() {
        pieces.push(plain(format!("  {} of {} listed", model.len(), all.len())));
    }
    if let Some(status) = model.status() {
        pieces.push(plain(format!(" that are {}", status.name())));
    }
    if !model.words().is_empty() && !scene.typing {
        pieces.push(plain(format!(" with '{}'", model.words())));
    }
    for status in view::URGENCY {
        let count = all.iter().filter(|row| row.status == Some(status)).count();
        if count > 0 {
            pieces.push(plain("  "));
            pieces.push((format!("{count} {}", status.name()), view::colour(Some(status), false)));
        }
    }
    // What is not as at the start.
    if !matches!(model.order(), Order::Attention) {
        pieces.push((format!("  by {}", model.order_name()), Colour::Dim));
    }
    if scene.notices != Level::All {
        pieces.push((format!("  notices {}", scene.notices.name()), Colour::Dim));
    }
    pieces
}

fn list(scene: &mut Scene<'_>, lines: usize, width: usize, colour: bool) -> Vec<String> {
    let model = &mut *scene.model;
    if model.len() == 0 {
        let text = if model.all().is_empty() { scene.empty } else { "No session is like that." };
        return wrap(text, 0, width).into_iter().take(lines).collect();
    }
    // Names of columns where more than a few sessions fit.
    let titles = usize::from(lines >= 4);
    let window = model.window(lines - titles);
    let chosen = model.at();
    // No mark where it would be all there is.
    let marks = if width > MARKS[0].len() { MARKS } else { [""; 2] };
    let table = view::table(model.rows(), width >= ROOMY);
    let mut out = Vec::new();
    let paint = |row: Option<usize>| colour && row != Some(chosen);
    table.render_lines(window, width - marks[0].len(), paint, |row, line| match row {
        None if titles == 0 => {}
        Some(at) if at == chosen => out.push(reversed(&format!("{}{line}", marks[0]), width)),
        _ => out.push(format!("{}{line}", marks[1])),
    });
    out
}

/// A whole line in reverse.
fn reversed(line: &str, width: usize) -> String {
    let pad = width.saturating_sub(Shown(line).width());
    format!("\x1b[7m{line}{}\x1b[0m", " ".repeat(pad))
}

fn details(fields: &[(String, String)], lines: usize, width: usize, colour: bool) -> Vec<String> {
    let name = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut out = vec![String::new()];
    for (field, value) in fields {
        if name + 8 > width {
            let lines = wrap(&format!("{field}  {value}"), 0, width);
            out.extend(lines.into_iter().map(|line| strip(&[plain(line)], width, colour)));
            continue;
        }
        for (at, line) in wrap(value, 0, width - name).into_iter().enumerate() {
            let field = if at == 0 { field } else { "" };
            out.push(strip(
                &[(format!("{field:<name$}"), Colour::Dim), plain(line)],
                width,
                colour,
            ));
        }
    }
    out.truncate(lines);
    out
}

fn help(lines: usize, width: usize, colour: bool) -> Vec<String> {
    // Beside one another where they are too many.
    let columns = if lines < KEYS.len() && width >= 2 * HELP { 2 } else { 1 };
    let high = KEYS.len().div_ceil(columns);
    let line = |at: usize| {
        let pieces = KEYS.iter().skip(at).step_by(high).flat_map(|(key, does, _)| {
            [
                (format!("  {key:<8} "), Colour::Bold),
                plain(format!("{does:<width$}", width = HELP - 11)),
            ]
        });
        strip(&pieces.collect::<Vec<_>>(), width, colour).trim_end().to_string()
    };
    (0..high.min(lines)).map(line).collect()
}

/// The last lines: what is typed, what was done, or the keys.
fn bottom(scene: &Scene<'_>, width: usize, colour: bool) -> Vec<String> {
    let one = |pieces: &[Piece]| vec![strip(pieces, width, colour)];
    if scene.typing {
        return one(&[plain("/"), plain(scene.model.words()), plain("_")]);
    }
    if !scene.message.is_empty() {
        let lines = wrap(scene.message, 0, width);
        return lines.into_iter().map(|line| strip(&[plain(line)], width, colour)).collect();
    }
    if scene.help {
        return one(&[("any key to go back".to_string(), Colour::Dim)]);
    }
    let named = KEYS.iter().filter(|(.., short)| !short.is_empty());
    let hints: Vec<String> = named.map(|(key, _, short)| format!("{key} {short}")).collect();
    one(&[(hints.join("  "), Colour::Dim)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applet::view::Row;
    use crate::record::Status;
    use crate::store::annotate::Derived;

    fn rows(count: usize) -> Vec<Row> {
        let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\r\n\u{202e} 日本語 e\u{301} 👩‍💻 #(id)";
        let row = |n: usize| Row {
            json: Vec::new(),
            status: Some(Status::ALL[n % Status::ALL.len()]),
            status_text: Status::ALL[n % Status::ALL.len()].name().into(),
            harness: "claude".into(),
            repo: if n % 2 == 0 { evil.repeat(40) } else { "tongs".into() },
            branch: "b".into(),
            bridge: String::new(),
            host: String::new(),
            detail: evil.into(),
            id: format!("id{n}"),
            derived: Derived {
                short_id: [b'a'; 12],
                age_seconds: 90,
                needs_attention: n % 3 == 0,
                seen: n % 5 == 0,
                snoozed: false,
                quiet: n % 7 == 0,
                unverified: n % 11 == 0,
            },
            phase: None,
        };
        (0..count).map(row).collect()
    }

    /// Removes `ESC [ … m`, and nothing else.
    fn bare(line: &str) -> String {
        let mut parts = line.split('\x1b');
        let mut out = parts.next().unwrap().to_owned();
        for part in parts {
            let (sgr, text) = part.split_once('m').unwrap();
            assert!(sgr.starts_with('[') && !sgr.contains(|c: char| c.is_ascii_alphabetic()));
            out.push_str(text);
        }
        out
    }

    #[test]
    fn every_line_fits_at_every_size_whatever_is_open() {
        let fields = vec![
            ("detail".to_string(), "\u{1b}[31m日本語 ".repeat(30)),
            ("a_very_long_name_of_a_field".to_string(), "x".repeat(300)),
        ];
        for count in [0, 1, 30] {
            let mut model = Model::default();
            model.take(rows(count));
            model.down(17);
            for width in [1, 2, 3, 5, 9, 20, 39, 80, 200] {
                for height in [1, 2, 3, 4, 5, 9, 10, 11, 24, 60] {
                    for open in 0..8 {
                        let mut scene = Scene {
                            model: &mut model,
                            empty: "No sessions, and why.",
                            details: (open & 1 != 0).then_some(&fields),
                            help: open & 2 != 0,
                            typing: open & 4 != 0,
                            message: "a message \u{1b}[2J\n of some length, with 日本語 in it",
                            notices: Level::Waiting,
                        };
                        let lines = lines(&mut scene, (width, height), true);
                        assert_eq!(lines.len(), height, "{width}x{height}, {open}");
                        for line in lines {
                            let bare = bare(&line);
                            assert!(Shown(&bare).width() <= width, "{width}x{height}: {line:?}");
                            assert_eq!(Shown(&bare).to_string(), bare, "{line:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_chosen_session_is_on_the_screen_at_every_height() {
        for height in 2..40 {
            for at in [0, 1, 12, 29] {
                let mut model = Model::default();
                model.take(rows(30));
                model.down(at);
                let mut scene = Scene {
                    model: &mut model,
                    empty: "",
                    details: None,
                    help: false,
                    typing: false,
                    message: "",
                    notices: Level::None,
                };
                let lines = lines(&mut scene, (60, height), false);
                assert_eq!(lines.iter().filter(|l| l.contains("\x1b[7m> ")).count(), 1, "{height}");
            }
        }
    }
}
