//! The spawner of a jail, and the next one when mounts of its namespaces no longer stand.
//!
//! A spawner is under Landlock and mounts nothing any more, so new mounts need a new one, with the same
//! private directories. Calls of the earlier one go on. It ends after the last of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::command::{Command, Running, StartError};
use crate::launcher::{Spawner, SpawnerError};
use crate::plan::{Plan, Ready};
use crate::policy::Limits;
use crate::private::PrivateDirs;
use crate::protected::{self, Mounted};

/// How long a call waits for the next spawner. The last one serves it where that takes longer.
const LONGEST_START: Duration = Duration::from_secs(5);

/// The spawners of one jail.
#[derive(Debug)]
pub(crate) struct Spawners {
    current: Mutex<Arc<Spawner>>,
    /// What is mounted read-only.
    mounted: Mutex<BTreeMap<PathBuf, Mounted>>,
    /// `None` where nothing is mounted.
    starter: Option<Starter>,
}

/// What it takes to start the next spawner.
#[derive(Debug)]
struct Starter {
    program: PathBuf,
    /// Without what is protected.
    plan: Plan,
    dirs: Arc<PrivateDirs>,
    /// To the thread that starts it: those of file jobs may not execute anything. `None` once a start
    /// has failed.
    requests: Mutex<Option<SyncSender<Request>>>,
}

struct Request {
    program: PathBuf,
    plan: Plan,
    dirs: Arc<PrivateDirs>,
    answer: SyncSender<Result<(Spawner, Ready), SpawnerError>>,
}

impl Spawners {
    /// One spawner, without namespaces.
    pub(crate) fn single(spawner: Spawner) -> Self {
        Self { current: Mutex::new(Arc::new(spawner)), mounted: Mutex::default(), starter: None }
    }

    /// Starts a spawner in namespaces, with read-only mounts of `paths`.
    pub(crate) fn start(
        program: &Path,
        plan: &Plan,
        dirs: PrivateDirs,
        paths: &[PathBuf],
    ) -> Result<(Self, Ready), SpawnerError> {
        let dirs = Arc::new(dirs);
        let mut mounted = Mounted::at(paths);
        let (spawner, ready) = Spawner::start(program, &with(plan, paths), dirs.clone())?;
        mounted.retain(|_, mounted| mounted.stands());
        // Without the thread the mounts stay as they are.
        let requests = Mutex::new(starter_thread());
        let starter = Starter { program: program.to_owned(), plan: plan.clone(), dirs, requests };
        let spawners = Self {
            current: Mutex::new(Arc::new(spawner)),
            mounted: Mutex::new(mounted),
            starter: Some(starter),
        };
        Ok((spawners, ready))
    }

    /// Starts a command and returns when its program runs.
    pub(crate) fn call(&self, command: Command, limits: Limits) -> Result<Running, StartError> {
        let spawner = held(&self.current).clone();
        spawner.call(command, limits)
    }

    /// Whether there are namespaces to mount anything in.
    pub(crate) fn mounts(&self) -> bool {
        self.starter.is_some()
    }

    /// Whether a read-only mount of what is at `path` now stands for the next command.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        held(&self.mounted).get(path).is_some_and(Mounted::stands)
    }

    /// Has the next commands find `paths` mounted read-only, and nothing else. False where that cannot
    /// be had: then everything is as it was.
    pub(crate) fn protect(&self, paths: &[PathBuf]) -> bool {
        let Some(starter) = &self.starter else { return false };
        let mut mounted = Mounted::at(paths);
        let Some(spawner) = starter.start(paths) else { return false };
        mounted.retain(|_, mounted| mounted.stands());
        let earlier = std::mem::replace(&mut *held(&self.current), Arc::new(spawner));
        *held(&self.mounted) = mounted;
        drop(earlier);
        true
    }

    /// Lets the spawner end after its last call. Waits for it if no call runs.
    pub(crate) fn close(self) {
        // The spawner's end removes the directories, if nobody else has them.
        drop(self.starter);
        let spawner = self.current.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(spawner) = Arc::into_inner(spawner) {
            spawner.close();
        }
    }
}

impl Starter {
    fn start(&self, paths: &[PathBuf]) -> Option<Spawner> {
        let mut requests = held(&self.requests);
        let (answer, answered) = sync_channel(1);
        let request = Request {
            program: self.program.clone(),
            plan: with(&self.plan, paths),
            dirs: self.dirs.clone(),
            answer,
        };
        requests.as_ref()?.send(request).ok()?;
        match answered.recv_timeout(LONGEST_START) {
            Ok(Ok((spawner, _))) => Some(spawner),
            // What the machine refuses once is not asked for before each call.
            Ok(Err(_)) | Err(_) => {
                *requests = None;
                None
            }
        }
    }
}

fn with(plan: &Plan, paths: &[PathBuf]) -> Plan {
    let mut plan = plan.clone();
    protected::add(&mut plan, paths);
    plan
}

/// A thread that starts spawners, and ends with the sender.
fn starter_thread() -> Option<SyncSender<Request>> {
    let (requests, asked) = sync_channel::<Request>(0);
    let serve = move || {
        for Request { program, plan, dirs, answer } in asked {
            // Nobody waits any more if it took too long: then it ends with its socket.
            let _ = answer.send(Spawner::start(&program, &plan, dirs));
        }
    };
    let thread = thread::Builder::new().name("spawner-start".to_owned()).stack_size(256 * 1024);
    thread.spawn(serve).ok().map(|_| requests)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
