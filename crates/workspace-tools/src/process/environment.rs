//! The environment of a command: a short list of names, and what the operator adds to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use sandbox::{Network, Private};

use super::home;

use tool_provider::Secrets;

/// Names that a command inherits from our own environment, besides every `LC_*`.
const INHERITED: [&str; 6] = ["HOME", "LANG", "LOGNAME", "PATH", "TZ", "USER"];

/// What a command sees where our own environment has no such name: a host launches us with little
/// more than PATH and HOME.
const FALLBACKS: [(&str, &str); 2] =
    [("LANG", "C.UTF-8"), ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")];

/// A variable that every command has, unless the operator chose another value.
#[derive(Clone, Copy, Debug)]
pub struct Unattended {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: &'static str,
    /// What it is for, as a sentence for people.
    pub why: &'static str,
    holds: Holds,
}

/// For which commands a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// For those without a terminal: nobody is there to answer.
    WithoutTerminal,
    /// For all: it is about no person.
    Always,
}

const fn unattended(name: &'static str, value: &'static str, why: &'static str) -> Unattended {
    Unattended { name, value, why, holds: Holds::WithoutTerminal }
}

impl Unattended {
    const fn always(self) -> Self {
        Self { holds: Holds::Always, ..self }
    }
}

/// Keeps programs from waiting for a person who is not there, and from drawing on a terminal that is
/// none.
pub const UNATTENDED: [Unattended; 22] = [
    unattended("COMPOSER_ALLOW_SUPERUSER", "1", "Composer runs plugins as root without asking."),
    unattended("COMPOSER_NO_INTERACTION", "1", "Composer asks nothing."),
    unattended(
        "COREPACK_ENABLE_DOWNLOAD_PROMPT",
        "0",
        "Corepack gets a package manager without asking.",
    ),
    unattended("DEBIAN_FRONTEND", "noninteractive", "Debian's packages take the defaults."),
    unattended("EDITOR", "true", "No editor waits: what was to be edited stays as it is."),
    unattended("GIT_CONFIG_COUNT", "2", "Two settings of git follow.").always(),
    unattended(
        "GIT_CONFIG_KEY_0",
        "gc.autoDetach",
        "Nothing outlives a call, and a collector that is killed leaves its lock behind: git collects \
         before it ends.",
    ).always(),
    unattended("GIT_CONFIG_KEY_1", "maintenance.autoDetach", "The same of newer versions.").always(),
    unattended("GIT_CONFIG_VALUE_0", "false", "Of the first setting.").always(),
    unattended("GIT_CONFIG_VALUE_1", "false", "Of the second setting.").always(),
    unattended(
        "GIT_EDITOR",
        "true",
        "`git commit --amend` and `git merge` go on with the message that there is; `git commit` without \
         one ends at once.",
    ),
    unattended("GIT_PAGER", "cat", "Nothing waits for a key."),
    unattended(
        "GIT_SEQUENCE_EDITOR",
        "true",
        "`git rebase -i` goes on with the list that git made.",
    ),
    unattended("GIT_TERMINAL_PROMPT", "0", "Git asks for no password."),
    unattended("PAGER", "cat", "Nothing waits for a key."),
    unattended("PIP_DISABLE_PIP_VERSION_CHECK", "1", "Pip does not ask to be renewed."),
    unattended("PIP_NO_INPUT", "1", "Pip asks for no password."),
    unattended(
        "PYTHONUNBUFFERED",
        "1",
        "What a command printed before its time was up is not lost with its buffer.",
    ).always(),
    unattended("TERM", "dumb", "Nothing draws."),
    unattended("VISUAL", "true", "As `EDITOR`."),
    unattended("npm_config_update_notifier", "false", "Npm does not ask to be renewed."),
    unattended(
        "npm_config_yes",
        "true",
        "`npx` and `npm init` ask nothing; `npm init` takes the defaults.",
    ),
];

/// Has programs fail at once where the network is closed: a second try fails like the first, up to a minute
/// later.
pub const OFFLINE: [Unattended; 4] = [
    unattended("CARGO_NET_RETRY", "0", "Cargo tries once.").always(),
    unattended("PIP_RETRIES", "0", "Pip tries once.").always(),
    unattended("UV_HTTP_RETRIES", "0", "Uv tries once.").always(),
    unattended("npm_config_fetch_retries", "0", "Npm and pnpm try once.").always(),
];

/// What a terminal of ours understands.
const TERM: &str = "xterm-256color";

/// The name of the handshake's cookie, which is no secret but nothing for a command either.
const COOKIE: &str = "PLUGGABLEHARNESS_AGENT_PLUGIN";

/// What an operator configured, by the names of the keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requested<'a> {
    /// `env`: plain values.
    pub env: Option<&'a BTreeMap<String, String>>,
    /// `env_passthrough`: names to take over from our own environment.
    pub env_passthrough: &'a [String],
    /// `secret_env`: the same, and the values are secrets.
    pub secret_env: &'a [String],
    /// `network`.
    pub network: Network,
}

/// The environment of every command of one configuration.
#[derive(Clone, Default)]
pub struct Environment {
    inherited: BTreeMap<OsString, OsString>,
    chosen: BTreeMap<OsString, OsString>,
    /// Those of the chosen ones whose values the operator wrote.
    plain: BTreeMap<OsString, OsString>,
    secrets: Secrets,
    network: Network,
}

/// What is wrong with the names that an operator configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A name that changes what a shell or the loader runs, or that belongs to the handshake.
    #[error("{key}: {name} is refused: {reason}")]
    Refused {
        /// The configuration's key.
        key: &'static str,
        /// The variable's name.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// A name or value that no environment can hold.
    #[error("{key}: {name:?} {reason}")]
    Malformed {
        /// The configuration's key.
        key: &'static str,
        /// The variable's name.
        name: String,
        /// What about it.
        reason: &'static str,
    },
    /// A secret that is not there.
    #[error(
        "secret_env: {name} is not set in the provider's environment; \
         set it in the block's environment {{ … }}, or take the name out"
    )]
    Unset {
        /// The variable's name.
        name: String,
    },
}

impl EnvironmentError {
    /// The configuration's key that is at fault.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            EnvironmentError::Refused { key, .. } | EnvironmentError::Malformed { key, .. } => key,
            EnvironmentError::Unset { .. } => "secret_env",
        }
    }
}

impl Environment {
    /// Chooses from our own environment, `own`, and from what the operator asked for.
    ///
    /// # Errors
    /// Everything that is wrong with `requested`, not only the first fault.
    pub fn choose(
        own: impl IntoIterator<Item = (OsString, OsString)>,
        requested: Requested<'_>,
    ) -> Result<Self, Vec<EnvironmentError>> {
        let own: BTreeMap<OsString, OsString> = own.into_iter().collect();
        let mut faults = Vec::new();
        let (mut chosen, mut plain) = (BTreeMap::new(), BTreeMap::new());
        let mut secrets = Vec::new();

        for name in requested.env_passthrough {
            check_name("env_passthrough", name, &mut faults);
            if let Some(value) = own.get(OsStr::new(name)) {
                chosen.insert(OsString::from(name), value.clone());
            }
        }
        for name in requested.secret_env {
            check_name("secret_env", name, &mut faults);
            match own.get(OsStr::new(name)) {
                Some(value) => {
                    chosen.insert(OsString::from(name), value.clone());
                    secrets.push((name, value.as_encoded_bytes().to_vec()));
                }
                None => faults.push(EnvironmentError::Unset { name: name.clone() }),
            }
        }
        for (name, value) in requested.env.into_iter().flatten() {
            check_name("env", name, &mut faults);
            if value.contains('\0') {
                let reason = "has a value with a NUL byte";
                faults.push(EnvironmentError::Malformed { key: "env", name: name.clone(), reason });
            }
            plain.insert(name.into(), value.into());
        }
        chosen.extend(plain.clone());
        if !faults.is_empty() {
            return Err(faults);
        }

        let mut inherited: BTreeMap<OsString, OsString> =
            FALLBACKS.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        inherited.extend(own.into_iter().filter(|(name, _)| is_inherited(name)));
        inherited.extend(UNATTENDED.iter().map(|set| (set.name.into(), set.value.into())));
        let (secrets, network) = (Secrets::new(secrets), requested.network);
        Ok(Self { inherited, chosen, plain, secrets, network })
    }

    /// The values that must not be shown.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// PATH of commands.
    #[must_use]
    pub fn search_path(&self) -> Option<&OsStr> {
        let path = OsStr::new("PATH");
        self.chosen.get(path).or_else(|| self.inherited.get(path)).map(OsString::as_os_str)
    }

    /// The variables of a command that runs with these private directories. What the operator chose
    /// wins over everything else.
    #[must_use]
    pub fn variables(&self, private: &Private) -> Vec<(OsString, OsString)> {
        self.with(&self.chosen, private, self.network)
    }

    /// The same without what is taken over from our own environment because the operator named it: for a
    /// command that nobody approves, and that has no network.
    #[must_use]
    pub fn plain_variables(&self, private: &Private) -> Vec<(OsString, OsString)> {
        self.with(&self.plain, private, Network::Deny)
    }

    fn with(
        &self,
        chosen: &BTreeMap<OsString, OsString>,
        private: &Private,
        network: Network,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = self.inherited.clone();
        if network == Network::Deny {
            variables.extend(OFFLINE.map(|set| (set.name.into(), set.value.into())));
        }
        variables.insert("TMPDIR".into(), private.tmp.clone().into());
        variables.insert("XDG_CACHE_HOME".into(), private.cache.clone().into());
        if let Some(home) = &private.home {
            home::add(&mut variables, home, &private.tmp);
        }
        variables.extend(chosen.clone());
        variables.into_iter().collect()
    }
}

impl Environment {
    /// [`Environment::variables`] of a command on a terminal: programs may ask, draw and edit.
    #[must_use]
    pub fn variables_on_terminal(&self, private: &Private) -> Vec<(OsString, OsString)> {
        let asks = |name: &OsStr| {
            let is_for_no_terminal = |variable: &Unattended| {
                name == variable.name && variable.holds == Holds::WithoutTerminal
            };
            !self.chosen.contains_key(name) && UNATTENDED.iter().any(is_for_no_terminal)
        };
        let mut variables = self.variables(private);
        variables.retain(|(name, _)| !asks(name));
        if !self.chosen.contains_key(OsStr::new("TERM")) {
            variables.push(("TERM".into(), TERM.into()));
        }
        variables
    }
}

/// Names only: a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.inherited.keys().chain(self.chosen.keys())).finish()
    }
}

fn is_inherited(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"))
}

fn check_name(key: &'static str, name: &str, faults: &mut Vec<EnvironmentError>) {
    if name.is_empty() || name.contains(['=', '\0']) {
        let reason = "is not the name of a variable";
        faults.push(EnvironmentError::Malformed { key, name: name.to_owned(), reason });
    } else if let Some(reason) = refusal(name) {
        faults.push(EnvironmentError::Refused { key, name: name.to_owned(), reason });
    }
}

/// Why a command may not have a variable of this name, where it may not.
#[must_use]
pub fn refusal(name: &str) -> Option<&'static str> {
    match name {
        "BASH_ENV" | "ENV" => Some("a shell would run that file before every command"),
        COOKIE => Some("it belongs to the host's handshake"),
        _ if name.starts_with("LD_") => Some("the loader would change what every program runs"),
        _ if name.starts_with("BASH_FUNC_") => Some("a shell would take it as a function"),
        _ if name.starts_with("PLUGIN_") => Some("it belongs to the host's handshake"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    fn directories() -> Private {
        Private {
            tmp: "/p/tmp".into(),
            cache: "/p/cache".into(),
            home: None,
            spool: "/p/spool".into(),
        }
    }

    fn seen(environment: &Environment, private: &Private) -> Vec<String> {
        let show = |(name, value): &(OsString, OsString)| {
            format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
        };
        environment.variables(private).iter().map(show).collect()
    }

    #[test]
    fn only_the_list_is_inherited() {
        let own = own(&[
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("USER", "u"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("TMPDIR", "/tmp/x"),
            ("FAKE_API_KEY", "zzz123"),
            ("PLUGIN_MIN_PORT", "1"),
            (COOKIE, "x"),
            ("LD_PRELOAD", "/x.so"),
            ("BASH_ENV", "/x"),
            ("EDITOR", "vi"),
            ("TERM", "xterm-256color"),
        ]);
        let environment = Environment::choose(own, Requested::default()).unwrap();
        let expected = [
            "HOME=/h",
            "LANG=C.UTF-8",
            "LC_ALL=de_DE.UTF-8",
            "PATH=/bin",
            "TMPDIR=/p/tmp",
            "USER=u",
            "XDG_CACHE_HOME=/p/cache",
        ];
        let seen = seen(&environment, &directories());
        let unattended = |pair: &&String| {
            let all = || UNATTENDED.iter().chain(&OFFLINE);
            all().any(|set| **pair == format!("{}={}", set.name, set.value))
        };
        assert_eq!(seen.iter().filter(unattended).count(), UNATTENDED.len() + OFFLINE.len());
        let others: Vec<&String> = seen.iter().filter(|pair| !unattended(pair)).collect();
        assert_eq!(others, expected);
    }

    #[test]
    fn the_private_home_replaces_ours_and_the_operator_replaces_all() {
        let plain = BTreeMap::from([("PAGER".to_owned(), "less".to_owned())]);
        let requested = Requested { env: Some(&plain), ..Requested::default() };
        let environment = Environment::choose(own(&[("HOME", "/h")]), requested).unwrap();
        let home = sandbox::Home {
            path: "/p/home".into(),
            at: "/p/home".into(),
            lifetime: sandbox::Lifetime::Jail,
            sharing: sandbox::Sharing::First,
            shown: Vec::new(),
            overlays: Vec::new(),
        };
        let private = Private { home: Some(home), ..directories() };
        let seen = seen(&environment, &private);
        assert!(seen.contains(&"HOME=/p/home".to_owned()), "{seen:?}");
        assert!(seen.contains(&"PAGER=less".to_owned()), "{seen:?}");
    }

    #[test]
    fn named_variables_pass_and_secrets_are_known() {
        let own = own(&[("CI", "1"), ("TOKEN", "hunter2!")]);
        let requested = Requested {
            env: None,
            env_passthrough: &["CI".to_owned(), "NOT_SET".to_owned()],
            secret_env: &["TOKEN".to_owned()],
            network: Network::Allow,
        };
        let environment = Environment::choose(own, requested).unwrap();
        let seen = seen(&environment, &directories());
        assert!(seen.contains(&"CI=1".to_owned()) && seen.contains(&"TOKEN=hunter2!".to_owned()));
        assert!(!seen.iter().any(|pair| pair.starts_with("NOT_SET")));
        assert!(!seen.contains(&"PIP_RETRIES=0".to_owned()), "the network is open");
        assert_eq!(environment.secrets().mask_text("hunter2!"), "[TOKEN]");
        assert!(!format!("{environment:?}").contains("hunter2!"));
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let plain = BTreeMap::from([
            ("LD_PRELOAD".to_owned(), "x".to_owned()),
            ("A=B".to_owned(), "x".to_owned()),
            ("NUL".to_owned(), "a\0b".to_owned()),
        ]);
        let requested = Requested {
            env: Some(&plain),
            env_passthrough: &["ENV".to_owned(), "PLUGIN_CLIENT_CERT".to_owned()],
            secret_env: &["BASH_ENV".to_owned(), "MISSING".to_owned()],
            network: Network::Deny,
        };
        let faults = Environment::choose(own(&[("BASH_ENV", "x")]), requested).unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), 7, "{text:#?}");
        assert!(text.iter().any(|fault| fault.contains("MISSING is not set")), "{text:#?}");
    }
}
