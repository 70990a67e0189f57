//! `docs/configuration.md`, from the table that the decoder and the advertised schema are made from.

use super::MADE;
use super::markdown::{code, prose, table};
use crate::provider::config::{ATTRIBUTES, Attribute, AttributeKind, AttributePresence};
use crate::service::plugin::LOG_VARIABLE;

pub(super) fn page() -> String {
    let mut rows = Vec::new();
    add("", ATTRIBUTES, &mut rows);
    format!(
        "# Configuration\n{MADE}\nThe keys of the provider's block in a kernel's `agent.hcl`; by \
         hand `--root`, `--read-only-root` and `--config JSON` set them. \
         [agent.hcl](../examples/agent.hcl) has them all with the defaults written out. An unknown \
         key is an error that names the nearest one, null means left out, and everything that is \
         wrong is reported at once. A second Configure replaces the first for new calls.\n\n{}\n\
         ## Environment\n\n{}\n\
         The command line also obeys `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM`, unless \
         `--color` says otherwise.\n",
        table(&["key", "type", "default", "meaning"], &rows),
        table(
            &["variable", "meaning"],
            &[vec![
                code(LOG_VARIABLE),
                "Which entries are logged: `error`, `warn`, `info` (the default), `debug`, `trace` \
                 or `off`."
                    .to_owned(),
            ]],
        ),
    )
}

fn add(prefix: &str, attributes: &[Attribute], rows: &mut Vec<Vec<String>>) {
    for attribute in attributes {
        let name = format!("{prefix}{}", attribute.name);
        rows.push(vec![
            code(&name),
            type_name(attribute.kind),
            match attribute.presence {
                AttributePresence::Required => "must be written".to_owned(),
                AttributePresence::Default(text) => code(text),
                AttributePresence::Unset => "unset".to_owned(),
            },
            prose(attribute.description),
        ]);
        if let AttributeKind::Object(inner) = attribute.kind {
            add(&format!("{name}."), inner, rows);
        }
    }
}

fn type_name(kind: AttributeKind) -> String {
    match kind {
        AttributeKind::Text => "text".to_owned(),
        AttributeKind::Choice(words) => {
            words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
        }
        AttributeKind::Whole { min, max } => format!("whole number, {min} to {max}"),
        AttributeKind::Bool => "true or false".to_owned(),
        AttributeKind::TextList => "list of texts".to_owned(),
        AttributeKind::TextMap => "texts by name".to_owned(),
        AttributeKind::Object(_) => "object".to_owned(),
    }
}
