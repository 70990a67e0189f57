//! `apply`: shows what a call would do, asks, and does exactly that.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use serde_json::json;

use super::CliError;
use super::args::ApplyOptions;
use super::call::{in_time, prepare, show_view, with_deadline};
use super::follow::{Format, follow};
use super::host::with_plugin;
use super::json;
use super::output::Output;
use super::tool_args::{ChangingTool, specs};
use tool_provider::grpc::ToolClient;
use tool_provider::schema::Kind;
use tool_provider::view::{Style, View};
use tool_provider::{Call, Payload};
use workspace_tools::change::EXPECTED_VERSION;
use workspace_tools::field::FILE;
use workspace_tools::read_file::spec as read_file;

pub(super) async fn run(options: ApplyOptions, output: Output) -> Result<ExitCode, CliError> {
    let approval = match options.yes {
        true => Approval::Given,
        false if io::stdin().is_terminal() && output.is_watched() => Approval::ToBeAsked,
        false => return Err(CliError::NobodyToAsk),
    };
    let ChangingTool(tool) = &options.call.tool;
    let target = &options.call.target;
    let format = Format::of(options.call.json);
    let (config, call) = prepare(tool, target)?;
    with_plugin(&target.launch, output, async |mut client, interruption| {
        client.configure(config).await?;
        let call = pinned(&mut client, call).await?;
        let view = client.preview(call.clone()).await?;
        match format {
            Format::Person => show_view(output, &view, format)?,
            Format::Json => {
                let event = json!({"event": "preview", "view": json::view(&view)});
                output.print_json(&event.to_string())?;
            }
        }
        if approval == Approval::ToBeAsked {
            if tells_of_failure(&view) {
                return Err(CliError::NotApplied { reason: "the call would fail" });
            }
            output.ask("Apply? [y/N]");
            if !is_yes().await? {
                return Err(CliError::NotApplied { reason: "the answer was no" });
            }
        }
        // Where no version says what was shown, another look does.
        if !call.arguments.contains_key(EXPECTED_VERSION.name)
            && client.preview(call.clone()).await? != view
        {
            return Err(CliError::NotApplied { reason: "it would no longer do what was shown" });
        }
        let call = with_deadline(call, target);
        let deadline = call.deadline;
        let ended = follow(client, call, format, output, &interruption).await;
        ended.map_err(|error| in_time(error, deadline))
    })
    .await
}

/// Whether a preview says that the call would fail: then there is nothing to say yes to.
fn tells_of_failure(view: &View) -> bool {
    match view {
        View::Text { style, .. } => *style == Style::Error,
        View::Group(parts) => parts.first().is_some_and(tells_of_failure),
        _ => false,
    }
}

/// Whether somebody has to say yes.
#[derive(Clone, Copy, PartialEq)]
enum Approval {
    Given,
    ToBeAsked,
}

/// A line behind the end of every file: asked for that, read_file reads the whole file, returns
/// nothing of it and returns its version.
const BEHIND_THE_END: i64 = 1 << 53;

/// The call with the version that its file has, where the tool takes one and the file has one. From
/// here on the preview is one of that version, and so is what is written.
async fn pinned(client: &mut ToolClient, mut call: Call) -> Result<Call, CliError> {
    let takes_version = specs().iter().any(|spec| {
        spec.name == call.tool
            && matches!(&spec.input.kind, Kind::Object(properties)
                if properties.iter().any(|property| property.name == EXPECTED_VERSION.name))
    });
    let is_pinned = call.arguments.contains_key(EXPECTED_VERSION.name);
    let (true, false, Some(path)) = (takes_version, is_pinned, FILE.get(&call.arguments)) else {
        return Ok(call);
    };
    let mut arguments = Payload::new();
    FILE.put(&mut arguments, path);
    read_file::OFFSET.put(&mut arguments, BEHIND_THE_END);
    read_file::LIMIT.put(&mut arguments, 1);
    let look = Call {
        id: "cli-0".to_owned(),
        tool: read_file::NAME.to_owned(),
        arguments,
        ..call.clone()
    };
    // A file that cannot be read has no version, and the preview says what is wrong with it.
    let (_, outcome) = client.invoke_to_end(look).await?;
    let result = outcome.unwrap_or_default();
    EXPECTED_VERSION.put_some(&mut call.arguments, read_file::VERSION.get(&result));
    Ok(call)
}

/// Waits for the answer on a thread of its own, so that Ctrl-C is heard meanwhile.
async fn is_yes() -> Result<bool, CliError> {
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map(|_| answer)
    });
    let failed = |source| CliError::Io { what: "read the answer", source };
    let answer = answer.await.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
