//! Directories that were opened once as roots, and the files beneath them.
//!
//! - [`Workspace`] holds the roots. A [`PathArgument`] resolves beneath a root's directory handle, in one
//!   `openat2` or component by component; what is used afterwards is the handle that came out of it,
//!   never the path again. So there is no moment between check and use in which a swapped link could
//!   lead outside.
//! - [`ResolvedPath`], [`OpenFile`]: what a path leads to. [`LockTable`] serialises calls on one file.
//! - [`Replacement`], [`Staged`]: a file's new content, put in its place so that a reader sees the old
//!   content or the new one, with mode, owner, attributes and links kept.
//! - [`Protection`]: the places from which a person's own git takes what it runs, compared around commands.
//! - [`tree`]: a parallel walk in one order, with ignore files.
//! - [`text`]: encodings, line ends, matching, patches, diffs. Pure.
#![forbid(unsafe_code)]

pub mod text;

mod error;
mod git_places;
mod journal;
mod locks;
mod look_alike;
#[cfg(any(test, feature = "count-lookups"))]
pub mod lookups;
mod near_names;
mod open;
mod permit;
mod protect;
mod replace;
mod resolve;
mod roots;
mod same_tail;
mod session;
mod stat;
mod state;
pub mod tree;
mod version;
mod walk;

pub use error::plain_reason;
pub use error::{Action, Fault, Link, WorkspaceError};
pub use journal::{Journal, Kept, Recovered};
pub use locks::{Guard, LONGEST_WAIT, LockKey, LockTable, Mode, Wait};
pub use open::{AccessTime, Eof, OpenFile};
pub use protect::{Finding, Mounts, Outcome, Protection, Remembered, Watched};
pub use replace::{How, InPlace, Replacement, Staged, Written};
pub use resolve::{PathArgument, ResolvedPath, Target};
pub use roots::lexically_clean;
pub use roots::{Access, Root, RootError, RootFault, RootsSpec, Setting, Workspace};
pub use session::{Extent, Knowledge, Session};
pub use stat::{FileId, FileKind, FileStat, Special, Stamp};
pub use state::{StateDirectory, StateError};
pub use version::{Version, VersionHasher};
