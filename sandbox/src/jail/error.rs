//! Why a jail could not be built.

use std::io;
use std::path::PathBuf;

use crate::grants::GrantError;
use crate::launcher::SpawnerError;
use crate::private::PrivateError;
use crate::rights::DomainError;
use crate::workers::SubmitError;

/// Why a jail could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// The kernel cannot enforce file rights, and the policy demands it.
    #[error(
        "this Linux kernel cannot enforce file rights: it has no Landlock (Linux 5.13 with \
         `landlock` among its security modules); `sandbox = \"best_effort\"` accepts less"
    )]
    NoLandlock(#[source] io::Error),
    /// A path of the policy cannot be granted.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// Cannot make the Landlock domain of the file workers.
    #[error("cannot confine file jobs")]
    Domain(#[from] DomainError),
    /// The machine grants no namespaces, and the policy wants no less.
    #[error(
        "no namespaces can be had here: {0}; `sandbox = \"enforce\"` accepts the level kernel, which \
         needs none"
    )]
    NoNamespaces(String),
    /// Cannot start or confine a worker thread.
    #[error(transparent)]
    Worker(#[from] SubmitError),
    /// Cannot make the private directories.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The private directories would lie where commands may write. Commands could then lay traps
    /// for the provider, which makes and removes files there with all its rights.
    #[error(
        "the jail's private directories cannot lie in {}: commands may write {}; set TMPDIR to a \
         directory outside it",
        path.display(), writable.display()
    )]
    PrivateInReach {
        /// Where the private directories would lie.
        path: PathBuf,
        /// The path that commands may write and that holds them.
        writable: PathBuf,
    },
    /// Commands would reach the directory in which the program itself listens, and nothing can hide it.
    #[error(
        "commands would reach this provider's own socket in {}, because they get {}: let the host name \
         another directory in PLUGIN_UNIX_SOCKET_DIR, or set TMPDIR to one that commands do not get",
        path.display(), granted.display()
    )]
    SocketsInReach {
        /// The directory of the sockets.
        path: PathBuf,
        /// What the policy grants that holds it, or lies in it.
        granted: PathBuf,
    },
    /// Cannot start the spawner.
    #[error(transparent)]
    Spawner(#[from] SpawnerError),
}
