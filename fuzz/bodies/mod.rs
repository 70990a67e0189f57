//! What every fuzzer runs: one function for each target, from any bytes to a panic where something
//! is wrong. `fuzz_targets/` gives them to libFuzzer, `tests/stories/fuzz.rs` runs them without it.

mod arguments;
mod edits;
mod encoding;
mod handshake;
mod paths;
mod pieces;
mod render;
mod requests;

/// A target's name and its body.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets. A target's corpus lies in `fuzz/corpus` under its name.
pub(crate) const TARGETS: [Target; 6] = [
    ("arguments", arguments::body),
    ("edits", edits::body),
    ("encoding", encoding::body),
    ("handshake", handshake::body),
    ("paths", paths::body),
    ("render", render::body),
];

/// The body of a target.
///
/// # Panics
/// Where there is none of that name.
pub(crate) fn body(name: &str) -> fn(&[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no target is called {name}")).1
}
