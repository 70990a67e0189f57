//! Where people and programs keep keys and tokens.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of files and directories that hold keys.
const NAMES: [&str; 14] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    "keyrings",
    "credentials",
];
/// Directories that hold keys, of those with settings.
const IN_CONFIG: [&str; 3] = [".config/gcloud", ".config/gh", ".config/op"];
/// How the names of files begin that stay hidden: tokens of registries and of git's credential store.
const TOKENS: [&[u8]; 5] =
    [b"credentials", b".credentials", b".git-credentials", b".netrc", b"token"];

/// Whether a path is where keys and tokens are usually kept, or leads through such a directory, by its
/// names alone.
#[must_use]
pub fn holds_keys(path: &Path) -> bool {
    let named = |name: &str| NAMES.contains(&name) || name.starts_with("credentials.");
    path.components().any(|part| part.as_os_str().to_str().is_some_and(named))
        || IN_CONFIG.iter().any(|tail| path.ancestors().any(|directory| directory.ends_with(tail)))
}

/// Whether a file of this name in a toolchain's directory is taken for a token.
pub(crate) fn is_token(name: &OsStr) -> bool {
    TOKENS.iter().any(|token| name.as_bytes().starts_with(token))
}
