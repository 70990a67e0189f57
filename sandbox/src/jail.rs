//! A built jail: its file workers, its spawner, and what it achieved.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::command::{Command, Running, StartError};
use crate::explain::{Access, Explanation, Subject};
use crate::private::{Private, PrivateError, PrivateFolders};
use crate::workers::{FileJob, SubmitError, Workers};
use crate::{Channels, Enforcement, Level, Policy};

/// A jail. Dropping it lets running jobs and commands end.
pub struct Jail {
    enforcement: Enforcement,
    workers: Workers,
    private: Private,
    folders: Arc<PrivateFolders>,
}

/// Why a jail could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// A worker thread could not be started or confined.
    #[error(transparent)]
    Worker(#[from] SubmitError),
    /// The private folders could not be made.
    #[error(transparent)]
    Private(#[from] PrivateError),
}

impl Jail {
    /// Builds the jail that `policy` asks for, as far as `policy.mode` insists on it.
    ///
    /// # Errors
    /// [`JailError`] when the policy cannot be enforced, or a thread or process cannot be started.
    pub fn build(policy: &Policy) -> Result<Self, JailError> {
        let enforcement = Enforcement {
            level: Level::Off,
            landlock_abi: None,
            rights: Vec::new(),
            channels: Channels::default(),
            left_open: vec!["this build enforces nothing yet".to_owned()],
        };
        let workers = Workers::new(policy.file_workers, Box::new(|| Ok(())))?;
        let base = policy.private_in.clone().unwrap_or_else(std::env::temp_dir);
        let folders = Arc::new(PrivateFolders::make(&base)?);
        let private = Private {
            tmp: folders.tmp(),
            cache: folders.cache(),
            home: None,
            spool: folders.spool(),
        };
        Ok(Self { enforcement, workers, private, folders })
    }

    /// What the kernel enforces for this jail.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Where the private folders are, for the environment of commands.
    #[must_use]
    pub fn private(&self) -> &Private {
        &self.private
    }

    /// Runs `job` on a file worker, soon and on its own thread. Returns without waiting.
    ///
    /// # Errors
    /// [`SubmitError`] when no worker is free and no more may be started.
    pub fn submit(&self, job: FileJob) -> Result<(), SubmitError> {
        self.workers.submit(job)
    }

    /// Starts a command. Returns when its program runs, which takes about a millisecond; blocks
    /// that long, so an async caller wants a thread of its own for it.
    ///
    /// # Errors
    /// [`StartError`], with the step that failed.
    pub fn start(&self, command: Command) -> Result<Running, StartError> {
        let _ = (command, &self.folders);
        Err(StartError::SpawnerGone(io::Error::from(io::ErrorKind::Unsupported)))
    }

    /// Why `access` to `path` was refused, and which setting would grant it. `path` is absolute
    /// and resolved. `None` where the policy grants it, so that the refusal has another cause.
    #[must_use]
    pub fn explain(&self, subject: Subject, access: Access, path: &Path) -> Option<Explanation> {
        let _ = (subject, access, path);
        None
    }

    /// Why a command has no network, where that is the policy's doing.
    #[must_use]
    pub fn explain_network(&self) -> Option<Explanation> {
        None
    }
}
