use proptest::prelude::*;

use super::*;
use crate::text::edit::{Bounds, Edit, Scope, apply};
use crate::text::encoding::Encoding;

const ALL: usize = usize::MAX;

/// Applies hunks to a text by nothing but the rule that the module's head states.
fn patched(old: &[u8], diff: &Diff<'_>, unit: Unit) -> Vec<u8> {
    let lines = |text: &[u8]| -> Vec<Vec<u8>> {
        let all = unit.segments(text).map(|line| text[line].to_vec());
        if text.is_empty() { Vec::new() } else { all.collect() }
    };
    let old_lines = lines(old);
    let mut new_lines: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    for hunk in &diff.hunks {
        let start =
            if hunk.old_lines > 0 { hunk.old_start as usize - 1 } else { hunk.old_start as usize };
        new_lines.extend_from_slice(&old_lines[at..start]);
        at = start;
        let new_start = new_lines.len() + usize::from(hunk.new_lines > 0);
        assert_eq!(hunk.new_start as usize, new_start, "{hunk:?}");
        for line in &hunk.lines {
            if line.op != Op::Add {
                assert_eq!(*line.text, *old_lines[at], "{hunk:?}");
                at += 1;
            }
            if line.op != Op::Remove {
                new_lines.push(line.text.to_vec());
            }
        }
        let count = |op| hunk.lines.iter().filter(|line| line.op != op).count();
        assert_eq!(hunk.old_lines as usize, count(Op::Add));
        assert_eq!(hunk.new_lines as usize, count(Op::Remove));
    }
    new_lines.extend_from_slice(old_lines.get(at..).unwrap_or(&[]));
    if diff.old_end == FinalNewline::EmptyText && diff.new_end == FinalNewline::Present {
        new_lines.push(Vec::new());
    }
    if diff.new_end == FinalNewline::EmptyText {
        // What a text without lines and a text of one empty line have in common: nothing.
        new_lines.retain(|line| !line.is_empty());
    }
    new_lines.join(unit.lf())
}

fn diff<'a>(old: &'a str, new: &str) -> Diff<'a> {
    of_patch(old.as_bytes(), &Patch::between(old.as_bytes(), new.as_bytes()), Unit::Byte, ALL)
}

fn utf8(diff: &Diff<'_>) -> Shown {
    diff.shown(Side { old: Encoding::Utf8, new: Encoding::Utf8 })
}

/// The hunks as marked lines, separated by `|`.
fn rendered(old: &str, new: &str) -> String {
    let mut rendered = Vec::new();
    for hunk in utf8(&diff(old, new)).hunks {
        rendered.push(format!("@{},{}", hunk.old_start, hunk.new_start));
        rendered.extend(hunk.lines.iter().map(|line| {
            let marker = match line.op {
                Op::Context => ' ',
                Op::Add => '+',
                Op::Remove => '-',
            };
            format!("{marker}{}", line.text)
        }));
    }
    rendered.join("|")
}

#[test]
fn a_change_has_three_lines_around_it() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    assert_eq!(rendered(old, &old.replace('5', "five")), "@2,2| 2| 3| 4|-5|+five| 6| 7| 8");
    assert_eq!(rendered(old, &old.replace("1\n", "")), "@1,1|-1| 2| 3| 4");
    assert_eq!(rendered(old, &format!("{old}10\n")), "@7,7| 7| 8| 9|+10");
}

#[test]
fn changes_that_are_close_share_a_hunk() {
    let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let near = old.replace("\n5\n", "\nX\n").replace("\n12\n", "\nY\n");
    assert_eq!(diff(&old, &near).hunks.len(), 1);
    let far = old.replace("\n5\n", "\nX\n").replace("\n13\n", "\nY\n");
    assert_eq!(diff(&old, &far).hunks.len(), 2);
}

#[test]
fn endings_are_part_of_what_is_shown() {
    assert_eq!(rendered("a\r\nb\r\n", "a\r\nc\r\n"), "@1,1| a\r|-b\r|+c\r");
    assert_eq!(rendered("a\r\n", "a\n"), "@1,1|-a\r|+a");
}

#[test]
fn a_new_text_is_all_additions() {
    assert_eq!(rendered("", "a\nb\n"), "@0,1|+a|+b");
    assert_eq!(rendered("", "a"), "@0,1|+a");
    assert_eq!(diff("", "a").new_end, FinalNewline::Missing);
    assert_eq!(rendered("a\n", ""), "@1,0|-a");
    assert_eq!(rendered("a", ""), "@1,0|-a");
}

#[test]
fn a_newline_at_the_end_comes_and_goes_as_an_empty_last_line() {
    assert_eq!(rendered("a\nb", "a\nb\n"), "@1,1| a| b|+");
    assert_eq!(rendered("a\nb\n", "a\nb"), "@1,1| a| b|-");
    assert_eq!(rendered("a\nb", "a\nc"), "@1,1| a|-b|+c");
    let counts = |old: &str, new: &str| (diff(old, new).added, diff(old, new).removed);
    assert_eq!(counts("a\nb", "a\nb\n"), (1, 0));
    assert_eq!(counts("a\nb", "a\nb\nc\n"), (1, 0));
    assert_eq!(counts("a\nb\n", "a\nc"), (1, 1));
    assert_eq!(counts("", "a\nb\n"), (2, 0));
}

#[test]
fn unified_text_is_what_git_writes() {
    let unified = |old: &str, new: &str| unified(&diff(old, new), &utf8(&diff(old, new)));
    assert_eq!(unified("a\nb\n", "a\nc\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
    let none = "\\ No newline at end of file";
    assert_eq!(unified("a\nb", "a\nc"), format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}\n+c\n{none}\n"));
    assert_eq!(unified("a\nb", "a\nb\n"), format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}\n+b\n"));
    assert_eq!(unified("a\nb\n", "a\nb"), format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{none}\n"));
    assert_eq!(unified("a\nb", "c\nb"), format!("@@ -1,2 +1,2 @@\n-a\n+c\n b\n{none}\n"));
    assert_eq!(unified("", "a"), format!("@@ -0,0 +1 @@\n+a\n{none}\n"));
}

#[test]
fn a_unified_text_can_be_read_back() {
    let old: String = (1..=30).map(|n| format!("{n}\r\n")).collect();
    let diff = diff(&old, "x\n");
    let shown = utf8(&diff);
    assert_eq!(parse_unified(&unified(&diff, &shown)), shown.hunks);
    assert_eq!(parse_unified("no diff\n@@ nonsense\n+x"), []);
    assert_eq!(
        parse_unified("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b")[0].lines.len(),
        2
    );
}

#[test]
fn too_many_lines_are_counted_instead() {
    let new = "x\n".repeat(5000);
    let diff = of_patch(b"", &Patch::between(b"", new.as_bytes()), Unit::Byte, 2000);
    assert_eq!((diff.added, diff.left_out), (5000, 3000));
    assert_eq!(diff.hunks[0].lines.len(), 2000);
    assert_eq!(diff.hunks[0].new_lines, 2000);
}

#[test]
fn lines_that_go_stand_before_those_that_come() {
    let old = b"a 1\nb 1\nc 1\nkept\nd 1\n";
    let mut patch = Patch::default();
    for at in [2, 6, 10, 19] {
        patch.push(old, Change { old: at..at + 1, text: b"2".to_vec().into() });
    }
    let ops = |limit: usize| -> Vec<String> {
        let diff = of_patch(old, &patch, Unit::Byte, limit);
        assert_eq!((diff.added, diff.removed), (4, 4));
        let sign = |op| match op {
            Op::Context => ' ',
            Op::Add => '+',
            Op::Remove => '-',
        };
        let lines = |hunk: &Hunk<_>| hunk.lines.iter().map(|line| sign(line.op)).collect();
        diff.hunks.iter().map(lines).collect()
    };
    assert_eq!(ops(ALL), ["---+++ -+"]);
    // Of a change that is cut no line that goes stands there without the one that comes.
    assert_eq!(ops(4), ["--++"]);
    assert_eq!(ops(5), ["--++-"]);
}

#[test]
fn very_long_lines_are_shown_around_the_change() {
    let old = format!("{}OLD{}", "a".repeat(1 << 20), "b".repeat(1000));
    let shown = utf8(&diff(&old, &old.replace("OLD", "NEW")));
    assert_eq!(shown.clipped, 2);
    let texts: Vec<_> = shown.hunks[0].lines.iter().map(|line| &line.text).collect();
    assert!(texts[0].contains("aOLDb") && texts[1].contains("aNEWb"), "{texts:?}");
    assert!(texts[0].len() < 1000);
}

#[test]
fn a_change_of_encoding_changes_every_line() {
    let old = Encoding::Utf16Le.encode("a\nb\n").unwrap();
    let diff = of_rewrite((&old, Unit::Le16), (b"a\nc\n", Unit::Byte), ALL);
    let shown = diff.shown(Side { old: Encoding::Utf16Le, new: Encoding::Utf8 });
    let texts: Vec<_> = shown.hunks[0].lines.iter().map(|line| (line.op, &*line.text)).collect();
    let (gone, come) = (Op::Remove, Op::Add);
    assert_eq!(texts, [(gone, "a"), (gone, "b"), (come, "a"), (come, "c")]);
}

#[test]
fn bytes_that_are_no_text_are_reported() {
    let old = b"caf\xe9\nx\n";
    let diff = of_patch(old, &Patch::between(old, b"caf\xe9\ny\n"), Unit::Byte, ALL);
    assert_eq!(utf8(&diff).undecodable, 1);
    assert_eq!(utf8(&diff).hunks[0].lines[0].text, "caf\u{FFFD}");
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let few = prop::sample::select(b"ab\n\n\n\r\xff\0".to_vec());
    prop::collection::vec(few, 0..60)
}

/// Applies a unified diff by git's rules: lines are terminated, and a marker says which is not.
fn git_applied(old: &str, unified: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let mut lines = unified.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(hunk) = line.strip_prefix("@@ -") {
            let (start, count) =
                hunk.split_once(' ').unwrap().0.split_once(',').unwrap_or((hunk, "1"));
            let start: usize = start.split([' ', ',']).next().unwrap().parse().unwrap();
            let start = if count == "0" { start } else { start - 1 };
            new.extend(old[at..start].iter().copied());
            at = start;
            continue;
        }
        let open = lines.next_if(|next| next.starts_with('\\')).is_some();
        let text = if open { &line[1..line.len() - 1] } else { &line[1..] };
        if !line.starts_with('+') {
            assert_eq!(text, old[at], "{unified}");
            at += 1;
        }
        if !line.starts_with('-') {
            new.push_str(text);
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn hunks_give_the_very_bytes(old in bytes(), new in bytes()) {
        for unit in [Unit::Byte, Unit::Le16, Unit::Be16] {
            let patch = Patch::between(&old, &new);
            let diff = of_patch(&old, &patch, unit, ALL);
            prop_assert_eq!(&patched(&old, &diff, unit), &new, "{:?}", diff);
            prop_assert_eq!(diff.hunks.is_empty(), old == new);
            let back = of_patch(&new, &patch.inverse(&old), unit, ALL);
            prop_assert_eq!(&patched(&new, &back, unit), &old, "{:?}", back);
        }
    }

    /// The whole way: any bytes, any edits, and the hunks that a person is shown.
    #[test]
    fn hunks_of_edits_give_what_is_written(
        old in bytes(),
        edits in prop::collection::vec(("[ab\n]{1,3}", "[abc\n]{0,3}"), 1..4),
    ) {
        let edits: Vec<_> =
            edits.iter().map(|(old, new)| Edit { old, new, scope: Scope::All }).collect();
        if let Ok(made) = apply(&old, Encoding::Utf8, &edits, Bounds { size: ALL, should_stop: &|| false }) {
            let diff = of_patch(&old, &made.patch, Unit::Byte, ALL);
            prop_assert_eq!(patched(&old, &diff, Unit::Byte), made.patch.apply(&old));
            let counted = |op| {
                diff.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.op == op).count()
            };
            prop_assert!(diff.added.abs_diff(counted(Op::Add)) <= 1);
            prop_assert!(diff.removed.abs_diff(counted(Op::Remove)) <= 1);
        }
    }

    #[test]
    fn unified_text_applies(old in "[ab\n\r]{0,40}", new in "[ab\n\r]{0,40}") {
        let diff = diff(&old, &new);
        let unified = unified(&diff, &utf8(&diff));
        prop_assert_eq!(git_applied(&old, &unified), new, "{}", unified);
    }

    #[test]
    fn any_text_can_be_read_as_a_diff(text in "\\PC{0,40}") {
        let _ = parse_unified(&text);
    }
}
