//! A host on one page: what it does with a tool provider, from the launch to the end.
//!
//! ```text
//! cargo build && cargo run --example host                    # this crate's provider
//! cargo run --example host -- --yes                          # without asking
//! cargo run --example host -- path/to/another/provider
//! ```
//!
//! A host in Go does the same with hashicorp/go-plugin and its generated client; the library here
//! is both sides of that in Rust.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use goplugin::Services;
use goplugin::host::{Exit, Launch, Security};
use provider_workspace::plugin::{COOKIE, HOST_CALLBACKS, PROTOCOL_VERSION};
use serde_json::{Value, json};
use tool_provider::grpc::{
    AdvertisedTool, Failure, InvokeItem, ToolClient, host_callbacks, persisted_result,
};
use tool_provider::view::{DiffLine, DiffOp, View};
use tool_provider::{Call, Event, Partials, Payload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, programs): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|word| word.starts_with('-'));
    let approval = match options.iter().any(|option| option == "--yes") {
        true => Approval::Given,
        false => Approval::Asked,
    };
    // The provider is started in another directory than this one.
    let program = match programs.first() {
        Some(path) => std::path::absolute(path)?,
        None => beside_this_one()?,
    };

    // A directory of its own, so that there is something to change.
    let project = tempfile::tempdir()?;
    let directory = project.path();

    // LAUNCH. The cookie shows the program that a host started it; it prints one line that says
    // where it listens. With AutoMTLS both sides make certificates for this one connection. Of our
    // own environment it gets what `Launch` passes on and no more.
    let plugin = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
        .security(Security::AutoMtls)
        .current_dir(directory)
        .start()
        .await
        .map_err(|error| format!("{error}; `cargo build` makes this crate's own provider"))?;
    // The provider calls back to log; a host files such entries under the session.
    let log = host_callbacks(|entry| say(&format!("  [{}] {}", entry.level, entry.message)));
    plugin.serve_callbacks(HOST_CALLBACKS, Services::new().with(log)).await?;
    let mut tools = ToolClient::new(plugin.channel());

    // DESCRIBE and SCHEMA. Who it is, for the lock file; what it offers, for the model, whose
    // arguments are to fit each tool's schema.
    let producer = tools.describe().await?;
    say(&format!("{} {} from {}", producer.name, producer.version, producer.source));
    let advertised: BTreeMap<String, AdvertisedTool> =
        tools.schema().await?.tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();

    // CONFIGURE. The provider's block of agent.hcl, as JSON. Everything that is wrong with it comes
    // back at once. A real host leaves `sandbox` at "enforce"; this example is to run everywhere.
    tools.configure(object(json!({"roots": ["."], "sandbox": "best_effort"}))?).await?;

    // PLAN. What a model asked for in one turn, as far as this provider has it.
    let planned = plan().into_iter().filter(|(name, _)| advertised.contains_key(*name));
    for (number, (name, arguments)) in planned.enumerate() {
        let tool = &advertised[name];
        let call = Call {
            id: format!("call-{number}"),
            tool: name.to_owned(),
            arguments: object(arguments)?,
            session_id: "example".to_owned(),
            turn_id: "turn-1".to_owned(),
            // What relative paths start from.
            working_directory: Some(directory.display().to_string()),
            // After this the host does not listen any more; the provider ends a little before.
            deadline: tool.default_timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms)),
            partials: Partials::Read,
        };

        // PREVIEW. Changes nothing, and shows the very bytes that the call would write.
        say(&format!("\n{} {name}", call.id));
        say(&shown(&tools.preview(call.clone()).await?));

        // APPROVE. What only reads needs nobody's word; what changes something does.
        if tool.kind == "resource" && !approval.given()? {
            continue;
        }

        // INVOKE. A stream: output and progress as they come, then exactly one result or failure.
        // Letting go of the stream cancels the call and ends all that it started.
        let id = call.id.clone();
        let outcome = invoke(&mut tools, call).await?;

        // RENDER. A host stores what came of the call, and has it shown then and years later.
        let stored = persisted_result(&id, &outcome);
        say(&shown(&tools.render("1", stored).await?));
    }

    // SHUT DOWN. Asked to end, and given two seconds for it; nothing that it started outlives it.
    match plugin.kill().await {
        Exit::Graceful(status) => say(&format!("\nended: {status}")),
        Exit::Killed => say("\nkilled: it did not end in time"),
    }
    Ok(())
}

fn plan() -> Vec<(&'static str, Value)> {
    vec![
        (
            "write_file",
            json!({"path": "poem.txt", "content": "Roses are red,\nviolets are blue.\n"}),
        ),
        (
            "edit_file",
            json!({"path": "poem.txt", "old_string": "violets", "new_string": "the violet's"}),
        ),
        ("read_file", json!({"path": "poem.txt"})),
        ("bash", json!({"command": "wc -w poem.txt; echo errors are shown, too >&2; exit 3"})),
        // A model's slip: the answer says what is wrong and what to do.
        ("read_file", json!({"path": "peom.txt"})),
        ("count_words", json!({"path": "no-such-file.txt"})),
    ]
}

async fn invoke(
    tools: &mut ToolClient,
    call: Call,
) -> Result<Result<Payload, Failure>, Box<dyn Error>> {
    let mut events = tools.invoke(call).await?;
    while let Some(event) = events.next().await {
        match event? {
            InvokeItem::Event(Event::Output { data, .. }) => {
                say(&format!("  > {}", String::from_utf8_lossy(&data).trim_end()));
            }
            InvokeItem::Event(Event::Progress { message, .. }) => say(&format!("  … {message}")),
            InvokeItem::Event(Event::Exit { code, .. }) => say(&format!("  exit code {code}")),
            InvokeItem::Event(Event::Partial(_)) => {}
            InvokeItem::Result(result) => return Ok(Ok(result)),
            InvokeItem::Failure(failure) => return Ok(Err(failure)),
        }
    }
    Err("the call ended without a result".into())
}

/// Whether a person is asked before something changes.
enum Approval {
    Asked,
    Given,
}

impl Approval {
    fn given(&self) -> io::Result<bool> {
        if matches!(self, Approval::Given) {
            return Ok(true);
        }
        say("apply? [y/N]");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(answer.trim() == "y")
    }
}

/// The program that `cargo build` left beside the examples.
fn beside_this_one() -> io::Result<PathBuf> {
    let mut program = std::env::current_exe()?;
    program.pop();
    program.set_file_name("provider-workspace");
    Ok(program)
}

/// A tree as text. What a host does not know of it, it leaves out: a later provider may send more
/// kinds of nodes.
fn shown(view: &View) -> String {
    let all = |views: &[View]| views.iter().map(shown).collect::<Vec<_>>().join("\n");
    match view {
        View::Text { content, .. } | View::Code { content, .. } => indented(content),
        View::Diff(hunks) => {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            let marked = lines.map(|DiffLine { op, text }| match op {
                DiffOp::Context => format!("  {text}"),
                DiffOp::Add => format!("+ {text}"),
                DiffOp::Remove => format!("- {text}"),
            });
            indented(&marked.collect::<Vec<_>>().join("\n"))
        }
        View::Group(views) | View::List { items: views, .. } => all(views),
        View::Collapsible { summary, children, .. } => {
            format!("{}\n{}", indented(summary), indented(&all(children)))
        }
        _ => indented("(something that this host does not show)"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn object(value: Value) -> Result<Payload, serde_json::Error> {
    serde_json::from_value(value)
}

fn say(text: &str) {
    // There is no way to report that standard output is gone.
    let _ = writeln!(io::stdout(), "{text}");
}
