//! What a jail is asked to be: plain data, nothing enforced yet.

use std::ffi::OsString;
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
    /// A directory of the program's own that file jobs may write and commands must not reach. Where
    /// something else in this policy lets commands into it, file jobs do not get it either
    /// ([`Jail::withheld`](crate::Jail::withheld)).
    pub file_private: Option<PathBuf>,
    /// What a kernel that cannot enforce the policy means.
    pub mode: Mode,
    /// Whether commands may reach a network.
    pub network: Network,
    /// Resource limits of each command.
    pub limits: Limits,
    /// How many file jobs may run at once.
    pub file_workers: usize,
    /// Whether namespaces are tried.
    pub namespaces: Namespaces,
    /// Whether commands can be started at all.
    pub commands: Commands,
    /// The operator's home folder, whose toolchains and git settings commands may read.
    /// `None` takes `HOME` from the environment.
    pub home: Option<PathBuf>,
    /// The folders that commands look for programs in, as in `PATH`; they become readable.
    /// `None` takes `PATH` from the environment.
    pub search_path: Option<OsString>,
    /// Where the jail keeps its private folders: nowhere that commands may write, a root say.
    /// `None` takes the system's folder for temporary files, or else `/tmp` or `/var/tmp`.
    pub private_in: Option<PathBuf>,
    /// The program that is started as the spawner: one whose `main` begins with
    /// [`is_spawner_invocation`](crate::is_spawner_invocation). `None` takes the running
    /// executable itself.
    pub spawner_program: Option<PathBuf>,
}

/// What happens where the kernel cannot enforce everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Building the jail fails when file rights cannot be enforced.
    #[default]
    Enforce,
    /// What can be enforced is, and the rest is said.
    BestEffort,
    /// Nothing is enforced; only the end of every process that a call started is still seen to.
    Off,
}

/// Whether commands may reach a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing beyond the call: a private loopback where namespaces are granted, else no sockets.
    #[default]
    Deny,
    /// Internet sockets work as without a jail. Unix sockets outside the roots stay closed: behind
    /// them sit daemons that would act for a command with rights that the command lacks.
    Allow,
}

/// Whether commands can be started at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commands {
    /// The jail has a spawner.
    #[default]
    Spawned,
    /// The jail is for file jobs alone: no process is started, and a start is refused. For a
    /// program whose `main` is not its own, such as a test harness, and that so cannot be its own
    /// spawner.
    Never,
}

/// Whether namespaces are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// They are used where the machine grants them.
    #[default]
    Auto,
    /// They are not tried.
    Never,
}

/// Resource limits of each command; `None` leaves the inherited one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Address space of each process, in bytes (`RLIMIT_AS`).
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads. At the full level the calls of one jail share them, root
    /// is bound too (Linux 6.14), and `None` means 8192. At the kernel level this is
    /// `RLIMIT_NPROC`, which counts every process of the user and does not bind root.
    pub processes: Option<u64>,
    /// Largest file that may be written, in bytes (`RLIMIT_FSIZE`). A process that goes beyond it
    /// is ended by SIGXFSZ.
    pub file_size_bytes: Option<u64>,
    /// Number of open descriptors of each process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
}
