//! Launches this program as a plugin.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join;
use serde_json::Value;
use signal_hook::consts::SIGINT;
use tracing::Level;

use super::CliError;
use super::args::{LaunchOptions, RootOptions};
use super::files::Source;
use super::output::Output;
use super::paint::Ink;
use crate::backend;
use crate::plugin::{self, COOKIE, LOG_VARIABLE, PROTOCOL_VERSION};
use goplugin::Signals;
use goplugin::host::{Launch, LogLine, Plugin};
use goplugin::server::HandshakeEnvironment;
use tool_provider::Payload;
use tool_provider::grpc::ToolClient;

/// What Ctrl-C means at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(Arc<State>);

#[derive(Debug, Default)]
struct State {
    call_runs: AtomicBool,
    requested: AtomicBool,
}

impl Interruption {
    /// From here on a call runs whose stream is read to its end, also after Ctrl-C.
    pub(crate) fn call_starts(&self) {
        self.0.call_runs.store(true, Ordering::Relaxed);
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    fn request(&self) {
        self.0.requested.store(true, Ordering::Relaxed);
    }

    fn is_in_a_call(&self) -> bool {
        self.0.call_runs.load(Ordering::Relaxed)
    }
}

/// Launches this program as a plugin, works with it, and lets it end well. Ctrl-C shuts the plugin
/// down, which cancels a running call and sends all that the call still has to say, so the work goes
/// on until the call's stream ends. Ctrl-C once more ends the plugin at once, and with it everything
/// that it started.
///
/// # Errors
/// Those of the launch and of `work`; [`CliError::Interrupted`].
pub(crate) async fn with_plugin<T>(
    options: &LaunchOptions,
    output: Output,
    work: impl AsyncFnOnce(ToolClient, Interruption) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut interrupts = Signals::take(&[SIGINT])
        .map_err(|source| CliError::Io { what: "listen for Ctrl-C", source })?;
    let shows_log = Arc::new(AtomicBool::new(true));
    let plugin = tokio::select! {
        launched = launch(options, output, shows_log.clone()) => launched?,
        () = interrupts.recv() => return Err(CliError::Interrupted),
    };
    let interruption = Interruption::default();
    let mut work = pin!(work(ToolClient::new(plugin.channel()), interruption.clone()));
    let outcome = tokio::select! {
        done = &mut work => done,
        () = interrupts.recv() => {
            interruption.request();
            output.interrupted();
            // The log says once more what the call's last event does.
            shows_log.store(false, Ordering::Relaxed);
            let rest = async {
                match interruption.is_in_a_call() {
                    true => join(work, plugin.kill()).await.0,
                    false => {
                        plugin.kill().await;
                        Err(CliError::Interrupted)
                    }
                }
            };
            return tokio::select! {
                // Whatever failed after Ctrl-C failed because of it.
                done = rest => done.map_err(|_| CliError::Interrupted),
                () = interrupts.recv() => Err(CliError::Interrupted),
            };
        }
    };
    output.end_progress();
    if matches!(outcome, Err(CliError::OutputClosed)) {
        // That its call was cancelled is what the reader meant by going away.
        shows_log.store(false, Ordering::Relaxed);
    }
    tokio::select! {
        _ = plugin.kill() => {}
        () = interrupts.recv() => {}
    }
    outcome
}

/// Launches it. Its log is shown as long as `shows_log` says so, and with `--verbose` to the end.
async fn launch(
    options: &LaunchOptions,
    output: Output,
    shows_log: Arc<AtomicBool>,
) -> Result<Plugin, CliError> {
    let program = std::env::current_exe()
        .map_err(|source| CliError::Io { what: "find this program", source })?;
    let least = if options.verbose { Level::TRACE } else { Level::WARN };
    let mut launch = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
        .security(options.security())
        .on_log(move |line| {
            if shows_log.load(Ordering::Relaxed) || least > Level::WARN {
                show_log_line(output, &line, least);
            }
        });
    if options.verbose {
        launch = launch.env(LOG_VARIABLE, "debug");
    }
    Ok(launch.start().await?)
}

fn show_log_line(output: Output, line: &LogLine, least: Level) {
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
        Level::ERROR => ("plugin error", Ink::Red),
        Level::WARN => ("plugin warning", Ink::Yellow),
        _ => ("plugin", Ink::Dim),
    };
    output.note(label, ink, &text);
}

/// Serves as a plugin although no host launched this process.
pub(crate) fn serve() -> Result<ExitCode, CliError> {
    let environment = HandshakeEnvironment::from_process(&COOKIE);
    plugin::run(environment, backend::provider())?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration that the options mean.
pub(crate) fn configuration(
    options: &RootOptions,
    source: &mut Source,
) -> Result<Payload, CliError> {
    let mut config = match &options.config {
        Some(text) => source.object("--config", text)?,
        None => Payload::new(),
    };
    let given = [
        ("roots", "--root", &options.roots),
        ("read_only_roots", "--read-only-root", &options.read_only_roots),
    ];
    for (key, flag, directories) in given {
        // Neither may win: what a tool reaches should be what the person meant.
        if !directories.is_empty() && config.contains_key(key) {
            return Err(CliError::KeyTwice { key, flag });
        }
    }
    if !options.roots.is_empty() {
        config.insert("roots".to_owned(), options.roots.clone().into());
    } else if !config.contains_key("roots") {
        // Whoever names only what may be read wants nothing written.
        let usual: &[&str] = if options.read_only_roots.is_empty() { &["."] } else { &[] };
        config.insert("roots".to_owned(), usual.into());
    }
    if !options.read_only_roots.is_empty() {
        config.insert("read_only_roots".to_owned(), options.read_only_roots.clone().into());
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_current_directory_is_the_root_unless_another_is_named() {
        let config = |roots: &[&str], read_only: &[&str], more: Option<&str>| {
            let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
            let options = RootOptions {
                roots: texts(roots),
                read_only_roots: texts(read_only),
                config: more.map(str::to_owned),
            };
            Value::Object(configuration(&options, &mut Source::default()).unwrap())
        };
        assert_eq!(config(&[], &[], None), json!({"roots": ["."]}));
        assert_eq!(config(&["a"], &[], None), json!({"roots": ["a"]}));
        assert_eq!(config(&[], &["b"], None), json!({"roots": [], "read_only_roots": ["b"]}));
        let more = Some(r#"{"roots": ["c"], "network": "allow"}"#);
        assert_eq!(config(&[], &[], more), json!({"roots": ["c"], "network": "allow"}));
        let twice = RootOptions {
            roots: vec!["a".to_owned()],
            read_only_roots: Vec::new(),
            config: more.map(str::to_owned),
        };
        let error = configuration(&twice, &mut Source::default()).expect_err("roots twice");
        assert!(error.to_string().contains("roots is given twice"), "{error}");
    }
}
