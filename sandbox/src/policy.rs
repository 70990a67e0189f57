//! The policy that a jail is built from: plain data, nothing enforced yet.

use std::ffi::OsString;
use std::path::PathBuf;

/// What a jail lets file jobs and commands reach. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Directories that file jobs and commands may read and write.
    pub roots: Vec<PathBuf>,
    /// Directories that file jobs and commands may read.
    pub read_only_roots: Vec<PathBuf>,
    /// Other paths of the same roots, as they were written: through links. Commands find them under
    /// these too. They grant nothing by themselves: a path that leads elsewhere by now is ignored.
    pub spellings: Vec<PathBuf>,
    /// More directories or files that commands, but not file jobs, may read and execute.
    pub command_read: Vec<PathBuf>,
    /// More directories or files that commands, but not file jobs, may read, execute and write.
    pub command_write: Vec<PathBuf>,
    /// A directory of the program's own that file jobs may write and commands must not reach. Where
    /// something else in this policy lets commands into it, file jobs do not get it either
    /// ([`Jail::withheld`](crate::Jail::withheld)).
    pub file_private: Option<PathBuf>,
    /// Files and directories, within what commands may write, that commands must not change. In namespaces
    /// they are read-only with all that they hold, and no directory that leads there can be moved away.
    /// Without namespaces nothing enforces it. One that is missing is ignored, and a link is.
    pub protected: Vec<PathBuf>,
    /// Directories outside the roots that file jobs may read and write too.
    pub file_also: Vec<PathBuf>,
    /// The directory of the program's own in which HOMEs are kept for later jails of the same rights. It
    /// must be the user's own and of mode 0700. HOME is not kept where something else in this policy lets
    /// commands into it ([`Jail::home_problem`](crate::Jail::home_problem)). `None` discards HOME with the
    /// jail.
    pub homes: Option<PathBuf>,
    /// What rights commands have besides those of this policy, one a line: the names of secrets, for
    /// example. A HOME is kept only for jails that have the same.
    pub rights_besides: Vec<String>,
    /// The directory in which the program itself listens. Commands must not take its place there: it is
    /// hidden from them in namespaces, and without them a policy that lets them write there is refused.
    pub sockets: Option<PathBuf>,
    /// What to do on a Linux kernel that cannot enforce the policy.
    pub mode: Mode,
    /// Whether commands may reach a network.
    pub network: Network,
    /// Resource limits of each command.
    pub limits: Limits,
    /// How many bytes the layers of all [`Surroundings::ThrowAway`] commands may hold together, in memory.
    /// `None` means [`LAYER_BYTES`]. It is never more than half of the memory there is.
    pub layer_bytes: Option<u64>,
    /// How many file jobs may run at once.
    pub file_workers: usize,
    /// Whether to try namespaces.
    pub namespaces: Namespaces,
    /// Whether the jail can start commands.
    pub commands: Commands,
    /// The operator's home directory. Commands may read its toolchains and git settings.
    /// `None` takes `HOME` from the environment.
    pub home: Option<PathBuf>,
    /// The directories in which commands look for programs, separated as in `PATH`. Commands may
    /// read and execute them. `None` takes `PATH` from the environment.
    pub search_path: Option<OsString>,
    /// The directory in which the jail makes its private directories. Commands must not be able to
    /// write there, so it cannot be a root. `None` takes the system's directory for temporary
    /// files, or else `/tmp` or `/var/tmp`.
    pub private_in: Option<PathBuf>,
    /// The program to start as the spawner: one whose `main` begins with
    /// [`is_spawner_invocation`](crate::is_spawner_invocation). `None` takes the running
    /// executable.
    pub spawner_program: Option<PathBuf>,
}

/// [`Policy::layer_bytes`] where a policy names none: 2 GiB.
pub const LAYER_BYTES: u64 = 2 << 30;

/// What to do where the Linux kernel cannot enforce everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Building the jail fails when file rights cannot be enforced.
    #[default]
    Enforce,
    /// Building the jail fails when namespaces are not granted, too.
    Full,
    /// The jail enforces what it can and reports the rest.
    BestEffort,
    /// Nothing is enforced. The jail still ends every process that a call started.
    Off,
}

/// Whether commands may reach a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// No network outside the call: a private loopback where the machine grants namespaces, else no
    /// sockets.
    #[default]
    Deny,
    /// Internet sockets work as without a jail. Unix sockets outside the roots stay closed: the
    /// daemons behind them would act for a command with rights that the command lacks.
    Allow,
}

/// What a command has around it that other calls do not share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surroundings {
    /// Its processes and, in namespaces, its terminals and IPC. All else is the jail's. Without namespaces
    /// there are no terminals.
    #[default]
    Shared,
    /// Nothing that it does stays. In namespaces it gets layers over all that it may write, which are
    /// discarded with it, a loopback, terminals and shared memory of its own. Without them it may write
    /// in a directory of its own only, which is removed after it, and change the metadata of no file.
    ThrowAway,
}

/// Whether a jail can start commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commands {
    /// The jail has a spawner.
    #[default]
    Spawned,
    /// The jail runs file jobs only: it starts no process and refuses commands. For a program that
    /// does not control its `main`, such as a test harness, and so cannot be its own spawner.
    Never,
}

/// Whether to try namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// Use them where the machine grants them.
    #[default]
    Auto,
    /// Do not try them.
    Never,
}

/// Resource limits of each command; `None` leaves the inherited one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Address space of each process, in bytes (`RLIMIT_AS`).
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads. At the full level all calls of a jail share this limit, it
    /// binds root too (Linux 6.14), and `None` means 8192. At the kernel level it is
    /// `RLIMIT_NPROC`, which counts every process of the user and does not bind root.
    pub processes: Option<u64>,
    /// Largest file that a process may write, in bytes (`RLIMIT_FSIZE`). SIGXFSZ ends a process
    /// that writes more.
    pub file_size_bytes: Option<u64>,
    /// Number of open descriptors of each process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
}
