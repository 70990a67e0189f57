//! The plans for a spawner: with namespaces and without.

use std::path::{Path, PathBuf};

use crate::approach;
use crate::cgroup;
use crate::grants::{Grants, ordered};
use crate::home::{self, Home};
use crate::masks;
use crate::plan::{Confinement, Plan};
use crate::policy::{Namespaces, Policy};
use crate::private::{Private, PrivateDirs, PrivateError};
use crate::rights::{Grant, Rights, identity};

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
    let home = grants.home.as_ref().map(|home| Home::new(home.clone(), shown(home), grants, dirs));
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
        home = Some(Home::new(dirs.home(), shown, grants, dirs));
    }
    plan.grants.push(own(&dirs.tmp(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.cache(), Rights::ReadWrite));
    plan.grants.push(own(&dirs.spool(), Rights::Read));
    plan.grants = ordered(plan.grants);
    let private = Private { tmp: dirs.tmp(), cache, home, spool: dirs.spool() };
    Ok((plan, private))
}
