//! Spans and metrics of calls. With the feature `telemetry` they are those of `otlp`; without it there
//! are none, and a named collector leads to a warning.

pub(crate) use build::{Telemetry, of_environment};

#[cfg(feature = "telemetry")]
mod build {
    use otlp::{Scope, Settings};
    use tool_provider::Identity;
    use tool_provider::grpc::call_span;

    pub(crate) use otlp::Telemetry;

    /// What collects and sends, where a variable names a collector; and what to warn of.
    pub(crate) fn of_environment(
        identity: Identity,
        variable: impl Fn(&str) -> Option<String>,
    ) -> (Option<Telemetry>, Vec<String>) {
        let name = format!("provider-{}", identity.name);
        let scope = Scope {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            target: call_span::TARGET,
        };
        let mut faults = Vec::new();
        let settings = Settings::read(&name, identity.version, variable, &mut faults);
        let warning = |fault| format!("{fault}; spans and metrics of calls go without it");
        (
            settings.map(|settings| Telemetry::new(settings, scope)),
            faults.into_iter().map(warning).collect(),
        )
    }
}

#[cfg(not(feature = "telemetry"))]
mod build {
    use tool_provider::Identity;
    use tracing_subscriber::layer;

    /// What collects and sends: nothing does.
    pub(crate) enum Telemetry {}

    impl Telemetry {
        pub(crate) fn layer(&self) -> layer::Identity {
            match *self {}
        }

        pub(crate) fn start(&self) {
            match *self {}
        }

        pub(crate) async fn finish(&self) {
            match *self {}
        }
    }

    /// The variables that name a collector.
    const ENDPOINTS: [&str; 3] = [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    ];

    /// Nothing, and what to warn of.
    pub(crate) fn of_environment(
        _: Identity,
        variable: impl Fn(&str) -> Option<String>,
    ) -> (Option<Telemetry>, Vec<String>) {
        let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
        let warning = |name| {
            format!(
                "{name} is set, but this program was built without the feature telemetry: no spans \
                 or metrics are sent"
            )
        };
        (None, ENDPOINTS.into_iter().find(is_set).map(warning).into_iter().collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn whoever_names_a_collector_is_warned_once() {
            let identity = crate::backend::provider().describe();
            let warnings = |value: &str| of_environment(identity, |_| Some(value.to_owned())).1;
            assert_eq!(warnings("http://127.0.0.1:4318").len(), 1);
            assert!(warnings("").is_empty());
        }
    }
}
