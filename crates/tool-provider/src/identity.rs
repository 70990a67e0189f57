//! Who this provider is.

/// What a lock file needs to know of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider's name.
    pub name: &'static str,
    /// The crate's semantic version, with the build as its metadata where one was named.
    pub version: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The version of the tool protocol that it speaks.
    pub protocol_version: u32,
}
