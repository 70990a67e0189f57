//! One command from its start to its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use sandbox::{Command, Jail, Limits, LostCall, ProcessId, Report, StartError};

use super::channel::Channel;
use super::input::Input;
use super::pump::{Pump, Terms};
use super::{Budget, Interrupt, Output, Secrets, Spool};

/// A command and everything about how it runs.
#[derive(Debug)]
pub struct Call<'a> {
    /// The program's file, absolute.
    pub program: &'a Path,
    /// Its arguments, its own name included.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder, absolute.
    pub cwd: PathBuf,
    /// What it reads; `None` is nothing.
    pub stdin: Option<Vec<u8>>,
    /// /dev/null for a command that reads nothing. The threads that run calls may be confined to
    /// the roots, so it comes from outside; without it such a command reads from a pipe's end.
    pub null: Option<BorrowedFd<'a>>,
    /// Limits in place of the policy's.
    pub limits: Option<Limits>,
    /// How long it may run.
    pub budget: Budget,
    /// After how much silence, and how often from then on, the listener hears of it.
    pub quiet_every: Duration,
    /// Ends it early.
    pub interrupt: &'a Interrupt,
    /// How many bytes of text its output may take in a result.
    pub output_bytes: usize,
    /// Where the whole output goes when that is not enough.
    pub spool: Arc<Spool>,
    /// What must not be shown of it.
    pub secrets: &'a Secrets,
}

/// A child's output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// Hears of a command while it runs.
pub trait Listener {
    /// The program runs, under this process id.
    fn started(&mut self, pid: ProcessId);

    /// Takes the next piece of output, of 64 KiB at most, and waits at most until `deadline` for
    /// room. A piece never ends inside a UTF-8 character of its stream.
    ///
    /// # Errors
    /// [`NotTaken`]; the piece is offered again after [`NotTaken::Later`].
    fn output(&mut self, stream: Stream, piece: Bytes, deadline: Instant) -> Result<(), NotTaken>;

    /// The command runs and has written nothing for this long. Waits at most until `deadline` for
    /// room, and is not told whether there was any.
    fn quiet(&mut self, silence: Duration, deadline: Instant);
}

impl Stream {
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Why a piece was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There was no room in time.
    Later,
    /// Nobody listens any more. The command is ended, as by an [`Interrupt`].
    Never,
}

/// What became of a command that was started.
#[derive(Debug)]
pub struct Finished {
    /// How it ended, and what it took.
    pub end: Result<Report, Unreported>,
    /// Whether and how we ended it.
    pub stopped: Option<Stopped>,
    /// What a result shows of its output.
    pub output: Output,
    /// How many bytes it wrote to descriptor 1.
    pub stdout_bytes: u64,
    /// How many bytes it wrote to descriptor 2.
    pub stderr_bytes: u64,
    /// How many bytes of its standard output the listener took.
    pub streamed_stdout_bytes: u64,
    /// How many bytes of its standard error the listener took.
    pub streamed_stderr_bytes: u64,
    /// How many the listener did not take before the call had to end.
    pub unstreamed_bytes: u64,
    /// From its start to the end of everything that it started.
    pub duration: Duration,
}

/// Why a command was ended from outside, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Why.
    pub cause: StopCause,
    /// What was sent.
    pub signal: StopSignal,
}

/// Why a command was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// Its time was up.
    TimeUp,
    /// The call was cancelled, or nobody listened any more.
    Cancelled,
}

/// What was sent to a command to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// It had ended before anything was sent.
    None,
    /// SIGTERM to every process that it started.
    Terminate,
    /// SIGTERM, and SIGKILL when that was not enough.
    TerminateAndKill,
    /// SIGKILL at once, as there was no time for anything else.
    Kill,
}

impl StopSignal {
    /// The signals' names, in the order in which they were sent.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            StopSignal::None => &[],
            StopSignal::Terminate => &["SIGTERM"],
            StopSignal::TerminateAndKill => &["SIGTERM", "SIGKILL"],
            StopSignal::Kill => &["SIGKILL"],
        }
    }
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No pipe could be made for it.
    #[error("cannot make a pipe")]
    Pipe(#[source] io::Error),
    /// The jail did not start it.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Why it is not known how a command ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreported {
    /// Its supervisor is gone.
    #[error(transparent)]
    Lost(#[from] LostCall),
    /// It was killed, and the kernel did not take it away in time.
    #[error("the command was killed but did not go away within {} ms", .0.as_millis())]
    Stuck(Duration),
}

/// Runs a command in the jail until it and everything that it started has ended.
///
/// # Errors
/// [`RunError`] when it was not started; everything after that is in [`Finished`].
pub fn run(jail: &Jail, call: Call<'_>, listener: &mut dyn Listener) -> Result<Finished, RunError> {
    let pipe = |error: rustix::io::Errno| RunError::Pipe(error.into());
    let (stdin, input) = match call.stdin {
        Some(text) => {
            let (input, reading) = Input::new(text).map_err(pipe)?;
            (reading, Some(input))
        }
        None => (no_input(call.null).map_err(pipe)?, None),
    };
    let (stdout, stdout_end) = Channel::new(Stream::Stdout, call.secrets).map_err(pipe)?;
    let (stderr, stderr_end) = Channel::new(Stream::Stderr, call.secrets).map_err(pipe)?;
    let started = Instant::now();
    let running = jail.start(Command {
        program: call.program.to_owned(),
        argv: call.argv,
        env: call.env,
        cwd: call.cwd,
        stdin,
        stdout: stdout_end,
        stderr: stderr_end,
        limits: call.limits,
    })?;
    listener.started(running.pid());
    let channels = [stdout, stderr];
    let terms =
        Terms { budget: call.budget, quiet_every: call.quiet_every, interrupt: call.interrupt };
    let pump = Pump::new(running, channels, input, terms, listener);
    Ok(pump.run(started, call.output_bytes, call.spool))
}

/// Opens what [`Call::null`] wants.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a device that holds nothing")]
pub fn open_null() -> Option<OwnedFd> {
    rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn no_input(null: Option<BorrowedFd<'_>>) -> rustix::io::Result<OwnedFd> {
    match null {
        Some(null) => rustix::io::fcntl_dupfd_cloexec(null, 0),
        None => rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map(|(reading, _)| reading),
    }
}
