//! Where the HOMEs of commands are kept, and what makes one jail's another than the next one's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use sandbox::Jail;
use workspace_fs::{StateDirectory, StateError};

use crate::config::{Config, HomeFate, Protect};

/// The directory of the HOMEs, in the user's state directory.
const NAME: &str = "homes";

/// The directory in which a configuration has HOMEs kept; `None` where it discards them.
///
/// # Errors
/// Why there can be no such directory.
pub(crate) fn directory(
    config: &Config,
    variables: &BTreeMap<OsString, OsString>,
) -> Result<Option<PathBuf>, StateError> {
    match config.home {
        HomeFate::Discard => Ok(None),
        HomeFate::Keep => open(variables).map(Some),
    }
}

/// The directory of the HOMEs, which is made where it is missing.
///
/// # Errors
/// [`StateError`].
pub(crate) fn open(variables: &BTreeMap<OsString, OsString>) -> Result<PathBuf, StateError> {
    Ok(StateDirectory::open(variables)?.subdirectory(NAME)?.path().to_owned())
}

/// What commands get besides the jail's own policy: whether they may change what git outside obeys, and the
/// names of variables, whichever key they stand under. Their values do not count: a token that is renewed is
/// the same right.
pub(crate) fn rights(config: &Config) -> Vec<String> {
    let plain = config.env.keys();
    let passed = config.env_passthrough.iter();
    let secret = config.secrets.iter().map(|secret| secret.name());
    let names = plain.chain(passed).map(String::as_str).chain(secret);
    let variables = names.map(|name| format!("variable {name}"));
    let protect = match config.protect {
        Protect::Git => "protect git",
        Protect::None => "protect none",
    };
    variables.chain([protect.to_owned()]).collect()
}

/// What an operator should know of a HOME that is discarded against the configuration.
pub(crate) fn notice(
    directory: Result<Option<PathBuf>, StateError>,
    jail: &Jail,
) -> Option<String> {
    // Without a HOME of their own commands have the operator's, or a root's.
    jail.private().home.as_ref()?;
    let problem = match directory {
        Ok(_) => jail.home_problem()?.to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!(
        "HOME is not kept ({problem}): what commands write there is discarded when the provider ends"
    ))
}
