//! Which sessions are listed, in which order, and which one is chosen.

use core::ops::Range;

use crate::applet::view::{Order, Row};
use crate::record::Status;

/// The orders, as a key goes round them.
const ORDERS: [Order; 4] = [Order::Attention, Order::Status, Order::Age, Order::Repo];

/// The list.
#[derive(Default)]
pub struct Model {
    /// All sessions as of the last look, in order.
    rows: Vec<Row>,
    /// Those that match, by their places among `rows`.
    listed: Vec<usize>,
    /// The chosen one by its id; where nobody chose, the first one is it.
    chosen: Option<String>,
    /// Where it stands among the listed.
    at: usize,
    /// The first one on the screen.
    top: usize,
    /// How many were on the screen.
    page: usize,
    order: usize,
    words: String,
    status: Option<Status>,
    /// Seconds by which the ages have grown since the last look.
    grown: u64,
}

impl Model {
    /// Takes the sessions that a look found.
    pub fn take(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.grown = 0;
        self.arrange();
    }

    /// Lets the ages be those of so many seconds after the last look.
    pub fn grow(&mut self, seconds: u64) {
        let by = seconds.saturating_sub(self.grown);
        self.grown += by;
        self.rows.iter_mut().for_each(|row| row.derived.age_seconds += by);
    }

    fn arrange(&mut self) {
        self.order().sort(&mut self.rows);
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        let wanted = |row: &Row| {
            self.status.is_none_or(|status| row.status == Some(status)) && matches(row, &words)
        };
        let listed = self.rows.iter().enumerate().filter(|(_, row)| wanted(row)).map(|(at, _)| at);
        self.listed = listed.collect();
        let found = self.chosen.as_ref().and_then(|id| self.rows().position(|row| row.id == *id));
        match (found, &self.chosen) {
            (Some(at), _) => self.at = at,
            (None, None) => self.at = 0,
            // The one that stands where it stood.
            (None, Some(_)) => {
                self.at = self.at.min(self.len().saturating_sub(1));
                self.chosen = self.row().map(|row| row.id.clone());
            }
        }
    }

    /// All sessions, listed or not.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Those that are listed.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.listed.iter().filter_map(|at| self.rows.get(*at))
    }

    /// How many are listed.
    pub fn len(&self) -> usize {
        self.listed.len()
    }

    /// The chosen one.
    pub fn row(&self) -> Option<&Row> {
        self.listed.get(self.at).and_then(|at| self.rows.get(*at))
    }

    /// Its place among the listed.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Those that are on a screen with so many lines for them: it moves no more
    /// than it must to show the chosen one.
    pub fn window(&mut self, lines: usize) -> Range<usize> {
        let last = self.at.saturating_sub(lines.saturating_sub(1));
        self.top = self.top.clamp(last, self.at.max(last));
        self.top = self.top.min(self.len().saturating_sub(lines));
        self.page = lines;
        self.top..self.len().min(self.top + lines)
    }

    /// Chooses the one at a place, or the last one.
    fn choose(&mut self, at: usize) {
        self.at = at.min(self.len().saturating_sub(1));
        self.chosen = self.row().map(|row| row.id.clone());
    }

    /// How many places a page is: one stays on the screen.
    pub fn page(&self) -> usize {
        self.page.saturating_sub(1).max(1)
    }

    /// Chooses the one so many places further down.
    pub fn down(&mut self, by: usize) {
        self.choose(self.at.saturating_add(by));
    }

    /// Chooses the one so many places further up.
    pub fn up(&mut self, by: usize) {
        self.choose(self.at.saturating_sub(by));
    }

    /// Goes to the first one, whichever it will be.
    pub fn first(&mut self) {
        (self.at, self.chosen) = (0, None);
    }

    /// Chooses the last one.
    pub fn last(&mut self) {
        self.choose(usize::MAX);
    }

    /// Chooses the next one that asks for its user, or the one before, going
    /// round; says whether there is one.
    pub fn asking(&mut self, forward: bool) -> bool {
        let asking: Vec<usize> =
            self.rows().enumerate().filter(|(_, row)| row.asks()).map(|(at, _)| at).collect();
        let next = if forward {
            asking.iter().find(|at| **at > self.at).or(asking.first())
        } else {
            asking.iter().rev().find(|at| **at < self.at).or(asking.last())
        };
        let Some(&at) = next else { return false };
        self.choose(at);
        true
    }

    /// The order.
    pub fn order(&self) -> Order {
        ORDERS.get(self.order).copied().unwrap_or(Order::Attention)
    }

    /// The order's name.
    pub fn order_name(&self) -> &'static str {
        Order::NAMES.get(self.order).copied().unwrap_or("")
    }

    /// Takes the next order.
    pub fn next_order(&mut self) {
        self.order = (self.order + 1) % ORDERS.len();
        self.arrange();
    }

    /// The words that a session must have.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Lists those that have all of these words.
    pub fn set_words(&mut self, words: String) {
        self.words = words;
        self.arrange();
    }

    /// The status that a session must have.
    pub fn status(&self) -> Option<Status> {
        self.status
    }

    /// Lists those with this status, or with any.
    pub fn set_status(&mut self, status: Option<Status>) {
        self.status = status;
        self.arrange();
    }
}

/// Whether a session has all of these words, which are in lower case, as parts of
/// what is shown of it.
fn matches(row: &Row, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let short = row.derived.short_id();
    let text = [&row.harness, &row.place(), &row.status_words(), &row.detail, &row.id, short]
        .join("\n")
        .to_lowercase();
    words.iter().all(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::annotate::Derived;

    fn row(id: &str, status: Status, repo: &str) -> Row {
        Row {
            json: Vec::new(),
            status: Some(status),
            status_text: status.name().into(),
            harness: "claude".into(),
            repo: repo.into(),
            branch: String::new(),
            bridge: String::new(),
            host: String::new(),
            detail: format!("Detail of {id}"),
            id: id.into(),
            derived: Derived {
                short_id: [b'0'; 12],
                age_seconds: 7,
                needs_attention: status == Status::Waiting,
                seen: false,
                snoozed: false,
                quiet: false,
                unverified: false,
            },
            phase: None,
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("r", Status::Running, "a"),
            row("w2", Status::Waiting, "z"),
            row("i", Status::Idle, "b"),
            row("w1", Status::Waiting, "y"),
        ]
    }

    fn ids(model: &Model) -> Vec<&str> {
        model.rows().map(|row| row.id.as_str()).collect()
    }

    fn chosen(model: &Model) -> &str {
        model.row().map_or("", |row| &row.id)
    }

    #[test]
    fn who_asks_comes_first_and_a_key_goes_round_the_orders() {
        let mut model = Model::default();
        model.take(rows());
        assert_eq!(ids(&model), ["w1", "w2", "r", "i"]);
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(model.order_name());
            model.next_order();
        }
        assert_eq!(names, ["attention", "status", "age", "repo"]);
        assert_eq!(model.order_name(), "attention");
        (0..3).for_each(|_| model.next_order());
        assert_eq!(ids(&model), ["r", "i", "w1", "w2"]);
    }

    #[test]
    fn the_choice_stays_with_its_session_and_nobody_s_choice_with_the_first() {
        let mut model = Model::default();
        model.take(rows());
        assert_eq!(chosen(&model), "w1");
        model.take([rows(), vec![row("w0", Status::Waiting, "x")]].concat());
        assert_eq!(chosen(&model), "w0", "nobody chose");
        model.down(3);
        assert_eq!(chosen(&model), "r");
        let mut changed = rows();
        changed[0].status = Some(Status::Idle);
        changed[0].repo = "c".into();
        model.take(changed);
        assert_eq!((ids(&model), chosen(&model)), (vec!["w1", "w2", "i", "r"], "r"));
        model.take(rows().into_iter().filter(|row| row.id != "r").collect());
        assert_eq!(chosen(&model), "i", "the one that stands where it stood");
        model.take(Vec::new());
        assert_eq!(chosen(&model), "");
        assert_eq!(model.window(5), 0..0);
        model.up(1);
        model.last();
        assert!(!model.asking(true));
        model.take(rows());
        assert_eq!(chosen(&model), "w1");
        model.last();
        assert_eq!(chosen(&model), "i");
        model.first();
        assert_eq!(model.at(), 0);
    }

    #[test]
    fn going_to_who_asks_goes_round() {
        let mut model = Model::default();
        model.take(rows());
        model.set_status(None);
        model.down(2);
        let mut way = Vec::new();
        for forward in [true, true, true, false, false] {
            assert!(model.asking(forward));
            way.push(chosen(&model).to_string());
        }
        assert_eq!(way, ["w1", "w2", "w1", "w2", "w1"]);
    }

    #[test]
    fn words_and_a_status_narrow_the_list() {
        let mut model = Model::default();
        model.take(rows());
        for (words, want) in [
            ("DETAIL w", vec!["w1", "w2"]),
            ("waiting z", vec!["w2"]),
            ("claude", vec!["w1", "w2", "r", "i"]),
            ("no such", vec![]),
            ("  ", vec!["w1", "w2", "r", "i"]),
        ] {
            model.set_words(words.into());
            assert_eq!(ids(&model), want, "{words}");
        }
        model.set_status(Some(Status::Idle));
        assert_eq!((ids(&model), model.all().len()), (vec!["i"], 4));
    }

    #[test]
    fn the_window_follows_the_choice_and_no_further() {
        let mut model = Model::default();
        model.take((0..20).map(|n| row(&format!("{n:02}"), Status::Running, "a")).collect());
        assert_eq!(model.window(5), 0..5);
        model.down(4);
        assert_eq!(model.window(5), 0..5);
        model.down(1);
        assert_eq!(model.window(5), 1..6);
        model.up(3);
        assert_eq!(model.window(5), 1..6);
        model.up(2);
        assert_eq!(model.window(5), 0..5);
        model.last();
        assert_eq!(model.window(5), 15..20);
        assert_eq!(model.window(8), 12..20, "no empty lines at the end of a taller screen");
        assert_eq!(model.window(0), 19..19);
        assert_eq!(model.window(100), 0..20);
    }

    #[test]
    fn ages_grow_between_looks() {
        let mut model = Model::default();
        model.take(rows());
        model.grow(3);
        model.grow(5);
        model.grow(5);
        assert!(model.rows().all(|row| row.derived.age_seconds == 12));
        model.take(rows());
        assert!(model.rows().all(|row| row.derived.age_seconds == 7));
    }
}
