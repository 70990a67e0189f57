//! A bound of what the commands of a jail put into their temporary directory. It goes when the jail does;
//! until then it is not to fill the disk that others need.
//!
//! Nothing that an ordinary user may set up bounds a directory on a disk, and a file system in memory
//! would take that memory from builds, and from the provider's own control group. So a thread looks while
//! commands run: at what is free on the disk, and at the directory only once that is little. It bounds
//! what happens by accident: a file that has no name any more, or lies in a directory that its owner may
//! not read, is not seen.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, fstat, fstatvfs, statat};

use crate::private::enter;
use crate::wire::{self, Order};

/// How often to look at what is free.
const EVERY: Duration = Duration::from_secs(1);
/// How much longer than a look at the directory took to wait for the next one.
const PAUSE: u32 = 30;
/// How deep to look: a directory is kept open for each level.
const DEEPEST: usize = 64;

/// The bound of one jail. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct TmpBound(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: OwnedFd,
    /// The least that has to be free for the directory not to be looked at.
    enough: Amount,
    /// The most that the directory may hold.
    most: Amount,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    commands: Vec<Bounded>,
    /// Whether the thread waits for a command. Waking it costs each command more than that it looks for a
    /// second longer.
    is_idle: bool,
    is_over: bool,
}

#[derive(Debug)]
struct Bounded {
    control: OwnedFd,
    free_at_start: Amount,
    was_ended: Arc<AtomicBool>,
}

/// A command under the bound, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    shared: Arc<Shared>,
    was_ended: Arc<AtomicBool>,
}

/// An amount of what a file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    bytes: u64,
    files: u64,
}

impl TmpBound {
    /// Lets the directory hold three quarters of what is free now. `None` where that is not to be had, or no
    /// thread. Not to be called on a thread that is confined: the new one would be, too.
    pub(crate) fn start(dir: OwnedFd) -> Option<Self> {
        let free = Amount::free(&dir)?;
        let part = |parts| free.map(|amount| amount / 4 * parts);
        let (enough, most) = (part(1), part(3));
        let (state, wake) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { dir, enough, most, state, wake });
        let watching = shared.clone();
        let thread = thread::Builder::new().name("tmp-bound".to_owned()).stack_size(128 * 1024);
        thread.spawn(move || watching.watch()).ok()?;
        Some(Self(shared))
    }

    /// What is free before a command starts.
    pub(crate) fn free(&self) -> Option<Amount> {
        Amount::free(&self.0.dir)
    }

    /// Has a command end if it was the last to start when the directory came to hold too much. `None` where
    /// there is no descriptor for that.
    pub(crate) fn add(&self, control: &OwnedFd, free_at_start: Amount) -> Option<Watched> {
        let control = control.try_clone().ok()?;
        let was_ended = Arc::new(AtomicBool::new(false));
        let mut state = self.0.lock();
        let ended = was_ended.clone();
        state.commands.push(Bounded { control, free_at_start, was_ended: ended });
        let is_idle = state.is_idle;
        drop(state);
        if is_idle {
            self.0.wake.notify_one();
        }
        Some(Watched { shared: self.0.clone(), was_ended })
    }
}

impl Drop for TmpBound {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.wake.notify_one();
    }
}

impl Watched {
    /// Whether the command was ended for what the directory held.
    pub(crate) fn was_ended(&self) -> bool {
        self.was_ended.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let is_other = |command: &Bounded| !Arc::ptr_eq(&command.was_ended, &self.was_ended);
        self.shared.lock().commands.retain(is_other);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut pause = EVERY;
        while self.wait(pause) {
            pause = EVERY;
            let Some(free) = Amount::free(&self.dir).filter(|free| self.enough.exceeds(*free))
            else {
                continue;
            };
            let start = Instant::now();
            if Amount::held(&self.dir).exceeds(self.most) {
                self.end_the_last(free);
            }
            pause = EVERY.max(start.elapsed() * PAUSE);
        }
    }

    /// Waits for `pause`, and then until a command runs. False when the jail is gone.
    fn wait(&self, pause: Duration) -> bool {
        let waited = self.wake.wait_timeout_while(self.lock(), pause, |state| !state.is_over);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_idle = true;
        let is_unused = |state: &mut State| !state.is_over && state.commands.is_empty();
        let waited = self.wake.wait_while(state, is_unused);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_idle = false;
        !state.is_over
    }

    /// Ends the command that started last of those since whose start the disk has become fuller: who removes
    /// what is there is left alone.
    fn end_the_last(&self, free: Amount) {
        let mut state = self.lock();
        let fills = |command: &Bounded| command.free_at_start.exceeds(free);
        let Some(at) = state.commands.iter().rposition(fills) else { return };
        let last = state.commands.remove(at);
        drop(state);
        // Its report may be read as soon as the order is sent.
        last.was_ended.store(true, Ordering::Relaxed);
        // One that has no supervisor any more has ended.
        let _ = wire::send_order(&last.control, Order::Kill);
    }
}

impl Amount {
    /// What is free on the file system of `dir`.
    fn free(dir: &OwnedFd) -> Option<Self> {
        let found = fstatvfs(dir).ok()?;
        // Some file systems do not count files.
        let files = if found.f_files == 0 { u64::MAX } else { found.f_favail };
        Some(Self { bytes: found.f_bavail.saturating_mul(found.f_frsize), files })
    }

    /// What `dir` holds.
    fn held(dir: &OwnedFd) -> Self {
        let mut held = Self { bytes: 0, files: 0 };
        let Ok(device) = fstat(dir).map(|found| found.st_dev) else { return held };
        let mut open: Vec<Dir> = Dir::read_from(dir).into_iter().collect();
        loop {
            let may_go_deeper = open.len() < DEEPEST;
            let Some(deepest) = open.last_mut() else { return held };
            let Some(Ok(entry)) = deepest.read() else {
                open.pop();
                continue;
            };
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let Ok(at) = deepest.fd() else { continue };
            let Ok(found) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            held.files += 1;
            held.bytes += u64::try_from(found.st_blocks).unwrap_or_default() * 512;
            let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            if is_directory && found.st_dev == device && may_go_deeper {
                let inner = deepest.fd().and_then(|at| enter(at, name)).and_then(Dir::new);
                open.extend(inner);
            }
        }
    }

    fn exceeds(self, other: Self) -> bool {
        self.bytes > other.bytes || self.files > other.files
    }

    fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Self { bytes: change(self.bytes), files: change(self.files) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_deeper_counts_and_what_a_link_leads_to_does_not() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("large"), vec![1; 1 << 20]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/file"), vec![1; 1 << 16]).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let held = Amount::held(&enter(rustix::fs::CWD, dir.path()).unwrap());
        assert_eq!(held.files, 4);
        assert!((1 << 16..1 << 18).contains(&held.bytes), "{held:?}");
    }
}
