//! A command in a jail, from the caller's side: what to start, how to end it, what became of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{Limits, Waiting, wire};

/// A command to start. Nothing is inherited but the umask: what is not named here is not there.
#[derive(Debug)]
pub struct Command {
    /// The program's file: absolute, or relative to `cwd`. No search path is consulted.
    pub program: PathBuf,
    /// The whole argument list, the program's name for itself included.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute, as a path of the machine.
    pub cwd: PathBuf,
    /// Descriptor 0.
    pub stdin: OwnedFd,
    /// Descriptor 1.
    pub stdout: OwnedFd,
    /// Descriptor 2.
    pub stderr: OwnedFd,
    /// Limits in place of the policy's; `None` takes the policy's.
    pub limits: Option<Limits>,
}

/// A command that was started. Dropping it kills the call.
///
/// The descriptor behind [`AsFd`] becomes readable when the report is there; poll it, then call
/// [`wait`](Self::wait), which no longer blocks.
#[derive(Debug)]
pub struct Running {
    control: OwnedFd,
    pid: ProcessId,
    main: Option<OwnedFd>,
    limits: Limits,
    // Tells the jail, when it is dropped, that a call still runs.
    _alive: Arc<()>,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How the command's own process ended.
    pub status: ExitStatus,
    /// User time of the process and the children that it waited for.
    pub user_time: Duration,
    /// System time of the same.
    pub system_time: Duration,
    /// The largest resident set of any of the same, in bytes.
    pub max_rss_bytes: u64,
    /// How many processes were still there when the call ended, and were killed. The command's own
    /// process counts where the call was killed before it ended.
    pub processes_killed: u64,
    /// A process that waited for input when the command was first sent a signal, as far as the
    /// kernel tells.
    pub waiting: Option<Waiting>,
    /// The limit that ended the command, as far as the kernel tells.
    pub limit: Option<LimitHit>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

/// A limit that ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitHit {
    /// `file_size_bytes`: the command, or a process that its shell ran last, got SIGXFSZ.
    FileSize,
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A string holds a NUL byte, which no argument, variable or path can carry.
    #[error("{what} holds a NUL byte")]
    Nul {
        /// Which part of the command.
        what: &'static str,
    },
    /// One step failed inside the jail.
    #[error("{stage}: {source}")]
    Stage {
        /// The step.
        stage: Stage,
        /// The kernel's answer; `raw_os_error` is always there.
        #[source]
        source: io::Error,
    },
    /// The spawner process is gone. A new jail is needed.
    #[error("the jail's spawner process is gone")]
    SpawnerGone(#[source] io::Error),
    /// A descriptor or a message could not be made ready.
    #[error("cannot hand the command to the jail's spawner")]
    HandOver(#[source] io::Error),
}

/// The steps of a start, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The call's supervisor process: EAGAIN means a limit of processes.
    Supervisor,
    /// The command's process: EAGAIN means a limit of processes.
    Process,
    /// The session of its own.
    Session,
    /// Descriptors 0, 1 and 2.
    Stdio,
    /// The working directory: ENOENT missing, ENOTDIR a file, EACCES not granted.
    WorkingDirectory,
    /// The resource limits.
    Limits,
    /// The call's own Landlock domain.
    Confine,
    /// The program: ENOENT missing, EACCES not executable or not granted, E2BIG arguments too long.
    Program,
}

/// A command's process id. At the full level commands have their own: `$$` is another number than
/// the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessId {
    /// As this process and the machine see it.
    Machine(u32),
    /// As the jail sees it: the command had ended before the machine could be asked, or `/proc` did
    /// not tell.
    Jail(u32),
}

impl ProcessId {
    /// The number, whoever counted.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            ProcessId::Machine(number) | ProcessId::Jail(number) => number,
        }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[error("the call's supervisor died before it could report")]
pub struct LostCall(#[source] pub io::Error);

impl Running {
    pub(crate) fn new(
        control: OwnedFd,
        pid: ProcessId,
        main: Option<OwnedFd>,
        limits: Limits,
        alive: Arc<()>,
    ) -> Self {
        Self { control, pid, main, limits, _alive: alive }
    }

    /// A descriptor that becomes readable when the command's own process has ended. Where it left
    /// others behind the report comes up to 250 ms later, or up to 10 s after a signal was sent:
    /// they have that long to pass on what is on its way and to end by themselves.
    /// [`kill`](Self::kill) ends them at once. `None` where the system gave no descriptor.
    #[must_use]
    pub fn main(&self) -> Option<BorrowedFd<'_>> {
        self.main.as_ref().map(AsFd::as_fd)
    }

    /// The command's process id. For people and logs only: signals go through
    /// [`signal`](Self::signal), which cannot hit a process that took the number over.
    #[must_use]
    pub fn pid(&self) -> ProcessId {
        self.pid
    }

    /// The limits that the command runs under.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends `signal` (a number as in `kill -l`) to the command's process group, and then to
    /// whatever it started that has left the group. SIGTERM wakes what is stopped. A command that has
    /// ended already is no error.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Signal(signal))
    }

    /// Kills every process of the call, wherever it hides. The report says how many. A command
    /// that has ended already is no error.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn kill(&self) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Kill)
    }

    /// The report, when it is there.
    ///
    /// # Errors
    /// [`LostCall`] when the supervisor died.
    pub fn try_wait(&mut self) -> Result<Option<Report>, LostCall> {
        match wire::receive_report(&self.control, wire::Blocking::Refused) {
            Ok(exit) => Ok(Some(exit.into_report())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(LostCall(error)),
        }
    }

    /// Waits for the end of the command and of every process that it started.
    ///
    /// # Errors
    /// [`LostCall`] when the supervisor died.
    pub fn wait(self) -> Result<Report, LostCall> {
        wire::receive_report(&self.control, wire::Blocking::Allowed)
            .map(wire::ExitReport::into_report)
            .map_err(LostCall)
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl ExitStatus {
    /// The exit code as a shell shows it: 128 + n for a signal n.
    #[must_use]
    pub const fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Exited(code) => code,
            ExitStatus::Signaled(signal) => 128 + signal,
        }
    }
}

impl Stage {
    pub(crate) const ALL: [Stage; 8] = [
        Stage::Supervisor,
        Stage::Process,
        Stage::Session,
        Stage::Stdio,
        Stage::WorkingDirectory,
        Stage::Limits,
        Stage::Confine,
        Stage::Program,
    ];

    /// What the step does, as the subject of an error message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Supervisor => "cannot start the call's supervisor",
            Stage::Process => "cannot make the command's process",
            Stage::Session => "cannot make the command's session",
            Stage::Stdio => "cannot connect the command's descriptors",
            Stage::WorkingDirectory => "cannot enter the working directory",
            Stage::Limits => "cannot set the command's limits",
            Stage::Confine => "cannot confine the command",
            Stage::Program => "cannot execute the program",
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
