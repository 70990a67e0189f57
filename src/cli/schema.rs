//! `schema`: the tools and the configuration's keys.

use std::process::ExitCode;

use serde_json::Value;

use super::CliError;
use super::args::SchemaOptions;
use super::error::JsonOrigin;
use super::host::with_plugin;
use super::output::Output;
use super::paint::Ink;
use tool_provider::grpc::{Advertised, ToolClient};
use tool_provider::view::{Style, View};

pub(crate) async fn run(options: SchemaOptions, output: Output) -> Result<ExitCode, CliError> {
    let work = async |mut client: ToolClient, _| Ok(client.schema().await?);
    let advertised = with_plugin(&options.launch, output, work).await?;
    if options.json {
        let json = serde_json::to_string_pretty(&advertised).map_err(|source| CliError::Json {
            what: "schema",
            origin: JsonOrigin::Elsewhere,
            source,
        })?;
        output.print_json(&json)?;
    } else {
        let painter = output.painter();
        let mut text = painter.paint.ink(Ink::Bold, "Tools\n");
        text.push_str(&painter.view(&tools(&advertised)));
        text.push_str(&painter.paint.ink(Ink::Bold, "\nConfiguration\n"));
        text.push_str(&painter.view(&keys(&advertised.config)));
        output.print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tools(advertised: &Advertised) -> View {
    let one = |tool: &tool_provider::grpc::AdvertisedTool| {
        let traits = [
            tool.kind.as_str(),
            tool.risk.as_str(),
            if tool.safe { "concurrent" } else { "exclusive" },
            if tool.streaming { "streaming" } else { "one answer" },
            if tool.idempotent { "idempotent" } else { "not idempotent" },
        ];
        let required = tool.input_schema["required"].as_array().cloned().unwrap_or_default();
        let arguments = tool.input_schema["properties"].as_object().cloned().unwrap_or_default();
        let rows = arguments.iter().map(|(name, shape)| {
            let is_required = required.iter().any(|required| required == name);
            vec![
                format!("  {name}"),
                shape["type"].as_str().unwrap_or_default().to_owned(),
                if is_required { "required" } else { "" }.to_owned(),
                shape["description"].as_str().unwrap_or_default().to_owned(),
            ]
        });
        View::Group(vec![
            View::text(format!("{} ({})", tool.name, traits.join(", ")), Style::Bold),
            View::plain(tool.description.clone()),
            View::Table { headers: Vec::new(), rows: rows.collect() },
        ])
    };
    View::Group(advertised.tools.iter().map(one).collect())
}

fn keys(config: &Value) -> View {
    let mut rows = Vec::new();
    add_keys("", config, &mut rows);
    View::Table { headers: ["key", "type", "default", "meaning"].map(str::to_owned).to_vec(), rows }
}

fn add_keys(prefix: &str, keys: &Value, rows: &mut Vec<Vec<String>>) {
    for key in keys.as_array().into_iter().flatten() {
        let text = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
        let name = format!("{prefix}{}", text("name"));
        let default = match (&key["default"], key["required"].as_bool()) {
            (Value::Null, Some(true)) => "required".to_owned(),
            (Value::Null, _) => "unset".to_owned(),
            (default, _) => default.to_string(),
        };
        rows.push(vec![name.clone(), text("type"), default, text("description")]);
        add_keys(&format!("{name}."), &key["attributes"], rows);
    }
}
