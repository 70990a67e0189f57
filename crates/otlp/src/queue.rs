//! What waits to be sent: spans in a bounded queue, and the totals of metrics. A call only pushes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::layer::Finished;
use super::metrics::Metrics;

/// Spans that wait at most; what comes beyond is counted and lost. OpenTelemetry's own default.
const MOST_WAITING: usize = 2048;
/// Spans of one message, and how many have to wait for one to be sent early.
pub(super) const BATCH: usize = 512;

/// Shared by the layer and the task.
#[derive(Clone, Default)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    is_full: Notify,
    keeps: Keeps,
}

/// What anybody wants of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Keeps {
    #[default]
    SpansAndFigures,
    Metrics,
}

#[derive(Default)]
struct State {
    spans: VecDeque<Finished>,
    lost: u64,
    metrics: Metrics,
}

impl Queue {
    /// A queue of a process whose spans nobody wants.
    pub(super) fn of_metrics_only() -> Self {
        Self { shared: Arc::new(Shared { keeps: Keeps::Metrics, ..Shared::default() }) }
    }

    /// Takes a call that has ended.
    pub(super) fn push(&self, call: Finished) {
        let mut state = self.lock();
        state.metrics.add(&call);
        if !call.is_sampled || self.shared.keeps == Keeps::Metrics {
            return;
        }
        if state.spans.len() >= MOST_WAITING {
            state.lost += 1;
            return;
        }
        state.spans.push_back(call);
        let is_full = state.spans.len() == BATCH;
        drop(state);
        if is_full {
            self.shared.is_full.notify_one();
        }
    }

    /// Waits until a message is full.
    pub(super) async fn filled(&self) {
        self.shared.is_full.notified().await;
    }

    /// The oldest spans, at most a message of them.
    pub(super) fn take(&self) -> Vec<Finished> {
        let mut state = self.lock();
        let many = state.spans.len().min(BATCH);
        state.spans.drain(..many).collect()
    }

    /// Puts back what could not be sent, as much as fits.
    pub(super) fn put_back(&self, batch: Vec<Finished>) {
        let mut state = self.lock();
        for span in batch.into_iter().rev() {
            if state.spans.len() >= MOST_WAITING {
                state.lost += 1;
            } else {
                state.spans.push_front(span);
            }
        }
    }

    /// Spans that were lost since this was asked last.
    pub(super) fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.lock().lost)
    }

    /// What was added up so far.
    pub(super) fn metrics(&self) -> Metrics {
        self.lock().metrics.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
