//! What is advertised: tools, their shapes, the configuration's keys.

use serde_json::{Map, Value, json};

use crate::grpc::pb::config::v1 as config;
use crate::grpc::pb::schema::v1 as schema;
use crate::grpc::pb::tool::v1 as wire;
use crate::schema::{Kind, Presence, Property, Schema};
use crate::{Concurrency, RiskClass, ToolKind, ToolSpec};

/// The wire form of what a tool says of itself.
pub(crate) fn tool_schema(spec: &ToolSpec) -> wire::ToolSchema {
    let kind = match spec.kind {
        ToolKind::Resource => wire::ToolKind::Resource,
        ToolKind::DataSource => wire::ToolKind::DataSource,
    };
    let risk = match spec.risk {
        RiskClass::ReadOnly => wire::RiskClass::ReadOnly,
        RiskClass::Low => wire::RiskClass::Low,
        RiskClass::Moderate => wire::RiskClass::Moderate,
        RiskClass::High => wire::RiskClass::High,
    };
    let concurrency = match spec.concurrency {
        Concurrency::Exclusive => wire::ConcurrencySpec { safe: false, key_fields: Vec::new() },
        Concurrency::Safe { key_fields } => wire::ConcurrencySpec {
            safe: true,
            key_fields: key_fields.iter().map(|&field| field.to_owned()).collect(),
        },
    };
    wire::ToolSchema {
        name: spec.name.to_owned(),
        kind: kind.into(),
        risk: risk.into(),
        description: spec.description.clone(),
        input_schema: Some(shape(&spec.input)),
        output_schema: Some(shape(&spec.output)),
        streaming: spec.streaming,
        concurrency: Some(concurrency),
        default_timeout: spec.default_timeout.try_into().ok(),
        idempotent: spec.idempotent,
        terminates_turn: false,
    }
}

fn shape(shape_of: &Schema) -> schema::Schema {
    let mut wire =
        schema::Schema { description: shape_of.description.to_string(), ..Default::default() };
    let kind = match &shape_of.kind {
        Kind::Object(properties) => {
            for property in properties {
                wire.properties.insert(property.name.to_owned(), shape(&property.schema));
                if property.presence == Presence::Required {
                    wire.required.push(property.name.to_owned());
                }
            }
            schema::SchemaType::Object
        }
        Kind::StringMap => schema::SchemaType::Object,
        Kind::String(words) => {
            wire.enum_values = words.iter().map(|&word| word.to_owned()).collect();
            schema::SchemaType::String
        }
        Kind::Number | Kind::Whole { .. } | Kind::Range { .. } => schema::SchemaType::Number,
        Kind::Boolean => schema::SchemaType::Boolean,
        Kind::Array(items) => {
            wire.items = Some(Box::new(shape(items)));
            schema::SchemaType::Array
        }
    };
    wire.set_type(kind);
    wire
}

/// The wire form of the configuration's keys.
pub(crate) fn config_schema(properties: &[Property]) -> config::ConfigSchema {
    config::ConfigSchema { attributes: properties.iter().map(attribute).collect() }
}

fn attribute(property: &Property) -> config::ConfigAttribute {
    let Schema { kind, description } = &property.schema;
    let mut wire = config::ConfigAttribute {
        name: property.name.to_owned(),
        required: property.presence == Presence::Required,
        description: description.to_string(),
        ..Default::default()
    };
    if let Presence::Default(text) = property.presence {
        wire.default_json = Some(text.to_owned());
    }
    let kind = match kind {
        Kind::String(_) => config::AttrType::String,
        Kind::Number | Kind::Whole { .. } | Kind::Range { .. } => config::AttrType::Number,
        Kind::Boolean => config::AttrType::Bool,
        Kind::Array(_) => config::AttrType::ListString,
        Kind::StringMap => config::AttrType::MapString,
        Kind::Object(inner) => {
            wire.object_attributes = config_schema(inner).attributes;
            config::AttrType::Object
        }
    };
    wire.set_type(kind);
    wire
}

/// A wire schema in JSON Schema's own words.
pub(crate) fn schema_to_json(wire: &schema::Schema) -> Value {
    let mut json = Map::new();
    let kind = wire.r#type().as_str_name().trim_start_matches("SCHEMA_TYPE_").to_lowercase();
    json.insert("type".to_owned(), kind.into());
    if !wire.description.is_empty() {
        json.insert("description".to_owned(), wire.description.as_str().into());
    }
    if !wire.properties.is_empty() {
        let properties: Map<String, Value> = wire
            .properties
            .iter()
            .map(|(name, inner)| (name.clone(), schema_to_json(inner)))
            .collect();
        json.insert("properties".to_owned(), properties.into());
    }
    if !wire.required.is_empty() {
        json.insert("required".to_owned(), wire.required.clone().into());
    }
    if let Some(items) = &wire.items {
        json.insert("items".to_owned(), schema_to_json(items));
    }
    if !wire.enum_values.is_empty() {
        json.insert("enum".to_owned(), wire.enum_values.clone().into());
    }
    Value::Object(json)
}

/// The configuration's keys as JSON.
pub(crate) fn config_to_json(attributes: &[config::ConfigAttribute]) -> Value {
    let one = |attribute: &config::ConfigAttribute| {
        let kind = attribute.r#type().as_str_name().trim_start_matches("ATTR_TYPE_").to_lowercase();
        let mut json = json!({
            "name": attribute.name, "type": kind, "required": attribute.required,
            "description": attribute.description,
        });
        if let Some(text) = &attribute.default_json {
            json["default"] = serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into());
        }
        if !attribute.object_attributes.is_empty() {
            json["attributes"] = config_to_json(&attribute.object_attributes);
        }
        json
    };
    attributes.iter().map(one).collect()
}
