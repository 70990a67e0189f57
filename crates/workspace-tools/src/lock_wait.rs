//! Waiting for the lock of a file, for as long as the call goes on.

use workspace_fs::{Fault, LONGEST_WAIT, Wait, WorkspaceError};

use crate::Context;
use crate::classify::classify;
use tool_provider::ToolError;

/// Does something that waits for a file's lock, at most 10 s and at most until the call has to end.
///
/// # Errors
/// As `action`; `cancelled` or `timeout` when the call ended the wait.
pub(crate) fn waiting<T>(
    context: &Context<'_>,
    action: impl FnOnce(Wait<'_>) -> Result<T, WorkspaceError>,
) -> Result<T, ToolError> {
    let should_stop = || context.check().is_err();
    action(Wait { limit: LONGEST_WAIT, should_stop: &should_stop })
        .map_err(|error| unless_ended(error, context))
}

/// The failure, or what ended the call where that is why the work was stopped.
pub(crate) fn unless_ended(error: WorkspaceError, context: &Context<'_>) -> ToolError {
    match (&*error.fault, context.check()) {
        (Fault::Stopped, Err(ended)) => ended,
        _ => classify(error),
    }
}
