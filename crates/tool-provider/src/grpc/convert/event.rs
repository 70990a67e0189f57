//! Events and errors.

use crate::StreamItem;
use crate::grpc::client::{Failure, InvokeItem};
use crate::grpc::pb::tool::v1::{self as wire, tool_event::Event as WireEvent};
use crate::{Category, Event, OutputStream, ToolError};

use super::{ConvertError, payload, to_struct};

/// The wire event of a stream's item.
pub(crate) fn tool_event(item: StreamItem) -> wire::ToolEvent {
    let event = match item {
        StreamItem::Event(event) => lead_event(event),
        StreamItem::Outcome(Ok(result)) => {
            WireEvent::Result(wire::ToolResult { payload: Some(to_struct(result)) })
        }
        StreamItem::Outcome(Err(error)) => WireEvent::Error(tool_error(&error)),
    };
    wire::ToolEvent { event: Some(event) }
}

fn lead_event(event: Event) -> WireEvent {
    match event {
        Event::Output { stream, data } => {
            let stream = match stream {
                OutputStream::Stdout => wire::OutputStream::Stdout,
                OutputStream::Stderr => wire::OutputStream::Stderr,
            };
            WireEvent::OutputChunk(wire::tool_event::OutputChunk { stream: stream.into(), data })
        }
        Event::Progress { message, fraction } => {
            WireEvent::Progress(wire::tool_event::Progress { message, fraction_complete: fraction })
        }
        Event::Partial(partial) => {
            let payload = Some(to_struct(partial));
            WireEvent::PartialResult(wire::tool_event::PartialResult { payload })
        }
        Event::Exit { code, signal } => {
            WireEvent::ExitStatus(wire::tool_event::ExitStatus { exit_code: code, signal })
        }
    }
}

/// The wire form of an error.
pub(crate) fn tool_error(error: &ToolError) -> wire::ToolError {
    wire::ToolError {
        category: category(error.category()).into(),
        message: error.whole_message().into_owned(),
        retryable: error.is_retryable(),
        details: Some(to_struct(error.details())),
    }
}

fn category(category: Category) -> wire::ToolErrorCategory {
    match category {
        Category::InvalidArguments => wire::ToolErrorCategory::InvalidArguments,
        Category::NotFound => wire::ToolErrorCategory::NotFound,
        Category::PermissionDenied => wire::ToolErrorCategory::PermissionDenied,
        Category::ExecutionFailed => wire::ToolErrorCategory::ExecutionFailed,
        Category::Timeout => wire::ToolErrorCategory::Timeout,
        Category::ConcurrencyConflict => wire::ToolErrorCategory::ConcurrencyConflict,
        Category::Cancelled => wire::ToolErrorCategory::Cancelled,
        Category::Unknown => wire::ToolErrorCategory::Unknown,
    }
}

/// What a client makes of an event; `None` for a kind of event that this build does not know.
///
/// # Errors
/// [`ConvertError`] when a payload holds what JSON cannot.
pub(crate) fn event_from_wire(event: wire::ToolEvent) -> Result<Option<InvokeItem>, ConvertError> {
    Ok(Some(match event.event {
        None => return Ok(None),
        Some(WireEvent::OutputChunk(chunk)) => {
            let stream = match chunk.stream() {
                wire::OutputStream::Stderr => OutputStream::Stderr,
                _ => OutputStream::Stdout,
            };
            InvokeItem::Event(Event::Output { stream, data: chunk.data })
        }
        Some(WireEvent::Progress(progress)) => InvokeItem::Event(Event::Progress {
            message: progress.message,
            fraction: progress.fraction_complete,
        }),
        Some(WireEvent::PartialResult(partial)) => {
            InvokeItem::Event(Event::Partial(payload(partial.payload.unwrap_or_default())?))
        }
        Some(WireEvent::ExitStatus(exit)) => {
            InvokeItem::Event(Event::Exit { code: exit.exit_code, signal: exit.signal })
        }
        Some(WireEvent::Result(result)) => {
            InvokeItem::Result(payload(result.payload.unwrap_or_default())?)
        }
        Some(WireEvent::Error(error)) => InvokeItem::Failure(failure_from_wire(error)?),
    }))
}

/// What a client, or a renderer, makes of an error. Hosts make errors too, so every category of
/// the protocol can come in.
///
/// # Errors
/// [`ConvertError`] when the details hold what JSON cannot.
pub(crate) fn failure_from_wire(error: wire::ToolError) -> Result<Failure, ConvertError> {
    let category = wire::ToolErrorCategory::try_from(error.category)
        .unwrap_or(wire::ToolErrorCategory::Unknown)
        .as_str_name();
    let category = category.trim_start_matches("TOOL_ERROR_CATEGORY_").to_lowercase();
    Ok(Failure {
        category,
        message: error.message,
        retryable: error.retryable,
        details: payload(error.details.unwrap_or_default())?,
    })
}
