//! What the SDK asks of a server, answered by the provider.
#![expect(
    deprecated,
    reason = "the newest version drops roots and log messages; clients of the others use them"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use tokio::sync::{mpsc, watch};
use tool_provider::{Provider, State};

use crate::call::{self, cancelled, failed};
use crate::log::{LogFeed, Threshold, carry};
use crate::roots::Readiness;
use crate::{Settings, tools};

/// One client's server.
pub(crate) struct Handler<S> {
    pub(crate) provider: Arc<Provider<S>>,
    pub(crate) settings: Arc<Settings>,
    /// What relates the calls of this connection.
    pub(crate) session_id: String,
    pub(crate) listed: Listed,
    pub(crate) readiness: watch::Receiver<Readiness>,
    /// Who configures the provider, where the client names directories.
    pub(crate) keeper: Option<AskOnce>,
    pub(crate) log: Mutex<Option<LogFeed>>,
    pub(crate) threshold: Threshold,
}

/// The tools as they were last listed. Clones share one.
#[derive(Clone)]
pub(crate) struct Listed(Arc<watch::Sender<Vec<Tool>>>);

impl Listed {
    pub(crate) fn new(tools: Vec<Tool>) -> Self {
        Self(Arc::new(watch::Sender::new(tools)))
    }

    /// Lists these from now on. Whether that changes anything.
    pub(crate) fn replace(&self, tools: Vec<Tool>) -> bool {
        self.0.send_if_modified(|listed| {
            let differs = *listed != tools;
            *listed = tools;
            differs
        })
    }
}

/// The way to who asks the client for its directories.
pub(crate) struct AskOnce {
    pub(crate) asks: mpsc::Sender<Peer<RoleServer>>,
    pub(crate) asked: AtomicBool,
    pub(crate) readiness: watch::Sender<Readiness>,
}

impl AskOnce {
    /// Has the client asked, unless it was.
    fn ask(&self, peer: &Peer<RoleServer>) {
        if !self.asked.swap(true, Ordering::Relaxed) {
            self.ask_again(peer);
        }
    }

    /// Has the client asked once more.
    fn ask_again(&self, peer: &Peer<RoleServer>) {
        // Calls that come from now on mean the new ones.
        self.readiness.send_replace(Readiness::Waiting);
        // Where one waits already, it will get the newest answer.
        let _ = self.asks.try_send(peer.clone());
    }
}

impl<S: State> Handler<S> {
    /// Waits until calls may run.
    ///
    /// # Errors
    /// Why none may.
    async fn ready(&self, peer: &Peer<RoleServer>) -> Result<(), String> {
        if let Some(keeper) = &self.keeper {
            keeper.ask(peer);
        }
        let mut readiness = self.readiness.clone();
        let known = readiness.wait_for(|readiness| *readiness != Readiness::Waiting).await;
        match known.as_deref() {
            Ok(Readiness::Refused(message)) => Err(message.clone()),
            Ok(Readiness::Ready | Readiness::Waiting) => Ok(()),
            Err(_) => Err("the server is shutting down".to_owned()),
        }
    }

    fn knows(&self, tool: &str) -> bool {
        self.listed.0.borrow().iter().any(|listed| listed.name == tool)
    }
}

impl<S: State> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let Settings { name, version, title, .. } = &*self.settings;
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(*name, *version).with_title(*title))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // A client that is asked for its roots may want the tools first.
        if self.keeper.is_none() {
            // Where it is refused the server ends.
            let _ = self.ready(&context.peer).await;
        }
        Ok(ListToolsResult::with_all_items(self.listed.0.borrow().clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let ready = tokio::select! {
            ready = self.ready(&context.peer) => ready,
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        if let Err(message) = ready {
            return Ok(failed(&message).into());
        }
        let is_known = self.knows(&request.name);
        let (session, structured) = (&self.session_id, self.settings.structured);
        let result = call::run(&self.provider, session, request, context, structured).await?;
        match (is_known, result.content.first().and_then(|content| content.as_text())) {
            // Not a tool's failure: the request cannot be routed.
            (false, Some(message)) => Err(ErrorData::invalid_params(message.text.clone(), None)),
            _ => Ok(result.into()),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.threshold.set(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let feed = self.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(feed) = feed {
            let (peer, threshold) = (context.peer.clone(), self.threshold.clone());
            tokio::spawn(carry(feed, peer, threshold, self.settings.name));
        }
        if let Some(keeper) = &self.keeper {
            keeper.ask(&context.peer);
        }
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if let Some(keeper) = &self.keeper {
            keeper.asked.store(true, Ordering::Relaxed);
            keeper.ask_again(&context.peer);
        }
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.listed.0.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    let sent = context.sink().notify_tool_list_changed();
                    if changed.is_err() || sent.await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// A request that the SDK does not know, or one whose parameters it cannot read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match method.as_str() {
            "initialize" | "tools/call" | "tools/list" | "logging/setLevel" => {
                ErrorData::invalid_params(format!("the parameters do not fit {method}"), None)
            }
            _ => {
                let shown: String = method.chars().take(64).collect();
                let message = format!("no method is called {shown:?}");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
            }
        })
    }
}

/// The tools that the provider has now.
pub(crate) fn tools_of<S: State>(provider: &Provider<S>, settings: &Settings) -> Vec<Tool> {
    tools::listed(&provider.schema(), settings)
}
