//! What the exit codes mean: one table for the code, the help and the documents.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::CliError;
use tool_provider::grpc::{ClientError, Failure};
use tool_provider::{Category, Payload};
use workspace_tools::bash::spec::EXIT_CODE;

/// Something other than the call went wrong: the plugin does not start, the output cannot be written,
/// the person said no, `doctor` found a fault.
pub(crate) const FAILED: u8 = 1;

/// The command line, or the JSON on it, is wrong; also what clap ends with.
pub(crate) const USAGE: u8 = 2;

/// The exit code of a program that Ctrl-C ended: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// The exit code of a program that SIGPIPE ended: 128 and its number.
pub(crate) const READER_GONE: u8 = 141;

/// The exit code of a call that failed.
#[must_use]
pub const fn of_category(category: Category) -> u8 {
    match category {
        Category::InvalidArguments => USAGE,
        Category::NotFound => 3,
        Category::PermissionDenied => 4,
        Category::ExecutionFailed => 5,
        Category::ConcurrencyConflict => 6,
        // That of sysexits.h for a fault of the program itself.
        Category::Unknown => 70,
        // That of timeout(1).
        Category::Timeout => 124,
        Category::Cancelled => INTERRUPTED,
    }
}

/// The exit code of a failure as it came over the wire.
pub(crate) fn of_failure(failure: &Failure) -> ExitCode {
    let known = Category::ALL.into_iter().find(|category| category.name() == failure.category);
    ExitCode::from(known.map_or(FAILED, of_category))
}

/// The exit code of a command that a tool ran, else success.
pub(crate) fn of_result(result: &Payload) -> ExitCode {
    match EXIT_CODE.get(result) {
        None => ExitCode::SUCCESS,
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
    }
}

/// The exit code of a command that failed.
pub(crate) fn of_error(error: &CliError) -> ExitCode {
    match error {
        CliError::Client(ClientError::Refused { failure, .. }) => of_failure(failure),
        CliError::OutputClosed => ExitCode::from(READER_GONE),
        CliError::Interrupted => ExitCode::from(INTERRUPTED),
        CliError::Late => ExitCode::from(of_category(Category::Timeout)),
        // What the checker says of a provider that it cannot test.
        CliError::NoChecker { .. } => ExitCode::from(USAGE),
        error if error.is_usage() => ExitCode::from(USAGE),
        _ => ExitCode::from(FAILED),
    }
}

/// Every exit code and what it means, in the order of their numbers.
#[must_use]
pub fn table() -> Vec<(String, String)> {
    let mut rows: Vec<(u8, String)> = vec![
        (0, "Success. A command that bash or shell_read ran, too, ended with 0.".to_owned()),
        (
            FAILED,
            "Something around the call failed, not the call itself: the plugin does not start, the \
             output cannot be written, the answer to apply was no, doctor or conform found a fault."
                .to_owned(),
        ),
        (USAGE, "The command line is wrong".to_owned()),
        (INTERRUPTED, "Ctrl-C".to_owned()),
        (READER_GONE, "Nobody reads the output any more.".to_owned()),
    ];
    for category in Category::ALL {
        let code = of_category(category);
        let name = category.name();
        match rows.iter_mut().find(|(known, _)| *known == code) {
            Some((_, meaning)) => {
                let _ = write!(meaning, ", or the call failed: {name}.");
            }
            None => rows.push((code, format!("The call failed: {name}."))),
        }
    }
    rows.sort_by_key(|(code, _)| *code);
    let mut rows: Vec<(String, String)> =
        rows.into_iter().map(|(code, meaning)| (code.to_string(), meaning)).collect();
    rows.push((
        "n".to_owned(),
        "The exit code of the command that bash or shell_read ran; 128 + n when signal n ended it. Where it has \
         to distinguish it from the codes above, use --json."
            .to_owned(),
    ));
    rows
}

/// The table for a page of help.
pub(crate) fn help() -> String {
    let mut text = "Exit codes:".to_owned();
    for (code, meaning) in table() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {code:>3}  {meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_distinguish_categories() {
        let mut codes: Vec<u8> = Category::ALL.into_iter().map(of_category).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Category::ALL.len());
        assert!(!codes.contains(&0) && !codes.contains(&FAILED));
        assert!(help().contains("  3  The call failed: not_found."), "{}", help());
        assert!(help().contains("The command line is wrong, or the call failed: invalid_arg"));
    }
}
