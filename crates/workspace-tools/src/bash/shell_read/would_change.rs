//! What a command changed in its layers, in a result and for a person.

use std::path::Path;

use sandbox::{ChangeKind, Changes};
use serde_json::Value;

use super::spec::{CHANGED, COUNT, CREATED, DELETED, listed};
use tool_provider::Payload;
use tool_provider::view::{Fold, ListOrder, Style, View};
use workspace_fs::text::hidden::visible;
use workspace_fs::text::name;

/// The field's value; none where nothing changed.
pub(in super::super) fn of(changes: &Changes, cwd: &Path) -> Option<Payload> {
    if changes.count == 0 {
        return None;
    }
    let mut payload = Payload::new();
    COUNT.put(&mut payload, changes.count);
    let kinds = [
        (CREATED, ChangeKind::Created),
        (CHANGED, ChangeKind::Changed),
        (DELETED, ChangeKind::Deleted),
    ];
    for (field, kind) in kinds {
        let of_kind = changes.first.iter().filter(|change| change.kind == kind);
        let paths: Vec<Value> = of_kind
            .map(|change| name::of(super::shown(&change.path, cwd)).into_owned().into())
            .collect();
        if !paths.is_empty() {
            field.put(&mut payload, paths);
        }
    }
    Some(payload)
}

/// The list for a person, of a result of this or another version.
pub(super) fn view(payload: &Payload) -> Option<View> {
    let (listed, more) = listed(payload)?;
    let item = |(sign, path): &(char, &str)| {
        let style = match sign {
            '+' => Style::Success,
            '-' => Style::Error,
            _ => Style::Warning,
        };
        View::text(format!("{sign} {}", visible(path)), style)
    };
    let mut items: Vec<View> = listed.iter().map(item).collect();
    let count = more + i64::try_from(items.len()).unwrap_or(0);
    if more > 0 {
        items.push(View::text(format!("and {more} more"), Style::Dim));
    }
    Some(View::Collapsible {
        summary: match count {
            1 => "1 path would have changed".to_owned(),
            count => format!("{count} paths would have changed"),
        },
        children: vec![View::List { items, order: ListOrder::Unordered }],
        initially: Fold::Closed,
    })
}
