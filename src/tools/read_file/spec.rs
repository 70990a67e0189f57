//! What `read_file` says of itself.

use std::time::Duration;

use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

pub(super) const NAME: &str = "read_file";

const DESCRIPTION: &str = "\
Reads a text file, or a window of its lines. Use it to look at a file before changing it; use glob \
to list a folder or to find files by their names, and grep to search in many.\n\
\n\
- Each line is shown as its number, a tab and its text; number and tab are not part of the file, \
leave them out of what you give to edit_file. line_numbers: false shows the bare text.\n\
- At most 2000 lines and 64 KiB a call; where there is more, truncated is true and next_offset says \
where to go on. A line over 2000 characters is cut and tells its true length.\n\
- A negative offset counts from the end: -20 shows the last 20 lines, fast in a file of any size.\n\
- UTF-8, UTF-16 with a byte order mark and legacy encodings are shown decoded, line ends as LF; \
encoding and line_ending tell what the file has, and edit_file keeps it. A binary file is an error \
that names its type.\n\
- version identifies the content: give it to edit_file or write_file as expected_version to be sure \
that nobody changed the file meanwhile.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"offset\": 100, \"limit\": 50}";

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: input(),
        output: output(),
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}

fn input() -> Schema {
    Schema::object(vec![
        Property::file(),
        Property::optional(
            "offset",
            Kind::Whole { min: i64::MIN },
            "The first line to show: 1 (the default) is the first, -1 the last, -20 the twentieth \
             from the end. Not 0.",
        ),
        Property::optional(
            "limit",
            Kind::Whole { min: 1 },
            "How many lines to show at most. Default 2000.",
        ),
        Property::optional(
            "line_numbers",
            Kind::Boolean,
            "Whether each line starts with its number and a tab. Default true.",
        ),
    ])
}

fn output() -> Schema {
    let text = || Kind::String(&[]);
    let count = || Kind::Whole { min: 0 };
    let properties = vec![
        Property::required("path", text(), "The path as it was asked for."),
        Property::required("content", text(), "The lines."),
        Property::optional(
            "start_line",
            Kind::Whole { min: i64::MIN },
            "Number of the first line shown; negative where it is counted from the end of a large \
             file. Absent when no line is shown.",
        ),
        Property::optional(
            "end_line",
            Kind::Whole { min: i64::MIN },
            "Number of the last line shown.",
        ),
        Property::optional(
            "total_lines",
            count(),
            "How many lines the file has, where its end was seen.",
        ),
        Property::required("truncated", Kind::Boolean, "Whether more lines follow."),
        Property::optional(
            "next_offset",
            Kind::Whole { min: i64::MIN },
            "The offset to go on with, where more lines follow.",
        ),
        Property::required(
            "encoding",
            text(),
            "utf-8, utf-8-bom, utf-16le, utf-16be, or a legacy encoding's name.",
        ),
        Property::required(
            "line_ending",
            Kind::String(&["lf", "crlf", "mixed", "none"]),
            "How lines end in the file, as far as it was read.",
        ),
        Property::required("size_bytes", count(), "The file's size in bytes."),
        Property::optional(
            "version",
            text(),
            "Identifies the whole content, where all of it was read; an expected_version.",
        ),
        Property::optional("notice", text(), "What else to know."),
    ];
    Schema::result(&[NAME], properties)
}
