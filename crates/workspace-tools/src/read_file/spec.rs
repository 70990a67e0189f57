//! What `read_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{self, FILE, Field, Flag, NOTICE, PATH, Text, Whole, flag, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const NAME: &str = "read_file";

const DESCRIPTION: &str = "\
Reads a text file, or a window of its lines. Use it to look at a file before changing it; use glob \
to list a directory or to find files by their names, and grep to search in many.\n\
\n\
- Each line is shown as its number, a tab and its text; number and tab are not part of the file, \
leave them out of what you give to edit_file. line_numbers: false shows the bare text.\n\
- At most 2000 lines and 64 KiB a call; where there is more, truncated is true and next_offset says \
where to go on. A line over 2000 characters is cut and its true length is given.\n\
- A negative offset counts from the end: -20 shows the last 20 lines, fast in a file of any size.\n\
- UTF-8, UTF-16 with a byte order mark and legacy encodings are shown decoded, line ends as LF; \
encoding and line_ending are those of the file, and edit_file keeps it. A binary file is an error \
that names its type.\n\
- version identifies the content: give it to edit_file or write_file as expected_version to be sure \
that nobody changed the file meanwhile.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"offset\": 100, \"limit\": 50}";

pub const OFFSET: Field<Whole> = whole(
    "offset",
    i64::MIN,
    "The first line to show: 1 (the default) is the first, -1 the last, -20 the twentieth from the \
     end. Not 0.",
);
pub const LIMIT: Field<Whole> = whole("limit", 1, "How many lines to show at most. Default 2000.");
pub const LINE_NUMBERS: Field<Flag> =
    flag("line_numbers", "Whether each line starts with its number and a tab. Default true.");

pub const CONTENT: Field<Text> = text("content", "The lines.").required();
pub const START_LINE: Field<Whole> = whole(
    "start_line",
    i64::MIN,
    "Number of the first line shown; negative where it is counted from the end of a large file. \
     Absent when no line is shown.",
);
pub const END_LINE: Field<Whole> = whole("end_line", i64::MIN, "Number of the last line shown.");
pub const TOTAL_LINES: Field<Whole> =
    whole("total_lines", 0, "How many lines the file has, where its end was seen.");
pub const TRUNCATED: Field<Flag> = flag("truncated", "Whether more lines follow.").required();
pub const NEXT_OFFSET: Field<Whole> =
    whole("next_offset", i64::MIN, "The offset for the next call, where more lines follow.");
pub const ENCODING: Field<Text> =
    text("encoding", "utf-8, utf-8-bom, utf-16le, utf-16be, or a legacy encoding's name.")
        .required();
pub const LINE_ENDING: Field<Text> =
    text("line_ending", "How lines end in the file, as far as it was read.")
        .one_of(&["lf", "crlf", "mixed", "none"])
        .required();
pub const SIZE_BYTES: Field<Whole> = whole("size_bytes", 0, "The file's size in bytes.").required();
pub const VERSION: Field<Text> =
    text("version", "Identifies the whole content, where all of it was read; an expected_version.");

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
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&FILE, &OFFSET, &LIMIT, &LINE_NUMBERS]),
        output: field::result(
            &[NAME],
            &[
                &PATH,
                &CONTENT,
                &START_LINE,
                &END_LINE,
                &TOTAL_LINES,
                &TRUNCATED,
                &NEXT_OFFSET,
                &ENCODING,
                &LINE_ENDING,
                &SIZE_BYTES,
                &VERSION,
                &NOTICE,
            ],
        ),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}
