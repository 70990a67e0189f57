//! seccomp filters: they refuse system calls that no command needs or that Landlock does not cover.
//!
//! There are two filters, because a filter has one answer: EPERM for what is forbidden, and ENOSYS
//! for what programs can do without. `clone3` gets ENOSYS, because its flags lie behind a pointer
//! that a filter cannot follow; C libraries then fall back to `clone`, whose flags a filter sees.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::policy::Network;

mod metadata;
mod modes;
mod requests;

/// Which sockets a command may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Connected unix pairs only.
    Pairs,
    /// Those, and internet sockets.
    PairsAndInternet,
    /// Unix and internet sockets: namespaces keep them from what lies outside.
    UnixAndInternet,
}

/// Whether commands share process ids and System V IPC keys with the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processes {
    /// They have their own.
    Own,
    /// They share the machine's.
    Shared,
}

/// Whether one process may trace another. Safe where Landlock keeps tracing within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    Allowed,
    Refused,
}

/// Who commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Other,
}

/// Whether commands may change modes, owners, times and attributes of files, and the processors of other
/// processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    Allowed,
    /// Of no file, whatever names or descriptors lead to it, and of no other process.
    Refused,
}

/// What the filters depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterContext {
    pub(crate) sockets: Sockets,
    pub(crate) processes: Processes,
    pub(crate) tracing: Tracing,
    pub(crate) user: User,
    pub(crate) metadata: Metadata,
}

impl Sockets {
    /// The sockets that a policy allows, with or without namespaces.
    pub(crate) fn of(network: Network, processes: Processes) -> Self {
        match (network, processes) {
            (_, Processes::Own) => Sockets::UnixAndInternet,
            (Network::Deny, Processes::Shared) => Sockets::Pairs,
            (Network::Allow, Processes::Shared) => Sockets::PairsAndInternet,
        }
    }
}

/// Filters that are ready to be installed.
pub(crate) struct Filters(Vec<BpfProgram>);

impl Filters {
    pub(crate) fn of(context: FilterContext) -> io::Result<Self> {
        let filters =
            [refused(context).and_then(|rules| program(rules, libc::EPERM)), absent(context)];
        let filters: Result<_, _> = filters.into_iter().collect();
        filters.map(Self).map_err(io::Error::other)
    }

    /// The same in two parts. The first lets a process go on mounting, and the second, which is installed in
    /// no time, does not.
    pub(crate) fn in_two(context: FilterContext) -> io::Result<[Self; 2]> {
        let compile = || -> Result<_, seccompiler::BackendError> {
            let mut rules = refused(context)?;
            let mounting = MOUNTING.iter().filter_map(|call| rules.remove_entry(call)).collect();
            let first = vec![program(rules, libc::EPERM)?, absent(context)?];
            Ok([Self(first), Self(vec![program(mounting, libc::EPERM)?])])
        };
        compile().map_err(io::Error::other)
    }

    /// Installs them on the calling thread and on everything it starts from now on.
    pub(crate) fn install(&self) -> io::Result<()> {
        for program in &self.0 {
            seccompiler::apply_filter(program).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// A filter that answers with one errno.
fn program(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()
}

fn absent(context: FilterContext) -> Result<BpfProgram, seccompiler::BackendError> {
    let of_user = ABSENT_FOR_ROOT.iter().filter(|_| context.user == User::Root);
    let absent = ABSENT.iter().chain(of_user).map(|call| (*call, Vec::new())).collect();
    program(absent, libc::ENOSYS).map(without_x32)
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// An empty list of rules refuses a call whatever its arguments.
fn refused(context: FilterContext) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if context.tracing == Tracing::Refused {
        rules.insert(libc::SYS_ptrace, Vec::new());
    }
    if context.processes == Processes::Shared {
        rules.extend(SHARED_BY_KEY.iter().map(|call| (*call, Vec::new())));
    }
    let with_any = |flags: &mut dyn Iterator<Item = &u64>| {
        flags.map(|flag| all(vec![bits(0, *flag, *flag)?])).collect::<Result<Vec<_>, _>>()
    };
    // A supervisor takes an IPC namespace for its call. Commands lack the capability that this needs,
    // and the user namespace in which they would have it is refused.
    let own_ipc =
        |flag: &&u64| context.processes == Processes::Own && **flag == libc::CLONE_NEWIPC as u64;
    rules
        .insert(libc::SYS_unshare, with_any(&mut NAMESPACES.iter().filter(|flag| !own_ipc(flag)))?);
    rules.insert(libc::SYS_clone, with_any(&mut NAMESPACES.iter())?);
    if context.processes == Processes::Shared {
        // Where no mount does it, this protects files that commands may only read.
        rules.insert(FILE_SETATTR, Vec::new());
    }
    requests::refuse(&mut rules, context.processes)?;
    // A lease on a file that may only be read makes others wait who open it.
    let leases = LEASES.into_iter().map(|request| all(vec![is(1, request)?]));
    rules.insert(libc::SYS_fcntl, leases.collect::<Result<_, _>>()?);
    modes::refuse_set_user_id(&mut rules)?;
    if context.metadata == Metadata::Refused {
        metadata::refuse_changes(&mut rules);
        // Others need it for threads of their own, whose numbers no filter knows.
        rules.insert(libc::SYS_sched_setaffinity, vec![all(vec![is_not(0, 0)?])?]);
    }
    // Landlock does not cover these. A pid or a "who" of zero means the caller itself. They are
    // needed at the full level too: the calls of one jail see each other and their supervisors.
    rules.insert(libc::SYS_prlimit64, vec![all(vec![is_not(0, 0)?])?]);
    // Their "which" may also mean every process of a user.
    for (call, of_user) in [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)] {
        rules.insert(call, vec![all(vec![is_not(1, 0)?])?, all(vec![is(0, of_user)?])?]);
    }
    for call in [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr] {
        rules.insert(call, vec![all(vec![is_not(0, 0)?])?]);
    }
    let families: &[i32] = match context.sockets {
        Sockets::Pairs => &[],
        Sockets::PairsAndInternet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::UnixAndInternet => {
            &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
        }
    };
    let others = families.iter().map(|family| is_not(0, family.unsigned_abs().into()));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let mut not_these = Vec::new();
    if !others.is_empty() {
        not_these.push(all(others)?);
        not_these.push(other_protocols(libc::AF_NETLINK, &NETLINK)?);
        for family in [libc::AF_INET, libc::AF_INET6] {
            not_these.push(other_protocols(family, &INTERNET)?);
            // A type can stand for a protocol too.
            for kind in other_kinds(&[libc::SOCK_STREAM, libc::SOCK_DGRAM]) {
                let family = is(0, family.unsigned_abs().into())?;
                not_these.push(all(vec![family, bits(1, KIND, kind)?])?);
            }
        }
    }
    rules.insert(libc::SYS_socket, not_these);
    let mut pairs = vec![all(vec![is_not(0, libc::AF_UNIX.unsigned_abs().into())?])?];
    if !families.contains(&libc::AF_UNIX) {
        // Either end of a datagram pair can still send to a path, so only pairs of streams and of
        // sequenced packets are allowed.
        for kind in other_kinds(&[libc::SOCK_STREAM, libc::SOCK_SEQPACKET]) {
            pairs.push(all(vec![bits(1, KIND, kind)?])?);
        }
    }
    rules.insert(libc::SYS_socketpair, pairs);
    Ok(rules)
}

/// A rule for sockets of a family with none of these protocols.
fn other_protocols(
    family: i32,
    protocols: &[i32],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let none = protocols.iter().map(|protocol| is_not(2, protocol.unsigned_abs().into()));
    let family = is(0, family.unsigned_abs().into());
    all(std::iter::once(family).chain(none).collect::<Result<_, _>>()?)
}

/// Where a socket's type lies in its argument. The other bits are flags.
const KIND: u64 = 0xf;

fn other_kinds(kinds: &[i32]) -> impl Iterator<Item = u64> {
    (0..=KIND)
        .filter(move |kind| !kinds.iter().any(|known| u64::from(known.unsigned_abs()) == *kind))
}

/// Puts a check before a program. seccompiler does not know the x32 call numbers, so they would
/// pass every rule. Kernels without x32 do not use these numbers.
fn without_x32(program: BpfProgram) -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return program;
    }
    let step =
        |code: u32, jf: u8, k: u32| seccompiler::sock_filter { code: code as u16, jt: 0, jf, k };
    const X32: u32 = 0x4000_0000;
    let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut whole = vec![
        // The call's number lies at the start of seccomp_data.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, enosys),
    ];
    whole.extend(program);
    whole
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    // The kernel reads 32 bits of these arguments; the filter must ignore what is above them too.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn bits(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn all(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions)
}

/// What programs ask of netlink: interfaces and addresses, and sockets. Others tell root of the
/// machine's devices and audits.
const NETLINK: [i32; 2] = [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG];

/// TCP, UDP and MPTCP, what a type stands for, and pings. For any other the kernel looks for a driver and
/// loads it, whoever asks.
const INTERNET: [i32; 6] = [
    0,
    libc::IPPROTO_TCP,
    libc::IPPROTO_UDP,
    libc::IPPROTO_MPTCP,
    libc::IPPROTO_ICMP,
    libc::IPPROTO_ICMPV6,
];

/// F_SETLEASE, and F_SETDELEG of later kernels.
const LEASES: [u64; 2] = [libc::F_SETLEASE as u64, 1040];

const NAMESPACES: [u64; 8] = [
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWCGROUP as u64,
    // CLONE_NEWTIME, which only unshare takes. In clone the bit belongs to the exit signal, and no
    // signal is above 64.
    0x80,
];

/// System V shared memory, semaphores and queues, which any process of the user reaches by number, and
/// the names of POSIX queues: Landlock covers opening one, but not making and removing. Other POSIX
/// ones are files in /dev/shm.
const SHARED_BY_KEY: [c_long; 14] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Sets a file's flags and project (Linux 6.17; not yet among libc's).
const FILE_SETATTR: c_long = 469;

/// Answered as if the kernel did not have them.
const ABSENT: [c_long; 4] = [
    libc::SYS_clone3,
    // No filter sees io_uring operations, since they are not system calls.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The same for root's commands: a filter does not see the mode of a file that openat2 makes, and a
/// program of root with the set-user-ID bit makes anybody root. Programs fall back to openat.
const ABSENT_FOR_ROOT: [c_long; 1] = [libc::SYS_openat2];

/// Those of [`REFUSED`] that a supervisor needs until its call's mounts have their places.
const MOUNTING: [c_long; 7] = [
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_mount_setattr,
];

/// Refused whatever their arguments.
const REFUSED: [c_long; 46] = [
    // mounts and roots
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
    // around path walks
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // other processes
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // the kernel itself
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    // keys of the user, which belong to no call
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // clock and names of the machine
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];
