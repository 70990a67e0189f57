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

impl Identity {
    /// This build's identity. `PROVIDER_SOURCE` in the environment of the build names another
    /// source than Cargo's `repository`, and `PROVIDER_BUILD` which build of the version it is.
    #[must_use]
    pub const fn of_this_build() -> Self {
        let source = match (option_env!("PROVIDER_SOURCE"), env!("CARGO_PKG_REPOSITORY")) {
            (Some(source), _) if !source.is_empty() => source,
            (_, repository) if !repository.is_empty() => repository,
            _ => "local/provider-workspace",
        };
        Self { name: "workspace", version: env!("PROVIDER_VERSION"), source, protocol_version: 1 }
    }
}
