//! This provider's own block: what Configure would refuse of it, with its line.

use std::path::Path;

use serde_json::Value as Json;

use super::AgentFile;
use crate::backend::WorkspaceBackend;
use crate::cli::hcl::{Attribute, Block, Value, known};
use crate::config::properties;
use tool_provider::Payload;
use tool_provider::config::{Fault, FaultKind};
use tool_provider::nearest::suggestion;

/// The keys that name directories or files, which a host in another directory would find elsewhere.
const PATHS: [&str; 4] = ["roots", "read_only_roots", "bash_read", "bash_write"];

/// The one block that a host itself takes out of a provider's.
const ENVIRONMENT: &str = "environment";

/// Reports what will be refused; returns what is left. `directory` is where the host runs.
pub(super) fn check(block: &Block, directory: &Path, file: &mut AgentFile) -> Payload {
    blocks_within(block, file);
    let mut config = known(&block.body.attributes);
    config.iter_mut().for_each(|(key, value)| settle(key, value, directory));
    for name in variables(block) {
        // The host sets it, so it need not be set here.
        if let Some(Json::Array(names)) = config.get_mut("secret_env") {
            names.retain(|secret| secret != &name);
        }
    }
    let roots = block.body.attribute("roots");
    if roots.is_some_and(|roots| !roots.value.is_known()) && is_empty(config.get("roots")) {
        // They are there, and only the host can evaluate them.
        config.insert("roots".to_owned(), vec![here(directory)].into());
    }
    let Err(error) = WorkspaceBackend::of_this_process().prepare(&config) else { return config };
    for fault in error.faults().iter().filter(|fault| fault.kind == FaultKind::Written) {
        let key = fault.key.split(['.', '[']).next().unwrap_or_default();
        file.report(line_of(fault, key, block, directory), fault.to_string());
        config.remove(key);
    }
    if !config.contains_key("roots") {
        config.insert("roots".to_owned(), vec![here(directory)].into());
    }
    config
}

fn is_empty(value: Option<&Json>) -> bool {
    value.and_then(Json::as_array).is_none_or(Vec::is_empty)
}

fn here(directory: &Path) -> Json {
    let is_current = directory.as_os_str().is_empty();
    if is_current { ".".into() } else { directory.to_string_lossy().into() }
}

/// A key's value as it is meant where the host runs.
fn settle(key: &str, value: &mut Json, directory: &Path) {
    if let Some(items) = value.as_array_mut().filter(|_| PATHS.contains(&key)) {
        for item in items {
            if let Some(path) = item.as_str() {
                *item = settled(path, directory).into();
            }
        }
    }
}

fn settled(path: &str, directory: &Path) -> String {
    match path.starts_with('~') || directory.as_os_str().is_empty() || path.trim().is_empty() {
        true => path.to_owned(),
        false => directory.join(path).to_string_lossy().into_owned(),
    }
}

/// Blocks within the block: the host takes one, the provider none.
fn blocks_within(block: &Block, file: &mut AgentFile) {
    let mut first = None;
    for Block { kind, line, .. } in &block.body.blocks {
        let keys = properties();
        if kind == ENVIRONMENT {
            match first {
                None => first = Some(*line),
                Some(first) => file.report(
                    *line,
                    format!("{ENVIRONMENT} is on line {first} already: keep one of the two"),
                ),
            }
        } else if keys.iter().any(|key| key.name == kind) {
            file.report(*line, format!("{kind} is a key, not a block: write {kind} = {{"));
        } else {
            let known = keys.iter().map(|key| key.name).chain([ENVIRONMENT]);
            file.report(*line, format!("{kind}: unknown block; {}", suggestion(kind, known)));
        }
    }
}

/// The variables that the host sets for the provider.
fn variables(block: &Block) -> impl Iterator<Item = Json> {
    let environments = block.body.blocks(ENVIRONMENT);
    environments.flat_map(|block| &block.body.attributes).map(|entry| entry.name.as_str().into())
}

/// Where what is at fault is written: an item or an entry, else its key, else the block.
fn line_of(fault: &Fault, key: &str, block: &Block, directory: &Path) -> usize {
    let Some(Attribute { line, value, .. }) = block.body.attribute(key) else { return block.line };
    let rest = &fault.key[key.len()..];
    let part = match value {
        Value::List(items) => {
            let mut known = items.iter().filter(|item| item.value.known().is_some());
            match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse().ok()) {
                Some(index) => known.nth(index),
                // Of a directory that is not there, the message has the name.
                None => known.find(|item| {
                    let text =
                        item.value.text().map(|path| format!("{:?}", settled(path, directory)));
                    text.is_some_and(|text| fault.problem.starts_with(&text))
                }),
            }
            .map(|item| item.line)
        }
        Value::Object(entries) => {
            let name = rest.strip_prefix('.').unwrap_or_default();
            entries.iter().find(|entry| entry.name == name).map(|entry| entry.line)
        }
        _ => None,
    };
    part.unwrap_or(*line)
}
