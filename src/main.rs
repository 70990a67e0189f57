//! The composition root: a kernel's handshake in the environment means serve, else the command line.
#![forbid(unsafe_code)]

fn main() {}
