//! Short stories over the real subprocess: the binary is launched as a kernel launches it, and
//! works on real files.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "stories prepare real files, start real programs, fail where that \
              fails, and say what they skip"
)]

#[path = "stories/atomic.rs"]
mod atomic;
#[path = "stories/bash.rs"]
mod bash;
#[path = "stories/cancelled_writes.rs"]
mod cancelled_writes;
#[path = "stories/checker.rs"]
mod checker;
#[path = "stories/cli.rs"]
mod cli;
#[path = "stories/concurrent_edits.rs"]
mod concurrent_edits;
#[path = "stories/configure.rs"]
mod configure;
#[path = "stories/documents.rs"]
mod documents;
#[path = "stories/edits.rs"]
mod edits;
#[path = "stories/endurance.rs"]
mod endurance;
#[path = "stories/examples.rs"]
mod examples;
#[path = "stories/figures.rs"]
mod figures;
#[path = "stories/harness.rs"]
mod harness;
#[path = "stories/host_log.rs"]
mod host_log;
#[path = "stories/hostile.rs"]
mod hostile;
#[path = "stories/imports.rs"]
mod imports;
#[path = "stories/invoke.rs"]
mod invoke;
#[path = "stories/life.rs"]
mod life;
#[path = "stories/previews.rs"]
mod previews;
#[path = "stories/scenarios.rs"]
mod scenarios;
#[path = "stories/search/mod.rs"]
mod search;
#[path = "stories/show.rs"]
mod show;
#[path = "stories/slips.rs"]
mod slips;
#[path = "stories/surroundings.rs"]
mod surroundings;
#[path = "stories/telemetry.rs"]
mod telemetry;
#[path = "stories/terminal.rs"]
mod terminal;
#[path = "stories/writing.rs"]
mod writing;
