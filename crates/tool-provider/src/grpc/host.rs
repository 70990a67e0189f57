//! The host's side of the log, for tests and examples: what a host serves on its broker.

use serde_json::Value;
use tonic::{Request, Response, Status};

use crate::Payload;

use super::convert::payload;
use super::pb::kernel::v1 as wire;
use super::pb::kernel::v1::kernel_callback_service_server as server;
use super::pb::log::v1::LogLevel;

/// A log entry as a host gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLogEntry {
    /// The session that it belongs to, where it belongs to one.
    pub session_id: Option<String>,
    /// `trace`, `debug`, `info`, `warn`, `error` or `fatal`.
    pub level: String,
    /// Which part of the plugin says so.
    pub logger: String,
    /// What it says.
    pub message: String,
    /// The structured part.
    pub fields: Payload,
}

impl HostLogEntry {
    /// A field's text.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }
}

/// An event that a plugin has a host keep.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEvent {
    /// The session that it belongs to.
    pub session_id: String,
    /// How the plugin writes its payload.
    pub schema_version: String,
    /// What only the plugin can read.
    pub payload: Vec<u8>,
}

/// A callback service that hands every log entry to `on_log`, and keeps no events. Serve it on
/// the broker under [`HOST_CALLBACKS`](super::handshake::HOST_CALLBACKS).
pub fn host_callbacks(
    on_log: impl Fn(HostLogEntry) + Send + Sync + 'static,
) -> server::KernelCallbackServiceServer<Callbacks> {
    server::KernelCallbackServiceServer::new(Callbacks { on_log: Box::new(on_log), on_emit: None })
}

/// [`host_callbacks`] that hands every event to `on_emit` besides, as if it were kept.
pub fn host_callbacks_keeping(
    on_log: impl Fn(HostLogEntry) + Send + Sync + 'static,
    on_emit: impl Fn(HostEvent) + Send + Sync + 'static,
) -> server::KernelCallbackServiceServer<Callbacks> {
    server::KernelCallbackServiceServer::new(Callbacks {
        on_log: Box::new(on_log),
        on_emit: Some(Box::new(on_emit)),
    })
}

/// A host's callbacks; see [`host_callbacks`].
pub struct Callbacks {
    on_log: Box<dyn Fn(HostLogEntry) + Send + Sync>,
    on_emit: Option<Box<dyn Fn(HostEvent) + Send + Sync>>,
}

#[tonic::async_trait]
impl server::KernelCallbackService for Callbacks {
    async fn log(
        &self,
        request: Request<wire::LogRequest>,
    ) -> Result<Response<wire::LogResult>, Status> {
        let wire::LogRequest { session_id, entries } = request.into_inner();
        for entry in entries {
            let level = LogLevel::try_from(entry.level).unwrap_or(LogLevel::Unspecified);
            (self.on_log)(HostLogEntry {
                session_id: session_id.clone(),
                level: level.as_str_name().trim_start_matches("LOG_LEVEL_").to_lowercase(),
                logger: entry.logger,
                message: entry.message,
                fields: payload(entry.fields.unwrap_or_default()).unwrap_or_default(),
            });
        }
        Ok(Response::new(wire::LogResult {}))
    }

    async fn emit(
        &self,
        request: Request<wire::EmitRequest>,
    ) -> Result<Response<wire::EmitResult>, Status> {
        let Some(on_emit) = &self.on_emit else {
            return Err(Status::unimplemented("this host keeps no events"));
        };
        let wire::EmitRequest { session_id, schema_version, payload, .. } = request.into_inner();
        on_emit(HostEvent { session_id, schema_version, payload });
        Ok(Response::new(wire::EmitResult { id: "kept".to_owned(), sequence: 0 }))
    }
}
