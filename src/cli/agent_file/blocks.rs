//! What a host checks of the file's blocks, whoever's they are, and what it passes over in silence.

use super::AgentFile;
use crate::cli::hcl::{Attribute, Block, Body, Value};
use crate::cli::init::{LOCAL_NAME, NO_SOURCE, VERSIONS};
use crate::identity::{self, source};
use tool_provider::nearest::suggestion;

/// The kinds of block, and what names one of them.
const KINDS: [(&str, Option<&str>); 6] = [
    ("required_providers", None),
    ("provider", Some(LOCAL_NAME)),
    ("policy", Some("reads")),
    ("agent_profile", Some("default")),
    ("hook", Some("session-end")),
    ("settings", None),
];

/// Nothing but those blocks, each with its name.
pub(super) fn known(body: &Body, file: &mut AgentFile) {
    for Attribute { name, line, .. } in &body.attributes {
        file.report(
            *line,
            format!("{name} = … stands in no block: move it into the one it is for"),
        );
    }
    for Block { kind, labels, line, .. } in &body.blocks {
        let Some((_, example)) = KINDS.iter().find(|(known, _)| known == kind) else {
            let known = suggestion(kind, KINDS.iter().map(|(known, _)| *known));
            file.report(*line, format!("a host knows no block {kind:?}; {known}"));
            continue;
        };
        match (example, labels.len()) {
            (Some(_), 1) | (None, 0) => {}
            (Some(example), _) => {
                file.report(*line, format!("{kind} takes one name, such as {kind} {example:?}"));
            }
            (None, _) => file.report(*line, format!("{kind} takes no name: write {kind} {{")),
        }
    }
}

/// What may be there once only.
pub(super) fn there_once(body: &Body, file: &mut AgentFile) {
    for (index, block) in body.blocks.iter().enumerate() {
        let is_once = !matches!(block.kind.as_str(), "hook" | "policy");
        let is_same = |other: &&Block| other.kind == block.kind && other.labels == block.labels;
        if let Some(first) = body.blocks[..index].iter().find(is_same).filter(|_| is_once) {
            let label = block.labels.first().map(|label| format!(" {label:?}")).unwrap_or_default();
            let shown = format!("{}{label}", block.kind);
            let text = format!(
                "duplicate block: {shown} is on line {} already: keep one of the two",
                first.line
            );
            file.report(block.line, text);
        }
    }
}

/// Rules, as far as a wrong one stops a host.
pub(super) fn policies(body: &Body, file: &mut AgentFile) {
    for Block { line, body, .. } in body.blocks("policy") {
        for name in ["match", "action"].iter().filter(|name| body.attribute(name).is_none()) {
            file.report(
                *line,
                format!(
                    "a policy needs {name}: match = {{ kind = \"resource\" }}, action = \"ask\""
                ),
            );
        }
        word(body.attribute("action"), &["allow", "ask", "deny"], file);
        if let Some(Attribute { value: Value::Object(entries), .. }) = body.attribute("match") {
            let entry = |name: &str| entries.iter().find(|entry| entry.name == name);
            word(entry("kind"), &["data_source", "resource"], file);
            word(entry("risk"), &["read_only", "low", "moderate", "high", "critical"], file);
            for Attribute { name, line, .. } in entries {
                let known = ["kind", "provider", "tool_name", "risk"];
                if !known.contains(&name.as_str()) {
                    let text = format!("match passes over {name}; {}", suggestion(name, known));
                    file.report(*line, text);
                }
            }
        }
    }
}

/// One of a few words, where it is known.
fn word(attribute: Option<&Attribute>, known: &[&str], file: &mut AgentFile) {
    let Some(Attribute { name, line, value }) = attribute else { return };
    if let Some(found) = value.text().filter(|found| !known.contains(found)) {
        let known = suggestion(found, known.iter().copied());
        file.report(*line, format!("{name} = {found:?} is not known; {known}"));
    }
}

/// Where each provider comes from, and that each block has such an entry.
pub(super) fn required(body: &Body, file: &mut AgentFile) {
    for block in body.blocks("required_providers") {
        for Block { kind, line, .. } in &block.body.blocks {
            file.report(*line, format!("required_providers holds no blocks: write {kind} = {{"));
        }
        for entry in &block.body.attributes {
            release(entry, file);
        }
    }
    for block in body.blocks("provider") {
        let Some(name) = block.labels.first() else { continue };
        if entries(body).all(|entry| entry.name != *name) {
            let (source, versions) =
                if name == LOCAL_NAME { (NO_SOURCE, VERSIONS) } else { ("…", "…") };
            let text = format!(
                "provider {name:?} is not in required_providers, so a host loads nothing for it and \
                 says nothing: add {name} = {{ source = {source:?}, version = {versions:?} }} there"
            );
            file.report(block.line, text);
        }
    }
}

/// The entries of `required_providers`.
fn entries(body: &Body) -> impl Iterator<Item = &Attribute> {
    body.blocks("required_providers").flat_map(|block| &block.body.attributes)
}

fn release(Attribute { name, line, value }: &Attribute, file: &mut AgentFile) {
    let fields = match value {
        Value::Object(fields) => fields.as_slice(),
        Value::Unknown => return,
        _ => &[],
    };
    let field = |wanted: &str| fields.iter().find(|field| field.name == wanted);
    for wanted in ["source", "version"].iter().filter(|wanted| field(wanted).is_none()) {
        file.report(*line, format!("{name} in required_providers has no {wanted}: add one"));
    }
    if let Some(source) = field("source")
        && let Some(text) = source.value.text()
        && let Err(problem) = source::check(text)
    {
        file.report(source.line, format!("source: {problem}"));
    }
}

/// What the file calls this provider, and where.
pub(super) struct Ours {
    pub(super) name: String,
    pub(super) line: usize,
}

/// By the source that it comes from, else by its usual name.
pub(super) fn our_name(body: &Body) -> Option<Ours> {
    let is_our_source = |entry: &&Attribute| {
        let Value::Object(fields) = &entry.value else { return false };
        let source = fields.iter().find(|field| field.name == "source");
        source.and_then(|source| source.value.text()).is_some_and(|source| {
            source == identity::SOURCE || source.rsplit('/').next() == Some("provider-workspace")
        })
    };
    let has_our_name = |entry: &&Attribute| entry.name == LOCAL_NAME;
    let entry = entries(body).find(is_our_source).or_else(|| entries(body).find(has_our_name));
    let block = || super::our_block(body, LOCAL_NAME);
    entry
        .map(|entry| Ours { name: entry.name.clone(), line: entry.line })
        .or_else(|| block().map(|block| Ours { name: LOCAL_NAME.to_owned(), line: block.line }))
}

/// Whether a model has a tool of ours, and whether the tools that are named are there.
pub(super) fn profiles(body: &Body, name: &str, tools: &[&str], file: &mut AgentFile) {
    let mut is_given = false;
    for profile in body.blocks("agent_profile") {
        for model in profile.body.blocks("model") {
            primary(model, file);
        }
        match profile.body.attribute("tools").map(|attribute| (attribute.line, &attribute.value)) {
            None => {}
            Some((_, Value::List(items))) => {
                for item in items {
                    // What only the host can evaluate may well be one of ours.
                    is_given |= match item.value.text() {
                        Some(entry) => names_ours(item.line, entry, name, tools, file),
                        None => matches!(item.value, Value::Unknown),
                    };
                }
            }
            Some((_, Value::Unknown)) => is_given = true,
            Some((line, _)) => {
                file.report(line, format!("tools is a list: tools = [\"{name}.*\"]"))
            }
        }
    }
    if is_given {
        return;
    }
    let first = body.blocks("agent_profile").next();
    let text = format!(
        "no agent_profile names a tool of {name:?}, so no model has one: add {}tools = \
         [\"{name}.*\"]",
        if first.is_none() { "an agent_profile with " } else { "" }
    );
    file.report(first.map_or(1, |profile| profile.line), text);
}

/// Whether an entry of a profile's list is one of our tools.
fn names_ours(line: usize, entry: &str, name: &str, tools: &[&str], file: &mut AgentFile) -> bool {
    let (provider, tool) = entry.split_once('.').unwrap_or((entry, ""));
    if provider.is_empty() || tool.is_empty() {
        let text =
            format!("{entry:?} names no tool: write \"{provider}.*\" for all of a provider's");
        file.report(line, text);
        return provider == name;
    }
    if provider == name && tool != "*" && !tools.contains(&tool) {
        let known = suggestion(tool, tools.iter().copied());
        file.report(line, format!("{entry:?} is no tool of this provider; {known}"));
    }
    provider == name
}

/// A model without a first choice stops a host.
fn primary(model: &Block, file: &mut AgentFile) {
    if model.body.blocks("primary").next().is_none() {
        let text = "model has no primary: add primary { with provider and id, each on its line";
        file.report(model.line, text);
    }
    for Block { kind, line, body, .. } in &model.body.blocks {
        for key in ["provider", "id"].iter().filter(|key| body.attribute(key).is_none()) {
            file.report(*line, format!("{kind} has no {key}: add one"));
        }
    }
}
