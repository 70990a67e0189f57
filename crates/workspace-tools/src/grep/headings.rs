//! Hits as one text, as `rg --heading` prints them: a file's path, then its lines as `12:text`, those
//! around them as `11-text`, `--` where lines are left out between these, and an empty line between
//! files.

use std::fmt::Write as _;

use super::collect::Hit;

/// The text while hits come.
#[derive(Debug, Default)]
pub(super) struct Headings {
    text: String,
    path: String,
    /// The last line that is there of the file.
    last: u64,
    gaps: Gaps,
}

/// Whether lines that are left out are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gaps {
    #[default]
    Silent,
    Marked,
}

const GAP: &str = "--";
const MORE: char = '…';

impl Headings {
    pub(super) fn new(gaps: Gaps) -> Self {
        Self { gaps, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Takes away what was added behind `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.text.truncate(len);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds a hit. `more` says how many of its file are not listed behind it.
    pub(super) fn add(&mut self, path: &str, hit: &Hit, more: Option<&str>) {
        if self.text.is_empty() || self.path != path {
            let apart = if self.text.is_empty() { "" } else { "\n\n" };
            let _ = write!(self.text, "{apart}{path}");
            path.clone_into(&mut self.path);
            self.last = 0;
        } else if self.gaps == Gaps::Marked && self.first(hit) > self.last + 1 {
            let _ = write!(self.text, "\n{GAP}");
        }
        let before = hit.before.iter().map(String::as_str);
        self.lines(hit.line.saturating_sub(hit.before.len() as u64), '-', before);
        let count = hit.snippet.text.split('\n').count() as u64;
        self.lines(hit.line, ':', hit.snippet.text.split('\n'));
        self.lines(hit.line + count, '-', hit.after.iter().map(String::as_str));
        if let Some(more) = more {
            let _ = write!(self.text, "\n{MORE} {more}");
        }
    }

    fn first(&self, hit: &Hit) -> u64 {
        hit.line.saturating_sub(hit.before.len() as u64)
    }

    /// Adds lines from this number on, except those that are there.
    fn lines<'a>(&mut self, first: u64, mark: char, lines: impl Iterator<Item = &'a str>) {
        for (number, line) in (first..).zip(lines) {
            if number > self.last {
                let _ = write!(self.text, "\n{number}{mark}{}", line.trim_end_matches('\r'));
                self.last = number;
            }
        }
    }
}

/// A file of such a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) path: &'a str,
    pub(super) lines: Vec<Line<'a>>,
}

/// A line of a file in such a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Hit(i64, &'a str),
    Context(i64, &'a str),
    Gap,
    /// Whatever else is there, such as how many more hits there are.
    Other(&'a str),
}

/// The files of such a text.
pub(super) fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut is_heading = true;
    for line in text.lines() {
        match sections.last_mut() {
            Some(section) if !is_heading && !line.is_empty() => section.lines.push(Line::of(line)),
            _ if line.is_empty() => {}
            _ => sections.push(Section { path: line, lines: Vec::new() }),
        }
        is_heading = line.is_empty();
    }
    sections
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        if line == GAP {
            return Line::Gap;
        }
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let number = line[..digits].parse();
        match (number, line[digits..].chars().next()) {
            (Ok(number), Some(':')) => Line::Hit(number, &line[digits + 1..]),
            (Ok(number), Some('-')) => Line::Context(number, &line[digits + 1..]),
            _ => Line::Other(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::snippet::Snippet;
    use super::*;

    fn hit(line: u64, text: &str, before: &[&str], after: &[&str]) -> Hit {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let snippet = Snippet { text: text.to_owned(), highlight: None };
        Hit { line, column: 1, snippet, before: owned(before), after: owned(after) }
    }

    #[test]
    fn lines_come_once_in_order_and_gaps_are_marked() {
        let mut text = Headings::new(Gaps::Marked);
        text.add("a b", &hit(3, "x", &["1", "2"], &["4", "5"]), None);
        text.add("a b", &hit(5, "x\ny", &["4"], &["7"]), None);
        text.add("a b", &hit(9, "x", &[], &[]), Some("4 more in this file"));
        text.add("c", &hit(1, "", &[], &["2"]), None);
        let text = text.into_text();
        assert_eq!(
            text,
            "a b\n1-1\n2-2\n3:x\n4-4\n5-5\n6:y\n7-7\n--\n9:x\n… 4 more in this file\n\nc\n1:\n2-2"
        );
        let sections = sections(&text);
        assert_eq!(sections.iter().map(|s| s.path).collect::<Vec<_>>(), ["a b", "c"]);
        assert_eq!(sections[0].lines[2], Line::Hit(3, "x"));
        assert_eq!(
            sections[0].lines[7..],
            [Line::Gap, Line::Hit(9, "x"), Line::Other("… 4 more in this file"),]
        );
        assert_eq!(sections[1].lines, [Line::Hit(1, ""), Line::Context(2, "2")]);
    }

    #[test]
    fn without_context_gaps_are_silent() {
        let mut text = Headings::new(Gaps::Silent);
        text.add("a", &hit(3, "x", &[], &[]), None);
        let len = text.len();
        text.add("a", &hit(9, "y", &[], &[]), None);
        text.truncate(len);
        assert_eq!(text.into_text(), "a\n3:x");
    }
}
