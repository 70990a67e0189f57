//! A way to wake a call that waits on descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Asks a running call to end, from any thread. Clones share one state; once raised it stays so.
#[derive(Clone, Debug)]
pub struct Interrupt {
    event: Arc<OwnedFd>,
}

impl Interrupt {
    /// One that nobody has raised.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Takes back what was raised so far. Only for one that means "look again" and not "end".
    pub(crate) fn lower(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }

    /// Ends the call. Never blocks.
    pub fn raise(&self) {
        // The only failure is a counter at its limit, which is raised already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
