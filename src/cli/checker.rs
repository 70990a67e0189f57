//! Starts the checker of providers, a separate program beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use clap::ValueEnum as _;

use super::CliError;
use super::args::ColorChoice;

/// The checker's file name.
pub(crate) const NAME: &str = "provider-workspace-conform";

/// Becomes the checker, with the same arguments. Returns why it cannot.
#[expect(
    clippy::disallowed_methods,
    reason = "this process becomes the person's own program: no tool starts it, so no jail is meant"
)]
pub(crate) fn exec(color: ColorChoice, arguments: &[OsString]) -> CliError {
    let checker = match std::env::current_exe() {
        Ok(program) => program.with_file_name(NAME),
        Err(source) => return CliError::Io { what: "find this program", source },
    };
    let color = (color != ColorChoice::Auto).then(|| color.to_possible_value()).flatten();
    let source = std::process::Command::new(&checker)
        // What its help calls it.
        .arg0("provider-workspace conform")
        .args(color.map(|color| format!("--color={}", color.get_name())))
        .args(arguments)
        .exec();
    CliError::NoChecker { path: checker, source }
}

/// Whether a command line, the checker's or a wrong one, asks for JSON.
pub(crate) fn prints_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}
