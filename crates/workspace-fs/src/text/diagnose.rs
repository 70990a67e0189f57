//! Why a string was not found: the mistake that explains it, or the most similar lines.
//!
//! A diagnosis is advice. Nothing is ever replaced because it is similar. The cost is bounded:
//! linear passes over the text, the costly ones over no more than [`COMPARED_BYTES`] of it.

mod align;
mod blanks;
mod candidates;
mod fold;
mod nearest;
mod piece;
mod places;
mod slip;
mod visible;
mod wanted;

use std::fmt;
use std::ops::Range;

use super::encoding::{Encoding, Unencodable};
use super::lines::Unit;
use super::matching::Needle;
use super::patch::Patch;

pub use fold::Kind;
pub(crate) use fold::plain_punctuation;
pub use places::Places;
pub use slip::Slip;

/// How much of a text is compared line by line.
pub const COMPARED_BYTES: usize = 16 * 1024 * 1024;

/// Why a string was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The string holds a character that the file's encoding lacks.
    pub unencodable: Option<Unencodable>,
    /// Whether the string holds U+FFFD, which stands for bytes that are no text and matches none.
    pub holds_replacement: bool,
    /// A mistake in the string without which it would have been found.
    pub slip: Option<Found>,
    /// The most similar lines, where there is no such mistake.
    pub nearest: Option<Region>,
    /// Where the new text stands already, as after the same edit.
    pub made: Places,
    /// The earlier edit that changed it; then nothing else is said.
    pub taken: Option<Taken>,
    /// How much of the text was compared.
    pub compared: Compared,
    /// Whether there was nothing to compare with.
    pub is_empty: bool,
}

/// A mistake, and where the string stands without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The mistake.
    pub slip: Slip,
    /// The first lines where the corrected string stands, 1-based.
    pub lines: Vec<usize>,
}

/// What an earlier edit of the same call changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which edit, from 0.
    pub by: usize,
    /// Where it stands in the file; nowhere, if an edit put it there.
    pub places: Places,
    /// The line where that edit's text begins to differ, unless it only deleted.
    pub put: Option<String>,
}

impl Taken {
    pub(super) fn new(by: usize, found: &Range<usize>, made: &Made<'_>) -> Self {
        let unit = Unit::of(made.encoding);
        let put = made.patch.first_new_from(found.start, made.before).map(|at| {
            let line = unit.line_start(made.after, at)..unit.line_end(made.after, at);
            visible::plain(made.encoding.decode(&made.after[line]).trim_ascii())
        });
        Self { by, places: Places::default(), put: put.filter(|line| !line.is_empty()) }
    }
}

/// An edit that was made.
pub(super) struct Made<'a> {
    pub(super) before: &'a [u8],
    pub(super) patch: &'a Patch<'a>,
    pub(super) after: &'a [u8],
    pub(super) encoding: Encoding,
}

/// How much of a text was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All of it.
    All,
    /// Its first [`COMPARED_BYTES`].
    Start,
}

/// Lines that look like the string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first of them, 1-based.
    pub first_line: usize,
    /// The last of them, 1-based.
    pub last_line: usize,
    /// How many of the string's lines stand there as they are.
    pub matching: usize,
    /// How many lines the string has.
    pub of: usize,
    /// What the lines that do not match differ in.
    pub differ_in: Likeness,
    /// How blanks at the start or the end of a line differ, in words.
    pub blanks: Option<String>,
    /// The first few of the lines that do not match.
    pub differences: Vec<Difference>,
    /// How many more there are.
    pub more: usize,
}

/// How much alike lines are that are not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// They differ in these respects only.
    Only(Vec<Kind>),
    /// Their text differs.
    Text,
}

/// A line that does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The file's line and the string's.
    Changed {
        /// The file's line, 1-based.
        line: usize,
        /// The file's line made visible.
        file: String,
        /// The string's line made visible.
        wanted: String,
    },
    /// The file has a line here that the string lacks.
    OnlyInFile {
        /// The line, 1-based.
        line: usize,
        /// The line made visible.
        file: String,
    },
    /// The string has a line that the file lacks here.
    OnlyInWanted {
        /// The string's line made visible.
        wanted: String,
    },
}

/// Says why `wanted`, which was to become `new`, is not in `text`.
#[must_use]
pub fn diagnose(text: &[u8], encoding: Encoding, wanted: &str, new: &str) -> Diagnosis {
    let mut slip = slip::find(text, encoding, wanted, &Slip::REPORTED);
    let mut nearest = if slip.is_none() { nearest::find(text, encoding, wanted) } else { None };
    // Blanks that only differ are better shown than named.
    let looks_the_same =
        nearest.as_ref().is_some_and(|region| matches!(region.differ_in, Likeness::Only(_)));
    let made = if slip.is_some() { Places::default() } else { made(text, encoding, wanted, new) };
    if slip.is_none() && !looks_the_same {
        slip = slip::find(text, encoding, wanted, &[Slip::Blanks]);
        nearest = nearest.filter(|region| slip.is_none() && !region.has_any(made.lines()));
    }
    Diagnosis {
        unencodable: encoding.encode(wanted).err(),
        holds_replacement: wanted.contains(char::REPLACEMENT_CHARACTER),
        slip,
        nearest,
        made,
        taken: None,
        compared: if text.len() > COMPARED_BYTES { Compared::Start } else { Compared::All },
        is_empty: text.is_empty(),
    }
}

/// Where the new text stands, if that says something: where it is long enough not to stand there by
/// chance.
fn made(text: &[u8], encoding: Encoding, wanted: &str, new: &str) -> Places {
    const LEAST: usize = 6;
    let is_a_rest = wanted.contains(new) && new.len() * 2 < wanted.len();
    if new.trim().len() < LEAST || is_a_rest {
        return Places::default();
    }
    let needle = Needle::new(new, encoding);
    needle.map(|new| Places::of(&new, text, Unit::of(encoding))).unwrap_or_default()
}

impl Region {
    fn has_any(&self, lines: &[usize]) -> bool {
        lines.iter().any(|line| (self.first_line..=self.last_line).contains(line))
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("old_string was not found")?;
        if let Some(missing) = &self.unencodable {
            write!(f, ", and cannot be: {missing}")?;
        }
        f.write_str(". ")?;
        if let Some(taken) = &self.taken {
            return write!(f, "{taken}");
        }
        if self.holds_replacement {
            f.write_str(
                "It holds U+FFFD, which is shown in place of bytes that are no text and matches \
                 nothing: leave it out. ",
            )?;
        }
        let made = Stands(&self.made);
        match (&self.slip, &self.nearest, self.compared) {
            (Some(found), ..) => write!(f, "{found}"),
            (None, Some(region), _) if self.made.is_empty() => write!(f, "{region}"),
            (None, Some(region), _) => write!(f, "{region}\n{made}"),
            (None, None, _) if !self.made.is_empty() => write!(f, "{made}"),
            (None, None, Compared::All) => f.write_str(if self.is_empty {
                "The file is empty: write_file gives it its content"
            } else {
                "Nothing in the file looks like it: read the file again"
            }),
            (None, None, Compared::Start) => {
                write!(f, "Nothing in the file's first {} MiB looks like it", COMPARED_BYTES >> 20)
            }
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} it stands at line {}", self.slip.correction(), joined(&self.lines))
    }
}

/// Where the new text stands.
struct Stands<'a>(&'a Places);

impl fmt::Display for Stands<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "new_string stands already at {}: was this edit made before?", self.0)
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("It stood ")?;
        if self.places.is_empty() {
            f.write_str("there")?;
        } else {
            write!(f, "at {}", self.places)?;
        }
        let by = self.by;
        match &self.put {
            Some(line) => write!(f, " until edits[{by}] of this call put this there:\n  {line}"),
            None => {
                write!(f, " until edits[{by}] of this call changed it: look for what that leaves")
            }
        }
    }
}

fn joined(lines: &[usize]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first_line == self.last_line {
            write!(f, "Nearest is line {}", self.first_line)?;
        } else {
            write!(f, "Nearest are lines {}-{}", self.first_line, self.last_line)?;
        }
        if self.of > 1 {
            write!(f, ", where {} of its {} lines match", self.matching, self.of)?;
        }
        match &self.differ_in {
            // Long strings are compared in part.
            Likeness::Only(kinds) if kinds.is_empty() => {
                return f.write_str(
                    "; there it reads the same as far as it was compared, so it differs further on",
                );
            }
            Likeness::Only(kinds) => {
                let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
                write!(f, "; the difference is only in {}", names.join(" and "))?;
                if let Some(blanks) = &self.blanks {
                    write!(f, ": {blanks}")?;
                }
            }
            Likeness::Text => f.write_str("; the text differs")?,
        }
        let is_marked = self.differences.iter().any(Difference::is_marked);
        f.write_str(if is_marked { visible::LEGEND } else { ":" })?;
        for difference in &self.differences {
            match difference {
                Difference::Changed { line, file, wanted } => {
                    write!(f, "\n  line {line}: {file}\n  old_string: {wanted}")?;
                }
                Difference::OnlyInFile { line, file } => {
                    write!(f, "\n  line {line}, not in old_string: {file}")?;
                }
                Difference::OnlyInWanted { wanted } => {
                    let wanted = if wanted.is_empty() { "(an empty line)" } else { wanted };
                    write!(f, "\n  in old_string, not in the file here: {wanted}")?;
                }
            }
        }
        if self.more > 0 {
            write!(f, "\n  and {} more lines", self.more)?;
        }
        Ok(())
    }
}

impl Difference {
    /// Whether it shows blanks as marks.
    fn is_marked(&self) -> bool {
        let (one, other) = match self {
            Difference::Changed { file, wanted, .. } => (file.as_str(), wanted.as_str()),
            Difference::OnlyInFile { file, .. } => (file.as_str(), ""),
            Difference::OnlyInWanted { wanted } => (wanted.as_str(), ""),
        };
        [one, other].iter().any(|text| text.contains(visible::MARKS))
    }
}

#[cfg(test)]
mod tests;
