//! From what was set up to what is said about it.

use crate::enforcement::{Channel, Channels, Enforcement, Level};
use crate::policy::{Mode, Network};
use crate::rights;

/// What was found and set up.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) mode: Mode,
    pub(crate) network: Network,
    /// The Landlock ABI, or why there is none.
    pub(crate) landlock: Result<u32, String>,
    /// What the namespaces are like, or why there are none.
    pub(crate) namespaces: Result<Isolation, String>,
    /// Why system calls are not filtered, where they are not.
    pub(crate) unfiltered: Option<String>,
    pub(crate) user: User,
}

/// What the namespaces are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Isolation {
    pub(crate) pid_limit: bool,
}

/// Who commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

/// Says what `facts` amount to.
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
        // Without filters, what has no namespace of its own is as without a jail.
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
            "System calls are not filtered ({why}): sockets that the machine shares, io_uring, new \
             namespaces, keys and other processes' limits and priority are within reach."
        ));
    }
    let abi = facts.landlock.as_ref().copied().unwrap_or(0);
    if facts.network == Network::Allow {
        say("The network is open, as the policy says, services on this machine included.");
    }
    match &facts.namespaces {
        Err(why) => {
            say(&format!("Namespaces are not in use ({why}); what follows is open without them."));
            without_namespaces(abi, facts.user, &mut say);
        }
        Ok(isolation) => {
            say(
                "A command can choose on which processors the jail's other commands and its spawner \
                 run: threads choose their own by the same system call.",
            );
            if abi < 9 {
                say(
                    "Unix sockets that lie in directories which commands may only read can be talked \
                     to: closing them needs Landlock ABI 9.",
                );
            }
            if !isolation.pid_limit {
                say("The number of processes is not limited for root: this kernel keeps no such \
                     limit for a namespace (Linux 6.14).");
            }
            if abi < 6 && facts.network == Network::Allow {
                say("Abstract unix sockets of the machine can be reached: closing them needs \
                     Landlock ABI 6 or `network = \"deny\"`.");
            }
        }
    }
    open
}

fn without_namespaces(abi: u32, user: User, say: &mut impl FnMut(&str)) {
    say("Commands can change mode, owner, times and extended attributes of the user's files \
         outside the roots, and the flags of those that they may read; they can see that any path \
         exists, and watch directories that the user may read for changes and for the names in them: \
         Landlock has no right for these.");
    say(
        "Shared memory in /dev/shm and the user's terminals in /dev/pts are shared with the machine.",
    );
    say(
        "The command lines of all processes are visible, and the processors that the user's other \
         processes run on can be chosen.",
    );
    if abi < 3 {
        say("Files outside the roots that the user may write can be truncated (Landlock ABI 3).");
    }
    if abi < 6 {
        say("Signals can be sent to the user's other processes (Landlock ABI 6).");
    }
    if user == User::Root {
        say(
            "Commands run as root: what root alone may read in the granted system directories, such as \
             /etc/shadow, can be read, and a limit on processes does not bind.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            mode: Mode::Enforce,
            network: Network::Deny,
            landlock: Ok(7),
            namespaces: Ok(Isolation { pid_limit: true }),
            unfiltered: None,
            user: User::Ordinary,
        }
    }

    #[test]
    fn the_level_is_never_better_than_what_was_set_up() {
        assert_eq!(enforcement(&facts()).level, Level::Full);
        let without = Facts { namespaces: Err("refused".to_owned()), ..facts() };
        assert_eq!(enforcement(&without).level, Level::Kernel);
        for namespaces in [Err("refused".to_owned()), Ok(Isolation { pid_limit: true })] {
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
    fn a_whole_jail_leaves_open_what_nothing_closes() {
        let left = |abi| enforcement(&Facts { landlock: Ok(abi), ..facts() }).left_open;
        assert!(left(9)[0].contains("processors"), "{:?}", left(9));
        assert_eq!(left(9).len(), 1);
        assert!(left(8)[1].contains("sockets"), "{:?}", left(8));
        assert_eq!(left(8).len(), 2);
    }

    #[test]
    fn calls_that_are_not_filtered_are_less_than_a_jail() {
        for namespaces in [Err("refused".to_owned()), Ok(Isolation { pid_limit: true })] {
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
        for namespaces in [Err("refused".to_owned()), Ok(Isolation { pid_limit: true })] {
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
