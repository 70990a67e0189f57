//! The hook service, by which a host tells of the end of a session.

use std::sync::Arc;

use prost::Message as _;
use tonic::{Request, Response, Status};

use super::MOST_MESSAGE_BYTES;
use super::pb::hook::v1::dispatch_hook_response::Result as Answer;
use super::pb::hook::v1::hook_payload::Point;
use super::pb::hook::v1::hook_subscriber_service_server as server;
use super::pb::hook::v1::{self as wire, HookDecision, HookMode};
use super::status::status;
use super::typed_server::TypedServer;
use crate::{Provider, State, ToolError};

/// The protocol's HookSubscriberService. It observes, and stands in nobody's way: it gives back what it
/// could change, and allows what it could forbid.
pub struct HookService<S = ()> {
    provider: Arc<Provider<S>>,
}

impl<S: State> HookService<S> {
    /// A service over `provider`.
    #[must_use]
    pub fn new(provider: Arc<Provider<S>>) -> Self {
        Self { provider }
    }

    /// The service as a server takes it: every failure that it answers with is one of ours.
    #[must_use]
    pub fn into_server(self) -> TypedServer<server::HookSubscriberServiceServer<Self>> {
        let server = server::HookSubscriberServiceServer::new(self)
            .max_decoding_message_size(MOST_MESSAGE_BYTES)
            .max_encoding_message_size(MOST_MESSAGE_BYTES);
        TypedServer::new(server)
    }
}

#[tonic::async_trait]
impl<S: State> server::HookSubscriberService for HookService<S> {
    async fn dispatch_hook(
        &self,
        request: Request<wire::DispatchHookRequest>,
    ) -> Result<Response<wire::DispatchHookResponse>, Status> {
        let wire::DispatchHookRequest { payload, mode, .. } = request.into_inner();
        let mode = HookMode::try_from(mode).unwrap_or(HookMode::Unspecified);
        let refused = |what: &str| status(&ToolError::invalid_arguments(what));
        let Some(payload) = payload else { return Err(refused("the hook has no payload")) };
        if let Some(Point::SessionEnd(end)) = &payload.point {
            let end = wire::SessionEndPayload::decode(&end[..])
                .map_err(|_| refused("the payload of session_end cannot be read"))?;
            self.provider.session_ended(&end.session_id);
        }
        let answer = match mode {
            HookMode::Observe => Answer::Observe(wire::ObserveAck {}),
            HookMode::Transform => {
                Answer::Transform(wire::TransformResult { payload: Some(payload) })
            }
            HookMode::Veto => {
                Answer::Veto(wire::VetoResult { decision: HookDecision::Allow.into() })
            }
            HookMode::Unspecified => return Err(refused("the hook has no mode")),
        };
        Ok(Response::new(wire::DispatchHookResponse { result: Some(answer) }))
    }
}
