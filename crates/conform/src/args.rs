//! The command line's options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ColorChoice, Parser};

/// Check any tool provider against the protocol, as a host launches it.
#[derive(Debug, Parser)]
#[command(
    name = "provider-workspace-conform",
    version,
    after_help = "The provider is called with made-up arguments, in a scratch directory that is removed \
                  afterwards; operations of critical risk only with arguments from --config. What it \
                  does elsewhere is not seen. Before a call the directory is put back to what it was, \
                  but for what the provider made there while it was configured.\n\n\
                  A check fails where the protocol's words are broken; what they allow and hosts or \
                  people would rather not have is a remark.\n\n\
                  Exit code: 0 when no check failed (those not reached are counted, remarks too), 1 \
                  when one did, 2 when the binary could not be tested."
)]
pub(crate) struct Options {
    /// The provider, in whatever language.
    pub(crate) binary: PathBuf,
    /// A JSON file with what cannot be guessed: config (the provider's block), environment
    /// (variables of its process) and calls (by operation: arguments that are good, failing or
    /// long, and whether it is a process). {folder} stands for the scratch directory.
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
    /// Whether to use colours. Without it NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM decide, then
    /// whether it is a terminal.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorChoice,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|limit| !limit.is_zero()).ok_or("must be a number of seconds greater than 0")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Options::command().debug_assert();
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "inf", "x"] {
            seconds(text).expect_err(text);
        }
    }
}
