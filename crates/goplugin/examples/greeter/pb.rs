//! What tonic-prost-build generates from `greeter.proto`. A program with a build script includes it by
//! `tonic::include_proto!("greeter")` instead.
#![expect(unreachable_pub, reason = "generated code makes everything public")]
#![expect(clippy::allow_attributes, reason = "generated code allows what it needs")]

include!("generated/greeter.rs");
