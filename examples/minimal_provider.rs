//! A complete tool provider with one tool, `count_words`, on two crates: `tool-provider` for the
//! contract and `goplugin` for the connection.
//!
//! The crates bring the go-plugin handshake, the six calls of the protocol, checked arguments,
//! deadlines, cancellation, classified errors and logs that reach the host. What is left is here:
//! who the provider is, what it may be configured with, what its tool takes and gives, and the work.
//! It opens the files that a caller names, with no jail and no roots: a provider that confines its
//! tools brings its own [`Workers`](tool_provider::Workers).
//!
//! A host launches the built program as it launches every provider. To see it work:
//!
//! ```text
//! cargo build --examples && cargo run --example host -- target/debug/examples/minimal_provider
//! ```
#![expect(clippy::disallowed_methods, reason = "this provider opens any file, and has no jail")]

use std::error::Error;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use goplugin::server::{CookieCheck, HandshakeEnvironment, Settings, hclog, serve};
use goplugin::{Broker, Cookie, Services};
use tool_provider::config::ConfigureError;
use tool_provider::grpc::{HostLog, ToolService, handshake};
use tool_provider::schema::{Kind, Property, Schema};
use tool_provider::view::View;
use tool_provider::{
    Backend, Concurrency, Configuration, Context, Identity, Payload, Provider, RiskClass, Secrets,
    Slips, Threads, Tool, ToolError, ToolKind, ToolSpec,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

const COOKIE: Cookie = Cookie { key: handshake::COOKIE_KEY, value: handshake::COOKIE_VALUE };

fn main() -> ExitCode {
    match HandshakeEnvironment::from_process(&COOKIE).launched_by_host(&COOKIE) {
        CookieCheck::Launched => {}
        CookieCheck::Missing | CookieCheck::Wrong => {
            let _ =
                writeln!(io::stderr(), "This program is a plugin: an agent's host launches it.");
            return ExitCode::FAILURE;
        }
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error, "cannot serve");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn Error>> {
    // Two ways lead to the host's log: the host's own service while it can be reached, and standard
    // error before and after.
    let sink = hclog::Sink::stderr()?;
    let lines = sink.clone();
    let host_log = HostLog::new(move |record| {
        lines.entry(&hclog::Entry {
            module: "minimal",
            level: record.level,
            time: record.time,
            message: &record.message,
            fields: &record.fields,
        });
    });
    tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(hclog::targets())
        .with(host_log.layer())
        .try_init()?;
    hclog::install_panic_hook(sink, "minimal");

    let identity = Identity {
        name: "minimal",
        version: env!("CARGO_PKG_VERSION"),
        source: "",
        protocol_version: 1,
    };
    let provider = Arc::new(Provider::new(identity, WordCounter));
    let service = ToolService::new(provider.clone(), host_log.clone()).into_server();
    let services = |broker: Broker| {
        host_log.dial_with(move || {
            let broker = broker.clone();
            async move { broker.dial(handshake::HOST_CALLBACKS).await.map_err(Into::into) }
        });
        Services::new().with(service)
    };
    serve(Settings::new(COOKIE, [handshake::PROTOCOL_VERSION]), services, |_| async {
        provider.shut_down().await;
        host_log.finish().await;
    })
    .await?;
    Ok(())
}

/// What the provider stands on: no configuration, one tool, and threads for its calls.
struct WordCounter;

impl Backend for WordCounter {
    type State = ();

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(CountWords::new())]
    }

    fn configure(&self, _: &Payload) -> Result<Configuration<()>, ConfigureError> {
        Ok(Configuration {
            state: (),
            tools: self.tools(),
            workers: Arc::new(Threads),
            secrets: Secrets::default(),
            max_concurrent_calls: 64,
        })
    }
}

struct CountWords(ToolSpec);

impl CountWords {
    fn new() -> Self {
        // A model reads the description, a host the rest: what only reads needs no approval, and
        // any number of these calls may run at once.
        Self(ToolSpec {
            name: "count_words",
            kind: ToolKind::DataSource,
            risk: RiskClass::ReadOnly,
            description: "Counts the lines and words of a file.".to_owned(),
            input: Schema::object(vec![Property::required(
                "path",
                Kind::String(&[]),
                "The file, absolute or relative to the working directory.",
            )]),
            output: Schema::result(
                &["count_words"],
                vec![
                    Property::required("lines", Kind::Whole { min: 0 }, "Line ends in the file."),
                    Property::required(
                        "words",
                        Kind::Whole { min: 0 },
                        "Runs without white space.",
                    ),
                ],
            ),
            slips: Slips { names: &[("path", &["file", "filepath"])], ..Slips::default() },
            streaming: false,
            concurrency: Concurrency::Safe { key_fields: &[] },
            default_timeout: Duration::from_secs(30),
            idempotent: true,
        })
    }
}

impl Tool for CountWords {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        // The arguments have been checked.
        let path = arguments["path"].as_str().unwrap_or_default();
        let base = Path::new(context.working_directory.unwrap_or("."));
        let failed = |error| ToolError::from_io(&format!("read {path}"), path, error);
        let mut file = File::open(base.join(path)).map_err(failed)?;
        let (mut lines, mut words, mut in_word) = (0, 0, false);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // A host that cancels, or whose deadline passes, does not wait for the end of a large
            // file.
            context.check()?;
            let filled = file.read(&mut buffer).map_err(failed)?;
            if filled == 0 {
                break;
            }
            for byte in &buffer[..filled] {
                lines += u64::from(*byte == b'\n');
                let is_text = !byte.is_ascii_whitespace();
                words += u64::from(is_text && !in_word);
                in_word = is_text;
            }
        }
        // The host gets it as a line of standard error, and through its own log.
        tracing::info!(session_id = context.session_id, lines, words, "counted");
        let counts = [("lines", lines), ("words", words)];
        Ok(counts.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect())
    }

    // What a person is shown before the call, for the call, and for its result.

    fn preview(&self, arguments: &Payload, _: &Context<'_>) -> Result<View, ToolError> {
        Ok(self.render_call(arguments))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        View::plain(format!("count the words of {}", arguments["path"]))
    }

    fn render_result(&self, payload: &Payload) -> View {
        // A host renders stored results at any later time: a field that is not there must not matter.
        let count = |name| payload.get(name).and_then(|value| value.as_u64()).unwrap_or_default();
        View::plain(format!("{} lines, {} words", count("lines"), count("words")))
    }
}
