//! The generated messages and services of go-plugin's own protocol (`proto/plugin.proto`).
#![expect(unreachable_pub, reason = "generated code makes everything public")]
#![expect(clippy::allow_attributes, reason = "generated code allows what it needs")]

include!("generated/plugin.rs");
