//! What session_read says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use crate::field::{self, Field, Flag, Text, Whole, flag, text, whole};
use crate::shell_session::{DEADLINE, fields};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const FROM: Field<Whole> =
    whole("from", 0, "next of an earlier call; left out: the last 8 KiB.");
pub const UNTIL: Field<Text> = text(
    "until",
    "A regex to wait for in the output behind from; without from, in what no start or write returned.",
);
pub const SCREEN: Field<Flag> = flag(
    "screen",
    "Shows the terminal's screen as it stands; by default while a full-screen program runs.",
);
pub const MATCHED: Field<Flag> = flag("matched", "Whether until came in time.");

const SLIPS: Slips = Slips {
    names: &[
        ("session", &["name", "sessionid", "id"]),
        ("from", &["offset", "cursor", "since", "next"]),
        ("until", &["pattern", "waitfor", "ready"]),
    ],
    remedies: &[("timeout", "give wait_ms"), ("timeoutms", "give wait_ms")],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    let session = fields::SESSION.described("Left out: lists your sessions.");
    let wait_ms =
        fields::WAIT_MS.described("Longest wait for news; 0, with until 10000, at most 120000.");
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: TEXT.to_owned(),
        input: field::schema(&[&session, &FROM, &wait_ms, &UNTIL, &SCREEN]),
        output: fields::result(&[super::NAME], &[&fields::SESSIONS, &MATCHED]),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: DEADLINE,
        idempotent: true,
    }
}

const TEXT: &str =
    "Shows what a session printed, and whether it runs, waits for input or has ended. Reads \
remember nothing: give next as from to go on.

Example: {\"session\": \"web\", \"from\": 812, \"until\": \"compiled|error\", \"wait_ms\": 30000}";
