//! What `grep` says of itself.

use std::time::Duration;

use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

pub(super) const NAME: &str = "grep";

const DESCRIPTION: &str = "\
Finds the lines that match a regular expression, in one file or in all files beneath a folder. Use it \
to search in files instead of grep, rg or find with bash; use glob to find files by their name and \
read_file to look at one.\n\
\n\
- pattern is a Rust regex (like RE2: no look-around, no backreferences), case-sensitive, matched \
line by line; a leading dash is nothing special. fixed_strings takes it literally; multiline lets it \
match over several lines (\\n; . still stops at a line's end unless it starts with (?s)).\n\
- mode content (default) lists matching lines with path, line and column; files lists paths of files \
with a match; count how many lines match in each. Results are in the order of path and line, the same \
every time; where there is more than limit, truncated is true and offset: next_offset goes on.\n\
- Files that .gitignore, .ignore or .rgignore leave out are not searched, in a git repository or not, \
and the notice says how many were left out. include_ignored: true searches them all; so do a path that \
names one, and a glob that spells it (dist/**, *.log). Hidden files are searched; .git is not. Symbolic \
links are not followed, except one that path itself names. Pipes, sockets and devices are not opened.\n\
- A binary file is searched up to its first NUL byte, and counted and named as skipped; a line over \
8 MiB ends the search of its file. UTF-8 and, with a byte order mark, UTF-16 are understood. Lines end \
at LF; ^, $ and . see an end at a CR as well. text is at most 500 characters of a line, around the match.\n\
\n\
Example: {\"pattern\": \"fn \\\\w+_error\\\\(\", \"path\": \"src\", \"glob\": \"*.rs\", \"context\": 2}";

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
    let text = || Kind::String(&[]);
    let flag = || Kind::Boolean;
    let count = || Kind::Whole { min: 0 };
    Schema::object(vec![
        Property::required("pattern", text(), "The regular expression to find."),
        Property::optional(
            "path",
            text(),
            "The folder or file to search: absolute, or relative to the working directory. Default: \
             the working directory.",
        ),
        Property::optional(
            "glob",
            text(),
            "Search only files that match, such as *.rs (in any folder), src/**/*.ts (from path on) or \
             *.{js,ts}; with a leading ! only those that do not.",
        ),
        Property::optional(
            "type",
            text(),
            "Search only files of this type, as ripgrep names them: rust, py, js, ts, go, java, md, …",
        ),
        Property::optional(
            "mode",
            Kind::String(&["content", "files", "count"]),
            "What to list: matching lines (content, the default), files with a match, or the count of \
             matching lines in each.",
        ),
        Property::optional("before", count(), "Lines to show before each match, at most 100."),
        Property::optional("after", count(), "Lines to show after each match, at most 100."),
        Property::optional("context", count(), "Lines to show before and after each match."),
        Property::optional("ignore_case", flag(), "Whether case makes no difference."),
        Property::optional("fixed_strings", flag(), "Whether pattern is plain text, no regex."),
        Property::optional(
            "multiline",
            flag(),
            "Whether a match may go over several lines. Files over 16 MiB are skipped then.",
        ),
        Property::optional("word", flag(), "Whether only whole words match."),
        Property::optional("include_ignored", flag(), "Whether ignore files do not count."),
        Property::optional(
            "limit",
            Kind::Whole { min: 1 },
            "How many matches, files or counts to list at most. Default 100, at most 10000.",
        ),
        Property::optional(
            "offset",
            count(),
            "How many of them to pass over first: next_offset of the call before. Default 0.",
        ),
    ])
}

fn output() -> Schema {
    let text = || Kind::String(&[]);
    let count = || Kind::Whole { min: 0 };
    let lines = |what: &'static str| {
        Property::optional("", Kind::Array(Box::new(Schema::new(Kind::String(&[]), ""))), what)
    };
    let around = |name: &'static str, what: &'static str| Property { name, ..lines(what) };
    let hit = Schema::object(vec![
        Property::required("path", text(), "The file, as other tools take it."),
        Property::required("line", Kind::Whole { min: 1 }, "The number of the line."),
        Property::required(
            "column",
            Kind::Whole { min: 1 },
            "Where the match begins in the line, in bytes from 1, also where text is cut.",
        ),
        Property::required(
            "text",
            text(),
            "The line, or 500 characters of it around the match; … stands for what is cut.",
        ),
        Property::optional(
            "highlight",
            Kind::Array(Box::new(Schema::new(count(), ""))),
            "Where the match begins and ends in text, in characters from 0.",
        ),
        around("before", "The lines before, as far as no other match has them."),
        around("after", "The lines after, as far as they are no match themselves."),
    ]);
    let counted = Schema::object(vec![
        Property::required("path", text(), "The file."),
        Property::required("count", count(), "How many of its lines match."),
    ]);
    let list = |name, items: Schema, what: &'static str| {
        Property::optional(name, Kind::Array(Box::new(items)), what)
    };
    let properties = vec![
        Property::optional("pattern", text(), "The pattern as it was asked for."),
        Property::optional("path", text(), "Where the search started, as it was asked for."),
        list("matches", hit, "With mode content: the matching lines."),
        list("files", Schema::new(text(), ""), "With mode files: the files with a match."),
        list("counts", counted, "With mode count: the files with a match, and their counts."),
        Property::required(
            "truncated",
            Kind::Boolean,
            "Whether there is more than is listed, or may be.",
        ),
        Property::optional("next_offset", count(), "The offset to go on with."),
        Property::optional(
            "total_matches",
            count(),
            "How many lines match in all (with mode files: how many files), where not truncated.",
        ),
        Property::required("files_searched", count(), "How many files were searched."),
        Property::required(
            "skipped",
            Kind::Object(vec![
                Property::required("binary", count(), "Searched up to the first NUL byte only."),
                Property::required("too_large", count(), "Files, or lines in them, too large."),
                Property::required("unreadable", count(), "Files and folders."),
            ]),
            "How many files were not searched, or not to their end.",
        ),
        Property::optional("notice", text(), "What else to know."),
    ];
    Schema::result(&[NAME], properties)
}
