//! Run with `cargo +nightly fuzz run arguments`.

#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::body("arguments")(data));
