//! Spans and metrics of calls, sent to an OpenTelemetry collector over OTLP when the environment
//! names one, and nothing at all when it does not.
//!
//! - [`Settings`]: what the `OTEL_*` variables say.
//! - [`Telemetry`]: the `tracing` layer that collects, and the task that sends.
//! - [`Scope`]: whose spans are collected, known by their `tracing` target.
//!
//! OpenTelemetry's own crates would add a dozen crates to the tree, two threads to the process, and
//! a shutdown that blocks the thread which has to send the last spans. OTLP needs none of that: it
//! is two small messages over the gRPC and HTTP that are here anyway.

mod export;
mod layer;
mod message;
mod metrics;
mod pb;
mod queue;
mod send;
mod settings;
mod trace_context;

pub use export::{Scope, Telemetry};
pub use settings::{Settings, SettingsFault};

#[cfg(test)]
mod tests;
