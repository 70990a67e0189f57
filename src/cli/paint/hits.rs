//! What a search found, as it is found.
//!
//! The pieces of a running search hold all that its result does, with marks and sizes beside it, so a
//! result that is text has nothing left to show. A hit that was shown when it was found is not shown
//! again with a result of the same form. Fields that are missing are passed over.

use std::collections::HashSet;

use serde_json::Value;

use super::{Ink, Painter};
use tool_provider::Payload;
use workspace_tools::field::{Field, List, Whole, path_of};
use workspace_tools::glob::spec::{KIND, PATHS};
use workspace_tools::grep::spec::{
    COLUMN, COUNT, COUNTS, FILES, HIGHLIGHT, LINE, LINES_AFTER, LINES_BEFORE, MATCHES,
    MORE_IN_FILE, TEXT, text_of,
};

/// How hits are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The file's name above its lines: for a person.
    Headings,
    /// The file's name on each line: for other programs.
    Lines,
}

/// The lists of a payload that hold hits.
const LISTS: [Field<List>; 4] = [MATCHES, FILES, COUNTS, PATHS];

/// The tools whose results these are. One that found nothing may have none of the lists.
const TOOLS: [&str; 2] = ["grep", "glob"];

/// The hits of one call.
pub(crate) struct Hits {
    painter: Painter,
    layout: Layout,
    /// What has been shown, by path, line and column.
    seen: HashSet<(String, u64, u64)>,
    /// The file and the number of the line that were shown last.
    last: Option<(String, u64)>,
    /// Whether lines around hits were asked for, so that gaps between them have to be seen.
    context: Context,
    /// Hits that are not listed of the files that have too many.
    left_out: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    None,
    Some,
}

impl Hits {
    pub(crate) fn new(painter: Painter, layout: Layout) -> Self {
        Self {
            painter,
            layout,
            seen: HashSet::new(),
            last: None,
            context: Context::None,
            left_out: 0,
        }
    }

    /// Whether a payload is one of a search.
    pub(crate) fn are_in(payload: &Payload) -> bool {
        LISTS.iter().any(|list| list.get(payload).is_some())
            || payload.get("tool").is_some_and(|tool| TOOLS.iter().any(|name| tool == name))
    }

    /// How many hits are not listed and were not said to be among what was shown.
    pub(crate) fn left_out(&self) -> u64 {
        match self.layout {
            Layout::Headings => 0,
            Layout::Lines => self.left_out,
        }
    }

    /// The hits of a payload that have not been shown yet, as lines of text.
    pub(crate) fn add(&mut self, payload: &Payload) -> String {
        let mut text = String::new();
        let list = |field: Field<List>| field.get(payload).unwrap_or_default().iter();
        let matches: Vec<Match<'_>> = list(MATCHES).filter_map(Match::of).collect();
        for (index, hit) in matches.iter().enumerate() {
            self.hit(&mut text, hit, matches.get(index + 1));
        }
        for field in [FILES, PATHS] {
            for item in list(field) {
                self.path(&mut text, item);
            }
        }
        for item in list(COUNTS) {
            self.count(&mut text, item);
        }
        text
    }

    fn hit(&mut self, text: &mut String, hit: &Match<'_>, next: Option<&Match<'_>>) {
        if !self.seen.insert((hit.path.to_owned(), hit.line, hit.column)) {
            return;
        }
        if !hit.before.is_empty() || !hit.after.is_empty() {
            self.context = Context::Some;
        }
        let shown = self.shown_of(hit.path);
        if shown.is_some_and(|shown| shown >= hit.line) {
            // A further hit on a line that stands there already.
            return;
        }
        let first = hit.line.saturating_sub(hit.before.len() as u64);
        self.part(text, hit.path, first.max(shown.map_or(0, |shown| shown + 1)));
        for (line, content) in (first..).zip(&hit.before) {
            self.context_line(text, hit.path, line, content);
        }
        let mut line = hit.line;
        for (content, span) in hit.lines() {
            let marked = self.marked(content, span);
            self.put(text, hit.path, line, ':', &marked);
            line += 1;
        }
        let until = match next {
            Some(next) if next.path == hit.path => next.line,
            _ => u64::MAX,
        };
        for (line, content) in (line..until).zip(&hit.after) {
            self.context_line(text, hit.path, line, content);
        }
        if let Some(more) = hit.more {
            self.left_out = self.left_out.saturating_add(more);
            if self.layout == Layout::Headings {
                let more = format!("… {more} more in this file");
                text.push_str(&self.painter.paint.ink(Ink::Dim, &more));
                text.push('\n');
            }
        }
    }

    /// The last line of this file that has been shown, where it was the last file.
    fn shown_of(&self, path: &str) -> Option<u64> {
        self.last.as_ref().filter(|(last, _)| last == path).map(|(_, line)| *line)
    }

    /// What sets a group of lines apart from what stands above.
    fn part(&self, text: &mut String, path: &str, first: u64) {
        let shown = self.shown_of(path);
        match (self.layout, shown) {
            (Layout::Headings, None) => {
                if self.last.is_some() {
                    text.push('\n');
                }
                let path = self.painter.escape.on_one_line(path);
                text.push_str(&self.painter.paint.ink(Ink::Magenta, &path));
                text.push('\n');
            }
            (Layout::Headings | Layout::Lines, _) => {
                let is_gap = shown.is_none_or(|shown| shown + 1 < first);
                if is_gap && self.context == Context::Some && self.last.is_some() {
                    text.push_str(&self.painter.paint.ink(Ink::Dim, "--"));
                    text.push('\n');
                }
            }
        }
    }

    fn context_line(&mut self, text: &mut String, path: &str, line: u64, content: &str) {
        if self.shown_of(path).is_none_or(|shown| shown < line) {
            let content = self.content(content);
            self.put(text, path, line, '-', &content);
        }
    }

    fn put(&mut self, text: &mut String, path: &str, line: u64, mark: char, content: &str) {
        let paint = self.painter.paint;
        if self.layout == Layout::Lines {
            let path = self.painter.escape.on_one_line(path);
            text.push_str(&paint.ink(Ink::Magenta, &path));
            text.push(mark);
        }
        text.push_str(&paint.ink(Ink::Green, &line.to_string()));
        text.push(mark);
        text.push_str(content);
        text.push('\n');
        self.last = Some((path.to_owned(), line));
    }

    /// A piece of a line; what it is between never has a line break.
    fn content(&self, content: &str) -> String {
        self.painter.escape.apply(content.trim_end_matches(['\n', '\r']))
    }

    fn marked(&self, content: &str, span: Option<Span>) -> String {
        let parts = span.and_then(|Span { start, end }| {
            Some((content.get(..start)?, content.get(start..end)?, content.get(end..)?))
        });
        match parts {
            None => self.content(content),
            Some((before, found, behind)) => {
                let found = self.painter.escape.apply(found);
                let found = self.painter.paint.ink(Ink::Match, &found);
                self.painter.escape.apply(before) + &found + &self.content(behind)
            }
        }
    }

    fn path(&mut self, text: &mut String, item: &Value) {
        let Some(path) = path_of(item) else { return };
        if !self.seen.insert((path.to_owned(), 0, 0)) {
            return;
        }
        let kind = item.as_object().and_then(|item| KIND.get(item)).unwrap_or_default();
        let mut shown = self.painter.escape.on_one_line(path);
        let ink = match kind {
            "folder" | "directory" => {
                if !shown.ends_with('/') {
                    shown.push('/');
                }
                Some(Ink::Blue)
            }
            "link" | "symlink" => Some(Ink::Cyan),
            _ => None,
        };
        text.push_str(&ink.map_or(shown.clone(), |ink| self.painter.paint.ink(ink, &shown)));
        text.push('\n');
    }

    fn count(&mut self, text: &mut String, item: &Value) {
        let Some(path) = path_of(item) else { return };
        let count =
            [COUNT.name, "matches", "lines"].iter().find_map(|name| item.get(*name)?.as_u64());
        if !self.seen.insert((path.to_owned(), 0, 0)) {
            return;
        }
        let path = self.painter.escape.on_one_line(path);
        text.push_str(&self.painter.paint.ink(Ink::Magenta, &path));
        text.push(':');
        let count = count.unwrap_or_default().to_string();
        text.push_str(&self.painter.paint.ink(Ink::Green, &count));
        text.push('\n');
    }
}

/// One hit.
struct Match<'a> {
    path: &'a str,
    line: u64,
    column: u64,
    text: &'a str,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
    span: Option<Span>,
    /// How many of its file are not listed behind it.
    more: Option<u64>,
}

/// Where in a text something was found, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl<'a> Match<'a> {
    fn of(item: &'a Value) -> Option<Self> {
        let hit = item.as_object()?;
        let number = |field: Field<Whole>| hit.get(field.name).and_then(whole);
        let text = TEXT.get(hit).unwrap_or_default();
        Some(Self {
            path: path_of(item)?,
            line: number(LINE).unwrap_or(1),
            column: number(COLUMN).unwrap_or_default(),
            text,
            before: texts(hit.get(LINES_BEFORE.name)),
            after: texts(hit.get(LINES_AFTER.name)),
            span: span(hit, text),
            more: number(MORE_IN_FILE),
        })
    }

    /// The lines of its text, each with what of the hit is in it. A hit that reaches over several lines has
    /// a text of so many.
    fn lines(&self) -> Vec<(&'a str, Option<Span>)> {
        let mut start = 0;
        let text = self.text.strip_suffix('\n').unwrap_or(self.text);
        let mut lines = Vec::new();
        for line in text.split('\n') {
            let end = start + line.len();
            let within =
                self.span.filter(|span| span.start < end && span.end > start).map(|span| Span {
                    start: span.start.saturating_sub(start),
                    end: span.end.min(end) - start,
                });
            lines.push((line, within));
            start = end + 1;
        }
        lines
    }
}

/// Texts in a list, or the lines of one text.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(text_of).collect(),
        Some(Value::String(text)) => text.lines().collect(),
        _ => Vec::new(),
    }
}

/// The wire has doubles only, and the largest number that all of them below are exact is far from
/// where counting on would overflow.
fn whole(value: &Value) -> Option<u64> {
    const MOST: u64 = 1 << 53;
    let number = || value.as_f64().filter(|number| *number >= 0.0);
    value.as_u64().or_else(|| number().map(|number| number as u64)).map(|number| number.min(MOST))
}

/// Where the hit stands in the text that is shown: its first and the one behind its last character.
fn span(hit: &Payload, text: &str) -> Option<Span> {
    let ends = HIGHLIGHT.get(hit)?;
    let byte = |at: usize| {
        let character = usize::try_from(whole(ends.get(at)?)?).ok()?;
        let mut starts = text.char_indices().map(|(start, _)| start);
        Some(starts.nth(character).unwrap_or(text.len()))
    };
    let span = Span { start: byte(0)?, end: byte(1)? };
    (span.start < span.end).then_some(span)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Escape, Paint};
    use super::*;

    fn shown(layout: Layout, payloads: &[Value]) -> String {
        let painter = Painter { paint: Paint::Plain, escape: Escape::Controls, width: None };
        let mut hits = Hits::new(painter, layout);
        payloads.iter().map(|payload| hits.add(payload.as_object().unwrap())).collect()
    }

    #[test]
    fn hits_are_grouped_for_a_person_and_greppable_for_a_program() {
        let payload = json!({"matches": [
            {"path": "a.rs", "line": 1, "column": 1, "text": "one"},
            {"path": "a.rs", "line": 9.0, "column": 2, "text": "nine\r\n"},
            {"path": "b.rs", "line": 2, "text": "two\nlines"},
            {"nothing": "known"},
        ]});
        assert_eq!(
            shown(Layout::Headings, std::slice::from_ref(&payload)),
            "a.rs\n1:one\n9:nine\n\nb.rs\n2:two\n3:lines\n"
        );
        assert_eq!(
            shown(Layout::Lines, &[payload]),
            "a.rs:1:one\na.rs:9:nine\nb.rs:2:two\nb.rs:3:lines\n"
        );
    }

    #[test]
    fn a_hit_is_shown_once_and_lines_around_it_too() {
        let near = json!({"path": "a", "line": 2, "column": 1, "text": "hit 2",
                          "before": ["1"], "after": ["3", "4"]});
        let next = json!({"path": "a", "line": 4, "column": 1, "text": "hit 4",
                          "before": ["3"], "after": ["5"]});
        let far = json!({"path": "a", "line": 9, "column": 1, "text": "hit 9", "before": ["8"]});
        let payloads = [
            json!({"matches": [near, next]}),
            json!({"tool": "grep", "matches": [near, next, far], "truncated": false}),
        ];
        assert_eq!(
            shown(Layout::Lines, &payloads),
            "a-1-1\na:2:hit 2\na-3-3\na:4:hit 4\na-5-5\n--\na-8-8\na:9:hit 9\n"
        );
    }

    #[test]
    fn what_a_file_has_beyond_is_said() {
        let hit = json!({"path": "a", "line": 2, "column": 1, "text": "hit", "more_in_file": 74});
        let payloads = [
            json!({"matches": [hit]}),
            json!({"tool": "grep", "hits": "a\n2:hit\n… 74 more in this file"}),
        ];
        assert_eq!(shown(Layout::Headings, &payloads), "a\n2:hit\n… 74 more in this file\n");
        assert_eq!(shown(Layout::Lines, &payloads), "a:2:hit\n");
        assert!(Hits::are_in(payloads[1].as_object().unwrap()));
    }

    #[test]
    fn what_was_found_is_marked_by_its_characters() {
        let painter = Painter { paint: Paint::Colours, escape: Escape::Controls, width: None };
        let marked = |text: &str, highlight: Value| {
            let hit = json!({"path": "a", "line": 1, "text": text, "highlight": highlight});
            let payload = json!({"matches": [hit]});
            Hits::new(painter, Layout::Lines).add(payload.as_object().unwrap())
        };
        let head = "\x1b[35ma\x1b[0m:\x1b[32m1\x1b[0m:";
        assert_eq!(
            marked("é漢 found\x1b it", json!([3, 9])),
            format!("{head}é漢 \x1b[1;31mfound\\u{{1b}}\x1b[0m it\n")
        );
        let second = "\x1b[35ma\x1b[0m:\x1b[32m2\x1b[0m:";
        assert_eq!(
            marked("one\ntwo", json!([2.0, 5.0])),
            format!("{head}on\x1b[1;31me\x1b[0m\n{second}\x1b[1;31mt\x1b[0mwo\n")
        );
        for odd in [json!([5, 1]), json!([90, 99]), json!("x"), json!([1]), json!([-1, 2])] {
            assert_eq!(marked("text", odd), format!("{head}text\n"));
        }
    }

    #[test]
    fn a_line_of_any_number_can_be_shown() {
        for line in [json!(u64::MAX), json!(1e300), json!(u64::MAX - 1), json!(-1), json!(0)] {
            let hit = json!({"path": "a", "line": line, "text": "two\nlines",
                             "before": ["x", "y"], "after": ["z"]});
            assert!(shown(Layout::Lines, &[json!({"matches": [hit]})]).ends_with("-z\n"));
        }
    }

    #[test]
    fn files_counts_and_paths_are_lists() {
        let payload = json!({
            "files": ["a.rs", {"path": "b.rs"}],
            "counts": [{"path": "c.rs", "count": 3}],
            "paths": [{"path": "src", "kind": "folder"}, {"path": "d.rs", "kind": "file"}],
        });
        assert_eq!(shown(Layout::Lines, &[payload]), "a.rs\nb.rs\nsrc/\nd.rs\nc.rs:3\n");
    }
}
