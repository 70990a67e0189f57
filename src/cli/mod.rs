//! The commands for a person. All but `init`, `doctor`, `shell`, `home`, `mcp`, `completions` and `man` launch
//! this very program as a plugin and ask it through the real handshake, so what a person sees is what a host
//! gets.

mod agent_file;
mod apply;
mod args;
mod call;
mod checker;
#[cfg(feature = "mcp")]
mod config_flags;
mod doctor;
mod error;
pub mod exit;
mod files;
mod follow;
mod hcl;
mod home;
mod host;
mod init;
mod json;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod pages;
mod paint;
mod payload;
mod refusal;
mod schema;
mod shell;
mod tool_args;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{ColorChoice, Command, Options, command};
use error::CliError;
use output::Output;
use refusal::parse;

/// Runs the command line and returns the process's exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.len() <= 1 {
        Output::of_this_process(ColorChoice::Auto).refusal(&command().render_long_help());
        return ExitCode::from(exit::FAILED);
    }
    let arguments = words::joined(arguments);
    let options: Options = match parse(&arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let output = Output::of_this_process(options.color);
    let is_for_programs = options.command.prints_json();
    output.exit_code(dispatch(options.command, options.color, output), is_for_programs)
}

fn dispatch(command: Command, color: ColorChoice, output: Output) -> Result<ExitCode, CliError> {
    match command {
        Command::Schema(options) => block_on(schema::run(options, output)),
        Command::Call(options) => block_on(call::call(options, output)),
        Command::Preview(options) => block_on(call::preview(options, output)),
        Command::Apply(options) => block_on(apply::run(options, output)),
        Command::Render(options) => block_on(call::render(options, output)),
        Command::Init(options) => init::run(&options, output),
        Command::Doctor(options) => doctor::run(&options, output),
        Command::Shell(options) => shell::run(&options, output),
        Command::Home(options) => home::run(&options, output),
        Command::Conform { arguments } => Err(checker::exec(color, &arguments)),
        #[cfg(feature = "mcp")]
        Command::Mcp(options) => mcp::run(options),
        Command::Serve => host::serve(),
        Command::Completions { shell } => pages::completions(shell, output),
        Command::Man { directory } => pages::man(directory.as_deref(), output),
    }
}

/// Runs `work` on a runtime of this thread.
///
/// # Errors
/// Those of `work`; [`CliError::Io`] when there can be no runtime.
fn block_on(work: impl Future<Output = Result<ExitCode, CliError>>) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::Io { what: "start the runtime", source })?;
    let ended = runtime.block_on(work);
    // A thread may still wait for an answer that nobody will type.
    runtime.shutdown_background();
    ended
}
