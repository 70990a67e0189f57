//! Hands work to the jail's file workers, now or in a moment.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox::{FileJob, Jail, SubmitError};

use super::running::too_many;
use crate::tools::ToolError;

/// How long work waits for a worker that is about to be free.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Work that can be offered to the workers more than once, and is done once.
pub(crate) struct Ticket<T>(Arc<Mutex<Option<T>>>);

impl<T: Send + 'static> Ticket<T> {
    pub(crate) fn new(work: T) -> Self {
        Self(Arc::new(Mutex::new(Some(work))))
    }

    /// The work, unless somebody has it already.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A job that does the work, unless somebody has it already.
    pub(crate) fn job(&self, run: impl FnOnce(T) + Send + 'static) -> FileJob {
        let ticket = Self(self.0.clone());
        Box::new(move || {
            if let Some(work) = ticket.take() {
                run(work);
            }
        })
    }
}

/// Offers a job until a worker takes it. There are more workers than calls are admitted, but a
/// worker counts as busy until a moment after its call has ended, and the next call may be faster.
///
/// # Errors
/// When none takes it for a long time, or none can be started.
pub(crate) async fn submit_soon(
    jail: &Jail,
    offer: impl Fn() -> FileJob,
) -> Result<(), SubmitError> {
    let limit = Instant::now() + LONGEST_WAIT;
    loop {
        match jail.submit(offer()) {
            Err(SubmitError::Busy { .. }) if Instant::now() < limit => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            submitted => return submitted,
        }
    }
}

/// The failure of a call that no worker took. `most` is how many calls are admitted.
pub(crate) fn refused(most: usize, refusal: SubmitError) -> ToolError {
    tracing::warn!(error = &refusal as &dyn Error, "no worker took a call");
    let code = match &refusal {
        SubmitError::Confine(source) => source.raw_os_error(),
        _ => None,
    };
    match (&refusal, code) {
        (SubmitError::Busy { .. }, _) => too_many(most),
        (SubmitError::Worker(_), _) => ToolError::too_many_calls(refusal.to_string())
            .with_hint("the machine has no thread left; try again later"),
        // Such as a lack of descriptors, which passes.
        (_, Some(code)) => {
            ToolError::from_io("confine a file worker", "", io::Error::from_raw_os_error(code))
        }
        (_, None) => ToolError::execution_failed(refusal.to_string()),
    }
    .with_source(refusal)
}
