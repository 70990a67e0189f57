//! What `glob` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{
    self, DETAILS, Field, Flag, List, NOTICE, PATH, Text, Whole, any_text, flag, list, text, whole,
};
use tool_provider::{Asks, Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "glob";

const DESCRIPTION: &str = "\
Lists files, directories (with a slash at the end) and links by name. * lists one directory, ** everything \
beneath it, */ directories. Any other pattern without a slash is about names in any directory: *.rs. With \
one it is about paths from path on: src/*.rs for those directly in src, src/**/*.rs for all beneath, ./*.rs \
here. Case matters; .. only before the first wildcard. A result with next_offset has more: pass that as offset.\n\
What .gitignore, .ignore and .rgignore leave out is not listed unless pattern or path spells it \
(dist/*.js) or include_ignored is true. Hidden files are listed; .git only where path or pattern starts \
in it. Links are not followed. Give a name in double quotes back as it is.\n\
Example: {\"pattern\": \"**/*_test.go\", \"path\": \"internal\", \"sort\": \"modified\", \"limit\": 20}";

pub const PATTERN: Field<Text> =
    text("pattern", "Such as *.rs or src/**/*.{ts,tsx}; \\[ for a bracket itself.").required();
pub const START: Field<Text> =
    PATH.described("Directory to start from. Default: the working directory.").optional();
pub const ONLY: Field<Text> =
    text("kind", "Only these. Default: all.").one_of(&["file", "directory", "link"]);
pub const LIMIT: Field<Whole> = whole("limit", 1, "Default 100.");
pub const OFFSET: Field<Whole> = whole("offset", 0, "How many to skip.");
pub const SORT: Field<Text> = text("sort", "By path (default), newest first, or largest first.")
    .one_of(&["path", "modified", "size"]);
pub const INCLUDE_IGNORED: Field<Flag> = flag("include_ignored", "List ignored files too.");

pub const FOUND: Field<List> = list(
    "found",
    any_text,
    "The paths, in order, as any tool takes them; a directory's ends in a slash.",
);
pub const PATHS: Field<List> = list(
    "paths",
    || {
        field::schema(&[
            &PATH.described("The path, as any tool takes it."),
            &KIND,
            &SIZE_BYTES,
            &MODIFIED,
        ])
    },
    "With details: what was found, in order. Partial results have it always.",
);
pub const NEXT_OFFSET: Field<Whole> =
    whole("next_offset", 0, "The offset for the next call. Absent where all is listed.");

pub const KIND: Field<Text> = text("kind", "What is there; other is a pipe, a socket or a device.")
    .one_of(&["file", "folder", "link", "other"])
    .required();
pub const SIZE_BYTES: Field<Whole> = whole("size_bytes", 0, "A file's size in bytes.");
pub const MODIFIED: Field<Text> = text(
    "modified",
    "When it was last changed, as RFC 3339 in UTC; absent where the system does not say.",
);

const HIDDEN: Asks = Asks::Given(true, "hidden files are listed unless pattern names others");

const SLIPS: Slips = Slips {
    names: &[
        ("pattern", &["glob", "globpattern", "query", "filepattern", "include", "name"]),
        ("path", &["dir", "directory", "folder", "dirpath", "root", "basepath", "searchpath"]),
        ("kind", &["type", "filetype", "entrytype"]),
        ("limit", &["headlimit", "maxresults", "numresults"]),
        ("offset", &["skip"]),
        ("sort", &["sortby", "orderby"]),
        ("include_ignored", &["noignore", "includegitignored"]),
    ],
    words: &[
        (
            "kind",
            &[
                ("folder", "directory"),
                ("dir", "directory"),
                ("files", "file"),
                ("symlink", "link"),
            ],
        ),
        (
            "sort",
            &[
                ("mtime", "modified"),
                ("time", "modified"),
                ("newest", "modified"),
                ("name", "path"),
                ("largest", "size"),
            ],
        ),
    ],
    lists: &[PATTERN.name],
    flags: &[
        ("hidden", HIDDEN),
        ("includehidden", HIDDEN),
        ("casesensitive", Asks::Given(true, "case matters: [Rr]eadme* finds both")),
    ],
    remedies: &[
        ("recursive", "**/ in pattern looks in every directory, without it in one"),
        ("exclude", "a pattern finds what it names; to leave something out, name what is wanted"),
    ],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[
            &PATTERN,
            &START,
            &ONLY,
            &SORT,
            &INCLUDE_IGNORED,
            &LIMIT,
            &OFFSET,
            &DETAILS.described("For programs: objects instead of text."),
        ]),
        output: field::result(&[NAME], &[&FOUND, &PATHS, &NEXT_OFFSET, &NOTICE]),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(60),
        idempotent: true,
    }
}
