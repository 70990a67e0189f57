//! Why a string was not found: the mistake that explains it, or the most similar lines.
//!
//! A diagnosis is advice. Nothing is ever replaced because it is similar. The cost is bounded:
//! linear passes over the text, the costly ones over no more than [`COMPARED_BYTES`] of it.

mod fold;
mod nearest;
mod slip;
mod visible;

use std::fmt;

use super::encoding::{Encoding, Unencodable};

pub use fold::Kind;
pub(crate) use fold::plain_punctuation;
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

/// Says why `wanted` is not in `text`.
#[must_use]
pub fn diagnose(text: &[u8], encoding: Encoding, wanted: &str) -> Diagnosis {
    let mut slip = slip::find(text, encoding, wanted, &Slip::REPORTED);
    let mut nearest = if slip.is_none() { nearest::find(text, encoding, wanted) } else { None };
    // Blanks that only differ are better shown than named.
    let looks_the_same =
        nearest.as_ref().is_some_and(|region| matches!(region.differ_in, Likeness::Only(_)));
    if slip.is_none() && !looks_the_same {
        slip = slip::find(text, encoding, wanted, &[Slip::Blanks]);
        nearest = nearest.filter(|_| slip.is_none());
    }
    Diagnosis {
        unencodable: encoding.encode(wanted).err(),
        holds_replacement: wanted.contains(char::REPLACEMENT_CHARACTER),
        slip,
        nearest,
        compared: if text.len() > COMPARED_BYTES { Compared::Start } else { Compared::All },
        is_empty: text.is_empty(),
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("old_string was not found")?;
        if let Some(missing) = &self.unencodable {
            write!(f, ", and cannot be: {missing}")?;
        }
        f.write_str(". ")?;
        if self.holds_replacement {
            f.write_str(
                "It holds U+FFFD, which is shown in place of bytes that are no text and matches \
                 nothing: leave it out. ",
            )?;
        }
        match (&self.slip, &self.nearest, self.compared) {
            (Some(found), ..) => write!(f, "{found}"),
            (None, Some(region), _) => write!(f, "{region}"),
            (None, None, Compared::All) => f.write_str(if self.is_empty {
                "The file is empty: write_file gives it its content"
            } else {
                "Nothing in the file looks like it; read the file again"
            }),
            (None, None, Compared::Start) => {
                write!(f, "Nothing in the file's first {} MiB looks like it", COMPARED_BYTES >> 20)
            }
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "{} it stands at line {lines}", self.slip.correction())
    }
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
            }
            Likeness::Text => f.write_str("; the text differs")?,
        }
        f.write_str(visible::LEGEND)?;
        for difference in &self.differences {
            match difference {
                Difference::Changed { line, file, wanted } => {
                    write!(f, "\n  line {line}: {file}\n  old_string: {wanted}")?;
                }
                Difference::OnlyInFile { line, file } => {
                    write!(f, "\n  line {line}, not in old_string: {file}")?;
                }
                Difference::OnlyInWanted { wanted } => {
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

#[cfg(test)]
mod tests;
