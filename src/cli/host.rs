//! This program launching itself as a plugin.

use std::io::Read as _;
use std::process::ExitCode;

use serde_json::Value;
use tracing::Level;

use super::CliError;
use super::args::{LaunchOptions, RootOptions};
use crate::goplugin::host::{Launch, LogLine, Plugin};
use crate::goplugin::server::HandshakeEnvironment;
use crate::service::ToolClient;
use crate::service::plugin::{self, COOKIE, LOG_VARIABLE, PROTOCOL_VERSION};
use crate::tools::Payload;

/// A launched plugin and a client of it.
pub(crate) struct Host {
    plugin: Plugin,
    pub(crate) client: ToolClient,
}

impl Host {
    pub(crate) async fn launch(options: &LaunchOptions) -> Result<Self, CliError> {
        let program = std::env::current_exe()
            .map_err(|source| CliError::Io { what: "find this program", source })?;
        let least = if options.verbose { Level::TRACE } else { Level::WARN };
        let mut launch = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
            .security(options.security())
            .on_log(move |line| tell(&line, least));
        if options.verbose {
            launch = launch.env(LOG_VARIABLE, "debug");
        }
        let plugin = launch.start().await?;
        let client = ToolClient::new(plugin.channel());
        Ok(Self { plugin, client })
    }

    /// Lets the plugin end well.
    pub(crate) async fn end(self) {
        self.plugin.kill().await;
    }
}

fn tell(line: &LogLine, least: Level) {
    if line.level > least {
        return;
    }
    let mut text = line.message.clone();
    for (name, value) in line.fields.iter().filter(|(name, _)| !name.starts_with('@')) {
        text.push_str(&match value {
            Value::String(value) => format!(" {name}={value:?}"),
            other => format!(" {name}={other}"),
        });
    }
    let (label, ink) = match line.level {
        Level::ERROR => ("plugin error", super::output::Ink::Red),
        Level::WARN => ("plugin warning", super::output::Ink::Yellow),
        _ => ("plugin", super::output::Ink::Dim),
    };
    super::output::Output::of_this_process().note(label, ink, &text);
}

/// Serves as a plugin although no host launched this process.
pub(crate) fn serve() -> Result<ExitCode, CliError> {
    plugin::run(HandshakeEnvironment::from_process(&COOKIE))?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration that the options mean.
pub(crate) fn configuration(options: &RootOptions, stdin: &mut Stdin) -> Result<Payload, CliError> {
    let mut config = match &options.config {
        Some(text) => stdin.object("--config", text)?,
        None => Payload::new(),
    };
    let names_none = options.roots.is_empty() && options.read_only_roots.is_empty();
    if !options.roots.is_empty() {
        config.insert("roots".to_owned(), options.roots.clone().into());
    } else if names_none && !config.contains_key("roots") {
        config.insert("roots".to_owned(), vec!["."].into());
    } else if !config.contains_key("roots") {
        config.insert("roots".to_owned(), Value::Array(Vec::new()));
    }
    if !options.read_only_roots.is_empty() {
        config.insert("read_only_roots".to_owned(), options.read_only_roots.clone().into());
    }
    Ok(config)
}

/// Standard input, which can be read once.
#[derive(Default)]
pub(crate) enum Stdin {
    #[default]
    Unread,
    Read,
}

impl Stdin {
    /// The JSON object that `text` is, or that standard input holds where it is `-`.
    pub(crate) fn object(&mut self, what: &'static str, text: &str) -> Result<Payload, CliError> {
        let bytes = self.bytes(text)?;
        serde_json::from_slice(&bytes).map_err(|source| CliError::Json { what, source })
    }

    /// What `text` is, or what standard input holds where it is `-`.
    pub(crate) fn bytes(&mut self, text: &str) -> Result<Vec<u8>, CliError> {
        if text != "-" {
            return Ok(text.as_bytes().to_vec());
        }
        match std::mem::replace(self, Stdin::Read) {
            Stdin::Read => Err(CliError::StdinTwice),
            Stdin::Unread => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|source| CliError::Io { what: "read standard input", source })?;
                Ok(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_current_folder_is_the_root_unless_another_is_named() {
        let config = |roots: &[&str], read_only: &[&str], more: Option<&str>| {
            let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
            let options = RootOptions {
                roots: texts(roots),
                read_only_roots: texts(read_only),
                config: more.map(str::to_owned),
            };
            Value::Object(configuration(&options, &mut Stdin::default()).unwrap())
        };
        assert_eq!(config(&[], &[], None), json!({"roots": ["."]}));
        assert_eq!(config(&["a"], &[], None), json!({"roots": ["a"]}));
        assert_eq!(config(&[], &["b"], None), json!({"roots": [], "read_only_roots": ["b"]}));
        let more = Some(r#"{"roots": ["c"], "network": "allow"}"#);
        assert_eq!(config(&[], &[], more), json!({"roots": ["c"], "network": "allow"}));
    }
}
