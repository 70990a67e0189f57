//! The file that tells the checker what it cannot know: a configuration, and calls.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use tool_provider::Payload;

/// What a text stands for the directory that the provider is tried on.
const DIRECTORY: &str = "{folder}";

/// The file's content. Every text in `config` and in calls may hold `{folder}`, which stands for the
/// directory that the provider is tried on.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The provider's block, as JSON. Where it is left out, one is made from the ConfigSchema.
    pub(crate) config: Option<Payload>,
    /// Variables of the provider's process, as an operator's `environment` block sets.
    pub(crate) environment: BTreeMap<String, String>,
    /// Calls, by operation.
    pub(crate) calls: BTreeMap<String, Samples>,
}

/// Arguments of one operation. What is left out is made from the operation's schema, where that is
/// possible.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Samples {
    /// Arguments that succeed.
    pub(crate) good: Option<Payload>,
    /// Arguments that fit the schema and fail.
    pub(crate) failing: Option<Payload>,
    /// Arguments of a call that runs for minutes. While it runs the file `ticks` in the directory may
    /// grow: then the call has begun when there is one, and has ended when it stays.
    pub(crate) long: Option<Payload>,
    /// Whether the operation is a child process, which reports an exit status.
    pub(crate) process: Option<bool>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("cannot read {file}: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("{file} is no configuration for conform: {source}")]
    Json { file: String, source: serde_json::Error },
}

impl Settings {
    /// Reads a file, and puts the directory in.
    pub(crate) fn read(path: &Path, directory: &str) -> Result<Self, SettingsError> {
        let file = path.display().to_string();
        let text = super::fixture::file_text(path)
            .map_err(|source| SettingsError::Read { file: file.clone(), source })?;
        Self::parse(&text, directory).map_err(|source| SettingsError::Json { file, source })
    }

    fn parse(text: &str, directory: &str) -> Result<Self, serde_json::Error> {
        let mut settings: Settings = serde_json::from_str(text)?;
        let samples = settings.calls.values_mut();
        let arguments =
            samples.flat_map(|one| [&mut one.good, &mut one.failing, &mut one.long]).flatten();
        for object in arguments.chain(settings.config.as_mut()) {
            object.values_mut().for_each(|value| put_directory(value, directory));
        }
        Ok(settings)
    }
}

fn put_directory(value: &mut Value, directory: &str) {
    match value {
        Value::String(text) => *text = text.replace(DIRECTORY, directory),
        Value::Array(items) => items.iter_mut().for_each(|item| put_directory(item, directory)),
        Value::Object(map) => map.values_mut().for_each(|item| put_directory(item, directory)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_put_in_everywhere_and_slips_are_refused() {
        let text = r#"{"config": {"roots": ["{folder}/a"]}, "environment": {"X": "1"},
            "calls": {"t": {"good": {"p": {"q": "{folder}"}}, "process": true}}}"#;
        let settings = Settings::parse(text, "/f").unwrap();
        assert_eq!(settings.config.unwrap()["roots"][0], "/f/a");
        assert_eq!(settings.calls["t"].good.as_ref().unwrap()["p"]["q"], "/f");
        assert!(Settings::parse(r#"{"call": {}}"#, "/f").is_err());
        assert!(Settings::parse(r#"{"calls": {"t": {"bad": {}}}}"#, "/f").is_err());
    }

    #[test]
    fn the_example_can_be_read() {
        let text = include_str!("../../../examples/conform.json");
        assert!(!Settings::parse(text, "/f").unwrap().calls.is_empty());
    }
}
