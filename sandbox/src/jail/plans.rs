//! The plans for a spawner: with namespaces and without.

use std::path::{Path, PathBuf};

use crate::approach;
use crate::cgroup;
use crate::grants::{Grants, ordered};
use crate::home::{self, Home};
use crate::masks;
use crate::plan::{Confinement, Plan};
use crate::policy::{LAYER_BYTES, Mode, Namespaces, Network, Policy, Surroundings};
use crate::private::{Private, PrivateDirs, PrivateError};
use crate::rights::{Grant, Rights, identity};
use crate::supervisor::CALL_SCRATCH;
use crate::sys;

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
        surroundings: Surroundings::Shared,
        layer_bytes: 0,
        sealed: Vec::new(),
        scratch: PathBuf::new(),
    }
}

/// A grant of a private directory.
pub(super) fn own(path: &Path, rights: Rights) -> Grant {
    over(path, path, rights)
}

/// A grant of the private directory `dir`, which commands see at `path`.
fn over(path: &Path, dir: &Path, rights: Rights) -> Grant {
    Grant { path: path.to_owned(), rights, identity: identity(dir).ok() }
}

/// The plan for a spawner in namespaces: mounts put private directories over the machine's.
pub(super) fn in_namespaces(
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
            home::add(dirs, ".cache")?;
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
    let shown = |home: &PathBuf| home::mounted(grants, home);
    let home = grants.home.as_ref().map(|home| Home::new(home.clone(), shown(home), dirs));
    let private = Private { tmp, cache, home, spool: dirs.spool() };
    Ok((plan, private))
}

/// The plan for a spawner without namespaces: commands see the private directories at their own
/// paths, and the home directory holds links.
pub(super) fn in_place(
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
        let links = home::link(grants, real, dirs)?;
        // Where the policy grants all of the operator's `.cache`, private files stay out of it.
        if !links.contains(Path::new(".cache")) {
            home::add(dirs, ".cache")?;
            cache = dirs.home().join(".cache");
        }
        plan.grants.push(own(&dirs.home(), Rights::ReadWrite));
        let shown = links.iter().map(|link| dirs.home().join(link)).collect();
        home = Some(Home::new(dirs.home(), shown, dirs));
    }
    plan.grants.push(own(&dirs.tmp(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.cache(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.spool(), Rights::Read));
    plan.grants = ordered(plan.grants);
    let private = Private { tmp: dirs.tmp(), cache, home, spool: dirs.spool() };
    Ok((plan, private))
}

/// The plan for commands with layers, from the one for others in namespaces. `None` without Landlock.
pub(super) fn in_layers(policy: &Policy, grants: &Grants, others: &Plan) -> Option<Plan> {
    if others.confinement != Confinement::Whole {
        return None;
    }
    let mut plan = others.clone();
    plan.surroundings = Surroundings::ThrowAway;
    plan.network = Network::Deny;
    plan.mode = Mode::Enforce;
    // A layer keeps all that a mount would protect. git finds no repository across a mount.
    plan.held.clear();
    plan.leading.clear();
    plan.layer_bytes =
        policy.layer_bytes.unwrap_or(LAYER_BYTES).min(cgroup::memory() / 2).max(SMALLEST_LAYERS);
    let named = [&policy.read_only_roots, &policy.command_read];
    let named = named.into_iter().flatten().filter_map(|path| path.canonicalize().ok());
    let mounted = |path: &PathBuf| grants.commands.iter().any(|grant| grant.path == *path);
    plan.sealed = named.filter(mounted).collect();
    Some(plan)
}

/// The plan for commands that write nowhere but in a directory of their own, from the one for others without
/// namespaces, and the private directories as they name them. `None` where it cannot be kept.
pub(super) fn without_writing(
    others: &Plan,
    dirs: &PrivateDirs,
    private: &Private,
) -> Result<Option<(Plan, Private)>, PrivateError> {
    // Before ABI 6 commands can send signals to all processes of the user.
    let is_scoped = sys::landlock_abi().is_ok_and(|abi| abi >= 6);
    if others.confinement != Confinement::Whole || !is_scoped {
        return Ok(None);
    }
    let mut plan = others.clone();
    plan.surroundings = Surroundings::ThrowAway;
    plan.network = Network::Deny;
    plan.mode = Mode::Enforce;
    for grant in plan.grants.iter_mut().filter(|grant| grant.rights == Rights::ReadWrite) {
        grant.rights = Rights::ReadExecute;
    }
    plan.scratch = dirs.make_scratch()?;
    let own = PathBuf::from(CALL_SCRATCH);
    Ok(Some((plan, Private { tmp: own.clone(), cache: own, ..private.clone() })))
}

/// The least that layers get, whatever a setting says: their own directories have to fit.
const SMALLEST_LAYERS: u64 = 1 << 20;
