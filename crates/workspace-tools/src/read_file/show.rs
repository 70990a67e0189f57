//! `read_file` calls and results as a person sees them.

use super::spec::{
    CONTENT, ENCODING, END_LINE, LIMIT, LINE_ENDING, OFFSET, START_LINE, TOTAL_LINES,
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
    let path = PATH.get(payload).unwrap_or("a file");
    let mut views = vec![View::text(heading(path, payload), Style::Dim)];
    if let Some(content) = CONTENT.get(payload).filter(|content| !content.is_empty()) {
        let first = START_LINE.get(payload).unwrap_or(1);
        let bare = without_numbers(content, first);
        let content = bare.as_deref().unwrap_or(content);
        views.push(View::code(language_of(path), content));
    }
    if let Some(notice) = NOTICE.get(payload) {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

fn heading(path: &str, payload: &Payload) -> String {
    let mut heading = name::shown(path).into_owned();
    if let (Some(start), Some(end)) = (START_LINE.get(payload), END_LINE.get(payload)) {
        heading.push_str(&format!(" · lines {start}–{end}"));
        if let Some(total) = TOTAL_LINES.get(payload) {
            heading.push_str(&format!(" of {total}"));
        }
    }
    if let Some(encoding) = ENCODING.get(payload).filter(|encoding| *encoding != "utf-8") {
        heading.push_str(&format!(" · {encoding}"));
    }
    if let Some(ending) = LINE_ENDING.get(payload).filter(|e| matches!(*e, "crlf" | "mixed")) {
        heading.push_str(&format!(" · {ending}"));
    }
    heading
}

/// The content without line numbers, if every line starts with the number that it should have.
fn without_numbers(content: &str, first: i64) -> Option<String> {
    let mut bare = String::with_capacity(content.len());
    for (number, line) in (first..).zip(content.split_inclusive('\n')) {
        let (prefix, text) = line.split_once('\t')?;
        if prefix.trim_start().parse() != Ok(number) {
            return None;
        }
        bare.push_str(text);
    }
    Some(bare)
}

fn lines(count: i64) -> String {
    if count == 1 { "line".to_owned() } else { format!("{count} lines") }
}
