//! A built jail: its file workers, its spawner and its enforcement.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::command::{Command, Running, StartError};
use crate::enforcement::{Enforcement, Level};
use crate::explain::{self, Access, Explanation, Granted, Setting, Subject};
use crate::grants::{Grants, PROC};
use crate::kept_home::Means;
use crate::launcher::SpawnerError;
use crate::own_sockets;
use crate::plan::{Confinement, Plan, Ready};
use crate::policy::{Commands, Limits, Mode, Namespaces, Network, Policy, Surroundings};
use crate::private::{Private, PrivateDirs, user_dir_path};
use crate::report::{self, Facts, Isolation, User};
use crate::rights::{DomainError, Grant, Rights, Tcp, domain};
use crate::spawners::Spawners;
use crate::sys;
use crate::workers::{Confine, FileJob, SubmitError, Workers};

use directories::{Directories, OwnHome};
pub use error::JailError;
use plans::{in_namespaces, in_place, own};

mod directories;
mod error;
mod plans;

/// A jail. Dropping it lets running jobs and commands end. The spawner ends after the last command.
#[derive(Debug)]
pub struct Jail {
    enforcement: Enforcement,
    workers: Workers,
    // `None` once the jail is dropped, or where the policy wants no commands.
    spawner: Option<Spawners>,
    private: Private,
    throw_away: Option<Private>,
    // `None` where the spawner owns them.
    _dirs: Option<PrivateDirs>,
    limits: Limits,
    network: Network,
    files: Vec<Grant>,
    commands: Vec<Grant>,
    withheld: Option<PathBuf>,
    home: OwnHome,
}

impl Jail {
    /// Builds the jail that `policy` asks for. `policy.mode` says how much of it is mandatory.
    ///
    /// # Errors
    /// [`JailError`] when the kernel cannot enforce the policy, or a thread or process does not
    /// start.
    pub fn build(policy: &Policy) -> Result<Self, JailError> {
        let grants = Grants::of(policy)?;
        let landlock = match (policy.mode, sys::landlock_abi()) {
            (Mode::Enforce | Mode::Full, Err(error)) => return Err(JailError::NoLandlock(error)),
            (_, found) => found.map_err(|error| error.to_string()),
        };
        let confinement = match (policy.mode, &landlock) {
            (Mode::Off, _) => Confinement::None,
            (_, Err(_)) => Confinement::WithoutLandlock,
            (_, Ok(_)) => Confinement::Whole,
        };
        let started = start(policy, &grants, confinement)?;
        let withheld = match (&policy.file_private, confinement) {
            // Where nothing is enforced, commands reach all that their user does.
            (None, _) | (Some(_), Confinement::None) => None,
            (Some(private), _) => grants.reachable(private).map(Path::to_owned),
        };
        let mut files = grants.files;
        if let (Some(private), None) = (&policy.file_private, &withheld) {
            files.push(own(private, Rights::ReadWrite));
        }
        files.push(own(&started.private.spool, Rights::ReadWrite));
        files.extend(policy.file_also.iter().map(|path| own(path, Rights::ReadWrite)));
        let confine: Confine = match confinement {
            Confinement::Whole => in_domain(&files)?,
            Confinement::None | Confinement::WithoutLandlock => Box::new(|| Ok(())),
        };
        let skipped = grants.skipped.iter().map(|(path, link)| {
            format!(
                "{} is not granted: it leads through the link {}, which commands may change.",
                path.display(),
                link.display()
            )
        });
        let root = rustix::process::geteuid().is_root();
        let facts = Facts {
            mode: policy.mode,
            network: policy.network,
            landlock,
            namespaces: started.namespaces,
            unfiltered: started.unfiltered,
            user: if root { User::Root } else { User::Ordinary },
        };
        let mut enforcement = report::enforcement(&facts);
        let discards = enforcement.level >= Level::Kernel;
        enforcement.left_open.extend(skipped);
        let is_unmounted = started.spawner.as_ref().is_some_and(|spawner| !spawner.mounts());
        if is_unmounted && enforcement.level != Level::Off && !policy.protected.is_empty() {
            enforcement.left_open.push(UNMOUNTED.to_owned());
        }
        Ok(Self {
            enforcement,
            workers: Workers::new(policy.file_workers, confine)?,
            spawner: started.spawner,
            throw_away: started.throw_away.filter(|_| discards),
            private: started.private,
            _dirs: started.dirs,
            limits: policy.limits,
            network: policy.network,
            files,
            commands: started.commands,
            withheld,
            home: started.home,
        })
    }

    /// What the kernel enforces for this jail.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// The paths of the private directories, for the environment of commands.
    #[must_use]
    pub fn private(&self) -> &Private {
        &self.private
    }

    /// The path that lets commands into the policy's `file_private`, so that file jobs did not get
    /// it. `None` where they did, or where the policy names none.
    #[must_use]
    pub fn withheld(&self) -> Option<&Path> {
        self.withheld.as_deref()
    }

    /// Why HOME is not kept although the policy wants it, to stand inside a sentence. `None` where it is
    /// kept, or commands have no HOME of their own.
    #[must_use]
    pub fn home_problem(&self) -> Option<&str> {
        self.home.problem.as_deref()
    }

    /// The names at the top of the jail's own HOME that do not begin with a dot. Works on a file worker too.
    /// `None` where there is no such HOME, or it holds more than a thousand entries.
    #[must_use]
    pub fn home_names(&self) -> Option<BTreeSet<OsString>> {
        self.home.top.as_ref()?.names()
    }

    /// Whether an entry at the top of the jail's own HOME is a directory that holds a file `.git`.
    #[must_use]
    pub fn is_worktree_in_home(&self, name: &OsStr) -> bool {
        self.home.top.as_ref().is_some_and(|top| top.is_worktree(name))
    }

    /// Runs `job` on a file worker. While all of [`Policy::file_workers`] are busy it waits for the
    /// next free one, first come, first served; how many jobs may wait is up to the caller. Returns
    /// without waiting for the job.
    ///
    /// # Errors
    /// [`SubmitError`] when a further worker is needed and cannot be started or confined. The job is
    /// dropped.
    pub fn submit(&self, job: FileJob) -> Result<(), SubmitError> {
        self.workers.submit(job)
    }

    /// Starts a command and returns when its program runs. This blocks for about a millisecond, so
    /// an async caller should use a separate thread.
    ///
    /// # Errors
    /// [`StartError`] names the step that failed.
    pub fn start(&self, command: Command) -> Result<Running, StartError> {
        self.start_in(Surroundings::Shared, command)
    }

    /// [`start`](Self::start), for a command that shares less with others. The first of each kind also
    /// starts the process that keeps such surroundings ready, which takes some ten milliseconds.
    ///
    /// # Errors
    /// [`StartError`] names the step that failed.
    pub fn start_in(
        &self,
        surroundings: Surroundings,
        command: Command,
    ) -> Result<Running, StartError> {
        self.home.used.store(true, Ordering::Relaxed);
        self.home.complete();
        let limits = command.limits.unwrap_or(self.limits);
        match &self.spawner {
            Some(spawner) => spawner.call(surroundings, command, limits),
            None => Err(StartError::SpawnerGone(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Whether what is at `path` now is mounted read-only for the next command, because
    /// [`Policy::protected`] or [`Jail::protect`] named it. False once something outside has put another
    /// file there.
    #[must_use]
    pub fn protects(&self, path: &Path) -> bool {
        self.spawner.as_ref().is_some_and(|spawner| spawner.protects(path))
    }

    /// The private directories as [`Surroundings::ThrowAway`] commands name them, for their environment. `None`
    /// where this jail cannot discard what a command does: where it does not enforce everything, and
    /// without namespaces before Landlock ABI 6, since signals would reach other processes.
    #[must_use]
    pub fn throw_away(&self) -> Option<&Private> {
        self.throw_away.as_ref()
    }

    /// Whether anything can be mounted: the jail has namespaces.
    #[must_use]
    pub fn mounts(&self) -> bool {
        self.spawner.as_ref().is_some_and(Spawners::mounts)
    }

    /// Mounts `paths` read-only for later commands, in place of what was protected so far. Starts a new
    /// spawner, which takes some milliseconds; running commands go on. False where it cannot be had, as
    /// without namespaces.
    pub fn protect(&self, paths: &[PathBuf]) -> bool {
        self.spawner.as_ref().is_some_and(|spawner| spawner.protect(paths))
    }

    /// Why `access` to `path` was refused, and which setting would grant it. `path` is absolute
    /// and resolved. `None` where the policy grants the access: then the refusal has another cause.
    #[must_use]
    pub fn explain(&self, subject: Subject, access: Access, path: &Path) -> Option<Explanation> {
        // Without Landlock the policy refuses nothing.
        self.enforcement.landlock_abi?;
        let own = [PROC, "/dev"].iter().any(|dir| path.starts_with(dir));
        if own && subject == Subject::Command {
            // No setting changes what commands get of these.
            return None;
        }
        let grants = match subject {
            Subject::FileJob => &self.files,
            Subject::Command => &self.commands,
        };
        let granted: Vec<_> = grants
            .iter()
            .filter(|grant| !matches!(grant.rights, Rights::List | Rights::Device))
            .map(|grant| Granted { path: &grant.path, writable: grant.rights == Rights::ReadWrite })
            .collect();
        explain::explain(&granted, subject, access, path)
    }

    /// Why a command has no network, where the policy is the cause.
    #[must_use]
    pub fn explain_network(&self) -> Option<Explanation> {
        let closed = self.network == Network::Deny && self.enforcement.level > crate::Level::Off;
        closed.then(|| Explanation {
            missing: "network",
            setting: Setting::Network,
            value: "allow".into(),
            within: None,
        })
    }
}

/// What is said of [`Policy::protected`] without namespaces.
const UNMOUNTED: &str = "Commands can change protected paths while they run: only mounts keep them read-only, and \
     those need namespaces.";

impl Drop for Jail {
    fn drop(&mut self) {
        self.home.stop();
        if let Some(spawner) = self.spawner.take() {
            spawner.close();
        }
    }
}

struct Started {
    // `None` where the policy wants no commands.
    spawner: Option<Spawners>,
    private: Private,
    /// The private directories of commands whose effects are discarded.
    throw_away: Option<Private>,
    // `None` where the spawner owns them.
    dirs: Option<PrivateDirs>,
    commands: Vec<Grant>,
    namespaces: Result<Isolation, String>,
    unfiltered: Option<String>,
    home: OwnHome,
}

/// Starts a spawner in namespaces where the machine grants them, else without.
fn start(policy: &Policy, grants: &Grants, confinement: Confinement) -> Result<Started, JailError> {
    let base = private_base(policy, grants, confinement)?;
    if policy.commands == Commands::Never {
        let Directories { dirs, .. } = Directories::make(&base, policy, grants, None)?;
        let (plan, private) = in_place(policy, grants, confinement, &dirs)?;
        return Ok(Started {
            spawner: None,
            private,
            throw_away: None,
            dirs: Some(dirs),
            commands: plan.grants,
            namespaces: Err("the policy wants no commands".to_owned()),
            unfiltered: None,
            home: OwnHome::default(),
        });
    }
    let itself = PathBuf::from("/proc/self/exe");
    let program = policy.spawner_program.as_ref().unwrap_or(&itself);
    let everything = grants.commands.iter().any(|grant| grant.path == Path::new("/"));
    let refused = match (confinement, policy.namespaces) {
        (Confinement::None, _) => "the policy says off".to_owned(),
        (_, Namespaces::Never) => "the policy says never".to_owned(),
        (_, Namespaces::Auto) if everything => "the policy grants the root directory".to_owned(),
        (_, Namespaces::Auto) => {
            let Directories { dirs, home } =
                Directories::make(&base, policy, grants, Some(Means::Namespaces))?;
            let (mut plan, mut private) = in_namespaces(policy, grants, confinement, &dirs)?;
            if let Some(path) = sockets(policy) {
                let hidden = own_sockets::hidden(grants, &path).map_err(|granted| {
                    JailError::SocketsInReach { granted: granted.to_owned(), path: path.clone() }
                })?;
                plan.masks.extend(hidden.masks);
                plan.held.extend(hidden.held);
            }
            let throw_away = plans::in_layers(policy, grants, &plan);
            match Spawners::start(program, &plan, throw_away, dirs, &policy.protected) {
                Ok((spawner, ready)) => {
                    home.add_overlays(&mut private, grants);
                    let started = isolated(spawner, ready, &plan, private);
                    return Ok(Started { home, ..started });
                }
                Err(error @ SpawnerError::Start { .. }) => return Err(error.into()),
                Err(refused) => refused.to_string(),
            }
        }
    };
    if policy.mode == Mode::Full {
        return Err(JailError::NoNamespaces(refused));
    }
    if let (Confinement::Whole, Some(path)) = (confinement, sockets(policy))
        && let Some(granted) = grants.writable(&path)
    {
        return Err(JailError::SocketsInReach { granted: granted.to_owned(), path });
    }
    // Where file rights are not enforced, commands reach every HOME.
    let means = (confinement == Confinement::Whole).then_some(Means::Landlock);
    let Directories { dirs, mut home } = Directories::make(&base, policy, grants, means)?;
    if confinement == Confinement::WithoutLandlock && policy.homes.is_some() {
        home.problem = grants.home.as_ref().map(|_| UNENFORCED.to_owned());
    }
    let (plan, mut private) = in_place(policy, grants, confinement, &dirs)?;
    home.top = home.top.filter(|_| private.home.is_some());
    home.add_overlays(&mut private, grants);
    let throw_away = plans::without_writing(&plan, &dirs, &private)?;
    let (discarding, discarded) = throw_away.unzip();
    let (spawner, Ready { unfiltered, .. }) =
        Spawners::start(program, &plan, discarding, dirs, &[])?;
    Ok(Started {
        spawner: Some(spawner),
        private,
        throw_away: discarded,
        dirs: None,
        commands: plan.grants,
        namespaces: Err(refused),
        unfiltered,
        home,
    })
}

/// Why no HOME is kept without Landlock and without namespaces.
const UNENFORCED: &str = "file rights are not enforced";

/// The directory of the program's own sockets, resolved.
fn sockets(policy: &Policy) -> Option<PathBuf> {
    let named = policy.sockets.as_ref()?;
    Some(named.canonicalize().unwrap_or_else(|_| named.clone()))
}

/// A spawner in its own namespaces.
fn isolated(spawner: Spawners, ready: Ready, plan: &Plan, private: Private) -> Started {
    // A path that a private directory covers does not grant the machine's own content there.
    let overlaid = |path: &PathBuf| plan.sources.iter().any(|(at, _)| at == path);
    let commands = plan.grants.iter().filter(|grant| !overlaid(&grant.path)).cloned().collect();
    Started {
        throw_away: Some(private.clone()),
        spawner: Some(spawner),
        private,
        dirs: None,
        commands,
        namespaces: Ok(Isolation {
            pid_limit: ready.pid_limit,
            shared_limit: ready.shared_limit,
            narrowed: ready.narrowed,
        }),
        unfiltered: ready.unfiltered,
        home: OwnHome::default(),
    }
}

/// The directory to make the private directories in: the one that the policy names, else the first
/// of the usual ones that commands cannot write.
fn private_base(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
) -> Result<PathBuf, JailError> {
    let named = policy.private_in.clone().unwrap_or_else(|| {
        // One that TMPDIR names in vain keeps no jail from being built.
        Some(std::env::temp_dir()).filter(|named| named.is_dir()).unwrap_or_else(|| "/tmp".into())
    });
    // Where nothing is enforced, commands can write anywhere.
    let reached = match confinement {
        Confinement::None => None,
        Confinement::WithoutLandlock | Confinement::Whole => {
            grants.writable(&user_dir_path(&named))
        }
    };
    let Some(writable) = reached else { return Ok(named) };
    let usual = match policy.private_in {
        Some(_) => &[][..],
        None => &["/tmp", "/var/tmp"][..],
    };
    let other = usual.iter().map(Path::new);
    let mut other =
        other.filter(|base| base.is_dir() && grants.writable(&user_dir_path(base)).is_none());
    match other.next() {
        Some(base) => Ok(base.to_owned()),
        None => Err(JailError::PrivateInReach {
            path: user_dir_path(&named),
            writable: writable.to_owned(),
        }),
    }
}

/// What confines a thread to `files`.
fn in_domain(files: &[Grant]) -> Result<Confine, DomainError> {
    let domain = domain(Subject::FileJob, files, &[], Tcp::Handled)?;
    Ok(Box::new(move || {
        domain.try_clone()?.restrict_self().map_err(io::Error::other)?;
        Ok(())
    }))
}
