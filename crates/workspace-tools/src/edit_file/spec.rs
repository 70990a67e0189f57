//! What `edit_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::change::{self, EXPECTED_VERSION};
use crate::field::{self, DETAILS, FILE, Field, Flag, List, Text, Whole, flag, list, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "edit_file";

const DESCRIPTION: &str = "\
Replaces old_string by new_string in a text file. old_string has to be in the file exactly once, \
blanks and tabs included, without the line numbers of read_file: take as many lines as make it \
unique, or set replace_all. A new_string of \"\" deletes. If old_string is not found, nothing is \
changed, and the error shows the nearest lines and what differs.\n\
\n\
edits makes several edits in order, each on what the one before left; if one fails, none is made. \
Write line breaks as LF: CR LF, the encoding and a missing last newline stay. Reading the file first \
is not needed. A name in many files is faster changed with bash.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"old_string\": \"limit = 10;\", \"new_string\": \"limit = \
20;\"}";

pub const OLD_STRING: Field<Text> = text("old_string", "Text as it is in the file.");
pub const NEW_STRING: Field<Text> = text("new_string", "Text to put in its place.");
pub const REPLACE_ALL: Field<Flag> = flag("replace_all", "Replaces every occurrence.");
pub const EDITS: Field<List> = list(
    "edits",
    || field::schema(&[&OLD_STRING.required(), &NEW_STRING.required(), &REPLACE_ALL]),
    "Instead of old_string and new_string.",
);

pub const REPLACEMENTS: Field<Whole> = whole(
    "replacements",
    0,
    "How many occurrences were replaced, where that is not one for each edit, or with details.",
);

const COUNT: &str =
    "without replace_all there must be exactly one occurrence, with it all are replaced";

const SLIPS: Slips = Slips {
    names: &[
        ("path", &["file", "filepath", "filename", "targetfile", "absolutepath"]),
        ("old_string", &["old", "oldstr", "oldtext", "search", "find"]),
        ("new_string", &["new", "newstr", "newtext", "replace", "replacewith", "replacement"]),
        ("replace_all", &["all", "global", "allowmultiple", "allowmultipleoccurrences"]),
        ("edits", &["changes", "operations", "patches", "replacements"]),
        ("expected_version", &["version"]),
    ],
    remedies: &[
        ("expectedreplacements", COUNT),
        ("count", COUNT),
        (
            "insertline",
            "put the line that stands there into old_string, and it with the new ones into new_string",
        ),
        ("patch", "give old_string and new_string, or several of them in edits"),
        ("diff", "give old_string and new_string, or several of them in edits"),
    ],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::Moderate,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[
            &FILE,
            &OLD_STRING,
            &NEW_STRING,
            &REPLACE_ALL,
            &EDITS,
            &EXPECTED_VERSION,
            &DETAILS,
        ]),
        output: change::result(&[NAME], &[&REPLACEMENTS]),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[FILE.name] },
        default_timeout: Duration::from_secs(30),
        idempotent: false,
    }
}
