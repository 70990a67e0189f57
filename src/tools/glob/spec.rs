//! What `glob` says of itself.

use std::time::Duration;

use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

pub(super) const NAME: &str = "glob";

const DESCRIPTION: &str = "\
Finds files, folders and links by their names, or lists a folder. Use it to learn what there is; use \
grep to find files by what is in them, and read_file to look into one.\n\
\n\
- ** stands for any folders, * for anything within a name, ? for one character, [a-c] for one of \
several, {rs,toml} for alternatives; a backslash takes a wildcard's meaning away. Case counts.\n\
- A pattern without a slash is about names in any folder: *.rs finds every Rust file. With a slash \
it is about paths from the start: src/*.rs finds those directly in src, src/**/*.rs those in any \
folder beneath it, ./*.rs those in the start itself. * alone lists the start, ** everything beneath \
it. A slash at the end finds folders only: */.\n\
- The start is path, else the working directory. A pattern may also lead there itself, with .. or \
an absolute path inside the configured folders.\n\
- What ignore files (.gitignore, .ignore, .rgignore; with or without a repository) leave out is \
found only when the pattern or path spells it out, as in dist/*.js, or with include_ignored. Hidden \
files are found like others; .git only when path or pattern starts in it. Links are listed as links \
and only followed where path, or the pattern before its first wildcard, leads through them; one \
that leads outside the configured folders leads to nothing.\n\
- At most limit paths and 128 KiB a call, in one stable order; where there are more, truncated is true and \
next_offset says where to go on. sort: modified puts the newest first.\n\
- A name that shows in double quotes holds bytes or characters that text cannot show: give it back \
as it is.\n\
\n\
Example: {\"pattern\": \"**/*_test.go\", \"path\": \"internal\", \"sort\": \"modified\", \"limit\": 20}";

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: input(),
        output: output(),
        streaming: true,
        concurrency: Concurrency::Safe { key_fields: &[] },
        default_timeout: Duration::from_secs(60),
        idempotent: true,
    }
}

fn input() -> Schema {
    Schema::object(vec![
        Property::required(
            "pattern",
            Kind::String(&[]),
            "What to find: *.rs, src/**/*.{ts,tsx}, */, **/Cargo.toml.",
        ),
        Property::optional(
            "path",
            Kind::String(&[]),
            "The folder to start from: absolute, or relative to the working directory, which is \
             the default.",
        ),
        Property::optional(
            "limit",
            Kind::Whole { min: 1 },
            "How many paths to return at most. Default 100, at most 10000.",
        ),
        Property::optional(
            "offset",
            Kind::Whole { min: 0 },
            "How many paths to leave out at the beginning, as next_offset says. Default 0.",
        ),
        Property::optional(
            "sort",
            Kind::String(&["path", "modified"]),
            "By path (the default), or by the time of the last change, newest first.",
        ),
        Property::optional(
            "include_ignored",
            Kind::Boolean,
            "Whether to find what ignore files leave out, too. Default false.",
        ),
    ])
}

fn output() -> Schema {
    let text = || Kind::String(&[]);
    let path = Schema::object(vec![
        Property::required("path", text(), "The path, as any tool takes it."),
        Property::required(
            "kind",
            Kind::String(&["file", "folder", "link", "other"]),
            "What is there; other is a pipe, a socket or a device.",
        ),
        Property::optional("size_bytes", Kind::Whole { min: 0 }, "A file's size in bytes."),
        Property::optional(
            "modified",
            text(),
            "When it was last changed, as RFC 3339 in UTC; absent where the system does not tell.",
        ),
    ]);
    let properties = vec![
        Property::required("pattern", text(), "The pattern as it was asked for."),
        Property::optional("path", text(), "The folder to start from, as it was asked for."),
        Property::required("paths", Kind::Array(Box::new(path)), "What was found, in order."),
        Property::required("truncated", Kind::Boolean, "Whether there is more, or may be."),
        Property::optional(
            "next_offset",
            Kind::Whole { min: 0 },
            "The offset to go on with, where there is more.",
        ),
        Property::optional("notice", text(), "What else to know."),
    ];
    Schema::result(&[NAME], properties)
}
