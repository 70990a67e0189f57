//! A parallel walk through a tree of directories whose results come in order.
//!
//! A walk begins at a [`ResolvedPath`](super::ResolvedPath) that was resolved beneath a root and
//! goes down by handles alone: every directory is opened beside its parent's handle and follows no
//! link, every file beside its directory's. So whatever is swapped for a link in the middle of a
//! walk, nothing outside is reached, with or without the kernel's jail.
//!
//! - [`Start`] is where a walk begins and the ignore rules that hold there.
//! - [`Selection`] says which entries are looked at: a glob, file types, ignore rules.
//! - [`Visit`] is what is done with an entry, on one of several threads.
//! - [`Report`] takes what was found, on the calling thread, in the order of paths.
//! - [`walk`] brings them together and ends early once no entry is left that could matter.
//!
//! The order is that of paths compared name by name, as bytes: `a/b` comes before `a.txt`. It is the
//! order of `rg --sort path`.

mod directory;
mod entry;
mod order;
mod queue;
mod rules;
mod selection;
mod start;
mod stop;
mod thread_budget;
mod threads;

pub use entry::{Content, Entry};
pub use queue::{Counts, Found, Named, Skip, VisitResult};
pub use rules::{MOST_RULE_BYTES, MOST_RULES, RuleBytes};
pub use selection::{GlobError, IgnoreRules, PathGlob, Selection};
pub use start::Start;
pub use stop::{Stop, StopCondition};
pub use threads::{Options, Report, StopReason, Summary, Visit, walk};

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real trees")]
mod tests;
