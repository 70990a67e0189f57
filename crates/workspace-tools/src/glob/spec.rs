//! What `glob` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{self, Field, Flag, List, NOTICE, PATH, Text, Whole, flag, list, text, whole};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "glob";

const DESCRIPTION: &str = "\
Finds files, directories and links by their names, or lists a directory. Use it to learn what there is; use \
grep to find files by what is in them, and read_file to look into one.\n\
\n\
- ** stands for any directories, * for anything within a name, ? for one character, [a-c] for one of \
several, {rs,toml} for alternatives; a backslash makes a wildcard an ordinary character. Case matters.\n\
- A pattern without a slash matches names in any directory: *.rs finds every Rust file. With a slash \
it matches paths from the start: src/*.rs finds those directly in src, src/**/*.rs those in any \
directory beneath it, ./*.rs those in the start itself. * alone lists the start, ** everything beneath \
it. A slash at the end finds directories only: */.\n\
- The start is path, else the working directory. A pattern may also lead there itself, with .. or \
an absolute path inside the configured directories.\n\
- What ignore files (.gitignore, .ignore, .rgignore; with or without a repository) leave out is \
found only when the pattern or path spells it out, as in dist/*.js, or with include_ignored. Hidden \
files are found like others; .git only when path or pattern starts in it. Links are listed as links \
and only followed where path, or the pattern before its first wildcard, leads through them; one \
that leads outside the configured directories leads to nothing.\n\
- At most limit paths and 128 KiB a call, in one stable order; where there are more, truncated is true and \
next_offset says where to go on. sort: modified puts the newest first.\n\
- A name that shows in double quotes holds bytes or characters that text cannot show: give it back \
as it is.\n\
\n\
Example: {\"pattern\": \"**/*_test.go\", \"path\": \"internal\", \"sort\": \"modified\", \"limit\": 20}";

pub const PATTERN: Field<Text> =
    text("pattern", "What to find: *.rs, src/**/*.{ts,tsx}, */, **/Cargo.toml.").required();
pub const START: Field<Text> = PATH
    .described(
        "The directory to start from: absolute, or relative to the working directory, which is the \
         default.",
    )
    .optional();
pub const LIMIT: Field<Whole> =
    whole("limit", 1, "How many paths to return at most. Default 100, at most 10000.");
pub const OFFSET: Field<Whole> =
    whole("offset", 0, "How many paths to skip: next_offset of the call before. Default 0.");
pub const SORT: Field<Text> =
    text("sort", "By path (the default), or by the time of the last change, newest first.")
        .one_of(&["path", "modified"]);
pub const INCLUDE_IGNORED: Field<Flag> =
    flag("include_ignored", "Whether to find what ignore files leave out, too. Default false.");

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
    "What was found, in order.",
)
.required();
pub const TRUNCATED: Field<Flag> =
    flag("truncated", "Whether there is more, or may be.").required();
pub const NEXT_OFFSET: Field<Whole> =
    whole("next_offset", 0, "The offset for the next call, where there is more.");

pub const KIND: Field<Text> = text("kind", "What is there; other is a pipe, a socket or a device.")
    .one_of(&["file", "folder", "link", "other"])
    .required();
pub const SIZE_BYTES: Field<Whole> = whole("size_bytes", 0, "A file's size in bytes.");
pub const MODIFIED: Field<Text> = text(
    "modified",
    "When it was last changed, as RFC 3339 in UTC; absent where the system does not say.",
);

const SLIPS: Slips = Slips {
    names: &[
        ("pattern", &["glob", "globpattern", "query", "filepattern", "include", "name"]),
        ("path", &["dir", "directory", "folder", "dirpath", "root", "basepath", "searchpath"]),
        ("limit", &["headlimit", "maxresults", "numresults"]),
        ("offset", &["skip"]),
        ("sort", &["sortby", "orderby"]),
        ("include_ignored", &["noignore", "includegitignored"]),
    ],
    remedies: &[
        ("recursive", "**/ in pattern looks in every directory, without it in one"),
        ("exclude", "a pattern finds what it names; to leave something out, name what is wanted"),
    ],
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[&PATTERN, &START, &LIMIT, &OFFSET, &SORT, &INCLUDE_IGNORED]),
        output: field::result(
            &[NAME],
            &[
                &PATTERN.described("The pattern, as the call named it."),
                &START.described("The directory where the search started, as the call named it."),
                &PATHS,
                &TRUNCATED,
                &NEXT_OFFSET,
                &NOTICE,
            ],
        ),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(60),
        idempotent: true,
    }
}
