//! The commands for a person. All but `doctor` and `completions` launch this very program as a
//! plugin and ask it through the real handshake, so what a person sees is what a kernel gets.

mod args;
mod call;
mod conform;
mod doctor;
mod error;
mod host;
mod output;
mod schema;
mod show;

pub use args::command;
pub use error::CliError;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Command, Options};
use clap::Parser as _;
use output::Output;

/// Runs the command line and returns the process's exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut output = Output::of_this_process();
    if arguments.len() <= 1 {
        output.help(&command().render_long_help());
        return ExitCode::FAILURE;
    }
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(refusal) => return output.refusal(&refusal),
    };
    let is_for_programs = options.command.prints_json();
    match dispatch(options.command, &mut output) {
        Ok(code) => code,
        Err(error) if is_for_programs => output.failure_as_json(&error),
        Err(error) => output.failure(&error),
    }
}

fn dispatch(command: Command, output: &mut Output) -> Result<ExitCode, CliError> {
    match command {
        Command::Schema(options) => block_on(schema::run(options, output)),
        Command::Call(options) => block_on(call::call(options, output)),
        Command::Preview(options) => block_on(call::preview(options, output)),
        Command::Render(options) => block_on(call::render(options, output)),
        Command::Doctor(options) => doctor::run(&options, output),
        Command::Conform(options) => block_on(conform::run(options, output)),
        Command::Serve => host::serve(),
        Command::Completions { shell } => output.completions(shell),
    }
}

fn block_on(work: impl Future<Output = Result<ExitCode, CliError>>) -> Result<ExitCode, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::Io { what: "start the runtime", source })?
        .block_on(work)
}
