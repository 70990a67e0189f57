//! Further connections between host and plugin, in both directions.
//!
//! The side that serves *accepts* an id, and the side that calls *dials* it; the id itself travels in
//! the application's own messages, or is fixed by its protocol. There are two forms: each accepted
//! id has a socket of its own, whose address goes over the broker's stream; or, when the host asked
//! for multiplexing, all share one connection and the stream carries knocks (see `mux`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{error::Elapsed, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Server};

use crate::duplex::Duplex;
use crate::handshake::{Address, LineError};
use crate::listener::{self, ListenError, Listener, SocketRules, secured};
use crate::mux::Mux;
use crate::pb::ConnInfo;
use crate::pb::conn_info::Knock;
use crate::services::Services;
use crate::tls::Tls;

mod state;
mod turn;

use state::{BACKLOG, State};
use turn::InTurn;

/// How long a dial waits for the other side, as in go-plugin.
const DIAL_LIMIT: Duration = Duration::from_secs(5);

/// Why a connection over the broker failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The other side did not answer in time: most likely it does not serve this id.
    #[error("nobody served broker id {id} within {} s", DIAL_LIMIT.as_secs())]
    Timeout {
        /// The id that was dialled.
        id: u32,
    },
    /// The other side refused the knock.
    #[error("the other side refused broker id {id}: {reason}")]
    Refused {
        /// The id that was dialled.
        id: u32,
        /// Its reason.
        reason: String,
    },
    /// The other side announced an address that we cannot use.
    #[error("broker id {id} has no usable address")]
    Address {
        /// The id that was dialled.
        id: u32,
        /// What is wrong with it.
        source: LineError,
    },
    /// The connection or its TLS handshake failed.
    #[error("cannot connect to broker id {id}")]
    Connect {
        /// The id that was dialled.
        id: u32,
        /// What the system, yamux or TLS said.
        source: io::Error,
    },
    /// gRPC could not be started on the connection.
    #[error("cannot speak gRPC on broker id {id}")]
    Channel {
        /// The id that was dialled.
        id: u32,
        /// What tonic said.
        source: tonic::transport::Error,
    },
    /// No socket could be made to serve on.
    #[error("cannot listen for broker id {id}")]
    Listen {
        /// The id to be served.
        id: u32,
        /// Why not.
        source: ListenError,
    },
    /// The connection between host and plugin is over.
    #[error("the broker is closed")]
    Closed,
}

/// One side's broker. Clones share it.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    tls: Option<Tls>,
    sockets_in: Option<PathBuf>,
    state: Mutex<State>,
    arrived: Notify,
    /// Held from a knock until its stream has begun: knocks carry no other tie to their stream.
    dialling: Arc<tokio::sync::Mutex<()>>,
    next_id: AtomicU32,
    /// Counts what was ever served here: an id may be served again.
    services: AtomicU64,
    /// Nothing new is waited for any more.
    ending: CancellationToken,
    closed: CancellationToken,
}

/// The form in which connections are made.
pub(super) enum Link {
    Sockets(SocketRules),
    Multiplexed(Mux),
}

impl Broker {
    pub(super) fn new(link: Link, tls: Option<Tls>, sockets_in: Option<PathBuf>) -> Self {
        Broker {
            inner: Arc::new(Inner {
                link,
                tls,
                sockets_in,
                state: Mutex::default(),
                arrived: Notify::new(),
                dialling: Arc::default(),
                next_id: AtomicU32::new(1),
                services: AtomicU64::new(0),
                ending: CancellationToken::new(),
                closed: CancellationToken::new(),
            }),
        }
    }

    /// The directory in which this side's unix sockets lie, where it has such: one of the plugin's own
    /// unless the host named one. What the plugin starts should be kept out of it.
    #[must_use]
    pub fn socket_directory(&self) -> Option<&Path> {
        self.inner.sockets_in.as_deref()
    }

    /// An id that this side has not accepted under yet. The two sides count apart.
    #[must_use]
    pub fn next_id(&self) -> u32 {
        self.inner.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Connects to what the other side serves under `id`. The channel reconnects by itself.
    ///
    /// Dial from inside a call, not while starting up: the host opens the broker's stream only
    /// after the handshake.
    ///
    /// # Errors
    /// [`BrokerError::Timeout`] when nobody serves the id within five seconds, and whatever the
    /// connection itself meets.
    pub async fn dial(&self, id: u32) -> Result<Channel, BrokerError> {
        let first = Arc::new(Mutex::new(Some(self.connect(id).await?)));
        let broker = self.clone();
        Endpoint::from_static("http://localhost")
            .connect_with_connector(tower::service_fn(move |_| {
                let (broker, first) = (broker.clone(), first.clone());
                async move {
                    let ready = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let connection = match ready {
                        Some(connection) => connection,
                        None => broker.connect(id).await?,
                    };
                    Ok::<_, BrokerError>(TokioIo::new(connection))
                }
            }))
            .await
            .map_err(|source| BrokerError::Channel { id, source })
    }

    /// Serves `services` under `id` for the other side to dial, until the returned handle is dropped
    /// or the broker closes.
    ///
    /// # Errors
    /// [`BrokerError::Listen`] when no socket can be made.
    pub async fn accept_and_serve(
        &self,
        id: u32,
        services: Services,
    ) -> Result<Served, BrokerError> {
        if self.inner.closed.is_cancelled() {
            return Err(BrokerError::Closed);
        }
        let service = self.inner.services.fetch_add(1, Ordering::Relaxed);
        let raw = match &self.inner.link {
            Link::Sockets(rules) => {
                let listener = rules.bind().map_err(|source| BrokerError::Listen { id, source })?;
                let announcement = announcement(id, &listener);
                let (incoming, file) = listener.incoming();
                self.state().files.extend(file.map(|file| (service, file)));
                self.send(announcement).await;
                incoming
            }
            Link::Multiplexed(mux) => {
                // The listener comes first: an acknowledged knock may be followed by its stream
                // before the next line here runs.
                let incoming = mux.listen(id);
                if self.state().take_knock(id) {
                    self.acknowledge(mux, id).await;
                }
                incoming
            }
        };
        let connections = ReceiverStream::new(secured(raw, self.inner.tls.clone()));
        let stop = self.inner.closed.child_token();
        let stopped = stop.clone().cancelled_owned();
        let broker = self.clone();
        tokio::spawn(async move {
            let connections = connections.map(Ok::<_, io::Error>);
            let served = Server::builder()
                .serve_with_incoming_shutdown(services, connections, stopped)
                .await;
            if let Err(error) = served {
                tracing::warn!(id, %error, "a brokered service ended");
            }
            match &broker.inner.link {
                Link::Sockets(_) => drop(broker.state().files.remove(&service)),
                Link::Multiplexed(mux) => mux.forget(id),
            }
        });
        Ok(Served { stop })
    }

    /// Says that the end has begun. The other side's listeners are mostly closed by then, and it
    /// announces no new ones: a dial that finds none fails at once.
    pub(super) fn begin_end(&self) {
        self.inner.ending.cancel();
    }

    /// Waits until what was written on shared connections is sent, and ends them.
    pub(super) async fn flush(&self) {
        match &self.inner.link {
            Link::Sockets(_) => {}
            Link::Multiplexed(mux) => mux.close().await,
        }
    }

    /// Ends all dials and everything that is served, and removes the sockets.
    pub(super) fn close(&self) {
        self.inner.closed.cancel();
        let mut state = self.state();
        state.outgoing = None;
        state.unsent.clear();
        state.knocking = None;
        state.files.clear();
    }

    /// Takes the broker's stream into use: the messages for the other side, beginning with those
    /// that waited, and a token to cancel when the stream ends. Dials fail from then on. A later
    /// stream takes the place of an earlier one.
    pub(super) fn attach(&self) -> (CancellationToken, mpsc::Receiver<ConnInfo>) {
        let (sender, receiver) = mpsc::channel(2 * BACKLOG);
        let mut state = self.state();
        for message in state.unsent.drain(..) {
            // Fits: the backlog is smaller than the channel.
            let _ = sender.try_send(message);
        }
        if !self.inner.closed.is_cancelled() {
            state.outgoing = Some(sender);
        }
        state.peer_gone = CancellationToken::new();
        (state.peer_gone.clone(), receiver)
    }

    /// Takes one message of the other side.
    pub(super) async fn incoming(&self, message: ConnInfo) {
        let id = message.service_id;
        match (&self.inner.link, &message.knock) {
            (Link::Multiplexed(mux), Some(knock)) if knock.knock && !knock.ack => {
                if mux.listens(id) {
                    self.acknowledge(mux, id).await;
                    return;
                }
                self.state().keep_knock(id);
                // Whoever began to listen between the two lines above has not seen the knock.
                if mux.listens(id) && self.state().take_knock(id) {
                    self.acknowledge(mux, id).await;
                }
            }
            (Link::Multiplexed(_), Some(knock)) if knock.ack => {
                let mut state = self.state();
                if let Some((_, waiting)) = state.knocking.take_if(|(waited, _)| *waited == id) {
                    let _ = waiting.send(knock.clone());
                }
            }
            (Link::Sockets(_), _) => {
                self.state().keep_address(message);
                self.inner.arrived.notify_waiters();
            }
            (Link::Multiplexed(_), _) => {
                tracing::debug!(id, "the broker's stream carried neither knock nor answer");
            }
        }
    }

    /// One connection to what the other side serves under `id`.
    async fn connect(&self, id: u32) -> Result<Duplex, BrokerError> {
        let dialled = timeout(DIAL_LIMIT, async {
            let raw = match &self.inner.link {
                Link::Sockets(_) => self.connect_to_socket(id).await?,
                Link::Multiplexed(mux) => self.connect_by_knock(mux, id).await?,
            };
            match &self.inner.tls {
                None => Ok(raw),
                Some(tls) => {
                    tls.connect(raw).await.map_err(|source| BrokerError::Connect { id, source })
                }
            }
        });
        let peer_gone = self.state().peer_gone.clone();
        tokio::select! {
            () = self.inner.closed.cancelled() => Err(BrokerError::Closed),
            () = peer_gone.cancelled() => Err(BrokerError::Closed),
            dialled = dialled => dialled.map_err(|_: Elapsed| BrokerError::Timeout { id })?,
        }
    }

    async fn connect_to_socket(&self, id: u32) -> Result<Duplex, BrokerError> {
        let mut arrived = std::pin::pin!(self.inner.arrived.notified());
        loop {
            // Registered before looking, so that nothing arrives unseen in between.
            arrived.as_mut().enable();
            let known = self.state().address(id);
            if let Some(info) = known {
                let address = Address::parse(&info.network, &info.address)
                    .map_err(|source| BrokerError::Address { id, source })?;
                match listener::connect(&address).await {
                    Ok(connection) => return Ok(connection),
                    // The listener is gone; the other side may be about to announce a new one.
                    Err(error) => {
                        tracing::debug!(id, %address, %error, "a brokered address is dead");
                        self.state().forget_address(&info);
                    }
                }
            } else {
                tokio::select! {
                    () = arrived.as_mut() => {}
                    () = self.inner.ending.cancelled() => return Err(BrokerError::Closed),
                }
                arrived.set(self.inner.arrived.notified());
            }
        }
    }

    async fn connect_by_knock(&self, mux: &Mux, id: u32) -> Result<Duplex, BrokerError> {
        let turn = self.inner.dialling.clone().lock_owned().await;
        let (sender, answer) = oneshot::channel();
        self.state().knocking = Some((id, sender));
        self.send(ConnInfo {
            service_id: id,
            knock: Some(Knock { knock: true, ..Knock::default() }),
            ..ConnInfo::default()
        })
        .await;
        let answer = answer.await.map_err(|_| BrokerError::Closed)?;
        if !answer.error.is_empty() {
            return Err(BrokerError::Refused { id, reason: answer.error });
        }
        let stream = mux.open().await.map_err(|source| BrokerError::Connect { id, source })?;
        Ok(Duplex::new(InTurn { io: stream, turn: Some(turn) }))
    }

    async fn acknowledge(&self, mux: &Mux, id: u32) {
        mux.announce(id);
        self.send(ConnInfo {
            service_id: id,
            knock: Some(Knock { knock: true, ack: true, error: String::new() }),
            ..ConnInfo::default()
        })
        .await;
    }

    async fn send(&self, message: ConnInfo) {
        let outgoing = {
            let mut state = self.state();
            match &state.outgoing {
                Some(outgoing) if !outgoing.is_closed() => outgoing.clone(),
                _ => {
                    if !self.inner.closed.is_cancelled() {
                        state.keep_unsent(message);
                    }
                    return;
                }
            }
        };
        // A stream that ends meanwhile takes the connection with it.
        let _ = outgoing.send(message).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let form = match self.inner.link {
            Link::Sockets(_) => "sockets",
            Link::Multiplexed(_) => "multiplexed",
        };
        f.debug_struct("Broker").field("form", &form).finish_non_exhaustive()
    }
}

/// Keeps a brokered service up. Dropping it ends the service, lets running calls finish and removes
/// its socket.
#[derive(Debug)]
#[must_use = "dropping this ends the service"]
pub struct Served {
    stop: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn announcement(id: u32, listener: &Listener) -> ConnInfo {
    let address = listener.address();
    ConnInfo {
        service_id: id,
        network: address.network().to_owned(),
        address: address.location(),
        knock: None,
    }
}
