//! Many connections over one: a yamux session, and which of its streams belongs to whom.
//!
//! A stream that nobody announced belongs to the plugin's main server. For a brokered service the
//! dialling side *knocks* first (a message on the broker's stream); once the other side has
//! acknowledged it, the next stream that comes in belongs to that service.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use tokio_util::sync::CancellationToken;

use crate::duplex::Duplex;

mod table;

use table::Table;

/// Where the streams of one service go.
type Streams = mpsc::Sender<Duplex>;

/// Streams that one session may hold; each has a window of 256 KiB.
const MAX_STREAMS: usize = 128;

/// Streams that are open but not yet taken by their server.
const QUEUE: usize = 32;

/// Which end of the session we are: yamux gives the host odd stream ids and the plugin even ones.
#[derive(Clone, Copy)]
enum Side {
    Host,
    Plugin,
}

/// A handle on the session, and the table of who listens.
#[derive(Clone)]
pub(super) struct Mux {
    wanted: mpsc::Sender<oneshot::Sender<Duplex>>,
    table: Arc<Mutex<Table<Streams>>>,
    /// The session is to end in order.
    closing: CancellationToken,
    /// It has ended, and all of it was sent.
    closed: CancellationToken,
}

impl Mux {
    /// The plugin's end: the session runs over the first connection of the main socket. Returns the
    /// handle and the streams for the main server.
    ///
    /// A host opens one raw connection and no other. Whoever else connects while the session lives
    /// is turned away; after its end the next one may start over.
    pub(super) fn plugin(mut raw: mpsc::Receiver<Duplex>) -> (Mux, mpsc::Receiver<Duplex>) {
        let (wanted, mut requests) = mpsc::channel(QUEUE);
        let (main, streams) = mpsc::channel(QUEUE);
        let mux = Mux::of(wanted);
        let Mux { table, closing, closed, .. } = mux.clone();
        tokio::spawn(async move {
            let _closed = closed.drop_guard();
            loop {
                let connection = tokio::select! {
                    connection = raw.recv() => connection,
                    () = closing.cancelled() => return,
                };
                let Some(connection) = connection else { return };
                let session =
                    run(connection, Side::Plugin, &table, &mut requests, Some(&main), &closing);
                tokio::select! {
                    () = session => {}
                    () = turn_away(&mut raw) => return,
                }
                lock(&table).forget_announced();
            }
        });
        (mux, streams)
    }

    /// The host's end, over the connection that it made. The session ends when all handles are
    /// dropped.
    pub(super) fn host(connection: Duplex) -> Mux {
        let (wanted, mut requests) = mpsc::channel(QUEUE);
        let mux = Mux::of(wanted);
        let Mux { table, closing, closed, .. } = mux.clone();
        // The handles in the task must not keep it up: they ask for no streams.
        tokio::spawn(async move {
            let _closed = closed.drop_guard();
            run(connection, Side::Host, &table, &mut requests, None, &closing).await;
        });
        mux
    }

    fn of(wanted: mpsc::Sender<oneshot::Sender<Duplex>>) -> Mux {
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        Mux { wanted, table: Arc::default(), closing, closed }
    }

    /// Ends the session in order: what was written on its streams is sent first. A process that ended
    /// before that would take it along.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.closed.cancelled().await;
    }

    /// Opens a stream to the other side.
    pub(super) async fn open(&self) -> io::Result<Duplex> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "the yamux session has ended");
        let (sender, receiver) = oneshot::channel();
        self.wanted.send(sender).await.map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())
    }

    /// Takes the streams of service `id` from now on. Ends with the receiver.
    pub(super) fn listen(&self, id: u32) -> mpsc::Receiver<Duplex> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        lock(&self.table).listen(id, sender);
        receiver
    }

    /// Whether somebody listens on `id`.
    pub(super) fn listens(&self, id: u32) -> bool {
        lock(&self.table).listener(id).is_some_and(|listener| !listener.is_closed())
    }

    /// Forgets the listener of `id`, unless another took its place meanwhile.
    pub(super) fn forget(&self, id: u32) {
        let mut table = lock(&self.table);
        if table.listener(id).is_some_and(mpsc::Sender::is_closed) {
            table.forget(id);
        }
    }

    /// Gives the next stream that comes in to `id`. Must be called before the knock is
    /// acknowledged: the stream may arrive right after.
    pub(super) fn announce(&self, id: u32) {
        lock(&self.table).announce(id, Instant::now());
    }
}

fn lock(table: &Mutex<Table<Streams>>) -> MutexGuard<'_, Table<Streams>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops every further connection, until there can be none.
async fn turn_away(raw: &mut mpsc::Receiver<Duplex>) {
    while raw.recv().await.is_some() {
        tracing::warn!("a second raw connection was turned away");
    }
}

/// Drives one session until it ends.
async fn run(
    raw: Duplex,
    side: Side,
    table: &Mutex<Table<Streams>>,
    requests: &mut mpsc::Receiver<oneshot::Sender<Duplex>>,
    main: Option<&mpsc::Sender<Duplex>>,
    closing: &CancellationToken,
) {
    let mut session = Session::new(raw, side, requests);
    loop {
        let event = tokio::select! {
            event = poll_fn(|context| session.poll_event(context)) => event,
            () = closing.cancelled() => {
                // Whoever is gone needs no end in order.
                let _ = poll_fn(|context| session.yamux.poll_close(context)).await;
                return;
            }
        };
        match event {
            Event::Outbound(stream) => {
                if let Some(request) = session.waiting.pop_front() {
                    // Whoever asked may have given up; the stream then closes unused.
                    let _ = request.send(Duplex::new(stream.compat()));
                }
            }
            Event::Inbound(stream) => {
                // A full queue drops the stream rather than stop the whole session.
                let mut table = lock(table);
                let taken = table
                    .claim(Instant::now(), main)
                    .is_some_and(|to| to.try_send(Duplex::new(stream.compat())).is_ok());
                if !taken {
                    tracing::warn!("a yamux stream that nobody waits for was closed");
                }
            }
            Event::Closed(None) => return,
            Event::Closed(Some(error)) => {
                tracing::debug!(%error, "the yamux session ended");
                return;
            }
        }
    }
}

/// One session: nothing on it moves unless it is polled.
struct Session<'a> {
    yamux: yamux::Connection<Compat<Duplex>>,
    side: Side,
    requests: &'a mut mpsc::Receiver<oneshot::Sender<Duplex>>,
    handles: Handles,
    /// Who asked for a stream and has none yet, in order.
    waiting: VecDeque<oneshot::Sender<Duplex>>,
}

/// Whether somebody may still ask for a stream.
#[derive(Clone, Copy, PartialEq)]
enum Handles {
    Left,
    Gone,
}

enum Event {
    Inbound(yamux::Stream),
    Outbound(yamux::Stream),
    Closed(Option<yamux::ConnectionError>),
}

impl<'a> Session<'a> {
    fn new(
        raw: Duplex,
        side: Side,
        requests: &'a mut mpsc::Receiver<oneshot::Sender<Duplex>>,
    ) -> Self {
        let mode = match side {
            Side::Host => yamux::Mode::Client,
            Side::Plugin => yamux::Mode::Server,
        };
        let window = MAX_STREAMS * yamux::DEFAULT_CREDIT as usize;
        let mut config = yamux::Config::default();
        config.set_max_num_streams(MAX_STREAMS);
        config.set_max_connection_receive_window(Some(window));
        let yamux = yamux::Connection::new(raw.compat(), config, mode);
        Self { yamux, side, requests, handles: Handles::Left, waiting: VecDeque::new() }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        while self.handles == Handles::Left {
            match self.requests.poll_recv(context) {
                Poll::Ready(Some(request)) => self.waiting.push_back(request),
                Poll::Ready(None) => self.handles = Handles::Gone,
                Poll::Pending => break,
            }
        }
        if self.waiting.is_empty() {
            if self.handles == Handles::Gone && matches!(self.side, Side::Host) {
                return Poll::Ready(Event::Closed(None));
            }
        } else {
            match self.yamux.poll_new_outbound(context) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Event::Outbound(stream)),
                Poll::Ready(Err(error)) => return Poll::Ready(Event::Closed(Some(error))),
                Poll::Pending => {}
            }
        }
        self.yamux.poll_next_inbound(context).map(|inbound| match inbound {
            Some(Ok(stream)) => Event::Inbound(stream),
            Some(Err(error)) => Event::Closed(Some(error)),
            None => Event::Closed(None),
        })
    }
}
