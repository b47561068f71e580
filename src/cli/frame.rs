//! What a screen shows, and what to send so that it shows something else.
//!
//! Lines are compared as a whole and only those that differ are sent, in one
//! piece that a terminal which can shows at once: nothing flickers, and nothing
//! is sent while nothing changes.

/// The lines of a screen of one size.
#[derive(Debug, Default)]
pub struct Frame {
    shown: Vec<String>,
    size: (usize, usize),
}

impl Frame {
    /// Forgets what is shown: the next paint is of everything.
    pub fn forget(&mut self) {
        self.size = (0, 0);
    }

    /// What to send to a screen of so many columns and rows so that it shows
    /// these lines, which fit into it and are safe to print; lines below them are
    /// empty. Nothing where it does.
    pub fn paint(&mut self, mut lines: Vec<String>, size: (usize, usize)) -> String {
        lines.resize(size.1, String::new());
        let mut out = String::new();
        if self.size != size {
            self.size = size;
            self.shown.clear();
            self.shown.resize(size.1, String::new());
            out.push_str("\x1b[0m\x1b[2J");
        }
        for (at, (line, shown)) in lines.iter().zip(&self.shown).enumerate() {
            if line != shown {
                // Erased first: behind a full line the cursor stands on its last
                // character.
                out.push_str(&format!("\x1b[{};1H\x1b[2K{line}\x1b[0m", at + 1));
            }
        }
        self.shown = lines;
        if out.is_empty() { out } else { format!("\x1b[?2026h{out}\x1b[?2026l") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn only_what_differs_is_sent() {
        let mut frame = Frame::default();
        let all = frame.paint(lines("a\nb\nc"), (10, 4));
        assert!(
            all.starts_with("\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1H\x1b[2Ka")
                && all.ends_with("\x1b[?2026l")
        );
        assert_eq!(frame.paint(lines("a\nb\nc"), (10, 4)), "");
        assert_eq!(
            frame.paint(lines("a\nB\nc"), (10, 4)),
            "\x1b[?2026h\x1b[2;1H\x1b[2KB\x1b[0m\x1b[?2026l"
        );
        assert_eq!(
            frame.paint(lines("a\nB"), (10, 4)),
            "\x1b[?2026h\x1b[3;1H\x1b[2K\x1b[0m\x1b[?2026l"
        );
    }

    #[test]
    fn another_size_or_a_screen_that_is_not_known_is_painted_whole() {
        let mut frame = Frame::default();
        frame.paint(lines("a\nb"), (10, 4));
        assert!(frame.paint(lines("a\nb"), (9, 4)).contains("\x1b[2J\x1b[1;1H\x1b[2Ka"));
        frame.forget();
        assert!(frame.paint(lines("a\nb"), (9, 4)).contains("\x1b[2J\x1b[1;1H\x1b[2Ka"));
        assert!(!frame.paint(lines("a\nb\nc"), (9, 2)).contains('c'));
    }
}
