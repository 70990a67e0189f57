//! The means by which one process can reach into another.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::raw::{self, Word, call};

/// A thread of another process, and an address in that process.
pub(super) struct Thread {
    pub(super) pid: i32,
    pub(super) thread: i32,
    pub(super) address: u64,
}

/// What guards a process against an attempt.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The kernel's own question whether one process may touch the other.
    Process,
    /// The same, behind a file in /proc.
    Directory,
    /// Nothing in /proc can be opened for writing.
    DirectoryForWriting,
    /// A filter, whatever the target.
    Filtered,
    /// A filter, unless the caller means itself.
    Resources,
    /// Nothing but the user, as libraries name their own threads by number.
    Processors,
}

/// Something to try: its name, what guards against it, and how it is done.
pub(super) type Means = (&'static str, Kind, fn(&Thread) -> io::Result<()>);

/// Ignored where nobody waits for it.
const HARMLESS: i64 = libc::SIGURG as i64;

pub(super) const MEANS: &[Means] = &[
    ("kill 0", Kind::Process, |t| numbers(libc::SYS_kill, &[t.pid, 0])),
    ("kill", Kind::Process, |t| numbers(libc::SYS_kill, &[t.pid, HARMLESS as i32])),
    ("kill thread", Kind::Process, |t| numbers(libc::SYS_kill, &[t.thread, HARMLESS as i32])),
    ("tgkill", Kind::Process, |t| numbers(libc::SYS_tgkill, &[t.pid, t.thread, HARMLESS as i32])),
    ("tkill", Kind::Process, |t| numbers(libc::SYS_tkill, &[t.thread, HARMLESS as i32])),
    ("sigqueue", Kind::Process, |t| {
        let mut info = [0_u8; 128];
        info[8..12].copy_from_slice(&(-1_i32).to_ne_bytes());
        info[..4].copy_from_slice(&(HARMLESS as i32).to_ne_bytes());
        let words = [Word::Number(t.pid.into()), Word::Number(HARMLESS), Word::Bytes(&mut info)];
        done(call(libc::SYS_rt_sigqueueinfo, &mut { words }))
    }),
    ("pidfd signal", Kind::Process, |t| {
        let fd = pidfd(t.pid)?;
        numbers(libc::SYS_pidfd_send_signal, &[raw_fd(&fd), HARMLESS as i32, 0, 0])
    }),
    ("ptrace", Kind::Process, |t| {
        numbers(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as i32, t.thread, 0, 0])?;
        Ok(())
    }),
    ("process_vm_readv", Kind::Filtered, |t| touched(raw::process_vm_readv(t.thread, t.address))),
    ("process_vm_writev", Kind::Filtered, |t| {
        touched(raw::process_vm_writev(t.thread, t.address, [0; 8]))
    }),
    ("pidfd_getfd", Kind::Filtered, |t| {
        numbers(libc::SYS_pidfd_getfd, &[raw_fd(&pidfd(t.pid)?), 0, 0])
    }),
    ("read mem", Kind::Directory, |t| done(fs::File::open(of(t, "mem")))),
    ("write mem", Kind::DirectoryForWriting, |t| {
        done(OpenOptions::new().write(true).open(of(t, "mem")))
    }),
    ("environ", Kind::Directory, |t| done(fs::read(of(t, "environ")))),
    ("maps", Kind::Directory, |t| done(fs::read(of(t, "maps")))),
    ("auxv", Kind::Directory, |t| done(fs::read(of(t, "auxv")))),
    ("syscall", Kind::Directory, |t| done(fs::read(of(t, "syscall")))),
    ("cwd", Kind::Directory, |t| done(fs::read_link(of(t, "cwd")))),
    ("root", Kind::Directory, |t| done(fs::read_link(of(t, "root")))),
    ("exe", Kind::Directory, |t| done(fs::read_link(of(t, "exe")))),
    ("open exe", Kind::Directory, |t| done(fs::File::open(of(t, "exe")))),
    ("through root", Kind::Directory, |t| done(fs::read_dir(of(t, "root/etc")))),
    ("through cwd", Kind::Directory, |t| done(fs::read_dir(of(t, "cwd/.")))),
    ("list fd", Kind::Directory, |t| done(fs::read_link(first_in(&of(t, "fd"))?))),
    ("open fd", Kind::Directory, |t| done(fs::File::open(of(t, "fd/0")))),
    ("namespace", Kind::Directory, |t| done(fs::read_link(of(t, "ns/mnt")))),
    ("map_files", Kind::Directory, |t| done(first_in(&format!("/proc/{}/map_files", t.pid)))),
    ("oom_score_adj", Kind::DirectoryForWriting, |t| done(fs::write(of(t, "oom_score_adj"), "0"))),
    ("comm", Kind::DirectoryForWriting, |t| {
        done(OpenOptions::new().write(true).open(of(t, "comm")))
    }),
    ("clear_refs", Kind::DirectoryForWriting, |t| {
        done(OpenOptions::new().write(true).open(format!("/proc/{}/clear_refs", t.pid)))
    }),
    ("prlimit get", Kind::Resources, |t| {
        let mut limit = [0_u8; 16];
        limit_call(t.pid, Word::Number(0), Word::Bytes(&mut limit))
    }),
    ("prlimit set", Kind::Resources, |t| {
        let mut limit = [0_u8; 16];
        limit_call(0, Word::Number(0), Word::Bytes(&mut limit))?;
        limit_call(t.pid, Word::Bytes(&mut limit), Word::Number(0))
    }),
    ("setpriority", Kind::Resources, |t| numbers(libc::SYS_setpriority, &[0, t.thread, 19])),
    ("ioprio_set", Kind::Resources, |t| numbers(libc::SYS_ioprio_set, &[1, t.thread, 2 << 13 | 5])),
    ("sched_setscheduler", Kind::Resources, |t| {
        let mut parameters = [0_u8; 4];
        let batch = Word::Number(libc::SCHED_BATCH.into());
        let words = [Word::Number(t.thread.into()), batch, Word::Bytes(&mut parameters)];
        done(call(libc::SYS_sched_setscheduler, &mut { words }))
    }),
    ("sched_setattr", Kind::Resources, |t| {
        let mut attributes = [0_u8; 56];
        attributes[..4].copy_from_slice(&56_u32.to_ne_bytes());
        attributes[16] = 19;
        let words = [Word::Number(t.thread.into()), Word::Bytes(&mut attributes), Word::Number(0)];
        done(call(libc::SYS_sched_setattr, &mut { words }))
    }),
    ("sched_setaffinity", Kind::Processors, |t| {
        let mut set = [0xff_u8; 128];
        let words = [Word::Number(t.thread.into()), Word::Number(128), Word::Bytes(&mut set)];
        done(call(libc::SYS_sched_setaffinity, &mut { words }))
    }),
    ("move_pages", Kind::Process, |t| numbers(libc::SYS_move_pages, &[t.pid, 0, 0, 0, 0, 0])),
    ("migrate_pages", Kind::Process, |t| {
        let (mut from, mut to) = ([1_u8, 0, 0, 0, 0, 0, 0, 0], [1_u8, 0, 0, 0, 0, 0, 0, 0]);
        let words = [
            Word::Number(t.pid.into()),
            Word::Number(64),
            Word::Bytes(&mut from),
            Word::Bytes(&mut to),
        ];
        done(call(libc::SYS_migrate_pages, &mut { words }))
    }),
    ("kcmp", Kind::Filtered, |t| {
        numbers(libc::SYS_kcmp, &[t.pid, std::process::id() as i32, 0, 0, 0])
    }),
    ("robust list", Kind::Process, |t| {
        let (mut head, mut length) = ([0_u8; 8], [0_u8; 8]);
        let words =
            [Word::Number(t.thread.into()), Word::Bytes(&mut head), Word::Bytes(&mut length)];
        done(call(libc::SYS_get_robust_list, &mut { words }))
    }),
    ("perf events", Kind::Filtered, |t| {
        let mut attributes = [0_u8; 128];
        attributes[0] = 1;
        attributes[4] = 128;
        let words = [
            Word::Bytes(&mut attributes),
            Word::Number(t.thread.into()),
            Word::Number(-1),
            Word::Number(-1),
        ];
        done(call(libc::SYS_perf_event_open, &mut { words }))
    }),
];

fn of(thread: &Thread, file: &str) -> String {
    format!("/proc/{}/task/{}/{file}", thread.pid, thread.thread)
}

fn first_in(directory: &str) -> io::Result<PathBuf> {
    let first = fs::read_dir(directory)?.next().ok_or(io::ErrorKind::NotFound)?;
    Ok(first?.path())
}

fn pidfd(pid: i32) -> io::Result<std::os::fd::OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn raw_fd(fd: &impl std::os::fd::AsRawFd) -> i32 {
    fd.as_raw_fd()
}

fn limit_call(pid: i32, new: Word<'_>, old: Word<'_>) -> io::Result<()> {
    let words = [Word::Number(pid.into()), Word::Number(libc::RLIMIT_CORE.into()), new, old];
    done(call(libc::SYS_prlimit64, &mut { words }))
}

fn numbers(number: libc::c_long, arguments: &[i32]) -> io::Result<()> {
    let mut words: Vec<_> = arguments.iter().map(|n| Word::Number((*n).into())).collect();
    done(call(number, &mut words))
}

fn done<T>(result: io::Result<T>) -> io::Result<()> {
    result.map(|_| ())
}

/// An address that leads nowhere is answered after the question of permission.
fn touched<T>(result: io::Result<T>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(error),
        _ => Ok(()),
    }
}
