//! The generated messages and services, nested as their packages are.
#![expect(missing_docs, clippy::allow_attributes, reason = "generated code")]

macro_rules! packages {
    ($($name:ident = $package:literal),+ $(,)?) => {
        $(pub mod $name {
            pub mod v1 {
                tonic::include_proto!($package);
            }
        })+
    };
}

packages! {
    common = "pluggableharness.common.v1",
    config = "pluggableharness.config.v1",
    event = "pluggableharness.event.v1",
    kernel = "pluggableharness.kernel.v1",
    log = "pluggableharness.log.v1",
    render = "pluggableharness.render.v1",
    schema = "pluggableharness.schema.v1",
    tool = "pluggableharness.tool.v1",
}
