//! The spawner process: the running program, started a second time, with one thread. It forks a supervisor
//! for each call and holds nothing that a command may not see. Where calls have nothing of their own that
//! has to be mounted, it is confined once, for all of them.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, set_child_subreaper,
    set_parent_process_death_signal, setsid,
};
use rustix::thread::set_no_new_privs;

use crate::call_groups::{CallGroups, NoGroups};
use crate::command::Stage;
use crate::confine::{Confined, Kept, confine, drop_capabilities};
use crate::descendants::kill_orphans;
use crate::filter::Processes;
use crate::namespaces::{self, Failure, ProcessLimit, Side, failed};
use crate::others::Narrowed;
use crate::plan::{Confinement, Plan, Ready, Setup};
use crate::policy::{self, Namespaces, Surroundings};
use crate::spares::{self, Kit};
use crate::supervisor::{Call, CallIsolation, prepare, supervise};
use crate::sys::{self, Fork, Wait};
use crate::wire::{self, Blocking, StartReport};

/// The argument that makes this program a spawner.
pub(crate) const ARGUMENT: &str = "__sandbox-spawner";

/// Whether this process was started as a jail's spawner. `main` calls this first, before it starts
/// any thread, and on `true` only returns [`spawner_main`].
#[must_use]
pub fn is_spawner_invocation() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT))
}

/// Serves as a jail's spawner until the jail is dropped and its calls have ended. Standard input is
/// the jail's socket; a process that no jail started ends at once. Closes every descriptor from 3
/// on, so the caller must not have opened any.
#[must_use]
pub fn spawner_main() -> ExitCode {
    sys::close_inherited();
    match sys::standard_input().and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(socket: OwnedFd) -> io::Result<()> {
    detach()?;
    let (message, _) = wire::receive(&socket, Blocking::Allowed)?;
    let plan = Plan::decode(&message)?;
    match set_up(&plan) {
        Ok(Role::Waiting) => {
            // The child has its own copy. A second one would hide the child's end from the jail.
            drop(socket);
            wait_outside()
        }
        Ok(Role::Serving { setup, calls }) => {
            wire::send(&socket, &setup.encode(), &[])?;
            match calls {
                Calls::Alike { domain, isolation } => {
                    answer_calls(socket, domain.as_ref(), isolation)
                }
                Calls::Apart(kit, groups) => spares::answer_calls(socket, &kit, groups),
            }
        }
        Err(Failure { step, source }) => {
            let errno = source.raw_os_error();
            let step = if errno.is_some() { step } else { format!("{step}: {source}") };
            wire::send(&socket, &Setup::Failed { step, errno }.encode(), &[])
        }
    }
}

/// Drops what this process inherited, so that commands inherit none of it.
fn detach() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for target in 0..3 {
        sys::replace_stdio(&null, target)?;
    }
    sys::default_signals();
    if sys::threads()? != 1 {
        return Err(io::Error::other("the spawner must be entered before any thread is started"));
    }
    // Fails for the leader of a process group, which this is only when a person starts it.
    let _ = setsid();
    Ok(())
}

enum Role {
    /// Outside the namespaces, with nothing to do.
    Waiting,
    Serving {
        setup: Setup,
        calls: Calls,
    },
}

/// How calls are served.
enum Calls {
    /// Under the domain of this process.
    Alike { domain: Option<OwnedFd>, isolation: CallIsolation },
    /// By processes that confine themselves, each in a control group of its own where that can be had.
    Apart(Box<Kit>, Option<CallGroups>),
}

fn set_up(plan: &Plan) -> Result<Role, Failure> {
    let (mut pid_limit, mut processes) = (false, Processes::Shared);
    let mut narrowed = Narrowed::ByEntry;
    let mut groups = Err(NoGroups::NotDelegated);
    if plan.namespaces == Namespaces::Auto {
        // Found from outside: control groups are not among what the namespaces show.
        groups = CallGroups::find(plan.processes);
        let limit = match &groups {
            Ok(_) => ProcessLimit::OfEachCall,
            Err(_) => ProcessLimit::OfTheJail,
        };
        match namespaces::enter(plan, limit)? {
            Side::Outside => return Ok(Role::Waiting),
            Side::Inside { pid_limit: limited, narrowed: by } => {
                (pid_limit, processes, narrowed) = (limited, Processes::Own, by);
            }
        }
    }
    // The processes that a dead supervisor leaves behind become children of this one, which kills
    // them.
    set_child_subreaper(Some(getpid())).map_err(|e| failed("a subreaper")(e.into()))?;
    let has_terminals = processes == Processes::Own && plan.confinement == Confinement::Whole;
    if plan.surroundings != Surroundings::Shared || has_terminals {
        let kit = Kit::of(plan, processes, narrowed).and_then(|kit| kit.try_out().map(|()| kit));
        match kit {
            Ok(kit) => {
                let shared_limit = groups.as_ref().err().map(NoGroups::to_string);
                let ready = Ready { pid_limit, narrowed, shared_limit, unfiltered: None };
                let calls = Calls::Apart(Box::new(kit), groups.ok());
                return Ok(Role::Serving { setup: Setup::Ready(ready), calls });
            }
            // One that is confined as far as it can be serves all calls.
            Err(_) if plan.mode == policy::Mode::BestEffort && has_terminals => {}
            Err(failure) => return Err(failure),
        }
    }
    let Confined { call, unfiltered } = confine(plan, processes, narrowed)?;
    let shared_limit = Some("they have one supervisor for all".to_owned());
    let setup = Setup::Ready(Ready { pid_limit, narrowed, shared_limit, unfiltered });
    let isolation = match (processes, plan.confinement) {
        (Processes::Shared, _) | (_, Confinement::None) => CallIsolation::Domain,
        (Processes::Own, _) => CallIsolation::DomainAndIpc,
    };
    Ok(Role::Serving { setup, calls: Calls::Alike { domain: call, isolation } })
}

/// Waits until the first process of the namespaces, this one's child, has ended.
fn wait_outside() -> io::Result<()> {
    set_no_new_privs(true)?;
    drop_capabilities(Kept::ForFiles)?;
    sys::reap(Wait::Block).map(|_| ())
}

/// A supervisor's pid and pidfd.
pub(crate) type Supervisor = (libc::pid_t, OwnedFd);

/// How long to wait before forking again after a failed fork.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Keeps one spare supervisor that waits for the next call on the jail's socket, so no call waits
/// for a fork. The next spare is forked while the call's program loads.
fn answer_calls(
    socket: OwnedFd,
    domain: Option<&OwnedFd>,
    isolation: CallIsolation,
) -> io::Result<()> {
    let (taken, take) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut supervisors: Vec<Supervisor> = Vec::new();
    let mut spare: Option<Supervisor> = None;
    loop {
        let Some((pid, pidfd)) = &spare else {
            match sys::fork() {
                Ok(Fork::Child) => {
                    drop((taken, supervisors));
                    let call = wait_for_call(&socket, &take, isolation);
                    drop((socket, take));
                    if let Some(call) = call {
                        supervise(call, domain.map(AsFd::as_fd));
                    }
                    sys::exit_now(0);
                }
                Ok(Fork::Parent(pid)) => spare = Some((pid, pidfd_of(pid)?)),
                Err(error) => match refuse(&socket, &error) {
                    ControlFlow::Continue(()) => reap_supervisors(&mut supervisors, None),
                    ControlFlow::Break(()) => break,
                },
            }
            continue;
        };
        let mut ready = vec![PollFd::new(&taken, PollFlags::IN), PollFd::new(pidfd, PollFlags::IN)];
        ready.extend(supervisors.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)));
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let is_ready = |at: usize| ready.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(0) {
            rustix::io::read(&taken, &mut [0])?;
            supervisors.extend(spare.take());
        } else if is_ready(1) {
            // The spare has ended: it saw the end of the socket, or something killed it.
            if sys::exit_status_of(*pid) == Some(0) {
                break;
            }
            spare = None;
        }
        reap_supervisors(&mut supervisors, spare.as_ref());
    }
    // The jail is dropped or its provider is dead. The supervisors end their own calls.
    while !supervisors.is_empty() {
        let mut ready: Vec<_> =
            supervisors.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        if poll(&mut ready, None).is_ok() {
            reap_supervisors(&mut supervisors, None);
        }
    }
    Ok(())
}

/// Waits for a call, as a spare supervisor. `None` when the jail is gone.
fn wait_for_call(socket: &OwnedFd, take: &OwnedFd, isolation: CallIsolation) -> Option<Call> {
    // A supervisor without a call must die with the spawner.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let ready = prepare(isolation);
    loop {
        let (message, fds) = wire::receive(socket, Blocking::Allowed).ok()?;
        if let Ok([control, stdin, stdout, stderr]) = <[OwnedFd; 4]>::try_from(fds) {
            rustix::io::write(take, &[0]).ok()?;
            let _ = set_parent_process_death_signal(None);
            let stdio = [stdin, stdout, stderr];
            return Some(Call { control, stdio, message, ready, scratch: None });
        }
    }
}

/// Refuses the next call, after a fork failed. Breaks when the jail is gone.
pub(crate) fn refuse(socket: &OwnedFd, error: &io::Error) -> ControlFlow<()> {
    if poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&RETRY)) != Ok(1) {
        return ControlFlow::Continue(());
    }
    let Ok((_, fds)) = wire::receive(socket, Blocking::Allowed) else {
        return ControlFlow::Break(());
    };
    if let Some(control) = fds.first() {
        let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
        let _ = StartReport::Failed(Stage::Supervisor, errno).send(control, None);
    }
    ControlFlow::Continue(())
}

/// Reaps the supervisors that have ended. The processes of one that failed or was killed have
/// become children of this process, which kills them.
pub(crate) fn reap_supervisors(supervisors: &mut Vec<Supervisor>, spare: Option<&Supervisor>) {
    let mut orphans = false;
    supervisors.retain(|(pid, _)| match sys::exit_status_of(*pid) {
        None => true,
        Some(wait_status) => {
            orphans |= wait_status != 0;
            false
        }
    });
    if orphans {
        let pids = supervisors.iter().chain(spare).map(|(pid, _)| *pid).collect();
        kill_orphans(&pids);
    }
}

pub(crate) fn pidfd_of(pid: libc::pid_t) -> rustix::io::Result<OwnedFd> {
    pidfd_open(Pid::from_raw(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}
