//! The terminal of a session: opened outside the jail, so that no other command reaches it by a path.

use std::io;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How many rows and columns a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines of text.
    pub rows: NonZeroU16,
    /// Characters of a line.
    pub columns: NonZeroU16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        const ROWS: NonZeroU16 = NonZeroU16::new(24).expect("not zero");
        const COLUMNS: NonZeroU16 = NonZeroU16::new(80).expect("not zero");
        Self { rows: ROWS, columns: COLUMNS }
    }
}

impl TerminalSize {
    fn window(self) -> Winsize {
        Winsize { ws_row: self.rows.get(), ws_col: self.columns.get(), ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// Both ends of a new terminal: the controlling one, which does not block, and the command's. The thread
/// must not be confined.
pub(crate) fn open(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&control)?;
    // By the descriptor: a path could name a terminal of another mount.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let command = ioctl_tiocgptpeer(&control, flags)?;
    resize(&control, size)?;
    rustix::fs::fcntl_setfl(&control, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok((control, command))
}

/// Gives the terminal another size, of which its foreground group is told.
pub(crate) fn resize(control: impl AsFd, size: TerminalSize) -> io::Result<()> {
    Ok(tcsetwinsize(control, size.window())?)
}
