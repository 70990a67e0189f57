//! A built jail: its file workers, its spawner and its enforcement.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::approach;
use crate::cgroup;
use crate::command::{Command, Running, StartError};
use crate::enforcement::{Enforcement, Level};
use crate::explain::{self, Access, Explanation, Granted, Setting, Subject};
use crate::grants::{Grants, PROC, ordered};
use crate::launcher::{Spawner, SpawnerError};
use crate::masks;
use crate::own_sockets;
use crate::plan::{Confinement, Plan, Ready};
use crate::policy::{Commands, Limits, Mode, Namespaces, Network, Policy};
use crate::private::{Private, PrivateDirs, PrivateError, user_dir_path};
use crate::report::{self, Facts, Isolation, User};
use crate::rights::{DomainError, Grant, Rights, Tcp, domain, identity};
use crate::spawners::Spawners;
use crate::sys;
use crate::workers::{Confine, FileJob, SubmitError, Workers};

pub use error::JailError;

mod error;

/// A jail. Dropping it lets running jobs and commands end. The spawner ends after the last command.
#[derive(Debug)]
pub struct Jail {
    enforcement: Enforcement,
    workers: Workers,
    // `None` once the jail is dropped, or where the policy wants no commands.
    spawner: Option<Spawners>,
    private: Private,
    // `None` where the spawner owns them.
    _dirs: Option<PrivateDirs>,
    limits: Limits,
    network: Network,
    files: Vec<Grant>,
    commands: Vec<Grant>,
    withheld: Option<PathBuf>,
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
        enforcement.left_open.extend(skipped);
        let is_unmounted = started.spawner.as_ref().is_some_and(|spawner| !spawner.mounts());
        if is_unmounted && enforcement.level != Level::Off && !policy.protected.is_empty() {
            enforcement.left_open.push(UNMOUNTED.to_owned());
        }
        Ok(Self {
            enforcement,
            workers: Workers::new(policy.file_workers, confine)?,
            spawner: started.spawner,
            private: started.private,
            _dirs: started.dirs,
            limits: policy.limits,
            network: policy.network,
            files,
            commands: started.commands,
            withheld,
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
        let limits = command.limits.unwrap_or(self.limits);
        match &self.spawner {
            Some(spawner) => spawner.call(command, limits),
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
        if let Some(spawner) = self.spawner.take() {
            spawner.close();
        }
    }
}

struct Started {
    // `None` where the policy wants no commands.
    spawner: Option<Spawners>,
    private: Private,
    // `None` where the spawner owns them.
    dirs: Option<PrivateDirs>,
    commands: Vec<Grant>,
    namespaces: Result<Isolation, String>,
    unfiltered: Option<String>,
}

/// Starts a spawner in namespaces where the machine grants them, else without.
fn start(policy: &Policy, grants: &Grants, confinement: Confinement) -> Result<Started, JailError> {
    let base = private_base(policy, grants, confinement)?;
    if policy.commands == Commands::Never {
        let dirs = PrivateDirs::make(&base)?;
        let (plan, private) = in_place(policy, grants, confinement, &dirs)?;
        return Ok(Started {
            spawner: None,
            private,
            dirs: Some(dirs),
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
        (_, Namespaces::Auto) if everything => "the policy grants the root directory".to_owned(),
        (_, Namespaces::Auto) => {
            let dirs = PrivateDirs::make(&base)?;
            let (mut plan, private) = in_namespaces(policy, grants, confinement, &dirs)?;
            if let Some(path) = sockets(policy) {
                let hidden = own_sockets::hidden(grants, &path).map_err(|granted| {
                    JailError::SocketsInReach { granted: granted.to_owned(), path: path.clone() }
                })?;
                plan.masks.extend(hidden.masks);
                plan.held.extend(hidden.held);
            }
            match Spawners::start(program, &plan, dirs, &policy.protected) {
                Ok((spawner, ready)) => return Ok(isolated(spawner, ready, &plan, private)),
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
    let dirs = PrivateDirs::make(&base)?;
    let (plan, private) = in_place(policy, grants, confinement, &dirs)?;
    let (spawner, Ready { unfiltered, .. }) = Spawner::start(program, &plan, Arc::new(dirs))?;
    Ok(Started {
        spawner: Some(Spawners::single(spawner)),
        private,
        dirs: None,
        commands: plan.grants,
        namespaces: Err(refused),
        unfiltered,
    })
}

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
        spawner: Some(spawner),
        private,
        dirs: None,
        commands,
        namespaces: Ok(Isolation { pid_limit: ready.pid_limit, narrowed: ready.narrowed }),
        unfiltered: ready.unfiltered,
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

/// The limit of processes where the policy sets none.
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
        leading: Vec::new(),
        held: Vec::new(),
        protected: Vec::new(),
        masks: Vec::new(),
        staging,
        processes: policy.limits.processes.unwrap_or(PROCESSES),
    }
}

/// A grant of a private directory.
fn own(path: &Path, rights: Rights) -> Grant {
    over(path, path, rights)
}

/// A grant of the private directory `dir`, which commands see at `path`.
fn over(path: &Path, dir: &Path, rights: Rights) -> Grant {
    Grant { path: path.to_owned(), rights, identity: identity(dir).ok() }
}

/// The plan for a spawner in namespaces: mounts put private directories over the machine's.
fn in_namespaces(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
    dirs: &PrivateDirs,
) -> Result<(Plan, Private), PrivateError> {
    let mut plan = plan(policy, grants, confinement, dirs.staging());
    plan.namespaces = Namespaces::Auto;
    // The new root gets an empty directory for one that may only be listed, so its identity
    // differs.
    for grant in plan.grants.iter_mut().filter(|grant| grant.rights == Rights::List) {
        grant.identity = None;
    }
    let mut tmp = dirs.tmp();
    for system_tmp in ["/tmp", "/var/tmp"].map(PathBuf::from) {
        if system_tmp.is_dir() && !system_tmp.is_symlink() && !grants.holds(&system_tmp) {
            plan.grants.push(over(&system_tmp, &dirs.tmp(), Rights::ReadWrite));
            plan.sources.push((system_tmp.clone(), dirs.tmp()));
            if system_tmp == Path::new("/tmp") {
                tmp = system_tmp;
            }
        }
    }
    if tmp == dirs.tmp() {
        plan.grants.push(own(&tmp, Rights::ReadWrite));
    }
    let cache = match &grants.home {
        Some(home) => {
            plan.grants.push(over(home, &dirs.home(), Rights::ReadWrite));
            plan.sources.push((home.clone(), dirs.home()));
            dirs.add(&dirs.home().join(".cache"))?;
            home.join(".cache")
        }
        None => {
            plan.grants.push(own(&dirs.cache(), Rights::ReadWrite));
            dirs.cache()
        }
    };
    let scratch: Vec<&Path> = plan.sources.iter().map(|(at, _)| at.as_path()).collect();
    plan.leading = approach::leading(grants, &scratch);
    plan.held = approach::hidden(grants);
    plan.grants.push(own(&dirs.spool(), Rights::Read));
    plan.masks = masks::of_proc();
    plan.grants = ordered(plan.grants);
    let private = Private { tmp, cache, home: grants.home.clone(), spool: dirs.spool() };
    Ok((plan, private))
}

/// The plan for a spawner without namespaces: commands see the private directories at their own
/// paths, and the home directory holds links.
fn in_place(
    policy: &Policy,
    grants: &Grants,
    confinement: Confinement,
    dirs: &PrivateDirs,
) -> Result<(Plan, Private), PrivateError> {
    let mut plan = plan(policy, grants, confinement, dirs.staging());
    plan.grants.extend(cgroup::limits());
    let mut home = None;
    let mut cache = dirs.cache();
    if let (Some(real), false) = (&grants.home, confinement == Confinement::None) {
        link_home(grants, real, &dirs.home())
            .map_err(|source| PrivateError { path: dirs.home(), source })?;
        let usual = dirs.home().join(".cache");
        match fs::symlink_metadata(&usual) {
            // The policy grants paths within the operator's `.cache`: this one holds links to them.
            Ok(found) if found.is_dir() => cache = usual,
            // The policy grants all of the operator's `.cache`: private files stay out of it.
            Ok(_) => {}
            Err(_) => {
                dirs.add(&usual)?;
                cache = usual;
            }
        }
        plan.grants.push(own(&dirs.home(), Rights::ReadWrite));
        home = Some(dirs.home());
    }
    plan.grants.push(own(&dirs.tmp(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.cache(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.spool(), Rights::Read));
    plan.grants = ordered(plan.grants);
    let private = Private { tmp: dirs.tmp(), cache, home, spool: dirs.spool() };
    Ok((plan, private))
}

/// Fills `home` with links to what the policy grants of the operator's home directory, `real`. A
/// directory that only leads to what the policy names is a link too: there is nothing to write in it.
fn link_home(grants: &Grants, real: &Path, home: &Path) -> io::Result<()> {
    let granted = grants.commands.iter().filter(|grant| grant.rights != Rights::List);
    let mut paths: Vec<PathBuf> = granted.map(|grant| grant.path.clone()).collect();
    paths.extend(grants.links.keys().cloned());
    paths.extend(grants.named.iter().filter_map(|path| approach::first(real, Some(real), path)));
    paths.sort();
    for path in &paths {
        let Ok(within) = path.strip_prefix(real) else { continue };
        let link = home.join(within);
        let linked = link.ancestors().skip(1).take_while(|dir| *dir != home);
        if link == home || linked.into_iter().any(Path::is_symlink) {
            continue;
        }
        if let Some(dir) = link.parent() {
            fs::create_dir_all(dir)?;
        }
        match symlink(path, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What confines a thread to `files`.
fn in_domain(files: &[Grant]) -> Result<Confine, DomainError> {
    let domain = domain(Subject::FileJob, files, &[], Tcp::Handled)?;
    Ok(Box::new(move || {
        domain.try_clone()?.restrict_self().map_err(io::Error::other)?;
        Ok(())
    }))
}
