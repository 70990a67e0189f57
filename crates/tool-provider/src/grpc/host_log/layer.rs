//! tracing events as log entries, with the fields of the spans that they are in.

use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::{HostLog, LogRecord};
use crate::error::chain;
use crate::shorten::shorten;

/// Longest text that an entry keeps, in bytes.
const MOST_TEXT: usize = 8 * 1024;

/// Feeds a [`HostLog`] with the entries that the subscriber lets pass.
#[derive(Debug)]
pub struct HostLogLayer {
    log: HostLog,
}

impl HostLogLayer {
    pub(super) fn new(log: HostLog) -> Self {
        Self { log }
    }
}

/// The fields of a span, kept with it.
struct SpanFields(Map<String, Value>);

impl<S: Subscriber + for<'lookup> LookupSpan<'lookup>> Layer<S> for HostLogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(SpanFields(fields.others));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            record.record(&mut fields);
            if let Some(SpanFields(known)) = span.extensions_mut().get_mut() {
                known.extend(fields.others);
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(outer)) = span.extensions().get() {
                for (name, value) in outer {
                    fields.others.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        let metadata = event.metadata();
        self.log.push(LogRecord {
            level: *metadata.level(),
            target: metadata.target(),
            message: fields.message,
            fields: fields.others,
            time: SystemTime::now(),
        });
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
    }

    fn text(&mut self, field: &Field, text: &str) {
        let text = shorten(text, MOST_TEXT).into_owned();
        if field.name() == "message" {
            self.message = text;
        } else {
            self.insert(field, text);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        // The whole chain: a source is where the reason is.
        self.text(field, &chain(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }
}
