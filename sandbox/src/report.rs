//! Turns what was set up into an enforcement report.

use crate::enforcement::{Channel, Channels, Enforcement, Level};
use crate::others::Narrowed;
use crate::policy::{Mode, Network};
use crate::rights;

/// What the jail found and set up.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) mode: Mode,
    pub(crate) network: Network,
    /// The Landlock ABI, or why there is none.
    pub(crate) landlock: Result<u32, String>,
    /// What the namespaces isolate, or why there are none.
    pub(crate) namespaces: Result<Isolation, String>,
    /// Why system calls are not filtered. `None` where they are.
    pub(crate) unfiltered: Option<String>,
    pub(crate) user: User,
}

/// What the namespaces isolate.
#[derive(Clone, Debug)]
pub(crate) struct Isolation {
    pub(crate) pid_limit: bool,
    /// Why the limit of processes is for all calls together. `None` where each call has its own.
    pub(crate) shared_limit: Option<String>,
    pub(crate) narrowed: Narrowed,
}

/// Who commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

/// The enforcement that `facts` amount to.
pub(crate) fn enforcement(facts: &Facts) -> Enforcement {
    if facts.mode == Mode::Off {
        return Enforcement {
            level: Level::Off,
            landlock_abi: None,
            rights: Vec::new(),
            channels: channels(|_| Channel::Open),
            left_open: vec![
                "Everything: the policy says off. Commands and file jobs can do what the provider \
                 can."
                    .to_owned(),
            ],
        };
    }
    let abi = facts.landlock.as_ref().ok().copied();
    let level = match (abi, &facts.namespaces) {
        (None, _) => Level::Partial,
        _ if facts.unfiltered.is_some() => Level::Partial,
        (Some(_), Err(_)) => Level::Kernel,
        (Some(_), Ok(_)) => Level::Full,
    };
    Enforcement {
        level,
        landlock_abi: abi,
        rights: abi.map(rights::names).unwrap_or_default(),
        channels: channels(|name| channel(name, facts)),
        left_open: left_open(facts),
    }
}

const NAMES: [&str; 9] =
    ["tcp", "udp", "mptcp", "raw", "netlink", "vsock", "abstract_unix", "path_unix", "io_uring"];

fn channels(state: impl Fn(&str) -> Channel) -> Channels {
    Channels { states: NAMES.iter().map(|name| (*name, state(name))).collect() }
}

fn channel(name: &str, facts: &Facts) -> Channel {
    let own = facts.namespaces.is_ok();
    let scoped = facts.landlock.as_ref().is_ok_and(|abi| *abi >= 6);
    let guarded = facts.unfiltered.is_none();
    match (name, facts.network) {
        ("abstract_unix", _) if !own && !guarded && scoped => Channel::Closed,
        // Without filters, a channel that no namespace isolates works as without a jail.
        ("raw" | "vsock" | "io_uring", _) if !guarded => Channel::Open,
        (_, _) if !own && !guarded => Channel::Open,
        ("tcp" | "udp" | "mptcp" | "netlink", Network::Allow) => Channel::Open,
        ("tcp" | "udp" | "mptcp" | "netlink", Network::Deny) if own => Channel::Private,
        ("abstract_unix", Network::Allow) if own && !scoped => Channel::Open,
        ("abstract_unix" | "path_unix", _) if own => Channel::Private,
        _ => Channel::Closed,
    }
}

fn left_open(facts: &Facts) -> Vec<String> {
    let mut open = Vec::new();
    let mut say = |text: &str| open.push(text.to_owned());
    if let Err(why) = &facts.landlock {
        say(&format!(
            "File rights are not enforced ({why}): file jobs can open whatever the provider can."
        ));
        if facts.namespaces.is_err() {
            say("Commands can read and write whatever the user can.");
        }
    }
    if let Some(why) = &facts.unfiltered {
        say(&format!(
            "System calls are not filtered ({why}): commands can reach sockets that the machine \
             shares, io_uring, new namespaces, keys, and the limits and priority of other \
             processes."
        ));
    }
    let abi = facts.landlock.as_ref().copied().unwrap_or(0);
    if facts.network == Network::Allow {
        say("The network is open, as the policy says, including services on this machine.");
    }
    match &facts.namespaces {
        Err(why) => {
            say(&format!("Namespaces are not in use ({why}). Without them the following is open."));
            without_namespaces(abi, facts.user, &mut say);
        }
        Ok(isolation) => {
            say(
                "A command can choose the processors on which the jail's other commands and their \
                 supervisors run: threads use the same system call to choose their own.",
            );
            say(
                "The calls of one jail share its loopback and the files in /dev/shm, as they share /tmp \
                 and the roots.",
            );
            if abi < 9 {
                say("Unix sockets in directories that commands may only read stay reachable: \
                     closing them needs Landlock ABI 9.");
            }
            if isolation.narrowed == Narrowed::ByEntry && facts.user == User::Root {
                say(SETTINGS_BY_ENTRY);
            }
            if let Some(why) = &isolation.shared_limit {
                say(&format!(
                    "A call that starts as many processes as are allowed keeps others from starting any: \
                     the limit is for all calls together ({why})."
                ));
            }
            if !isolation.pid_limit && isolation.shared_limit.is_some() {
                say("The number of processes is not limited for root: this Linux kernel has no \
                     such limit for a namespace (Linux 6.14 has).");
            }
            if abi < 6 && facts.network == Network::Allow {
                say("Commands can reach abstract unix sockets of the machine: closing this needs \
                     Landlock ABI 6 or `network = \"deny\"`.");
            }
        }
    }
    open
}

const SETTINGS_BY_ENTRY: &str = "Commands may read what others may in /etc, as it was when the jail was \
     built: a file that is replaced or added since is out of reach until the next jail.";

fn without_namespaces(abi: u32, user: User, say: &mut impl FnMut(&str)) {
    say("Commands can change mode, owner, times and extended attributes of the user's files \
         outside the roots, by their names. They can see whether any path exists, and watch \
         directories that the user may read for changes and names. Landlock has no right for these.");
    say("Commands share the memory in /dev/shm with the machine.");
    say(
        "Commands have no terminals: those in /dev/pts are the machine's. Programs that make one of \
         their own, such as script and tmux, do not work.",
    );
    say(
        "Commands can read what /proc shows of the machine, such as the user's keys in /proc/keys, as far \
         as the modes of its files allow.",
    );
    say("Commands can see the command lines of all processes, and choose the processors on which \
         the user's other processes run.");
    if abi < 3 {
        say(
            "Commands can truncate files outside the roots that the user may write (Landlock ABI 3 \
             closes this).",
        );
    }
    if abi < 6 {
        say(
            "Commands can send signals to the user's other processes (Landlock ABI 6 closes this).",
        );
    }
    if user == User::Root {
        say(
            "Commands run as root: they can read what only root may read in /usr and /opt, list all \
             directories in /etc, and a limit on processes does not bind them.",
        );
        say(SETTINGS_BY_ENTRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISOLATION: Isolation =
        Isolation { pid_limit: true, shared_limit: None, narrowed: Narrowed::ByMount };

    fn facts() -> Facts {
        Facts {
            mode: Mode::Enforce,
            network: Network::Deny,
            landlock: Ok(7),
            namespaces: Ok(ISOLATION),
            unfiltered: None,
            user: User::Ordinary,
        }
    }

    #[test]
    fn the_level_is_never_better_than_what_was_set_up() {
        assert_eq!(enforcement(&facts()).level, Level::Full);
        let without = Facts { namespaces: Err("refused".to_owned()), ..facts() };
        assert_eq!(enforcement(&without).level, Level::Kernel);
        for namespaces in [Err("refused".to_owned()), Ok(ISOLATION)] {
            let landlock = Err("not enabled".to_owned());
            let partial = enforcement(&Facts { landlock, namespaces, ..facts() });
            assert_eq!(partial.level, Level::Partial);
            assert!(partial.left_open[0].contains("not enforced (not enabled)"));
        }
        let off = enforcement(&Facts { mode: Mode::Off, ..facts() });
        assert_eq!(off.level, Level::Off);
        assert!(off.channels.states.iter().all(|(_, state)| *state == Channel::Open));
        assert!(!off.left_open.is_empty());
    }

    #[test]
    fn even_the_full_level_leaves_something_open() {
        let left = |abi| enforcement(&Facts { landlock: Ok(abi), ..facts() }).left_open;
        assert!(left(9)[0].contains("processors"), "{:?}", left(9));
        assert!(left(9)[1].contains("share"), "{:?}", left(9));
        assert_eq!(left(9).len(), 2);
        assert!(left(8)[2].contains("sockets"), "{:?}", left(8));
        assert_eq!(left(8).len(), 3);
    }

    #[test]
    fn without_filters_the_level_is_partial() {
        for namespaces in [Err("refused".to_owned()), Ok(ISOLATION)] {
            let unfiltered = Some("not built in".to_owned());
            let own = namespaces.is_ok();
            let without = enforcement(&Facts { unfiltered, namespaces, ..facts() });
            assert_eq!(without.level, Level::Partial);
            assert!(without.left_open[0].contains("not filtered (not built in)"));
            assert_eq!(without.channels.state("io_uring"), Some(Channel::Open));
            let udp = if own { Channel::Private } else { Channel::Open };
            assert_eq!(without.channels.state("udp"), Some(udp));
        }
    }

    #[test]
    fn older_kernels_leave_more_open() {
        let sentences = |abi| {
            let namespaces = Err("refused".to_owned());
            enforcement(&Facts { landlock: Ok(abi), namespaces, ..facts() }).left_open.len()
        };
        assert!(sentences(2) > sentences(5) && sentences(5) > sentences(6));
    }

    #[test]
    fn no_channel_leads_out_unless_the_policy_opens_it() {
        for namespaces in [Err("refused".to_owned()), Ok(ISOLATION)] {
            let closed = enforcement(&Facts { namespaces: namespaces.clone(), ..facts() });
            assert!(closed.channels.states.iter().all(|(_, state)| *state != Channel::Open));
            let network = Network::Allow;
            let open = enforcement(&Facts { network, namespaces, ..facts() }).channels;
            assert_eq!(open.state("tcp"), Some(Channel::Open));
            assert_ne!(open.state("path_unix"), Some(Channel::Open));
            assert_eq!(open.state("io_uring"), Some(Channel::Closed));
        }
    }
}
