//! The names of processes.

use std::fmt;
use std::fs;

use libc::pid_t;

/// The kernel keeps 15 bytes of a process's name.
pub(crate) const NAME: usize = 15;

/// A process's name, which the process can change: any bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramName(pub(crate) [u8; NAME]);

impl ProgramName {
    /// The name of a process; nothing where it is gone.
    pub(crate) fn of(pid: pid_t) -> Self {
        let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut name = [0; NAME];
        let text = comm.iter().copied().take_while(|byte| *byte != b'\n');
        name.iter_mut().zip(text).for_each(|(to, from)| *to = from);
        Self(name)
    }

    /// Whether the kernel may have cut it: it is as long as one can be.
    #[must_use]
    pub fn may_be_cut(self) -> bool {
        self.0[NAME - 1] != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0[0] == 0
    }
}

impl fmt::Display for ProgramName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

/// The most programs that a report names.
pub(crate) const MOST_PROGRAMS: usize = 3;

/// Some different programs of a tree of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Programs(pub(crate) [ProgramName; MOST_PROGRAMS]);

impl Programs {
    pub(crate) fn add(&mut self, name: ProgramName) {
        if !name.is_empty()
            && !self.0.contains(&name)
            && let Some(free) = self.0.iter_mut().find(|name| name.is_empty())
        {
            *free = name;
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = ProgramName> {
        self.0.into_iter().take_while(|name| !name.is_empty())
    }
}
