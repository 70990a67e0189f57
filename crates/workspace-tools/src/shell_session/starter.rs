//! Starts sessions on a thread that is not confined: the one of a call is, and opens no terminal.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// The thread, which ends with this.
pub(crate) struct Starter(SyncSender<Box<dyn FnOnce() + Send>>);

impl Starter {
    pub(crate) fn new() -> io::Result<Self> {
        let (jobs, asked) = sync_channel::<Box<dyn FnOnce() + Send>>(0);
        let serve = move || asked.into_iter().for_each(|job| job());
        thread::Builder::new()
            .name("session-start".to_owned())
            .stack_size(256 * 1024)
            .spawn(serve)?;
        Ok(Self(jobs))
    }

    /// Runs `job` there, and waits for it. `None` where the thread is gone.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = sync_channel(1);
        let job = move || {
            // Nobody waits only where the caller panicked.
            let _ = answer.send(job());
        };
        self.0.send(Box::new(job)).ok()?;
        answered.recv().ok()
    }
}
