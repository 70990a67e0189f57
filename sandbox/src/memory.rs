//! What a process does that runs out of memory: it goes on with a reserve, and takes on nothing new.
//!
//! A kernel or an operator may limit the address space of this process (RLIMIT_AS), before it is
//! started or while it runs. Much of the code that it is made of cannot hear that there is no memory
//! left; an allocation that fails there ends the process, and every call with it. So there is an
//! [`Allocator`] with a reserve.

pub(crate) mod runs;

use std::cell::Cell;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys;

/// The system's allocator. What the system refuses comes from the reserve, once [`keep_reserve`] has
/// made one, unless it was asked for by [`can_fail`].
///
/// A program makes it its own by
/// ```
/// #[global_allocator]
/// static ALLOCATOR: sandbox::memory::Allocator = sandbox::memory::Allocator;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// What is no matter of room.
const SMALL: usize = 1 << 20;

/// Where the address space is limited, the reserve takes this share of it at most.
const SHARE: u64 = 8;

/// What a new thread takes: its stack, which is 2 MiB where nothing else is asked for, the stack for
/// its signals, and its first allocations. The C library and Rust's runtime end the process where a
/// thread that has begun does not get them.
const THREAD: usize = 4 << 20;

/// The main thread's stack grows on demand, and a process whose stack may not grow is killed.
const MAIN_STACK: usize = 1 << 20;

/// Makes the reserve, and gives the main thread the stack that it will need. To be called once, on
/// the main thread. It costs address space, not memory.
pub fn keep_reserve() {
    let share = limit().map(|limit| {
        sys::memory::keep_to_few_arenas();
        usize::try_from(limit / SHARE).unwrap_or(usize::MAX)
    });
    sys::memory::reserve(share.unwrap_or(usize::MAX));
    sys::memory::deepen_stack(MAIN_STACK);
}

/// Whether more than half of the reserve is in use. What has begun may use the rest; nothing more
/// should begin.
#[must_use]
pub fn is_short() -> bool {
    let (used, all) = sys::memory::reserve_use();
    used > all / 2
}

/// Runs `ask`, which asks for memory and can do without: what it does not get is not taken from the
/// reserve.
pub fn can_fail<T>(ask: impl FnOnce() -> T) -> T {
    struct Before(Need);
    impl Drop for Before {
        fn drop(&mut self) {
            NEED.set(self.0);
        }
    }
    let _before = Before(NEED.replace(Need::CanDoWithout));
    ask()
}

/// Whether this process may have only so much memory.
#[must_use]
pub fn is_limited() -> bool {
    limit().is_some()
}

/// Whether there are so many bytes at this moment, without the reserve. To be asked before something
/// is done that takes about as much and could not be told that it does not get it.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    can_fail(|| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

/// Room for something that takes much memory and could not be told that it does not get it.
#[derive(Debug)]
pub struct Room {
    _turn: Option<MutexGuard<'static, ()>>,
}

/// Looks for room for so many bytes. Where memory is limited, one has room for much at a time, until
/// it lets go of it; small things have the reserve behind them.
#[must_use]
pub fn room(bytes: usize) -> Option<Room> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if bytes <= SMALL || !is_limited() {
        return Some(Room { _turn: None });
    }
    let turn = match ONE_AT_A_TIME.try_lock() {
        Ok(turn) => turn,
        Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    has_room(bytes).then_some(Room { _turn: Some(turn) })
}

/// Starts a thread by `start`, whose thread has to let go of what it gets as soon as it runs. Where
/// memory is limited, threads begin one after the other, each only where there is room for it.
///
/// # Errors
/// ENOMEM where there is none, else those of `start`.
pub fn start_thread<T>(start: impl FnOnce(Begins) -> io::Result<T>) -> io::Result<T> {
    static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());
    if !is_limited() {
        return start(Begins { _say: None });
    }
    sys::memory::keep_to_few_arenas();
    let _turn = ONE_AFTER_THE_OTHER.lock().unwrap_or_else(PoisonError::into_inner);
    if !sys::memory::could_map(THREAD) {
        return Err(Errno::NOMEM.into());
    }
    let (say, begun) = sync_channel(0);
    let started = start(Begins { _say: Some(say) });
    // It ends when the other side is dropped: by the thread, or with the thread that never was.
    let _ = begun.recv();
    started
}

/// What a thread holds until it runs.
#[derive(Debug)]
pub struct Begins {
    _say: Option<SyncSender<()>>,
}

/// The least of this process's own limits of memory, in bytes.
fn limit() -> Option<u64> {
    [Resource::As, Resource::Data].into_iter().filter_map(|of| getrlimit(of).current).min()
}

/// Whether whoever asks for memory can do without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    MustHave,
    CanDoWithout,
}

thread_local! {
    // Constant and without a destructor: looking at it allocates nothing, at any time.
    static NEED: Cell<Need> = const { Cell::new(Need::MustHave) };
}

pub(crate) fn need() -> Need {
    NEED.get()
}
