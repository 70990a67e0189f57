//! What can go wrong on the command line.

use std::error::Error;
use std::io;

use serde_json::{Value, json};

use crate::goplugin::host::LaunchError;
use crate::service::ClientError;

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
            CliError::Json { .. } => Some("quote it for the shell: '{\"path\": \"a.txt\"}'".into()),
            CliError::Client(ClientError::Refused { failure, .. }) => {
                failure.hint().map(str::to_owned)
            }
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
            CliError::Json { .. } | CliError::StdinTwice => "invalid_arguments",
            _ => "execution_failed",
        };
        json!({"event": "error", "error": {
            "category": category, "message": self.to_string(), "retryable": false,
            "details": details,
        }})
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
