//! One client, from its first message to its end.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::service::ServerInitializeError;
use rmcp::{Peer, RoleServer, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, watch};
use tool_provider::{ConfigureError, Provider, State, ToolError, ToolSpec};

use crate::handler::{AskOnce, Handler, Listed, tools_of};
use crate::log::{LogFeed, Threshold};
use crate::roots::{ConfigureFailure, Keeper, Readiness, Roots, configure};
use crate::transport::LineTransport;

/// How long the calls have to end once the client is gone.
const END_LIMIT: Duration = Duration::from_secs(2);
/// How long their last answers have to be written.
const LAST_WRITES: Duration = Duration::from_millis(200);

/// What an operator chooses of a server.
pub struct Settings {
    /// The server's name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Whether results have JSON beside the text.
    pub structured: Structured,
    /// Whether a tool reaches what lies outside of this machine.
    pub open_world: Box<dyn Fn(&ToolSpec) -> bool + Send + Sync>,
}

/// Whether results have JSON beside the text, and tools a schema for it. Some clients give their model
/// the JSON then and drop the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// They have text alone.
    #[default]
    No,
    /// They have both.
    Yes,
}

/// Why serving ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration is not accepted.
    #[error(transparent)]
    Configuration(ConfigureError),
    /// The configuration was not read to its end.
    #[error("cannot configure the tools")]
    Fault(#[source] ToolError),
    /// The client and this server found no way to begin.
    #[error("the client could not be served")]
    Begin(#[source] Box<ServerInitializeError>),
}

/// Serves one client on a pair of streams until it goes away or `stop` is over. Then the calls are
/// cancelled, and what they started is gone when this returns.
///
/// # Errors
/// [`ServeError`].
pub async fn serve<S: State>(
    provider: Arc<Provider<S>>,
    settings: Settings,
    roots: Roots,
    log: LogFeed,
    (input, output): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let gone = Arc::new(Notify::new());
    let transport = LineTransport::new(input, output, gone.clone());
    let (readiness, ready) = watch::channel(Readiness::Waiting);
    let settings = Arc::new(settings);
    let listed = Listed::new(tools_of(&provider, &settings));
    let configured = {
        let (provider, settings, listed) = (provider.clone(), settings.clone(), listed.clone());
        move || listed.replace(tools_of(&provider, &settings))
    };
    let (keeper, given) = match roots {
        Roots::Given(block) => (None, Some(block)),
        Roots::Asked(block_of) => {
            let (asks, asked) = mpsc::channel(1);
            let (provider, readiness) = (provider.clone(), readiness.clone());
            let keeper = Keeper { provider, block_of, readiness: readiness.clone(), asked };
            let configured = configured.clone();
            tokio::spawn(keeper.run(async move |peer: &Peer<RoleServer>| {
                // A client without a handshake is told on its subscription alone.
                if configured() && peer.peer_info().is_some() {
                    // One that is gone needs no word.
                    let _ = peer.notify_tool_list_changed().await;
                }
            }));
            (Some(AskOnce { asks, asked: AtomicBool::new(false), readiness }), None)
        }
    };
    // Over when the configuration is not accepted.
    let refused = async {
        if let Some(block) = given {
            configure(&provider, block).await?;
            configured();
            readiness.send_replace(Readiness::Ready);
        }
        std::future::pending::<Result<(), ConfigureFailure>>().await
    };
    let handler = Handler {
        provider: provider.clone(),
        settings,
        session_id: format!("mcp-{}", std::process::id()),
        listed,
        readiness: ready,
        keeper,
        log: Mutex::new(Some(log)),
        threshold: Threshold::default(),
    };
    let ended = async {
        let running = match handler.serve(transport).await {
            Ok(running) => running,
            // It went away before it began.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Begin(Box::new(error))),
        };
        // However the connection ended, it is over.
        let _ = running.waiting().await;
        Ok(())
    };
    tokio::pin!(ended);
    let early = tokio::select! {
        outcome = &mut ended => Some(outcome),
        () = gone.notified() => None,
        () = stop => None,
        Err(failure) = refused => Some(Err(match failure {
            ConfigureFailure::Refused(error) => ServeError::Configuration(error),
            ConfigureFailure::Fault(error) => ServeError::Fault(error),
        })),
    };
    let end = tokio::time::timeout(END_LIMIT, provider.shut_down());
    match early {
        Some(outcome) => {
            let _ = end.await;
            outcome
        }
        None => {
            // The answers of the calls are still written, by tasks of their own.
            let _ = end.await;
            // A client that reads nothing any more is not waited for.
            let _ = tokio::time::timeout(LAST_WRITES, ended).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
