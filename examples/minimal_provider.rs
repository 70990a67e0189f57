//! A complete tool provider with one tool, `count_words`.
//!
//! What every provider needs comes from the library: the go-plugin handshake, the six calls of the
//! protocol, `roots` and the rest of the configuration, checked arguments, deadlines, cancellation,
//! classified errors, and the jail that keeps the tool inside the operator's folders. What is left
//! is here: who the provider is, what its tool takes and gives, and the work.
//!
//! A kernel launches the built program as it launches every provider. To see it work:
//!
//! ```text
//! cargo build --examples && cargo run --example kernel -- target/debug/examples/minimal_provider
//! ```

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use provider_workspace::provider::{Identity, Provider, Registry, Surroundings};
use provider_workspace::service::plugin::{self, COOKIE};
use provider_workspace::tools::schema::{Kind, Property, Schema};
use provider_workspace::tools::view::View;
use provider_workspace::tools::{
    Concurrency, Context, Payload, RiskClass, Tool, ToolError, ToolKind, ToolSpec,
};
use workspace_fs::{AccessTime, PathArgument};

fn main() -> ExitCode {
    plugin::main(provider, plugin::only_for_kernels)
}

fn provider() -> Provider {
    let tools = Registry::of(|| vec![Arc::new(CountWords::new())]);
    Provider::new(tools, || Surroundings::of_this_process(COOKIE.key)).with_identity(Identity {
        name: "minimal",
        version: env!("CARGO_PKG_VERSION"),
        source: "local/minimal-provider",
        protocol_version: 1,
    })
}

struct CountWords(ToolSpec);

impl CountWords {
    fn new() -> Self {
        // A model reads the description, a kernel the rest: what only reads needs no approval, and
        // any number of these calls may run at once.
        Self(ToolSpec {
            name: "count_words",
            kind: ToolKind::DataSource,
            risk: RiskClass::ReadOnly,
            description: "Counts the lines and words of a file.".to_owned(),
            input: Schema::object(vec![Property::file()]),
            output: Schema::object(vec![
                Property::required("lines", Kind::Whole { min: 0 }, "Line ends in the file."),
                Property::required("words", Kind::Whole { min: 0 }, "Runs without white space."),
            ]),
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
        // Inside the roots, or an error that says why not. The arguments have been checked.
        let text = arguments["path"].as_str().unwrap_or_default();
        let place = PathArgument { text, working_directory: context.working_directory };
        let file = context.workspace.open_file(place, AccessTime::Touch)?;
        let (mut lines, mut words, mut in_word) = (0, 0, false);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            // A kernel that cancels, or whose time is up, does not wait for the end of a large file.
            context.check()?;
            let filled = file.fill(&mut buffer)?;
            if filled == 0 {
                break;
            }
            for byte in &buffer[..filled] {
                lines += u64::from(*byte == b'\n');
                let begins = !byte.is_ascii_whitespace();
                words += u64::from(begins && !in_word);
                in_word = begins;
            }
        }
        // The host gets it with the call's identity, as a line of standard error and in its own log.
        tracing::info!(lines, words, "counted");
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
        // Stored results are rendered for ever: a field that is not there must not matter.
        let count = |name| payload.get(name).and_then(|value| value.as_u64()).unwrap_or_default();
        View::plain(format!("{} lines, {} words", count("lines"), count("words")))
    }
}
