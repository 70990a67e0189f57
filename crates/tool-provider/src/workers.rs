//! The threads on which tools run.

use std::thread;

use crate::ToolError;

/// A call or a preview, ready to run.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs on threads of its own. A provider that confines its tools brings threads that are
/// confined.
pub trait Workers: Send + Sync {
    /// Takes `job`, which runs soon: at once, or when a thread is free. Returns without waiting.
    ///
    /// # Errors
    /// When there is no thread for it. The job is dropped.
    fn submit(&self, job: Job) -> Result<(), ToolError>;
}

/// A thread for each job, for a provider that has nothing to confine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Workers for Threads {
    fn submit(&self, job: Job) -> Result<(), ToolError> {
        let started = thread::Builder::new().name("call".to_owned()).spawn(job);
        started.map(drop).map_err(|error| ToolError::from_io("start a thread", "", error))
    }
}
