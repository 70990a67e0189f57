//! A host's `agent.hcl`, as far as it decides whether this provider's tools reach a model: what of it
//! will not load, and why. The host says nothing where it loads nothing.

mod blocks;
mod configuration;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::CliError;
use super::files;
use super::hcl::{self, Block, Body};
use super::init::AGENT_FILE;
use super::tool_args::specs;
use tool_provider::Payload;
use tool_provider::view::{ListOrder, Style, View};

/// A file, and what of it will not load.
pub(crate) struct AgentFile {
    path: PathBuf,
    /// Whether it is HCL at all.
    is_parsed: bool,
    /// What the file calls this provider.
    name: Option<String>,
    problems: Vec<Problem>,
    /// What the provider's block says, as far as it is known and accepted.
    config: Option<Payload>,
}

/// Something that will not load.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    line: usize,
    /// What is wrong, and what would be right.
    text: String,
}

impl AgentFile {
    /// The file that is named, else the one that is there.
    ///
    /// # Errors
    /// [`CliError::File`] where it cannot be read, also for one that is named and not there.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Self>, CliError> {
        let path = named.unwrap_or(Path::new(AGENT_FILE));
        match files::read(path) {
            Ok(content) => Ok(Some(Self::check(path, &content))),
            Err(error) if named.is_none() && error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn check(path: &Path, content: &[u8]) -> Self {
        let parsed = hcl::parse(content);
        let mut file = Self {
            path: path.into(),
            is_parsed: parsed.is_ok(),
            name: None,
            problems: Vec::new(),
            config: None,
        };
        match parsed {
            Ok(body) => file.check_body(&body),
            Err(error) => file.report(error.line, error.problem),
        }
        file.problems.sort_by_key(|problem| problem.line);
        file
    }

    fn check_body(&mut self, body: &Body) {
        blocks::known(body, self);
        blocks::there_once(body, self);
        blocks::policies(body, self);
        blocks::required(body, self);
        let Some(ours) = blocks::our_name(body) else {
            return self.report(
                1,
                "nothing here names this provider: `provider-workspace init` prints what it needs",
            );
        };
        self.name = Some(ours.name.clone());
        let tools: Vec<&str> = specs().iter().map(|spec| spec.name).collect();
        blocks::profiles(body, &ours.name, &tools, self);
        match our_block(body, &ours.name) {
            Some(block) => {
                let directory = self.path.parent().unwrap_or(Path::new("")).to_owned();
                self.config = Some(configuration::check(block, &directory, self));
            }
            None => self.report(
                ours.line,
                format!("{0:?} has no block: add provider {0:?} with roots = [\".\"]", ours.name),
            ),
        }
    }

    fn report(&mut self, line: usize, text: impl Into<String>) {
        self.problems.push(Problem { line, text: text.into() });
    }

    /// What the provider's block says, as far as it is known and accepted.
    pub(crate) fn config(&self) -> Option<&Payload> {
        self.config.as_ref()
    }

    /// Whether the tools reach a model.
    pub(crate) fn loads(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn view(&self) -> Vec<View> {
        let path = self.path.display();
        if self.loads() {
            let name = self.name.as_deref().unwrap_or_default();
            return vec![View::text(format!("✓ {path}: loads as {name:?}"), Style::Success)];
        }
        let item = |Problem { line, text }: &Problem| View::plain(format!("{path}:{line}: {text}"));
        vec![
            View::text(format!("✗ {path} does not load as it should"), Style::Error),
            View::List {
                items: self.problems.iter().map(item).collect(),
                order: ListOrder::Unordered,
            },
        ]
    }

    pub(crate) fn json(&self) -> Json {
        let problem = |problem: &Problem| json!({"line": problem.line, "problem": problem.text});
        json!({
            "path": self.path.to_string_lossy(),
            "parsed": self.is_parsed,
            "name": self.name,
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    }
}

/// The first block of this name; another is reported as a duplicate.
fn our_block<'a>(body: &'a Body, name: &str) -> Option<&'a Block> {
    body.blocks("provider").find(|block| block.labels.first().is_some_and(|label| label == name))
}

#[cfg(test)]
mod tests;
