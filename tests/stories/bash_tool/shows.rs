//! What a person sees before a call.

use serde_json::json;
use tool_provider::view::{Style, View};

use super::fixture::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_preview_says_where_how_long_and_behind_what_and_changes_nothing,
        a_call_that_would_fail_is_shown_with_its_failure_and_nonsense_is_refused,
    ]
}

fn lines(view: &View) -> Vec<(String, Option<Style>)> {
    match view {
        View::Text { content, style } => vec![(content.clone(), Some(*style))],
        View::Code { content, .. } => vec![(content.clone(), None)],
        View::Group(children) => children.iter().flat_map(lines).collect(),
        other => panic!("{other:?}"),
    }
}

fn a_preview_says_where_how_long_and_behind_what_and_changes_nothing() {
    let fixture = Fixture::new();
    let shown = fixture.preview(json!({"command": "touch made", "timeout_ms": 5000})).unwrap();
    let root = fixture.root.to_str().unwrap();
    let lines = lines(&shown);
    let has = |text: &str| lines.iter().any(|(line, _)| line == text);
    assert_eq!(lines[0], ("touch made".to_owned(), None));
    for text in [format!("directory: {root}"), format!("may write: {root}")] {
        assert!(has(&text), "{text}: {lines:?}");
    }
    assert!(has("timeout: 5 s") && has("network: closed"), "{lines:?}");
    assert!(lines.iter().any(|(line, _)| line.starts_with("jail: ")), "{lines:?}");
    assert!(!fixture.root.join("made").exists());
}

fn a_call_that_would_fail_is_shown_with_its_failure_and_nonsense_is_refused() {
    let fixture = Fixture::new();
    let shown = fixture.preview(json!({"command": "true", "cwd": "/etc"})).unwrap();
    let failures: Vec<_> =
        lines(&shown).into_iter().filter(|(_, style)| *style == Some(Style::Error)).collect();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].0.contains("/etc") && failures[0].0.contains("outside"), "{failures:?}");
    let refused = fixture.preview(json!({})).unwrap_err();
    assert_eq!(refused.category().name(), "invalid_arguments");
}
