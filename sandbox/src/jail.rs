//! A built jail: its file workers, its spawner, and what it achieved.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::command::{Command, Running, StartError};
use crate::enforcement::Enforcement;
use crate::explain::{self, Access, Explanation, Granted, Setting, Subject};
use crate::grants::{GrantError, Grants, PROC, ordered};
use crate::launcher::{Spawner, SpawnerError};
use crate::plan::{Confinement, Plan, Ready};
use crate::policy::{Commands, Limits, Mode, Namespaces, Network, Policy};
use crate::private::{Private, PrivateError, PrivateFolders, place_in};
use crate::report::{self, Facts, Isolation, User};
use crate::rights::{DomainError, Grant, Holder, Rights, Tcp, domain, identity};
use crate::sys;
use crate::workers::{Confine, FileJob, SubmitError, Workers};

/// A jail. Dropping it lets running jobs and commands end; the spawner ends after the last.
#[derive(Debug)]
pub struct Jail {
    enforcement: Enforcement,
    workers: Workers,
    // Taken when the jail is dropped.
    spawner: Option<Spawner>,
    private: Private,
    // Where there is no spawner that keeps them.
    _folders: Option<PrivateFolders>,
    limits: Limits,
    network: Network,
    files: Vec<Grant>,
    commands: Vec<Grant>,
    withheld: Option<PathBuf>,
}

/// Why a jail could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// The kernel cannot enforce file rights, and the policy insists.
    #[error(
        "this kernel cannot enforce file rights: it has no Landlock (Linux 5.13 with `landlock` \
         among its security modules); `sandbox = \"best_effort\"` would do with less"
    )]
    NoLandlock(#[source] io::Error),
    /// A path of the policy cannot be granted.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The domain of the file workers could not be made.
    #[error("cannot confine file jobs")]
    Domain(#[from] DomainError),
    /// A worker thread could not be started or confined.
    #[error(transparent)]
    Worker(#[from] SubmitError),
    /// The private folders could not be made.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The private folders would lie where commands may write, and so could lay traps for the
    /// provider, which keeps house there with all its rights.
    #[error(
        "the jail's private folders cannot lie in {}: commands may write {}; set TMPDIR to a \
         folder outside of it",
        place.display(), holder.display()
    )]
    PrivateInReach {
        /// Where they would lie.
        place: PathBuf,
        /// What commands may write.
        holder: PathBuf,
    },
    /// There is no spawner.
    #[error(transparent)]
    Spawner(#[from] SpawnerError),
}

impl Jail {
    /// Builds the jail that `policy` asks for, as far as `policy.mode` insists on it.
    ///
    /// # Errors
    /// [`JailError`] when the policy cannot be enforced, or a thread or process cannot be started.
    pub fn build(policy: &Policy) -> Result<Self, JailError> {
        let grants = Grants::of(policy)?;
        let landlock = match (policy.mode, sys::landlock_abi()) {
            (Mode::Enforce, Err(error)) => return Err(JailError::NoLandlock(error)),
            (_, found) => found.map_err(|error| error.to_string()),
        };
        let confinement = match (policy.mode, &landlock) {
            (Mode::Off, _) => Confinement::None,
            (_, Err(_)) => Confinement::WithoutLandlock,
            (_, Ok(_)) => Confinement::Whole,
        };
        let started = start(policy, &grants, confinement)?;
        let reached = match (&policy.file_private, confinement) {
            // Where nothing is enforced, commands reach all that their user does.
            (None, _) | (Some(_), Confinement::None) => None,
            (Some(private), _) => grants.reachable(private).map(Path::to_owned),
        };
        let mut files = grants.files;
        if let (Some(private), None) = (&policy.file_private, &reached) {
            files.push(own(private, Rights::ReadWrite));
        }
        files.push(own(&started.private.spool, Rights::ReadWrite));
        let confine: Confine = match confinement {
            Confinement::Whole => in_domain(&files)?,
            Confinement::None | Confinement::WithoutLandlock => Box::new(|| Ok(())),
        };
        let root = rustix::process::geteuid().is_root();
        let facts = Facts {
            mode: policy.mode,
            network: policy.network,
            landlock,
            namespaces: started.namespaces,
            unfiltered: started.unfiltered,
            user: if root { User::Root } else { User::Ordinary },
        };
        Ok(Self {
            enforcement: report::enforcement(&facts),
            workers: Workers::new(policy.file_workers, confine)?,
            spawner: started.spawner,
            private: started.private,
            _folders: started.folders,
            limits: policy.limits,
            network: policy.network,
            files,
            commands: started.commands,
            withheld: reached,
        })
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

    /// What lets commands into the policy's `file_private`, so that file jobs did not get it. `None`
    /// where they did, or where the policy names none.
    #[must_use]
    pub fn withheld(&self) -> Option<&Path> {
        self.withheld.as_deref()
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
        let limits = command.limits.unwrap_or(self.limits);
        match &self.spawner {
            Some(spawner) => spawner.call(command, limits),
            None => Err(StartError::SpawnerGone(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Why `access` to `path` was refused, and which setting would grant it. `path` is absolute
    /// and resolved. `None` where the policy grants it, so that the refusal has another cause.
    #[must_use]
    pub fn explain(&self, subject: Subject, access: Access, path: &Path) -> Option<Explanation> {
        // Without Landlock the policy is not what refuses.
        self.enforcement.landlock_abi?;
        let own = [PROC, "/dev"].iter().any(|folder| path.starts_with(folder));
        if own && subject == Subject::Command {
            // What commands get of these is no setting's business.
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

    /// Why a command has no network, where that is the policy's doing.
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

impl Drop for Jail {
    fn drop(&mut self) {
        if let Some(spawner) = self.spawner.take() {
            spawner.close();
        }
    }
}

/// A spawner and what belongs to it.
struct Started {
    // None where the policy wants no commands.
    spawner: Option<Spawner>,
    private: Private,
    // None where the spawner keeps them.
    folders: Option<PrivateFolders>,
    commands: Vec<Grant>,
    namespaces: Result<Isolation, String>,
    unfiltered: Option<String>,
}

/// Starts a spawner in namespaces if it gets them, else one without.
fn start(policy: &Policy, grants: &Grants, confinement: Confinement) -> Result<Started, JailError> {
    let base = private_base(policy, grants, confinement)?;
    if policy.commands == Commands::Never {
        let folders = PrivateFolders::make(&base)?;
        let (plan, private) = in_place(policy, grants, confinement, &folders)?;
        return Ok(Started {
            spawner: None,
            private,
            folders: Some(folders),
            commands: plan.grants,
            namespaces: Err("the policy wants no commands".to_owned()),
            unfiltered: None,
        });
    }
    let itself = PathBuf::from("/proc/self/exe");
    let program = policy.spawner_program.as_ref().unwrap_or(&itself);
    let everything = grants.commands.iter().any(|grant| grant.path == Path::new("/"));
    let refused = match (confinement, policy.namespaces) {
        (Confinement::None, _) => "the policy says off".to_owned(),
        (_, Namespaces::Never) => "the policy says never".to_owned(),
        (_, Namespaces::Auto) if everything => "the policy grants the root folder".to_owned(),
        (_, Namespaces::Auto) => {
            let folders = PrivateFolders::make(&base)?;
            let (plan, private) = in_namespaces(policy, grants, confinement, &folders)?;
            match Spawner::start(program, &plan, folders) {
                Ok((spawner, ready)) => return Ok(isolated(spawner, ready, &plan, private)),
                Err(error @ SpawnerError::Start { .. }) => return Err(error.into()),
                Err(refused) => refused.to_string(),
            }
        }
    };
    let folders = PrivateFolders::make(&base)?;
    let (plan, private) = in_place(policy, grants, confinement, &folders)?;
    let (spawner, Ready { unfiltered, .. }) = Spawner::start(program, &plan, folders)?;
    Ok(Started {
        spawner: Some(spawner),
        private,
        folders: None,
        commands: plan.grants,
        namespaces: Err(refused),
        unfiltered,
    })
}

/// A spawner that has its namespaces.
fn isolated(spawner: Spawner, ready: Ready, plan: &Plan, private: Private) -> Started {
    // What a private folder hides is not what the machine calls by that path.
    let overlaid = |path: &PathBuf| plan.sources.iter().any(|(at, _)| at == path);
    let commands = plan.grants.iter().filter(|grant| !overlaid(&grant.path)).cloned().collect();
    Started {
        spawner: Some(spawner),
        private,
        folders: None,
        commands,
        namespaces: Ok(Isolation { pid_limit: ready.pid_limit }),
        unfiltered: ready.unfiltered,
    }
}

/// Where the private folders go: where the policy says, else to the first of the usual places that
/// commands cannot write.
fn private_base(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
) -> Result<PathBuf, JailError> {
    let named = policy.private_in.clone().unwrap_or_else(std::env::temp_dir);
    // Where nothing is enforced, commands can write anywhere.
    let reached = match confinement {
        Confinement::None => None,
        Confinement::WithoutLandlock | Confinement::Whole => grants.writable(&place_in(&named)),
    };
    let Some(holder) = reached else { return Ok(named) };
    let usual = match policy.private_in {
        Some(_) => &[][..],
        None => &["/tmp", "/var/tmp"][..],
    };
    let other = usual.iter().map(Path::new);
    let mut other =
        other.filter(|base| base.is_dir() && grants.writable(&place_in(base)).is_none());
    match other.next() {
        Some(base) => Ok(base.to_owned()),
        None => {
            Err(JailError::PrivateInReach { place: place_in(&named), holder: holder.to_owned() })
        }
    }
}

/// What calls may use when a policy sets no limit of processes.
const PROCESSES: u64 = 8192;

fn plan(policy: &Policy, grants: &Grants, confinement: Confinement, staging: PathBuf) -> Plan {
    Plan {
        confinement,
        mode: policy.mode,
        namespaces: Namespaces::Never,
        network: policy.network,
        grants: grants.commands.clone(),
        sources: Vec::new(),
        links: grants.links.clone().into_iter().collect(),
        masks: Vec::new(),
        staging,
        processes: policy.limits.processes.unwrap_or(PROCESSES),
    }
}

/// A grant of a private folder.
fn own(path: &Path, rights: Rights) -> Grant {
    over(path, path, rights)
}

/// A grant of a private folder that commands find at another path.
fn over(path: &Path, folder: &Path, rights: Rights) -> Grant {
    Grant { path: path.to_owned(), rights, identity: identity(folder).ok() }
}

/// The plan where mounts can put private folders in the place of the machine's.
fn in_namespaces(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
    folders: &PrivateFolders,
) -> Result<(Plan, Private), PrivateError> {
    let mut plan = plan(policy, grants, confinement, folders.staging());
    plan.namespaces = Namespaces::Auto;
    // A folder that is only listed is made anew there, to hold what is granted in it.
    for grant in plan.grants.iter_mut().filter(|grant| grant.rights == Rights::List) {
        grant.identity = None;
    }
    let mut tmp = folders.tmp();
    for place in ["/tmp", "/var/tmp"].map(PathBuf::from) {
        if place.is_dir() && !place.is_symlink() && !grants.holds(&place) {
            plan.grants.push(over(&place, &folders.tmp(), Rights::ReadWrite));
            plan.sources.push((place.clone(), folders.tmp()));
            if place == Path::new("/tmp") {
                tmp = place;
            }
        }
    }
    if tmp == folders.tmp() {
        plan.grants.push(own(&tmp, Rights::ReadWrite));
    }
    let cache = match &grants.home {
        Some(home) => {
            plan.grants.push(over(home, &folders.home(), Rights::ReadWrite));
            plan.sources.push((home.clone(), folders.home()));
            folders.add(&folders.home().join(".cache"))?;
            home.join(".cache")
        }
        None => {
            plan.grants.push(own(&folders.cache(), Rights::ReadWrite));
            folders.cache()
        }
    };
    plan.grants.push(own(&folders.spool(), Rights::Read));
    if rustix::process::geteuid().is_root() {
        plan.masks = SECRETS.map(PathBuf::from).to_vec();
    }
    plan.grants = ordered(plan.grants);
    let private = Private { tmp, cache, home: grants.home.clone(), spool: folders.spool() };
    Ok((plan, private))
}

/// What only root may read in the granted system folders.
const SECRETS: [&str; 8] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
];

/// The plan where private folders are where they are, and a home folder is made of links.
fn in_place(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
    folders: &PrivateFolders,
) -> Result<(Plan, Private), PrivateError> {
    let mut plan = plan(policy, grants, confinement, folders.staging());
    let mut home = None;
    let mut cache = folders.cache();
    if let (Some(real), false) = (&grants.home, confinement == Confinement::None) {
        link_home(grants, real, &folders.home())
            .map_err(|source| PrivateError { path: folders.home(), source })?;
        let usual = folders.home().join(".cache");
        match fs::symlink_metadata(&usual) {
            // What is granted beneath the operator's own one is linked to in it.
            Ok(found) if found.is_dir() => cache = usual,
            // The operator's own one, granted as a whole: what is private stays apart from it.
            Ok(_) => {}
            Err(_) => {
                folders.add(&usual)?;
                cache = usual;
            }
        }
        plan.grants.push(own(&folders.home(), Rights::ReadWrite));
        home = Some(folders.home());
    }
    plan.grants.push(own(&folders.tmp(), Rights::ReadWrite));
    plan.grants.push(own(&folders.cache(), Rights::ReadWrite));
    plan.grants.push(own(&folders.spool(), Rights::Read));
    plan.grants = ordered(plan.grants);
    let private = Private { tmp: folders.tmp(), cache, home, spool: folders.spool() };
    Ok((plan, private))
}

/// Fills a folder with links to what is granted of the home folder.
fn link_home(grants: &Grants, real: &Path, home: &Path) -> io::Result<()> {
    let granted = grants.commands.iter().filter(|grant| grant.rights != Rights::List);
    let mut paths: Vec<&Path> = granted.map(|grant| grant.path.as_path()).collect();
    paths.extend(grants.links.keys().map(PathBuf::as_path));
    paths.sort();
    for path in paths {
        let Ok(within) = path.strip_prefix(real) else { continue };
        let place = home.join(within);
        let linked = place.ancestors().skip(1).take_while(|folder| *folder != home);
        if place == home || linked.into_iter().any(Path::is_symlink) {
            continue;
        }
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        match symlink(path, &place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Confines a thread to `files`.
fn in_domain(files: &[Grant]) -> Result<Confine, DomainError> {
    let domain = domain(Holder::FileJob, files, Tcp::Handled)?;
    Ok(Box::new(move || {
        domain.try_clone()?.restrict_self().map_err(io::Error::other)?;
        Ok(())
    }))
}
