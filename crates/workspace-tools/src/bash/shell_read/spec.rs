//! What shell_read says of itself: the arguments and results of bash, and what would have changed.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use super::super::spec::{
    AFTER_TIMEOUT, COMMAND, CWD, DESCRIPTION, EXIT_CODE, FULL_OUTPUT_PATH, LONGEST_TIMEOUT, OUTPUT,
    SIGNAL, SLIPS, STDIN, TIMEOUT_MS,
};
use crate::field::{self, Field, List, NOTICE, Object, Whole, any_text, list, object, whole};
use serde_json::Value;
use tool_provider::{Concurrency, Payload, RiskClass, ToolKind, ToolSpec};
use workspace_fs::text::hidden::visible;

pub const WOULD_CHANGE: Field<Object> = object(
    "would_change",
    || field::schema(&[&COUNT, &CREATED, &CHANGED, &DELETED]),
    "What the command changed in its throw-away layer, which is gone. Paths below the command's directory \
     are relative to it.",
);
pub const COUNT: Field<Whole> =
    whole("count", 1, "How many paths. The lists hold the first 50.").required();
pub const CREATED: Field<List> = list("created", any_text, "A new directory stands for all in it.");
pub const CHANGED: Field<List> =
    list("changed", any_text, "Other content, mode, owner, attributes or time, or another file.");
pub const DELETED: Field<List> = list("deleted", any_text, "A directory stands for all in it.");

/// What a result says would have changed: each path behind a sign of what happened to it, and how many are
/// not listed.
pub(crate) fn listed(payload: &Payload) -> Option<(Vec<(char, &str)>, i64)> {
    let changes = WOULD_CHANGE.get(payload)?;
    let mut listed = Vec::new();
    for (field, sign) in [(CREATED, '+'), (CHANGED, '~'), (DELETED, '-')] {
        let paths = field.get(changes).unwrap_or_default();
        listed.extend(paths.iter().filter_map(Value::as_str).map(|path| (sign, path)));
    }
    let count = COUNT.get(changes).unwrap_or_default();
    let more = count - i64::try_from(listed.len()).unwrap_or(i64::MAX);
    Some((listed, more.max(0)))
}

/// The same in a line, with a few paths.
#[must_use]
pub fn in_a_line(payload: &Payload) -> Option<String> {
    const MOST: usize = 8;
    let (listed, more) = listed(payload)?;
    let named = listed.iter().take(MOST).map(|(sign, path)| format!("{sign} {}", visible(path)));
    let more = more + i64::try_from(listed.len().saturating_sub(MOST)).unwrap_or(0);
    let rest = (more > 0).then(|| format!("and {more} more"));
    Some(named.chain(rest).collect::<Vec<_>>().join(", "))
}

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION_OF_SHELL_READ.to_owned(),
        input: field::schema(&[&COMMAND, &TIMEOUT_MS, &CWD, &STDIN, &DESCRIPTION]),
        output: field::result(
            &[super::NAME],
            &[&EXIT_CODE, &SIGNAL, &OUTPUT, &FULL_OUTPUT_PATH, &WOULD_CHANGE, &NOTICE],
        ),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: LONGEST_TIMEOUT + AFTER_TIMEOUT,
        idempotent: false,
    }
}

/// A host reads it once, before it configures: it holds under every configuration.
const DESCRIPTION_OF_SHELL_READ: &str = "Runs a shell command like bash, and discards all that it changes: \
files, HOME and /tmp are as before when it ends. So it needs no approval. Use it to look and to check: git \
log and diff, builds, tests, dry runs. It has no network and no secrets. Where the machine cannot discard \
writes they fail, and notice says so. would_change lists what the command changed; to keep changes, use bash \
or the file tools.

Example: {\"command\": \"cargo test --workspace\"}";
