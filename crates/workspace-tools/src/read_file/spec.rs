//! What `read_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{self, DETAILS, FILE, Field, Flag, NOTICE, Text, Whole, flag, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const NAME: &str = "read_file";

const DESCRIPTION: &str = "\
Shows lines of a text file, each as number:text; the number and the colon are not in the file. At \
most 2000 lines and 64 KiB a call; next_offset is there if the file goes on. A negative offset \
counts from the end. Lines over 2000 characters are cut. Directories are listed by glob.\n\
\n\
Legacy encodings and UTF-16 are decoded, CR LF is shown as LF; edit_file keeps both. version names \
the content: as expected_version of a change, it has the change refused if the file differs by \
then.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"offset\": 100, \"limit\": 50}";

pub const OFFSET: Field<Whole> =
    whole("offset", i64::MIN, "First line to show, from 1. -20: the last 20 lines.");
pub const LIMIT: Field<Whole> = whole("limit", 1, "Most lines to show. Default 2000.");
pub const LINE_NUMBERS: Field<Flag> = flag("line_numbers", "false shows the bare text.");

pub const TEXT: Field<Text> = text(
    "text",
    "The lines, each as its number, a colon and its text. Numbers below 0 count from the end.",
)
.required();
pub const NEXT_OFFSET: Field<Whole> =
    whole("next_offset", i64::MIN, "The offset that goes on. Absent: the file ends here.");
pub const TOTAL_LINES: Field<Whole> = whole(
    "total_lines",
    0,
    "How many lines the file has, where not all are shown and it is known.",
);
pub const START_LINE: Field<Whole> = whole(
    "start_line",
    i64::MIN,
    "Number of the first line shown, where lines are not numbered and offset is negative.",
);
pub const END_LINE: Field<Whole> =
    whole("end_line", i64::MIN, "Number of the last line shown. With details only.");
pub const ENCODING: Field<Text> = text(
    "encoding",
    "utf-8-bom, utf-16le, utf-16be, or a legacy encoding's name. Absent: utf-8, unless with details.",
);
pub const LINE_ENDING: Field<Text> = text(
    "line_ending",
    "How lines end, as far as the file was read. Absent: with LF or not at all, unless with details.",
)
.one_of(&["lf", "crlf", "mixed", "none"]);
pub const SIZE_BYTES: Field<Whole> =
    whole("size_bytes", 0, "The file's size in bytes. With details only.");
pub const VERSION: Field<Text> = text(
    "version",
    "Names the file's content, where all of it was read: an expected_version. Its first 12 digits; \
     all 32 with details.",
);

/// The lines as results had them once: each with its number, right-aligned, and a tab.
pub const PADDED: Field<Text> = text("content", "");

const SLIPS: Slips = Slips {
    names: &[
        ("path", &["file", "filepath", "filename", "targetfile", "absolutepath"]),
        ("offset", &["start", "startline", "line", "from", "lineoffset"]),
        ("limit", &["lines", "maxlines", "numlines", "linecount", "headlimit"]),
        ("line_numbers", &["numbers", "linenums", "showlinenumbers"]),
    ],
    remedies: &[
        ("endline", "give limit, how many lines to show: offset 10 with limit 5 shows 10 to 14"),
        ("end", "give limit, how many lines to show: offset 10 with limit 5 shows 10 to 14"),
        ("range", "give offset, the first line, and limit, how many lines to show"),
        ("viewrange", "give offset, the first line, and limit, how many lines to show"),
    ],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&FILE, &OFFSET, &LIMIT, &LINE_NUMBERS, &DETAILS]),
        output: field::result(
            &[NAME],
            &[
                &TEXT,
                &NEXT_OFFSET,
                &TOTAL_LINES,
                &VERSION,
                &NOTICE,
                &START_LINE,
                &END_LINE,
                &ENCODING,
                &LINE_ENDING,
                &SIZE_BYTES,
            ],
        ),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}
