//! What session_stop says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{self, Field, List, Whole, any_text, list, whole};
use crate::shell_session::fields;
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const SIGNALS: Field<List> =
    list("signals_sent", any_text, "What was sent: SIGTERM, and SIGKILL 2 s later if needed.");
pub const PROCESSES_ENDED: Field<Whole> =
    whole("processes_ended", 0, "How many processes still ran and were ended.");

pub(crate) fn spec() -> ToolSpec {
    let slips = Slips {
        names: &[("session", &["name", "sessionid", "id"])],
        remedies: &[("signal", "it sends SIGTERM, then SIGKILL; session_write sends C-c")],
        ..Slips::NONE
    };
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::Low,
        description: TEXT.to_owned(),
        input: field::schema(&[&fields::SESSION.required()]),
        output: fields::result(&[super::NAME], &[&SIGNALS, &PROCESSES_ENDED]),
        slips,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &["session"] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}

const TEXT: &str =
    "Ends a session with everything that it started, and shows the end of its output.

Example: {\"session\": \"web\"}";
