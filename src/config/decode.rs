//! Makes a configuration of the values of its keys.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tool_provider::config::{ConfigureError, Fault, Values};

use super::spec;
use super::{Config, HomeFate, HostEnv, Overwrite, Protect, Secret, Shell};
use tool_provider::Payload;
use tool_provider::SHORTEST_SECRET as SHORTEST_MASKED;
use workspace_tools::process::environment;

impl Config {
    /// Decodes the provider's block, strictly. Null means that a key was left out.
    ///
    /// Nothing on disk is looked at: that a root exists is found out when it is opened.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong.
    pub fn decode(map: &Payload, host_env: &HostEnv) -> Result<Self, ConfigureError> {
        let mut faults = Vec::new();
        let config = Self::read(map, host_env, &mut faults);
        match ConfigureError::of(faults) {
            None => Ok(config),
            Some(error) => Err(error),
        }
    }

    /// Like [`Config::decode`], for a caller that looks for more faults in what could be read.
    pub(crate) fn read(map: &Payload, host_env: &HostEnv, faults: &mut Vec<Fault>) -> Self {
        let values = Values::read(map, &spec::properties(), faults);
        let paths = |name: &str, faults: &mut Vec<Fault>| {
            values
                .texts(name)
                .enumerate()
                .filter_map(|(index, text)| match absolute(text, host_env) {
                    Ok(path) => Some(path),
                    Err(problem) => {
                        faults.push(Fault::written(format!("{name}[{index}]"), problem));
                        None
                    }
                })
                .collect::<Vec<PathBuf>>()
        };
        let directories = |name: &str| values.texts(name).map(str::to_owned).collect::<Vec<_>>();
        let (roots, read_only_roots) = (directories("roots"), directories("read_only_roots"));
        let is_empty = map.get("roots").and_then(Value::as_array).is_some_and(Vec::is_empty);
        if is_empty && read_only_roots.is_empty() {
            faults.push(Fault::written("roots", "names no directory; name at least one"));
        }
        let environment = Environment::read(&values, host_env, faults);
        let (bash_timeout, bash_max_timeout) = timeouts(&values, faults);
        Self {
            roots,
            read_only_roots,
            sandbox: match values.text("sandbox") {
                "off" => sandbox::Mode::Off,
                "full" => sandbox::Mode::Full,
                "best_effort" => sandbox::Mode::BestEffort,
                _ => sandbox::Mode::Enforce,
            },
            network: match values.text("network") {
                "allow" => sandbox::Network::Allow,
                _ => sandbox::Network::Deny,
            },
            home: match values.text("home") {
                "discard" => HomeFate::Discard,
                _ => HomeFate::Keep,
            },
            bash_read: paths("bash_read", faults),
            bash_write: paths("bash_write", faults),
            protect: match values.text("protect") {
                "none" => Protect::None,
                _ => Protect::Git,
            },
            shell: shell(&values, faults),
            env: environment.plain,
            env_passthrough: environment.passed,
            secrets: environment.secrets,
            bash_timeout,
            bash_max_timeout,
            bash_output_bytes: values.whole("bash_output_bytes").map_or(0, size),
            layer_bytes: values.whole("shell_read_layer_bytes").unwrap_or(sandbox::LAYER_BYTES),
            limits: sandbox::Limits {
                memory_bytes: values.whole("limits.memory_bytes"),
                processes: values.whole("limits.processes"),
                file_size_bytes: values.whole("limits.file_size_bytes"),
                open_files: values.whole("limits.open_files"),
            },
            max_concurrent_calls: values.whole("max_concurrent_calls").map_or(1, size),
            max_sessions: values.whole("max_sessions").map_or(0, size),
            session_idle: Duration::from_millis(values.whole("session_idle_ms").unwrap_or(0)),
            overwrite: if values.flag("read_before_write") {
                Overwrite::AfterRead
            } else {
                Overwrite::Always
            },
        }
    }

    /// What an operator should know although it is no fault.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let short = |secret: &&Secret| secret.expose().len() < SHORTEST_MASKED;
        self.secrets
            .iter()
            .filter(short)
            .map(|secret| {
                format!(
                    "secret_env: the value of {} has fewer than {SHORTEST_MASKED} bytes, too few \
                     to be masked",
                    secret.name()
                )
            })
            .collect()
    }
}

/// The three keys that make a command's environment.
#[derive(Default)]
struct Environment {
    plain: BTreeMap<String, String>,
    passed: Vec<String>,
    secrets: Vec<Secret>,
}

impl Environment {
    fn read(values: &Values, host_env: &HostEnv, faults: &mut Vec<Fault>) -> Self {
        let mut names = Names { taken: BTreeMap::new(), host_env };
        let mut environment = Self::default();
        for (name, value) in values.text_map("env") {
            if names.admit("env", name, faults) {
                if value.contains('\0') {
                    faults.push(Fault::written(format!("env.{name}"), "a NUL cannot be set"));
                    continue;
                }
                environment.plain.insert(name.to_owned(), value.to_owned());
            }
        }
        for name in values.texts("env_passthrough") {
            if names.admit("env_passthrough", name, faults) {
                environment.passed.push(name.to_owned());
            }
        }
        for name in values.texts("secret_env") {
            if !names.admit("secret_env", name, faults) {
                continue;
            }
            match host_env.variables.get(OsStr::new(name)).filter(|value| !value.is_empty()) {
                Some(value) => {
                    environment.secrets.push(Secret { name: name.to_owned(), value: value.clone() })
                }
                None => faults.push(Fault::written(
                    "secret_env",
                    format!(
                        "{name} is not set in the provider's environment; name it in the block's \
                         environment {{}}"
                    ),
                )),
            }
        }
        environment
    }
}

/// The names that a command's environment has so far, each under the key that it came from.
struct Names<'a> {
    taken: BTreeMap<&'a str, &'static str>,
    host_env: &'a HostEnv,
}

impl<'a> Names<'a> {
    fn admit(&mut self, key: &'static str, name: &'a str, faults: &mut Vec<Fault>) -> bool {
        let problem = match self.taken.get(name) {
            Some(other) if *other != key => Some(format!("{name:?} is under {other} already")),
            _ => refusal(name, self.host_env.handshake_variable),
        };
        self.taken.insert(name, key);
        match problem {
            None => true,
            Some(problem) => {
                faults.push(Fault::written(key, problem));
                false
            }
        }
    }
}

/// Why a command may not have a variable of this name.
fn refusal(name: &str, handshake_variable: &str) -> Option<String> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if !is_name {
        return Some(format!("{name:?} is no name of a variable"));
    }
    if name == handshake_variable {
        return Some(format!("{name} is refused: it belongs to the handshake with the host"));
    }
    let reason = environment::refusal(name)?;
    Some(format!("{name} is refused: {reason}"))
}

fn timeouts(values: &Values, faults: &mut Vec<Fault>) -> (Duration, Duration) {
    let (usual, longest) = (values.whole("bash_timeout_ms"), values.whole("bash_max_timeout_ms"));
    let (Some(mut usual), Some(longest)) = (usual, longest) else {
        return (Duration::ZERO, Duration::ZERO);
    };
    if usual > longest {
        if values.is_written("bash_timeout_ms") {
            faults.push(Fault::written(
                "bash_timeout_ms",
                format!("{usual} is more than bash_max_timeout_ms, which is {longest}"),
            ));
        }
        // Who lowers only the longest timeout means the usual one to follow.
        usual = longest;
    }
    (Duration::from_millis(usual), Duration::from_millis(longest))
}

/// The default, which other systems may not have.
const USUAL_SHELL: &str = "/bin/bash";

fn shell(values: &Values, faults: &mut Vec<Fault>) -> Shell {
    let path = PathBuf::from(values.text("shell"));
    // Left out, or written out as some hosts write defaults.
    if path == Path::new(USUAL_SHELL) {
        return Shell::Usual(path);
    }
    if !path.as_os_str().is_empty() && !path.is_absolute() {
        faults.push(Fault::written("shell", "must be an absolute path, such as /bin/bash"));
    }
    Shell::Named(path)
}

/// The path from the root of the file system, or what is wrong with it.
fn absolute(text: &str, host_env: &HostEnv) -> Result<PathBuf, String> {
    let below_home = match text {
        "~" => Some(""),
        _ => text.strip_prefix("~/"),
    };
    let Some(rest) = below_home else {
        let path = Path::new(text);
        return match &host_env.current_directory {
            _ if path.is_absolute() => Ok(path.to_owned()),
            Some(directory) => Ok(directory.join(path)),
            None => Err(format!(
                "{text:?} is relative to the provider's working directory, which was deleted: name \
                 an absolute path"
            )),
        };
    };
    match host_env.variables.get(OsStr::new("HOME")) {
        Some(home) if Path::new(home).is_absolute() => Ok(Path::new(home).join(rest)),
        _ => Err(format!("{text:?} needs HOME, which is not set")),
    }
}

/// The keys' ranges keep every size far below what a 64-bit machine can address.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
