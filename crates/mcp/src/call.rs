//! One call: from the client's request to what its model reads.

use futures_util::StreamExt as _;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;
use tool_provider::{Call, EventStream, Outcome, Partials, Provider, State, StreamItem};

use crate::Structured;
use crate::progress::Progress;

/// Runs a call to its end, or until the client cancels it.
///
/// # Errors
/// A cancelled call's, which nobody gets to see.
pub(crate) async fn run<S: State>(
    provider: &Provider<S>,
    session_id: &str,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
    structured: Structured,
) -> Result<CallToolResult, ErrorData> {
    let tool = request.name.into_owned();
    let mut progress =
        context.meta.get_progress_token().map(|token| Progress::new(context.peer.clone(), token));
    let stream = provider.invoke(Call {
        id: context.id.to_string(),
        tool: tool.clone(),
        arguments: request.arguments.unwrap_or_default(),
        session_id: session_id.to_owned(),
        // The result has all of it once more.
        partials: Partials::Unread,
        // The tool's own deadline holds: the protocol has none.
        ..Call::default()
    });
    let outcome = tokio::select! {
        outcome = follow(stream, progress.as_mut()) => outcome,
        // Dropping the stream cancels the call.
        () = context.ct.cancelled() => return Err(cancelled()),
    };
    Ok(match outcome {
        Ok(payload) => {
            let text = provider.plain_text(&tool, &payload);
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            if structured == Structured::Yes {
                result.structured_content = Some(Value::Object(payload));
            }
            result
        }
        Err(error) => failed(&error.whole_message()),
    })
}

async fn follow(mut stream: EventStream, mut progress: Option<&mut Progress>) -> Outcome {
    while let Some(item) = stream.next().await {
        match item {
            StreamItem::Event(event) => {
                if let Some(progress) = &mut progress {
                    progress.report(event).await;
                }
            }
            StreamItem::Outcome(outcome) => return outcome,
        }
    }
    Err(tool_provider::ToolError::unknown("the call ended without an answer", ""))
}

/// A call's failure, which a model reads: the message alone is enough.
pub(crate) fn failed(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// What nobody reads: a cancelled request has no answer.
pub(crate) fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
