//! The difference of two texts, to be shown before a file is changed.

use std::ops::Range;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Most lines that are looked for one by one. Texts that differ in more are
/// shown as one change.
const MAX_EDITS: usize = 512;

/// What has to be done to `old` to get `new`, as `diff -u` prints it; empty if
/// they are equal. Lines and names stand as they are, not escaped for a terminal.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let changes = changes(&old, &new);
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    let near = |a: &Change, b: &Change| b.old.start - a.old.end <= 2 * CONTEXT;
    for hunk in changes.chunk_by(near) {
        put_hunk(&mut out, hunk, &old, &new);
    }
    out
}

/// Lines of the old text and those that stand in the new one instead.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

fn put_hunk(out: &mut String, hunk: &[Change], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let old_span = first.old.start - before..last.old.end + after;
    let new_span = first.new.start - before..last.new.end + after;
    out.push_str("@@ -");
    put_span(out, &old_span);
    out.push_str(" +");
    put_span(out, &new_span);
    out.push_str(" @@\n");
    let mut at = old_span.start;
    for change in hunk {
        put_lines(out, ' ', old, at..change.old.start);
        put_lines(out, '-', old, change.old.clone());
        put_lines(out, '+', new, change.new.clone());
        at = change.old.end;
    }
    put_lines(out, ' ', old, at..old_span.end);
}

/// The first line and how many; an empty span is named by the line before it.
fn put_span(out: &mut String, span: &Range<usize>) {
    out.push_str(&match span.len() {
        0 => format!("{},0", span.start),
        1 => format!("{}", span.start + 1),
        lines => format!("{},{lines}", span.start + 1),
    });
}

fn put_lines(out: &mut String, sign: char, lines: &[&str], span: Range<usize>) {
    for line in lines.get(span).unwrap_or(&[]) {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The changes in order, none of which touches the next.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = old.iter().zip(new).take_while(same).count();
    let (old, new) = (old.get(start..).unwrap_or(&[]), new.get(start..).unwrap_or(&[]));
    let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (old.split_at(old.len() - end).0, new.split_at(new.len() - end).0);
    let whole = Change { old: 0..old.len(), new: 0..new.len() };
    let mut changes = shortest(old, new).unwrap_or_else(|| vec![whole]);
    for change in &mut changes {
        for end in [&mut change.old, &mut change.new] {
            *end = start + end.start..start + end.end;
        }
    }
    changes
}

/// A point that no path has reached.
const NOWHERE: isize = -1;

/// The fewest changes, by Myers, "An O(ND) Difference Algorithm" (1986); `None`
/// if they are more than [`MAX_EDITS`] lines.
///
/// Round `d` holds, for each diagonal `k = x - y` of -d, -d + 2, … d, the
/// farthest `x` that `d` edits reach.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Change>> {
    let (width, height) = (old.len() as isize, new.len() as isize);
    let mut rounds: Vec<Vec<isize>> = Vec::new();
    for d in 0..=MAX_EDITS {
        let before = rounds.last().map_or(&[][..], Vec::as_slice);
        let mut round = Vec::with_capacity(d + 1);
        for n in 0..=d {
            let k = 2 * n as isize - d as isize;
            let mut x = if d == 0 { 0 } else { reach(before, n, k, width, height).0 };
            if x != NOWHERE {
                while x < width
                    && x - k < height
                    && old.get(x as usize) == new.get((x - k) as usize)
                {
                    x += 1;
                }
            }
            round.push(x);
            if x == width && x - k == height {
                return Some(walk_back(&rounds, n, width, height));
            }
        }
        rounds.push(round);
    }
    None
}

/// Where the diagonal `k`, number `n` of its round, is entered from the round
/// before, and whether by taking a line of the old text.
fn reach(before: &[isize], n: usize, k: isize, width: isize, height: isize) -> (isize, bool) {
    let at = |n: Option<usize>| n.and_then(|n| before.get(n)).copied().unwrap_or(NOWHERE);
    let (left, above) = (at(n.checked_sub(1)), at(Some(n)));
    let taken = if left == NOWHERE || left == width { NOWHERE } else { left + 1 };
    let put = if above == NOWHERE || above - k > height { NOWHERE } else { above };
    if taken > put { (taken, true) } else { (put, false) }
}

/// The changes of the path that ends at diagonal number `n` of the round behind
/// `rounds`.
fn walk_back(rounds: &[Vec<isize>], mut n: usize, width: isize, height: isize) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (d, before) in rounds.iter().enumerate().rev() {
        let k = 2 * n as isize - (d as isize + 1);
        let (x, taken) = reach(before, n, k, width, height);
        let (x, y) = (x as usize, (x - k) as usize);
        let (old, new) = if taken { (x - 1..x, y..y) } else { (x..x, y - 1..y) };
        match changes.last_mut().filter(|c| c.old.start == old.end && c.new.start == new.end) {
            Some(next) => (next.old.start, next.new.start) = (old.start, new.start),
            None => changes.push(Change { old, new }),
        }
        n -= usize::from(taken);
    }
    changes.reverse();
    changes
}

#[cfg(test)]
mod tests;
