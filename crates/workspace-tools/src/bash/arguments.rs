//! What a call of bash is asked to do.

use std::time::Duration;

use serde_json::Value;

use super::shell::{self, LONGEST_ARGUMENT};
use super::{BashSettings, spec};
use tool_provider::{Payload, ToolError};

/// The arguments of one call, checked.
#[derive(Clone, Debug)]
pub(super) struct Arguments<'a> {
    pub(super) command: &'a str,
    pub(super) timeout: Duration,
    pub(super) cwd: Option<&'a str>,
    pub(super) stdin: Option<&'a str>,
    pub(super) description: Option<&'a str>,
}

impl<'a> Arguments<'a> {
    pub(super) fn parse(payload: &'a Payload, settings: &BashSettings) -> Result<Self, ToolError> {
        let command = spec::COMMAND
            .get(payload)
            .ok_or_else(|| ToolError::invalid_arguments("command: a string is required"))?;
        shell::check_text(command)?;
        let cwd = spec::CWD.get(payload);
        if cwd == Some("") {
            return Err(ToolError::invalid_arguments(
                "cwd is empty: leave it out to run in the working directory",
            ));
        }
        let timeout = match payload.get(spec::TIMEOUT_MS.name).and_then(Value::as_f64) {
            None => settings.timeout,
            Some(asked) => timeout(asked, settings.max_timeout)?,
        };
        Ok(Self {
            command,
            timeout,
            cwd,
            stdin: spec::STDIN.get(payload),
            description: spec::DESCRIPTION.get(payload).filter(|text| !text.trim().is_empty()),
        })
    }

    /// The shell's arguments after its own name, and what it reads.
    ///
    /// A command that is too long for an argument is the first thing that its shell reads, and what
    /// the command itself reads comes after it.
    pub(super) fn for_shell(&self) -> (String, Option<Vec<u8>>) {
        let stdin = self.stdin.map(str::as_bytes);
        let script = shell::script(self.command);
        if script.len() <= LONGEST_ARGUMENT {
            return (script, stdin.map(<[u8]>::to_vec));
        }
        match stdin {
            None => {
                let script = "eval \"exec </dev/null\n$(cat)\"";
                (script.to_owned(), Some(self.command.as_bytes().to_vec()))
            }
            Some(stdin) => {
                let script = format!("eval \"$(head -c {})\"", self.command.len());
                (script, Some([self.command.as_bytes(), stdin].concat()))
            }
        }
    }
}

fn timeout(asked: f64, most: Duration) -> Result<Duration, ToolError> {
    let most_ms = most.as_millis();
    if asked < 1.0 || asked.fract() != 0.0 {
        return Err(ToolError::invalid_arguments("timeout_ms must be a whole number ≥ 1"));
    }
    if asked > most.as_secs_f64() * 1000.0 {
        return Err(ToolError::invalid_arguments(format!(
            "timeout_ms is {asked}, and the most that this provider allows is {most_ms}"
        ))
        .with_hint(format!(
            "use {most_ms} or less, and split work that takes longer; the operator can raise \
             bash_max_timeout_ms"
        )));
    }
    Ok(Duration::from_secs_f64(asked / 1000.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payload(value: &Value) -> Payload {
        value.as_object().unwrap().clone()
    }

    fn parsed(value: &Value) -> Result<Duration, String> {
        let settings = BashSettings::default();
        Arguments::parse(&payload(value), &settings)
            .map(|arguments| arguments.timeout)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn nonsense_gets_a_clear_answer() {
        for (arguments, part) in [
            (json!({}), "command: a string is required"),
            (json!({"command": " \n\t"}), "command is empty"),
            (json!({"command": "echo a\0b"}), "NUL byte (at byte 6)"),
            (json!({"command": "true", "timeout_ms": 0}), "whole number ≥ 1"),
            (json!({"command": "true", "timeout_ms": 1.5}), "whole number ≥ 1"),
            (json!({"command": "true", "timeout_ms": 600_001}), "allows is 600000"),
        ] {
            let error = parsed(&arguments).unwrap_err();
            assert!(error.contains(part), "{arguments}: {error}");
        }
        assert_eq!(parsed(&json!({"command": "true"})), Ok(Duration::from_secs(120)));
        assert_eq!(
            parsed(&json!({"command": "true", "timeout_ms": 600_000})),
            Ok(Duration::from_secs(600))
        );
    }

    #[test]
    fn a_command_that_looks_like_an_option_is_still_a_command() {
        let payload = payload(&json!({"command": "-x", "stdin": "in"}));
        let settings = BashSettings::default();
        let arguments = Arguments::parse(&payload, &settings).unwrap();
        assert_eq!(arguments.for_shell(), (" -x".to_owned(), Some(b"in".to_vec())));
    }

    #[test]
    fn a_command_too_long_for_an_argument_is_read_instead() {
        let settings = BashSettings::default();
        let long = "x".repeat(LONGEST_ARGUMENT + 1);
        let without = payload(&json!({"command": long}));
        let (script, input) = Arguments::parse(&without, &settings).unwrap().for_shell();
        assert!(script.len() < 100 && input.unwrap().len() == long.len());
        let with = payload(&json!({"command": long, "stdin": "after"}));
        let (script, input) = Arguments::parse(&with, &settings).unwrap().for_shell();
        assert!(script.contains(&long.len().to_string()));
        assert!(input.unwrap().ends_with(b"xafter"));
    }
}
