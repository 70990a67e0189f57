//! Completions and manual pages.

use std::path::Path;
use std::process::ExitCode;

use clap_mangen::roff::{Roff, bold, roman};

use super::CliError;
use super::args::TRY;
use super::exit;
use super::files;
use super::output::Output;

pub(super) fn completions(
    shell: clap_complete::Shell,
    output: Output,
) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    let mut command = super::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name.as_str(), &mut script);
    output.print(&one_name(&String::from_utf8_lossy(&script), &name))?;
    Ok(ExitCode::SUCCESS)
}

/// The script with one name for the program. That for bash (of `clap_complete` 4.6) has two where
/// there is a dash in it: under one it looks for what may follow a command, under the other it has
/// it, so that nothing behind the first word would be completed.
fn one_name(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}

/// The main page on standard output, or all pages in a directory.
pub(super) fn man(directory: Option<&Path>, output: Output) -> Result<ExitCode, CliError> {
    // Of the text at the end of the help the exit codes have a section of their own here.
    let mut command = super::command().disable_help_subcommand(true).after_long_help(TRY);
    command.build();
    let command = with_paragraphs(command);
    let (name, text) = page(command.clone())?;
    let text = text + &exit_status();
    match directory {
        None => output.print(&text)?,
        Some(directory) => {
            files::write(&directory.join(name), text.as_bytes())?;
            command.get_subcommands().try_for_each(|command| write_all(directory, command))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_all(directory: &Path, command: &clap::Command) -> Result<(), CliError> {
    let (name, text) = page(command.clone())?;
    files::write(&directory.join(name), text.as_bytes())?;
    command.get_subcommands().try_for_each(|command| write_all(directory, command))
}

/// The command with an empty line between the lines of each description: roff fills lines that follow
/// one another into one paragraph.
fn with_paragraphs(command: clap::Command) -> clap::Command {
    let about = command.get_long_about().map(ToString::to_string);
    let command = match about {
        Some(about) => {
            let lines: Vec<&str> = about.lines().filter(|line| !line.trim().is_empty()).collect();
            command.long_about(lines.join("\n\n"))
        }
        None => command,
    };
    command.mut_subcommands(with_paragraphs)
}

/// A command's page, and the name of its file.
fn page(command: clap::Command) -> Result<(String, String), CliError> {
    let man = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    man.render(&mut text)
        .map_err(|source| CliError::Io { what: "make the manual page", source })?;
    Ok((man.get_filename(), String::from_utf8_lossy(&text).into_owned()))
}

/// The section on exit codes, each with a paragraph of its own.
fn exit_status() -> String {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in exit::table() {
        section.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    section.to_roff()
}
