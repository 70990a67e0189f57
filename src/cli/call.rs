//! `call`, `preview` and `render`.

use std::process::ExitCode;
use std::time::Instant;

use super::CliError;
use super::args::{CallOptions, RenderOptions, TargetOptions};
use super::files::Source;
use super::follow::{Format, follow};
use super::host::{configuration, with_plugin};
use super::json;
use super::output::Output;
use super::tool_args::{AnyTool, ToolCall};
use crate::provider::Call;
use crate::tools::Payload;
use crate::tools::view::View;

pub(super) async fn call(
    options: CallOptions<AnyTool>,
    output: Output,
) -> Result<ExitCode, CliError> {
    let CallOptions { json, target, tool: AnyTool(tool) } = options;
    let (config, call) = prepare(&tool, &target)?;
    with_plugin(&target.launch, output, async |mut client| {
        client.configure(config).await?;
        follow(client, with_deadline(call, &target), Format::of(json), output).await
    })
    .await
}

pub(super) async fn preview(
    options: CallOptions<AnyTool>,
    output: Output,
) -> Result<ExitCode, CliError> {
    let CallOptions { json, target, tool: AnyTool(tool) } = options;
    let (config, call) = prepare(&tool, &target)?;
    let view = with_plugin(&target.launch, output, async |mut client| {
        client.configure(config).await?;
        Ok(client.preview(with_deadline(call, &target)).await?)
    })
    .await?;
    show_view(output, &view, Format::of(json))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn render(options: RenderOptions, output: Output) -> Result<ExitCode, CliError> {
    let payload = Source::default().bytes(&options.payload)?;
    let view = with_plugin(&options.launch, output, async |mut client| {
        Ok(client.render(&options.schema_version, payload).await?)
    })
    .await?;
    show_view(output, &view, Format::of(options.json))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show_view(output: Output, view: &View, format: Format) -> Result<(), CliError> {
    match format {
        Format::Person => output.print(&output.painter().view(view)),
        Format::Json => output.print(&format!("{}\n", json::view(view))),
    }
}

/// The time that the options give starts when the call does.
pub(super) fn with_deadline(call: Call, options: &TargetOptions) -> Call {
    let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    Call { deadline, ..call }
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
    };
    Ok((config, call))
}

/// The folder as an absolute path: a kernel's working directory is one, and a relative one is meant
/// from where the person is.
fn absolute(folder: &str) -> Result<String, CliError> {
    let failed = |source| CliError::Io { what: "tell what folder --cwd means", source };
    let path = std::path::absolute(folder).map_err(failed)?;
    path.into_os_string()
        .into_string()
        .map_err(|_| failed(std::io::Error::other("the current folder's path is not UTF-8")))
}
