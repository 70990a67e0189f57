//! The provider as a plugin: the handshake's constants, logging, and everything put together.

use std::io;
use std::sync::Arc;

use tonic::service::Routes;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::goplugin::Cookie;
use crate::goplugin::server::{self, HandshakeEnvironment, ServeError, hclog, serve};
use crate::provider::{Identity, Provider, Registry, Surroundings};
use crate::telemetry::{Settings, SettingsFault, Telemetry};

use super::{KernelLog, ToolService};

/// By which a kernel's plugins know that a kernel launched them.
pub const COOKIE: Cookie = Cookie {
    key: "PLUGGABLEHARNESS_AGENT_PLUGIN",
    value: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
};

/// The version of the application's side of the handshake.
pub const PROTOCOL_VERSION: u32 = 1;

/// The broker id under which a kernel serves its callbacks.
pub const KERNEL_CALLBACKS: u32 = 1;

/// The plugin's name in a host's log.
const MODULE: &str = "workspace";

/// The variable that chooses which entries are logged: `error`, `warn`, `info` (as without it),
/// `debug`, `trace` or `off`. A line for each call costs a write for each call.
pub const LOG_VARIABLE: &str = "PROVIDER_WORKSPACE_LOG";

/// Why the plugin ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// Standard error or the runtime could not be set up.
    #[error("cannot set up {what}")]
    Setup {
        /// What was being set up.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Serving failed; the host has been told by a log line.
    #[error("the plugin could not serve")]
    Serve(#[from] ServeError),
}

/// Serves a host until it or a signal ends us. Logs go to standard error as the host wants them.
///
/// # Errors
/// [`PluginError`].
pub fn run(environment: HandshakeEnvironment) -> Result<(), PluginError> {
    let kernel_log = KernelLog::default();
    let mut faults = Vec::new();
    let telemetry = telemetry(&mut faults);
    log_to_host(&kernel_log, telemetry.as_ref())?;
    for fault in faults {
        tracing::warn!("{fault}; spans and figures of calls go without it");
    }
    // The work is done by file workers; this thread only moves bytes. With more than one, a call
    // would wake several of them in turn.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(|source| PluginError::Setup { what: "the runtime", source })?;
    let served = runtime.block_on(serve_provider(environment, kernel_log, telemetry));
    // A worker in the middle of a write must not hold up the end longer than the host waits.
    runtime.shutdown_background();
    served.inspect_err(|error| {
        tracing::error!(error = error as &dyn std::error::Error, "cannot serve");
    })?;
    Ok(())
}

/// A provider with all of this crate's tools, read against this process.
#[must_use]
pub fn provider() -> Provider {
    Provider::new(Registry::factory(), || Surroundings::of_this_process(COOKIE.key))
}

async fn serve_provider(
    environment: HandshakeEnvironment,
    kernel_log: KernelLog,
    telemetry: Option<Telemetry>,
) -> Result<(), ServeError> {
    let settings = server::Settings::new(COOKIE, [PROTOCOL_VERSION]);
    let settings = server::Settings { environment, ..settings };
    telemetry.iter().for_each(Telemetry::start);
    let provider = Arc::new(provider());
    let service = ToolService::new(provider.clone(), kernel_log.clone()).into_server();
    let log = kernel_log.clone();
    let services = |broker: crate::goplugin::Broker| {
        log.dial_with(move || {
            let broker = broker.clone();
            async move { broker.dial(KERNEL_CALLBACKS).await.map_err(Into::into) }
        });
        Routes::new(service)
    };
    serve(settings, services, |reason| async move {
        tracing::debug!(?reason, "stopping");
        provider.shut_down().await;
        let last_spans = async {
            if let Some(telemetry) = &telemetry {
                telemetry.finish().await;
            }
        };
        tokio::join!(kernel_log.flush(), last_spans);
    })
    .await
}

/// Spans and figures, where the environment says where they go.
fn telemetry(faults: &mut Vec<SettingsFault>) -> Option<Telemetry> {
    let variable = |name: &str| std::env::var(name).ok();
    let (name, version) = (env!("CARGO_PKG_NAME"), Identity::of_this_build().version);
    Settings::read(name, version, variable, faults).map(Telemetry::new)
}

fn log_to_host(kernel_log: &KernelLog, telemetry: Option<&Telemetry>) -> Result<(), PluginError> {
    let sink = hclog::Sink::stderr()
        .map_err(|source| PluginError::Setup { what: "standard error", source })?;
    hclog::install_panic_hook(sink.clone(), MODULE);
    let chosen = log_level();
    let level = *chosen.as_ref().unwrap_or(&LevelFilter::INFO);
    let (lines, entries) = (hclog::layer(sink, MODULE), kernel_log.layer());
    let registry = tracing_subscriber::registry();
    let installed = match telemetry {
        // One level for all: what is below it costs a look at one number.
        None => registry.with(level).with(lines).with(entries).try_init(),
        // Calls are collected whatever level is logged.
        Some(telemetry) => registry
            .with(lines.with_filter(level))
            .with(entries.with_filter(level))
            .with(telemetry.layer())
            .try_init(),
    };
    // A second call of this in one process keeps the first one's log.
    installed.ok();
    if let Err(problem) = chosen {
        tracing::warn!("{problem}");
    }
    Ok(())
}

/// The level that [`LOG_VARIABLE`] chooses, or what is wrong with what it says.
pub(crate) fn log_level() -> Result<LevelFilter, String> {
    let Some(text) = std::env::var_os(LOG_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(LevelFilter::INFO);
    };
    text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        format!(
            "{LOG_VARIABLE}={text:?} is no level: it is one of error, warn, info, debug, trace \
             and off, and info is taken instead"
        )
    })
}
