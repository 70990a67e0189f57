//! `grep` calls and results as a person sees them.

use serde_json::Value;

use crate::tools::Payload;
use crate::tools::hidden::one_line;
use crate::tools::shorten::shorten;
use crate::tools::view::{Style, View};

/// How much of a pattern is shown.
const MOST_PATTERN: usize = 200;

/// One line that says what is searched.
pub(super) fn call(arguments: &Payload) -> View {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let pattern = shorten(text("pattern").unwrap_or_default(), MOST_PATTERN);
    let mut line =
        format!("Search {} for {}", one_line(text("path").unwrap_or(".")), one_line(&pattern));
    for name in ["glob", "type"] {
        if let Some(value) = text(name) {
            line.push_str(&format!(", {name} {}", one_line(value)));
        }
    }
    View::plain(line)
}

/// The hits, one below the other.
pub(super) fn result(payload: &Payload) -> View {
    let lists = ["matches", "files", "counts"];
    let entries = lists.iter().filter_map(|name| payload.get(*name)?.as_array()).flatten();
    let mut views: Vec<View> = entries.map(entry).collect();
    if let Some(notice) = payload.get("notice").and_then(Value::as_str) {
        views.push(View::text(one_line(notice), Style::Dim));
    }
    View::Group(views)
}

fn entry(entry: &Value) -> View {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let number = |name: &str| entry.get(name).and_then(Value::as_u64);
    let path = one_line(text("path").or(entry.as_str()).unwrap_or_default()).into_owned();
    View::plain(match (number("line"), text("text"), number("count")) {
        (Some(line), Some(text), _) => format!("{path}:{line}: {}", one_line(text)),
        (_, _, Some(count)) => format!("{path}: {count}"),
        _ => path,
    })
}
