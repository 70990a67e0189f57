//! Finds a process of a call that waits for input, where the kernel shows it. Without this, a
//! command that waits for input that nobody gives looks like one that takes long.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use libc::{c_long, pid_t};
use rustix::fs::{fstat, makedev};

use crate::command::Input;
use crate::descendants::{first_descendants, is_in_foreground};
use crate::program::ProgramName;

/// A process that waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its process id in the jail.
    pub pid: u32,
    /// What it waits for.
    pub on: WaitsOn,
    pub(crate) program: ProgramName,
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsOn {
    /// Input from a terminal. The command made that terminal itself, because a call has none.
    Terminal,
    /// A process at the other end of a named pipe.
    NamedPipe,
    /// The input of the command, which is attended.
    Input,
}

/// The most processes to look at, and the most threads of each.
const MOST_PROCESSES: usize = 64;
const MOST_THREADS: usize = 8;

impl Waiting {
    /// The process's name.
    #[must_use]
    pub fn program(&self) -> ProgramName {
        self.program
    }
}

/// An input that somebody answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attended {
    kind: Input,
    device: u64,
    inode: u64,
}

impl Attended {
    /// What `stdin` is, where anybody answers it.
    pub(crate) fn of(kind: Input, stdin: BorrowedFd<'_>) -> rustix::io::Result<Option<Self>> {
        if kind == Input::Fixed {
            return Ok(None);
        }
        let found = fstat(stdin)?;
        Ok(Some(Self { kind, device: found.st_dev, inode: found.st_ino }))
    }

    /// Whether a descriptor of a process is this input, or stands for it.
    fn is(self, pid: pid_t, fd: u64) -> bool {
        let Ok(found) = fs::metadata(format!("/proc/{pid}/fd/{fd}")) else { return false };
        let is_tty = found.file_type().is_char_device() && found.rdev() == makedev(5, 0);
        (found.dev(), found.ino()) == (self.device, self.inode)
            || (self.kind == Input::Terminal && is_tty)
    }

    /// Whether what a process reads may be its input now.
    fn is_for(self, pid: pid_t) -> bool {
        match self.kind {
            // Who is not in the foreground is stopped when it reads.
            Input::Terminal => is_in_foreground(pid),
            Input::Fixed | Input::Pipe => true,
        }
    }
}

/// Finds a process below this one that waits for input: for the command's own where that is attended,
/// else for one that nobody gives. A kernel shows the system call of a process to its ancestors only if
/// it lets them trace it; otherwise this finds nothing.
pub(crate) fn find_waiting(attended: Option<Attended>) -> Option<Waiting> {
    first_descendants(MOST_PROCESSES).into_iter().take(MOST_PROCESSES).find_map(|pid| {
        if attended.is_some_and(|input| !input.is_for(pid)) {
            return None;
        }
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let on = threads.flatten().take(MOST_THREADS).find_map(|thread| {
            let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
            let blocked = blocked_on(&call)?;
            if let Some(input) = attended {
                return waits_for(input, pid, blocked).then_some(WaitsOn::Input);
            }
            let wait_channel =
                || fs::read_to_string(thread.path().join("wchan")).unwrap_or_default();
            match blocked {
                BlockedOn::Read(fd) => what_is_read(pid, fd),
                BlockedOn::Poll { count: 1, .. } | BlockedOn::Select { count: 1, .. } => {
                    match what_is_read(pid, 0) {
                        Some(WaitsOn::Terminal) => Some(WaitsOn::Terminal),
                        // A process that polls a pipe may wait for its own child.
                        _ => None,
                    }
                }
                BlockedOn::Open => {
                    OPENING.contains(&wait_channel().trim()).then_some(WaitsOn::NamedPipe)
                }
                BlockedOn::Poll { .. } | BlockedOn::Select { .. } | BlockedOn::Epoll(_) => None,
            }
        })?;
        Some(Waiting { pid: pid.unsigned_abs(), on, program: ProgramName::of(pid) })
    })
}

/// The most descriptors of one system call to look at.
const MOST_DESCRIPTORS: u64 = 1024;

/// Whether what a thread is blocked on would wake it for this input.
fn waits_for(input: Attended, pid: pid_t, blocked: BlockedOn) -> bool {
    match blocked {
        BlockedOn::Read(fd) => input.is(pid, fd),
        BlockedOn::Poll { at, count } => {
            // struct pollfd: the descriptor, what is asked for, what was found.
            let list = memory(pid, at, 8 * count.min(MOST_DESCRIPTORS)).unwrap_or_default();
            list.as_chunks::<8>().0.iter().any(|&[a, b, c, d, events, _, _, _]| {
                let fd = u64::from(u32::from_ne_bytes([a, b, c, d]));
                events & libc::POLLIN.to_ne_bytes()[0] != 0 && input.is(pid, fd)
            })
        }
        BlockedOn::Select { at, count } => {
            let count = count.min(MOST_DESCRIPTORS);
            let set = memory(pid, at, count.div_ceil(64) * 8).unwrap_or_default();
            let is_set = |fd: &u64| {
                usize::try_from(fd / 8)
                    .is_ok_and(|at| set.get(at).is_some_and(|byte| byte >> (fd % 8) & 1 != 0))
            };
            (0..count).filter(is_set).any(|fd| input.is(pid, fd))
        }
        BlockedOn::Epoll(fd) => {
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            info.lines().filter_map(polled).any(|fd| input.is(pid, fd))
        }
        BlockedOn::Open => false,
    }
}

/// The descriptor in a line of an epoll's `fdinfo`, where it is watched for input: `tfd: 0 events: 19 …`.
fn polled(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    (events & libc::EPOLLIN as u32 != 0).then_some(fd)
}

/// Bytes of another process's memory.
fn memory(pid: pid_t, at: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    fs::File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// The kernel functions in which opening a named pipe waits for the other end.
const OPENING: [&str; 2] = ["wait_for_partner", "fifo_open"];

/// What a thread's system call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockedOn {
    /// Bytes from this descriptor.
    Read(u64),
    /// An event on one of so many descriptors, in a list at this address.
    Poll { at: u64, count: u64 },
    /// An event on one of the descriptors below this number, of which the set at this address holds those
    /// to read from.
    Select { at: u64, count: u64 },
    /// An event that this descriptor collects.
    Epoll(u64),
    /// The opening of a file.
    Open,
}

/// Parses `/proc/PID/syscall`: the number of the call, then its arguments in hexadecimal. A thread
/// that runs, or waits outside a system call, shows none.
fn blocked_on(line: &str) -> Option<BlockedOn> {
    let mut words = line.split_ascii_whitespace();
    let number: c_long = words.next()?.parse().ok()?;
    let mut argument = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    let first = argument()?;
    match number {
        libc::SYS_read | libc::SYS_readv => Some(BlockedOn::Read(first)),
        libc::SYS_pselect6 => Some(BlockedOn::Select { count: first, at: argument()? }),
        libc::SYS_ppoll => Some(BlockedOn::Poll { at: first, count: argument()? }),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(BlockedOn::Epoll(first)),
        libc::SYS_openat => Some(BlockedOn::Open),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Some(BlockedOn::Select { count: first, at: argument()? }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Some(BlockedOn::Poll { at: first, count: argument()? }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Some(BlockedOn::Epoll(first)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(BlockedOn::Open),
        _ => None,
    }
}

fn what_is_read(pid: pid_t, fd: u64) -> Option<WaitsOn> {
    let link = format!("/proc/{pid}/fd/{fd}");
    let target = fs::read_link(&link).ok()?;
    if is_terminal(&target) {
        return Some(WaitsOn::Terminal);
    }
    // An anonymous pipe has no path. Programs wait for it in normal work.
    let is_named_pipe =
        target.is_absolute() && fs::metadata(&link).is_ok_and(|found| found.file_type().is_fifo());
    is_named_pipe.then_some(WaitsOn::NamedPipe)
}

/// Whether a path is that of a terminal. The controlling end of a pseudoterminal, `ptmx`, is not.
fn is_terminal(path: &Path) -> bool {
    let Some(name) = path.to_str().and_then(|path| path.strip_prefix("/dev/")) else {
        return false;
    };
    match name.strip_prefix("pts/") {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()),
        None => name == "console" || name.starts_with("tty"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_a_blocked_call_by_its_line() {
        let read = libc::SYS_read;
        for (line, expected) in [
            (
                format!("{read} 0x5 0x7ffd 0x400 0x0 0x0 0x0 0x7ffd 0x7f00"),
                Some(BlockedOn::Read(5)),
            ),
            (
                format!("{} 0x1 0x70 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_pselect6),
                Some(BlockedOn::Select { at: 0x70, count: 1 }),
            ),
            (
                format!("{} 0xff 0x2 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_ppoll),
                Some(BlockedOn::Poll { at: 0xff, count: 2 }),
            ),
            (format!("{} 0x7 0x2 0x0", libc::SYS_epoll_pwait), Some(BlockedOn::Epoll(7))),
            (format!("{} 0xff 0x2", libc::SYS_openat), Some(BlockedOn::Open)),
            (format!("{} 0x0", libc::SYS_wait4), None),
            ("running".to_owned(), None),
            ("-1 0x7ffd 0x7f00".to_owned(), None),
            (String::new(), None),
            (format!("{read} nonsense"), None),
        ] {
            assert_eq!(blocked_on(&line), expected, "{line}");
        }
    }

    #[test]
    fn an_epoll_names_what_it_watches() {
        let line = "tfd:        0 events:       19 data:                0  pos:0 ino:3 sdev:18";
        assert_eq!(polled(line), Some(0));
        assert_eq!(polled("tfd:       12 events:        4 data: 0"), None, "for writing");
        assert_eq!(polled("pos:\t0"), None);
    }

    #[test]
    fn a_terminal_differs_from_its_controlling_end() {
        for (path, expected) in [
            ("/dev/pts/3", true),
            ("/dev/tty", true),
            ("/dev/tty1", true),
            ("/dev/ttyS0", true),
            ("/dev/console", true),
            ("/dev/pts/ptmx", false),
            ("/dev/ptmx", false),
            ("/dev/null", false),
            ("pipe:[77]", false),
            ("/home/tty", false),
        ] {
            assert_eq!(is_terminal(Path::new(path)), expected, "{path}");
        }
    }
}
