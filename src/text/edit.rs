//! Edits: strings replaced by strings, in order, all or nothing, byte for byte.

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::fmt;
use std::ops::{ControlFlow, Range};

use super::diagnose::{Diagnosis, diagnose};
use super::encoding::{Encoding, Unencodable};
use super::endings::Replacement;
use super::lines::Unit;
use super::matching::{Needle, Overlaps};
use super::patch::{Change, Patch};

/// One edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    /// What stands in the text.
    pub old: &'a str,
    /// What shall stand there.
    pub new: &'a str,
    /// Which of its places are meant.
    pub scope: Scope,
}

/// Which matches an edit replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The only one; more than one is an error.
    Only,
    /// All, from left to right.
    All,
}

/// What edits do to a text.
#[derive(Clone, Debug)]
pub struct Edited {
    /// The changed bytes.
    pub patch: Patch<'static>,
    /// How many matches were replaced.
    pub replacements: usize,
}

/// An edit that cannot be made; then none is.
#[derive(Debug)]
pub struct EditError {
    /// Which edit, from 0.
    pub index: usize,
    /// How many edits there were.
    pub of: usize,
    /// Why.
    pub reason: Refusal,
}

/// Why an edit cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is nothing to look for.
    #[error("old_string must not be empty")]
    EmptyOld,
    /// The text would stay as it is.
    #[error("old_string and new_string are the same: there is nothing to change")]
    Same,
    /// The text already is as it would be, because line endings are kept.
    #[error(
        "the file already reads like this: old_string and new_string differ only in line endings, \
         and every line keeps the ending that it has"
    )]
    OnlyEndings,
    /// The file's encoding lacks a character of the new text.
    #[error("new_string cannot be written into this file: {0}")]
    Unencodable(#[source] Unencodable),
    /// It is not clear which place is meant.
    #[error("{0}")]
    Ambiguous(Ambiguity),
    /// It stands nowhere.
    #[error("{0}")]
    NotFound(Box<Diagnosis>),
    /// Time was up, or nobody waits any more.
    #[error("the edits were given up half-way; nothing was changed")]
    Stopped,
    /// There is no memory for the text between two edits.
    #[error("there is not enough memory for these edits")]
    NoMemory(#[source] TryReserveError),
    /// The result would be too large.
    #[error("the edited file would be larger than {limit} bytes, the limit for edit_file")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// The places where a string that should stand once stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// How many there are, counted with overlaps.
    pub count: Count,
    /// The lines of the first few, 1-based, the same line as often as it has matches.
    pub lines: Vec<usize>,
}

/// A number of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exactly(usize),
    /// So many, and then counting ended.
    AtLeast(usize),
}

/// How far matches are counted that should be one.
const MAX_COUNTED: usize = 10_000;

/// How many bytes are compared for that. A needle of a megabyte in a text of one letter matches at
/// every byte, and each match costs the whole needle.
const MAX_COMPARED: usize = 64 * 1024 * 1024;

/// After how many bytes of matches it is asked whether to stop.
const ASKED_EVERY: usize = 256 * 1024;

/// How many of their lines are told, and how many of these a message lists.
const MAX_LINES: usize = 100;
const LISTED: usize = 20;

/// What bounds a list of edits.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// The largest result, in bytes.
    pub size: usize,
    /// Asked before each edit and every so many bytes within one; true gives all up.
    pub should_stop: &'a dyn Fn() -> bool,
}

/// Makes all edits on `body`, a file's bytes behind its byte order mark. A later edit sees what the
/// earlier ones left.
///
/// # Errors
/// [`EditError`] for the first edit that cannot be made.
pub fn apply(
    body: &[u8],
    encoding: Encoding,
    edits: &[Edit<'_>],
    bounds: Bounds<'_>,
) -> Result<Edited, EditError> {
    let mut text = Cow::Borrowed(body);
    let mut edited = Edited { patch: Patch::default(), replacements: 0 };
    for (index, edit) in edits.iter().enumerate() {
        let fail = |reason| EditError { index, of: edits.len(), reason };
        if (bounds.should_stop)() {
            return Err(fail(Refusal::Stopped));
        }
        let next = apply_one(&text, encoding, edit, bounds).map_err(fail)?;
        edited.replacements += next.replacements;
        let joined = (index > 0).then(|| edited.patch.then(&text, &next.patch));
        if index + 1 < edits.len() {
            let changed = next.patch.try_apply(text);
            text = Cow::Owned(changed.map_err(|lack| fail(Refusal::NoMemory(lack)))?);
        }
        edited.patch = joined.unwrap_or(next.patch);
    }
    Ok(edited)
}

fn apply_one(
    text: &[u8],
    encoding: Encoding,
    edit: &Edit<'_>,
    bounds: Bounds<'_>,
) -> Result<Edited, Refusal> {
    if edit.old.is_empty() {
        return Err(Refusal::EmptyOld);
    }
    if edit.old == edit.new {
        return Err(Refusal::Same);
    }
    let not_found =
        |edit: &Edit<'_>| Refusal::NotFound(Box::new(diagnose(text, encoding, edit.old)));
    let marked = edit.old.starts_with(MARK) && !encoding.bom().is_empty();
    let edit = &if marked { without_mark(edit)? } else { *edit };
    let Ok(needle) = Needle::new(edit.old, encoding) else { return Err(not_found(edit)) };
    let mut replacement = Replacement::new(edit.old, edit.new, needle.endings(), encoding)
        .map_err(Refusal::Unencodable)?;

    let mut edited = Edited { patch: Patch::default(), replacements: 0 };
    let limit = bounds.size;
    let mut size = text.len();
    let mut add = |found: Range<usize>| {
        let mut new = replacement.at(text, &found).map_err(Refusal::Unencodable)?;
        // A text has one mark, and it stands before the body.
        if found.start == 0 && !encoding.bom().is_empty() && edit.new.starts_with(MARK) {
            new.to_mut().drain(..encoding.bom().len());
        }
        size = size - found.len() + new.len();
        if size > limit {
            return Err(Refusal::TooLarge { limit });
        }
        edited.replacements += 1;
        if *new != text[found.clone()] {
            let change = Change { old: found, text: Cow::Owned(new.into_owned()) };
            edited.patch.push(text, change);
        }
        Ok(())
    };
    match edit.scope {
        Scope::Only => {
            let (mut found, counted) = places(&needle, text, bounds)?;
            if marked {
                found.retain(|found| found.start == 0);
            }
            match found.len() {
                0 => return Err(not_found(edit)),
                1 => add(found.swap_remove(0))?,
                _ => {
                    let unit = Unit::of(encoding);
                    return Err(Refusal::Ambiguous(ambiguity(text, unit, &found, counted)));
                }
            }
        }
        Scope::All => {
            let mut outcome = Ok(());
            let mut pace = Pace::new(bounds);
            needle.each(text, Overlaps::Skipped, |found| {
                if marked && found.start > 0 {
                    return ControlFlow::Break(());
                }
                outcome = pace.went(found.len()).and_then(|()| add(found));
                if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            outcome?;
        }
    }
    if edited.replacements == 0 {
        return Err(not_found(edit));
    }
    if edited.patch.is_empty() {
        return Err(Refusal::OnlyEndings);
    }
    Ok(edited)
}

/// Where the needle stands, and whether that is everywhere: counting ends where it costs too much,
/// but never before a second place.
fn places(
    needle: &Needle,
    text: &[u8],
    bounds: Bounds<'_>,
) -> Result<(Vec<Range<usize>>, Counted), Refusal> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut counted = Counted::All;
    let mut compared = 0;
    let mut outcome = Ok(());
    let mut pace = Pace::new(bounds);
    needle.each(text, Overlaps::Counted, |range| {
        compared += range.len();
        outcome = pace.went(range.len());
        found.push(range);
        let enough = found.len() >= MAX_COUNTED || (found.len() > 1 && compared >= MAX_COMPARED);
        if enough {
            counted = Counted::Some;
        }
        if enough || outcome.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    outcome.map(|()| (found, counted))
}

/// Whether all matches were counted.
#[derive(Clone, Copy)]
enum Counted {
    All,
    Some,
}

/// Asks now and then, on the way through a text, whether to go on.
struct Pace<'a> {
    bounds: Bounds<'a>,
    since: usize,
}

impl<'a> Pace<'a> {
    fn new(bounds: Bounds<'a>) -> Self {
        Self { bounds, since: 0 }
    }

    /// So many more bytes were gone through. A match counts for more than its bytes: it costs
    /// bookkeeping too.
    fn went(&mut self, bytes: usize) -> Result<(), Refusal> {
        const MATCH: usize = 64;
        self.since += bytes + MATCH;
        if self.since < ASKED_EVERY {
            return Ok(());
        }
        self.since = 0;
        if (self.bounds.should_stop)() { Err(Refusal::Stopped) } else { Ok(()) }
    }
}

/// A byte order mark as a character.
const MARK: char = '\u{FEFF}';

/// The edit without the byte order mark that it begins with: the mark stands before the body.
fn without_mark<'a>(edit: &Edit<'a>) -> Result<Edit<'a>, Refusal> {
    let old = edit.old.trim_start_matches(MARK);
    let new = edit.new.trim_start_matches(MARK);
    match (old.is_empty(), old == new) {
        (true, _) => Err(Refusal::EmptyOld),
        (_, true) => Err(Refusal::Same),
        _ => Ok(Edit { old, new, scope: edit.scope }),
    }
}

fn ambiguity(text: &[u8], unit: Unit, found: &[Range<usize>], counted: Counted) -> Ambiguity {
    let count = match counted {
        Counted::All => Count::Exactly(found.len()),
        Counted::Some => Count::AtLeast(found.len()),
    };
    let (mut line, mut counted) = (1, 0);
    let lines = found.iter().take(MAX_LINES).map(|found| {
        line += unit.count_lf(&text[counted..found.start]);
        counted = found.start;
        line
    });
    Ambiguity { count, lines: lines.collect() }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, all_told) = match self.count {
            Count::Exactly(count) => (count.to_string(), count == self.lines.len()),
            Count::AtLeast(count) => (format!("at least {count}"), false),
        };
        let mut lines = self.lines.clone();
        lines.dedup();
        let more = if all_told && lines.len() <= LISTED { "" } else { ", …" };
        lines.truncate(LISTED);
        let plural = if lines.len() > 1 || !more.is_empty() { "s" } else { "" };
        let lines = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(
            f,
            "old_string stands {count} times in the file (line{plural} {lines}{more}): add \
             surrounding lines until it is unique, or set replace_all"
        )
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of > 1 {
            let after = if self.index > 0 { ", after the edits before it" } else { "" };
            write!(f, "edits[{}]{after}: ", self.index)?;
        }
        write!(f, "{}", self.reason)
    }
}

impl std::error::Error for EditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reason)
    }
}

#[cfg(test)]
mod tests;
