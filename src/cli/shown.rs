//! The one way in which text from records, files and other programs reaches
//! people.
//!
//! Promises: what comes out is one line, moves no cursor, reorders nothing and
//! hides nothing. What could do so is written out as `\u{1b}`. Backslashes
//! stay as they are, so escaping twice changes nothing; the form is for eyes,
//! not for reading back.

use std::fmt::{self, Display, Formatter};

pub use crate::record::out::is_hidden;

use super::width;

/// Text that is safe to print, through [`Display`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_hidden) {
            f.write_str(&rest[..at])?;
            let mut chars = rest[at..].chars();
            if let Some(c) = chars.next() {
                write!(f, "{}", c.escape_unicode())?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

impl Shown<'_> {
    /// Counts the terminal cells that the escaped text takes.
    pub fn width(self) -> usize {
        self.0.chars().map(shown_width).sum()
    }
}

/// Counts the cells of one character once escaped.
fn shown_width(c: char) -> usize {
    if is_hidden(c) { c.escape_unicode().len() } else { width::of_char(c) }
}

/// Appends `text`, escaped, in at most `width` cells and returns the cells used.
///
/// Text that does not fit ends in `…`. An escape or a wide character that does
/// not fit as a whole is left out, so the result may be narrower than `width`.
pub fn push_cut(out: &mut String, text: &str, width: usize) -> usize {
    let mut used = 0;
    // Where `…` goes should the text turn out too wide: the last end of a
    // character that leaves it one cell.
    let mut cut = (out.len(), 0);
    for c in text.chars() {
        let wide = shown_width(c);
        if used + wide > width {
            out.truncate(cut.0);
            if width == 0 {
                return 0;
            }
            out.push('…');
            return cut.1 + 1;
        }
        used += wide;
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        if used < width {
            cut = (out.len(), used);
        }
    }
    used
}

/// Escapes `text` and breaks it into lines of at most `width` cells, the first of
/// them after `indent` cells that are taken already; at least one line. A
/// character stays whole, so that one which is wider than a line stands alone.
pub fn wrap(text: &str, indent: usize, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), indent);
    let mut put = |c: char| {
        let wide = width::of_char(c);
        if used + wide > width && (!line.is_empty() || used > 0) {
            lines.push(core::mem::take(&mut line));
            used = 0;
        }
        line.push(c);
        used += wide;
    };
    for c in text.chars() {
        if is_hidden(c) {
            c.escape_unicode().for_each(&mut put);
        } else {
            put(c);
        }
    }
    lines.push(line);
    lines
}

/// A command as a line for a shell, which reads the same words from it. Not
/// escaped.
pub fn shell_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%,=+".contains(c);
    let quote = |word: &String| {
        let plain = !word.is_empty() && word.chars().all(is_plain);
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Escapes `text` for a tmux status line: as [`Shown`], and every `#` doubled,
/// as tmux runs `#(…)` and styles `#[…]`.
pub fn tmux(text: &str) -> String {
    Shown(text).to_string().replace('#', "##")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, width: usize) -> (String, usize) {
        let mut out = String::from("|");
        let used = push_cut(&mut out, text, width);
        (out.split_off(1), used)
    }

    #[test]
    fn every_class_of_hidden_characters_is_written_out() {
        let classes = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0xad..=0xad,
            0x61c..=0x61c,
            0x180e..=0x180e,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x2069,
            0xfeff..=0xfeff,
            0x115f..=0x1160,
            0x17b4..=0x17b5,
            0x2800..=0x2800,
            0x3164..=0x3164,
            0xffa0..=0xffa0,
            0xfff9..=0xfffb,
            0xfffe..=0xffff,
            0xe0000..=0xe007f,
        ];
        for c in classes.into_iter().flatten().filter_map(char::from_u32) {
            let shown = Shown(c.encode_utf8(&mut [0; 4])).to_string();
            assert_eq!(shown, format!("\\u{{{:x}}}", c as u32));
            assert!(shown.bytes().all(|b| b.is_ascii_graphic()));
        }
    }

    #[test]
    fn visible_text_stays_as_it_is_and_escaping_twice_changes_nothing() {
        let plain = "a ~\u{a0}é e\u{301} 日本 ❤\u{fe0f} \\u{1b} #";
        assert_eq!(Shown(plain).to_string(), plain);
        let once = Shown("a\x1b[2J\r\nb\u{202e}\u{9b}31m").to_string();
        assert_eq!(once, "a\\u{1b}[2J\\u{d}\\u{a}b\\u{202e}\\u{9b}31m");
        assert_eq!(Shown(&once).to_string(), once);
        assert_eq!(Shown("\x1b日").width(), 8);
    }

    #[test]
    fn a_cut_ends_in_an_ellipsis_and_fits() {
        assert_eq!(cut("abcdef", 6), ("abcdef".into(), 6));
        assert_eq!(cut("abcdef", 5), ("abcd…".into(), 5));
        assert_eq!(cut("abcdef", 1), ("…".into(), 1));
        assert_eq!(cut("abcdef", 0), (String::new(), 0));
        assert_eq!(cut("a", 1), ("a".into(), 1));
        assert_eq!(cut("", 0), (String::new(), 0));
        assert_eq!(cut("abc", usize::MAX), ("abc".into(), 3));
    }

    #[test]
    fn wide_characters_and_escapes_are_never_split() {
        assert_eq!(cut("日本語", 6), ("日本語".into(), 6));
        assert_eq!(cut("日本語", 5), ("日本…".into(), 5));
        assert_eq!(cut("日本語", 4), ("日…".into(), 3));
        assert_eq!(cut("日本語", 2), ("…".into(), 1));
        assert_eq!(cut("日", 1), ("…".into(), 1));
        assert_eq!(cut("a\x1bb", 8), ("a\\u{1b}b".into(), 8));
        assert_eq!(cut("a\x1bbc", 8), ("a\\u{1b}…".into(), 8));
        assert_eq!(cut("a\x1bb", 7), ("a…".into(), 2));
        assert_eq!(cut("\x1b", 5), ("…".into(), 1));
    }

    #[test]
    fn a_mark_stays_with_its_letter_at_the_cut() {
        assert_eq!(cut("e\u{301}e\u{301}", 2), ("e\u{301}e\u{301}".into(), 2));
        assert_eq!(cut("e\u{301}e\u{301}x", 2), ("e\u{301}…".into(), 2));
        assert_eq!(cut("\u{301}", 0), ("\u{301}".into(), 0));
    }

    #[test]
    fn a_cut_never_exceeds_its_width_and_counts_what_it_wrote() {
        let text = "a日\x1b\u{301}\u{202e}😀#\u{e0041}z";
        for width in 0..60 {
            let (out, used) = cut(text, width);
            assert!(used <= width && Shown(&out).width() == used, "{width}: {out}");
        }
    }

    #[test]
    fn lines_break_between_characters_and_fit() {
        assert_eq!(wrap("abcdef", 0, 3), ["abc", "def"]);
        assert_eq!(wrap("abcdef", 2, 3), ["a", "bcd", "ef"]);
        assert_eq!(wrap("日本語", 0, 5), ["日本", "語"]);
        assert_eq!(wrap("ae\u{301}b", 0, 2), ["ae\u{301}", "b"]);
        assert_eq!(wrap("", 4, 3), [""]);
        assert_eq!(wrap("a", 4, 3), ["", "a"]);
        assert_eq!(wrap("日", 0, 1), ["日"]);
        assert_eq!(wrap("\x1b", 0, 4).concat(), "\\u{1b}");
        for width in 2..20 {
            let lines = wrap("a日\x1b\u{301}\u{202e}😀#\u{e0041}z", 1, width);
            assert!(lines.iter().all(|l| Shown(l).width() <= width), "{width}: {lines:?}");
        }
    }

    #[test]
    fn tmux_sees_no_format_and_no_control() {
        assert_eq!(tmux("#(id) ##[fg=red]\x1b"), "##(id) ####[fg=red]\\u{1b}");
    }
}
