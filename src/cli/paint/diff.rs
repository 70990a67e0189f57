//! Diffs: a unified diff where there are no colours, else one with the numbers of the lines and with
//! the words marked that differ.

use super::changed_words::{Part, Piece, changed_words};
use super::tree::Painter;
use super::{Ink, Paint};
use tool_provider::view::{DiffLine, DiffOp, Hunk};

impl Painter {
    pub(super) fn hunk(self, text: &mut String, indent: &str, hunk: &Hunk) {
        let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
        let head = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
        self.line(text, indent, &self.paint.ink(Ink::Cyan, &head));
        let mut gutter = Gutter::of(hunk);
        let is_context = |line: &DiffLine| line.op == DiffOp::Context;
        for run in lines.chunk_by(|one, next| is_context(one) == is_context(next)) {
            for (op, pieces) in self.run(run) {
                let numbers = match self.paint {
                    Paint::Colours => self.paint.ink(Ink::Dim, &gutter.next(op)) + " ",
                    Paint::Plain => String::new(),
                };
                self.line(text, indent, &(numbers + &self.diff_line(op, &pieces)));
            }
        }
    }

    /// Lines that stay, or those of one change: first what goes, then what comes. Where as many lines go
    /// as come, each is compared with the one that takes its place.
    fn run(self, run: &[DiffLine]) -> Vec<(DiffOp, Vec<Piece>)> {
        let of = |op: DiffOp| run.iter().filter(move |line| line.op == op);
        let whole = |line: &DiffLine| (line.op, vec![Piece::whole(self.content(line))]);
        let compares =
            self.paint == Paint::Colours && of(DiffOp::Remove).count() == of(DiffOp::Add).count();
        let (mut removed, mut added): (Vec<_>, Vec<_>) =
            (of(DiffOp::Remove).map(whole).collect(), of(DiffOp::Add).map(whole).collect());
        if compares {
            for ((_, old), (_, new)) in removed.iter_mut().zip(&mut added) {
                if let Some(marked) = changed_words(&old[0].text, &new[0].text) {
                    (*old, *new) = marked;
                }
            }
        }
        of(DiffOp::Context).map(whole).chain(removed).chain(added).collect()
    }

    /// A line of a diff without its line feed: one inside would look like a line of the diff.
    fn content(self, line: &DiffLine) -> String {
        self.escape.apply(&line.text.trim_end_matches('\n').replace('\n', "\\n"))
    }

    fn diff_line(self, op: DiffOp, pieces: &[Piece]) -> String {
        let (sign, inks) = match op {
            DiffOp::Context => (" ", None),
            DiffOp::Remove => ("-", Some((Ink::Red, Ink::Gone))),
            DiffOp::Add => ("+", Some((Ink::Green, Ink::New))),
        };
        let mut line = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            let text =
                if index == 0 { format!("{sign}{}", piece.text) } else { piece.text.clone() };
            line.push_str(&match (inks, piece.part) {
                (None, _) => text,
                (Some((ink, _)), Part::Same) | (Some((_, ink)), Part::Changed) => {
                    self.paint.ink(ink, &text)
                }
            });
        }
        line
    }
}

/// The numbers of a hunk's lines, those of the old text and those of the new.
struct Gutter {
    old: u32,
    new: u32,
    /// How many columns a number takes.
    width: usize,
}

impl Gutter {
    fn of(hunk: &Hunk) -> Self {
        let last = |start: u32, lines: u32| start.saturating_add(lines);
        let most = last(hunk.old_start, hunk.old_lines).max(last(hunk.new_start, hunk.new_lines));
        Self { old: hunk.old_start, new: hunk.new_start, width: most.to_string().len() }
    }

    /// What stands before the next line.
    fn next(&mut self, op: DiffOp) -> String {
        let width = self.width;
        let number = |of: &mut u32, is_there: bool| {
            if !is_there {
                return " ".repeat(width);
            }
            let text = format!("{of:>width$}");
            *of = of.saturating_add(1);
            text
        };
        let old = number(&mut self.old, op != DiffOp::Add);
        let new = number(&mut self.new, op != DiffOp::Remove);
        format!("{old} {new}")
    }
}
