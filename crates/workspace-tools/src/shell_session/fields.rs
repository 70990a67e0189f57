//! The fields that the session tools share.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use crate::field::{Field, Flag, List, NOTICE, Text, Whole, flag, list, text, whole};
use tool_provider::schema::Schema;

pub const SESSION: Field<Text> = text("session", "Its name.");
pub const WAIT_MS: Field<Whole> = whole("wait_ms", 0, "Longest wait, at most 120000.");

pub const STATE: Field<Text> = text(
    "state",
    "running; waiting_for_input: its foreground reads input; exited: by itself; killed: ended from outside.",
)
.one_of(&["running", "waiting_for_input", "exited", "killed"]);
pub const OUTPUT: Field<Text> =
    text("output", "What it printed, or its screen, as a terminal shows it; secrets masked.");
pub const NEXT: Field<Whole> =
    whole("next", 0, "Where the output goes on: from of a later session_read.");
pub const MORE_BYTES: Field<Whole> =
    whole("more_bytes", 0, "How many bytes there are already from next on.");
pub const DROPPED_BYTES: Field<Whole> =
    whole("dropped_bytes", 0, "How many bytes before this output are left out.");
pub const IS_SCREEN: Field<Flag> = flag("screen", "Whether output is the screen as it stands.");
pub const CURSOR: Field<Text> = text("cursor", "Row and column of the screen's cursor, from 1.");
pub const EXIT_CODE: Field<Whole> =
    whole("exit_code", 0, "Its exit code; 128 + n when signal n ended it.");
pub const SIGNAL: Field<Text> = text("signal", "The signal that ended it.");
pub const FULL_OUTPUT_PATH: Field<Text> = text(
    "full_output_path",
    "A file with all of its output (up to 64 MiB), for read_file and grep.",
);
pub const SESSIONS: Field<List> = list("sessions", listed, "The sessions that you started.");
pub const COMMAND: Field<Text> = text("command", "The command.");

fn listed() -> Schema {
    crate::field::schema(&[&SESSION.required(), &STATE.required(), &COMMAND, &EXIT_CODE])
}

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
        &DROPPED_BYTES,
        &IS_SCREEN,
        &CURSOR,
        &EXIT_CODE,
        &SIGNAL,
        &FULL_OUTPUT_PATH,
        &NOTICE,
    ]);
    crate::field::result(tool, &fields)
}
