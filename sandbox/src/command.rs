//! A command in a jail, as the caller sees it: what to start, how to stop it, what it reported.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::attempts::Attempts;
use crate::changes::Changes;
use crate::launcher::SpawnerError;
use crate::program::Programs;
use crate::tmp_bound::{Amount, TmpBound, Watched};
use crate::{Limits, ProgramName, Waiting, wire};

/// A command to start. It inherits the umask and nothing else.
#[derive(Debug)]
pub struct Command {
    /// The program's file: absolute, or relative to `cwd`. No search path applies.
    pub program: PathBuf,
    /// The whole argument list, starting with the program's name.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory: an absolute path, as the machine names it.
    pub cwd: PathBuf,
    /// Descriptor 0.
    pub stdin: OwnedFd,
    /// What descriptor 0 is.
    pub input: Input,
    /// Descriptor 1.
    pub stdout: OwnedFd,
    /// Descriptor 2.
    pub stderr: OwnedFd,
    /// Limits in place of the policy's; `None` takes the policy's.
    pub limits: Option<Limits>,
}

/// What a command's descriptor 0 is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing comes but what it holds.
    #[default]
    Fixed,
    /// A pipe, to which somebody writes what the command asks for.
    Pipe,
    /// A terminal, which becomes the command's controlling terminal. Nobody else may have it as theirs.
    Terminal,
}

/// What a running command does, as far as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// A process of it that waits for input. Where [`Command::input`] is attended that is one that waits
    /// for it, on a terminal one of the foreground group.
    pub waiting: Option<Waiting>,
    /// The TCP ports on which processes of it listen, in order. Empty where they were not asked for.
    pub ports: Vec<u16>,
}

/// A started command. Dropping it kills the call.
///
/// The descriptor behind [`AsFd`] becomes readable when the report arrives. Poll it, then call
/// [`wait`](Self::wait), which no longer blocks.
#[derive(Debug)]
pub struct Running {
    control: OwnedFd,
    pid: ProcessId,
    main: Option<OwnedFd>,
    limits: Limits,
    look: Option<Look>,
    layers: Layered,
    /// What is known before the layers have been looked at.
    ended: Option<Report>,
    attempts: Option<(Arc<Attempts>, u64)>,
    watched: Option<Watched>,
    // Counted by the jail, which waits for its spawner only if no call runs.
    _alive: Arc<()>,
}

/// How a command ended, and what it used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How the command's own process ended.
    pub status: ExitStatus,
    /// User time of the command's process and of the children that it waited for.
    pub user_time: Duration,
    /// System time of the same processes.
    pub system_time: Duration,
    /// The largest resident set of any of these processes, in bytes.
    pub max_rss_bytes: u64,
    /// How many processes still ran when the call ended and so were ended, by SIGTERM or SIGKILL.
    /// This includes the command's own process if it still ran.
    pub processes_killed: u64,
    pub(crate) left_running: Programs,
    /// A process that waited for input when the first signal was sent to the command. `None` where
    /// the kernel does not show it.
    pub waiting: Option<Waiting>,
    /// The limit that ended the command. `None` where the kernel does not show it.
    pub limit: Option<LimitHit>,
    /// What the command changed, where it had layers that took that. `None` elsewhere, and where the process
    /// died that was to look.
    pub changes: Option<Changes>,
    /// Whether a process of the command's network looked for an address beyond it while the command ran.
    /// Calls that run at once share a network. `None` where it is open, and where the kernel does not show
    /// it.
    pub sought_network: Option<bool>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
}

/// A limit that ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitHit {
    /// `file_size_bytes`: SIGXFSZ killed the command, or the last process that its shell ran.
    FileSize,
    /// The jail's temporary directory held three quarters of what had been free on its file system when
    /// the jail was built, and this command was the last to start.
    Tmp,
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A string holds a NUL byte, which no argument, variable or path can hold.
    #[error("{what} holds a NUL byte")]
    Nul {
        /// Which part of the command.
        what: &'static str,
    },
    /// One step failed inside the jail.
    #[error("{stage}")]
    Stage {
        /// The step.
        stage: Stage,
        /// The kernel's answer; `raw_os_error` is always `Some`.
        #[source]
        source: io::Error,
    },
    /// The spawner process has died. Only a new jail can start commands.
    #[error("the jail's spawner process is gone")]
    SpawnerGone(#[source] io::Error),
    /// Nothing keeps what the command would do from staying.
    #[error("this jail cannot discard what a command does")]
    NotDiscarded,
    /// The process that gives commands surroundings of their own did not start.
    #[error("cannot prepare what the command is to have of its own")]
    Surroundings(#[source] SpawnerError),
    /// Cannot send the command to the spawner.
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
    /// The command's session.
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

/// A command's process id. At the full level commands have their own process ids, so `$$` differs
/// from the id that the machine sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessId {
    /// As this process and the machine see it.
    Machine(u32),
    /// As the jail sees it: the command had ended before the machine's id was read, or the kernel
    /// did not show it.
    Jail(u32),
}

impl ProcessId {
    /// The number alone.
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

/// Whether a command's end is followed by what its layers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layered {
    No,
    Yes,
}

impl Report {
    /// Programs that the command left running when its own process ended, a few of them.
    pub fn left_running(&self) -> impl Iterator<Item = ProgramName> {
        self.left_running.names()
    }
}

impl Running {
    pub(crate) fn new(
        control: OwnedFd,
        pid: ProcessId,
        main: Option<OwnedFd>,
        limits: Limits,
        layers: Layered,
        alive: Arc<()>,
    ) -> Self {
        Self {
            control,
            pid,
            main,
            limits,
            look: None,
            layers,
            ended: None,
            attempts: None,
            watched: None,
            _alive: alive,
        }
    }

    /// Compares the report's end with what had been counted when the command was about to start.
    pub(crate) fn counted_from(self, attempts: Option<(Arc<Attempts>, u64)>) -> Self {
        Self { attempts, ..self }
    }

    /// Has the command end where it fills the jail's temporary directory.
    pub(crate) fn under(self, bound: &TmpBound, free_at_start: Amount) -> Self {
        let watched = bound.add(&self.control, free_at_start);
        Self { watched, ..self }
    }

    /// The limit that ended the command, if one did.
    fn limit_of(&self, report: &Report) -> Option<LimitHit> {
        let is_killed = report.status == ExitStatus::Signaled(libc::SIGKILL);
        let for_tmp = is_killed && self.watched.as_ref().is_some_and(Watched::was_ended);
        if for_tmp { Some(LimitHit::Tmp) } else { report.limit }
    }

    fn sought_network(&self) -> Option<bool> {
        let (attempts, before) = self.attempts.as_ref()?;
        Some(attempts.count()? > *before)
    }

    /// A descriptor that becomes readable when the command's own process has ended. If that process
    /// left others behind, the report comes up to 2 s later, or up to 10 s later after a signal was
    /// sent: they have 250 ms to pass on their last output and to end by themselves, and then, after
    /// SIGTERM, 500 ms each time that one of them ends. [`finish`](Self::finish) leaves out the first
    /// wait, [`kill`](Self::kill) ends them at once. `None` where the system gave no descriptor.
    #[must_use]
    pub fn main(&self) -> Option<BorrowedFd<'_>> {
        self.main.as_ref().map(AsFd::as_fd)
    }

    /// The command's process id, for people and logs only. To send a signal use
    /// [`signal`](Self::signal), which cannot hit a later process of the same number.
    #[must_use]
    pub fn pid(&self) -> ProcessId {
        self.pid
    }

    /// The limits that the command runs under.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends `signal` (a number as in `kill -l`) to the command's process group, then to the
    /// descendants that have left the group. SIGTERM also wakes stopped processes. It is no error
    /// if the command has ended already.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Signal(signal))
    }

    /// Kills every process of the call. The report says how many. It is no error if the command has
    /// ended already.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn kill(&self) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Kill)
    }

    /// Ends what the command left running, once its own process has ended: with SIGTERM, and a moment
    /// later with SIGKILL. Before that it does nothing.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn finish(&self) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Finish)
    }

    /// Asks what the command waits for, and `at_ports` also on which ports it listens. The descriptor behind [`AsFd`]
    /// becomes readable when the answer arrives; [`try_wait`](Self::try_wait) takes it, and
    /// [`take_look`](Self::take_look) has it.
    ///
    /// # Errors
    /// When the request cannot be sent to the call's supervisor.
    pub fn look(&self, at_ports: bool) -> io::Result<()> {
        wire::send_order(&self.control, wire::Order::Look { at_ports })
    }

    /// The answer to [`look`](Self::look), once.
    pub fn take_look(&mut self) -> Option<Look> {
        self.look.take()
    }

    /// The report, if it has arrived.
    ///
    /// # Errors
    /// [`LostCall`] when the supervisor died.
    pub fn try_wait(&mut self) -> Result<Option<Report>, LostCall> {
        self.next_report(wire::Blocking::Refused)
    }

    /// The report, if the next message completes it.
    fn next_report(&mut self, blocking: wire::Blocking) -> Result<Option<Report>, LostCall> {
        match wire::receive_report(&self.control, blocking) {
            Ok(wire::Message::Exit(exit)) => {
                let report = Report { sought_network: self.sought_network(), ..exit.into_report() };
                let report = Report { limit: self.limit_of(&report), ..report };
                match self.layers {
                    Layered::No => return Ok(Some(report)),
                    Layered::Yes => self.ended = Some(report),
                }
                Ok(None)
            }
            Ok(wire::Message::Changes(changes)) => {
                let ended = self.ended.take();
                Ok(ended.map(|report| Report { changes: Some(changes), ..report }))
            }
            Ok(wire::Message::Look(look)) => {
                self.look = Some(look);
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // Without those who were to look at the layers, the end is known all the same.
            Err(error) => self.ended.take().map(Some).ok_or(LostCall(error)),
        }
    }

    /// Waits until the command and every process that it started have ended.
    ///
    /// # Errors
    /// [`LostCall`] when the supervisor died.
    pub fn wait(mut self) -> Result<Report, LostCall> {
        loop {
            if let Some(report) = self.next_report(wire::Blocking::Allowed)? {
                return Ok(report);
            }
        }
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

    /// The failed step, as the start of an error message.
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
