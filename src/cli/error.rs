//! What can go wrong on the command line.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::goplugin::host::LaunchError;
use crate::service::ClientError;
use crate::tools::Category;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// A piece of JSON on the command line is none.
    #[error("{what}: not a JSON object: {source}")]
    Json {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
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
    /// The person said no, or what would be done is not any more what was shown.
    #[error("not applied: {reason}")]
    NotApplied {
        /// Why.
        reason: &'static str,
    },
    /// Ctrl-C.
    #[error("cancelled by Ctrl-C")]
    Interrupted,
    /// A page of the documents is not as the code would write it.
    #[error("not current: {}", .pages.join(", "))]
    Outdated {
        /// The pages.
        pages: Vec<String>,
    },
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
    Plugin(#[from] crate::service::plugin::PluginError),
}

impl CliError {
    /// What can be done about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            CliError::Json { .. } => Some(
                "quote it for the shell: '{\"path\": \"a.txt\"}'; a text that begins with { is given \
                 by its flag, such as --command"
                    .into(),
            ),
            CliError::Client(ClientError::Refused { failure, .. }) => {
                failure.hint().map(str::to_owned)
            }
            CliError::Twice { name } => Some(format!("leave out one of the two {name}")),
            CliError::NobodyToAsk => Some("--yes applies without asking".to_owned()),
            CliError::Outdated { .. } => Some("write them anew: cargo run -- docs".to_owned()),
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
            error if error.is_usage() => Category::InvalidArguments,
            _ => Category::ExecutionFailed,
        }
        .name();
        json!({"event": "error", "error": {
            "category": category, "message": self.to_string(), "retryable": false,
            "details": details,
        }})
    }

    /// Whether the command line itself is at fault.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            CliError::Json { .. }
                | CliError::StdinTwice
                | CliError::Twice { .. }
                | CliError::NobodyToAsk
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
