//! Properties of a schema as the rows of a table.

use super::markdown::{code, prose};
use tool_provider::schema::{Kind, Presence, Property};

/// A row for each property and for each below it: name, type, presence, meaning. `presence` says
/// what it means that a property is there or is left out.
pub(super) fn rows(
    properties: &[Property],
    presence: &dyn Fn(Presence) -> String,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    add("", properties, presence, &mut rows);
    rows
}

fn add(
    prefix: &str,
    properties: &[Property],
    presence: &dyn Fn(Presence) -> String,
    rows: &mut Vec<Vec<String>>,
) {
    for property in properties {
        let name = format!("{prefix}{}", property.name);
        let schema = &property.schema;
        rows.push(vec![
            code(&name),
            type_name(&schema.kind),
            presence(property.presence),
            prose(&schema.description),
        ]);
        let (below, inner) = match &schema.kind {
            Kind::Array(items) => (format!("{name}[]."), &items.kind),
            kind => (format!("{name}."), kind),
        };
        if let Kind::Object(properties) = inner {
            add(&below, properties, presence, rows);
        }
    }
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Object(_) => "object".to_owned(),
        Kind::StringMap => "texts by name".to_owned(),
        Kind::String([]) => "text".to_owned(),
        Kind::String(words) => words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "),
        Kind::Number => "number".to_owned(),
        Kind::Whole { min: i64::MIN } => "whole number".to_owned(),
        Kind::Whole { min } => format!("whole number ≥ {min}"),
        Kind::Range { min, max } => format!("whole number, {min} to {max}"),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Array(items) => match &items.kind {
            Kind::Object(_) => "list of objects".to_owned(),
            Kind::String([]) => "list of texts".to_owned(),
            kind => format!("list of {}", type_name(kind)),
        },
    }
}
