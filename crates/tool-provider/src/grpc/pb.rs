//! The protocol's own messages, clients and servers, generated from `proto/pluggableharness` and
//! nested as their packages are. For programs that use the protocol below this crate's types, such
//! as a checker of providers.
#![expect(missing_docs, reason = "the .proto files say what there is to say")]
#![expect(clippy::allow_attributes, reason = "generated code allows what it needs")]

macro_rules! packages {
    ($($name:ident),+ $(,)?) => {
        $(pub mod $name {
            pub mod v1 {
                include!(concat!("generated/pluggableharness.", stringify!($name), ".v1.rs"));
            }
        })+
    };
}

packages!(common, config, event, hook, kernel, log, render, schema, tool);
