//! The provider as a plugin: the handshake's constants, logging, and everything put together.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use goplugin::server::{self, CookieCheck, HandshakeEnvironment, ServeError, hclog, serve};
use goplugin::{Broker, Cookie, Services};
use tool_provider::grpc::{HookService, HostLog, ToolService, handshake};
use tool_provider::{Hooks, Provider, State};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::FilterExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::telemetry::{self, Telemetry};

pub use handshake::{HOST_CALLBACKS, PROTOCOL_VERSION};

/// By which a plugin knows that a host launched it.
pub const COOKIE: Cookie = Cookie { key: handshake::COOKIE_KEY, value: handshake::COOKIE_VALUE };

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
    /// Serving failed; a log line has told the host why.
    #[error("the plugin could not serve")]
    Serve(#[from] ServeError),
}

/// A provider's whole `main`: it is started as the helper of a jail, by a host, or by hand.
///
/// Nothing may come before it: a helper has no use for anything, and what another process of the
/// user should not see may be read only after this process is closed to others.
pub fn main<S: State>(
    provider: impl FnOnce() -> Provider<S>,
    by_hand: impl FnOnce() -> ExitCode,
) -> ExitCode {
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    if let Err(error) = sandbox::harden_provider() {
        // Where standard error is gone, too, the exit code has to do.
        let _ = writeln!(io::stderr(), "cannot close this process to others: {error}");
        return ExitCode::FAILURE;
    }
    let environment = HandshakeEnvironment::from_process(&COOKIE);
    match environment.launched_by_host(&COOKIE) {
        CookieCheck::Launched => match run(environment, provider()) {
            Ok(()) => ExitCode::SUCCESS,
            // The host has been told.
            Err(_) => ExitCode::FAILURE,
        },
        CookieCheck::Missing | CookieCheck::Wrong => by_hand(),
    }
}

/// Serves a host until it or a signal ends us. Logs go to standard error as the host wants them.
///
/// # Errors
/// [`PluginError`].
pub fn run<S: State>(
    environment: HandshakeEnvironment,
    provider: Provider<S>,
) -> Result<(), PluginError> {
    let identity = provider.describe();
    let (telemetry, warnings) =
        telemetry::of_environment(identity, |name| std::env::var(name).ok());
    let host_log = log_to_host(identity.name, telemetry.as_ref())?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    // The work is done by file workers; this thread only moves bytes. With more than one, a call
    // would wake several of them in turn.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(|source| PluginError::Setup { what: "the runtime", source })?;
    let served = runtime.block_on(serve_provider(provider, environment, host_log, telemetry));
    // A worker in the middle of a write must not hold up the end longer than the host waits.
    runtime.shutdown_background();
    served.inspect_err(|error| {
        tracing::error!(error = error as &dyn std::error::Error, "cannot serve");
    })?;
    Ok(())
}

async fn serve_provider<S: State>(
    provider: Provider<S>,
    environment: HandshakeEnvironment,
    host_log: HostLog,
    telemetry: Option<Telemetry>,
) -> Result<(), ServeError> {
    let settings = server::Settings::new(COOKIE, [PROTOCOL_VERSION]);
    let settings = server::Settings { environment, ..settings };
    telemetry.iter().for_each(Telemetry::start);
    let provider = Arc::new(provider);
    let service = ToolService::new(provider.clone(), host_log.clone()).into_server();
    let hooks = HookService::new(provider.clone()).into_server();
    let log = host_log.clone();
    let listener = provider.clone();
    let services = move |broker: Broker| {
        if let Some(directory) = broker.socket_directory() {
            listener.listens_in(directory);
        }
        log.dial_with(move || {
            let broker = broker.clone();
            async move { broker.dial(HOST_CALLBACKS).await.map_err(Into::into) }
        });
        let services = Services::new().with(service);
        match listener.hooks() {
            Hooks::None => services,
            Hooks::SessionEnd => services.with(hooks),
        }
    };
    serve(settings, services, |_| async move {
        provider.shut_down().await;
        let last_spans = async {
            if let Some(telemetry) = &telemetry {
                telemetry.finish().await;
            }
        };
        tokio::join!(host_log.finish(), last_spans);
    })
    .await
}

fn log_to_host(name: &'static str, telemetry: Option<&Telemetry>) -> Result<HostLog, PluginError> {
    let sink = hclog::Sink::stderr()
        .map_err(|source| PluginError::Setup { what: "standard error", source })?;
    hclog::install_panic_hook(sink.clone(), name);
    let chosen = log_level();
    let level = *chosen.as_ref().unwrap_or(&LevelFilter::INFO);
    let host_log = HostLog::new(move |record| {
        sink.entry(&hclog::Entry {
            module: name,
            level: record.level,
            time: record.time,
            message: &record.message,
            fields: &record.fields,
        });
    });
    let (entries, targets) = (host_log.layer(), hclog::targets());
    let registry = tracing_subscriber::registry();
    let installed = match telemetry {
        // One level for all: what is below it costs a look at one number.
        None => registry.with(level).with(targets).with(entries).try_init(),
        // Calls are collected whatever is logged.
        Some(telemetry) => registry
            .with(entries.with_filter(level.and(targets)))
            .with(telemetry.layer())
            .try_init(),
    };
    // A second call of this in one process keeps the first one's log.
    installed.ok();
    if let Err(problem) = chosen {
        tracing::warn!("{problem}");
    }
    Ok(host_log)
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
