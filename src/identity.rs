//! The identity of this build: the only origin of its source and its version.

pub(crate) mod source;

use tool_provider::Identity;

/// The address of the forge that this build was released on, empty where the build names none
/// (`PROVIDER_SOURCE`). A lock file takes either, and compares it letter by letter.
pub(crate) const SOURCE: &str = env!("PROVIDER_SOURCE");

/// The version, which a lock file compares letter by letter, too: no build stands in it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Which build of the version this is (`PROVIDER_BUILD`), empty where none is named. For people.
pub(crate) const BUILD: &str = env!("PROVIDER_BUILD");

/// The version for a person, with the build where one is named: `0.1.0 (1a2b3c4d5e6f)`.
pub(crate) const VERSION_AND_BUILD: &str = env!("PROVIDER_VERSION_AND_BUILD");

/// This build's identity.
#[must_use]
pub(crate) const fn of_this_build() -> Identity {
    Identity { name: "workspace", version: VERSION, source: SOURCE, protocol_version: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_address_without_a_scheme() {
        for good in ["github.com/owner/provider-workspace", "git.example.org:8443/a/b/c"] {
            source::check(good).unwrap();
        }
        let scheme = source::check("https://github.com/owner/x").expect_err("a scheme");
        assert!(scheme.contains("begins with https://") && scheme.contains("such as github.com/"));
        for bad in ["", "x", "local/x", "github.com/x", "github.com//x", "github.com/a/x/"] {
            source::check(bad).expect_err(bad);
        }
        for bad in ["github.com/a/x.git", "git@github.com:a/x", "github.com/a/x y", "a.b/c/d\"e"] {
            source::check(bad).expect_err(bad);
        }
    }

    #[test]
    fn describe_has_the_version_without_the_build() {
        let Identity { version, source, .. } = of_this_build();
        assert_eq!((version, source), (env!("CARGO_PKG_VERSION"), SOURCE));
        assert!(VERSION_AND_BUILD.starts_with(version) && VERSION_AND_BUILD.contains(BUILD));
    }
}
