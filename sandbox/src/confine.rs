//! What takes rights from a process of the jail, for good: Landlock, capabilities, seccomp.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::RulesetCreated;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::explain::Subject;
use crate::filter::{FilterContext, Filters, Metadata, Processes, Sockets, Tracing, User};
use crate::grants::{DEVICES, DEVICES_IN, PROC, SHARED_MEMORY, TERMINALS};
use crate::namespaces::{Failure, failed};
use crate::others::{self, Narrowed};
use crate::plan::{Confinement, Plan};
use crate::policy::{Mode, Network, Surroundings};
use crate::rights::{DomainError, Grant, Rights, Tcp, call_domain, domain};

#[derive(Default)]
pub(crate) struct Confined {
    /// The rules of the domain that isolates one call from others.
    pub(crate) call: Option<OwnedFd>,
    /// Why system calls are not filtered, where the plan's mode allows that.
    pub(crate) unfiltered: Option<String>,
}

/// Takes every right that is not granted from this process, and so from all commands.
pub(crate) fn confine(
    plan: &Plan,
    processes: Processes,
    narrowed: Narrowed,
) -> Result<Confined, Failure> {
    let mut confined = Confined::default();
    if plan.confinement == Confinement::None {
        return Ok(confined);
    }
    begin()?;
    if plan.confinement == Confinement::Whole {
        let restrict = || -> Result<_, DomainError> {
            let call = call_domain()?;
            Rules::of(plan, processes, narrowed).domain()?.restrict_self()?;
            Ok(call)
        };
        confined.call = restrict().map_err(|error| failed("Landlock")(chain(&error)))?;
    }
    drop_capabilities(Kept::of(processes)).map_err(failed("dropping capabilities"))?;
    match Filters::of(filtered(plan, processes)).and_then(|filters| filters.install()) {
        Err(error) if plan.mode == Mode::BestEffort => {
            confined.unfiltered = Some(error.to_string());
        }
        installed => installed.map_err(failed("seccomp"))?,
    }
    Ok(confined)
}

/// What confines a supervisor that takes its rights from itself. A spawner prepares it once for all of
/// them, and keeps its own rights: it has to make namespaces for the next ones.
pub(crate) struct Prepared {
    pub(crate) rules: Rules,
    /// Before the last mount, and after it.
    filters: [Filters; 2],
    /// The rules of the domain that isolates a call from its supervisor.
    pub(crate) call: Option<OwnedFd>,
}

impl Prepared {
    /// Fails where anything of it cannot be had, whatever the plan's mode is.
    pub(crate) fn of(
        plan: &Plan,
        processes: Processes,
        narrowed: Narrowed,
    ) -> Result<Self, Failure> {
        begin()?;
        bound_capabilities();
        let call = call_domain().map_err(|error| failed("Landlock")(chain(&error)))?;
        let filters = Filters::in_two(filtered(plan, processes)).map_err(failed("seccomp"))?;
        Ok(Self { rules: Rules::of(plan, processes, narrowed), filters, call })
    }

    /// Takes from this process what it needs for no mount.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.filters[0].install()
    }

    /// Takes all the rest, after [`begin`](Self::begin).
    pub(crate) fn complete(&self, domain: RulesetCreated) -> io::Result<()> {
        domain.restrict_self().map_err(|error| chain(&error))?;
        leave_capabilities(Kept::ForFiles)?;
        self.filters[1].install()
    }
}

/// What has to come before anything is taken.
fn begin() -> Result<(), Failure> {
    let step = |step: &'static str| move |error: Errno| failed(step)(error.into());
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(step("being undumpable"))?;
    set_no_new_privs(true).map_err(step("no_new_privs"))
}

fn filtered(plan: &Plan, processes: Processes) -> FilterContext {
    let tracing = match plan.confinement {
        Confinement::Whole => Tracing::Allowed,
        Confinement::None | Confinement::WithoutLandlock => Tracing::Refused,
    };
    // In namespaces, layers take the changes.
    let metadata = match (plan.surroundings, processes) {
        (Surroundings::ThrowAway, Processes::Shared) => Metadata::Refused,
        _ => Metadata::Allowed,
    };
    let user = if geteuid().is_root() { User::Root } else { User::Other };
    let sockets = Sockets::of(plan.network, processes);
    FilterContext { sockets, processes, tracing, user, metadata }
}

/// What Landlock is to allow.
pub(crate) struct Rules {
    pub(crate) grants: Vec<Grant>,
    /// Whether they allow terminals wherever they are mounted from.
    pub(crate) terminals: Terminals,
    /// Files that others may read, where no mount hides those that they may not.
    entries: Vec<Grant>,
    tcp: Tcp,
}

/// Which terminals rules allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminals {
    /// None, or those that are mounted when the rules are made.
    Mounted,
    /// Those that are mounted later too.
    Any,
}

impl Rules {
    fn of(plan: &Plan, processes: Processes, narrowed: Narrowed) -> Self {
        let mut grants = plan.grants.clone();
        let mut entries = Vec::new();
        if narrowed == Narrowed::ByEntry {
            for grant in grants.iter_mut().filter(|grant| grant.rights == Rights::AsOthers) {
                entries.extend(others::entries(&grant.path).shown);
                grant.rights = Rights::List;
            }
        }
        let own = |path: &'static str, rights| Grant { path: path.into(), rights, identity: None };
        grants.push(own(PROC, Rights::Read));
        grants.extend(DEVICES.map(|path| own(path, Rights::Device)));
        if (plan.surroundings, processes) != (Surroundings::ThrowAway, Processes::Shared) {
            grants.push(own(SHARED_MEMORY, Rights::ReadWrite));
        }
        let mut terminals = Terminals::Mounted;
        if processes == Processes::Own {
            // A rule is about what is mounted when it is made, one of the directory above about all that
            // comes. That has to hold nothing but devices that commands may write in any case.
            let has_others = plan.grants.iter().any(|grant| grant.path.starts_with(DEVICES_IN));
            if !has_others {
                terminals = Terminals::Any;
            }
            // Without namespaces this directory holds the terminals of the user's other programs.
            let at = if has_others { TERMINALS } else { DEVICES_IN };
            grants.push(own(at, Rights::Device));
            // The new root holds only what is granted, so commands may see its names.
            grants.push(own("/", Rights::List));
        }
        // A machine may lack a path that the jail adds. Paths that the policy names must exist.
        grants.retain(|grant| grant.identity.is_some() || Path::new(&grant.path).exists());
        let own_network = processes == Processes::Own;
        let handled = plan.network == Network::Deny && !own_network;
        let tcp = if handled { Tcp::Handled } else { Tcp::Untouched };
        Self { grants, terminals, entries, tcp }
    }

    pub(crate) fn domain(&self) -> Result<RulesetCreated, DomainError> {
        domain(Subject::Command, &self.grants, &self.entries, self.tcp)
    }

    /// Without the grants of some paths.
    pub(crate) fn domain_without(
        &self,
        is_left_out: impl Fn(&Path) -> bool,
    ) -> Result<RulesetCreated, DomainError> {
        let grants = self.grants.iter().filter(|grant| !is_left_out(&grant.path));
        let grants: Vec<Grant> = grants.cloned().collect();
        domain(Subject::Command, &grants, &self.entries, self.tcp)
    }
}

/// An error and its causes in one line, because it travels as text.
pub(crate) fn chain(error: &dyn std::error::Error) -> io::Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    io::Error::other(text)
}

/// Which capabilities a process of the jail keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Those of commands.
    ForFiles,
    /// Those, and the one by which a supervisor makes the IPC namespace of its call. It is not in the
    /// bounding set, so no program regains it.
    ForNamespaces,
}

impl Kept {
    fn of(processes: Processes) -> Self {
        match processes {
            Processes::Own => Kept::ForNamespaces,
            Processes::Shared => Kept::ForFiles,
        }
    }
}

/// Root keeps the capabilities that it needs for the files that it is granted; others keep none.
pub(crate) fn drop_capabilities(kept: Kept) -> io::Result<()> {
    bound_capabilities();
    leave_capabilities(kept)
}

fn for_files() -> CapabilitySet {
    if geteuid().is_root() {
        CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::FSETID
            | CapabilitySet::KILL
    } else {
        CapabilitySet::empty()
    }
}

/// Reduces the bounding set: a program that runs as root regains what that holds.
fn bound_capabilities() {
    let keep = for_files();
    // A process without the right to do this has nothing to drop, and no_new_privs keeps it so.
    let _ = clear_ambient_capability_set();
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if !keep.contains(capability) && remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
}

fn leave_capabilities(kept: Kept) -> io::Result<()> {
    let keep = match kept {
        Kept::ForFiles => for_files(),
        Kept::ForNamespaces => for_files() | CapabilitySet::SYS_ADMIN,
    };
    let has = capabilities(None)?;
    let left = CapabilitySets {
        effective: has.effective & keep,
        permitted: has.permitted & keep,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, left)?)
}
