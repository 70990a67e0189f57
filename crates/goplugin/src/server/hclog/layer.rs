//! tracing events as hclog lines.

use std::fmt::{Debug, Write as _};

use serde_json::Value;
use time::OffsetDateTime;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::line::Line;
use super::sink::Sink;

/// Writes each event as one line, with the fields of the spans that it is in. Of fields
/// with the same name the innermost counts.
pub struct HclogLayer {
    sink: Sink,
    module: &'static str,
}

/// A layer that writes to `sink` whatever is enabled. `module` is the program's name, as the host
/// shows it.
#[must_use]
pub fn layer(sink: Sink, module: &'static str) -> HclogLayer {
    HclogLayer { sink, module }
}

/// The fields of a span, kept with it.
struct SpanFields(Vec<(&'static str, Value)>);

impl<S> Layer<S> for HclogLayer
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(SpanFields(fields.named));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            record.record(&mut fields);
            let mut extensions = span.extensions_mut();
            if let Some(SpanFields(known)) = extensions.get_mut::<SpanFields>() {
                for (name, value) in fields.named {
                    known.retain(|(other, _)| *other != name);
                    known.push((name, value));
                }
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = OffsetDateTime::now_utc();
        let mut line = Line::new(now, event.metadata().level(), self.module, &fields.message);
        let mut seen: Vec<&'static str> = Vec::with_capacity(16);
        for (name, value) in fields.named {
            seen.push(name);
            line.field(name, value);
        }
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(fields)) = span.extensions().get::<SpanFields>() {
                for (name, value) in fields {
                    if !seen.contains(name) {
                        seen.push(name);
                        line.field(name, value.clone());
                    }
                }
            }
        }
        self.sink.write(line.finish().as_bytes());
    }
}

/// Collects an event's or a span's fields.
#[derive(Default)]
struct Fields {
    message: String,
    named: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.named.push((field.name(), value));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.add(field, value.into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        // The whole chain: a source is where the reason is.
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        self.add(field, text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else {
            self.add(field, format!("{value:?}").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// The lines that `log` makes.
    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let layer = layer(Sink::new(writer), "thing");
        let subscriber = tracing_subscriber::registry().with(super::super::targets()).with(layer);
        tracing::subscriber::with_default(subscriber, log);
        let lines = BufReader::new(std::fs::File::from(reader)).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    #[test]
    fn an_event_carries_its_own_fields_and_those_of_its_spans() {
        let lines = lines(|| {
            let outer = tracing::info_span!("call", tool = "read", bytes = tracing::field::Empty);
            let _outer = outer.enter();
            let inner = tracing::info_span!("step", number = 2, tool = "hidden by the event");
            let _inner = inner.enter();
            outer.record("bytes", 17);
            tracing::warn!(path = "a\"b", tool = "innermost", "slow {}", 1);
        });
        let [line] = lines.as_slice() else { panic!("one line expected: {lines:?}") };
        assert_eq!(line["@level"], "warn");
        assert_eq!(line["@message"], "slow 1");
        assert_eq!(line["path"], "a\"b");
        assert_eq!(line["number"], 2);
        assert_eq!(line["tool"], "innermost");
        assert_eq!(line["bytes"], 17);
    }

    #[test]
    fn what_carries_the_connection_is_heard_from_warn_on_and_all_else_at_every_level() {
        let lines = lines(|| {
            tracing::info!(target: "h2::codec", "frame");
            tracing::warn!(target: "h2::codec", "trouble");
            tracing::info!(target: "h2o", "somebody's own");
            tracing::trace!("detail");
        });
        let messages: Vec<_> =
            lines.iter().map(|line| line["@message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["trouble", "somebody's own", "detail"]);
    }

    #[test]
    fn an_error_is_logged_with_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open")]
        struct Outer(#[source] std::io::Error);

        let lines = lines(|| {
            let error = Outer(std::io::Error::other("disk gone"));
            tracing::error!(error = &error as &dyn std::error::Error, "failed");
        });
        assert_eq!(lines[0]["error"], "cannot open: disk gone");
    }
}
