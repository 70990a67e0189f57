//! The allocator: the system's, with a reserve behind it that was mapped ahead of time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{copy_nonoverlapping, null_mut, write_bytes};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::memory::runs::{MOST, Runs};
use crate::memory::{Allocator, Need, need};

/// What the reserve is given out in, in bytes: small enough for the small things that fail first, and
/// large enough that the list of what is taken stays small.
const PIECE: usize = 256;

/// The largest reserve, in bytes.
pub(crate) const MOST_BYTES: usize = MOST * PIECE;

/// The strictest alignment that the reserve serves: that of its own start.
const MOST_ALIGN: usize = 4096;

/// How often memory is asked for again while other threads may set some free, a millisecond apart.
const PATIENCE: usize = 2000;

/// Beyond this much the reserve's memory goes back to the system once nothing of it is in use.
const KEPT: usize = 1 << 20;

static RESERVE: Reserve = Reserve {
    start: AtomicPtr::new(null_mut()),
    len: AtomicUsize::new(0),
    used: AtomicUsize::new(0),
    runs: Mutex::new(Runs::new()),
};

// SAFETY: a block comes from the system's allocator or from the reserve, each of which keeps the
// contract, and goes back to the one whose address range it lies in; the reserve lies in a mapping of
// its own, where the system's allocator has nothing. Nothing here unwinds or allocates.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { scarce(layout) } else { block }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = scarce(layout);
        if !block.is_null() {
            // SAFETY: the block is new and has the layout's size.
            unsafe { write_bytes(block, 0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.holds(block) {
            RESERVE.give(block, layout);
        } else {
            // SAFETY: it is not the reserve's, so it came from here.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !RESERVE.holds(block) {
            // SAFETY: as in `dealloc`.
            let grown = unsafe { System.realloc(block, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller's promises are passed on; a block that could not grow is still there.
        unsafe { moved(self, block, layout, size) }
    }
}

/// Moves a block of the reserve, or one that the system cannot resize.
///
/// # Safety
/// As for [`GlobalAlloc::realloc`].
#[cold]
unsafe fn moved(allocator: &Allocator, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller promises that the size fits the alignment and is not zero, that the block
    // has the old layout, and that nothing else uses it.
    unsafe {
        let new = allocator.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !new.is_null() {
            copy_nonoverlapping(block, new, size.min(layout.size()));
            allocator.dealloc(block, layout);
        }
        new
    }
}

/// Memory where the system has none: from the reserve, or what other threads set free in a while.
/// Nothing for who can do without. A null from here ends the process, unless the caller is one of
/// those who ask to be told.
#[cold]
fn scarce(layout: Layout) -> *mut u8 {
    if need() == Need::CanDoWithout || RESERVE.len.load(Ordering::Relaxed) == 0 {
        return null_mut();
    }
    for _ in 0..PATIENCE {
        if let Some(block) = RESERVE.take(layout) {
            return block;
        }
        std::thread::sleep(Duration::from_millis(1));
        // SAFETY: the layout is that of the allocation that failed, so its size is not zero.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            return block;
        }
    }
    null_mut()
}

struct Reserve {
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    used: AtomicUsize,
    runs: Mutex<Runs>,
}

impl Reserve {
    fn holds(&self, block: *mut u8) -> bool {
        let start = self.start.load(Ordering::Relaxed);
        block.addr().wrapping_sub(start.addr()) < self.len.load(Ordering::Relaxed)
    }

    fn take(&self, layout: Layout) -> Option<*mut u8> {
        if layout.align() > MOST_ALIGN {
            return None;
        }
        let mut runs = self.runs();
        let align = layout.align().div_ceil(PIECE);
        let first = runs.take(layout.size().div_ceil(PIECE), align)?;
        self.used.store(runs.used(), Ordering::Relaxed);
        Some(self.start.load(Ordering::Relaxed).wrapping_add(first * PIECE))
    }

    fn give(&self, block: *mut u8, layout: Layout) {
        let start = self.start.load(Ordering::Relaxed);
        let first = (block.addr() - start.addr()) / PIECE;
        let mut runs = self.runs();
        let emptied = runs.give(first, layout.size().div_ceil(PIECE));
        self.used.store(runs.used(), Ordering::Relaxed);
        if let Some(bytes) = emptied.map(|pieces| pieces * PIECE).filter(|bytes| *bytes > KEPT) {
            // SAFETY: the range lies in the reserve's mapping, of which nothing is in use, and nothing
            // is taken while the list is locked.
            unsafe { libc::madvise(start.cast::<c_void>(), bytes, libc::MADV_DONTNEED) };
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maps the reserve, once: so many bytes, or where they do not fit half of them, and so on. Address
/// space is all that it costs until it is needed.
pub(crate) fn reserve(bytes: usize) {
    let mut runs = RESERVE.runs();
    let mut bytes = bytes.min(MOST_BYTES) / MOST_ALIGN * MOST_ALIGN;
    while runs.is_empty() && bytes >= MOST_ALIGN {
        if let Some(start) = map(bytes) {
            runs.grow(bytes / PIECE);
            RESERVE.start.store(start.cast(), Ordering::Relaxed);
            // Nobody has a block of it yet, so nobody needs to see the two stores in their order.
            RESERVE.len.store(bytes, Ordering::Relaxed);
            return;
        }
        bytes = bytes / 2 / MOST_ALIGN * MOST_ALIGN;
    }
}

/// How many bytes of the reserve are in use, and how many it has.
pub(crate) fn reserve_use() -> (usize, usize) {
    (RESERVE.used.load(Ordering::Relaxed) * PIECE, RESERVE.len.load(Ordering::Relaxed))
}

/// Whether so many bytes of address space could be had at this moment.
pub(crate) fn could_map(bytes: usize) -> bool {
    let Some(start) = map(bytes) else { return false };
    // SAFETY: the mapping was made a moment ago and nobody else knows of it.
    unsafe { libc::munmap(start, bytes) };
    true
}

/// Has new threads share what the system's allocator has already. It gives each of them an arena of
/// its own, 64 MiB of address space, as long as there are not too many; and where an arena cannot be
/// had, it makes a mapping of each small block, which runs out first of all.
pub(crate) fn keep_to_few_arenas() {
    #[cfg(target_env = "gnu")]
    {
        static DONE: std::sync::Once = std::sync::Once::new();
        DONE.call_once(|| {
            // SAFETY: the call sets a number of the C library's, under its own lock. Where it does
            // not take it, everything is as without it.
            unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
        });
    }
}

/// A private mapping that is written nowhere yet. It is writable, so that it counts wherever memory is
/// counted: RLIMIT_AS, RLIMIT_DATA, and on machines that promise no more than they have.
fn map(bytes: usize) -> Option<*mut c_void> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let start = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start)
}

/// Grows the main thread's stack by so many bytes, of which only the last page becomes resident.
/// The kernel grows it on demand, and kills a process that it may not grow it for.
///
/// To be called on the main thread. Where it cannot grow so far, it stays as it is.
pub(crate) fn deepen_stack(bytes: usize) {
    let mut here = MaybeUninit::<libc::timespec>::uninit();
    let below = here.as_mut_ptr().wrapping_byte_sub(bytes);
    // SAFETY: the kernel writes to memory below the stack pointer and the red zone, where no object
    // is, or answers EFAULT where it cannot be had. Not through the C library, whose version of this
    // call runs in this process and would be killed.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, below) };
}
