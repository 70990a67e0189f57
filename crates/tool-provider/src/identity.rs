//! Who this provider is.

/// What a lock file needs to know of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider's name.
    pub name: &'static str,
    /// The semantic version. A lock file compares it letter by letter, so nothing of a single build
    /// belongs into it.
    pub version: &'static str,
    /// Where it comes from: the address of a forge without a scheme, such as
    /// `github.com/OWNER/provider-NAME`. A lock file compares it letter by letter; empty where there
    /// is no such address, which every lock file takes.
    pub source: &'static str,
    /// The version of the tool protocol that it speaks.
    pub protocol_version: u32,
}
