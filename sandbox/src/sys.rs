//! System calls without a safe interface: the only unsafe code of the product. The compiler denies it
//! everywhere else.
//!
//! Each function is either a plain call on valid arguments, or for the spawner and its supervisors
//! only, which have one thread each: the spawner checks [`threads`] before its first fork.
#![expect(
    unsafe_code,
    reason = "fork, vfork-style clone, mount attributes and wait4 have no safe form"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

use libc::{c_char, c_int, c_uint, c_void, pid_t};

use crate::command::{Input, Stage};

/// Which side of a fork this is.
pub(crate) enum Fork {
    Child,
    Parent(pid_t),
}

/// Forks the process, which must have one thread only.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the caller's process has one thread, so no lock is held by a thread that the child
    // would miss, and the child may allocate.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid if pid > 0 => Ok(Fork::Parent(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The same, with the child in the control group of a directory from the start (Linux 5.7).
pub(crate) fn fork_into(group: BorrowedFd<'_>) -> io::Result<Fork> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: the arguments are plain numbers for which zeros are valid.
    let mut args: libc::clone_args = unsafe { zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = group.as_raw_fd() as u64;
    // SAFETY: as in `fork`; without a stack and without shared memory the child goes on with a copy of all
    // that this process has, and the kernel only reads `args`, whose size is given.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of_val(&args)) } {
        0 => Ok(Fork::Child),
        pid if pid > 0 => Ok(Fork::Parent(pid as pid_t)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Exits at once, without the exit handlers, which a forked copy must not run.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any code and touches no memory.
    unsafe { libc::_exit(code) }
}

/// How many threads this process has.
pub(crate) fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// What a command's process starts with.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a [CString],
    pub(crate) env: &'a [CString],
    pub(crate) cwd: &'a CStr,
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Whether descriptor 0 becomes the controlling terminal.
    pub(crate) input: Input,
    /// Resources, each with the value of its soft and hard limit.
    pub(crate) limits: &'a [(c_int, u64)],
    /// The rules of one more Landlock domain.
    pub(crate) domain: Option<BorrowedFd<'a>>,
}

/// Starts a command. The clone shares memory and suspends the caller until the exec, so its cost
/// does not grow with the caller's memory. Returns the pid and pidfd, or the step that failed and
/// its errno.
///
/// The calling process has one thread, an empty signal mask, and default dispositions for all
/// signals but those that Rust's runtime handles: the command inherits defaults.
pub(crate) fn launch(launch: &Launch<'_>) -> Result<(pid_t, OwnedFd), (Stage, i32)> {
    let mut stack = vec![MaybeUninit::<u128>::uninit(); 4096];
    let argv = pointers(launch.argv);
    let env = pointers(launch.env);
    let mut shared = Shared {
        program: launch.program.as_ptr(),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        cwd: launch.cwd.as_ptr(),
        stdio: launch.stdio.map(|fd| fd.as_raw_fd()),
        input: launch.input,
        limits: launch.limits,
        domain: launch.domain.map_or(-1, |fd| fd.as_raw_fd()),
        // SAFETY: getpid cannot fail.
        parent: unsafe { libc::getpid() },
        failure: None,
    };
    let mut pidfd: RawFd = -1;
    // SAFETY: the stack is 64 KiB of u128, so its end is aligned, and nothing else uses it. The
    // child gets a pointer to `shared`, which outlives it here: CLONE_VFORK suspends this only
    // thread until the child has executed the program or ended.
    let pid = unsafe {
        libc::clone(
            child,
            stack.as_mut_ptr().add(stack.len()).cast::<c_void>(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD,
            (&raw mut shared).cast::<c_void>(),
            &raw mut pidfd,
        )
    };
    if pid < 0 {
        return Err((Stage::Process, errno()));
    }
    // SAFETY: the kernel stored a new descriptor there, which nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    // SAFETY: `shared` is a live local; the child wrote to it behind the compiler's back.
    match unsafe { (&raw const shared.failure).read_volatile() } {
        None => Ok((pid, pidfd)),
        Some(failure) => {
            // SAFETY: waits for the child that just ended; a null status is allowed.
            unsafe { libc::waitpid(pid, null_mut(), 0) };
            Err(failure)
        }
    }
}

struct Shared<'a> {
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    cwd: *const c_char,
    stdio: [RawFd; 3],
    input: Input,
    limits: &'a [(c_int, u64)],
    domain: RawFd,
    parent: pid_t,
    failure: Option<(Stage, i32)>,
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([null()]).collect()
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    // SAFETY: `launch` passes its `Shared`, which it does not touch until this process is done.
    let shared = unsafe { &mut *shared.cast::<Shared<'_>>() };
    shared.failure = Some(become_command(shared));
    exit_now(127)
}

/// Runs between the clone and the exec. It shares memory with the supervisor, so it makes only
/// plain system calls: no allocation, no lock, no panic. It returns only on failure.
fn become_command(shared: &Shared<'_>) -> (Stage, i32) {
    // SAFETY: every pointer comes from `launch`, is NUL-terminated (the lists null-terminated) and
    // lives until the exec; the descriptors are open; prctl and the others take plain numbers.
    unsafe {
        if libc::setsid() < 0 {
            return (Stage::Session, errno());
        }
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0
            || libc::getppid() != shared.parent
        {
            return (Stage::Session, errno());
        }
        for (target, fd) in shared.stdio.into_iter().enumerate() {
            // The sources lie above 2 (the spawner fills 0 to 2 first), so none is overwritten.
            if libc::dup2(fd, target as c_int) < 0 {
                return (Stage::Stdio, errno());
            }
        }
        // Not by force: a terminal that another session has stays with that.
        if matches!(shared.input, Input::Terminal) && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return (Stage::Stdio, errno());
        }
        // Landlock checks an open but not a chdir.
        let dir = libc::open(shared.cwd, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if dir < 0 || libc::fchdir(dir) < 0 {
            return (Stage::WorkingDirectory, errno());
        }
        if shared.domain >= 0
            && libc::syscall(libc::SYS_landlock_restrict_self, shared.domain, 0_u32) < 0
        {
            return (Stage::Confine, errno());
        }
        for (resource, value) in shared.limits {
            let limit = libc::rlimit64 { rlim_cur: *value, rlim_max: *value };
            if libc::prlimit64(0, *resource as _, &raw const limit, null_mut()) < 0 {
                return (Stage::Limits, errno());
            }
        }
        libc::execve(shared.program, shared.argv, shared.env);
    }
    (Stage::Program, errno())
}

/// A reaped process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub(crate) pid: pid_t,
    pub(crate) wait_status: c_int,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss_kib: u64,
}

/// Whether to wait for a child that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Block,
    Poll,
}

/// Waits for any child: `None` if none has ended, ECHILD if there is none.
pub(crate) fn reap(wait: Wait) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let flags = libc::__WALL | if wait == Wait::Poll { libc::WNOHANG } else { 0 };
    loop {
        // SAFETY: `rusage` is plain data for which zeros are valid.
        let mut usage: libc::rusage = unsafe { zeroed() };
        // SAFETY: both pointers are to live locals of the right type.
        match unsafe { libc::wait4(-1, &raw mut status, flags, &raw mut usage) } {
            0 => return Ok(None),
            pid if pid > 0 => return Ok(Some(Reaped::new(pid, status, &usage))),
            _ if errno() == libc::EINTR => {}
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

/// How many processes are reaped in a row: who forks and ends at once may leave more meanwhile than that.
pub(crate) const MOST_REAPED: usize = 4096;

/// Waits for the end of one child. `None` where it is none.
pub(crate) fn reap_child(pid: pid_t) -> Option<Reaped> {
    let mut status = 0;
    loop {
        // SAFETY: `rusage` is plain data for which zeros are valid.
        let mut usage: libc::rusage = unsafe { zeroed() };
        // SAFETY: both pointers are to live locals of the right type.
        match unsafe { libc::wait4(pid, &raw mut status, libc::__WALL, &raw mut usage) } {
            found if found > 0 => return Some(Reaped::new(found, status, &usage)),
            _ if errno() == libc::EINTR => {}
            _ => return None,
        }
    }
}

/// From now on children that end are reaped by the kernel.
pub(crate) fn discard_children() {
    // SAFETY: SIG_IGN is no function of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// The result of `PIDFD_GET_INFO` (`struct pidfd_info` of Linux 6.13, its first version).
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    rest: [u32; 11],
}

/// The process id behind a pidfd, in the caller's process namespace. `None` before Linux 6.13 and
/// after the process has ended.
pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> Option<u32> {
    // _IOWR(0xff, 11, struct pidfd_info)
    const PIDFD_GET_INFO: libc::c_ulong =
        0xc000_ff0b | ((size_of::<PidfdInfo>() as libc::c_ulong) << 16);
    const PIDFD_INFO_PID: u64 = 1;
    let mut info = PidfdInfo { mask: PIDFD_INFO_PID, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most the size that the request's number holds, which is that of
    // `info`, a live local of plain numbers.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
    (answer == 0 && info.mask & PIDFD_INFO_PID != 0 && info.pid != 0).then_some(info.pid)
}

/// Reaps children that have ended. Stops at `main` without reaping it.
pub(crate) fn reap_orphans(main: pid_t) {
    for _ in 0..MOST_REAPED {
        // SAFETY: siginfo is plain data for which zeros are valid; WNOWAIT leaves the child be.
        let found = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_ALL, 0, &raw mut info, flags);
            info.si_pid()
        };
        if found <= 0 || found == main {
            return;
        }
        // SAFETY: a null status is allowed.
        unsafe { libc::waitpid(found, null_mut(), libc::WNOHANG) };
    }
}

/// The wait status of one child, if it has ended; 0 for a process that is not a child.
pub(crate) fn exit_status_of(pid: pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::__WALL) } {
        0 => None,
        _ => Some(status),
    }
}

impl Reaped {
    fn new(pid: pid_t, wait_status: c_int, usage: &libc::rusage) -> Self {
        let micros = |time: libc::timeval| {
            (time.tv_sec.unsigned_abs()).saturating_mul(1_000_000) + time.tv_usec.unsigned_abs()
        };
        Self {
            pid,
            wait_status,
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
            max_rss_kib: usage.ru_maxrss.unsigned_abs(),
        }
    }
}

/// Sends a signal to a process, or to the process group of a negative number. Ignores failure: the
/// process has ended, or the number is not a signal.
pub(crate) fn signal(pid: pid_t, signal: c_int) {
    // SAFETY: kill takes plain numbers.
    unsafe { libc::kill(pid, signal) };
}

/// Gives every signal its default disposition and empties the mask.
pub(crate) fn default_signals() {
    for number in 1..=64 {
        if number != libc::SIGSEGV && number != libc::SIGBUS {
            // The C library reserves two signals and refuses to change them, even where this
            // process inherited them as ignored.
            let default = [0_u64; 4];
            // SAFETY: the kernel's sigaction of zeros (32 bytes, or fewer) means the default
            // disposition; no handler is installed. Rust's handlers for stack overflows stay: an
            // exec drops them.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigaction,
                    number,
                    &raw const default,
                    null::<c_void>(),
                    8,
                )
            };
        }
    }
    // SAFETY: the set is a live local, initialised by sigemptyset.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
    }
}

/// Closes every descriptor from 3 on, which this process inherited by mistake.
pub(crate) fn close_inherited() {
    // SAFETY: the caller is a fresh process, in which nothing owns a descriptor yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, c_uint::MAX, 0_u32) };
}

/// Marks every descriptor from 3 on close-on-exec.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    // SAFETY: the flags only mark descriptors; none is closed under its owner.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    checked(done)
}

/// The kernel's Landlock ABI. ENOSYS means not built in, EOPNOTSUPP not enabled at boot.
pub(crate) fn landlock_abi() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes a null pointer and a zero size.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, null::<c_void>(), 0_usize, VERSION)
    };
    checked(abi)?;
    u32::try_from(abi).map_err(io::Error::other)
}

/// Moves the process into new namespaces.
pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: the process has one thread; namespaces do not touch memory.
    checked(unsafe { libc::unshare(flags) }.into())
}

/// Switches on the loopback interface of this network namespace.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: `ifreq` is plain data for which zeros are valid; the name stays NUL-terminated.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_name[0] = b'l' as c_char;
    request.ifr_name[1] = b'o' as c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which lives here.
    checked(
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) }
            .into(),
    )
}

/// Whether a change covers the mounts below the named one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    One,
    Recursive,
}

/// Adds attributes (`MOUNT_ATTR_…`) to the mount at `path`.
pub(crate) fn mount_attributes(path: &CStr, depth: Depth, add: u64) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, path, depth, add)
}

/// Adds attributes to the mount that `mount` is a handle of the top of.
pub(crate) fn attributes_of(mount: BorrowedFd<'_>, depth: Depth, add: u64) -> io::Result<()> {
    set_attributes(mount.as_raw_fd(), c"", depth, add)
}

fn set_attributes(at: RawFd, path: &CStr, depth: Depth, add: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: add, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = if depth == Depth::Recursive { libc::AT_RECURSIVE } else { 0 };
    let flags = if path.is_empty() { flags | libc::AT_EMPTY_PATH } else { flags };
    // SAFETY: the path is NUL-terminated, and the attributes live here and are passed with their
    // size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(done)
}

/// Adds attributes to mounts that have no place yet, and gives the files of them the owners that the user
/// namespace `owners` maps theirs to.
pub(crate) fn map_owners(
    mounts: BorrowedFd<'_>,
    add: u64,
    owners: BorrowedFd<'_>,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: add | libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: owners.as_raw_fd() as u64,
    };
    // SAFETY: the path is empty and NUL-terminated, both descriptors are open, and the attributes live
    // here and are passed with their size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mounts.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(done)
}

/// Replaces descriptor `target` (0, 1 or 2) by a copy of `fd`.
pub(crate) fn replace_stdio(fd: impl AsFd, target: RawFd) -> io::Result<()> {
    // SAFETY: no Rust object owns 0, 1 or 2.
    checked(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), target) }.into())
}

/// The descriptor that the spawner was started with as its standard input.
pub(crate) fn standard_input() -> io::Result<OwnedFd> {
    // SAFETY: fcntl makes a new descriptor, above 2 and owned by nobody.
    let fd = unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3) };
    checked(fd.into())?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn errno() -> i32 {
    // SAFETY: the C library has a valid one for each thread.
    unsafe { *libc::__errno_location() }
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
