//! A command that outlives the call which started it: a server, an interpreter, a watcher.
//!
//! A thread of its own serves each one, from its start until everything that it started has ended. What
//! it prints is taken whether or not anybody reads it, and kept within bounds.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use sandbox::{Command, Jail, Look, Report};

use super::channel::Channel;
use super::input::Input;
use super::output::FullOutput;
use super::{Interrupt, RunError, Spool, StopSignal, Unreported};
use tool_provider::{OutputStream, Secrets};

mod bounded;
mod emulator;
mod record;
mod serve;
mod terminal;
pub(crate) mod text;

use emulator::Emulator;
use record::Record;
use serve::Server;

pub use emulator::ScreenText;
pub use terminal::TerminalSize;
pub use text::Part;

/// How much input may wait for a command that does not read it, in bytes.
pub const MOST_WAITING_INPUT: usize = 64 * 1024;

/// How much of the output is looked at for whether it is painted, in bytes.
const LARGEST_PICTURES: u64 = 64 * 1024;

/// The stack of the thread that serves a session.
const STACK: usize = 256 * 1024;

/// A command to start as a session.
#[derive(Debug)]
pub struct SessionCommand<'a> {
    /// The program's file, absolute.
    pub program: &'a Path,
    /// Its arguments, its own name included.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, absolute.
    pub cwd: PathBuf,
    /// The terminal that it runs on; without one it has pipes.
    pub terminal: Option<TerminalSize>,
    /// Where its output goes once it is long.
    pub spool: Arc<Spool>,
    /// What must not be shown of its output.
    pub secrets: &'a Secrets,
    /// After how long without a [`Session::in_use`] it is ended.
    pub idle_limit: Duration,
    /// Called once nothing is left of it. What it returns is told with its end.
    pub at_end: AtEnd,
}

/// What is to be done once a session has ended, and what is to be told of that.
///
/// It is given how the session ended, and what it printed last, as plain text.
pub struct AtEnd(pub Box<NoticesOfEnd>);

/// What is called then.
type NoticesOfEnd = dyn FnOnce(&Ended, &str) -> Vec<String> + Send;

impl std::fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtEnd").finish_non_exhaustive()
    }
}

/// Why a session was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// A call asked for it.
    Stopped,
    /// The call that started it was cancelled.
    Cancelled,
    /// Nobody used it for the idle limit.
    Idle,
    /// The host's session that started it ended.
    HostSession,
    /// The provider was configured anew.
    Configured,
    /// The provider ended.
    Provider,
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended {
    /// How its command ended, and what it took.
    pub end: Result<Report, Unreported>,
    /// Why and with what it was ended from outside.
    pub stopped: Option<(EndCause, StopSignal)>,
    /// What else is to be told.
    pub notices: Vec<String>,
}

/// A session. Dropping it does not end it.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_on_terminal: bool,
    /// The command's end of its input, to know what of it was not read.
    unread: OwnedFd,
}

/// What the session's thread and those who use it share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the thread.
    wake: Interrupt,
    idle_limit: Duration,
}

#[derive(Debug)]
struct State {
    record: Record,
    screen: Option<Emulator>,
    ended: Option<Arc<Ended>>,
    is_exit_told: bool,
    look: Option<Look>,
    looks: u64,
    /// How much of the output was there when a call that started it, or typed into it, was answered.
    answered: u64,
    /// Counts everything that a waiting call may want to see.
    changes: u64,
    last_output: Instant,
    /// Whether the end of what came waits for a pause that tells whether it is part of a secret.
    holds_back: bool,
    users: u32,
    last_used: Instant,
    orders: Orders,
}

/// What the thread is asked to do.
#[derive(Debug, Default)]
struct Orders {
    text: Vec<u8>,
    close_input: bool,
    signals: Vec<i32>,
    size: Option<TerminalSize>,
    /// A look, at the ports too or not.
    look: Option<bool>,
    stop: Option<EndCause>,
    /// How many bytes of input wait already.
    waiting_input: usize,
}

impl Standing {
    /// Whether it waited for input when it was last looked at.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.waiting.is_some())
    }

    /// The TCP ports on which it listened then, where a look was at the ports too.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        self.look.as_ref().map_or(&[], |look| &look.ports)
    }
}

impl Orders {
    /// Takes what is to be done. The text counts as waiting until it is written.
    fn take(&mut self) -> Self {
        let waiting_input = self.waiting_input + self.text.len();
        std::mem::replace(self, Self { waiting_input, ..Self::default() })
    }
}

/// How a session stands at one moment.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Where its output begins, as far as it is in memory: a count of bytes from its start.
    pub begin: u64,
    /// Where its output ends.
    pub end: u64,
    /// How it ended, if it has.
    pub ended: Option<Arc<Ended>>,
    /// What it did when it was last looked at.
    pub look: Option<Look>,
    /// How often it was looked at.
    pub looks: u64,
    /// When something last came.
    pub last_output: Instant,
    /// Whether more comes after a pause, although nothing more is printed: the end of what came may be the
    /// beginning of a secret.
    pub holds_back: bool,
    /// For [`Session::wait_beyond`].
    pub changes: u64,
    /// Whether a program has the whole screen of its terminal to itself.
    pub is_full_screen: bool,
    /// Whether it has not read all that was typed. Of a line that is not finished it reads nothing where the
    /// terminal collects lines, and that does not count.
    pub has_unread_input: bool,
}

/// The input was not taken, because the command reads none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes of earlier input wait to be read")]
pub struct InputFull(pub usize);

impl Session {
    /// Starts a command as a session. The calling thread, and so the one that serves it, must not be
    /// confined: the terminal is opened here.
    ///
    /// # Errors
    /// [`RunError`] when it was not started.
    pub fn start(jail: &Jail, command: SessionCommand<'_>) -> Result<Self, RunError> {
        let pipe = |error: io::Error| RunError::Pipe(error);
        let Ends { input, output, stdin, stdout, unread } =
            Ends::make(command.terminal).map_err(pipe)?;
        let wake = Interrupt::new().map_err(pipe)?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(&stdout, 0).map_err(io::Error::from);
        let running = jail.start(Command {
            program: command.program.to_owned(),
            argv: command.argv,
            env: command.env,
            cwd: command.cwd,
            stdin,
            input: match command.terminal {
                Some(_) => sandbox::Input::Terminal,
                None => sandbox::Input::Pipe,
            },
            stdout,
            stderr: stderr.map_err(pipe)?,
            limits: None,
        })?;
        let now = Instant::now();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                record: Record::new(command.spool),
                screen: command.terminal.map(Emulator::new),
                ended: None,
                is_exit_told: false,
                look: None,
                looks: 0,
                answered: 0,
                changes: 0,
                last_output: now,
                holds_back: false,
                users: 0,
                last_used: now,
                orders: Orders::default(),
            }),
            changed: Condvar::new(),
            wake,
            idle_limit: command.idle_limit,
        });
        let channel = Channel::over(output, OutputStream::Stdout, command.secrets);
        let is_on_terminal = command.terminal.is_some();
        let server = Server::new(running, channel, input, is_on_terminal, shared.clone());
        let at_end = command.at_end;
        let thread = thread::Builder::new().name("session".to_owned()).stack_size(STACK);
        // A command without a thread is killed with the server that was not run.
        let thread = thread.spawn(move || server.run(at_end)).map_err(pipe)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), is_on_terminal, unread })
    }

    /// Whether its command runs on a terminal.
    #[must_use]
    pub fn is_on_terminal(&self) -> bool {
        self.is_on_terminal
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let unread = rustix::io::ioctl_fionread(&self.unread).unwrap_or(0);
        let state = self.shared.lock();
        let waiting = state.orders.waiting_input + state.orders.text.len();
        Standing {
            has_unread_input: unread > 0 || waiting > 0,
            begin: state.record.begin(),
            end: state.record.end(),
            ended: state.ended.clone(),
            look: state.look.clone(),
            looks: state.looks,
            last_output: state.last_output,
            holds_back: state.holds_back,
            changes: state.changes,
            is_full_screen: state.screen.as_ref().is_some_and(Emulator::is_full_screen),
        }
    }

    /// What it printed from `from` on, as far as it is in memory, at most `most` bytes. Escape sequences
    /// are in it, secrets are not.
    #[must_use]
    pub fn bytes(&self, from: u64, most: usize) -> Vec<u8> {
        self.shared.lock().record.bytes(from, most)
    }

    /// The file with all that it printed, which is begun now if it was not needed before.
    #[must_use]
    pub fn full_output(&self) -> Option<FullOutput> {
        self.shared.lock().record.keep()
    }

    /// The screen of its terminal.
    #[must_use]
    pub fn screen(&self) -> Option<ScreenText> {
        self.shared.lock().screen.as_ref().map(Emulator::text)
    }

    /// Whether what it printed from `from` on is a picture on its terminal: a program has the whole screen, or
    /// paints it again and again.
    #[must_use]
    pub fn shows_screen(&self, from: u64) -> bool {
        let state = self.shared.lock();
        let Some(screen) = &state.screen else { return false };
        let from = from.max(state.record.end().saturating_sub(LARGEST_PICTURES));
        screen.is_full_screen() || screen.is_repainted(&state.record.bytes(from, usize::MAX))
    }

    /// Whether its program asked for the other spelling of arrow keys.
    #[must_use]
    pub fn has_application_keys(&self) -> bool {
        self.shared.lock().screen.as_ref().is_some_and(Emulator::has_application_keys)
    }

    /// Waits until something has changed since a [`Standing`], at most until `deadline`.
    pub fn wait_beyond(&self, seen: &Standing, deadline: Instant) {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let state = self.shared.lock();
        let _ = self
            .shared
            .changed
            .wait_timeout_while(state, timeout, |state| state.changes == seen.changes);
    }

    /// Wakes everybody who waits.
    pub fn nudge(&self) {
        self.shared.change(|_| ());
    }

    /// Types text. It is taken whole or not at all.
    ///
    /// # Errors
    /// [`InputFull`] where the command has not read what came before.
    pub fn write(&self, text: &[u8]) -> Result<(), InputFull> {
        let mut state = self.shared.lock();
        let waiting = state.orders.waiting_input + state.orders.text.len();
        if waiting > 0 && waiting + text.len() > MOST_WAITING_INPUT {
            return Err(InputFull(waiting));
        }
        state.orders.text.extend_from_slice(text);
        drop(state);
        self.shared.wake.raise();
        Ok(())
    }

    /// Ends its input, where that is a pipe, once all text is written.
    pub fn close_input(&self) {
        self.shared.order(|orders| orders.close_input = true);
    }

    /// Sends a signal to its command's process group, where it has no terminal to do that.
    pub fn signal(&self, signal: i32) {
        self.shared.order(|orders| orders.signals.push(signal));
    }

    /// Gives its terminal another size.
    pub fn resize(&self, size: TerminalSize) {
        self.shared.order(|orders| orders.size = Some(size));
    }

    /// Has it looked at: what it waits for, and `at_ports` also on which ports it listens.
    pub fn ask_look(&self, at_ports: bool) {
        self.shared.order(|orders| orders.look = Some(at_ports || orders.look == Some(true)));
    }

    /// Ends it, and everything that it started. Returns at once; the first cause counts.
    pub fn stop(&self, cause: EndCause) {
        self.shared.order(|orders| {
            orders.stop.get_or_insert(cause);
        });
    }

    /// Waits until it has ended. At most as long as the kernel takes to take killed processes away.
    pub fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there was logged, and has ended the command.
            let _ = thread.join();
        }
    }

    /// Whether this is the first who asks, once it has ended: who tells of its exit.
    pub fn claim_exit(&self) -> bool {
        let mut state = self.shared.lock();
        state.ended.is_some() && !std::mem::replace(&mut state.is_exit_told, true)
    }

    /// Remembers up to where a call that started it, or typed into it, was answered with its output.
    pub fn set_answered(&self, next: u64) {
        self.shared.lock().answered = next;
    }

    /// Up to where the last such call was answered with its output, in bytes from its start.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.shared.lock().answered
    }

    /// Marks it as used until the guard is dropped.
    pub fn in_use(&self) -> InUse<'_> {
        let mut state = self.shared.lock();
        state.users += 1;
        state.last_used = Instant::now();
        InUse(&self.shared)
    }

    /// When it was last used.
    #[must_use]
    pub fn last_used(&self) -> Instant {
        self.shared.lock().last_used
    }
}

/// While this lives, a session is in use.
#[derive(Debug)]
pub struct InUse<'a>(&'a Shared);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.last_used = Instant::now();
        drop(state);
        // The thread reckons the idle time anew.
        self.0.wake.raise();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: impl FnOnce(&mut Orders)) {
        order(&mut self.lock().orders);
        self.wake.raise();
    }

    /// Changes what those who wait may want to see.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        state.changes += 1;
        drop(state);
        self.changed.notify_all();
        changed
    }
}

/// The ends of a session's pipes or terminal, ours and the command's.
struct Ends {
    input: Input,
    output: OwnedFd,
    stdin: OwnedFd,
    stdout: OwnedFd,
    unread: OwnedFd,
}

impl Ends {
    fn make(terminal: Option<TerminalSize>) -> io::Result<Self> {
        let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 0);
        if let Some(size) = terminal {
            let (control, command) = terminal::open(size)?;
            let input = Input::over(copy(&control)?);
            let (stdin, unread) = (copy(&command)?, copy(&command)?);
            return Ok(Self { input, output: control, stdin, stdout: command, unread });
        }
        let (input, stdin) = Input::new(Vec::new())?;
        let (output, stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&output, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let unread = copy(&stdin)?;
        Ok(Self { input, output, stdin, stdout, unread })
    }
}
