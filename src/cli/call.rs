//! `call`, `preview` and `render`.

use std::process::ExitCode;
use std::time::Instant;

use super::CliError;
use super::args::{CallOptions, RenderOptions, TargetOptions};
use super::files::{Source, origin_of};
use super::follow::{Format, follow};
use super::host::{configuration, with_plugin};
use super::json;
use super::output::Output;
use super::payload;
use super::tool_args::{AnyTool, ToolCall};
use tool_provider::grpc::ClientError;
use tool_provider::view::View;
use tool_provider::{Call, Partials, Payload};

pub(super) async fn call(
    options: CallOptions<AnyTool>,
    output: Output,
) -> Result<ExitCode, CliError> {
    let CallOptions { json, target, tool: AnyTool(tool) } = options;
    let (config, call) = prepare(&tool, &target)?;
    with_plugin(&target.launch, output, async |mut client, interruption| {
        client.configure(config).await?;
        let call = with_deadline(call, &target);
        let deadline = call.deadline;
        let ended = follow(client, call, Format::of(json), output, &interruption).await;
        ended.map_err(|error| in_time(error, deadline))
    })
    .await
}

pub(super) async fn preview(
    options: CallOptions<AnyTool>,
    output: Output,
) -> Result<ExitCode, CliError> {
    let CallOptions { json, target, tool: AnyTool(tool) } = options;
    let (config, call) = prepare(&tool, &target)?;
    let view = with_plugin(&target.launch, output, async |mut client, _| {
        client.configure(config).await?;
        let call = with_deadline(call, &target);
        let deadline = call.deadline;
        client.preview(call).await.map_err(|error| in_time(error.into(), deadline))
    })
    .await?;
    show_view(output, &view, Format::of(json))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn render(options: RenderOptions, output: Output) -> Result<ExitCode, CliError> {
    let bytes = Source::default().bytes(&options.payload)?;
    let (version, payload) = match options.schema_version.as_str() {
        "json" | "" => payload::of_json(bytes, origin_of(&options.payload))?,
        other => (other, bytes),
    };
    let view = with_plugin(&options.launch, output, async |mut client, _| {
        Ok(client.render(version, payload).await?)
    })
    .await?;
    show_view(output, &view, Format::of(options.json))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show_view(output: Output, view: &View, format: Format) -> Result<(), CliError> {
    match format {
        Format::Person => output.print(&output.painter().view(view)),
        Format::Json => output.print_json(&json::view(view).to_string()),
    }
}

/// The time that the options give starts when the call does.
pub(super) fn with_deadline(call: Call, options: &TargetOptions) -> Call {
    let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    Call { deadline, ..call }
}

/// The error that ended a call with this deadline. A connection that was given up at the deadline
/// says no more than that it was given up.
pub(super) fn in_time(error: CliError, deadline: Option<Instant>) -> CliError {
    let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
    match error {
        CliError::Client(ClientError::Status(_) | ClientError::Unfinished) if is_over => {
            CliError::Late
        }
        other => other,
    }
}

/// The configuration and the call that the options mean.
pub(super) fn prepare(
    tool: &ToolCall,
    options: &TargetOptions,
) -> Result<(Payload, Call), CliError> {
    // Found out before anything is waited for.
    if tool.reads_stdin() && options.roots.config.as_deref() == Some("-") {
        return Err(CliError::StdinTwice);
    }
    let mut source = Source::default();
    let arguments = tool.arguments(&mut source)?;
    let config = configuration(&options.roots, &mut source)?;
    let working_directory = options.cwd.as_deref().map(absolute).transpose()?;
    let call = Call {
        id: "cli-1".to_owned(),
        tool: tool.tool.clone(),
        arguments,
        session_id: options.session.clone(),
        turn_id: "cli".to_owned(),
        working_directory,
        deadline: None,
        partials: Partials::Read,
    };
    Ok((config, call))
}

/// The directory as an absolute path: a host's working directory is one, and a relative one is meant
/// from where the person is.
fn absolute(directory: &str) -> Result<String, CliError> {
    let failed = |source| CliError::Io { what: "find out what directory --cwd means", source };
    let path = std::path::absolute(directory).map_err(failed)?;
    path.into_os_string()
        .into_string()
        .map_err(|_| failed(std::io::Error::other("the current directory's path is not UTF-8")))
}
