//! A launched plugin.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, TryFutureExt as _, TryStreamExt as _};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::child::{Child, Exit};
use super::launch::{LaunchError, Multiplex};
use crate::HEALTH_NAME;
use crate::broker::{Broker, BrokerError, Link, Served};
use crate::duplex::Duplex;
use crate::handshake::{Address, HandshakeLine, MultiplexField};
use crate::listener::{self, Naming, Peers, SocketRules, temporary_directory};
use crate::malloc;
use crate::mux::Mux;
use crate::pb::Empty;
use crate::pb::grpc_broker_client::GrpcBrokerClient;
use crate::pb::grpc_controller_client::GrpcControllerClient;
use crate::pb::grpc_stdio_client::GrpcStdioClient;
use crate::pb::stdio_data::Channel as StdioChannel;
use crate::services::Services;
use crate::tls::Tls;

/// How long a plugin may take to answer Shutdown, and then to end; go-plugin's own two seconds.
/// (go-plugin waits for the answer without a limit.)
const GRACE: Duration = Duration::from_secs(2);

/// The largest frame that a plugin may send: a message of 64 KiB then travels in one, instead of in
/// five, each with a system call on either side.
const FRAME: u32 = 128 * 1024;

/// A plugin that runs. Dropping it ends the process by signals and blocks for up to a tenth of a
/// second; [`Plugin::kill`] lets it end well.
pub struct Plugin {
    line: HandshakeLine,
    channel: Channel,
    broker: Broker,
    broker_stream: JoinHandle<()>,
    /// Callbacks that live as long as the plugin.
    served: Mutex<Vec<Served>>,
    child: Option<Child>,
}

/// What became of the request to shut down.
#[derive(Debug)]
pub enum Shutdown {
    /// The plugin answered it.
    Answered,
    /// It ended with an error, as when the plugin ends before its answer is out.
    Failed(Status),
    /// There was no answer in time.
    Unanswered,
}

/// A piece of what a plugin printed after its handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputChunk {
    /// On standard output.
    Stdout(Vec<u8>),
    /// On standard error, by something that is not its logger.
    Stderr(Vec<u8>),
}

impl Plugin {
    /// Connects to a plugin that printed `line`.
    pub(crate) async fn connect(
        line: &HandshakeLine,
        tls: Option<Tls>,
        multiplex: Multiplex,
    ) -> Result<Self, LaunchError> {
        malloc::keep_freed_memory();
        let raw = listener::connect(&line.address).await.map_err(LaunchError::Connect)?;
        let (transport, link, main) = match multiplex {
            Multiplex::Off => {
                let rules = SocketRules::Unix {
                    directory: temporary_directory(Some(&std::env::temp_dir())),
                    naming: Naming::Full,
                    group: None,
                    peers: Peers::Anyone,
                };
                (Transport::Raw(line.clone()), Link::Sockets(rules), raw)
            }
            Multiplex::On => {
                let mux = Mux::host(raw);
                let main = mux.open().await.map_err(LaunchError::Connect)?;
                (Transport::Multiplexed(mux.clone()), Link::Multiplexed(mux), main)
            }
        };
        let main = secure(main, tls.as_ref()).await.map_err(LaunchError::Connect)?;
        let channel = channel(main, transport, tls.clone()).await?;
        let broker = Broker::new(link, tls, None);
        let broker_stream = tokio::spawn(carry(broker.clone(), channel.clone()));
        let line = line.clone();
        let served = Mutex::default();
        Ok(Plugin { line, channel, broker, broker_stream, served, child: None })
    }

    /// Connects plainly to a plugin that somebody else launched; its process stays theirs.
    ///
    /// # Errors
    /// [`LaunchError::Connect`] and [`LaunchError::Channel`].
    pub async fn reattach(address: &Address, version: u32) -> Result<Self, LaunchError> {
        let line = HandshakeLine {
            version,
            address: address.clone(),
            certificate: None,
            multiplex: MultiplexField::Absent,
        };
        Self::connect(&line, None, Multiplex::Off).await
    }

    /// Makes the plugin's process end with this value.
    pub(super) fn owning(mut self, child: Child) -> Self {
        self.child = Some(child);
        self
    }

    /// The connection on which the plugin's services are called. Cheap to clone.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The broker, for connections that the application arranges itself.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The application's protocol version that the plugin chose.
    #[must_use]
    pub fn protocol_version(&self) -> u32 {
        self.line.version
    }

    /// The line that the plugin printed.
    #[must_use]
    pub fn handshake(&self) -> &HandshakeLine {
        &self.line
    }

    /// The plugin's process, when we launched it.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::pid)
    }

    /// Serves callbacks under a fixed broker id for as long as the plugin runs.
    ///
    /// # Errors
    /// When no socket can be made for it.
    pub async fn serve_callbacks(&self, id: u32, services: Services) -> Result<(), BrokerError> {
        let served = self.broker.accept_and_serve(id, services).await?;
        self.served.lock().unwrap_or_else(PoisonError::into_inner).push(served);
        Ok(())
    }

    /// Asks the plugin for its health.
    ///
    /// # Errors
    /// What the call met; NOT_FOUND when it serves no health under go-plugin's name, and
    /// FAILED_PRECONDITION when it says that it is not serving.
    pub async fn ping(&self) -> Result<(), Status> {
        let request = HealthCheckRequest { service: HEALTH_NAME.to_owned() };
        let answer = HealthClient::new(self.channel()).check(request).await?.into_inner();
        match answer.status() {
            ServingStatus::Serving => Ok(()),
            other => Err(Status::failed_precondition(format!(
                "the plugin's health is {}",
                other.as_str_name()
            ))),
        }
    }

    /// What the plugin prints from now on, and the last of what it printed before. One subscriber
    /// at a time. An item is an error when the call fails, as with a very old plugin.
    pub fn output(&self) -> impl Stream<Item = Result<OutputChunk, Status>> + Send + use<> {
        let mut client = GrpcStdioClient::new(self.channel());
        // The call belongs into the stream: a plugin in Go answers it only when there is output.
        let chunks = async move { Ok(client.stream_stdio(()).await?.into_inner()) };
        chunks.try_flatten_stream().try_filter_map(|chunk| {
            std::future::ready(Ok(match chunk.channel() {
                StdioChannel::Stdout => Some(OutputChunk::Stdout(chunk.data)),
                StdioChannel::Stderr => Some(OutputChunk::Stderr(chunk.data)),
                StdioChannel::Invalid => None,
            }))
        })
    }

    /// Waits for the plugin to end by itself, as when it crashes.
    ///
    /// # Errors
    /// When the process cannot be waited for, or is not ours.
    pub async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("not launched by this host")),
        }
    }

    /// Ends the plugin: no more callbacks, then Shutdown, then two seconds, then SIGKILL.
    pub async fn kill(self) -> Exit {
        self.kill_after(GRACE).await.1
    }

    /// [`Plugin::kill`] with another time than two seconds, for each of the two steps. Also says
    /// whether Shutdown ended in time; an error ends it too, as a plugin may end while it answers.
    pub async fn kill_after(mut self, grace: Duration) -> (Shutdown, Exit) {
        self.broker.close();
        let mut controller = GrpcControllerClient::new(self.channel());
        // A plugin that fails to answer is killed below all the same.
        let answered = match timeout(grace, controller.shutdown(Empty {})).await {
            Ok(Ok(_)) => Shutdown::Answered,
            Ok(Err(status)) => Shutdown::Failed(status),
            Err(_) => Shutdown::Unanswered,
        };
        if !matches!(answered, Shutdown::Answered) {
            tracing::debug!("the plugin did not answer Shutdown");
        }
        let child = self.child.take();
        drop(self);
        let exit = match child {
            Some(mut child) => child.end(grace).await,
            None => Exit::Graceful(std::process::ExitStatus::default()),
        };
        (answered, exit)
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.broker.close();
        self.broker_stream.abort();
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("version", &self.line.version)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// How a connection that was lost is made again.
enum Transport {
    Raw(HandshakeLine),
    Multiplexed(Mux),
}

impl Transport {
    async fn connect(&self) -> io::Result<Duplex> {
        match self {
            Transport::Raw(line) => listener::connect(&line.address).await,
            Transport::Multiplexed(mux) => mux.open().await,
        }
    }
}

async fn secure(raw: Duplex, tls: Option<&Tls>) -> io::Result<Duplex> {
    match tls {
        None => Ok(raw),
        Some(tls) => tls.connect(raw).await,
    }
}

async fn channel(
    main: Duplex,
    transport: Transport,
    tls: Option<Tls>,
) -> Result<Channel, tonic::transport::Error> {
    let first = Mutex::new(Some(main));
    let state = Arc::new((first, transport, tls));
    Endpoint::from_static("http://localhost")
        .max_frame_size(FRAME)
        .connect_with_connector(tower::service_fn(move |_| {
            let state = state.clone();
            async move {
                let (first, transport, tls) = &*state;
                let ready = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                let connection = match ready {
                    Some(connection) => connection,
                    None => secure(transport.connect().await?, tls.as_ref()).await?,
                };
                Ok::<_, io::Error>(TokioIo::new(connection))
            }
        }))
        .await
}

/// Carries the broker's messages both ways for as long as the connection lives.
async fn carry(broker: Broker, channel: Channel) {
    let outgoing = ReceiverStream::new(broker.attach().1);
    let started = GrpcBrokerClient::new(channel).start_stream(outgoing).await;
    let mut incoming = match started {
        Ok(stream) => stream.into_inner(),
        Err(status) => {
            tracing::warn!(%status, "the plugin has no broker");
            return;
        }
    };
    while let Ok(Some(message)) = incoming.message().await {
        broker.incoming(message).await;
    }
}
