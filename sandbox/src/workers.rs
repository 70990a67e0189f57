//! The file workers: plain threads in their own Landlock domain, never more than the policy allows.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A piece of file work. It runs on a plain thread that carries no async runtime.
pub type FileJob = Box<dyn FnOnce() + Send>;

/// Confines the calling thread for ever.
pub(crate) type Confine = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Why a job was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The worker thread could not be started.
    #[error("cannot start a file worker")]
    Worker(#[source] io::Error),
    /// The worker thread could not be confined, so that it must not run anything.
    #[error("cannot confine a file worker")]
    Confine(#[source] io::Error),
}

/// How long an idle worker waits for a job before it exits.
const IDLE: Duration = Duration::from_secs(10);

/// How long a worker spins for its next job before it sleeps.
const LINGER: Duration = Duration::from_micros(200);

/// The workers. Dropping them lets running jobs end.
pub(crate) struct Workers(Arc<Pool>);

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("most", &self.0.most).finish_non_exhaustive()
    }
}

struct Pool {
    state: Mutex<State>,
    wake: Condvar,
    /// Jobs in the queue, to look at without the lock. A hint: the queue decides.
    queued: AtomicUsize,
    /// Whether a worker looks for its next job: one is enough.
    lingering: AtomicBool,
    processors: usize,
    most: usize,
    confine: Confine,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<FileJob>,
    running: usize,
    workers: usize,
    /// Workers that wait to be woken.
    asleep: usize,
    closed: bool,
}

impl Workers {
    /// A pool of at most `most` workers. The first is started at once, so that a machine that
    /// cannot confine it is found out here and not at the first job.
    pub(crate) fn new(most: usize, confine: Confine) -> Result<Self, SubmitError> {
        let state = Mutex::new(State { workers: 1, ..State::default() });
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let pool = Pool {
            state,
            wake: Condvar::new(),
            queued: AtomicUsize::new(0),
            lingering: AtomicBool::new(false),
            processors,
            most: most.max(1),
            confine,
        };
        let workers = Self(Arc::new(pool));
        workers.start(None)?;
        Ok(workers)
    }

    /// See [`Jail::submit`](crate::Jail::submit). A worker counts as busy until a moment after its
    /// job returned.
    pub(crate) fn submit(&self, job: FileJob) -> Result<(), SubmitError> {
        let mut state = self.0.lock();
        if state.running + state.jobs.len() < state.workers || state.workers >= self.0.most {
            state.jobs.push_back(job);
            self.0.queued.fetch_add(1, Ordering::Relaxed);
            // Waking is a system call also where nobody sleeps. A worker that is up looks at the
            // queue, under this lock, before it goes to sleep.
            let up = state.workers - state.running - state.asleep;
            let must_wake = state.asleep > 0 && state.jobs.len() > up;
            drop(state);
            if must_wake {
                self.0.wake.notify_one();
            }
            return Ok(());
        }
        state.workers += 1;
        state.running += 1;
        drop(state);
        let started = self.start(Some(job));
        if started.is_err() {
            let mut state = self.0.lock();
            state.workers -= 1;
            state.running -= 1;
        }
        started
    }

    /// Starts a worker with its first job. The job runs only where the thread is confined.
    fn start(&self, job: Option<FileJob>) -> Result<(), SubmitError> {
        let pool = self.0.clone();
        let (say, hear) = sync_channel(1);
        let work = move || {
            let confined = (pool.confine)();
            let works = confined.is_ok();
            // The caller waits for this answer, so that it cannot be lost.
            let _ = say.send(confined);
            if works {
                pool.work(job);
            }
        };
        thread::Builder::new()
            .name("file-worker".to_owned())
            .spawn(work)
            .map_err(SubmitError::Worker)?;
        match hear.recv() {
            Ok(confined) => confined.map_err(SubmitError::Confine),
            Err(_) => Err(SubmitError::Confine(io::Error::other("the thread died"))),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `first`, which is counted as running already, and then what comes.
    fn work(&self, first: Option<FileJob>) {
        let mut state = match first {
            Some(job) => self.run(job),
            None => self.lock(),
        };
        loop {
            if let Some(job) = state.jobs.pop_front() {
                self.queued.fetch_sub(1, Ordering::Relaxed);
                state.running += 1;
                drop(state);
                state = self.run(job);
                continue;
            }
            if state.closed {
                break;
            }
            drop(state);
            self.linger();
            state = self.lock();
            if !state.jobs.is_empty() || state.closed {
                continue;
            }
            state.asleep += 1;
            let (woken, timeout) =
                self.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.asleep -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.workers -= 1;
    }

    /// Spins for a moment after a job: calls come in bursts, and waking a thread costs more than
    /// the work of a short call. Spins for at most [`LINGER`], on one worker at a time, and only
    /// with a second processor, which the thread that submits the next job needs. Yields between
    /// looks, so that thread can also run on this processor.
    fn linger(&self) {
        if self.processors < 2 || self.lingering.swap(true, Ordering::Relaxed) {
            return;
        }
        let start = Instant::now();
        while self.queued.load(Ordering::Relaxed) == 0 && start.elapsed() < LINGER {
            thread::yield_now();
        }
        self.lingering.store(false, Ordering::Relaxed);
    }

    /// Runs a job. A panic does not end the worker; the waiting caller sees its channel
    /// close.
    fn run(&self, job: FileJob) -> MutexGuard<'_, State> {
        let _ = catch_unwind(AssertUnwindSafe(job));
        let mut state = self.lock();
        state.running -= 1;
        state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_panic_costs_no_worker() {
        let workers = Workers::new(1, Box::new(|| Ok(()))).unwrap();
        let (say, hear) = channel();
        for round in 0..3 {
            let say = say.clone();
            let job = move || {
                say.send(round).unwrap();
                drop(say);
                std::panic::resume_unwind(Box::new(()));
            };
            workers.submit(Box::new(job)).unwrap();
            assert_eq!(hear.recv().unwrap(), round);
        }
    }

    #[test]
    fn no_job_runs_on_a_thread_that_cannot_be_confined() {
        let refuse = Box::new(|| Err(io::Error::from_raw_os_error(libc::EPERM)));
        let refused = Workers::new(1, refuse).err();
        assert!(matches!(refused, Some(SubmitError::Confine(_))), "{refused:?}");
    }

    #[test]
    fn more_jobs_than_workers_wait_for_their_turn_on_no_more_threads() {
        const WORKERS: usize = 2;
        let workers = Workers::new(WORKERS, Box::new(|| Ok(()))).unwrap();
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap();
        let (say, hear) = channel();
        for number in 0..10 {
            let (gate, say) = (gate.clone(), say.clone());
            let job = move || {
                drop(gate.lock().unwrap());
                say.send((number, thread::current().id())).unwrap();
            };
            workers.submit(Box::new(job)).unwrap();
        }
        assert!(hear.try_recv().is_err());
        drop(closed);
        // What waits runs, also when nothing more is submitted.
        drop((workers, say));
        let (mut numbers, threads): (Vec<_>, HashSet<_>) = hear.iter().unzip();
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(0..10));
        assert!(threads.len() <= WORKERS, "{threads:?}");
    }
}
