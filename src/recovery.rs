//! Removes what killed processes left in the roots, when a configuration comes into force.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tool_provider::Workers;
use workspace_fs::{Kept, Recovered, Workspace};

/// How long a Configure waits, so that the first call finds the roots clean. It takes as long as
/// looking at a few files that are named; one on a network may be slow, and then it goes on beside the
/// calls.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Clears away what the journals of dead processes list, on a file worker like all file work.
pub(crate) fn recover(workspace: &Arc<Workspace>, workers: &dyn Workers) {
    let (say, hear) = sync_channel(1);
    let held = workspace.clone();
    let job = move || {
        log(&held.recover());
        // Nobody may be waiting any more.
        let _ = say.send(());
    };
    match workers.submit(Box::new(job)) {
        Ok(()) => drop(hear.recv_timeout(LONGEST_WAIT)),
        Err(refusal) => tracing::warn!(%refusal, "what killed processes left is not cleared away"),
    }
}

fn log(recovered: &Recovered) {
    let Recovered { removed, restored, kept, waiting } = recovered;
    for Kept { file, copy, reason } in kept {
        tracing::warn!(
            file = %file.display(),
            copy = %copy.display(),
            %reason,
            "a process was killed while it wrote this file in place; its old content is kept in the \
             copy"
        );
    }
    if *removed > 0 || !restored.is_empty() {
        let restored: Vec<_> = restored.iter().map(PathBuf::as_path).collect();
        tracing::info!(removed, ?restored, "cleared away what a killed process left");
    }
    if *waiting > 0 {
        tracing::debug!(waiting, "killed processes left more outside the roots");
    }
}
