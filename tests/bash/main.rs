//! Stories of the bash tool: real commands in a real jail, told by the events and the outcome.
#![expect(clippy::disallowed_methods, reason = "a test prepares files and looks at them")]
#![expect(clippy::unwrap_used, reason = "what must not fail in a test ends it")]

mod ends;
mod folders;
mod git;
mod ground;
mod notices;
mod results;
mod shows;
mod streams;
mod surroundings;
mod waits;
