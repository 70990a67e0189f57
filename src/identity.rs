//! Who this build is.

use tool_provider::Identity;

/// This build's identity. `PROVIDER_SOURCE` in the environment of the build names another
/// source than Cargo's `repository`, and `PROVIDER_BUILD` which build of the version it is.
#[must_use]
pub(crate) const fn of_this_build() -> Identity {
    let source = match (option_env!("PROVIDER_SOURCE"), env!("CARGO_PKG_REPOSITORY")) {
        (Some(source), _) if !source.is_empty() => source,
        (_, repository) if !repository.is_empty() => repository,
        _ => "local/provider-workspace",
    };
    Identity { name: "workspace", version: env!("PROVIDER_VERSION"), source, protocol_version: 1 }
}
