//! What `write_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::change::{self, EXPECTED_VERSION};
use crate::field::{self, FILE, Field, Flag, Text, Whole, flag, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "write_file";

const DESCRIPTION: &str = "\
Creates a text file, or replaces all of one. Use it for new files and for rewriting a file as a \
whole; use edit_file to change a part of one, which is shorter and keeps the rest as it is.\n\
\n\
- content becomes the file byte for byte, as UTF-8: no line ending is changed and no newline added \
at the end. (edit_file, in contrast, keeps the encoding and the line endings that a file has.)\n\
- Missing directories on the way are created. A file that exists is replaced in one step: its mode, its \
owner and its extended attributes stay, and on any failure its old content does.\n\
- If this session has read the file and someone else has changed it since, nothing is written: read \
it again. expected_version makes that certain for any file.\n\
- A directory, a pipe or a device is an error, as is a path outside the writable roots.\n\
\n\
Example: {\"path\": \"docs/notes.md\", \"content\": \"# Notes\\n\"}";

pub const CONTENT: Field<Text> = text("content", "The whole content of the file.").required();

pub const CREATED: Field<Flag> = flag("created", "Whether the file is new.").required();
pub const BYTES_WRITTEN: Field<Whole> =
    whole("bytes_written", 0, "The size of the content; 0 where the file had it already.")
        .required();

const SLIPS: Slips = Slips {
    names: &[
        ("path", &["file", "filepath", "filename", "targetfile", "absolutepath"]),
        ("content", &["contents", "text", "data", "body", "filetext", "filecontent", "newcontent"]),
        ("expected_version", &["version"]),
    ],
    remedies: &[
        (
            "append",
            "write_file replaces the whole file: to add to one use edit_file, or bash with >>",
        ),
        ("overwrite", "a file that exists is always replaced: leave it out"),
    ],
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::Moderate,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&FILE, &CONTENT, &EXPECTED_VERSION]),
        output: change::result(&[NAME], &[&CREATED, &BYTES_WRITTEN]),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[FILE.name] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}
