//! What a jail achieved, as a value to report.

use std::fmt;

/// What the Linux kernel enforces for one jail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// How much is enforced, in one word.
    pub level: Level,
    /// The Landlock ABI in use; `None` where the kernel has no Landlock.
    pub landlock_abi: Option<u32>,
    /// The Landlock rights in use, by their names in the kernel's documentation, in lower case.
    pub rights: Vec<&'static str>,
    /// The channels by which a command could reach out of its call.
    pub channels: Channels,
    /// What stays open and why, one sentence each.
    pub left_open: Vec<String>,
}

/// How much is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Off,
    /// Less than the kernel level: `left_open` says what is missing. Only with `Mode::BestEffort`.
    Partial,
    /// Landlock and seccomp.
    Kernel,
    /// Namespaces, Landlock and seccomp.
    Full,
}

/// The channels by which a command could reach out of its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Each channel's name and state.
    pub states: Vec<(&'static str, Channel)>,
}

/// The state of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Nothing gets through.
    Closed,
    /// It works as without a jail.
    Open,
    /// It works, but only within the jail.
    Private,
}

impl Channels {
    /// The state of the channel called `name`.
    #[must_use]
    pub fn state(&self, name: &str) -> Option<Channel> {
        self.states.iter().find(|(known, _)| *known == name).map(|(_, state)| *state)
    }
}

impl Channel {
    /// The state's name as it is reported.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Channel::Closed => "closed",
            Channel::Open => "open",
            Channel::Private => "private",
        }
    }
}

impl Level {
    /// The level's name as it is reported.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Partial => "partial",
            Level::Kernel => "kernel",
            Level::Full => "full",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
