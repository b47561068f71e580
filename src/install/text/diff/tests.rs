use std::fs;
use std::process::Command;

use fastrand::Rng;

use super::{MAX_EDITS, unified};

/// What becomes of `old` by a difference that has to fit to the line.
fn applied(old: &str, diff: &str) -> String {
    let mut old = old.split_inclusive('\n');
    let mut old_at = 0;
    let mut new = String::new();
    let mut lines = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = lines.next() {
        if let Some(span) = line.strip_prefix("@@ -") {
            let (start, count) =
                span.split([',', ' ']).next().map(|s| (s.parse::<usize>().unwrap(), span)).unwrap();
            let empty = count.split(' ').next().unwrap().ends_with(",0");
            while old_at < start - usize::from(!empty) {
                new.push_str(old.next().unwrap());
                old_at += 1;
            }
            continue;
        }
        let mut text = line[1..].to_string();
        if lines.next_if(|l| *l == "\\ No newline at end of file\n").is_some() {
            text.pop();
        }
        if !line.starts_with('+') {
            assert_eq!(old.next(), Some(text.as_str()), "{diff}");
            old_at += 1;
        }
        if !line.starts_with('-') {
            new.push_str(&text);
        }
    }
    new.extend(old);
    new
}

fn text(rng: &mut Rng, lines: usize) -> Vec<String> {
    (0..lines)
        .map(|_| format!("{}\n", ["a", "b", "c", "", "{", "}", "x\r"][rng.usize(0..7)]))
        .collect()
}

/// Two texts of which one was made from the other.
fn pair(rng: &mut Rng, edits: usize) -> (String, String) {
    let lines = rng.usize(0..40);
    let mut old = text(rng, lines);
    let mut new = old.clone();
    for _ in 0..edits {
        let start = rng.usize(0..=new.len());
        let end = (start + rng.usize(0..4)).min(new.len());
        let put = rng.usize(0..4);
        new.splice(start..end, text(rng, put));
    }
    for all in [&mut old, &mut new] {
        if let (true, Some(last)) = (rng.u8(0..4) == 0, all.last_mut()) {
            last.pop();
        }
    }
    // A line that is empty and has no end is no line.
    (old.concat(), new.concat())
}

#[test]
fn a_difference_makes_the_new_text_of_the_old() {
    let mut rng = Rng::with_seed(1);
    for n in 0..3000 {
        let (old, new) = pair(&mut rng, n % 6);
        let diff = unified(&old, &new, "a", "b");
        assert_eq!(diff.is_empty(), old == new);
        assert_eq!(applied(&old, &diff), new, "{old:?}\n{new:?}\n{diff}");
    }
}

/// Runs a program that may be missing; what it printed.
fn run(test: &str, program: &str, args: &[&str], dir: &tempfile::TempDir) -> Option<Vec<u8>> {
    match Command::new(program).args(args).current_dir(dir.path()).output() {
        Ok(output) => {
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
        Err(_) => {
            eprintln!("skipped {test}: {program} is not installed");
            None
        }
    }
}

#[test]
fn patch_makes_the_new_text_of_the_old() {
    let mut rng = Rng::with_seed(2);
    let dir = tempfile::tempdir().unwrap();
    for n in 0..30 {
        let (old, new) = pair(&mut rng, 1 + n % 5);
        if old == new || new.is_empty() {
            continue;
        }
        fs::write(dir.path().join("old"), &old).unwrap();
        fs::write(dir.path().join("diff"), unified(&old, &new, "old", "new")).unwrap();
        let args = ["--binary", "-s", "-o", "made", "old", "diff"];
        if run("patch_makes_the_new_text_of_the_old", "patch", &args, &dir).is_none() {
            return;
        }
        assert_eq!(fs::read_to_string(dir.path().join("made")).unwrap(), new);
    }
}

#[test]
fn one_change_is_printed_as_diff_prints_it() {
    let mut rng = Rng::with_seed(3);
    let dir = tempfile::tempdir().unwrap();
    for n in 0..40 {
        // Lines that stand nowhere else leave no choice.
        let mut lines: Vec<String> = (0..rng.usize(0..30)).map(|n| format!("{n}\n")).collect();
        if let (true, Some(last)) = (n % 4 == 0, lines.last_mut()) {
            last.pop();
        }
        let start = rng.usize(0..=lines.len());
        let end = (start + rng.usize(0..4)).min(lines.len());
        let put = ["new\n", "newer\n"][..rng.usize(0..3)].concat();
        let old = lines.concat();
        let new = [&lines[..start].concat(), put.as_str(), &lines[end..].concat()].concat();
        fs::write(dir.path().join("old"), &old).unwrap();
        fs::write(dir.path().join("new"), &new).unwrap();
        let args = ["-u", "--label", "old", "--label", "new", "old", "new"];
        let Some(theirs) = run("one_change_is_printed_as_diff_prints_it", "diff", &args, &dir)
        else {
            return;
        };
        assert_eq!(unified(&old, &new, "old", "new"), String::from_utf8(theirs).unwrap());
    }
}

#[test]
fn near_changes_share_a_hunk_and_far_ones_do_not() {
    let lines = |changed: &[usize]| -> String {
        (1..=20)
            .map(|n| if changed.contains(&n) { format!("new {n}\n") } else { format!("{n}\n") })
            .collect()
    };
    let hunks =
        |changed: &[usize]| unified(&lines(&[]), &lines(changed), "a", "b").matches("@@ -").count();
    assert_eq!((hunks(&[5, 12]), hunks(&[5, 13])), (1, 2));
    assert_eq!(unified("a\n", "a\n", "x", "y"), "");
    assert_eq!(unified("", "a\n", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(
        unified("a\nb", "a\nb\n", "x", "y"),
        "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    );
}

/// The length of the longest common subsequence, by the book.
fn common(old: &[&str], new: &[&str]) -> usize {
    let mut row = vec![0; new.len() + 1];
    for a in old {
        let mut corner = 0;
        for (n, b) in new.iter().enumerate() {
            let above = row[n + 1];
            row[n + 1] = if a == b { corner + 1 } else { above.max(row[n]) };
            corner = above;
        }
    }
    row[new.len()]
}

#[test]
fn no_line_is_changed_without_need() {
    let mut rng = Rng::with_seed(4);
    for n in 0..500 {
        let (old, new) = pair(&mut rng, 1 + n % 9);
        let (a, b): (Vec<_>, Vec<_>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let diff = unified(&old, &new, "", "");
        let changed = diff.lines().skip(2).filter(|l| l.starts_with(['+', '-'])).count();
        assert_eq!(changed, a.len() + b.len() - 2 * common(&a, &b), "{diff}");
    }
}

#[test]
fn texts_that_differ_in_very_much_are_one_change() {
    let many = |mark: &str, lines: usize| -> String {
        (0..lines).map(|n| format!("{mark}{n}\nsame\n")).collect()
    };
    for (lines, whole) in [(MAX_EDITS / 2, false), (MAX_EDITS / 2 + 1, true)] {
        let (old, new) = (many("a", lines), many("b", lines));
        let diff = unified(&old, &new, "a", "b");
        assert_eq!(diff.contains("\n-same\n"), whole);
        assert_eq!(applied(&old, &diff), new);
    }
    let far = unified(&"a\n".repeat(300_000), &"b\n".repeat(300_000), "a", "b");
    assert_eq!(far.lines().count(), 600_003);
}
