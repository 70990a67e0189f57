//! Clearing away what killed processes left in the roots, when a configuration comes into force.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::configured::Configured;
use workspace_fs::{Budget, Swept};

/// How long a Configure waits for the sweep. In all but the largest trees it is over by then, so that
/// the first call finds the roots clean; else it goes on beside the calls.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Sweeps the roots, on a file worker like all file work.
pub(crate) fn sweep(configured: &Arc<Configured>) {
    let (say, hear) = sync_channel(1);
    let held = configured.clone();
    let job = move || {
        log(&held.workspace.sweep_leftovers(Budget::default()));
        // Nobody may be waiting any more.
        let _ = say.send(());
    };
    match configured.jail.submit(Box::new(job)) {
        Ok(()) => drop(hear.recv_timeout(LONGEST_WAIT)),
        Err(refusal) => tracing::warn!(%refusal, "the roots are not swept"),
    }
}

fn log(swept: &Swept) {
    let Swept { removed, restored, is_partial } = swept;
    if *is_partial {
        tracing::debug!("the roots are too large to be swept to the end");
    }
    if *removed > 0 {
        let restored: Vec<_> = restored.iter().map(PathBuf::as_path).collect();
        tracing::info!(removed, ?restored, "cleared away what a killed process left");
    }
}
