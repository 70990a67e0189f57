//! `mcp`: serves a client of the Model Context Protocol in this very process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::mcp::Structured;
use clap::Args;

use super::CliError;
use super::config_flags::ConfigFlags;
use super::{files, hcl};
use crate::mcp;
use tool_provider::Payload;

/// What is served, and how.
#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    /// Read keys of the configuration from this file: name = value as in the provider's block of
    /// an agent.hcl, or a JSON object. A key is given here or by its flag.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also give results as JSON, with a schema. Some clients show their model nothing else then.
    #[arg(long)]
    structured: bool,
    #[command(flatten)]
    flags: ConfigFlags,
}

pub(super) fn run(options: McpOptions) -> Result<ExitCode, CliError> {
    let McpOptions { config, structured, flags: ConfigFlags(flags) } = options;
    let mut block = match &config {
        Some(path) => keys(path, &files::read(path)?)?,
        None => Payload::new(),
    };
    for (key, value) in flags {
        // Neither may win: what a tool reaches should be what the person meant.
        if block.contains_key(&key) {
            return Err(CliError::KeyInFileToo { key });
        }
        block.insert(key, value);
    }
    let structured = if structured { Structured::Yes } else { Structured::No };
    mcp::run(block, structured)?;
    Ok(ExitCode::SUCCESS)
}

/// The keys that a file has.
fn keys(path: &Path, content: &[u8]) -> Result<Payload, CliError> {
    let refused = |problem: String| CliError::ConfigFile { path: path.to_owned(), problem };
    if content.trim_ascii_start().starts_with(b"{") {
        return serde_json::from_slice(content)
            .map_err(|error| refused(format!("not a JSON object: {error}")));
    }
    let body = hcl::parse(content).map_err(|error| refused(error.to_string()))?;
    if let Some(block) = body.blocks.first() {
        return Err(refused(format!(
            "line {}: a block stands here: write only what is in the provider's block, as name = value",
            block.line
        )));
    }
    if let Some(open) = body.attributes.iter().find(|attribute| !attribute.value.is_known()) {
        return Err(refused(format!(
            "line {}: {} has a value that only a host can evaluate: write the value itself",
            open.line, open.name
        )));
    }
    Ok(hcl::known(&body.attributes))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let keys = keys(Path::new("c"), text.as_bytes());
        keys.map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_has_keys_in_hcl_or_json_and_nothing_else() {
        let expected = json!({"roots": ["a"], "network": "deny"});
        assert_eq!(read("roots = [\"a\"]\nnetwork = \"deny\"\n"), Ok(expected.clone()));
        assert_eq!(read(r#" {"roots": ["a"], "network": "deny"}"#), Ok(expected));
        for (text, problem) in [
            ("provider \"workspace\" {\n}\n", "line 1: a block"),
            ("roots = [var.root]\n", "line 1: roots has a value"),
            ("{", "not a JSON object"),
            ("roots [", "line 1"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.contains(problem), "{message}");
        }
    }
}
