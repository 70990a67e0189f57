//! The directories that the client names, and the configuration that comes of them.
#![expect(deprecated, reason = "the newest version drops roots; clients of the others name them")]

use std::sync::Arc;
use std::time::Duration;

use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot, watch};
use tool_provider::{ConfigureError, Payload, Provider, State, ToolError};

/// The directories that a client names, as absolute paths. Empty where it names none.
pub type ClientRoots = Vec<String>;

/// The configuration's block for the directories of the client.
///
/// # Errors
/// Why there is none, with a remedy: every call fails with it.
pub type BlockOf = Box<dyn Fn(ClientRoots) -> Result<Payload, String> + Send + Sync>;

/// Who names the directories.
pub enum Roots {
    /// The configuration. The provider is configured with this block while the client says hello; calls
    /// wait for it.
    Given(Payload),
    /// The client, where it does: it is asked, again whenever it says that they changed, and the
    /// provider is configured with the answer. Calls wait for the first one.
    Asked(BlockOf),
}

/// Whether calls may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The client's directories are not known yet.
    Waiting,
    /// A configuration is in force.
    Ready,
    /// The client's directories cannot be used, and those before are no longer meant.
    Refused(String),
}

/// How long the client may take to name its directories.
const ROOTS_LIMIT: Duration = Duration::from_secs(10);

/// Configures the provider whenever the client's directories change.
pub(crate) struct Keeper<S> {
    pub(crate) provider: Arc<Provider<S>>,
    pub(crate) block_of: BlockOf,
    pub(crate) readiness: watch::Sender<Readiness>,
    /// A client to ask.
    pub(crate) asked: mpsc::Receiver<Peer<RoleServer>>,
}

impl<S: State> Keeper<S> {
    /// Works until nobody can ask any more. `configured` is told of each change.
    pub(crate) async fn run(mut self, configured: impl AsyncFn(&Peer<RoleServer>)) {
        while let Some(peer) = self.asked.recv().await {
            let readiness = match self.configure(&peer).await {
                Ok(()) => Readiness::Ready,
                Err(message) => {
                    tracing::error!("{message}");
                    self.withdraw().await;
                    Readiness::Refused(message)
                }
            };
            configured(&peer).await;
            // Where the client is to be asked once more already, this answer is old.
            if self.asked.is_empty() {
                self.readiness.send_replace(readiness);
            }
        }
    }

    /// Ends what runs under the directories that are no longer meant.
    async fn withdraw(&self) {
        let provider = self.provider.clone();
        // A fault in there is in the log.
        let _ = tokio::task::spawn_blocking(move || provider.withdraw()).await;
    }

    async fn configure(&self, peer: &Peer<RoleServer>) -> Result<(), String> {
        let block = (self.block_of)(directories(peer).await?)?;
        configure(&self.provider, block).await.map_err(|error| match error {
            ConfigureFailure::Refused(error) => format!("the configuration was refused: {error}"),
            ConfigureFailure::Fault(error) => error.whole_message().into_owned(),
        })
    }
}

/// Why no configuration is in force.
pub(crate) enum ConfigureFailure {
    /// It is not accepted.
    Refused(ConfigureError),
    /// It was not read to its end.
    Fault(ToolError),
}

/// Configures the provider beside everything else.
pub(crate) async fn configure<S: State>(
    provider: &Arc<Provider<S>>,
    block: Payload,
) -> Result<(), ConfigureFailure> {
    let (say, answered) = oneshot::channel();
    let answer = move |outcome| {
        // The client may be gone.
        let _ = say.send(outcome);
    };
    provider.clone().configure_beside(block, answer).map_err(ConfigureFailure::Fault)?;
    match answered.await {
        Ok(outcome) => outcome.map_err(ConfigureFailure::Refused),
        Err(lost) => {
            let error = ToolError::unknown("a fault ended the configuration", lost.to_string());
            Err(ConfigureFailure::Fault(error))
        }
    }
}

/// What the client answers to `roots/list`; empty where it does not know that request.
async fn directories(peer: &Peer<RoleServer>) -> Result<ClientRoots, String> {
    let names_roots = peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
    if !names_roots {
        return Ok(ClientRoots::new());
    }
    let unknown = |why: String| {
        format!("the client did not name its roots ({why}): start this server with --root DIR")
    };
    let listed = tokio::time::timeout(ROOTS_LIMIT, peer.list_roots()).await;
    let listed =
        listed.map_err(|_| unknown(format!("no answer in {} s", ROOTS_LIMIT.as_secs())))?;
    let listed = listed.map_err(|error| unknown(error.to_string()))?;
    let directory = |uri: &str| {
        path_of(uri).ok_or_else(|| {
            format!(
                "the client names {uri:?} as a root, which is no file:// address of a directory \
                 here: start this server with --root DIR"
            )
        })
    };
    listed.roots.iter().map(|root| directory(&root.uri)).collect()
}

/// The path that a `file:` address of this machine names (RFC 8089).
fn path_of(uri: &str) -> Option<String> {
    let rest =
        uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).map(|_| &uri[7..])?;
    let path = match rest.strip_prefix("localhost") {
        Some(path) if path.starts_with('/') => path,
        _ => rest,
    };
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_a_path_and_no_other_is() {
        let path = |uri| path_of(uri);
        assert_eq!(path("file:///w/a%20b%C3%A9").as_deref(), Some("/w/a bé"));
        assert_eq!(path("FILE://localhost/w").as_deref(), Some("/w"));
        assert_eq!(path("file:///").as_deref(), Some("/"));
        for other in [
            "",
            "file:",
            "file://",
            "file://w",
            "file://host/w",
            "file:///w%2",
            "file:///w%zz",
            "file:///w?x",
            "file:///w%00",
            "file:///%ff",
            "https://w/",
            "/w",
            "fil\u{e9}:///w",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
