//! `glob` calls and results as a person sees them.

use serde_json::Value;

use super::spec;
use crate::field::{Field, Flag, NOTICE, asked, flag, path_of};
use tool_provider::Payload;
use tool_provider::view::{ListOrder, Style, View};
use workspace_fs::text::name;

/// One line that says what is looked for.
pub(super) fn call(arguments: &Payload) -> View {
    let mut line = format!("Find {}", asked(arguments, &spec::PATTERN));
    match spec::ONLY.get(arguments) {
        Some("file") => line.push_str(", files only"),
        Some("directory") => line.push_str(", directories only"),
        Some("link") => line.push_str(", links only"),
        _ => {}
    }
    match spec::SORT.get(arguments) {
        Some("modified") => line.push_str(", newest first"),
        Some("size") => line.push_str(", largest first"),
        _ => {}
    }
    if spec::INCLUDE_IGNORED.get(arguments) == Some(true) {
        line.push_str(", ignored files too");
    }
    View::plain(line)
}

/// Whether there is more than is listed, in payloads of before `next_offset` alone said so.
const TRUNCATED: Field<Flag> = flag("truncated", "");

/// The paths as a list, under a line that says how many there are.
pub(super) fn result(payload: &Payload) -> View {
    let paths = spec::FOUND.get(payload).or_else(|| spec::PATHS.get(payload)).unwrap_or_default();
    let paths: Vec<View> = paths.iter().filter_map(path).collect();
    let more = TRUNCATED.get(payload) == Some(true) || spec::NEXT_OFFSET.get(payload).is_some();
    let count = match (paths.len(), more) {
        (0, _) => "nothing".to_owned(),
        (1, false) => "1 path".to_owned(),
        (count, false) => format!("{count} paths"),
        (count, true) => format!("{count} paths and more"),
    };
    // What only the call says stood in payloads once.
    let heading = match spec::PATTERN.get(payload) {
        Some(_) => format!("{} · {count}", asked(payload, &spec::PATTERN)),
        None => count,
    };
    let mut views = vec![View::text(heading, Style::Bold)];
    if !paths.is_empty() {
        views.push(View::List { items: paths, order: ListOrder::Unordered });
    }
    if let Some(notice) = NOTICE.get(payload) {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

fn path(item: &Value) -> Option<View> {
    let path = name::shown(path_of(item)?);
    if item.is_string() && (path.ends_with('/') || path.ends_with("/\"")) {
        return Some(View::text(path, Style::Bold));
    }
    Some(match item.as_object().and_then(|item| spec::KIND.get(item)) {
        Some("folder") => View::text(format!("{path}/"), Style::Bold),
        Some("link") => View::text(format!("{path} (link)"), Style::Dim),
        Some("other") => View::text(format!("{path} (neither file nor directory)"), Style::Dim),
        _ => View::plain(path),
    })
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
        assert_eq!(line(json!({"pattern": "*.rs"})), View::plain("Find *.rs"));
        assert_eq!(
            line(json!({
                "pattern": "a\n*", "path": "x", "sort": "modified", "include_ignored": true
            })),
            View::plain("Find a\\n* in x, newest first, ignored files too")
        );
        assert_eq!(line(json!({})), View::plain("Find files"));
    }

    #[test]
    fn paths_are_a_list() {
        let shown = result(&of(json!({
            "tool": "glob", "pattern": "*", "path": "x", "truncated": true, "next_offset": 4,
            "notice": "There are more.",
            "paths": [
                {"path": "x/a", "kind": "file", "size_bytes": 1},
                {"path": "x/b", "kind": "folder"},
                {"path": "x/c", "kind": "link"},
                "x/d\u{202e}", 7, {"kind": "file"},
            ],
        })));
        let items = vec![
            View::plain("x/a"),
            View::text("x/b/", Style::Bold),
            View::text("x/c (link)", Style::Dim),
            View::plain("\"x/d\\342\\200\\256\""),
        ];
        assert_eq!(
            shown,
            View::Group(vec![
                View::text("* in x · 4 paths and more", Style::Bold),
                View::List { items, order: ListOrder::Unordered },
                View::text("There are more.", Style::Warning),
            ])
        );
        let nothing = result(&of(json!({"paths": {}})));
        assert_eq!(nothing, View::Group(vec![View::text("nothing", Style::Bold)]));
        let names = result(&of(json!({"tool": "glob", "found": ["a/", "b"], "next_offset": 2})));
        let items = vec![View::text("a/", Style::Bold), View::plain("b")];
        assert_eq!(
            names,
            View::Group(vec![
                View::text("2 paths and more", Style::Bold),
                View::List { items, order: ListOrder::Unordered },
            ])
        );
    }

    proptest! {
        #[test]
        fn whatever_was_kept_can_be_shown(
            payload in any_payload(&["pattern", "path", "paths", "kind", "truncated", "notice", "found"]),
        ) {
            let View::Group(views) = result(&payload) else { panic!("a group is shown") };
            prop_assert!(!views.is_empty());
            let View::Text { content, .. } = call(&payload) else { panic!("a line is shown") };
            prop_assert!(!content.contains('\n'));
        }
    }
}
