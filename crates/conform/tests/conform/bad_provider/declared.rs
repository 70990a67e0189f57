//! What the provider says of itself.

use prost_types::Duration;

use super::fault::Fault;
use tool_provider::grpc::pb::common::v1::{Category, ProducerRef, PromptExpansionSpec};
use tool_provider::grpc::pb::config::v1::{AttrType, ConfigAttribute, ConfigSchema};
use tool_provider::grpc::pb::schema::v1::{Schema, SchemaType};
use tool_provider::grpc::pb::tool::v1::{
    ConcurrencySpec, GetSchemaResponse, RiskClass, ToolKind, ToolSchema,
};

pub(crate) fn producer(fault: &Fault) -> ProducerRef {
    let version = if fault.is("has-no-semantic-version") { "1.0" } else { "1.0.0" };
    let category = if fault.is("is-a-model") { Category::Model } else { Category::Tool };
    ProducerRef {
        name: if fault.is("has-no-name") { "" } else { "bad" }.to_owned(),
        version: version.to_owned(),
        source: if fault.is("names-a-url") { "https://example.org/tests/bad" } else { "" }
            .to_owned(),
        category: category.into(),
        protocol_version: 1,
    }
}

/// `asked` counts how often it was asked.
pub(crate) fn schema(fault: &Fault, asked: usize) -> GetSchemaResponse {
    let mut tools = vec![look(), put(), run(), ask()];
    let tool = &mut tools[0];
    match () {
        () if fault.is("is-not-stable") => tool.description.push_str(&asked.to_string()),
        () if fault.is("has-two-of-a-name") => tool.name = "put".to_owned(),
        () if fault.is("describes-nothing") => tool.description.clear(),
        () if fault.is("has-no-kind") => tool.kind = 0,
        () if fault.is("risks-by-looking") => tool.set_risk(RiskClass::Low),
        () if fault.is("has-a-wrong-input-schema") => {
            input(tool).properties.insert("nothing".to_owned(), Schema::default());
        }
        () if fault.is("has-no-output-schema") => tool.output_schema = None,
        () if fault.is("has-no-concurrency") => tool.concurrency = None,
        () if fault.is("has-a-wrong-key-field") => {
            tool.concurrency.get_or_insert_default().key_fields.push("nothing".to_owned());
        }
        () if fault.is("ends-the-turn-by-looking") => tool.terminates_turn = true,
        () if fault.is("has-no-time") => tool.default_timeout = Some(Duration::default()),
        () if fault.is("has-nothing") => tools.clear(),
        () if fault.is("has-no-key-field") => tools[1] = keyless(),
        () if fault.is("shuffles") => tools.rotate_left(asked % 4),
        () => {}
    }
    let mut hook_points = vec![1, 4];
    if fault.is("has-no-such-hook-point") {
        hook_points.push(9);
    }
    if fault.is("serves-no-hook") {
        hook_points.push(8);
    }
    GetSchemaResponse {
        tools,
        slash_commands: vec![PromptExpansionSpec {
            name: "look".to_owned(),
            description: "Looks.".to_owned(),
            template: "Look at {{args}}.".to_owned(),
        }],
        config_schema: Some(config(fault)),
        supported_hook_points: hook_points,
    }
}

fn config(fault: &Fault) -> ConfigSchema {
    let attribute = |name: &str, kind: AttrType| ConfigAttribute {
        name: name.to_owned(),
        r#type: kind.into(),
        description: name.to_owned(),
        ..ConfigAttribute::default()
    };
    let roots = ConfigAttribute { required: true, ..attribute("roots", AttrType::ListString) };
    let token = ConfigAttribute { sensitive: true, ..attribute("token", AttrType::String) };
    let mut verbose = attribute("verbose", AttrType::Bool);
    let default = if fault.is("has-a-wrong-default") { "\"no\"" } else { "false" };
    verbose.default_json = Some(default.to_owned());
    let mut attributes = vec![roots, token, verbose];
    if fault.is("has-two-keys-of-a-name") {
        attributes.push(attribute("verbose", AttrType::Bool));
    }
    ConfigSchema { attributes }
}

fn input(tool: &mut ToolSchema) -> &mut Schema {
    tool.input_schema.get_or_insert_default()
}

fn look() -> ToolSchema {
    ToolSchema {
        streaming: false,
        idempotent: true,
        ..tool("look", ToolKind::DataSource, RiskClass::ReadOnly, &["path"], Some(&[]))
    }
}

fn put() -> ToolSchema {
    let arguments = ["path", "content"];
    ToolSchema {
        idempotent: true,
        ..tool("put", ToolKind::Resource, RiskClass::Moderate, &arguments, Some(&["path"]))
    }
}

fn keyless() -> ToolSchema {
    ToolSchema {
        idempotent: false,
        concurrency: Some(ConcurrencySpec { safe: true, key_fields: Vec::new() }),
        ..put()
    }
}

fn run() -> ToolSchema {
    ToolSchema {
        streaming: true,
        concurrency: Some(ConcurrencySpec::default()),
        ..tool("run", ToolKind::Resource, RiskClass::High, &["command"], None)
    }
}

fn ask() -> ToolSchema {
    tool("ask", ToolKind::Interactive, RiskClass::ReadOnly, &["question"], None)
}

/// An operation whose arguments are texts. `keys` are the key fields of one that is safe.
fn tool(
    name: &str,
    kind: ToolKind,
    risk: RiskClass,
    arguments: &[&str],
    keys: Option<&[&str]>,
) -> ToolSchema {
    let concurrency = keys.map(|keys| ConcurrencySpec {
        safe: true,
        key_fields: keys.iter().map(|&key| key.to_owned()).collect(),
    });
    ToolSchema {
        name: name.to_owned(),
        kind: kind.into(),
        risk: risk.into(),
        description: format!("To {name}."),
        input_schema: Some(texts(arguments)),
        output_schema: Some(texts(&["text"])),
        concurrency,
        default_timeout: Some(Duration { seconds: 60, nanos: 0 }),
        ..ToolSchema::default()
    }
}

fn texts(names: &[&str]) -> Schema {
    let text = Schema { r#type: SchemaType::String.into(), ..Schema::default() };
    Schema {
        r#type: SchemaType::Object.into(),
        properties: names.iter().map(|&name| (name.to_owned(), text.clone())).collect(),
        required: names.iter().map(|&name| name.to_owned()).collect(),
        ..Schema::default()
    }
}
