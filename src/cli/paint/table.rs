//! Tables.

use super::tree::Painter;
use super::wrap::{columns, wrap};
use super::{Ink, Paint};

/// What stands between two columns.
const GAP: &str = "  ";

/// How far the last column is indented where it stands below the others: where it would break words beside
/// them.
const BELOW: &str = "      ";

/// No column is made narrower than this to fit a terminal.
const LEAST: usize = 12;

impl Painter {
    pub(super) fn table(
        self,
        text: &mut String,
        indent: &str,
        headers: &[String],
        rows: &[Vec<String>],
    ) {
        let cells = |row: &[String]| -> Vec<String> {
            row.iter().map(|cell| self.escape.on_one_line(cell)).collect()
        };
        let head = (!headers.is_empty()).then(|| cells(headers));
        let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
        let width = self.width_left(indent);
        let natural = measured(head.iter().chain(&rows), columns);
        let widths = fitted(natural.clone(), width);
        let words = measured(head.iter().chain(&rows), longest_word);
        let breaks_words = widths.iter().zip(words).any(|(width, word)| *width < word);
        let all = head.iter().map(|head| (head, Some(Ink::Bold)));
        let all = all.chain(rows.iter().map(|row| (row, None)));
        let others = natural.len().saturating_sub(1);
        if breaks_words && others > 0 {
            let widths = fitted(natural[..others].to_vec(), width);
            for (row, ink) in all {
                let (beside, last) = row.split_at(row.len().min(others));
                self.row(text, indent, beside, &widths, ink);
                for cell in last.iter().filter(|cell| !cell.is_empty()) {
                    self.below(text, indent, cell, ink);
                }
            }
        } else {
            for (row, ink) in all {
                self.row(text, indent, row, &widths, ink);
            }
        }
    }

    /// The last cell of a row below the others.
    fn below(self, text: &mut String, indent: &str, cell: &str, ink: Option<Ink>) {
        let indent = format!("{indent}{BELOW}");
        let width = fitted(vec![columns(cell)], self.width_left(&indent));
        self.row(text, &indent, &[cell.to_owned()], &width, ink);
    }

    fn row(
        self,
        text: &mut String,
        indent: &str,
        cells: &[String],
        widths: &[usize],
        ink: Option<Ink>,
    ) {
        let wrapped: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for index in 0..height {
            let mut line = String::new();
            for (column, (pieces, width)) in wrapped.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push_str(GAP);
                }
                let piece = pieces.get(index).map_or("", String::as_str);
                line.push_str(piece);
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(piece))));
            }
            let line = line.trim_end();
            match ink {
                Some(ink) if self.paint == Paint::Colours => {
                    self.line(text, indent, &self.paint.ink(ink, line));
                }
                _ => self.line(text, indent, line),
            }
        }
    }
}

/// The most that `measure` finds in each column.
fn measured<'a>(
    rows: impl Iterator<Item = &'a Vec<String>>,
    measure: impl Fn(&str) -> usize,
) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure(cell).max(*width);
        }
    }
    widths
}

fn longest_word(cell: &str) -> usize {
    cell.split(' ').map(columns).max().unwrap_or(0)
}

/// The same widths with the widest ones made narrower until all of them fit, or none can be
/// narrower.
fn fitted(mut widths: Vec<usize>, width: Option<usize>) -> Vec<usize> {
    let Some(width) = width else { return widths };
    let gaps = widths.len().saturating_sub(1) * GAP.len();
    let width = width.saturating_sub(gaps);
    loop {
        let total: usize = widths.iter().sum();
        let mut sorted = widths.clone();
        sorted.sort_unstable();
        let Some(&widest) = sorted.last() else { return widths };
        if total <= width || widest <= LEAST {
            return widths;
        }
        // Down to the next one, or by what is too much, whichever is less.
        let many = sorted.iter().filter(|width| **width == widest).count();
        let next = sorted.iter().rev().find(|width| **width < widest).copied().unwrap_or(0);
        let step = (total - width).div_ceil(many).min(widest - next.max(LEAST).min(widest)).max(1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            *width = (widest - step).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_give_way() {
        assert_eq!(fitted(vec![5, 100, 8], Some(60)), [5, 43, 8]);
        assert_eq!(fitted(vec![50, 100], Some(62)), [30, 30]);
        assert_eq!(fitted(vec![5, 8], Some(60)), [5, 8]);
        assert_eq!(fitted(vec![50, 100], None), [50, 100]);
        assert_eq!(fitted(vec![50, 100], Some(3)), [12, 12]);
    }
}
