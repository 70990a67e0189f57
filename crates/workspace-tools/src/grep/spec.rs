//! What `grep` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use serde_json::Value;

use crate::field::{
    self, Field, Flag, List, NOTICE, Object, PATH, Text, Whole, any_text, flag, list, object, text,
    whole,
};
use tool_provider::schema::{Kind, Schema};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "grep";

const DESCRIPTION: &str = "\
Finds the lines that match a regular expression, in one file or in all files beneath a directory. Use it \
to search in files instead of grep, rg or find with bash; use glob to find files by their name and \
read_file to look at one.\n\
\n\
- pattern is a Rust regex (like RE2: no look-around, no backreferences), case-sensitive, matched \
line by line; a leading dash is nothing special. fixed_strings takes it literally; multiline lets it \
match across several lines (\\n; . still stops at a line's end unless it starts with (?s)).\n\
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

pub const PATTERN: Field<Text> = text("pattern", "The regular expression to find.");
pub const START: Field<Text> = PATH
    .described(
        "The directory or file to search: absolute, or relative to the working directory. Default: \
         the working directory.",
    )
    .optional();
pub const GLOB: Field<Text> = text(
    "glob",
    "Search only files that match, such as *.rs (in any directory), src/**/*.ts (from path on) or \
     *.{js,ts}; with a leading ! only those that do not.",
);
pub const TYPE: Field<Text> = text(
    "type",
    "Search only files of this type, as ripgrep names them: rust, py, js, ts, go, java, md, …",
);
pub const MODE: Field<Text> = text(
    "mode",
    "What to list: matching lines (content, the default), files with a match, or the count of \
     matching lines in each.",
)
.one_of(&["content", "files", "count"]);
pub const BEFORE: Field<Whole> =
    whole("before", 0, "Lines to show before each match, at most 100.");
pub const AFTER: Field<Whole> = whole("after", 0, "Lines to show after each match, at most 100.");
pub const CONTEXT: Field<Whole> = whole("context", 0, "Lines to show before and after each match.");
pub const IGNORE_CASE: Field<Flag> = flag("ignore_case", "Whether to ignore case.");
pub const FIXED_STRINGS: Field<Flag> =
    flag("fixed_strings", "Whether pattern is plain text and not a regex.");
pub const MULTILINE: Field<Flag> = flag(
    "multiline",
    "Whether a match may span several lines. Files over 16 MiB are skipped then.",
);
pub const WORD: Field<Flag> = flag("word", "Whether only whole words match.");
pub const INCLUDE_IGNORED: Field<Flag> =
    flag("include_ignored", "Whether to search what ignore files leave out, too.");
pub const LIMIT: Field<Whole> = whole(
    "limit",
    1,
    "How many matches, files or counts to list at most. Default 100, at most 10000.",
);
pub const OFFSET: Field<Whole> =
    whole("offset", 0, "How many of them to skip: next_offset of the call before. Default 0.");

pub const MATCHES: Field<List> = list(
    "matches",
    || {
        field::schema(&[
            &PATH.described("The file, as other tools take it."),
            &LINE,
            &COLUMN,
            &TEXT,
            &HIGHLIGHT,
            &LINES_BEFORE,
            &LINES_AFTER,
        ])
    },
    "With mode content: the matching lines.",
);
pub const FILES: Field<List> = list("files", any_text, "With mode files: the files with a match.");
pub const COUNTS: Field<List> = list(
    "counts",
    || field::schema(&[&PATH.described("The file."), &COUNT]),
    "With mode count: the files with a match, and their counts.",
);
pub const TRUNCATED: Field<Flag> =
    flag("truncated", "Whether there is more than is listed, or may be.").required();
pub const NEXT_OFFSET: Field<Whole> = whole("next_offset", 0, "The offset for the next call.");
pub const TOTAL_MATCHES: Field<Whole> = whole(
    "total_matches",
    0,
    "How many lines match in all (with mode files: how many files), where not truncated.",
);
pub const FILES_SEARCHED: Field<Whole> =
    whole("files_searched", 0, "How many files were searched.").required();
pub const SKIPPED: Field<Object> = object(
    "skipped",
    || field::schema(&[&BINARY, &TOO_LARGE, &UNREADABLE]),
    "How many files were not searched, or not to their end.",
)
.required();
pub const BINARY: Field<Whole> =
    whole("binary", 0, "Searched up to the first NUL byte only.").required();
pub const TOO_LARGE: Field<Whole> =
    whole("too_large", 0, "Files that are too large, or have a line that is.").required();
pub const UNREADABLE: Field<Whole> =
    whole("unreadable", 0, "Files and directories that cannot be read.").required();

pub const LINE: Field<Whole> = whole("line", 1, "The number of the line.").required();
pub const COLUMN: Field<Whole> = whole(
    "column",
    1,
    "Where the match begins in the line, in bytes from 1, also where text is cut.",
)
.required();
pub const TEXT: Field<Text> =
    text("text", "The line, or 500 characters of it around the match; … stands for what is cut.")
        .required();
pub const HIGHLIGHT: Field<List> = list(
    "highlight",
    || Schema::new(Kind::Whole { min: 0 }, ""),
    "Where the match begins and ends in text, in characters from 0.",
);
pub const LINES_BEFORE: Field<List> =
    list("before", any_text, "The lines before, as far as no other match has them.");
pub const LINES_AFTER: Field<List> =
    list("after", any_text, "The lines after, as far as they are no match themselves.");
pub const COUNT: Field<Whole> = whole("count", 0, "How many of its lines match.").required();

const SLIPS: Slips = Slips {
    names: &[
        ("pattern", &["query", "regex", "regexp", "search", "searchterm", "searchpattern"]),
        (
            "path",
            &["dir", "directory", "folder", "dirpath", "root", "searchpath", "file", "filepath"],
        ),
        ("glob", &["include", "includes", "includepattern", "filepattern", "globpattern"]),
        ("type", &["filetype", "language"]),
        ("mode", &["outputmode"]),
        ("before", &["b", "beforecontext", "contextbefore", "linesbefore"]),
        ("after", &["a", "aftercontext", "contextafter", "linesafter"]),
        ("context", &["c", "contextlines", "linesofcontext"]),
        ("ignore_case", &["i", "caseinsensitive", "insensitive"]),
        ("fixed_strings", &["f", "fixed", "fixedstring", "literal", "isliteral"]),
        ("word", &["w", "words", "wholeword", "wholewords", "wordregexp"]),
        ("include_ignored", &["noignore", "includegitignored"]),
        ("limit", &["headlimit", "maxresults", "maxmatches", "numresults"]),
        ("offset", &["skip"]),
    ],
    remedies: &[
        ("casesensitive", "case matters unless ignore_case is true"),
        ("exclude", "give glob with a leading !, such as !*.min.js"),
        ("paths", "give one path; glob selects among the files beneath it"),
        ("isregex", "pattern is a regex unless fixed_strings is true"),
        ("isregexp", "pattern is a regex unless fixed_strings is true"),
    ],
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: DESCRIPTION.to_owned(),
        input: field::schema(&[
            &PATTERN.required(),
            &START,
            &GLOB,
            &TYPE,
            &MODE,
            &BEFORE,
            &AFTER,
            &CONTEXT,
            &IGNORE_CASE,
            &FIXED_STRINGS,
            &MULTILINE,
            &WORD,
            &INCLUDE_IGNORED,
            &LIMIT,
            &OFFSET,
        ]),
        output: field::result(
            &[NAME],
            &[
                &PATTERN.described("The pattern, as the call named it."),
                &START.described("Where the search started, as the call named it."),
                &MATCHES,
                &FILES,
                &COUNTS,
                &TRUNCATED,
                &NEXT_OFFSET,
                &TOTAL_MATCHES,
                &FILES_SEARCHED,
                &SKIPPED,
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

/// The text of a line beside a hit: the item itself, or its field `text`.
pub fn text_of(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| TEXT.get(item.as_object()?))
}
