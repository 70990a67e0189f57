//! Views as text for a terminal.

use super::output::{Escape, Ink, Paint};
use crate::tools::view::{DiffLine, DiffOp, Fold, Hunk, ListOrder, Style, View};

/// How a view becomes text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    pub(crate) paint: Paint,
    pub(crate) escape: Escape,
}

impl Show {
    /// The view as lines of text, ending with a line feed unless it is empty.
    pub(crate) fn view(self, view: &View) -> String {
        let mut text = String::new();
        self.add(&mut text, "", view);
        text
    }

    fn add(self, text: &mut String, indent: &str, view: &View) {
        match view {
            View::Text { content, style } => {
                for line in content.lines() {
                    let line = self.styled(*style, &self.escape.apply(line));
                    self.line(text, indent, &line);
                }
            }
            View::Code { content, .. } => {
                for line in content.split_terminator('\n') {
                    self.line(text, indent, &self.escape.apply(line));
                }
            }
            View::Diff(hunks) => {
                for hunk in hunks {
                    self.hunk(text, indent, hunk);
                }
            }
            View::Table { headers, rows } => self.table(text, indent, headers, rows),
            View::List { items, order } => {
                for (index, item) in items.iter().enumerate() {
                    let mark = match order {
                        ListOrder::Unordered => "- ".to_owned(),
                        ListOrder::Ordered => format!("{}. ", index + 1),
                    };
                    self.marked(text, indent, &mark, item);
                }
            }
            View::Group(children) => {
                for child in children {
                    self.add(text, indent, child);
                }
            }
            View::Collapsible { summary, children, initially } => {
                let mark = match initially {
                    Fold::Open => "▾",
                    Fold::Closed => "▸",
                };
                let head = format!("{mark} {}", self.escape.apply(summary));
                self.line(text, indent, &self.paint.ink(Ink::Bold, &head));
                let deeper = format!("{indent}  ");
                for child in children {
                    self.add(text, &deeper, child);
                }
            }
        }
    }

    /// An item whose first line carries a mark and whose other lines stand below its text.
    fn marked(self, text: &mut String, indent: &str, mark: &str, item: &View) {
        let deeper = format!("{indent}{}", " ".repeat(mark.len()));
        let start = text.len();
        self.add(text, &deeper, item);
        if text.len() > start {
            text.replace_range(start..start + deeper.len(), &format!("{indent}{mark}"));
        }
    }

    fn hunk(self, text: &mut String, indent: &str, hunk: &Hunk) {
        let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
        let head = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
        self.line(text, indent, &self.paint.ink(Ink::Cyan, &head));
        for DiffLine { op, text: content } in lines {
            let content = self.escape.apply(content.trim_end_matches('\n'));
            let line = match op {
                DiffOp::Context => format!(" {content}"),
                DiffOp::Add => self.paint.ink(Ink::Green, &format!("+{content}")),
                DiffOp::Remove => self.paint.ink(Ink::Red, &format!("-{content}")),
            };
            self.line(text, indent, &line);
        }
    }

    fn table(self, text: &mut String, indent: &str, headers: &[String], rows: &[Vec<String>]) {
        let cells = |row: &[String]| -> Vec<String> {
            row.iter().map(|cell| self.escape.apply(&cell.replace('\n', " "))).collect()
        };
        let all: Vec<Vec<String>> =
            std::iter::once(cells(headers)).chain(rows.iter().map(|row| cells(row))).collect();
        let columns = all.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let widths = all.iter().filter_map(|row| row.get(column));
            widths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in all.iter().enumerate() {
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            let line = line.join("  ");
            let line = line.trim_end();
            match index {
                0 if line.is_empty() => {}
                0 => self.line(text, indent, &self.paint.ink(Ink::Bold, line)),
                _ => self.line(text, indent, line),
            }
        }
    }

    fn styled(self, style: Style, line: &str) -> String {
        let ink = match style {
            Style::Normal => return line.to_owned(),
            Style::Bold => Ink::Bold,
            Style::Italic => Ink::Italic,
            Style::Code => Ink::Cyan,
            Style::Dim => Ink::Dim,
            Style::Error => Ink::Red,
            Style::Warning => Ink::Yellow,
            Style::Success => Ink::Green,
        };
        self.paint.ink(ink, line)
    }

    fn line(self, text: &mut String, indent: &str, line: &str) {
        text.push_str(indent);
        text.push_str(line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Show = Show { paint: Paint::Plain, escape: Escape::Controls };

    #[test]
    fn a_diff_reads_like_one_and_cannot_move_the_cursor() {
        let line = |op, text: &str| DiffLine { op, text: text.to_owned() };
        let lines = vec![
            line(DiffOp::Context, "a"),
            line(DiffOp::Remove, "b\x1b[A"),
            line(DiffOp::Add, "c"),
        ];
        let hunk = Hunk { old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, lines };
        let shown = PLAIN.view(&View::Diff(vec![hunk.clone()]));
        assert_eq!(shown, "@@ -1,2 +1,2 @@\n a\n-b\\u{1b}[A\n+c\n");
        let coloured = Show { paint: Paint::Colours, ..PLAIN }.view(&View::Diff(vec![hunk]));
        assert!(coloured.contains("\x1b[32m+c\x1b[0m"));
    }

    #[test]
    fn every_node_has_a_shape() {
        let view = View::Group(vec![
            View::text("head\nsecond", Style::Bold),
            View::List {
                items: vec![View::plain("one\nmore"), View::plain("two")],
                order: ListOrder::Ordered,
            },
            View::Collapsible {
                summary: "output".to_owned(),
                children: vec![View::code(None, "x\n\ny\n")],
                initially: Fold::Open,
            },
            View::Table {
                headers: vec!["name".to_owned(), "n".to_owned()],
                rows: vec![vec!["a".to_owned(), "10".to_owned()]],
            },
        ]);
        let expected =
            "head\nsecond\n1. one\n   more\n2. two\n▾ output\n  x\n  \n  y\nname  n\na     10\n";
        assert_eq!(PLAIN.view(&view), expected);
    }
}
