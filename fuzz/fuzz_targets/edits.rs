//! Run with `cargo +nightly fuzz run edits`.

#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::body("edits")(data));
