//! `read_file` calls and results as a person sees them.

use std::borrow::Cow;

use super::spec::{
    ENCODING, END_LINE, LIMIT, LINE_ENDING, NEXT_OFFSET, OFFSET, PADDED, START_LINE, TEXT,
    TOTAL_LINES,
};
use crate::field::{FILE, NOTICE, PATH};
use crate::language::language_of;
use tool_provider::Payload;
use tool_provider::view::{Style, View};
use workspace_fs::text::name;

/// One line that says what is read.
pub(super) fn call(arguments: &Payload) -> View {
    let path = FILE.get(arguments).unwrap_or("a file");
    let offset = OFFSET.get(arguments).unwrap_or(1);
    let limit = LIMIT.get(arguments);
    let lines = match (offset, limit) {
        (1, None) => String::new(),
        (1, Some(limit)) => format!(", the first {}", lines(limit)),
        (..=-1, None) => format!(", the last {}", lines(offset.saturating_neg())),
        (..=-1, Some(limit)) => format!(", {} from line {offset}", lines(limit)),
        (_, None) => format!(", from line {offset}"),
        (_, Some(limit)) => {
            format!(", lines {offset}–{}", offset.saturating_add(limit).saturating_sub(1))
        }
    };
    View::plain(format!("Read {}{lines}", name::shown(path)))
}

/// The lines as a code block, under a line that says which they are.
pub(super) fn result(payload: &Payload) -> View {
    let shown = Shown::of(payload);
    let heading = heading(&shown, payload);
    let mut views = Vec::new();
    if !heading.is_empty() {
        views.push(View::text(heading, Style::Dim));
    }
    if !shown.text.is_empty() {
        views.push(View::code(PATH.get(payload).and_then(language_of), &*shown.text));
    }
    if let Some(notice) = NOTICE.get(payload) {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

/// The lines of a result.
struct Shown<'a> {
    /// Without their numbers.
    text: Cow<'a, str>,
    /// The first and the last one's number, where there are lines whose numbers are known.
    numbers: Option<(i64, i64)>,
}

impl<'a> Shown<'a> {
    fn of(payload: &'a Payload) -> Self {
        let start = START_LINE.get(payload);
        let (text, separator) = match TEXT.get(payload) {
            Some(text) => (text, ':'),
            None => (PADDED.get(payload).unwrap_or_default(), '\t'),
        };
        if let Some((bare, first, last)) = without_numbers(text, separator)
            && start.is_none_or(|start| start == first)
        {
            return Self { text: bare.into(), numbers: Some((first, last)) };
        }
        let count = i64::try_from(text.split_inclusive('\n').count()).unwrap_or(i64::MAX);
        let last = start.map(|start| start.saturating_add(count).saturating_sub(1));
        let last = END_LINE.get(payload).or(last).filter(|_| count > 0);
        Self { text: text.into(), numbers: start.zip(last) }
    }
}

fn heading(shown: &Shown<'_>, payload: &Payload) -> String {
    let mut parts = Vec::new();
    if let Some(path) = PATH.get(payload) {
        parts.push(name::shown(path).into_owned());
    }
    if let Some((first, last)) = shown.numbers {
        let ends = TEXT.get(payload).is_some() && NEXT_OFFSET.get(payload).is_none() && last > 0;
        let total = TOTAL_LINES.get(payload).or(ends.then_some(last));
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        parts.push(format!("lines {first}–{last}{of}"));
    }
    parts.extend(ENCODING.get(payload).filter(|encoding| *encoding != "utf-8").map(str::to_owned));
    let ending = LINE_ENDING.get(payload).filter(|ending| matches!(*ending, "crlf" | "mixed"));
    parts.extend(ending.map(str::to_owned));
    parts.join(" · ")
}

/// The text without line numbers, and the first and the last of these, if every line starts with a
/// number and each with the one after its predecessor's.
fn without_numbers(text: &str, separator: char) -> Option<(String, i64, i64)> {
    let mut bare = String::with_capacity(text.len());
    let mut numbers: Option<(i64, i64)> = None;
    for line in text.split_inclusive('\n') {
        let (prefix, rest) = line.split_once(separator)?;
        let number: i64 = prefix.trim_start_matches(' ').parse().ok()?;
        numbers = match numbers {
            None => Some((number, number)),
            Some((first, last)) if last.checked_add(1) == Some(number) => Some((first, number)),
            Some(_) => return None,
        };
        bare.push_str(rest);
    }
    numbers.map(|(first, last)| (bare, first, last))
}

fn lines(count: i64) -> String {
    if count == 1 { "line".to_owned() } else { format!("{count} lines") }
}
