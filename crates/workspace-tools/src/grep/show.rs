//! `grep` calls and results as a person sees them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::headings::{self, Section, sections};
use super::spec::{self, COUNTS, FILES, MATCHES, text_of};
use crate::field::{Field, Flag, List, NOTICE, PATH, as_whole, asked, flag, path_of};
use tool_provider::Payload;
use tool_provider::view::{Fold, ListOrder, Style, View};
use workspace_fs::text::hidden::{one_line, visible};
use workspace_fs::text::name;

/// What stands around a match. A view has no node for a part of a line.
const MARKS: [char; 2] = ['»', '«'];

/// One line that says what is searched.
pub(super) fn call(arguments: &Payload) -> View {
    let mut line = format!("Search {}", asked(arguments, &spec::PATTERN));
    for (field, said) in [(spec::GLOB, "files"), (spec::TYPE, "type")] {
        if let Some(value) = field.get(arguments) {
            line.push_str(&format!(", {said} {}", one_line(value)));
        }
    }
    match spec::MODE.get(arguments) {
        Some("files") => line.push_str(", names of files only"),
        Some("count") => line.push_str(", counts only"),
        _ => {}
    }
    for (field, said) in [
        (spec::FIXED_STRINGS, "as plain text"),
        (spec::IGNORE_CASE, "in any case"),
        (spec::WORD, "whole words"),
        (spec::MULTILINE, "across lines"),
        (spec::INCLUDE_IGNORED, "ignored files too"),
    ] {
        if field.get(arguments) == Some(true) {
            line.push_str(&format!(", {said}"));
        }
    }
    View::plain(line)
}

/// Whether there is more than is listed, in payloads of before `next_offset` alone said so.
const TRUNCATED: Field<Flag> = flag("truncated", "");

/// The hits by file, under a line that says how many there are.
pub(super) fn result(payload: &Payload) -> View {
    let listed = [FILES, COUNTS].into_iter().find(|field| payload.contains_key(field.name));
    let (count, body) = if let Some(field) = listed {
        let items = field.get(payload).unwrap_or_default();
        (counted(items.len(), "file", "files"), list(items.iter().filter_map(item).collect()))
    } else if let Some(text) = spec::FILE_COUNTS.get(payload) {
        let items: Vec<View> = text.lines().map(path_and_count).collect();
        (counted(items.len(), "file", "files"), list(items))
    } else {
        let files = match spec::HITS.get(payload) {
            Some(text) => sections(text).into_iter().map(File::of).collect(),
            None => files(MATCHES.get(payload).unwrap_or_default()),
        };
        let hits = files.iter().map(|file| file.hits).sum();
        let mut count = counted(hits, "match", "matches");
        if files.len() > 1 {
            count.push_str(&format!(" in {}", counted(files.len(), "file", "files")));
        }
        (count, files.into_iter().map(File::view).collect())
    };
    let is_more = TRUNCATED.get(payload) == Some(true) || spec::NEXT_OFFSET.get(payload).is_some();
    let more = if is_more { " and more" } else { "" };
    // What only the call says stood in payloads once.
    let heading = match spec::PATTERN.get(payload) {
        Some(_) => format!("{} · {count}{more}", asked(payload, &spec::PATTERN)),
        None => format!("{count}{more}"),
    };
    let mut views = vec![View::text(heading, Style::Bold)];
    views.extend(body);
    if let Some(notice) = NOTICE.get(payload) {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// An item that is a path, or a path with its count.
fn item(item: &Value) -> Option<View> {
    let path = name::shown(path_of(item)?);
    let count = item.as_object().and_then(|item| spec::COUNT.get(item));
    Some(View::plain(match count {
        Some(count) => format!("{path}: {count}"),
        None => path.into_owned(),
    }))
}

/// A line that is `path:count`.
fn path_and_count(line: &str) -> View {
    View::plain(match line.rsplit_once(':') {
        Some((path, count)) => format!("{}: {}", name::shown(path), shown(count)),
        None => shown(line),
    })
}

fn list(items: Vec<View>) -> Vec<View> {
    match items.is_empty() {
        true => Vec::new(),
        false => vec![View::List { items, order: ListOrder::Unordered }],
    }
}

/// A file with its hits.
struct File<'a> {
    path: &'a str,
    hits: usize,
    /// What is shown of it, by line.
    lines: BTreeMap<i64, Line<'a>>,
    /// Hits of which it is not known where they are, and what is said of others.
    nowhere: Vec<Cow<'a, str>>,
    /// Whether lines beside the hits are shown.
    has_context: bool,
}

enum Line<'a> {
    Hit(Cow<'a, str>),
    Context(&'a str),
}

/// The hits by file, in the order in which the files come.
fn files(hits: &[Value]) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    for hit in hits.iter().filter_map(Value::as_object) {
        let path = PATH.get(hit).unwrap_or("a file");
        if files.last().is_none_or(|file| file.path != path) {
            files.push(File::named(path));
        }
        if let Some(file) = files.last_mut() {
            file.add(hit);
        }
    }
    files
}

impl<'a> File<'a> {
    fn named(path: &'a str) -> Self {
        let (lines, nowhere) = (BTreeMap::new(), Vec::new());
        Self { path, hits: 0, lines, nowhere, has_context: false }
    }

    /// A file of a text.
    fn of(section: Section<'a>) -> Self {
        let mut file = Self::named(section.path);
        for line in section.lines {
            match line {
                headings::Line::Hit(number, text) => {
                    file.hits += 1;
                    file.lines.insert(number, Line::Hit(text.into()));
                }
                headings::Line::Context(number, text) => {
                    file.has_context = true;
                    file.lines.entry(number).or_insert(Line::Context(text));
                }
                headings::Line::Gap => file.has_context = true,
                headings::Line::Other(text) => file.nowhere.push(text.into()),
            }
        }
        file
    }

    fn add(&mut self, hit: &'a Payload) {
        self.hits += 1;
        let marked = marked(hit);
        let Some(first) = spec::LINE.get(hit) else {
            self.nowhere.push(marked);
            return;
        };
        let before = context(hit, spec::LINES_BEFORE);
        let after = context(hit, spec::LINES_AFTER);
        self.has_context |= !before.is_empty() || !after.is_empty();
        let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        let top = first.saturating_sub(count(before.len()));
        let mut below = first;
        for line in lines_of(marked) {
            // What was a neighbour of another hit is a hit now.
            match self.lines.get(&below) {
                Some(Line::Hit(_)) => {}
                _ => drop(self.lines.insert(below, Line::Hit(line))),
            }
            below = below.saturating_add(1);
        }
        let numbered = |start: i64, lines: Vec<&'a str>| {
            lines.into_iter().zip(0_i64..).map(move |(text, at)| (start.saturating_add(at), text))
        };
        if let Some(more) = spec::MORE_IN_FILE.get(hit) {
            self.nowhere.push(format!("… {more} more in this file").into());
        }
        for (number, text) in numbered(top, before).chain(numbered(below, after)) {
            self.lines.entry(number).or_insert(Line::Context(text));
        }
    }

    fn view(self) -> View {
        let width = self.lines.keys().map(|number| number.to_string().len()).max().unwrap_or(0);
        let mut children = Vec::with_capacity(self.lines.len());
        let mut last = None;
        for (number, line) in &self.lines {
            let is_next = last.is_none_or(|last: i64| last.checked_add(1) == Some(*number));
            if self.has_context && !is_next {
                children.push(View::text(format!("{:>width$}", "⋮"), Style::Dim));
            }
            last = Some(*number);
            children.push(match line {
                Line::Hit(text) => View::plain(format!("{number:>width$}: {}", shown(text))),
                Line::Context(text) => {
                    View::text(format!("{number:>width$}  {}", shown(text)), Style::Dim)
                }
            });
        }
        children.extend(self.nowhere.iter().map(|text| View::plain(shown(text))));
        let hits = counted(self.hits, "match", "matches");
        View::Collapsible {
            summary: format!("{} · {hits}", name::shown(self.path)),
            children,
            initially: Fold::Open,
        }
    }
}

/// A line in one line, whatever it holds.
fn shown(text: &str) -> String {
    visible(text.trim_end_matches(['\n', '\r'])).replace('\n', " ")
}

/// The lines of a hit; at least one.
fn lines_of(text: Cow<'_, str>) -> Vec<Cow<'_, str>> {
    if text.trim_end_matches('\n').contains('\n') {
        text.lines().map(|line| Cow::Owned(line.to_owned())).collect()
    } else {
        vec![text]
    }
}

/// The lines beside a hit: texts, or objects that hold them.
fn context(hit: &Payload, field: Field<List>) -> Vec<&str> {
    let lines = field.get(hit).unwrap_or_default();
    lines.iter().map(|line| text_of(line).unwrap_or_default()).collect()
}

/// The text of a hit with marks around the match, where its place in the text is known.
fn marked(hit: &Payload) -> Cow<'_, str> {
    let text = spec::TEXT.get(hit).unwrap_or_default();
    let position = |item: &Value| as_whole(item).and_then(|number| usize::try_from(number).ok());
    let [Some(start), Some(end)] =
        [0, 1].map(|at| spec::HIGHLIGHT.get(hit)?.get(at).and_then(position))
    else {
        return text.into();
    };
    // In characters; the end is the first that is not part of it.
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let (start, end) = (byte(start), byte(end));
    if start >= end {
        return text.into();
    }
    let [open, close] = MARKS;
    format!("{}{open}{}{close}{}", &text[..start], &text[start..end], &text[end..]).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::field::tests::{any_payload, of};

    #[test]
    fn a_call_is_one_line() {
        let line = |value| call(&of(value));
        assert_eq!(line(json!({"pattern": "a\nb"})), View::plain("Search a\\nb"));
        assert_eq!(
            line(json!({
                "pattern": "x", "path": "src", "glob": "*.rs", "mode": "count", "word": true,
                "ignore_case": false
            })),
            View::plain("Search x in src, files *.rs, counts only, whole words")
        );
    }

    fn dim(text: &str) -> View {
        View::text(text, Style::Dim)
    }

    fn file(summary: &str, children: Vec<View>) -> View {
        View::Collapsible { summary: summary.to_owned(), children, initially: Fold::Open }
    }

    #[test]
    fn hits_are_grouped_by_file_with_their_match_marked() {
        let shown = result(&of(json!({
            "tool": "grep", "pattern": "now", "truncated": true, "notice": "There are more.",
            "matches": [
                {"path": "a", "line": 9, "text": "now\tö now", "highlight": [6, 9],
                 "before": ["seven", "eight"], "after": ["ten"]},
                {"path": "a", "line": 11, "text": "now", "highlight": [0, 3],
                 "before": ["ten"], "after": []},
                {"path": "a", "line": 20, "text": "n\u{1b}ow"},
                {"path": "b\n", "line": 1, "text": "no\nw", "highlight": [0, 4]},
            ],
        })));
        let a = vec![
            dim(" 7  seven"),
            dim(" 8  eight"),
            View::plain(" 9: now\tö »now«"),
            dim("10  ten"),
            View::plain("11: »now«"),
            dim(" ⋮"),
            View::plain("20: n\\u{1b}ow"),
        ];
        let b = vec![View::plain("1: »no"), View::plain("2: w«")];
        assert_eq!(
            shown,
            View::Group(vec![
                View::text("now · 4 matches in 2 files and more", Style::Bold),
                file("a · 3 matches", a),
                file("\"b\\n\" · 1 match", b),
                View::text("There are more.", Style::Warning),
            ])
        );
    }

    #[test]
    fn hits_that_are_text_are_shown_as_objects_are() {
        let shown = result(&of(json!({
            "tool": "grep", "next_offset": 4,
            "hits": "a\n7-seven\n8-eight\n9:now\tö now\n10-ten\n11:now\n--\n20:n\u{1b}ow\n\
                     … 3 more in this file\n\n\"b\\n\"\n1:no\n2:w",
        })));
        let a = vec![
            dim(" 7  seven"),
            dim(" 8  eight"),
            View::plain(" 9: now\tö now"),
            dim("10  ten"),
            View::plain("11: now"),
            dim(" ⋮"),
            View::plain("20: n\\u{1b}ow"),
            View::plain("… 3 more in this file"),
        ];
        let b = vec![View::plain("1: no"), View::plain("2: w")];
        assert_eq!(
            shown,
            View::Group(vec![
                View::text("5 matches in 2 files and more", Style::Bold),
                file("a · 3 matches", a),
                file("\"b\\n\" · 2 matches", b),
            ])
        );
    }

    #[test]
    fn files_and_counts_are_lists() {
        let list = |texts: &[&str]| View::List {
            items: texts.iter().map(|text| View::plain(*text)).collect(),
            order: ListOrder::Unordered,
        };
        let head = |text: &str| View::text(text, Style::Bold);
        assert_eq!(
            result(&of(json!({"pattern": "x", "files": ["a", {"path": "b"}, 7]}))),
            View::Group(vec![head("x · 3 files"), list(&["a", "b"])])
        );
        assert_eq!(
            result(&of(json!({"pattern": "x", "counts": [{"path": "a", "count": 3.0}]}))),
            View::Group(vec![head("x · 1 file"), list(&["a: 3"])])
        );
        assert_eq!(result(&of(json!({}))), View::Group(vec![head("no match")]));
        assert_eq!(
            result(&of(json!({"file_counts": "a:b:2\nc:1", "next_offset": 2}))),
            View::Group(vec![head("2 files and more"), list(&["a:b: 2", "c: 1"])])
        );
    }

    proptest! {
        #[test]
        fn whatever_was_kept_can_be_shown(
            payload in any_payload(&[
                "pattern", "path", "matches", "files", "counts", "line", "text", "before", "after",
                "highlight", "count", "truncated", "notice", "hits", "file_counts", "next_offset",
            ]),
        ) {
            let View::Group(views) = result(&payload) else { panic!("a group is shown") };
            prop_assert!(!views.is_empty());
            let View::Text { content, .. } = call(&payload) else { panic!("a line is shown") };
            prop_assert!(!content.contains('\n'));
        }

        #[test]
        fn marks_are_put_where_they_belong(
            text in ".{0,6}", start in 0usize..8, end in 0usize..8,
        ) {
            let hit = of(json!({"text": text, "highlight": [start, end]}));
            let marked = marked(&hit);
            let unmarked = marked.replacen(MARKS[0], "", 1);
            prop_assert!(*marked == *text || marked.chars().count() == text.chars().count() + 2);
            prop_assert!(unmarked.len() <= marked.len());
        }
    }
}
