//! From the settings to a running server, and down again.

use std::future::Future;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::getppid;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic_health::ServingStatus;

use super::builtin::{BrokerStream, Controller};
use super::environment::{Directory, HandshakeEnvironment, Wanted};
use super::error::ServeError;
use super::lifetime::{HostWatch, StopReason, host_died, stop_signals};
use super::stdio::{StandardStreams, Stdio};
use crate::HEALTH_NAME;
use crate::broker::{Broker, Link};
use crate::duplex::Duplex;
use crate::handshake::{Cookie, HandshakeLine, MultiplexField};
use crate::listener::{OwnDirectory, SocketFile, remove_stale_sockets, secured};
use crate::malloc;
use crate::mux::Mux;
use crate::pb::grpc_broker_server::GrpcBrokerServer;
use crate::pb::grpc_controller_server::GrpcControllerServer;
use crate::pb::grpc_stdio_server::GrpcStdioServer;
use crate::services::Services;
use crate::tls::{Identity, Tls};

/// The longest time between a request to stop and the end of [`serve`]. A host kills after two
/// seconds.
pub(crate) const STOP_LIMIT: Duration = Duration::from_millis(1500);

/// How many calls may be cancelled before they were looked at. HTTP/2 servers take a few for an
/// attack and end the connection with every other call on it (the default is 20); the only peer here
/// is the host that started this process, and cancelling a turn cancels all of its calls at once.
const MOST_EARLY_CANCELS: usize = 1 << 16;

/// The kind of socket that is listened on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket, as go-plugin does everywhere but on Windows.
    #[default]
    Unix,
    /// A port of the loopback interface, out of PLUGIN_MIN_PORT..=PLUGIN_MAX_PORT.
    Tcp,
}

/// What the application decides about being a plugin.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cookie, as the host sets it.
    pub cookie: Cookie,
    /// The application's protocol versions that we speak.
    pub versions: Vec<u32>,
    /// The kind of socket.
    pub listen: Listen,
    /// What the host asked for.
    pub environment: HandshakeEnvironment,
    /// Whether to end with the host.
    pub host_watch: HostWatch,
    /// What becomes of printed output.
    pub standard_streams: StandardStreams,
}

impl Settings {
    /// The usual settings, with the process's environment.
    #[must_use]
    pub fn new(cookie: Cookie, versions: impl Into<Vec<u32>>) -> Self {
        Settings {
            versions: versions.into(),
            listen: Listen::default(),
            environment: HandshakeEnvironment::from_process(&cookie),
            cookie,
            host_watch: HostWatch::default(),
            standard_streams: StandardStreams::default(),
        }
    }
}

/// Serves as a plugin until the host or a signal ends it: prints the handshake line, then serves
/// what `services` returns besides go-plugin's own services.
///
/// `services` gets the broker, by which calls can be made back to the host; raise the decoding
/// limit of your services, as hosts send messages of any size. `stopping` runs when the end begins:
/// it should cancel running calls and wait for their answers. It may still call the host, which
/// mostly fails: go-plugin's hosts close their broker before they ask for the end. The host's
/// request is answered when `stopping` is over. From the request it takes 1.5 s at most, as a host
/// kills after 2 s. Afterwards end the runtime with `shutdown_background`.
///
/// # Errors
/// Start-up failures and a broken server; see [`ServeError`]. Nothing has been printed on standard
/// output unless the start-up went well.
pub async fn serve<F>(
    settings: Settings,
    services: impl FnOnce(Broker) -> Services,
    stopping: impl FnOnce(StopReason) -> F,
) -> Result<(), ServeError>
where
    F: Future<Output = ()>,
{
    let mut signals =
        stop_signals().map_err(|source| ServeError::Setup { what: "signals", source })?;
    if let Some(missing) = settings.environment.missing_temporary_directory() {
        tracing::warn!(
            "TMPDIR names {}, which is no directory: /tmp is used instead",
            missing.display()
        );
    }
    let prepared = Prepared::new(&settings)?;
    let parent = getppid();
    let stdout = prepared.print_line().map_err(ServeError::Handshake)?;
    // The handshake line is out: nothing from here on delays it.
    malloc::keep_freed_memory();
    let stdio = Stdio::default();
    if settings.standard_streams == StandardStreams::Stream {
        stdio
            .capture()
            .map_err(|source| ServeError::Setup { what: "the standard streams", source })?;
    }
    if settings.listen == Listen::Unix {
        let directory = settings.environment.socket_directory();
        // What is not removed now is removed at the next start.
        let thread = std::thread::Builder::new().name("stale-sockets".to_owned());
        let _ = thread.spawn(move || remove_stale_sockets(&directory));
    }
    let stop = Stop::default();
    let watch = async {
        tokio::select! {
            () = signals.recv() => stop.request(StopReason::Signal),
            () = host_died(&stdout, parent), if settings.host_watch == HostWatch::Follow => {
                stop.request(StopReason::HostDied);
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = prepared.run(services, stopping, stop.clone(), stdio) => served,
        () = watch => Ok(()),
    }
}

/// The request to stop, whose first reason counts, and when the application has stopped.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    reason: Arc<OnceLock<StopReason>>,
    requested: CancellationToken,
    settled: CancellationToken,
}

impl Stop {
    pub(crate) fn request(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.requested.cancel();
    }

    async fn requested(&self) -> StopReason {
        self.requested.cancelled().await;
        self.reason.get().copied().unwrap_or(StopReason::Shutdown)
    }

    /// Waits until the application has stopped, or its time for that is over.
    pub(super) async fn settled(&self) {
        self.settled.cancelled().await;
    }
}

/// A plugin that listens already and has not announced it.
pub(crate) struct Prepared {
    line: HandshakeLine,
    broker: Broker,
    connections: mpsc::Receiver<Duplex>,
    /// Removed when this is dropped, on whatever path.
    file: Option<SocketFile>,
    directory: Option<OwnDirectory>,
}

impl Prepared {
    /// Binds the socket and, when the host wants TLS, makes a certificate.
    pub(crate) fn new(settings: &Settings) -> Result<Self, ServeError> {
        let environment = &settings.environment;
        let Wanted { version, host, rules, directory } =
            environment.wanted(&settings.versions, settings.listen)?;
        let identity = match host {
            None => None,
            Some(host) => {
                let own = Identity::generate()?;
                let tls = Tls::new(&own, host)?;
                Some((own, tls))
            }
        };
        let (rules, directory) = match directory {
            Directory::Named => (rules, None),
            Directory::Own => rules.in_own_directory()?,
        };
        let listener = rules.bind()?;
        let sockets_in = rules.directory().map(Path::to_owned);
        let line = HandshakeLine {
            version,
            address: listener.address().clone(),
            certificate: identity.as_ref().map(|(own, _)| own.der().to_vec()),
            multiplex: match environment.asks_about_multiplexing() {
                true => MultiplexField::Supported,
                false => MultiplexField::Absent,
            },
        };
        let tls = identity.map(|(_, tls)| tls);
        let (raw, file) = listener.incoming();
        let (raw, link) = match environment.multiplexes() {
            true => {
                let (mux, streams) = Mux::plugin(raw);
                (streams, Link::Multiplexed(mux))
            }
            false => (raw, Link::Sockets(rules)),
        };
        Ok(Prepared {
            line,
            broker: Broker::new(link, tls.clone(), sockets_in),
            connections: secured(raw, tls),
            file,
            directory,
        })
    }

    #[cfg(test)]
    pub(crate) fn line(&self) -> &HandshakeLine {
        &self.line
    }

    /// Prints the one line and returns the real standard output, which must not be written again.
    fn print_line(&self) -> io::Result<OwnedFd> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", self.line)?;
        stdout.flush()?;
        Ok(fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?)
    }

    /// Serves until a stop is requested, then winds down.
    pub(crate) async fn run<F>(
        self,
        services: impl FnOnce(Broker) -> Services,
        stopping: impl FnOnce(StopReason) -> F,
        stop: Stop,
        stdio: Stdio,
    ) -> Result<(), ServeError>
    where
        F: Future<Output = ()>,
    {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status(HEALTH_NAME, ServingStatus::Serving).await;
        let Prepared { broker, connections, directory: _directory, file: _file, .. } = self;
        let services = services(broker.clone())
            .with(health_service)
            .with(GrpcBrokerServer::new(BrokerStream(broker.clone())))
            .with(GrpcControllerServer::new(Controller(stop.clone())))
            .with(GrpcStdioServer::new(stdio.clone()));
        let connections = ReceiverStream::new(connections).map(Ok::<_, io::Error>);
        // Not before the application has stopped: a call that comes meanwhile is answered by it.
        let winding_down = stop.settled.clone().cancelled_owned();
        let server = Server::builder()
            .http2_max_pending_accept_reset_streams(Some(MOST_EARLY_CANCELS))
            .serve_with_incoming_shutdown(services, connections, winding_down);
        tokio::pin!(server);
        let ended = tokio::select! {
            biased;
            _ = stop.requested() => None,
            ended = &mut server => Some(ended),
        };
        if ended.is_some() {
            stop.request(StopReason::ServerEnded);
        }
        let reason = stop.requested().await;
        tracing::debug!(?reason, "stopping");
        broker.begin_end();
        let application = async {
            stopping(reason).await;
            stop.settled.cancel();
            broker.close();
            stdio.close();
        };
        let wind_down = async {
            let ended = match ended {
                Some(ended) => {
                    application.await;
                    ended
                }
                // The server goes on meanwhile: what running calls still say must reach the host.
                None => tokio::join!(application, &mut server).1,
            };
            broker.flush().await;
            ended
        };
        match timeout(STOP_LIMIT, wind_down).await {
            Ok(ended) => Ok(ended?),
            Err(_) => {
                tracing::debug!("calls or connections were left when the time to stop was over");
                stop.settled.cancel();
                broker.close();
                Ok(())
            }
        }
    }
}
