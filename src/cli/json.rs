//! Events and views as JSON, for programs.

use base64::Engine as _;
use serde_json::{Value, json};

use tool_provider::grpc::InvokeItem;
use tool_provider::view::{DiffOp, Fold, Hunk, ListOrder, Style, View};
use tool_provider::{Event, OutputStream};

/// One event of a call.
pub(super) fn item(item: &InvokeItem) -> Value {
    match item {
        InvokeItem::Event(Event::Output { stream, data }) => {
            let stream = match stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            match std::str::from_utf8(data) {
                Ok(text) => json!({"event": "output_chunk", "stream": stream, "data": text}),
                Err(_) => {
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

/// A view, node by node under the names of the protocol.
pub(super) fn view(node: &View) -> Value {
    let all = |nodes: &[View]| nodes.iter().map(view).collect::<Vec<_>>();
    match node {
        View::Text { content, style } => {
            json!({"node": "text", "content": content, "style": style_name(*style)})
        }
        View::Code { language, content } => match language {
            Some(language) => {
                json!({"node": "code_block", "language": language, "content": content})
            }
            None => json!({"node": "code_block", "content": content}),
        },
        View::Diff(hunks) => {
            json!({"node": "diff", "hunks": hunks.iter().map(hunk).collect::<Vec<_>>()})
        }
        View::Table { headers, rows } => {
            json!({"node": "table", "headers": headers, "rows": rows})
        }
        View::List { items, order } => {
            json!({"node": "list", "ordered": *order == ListOrder::Ordered, "items": all(items)})
        }
        View::Group(children) => json!({"node": "group", "children": all(children)}),
        View::Collapsible { summary, children, initially } => json!({
            "node": "collapsible", "summary": summary, "children": all(children),
            "collapsed_by_default": *initially == Fold::Closed,
        }),
        View::Link { text, url } => json!({"node": "link", "text": text, "url": url}),
        View::SubSession { session, summary } => {
            json!({"node": "sub_session", "session_id": session, "summary": summary})
        }
        View::Action { label, tool, arguments } => {
            json!({"node": "action", "label": label, "tool_name": tool, "args": arguments})
        }
        View::Unknown => json!({"node": "unknown"}),
    }
}

fn style_name(style: Style) -> &'static str {
    match style {
        Style::Normal => "normal",
        Style::Bold => "bold",
        Style::Italic => "italic",
        Style::Code => "code",
        Style::Dim => "dim",
        Style::Error => "error",
        Style::Warning => "warning",
        Style::Success => "success",
    }
}

fn hunk(hunk: &Hunk) -> Value {
    let line = |op: DiffOp| match op {
        DiffOp::Context => "context",
        DiffOp::Add => "add",
        DiffOp::Remove => "remove",
    };
    let lines = hunk.lines.iter().map(|one| json!({"op": line(one.op), "text": one.text}));
    json!({
        "old_start": hunk.old_start, "old_lines": hunk.old_lines,
        "new_start": hunk.new_start, "new_lines": hunk.new_lines,
        "lines": lines.collect::<Vec<_>>(),
    })
}
