//! Signals, taken without a thread: a handler writes a byte into a pipe, the runtime reads it.

use std::io;

use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::{SigId, low_level};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Signals that come to this value instead of ending the process. Several values may take the same
/// signal: each receives it.
///
/// Once the value is dropped nobody receives them, and they still do not end the process. A program
/// that this process starts has their defaults.
#[derive(Debug)]
pub struct Signals {
    arrivals: pipe::Receiver,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Takes the signals of these numbers. Needs a runtime.
    ///
    /// # Errors
    /// What the system said to a pipe or a handler.
    ///
    /// # Panics
    /// For SIGKILL, SIGSTOP, SIGILL, SIGFPE and SIGSEGV, which no program takes like this.
    pub fn take(numbers: &[i32]) -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let arrivals = pipe::Receiver::from_owned_fd(reader)?;
        // Made first: when a handler fails, dropping it removes those before.
        let mut signals = Self { arrivals, handlers: Vec::with_capacity(numbers.len()) };
        for number in numbers {
            let handler = low_level::pipe::register(*number, writer.try_clone()?)?;
            signals.handlers.push(handler);
        }
        Ok(signals)
    }

    /// Waits for one of the signals. Those that came meanwhile are received one by one; none is
    /// lost when the wait is given up.
    pub async fn recv(&mut self) {
        // The handlers hold the other end, so this does not fail; if it did, a stop that nobody
        // asked for is better than one that never comes.
        let _ = self.arrivals.read(&mut [0]).await;
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::{SIGUSR1, SIGUSR2};

    use super::*;

    #[tokio::test]
    async fn everybody_who_took_a_signal_receives_each_of_them() {
        let mut both = Signals::take(&[SIGUSR1, SIGUSR2]).unwrap();
        let mut one = Signals::take(&[SIGUSR1]).unwrap();
        for number in [SIGUSR1, SIGUSR2, SIGUSR1] {
            low_level::raise(number).unwrap();
        }
        for (signals, arrived) in [(&mut both, 3), (&mut one, 2)] {
            for _ in 0..arrived {
                signals.recv().await;
            }
            let none = signals.arrivals.try_read(&mut [0]).unwrap_err();
            assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        }
        drop((both, one));
        low_level::raise(SIGUSR1).unwrap();
    }
}
