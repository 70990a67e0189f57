//! The loop that serves a session until its end.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use sandbox::{Report, Running};

use super::super::channel::{Channel, Readiness};
use super::super::input::{Feed, Input};
use super::super::{StopSignal, Unreported};
use super::{AtEnd, EndCause, Ended, Orders, Shared, terminal, text};

/// Between SIGTERM and SIGKILL when a session is stopped.
const GRACE: Duration = Duration::from_secs(2);

/// The same where somebody waits for it who wants to end.
const SHORT_GRACE: Duration = Duration::from_millis(500);

/// How long after SIGKILL the kernel may take to take every process away.
const REAPING: Duration = Duration::from_secs(10);

/// After how much silence the end of the output shows although a secret may begin so.
const QUIET: Duration = Duration::from_millis(400);

/// How much of what it printed tells why it ended, in bytes.
const LAST_BYTES: u64 = 64 * 1024;

/// Serves one session.
pub(super) struct Server {
    running: Running,
    channel: Channel,
    input: Option<Input>,
    close_input: bool,
    is_on_terminal: bool,
    stop: Option<Stop>,
    /// When what the channel holds back is passed on.
    settle_at: Option<Instant>,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
struct Stop {
    cause: EndCause,
    signal: StopSignal,
    kill_at: Instant,
}

/// What is ready.
struct Ready {
    control: bool,
    output: bool,
    input: bool,
}

/// How much output a screen takes at a time, in bytes: there are sequences of a few that clear all of it.
const SCREEN_SLICE: usize = 2048;

impl Server {
    pub(super) fn new(
        running: Running,
        channel: Channel,
        input: Input,
        is_on_terminal: bool,
        shared: Arc<Shared>,
    ) -> Self {
        let input = Some(input);
        Self {
            running,
            channel,
            input,
            close_input: false,
            is_on_terminal,
            stop: None,
            settle_at: None,
            shared,
        }
    }

    /// Serves it until it has ended, and says how.
    pub(super) fn run(mut self, at_end: AtEnd) {
        let mut last_words = LastWords { shared: self.shared.clone(), ended: None };
        let end = self.serve();
        self.read_the_rest();
        let stopped = self.stop.map(|stop| (stop.cause, stop.signal));
        let mut ended = Ended { end, stopped, notices: Vec::new() };
        let printed = {
            let record = &self.shared.lock().record;
            record.bytes(record.end().saturating_sub(LAST_BYTES), usize::MAX)
        };
        ended.notices = (at_end.0)(&ended, &text::plain(&printed));
        last_words.ended = Some(ended);
    }

    fn serve(&mut self) -> Result<Report, Unreported> {
        loop {
            self.shared.wake.lower();
            let orders = self.shared.lock().orders.take();
            self.obey(orders);
            let now = Instant::now();
            if self.settle_at.is_some_and(|at| now >= at) {
                self.settle();
            }
            let due = match &self.stop {
                None => {
                    let idle_at = self.idle_at();
                    if idle_at.is_some_and(|at| now >= at) {
                        self.begin_stop(EndCause::Idle);
                        continue;
                    }
                    idle_at
                }
                Some(stop) if stop.signal == StopSignal::Terminate => {
                    if now >= stop.kill_at {
                        self.kill();
                        continue;
                    }
                    Some(stop.kill_at)
                }
                Some(stop) if now >= stop.kill_at + REAPING => {
                    return Err(Unreported::Stuck(REAPING));
                }
                Some(stop) => Some(stop.kill_at + REAPING),
            };
            let due = due.into_iter().chain(self.settle_at).min();
            let ready = self.wait(due);
            if ready.input {
                self.feed();
            }
            if ready.output {
                self.read();
            }
            if ready.control {
                match self.running.try_wait() {
                    Ok(Some(report)) => return Ok(report),
                    Ok(None) => {
                        if let Some(look) = self.running.take_look() {
                            if look.waiting.is_some() {
                                self.settle();
                            }
                            self.shared.change(|state| {
                                state.look = Some(look);
                                state.looks += 1;
                            });
                        }
                    }
                    Err(lost) => return Err(lost.into()),
                }
            }
        }
    }

    /// When it is ended for want of use; none while it is used.
    fn idle_at(&self) -> Option<Instant> {
        let state = self.shared.lock();
        (state.users == 0).then(|| state.last_used + self.shared.idle_limit)
    }

    fn obey(&mut self, orders: Orders) {
        let Orders { text, close_input, signals, size, look, stop, .. } = orders;
        if !text.is_empty() {
            if let Some(input) = &mut self.input {
                input.push(&text);
            }
            self.feed();
        }
        for signal in signals {
            let _ = self.running.signal(signal);
        }
        // After a signal: an interpreter that is interrupted reads the end, and one that ended gets no signal.
        if close_input {
            self.close_input = true;
            self.feed();
        }
        if let (Some(size), Some(control)) = (size, self.channel.pipe()) {
            // A terminal that has ended has no size any more.
            let _ = terminal::resize(control, size);
            self.shared.change(|state| {
                if let Some(screen) = &mut state.screen {
                    screen.resize(size);
                }
            });
        }
        if let Some(at_ports) = look {
            // A supervisor that is gone shows in the report.
            let _ = self.running.look(at_ports);
        }
        if let Some(cause) = stop {
            self.begin_stop(cause);
        }
    }

    fn feed(&mut self) {
        let fed = self.input.as_mut().map_or(Feed::Done, Input::feed);
        let left = self.input.as_ref().map_or(0, Input::left);
        self.shared.lock().orders.waiting_input = left;
        if fed == Feed::Done && self.close_input {
            self.input = None;
        }
    }

    fn wait(&self, due: Option<Instant>) -> Ready {
        let wake = &self.shared.wake;
        // A descriptor that is not of interest now is replaced by one that asks for nothing.
        let idle = PollFd::new(wake, PollFlags::empty());
        let mut fds = [
            PollFd::new(wake, PollFlags::IN),
            PollFd::from_borrowed_fd(self.running.as_fd(), PollFlags::IN),
            match self.channel.pipe() {
                Some(pipe) => PollFd::from_borrowed_fd(pipe, PollFlags::IN),
                None => idle.clone(),
            },
            match &self.input {
                Some(input) if input.left() > 0 => {
                    PollFd::from_borrowed_fd(input.pipe(), PollFlags::OUT)
                }
                _ => idle,
            },
        ];
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| left.try_into().ok());
        // An interruption by a signal is served like a timeout: everything is looked at again.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = |at: usize| !fds[at].revents().is_empty();
        Ready { control: ready(1), output: ready(2), input: ready(3) }
    }

    fn read(&mut self) {
        self.channel.read();
        self.pass_on();
    }

    /// Passes on what was read, also where that is only the end of what was held back.
    fn pass_on(&mut self) {
        if !self.channel.is_waiting() {
            return;
        }
        let piece = self.channel.take();
        self.settle_at = self.channel.can_settle().then(|| Instant::now() + QUIET);
        self.keep(&piece);
        self.tell_held_back();
    }

    /// Passes on what was held back, as far as a pause tells that it is no part of a secret.
    fn settle(&mut self) {
        self.settle_at = None;
        let piece = self.channel.settle();
        self.keep(&piece);
        self.tell_held_back();
    }

    /// Has calls that wait for silence know whether it is one.
    fn tell_held_back(&self) {
        let holds_back = self.settle_at.is_some();
        if self.shared.lock().holds_back != holds_back {
            self.shared.change(|state| state.holds_back = holds_back);
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.shared.change(|state| {
            state.record.push(piece);
            state.last_output = Instant::now();
        });
        let mut answers = Vec::new();
        // Calls wait for the lock meanwhile, so it is given back often.
        for slice in piece.chunks(SCREEN_SLICE) {
            answers.extend(self.shared.change(|state| {
                state.screen.as_mut().map(|screen| screen.push(slice)).unwrap_or_default()
            }));
        }
        if let Some(input) = &mut self.input
            && !answers.is_empty()
            && input.left() < super::MOST_WAITING_INPUT
        {
            input.push(&answers);
            self.feed();
        }
    }

    /// Nobody writes any more: what is still there is all.
    fn read_the_rest(&mut self) {
        self.channel.expect_no_more();
        while self.channel.pipe().is_some() {
            if self.channel.read() == Readiness::Drained {
                self.channel.end();
            }
            self.pass_on();
        }
        self.pass_on();
    }

    fn begin_stop(&mut self, cause: EndCause) {
        let grace = match cause {
            EndCause::Stopped | EndCause::Idle | EndCause::HostSession => GRACE,
            EndCause::Cancelled | EndCause::Configured | EndCause::Provider => SHORT_GRACE,
        };
        let kill_at = Instant::now() + grace;
        if let Some(stop) = &mut self.stop {
            // A second cause only brings SIGKILL nearer.
            stop.kill_at = stop.kill_at.min(kill_at);
            return;
        }
        // An interactive shell ends with its terminal, and not by SIGTERM.
        let hang_up = self.is_on_terminal.then_some(Signal::HUP);
        let sent = [Some(Signal::TERM), hang_up]
            .into_iter()
            .flatten()
            .all(|signal| self.running.signal(signal.as_raw()).is_ok());
        let signal = if sent { StopSignal::Terminate } else { StopSignal::None };
        self.stop = Some(Stop { cause, signal, kill_at });
        if !sent {
            self.kill();
        }
    }

    fn kill(&mut self) {
        let Some(stop) = &mut self.stop else { return };
        stop.signal = match stop.signal {
            StopSignal::Terminate => StopSignal::TerminateAndKill,
            _ => StopSignal::Kill,
        };
        stop.kill_at = Instant::now();
        if let Err(error) = self.running.kill() {
            tracing::error!(%error, "cannot tell the supervisor to kill a session");
        }
    }
}

/// Says how a session ended, whatever ends its thread.
struct LastWords {
    shared: Arc<Shared>,
    ended: Option<Ended>,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        // A panic has dropped what kept the command alive.
        let ended = self.ended.take().unwrap_or_else(|| Ended {
            end: Err(Unreported::Stuck(Duration::ZERO)),
            stopped: None,
            notices: Vec::new(),
        });
        self.shared.change(|state| {
            state.record.finish();
            state.ended = Some(Arc::new(ended));
        });
    }
}
