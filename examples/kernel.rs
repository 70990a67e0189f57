//! A kernel in a page: launches the provider as a plugin, configures it, plans two calls, shows
//! what they would do, asks, runs them, and shows what came of it.
//!
//! ```text
//! cargo build && cargo run --example kernel
//! ```

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};

use provider_workspace::goplugin::host::{Launch, Security};
use provider_workspace::provider::Call;
use provider_workspace::service::plugin::{COOKIE, KERNEL_CALLBACKS, PROTOCOL_VERSION};
use provider_workspace::service::{ToolClient, kernel_callbacks, persisted_result};
use provider_workspace::tools::Payload;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Launch: the handshake, and a way back for the plugin's log.
    let mut program = std::env::current_exe()?;
    program.pop();
    program.set_file_name("provider-workspace");
    let plugin = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
        .security(Security::AutoMtls)
        .start()
        .await?;
    let log = kernel_callbacks(|entry| say(&format!("  [{}] {}", entry.level, entry.message)));
    plugin.serve_callbacks(KERNEL_CALLBACKS, log).await?;
    let mut tools = ToolClient::new(plugin.channel());
    let producer = tools.describe().await?;
    say(&format!("launched {} {} from {}", producer.name, producer.version, producer.source));

    // Configure: the provider's block of agent.hcl, as JSON.
    let schema = tools.schema().await?;
    tools.configure(object(json!({"roots": ["."], "sandbox": "best_effort"}))?).await?;

    // Plan: what a model asked for. What changes something is shown first, and asked for.
    let plan = [
        ("read_file", json!({"path": "Cargo.toml", "limit": 5})),
        ("read_file", json!({"path": "no/such/file"})),
    ];
    for (number, (name, arguments)) in plan.into_iter().enumerate() {
        let call = Call {
            id: format!("call-{number}"),
            tool: name.to_owned(),
            arguments: object(arguments)?,
            session_id: "example".to_owned(),
            turn_id: "1".to_owned(),
            working_directory: Some(std::env::current_dir()?.display().to_string()),
            deadline: None,
        };
        say(&format!("\n{}: {:#?}", call.id, tools.preview(call.clone()).await?));
        let changes = schema.tools.iter().any(|tool| tool.name == name && tool.kind == "resource");
        if changes && !approved()? {
            continue;
        }
        // Invoke, store what came of it as a kernel does, and have it rendered.
        let id = call.id.clone();
        let (events, outcome) = tools.invoke_to_end(call).await?;
        say(&format!("{} events before the last", events.len()));
        let stored = persisted_result(&id, &outcome);
        say(&format!("{:#?}", tools.render("1", stored).await?));
    }
    plugin.kill().await;
    Ok(())
}

fn approved() -> io::Result<bool> {
    say("apply? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "y")
}

fn object(value: Value) -> Result<Payload, serde_json::Error> {
    serde_json::from_value(value)
}

fn say(text: &str) {
    // Nobody can be told that standard output is gone.
    let _ = writeln!(io::stdout(), "{text}");
}
