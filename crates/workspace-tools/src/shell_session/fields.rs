//! The fields that the session tools share.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use crate::field::{Field, Flag, List, NOTICE, Text, Whole, any_text, flag, list, text, whole};
use tool_provider::schema::Schema;

pub const SESSION: Field<Text> = text("session", "Its name.");
pub const WAIT_MS: Field<Whole> = whole("wait_ms", 0, "Longest wait, at most 120000.");

pub const STATE: Field<Text> = text(
    "state",
    "running; waiting_for_input: its foreground reads input; exited: by itself; stopped: by session_stop; \
     killed: for another reason.",
)
.one_of(&["running", "waiting_for_input", "exited", "stopped", "killed"]);
pub const OUTPUT: Field<Text> =
    text("output", "What it printed, or its screen, as a terminal shows it; secrets masked.");
pub const NEXT: Field<Whole> =
    whole("next", 0, "Where the output goes on: from of a later session_read.");
pub const MORE_BYTES: Field<Whole> =
    whole("more_bytes", 0, "How many bytes there are already from next on.");
pub const LEFT_OUT_BYTES: Field<Whole> = whole(
    "left_out_bytes",
    0,
    "How many bytes before this output are left out: full_output_path has them.",
);
pub const MATCH_AT: Field<Whole> = whole(
    "match_at",
    0,
    "Where the line with the match begins, for from: the output shown begins there.",
);
pub const IS_SCREEN: Field<Flag> = flag("screen", "Whether output is the screen as it stands.");
pub const CURSOR: Field<Text> = text("cursor", "Row and column of the screen's cursor, from 1.");
pub const EXIT_CODE: Field<Whole> =
    whole("exit_code", 0, "Its exit code; 128 + n when signal n ended it.");
pub const SIGNAL: Field<Text> = text("signal", "The signal that ended it.");
pub const FULL_OUTPUT_PATH: Field<Text> = text(
    "full_output_path",
    "A file with all of its output (up to 64 MiB), for read_file and grep.",
);
pub const SESSIONS: Field<List> =
    list("sessions", any_text, "Your sessions, those that run first: name, state, command.");

/// The result of a tool that shows one session.
pub(crate) fn result(
    tool: &'static [&'static str; 1],
    more: &[&dyn crate::field::Declared],
) -> Schema {
    let mut fields: Vec<&dyn crate::field::Declared> = vec![&SESSION, &STATE];
    fields.extend(more);
    fields.extend([
        &OUTPUT as &dyn crate::field::Declared,
        &NEXT,
        &MORE_BYTES,
        &LEFT_OUT_BYTES,
        &MATCH_AT,
        &IS_SCREEN,
        &CURSOR,
        &EXIT_CODE,
        &SIGNAL,
        &FULL_OUTPUT_PATH,
        &NOTICE,
    ]);
    crate::field::result(tool, &fields)
}
