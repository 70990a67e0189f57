//! What can go wrong on the command line.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::hcl::Unwritable;
use goplugin::host::LaunchError;
use sandbox::HomeError;
use tool_provider::Category;
use tool_provider::grpc::ClientError;
use workspace_fs::StateError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What should be a JSON object is not one.
    #[error("{what}: not a JSON object: {source}")]
    Json {
        /// Which one.
        what: &'static str,
        /// Where it was taken from.
        origin: JsonOrigin,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// What follows an @ is not a file that can be read.
    #[error("cannot read {}", path.display())]
    NoAtFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A key of the configuration is written both by its flag and in `--config`.
    #[error("{key} is given twice: by {flag} and in --config")]
    KeyTwice {
        /// The key.
        key: &'static str,
        /// Its flag.
        flag: &'static str,
    },
    /// Both pieces of JSON are to be read from standard input.
    #[error("standard input can be read once only: either the arguments or --config can be -")]
    StdinTwice,
    /// One argument of a tool is given in two ways.
    #[error("{name} is given twice: by its flag and without one")]
    Twice {
        /// The argument.
        name: &'static str,
    },
    /// There is nobody to ask.
    #[error("nobody can be asked: standard input or standard error is no terminal")]
    NobodyToAsk,
    /// There is no terminal to open a shell on.
    #[error(
        "a shell needs a terminal on standard input and standard output; `call bash` needs none"
    )]
    NoTerminal,
    /// The shell did not start.
    #[error(transparent)]
    Interactive(#[from] crate::backend::InteractiveError),
    /// The person said no, or the call would no longer do what was shown.
    #[error("not applied: {reason}")]
    NotApplied {
        /// Why.
        reason: &'static str,
    },
    /// The time that the command line gave the call was over before the provider answered.
    #[error("the provider did not answer before --timeout was over")]
    Late,
    /// The checker of providers, a program of its own, cannot be started.
    #[error("cannot start the checker, {}", path.display())]
    NoChecker {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Ctrl-C.
    #[error("stopped by Ctrl-C")]
    Interrupted,
    /// A file of the person's cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is there that was to be written anew.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A name cannot be written in HCL.
    #[error("{what}: {} cannot be written in agent.hcl: {reason}", name.display())]
    Unwritable {
        /// Whose name it is.
        what: &'static str,
        /// The name.
        name: OsString,
        /// Why.
        reason: Unwritable,
    },
    /// The system refused something.
    #[error("cannot {what}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever read our output went away, and with it the rest of the output.
    #[error("nobody reads the output any more")]
    OutputClosed,
    /// The plugin could not be launched.
    #[error("cannot launch the plugin")]
    Launch(#[from] LaunchError),
    /// The plugin refused, or did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The plugin could not serve.
    #[error(transparent)]
    Plugin(#[from] crate::plugin::PluginError),
    /// A key of the configuration is written both by its flag and in the file.
    #[cfg(feature = "mcp")]
    #[error("{key} is given twice: by its flag and in the file of --config")]
    KeyInFileToo {
        /// The key.
        key: String,
    },
    /// A file is no configuration.
    #[cfg(feature = "mcp")]
    #[error("{}: {problem}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The server of the Model Context Protocol could not serve.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Mcp(#[from] crate::mcp::McpError),
    /// There is no state directory to keep anything in.
    #[error(transparent)]
    State(#[from] StateError),
    /// The HOMEs that are kept cannot be listed or removed.
    #[error(transparent)]
    Homes(#[from] HomeError),
    /// It is not said which HOME to remove.
    #[error("--clear needs either the key of one HOME or --all")]
    ClearWhat,
    /// A key means no HOME, or several.
    #[error("{which} HOME has a key that begins with {key:?}")]
    NoHome {
        /// What was given.
        key: String,
        /// How many there are.
        which: &'static str,
    },
}

/// Where a piece of JSON was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonOrigin {
    /// The command line.
    Line,
    /// A file, or standard input.
    Elsewhere,
}

impl CliError {
    /// What can be done about it, where that is known.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CliError::Json { origin: JsonOrigin::Elsewhere, .. } => Some(
                "a file behind @, and standard input for -, hold one JSON object and nothing else"
                    .to_owned(),
            ),
            CliError::Json { what: "--config", .. } => Some(
                "quote it for the shell: '{\"network\": \"allow\"}'; @FILE reads it from a file"
                    .to_owned(),
            ),
            CliError::Json { what: "payload", .. } => {
                Some("@FILE reads it from a file, - from standard input".to_owned())
            }
            CliError::Json { .. } => Some(
                "quote it for the shell: '{\"path\": \"a.txt\"}'; a text that begins with { is given \
                 by its flag, such as --command"
                    .into(),
            ),
            CliError::NoAtFile { .. } => Some(
                "@ names a file to read; a text that begins with @ is given by its flag, such as \
                 --pattern"
                    .to_owned(),
            ),
            CliError::KeyTwice { flag, .. } => Some(format!("leave out {flag}, or the key in --config")),
            CliError::Client(ClientError::Refused { failure, .. }) => {
                failure.hint().map(str::to_owned)
            }
            CliError::Twice { name } => Some(format!("leave out one of the two {name}")),
            CliError::Late => Some("give the call more time: a larger --timeout".to_owned()),
            CliError::NoChecker { .. } => Some(
                "it comes in the archive, beside provider-workspace; in the sources, \
                 cargo install --path crates/conform"
                    .to_owned(),
            ),
            CliError::Exists { .. } => {
                Some("--force overwrites it; without --write and --out it is printed".to_owned())
            }
            CliError::Unwritable { .. } => {
                Some("rename it, or make a link to it and name that".to_owned())
            }
            CliError::ClearWhat | CliError::NoHome { .. } => {
                Some("provider-workspace home lists the keys".to_owned())
            }
            CliError::NobodyToAsk => Some("--yes applies without asking".to_owned()),
            _ => None,
        }
    }

    /// The failure as a program reads it, like the last event of a call.
    pub(crate) fn as_json(&self) -> Value {
        if let CliError::Client(ClientError::Refused { failure, .. }) = self {
            return json!({"event": "error", "error": failure});
        }
        let causes = self.causes();
        let mut details = json!({});
        if let Some(hint) = self.hint() {
            details["hint"] = hint.into();
        }
        if !causes.is_empty() {
            details["causes"] = causes.into();
        }
        let category = match self {
            CliError::Interrupted => Category::Cancelled,
            CliError::Late => Category::Timeout,
            error if error.is_usage() => Category::InvalidArguments,
            _ => Category::ExecutionFailed,
        }
        .name();
        json!({"event": "error", "error": {
            "category": category, "message": self.to_string(), "retryable": false,
            "details": details,
        }})
    }

    /// Whether a file of the person's is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, CliError::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the command line itself is at fault.
    pub(crate) fn is_usage(&self) -> bool {
        #[cfg(feature = "mcp")]
        if matches!(
            self,
            CliError::KeyInFileToo { .. }
                | CliError::ConfigFile { .. }
                | CliError::Mcp(crate::mcp::McpError::Configuration(_))
        ) {
            return true;
        }
        matches!(
            self,
            CliError::Json { .. }
                | CliError::NoAtFile { .. }
                | CliError::KeyTwice { .. }
                | CliError::StdinTwice
                | CliError::Twice { .. }
                | CliError::Exists { .. }
                | CliError::Unwritable { .. }
                | CliError::NobodyToAsk
                | CliError::ClearWhat
                | CliError::NoHome { .. }
                | CliError::File { action: "read", .. }
        )
    }

    /// What caused it, outermost first, without what the message says already.
    pub(crate) fn causes(&self) -> Vec<String> {
        if matches!(self, CliError::Json { .. } | CliError::Client(_)) {
            return Vec::new();
        }
        let mut causes = Vec::new();
        let mut source = self.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        causes
    }
}
