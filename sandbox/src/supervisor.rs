//! The supervisor process of one call: it starts the command, passes signals on, and leaves no
//! process of the call alive when it reports.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fstat, makedev, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getpid, getrlimit, set_child_subreaper, setsid};

use crate::command::{Look, Stage};
use crate::confine::{Kept, drop_capabilities};
use crate::descendants::{LeftBehind, kill_descendants, signal_others, terminate_descendants};
use crate::listening;
use crate::policy::Limits;
use crate::sys::{self, Launch, Reaped, Wait};
use crate::waiting::{Attended, Waiting, find_waiting};
use crate::wire::{ExitReport, Order, Request, StartReport, receive_order, send_look};

/// How often to reap adopted processes that have ended while the command runs.
const REAP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long the processes that a command left behind may go on.
const LINGER: Duration = Duration::from_millis(250);

/// The same after the caller has sent a signal. This is only a bound: the caller decides how long a
/// command may take to stop, and then orders a kill.
const LINGER_AFTER_SIGNAL: Duration = Duration::from_secs(10);

/// How long they have after SIGTERM, and again each time that one of them ends: enough to remove a lock
/// file, and short enough where none of them reacts.
const CLEAN_UP: Duration = Duration::from_millis(500);

/// How long in all.
const LONGEST_CLEAN_UP: Duration = Duration::from_millis(1500);

/// On how many ports a look finds a command to listen, at most.
const MOST_PORTS: usize = 256;

/// How often to look for them meanwhile.
const LINGER_STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// A call, as the spawner passes it on.
pub(crate) struct Call {
    pub(crate) control: OwnedFd,
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) message: Vec<u8>,
    /// The result of [`prepare`].
    pub(crate) ready: io::Result<()>,
    /// The directory that stands for [`CALL_SCRATCH`] in variables of the environment.
    pub(crate) scratch: Option<PathBuf>,
}

/// Stands in values of a command's variables for the scratch directory of its own call, whose path is not
/// known before the call has one.
pub(crate) const CALL_SCRATCH: &str = "/.scratch-of-the-call";

/// What isolates the calls of a jail from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallIsolation {
    /// A Landlock domain for each call.
    Domain,
    /// And an IPC namespace, which ends with the call's last process, and all that is in it.
    DomainAndIpc,
}

/// Prepares a supervisor before it has a call.
pub(crate) fn prepare(isolation: CallIsolation) -> io::Result<()> {
    if isolation == CallIsolation::DomainAndIpc {
        let own = sys::unshare(libc::CLONE_NEWIPC);
        // Whatever became of it: a supervisor with a call has no rights that the call lacks.
        drop_capabilities(Kept::ForFiles)?;
        own?;
    }
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    // For people who read a list of processes.
    let _ = rustix::thread::set_name(c"call-supervisor");
    Ok(())
}

/// Serves the call until its end. `domain` isolates it from other calls.
pub(crate) fn supervise(call: Call, domain: Option<BorrowedFd<'_>>) {
    let Call { control, stdio, message, ready, scratch } = call;
    match start(ready, &stdio, &message, domain, scratch.as_deref()) {
        Ok(Started { pid, pidfd, attended }) => {
            // With our copies open, the readers of the command's output would never see its end.
            drop(stdio);
            // The next poll shows whether the provider is gone.
            let _ = StartReport::Running(pid.unsigned_abs()).send(&control, Some(pidfd.as_fd()));
            let (reason, waiting) = watch(&control, &pidfd, pid, attended);
            let (early, left) = match reason {
                StopReason::Exited { grace } => end_what_is_left(&control, pid, grace),
                StopReason::KillOrdered | StopReason::ProviderGone => (None, LeftBehind::default()),
            };
            let left_running = left.programs;
            let killed = kill_descendants(pid, early, left);
            if let (StopReason::KillOrdered | StopReason::Exited { .. }, Some(main)) =
                (reason, killed.main)
            {
                let exit = ExitReport {
                    wait_status: main.wait_status,
                    user_us: main.user_us,
                    system_us: main.system_us,
                    max_rss_kib: main.max_rss_kib,
                    killed: killed.alive,
                    left_running,
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

/// A command whose program runs.
struct Started {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    attended: Option<Attended>,
}

fn start(
    ready: io::Result<()>,
    stdio: &[OwnedFd; 3],
    message: &[u8],
    domain: Option<BorrowedFd<'_>>,
    scratch: Option<&Path>,
) -> Result<Started, (Stage, i32)> {
    let failed =
        |error: io::Error| (Stage::Supervisor, error.raw_os_error().unwrap_or(libc::EINVAL));
    ready.map_err(failed)?;
    let mut request = Request::decode(message).map_err(failed)?;
    if let Some(scratch) = scratch {
        name_scratch(&mut request, scratch).map_err(failed)?;
    }
    let mut nulls = [None, None, None];
    for (null, fd) in nulls.iter_mut().zip(stdio) {
        *null = own_null(fd).map_err(|errno| (Stage::Stdio, errno.raw_os_error()))?;
    }
    let stdio: [BorrowedFd<'_>; 3] =
        std::array::from_fn(|at| nulls[at].as_ref().unwrap_or(&stdio[at]).as_fd());
    let limits = resources(&request.limits);
    let attended = Attended::of(request.input, stdio[0])
        .map_err(|errno| (Stage::Stdio, errno.raw_os_error()))?;
    let (pid, pidfd) = sys::launch(&Launch {
        program: &request.program,
        argv: &request.argv,
        env: &request.env,
        cwd: &request.cwd,
        stdio,
        input: request.input,
        limits: &limits,
        domain,
    })?;
    Ok(Started { pid, pidfd, attended })
}

/// Puts the path of the call's own scratch directory where a variable names it.
fn name_scratch(request: &mut Request, scratch: &Path) -> io::Result<()> {
    let (stand_in, path) = (CALL_SCRATCH.as_bytes(), scratch.as_os_str().as_bytes());
    for variable in &mut request.env {
        let mut text = variable.as_bytes().to_vec();
        let finds = |text: &[u8]| text.windows(stand_in.len()).position(|part| part == stand_in);
        let mut is_named = false;
        while let Some(at) = finds(&text) {
            text.splice(at..at + stand_in.len(), path.iter().copied());
            is_named = true;
        }
        if is_named {
            *variable = CString::new(text)?;
        }
    }
    Ok(())
}

/// This jail's /dev/null in place of the provider's: by that descriptor a command could change the mode
/// and times of the machine's device, which the jail's mount does not allow. `None` for other files.
fn own_null(fd: &OwnedFd) -> rustix::io::Result<Option<OwnedFd>> {
    let found = fstat(fd)?;
    let device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    if !device || found.st_rdev != makedev(1, 3) {
        return Ok(None);
    }
    let access = fcntl_getfl(fd)? & OFlags::RWMODE;
    openat(CWD, "/dev/null", access | OFlags::CLOEXEC, Mode::empty()).map(Some)
}

/// The limits as resource numbers and values, none above what this process may set.
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
fn watch(
    control: &OwnedFd,
    pidfd: &OwnedFd,
    pid: libc::pid_t,
    attended: Option<Attended>,
) -> (StopReason, Option<Waiting>) {
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
                    waiting = waiting.or_else(|| find_waiting(attended));
                    pass_on(signal, pid);
                    grace = LINGER_AFTER_SIGNAL;
                }
                Ok(Order::Kill) => return (StopReason::KillOrdered, waiting),
                Ok(Order::Look { at_ports }) => {
                    let ports = at_ports.then(listening::ports).unwrap_or_default();
                    let ports = ports.into_iter().take(MOST_PORTS).collect();
                    let look = Look { waiting: find_waiting(attended), ports };
                    // Nobody may be there any more to read it; the next poll shows that.
                    let _ = send_look(control, &look);
                }
                Ok(Order::Finish) => grace = Duration::ZERO,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return (StopReason::ProviderGone, waiting),
            }
        }
        if exited {
            return (StopReason::Exited { grace }, waiting);
        }
    }
}

/// Sends a signal to the command's process group, then to the descendants that have left it.
/// SIGTERM is followed by SIGCONT, because a stopped process does not act on SIGTERM.
fn pass_on(signal: i32, group: libc::pid_t) {
    let wake = (signal == libc::SIGTERM).then_some(libc::SIGCONT);
    for signal in std::iter::once(signal).chain(wake) {
        sys::signal(-group, signal);
        if let Some(signal) = Signal::from_named_raw(signal) {
            signal_others(group, signal);
        }
    }
}

/// Waits for the processes that an ended command left behind, which may still pass on its output, as a
/// process substitution does; then asks those that are left to end. Returns the command's exit, if this
/// reaped it, and whom it asked.
fn end_what_is_left(
    control: &OwnedFd,
    pid: libc::pid_t,
    grace: Duration,
) -> (Option<Reaped>, LeftBehind) {
    let mut wait = LastWait { control, pid, main: None, ended: 0 };
    let was_signalled = grace == LINGER_AFTER_SIGNAL;
    match wait.until(Instant::now() + grace) {
        WaitEnd::TimeUp | WaitEnd::Finish if !was_signalled => {}
        _ => return (wait.main, LeftBehind::default()),
    }
    let left = terminate_descendants();
    let latest = Instant::now() + LONGEST_CLEAN_UP;
    loop {
        let ended = wait.ended;
        match wait.until(latest.min(Instant::now() + CLEAN_UP)) {
            // That is being done.
            WaitEnd::Finish => {}
            WaitEnd::TimeUp if wait.ended > ended && Instant::now() < latest => {}
            WaitEnd::TimeUp | WaitEnd::Over => return (wait.main, left),
        }
    }
}

/// The wait for what an ended command left behind.
struct LastWait<'a> {
    control: &'a OwnedFd,
    pid: libc::pid_t,
    main: Option<Reaped>,
    /// How many processes have ended.
    ended: u64,
}

/// Why [`LastWait::until`] stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    TimeUp,
    /// The provider does not want to wait for output any longer.
    Finish,
    /// None is left, the provider ordered a kill, or it is gone.
    Over,
}

impl LastWait<'_> {
    fn until(&mut self, deadline: Instant) -> WaitEnd {
        loop {
            for _ in 0..sys::MOST_REAPED {
                match sys::reap(Wait::Poll) {
                    Ok(Some(reaped)) if reaped.pid == self.pid => self.main = Some(reaped),
                    Ok(Some(_)) => self.ended += 1,
                    Ok(None) => break,
                    Err(_) => return WaitEnd::Over,
                }
            }
            match poll(&mut [PollFd::new(self.control, PollFlags::IN)], Some(&LINGER_STEP)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => match receive_order(self.control) {
                    Ok(Order::Finish) => return WaitEnd::Finish,
                    // The group has lost its leader, and who waits for input ends all the same.
                    Ok(Order::Signal(_) | Order::Look { .. }) => {}
                    Ok(Order::Kill) | Err(_) => return WaitEnd::Over,
                },
                Err(_) => return WaitEnd::Over,
            }
            if Instant::now() >= deadline {
                return WaitEnd::TimeUp;
            }
        }
    }
}
