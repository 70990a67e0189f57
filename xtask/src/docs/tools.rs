//! `docs/tools.md`, from what each tool says of itself.

use super::MADE;
use super::markdown::{block, code, table};
use super::properties::rows;
use provider_workspace::backend::provider;
use tool_provider::schema::{Kind, Presence, Schema};
use tool_provider::{Concurrency, RiskClass, ToolKind, ToolSpec};

/// What to try by hand; a story runs each line, in this order, in a directory with the files of a
/// small project.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "read_file",
        "provider-workspace call read_file src/main.rs --limit 20\n\
         provider-workspace call read_file src/main.rs --offset -3 --no-line-numbers",
    ),
    (
        "write_file",
        "provider-workspace preview write_file notes/today.md --content '# Today'\n\
         provider-workspace apply write_file notes/today.md --content '# Today' --yes",
    ),
    (
        "edit_file",
        "provider-workspace preview edit_file src/main.rs --old-string main --new-string start\n\
         provider-workspace apply edit_file src/main.rs --old-string 'fn main' --new-string \
         'pub fn main' --yes",
    ),
    (
        "grep",
        "provider-workspace call grep 'fn \\w+' --glob '*.rs'\n\
         provider-workspace call grep --pattern TODO --ignore-case --json",
    ),
    ("glob", "provider-workspace call glob '**/*.rs'"),
    (
        "bash",
        "provider-workspace call bash ls -la\n\
         provider-workspace call bash 'wc -l src/*.rs' --timeout-ms 5000\n\
         provider-workspace call bash 'echo out; echo err >&2' --json",
    ),
    ("shell_read", "provider-workspace call shell_read 'rm -r src; git init; ls -A'"),
];

pub(super) fn page() -> String {
    let specs = provider().schema();
    let mut page = format!(
        "# Tools\n{MADE}\nWhat a model gets, under the default configuration. By hand each argument \
         is a flag, `old_string` as `--old-string`; `provider-workspace call TOOL --help` lists \
         them. [errors.md](errors.md) says how a call can fail, \
         [configuration.md](configuration.md) what an operator can set.\n\n"
    );
    page.push_str(&table(
        &[
            "tool",
            "kind",
            "risk",
            "beside other calls",
            "events before the last",
            "idempotent",
            "deadline",
        ],
        &specs.iter().map(overview).collect::<Vec<_>>(),
    ));
    for spec in &specs {
        page.push_str(&section(spec));
    }
    page
}

fn overview(spec: &ToolSpec) -> Vec<String> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    vec![
        format!("[{}](#{})", code(spec.name), spec.name),
        match spec.kind {
            ToolKind::Resource => "resource: it changes something",
            ToolKind::DataSource => "data source: it only reads",
        }
        .to_owned(),
        match spec.risk {
            RiskClass::ReadOnly => "read only",
            RiskClass::Low => "low",
            RiskClass::Moderate => "moderate",
            RiskClass::High => "high",
        }
        .to_owned(),
        match spec.concurrency {
            Concurrency::Exclusive => "none".to_owned(),
            Concurrency::Safe { key_fields: [] } => "any".to_owned(),
            Concurrency::Safe { key_fields } => {
                let keys: Vec<String> = key_fields.iter().map(|key| code(key)).collect();
                format!("any but those with the same {}", keys.join(", "))
            }
        },
        yes(spec.streaming),
        yes(spec.idempotent),
        format!("{} s", spec.default_timeout.as_secs()),
    ]
}

fn section(spec: &ToolSpec) -> String {
    let mut section = format!("\n## {}\n{}", spec.name, block("text", &spec.description));
    section.push_str("\nArguments:\n\n");
    section.push_str(&fields(&spec.input, "required"));
    section.push_str("\nResult:\n\n");
    section.push_str(&fields(&spec.output, "always"));
    if let Some((_, commands)) = EXAMPLES.iter().find(|(tool, _)| *tool == spec.name) {
        section.push_str("\nBy hand:\n\n");
        section.push_str(&block("sh", commands));
    }
    section
}

/// `must` is what is said of a field that has to be there.
fn fields(schema: &Schema, must: &str) -> String {
    let Kind::Object(properties) = &schema.kind else { return String::new() };
    let presence = |presence| match presence {
        Presence::Required => must.to_owned(),
        Presence::Optional => String::new(),
        Presence::Default(json) => code(json),
    };
    table(&["name", "type", "", "meaning"], &rows(properties, &presence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_something_to_try() {
        // By hand a session ends with the call that starts it.
        let is_by_hand = |name: &str| !name.starts_with("session_");
        for spec in provider().schema().into_iter().filter(|spec| is_by_hand(spec.name)) {
            assert!(EXAMPLES.iter().any(|(tool, _)| *tool == spec.name), "{}", spec.name);
        }
    }
}
