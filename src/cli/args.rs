//! What can be written on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::goplugin::host::Security;

/// Files, search and a shell for a coding agent, behind one kernel-enforced jail.
///
/// This is a plugin: an agent's kernel launches it without arguments and speaks gRPC with it. By
/// hand, use one of the commands.
#[derive(Debug, Parser)]
#[command(name = "provider-workspace", version, arg_required_else_help = true)]
#[command(
    after_help = "Try: provider-workspace call read_file '{\"path\":\"README.md\"}' --root ."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line, for help and completions.
#[must_use]
pub fn command() -> clap::Command {
    Options::command()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the tools and the configuration's keys.
    Schema(SchemaOptions),
    /// Run a tool and show its result.
    Call(CallOptions),
    /// Show what a call would do, without doing it.
    Preview(TargetOptions),
    /// Show a payload that a kernel stored.
    Render(RenderOptions),
    /// Tell what this machine can enforce, and what that leaves open.
    Doctor(DoctorOptions),
    /// Check any tool provider against the protocol, as a kernel launches it.
    Conform(ConformOptions),
    /// Serve as a plugin although no kernel launched this process. Ends at SIGTERM.
    Serve,
    /// Print a shell's completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether JSON was asked for, so that a program reads what is printed.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Command::Schema(options) => options.json,
            Command::Call(options) => options.json,
            Command::Doctor(options) => options.json,
            Command::Conform(options) => options.json,
            Command::Preview(_)
            | Command::Render(_)
            | Command::Serve
            | Command::Completions { .. } => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SchemaOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// Print JSON: each event on a line of its own.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// A call, and what it may reach.
#[derive(Debug, Args)]
pub(crate) struct TargetOptions {
    /// The tool, such as read_file.
    pub(crate) tool: String,
    /// Its arguments as a JSON object; - reads them from standard input.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// What relative paths of the call start from, itself taken from the current folder; the first
    /// root where it is left out.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// The session that the call belongs to.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub(crate) session: String,
    /// The deadline of the call, in seconds. A call that runs into it is ended a little before (a
    /// tenth, at most 250 ms), so that its answer still arrives; the exit code is 124 then.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) roots: RootOptions,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RenderOptions {
    /// The payload; - reads it from standard input.
    #[arg(value_name = "PAYLOAD", default_value = "-")]
    pub(crate) payload: String,
    /// What it was stored under: "json" for a result's JSON, "1" for an event's bytes.
    #[arg(long, default_value = "json")]
    pub(crate) schema_version: String,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) roots: RootOptions,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The provider is called with made-up arguments, in a scratch folder that is removed \
                  afterwards; operations of critical risk only with arguments from --config.\n\n\
                  Exit code: 0 when no check failed (those not reached are counted), 1 when one did, \
                  2 when the binary could not be tested."
)]
pub(crate) struct ConformOptions {
    /// The provider, in whatever language.
    pub(crate) binary: PathBuf,
    /// A JSON file with what cannot be guessed: config (the provider's block), environment
    /// (variables of its process) and calls (by operation: arguments that are good, failing or
    /// long, and whether it is a process). {folder} stands for the scratch folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Run only the checks whose id begins so, such as invoke or launch.tls; may be repeated.
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,
    /// Leave out the checks whose id begins so; may be repeated.
    #[arg(long, value_name = "ID")]
    pub(crate) skip: Vec<String>,
    /// How long any one step may take before it counts as hanging, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "20")]
    pub(crate) limit: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The configuration.
#[derive(Debug, Args)]
pub(crate) struct RootOptions {
    /// A folder that the tools may read and write; may be repeated. The current one where no root
    /// is named at all.
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<String>,
    /// A folder that the tools may read; may be repeated.
    #[arg(long = "read-only-root", value_name = "DIR")]
    pub(crate) read_only_roots: Vec<String>,
    /// Further keys of the configuration, as a JSON object; - reads them from standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) config: Option<String>,
}

/// How this program launches itself.
#[derive(Debug, Args)]
pub(crate) struct LaunchOptions {
    /// Show everything that the plugin logs.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Encrypt the connection to the plugin, as some kernels do.
    #[arg(long)]
    mtls: bool,
}

impl LaunchOptions {
    pub(crate) fn security(&self) -> Security {
        if self.mtls { Security::AutoMtls } else { Security::Plain }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than nothing and less than for ever".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        command().debug_assert();
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "inf", "x"] {
            seconds(text).expect_err(text);
        }
    }
}
