//! What session_write says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use crate::field::{self, Field, Flag, Text, flag, text};
use crate::shell_session::{DEADLINE, fields};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const TEXT: Field<Text> = text("text", "Typed as it is: end a line with \\n or the key Enter.");
pub const KEYS: Field<Text> = text(
    "keys",
    "Pressed after text, separated by spaces: Enter, Tab, Esc, Up, PageDown, F1, C-c, C-d, M-x.",
);
pub const UNTIL: Field<Text> = text("until", "A regex to wait for in what it prints then.");
pub const MATCHED: Field<Flag> = flag("matched", "Whether until came in time.");

const SLIPS: Slips = Slips {
    names: &[
        ("session", &["name", "sessionid", "id"]),
        ("text", &["input", "data", "chars", "stdin"]),
        ("keys", &["key"]),
        ("until", &["pattern", "waitfor", "ready"]),
    ],
    texts: &["keys", "text"],
    remedies: &[("timeout", "give wait_ms"), ("timeoutms", "give wait_ms")],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    let wait_ms = fields::WAIT_MS.described(
        "Longest wait, at most 120000: until it waits for input or ends. Left out: 2000, or silence.",
    );
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::High,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&fields::SESSION.required(), &TEXT, &KEYS, &UNTIL, &wait_ms]),
        output: fields::result(&[super::NAME], &[&MATCHED]),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &["session"] },
        default_timeout: DEADLINE,
        idempotent: false,
    }
}

const DESCRIPTION: &str =
    "Types into a session, and returns what it printed since: once it waits for \
input, is silent or has ended.

Example: {\"session\": \"s1\", \"text\": \"print(6 * 7)\", \"keys\": \"Enter\"}";
