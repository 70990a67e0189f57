//! Processes in readiness for calls: each has its own namespaces, or its own scratch directory, and is used
//! once.
//!
//! A process under Landlock cannot mount, and what belongs to one call only cannot be made by a process
//! that serves all. So this spawner keeps its rights, and each supervisor takes them from itself, after
//! its last mount and before it reads its command. Neither the spawner nor a keeper reads any.
//!
//! A call whose effects are discarded has a keeper above its supervisor, which outlives the call with the
//! spawner's rights: it looks at what the call left in its layers, and removes that.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use landlock::RulesetCreated;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};

use crate::call_groups::CallGroups;
use crate::confine::{Prepared, Terminals, chain};
use crate::descendants::kill_orphans;
use crate::filter::Processes;
use crate::layers::{Layers, Marks};
use crate::namespaces::{self, Failure};
use crate::others::Narrowed;
use crate::plan::Plan;
use crate::policy::Surroundings;
use crate::private::remove;
use crate::rights::{Grant, Rights, extend, identity};
use crate::spawner::{Supervisor, pidfd_of, reap_supervisors, refuse};
use crate::supervisor::{Call, CallIsolation, prepare, supervise};
use crate::sys::{self, Fork, Wait};
use crate::wire::{self, Blocking, Reader, Writer, malformed, send_changes};

/// How many spares wait: one for the next call, and one for a call at the same time.
const READY: usize = 2;

/// How long no call must have come before a spare is made, as long as there is one.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The same where there is none and no call waits for it: the last one's program is being started meanwhile.
const SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// What a spawner prepares once for all of its spares.
pub(crate) struct Kit {
    plan: Plan,
    processes: Processes,
    prepared: Prepared,
    /// The domain of all spares, where they need no rules of their own.
    domain: Option<RulesetCreated>,
    marks: Marks,
}

impl Kit {
    pub(crate) fn of(
        plan: &Plan,
        processes: Processes,
        narrowed: Narrowed,
    ) -> Result<Self, Failure> {
        let marks = match (plan.surroundings, processes) {
            (Surroundings::ThrowAway, Processes::Own) => Marks::find(),
            _ => Marks::None,
        };
        let prepared = Prepared::of(plan, processes, narrowed)?;
        let is_alike =
            plan.surroundings == Surroundings::Shared && prepared.rules.terminals == Terminals::Any;
        let domain = is_alike.then(|| prepared.rules.domain()).transpose();
        let domain = domain.map_err(|error| namespaces::failed("Landlock")(chain(&error)))?;
        Ok(Self { plan: plan.clone(), processes, prepared, domain, marks })
    }

    /// Fails where a process cannot be confined so. This one keeps its rights, so another one tries.
    pub(crate) fn try_out(&self) -> Result<(), Failure> {
        let failed = namespaces::failed("seccomp");
        let tried = match sys::fork() {
            Ok(Fork::Child) => {
                let result = self.prepared.begin();
                sys::exit_now(
                    result.map_or_else(|e| e.raw_os_error().unwrap_or(libc::EPERM), |()| 0),
                )
            }
            Ok(Fork::Parent(_)) => sys::reap(Wait::Block),
            Err(error) => Err(error),
        };
        match tried.map(|reaped| reaped.map_or(0, |reaped| libc::WEXITSTATUS(reaped.wait_status))) {
            Ok(0) => Ok(()),
            Ok(errno) => Err(failed(io::Error::from_raw_os_error(errno))),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Keeps spares that wait for calls on the jail's socket. The next one is made while a call runs.
pub(crate) fn answer_calls(
    socket: OwnedFd,
    kit: &Kit,
    mut groups: Option<CallGroups>,
) -> io::Result<()> {
    let (taken, take) = pipe_with(PipeFlags::CLOEXEC)?;
    let (mut waiting, mut busy): (Vec<Supervisor>, Vec<Supervisor>) = (Vec::new(), Vec::new());
    let mut is_quiet = true;
    loop {
        let is_asked = waiting.is_empty()
            && poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&Timespec::default()))
                == Ok(1);
        while waiting.len() < READY && (is_quiet || (is_asked && waiting.is_empty())) {
            match groups.as_mut().map_or_else(sys::fork, CallGroups::fork) {
                Ok(Fork::Child) => {
                    drop((taken, waiting, busy, groups));
                    let _ = set_parent_process_death_signal(Some(Signal::KILL));
                    sys::exit_now(match kit.plan.surroundings {
                        Surroundings::Shared => serve_alone(socket, take, kit),
                        Surroundings::ThrowAway => keep(socket, take, kit),
                    });
                }
                Ok(Fork::Parent(pid)) => waiting.push((pid, pidfd_of(pid)?)),
                // One is enough until a process ends.
                Err(_) if !waiting.is_empty() => break,
                Err(error) => match refuse(&socket, &error) {
                    ControlFlow::Continue(()) => reap_supervisors(&mut busy, None),
                    ControlFlow::Break(()) => return end(busy, groups),
                },
            }
        }
        let mut ready = vec![PollFd::new(&taken, PollFlags::IN)];
        ready.extend(waiting.iter().chain(&busy).map(|(_, fd)| PollFd::new(fd, PollFlags::IN)));
        let pause = match waiting.len() {
            // A call that comes now waits for a spare, as this does for it.
            0 => {
                ready.push(PollFd::new(&socket, PollFlags::IN));
                Some(&SOON)
            }
            READY.. => None,
            _ => Some(&QUIET),
        };
        match poll(&mut ready, pause) {
            Err(Errno::INTR) => continue,
            other => is_quiet = other? == 0,
        }
        let mut is_ready = ready.iter().map(|fd| !fd.revents().is_empty());
        let is_taken = is_ready.next().unwrap_or(false);
        let mut has_ended = is_ready.take(waiting.len()).collect::<Vec<_>>().into_iter();
        if is_taken {
            let mut number = [0; 4];
            rustix::io::read(&taken, &mut number)?;
            let pid = libc::pid_t::from_le_bytes(number);
            if let Some(at) = waiting.iter().position(|(known, _)| *known == pid) {
                busy.push(waiting.remove(at));
            }
            continue;
        }
        let mut is_over = false;
        waiting.retain(|(pid, _)| {
            let status = has_ended.next().unwrap_or(false).then(|| sys::exit_status_of(*pid));
            // It saw the end of the socket; with another status, something killed it.
            is_over |= status == Some(Some(0));
            !matches!(status, Some(Some(_)))
        });
        reap_all(&mut busy, &waiting);
        if let Some(groups) = &mut groups {
            groups.keep(|pid| busy.iter().chain(&waiting).any(|(known, _)| *known == pid));
        }
        if is_over {
            busy.append(&mut waiting);
            return end(busy, groups);
        }
    }
}

/// The jail is dropped or its provider is dead. The supervisors end their own calls.
fn end(mut busy: Vec<Supervisor>, groups: Option<CallGroups>) -> io::Result<()> {
    while !busy.is_empty() {
        let mut ready: Vec<_> = busy.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        if poll(&mut ready, None).is_ok() {
            reap_all(&mut busy, &[]);
        }
    }
    if let Some(mut groups) = groups {
        groups.keep(|_| false);
    }
    Ok(())
}

fn reap_all(busy: &mut Vec<Supervisor>, waiting: &[Supervisor]) {
    let before = busy.len();
    let mut orphans = false;
    busy.retain(|(pid, _)| match sys::exit_status_of(*pid) {
        None => true,
        Some(status) => {
            orphans |= status != 0;
            false
        }
    });
    if orphans && busy.len() < before {
        kill_orphans(&busy.iter().chain(waiting).map(|(pid, _)| *pid).collect());
    }
}

/// The whole life of a supervisor without a keeper. Returns its exit code.
fn serve_alone(socket: OwnedFd, take: OwnedFd, kit: &Kit) -> i32 {
    let ready = prepare(CallIsolation::Domain)
        .and_then(|()| Spare::make(kit).map_err(|failure| failure.source))
        .and_then(|spare| spare.begin().map(drop));
    let Some((control, stdio, message)) = receive(&socket) else { return 0 };
    if rustix::io::write(&take, &getpid().as_raw_nonzero().get().to_le_bytes()).is_err() {
        return 1;
    }
    // The call may outlive the jail's spawner.
    let _ = set_parent_process_death_signal(None);
    drop((socket, take));
    let call = Call { control, stdio, message, ready, scratch: None };
    supervise(call, kit.prepared.call.as_ref().map(AsFd::as_fd));
    0
}

/// A keeper's whole life. Returns its exit code: 0 where the jail is gone or a call was served.
fn keep(socket: OwnedFd, take: OwnedFd, kit: &Kit) -> i32 {
    let spare = Spare::make(kit);
    let served = (|| {
        let (tell, told) = wire::pair()?;
        // What a dead supervisor leaves behind comes to the keeper.
        set_child_subreaper(Some(getpid()))?;
        let keeper = getpid().as_raw_nonzero().get();
        match sys::fork()? {
            Fork::Child => {
                drop(told);
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                let code = serve(&spare, socket, take, &tell, keeper, kit);
                sys::exit_now(code)
            }
            Fork::Parent(supervisor) => {
                drop((socket, take, tell));
                await_end(&spare, &told, supervisor)
            }
        }
    })();
    if let Ok(spare) = &spare {
        spare.remove();
    }
    while sys::reap(Wait::Block).is_ok() {}
    // Something else than the end of the socket: the spawner makes another one.
    served.unwrap_or(1)
}

/// A supervisor's whole life.
fn serve(
    spare: &Result<Spare<'_>, Failure>,
    socket: OwnedFd,
    take: OwnedFd,
    tell: &OwnedFd,
    keeper: libc::pid_t,
    kit: &Kit,
) -> i32 {
    let mut ready = prepare(CallIsolation::Domain);
    let mut domain = None;
    match spare {
        Ok(spare) => match spare.begin() {
            Ok(begun) => domain = begun,
            Err(error) => ready = ready.and(Err(error)),
        },
        Err(failure) => {
            let errno = failure.source.raw_os_error().unwrap_or(libc::EPERM);
            ready = ready.and(Err(io::Error::from_raw_os_error(errno)));
        }
    }
    let Some((control, stdio, message)) = receive(&socket) else { return 0 };
    if rustix::io::write(&take, &keeper.to_le_bytes()).is_err() {
        return 1;
    }
    drop((socket, take));
    let mut read_only = Vec::new();
    if let (Ok(spare), Some(domain)) = (spare, domain) {
        match spare.complete(domain) {
            Ok(found) => read_only = found,
            Err(error) => ready = ready.and(Err(error)),
        }
    }
    let mut note = Writer::default();
    note.list(&read_only, |to, number| to.u64(*number as u64));
    // Without it nobody reports what is in the layers.
    ready = ready.and(wire::send(tell, &note.0, &[control.as_fd()]));
    let scratch = spare.as_ref().ok().and_then(Spare::scratch);
    let call = Call { control, stdio, message, ready, scratch };
    supervise(call, kit.prepared.call.as_ref().map(AsFd::as_fd));
    // Nothing of the call is left. The keeper need not wait for this process too.
    let _ = wire::send(tell, &[], &[]);
    0
}

/// A call's control socket, its descriptors 0, 1 and 2, and its command, unread.
type Received = (OwnedFd, [OwnedFd; 3], Vec<u8>);

fn receive(socket: &OwnedFd) -> Option<Received> {
    loop {
        let (message, fds) = wire::receive(socket, Blocking::Allowed).ok()?;
        if let Ok([control, stdin, stdout, stderr]) = <[OwnedFd; 4]>::try_from(fds) {
            return Some((control, [stdin, stdout, stderr], message));
        }
    }
}

/// Waits for the end of a supervisor and of everything below it, and reports what is in the layers.
fn await_end(
    spare: &Result<Spare<'_>, Failure>,
    told: &OwnedFd,
    supervisor: libc::pid_t,
) -> io::Result<i32> {
    let note = wire::receive(told, Blocking::Allowed);
    if note.is_ok() {
        // From now on there is something to look at, whatever becomes of the spawner.
        let _ = set_parent_process_death_signal(None);
    }
    let is_over = note.is_ok() && wire::receive(told, Blocking::Allowed).is_ok();
    let code = if is_over { 0 } else { await_all(supervisor) };
    if let (Ok((note, fds)), Ok(spare)) = (note, spare)
        && let (Some(control), Some(layers)) = (fds.first(), &spare.layers)
    {
        let read_only =
            Reader(&note).list(|from| usize::try_from(from.u64()?).map_err(|_| malformed()))?;
        // Nobody may be there any more to read it.
        let _ = send_changes(control, &layers.changes(&read_only));
    }
    Ok(code)
}

/// Waits until no process below this one is left, and kills what a dead supervisor left. Returns an exit
/// code by the supervisor's.
fn await_all(supervisor: libc::pid_t) -> i32 {
    let mut code = 1;
    while let Ok(reaped) = sys::reap(Wait::Block) {
        if let Some(reaped) = reaped
            && reaped.pid == supervisor
        {
            code = i32::from(reaped.wait_status != 0);
            kill_orphans(&std::iter::empty().collect());
        }
    }
    code
}

/// What one spare has of its own.
struct Spare<'a> {
    kit: &'a Kit,
    layers: Option<Layers>,
    scratch: Option<PathBuf>,
}

impl<'a> Spare<'a> {
    fn make(kit: &'a Kit) -> Result<Self, Failure> {
        let mut spare = Self { kit, layers: None, scratch: None };
        let failed = namespaces::failed;
        match (kit.processes, kit.plan.surroundings) {
            (Processes::Own, surroundings) => {
                namespaces::part(surroundings)?;
                if surroundings == Surroundings::ThrowAway {
                    let layers = Layers::prepare(&kit.plan, kit.marks);
                    spare.layers = Some(layers.map_err(failed("layers"))?);
                }
            }
            (Processes::Shared, Surroundings::ThrowAway) => {
                let name = std::process::id().to_string();
                let scratch = kit.plan.scratch.join(name);
                mkdirat(CWD, &scratch, Mode::RWXU)
                    .map_err(|error| failed("a scratch directory")(error.into()))?;
                spare.scratch = Some(scratch);
            }
            (Processes::Shared, _) => {}
        }
        Ok(spare)
    }

    fn scratch(&self) -> Option<PathBuf> {
        self.scratch.clone()
    }

    /// Confines this process as far as that can be done before the call. `Some` where the layers, and so
    /// the rest, have to wait for it.
    fn begin(&self) -> io::Result<Option<RulesetCreated>> {
        let Kit { prepared, domain, .. } = self.kit;
        prepared.begin()?;
        if let Some(domain) = domain {
            prepared.complete(domain.try_clone()?)?;
            return Ok(None);
        }
        let chained = |error: crate::rights::DomainError| chain(&error);
        let Some(layers) = &self.layers else {
            let own = self.scratch.iter().map(|path| Grant {
                path: path.clone(),
                rights: Rights::ReadWrite,
                identity: identity(path).ok(),
            });
            let domain = prepared.rules.domain().map_err(chained)?;
            prepared.complete(extend(domain, own).map_err(chained)?)?;
            return Ok(None);
        };
        // Rules are about files, so what is mounted over them needs others.
        prepared
            .rules
            .domain_without(|path| layers.paths().any(|other| other == path))
            .map(Some)
            .map_err(chained)
    }

    /// Mounts the layers and confines this process. Returns which of the layers are none.
    fn complete(&self, domain: RulesetCreated) -> io::Result<Vec<usize>> {
        let Some(layers) = &self.layers else { return Ok(Vec::new()) };
        let chained = |error: crate::rights::DomainError| chain(&error);
        let read_only = layers.mount()?;
        let closed: Vec<_> = read_only.iter().filter_map(|number| layers.path(*number)).collect();
        let rules = self.kit.prepared.rules.grants.iter();
        let covered = rules.filter(|grant| layers.paths().any(|path| path == grant.path));
        let rules = covered.map(|grant| {
            // A named pipe can be written on a read-only mount.
            let is_closed = closed.contains(&grant.path.as_path());
            let rights = if is_closed { Rights::ReadExecute } else { grant.rights };
            Grant { path: grant.path.clone(), rights, identity: None }
        });
        self.kit.prepared.complete(extend(domain, rules).map_err(chained)?)?;
        Ok(read_only)
    }

    /// Removes what the call left. All its processes have ended.
    fn remove(&self) {
        if let Some(layers) = &self.layers {
            layers.remove();
        }
        if let Some(scratch) = &self.scratch {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let _ = openat(CWD, scratch, flags, Mode::empty())
                .and_then(|handle| remove::empty(&handle))
                .and_then(|()| unlinkat(CWD, scratch, AtFlags::REMOVEDIR));
        }
    }
}
