//! What a client learns of the server and its tools.

use provider_workspace::backend::provider;
use serde_json::{Value, json};
use tool_provider::ToolKind;

use super::client::Client;
use crate::trials::Trial;

pub(super) fn trials() -> Vec<Trial> {
    trials![
        the_version_that_a_client_asks_for_is_spoken,
        every_tool_is_listed_as_it_describes_itself,
        only_an_open_network_makes_commands_reach_the_world,
        structured_results_fit_the_schema_that_is_listed,
        there_are_no_resources_and_no_prompts,
        the_newest_version_needs_no_initialize,
    ]
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.ask("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

fn the_version_that_a_client_asks_for_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::launched("root", &["--root", "."]);
        let answer = client.ask(
            "initialize",
            json!({
                "protocolVersion": version, "capabilities": {},
                "clientInfo": {"name": "story", "version": "1"},
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "provider-workspace");
        client.notify("notifications/initialized", json!({}));
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        client.end();
    }
}

fn every_tool_is_listed_as_it_describes_itself() {
    let mut client = Client::of_root();
    let listed = tools(&mut client);
    let specs = provider().schema();
    assert_eq!(listed.len(), specs.len());
    for (tool, spec) in listed.iter().zip(&specs) {
        assert_eq!(tool["name"], spec.name);
        assert_eq!(tool["description"], spec.description.as_str());
        assert!(!tool["title"].as_str().unwrap().is_empty());
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], spec.kind == ToolKind::DataSource, "{}", spec.name);
        assert_eq!(hints["destructiveHint"], spec.kind == ToolKind::Resource, "{}", spec.name);
        assert_eq!(hints["idempotentHint"], spec.idempotent, "{}", spec.name);
        assert_eq!(hints["openWorldHint"], false, "{}", spec.name);
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool.get("outputSchema").is_none(), "{}", spec.name);
    }
    let read = listed.iter().find(|tool| tool["name"] == "read_file").unwrap();
    assert_eq!(read["inputSchema"]["required"], json!(["path"]));
    assert_eq!(read["inputSchema"]["properties"]["limit"]["minimum"], 1);
    client.end();
}

/// The tools that run commands.
const RUN_COMMANDS: [&str; 3] = ["bash", "session_start", "session_write"];

fn only_an_open_network_makes_commands_reach_the_world() {
    for (network, expected) in [("allow", true), ("deny", false)] {
        let mut client = Client::with(&["--root", ".", "--network", network]);
        for tool in tools(&mut client) {
            let reaches = tool["annotations"]["openWorldHint"] == true;
            assert_eq!(
                reaches,
                expected && RUN_COMMANDS.contains(&tool["name"].as_str().unwrap()),
                "{network} {}",
                tool["name"]
            );
        }
        client.end();
    }
}

fn structured_results_fit_the_schema_that_is_listed() {
    let mut client = Client::with(&["--root", ".", "--structured"]);
    client.write("root/a.txt", "one\n");
    let listed = tools(&mut client);
    let read = listed.iter().find(|tool| tool["name"] == "read_file").unwrap();
    let result = client.result("read_file", json!({"path": "a.txt"}));
    let structured = result["structuredContent"].as_object().unwrap();
    assert_eq!(structured["text"], "1:one\n");
    for required in read["outputSchema"]["required"].as_array().unwrap() {
        assert!(structured.contains_key(required.as_str().unwrap()), "{required}");
    }
    let documented = read["outputSchema"]["properties"].as_object().unwrap();
    assert!(structured.keys().all(|name| documented.contains_key(name)), "{structured:?}");
    client.end();

    let mut plain = Client::of_root();
    plain.write("root/a.txt", "one\n");
    let result = plain.result("read_file", json!({"path": "a.txt"}));
    assert!(result.get("structuredContent").is_none());
    plain.end();
}

fn there_are_no_resources_and_no_prompts() {
    let mut client = Client::launched("root", &["--root", "."]);
    let capabilities = client.initialize()["capabilities"].clone();
    assert_eq!(capabilities, json!({"logging": {}, "tools": {"listChanged": true}}));
    for method in ["resources/list", "prompts/list"] {
        assert_eq!(client.ask(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    client.end();
}

fn the_newest_version_needs_no_initialize() {
    let mut client = Client::launched("root", &["--root", "."]);
    client.write("root/a.txt", "one\n");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
    });
    let listed = client.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), provider().schema().len());
    let call = json!({"name": "read_file", "arguments": {"path": "a.txt"}, "_meta": meta});
    let answer = client.ask("tools/call", call);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("1:one"));
    client.end();
}
