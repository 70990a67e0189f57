//! The spawner process: the running program, started a second time, with one thread, and confined
//! once. It forks a supervisor for each call and holds nothing that a command may not see.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, setsid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::command::Stage;
use crate::descendants::kill_orphans;
use crate::explain::Subject;
use crate::filter::{self, FilterContext, Processes, Sockets, Tracing, User};
use crate::grants::{DEVICES, PROC, SHARED_MEMORY, TERMINALS};
use crate::namespaces::{self, Failure, Side, failed};
use crate::others::{self, Narrowed};
use crate::plan::{Confinement, Plan, Ready, Setup};
use crate::policy::{Mode as PolicyMode, Namespaces, Network};
use crate::rights::{Grant, Rights, Tcp, call_domain, domain};
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
        Ok(Role::Serving { setup, domain, isolation }) => {
            wire::send(&socket, &setup.encode(), &[])?;
            answer_calls(socket, domain.as_ref(), isolation)
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
        domain: Option<OwnedFd>,
        isolation: CallIsolation,
    },
}

fn set_up(plan: &Plan) -> Result<Role, Failure> {
    let (mut pid_limit, mut processes) = (false, Processes::Shared);
    let mut narrowed = Narrowed::ByEntry;
    if plan.namespaces == Namespaces::Auto {
        match namespaces::enter(plan)? {
            Side::Outside => return Ok(Role::Waiting),
            Side::Inside { pid_limit: limited, narrowed: by } => {
                (pid_limit, processes, narrowed) = (limited, Processes::Own, by);
            }
        }
    }
    // The processes that a dead supervisor leaves behind become children of this one, which kills
    // them.
    set_child_subreaper(Some(getpid())).map_err(|e| failed("a subreaper")(e.into()))?;
    let Confined { call, unfiltered } = confine(plan, processes, narrowed)?;
    let setup = Setup::Ready(Ready { pid_limit, narrowed, unfiltered });
    let isolation = match (processes, plan.confinement) {
        (Processes::Shared, _) | (_, Confinement::None) => CallIsolation::Domain,
        (Processes::Own, _) => CallIsolation::DomainAndIpc,
    };
    Ok(Role::Serving { setup, domain: call, isolation })
}

#[derive(Default)]
struct Confined {
    /// The rules of the domain that isolates one call from others.
    call: Option<OwnedFd>,
    /// Why system calls are not filtered, where the plan's mode allows that.
    unfiltered: Option<String>,
}

/// Takes every right that is not granted from this process, and so from all commands.
fn confine(plan: &Plan, processes: Processes, narrowed: Narrowed) -> Result<Confined, Failure> {
    let mut confined = Confined::default();
    if plan.confinement == Confinement::None {
        return Ok(confined);
    }
    let step = |step: &'static str| move |error: Errno| failed(step)(error.into());
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(step("being undumpable"))?;
    set_no_new_privs(true).map_err(step("no_new_privs"))?;
    let mut tracing = Tracing::Refused;
    if plan.confinement == Confinement::Whole {
        confined.call = landlock(plan, processes, narrowed)
            .map_err(|error| failed("Landlock")(chain(&error)))?;
        tracing = Tracing::Allowed;
    }
    drop_capabilities(Kept::of(processes)).map_err(failed("dropping capabilities"))?;
    let sockets = Sockets::of(plan.network, processes);
    let user = if geteuid().is_root() { User::Root } else { User::Other };
    match filter::install(FilterContext { sockets, processes, tracing, user }) {
        Err(error) if plan.mode == PolicyMode::BestEffort => {
            confined.unfiltered = Some(error.to_string());
        }
        installed => installed.map_err(failed("seccomp"))?,
    }
    Ok(confined)
}

fn landlock(
    plan: &Plan,
    processes: Processes,
    narrowed: Narrowed,
) -> Result<Option<OwnedFd>, crate::rights::DomainError> {
    let call = call_domain()?;
    let mut grants = plan.grants.clone();
    let mut entries = Vec::new();
    if narrowed == Narrowed::ByEntry {
        for grant in grants.iter_mut().filter(|grant| grant.rights == Rights::AsOthers) {
            entries.extend(others::entries(&grant.path).shown);
            grant.rights = Rights::List;
        }
    }
    let own = |path: &'static str, rights| Grant { path: path.into(), rights, identity: None };
    grants.push(own(PROC, Rights::Read));
    grants.extend(DEVICES.map(|path| own(path, Rights::Device)));
    grants.push(own(SHARED_MEMORY, Rights::ReadWrite));
    if processes == Processes::Own {
        // Without namespaces this directory holds the terminals of the user's other programs.
        grants.push(own(TERMINALS, Rights::Device));
        // The new root holds only what is granted, so commands may see its names.
        grants.push(own("/", Rights::List));
    }
    // A machine may lack a path that the jail adds. Paths that the policy names must exist.
    grants.retain(|grant| grant.identity.is_some() || Path::new(&grant.path).exists());
    let own_network = processes == Processes::Own;
    let tcp =
        if plan.network == Network::Deny && !own_network { Tcp::Handled } else { Tcp::Untouched };
    domain(Subject::Command, &grants, &entries, tcp)?.restrict_self()?;
    Ok(call)
}

/// An error and its causes in one line, because it travels as text.
fn chain(error: &dyn std::error::Error) -> io::Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    io::Error::other(text)
}

/// Which capabilities a process of the jail keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Those of commands.
    ForFiles,
    /// Those, and the one by which a supervisor makes the IPC namespace of its call. It is not in the
    /// bounding set, so no program regains it.
    ForNamespaces,
}

impl Kept {
    fn of(processes: Processes) -> Self {
        match processes {
            Processes::Own => Kept::ForNamespaces,
            Processes::Shared => Kept::ForFiles,
        }
    }
}

/// Root keeps the capabilities that it needs for the files that it is granted; others keep none.
/// This also reduces the bounding set: a program that runs as root regains what that holds.
pub(crate) fn drop_capabilities(kept: Kept) -> io::Result<()> {
    let keep = if geteuid().is_root() {
        CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::FSETID
            | CapabilitySet::KILL
    } else {
        CapabilitySet::empty()
    };
    // A process without the right to do this has nothing to drop, and no_new_privs keeps it so.
    let _ = clear_ambient_capability_set();
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if !keep.contains(capability) && remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let keep = match kept {
        Kept::ForFiles => keep,
        Kept::ForNamespaces => keep | CapabilitySet::SYS_ADMIN,
    };
    let has = capabilities(None)?;
    let left = CapabilitySets {
        effective: has.effective & keep,
        permitted: has.permitted & keep,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, left)?)
}

/// Waits until the first process of the namespaces, this one's child, has ended.
fn wait_outside() -> io::Result<()> {
    set_no_new_privs(true)?;
    drop_capabilities(Kept::ForFiles)?;
    sys::reap(Wait::Block).map(|_| ())
}

/// A supervisor's pid and pidfd.
type Supervisor = (libc::pid_t, OwnedFd);

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
            return Some(Call { control, stdio: [stdin, stdout, stderr], message, ready });
        }
    }
}

/// Refuses the next call, after a fork failed. Breaks when the jail is gone.
fn refuse(socket: &OwnedFd, error: &io::Error) -> ControlFlow<()> {
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
fn reap_supervisors(supervisors: &mut Vec<Supervisor>, spare: Option<&Supervisor>) {
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

fn pidfd_of(pid: libc::pid_t) -> rustix::io::Result<OwnedFd> {
    pidfd_open(Pid::from_raw(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}
