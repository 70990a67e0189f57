//! One command from its start to its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use sandbox::{Command, Jail, Limits, LostCall, ProcessId, Report, StartError, Surroundings};

use super::channel::Channel;
use super::input::Input;
use super::output::Transcript;
use super::pump::{Pump, Terms};
use super::{Budget, Interrupt, Output, Spool};
use tool_provider::Secrets;
use tool_provider::{Event, EventSink, OutputStream};

/// How long a full window may hold up the first event; nothing is served meanwhile.
const FIRST: Duration = Duration::from_millis(250);

/// A command and everything about how it runs.
#[derive(Debug)]
pub struct Call<'a> {
    /// The program's file, absolute.
    pub program: &'a Path,
    /// Its arguments, its own name included.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, absolute.
    pub cwd: PathBuf,
    /// What it reads; `None` is nothing.
    pub stdin: Option<Vec<u8>>,
    /// /dev/null for a command that reads nothing. The threads that run calls may be confined to
    /// the roots, so it comes from outside; without it such a command reads from a pipe's end.
    pub null: Option<BorrowedFd<'a>>,
    /// What it has around it that others do not share.
    pub surroundings: Surroundings,
    /// Limits in place of the policy's.
    pub limits: Option<Limits>,
    /// How long it may run.
    pub budget: Budget,
    /// After how much silence, and how often from then on, an event says so.
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
    /// How many bytes of its standard output the sink took.
    pub streamed_stdout_bytes: u64,
    /// How many bytes of its standard error the sink took.
    pub streamed_stderr_bytes: u64,
    /// How many the sink did not take before the call had to end.
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
    /// The call was cancelled, or its sink was closed.
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

/// Runs a command in the jail until it and everything that it started has ended. `sink` is handed
/// its output, masked, in pieces of at most 64 KiB that end inside no UTF-8 character; and progress:
/// that it started, that it is silent. A sink that is closed ends it, as an [`Interrupt`] does.
///
/// # Errors
/// [`RunError`] when it was not started; everything after that is in [`Finished`].
pub fn run(jail: &Jail, call: Call<'_>, sink: &dyn EventSink) -> Result<Finished, RunError> {
    let pipe = |error: rustix::io::Errno| RunError::Pipe(error.into());
    let (stdin, input) = match call.stdin {
        Some(text) => {
            let (input, reading) = Input::new(text).map_err(pipe)?;
            (reading, Some(input))
        }
        None => (no_input(call.null).map_err(pipe)?, None),
    };
    let (stdout, stdout_end) = Channel::new(OutputStream::Stdout, call.secrets).map_err(pipe)?;
    let (stderr, stderr_end) = Channel::new(OutputStream::Stderr, call.secrets).map_err(pipe)?;
    let started = Instant::now();
    let command = Command {
        program: call.program.to_owned(),
        argv: call.argv,
        env: call.env,
        cwd: call.cwd,
        stdin,
        input: sandbox::Input::Fixed,
        stdout: stdout_end,
        stderr: stderr_end,
        limits: call.limits,
    };
    let running = jail.start_in(call.surroundings, command)?;
    // A sink that is closed shows at the next piece of output, or cancels the call.
    let _ = sink.emit_until(started_as(running.pid()), Some(Instant::now() + FIRST));
    let channels = [stdout, stderr];
    let terms = Terms {
        budget: call.budget,
        quiet_every: call.quiet_every,
        interrupt: call.interrupt,
        secrets: call.secrets,
    };
    let pump = Pump::new(running, channels, input, terms, sink);
    let transcript = Transcript::new(call.output_bytes, call.spool, call.secrets);
    Ok(pump.run(started, transcript))
}

fn started_as(pid: ProcessId) -> Event {
    let message = match pid {
        ProcessId::Machine(number) => format!("started (pid {number})"),
        ProcessId::Jail(number) => format!("started (pid {number}) in the jail"),
    };
    Event::Progress { message, fraction: None }
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
