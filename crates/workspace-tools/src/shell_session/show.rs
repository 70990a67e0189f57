//! What a person sees of a session's call, before it and later.

use super::fields;
use crate::bash::show;
use crate::bash::spec::COMMAND;
use crate::field::NOTICE;
use tool_provider::Payload;
use tool_provider::view::{Fold, Style, View};
use workspace_fs::text::hidden::visible;
use workspace_fs::text::name;

/// A line that says what a call does to which session.
pub(crate) fn line(what: &str, arguments: &Payload) -> View {
    let session = fields::SESSION.get(arguments).unwrap_or("a session");
    View::text(format!("{what} {}", name::shown(session)), Style::Normal)
}

/// A result of this or an older version: what is missing is not shown.
pub(crate) fn result(tool: &str, payload: &Payload) -> View {
    let state = fields::STATE.get(payload).unwrap_or_default().replace('_', " ");
    let (badge, style) = match fields::EXIT_CODE.get(payload) {
        None => (visible(&state).into_owned(), Style::Dim),
        code => show::badge(code, fields::SIGNAL.get(payload)),
    };
    let session = fields::SESSION.get(payload).map(|session| name::shown(session).into_owned());
    let summary: Vec<String> =
        session.into_iter().chain([badge]).filter(|text| !text.is_empty()).collect();
    let mut children = Vec::new();
    if let Some(listed) = fields::SESSIONS.get(payload) {
        children.push(list(listed));
    }
    match fields::OUTPUT.get(payload) {
        Some("") => children.push(View::text("(no output)", Style::Dim)),
        Some(output) => children.push(View::code(None, visible(output))),
        None => {}
    }
    if let Some(path) = fields::FULL_OUTPUT_PATH.get(payload) {
        children.push(View::text(format!("whole output: {}", name::shown(path)), Style::Dim));
    }
    if let Some(notice) = NOTICE.get(payload) {
        children.push(View::text(visible(notice), Style::Warning));
    }
    View::Collapsible {
        summary: if summary.is_empty() { tool.to_owned() } else { summary.join(" — ") },
        children,
        initially: if style == Style::Error { Fold::Open } else { Fold::Closed },
    }
}

fn list(listed: &[serde_json::Value]) -> View {
    let item = |item: &serde_json::Value| {
        if let Some(line) = item.as_str() {
            return Some(View::text(visible(line), Style::Normal));
        }
        // Of an older version.
        let item = item.as_object()?;
        let parts = [&fields::SESSION, &fields::STATE, &COMMAND];
        let texts: Vec<String> = parts
            .into_iter()
            .filter_map(|field| field.get(item))
            .map(|text| visible(text).into_owned())
            .collect();
        Some(View::text(texts.join(" · "), Style::Normal))
    };
    View::Group(listed.iter().filter_map(item).collect())
}
