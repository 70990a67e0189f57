//! The provider's side of the spawner: starts it, sends it calls and stops it.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

use crate::attempts::Attempts;
use crate::command::{Command, Layered, ProcessId, Running, StartError};
use crate::namespaces::ProcessLimit;
use crate::plan::{Plan, Ready, Setup};
use crate::policy::{Limits, Namespaces, Network, Surroundings};
use crate::private::PrivateDirs;
use crate::spawner::ARGUMENT;
use crate::sys;
use crate::wire::{self, Blocking, Request, StartReport};

/// Hardens the provider itself: no other process of the user can read its memory, and no child
/// inherits a descriptor that the provider was started with. Raises the soft limit of open
/// descriptors to the hard one, which commands inherit where [`Limits::open_files`] sets none.
/// `main` calls this once, before it starts a thread.
///
/// # Errors
/// When the kernel refuses, which no kernel that can run this program does.
pub fn harden_provider() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    sys::close_all_on_exec()?;
    raise_open_files().map_err(Into::into)
}

/// The kernel also compares this limit with the descriptors that all processes of the user have in
/// flight between sockets, when one more is sent, as the provider does to start a command. With the
/// usual soft limit of 1,024, any command of the user could keep it from that.
fn raise_open_files() -> rustix::io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
}

/// A running spawner.
#[derive(Debug)]
pub(crate) struct Spawner {
    socket: OwnedFd,
    /// Disconnects when the process has been reaped and the private directories are let go.
    exited: Mutex<Receiver<()>>,
    calls: Arc<()>,
    layers: Layered,
    attempts: Option<Arc<Attempts>>,
    limit: ProcessLimit,
}

/// Why there is no spawner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnerError {
    /// The process did not start, or did not answer.
    #[error("cannot start the jail's spawner {program}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The spawner could not set up what the policy asks for.
    #[error("the jail's spawner cannot set up {step}{}", because(.errno))]
    SetUp {
        /// The step that failed.
        step: String,
        /// Its errno, where there is one.
        errno: Option<i32>,
    },
}

impl SpawnerError {
    /// The kernel's answer, where it gave one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            SpawnerError::Start { source, .. } => source.raw_os_error(),
            SpawnerError::SetUp { errno, .. } => *errno,
        }
    }
}

fn because(errno: &Option<i32>) -> String {
    errno.map_or_else(String::new, |errno| format!(": {}", io::Error::from_raw_os_error(errno)))
}

impl Spawner {
    /// Starts a spawner and waits for its answer. `dirs` stay until the process has ended.
    pub(crate) fn start(
        program: &Path,
        plan: &Plan,
        dirs: Arc<PrivateDirs>,
    ) -> Result<(Self, Ready), SpawnerError> {
        let failed =
            |source| SpawnerError::Start { program: program.display().to_string(), source };
        let (socket, theirs) = wire::pair().map_err(failed)?;
        let (wait_for, exited) = waiter(dirs).map_err(failed)?;
        let child = std::process::Command::new(program)
            .arg0("sandbox-spawner")
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let pid = child.id();
        // Fails only if the waiter thread has died.
        let _ = wait_for.send(child);
        let setup = wire::send(&socket, &plan.encode(), &[])
            .and_then(|()| wire::receive(&socket, Blocking::Allowed))
            .and_then(|(message, _)| Setup::decode(&message))
            .map_err(failed)?;
        match setup {
            Setup::Failed { step, errno } => {
                // Its directories are removed when it has ended.
                drop(socket);
                let _ = exited.recv_timeout(EXIT_LIMIT);
                Err(SpawnerError::SetUp { step, errno })
            }
            Setup::Ready(ready) => {
                let limit = match ready.shared_limit {
                    Some(_) => ProcessLimit::OfTheJail,
                    None => ProcessLimit::OfEachCall,
                };
                let spawner = Self {
                    socket,
                    exited: Mutex::new(exited),
                    calls: Arc::new(()),
                    layers: layers_of(plan),
                    attempts: shares_a_closed_network(plan)
                        .then(|| Attempts::of(pid))
                        .flatten()
                        .map(Arc::new),
                    limit,
                };
                Ok((spawner, ready))
            }
        }
    }

    /// Starts a command and returns when its program runs.
    pub(crate) fn call(&self, command: Command, limits: Limits) -> Result<Running, StartError> {
        let processes = match self.limit {
            ProcessLimit::OfTheJail => limits.processes,
            // RLIMIT_NPROC would count those of other calls too.
            ProcessLimit::OfEachCall => None,
        };
        let request = request(&command, Limits { processes, ..limits })?;
        let attempts = self.attempts.as_ref().and_then(|at| Some((at.clone(), at.count()?)));
        let (control, theirs) = wire::pair().map_err(StartError::HandOver)?;
        let fds = [&theirs, &command.stdin, &command.stdout, &command.stderr].map(AsFd::as_fd);
        wire::send(&self.socket, &request.encode(), &fds).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EPIPE | libc::ECONNRESET) => StartError::SpawnerGone(error),
                _ => StartError::HandOver(error),
            }
        })?;
        // With our copy closed, the supervisor's death shows as the end of the socket.
        drop(theirs);
        drop(command);
        match StartReport::receive(&control) {
            Ok((StartReport::Running(inner), pidfd)) => {
                let known = pidfd.as_ref().and_then(pid_of);
                let pid = known.map_or(ProcessId::Jail(inner), ProcessId::Machine);
                let calls = self.calls.clone();
                let running = Running::new(control, pid, pidfd, limits, self.layers, calls);
                Ok(running.counted_from(attempts))
            }
            Ok((StartReport::Failed(stage, errno), _)) => {
                let source = io::Error::from_raw_os_error(errno);
                Err(StartError::Stage { stage, source })
            }
            Err(error) => Err(StartError::SpawnerGone(error)),
        }
    }

    /// Lets the spawner end after its last call. Waits for it if no call runs.
    pub(crate) fn close(self) {
        let Self { socket, exited, calls, .. } = self;
        drop(socket);
        if Arc::strong_count(&calls) == 1 {
            let exited = exited.into_inner().unwrap_or_else(PoisonError::into_inner);
            let _ = exited.recv_timeout(EXIT_LIMIT);
        }
    }
}

fn layers_of(plan: &Plan) -> Layered {
    match (plan.surroundings, plan.namespaces) {
        (Surroundings::ThrowAway, Namespaces::Auto) => Layered::Yes,
        _ => Layered::No,
    }
}

/// Whether the spawner itself is in the network of its commands, and that has no way out.
fn shares_a_closed_network(plan: &Plan) -> bool {
    plan.namespaces == Namespaces::Auto
        && plan.network == Network::Deny
        && plan.surroundings != Surroundings::ThrowAway
}

/// How long a spawner may take to end: one that is stopped or swapped out must not block the caller for
/// ever.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// Starts a thread that reaps the process sent to it and then removes `dirs`, which nothing of the
/// jail uses any more. The thread starts before the process: if it cannot, there is no process to
/// stop.
fn waiter(dirs: Arc<PrivateDirs>) -> io::Result<(SyncSender<Child>, Receiver<()>)> {
    let (wait_for, child) = sync_channel::<Child>(1);
    let (running, exited) = sync_channel(0);
    let wait = move || {
        // No process arrives if none could be started.
        if let Ok(mut child) = child.recv() {
            let _ = child.wait();
        }
        drop(dirs);
        drop::<SyncSender<()>>(running);
    };
    thread::Builder::new().name("spawner-wait".to_owned()).stack_size(64 * 1024).spawn(wait)?;
    Ok((wait_for, exited))
}

fn request(command: &Command, limits: Limits) -> Result<Request, StartError> {
    let argv = command.argv.iter().map(|text| c_string(text, "an argument"));
    let env = command.env.iter().map(|(name, value)| {
        let mut text = name.as_bytes().to_vec();
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        c_string(OsStr::from_bytes(&text), "a variable of the environment")
    });
    Ok(Request {
        program: c_string(command.program.as_os_str(), "the program's path")?,
        cwd: c_string(command.cwd.as_os_str(), "the working directory's path")?,
        argv: argv.collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, _>>()?,
        input: command.input,
        limits,
    })
}

fn c_string(text: &OsStr, what: &'static str) -> Result<CString, StartError> {
    CString::new(text.as_bytes()).map_err(|_| StartError::Nul { what })
}

/// The process id behind a pidfd, in the caller's process namespace. Before Linux 6.13 only /proc
/// has it, which file workers cannot read: then the result is `None`.
fn pid_of(pidfd: &OwnedFd) -> Option<u32> {
    use std::os::fd::AsRawFd;
    if let Some(pid) = sys::pid_of(pidfd.as_fd()) {
        return Some(pid);
    }
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok()
}
