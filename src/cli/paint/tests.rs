//! What views look like.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use tool_provider::view::{DiffLine, DiffOp, Fold, Hunk, ListOrder, Style, View};

const PLAIN: Painter = Painter { paint: Paint::Plain, escape: Escape::Controls, width: None };
const NARROW: Painter = Painter { width: Some(24), ..PLAIN };

#[test]
fn a_diff_reads_like_one_and_cannot_move_the_cursor() {
    let line = |op, text: &str| DiffLine { op, text: text.to_owned() };
    let lines = vec![
        line(DiffOp::Context, "a"),
        line(DiffOp::Remove, "b\x1b[A"),
        line(DiffOp::Add, "c\n+fake\n"),
    ];
    let hunk = Hunk { old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, lines };
    let shown = PLAIN.view(&View::Diff(vec![hunk.clone()]));
    assert_eq!(shown, "@@ -1,2 +1,2 @@\n a\n-b\\u{1b}[A\n+c\\n+fake\n");
    let coloured = Painter { paint: Paint::Colours, ..PLAIN }.view(&View::Diff(vec![hunk]));
    assert!(coloured.contains("\x1b[31m-b\\u{1b}[A\x1b[0m"), "{coloured:?}");
}

#[test]
fn a_coloured_diff_has_line_numbers_groups_and_marks() {
    let line = |op, text: &str| DiffLine { op, text: text.to_owned() };
    let lines = vec![
        line(DiffOp::Context, "a"),
        line(DiffOp::Remove, "let one = 1;"),
        line(DiffOp::Add, "let one = 2;"),
        line(DiffOp::Remove, "old"),
        line(DiffOp::Add, "new"),
        line(DiffOp::Context, "z"),
    ];
    let hunk = Hunk { old_start: 8, old_lines: 4, new_start: 9, new_lines: 4, lines };
    let view = View::Diff(vec![hunk]);
    let shown = Painter { paint: Paint::Colours, ..PLAIN }.view(&view);
    let expected = "\
<36>@@ -8,4 +9,4 @@<0>
<2> 8  9<0>  a
<2> 9   <0> <31>-let one = <0><7;31>1<0><31>;<0>
<2>10   <0> <31>-old<0>
<2>   10<0> <32>+let one = <0><7;32>2<0><32>;<0>
<2>   11<0> <32>+new<0>
<2>11 12<0>  z
";
    assert_eq!(shown, expected.replace('<', "\x1b[").replace('>', "m"));
    assert_eq!(
        PLAIN.view(&view),
        "@@ -8,4 +9,4 @@\n a\n-let one = 1;\n-old\n+let one = 2;\n+new\n z\n"
    );
}

#[test]
fn every_node_has_a_shape() {
    let expected = "\
head
second
1. one
   more
2. two
3.
▾ output
  x

  y
name  n
a     10
docs <https://example.invalid/x>
→ tidy up (session s-1)
[Undo] edit_file {\"path\":\"a.txt\"}
(something that this version cannot show)
";
    assert_eq!(PLAIN.view(&every_node("")), expected);
}

/// One of each node, with a piece of text in each place where a provider may put some.
fn every_node(evil: &str) -> View {
    let text = |text: &str| format!("{text}{evil}");
    View::Group(vec![
        View::text(text("head\nsecond"), Style::Bold),
        View::List {
            items: vec![
                View::plain(text("one\nmore")),
                View::plain(text("two")),
                View::Group(Vec::new()),
            ],
            order: ListOrder::Ordered,
        },
        View::Collapsible {
            summary: text("output"),
            children: vec![View::code(Some(evil), text("x\n\ny\n"))],
            initially: Fold::Open,
        },
        View::Table {
            headers: vec![text("name"), "n".to_owned()],
            rows: vec![vec![text("a"), "10".to_owned()]],
        },
        View::Link { text: text("docs"), url: text("https://example.invalid/x") },
        View::SubSession { session: text("s-1"), summary: text("tidy up") },
        View::Action {
            label: text("Undo"),
            tool: text("edit_file"),
            arguments: [("path".to_owned(), json!(text("a.txt")))].into_iter().collect(),
        },
        View::Unknown,
    ])
}

#[test]
fn nothing_in_a_payload_reaches_a_terminal_as_a_command() {
    let evil = "\x1b]0;owned\x07\u{9b}2J\r\x08\u{202e}\u{7f}";
    for painter in [PLAIN, NARROW] {
        let shown = everything(painter, evil);
        let obeyed = |character: &char| {
            character.is_control() && *character != '\n' || *character == '\u{202e}'
        };
        assert_eq!(shown.chars().find(obeyed), None, "{shown:?}");
        assert!(shown.contains("owned"));
    }
    // Colours of the painter's own, and no other sequence.
    let coloured = Painter { paint: Paint::Colours, ..PLAIN }.view(&every_node(evil));
    for sequence in coloured.split('\x1b').skip(1) {
        let (code, _) = sequence.split_once('m').unwrap();
        assert!(code.strip_prefix('[').unwrap().bytes().all(|b| b.is_ascii_digit() || b == b';'));
    }
}

/// Every node and every kind of hit, with a text in each place where a provider may put one.
fn everything(painter: Painter, text: &str) -> String {
    let hits = json!({"matches": [
        {"path": text, "line": 1, "column": 1, "text": text, "before": [text], "after": [text],
         "highlight": [0, 3]},
    ], "files": [text], "counts": [{"path": text, "count": 1}], "paths": [{"path": text}]});
    let mut shown = painter.view(&every_node(text));
    for layout in [Layout::Headings, Layout::Lines] {
        let mut painted = Hits::new(painter, layout);
        shown.push_str(&painted.add(hits.as_object().unwrap()));
    }
    shown
}

proptest! {
    #[test]
    fn no_text_at_all_steers_a_terminal(text in any::<String>(), width in 1usize..60) {
        let painter = Painter { width: Some(width), ..PLAIN };
        let shown = everything(painter, &text);
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        prop_assert!(!shown.contains(steers), "{shown:?}");
    }
}

#[test]
fn text_lists_and_tables_keep_to_the_width_and_code_keeps_its_lines() {
    let long = "a sentence that is longer than a narrow terminal is wide";
    let view = View::Group(vec![
        View::plain(long),
        View::List { items: vec![View::plain(long)], order: ListOrder::Unordered },
        View::Table { headers: Vec::new(), rows: vec![vec!["key".to_owned(), long.to_owned()]] },
    ]);
    let expected = "\
a sentence that is
longer than a narrow
terminal is wide
- a sentence that is
  longer than a narrow
  terminal is wide
key  a sentence that is
     longer than a
     narrow terminal is
     wide
";
    assert_eq!(NARROW.view(&view), expected);
    assert_eq!(NARROW.view(&View::code(None, long)), format!("{long}\n"));
}

#[test]
fn a_table_that_would_break_words_has_its_last_column_below() {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let view = View::Table {
        headers: row(["key", "type", "meaning"]),
        rows: vec![
            row(["bash_output_bytes", "text", "how much of it is kept"]),
            row(["env", "map", ""]),
        ],
    };
    let expected = "\
key                type
      meaning
bash_output_bytes  text
      how much of it is
      kept
env                map
";
    assert_eq!(NARROW.view(&view), expected);
}
