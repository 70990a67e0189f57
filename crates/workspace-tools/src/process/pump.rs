//! The loop that serves a running command: its output, its input, its end and ours.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use sandbox::{Report, Running};

use super::channel::{Channel, Readiness};
use super::delivery::Delivery;
use super::input::{Feed, Input};
use super::output::Transcript;
use super::{Budget, Finished, Interrupt, StopCause, StopSignal, Stopped, Unreported};
use tool_provider::{EventSink, Secrets};

/// How long small pieces wait for more to join them.
const COALESCE: Duration = Duration::from_millis(3);

/// Between SIGTERM and SIGKILL when a call is cancelled: enough to remove a lock file, and short
/// enough that nobody waits.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// How long a process that has closed its output may take to end, before it counts as left behind.
const SETTLE: Duration = Duration::from_millis(30);

/// How long what a command left running may take to clean up; the supervisor sees to it.
const CLEAN_UP: Duration = Duration::from_secs(2);

/// After how much silence a command is looked at for what it waits for, and how often.
const LOOK: Duration = Duration::from_secs(3);

/// How long after SIGKILL the kernel may take to take every process away.
const REAPING: Duration = Duration::from_secs(5);

/// What ends a command from outside, and when its silence is reported; see [`super::Call`].
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) budget: Budget,
    pub(crate) quiet_every: Duration,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) secrets: &'a Secrets,
}

/// A running command and everybody who has to do with it.
pub(crate) struct Pump<'a> {
    running: Running,
    shell: Shell,
    end: Option<Result<Report, Unreported>>,
    channels: [Channel; 2],
    input: Option<Input>,
    delivery: Delivery<'a>,
    budget: Budget,
    interrupt: &'a Interrupt,
    cancel: Cancel,
    stop: Option<Stop>,
    /// When a command that was killed is given up.
    give_up_at: Option<Instant>,
    /// When what was read has to go on.
    flush_at: Option<Instant>,
    silence: Silence,
}

/// How long nothing was written.
#[derive(Clone, Copy)]
struct Silence {
    since: Instant,
    report_every: Duration,
    report_at: Instant,
    look_at: Instant,
}

impl Silence {
    fn begin(report_every: Duration) -> Self {
        let since = Instant::now();
        Self { since, report_every, report_at: since + report_every, look_at: since + LOOK }
    }
}

/// Where the command's own process stands, while others that it started may still be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Running,
    /// It has ended, and what it left behind has a moment to pass on its output.
    Exited {
        /// When nothing is waited for any more, because nothing can be added to the output.
        settle_at: Option<Instant>,
    },
    /// It has ended, and what it left behind was asked to end.
    CleaningUp,
    /// It has ended, and nothing is waited for any more.
    Settled,
}

/// A stop under way.
#[derive(Clone, Copy)]
struct Stop {
    cause: StopCause,
    signal: StopSignal,
    /// When SIGKILL is due.
    kill_at: Instant,
}

/// Whether the interrupt was raised; it stays readable, so it is looked at only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    Possible,
    Handled,
}

/// What one round of polling found ready, besides the channels.
#[derive(Clone, Copy)]
struct Ready {
    control: bool,
    shell: bool,
    interrupt: bool,
    channels: [bool; 2],
    input: bool,
}

impl<'a> Pump<'a> {
    pub(crate) fn new(
        running: Running,
        channels: [Channel; 2],
        input: Option<Input>,
        terms: Terms<'a>,
        sink: &'a dyn EventSink,
    ) -> Self {
        let Terms { budget, quiet_every, interrupt, secrets } = terms;
        Self {
            running,
            shell: Shell::Running,
            end: None,
            channels,
            input,
            delivery: Delivery::new(sink, secrets),
            budget,
            interrupt,
            cancel: Cancel::Possible,
            stop: None,
            give_up_at: None,
            flush_at: None,
            silence: Silence::begin(quiet_every),
        }
    }

    /// Serves the command until it and everything that it started is gone and what it wrote has
    /// been passed on.
    pub(crate) fn run(mut self, started: Instant, mut transcript: Transcript) -> Finished {
        let mut duration = None;
        while !self.is_over() {
            self.stop_when_due(Instant::now());
            self.delivery.retry();
            let ready = self.wait();
            if ready.interrupt || (self.delivery.is_gone() && self.cancel == Cancel::Possible) {
                self.cancel = Cancel::Handled;
                self.begin_stop(StopCause::Cancelled);
            }
            if ready.input && self.input.as_mut().is_some_and(|input| input.feed() == Feed::Done) {
                self.input = None;
            }
            self.read(ready.channels, &mut transcript);
            if ready.shell && self.shell == Shell::Running {
                self.shell = Shell::Exited { settle_at: None };
            }
            if ready.control {
                self.take_report();
            }
            self.settle();
            if self.end.is_some() {
                duration.get_or_insert_with(|| started.elapsed());
                self.read_the_rest(&mut transcript);
            }
            self.flush_when_due(&mut transcript);
            self.report_silence_when_due();
        }
        for index in 0..self.channels.len() {
            // Only where the kernel did not take the command away is anything left here.
            self.channels[index].end();
            self.flush(index, &mut transcript);
        }
        self.delivery.give_up();
        let [stdout, stderr] = &self.channels;
        let [streamed_stdout_bytes, streamed_stderr_bytes] = self.delivery.delivered();
        Finished {
            stdout_bytes: stdout.received(),
            stderr_bytes: stderr.received(),
            streamed_stdout_bytes,
            streamed_stderr_bytes,
            unstreamed_bytes: self.delivery.dropped(),
            duration: duration.unwrap_or_else(|| started.elapsed()),
            output: transcript.finish(),
            stopped: self.stop.map(|stop| Stopped { cause: stop.cause, signal: stop.signal }),
            end: self.end.unwrap_or(Err(Unreported::Stuck(REAPING))),
        }
    }

    /// Whether nothing is left to do or to hope for.
    fn is_over(&self) -> bool {
        let passed_on = self.channels.iter().all(Channel::is_closed) && self.may_pass();
        let ended = self.end.is_some() && passed_on;
        let stuck = self.end.is_none() && self.give_up_at.is_some_and(|at| Instant::now() >= at);
        ended || stuck
    }

    /// Whether output is read although the sink has not taken what came before: nothing may
    /// hold up the end of a call that has to end.
    fn is_in_a_hurry(&self) -> bool {
        self.stop.is_some() || Instant::now() >= self.budget.time_up
    }

    /// Whether a channel may be read, or what it holds be passed on.
    fn may_pass(&self) -> bool {
        !self.delivery.is_waiting() || self.is_in_a_hurry()
    }

    fn stop_when_due(&mut self, now: Instant) {
        match self.stop {
            None if now >= self.budget.time_up => self.begin_stop(StopCause::TimeUp),
            Some(stop) if stop.signal == StopSignal::Terminate && now >= stop.kill_at => {
                self.kill()
            }
            _ => {}
        }
    }

    /// Asks the command to end; a second cause only brings SIGKILL nearer.
    fn begin_stop(&mut self, cause: StopCause) {
        let now = Instant::now();
        let grace = match cause {
            StopCause::TimeUp => self.budget.grace,
            StopCause::Cancelled => CANCEL_GRACE,
        };
        if let Some(stop) = &mut self.stop {
            stop.kill_at = stop.kill_at.min(now + grace);
            return;
        }
        if self.end.is_some() || self.shell != Shell::Running {
            // Only its output was still on the way. That is no timeout of the command.
            if cause == StopCause::Cancelled {
                self.stop = Some(Stop { cause, signal: StopSignal::None, kill_at: now });
            }
            // `settle` ends what is left at once.
            return;
        }
        let sent = !grace.is_zero() && self.running.signal(Signal::TERM.as_raw()).is_ok();
        let signal = if sent { StopSignal::Terminate } else { StopSignal::None };
        self.stop = Some(Stop { cause, signal, kill_at: now + grace });
        if !sent {
            self.kill();
        }
    }

    fn kill(&mut self) {
        if self.end.is_some() {
            return;
        }
        let Some(stop) = &mut self.stop else { return };
        stop.signal = match stop.signal {
            StopSignal::None | StopSignal::Kill => StopSignal::Kill,
            StopSignal::Terminate | StopSignal::TerminateAndKill => StopSignal::TerminateAndKill,
        };
        self.end_everything();
    }

    /// Once the shell has ended, what it left behind is waited for only as long as it can still add
    /// to the output and the call has the time. Where SIGTERM was sent it has the whole grace.
    fn settle(&mut self) {
        let settle_at = match self.shell {
            Shell::Running | Shell::Settled => return,
            Shell::CleaningUp => None,
            Shell::Exited { settle_at } => settle_at,
        };
        if self.end.is_some() || self.stop.is_some_and(|stop| stop.signal != StopSignal::None) {
            return;
        }
        if self.is_in_a_hurry() {
            self.shell = Shell::Settled;
            self.end_everything();
            return;
        }
        if self.shell == Shell::CleaningUp {
            return;
        }
        let now = Instant::now();
        let mute = self.channels.iter().all(|channel| channel.pipe().is_none());
        let settle_at = if mute { settle_at.or(Some(now + SETTLE)) } else { None };
        if settle_at.is_some_and(|at| now >= at) {
            self.shell = Shell::CleaningUp;
            self.give_up_at = Some(now + CLEAN_UP + REAPING);
            if let Err(error) = self.running.finish() {
                tracing::error!(%error, "cannot tell the supervisor to finish a call");
            }
        } else {
            self.shell = Shell::Exited { settle_at };
        }
    }

    fn end_everything(&mut self) {
        self.give_up_at = Some(Instant::now() + REAPING);
        if let Err(error) = self.running.kill() {
            tracing::error!(%error, "cannot tell the supervisor to kill a call");
        }
    }

    /// Waits until something is ready or due.
    fn wait(&self) -> Ready {
        // A descriptor that is not of interest now is replaced by one that never reports anything
        // that was not asked for.
        let idle = PollFd::new(self.interrupt, PollFlags::empty());
        let may_read = self.may_pass();
        let channel = |index: usize| match self.channels[index].pipe() {
            Some(pipe) if may_read => PollFd::from_borrowed_fd(pipe, PollFlags::IN),
            _ => idle.clone(),
        };
        let mut fds = [
            match self.end {
                None => PollFd::from_borrowed_fd(self.running.as_fd(), PollFlags::IN),
                Some(_) => idle.clone(),
            },
            match self.running.main() {
                Some(main) if self.shell == Shell::Running => {
                    PollFd::from_borrowed_fd(main, PollFlags::IN)
                }
                _ => idle.clone(),
            },
            match self.cancel {
                Cancel::Possible => PollFd::new(self.interrupt, PollFlags::IN),
                Cancel::Handled => idle.clone(),
            },
            channel(0),
            channel(1),
            match &self.input {
                Some(input) => PollFd::from_borrowed_fd(input.pipe(), PollFlags::OUT),
                None => idle.clone(),
            },
        ];
        let timeout = self.poll_timeout();
        // An interruption by a signal is served like a timeout: everything is looked at again.
        let _ = poll(&mut fds, Some(&timeout));
        let ready = |index: usize| !fds[index].revents().is_empty();
        Ready {
            control: ready(0),
            shell: ready(1),
            interrupt: ready(2),
            channels: [ready(3), ready(4)],
            input: ready(5),
        }
    }

    fn poll_timeout(&self) -> Timespec {
        let now = Instant::now();
        let due = match (self.stop, self.shell) {
            (None, Shell::CleaningUp) => Some(self.budget.time_up),
            _ if self.give_up_at.is_some() => self.give_up_at,
            (Some(stop), _) if stop.signal == StopSignal::Terminate => Some(stop.kill_at),
            (None, Shell::Exited { settle_at: Some(at) }) => Some(at),
            _ => Some(self.budget.time_up),
        };
        let silence = self.silence.report_at.min(self.silence.look_at);
        let report_at = self.may_report_silence().then_some(silence);
        let soonest = [due, self.flush_at, report_at].into_iter().flatten().min();
        let mut timeout = soonest.map_or(COALESCE, |due| due.saturating_duration_since(now));
        if self.delivery.is_waiting() || (self.end.is_some() && self.may_pass()) {
            // The wait is in the next attempt to deliver, or there is nothing to wait for.
            timeout = Duration::ZERO;
        }
        Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        }
    }

    /// Reads once from every channel that is ready.
    fn read(&mut self, ready: [bool; 2], transcript: &mut Transcript) {
        for (index, ready) in ready.into_iter().enumerate() {
            if !ready || !self.may_pass() {
                continue;
            }
            // What the other stream brought before goes first, so that the order of arrival stays.
            self.flush(1 - index, transcript);
            if !self.may_pass() {
                continue;
            }
            if self.channels[index].read() == Readiness::More {
                self.silence = Silence::begin(self.silence.report_every);
            }
            if self.channels[index].is_full() {
                self.flush(index, transcript);
            } else if self.channels[index].is_waiting() {
                self.flush_at.get_or_insert_with(|| Instant::now() + COALESCE);
            }
        }
    }

    /// The call is over, so that nobody writes any more: what is still in the pipes is all.
    fn read_the_rest(&mut self, transcript: &mut Transcript) {
        for index in 0..self.channels.len() {
            self.channels[index].expect_no_more();
            while self.channels[index].pipe().is_some() {
                self.flush(1 - index, transcript);
                if !self.may_pass() {
                    return;
                }
                if self.channels[index].read() == Readiness::Drained {
                    self.channels[index].end();
                }
                if self.channels[index].is_full() {
                    self.flush(index, transcript);
                }
                if !self.may_pass() {
                    return;
                }
            }
        }
        self.flush_at = Some(Instant::now());
    }

    fn flush_when_due(&mut self, transcript: &mut Transcript) {
        if self.flush_at.is_some_and(|due| Instant::now() >= due) {
            self.flush(0, transcript);
            self.flush(1, transcript);
            if !self.channels.iter().any(Channel::is_waiting) {
                self.flush_at = None;
            }
        }
    }

    /// Whether silence is the command's own: not while nobody takes what it writes, and not once it
    /// has to end.
    fn may_report_silence(&self) -> bool {
        self.shell == Shell::Running && self.stop.is_none() && !self.delivery.is_waiting()
    }

    fn report_silence_when_due(&mut self) {
        let now = Instant::now();
        if !self.may_report_silence() {
            return;
        }
        if now >= self.silence.report_at {
            self.silence.report_at = now + self.silence.report_every;
            self.delivery.quiet(now - self.silence.since);
        }
        if now >= self.silence.look_at {
            self.silence.look_at = now + LOOK.max(self.silence.report_every);
            // A supervisor that is gone shows in the report.
            let _ = self.running.look(false);
        }
    }

    /// Passes on what a channel holds, if anything, unless the sink has to be waited for.
    fn flush(&mut self, index: usize, transcript: &mut Transcript) {
        if !self.channels[index].is_waiting() || !self.may_pass() {
            return;
        }
        let piece = self.channels[index].take();
        if !piece.is_empty() {
            transcript.push(&piece);
            self.delivery.offer(self.channels[index].stream, piece);
        }
    }

    fn take_report(&mut self) {
        match self.running.try_wait() {
            Ok(Some(report)) => self.end = Some(Ok(report)),
            Ok(None) => {
                let waiting = self.running.take_look().and_then(|look| look.waiting);
                if let Some(waiting) = waiting
                    && self.may_report_silence()
                {
                    self.delivery.waits(waiting);
                }
            }
            Err(lost) => self.end = Some(Err(lost.into())),
        }
    }
}
