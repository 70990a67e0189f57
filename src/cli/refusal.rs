//! Messages of clap: a wrong command line, or the requested help.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ValueEnum as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};

use super::CliError;
use super::args::ColorChoice;
use super::output::Output;
use super::paint::Ink;
use super::{checker, exit};
use tool_provider::Category;

/// What `--color` says, on a command line that may be wrong.
fn color_in(arguments: &[OsString]) -> ColorChoice {
    let texts: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let mut chosen = ColorChoice::Auto;
    for (index, text) in texts.iter().enumerate() {
        let value = match text.strip_prefix("--color") {
            Some("") => texts.get(index + 1).map(AsRef::as_ref),
            Some(rest) => rest.strip_prefix('='),
            None if text == "--" => break,
            None => None,
        };
        if let Some(color) = value.and_then(|value| ColorChoice::from_str(value, true).ok()) {
            chosen = color;
        }
    }
    chosen
}

/// The options that a command line means. What is wrong with it is shown, and so is the help that it
/// asks for.
///
/// # Errors
/// The exit code, where there is nothing left to do.
pub(crate) fn parse<T: clap::Parser>(arguments: &[OsString]) -> Result<T, ExitCode> {
    T::try_parse_from(arguments)
        .map_err(|error| answer(&error, arguments, Output::of_this_process(color_in(arguments))))
}

/// Prints what clap has to say, for a person or for the program that asked for JSON.
fn answer(error: &clap::Error, arguments: &[OsString], output: Output) -> ExitCode {
    let page = error.render();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output.page(&page) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => output.failure(&error),
        };
    }
    if checker::prints_json(arguments) {
        return match output.print_json(&as_json(error).to_string()) {
            Err(error @ CliError::OutputClosed) => exit::of_error(&error),
            _ => ExitCode::from(exit::USAGE),
        };
    }
    output.refusal(&page);
    if let Some(hint) = not_utf8(error) {
        output.note("hint", Ink::Cyan, hint);
    }
    ExitCode::from(exit::USAGE)
}

/// A wrong command line in the form of a call's last event.
fn as_json(error: &clap::Error) -> Value {
    let (message, hint) = match unknown_tool(error) {
        Some((message, hint)) => (message, Some(hint)),
        None => {
            let text = error.render().to_string();
            let message = text.trim_start_matches("error: ").trim_end().to_owned();
            (message, not_utf8(error).map(str::to_owned))
        }
    };
    let details = hint.map_or(json!({}), |hint| json!({"hint": hint}));
    json!({"event": "error", "error": {
        "category": Category::InvalidArguments.name(), "message": message,
        "retryable": false, "details": details,
    }})
}

/// How a name is given that is no text.
fn not_utf8(error: &clap::Error) -> Option<&'static str> {
    (error.kind() == ErrorKind::InvalidUtf8).then_some(
        "a file's name that is not UTF-8 is given as results show it, in double quotes and with \
         escapes: '\"caf\\351.txt\"'",
    )
}

/// An unknown subcommand, in one sentence, and a hint.
fn unknown_tool(error: &clap::Error) -> Option<(String, String)> {
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let near = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(near)) if !near.is_empty() => {
            format!("did you mean {}?", near.join(" or "))
        }
        _ => "--help lists what there is".to_owned(),
    };
    Some((format!("nothing is called {name:?} here"), near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colours_of_a_wrong_line_are_those_that_it_asks_for() {
        let color = |line: &str| color_in(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(color("x --color always cal"), ColorChoice::Always);
        assert_eq!(color("x --color=never"), ColorChoice::Never);
        assert_eq!(color("x --color"), ColorChoice::Auto);
        assert_eq!(color("x -- --color=never"), ColorChoice::Auto);
    }
}
