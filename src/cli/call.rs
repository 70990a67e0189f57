//! `call`, `preview` and `render`.

use std::process::ExitCode;
use std::time::Instant;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::CliError;
use super::args::{CallOptions, RenderOptions, TargetOptions};
use super::host::{Host, Stdin, configuration};
use super::output::{Ink, Output, Relay};
use super::show::Show;
use crate::provider::Call;
use crate::service::{ClientError, Failure, InvokeItem, ToolClient};
use crate::tools::view::View;
use crate::tools::{Category, Event, OutputStream, Payload};

/// The exit code of a program that Ctrl-C ended: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// The exit code of a call whose time was up, as that of timeout(1).
const TIME_UP: u8 = 124;

pub(crate) async fn call(options: CallOptions, output: &mut Output) -> Result<ExitCode, CliError> {
    let CallOptions { json, target } = options;
    let format = if json { Format::Json } else { Format::Person };
    let (config, call) = prepare(&target)?;
    let host = Host::launch(&target.launch).await?;
    let client = host.client.clone();
    let call = async {
        let mut client = client;
        client.configure(config).await?;
        follow(client, with_deadline(call, &target), format, output).await
    };
    let ended = tokio::select! {
        ended = call => ended,
        // Dropping the stream is what cancels the call.
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(INTERRUPTED)),
    };
    host.end().await;
    ended
}

/// For whom a call's events are written.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Person,
    Json,
}

/// Runs the call and writes what comes, as it comes.
async fn follow(
    mut client: ToolClient,
    call: Call,
    format: Format,
    output: &mut Output,
) -> Result<ExitCode, CliError> {
    let mut stream = client.invoke(call).await?;
    let mut relayed = Relayed::Nothing;
    while let Some(item) = stream.next().await {
        let item = item?;
        if format == Format::Json {
            output.print(&format!("{}\n", as_json(&item)))?;
        }
        match (item, format) {
            (InvokeItem::Event(event), Format::Person) => {
                if let Event::Output { .. } = event {
                    relayed = Relayed::Output;
                }
                show_event(output, event)?;
            }
            (InvokeItem::Event(_), Format::Json) => {}
            (InvokeItem::Result(result), format) => {
                let code = exit_code(&result);
                if format == Format::Person {
                    show_result(&mut client, output, result, relayed).await?;
                }
                return Ok(code);
            }
            (InvokeItem::Failure(failure), format) => {
                if format == Format::Person {
                    show_failure(output, &failure);
                }
                let is_late = failure.category == Category::Timeout.name();
                return Ok(if is_late { ExitCode::from(TIME_UP) } else { ExitCode::FAILURE });
            }
        }
    }
    Err(ClientError::Unfinished.into())
}

/// Whether a command's output has been shown already.
#[derive(Clone, Copy, PartialEq)]
enum Relayed {
    Nothing,
    Output,
}

fn show_event(output: &mut Output, event: Event) -> Result<(), CliError> {
    match event {
        Event::Output { stream: OutputStream::Stdout, data } => output.relay(Relay::Stdout, &data),
        Event::Output { stream: OutputStream::Stderr, data } => output.relay(Relay::Stderr, &data),
        Event::Progress { message, .. } => {
            output.progress(&message);
            Ok(())
        }
        // The result holds both once more.
        Event::Partial(_) | Event::Exit { .. } => Ok(()),
    }
}

async fn show_result(
    client: &mut ToolClient,
    output: &mut Output,
    result: Payload,
    relayed: Relayed,
) -> Result<(), CliError> {
    if relayed == Relayed::Output {
        let code = result.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
        if code != 0 {
            output.note("exit code", Ink::Yellow, &code.to_string());
        }
    } else {
        let bytes = serde_json::to_vec(&result)
            .map_err(|source| CliError::Json { what: "result", source })?;
        let view = client.render("json", bytes).await?;
        show_view(output, &view)?;
    }
    if let Some(notice) = result.get("notice").and_then(Value::as_str) {
        output.note("note", Ink::Cyan, notice);
    }
    Ok(())
}

fn show_failure(output: &mut Output, failure: &Failure) {
    output.note("error", Ink::Red, &failure.to_string());
    if let Some(hint) = failure.hint() {
        output.note("hint", Ink::Cyan, hint);
    }
}

fn show_view(output: &mut Output, view: &View) -> Result<(), CliError> {
    let show = Show { paint: output.paint(), escape: output.escapes() };
    output.print(&show.view(view))
}

pub(crate) async fn preview(
    options: TargetOptions,
    output: &mut Output,
) -> Result<ExitCode, CliError> {
    let (config, call) = prepare(&options)?;
    let mut host = Host::launch(&options.launch).await?;
    let view = match host.client.configure(config).await {
        Ok(()) => host.client.preview(with_deadline(call, &options)).await,
        Err(error) => Err(error),
    };
    host.end().await;
    show_view(output, &view?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn render(
    options: RenderOptions,
    output: &mut Output,
) -> Result<ExitCode, CliError> {
    let payload = Stdin::default().bytes(&options.payload)?;
    let mut host = Host::launch(&options.launch).await?;
    let view = host.client.render(&options.schema_version, payload).await;
    host.end().await;
    show_view(output, &view?)?;
    Ok(ExitCode::SUCCESS)
}

/// The time that the options give starts when the call does.
fn with_deadline(call: Call, options: &TargetOptions) -> Call {
    let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    Call { deadline, ..call }
}

fn prepare(options: &TargetOptions) -> Result<(Payload, Call), CliError> {
    if options.arguments == "-" && options.roots.config.as_deref() == Some("-") {
        return Err(CliError::StdinTwice);
    }
    let mut stdin = Stdin::default();
    let arguments = stdin.object("arguments", &options.arguments)?;
    let config = configuration(&options.roots, &mut stdin)?;
    let working_directory = options.cwd.as_deref().map(absolute).transpose()?;
    let call = Call {
        id: "cli-1".to_owned(),
        tool: options.tool.clone(),
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

/// The exit code of a command that a tool ran, else success.
fn exit_code(result: &Payload) -> ExitCode {
    match result.get("exit_code").and_then(Value::as_i64) {
        None => ExitCode::SUCCESS,
        Some(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

fn as_json(item: &InvokeItem) -> Value {
    match item {
        InvokeItem::Event(Event::Output { stream, data }) => {
            let stream = match stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            match std::str::from_utf8(data) {
                Ok(text) => json!({"event": "output_chunk", "stream": stream, "data": text}),
                Err(_) => {
                    use base64::Engine as _;
                    let data = base64::engine::general_purpose::STANDARD.encode(data);
                    json!({"event": "output_chunk", "stream": stream, "data_base64": data})
                }
            }
        }
        InvokeItem::Event(Event::Progress { message, fraction }) => match fraction {
            Some(fraction) => {
                json!({"event": "progress", "message": message, "fraction_complete": fraction})
            }
            None => json!({"event": "progress", "message": message}),
        },
        InvokeItem::Event(Event::Partial(payload)) => {
            json!({"event": "partial_result", "payload": payload})
        }
        InvokeItem::Event(Event::Exit { code, signal }) => match signal {
            Some(signal) => json!({"event": "exit_status", "exit_code": code, "signal": signal}),
            None => json!({"event": "exit_status", "exit_code": code}),
        },
        InvokeItem::Result(payload) => json!({"event": "result", "payload": payload}),
        InvokeItem::Failure(failure) => json!({"event": "error", "error": failure}),
    }
}
