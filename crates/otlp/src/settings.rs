//! What OpenTelemetry's variables say, read once into a value.
//!
//! Names and meanings are those of OpenTelemetry's specification ("Environment Variable
//! Specification", "OpenTelemetry Protocol Exporter"). What is not here of it is not supported: no
//! TLS of our own, no compression, no sampler but the one that follows the caller.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// Where spans and metrics go, and what they say of where they come from.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) traces: Option<Endpoint>,
    pub(super) metrics: Option<Endpoint>,
    /// What is said of this process, by name.
    pub(super) resource: Vec<(String, String)>,
    pub(super) span_delay: Duration,
    pub(super) metric_interval: Duration,
}

/// Where one of the two goes.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) uri: Uri,
    pub(super) protocol: Protocol,
    /// Often hold a token.
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    Http,
}

/// What is wrong with a variable. Its value is not repeated: it may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct SettingsFault {
    variable: String,
    problem: &'static str,
}

/// The two kinds of things that are sent.
#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Metrics => "METRICS",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Signal::Traces => "v1/traces",
            Signal::Metrics => "v1/metrics",
        }
    }
}

/// The port that is gRPC's by custom.
const GRPC_PORT: u16 = 4317;
const TIMEOUT: Duration = Duration::from_secs(10);
const SPAN_DELAY: Duration = Duration::from_secs(5);
const METRIC_INTERVAL: Duration = Duration::from_secs(60);
/// Shortest time between two exports, whatever a variable says.
const SHORTEST_DELAY: Duration = Duration::from_millis(10);

impl Settings {
    /// Reads the variables by `lookup`; empty ones count as not set. None where nothing is to be
    /// sent. `name` and `version` are said of this process where no variable says otherwise.
    ///
    /// What is wrong goes to `faults`, and is left out: no call fails for its metrics.
    pub fn read(
        name: &str,
        version: &str,
        lookup: impl Fn(&str) -> Option<String>,
        faults: &mut Vec<SettingsFault>,
    ) -> Option<Self> {
        let variables = Variables(|name: &str| lookup(name).filter(|value| !value.is_empty()));
        if variables
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return None;
        }
        let mut endpoint = |signal| {
            variables.endpoint(signal).unwrap_or_else(|fault| {
                faults.push(fault);
                None
            })
        };
        let (traces, metrics) = (endpoint(Signal::Traces), endpoint(Signal::Metrics));
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        let mut or_default = |name: &str, default| {
            variables
                .milliseconds(name)
                .unwrap_or_else(|fault| {
                    faults.push(fault);
                    None
                })
                .map_or(default, |delay| SHORTEST_DELAY.max(delay))
        };
        Some(Self {
            traces,
            metrics,
            span_delay: or_default("OTEL_BSP_SCHEDULE_DELAY", SPAN_DELAY),
            metric_interval: or_default("OTEL_METRIC_EXPORT_INTERVAL", METRIC_INTERVAL),
            resource: variables.resource(name, version, faults),
        })
    }
}

struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// The variable of one signal, else the one of all.
    fn exporter(&self, signal: Signal, what: &str) -> Option<(String, String)> {
        [
            format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.name()),
            format!("OTEL_EXPORTER_OTLP_{what}"),
        ]
        .into_iter()
        .find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn endpoint(&self, signal: Signal) -> Result<Option<Endpoint>, SettingsFault> {
        let exporter = self.get(&format!("OTEL_{}_EXPORTER", signal.name()));
        let is_wanted = exporter.is_none_or(|list| list.split(',').any(|one| one.trim() == "otlp"));
        let Some((variable, text)) = self.exporter(signal, "ENDPOINT").filter(|_| is_wanted) else {
            return Ok(None);
        };
        let wrong = |problem| fault(&variable, problem);
        let uri: Uri = text.trim().parse().map_err(|_| wrong("is no address"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong("asks for TLS, which only a collector on the way can add"));
            }
            _ => return Err(wrong("has to begin with http://")),
        }
        let protocol = self.protocol(signal, &uri)?;
        // The address of all signals is a base, that of one signal is the whole.
        let is_base = !variable.contains(signal.name());
        let uri = match protocol {
            Protocol::Http if is_base => {
                let base = uri.to_string();
                let whole = format!("{}/{}", base.trim_end_matches('/'), signal.path());
                whole.parse().map_err(|_| wrong("is no base of an address"))?
            }
            Protocol::Http | Protocol::Grpc => uri,
        };
        let timeout = match self.exporter(signal, "TIMEOUT") {
            Some((name, _)) => self.milliseconds(&name)?.unwrap_or(TIMEOUT),
            None => TIMEOUT,
        };
        let headers = self.headers(signal)?;
        Ok(Some(Endpoint { uri, protocol, headers, timeout }))
    }

    fn protocol(&self, signal: Signal, uri: &Uri) -> Result<Protocol, SettingsFault> {
        match self.exporter(signal, "PROTOCOL") {
            None if uri.port_u16() == Some(GRPC_PORT) => Ok(Protocol::Grpc),
            None => Ok(Protocol::Http),
            Some((variable, text)) => match text.trim() {
                "grpc" => Ok(Protocol::Grpc),
                "http/protobuf" => Ok(Protocol::Http),
                _ => Err(fault(&variable, "is neither grpc nor http/protobuf")),
            },
        }
    }

    fn headers(&self, signal: Signal) -> Result<HeaderMap, SettingsFault> {
        let mut headers = HeaderMap::new();
        let Some((variable, text)) = self.exporter(signal, "HEADERS") else { return Ok(headers) };
        let wrong = || fault(&variable, "is no list of name=value");
        for (name, value) in pairs(&text).ok_or_else(wrong)? {
            let name = HeaderName::try_from(name).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(headers)
    }

    fn milliseconds(&self, name: &str) -> Result<Option<Duration>, SettingsFault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number =
            text.trim().parse().map_err(|_| fault(name, "is no number of milliseconds"))?;
        Ok(Some(Duration::from_millis(number)))
    }

    fn resource(
        &self,
        name: &str,
        version: &str,
        faults: &mut Vec<SettingsFault>,
    ) -> Vec<(String, String)> {
        const LIST: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = vec![
            ("service.name".to_owned(), name.to_owned()),
            ("service.version".to_owned(), version.to_owned()),
            ("telemetry.sdk.language".to_owned(), "rust".to_owned()),
            ("telemetry.sdk.name".to_owned(), name.to_owned()),
            ("telemetry.sdk.version".to_owned(), version.to_owned()),
        ];
        let mut set = |key: String, value: String| {
            resource.retain(|(known, _)| *known != key);
            resource.push((key, value));
        };
        let list = self.get(LIST).unwrap_or_default();
        match pairs(&list) {
            Some(pairs) => pairs.into_iter().for_each(|(key, value)| set(key, value)),
            // All or nothing, as the specification wants it.
            None => {
                faults.push(fault(LIST, "is no list of name=value, so that none of it is said"))
            }
        }
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            set("service.name".to_owned(), name);
        }
        resource
    }
}

fn fault(variable: &str, problem: &'static str) -> SettingsFault {
    SettingsFault { variable: variable.to_owned(), problem }
}

/// `name=value,name=value`, in which values are percent-encoded. None for anything else.
fn pairs(list: &str) -> Option<Vec<(String, String)>> {
    let is_something = |part: &&str| !part.trim().is_empty();
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (decoded(name.trim())?, decoded(value.trim())?);
        (!name.is_empty()).then_some((name, value))
    };
    list.split(',').filter(is_something).map(pair).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}
