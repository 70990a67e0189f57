//! A server with nothing of go-plugin but its line, and one that serves what it should not.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

use super::answers::Provider;
use super::fault::Fault;
use tool_provider::grpc::pb::tool::v1::tool_service_server::ToolServiceServer;

/// What the one method is called in truth.
const DESCRIBE: &str = "http://localhost/pluggableharness.tool.v1.ToolService/Describe";

/// Serves the operations, and neither health nor a controller. Its socket stays when it ends.
pub(crate) async fn serve(provider: Provider, fault: &Fault) -> Result<(), Box<dyn Error>> {
    if fault.is("is-deaf-to-sigterm") {
        signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::default())?;
    }
    let socket = std::env::temp_dir().join(format!("plugin{}", std::process::id()));
    let listener = UnixListener::bind(&socket)?;
    let (sender, connections) = mpsc::channel::<UnixStream>(4);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            if sender.send(connection).await.is_err() {
                return;
            }
        }
    });
    writeln!(std::io::stdout(), "1|1|unix|{}|grpc|", socket.display())?;
    let connections = ReceiverStream::new(connections).map(Ok::<_, std::io::Error>);
    let server = tonic::transport::Server::builder();
    server.serve_with_incoming(provider.into_server(), connections).await?;
    Ok(())
}

/// The same service under another plugin category's name.
#[derive(Clone)]
pub(crate) struct AsModel(pub(crate) ToolServiceServer<Provider>);

impl NamedService for AsModel {
    const NAME: &'static str = "pluggableharness.model.v1.ModelService";
}

impl Service<http::Request<Body>> for AsModel {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        *request.uri_mut() = http::Uri::from_static(DESCRIBE);
        self.0.call(request)
    }
}
