//! What `write_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::change::{self, EXPECTED_VERSION};
use crate::field::{self, DETAILS, FILE, Field, Flag, Text, Whole, flag, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "write_file";

const DESCRIPTION: &str = "\
Creates a text file and missing directories, or replaces all of a file. To change a part of one, \
edit_file is shorter and keeps the rest.\n\
\n\
The file holds content byte for byte, in UTF-8. Its mode stays; if the call fails, so does the old \
content. A file that somebody else has changed since it was read is not overwritten: read it \
again.\n\
\n\
Example: {\"path\": \"docs/notes.md\", \"content\": \"# Notes\\n\"}";

pub const CONTENT: Field<Text> = text("content", "All of the file.").required();

pub const CREATED: Field<Flag> = flag("created", "true where the file is new, else absent.");
pub const BYTES_WRITTEN: Field<Whole> = whole(
    "bytes_written",
    0,
    "The size of the content; 0 where the file had it already. With details only.",
);

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
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::Moderate,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&FILE, &CONTENT, &EXPECTED_VERSION, &DETAILS]),
        output: change::result(&[NAME], &[&CREATED, &BYTES_WRITTEN]),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[FILE.name] },
        default_timeout: Duration::from_secs(30),
        idempotent: true,
    }
}
