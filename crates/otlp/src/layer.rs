//! Collects the spans of calls.

use std::fmt;
use std::time::{Instant, SystemTime};

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::queue::Queue;
use super::trace_context::TraceParent;

/// Longest text of a caller that is kept, in bytes.
const MOST_TEXT: usize = 256;
/// Longest `tracestate`, in bytes: what the standard asks everybody to pass on at least.
const MOST_STATE: usize = 512;

/// Collects the spans of calls, and nothing else.
pub(super) struct TelemetryLayer {
    queue: Queue,
}

impl TelemetryLayer {
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue }
    }
}

/// A call that has ended.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent: Option<TraceParent>,
    pub(super) is_sampled: bool,
    pub(super) start: SystemTime,
    pub(super) seconds: f64,
    pub(super) said: Said,
}

/// What a span's fields say.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) operation: String,
    pub(super) tool: String,
    pub(super) session_id: String,
    pub(super) turn_id: String,
    pub(super) call_id: String,
    pub(super) tracestate: String,
    pub(super) outcome: String,
    pub(super) error_kind: String,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    pub(super) parent: Option<TraceParent>,
}

struct Open {
    begun: Instant,
    start: SystemTime,
    said: Said,
}

impl<S> Layer<S> for TelemetryLayer
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = Said::default();
        attributes.record(&mut said);
        let (begun, start) = (Instant::now(), SystemTime::now());
        span.extensions_mut().insert(Open { begun, start, said });
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            record.record(&mut open.said);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { begun, start, said }) = span.extensions_mut().remove() else { return };
        let seconds = begun.elapsed().as_secs_f64();
        let parent = said.parent;
        let Some((own_trace, span_id)) = new_ids() else { return };
        self.queue.push(Finished {
            trace_id: parent.map_or(own_trace, |parent| parent.trace_id),
            span_id,
            parent,
            is_sampled: parent.is_none_or(TraceParent::is_sampled),
            start,
            seconds,
            said,
        });
    }
}

impl fmt::Debug for TelemetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetryLayer").finish_non_exhaustive()
    }
}

impl Said {
    fn text(&mut self, name: &str, text: &str) {
        let slot = match name {
            "operation" => &mut self.operation,
            "tool" => &mut self.tool,
            "session_id" => &mut self.session_id,
            "turn_id" => &mut self.turn_id,
            "call_id" => &mut self.call_id,
            "outcome" => &mut self.outcome,
            "error_kind" => &mut self.error_kind,
            "traceparent" => return self.parent = TraceParent::parse(text),
            // Cut short it would say something else.
            "tracestate" if text.len() <= MOST_STATE => &mut self.tracestate,
            _ => return,
        };
        slot.clear();
        slot.push_str(beginning(text, if name == "tracestate" { MOST_STATE } else { MOST_TEXT }));
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "request_bytes" => self.request_bytes = value,
            "response_bytes" => self.response_bytes = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// A trace's and a span's name, neither of which may be zero. None where the system has no random
/// numbers yet.
fn new_ids() -> Option<([u8; 16], [u8; 8])> {
    let mut random = [0_u8; 24];
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::NONBLOCK);
    if filled != Ok(random.len()) {
        return None;
    }
    let (trace, span) = random.split_at(16);
    Some((trace.try_into().ok()?, span.try_into().ok()?))
}
