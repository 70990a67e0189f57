//! The provider as a server of the Model Context Protocol, on standard input and output.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goplugin::server::hclog;
use goplugin::{ProcessWatch, Signals};
use mcp::{BlockOf, Log, LogEntry, LogFeed, Roots, ServeError, Settings, Structured};
use rustix::process::getppid;
use sandbox::Network;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use tool_provider::config::ConfigureError;
use tool_provider::grpc::HostLog;
use tool_provider::grpc::handshake::COOKIE_KEY;
use tool_provider::{Payload, RiskClass};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::backend;
use crate::config::{Config, HostEnv};
use crate::identity;
use crate::plugin::log_level;

/// The keys that name roots. Where the configuration has neither, the client is asked.
const ROOTS: [&str; 2] = ["roots", "read_only_roots"];

/// Why the server ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// A stream or the runtime could not be set up.
    #[error("cannot set up {what}")]
    Setup {
        /// What was being set up.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The configuration is not accepted.
    #[error(transparent)]
    Configuration(#[from] ConfigureError),
    /// Serving failed.
    #[error(transparent)]
    Serve(ServeError),
}

/// Serves one client, until it goes away or a signal ends us. `block` has the keys of the
/// configuration. Where it names no root, the client is asked for its own, and the working directory is
/// taken where it has none.
///
/// # Errors
/// [`McpError`].
pub fn run(block: Payload, structured: Structured) -> Result<(), McpError> {
    let setup = |what| move |source| McpError::Setup { what, source };
    let host_env = HostEnv::of_this_process(COOKIE_KEY).map_err(setup("the working directory"))?;
    let feed = log().map_err(setup("standard error"))?;
    let provider = backend::provider();
    let names_roots = ROOTS.iter().any(|key| block.contains_key(*key));
    let config = decode(&block, names_roots, &host_env)?;
    let roots = match names_roots {
        true => Roots::Given(block),
        false => Roots::Asked(block_of(block, host_env)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(setup("the runtime"))?;
    let served = runtime.block_on(async {
        let stop = stop().map_err(setup("signals"))?;
        let settings = settings(structured, config.network);
        let served = mcp::serve(Arc::new(provider), settings, roots, feed, mcp::stdio(), stop);
        served.await.map_err(|error| match error {
            ServeError::Configuration(error) => McpError::Configuration(error),
            error => McpError::Serve(error),
        })
    });
    // A thread may wait for a client that says nothing more.
    runtime.shutdown_background();
    served
}

/// What is wrong with the configuration, as far as the roots do not matter: before a client is served.
fn decode(
    block: &Payload,
    names_roots: bool,
    host_env: &HostEnv,
) -> Result<Config, ConfigureError> {
    let mut block = block.clone();
    if !names_roots {
        block.insert("roots".to_owned(), vec![Value::from(".")].into());
    }
    Config::decode(&block, host_env)
}

fn settings(structured: Structured, network: Network) -> Settings {
    Settings {
        name: "provider-workspace",
        version: identity::VERSION,
        title: "Workspace: files, search and shell",
        structured,
        // A command that may do anything goes where the network lets it.
        open_world: Box::new(move |spec| network == Network::Allow && spec.risk == RiskClass::High),
    }
}

/// The configuration for the roots of a client.
fn block_of(block: Payload, host_env: HostEnv) -> BlockOf {
    Box::new(move |mut roots| {
        if roots.is_empty() {
            roots.push(working_directory(&host_env)?);
        }
        let mut block = block.clone();
        block.insert("roots".to_owned(), roots.into());
        Ok(block)
    })
}

/// The directory that is meant where nobody names one.
///
/// # Errors
/// For one that nobody can have meant: many clients start their servers in `/` or in the home directory.
fn working_directory(host_env: &HostEnv) -> Result<String, String> {
    let refused = |why: &str| {
        format!(
            "neither the command line nor the client names a root, and {why}: start this server with --root DIR"
        )
    };
    let Some(directory) = &host_env.current_directory else {
        return Err(refused("the working directory was deleted"));
    };
    let shown = directory.display();
    if directory == Path::new("/") {
        return Err(refused("the working directory is /"));
    }
    if home(host_env).is_some_and(|home| home.starts_with(directory)) {
        return Err(refused(&format!(
            "the working directory {shown} is or holds the home directory"
        )));
    }
    directory
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| refused(&format!("the working directory {shown} is not UTF-8")))
}

/// The home directory, where it really is.
#[expect(clippy::disallowed_methods, reason = "it is compared, and nothing in it is touched")]
fn home(host_env: &HostEnv) -> Option<PathBuf> {
    let home = PathBuf::from(host_env.variables.get(std::ffi::OsStr::new("HOME"))?);
    Some(home.canonicalize().unwrap_or(home))
}

/// Sends what is logged to standard error, as lines of hclog, and to the client.
fn log() -> io::Result<LogFeed> {
    let sink = hclog::Sink::stderr()?;
    let name = "provider-workspace";
    hclog::install_panic_hook(sink.clone(), name);
    let (client, feed) = Log::new();
    let chosen = log_level();
    let level = *chosen.as_ref().unwrap_or(&LevelFilter::INFO);
    let log = HostLog::new(move |record| {
        sink.entry(&hclog::Entry {
            module: name,
            level: record.level,
            time: record.time,
            message: &record.message,
            fields: &record.fields,
        });
        // Of the connection itself no client is told over that connection.
        if !record.target.starts_with(SDK) {
            client.push(LogEntry {
                level: record.level,
                message: record.message.clone(),
                fields: record.fields.clone(),
            });
        }
    });
    // The SDK logs whole messages, and with them what no log may have.
    let targets = hclog::targets().with_target(SDK, LevelFilter::ERROR);
    let registry = tracing_subscriber::registry();
    // A second call of this in one process keeps the first one's log.
    registry.with(level).with(targets).with(log.layer()).try_init().ok();
    if let Err(problem) = chosen {
        tracing::warn!("{problem}");
    }
    Ok(feed)
}

/// The SDK's target.
const SDK: &str = "rmcp";

/// Over when a signal asks for the end, nobody reads the answers, or the process that launched us is gone:
/// its end of standard input may be held by another.
fn stop() -> io::Result<impl Future<Output = ()>> {
    // A write beyond a file size limit fails instead of killing the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::take(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    Ok(async move {
        tokio::select! {
            () = signals.recv() => {}
            () = launcher_gone() => {}
            () = mcp::reader_gone() => {}
        }
    })
}

/// Waits for the end of the process that launched us; for ever where nothing tells of it.
async fn launcher_gone() {
    let Some(launcher) = getppid() else { return std::future::pending().await };
    let watch = ProcessWatch::new(launcher);
    // It may have ended before the handle was taken, and another taken its place.
    if getppid() != Some(launcher) {
        return;
    }
    match watch {
        Ok(watch) if watch.ended().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_directory(directory: &str) -> HostEnv {
        HostEnv {
            variables: [("HOME".into(), "/home/dev".into())].into(),
            current_directory: Some(directory.into()),
            handshake_variable: "COOKIE",
        }
    }

    #[test]
    fn the_root_and_what_holds_the_home_directory_are_not_taken_by_default() {
        for refused in ["/", "/home", "/home/dev"] {
            let message = working_directory(&in_directory(refused)).expect_err(refused);
            assert!(message.contains("--root DIR"), "{message}");
        }
        for taken in ["/home/dev/project", "/home/developer", "/srv"] {
            assert_eq!(working_directory(&in_directory(taken)).as_deref(), Ok(taken));
        }
    }

    #[test]
    fn a_clients_roots_come_before_the_working_directory() {
        let block_of = block_of(Payload::new(), in_directory("/srv"));
        assert_eq!(
            block_of(vec!["/a".into(), "/b".into()]).unwrap()["roots"],
            serde_json::json!(["/a", "/b"])
        );
        assert_eq!(block_of(Vec::new()).unwrap()["roots"], serde_json::json!(["/srv"]));
    }
}
