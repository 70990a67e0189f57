//! What a call changed, and what became of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What a call changed.
#[derive(Debug)]
pub struct Finding {
    /// The absolute path.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a change.
#[derive(Debug)]
pub enum Outcome {
    /// The place is as it was before.
    SetBack {
        /// Where what was found is kept; absent where nothing was there any more.
        kept: Option<PathBuf>,
    },
    /// The place could not be set back.
    NotSetBack {
        /// Why.
        why: io::Error,
        /// Where what was found is kept, if it was taken away.
        kept: Option<PathBuf>,
    },
    /// Somebody outside replaced a place that the jail had mounted read-only. It stays as it is.
    ReplacedOutside,
    /// A root, or its git directory, is gone from its place.
    Gone,
    /// It is not protected, and programs outside obey it.
    Told,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::SetBack { kept: None } => f.write_str("set back"),
            Outcome::SetBack { kept: Some(kept) } => {
                write!(f, "set back; what was found is in {}", kept.display())
            }
            Outcome::NotSetBack { why, kept: None } => write!(f, "not set back: {why}"),
            Outcome::NotSetBack { why, kept: Some(kept) } => {
                write!(f, "not set back: {why}; what was found is in {}", kept.display())
            }
            Outcome::ReplacedOutside => f.write_str("replaced from outside, left as it is"),
            Outcome::Gone => f.write_str("removed or moved away"),
            Outcome::Told => f.write_str("made or changed"),
        }
    }
}
