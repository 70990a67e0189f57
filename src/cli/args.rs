//! The command line's options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use super::tool_args::{AnyTool, ChangingTool};
use super::{checker, exit};
use crate::identity;
use goplugin::host::Security;

/// Files, search and a shell for a coding agent, behind one kernel-enforced jail.
///
/// This is a plugin: a coding agent (its host) launches it without arguments and speaks gRPC with
/// it. By hand, use one of the commands.
#[derive(Debug, Parser)]
#[command(name = "provider-workspace", version = identity::VERSION_AND_BUILD)]
#[command(arg_required_else_help = true)]
#[command(after_help = TRY)]
#[command(after_long_help = format!("{TRY}\n\n{}", exit::help()))]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Whether to use colours. Without it NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM decide, then
    /// whether it is a terminal.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: ColorChoice,
}

/// The first thing to try, at the end of the help.
pub(super) const TRY: &str = "Try: provider-workspace call read_file README.md";

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// Where the environment and the terminal take them.
    #[default]
    Auto,
    /// Always, also into a pipe.
    Always,
    /// Never.
    Never,
}

/// The command line, for help, manual pages and completions.
pub(crate) fn command() -> clap::Command {
    Options::command()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the tools and the configuration's keys.
    Schema(SchemaOptions),
    /// Run a tool and show its result.
    Call(CallOptions<AnyTool>),
    /// Show what a call would do, without doing it.
    Preview(CallOptions<AnyTool>),
    /// Show what a call would do, ask, and do just that.
    Apply(ApplyOptions),
    /// Show a payload that a host stored.
    Render(RenderOptions),
    /// Print an agent.hcl for this directory, with which a host loads the provider.
    Init(InitOptions),
    /// Show what this machine can enforce, and what that leaves open.
    Doctor(DoctorOptions),
    /// Open a shell in the jail, as a command of a session sees it.
    Shell(RootOptions),
    /// Show the HOMEs that are kept for commands, or remove them.
    Home(HomeOptions),
    /// Check any tool provider against the protocol, as a host launches it.
    ///
    /// Starts provider-workspace-conform, which lies beside this program, with the same arguments.
    #[command(disable_help_flag = true)]
    Conform {
        /// What the checker takes; --help shows it.
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Serve a client of the Model Context Protocol on standard input and output.
    ///
    /// The roots are those of --root and --read-only-root, else those that the client names, else the
    /// working directory, unless that is / or holds the home directory.
    #[cfg(feature = "mcp")]
    Mcp(super::mcp::McpOptions),
    /// Serve as a plugin although no host launched this process. Ends at SIGTERM.
    Serve,
    /// Print a shell's completions, the tools and their flags among them.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands.
    Man {
        /// The directory to write to; it must exist. Without it the main page goes to standard output.
        directory: Option<PathBuf>,
    },
}

impl Command {
    /// Whether JSON was asked for, so that a program reads what is printed.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Command::Schema(options) => options.json,
            Command::Call(options) | Command::Preview(options) => options.json,
            Command::Apply(options) => options.call.json,
            Command::Render(options) => options.json,
            Command::Doctor(options) => options.json,
            Command::Home(options) => options.json,
            Command::Conform { arguments } => checker::prints_json(arguments),
            #[cfg(feature = "mcp")]
            Command::Mcp(_) => false,
            Command::Init(_)
            | Command::Shell(_)
            | Command::Serve
            | Command::Completions { .. }
            | Command::Man { .. } => false,
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

/// A call, and how it is shown.
#[derive(Debug, Args)]
#[command(subcommand_required = true, subcommand_value_name = "TOOL")]
#[command(subcommand_help_heading = "Tools", disable_help_subcommand = true)]
pub(crate) struct CallOptions<T: Subcommand> {
    /// The tool and its arguments.
    #[command(subcommand)]
    pub(crate) tool: T,
    /// Print JSON: of a call each event on a line of its own, of a preview its tree.
    #[arg(long, global = true, help_heading = EVERY_CALL)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyOptions {
    #[command(flatten)]
    pub(crate) call: CallOptions<ChangingTool>,
    /// Apply without asking. Where there is no terminal to ask on this is needed.
    #[arg(long, short, global = true, help_heading = EVERY_CALL)]
    pub(crate) yes: bool,
}

/// Where the options stand in the help of each tool.
const EVERY_CALL: &str = "Options of every call";

/// What a call may reach.
#[derive(Debug, Args)]
#[command(next_help_heading = EVERY_CALL)]
pub(crate) struct TargetOptions {
    /// What relative paths of the call start from, itself taken from the current directory; the first
    /// root where it is left out.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<String>,
    /// The session that the call belongs to.
    #[arg(long, value_name = "NAME", default_value = "cli", global = true)]
    pub(crate) session: String,
    /// The deadline of the call, in seconds. A call that runs into it is ended a little before (a
    /// tenth, at most 250 ms), so that its answer still arrives; the exit code is 124 then.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, global = true)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) roots: RootOptions,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RenderOptions {
    /// Print JSON: the tree.
    #[arg(long)]
    pub(crate) json: bool,
    /// The payload, or the events that a call printed with --json; @FILE reads it from a file, -
    /// from standard input.
    #[arg(value_name = "PAYLOAD", default_value = "-")]
    pub(crate) payload: String,
    /// What it was stored under: "json" for a result's JSON, "1" for an event's bytes.
    #[arg(long, default_value = "json")]
    pub(crate) schema_version: String,
    #[command(flatten)]
    pub(crate) launch: LaunchOptions,
}

/// What stands in an agent.hcl, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// A directory that the tools may read and write; may be repeated. The current one where none
    /// is named at all. A relative one starts where the host runs.
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// A directory that the tools may read; may be repeated.
    #[arg(long = "read-only-root", value_name = "DIR")]
    pub(crate) read_only_roots: Vec<PathBuf>,
    /// Where the host finds releases: the address of a forge without a scheme. That of this build
    /// where it is left out.
    #[arg(long, value_name = "ADDRESS", value_parser = source)]
    pub(crate) source: Option<String>,
    /// Also print the dev_overrides block that makes a host run this program instead of a release:
    /// to standard error, or to standard output where the file is written.
    #[arg(long)]
    pub(crate) dev: bool,
    /// Write agent.hcl in the current directory instead of printing it.
    #[arg(long, group = "target")]
    pub(crate) write: bool,
    /// Write this file instead of printing it.
    #[arg(long, value_name = "FILE", group = "target")]
    pub(crate) out: Option<PathBuf>,
    /// Write it although it exists.
    #[arg(long, requires = "target")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also report what of this agent.hcl a host will not load. The one in the current directory where
    /// it is left out; its configuration is the one that is checked unless another is given.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) roots: RootOptions,
}

/// Which HOMEs, and what to do with them.
#[derive(Debug, Args)]
pub(crate) struct HomeOptions {
    /// Remove the HOME whose key begins like this, unless a provider uses it.
    #[arg(long, value_name = "KEY", num_args = 0..=1)]
    pub(crate) clear: Option<Option<String>>,
    /// With --clear: remove all that no provider uses.
    #[arg(long, requires = "clear")]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The configuration.
#[derive(Debug, Args)]
pub(crate) struct RootOptions {
    /// A directory that the tools may read and write; may be repeated. The current one where no root
    /// is named at all.
    #[arg(long = "root", value_name = "DIR", global = true)]
    pub(crate) roots: Vec<String>,
    /// A directory that the tools may read; may be repeated.
    #[arg(long = "read-only-root", value_name = "DIR", global = true)]
    pub(crate) read_only_roots: Vec<String>,
    /// Further keys of the configuration, as a JSON object; @FILE reads them from a file, - from
    /// standard input. A key that has a flag is given in one of the two ways.
    #[arg(long, value_name = "JSON", global = true)]
    pub(crate) config: Option<String>,
}

impl RootOptions {
    /// Whether nothing of the configuration is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.read_only_roots.is_empty() && self.config.is_none()
    }
}

/// How this program launches itself.
#[derive(Debug, Args)]
pub(crate) struct LaunchOptions {
    /// Show everything that the plugin logs.
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Encrypt the connection to the plugin, as some hosts do.
    #[arg(long, global = true)]
    mtls: bool,
}

impl LaunchOptions {
    pub(crate) fn security(&self) -> Security {
        if self.mtls { Security::AutoMtls } else { Security::Plain }
    }
}

/// The address of a forge.
fn source(text: &str) -> Result<String, String> {
    identity::source::check(text).map(|()| text.to_owned())
}

/// A time of the command line.
fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or("must be a number of seconds greater than 0")
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
