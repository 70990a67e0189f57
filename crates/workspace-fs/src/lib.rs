//! Roots and handles: the only place in this crate that touches the file system.
//!
//! Every path is resolved beneath a root's directory handle, component by component or in one
//! `openat2`, and what is used afterwards is the handle that came out of it, never the path again.
//! So there is no moment between check and use in which a swapped link could lead outside.

pub mod text;

mod error;
mod leftovers;
mod locks;
#[cfg(any(test, feature = "count-lookups"))]
pub mod lookups;
mod near_names;
mod open;
mod permit;
mod replace;
mod resolve;
mod roots;
mod session;
mod stat;
pub mod tree;
mod version;
mod walk;

pub use error::plain_reason;
pub use error::{Action, Fault, Link, WorkspaceError};
pub use leftovers::{Budget, Swept, is_leftover};
pub use locks::{Guard, LONGEST_WAIT, LockKey, LockTable, Mode, Wait};
pub use open::{AccessTime, Ended, OpenFile};
pub use replace::{How, InPlace, Replacement, Staged, Written};
pub use resolve::{PathArgument, Place, Target};
pub use roots::lexically_clean;
pub use roots::{Access, Root, RootError, RootFault, RootsSpec, Setting, Workspace};
pub use session::{Extent, Knowledge, Session};
pub use stat::{FileId, FileKind, FileStat, Special, Stamp};
pub use version::{Version, VersionHasher};
