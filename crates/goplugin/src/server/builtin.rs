//! The services that every plugin serves besides its own: controller and broker.

use std::pin::Pin;

use futures_util::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::lifetime::StopReason;
use super::serve::Stop;
use crate::broker::Broker;
use crate::pb::grpc_broker_server::GrpcBroker;
use crate::pb::grpc_controller_server::GrpcController;
use crate::pb::{ConnInfo, Empty};

/// `plugin.GRPCController`.
pub(super) struct Controller(pub(super) Stop);

#[tonic::async_trait]
impl GrpcController for Controller {
    /// Answers once the application has stopped: what its running calls still say is on its way
    /// then. A host waits for this answer without a limit, and closes the connection when it has it.
    async fn shutdown(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.0.request(StopReason::Shutdown);
        self.0.settled().await;
        Ok(Response::new(Empty {}))
    }
}

/// `plugin.GRPCBroker`: the stream on which both sides announce listeners or knock.
pub(super) struct BrokerStream(pub(super) Broker);

#[tonic::async_trait]
impl GrpcBroker for BrokerStream {
    type StartStreamStream = Pin<Box<dyn Stream<Item = Result<ConnInfo, Status>> + Send>>;

    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let broker = self.0.clone();
        let (peer, outgoing) = broker.attach();
        let outgoing = ReceiverStream::new(outgoing).map(Ok);
        let mut incoming = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                broker.incoming(message).await;
            }
            // The host has closed its broker, or is gone: nothing of it can be dialled any more.
            peer.cancel();
        });
        Ok(Response::new(Box::pin(outgoing)))
    }
}
