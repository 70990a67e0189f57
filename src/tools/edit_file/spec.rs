//! What `edit_file` says of itself.

use std::time::Duration;

use crate::tools::change;
use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

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
- An empty new_string deletes. Files up to 256 MiB; the result tells the lines that changed, as a \
diff, and the new version.\n\
\n\
Example: {\"path\": \"src/main.rs\", \"old_string\": \"let limit = 10;\", \"new_string\": \"let \
limit = 20;\"}";

const OLD: &str = "The text to replace, exactly as it is in the file, line breaks as LF.";
const NEW: &str = "The text to put in its place; empty to delete.";
const ALL: &str = "Whether to replace every occurrence. Default false: there must be exactly one.";

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
        idempotent: false,
    }
}

fn input() -> Schema {
    let edit = Schema::object(vec![
        Property::required("old_string", Kind::String(&[]), OLD),
        Property::required("new_string", Kind::String(&[]), NEW),
        Property::optional("replace_all", Kind::Boolean, ALL),
    ]);
    Schema::object(vec![
        Property::file(),
        Property::optional("old_string", Kind::String(&[]), OLD),
        Property::optional("new_string", Kind::String(&[]), NEW),
        Property::optional("replace_all", Kind::Boolean, ALL),
        Property::optional(
            "edits",
            Kind::Array(Box::new(edit)),
            "Several edits instead of old_string and new_string, made in order, all or none.",
        ),
        Property::optional("expected_version", Kind::String(&[]), change::EXPECTED_VERSION),
    ])
}

fn output() -> Schema {
    let count = || Kind::Whole { min: 0 };
    let mut properties = vec![
        Property::required("path", Kind::String(&[]), "The path as it was asked for."),
        Property::required("replacements", count(), "How many occurrences were replaced."),
    ];
    properties.extend(change::properties());
    Schema::result(&[NAME], properties)
}
