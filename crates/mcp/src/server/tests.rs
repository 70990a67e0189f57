//! A provider whose tools depend on its configuration, served over a pipe in memory.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tool_provider::config::ConfigureError;
use tool_provider::schema::Schema;
use tool_provider::view::View;
use tool_provider::{
    Backend, Concurrency, Configuration, Context, Identity, Payload, Provider, RiskClass, Secrets,
    Slips, Threads, Tool, ToolError, ToolKind, ToolSpec,
};

use super::*;
use crate::{Log, Roots};

/// A tool that does nothing.
struct Named(ToolSpec);

fn named(name: &'static str) -> Arc<dyn Tool> {
    Arc::new(Named(ToolSpec {
        name,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: String::new(),
        input: Schema::object(Vec::new()),
        output: Schema::object(Vec::new()),
        slips: Slips::default(),
        streaming: false,
        concurrency: Concurrency::Exclusive,
        default_timeout: Duration::from_secs(60),
        idempotent: true,
    }))
}

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, _: &Payload, _: &Context<'_>) -> Result<Payload, ToolError> {
        Ok(Payload::new())
    }

    fn preview(&self, _: &Payload, _: &Context<'_>) -> Result<View, ToolError> {
        Ok(View::plain(""))
    }

    fn render_call(&self, _: &Payload) -> View {
        View::plain("")
    }

    fn render_result(&self, _: &Payload) -> View {
        View::plain("")
    }
}

/// It has a second tool where the configuration names roots.
struct TwoTools;

impl Backend for TwoTools {
    type State = ();

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![named("first")]
    }

    fn configure(&self, block: &Payload) -> Result<Configuration<()>, ConfigureError> {
        let mut tools = self.tools();
        if block["roots"].as_array().is_some_and(|roots| !roots.is_empty()) {
            tools.push(named("second"));
        }
        Ok(Configuration {
            state: (),
            tools,
            workers: Arc::new(Threads),
            secrets: Secrets::default(),
            max_concurrent_calls: 4,
        })
    }
}

/// The client's end.
struct Client {
    lines: Lines<BufReader<DuplexStream>>,
    output: DuplexStream,
}

impl Client {
    /// Of a server that asks for roots, and takes these where there are none.
    fn served(otherwise: &'static [&'static str]) -> Self {
        let identity = Identity { name: "x", version: "1", source: "", protocol_version: 1 };
        let provider = Arc::new(Provider::new(identity, TwoTools));
        let settings = Settings {
            name: "x",
            version: "1",
            title: "X",
            structured: Structured::No,
            open_world: Box::new(|_| false),
        };
        let roots = Roots::Asked(Box::new(move |mut roots| {
            if roots.is_empty() {
                roots = otherwise.iter().map(|&root| root.to_owned()).collect();
            }
            let mut block = Payload::new();
            block.insert("roots".to_owned(), roots.into());
            Ok(block)
        }));
        let (_, feed) = Log::new();
        let (input, output) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        tokio::spawn(serve(
            provider,
            settings,
            roots,
            feed,
            (input.1, output.0),
            std::future::pending(),
        ));
        Self { lines: BufReader::new(output.1).lines(), output: input.0 }
    }

    async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the server goes on");
                let message: Value = serde_json::from_str(&line).unwrap();
                if is_wanted(&message) {
                    return message;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wanted).await.expect("the message comes")
    }

    async fn ask(&mut self, id: i64, method: &str, params: &Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    async fn tools(&mut self, id: i64, params: &Value) -> usize {
        let answer = self.ask(id, "tools/list", params).await;
        answer["result"]["tools"].as_array().unwrap().len()
    }
}

#[tokio::test]
async fn a_configuration_that_changes_the_tools_is_told() {
    let mut client = Client::served(&[]);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"roots": {"listChanged": true}},
        "clientInfo": {"name": "c", "version": "1"},
    });
    client.ask(1, "initialize", &hello).await;
    assert_eq!(client.tools(2, &json!({})).await, 1);
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    for (id, roots, expected) in [(10, json!([{"uri": "file:///a"}]), 2), (11, json!([]), 1)] {
        let asked = client.until(|message| message["method"] == "roots/list").await;
        let result = json!({"roots": roots});
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        let changed = "notifications/tools/list_changed";
        client.until(|message| message["method"] == changed).await;
        assert_eq!(client.tools(id, &json!({})).await, expected);
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
    }
    // The same roots again change nothing.
    let asked = client.until(|message| message["method"] == "roots/list").await;
    let result = json!({"roots": []});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    let call = json!({"name": "first", "arguments": {}});
    client.send(json!({"jsonrpc": "2.0", "id": 20, "method": "tools/call", "params": call})).await;
    let next = client.until(|_| true).await;
    assert_eq!(next["id"], 20, "{next}");
}

#[tokio::test]
async fn the_newest_version_listens_for_a_change_of_the_tools() {
    let mut client = Client::served(&["/default"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listen = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen,
    });
    client.send(request).await;
    let acknowledged = "notifications/subscriptions/acknowledged";
    client.until(|message| message["method"] == acknowledged).await;
    assert_eq!(client.tools(2, &json!({"_meta": meta})).await, 1);
    // The first call configures.
    let call = json!({"name": "first", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call});
    client.send(call).await;
    let changed = "notifications/tools/list_changed";
    let told = client.until(|message| message["method"] == changed).await;
    let subscription = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(told["params"]["_meta"][subscription], 1, "{told}");
    assert_eq!(client.tools(4, &json!({"_meta": meta})).await, 2);
}
