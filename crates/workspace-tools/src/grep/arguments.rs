//! The arguments of `grep`, as meant.

use std::borrow::Cow;

use super::{spec, types};
use crate::field::{Details, Field, Flag, Whole};
use crate::wildcards;
use tool_provider::shorten::shorten;
use tool_provider::{Payload, ToolError};
use workspace_fs::text::hidden::one_line;
use workspace_fs::tree::{IgnoreRules, PathGlob, Selection};

/// What a result lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Lines that match.
    #[default]
    Content,
    /// Files with a match.
    Files,
    /// Files with a match, and how many lines match.
    Count,
}

/// A pattern and how it is meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) pattern: &'a str,
    pub(super) ignore_case: bool,
    pub(super) fixed_strings: bool,
    pub(super) word: bool,
    pub(super) multiline: bool,
}

/// How many lines around a match are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) before: usize,
    pub(super) after: usize,
}

/// Which part of the list a result holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

pub(super) struct Arguments<'a> {
    pub(super) wanted: Wanted<'a>,
    pub(super) path: &'a str,
    pub(super) selection: Selection,
    /// Whether less than all files is asked for, beside the ignore rules.
    pub(super) is_filtered: bool,
    pub(super) mode: Mode,
    pub(super) around: Around,
    pub(super) page: Page,
    /// How many hits of one file are listed, where the call says it.
    pub(super) most_per_file: Option<usize>,
    pub(super) details: Details,
    pub(super) glob: Option<&'a str>,
    /// What of the glob was taken for names.
    pub(super) named: Option<String>,
}

/// How many hits of one file of several are listed when the call does not say.
pub(super) const DEFAULT_PER_FILE: usize = 20;
/// How many entries are listed when the call does not say, and at most.
pub(super) const DEFAULT_LIMIT: u64 = 100;
pub(super) const MOST_LIMIT: u64 = 10_000;
/// How many lines are given around a match at most.
pub(super) const MOST_CONTEXT: u64 = 100;

/// Where a search starts when the call does not say.
pub(super) const HERE: &str = ".";

impl<'a> Arguments<'a> {
    /// The arguments as meant. `exists` says whether there is something at a path from the start.
    pub(super) fn of(
        arguments: &'a Payload,
        exists: impl Fn(&str, &str) -> bool,
    ) -> Result<Self, ToolError> {
        let flag = |field: Field<Flag>| field.get(arguments) == Some(true);
        let pattern = spec::PATTERN
            .get(arguments)
            .ok_or_else(|| ToolError::invalid_arguments("pattern must be a string"))?;
        let wanted = Wanted {
            pattern,
            ignore_case: flag(spec::IGNORE_CASE),
            fixed_strings: flag(spec::FIXED_STRINGS),
            word: flag(spec::WORD),
            multiline: flag(spec::MULTILINE),
        };
        let mode = match spec::MODE.get(arguments) {
            Some("files") => Mode::Files,
            Some("count") => Mode::Count,
            _ => Mode::Content,
        };
        let context = spec::CONTEXT.unsigned(arguments).unwrap_or(0);
        let lines = |field: Field<Whole>| {
            whole(field.unsigned(arguments).unwrap_or(context).min(MOST_CONTEXT))
        };
        let around = match mode {
            Mode::Content => Around { before: lines(spec::BEFORE), after: lines(spec::AFTER) },
            Mode::Files | Mode::Count => Around::default(),
        };
        let limit = spec::LIMIT.unsigned(arguments).unwrap_or(DEFAULT_LIMIT).clamp(1, MOST_LIMIT);
        let offset = spec::OFFSET.unsigned(arguments).unwrap_or(0);
        let page = Page { offset: whole(offset), limit: whole(limit) };
        let rules = match flag(spec::INCLUDE_IGNORED) {
            true => IgnoreRules::Disregard,
            false => IgnoreRules::Honour,
        };
        let (glob, kind) = (spec::GLOB.get(arguments), spec::TYPE.get(arguments));
        let path = spec::START.get(arguments).unwrap_or(HERE);
        let globs = glob.map(|text| Globs::of(text, |name| exists(path, name)));
        let selection = selection(rules, globs.as_ref(), kind)?;
        Ok(Self {
            wanted,
            path,
            selection,
            is_filtered: glob.is_some() || kind.is_some(),
            mode,
            around,
            page,
            most_per_file: spec::MAX_PER_FILE.unsigned(arguments).map(whole),
            details: Details::of(arguments),
            glob,
            named: globs.and_then(|globs| globs.named),
        })
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What the argument glob means: one glob or several, and names taken for names.
struct Globs<'a> {
    text: &'a str,
    globs: Vec<Cow<'a, str>>,
    named: Option<String>,
}

impl<'a> Globs<'a> {
    fn of(text: &'a str, exists: impl Fn(&str) -> bool) -> Self {
        let mut named = None;
        let parts = wildcards::list(text).unwrap_or_else(|| vec![text.into()]);
        let globs = parts.into_iter().map(|part| match wildcards::named(&part, &exists) {
            None => part,
            Some(end) => {
                named = Some(part[..end].to_owned());
                Cow::Owned(wildcards::escaped(&part[..end]) + &part[end..])
            }
        });
        Self { text, globs: globs.collect(), named }
    }
}

fn selection(
    rules: IgnoreRules,
    globs: Option<&Globs<'_>>,
    kind: Option<&str>,
) -> Result<Selection, ToolError> {
    let mut selection = Selection::new(rules);
    if let Some(Globs { text, globs, .. }) = globs {
        let glob = PathGlob::any(globs).map_err(|error| {
            let shown = shorten(text, SHOWN);
            ToolError::invalid_arguments(format!("glob {}: {error}", one_line(&shown)))
                .with_hint("a glob is relative to path, such as *.rs or src/**/*.ts")
                .with_source(error)
        })?;
        selection = selection.with_glob(glob);
    }
    match kind {
        Some(names) => types::select(selection, names),
        None => Ok(selection),
    }
}

/// How much of an argument is repeated in a message, in bytes.
pub(super) const SHOWN: usize = 200;
