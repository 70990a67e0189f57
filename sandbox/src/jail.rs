//! A built jail: its file workers, and what it achieved.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{Channels, Enforcement, Level, Policy};

/// A piece of file work. It runs on a plain thread that carries no async runtime.
pub type FileJob = Box<dyn FnOnce() + Send>;

/// A jail. Dropping it lets running jobs end.
pub struct Jail {
    enforcement: Enforcement,
    pool: Arc<Pool>,
}

/// Why a jail could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// A worker thread could not be started.
    #[error("cannot start a file worker")]
    Worker(#[source] io::Error),
}

/// Why a job was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Every worker is busy.
    #[error("all {workers} file workers are busy")]
    Busy {
        /// How many there are.
        workers: usize,
    },
    /// The worker thread could not be started.
    #[error("cannot start a file worker")]
    Worker(#[source] io::Error),
}

/// How long a worker waits for its next job before it ends.
const IDLE: Duration = Duration::from_secs(10);

struct Pool {
    state: Mutex<State>,
    wake: Condvar,
    most: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<FileJob>,
    idle: usize,
    workers: usize,
    closed: bool,
}

impl Jail {
    /// Builds the jail that `policy` asks for, as far as `policy.mode` insists on it.
    ///
    /// # Errors
    /// [`JailError`] when the policy cannot be enforced, or a thread or process cannot be started.
    pub fn build(policy: &Policy) -> Result<Self, JailError> {
        let enforcement = Enforcement {
            level: Level::Off,
            landlock_abi: None,
            channels: Channels::default(),
            left_open: vec!["this build enforces nothing yet".to_owned()],
        };
        let pool = Pool {
            state: Mutex::default(),
            wake: Condvar::new(),
            most: policy.file_workers.max(1),
        };
        Ok(Self { enforcement, pool: Arc::new(pool) })
    }

    /// What the kernel enforces for this jail.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Runs `job` on a file worker, soon and on its own thread. Returns without waiting.
    ///
    /// # Errors
    /// [`SubmitError`] when no worker is free and no more may be started.
    pub fn submit(&self, job: FileJob) -> Result<(), SubmitError> {
        let mut state = self.pool.lock();
        if state.idle > state.jobs.len() {
            state.jobs.push_back(job);
            drop(state);
            self.pool.wake.notify_one();
            return Ok(());
        }
        if state.workers >= self.pool.most {
            return Err(SubmitError::Busy { workers: self.pool.most });
        }
        let pool = self.pool.clone();
        thread::Builder::new()
            .name("file-worker".to_owned())
            .spawn(move || pool.work())
            .map_err(SubmitError::Worker)?;
        state.workers += 1;
        state.jobs.push_back(job);
        Ok(())
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.pool.lock().closed = true;
        self.pool.wake.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (woken, timeout) =
                self.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.workers -= 1;
    }
}
