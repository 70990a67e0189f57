//! Views: every node that the protocol knows, and those that it does not know yet.

use super::wrap::{columns, wrap};
use super::{Escape, Ink, Paint};
use tool_provider::view::{Fold, ListOrder, Style, View};

/// How a view becomes text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painter {
    pub(crate) paint: Paint,
    pub(crate) escape: Escape,
    /// How many columns there are; text for a file or a pipe has no such limit.
    pub(crate) width: Option<usize>,
}

/// However narrow the terminal, so much of each line is text.
const LEAST_ROOM: usize = 16;

impl Painter {
    /// The view as lines of text, ending with a line feed unless it is empty.
    pub(crate) fn view(self, view: &View) -> String {
        let mut text = String::new();
        self.add(&mut text, "", view);
        text
    }

    fn add(self, text: &mut String, indent: &str, view: &View) {
        match view {
            View::Text { content, style } => self.prose(text, indent, content, ink_of(*style)),
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
            View::Link { text: label, url } => {
                let link = self.escape.on_one_line(url);
                let link = self.paint.ink(Ink::Underline, &link);
                let label = self.escape.on_one_line(label);
                let line = match label.is_empty() {
                    true => link,
                    false => format!("{label} <{link}>"),
                };
                self.line(text, indent, &line);
            }
            View::List { items, order } => {
                for (index, item) in items.iter().enumerate() {
                    let mark = match order {
                        ListOrder::Unordered => "- ".to_owned(),
                        ListOrder::Ordered => format!("{}. ", index + 1),
                    };
                    self.marked(text, indent, &mark, item);
                }
            }
            View::Group(children) => self.all(text, indent, children),
            View::Collapsible { summary, children, initially } => {
                let mark = match initially {
                    Fold::Open => "▾",
                    Fold::Closed => "▸",
                };
                let head = format!("{mark} {summary}");
                self.prose(text, indent, &head, Some(Ink::Bold));
                self.all(text, &format!("{indent}  "), children);
            }
            View::SubSession { session, summary } => {
                self.prose(text, indent, &format!("→ {summary} (session {session})"), None);
            }
            View::Action { label, tool, arguments } => {
                let label = self.paint.ink(Ink::Bold, &self.escape.on_one_line(label));
                let call = format!("{tool} {}", serde_json::Value::from(arguments.clone()));
                let call = self.paint.ink(Ink::Dim, &self.escape.on_one_line(&call));
                self.line(text, indent, &format!("[{label}] {call}"));
            }
            View::Unknown => {
                let placeholder = "(something that this version cannot show)";
                self.prose(text, indent, placeholder, Some(Ink::Dim));
            }
        }
    }

    fn all(self, text: &mut String, indent: &str, children: &[View]) {
        for child in children {
            self.add(text, indent, child);
        }
    }

    /// Text that may be broken anywhere between words.
    fn prose(self, text: &mut String, indent: &str, content: &str, ink: Option<Ink>) {
        for line in content.lines() {
            let line = self.escape.apply(line);
            let pieces = match self.width_left(indent) {
                Some(width) => wrap(&line, width),
                None => vec![line],
            };
            for piece in pieces {
                match ink {
                    Some(ink) => self.line(text, indent, &self.paint.ink(ink, &piece)),
                    None => self.line(text, indent, &piece),
                }
            }
        }
    }

    /// An item whose first line carries a mark and whose other lines stand below its text.
    fn marked(self, text: &mut String, indent: &str, mark: &str, item: &View) {
        let deeper = format!("{indent}{}", " ".repeat(columns(mark)));
        let start = text.len();
        self.add(text, &deeper, item);
        match text.get(start..).is_some_and(|added| added.starts_with(&deeper)) {
            true => text.replace_range(start..start + deeper.len(), &format!("{indent}{mark}")),
            // It has no line, or an empty one.
            false => text.insert_str(start, &format!("{indent}{}\n", mark.trim_end())),
        }
    }

    /// How many columns are left of a line behind its indent, where there is a limit.
    pub(super) fn width_left(self, indent: &str) -> Option<usize> {
        self.width.map(|width| width.saturating_sub(columns(indent)).max(LEAST_ROOM))
    }

    /// One line; blanks at its end are its own, not the indent's.
    pub(super) fn line(self, text: &mut String, indent: &str, line: &str) {
        if !line.is_empty() {
            text.push_str(indent);
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn ink_of(style: Style) -> Option<Ink> {
    match style {
        Style::Normal => None,
        Style::Bold => Some(Ink::Bold),
        Style::Italic => Some(Ink::Italic),
        Style::Code => Some(Ink::Cyan),
        Style::Dim => Some(Ink::Dim),
        Style::Error => Some(Ink::Red),
        Style::Warning => Some(Ink::Yellow),
        Style::Success => Some(Ink::Green),
    }
}
