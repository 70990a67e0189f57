//! What each tool says of itself, in the protocol's own words.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tool_provider::schema::{Kind, Presence, Property, Schema};
use tool_provider::{RiskClass, ToolKind, ToolSpec};

use crate::{Settings, Structured};

/// The tools as a client lists them.
pub(crate) fn listed(specs: &[ToolSpec], settings: &Settings) -> Vec<Tool> {
    specs.iter().map(|spec| tool(spec, settings)).collect()
}

fn tool(spec: &ToolSpec, settings: &Settings) -> Tool {
    let title = title(spec.name);
    let annotations = ToolAnnotations::new()
        .read_only(spec.kind == ToolKind::DataSource)
        .destructive(spec.risk != RiskClass::ReadOnly)
        .idempotent(spec.idempotent)
        .open_world((settings.open_world)(spec));
    let tool = Tool::new(spec.name, spec.description.clone(), object(&spec.input))
        .with_title(title)
        .with_annotations(annotations);
    match settings.structured {
        Structured::No => tool,
        Structured::Yes => tool.with_raw_output_schema(object(&spec.output).into()),
    }
}

/// `Read file` of `read_file`.
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A schema whose root is an object, as arguments and results have it.
fn object(schema: &Schema) -> Map<String, Value> {
    match json_schema(schema) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn json_schema(schema: &Schema) -> Value {
    let mut json = match &schema.kind {
        Kind::Object(properties) => of_object(properties),
        Kind::StringMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::String([]) => json!({"type": "string"}),
        Kind::String(words) => json!({"type": "string", "enum": words}),
        Kind::Number => json!({"type": "number"}),
        Kind::Whole { min } if *min <= -tool_provider::schema::EXACT => json!({"type": "integer"}),
        Kind::Whole { min } => json!({"type": "integer", "minimum": min}),
        Kind::Range { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Array(items) => json!({"type": "array", "items": json_schema(items)}),
    };
    if !schema.description.is_empty() {
        json["description"] = schema.description.as_ref().into();
    }
    json
}

fn of_object(properties: &[Property]) -> Value {
    let shapes: Map<String, Value> = properties
        .iter()
        .map(|property| {
            let mut shape = json_schema(&property.schema);
            if let Presence::Default(text) = property.presence
                && let Ok(default) = serde_json::from_str::<Value>(text)
            {
                shape["default"] = default;
            }
            (property.name.to_owned(), shape)
        })
        .collect();
    let required: Vec<&str> = properties
        .iter()
        .filter(|property| property.presence == Presence::Required)
        .map(|property| property.name)
        .collect();
    let mut json = json!({"type": "object", "properties": shapes});
    if !required.is_empty() {
        json["required"] = required.into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_title() {
        assert_eq!(title("read_file"), "Read file");
        assert_eq!(title("grep"), "Grep");
        assert_eq!(title(""), "");
    }

    #[test]
    fn shapes_become_json_schema() {
        let schema = Schema::object(vec![
            Property::required("path", Kind::String(&[]), "Where."),
            Property::optional("mode", Kind::String(&["a", "b"]), ""),
            Property::with_default("most", Kind::Range { min: 1, max: 9 }, "5", ""),
            Property::optional("from", Kind::Whole { min: i64::MIN }, ""),
            Property::optional("env", Kind::StringMap, ""),
            Property::optional("all", Kind::Array(Box::new(Schema::new(Kind::Boolean, ""))), ""),
        ]);
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "most": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                "from": {"type": "integer"},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "all": {"type": "array", "items": {"type": "boolean"}},
            },
            "required": ["path"],
        });
        assert_eq!(json_schema(&schema), expected);
    }
}
