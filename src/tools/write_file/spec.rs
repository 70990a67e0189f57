//! What `write_file` says of itself.

use std::time::Duration;

use crate::tools::change;
use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

pub(super) const NAME: &str = "write_file";

const DESCRIPTION: &str = "\
Creates a text file, or replaces all of one. Use it for new files and for rewriting a file as a \
whole; use edit_file to change a part of one, which is shorter and keeps the rest as it is.\n\
\n\
- content becomes the file byte for byte, as UTF-8: no line ending is changed and no newline added \
at the end. (edit_file, in contrast, keeps the encoding and the line endings that a file has.)\n\
- Missing folders on the way are created. A file that exists is replaced in one step: its mode, its \
owner and its extended attributes stay, and on any failure its old content does.\n\
- If this session has read the file and someone else has changed it since, nothing is written: read \
it again. expected_version makes that certain for any file.\n\
- A folder, a pipe or a device is an error, as is a path outside the writable roots.\n\
\n\
Example: {\"path\": \"docs/notes.md\", \"content\": \"# Notes\\n\"}";

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::Moderate,
        description: DESCRIPTION.to_owned(),
        input: input(),
        output: output(),
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &["path"] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}

fn input() -> Schema {
    Schema::object(vec![
        Property::file(),
        Property::required("content", Kind::String(&[]), "All that the file shall hold."),
        Property::optional("expected_version", Kind::String(&[]), change::EXPECTED_VERSION),
    ])
}

fn output() -> Schema {
    let mut properties = vec![
        Property::required("path", Kind::String(&[]), "The path as it was asked for."),
        Property::required("created", Kind::Boolean, "Whether the file is new."),
        Property::required(
            "bytes_written",
            Kind::Whole { min: 0 },
            "The size of the content; 0 where the file had it already.",
        ),
    ];
    properties.extend(change::properties());
    Schema::result(&[NAME], properties)
}
