//! What the variables mean, and what is kept of calls.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use prost::Message as _;

use super::export::Scope;
use super::layer::{Finished, Said};
use super::message::Origin;
use super::metrics::{BOUNDS, Metrics};
use super::pb::collector::metrics::v1::metric::Data;
use super::queue::{BATCH, Queue};
use super::settings::{Protocol, Settings, SettingsFault};
use super::trace_context::TraceParent;

const SCOPE: Scope = Scope { name: "calls", version: "1.0.0", target: "calls::call" };

fn read(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<SettingsFault>) {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    let mut faults = Vec::new();
    let lookup = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    (Settings::read("us", "1.2.3", lookup, &mut faults), faults)
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    let (settings, faults) = read(variables);
    assert_eq!(faults, []);
    settings.expect("settings")
}

#[test]
fn without_an_endpoint_nothing_is_sent() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for variables in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        &[endpoint, ("OTEL_SDK_DISABLED", "TRUE")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "console")],
    ] {
        let (settings, faults) = read(variables);
        assert!(settings.is_none() && faults.is_empty(), "{variables:?}");
    }
}

#[test]
fn one_address_is_a_base_for_both_and_an_address_of_one_is_taken_as_it_is() {
    let both = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/otlp/")]);
    let uri = |endpoint: Option<super::settings::Endpoint>| endpoint.unwrap().uri.to_string();
    assert_eq!(uri(both.traces), "http://127.0.0.1:4318/otlp/v1/traces");
    assert_eq!(uri(both.metrics), "http://127.0.0.1:4318/otlp/v1/metrics");
    let one = settings(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:1/here")]);
    assert_eq!(uri(one.traces), "http://h:1/here");
    assert!(one.metrics.is_none());
}

#[test]
fn the_protocol_is_what_is_said_else_what_the_port_is_known_for() {
    for (port, said, protocol) in [
        (4317, None, Protocol::Grpc),
        (4318, None, Protocol::Http),
        (4318, Some("grpc"), Protocol::Grpc),
        (4317, Some("http/protobuf"), Protocol::Http),
    ] {
        let address = format!("http://127.0.0.1:{port}");
        let mut variables = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str())];
        variables.extend(said.map(|said| ("OTEL_EXPORTER_OTLP_PROTOCOL", said)));
        assert_eq!(settings(&variables).traces.unwrap().protocol, protocol, "{variables:?}");
    }
}

#[test]
fn the_resource_is_ours_then_the_list_s_then_the_name_s() {
    let settings = settings(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a, team=tools%2Cfiles ,service.version=9"),
        ("OTEL_SERVICE_NAME", "b"),
    ]);
    let value = |name: &str| {
        let found: Vec<_> = settings.resource.iter().filter(|(key, _)| key == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].1.as_str()
    };
    assert_eq!((value("service.name"), value("service.version")), ("b", "9"));
    assert_eq!(value("team"), "tools,files");
}

#[test]
fn what_is_wrong_is_named_without_its_value_and_the_rest_holds() {
    let good = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://user:hunter2@h"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hunter2:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json-hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "hunter2"),
        ("OTEL_RESOURCE_ATTRIBUTES", "hunter2"),
        ("OTEL_RESOURCE_ATTRIBUTES", "name=%zz-hunter2"),
        ("OTEL_BSP_SCHEDULE_DELAY", "hunter2"),
    ] {
        let (settings, faults) = read(&[good, (variable, value)]);
        let [fault] = &faults[..] else { panic!("{variable}={value}: {faults:?}") };
        let text = fault.to_string();
        assert!(text.starts_with(variable) && !text.contains("hunter2"), "{text}");
        assert!(settings.expect("the rest").metrics.is_some(), "{text}");
    }
}

#[test]
fn a_header_s_value_shows_nowhere() {
    let settings = settings(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2"),
    ]);
    assert_eq!(settings.traces.as_ref().unwrap().headers["authorization"], "Bearer hunter2");
    assert!(!format!("{settings:?}").contains("hunter2"));
}

fn call(tool: &str, seconds: f64, error_kind: &str) -> Finished {
    Finished {
        trace_id: [1; 16],
        span_id: [2; 8],
        parent: None,
        is_sampled: true,
        start: SystemTime::UNIX_EPOCH,
        seconds,
        said: Said {
            operation: "invoke".to_owned(),
            tool: tool.to_owned(),
            error_kind: error_kind.to_owned(),
            request_bytes: 3,
            ..Said::default()
        },
    }
}

#[test]
fn metrics_add_up_by_series_and_a_bound_is_the_upper_end_of_its_bucket() {
    let mut metrics = Metrics::default();
    for (seconds, kind) in [(0.001, ""), (0.0011, ""), (1e6, ""), (0.0, "auth")] {
        metrics.add(&call("bash", seconds, kind));
    }
    let all: Vec<_> = metrics.iter().collect();
    let [(_, fine), (failed, _)] = all[..] else { panic!("{all:?}") };
    assert_eq!((fine.calls, fine.request_bytes), (3, 9));
    assert_eq!((fine.buckets[0], fine.buckets[1], fine.buckets[BOUNDS.len()]), (1, 1, 1));
    assert_eq!(failed.error_kind, "auth");
}

#[test]
fn a_caller_that_makes_up_tools_makes_no_endless_series() {
    let mut metrics = Metrics::default();
    for number in 0..10_000 {
        metrics.add(&call(&format!("tool-{number}"), 0.0, ""));
    }
    assert!(metrics.iter().count() < 200);
    assert_eq!(metrics.iter().map(|(_, sums)| sums.calls).sum::<u64>(), 10_000);
}

#[test]
fn the_queue_is_bounded_keeps_its_order_and_counts_what_it_loses() {
    let queue = Queue::default();
    for number in 0..5000 {
        queue.push(call(&number.to_string(), 0.0, ""));
    }
    let lost = queue.take_lost();
    assert!(lost > 2000, "{lost}");
    let first = queue.take();
    assert_eq!((first.len(), first[0].said.tool.as_str()), (BATCH, "0"));
    queue.put_back(first);
    assert_eq!(queue.take()[0].said.tool, "0");
    assert_eq!(queue.take_lost(), 0);
}

#[test]
fn a_span_whose_caller_does_not_record_is_only_counted() {
    let queue = Queue::default();
    queue.push(Finished { is_sampled: false, ..call("bash", 0.0, "") });
    assert!(queue.take().is_empty());
    assert_eq!(queue.metrics().iter().count(), 1);
}

#[test]
fn the_end_of_a_span_follows_from_its_duration() {
    let origin = Origin::new(&[], SCOPE);
    let message = origin.spans(&[call("bash", 1.5, "")]);
    let span = &message.resource_spans[0].scope_spans[0].spans[0];
    let length = span.end_time_unix_nano - span.start_time_unix_nano;
    assert_eq!(Duration::from_nanos(length), Duration::from_millis(1500));
}

#[test]
fn where_nobody_wants_spans_none_wait_and_none_are_lost() {
    let queue = Queue::of_metrics_only();
    for _ in 0..5000 {
        queue.push(call("bash", 0.0, ""));
    }
    assert!(queue.take().is_empty());
    assert_eq!(queue.take_lost(), 0);
    assert_eq!(queue.metrics().iter().next().unwrap().1.calls, 5000);
}

#[test]
fn a_sum_of_zero_has_a_value() {
    let mut metrics = Metrics::default();
    metrics.add(&call("bash", 0.0, ""));
    let message = Origin::new(&[], SCOPE).metrics(&metrics);
    let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
    let answers = metrics.iter().find(|metric| metric.name == "tool.response.bytes").unwrap();
    let Some(Data::Sum(sum)) = &answers.data else { panic!("{answers:?}") };
    assert_eq!(sum.data_points[0].as_int, Some(0));
    // Field 6, eight bytes: it is written, and not left out as a default.
    assert!(sum.data_points[0].encode_to_vec().contains(&(6 << 3 | 1)));
}

#[test]
fn what_belongs_to_a_caller_s_trace_goes_only_with_that_trace() {
    let origin = Origin::new(&[], SCOPE);
    let of = |traceparent: &str| {
        let parent = TraceParent::parse(traceparent);
        let said = Said { tracestate: "vendor=1".to_owned(), ..Said::default() };
        let message = origin.spans(&[Finished { parent, said, ..call("bash", 0.0, "") }]);
        let span = message.resource_spans[0].scope_spans[0].spans[0].clone();
        (span.trace_state, span.flags)
    };
    let parent = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    // Flags that the standard does not know are not passed on.
    assert_eq!(of(&format!("00-{parent}-ff")), ("vendor=1".to_owned(), 0x301));
    assert_eq!(of(&format!("00-{parent}-zz")), (String::new(), 1));
}
