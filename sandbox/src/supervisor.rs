//! The process that stands over one call: it starts the command, passes signals on, and sees to it
//! that nothing of the call is left when it reports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getpid, getrlimit, set_child_subreaper, setsid};

use crate::command::Stage;
use crate::descendants::{kill_descendants, signal_others};
use crate::policy::Limits;
use crate::sys::{self, Launch, Reaped, Wait};
use crate::waiting::{Waiting, find_waiting};
use crate::wire::{ExitReport, Order, Request, StartReport, receive_order};

/// How often adopted processes that ended are reaped while the command runs.
const REAP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long what a command left behind may go on.
const LINGER: Duration = Duration::from_millis(250);

/// The same where the caller has sent a signal: whoever asks a command to end says how long that
/// may take, so this is only a bound.
const LINGER_AFTER_SIGNAL: Duration = Duration::from_secs(10);

/// How often it is looked at meanwhile.
const LINGER_STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// A call as the spawner hands it over.
pub(crate) struct Call {
    pub(crate) control: OwnedFd,
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) message: Vec<u8>,
    /// What [`prepare`] said.
    pub(crate) ready: io::Result<()>,
}

/// What a supervisor does before it has a call.
pub(crate) fn prepare() -> io::Result<()> {
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    // For people who look at a list of processes.
    let _ = rustix::thread::set_name(c"call-supervisor");
    Ok(())
}

/// Serves the call to its end. `domain` is what sets it apart from other calls.
pub(crate) fn supervise(call: Call, domain: Option<BorrowedFd<'_>>) {
    let Call { control, stdio, message, ready } = call;
    match start(ready, &stdio, &message, domain) {
        Ok((pid, pidfd)) => {
            // Else the readers of the command's output would never see its end.
            drop(stdio);
            // A provider that is gone shows in the next poll.
            let _ = StartReport::Running(pid.unsigned_abs()).send(&control, Some(pidfd.as_fd()));
            let (reason, waiting) = watch(&control, &pidfd, pid);
            let early = match reason {
                StopReason::Exited { grace } => linger(&control, pid, grace),
                StopReason::KillOrdered | StopReason::ProviderGone => None,
            };
            let killed = kill_descendants(pid);
            if let (StopReason::KillOrdered | StopReason::Exited { .. }, Some(main)) =
                (reason, early.or(killed.main))
            {
                let exit = ExitReport {
                    wait_status: main.wait_status,
                    user_us: main.user_us,
                    system_us: main.system_us,
                    max_rss_kib: main.max_rss_kib,
                    killed: killed.alive,
                    waiting,
                };
                let _ = exit.send(&control);
            }
        }
        Err((stage, errno)) => {
            let _ = StartReport::Failed(stage, errno).send(&control, None);
        }
    }
}

fn start(
    ready: io::Result<()>,
    stdio: &[OwnedFd; 3],
    message: &[u8],
    domain: Option<BorrowedFd<'_>>,
) -> Result<(libc::pid_t, OwnedFd), (Stage, i32)> {
    let failed =
        |error: io::Error| (Stage::Supervisor, error.raw_os_error().unwrap_or(libc::EINVAL));
    ready.map_err(failed)?;
    let request = Request::decode(message).map_err(failed)?;
    let limits = resources(&request.limits);
    sys::launch(&Launch {
        program: &request.program,
        argv: &request.argv,
        env: &request.env,
        cwd: &request.cwd,
        stdio: [stdio[0].as_fd(), stdio[1].as_fd(), stdio[2].as_fd()],
        limits: &limits,
        domain,
    })
}

/// The limits as the kernel takes them, none above what this process may set.
fn resources(limits: &Limits) -> Vec<(libc::c_int, u64)> {
    let named = [
        (limits.memory_bytes, Resource::As, libc::RLIMIT_AS),
        (limits.processes, Resource::Nproc, libc::RLIMIT_NPROC),
        (limits.file_size_bytes, Resource::Fsize, libc::RLIMIT_FSIZE),
        (limits.open_files, Resource::Nofile, libc::RLIMIT_NOFILE),
    ];
    named
        .into_iter()
        .filter_map(|(limit, resource, number)| {
            let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            Some((number as libc::c_int, limit?.min(most)))
        })
        .collect()
}

/// Why [`watch`] stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopReason {
    /// The command's process ended. Processes that it left behind have `grace` to end as well.
    Exited { grace: Duration },
    /// The provider ordered a kill, or the supervisor cannot watch any longer.
    KillOrdered,
    /// Nobody waits for the report.
    ProviderGone,
}

/// Watches the command until it ends or must be killed. Also returns what the command waited for
/// when the first signal was sent to it.
fn watch(control: &OwnedFd, pidfd: &OwnedFd, pid: libc::pid_t) -> (StopReason, Option<Waiting>) {
    let mut grace = LINGER;
    let mut waiting = None;
    loop {
        let mut ready = [PollFd::new(pidfd, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
        match poll(&mut ready, Some(&REAP)) {
            Ok(0) => {
                sys::reap_orphans(pid);
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return (StopReason::KillOrdered, waiting),
        }
        let [exited, ordered] = ready.map(|fd| !fd.revents().is_empty());
        if ordered {
            match receive_order(control) {
                Ok(Order::Signal(signal)) => {
                    waiting = waiting.or_else(find_waiting);
                    pass_on(signal, pid);
                    grace = LINGER_AFTER_SIGNAL;
                }
                Ok(Order::Kill) => return (StopReason::KillOrdered, waiting),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return (StopReason::ProviderGone, waiting),
            }
        }
        if exited {
            return (StopReason::Exited { grace }, waiting);
        }
    }
}

/// Sends a signal to the command's process group at once, and to whatever has left it. Those that are
/// stopped are woken to be ended, since they could not heed SIGTERM otherwise.
fn pass_on(signal: i32, group: libc::pid_t) {
    let wake = (signal == libc::SIGTERM).then_some(libc::SIGCONT);
    for signal in std::iter::once(signal).chain(wake) {
        sys::signal(-group, signal);
        if let Some(signal) = Signal::from_named_raw(signal) {
            signal_others(group, signal);
        }
    }
}

/// The command has ended. What it left behind may still pass its output on, as a process
/// substitution does, and has a moment to end by itself. That moment is over when nothing is left,
/// when the caller says so (by an order to kill), or when it is gone. Returns how the command ended,
/// if it was waited for.
fn linger(control: &OwnedFd, pid: libc::pid_t, grace: Duration) -> Option<Reaped> {
    let mut main = None;
    let deadline = Instant::now() + grace;
    loop {
        loop {
            match sys::reap(Wait::Poll) {
                Ok(Some(reaped)) if reaped.pid == pid => main = Some(reaped),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return main,
            }
        }
        let stop = match poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&LINGER_STEP)) {
            Ok(0) | Err(Errno::INTR) => false,
            // A signal goes to a group that has lost its leader, which is no end either.
            Ok(_) => !matches!(receive_order(control), Ok(Order::Signal(_))),
            Err(_) => true,
        };
        if stop || Instant::now() >= deadline {
            return main;
        }
    }
}
