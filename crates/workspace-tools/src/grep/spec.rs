//! What `grep` says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use serde_json::Value;

use crate::field::{
    self, DETAILS, Field, Flag, List, NOTICE, Object, PATH, Text, Whole, any_text, flag, list,
    object, text, whole,
};
use tool_provider::schema::{Kind, Schema};
use tool_provider::{Asks, Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub(super) const NAME: &str = "grep";

const DESCRIPTION: &str = "\
Finds lines that match a Rust regex (no look-around, no backreferences), in a file or in all files beneath \
a directory. Hits come by file: its path, then 12:matching line, 11-context line. A result with \
next_offset has more: pass that as offset.\n\
Files that .gitignore, .ignore and .rgignore leave out are not searched unless path or glob names them \
(dist/**) or include_ignored is true. Hidden files are searched, .git is not. Links are followed only \
where path names one. A binary file is searched up to its first NUL.\n\
Example: {\"pattern\": \"fn \\\\w+_error\\\\(\", \"path\": \"src\", \"glob\": \"*.rs\", \"context\": 2}";

pub const PATTERN: Field<Text> = text(
    "pattern",
    "A regex, case-sensitive, matched line by line. A leading dash is nothing special.",
);
pub const START: Field<Text> =
    PATH.described("Directory or file to search. Default: the working directory.").optional();
pub const GLOB: Field<Text> = text(
    "glob",
    "Only files that match: *.rs in any directory, src/**/*.{ts,tsx} from path on; !*.md all others.",
);
pub const TYPE: Field<Text> = text("type", "Only files of this ripgrep type: rust, py, ts, go, …");
pub const MODE: Field<Text> =
    text("mode", "List lines (default), only paths, or path:number of matching lines.")
        .one_of(&["content", "files", "count"]);
pub const BEFORE: Field<Whole> = whole("before", 0, "Lines before each match.");
pub const AFTER: Field<Whole> = whole("after", 0, "Lines after each match.");
pub const CONTEXT: Field<Whole> = whole("context", 0, "Lines before and after each match.");
pub const IGNORE_CASE: Field<Flag> = flag("ignore_case", "Ignore case.");
pub const FIXED_STRINGS: Field<Flag> = flag("fixed_strings", "pattern is plain text.");
pub const MULTILINE: Field<Flag> = flag(
    "multiline",
    "A match may span lines: \\n, (?s). for any character. Files over 16 MiB are skipped.",
);
pub const WORD: Field<Flag> = flag("word", "Match whole words only.");
pub const INCLUDE_IGNORED: Field<Flag> = flag("include_ignored", "Search ignored files too.");
pub const LIMIT: Field<Whole> = whole("limit", 1, "Most matches or files to list. Default 100.");
pub const OFFSET: Field<Whole> = whole("offset", 0, "How many to skip.");
pub const MAX_PER_FILE: Field<Whole> = whole(
    "max_per_file",
    1,
    "Most matches to list of one file. Default 20 in a directory, no maximum where path is a file.",
);

pub const HITS: Field<Text> = text(
    "hits",
    "With mode content: for each file its path on a line, then its lines, 12:text for one that matches \
     and 11-text for one beside it, -- where lines are left out between these, … N more in this file \
     where max_per_file leaves some out; an empty line between files. A line is at most 500 characters, \
     those around the match; … stands for what is cut. Absent where nothing matches.",
);
pub const FILE_COUNTS: Field<Text> = text(
    "file_counts",
    "With mode count: path:count on a line for each file, how many of its lines match. Absent where \
     nothing matches.",
);
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
            &MORE_IN_FILE,
        ])
    },
    "With details and mode content: the matching lines. Partial results have them always.",
);
pub const FILES: Field<List> = list("files", any_text, "With mode files: the files with a match.");
pub const COUNTS: Field<List> = list(
    "counts",
    || field::schema(&[&PATH.described("The file."), &COUNT]),
    "With details and mode count: the files with a match, and their counts.",
);
pub const NEXT_OFFSET: Field<Whole> =
    whole("next_offset", 0, "The offset for the next call. Absent where all is listed.");
pub const TOTAL_MATCHES: Field<Whole> = whole(
    "total_matches",
    0,
    "With details: how many lines match in all (with mode files: how many files), where all was searched.",
);
pub const FILES_SEARCHED: Field<Whole> =
    whole("files_searched", 0, "With details: how many files were searched.");
pub const SKIPPED: Field<Object> = object(
    "skipped",
    || field::schema(&[&BINARY, &TOO_LARGE, &UNREADABLE]),
    "With details: how many files were not searched, or not to their end.",
);
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
pub const MORE_IN_FILE: Field<Whole> = whole(
    "more_in_file",
    1,
    "How many matches of the file are not listed behind this one, because of max_per_file.",
);
pub const COUNT: Field<Whole> = whole("count", 0, "How many of its lines match.").required();

const NUMBERS: Asks = Asks::Given(true, "each line has its number");
const RECURSIVE: Asks =
    Asks::Given(true, "path is searched with all beneath it; a glob such as /* stays in it");
const NAMES: Asks = Asks::Given(true, "hits come by file, beneath its path");
const HIDDEN: Asks =
    Asks::Given(true, "hidden files are searched unless glob leaves them out: !.*");

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
        ("max_per_file", &["m", "maxcount", "maxmatchesperfile"]),
    ],
    words: &[(
        "mode",
        &[
            ("fileswithmatches", "files"),
            ("filesonly", "files"),
            ("lines", "content"),
            ("matches", "content"),
            ("counts", "count"),
        ],
    )],
    lists: &[GLOB.name, TYPE.name],
    flags: &[
        ("n", NUMBERS),
        ("linenumber", NUMBERS),
        ("linenumbers", NUMBERS),
        ("showlinenumbers", NUMBERS),
        ("r", RECURSIVE),
        ("R", RECURSIVE),
        ("recursive", RECURSIVE),
        ("H", NAMES),
        ("withfilename", NAMES),
        ("hidden", HIDDEN),
        ("includehidden", HIDDEN),
        ("l", Asks::Word(MODE.name, "files")),
        ("fileswithmatches", Asks::Word(MODE.name, "files")),
        ("filesonly", Asks::Word(MODE.name, "files")),
        ("c", Asks::Word(MODE.name, "count")),
        ("count", Asks::Word(MODE.name, "count")),
        ("casesensitive", Asks::Argument(IGNORE_CASE.name, false)),
        ("E", Asks::Argument(FIXED_STRINGS.name, false)),
        ("isregex", Asks::Argument(FIXED_STRINGS.name, false)),
        ("isregexp", Asks::Argument(FIXED_STRINGS.name, false)),
    ],
    remedies: &[
        ("exclude", "give glob with a leading !, such as !*.min.js"),
        ("paths", "give one path; glob selects among the files beneath it"),
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
            &MAX_PER_FILE,
            &DETAILS.described("For programs: objects instead of text."),
        ]),
        output: field::result(
            &[NAME],
            &[
                &HITS,
                &FILES,
                &FILE_COUNTS,
                &MATCHES,
                &COUNTS,
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
