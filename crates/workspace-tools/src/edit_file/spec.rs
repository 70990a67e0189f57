//! What `edit_file` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::change::{self, EXPECTED_VERSION};
use crate::field::{self, FILE, Field, Flag, List, Text, Whole, flag, list, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "edit_file";

const DESCRIPTION: &str = "\
Replaces strings in a text file, exactly. Use it to change a part of a file; use write_file to \
create a file or to replace all of it.\n\
\n\
- old_string must be in the file exactly once, blanks and tabs included: take it from read_file \
without the line numbers, with as many lines around it as make it unique. replace_all: true \
replaces it wherever it is.\n\
- Write line breaks as LF. In a file with CR LF they match too, and every line keeps its ending; \
encoding, byte order mark and a missing last newline are kept as well.\n\
- Nothing is matched by likeness. If old_string is not found, the error shows the nearest lines and \
what is different, with tabs and spaces made visible.\n\
- edits makes several edits of the file at once, in order, each on what the one before left. If one \
cannot be made, none is.\n\
- An empty new_string deletes. Files up to 256 MiB; the result has the lines that changed, as a \
diff, and the new version.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"old_string\": \"let limit = 10;\", \"new_string\": \"let \
limit = 20;\"}";

pub const OLD_STRING: Field<Text> =
    text("old_string", "The text to replace, exactly as it is in the file, line breaks as LF.");
pub const NEW_STRING: Field<Text> =
    text("new_string", "The text to put in its place; empty to delete.");
pub const REPLACE_ALL: Field<Flag> = flag(
    "replace_all",
    "Whether to replace every occurrence. Default false: there must be exactly one.",
);
pub const EDITS: Field<List> = list(
    "edits",
    || field::schema(&[&OLD_STRING.required(), &NEW_STRING.required(), &REPLACE_ALL]),
    "Several edits instead of old_string and new_string, made in order, all or none.",
);

pub const REPLACEMENTS: Field<Whole> =
    whole("replacements", 0, "How many occurrences were replaced.").required();

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
        ]),
        output: change::result(&[NAME], &[&REPLACEMENTS]),
        slips: SLIPS,
        streaming: false,
        concurrency: Concurrency::Safe { key_fields: &[FILE.name] },
        default_timeout: Duration::from_secs(30),
        idempotent: false,
    }
}
