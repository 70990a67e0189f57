//! The task that exports spans and metrics. No call waits for it, and its shutdown is bounded.

use std::error::Error;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::layer::TelemetryLayer;
use super::message::Origin;
use super::queue::Queue;
use super::send::{SendError, Sender};
use super::settings::{Endpoint, Settings};

/// How long the last export may take. A host gives its plugin two seconds in all, and the running
/// calls need most of them.
const LAST_EXPORT: Duration = Duration::from_millis(400);
/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Whose spans are collected.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The program or library that makes the spans, as collectors show it.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The `tracing` target of the spans.
    pub target: &'static str,
}

/// Collects what the calls of this process do, and sends it.
pub struct Telemetry {
    scope: Scope,
    queue: Queue,
    settings: Mutex<Option<Settings>>,
    asks: Mutex<Option<mpsc::Sender<oneshot::Sender<()>>>>,
}

impl Telemetry {
    /// Nothing is started yet.
    #[must_use]
    pub fn new(settings: Settings, scope: Scope) -> Self {
        let queue = match settings.traces {
            Some(_) => Queue::default(),
            None => Queue::of_metrics_only(),
        };
        Self { scope, queue, settings: Mutex::new(Some(settings)), asks: Mutex::default() }
    }

    /// The layer that collects calls, and takes no notice of anything else.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync
    where
        S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    {
        let target = self.scope.target;
        let is_call =
            move |metadata: &Metadata<'_>| metadata.is_span() && metadata.target() == target;
        let filter = filter_fn(is_call).with_max_level_hint(LevelFilter::DEBUG);
        TelemetryLayer::new(self.queue.clone()).with_filter(filter)
    }

    /// Starts to send, as a task of the current runtime. A second start does nothing.
    pub fn start(&self) {
        let Some(settings) = held(&self.settings).take() else { return };
        let (ask, asked) = mpsc::channel(1);
        *held(&self.asks) = Some(ask);
        tokio::spawn(Export::new(settings, self.scope, self.queue.clone()).run(asked));
    }

    /// Sends what is left, for a short moment at most. A collector that does not answer in it goes
    /// without.
    pub async fn finish(&self) {
        let Some(ask) = held(&self.asks).take() else { return };
        let last = async {
            let (done, finished) = oneshot::channel();
            if ask.send(done).await.is_ok() {
                // An error means that the task is gone, and nothing more will be sent.
                let _ = finished.await;
            }
        };
        // What was not sent is lost; the process ends.
        let _ = timeout(LAST_EXPORT, last).await;
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Export {
    queue: Queue,
    origin: Origin,
    spans: Exporter,
    metrics: Exporter,
}

/// One kind of message on its way to one collector.
struct Exporter {
    what: &'static str,
    sender: Option<Sender>,
    period: Duration,
    next: Instant,
    failures: u32,
}

impl Export {
    fn new(settings: Settings, scope: Scope, queue: Queue) -> Self {
        Self {
            origin: Origin::new(&settings.resource, scope),
            spans: Exporter::new("spans", settings.traces, settings.span_delay),
            metrics: Exporter::new("metrics", settings.metrics, settings.metric_interval),
            queue,
        }
    }

    async fn run(mut self, mut asked: mpsc::Receiver<oneshot::Sender<()>>) {
        loop {
            let done = tokio::select! {
                ask = asked.recv() => Some(ask),
                () = sleep_until(self.spans.next) => None,
                () = sleep_until(self.metrics.next) => None,
                // Not where the collector failed: then the pause counts.
                () = self.queue.filled(), if self.spans.failures == 0 => {
                    self.spans.next = Instant::now();
                    None
                }
            };
            let is_last = done.is_some();
            if is_last || self.spans.is_due() {
                self.send_spans().await;
            }
            if is_last || self.metrics.is_due() {
                self.send_metrics().await;
            }
            if let Some(ask) = done {
                if let Some(done) = ask {
                    // Nobody waits any more where the time was up.
                    let _ = done.send(());
                }
                return;
            }
        }
    }

    async fn send_spans(&mut self) {
        let lost = self.queue.take_lost();
        if lost > 0 {
            tracing::warn!(lost, "spans were lost: the collector took them too slowly");
        }
        loop {
            let batch = self.queue.take();
            let Some(sender) = self.spans.sender.as_ref().filter(|_| !batch.is_empty()) else {
                return self.spans.put_off();
            };
            match sender.send(self.origin.spans(&batch)).await {
                Ok(()) => self.spans.succeeded(),
                Err(error) => {
                    if error.is_retryable() {
                        self.queue.put_back(batch);
                    }
                    return self.spans.failed(&error);
                }
            }
        }
    }

    async fn send_metrics(&mut self) {
        let metrics = self.queue.metrics();
        let Some(sender) = self.metrics.sender.as_ref().filter(|_| !metrics.is_empty()) else {
            return self.metrics.put_off();
        };
        match sender.send(self.origin.metrics(&metrics)).await {
            Ok(()) => self.metrics.succeeded(),
            // They are sums since the start: the next message has them all again.
            Err(error) => self.metrics.failed(&error),
        }
    }
}

impl Exporter {
    fn new(what: &'static str, endpoint: Option<Endpoint>, period: Duration) -> Self {
        let sender = endpoint.map(Sender::new);
        Self { what, sender, period, next: Instant::now() + period, failures: 0 }
    }

    fn is_due(&self) -> bool {
        self.next <= Instant::now()
    }

    fn put_off(&mut self) {
        self.next = Instant::now() + self.period;
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.put_off();
    }

    /// Says so once, and waits longer each time.
    fn failed(&mut self, error: &SendError) {
        if self.failures == 0 {
            let error: &dyn Error = error;
            let what = self.what;
            tracing::warn!(error, "{what} of calls do not reach the collector; calls go on");
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.period.saturating_mul(1 << self.failures.min(16));
        self.next = Instant::now() + pause.min(LONGEST_PAUSE.max(self.period));
    }
}
