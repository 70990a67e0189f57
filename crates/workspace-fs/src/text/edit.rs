//! Edits: strings replaced by strings, in order, all or nothing, byte for byte.

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::fmt;
use std::ops::{ControlFlow, Range};

use super::diagnose::{Diagnosis, Made, Places, Taken, diagnose};
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
    /// Which of its occurrences are meant.
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

impl Edit<'_> {
    /// Refuses an edit that makes no sense in any text.
    ///
    /// # Errors
    /// [`Refusal::EmptyOld`] and [`Refusal::Same`].
    pub fn check(&self) -> Result<(), Refusal> {
        match (self.old.is_empty(), self.old == self.new) {
            (true, _) => Err(Refusal::EmptyOld),
            (_, true) => Err(Refusal::Same),
            _ => Ok(()),
        }
    }
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
    /// It is not clear which occurrence is meant.
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

/// The occurrences of a string that should occur once.
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

/// How many of their lines are reported, and how many of these a message lists.
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
        let next = apply_one(&text, encoding, edit, bounds).map_err(|reason| match reason {
            Refusal::NotFound(mut diagnosis) => {
                diagnosis.taken = taken(body, encoding, &edits[..index], edit, bounds);
                fail(Refusal::NotFound(diagnosis))
            }
            reason => fail(reason),
        })?;
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

/// Which of the `earlier` edits changed what the next one looks for.
fn taken(
    body: &[u8],
    encoding: Encoding,
    earlier: &[Edit<'_>],
    next: &Edit<'_>,
    bounds: Bounds<'_>,
) -> Option<Taken> {
    let needle = Needle::new(next.old, encoding).ok()?;
    let mut taken = None;
    let mut text = Cow::Borrowed(body);
    for (index, edit) in earlier.iter().enumerate() {
        if (bounds.should_stop)() {
            return None;
        }
        let before = needle.find(&text, Overlaps::Skipped, 1).pop();
        let patch = apply_one(&text, encoding, edit, bounds).ok()?.patch;
        let after = patch.try_apply(Cow::Borrowed(&text)).ok()?;
        if let Some(found) = before {
            let made = Made { before: &text, patch: &patch, after: &after, encoding };
            taken = Some(Taken::new(index, &found, &made));
        }
        text = Cow::Owned(after);
    }
    let places = Places::of(&needle, body, Unit::of(encoding));
    taken.map(|taken| Taken { places, ..taken })
}

fn apply_one(
    text: &[u8],
    encoding: Encoding,
    edit: &Edit<'_>,
    bounds: Bounds<'_>,
) -> Result<Edited, Refusal> {
    edit.check()?;
    let marked = edit.old.starts_with(MARK) && !encoding.bom().is_empty();
    let edit = &if marked { without_mark(edit)? } else { *edit };
    let not_found = || Refusal::NotFound(Box::new(diagnose(text, encoding, edit.old, edit.new)));
    let Ok(needle) = Needle::new(edit.old, encoding) else { return Err(not_found()) };
    let replacement = Replacement::new(edit.old, edit.new, needle.endings(), encoding)
        .map_err(Refusal::Unencodable)?;
    let mut replacing = Replacing {
        text,
        replacement,
        // A text has one mark, and it stands before the body.
        second_mark: if edit.new.starts_with(MARK) { encoding.bom().len() } else { 0 },
        size: text.len(),
        limit: bounds.size,
        edited: Edited { patch: Patch::default(), replacements: 0 },
    };
    let within = if marked { Within::Start } else { Within::Body };
    match edit.scope {
        Scope::Only => {
            if let Some(found) = only_occurrence(&needle, text, within, encoding, bounds)? {
                replacing.replace(found)?;
            }
        }
        Scope::All => replacing.replace_all(&needle, within, bounds)?,
    }
    let edited = replacing.edited;
    if edited.replacements == 0 {
        return Err(not_found());
    }
    if edited.patch.is_empty() {
        return Err(Refusal::OnlyEndings);
    }
    Ok(edited)
}

/// Where a match counts.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Body,
    /// Only at the body's start: what was looked for begins with the mark that stands before it.
    Start,
}

/// One edit under way.
struct Replacing<'a> {
    text: &'a [u8],
    replacement: Replacement<'a>,
    /// The bytes of a byte order mark at the head of the new text, left out at the body's start.
    second_mark: usize,
    /// How large the text is by now, and may become at most, in bytes.
    size: usize,
    limit: usize,
    edited: Edited,
}

impl Replacing<'_> {
    /// Replaces one match.
    fn replace(&mut self, found: Range<usize>) -> Result<(), Refusal> {
        let mut new = self.replacement.at(self.text, &found).map_err(Refusal::Unencodable)?;
        if found.start == 0 && self.second_mark > 0 {
            new.to_mut().drain(..self.second_mark);
        }
        self.size = self.size - found.len() + new.len();
        if self.size > self.limit {
            return Err(Refusal::TooLarge { limit: self.limit });
        }
        self.edited.replacements += 1;
        if *new != self.text[found.clone()] {
            let change = Change { old: found, text: Cow::Owned(new.into_owned()) };
            self.edited.patch.push(self.text, change);
        }
        Ok(())
    }

    fn replace_all(
        &mut self,
        needle: &Needle,
        within: Within,
        bounds: Bounds<'_>,
    ) -> Result<(), Refusal> {
        let mut outcome = Ok(());
        let mut budget = Budget::new(bounds);
        needle.each(self.text, Overlaps::Skipped, |found| {
            if within == Within::Start && found.start > 0 {
                return ControlFlow::Break(());
            }
            outcome = budget.spend(found.len()).and_then(|()| self.replace(found));
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome
    }
}

/// The one match, where there is one.
///
/// # Errors
/// [`Refusal::Ambiguous`] where there are more.
fn only_occurrence(
    needle: &Needle,
    text: &[u8],
    within: Within,
    encoding: Encoding,
    bounds: Bounds<'_>,
) -> Result<Option<Range<usize>>, Refusal> {
    let (mut found, counted) = occurrences(needle, text, bounds)?;
    if within == Within::Start {
        found.retain(|found| found.start == 0);
    }
    if found.len() > 1 {
        let unit = Unit::of(encoding);
        return Err(Refusal::Ambiguous(ambiguity(text, unit, &found, counted)));
    }
    Ok(found.pop())
}

/// Where the needle stands, and whether that is everywhere: counting ends where it costs too much,
/// but never before a second occurrence.
fn occurrences(
    needle: &Needle,
    text: &[u8],
    bounds: Bounds<'_>,
) -> Result<(Vec<Range<usize>>, Counted), Refusal> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut counted = Counted::All;
    let mut compared = 0;
    let mut outcome = Ok(());
    let mut budget = Budget::new(bounds);
    needle.each(text, Overlaps::Counted, |range| {
        compared += range.len();
        outcome = budget.spend(range.len());
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

/// Work that may be done before asking again whether to stop.
struct Budget<'a> {
    bounds: Bounds<'a>,
    spent: usize,
}

impl<'a> Budget<'a> {
    fn new(bounds: Bounds<'a>) -> Self {
        Self { bounds, spent: 0 }
    }

    /// Counts `bytes` as searched. A match counts for more than its bytes: it costs
    /// bookkeeping too.
    fn spend(&mut self, bytes: usize) -> Result<(), Refusal> {
        const MATCH: usize = 64;
        self.spent += bytes + MATCH;
        if self.spent < ASKED_EVERY {
            return Ok(());
        }
        self.spent = 0;
        if (self.bounds.should_stop)() { Err(Refusal::Stopped) } else { Ok(()) }
    }
}

/// A byte order mark as a character.
const MARK: char = '\u{FEFF}';

/// The edit without the byte order mark that it begins with: the mark stands before the body.
fn without_mark<'a>(edit: &Edit<'a>) -> Result<Edit<'a>, Refusal> {
    let old = edit.old.trim_start_matches(MARK);
    let new = edit.new.trim_start_matches(MARK);
    let edit = Edit { old, new, scope: edit.scope };
    edit.check().map(|()| edit)
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
        let (count, all_reported) = match self.count {
            Count::Exactly(count) => (count.to_string(), count == self.lines.len()),
            Count::AtLeast(count) => (format!("at least {count}"), false),
        };
        let mut lines = self.lines.clone();
        lines.dedup();
        let more = if all_reported && lines.len() <= LISTED { "" } else { ", …" };
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
