//! Keeps the memory of messages in the process, whatever the allocator would do.

use std::hint::black_box;
use std::sync::Once;

/// Larger than the buffers that are in use at a time on one connection.
const BLOCK: usize = 1 << 20;

/// Keeps the memory of messages in the process instead of giving it back after each one.
///
/// Streamed messages come and go in buffers of 64 KiB. glibc returns memory to the system once 128
/// KiB are free at the end of a heap, and gets it again for the next message page fault by page
/// fault, which cost a fifth to a third of the throughput. It raises that limit to twice the size of
/// the largest block it has seen freed (`mallopt(3)`, "dynamic mmap threshold"), so it is shown one.
/// No page of the block is touched. Other allocators take no notice.
pub(super) fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // Where it cannot be allocated, only speed is lost.
        let _ = block.try_reserve_exact(BLOCK);
        drop(black_box(block));
    });
}
