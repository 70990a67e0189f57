//! The spawners of a jail: the one of most commands, the next one when mounts of its namespaces no longer
//! stand, and that of commands whose effects are discarded, which starts with the first of them.
//!
//! New mounts need a new spawner, with the same private directories. Calls of the earlier one go on. It ends
//! after the last of them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::command::{Command, Running, StartError};
use crate::launcher::{Spawner, SpawnerError};
use crate::plan::{Plan, Ready};
use crate::policy::{Limits, Namespaces, Surroundings};
use crate::private::PrivateDirs;
use crate::protected::{self, Mounted};
use crate::tmp_bound::TmpBound;

/// How long a call waits for the next spawner. The last one serves it where that takes longer.
const LONGEST_START: Duration = Duration::from_secs(5);

/// The spawners of one jail.
#[derive(Debug)]
pub(crate) struct Spawners {
    current: Mutex<Arc<Spawner>>,
    /// What is mounted read-only.
    mounted: Mutex<BTreeMap<PathBuf, Mounted>>,
    starter: Starter,
    throw_away: Mutex<Option<Arc<Spawner>>>,
    /// `None` where it could not be had.
    tmp_bound: Option<TmpBound>,
}

/// What it takes to start the next spawner.
#[derive(Debug)]
struct Starter {
    program: PathBuf,
    /// Without what is protected.
    plan: Plan,
    /// The plan for commands whose effects are discarded. `None` where the jail cannot promise that.
    throw_away: Option<Plan>,
    dirs: Arc<PrivateDirs>,
    /// To the thread that starts it: those of file jobs may not execute anything. `None` where there is
    /// none.
    requests: Mutex<Option<SyncSender<Request>>>,
    /// Whether new mounts could not be had.
    has_failed: AtomicBool,
}

struct Request {
    program: PathBuf,
    plan: Plan,
    dirs: Arc<PrivateDirs>,
    answer: SyncSender<Result<(Spawner, Ready), SpawnerError>>,
}

impl Spawners {
    /// Starts the first spawner: in namespaces with read-only mounts of `paths`.
    pub(crate) fn start(
        program: &Path,
        plan: &Plan,
        throw_away: Option<Plan>,
        dirs: PrivateDirs,
        paths: &[PathBuf],
    ) -> Result<(Self, Ready), SpawnerError> {
        let tmp_bound = dirs.tmp_handle().ok().and_then(TmpBound::start);
        let dirs = Arc::new(dirs);
        let mut mounted = Mounted::at(paths);
        let (spawner, ready) = Spawner::start(program, &with(plan, paths), dirs.clone())?;
        mounted.retain(|_, mounted| mounted.stands());
        // Without the thread the mounts stay as they are.
        let requests = Mutex::new(starter_thread());
        let (program, plan) = (program.to_owned(), plan.clone());
        let starter = Starter {
            program,
            plan,
            throw_away,
            dirs,
            requests,
            has_failed: AtomicBool::new(false),
        };
        let spawners = Self {
            current: Mutex::new(Arc::new(spawner)),
            mounted: Mutex::new(mounted),
            starter,
            throw_away: Mutex::default(),
            tmp_bound,
        };
        Ok((spawners, ready))
    }

    /// Starts a command and returns when its program runs.
    pub(crate) fn call(
        &self,
        surroundings: Surroundings,
        command: Command,
        limits: Limits,
    ) -> Result<Running, StartError> {
        let spawner = self.spawner(surroundings)?;
        let bound = self.tmp_bound.as_ref().filter(|_| surroundings == Surroundings::Shared);
        let bound = bound.and_then(|bound| Some((bound, bound.free()?)));
        let called = spawner.call(command, limits);
        if let Err(StartError::SpawnerGone(_)) = &called {
            // The next such command starts another one; the one that all others share stays as it is.
            held(&self.throw_away).take_if(|other| Arc::ptr_eq(other, &spawner));
        }
        match bound {
            Some((bound, free)) => called.map(|running| running.under(bound, free)),
            None => called,
        }
    }

    fn spawner(&self, surroundings: Surroundings) -> Result<Arc<Spawner>, StartError> {
        if surroundings == Surroundings::Shared {
            return Ok(held(&self.current).clone());
        }
        let plan = self.starter.throw_away.clone().ok_or(StartError::NotDiscarded)?;
        let mut started = held(&self.throw_away);
        if let Some(spawner) = &*started {
            return Ok(spawner.clone());
        }
        let spawner = Arc::new(self.starter.request(plan).map_err(StartError::Surroundings)?);
        *started = Some(spawner.clone());
        Ok(spawner)
    }

    /// Whether there are namespaces to mount anything in.
    pub(crate) fn mounts(&self) -> bool {
        self.starter.plan.namespaces == Namespaces::Auto
    }

    /// Whether a read-only mount of what is at `path` now stands for the next command.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        held(&self.mounted).get(path).is_some_and(Mounted::stands)
    }

    /// Has the next commands find `paths` mounted read-only, and nothing else. False where that cannot
    /// be had: then everything is as it was.
    pub(crate) fn protect(&self, paths: &[PathBuf]) -> bool {
        if !self.mounts() {
            return false;
        }
        let mut mounted = Mounted::at(paths);
        let Some(spawner) = self.starter.start(paths) else { return false };
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
        let throw_away = self.throw_away.into_inner().unwrap_or_else(PoisonError::into_inner);
        for spawner in throw_away.into_iter().chain([spawner]).filter_map(Arc::into_inner) {
            spawner.close();
        }
    }
}

impl Starter {
    fn start(&self, paths: &[PathBuf]) -> Option<Spawner> {
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let started = self.request(with(&self.plan, paths));
        // What the machine refuses once is not asked for before each call. What it was short of once is.
        let is_refused = match &started {
            Ok(_) => false,
            Err(SpawnerError::Start { source, .. }) => source.raw_os_error().is_none(),
            Err(SpawnerError::SetUp { .. }) => true,
        };
        self.has_failed.store(is_refused, Ordering::Relaxed);
        started.ok()
    }

    fn request(&self, plan: Plan) -> Result<Spawner, SpawnerError> {
        let requests = held(&self.requests).clone();
        let (answer, answered) = sync_channel(1);
        let (program, dirs) = (self.program.clone(), self.dirs.clone());
        let named = program.display().to_string();
        let request = Request { program, plan, dirs, answer };
        let gone =
            |kind: io::ErrorKind| SpawnerError::Start { program: named, source: kind.into() };
        let sent = requests.is_some_and(|requests| requests.send(request).is_ok());
        if !sent {
            return Err(gone(io::ErrorKind::NotConnected));
        }
        match answered.recv_timeout(LONGEST_START) {
            Ok(started) => started.map(|(spawner, _)| spawner),
            Err(_) => Err(gone(io::ErrorKind::TimedOut)),
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
