//! What a jail is asked to be: plain data, nothing enforced yet.

use std::path::PathBuf;

/// What may be reached from inside a jail. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Folders that file jobs and commands may read and write.
    pub roots: Vec<PathBuf>,
    /// Folders that file jobs and commands may read.
    pub read_only_roots: Vec<PathBuf>,
    /// Further folders or files that commands, but not file jobs, may read and execute.
    pub command_read: Vec<PathBuf>,
    /// Further folders or files that commands, but not file jobs, may also write.
    pub command_write: Vec<PathBuf>,
    /// What a kernel that cannot enforce the policy means.
    pub mode: Mode,
    /// Whether commands may reach a network.
    pub network: Network,
    /// Resource limits of each command.
    pub limits: Limits,
    /// How many file jobs may run at once.
    pub file_workers: usize,
}

/// What happens where the kernel cannot enforce everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Building the jail fails when file rights cannot be enforced.
    #[default]
    Enforce,
    /// What can be enforced is, and the rest is said.
    BestEffort,
    /// Nothing is enforced.
    Off,
}

/// Whether commands may reach a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing beyond the call: a private loopback where namespaces are granted, else no sockets.
    #[default]
    Deny,
    /// As without a jail.
    Allow,
}

/// Resource limits of each command; `None` leaves the inherited one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Address space of each process, in bytes.
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub processes: Option<u64>,
    /// Largest file that may be written, in bytes.
    pub file_size_bytes: Option<u64>,
    /// Number of open descriptors of each process.
    pub open_files: Option<u64>,
}
