//! Calls and metrics as OTLP's messages.
//!
//! Names of attributes follow OpenTelemetry's conventions where there are any (`gen_ai.*`,
//! `session.id`, `error.type`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::export::Scope;
use super::layer::Finished;
use super::metrics::{BOUNDS, Metrics, Series, Sums};
use super::pb::collector::metrics::v1 as metrics;
use super::pb::collector::trace::v1 as trace;
use super::pb::common::v1::{AnyValue, InstrumentationScope, KeyValue, Resource, any_value::Value};

/// Set where it is known whether the parent is in another process, and where it is.
const PARENT_IS_REMOTE: u32 = 0x300;
const SAMPLED: u32 = 1;

/// What every message says of where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    resource: Resource,
    scope: InstrumentationScope,
    start: SystemTime,
}

impl Origin {
    pub(super) fn new(resource: &[(String, String)], scope: Scope) -> Self {
        let attributes = resource.iter().map(|(name, value)| text(name, value)).collect();
        Self {
            resource: Resource { attributes },
            scope: InstrumentationScope {
                name: scope.name.to_owned(),
                version: scope.version.to_owned(),
            },
            start: SystemTime::now(),
        }
    }

    pub(super) fn spans(&self, calls: &[Finished]) -> trace::ExportTraceServiceRequest {
        let scope_spans = trace::ScopeSpans {
            scope: Some(self.scope.clone()),
            spans: calls.iter().map(span).collect(),
        };
        trace::ExportTraceServiceRequest {
            resource_spans: vec![trace::ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
            }],
        }
    }

    pub(super) fn metrics(&self, totals: &Metrics) -> metrics::ExportMetricsServiceRequest {
        let span = (nanoseconds(self.start), nanoseconds(SystemTime::now()));
        let sum = |name: &str, description: &str, unit: &str, of: &dyn Fn(&Sums) -> u64| {
            let points = totals.iter().map(|(series, sums)| point(span, series, of(sums)));
            counted(name, description, unit, points.collect())
        };
        let failed = totals.iter().filter(|(series, _)| !series.error_kind.is_empty());
        let errors = failed.map(|(series, sums)| point(span, series, sums.calls)).collect();
        let durations = totals.iter().map(|(series, sums)| durations(span, series, sums));
        let metrics = vec![
            sum("tool.calls", "Calls that ended", "{call}", &|sums| sums.calls),
            counted("tool.errors", "Calls that failed, by kind", "{call}", errors),
            metrics::Metric {
                name: "tool.call.duration".to_owned(),
                description: "From the request to the end of the answer".to_owned(),
                unit: "s".to_owned(),
                data: Some(metrics::metric::Data::Histogram(metrics::Histogram {
                    data_points: durations.collect(),
                    aggregation_temporality: metrics::AggregationTemporality::Cumulative.into(),
                })),
            },
            sum("tool.request.bytes", "Bytes of requests", "By", &|sums| sums.request_bytes),
            sum("tool.response.bytes", "Bytes of answers", "By", &|sums| sums.response_bytes),
        ];
        let scope_metrics = metrics::ScopeMetrics { scope: Some(self.scope.clone()), metrics };
        metrics::ExportMetricsServiceRequest {
            resource_metrics: vec![metrics::ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![scope_metrics],
            }],
        }
    }
}

fn span(call: &Finished) -> trace::Span {
    let said = &call.said;
    // The name that the conventions have for a tool that a model had run.
    let operation = match said.operation.as_str() {
        "invoke" => "execute_tool",
        other => other,
    };
    let mut attributes = vec![
        text("gen_ai.operation.name", operation),
        text("gen_ai.tool.name", &said.tool),
        text("gen_ai.tool.call.id", &said.call_id),
        text("session.id", &said.session_id),
        text("tool.turn.id", &said.turn_id),
        text("tool.outcome", &said.outcome),
        text("error.type", &said.error_kind),
        number("tool.request.bytes", said.request_bytes),
        number("tool.response.bytes", said.response_bytes),
    ];
    attributes.retain(|attribute| !is_empty(attribute));
    let code = match said.error_kind.is_empty() {
        true => trace::status::StatusCode::Unset,
        false => trace::status::StatusCode::Error,
    };
    let flags = SAMPLED | call.parent.map_or(0, |_| PARENT_IS_REMOTE);
    trace::Span {
        trace_id: call.trace_id.to_vec(),
        span_id: call.span_id.to_vec(),
        // Of the caller's trace, so that it means nothing in one of our own.
        trace_state: call.parent.map_or_else(String::new, |_| said.tracestate.clone()),
        parent_span_id: call.parent.map_or_else(Vec::new, |parent| parent.span_id.to_vec()),
        name: format!("{operation} {}", said.tool),
        kind: trace::span::SpanKind::Server.into(),
        start_time_unix_nano: nanoseconds(call.start),
        // By the steady clock: the other may have been set meanwhile.
        end_time_unix_nano: nanoseconds(call.start + Duration::from_secs_f64(call.seconds)),
        attributes,
        status: Some(trace::Status { code: code.into() }),
        flags,
    }
}

/// The start and the end of what is counted, in nanoseconds since 1970.
type Period = (u64, u64);

fn counted(
    name: &str,
    description: &str,
    unit: &str,
    data_points: Vec<metrics::NumberDataPoint>,
) -> metrics::Metric {
    metrics::Metric {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        data: Some(metrics::metric::Data::Sum(metrics::Sum {
            data_points,
            aggregation_temporality: metrics::AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        })),
    }
}

fn point((start, now): Period, series: &Series, value: u64) -> metrics::NumberDataPoint {
    metrics::NumberDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: now,
        as_int: Some(value.try_into().unwrap_or(i64::MAX)),
        attributes: attributes(series),
    }
}

fn durations((start, now): Period, series: &Series, sums: &Sums) -> metrics::HistogramDataPoint {
    metrics::HistogramDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: now,
        count: sums.calls,
        sum: Some(sums.seconds),
        bucket_counts: sums.buckets.to_vec(),
        explicit_bounds: BOUNDS.to_vec(),
        attributes: attributes(series),
    }
}

fn attributes(series: &Series) -> Vec<KeyValue> {
    let mut attributes = vec![
        text("tool.operation", &series.operation),
        text("gen_ai.tool.name", &series.tool),
        text("tool.outcome", &series.outcome),
        text("error.type", &series.error_kind),
    ];
    attributes.retain(|attribute| !is_empty(attribute));
    attributes
}

fn text(name: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::StringValue(value.to_owned())) };
    KeyValue { key: name.to_owned(), value: Some(value) }
}

fn number(name: &str, value: u64) -> KeyValue {
    let value = Value::IntValue(value.try_into().unwrap_or(i64::MAX));
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn is_empty(attribute: &KeyValue) -> bool {
    let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
    matches!(value, Some(Value::StringValue(text)) if text.is_empty())
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}
