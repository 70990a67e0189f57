//! Finds a process of a call that waits for input, where the kernel shows it. Without this, a
//! command that waits for input that nobody gives looks like one that takes long.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use libc::{c_long, pid_t};

use crate::descendants::descendants;
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

/// Finds a process below this one that waits for input. A kernel shows the system call of a process
/// to its ancestors only if it lets them trace it; otherwise this finds nothing.
pub(crate) fn find_waiting() -> Option<Waiting> {
    descendants().into_iter().take(MOST_PROCESSES).find_map(|pid| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let on = threads.flatten().take(MOST_THREADS).find_map(|thread| {
            let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
            let wait_channel =
                || fs::read_to_string(thread.path().join("wchan")).unwrap_or_default();
            match blocked_on(&call)? {
                BlockedOn::Read(fd) => what_is_read(pid, fd),
                BlockedOn::Standard => match what_is_read(pid, 0) {
                    Some(WaitsOn::Terminal) => Some(WaitsOn::Terminal),
                    // A process that polls a pipe may wait for its own child.
                    _ => None,
                },
                BlockedOn::Open => {
                    OPENING.contains(&wait_channel().trim()).then_some(WaitsOn::NamedPipe)
                }
            }
        })?;
        Some(Waiting { pid: pid.unsigned_abs(), on, program: ProgramName::of(pid) })
    })
}

/// The kernel functions in which opening a named pipe waits for the other end.
const OPENING: [&str; 2] = ["wait_for_partner", "fifo_open"];

/// What a thread's system call waits for.
#[derive(Debug, PartialEq, Eq)]
enum BlockedOn {
    /// Bytes from this descriptor.
    Read(u64),
    /// An event on descriptor 0 only.
    Standard,
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
        // This argument is the number of descriptors, or the highest of them plus one.
        libc::SYS_pselect6 => (first == 1).then_some(BlockedOn::Standard),
        libc::SYS_ppoll => (argument()? == 1).then_some(BlockedOn::Standard),
        libc::SYS_openat => Some(BlockedOn::Open),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => (first == 1).then_some(BlockedOn::Standard),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => (argument()? == 1).then_some(BlockedOn::Standard),
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
                format!("{} 0x1 0x0 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_pselect6),
                Some(BlockedOn::Standard),
            ),
            (format!("{} 0x9 0x0 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_pselect6), None),
            (
                format!("{} 0xff 0x1 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_ppoll),
                Some(BlockedOn::Standard),
            ),
            (format!("{} 0xff 0x2 0x0 0x0 0x0 0x0 0x1 0x1", libc::SYS_ppoll), None),
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
