//! The generated messages and clients, nested as their packages are.
#![expect(unreachable_pub, reason = "generated code")]

pub mod common {
    pub mod v1 {
        include!("generated/opentelemetry.proto.common.v1.rs");
    }
}

pub mod collector {
    pub mod trace {
        pub mod v1 {
            include!("generated/opentelemetry.proto.collector.trace.v1.rs");
        }
    }
    pub mod metrics {
        pub mod v1 {
            include!("generated/opentelemetry.proto.collector.metrics.v1.rs");
        }
    }
}
