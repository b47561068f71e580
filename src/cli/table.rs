//! Tables for people: columns aligned by terminal cells, two spaces between.
//!
//! Promises: every cell is escaped as [`Shown`](super::Shown); no line is wider
//! than asked or ends in padding; colour never counts as width. Flexible
//! columns shrink first, the widest first; when they have nothing left to
//! give, whole columns are dropped from the right, so the ones that matter
//! most belong on the left.

use core::ops::Range;

use super::shown::{Shown, push_cut};

/// Spaces between two columns.
const GAP: usize = 2;

/// The least that a flexible column shrinks to while another column can go.
const LEAST: usize = 6;

/// The colour of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// As the terminal has it.
    #[default]
    Plain,
    /// Fainter than the rest.
    Dim,
    /// Red.
    Red,
    /// Yellow.
    Yellow,
    /// Green.
    Green,
    /// Blue.
    Blue,
    /// Magenta.
    Magenta,
    /// Bold.
    Bold,
}

impl Colour {
    /// The parameter of SGR (ECMA-48, 8.3.117); none for plain.
    fn sgr(self) -> Option<&'static str> {
        match self {
            Colour::Plain => None,
            Colour::Bold => Some("\x1b[1m"),
            Colour::Dim => Some("\x1b[2m"),
            Colour::Red => Some("\x1b[31m"),
            Colour::Green => Some("\x1b[32m"),
            Colour::Yellow => Some("\x1b[33m"),
            Colour::Blue => Some("\x1b[34m"),
            Colour::Magenta => Some("\x1b[35m"),
        }
    }

    /// Appends `text`, which is already escaped, in this colour.
    pub fn paint(self, out: &mut String, text: &str) {
        match self.sgr().filter(|_| !text.is_empty()) {
            Some(sgr) => out.extend([sgr, text, "\x1b[0m"]),
            None => out.push_str(text),
        }
    }
}

/// A column: its title, and how its cells behave. Starts left-aligned and as
/// wide as its widest cell.
#[derive(Clone, Debug)]
pub struct Column {
    title: &'static str,
    right: bool,
    flex: bool,
}

impl Column {
    /// Makes a column.
    pub fn new(title: &'static str) -> Column {
        Column { title, right: false, flex: false }
    }

    /// Aligns the cells to the right.
    pub fn right(self) -> Column {
        Column { right: true, ..self }
    }

    /// Lets the column shrink, its cells cut with `…`.
    pub fn flex(self) -> Column {
        Column { flex: true, ..self }
    }
}

/// The text of a cell, raw, and its colour.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    colour: Colour,
}

impl Cell {
    /// Makes a plain cell from text that need not be safe.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), colour: Colour::Plain }
    }

    /// Gives the cell a colour.
    pub fn colour(self, colour: Colour) -> Cell {
        Cell { colour, ..self }
    }
}

/// Rows under a header.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Makes a table without rows.
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty, those beyond the columns ignored.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Renders header and rows, each line at most `width` cells and ended by a
    /// newline; `usize::MAX` is no limit. Escape sequences only with `colour`.
    pub fn render(&self, width: usize, colour: bool) -> String {
        let mut out = String::new();
        self.render_lines(
            0..self.rows.len(),
            width,
            |_| colour,
            |_, line| {
                out.push_str(line);
                out.push('\n');
            },
        );
        out
    }

    /// Renders the header and a part of the rows, in the widths of all rows, as
    /// lines without their ends. Both functions are told which row it is, `None`
    /// for the header; `colour` says whether escape sequences are wanted in it.
    pub fn render_lines(
        &self,
        rows: Range<usize>,
        width: usize,
        colour: impl Fn(Option<usize>) -> bool,
        mut each: impl FnMut(Option<usize>, &str),
    ) {
        let widths = self.widths(width);
        let mut out = String::new();
        let titles = self.columns.iter().map(|c| (c.title, Colour::Bold));
        line(&mut out, &self.columns, &widths, titles, colour(None));
        each(None, &out);
        for (at, row) in self.rows.iter().enumerate().take(rows.end).skip(rows.start) {
            out.clear();
            let cells = row.iter().map(|cell| (cell.text.as_str(), cell.colour));
            line(&mut out, &self.columns, &widths, cells, colour(Some(at)));
            each(Some(at), &out);
        }
    }

    /// The widths of the columns that are shown: the first ones, as many as fit.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| Shown(column.title).width()).collect();
        for row in &self.rows {
            for (most, cell) in widths.iter_mut().zip(row) {
                *most = Shown(&cell.text).width().max(*most);
            }
        }
        // Also bounds the work of `shrink`.
        widths.iter_mut().for_each(|w| *w = width.min(*w));
        while widths.len() > 1 {
            let mut fitted = widths.clone();
            if shrink(&mut fitted, &self.columns, width) {
                return fitted;
            }
            widths.pop();
        }
        widths
    }
}

/// Takes cells from the widest flexible column until the line fits; false when
/// it cannot.
fn shrink(widths: &mut [usize], columns: &[Column], width: usize) -> bool {
    let gaps = GAP * widths.len().saturating_sub(1);
    let total = widths.iter().fold(gaps, |sum, w| sum.saturating_add(*w));
    for _ in width..total {
        let flexible = widths.iter_mut().zip(columns).filter(|(w, c)| c.flex && **w > LEAST);
        match flexible.max_by_key(|(w, _)| **w) {
            Some((widest, _)) => *widest -= 1,
            None => return false,
        }
    }
    true
}

/// Appends one line. Padding is held back until something follows it.
fn line<'a>(
    out: &mut String,
    columns: &[Column],
    widths: &[usize],
    mut cells: impl Iterator<Item = (&'a str, Colour)>,
    colour: bool,
) {
    let (mut pad, mut text) = (0, String::new());
    for (column, &width) in columns.iter().zip(widths) {
        let (raw, paint) = cells.next().unwrap_or_default();
        text.clear();
        let left = width - push_cut(&mut text, raw, width);
        if column.right {
            pad += left;
        }
        if !text.is_empty() {
            out.extend(std::iter::repeat_n(' ', pad));
            pad = 0;
            let paint = if colour { paint } else { Colour::Plain };
            paint.paint(out, &text);
        }
        pad += GAP + if column.right { 0 } else { left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::width;

    fn sample() -> Table {
        let mut table = Table::new(vec![
            Column::new("ID"),
            Column::new("AGE").right(),
            Column::new("REPO").flex(),
            Column::new("DETAIL").flex(),
        ]);
        table.push(vec![
            Cell::new("ab12"),
            Cell::new("3m").colour(Colour::Dim),
            Cell::new("tongs"),
            Cell::new("waits for permission to run 日本語").colour(Colour::Yellow),
        ]);
        table.push(vec![Cell::new("cd"), Cell::new("12h"), Cell::new("")]);
        table.push(vec![Cell::new(""), Cell::new(""), Cell::new("a\x1b[2J\nb")]);
        table
    }

    /// Removes `ESC [ … m`, and nothing else.
    fn bare(text: &str) -> String {
        let mut parts = text.split('\x1b');
        let mut out = parts.next().unwrap().to_owned();
        for part in parts {
            out.push_str(part.split_once('m').unwrap().1);
        }
        out
    }

    #[test]
    fn a_table_without_limit_shows_everything_and_pads_no_line_end() {
        let want = "\
ID    AGE  REPO              DETAIL
ab12   3m  tongs             waits for permission to run 日本語
cd    12h
           a\\u{1b}[2J\\u{a}b
";
        assert_eq!(sample().render(usize::MAX, false), want);
    }

    #[test]
    fn flexible_columns_give_way_widest_first_and_fixed_ones_stay() {
        let want = "\
ID    AGE  REPO           DETAIL
ab12   3m  tongs          waits for p…
cd    12h
           a\\u{1b}[2J…
";
        assert_eq!(sample().render(38, false), want);
    }

    #[test]
    fn every_line_fits_at_every_width() {
        for width in 0..100 {
            for line in sample().render(width, false).lines() {
                assert!(width::of(line) <= width, "{width}: {line}");
                assert!(!line.ends_with(' '), "{width}: {line}");
            }
        }
    }

    #[test]
    fn columns_go_from_the_right_when_nothing_else_is_left() {
        assert_eq!(sample().render(20, false).lines().next(), Some("ID    AGE  REPO"));
        assert_eq!(sample().render(10, false).lines().nth(1), Some("ab12   3m"));
        assert_eq!(sample().render(3, false).lines().nth(1), Some("ab…"));
        assert_eq!(sample().render(0, false), "\n\n\n\n");
    }

    #[test]
    fn colour_changes_no_width_and_is_off_when_off() {
        for width in [0, 1, 20, 38, 80, usize::MAX] {
            let (plain, colour) = (sample().render(width, false), sample().render(width, true));
            assert!(!plain.contains('\x1b'));
            assert_eq!(bare(&colour), plain);
        }
        let colour = sample().render(80, true);
        assert!(colour.starts_with("\x1b[1mID\x1b[0m    \x1b[1mAGE\x1b[0m  "));
        assert!(colour.contains("ab12   \x1b[2m3m\x1b[0m  tongs"));
        assert!(!colour.contains("\x1b[33m\x1b[0m"), "no colour around nothing");
    }

    #[test]
    fn odd_shapes_do_no_harm() {
        assert_eq!(Table::new(vec![]).render(80, true), "\n");
        let mut table = Table::new(vec![Column::new("A").right()]);
        table.push(vec![Cell::new("日本"), Cell::new("ignored")]);
        table.push(vec![]);
        assert_eq!(table.render(80, false), "   A\n日本\n\n");
        assert_eq!(table.render(3, false), "  A\n日…\n\n");
        assert_eq!(table.render(2, false), " A\n …\n\n");
    }
}
