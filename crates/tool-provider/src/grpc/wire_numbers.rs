//! Every field's number and form on the wire. A host compiles against these; they never change.

use prost::Message;
use prost::encoding::{WireType, decode_key, skip_field};
use prost_types::{Duration, Struct, Timestamp};

use super::pb::{common, config, event, kernel, log, render, schema, tool};

use common::v1 as c;
use config::v1 as conf;
use event::v1 as ev;
use kernel::v1 as k;
use render::v1 as r;
use schema::v1 as s;
use tool::v1 as t;

/// The fields of an encoded message as `number` and `v` (varint), `6` (64 bits) or `l` (length).
fn fields(message: &impl Message) -> String {
    let bytes = message.encode_to_vec();
    let mut rest = bytes.as_slice();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).unwrap();
        skip_field(wire_type, number, &mut rest, prost::encoding::DecodeContext::default())
            .unwrap();
        let form = match wire_type {
            WireType::Varint => "v",
            WireType::SixtyFourBit => "6",
            _ => "l",
        };
        found.push(format!("{number}{form}"));
    }
    found.join(" ")
}

fn text() -> String {
    "x".to_owned()
}

#[test]
fn tool_v1() {
    let call = t::ToolCall {
        id: text(),
        tool_name: text(),
        arguments: Some(Struct::default()),
        call_context: Some(c::CallContext::default()),
    };
    assert_eq!(fields(&call), "1l 2l 3l 4l");
    let schema = t::ToolSchema {
        name: text(),
        kind: t::ToolKind::DataSource.into(),
        risk: t::RiskClass::Critical.into(),
        description: text(),
        input_schema: Some(s::Schema::default()),
        output_schema: Some(s::Schema::default()),
        streaming: true,
        concurrency: Some(t::ConcurrencySpec::default()),
        default_timeout: Some(Duration::default()),
        idempotent: true,
        terminates_turn: true,
    };
    assert_eq!(fields(&schema), "1l 2v 3v 4l 5l 6l 7v 8l 9l 10v 11v");
    let concurrency = t::ConcurrencySpec { safe: true, key_fields: vec![text()] };
    assert_eq!(fields(&concurrency), "1v 2l");
    let offered = t::GetSchemaResponse {
        tools: vec![t::ToolSchema::default()],
        slash_commands: vec![c::PromptExpansionSpec::default()],
        config_schema: Some(conf::ConfigSchema::default()),
        supported_hook_points: vec![c::HookPoint::SessionEnd.into()],
    };
    assert_eq!(fields(&offered), "1l 2l 3l 4l");
    assert_eq!(fields(&t::ConfigureRequest { config: Some(Struct::default()) }), "1l");
    assert_eq!(fields(&t::InvokeRequest { call: Some(call.clone()) }), "1l");
    assert_eq!(fields(&t::PreviewRequest { call: Some(call) }), "1l");
    assert_eq!(fields(&t::PreviewResponse { preview: Some(r::RenderTree::default()) }), "1l");
    assert_eq!(fields(&t::RenderRequest { payload: vec![1], schema_version: text() }), "1l 2l");
    assert_eq!(fields(&t::RenderResponse { tree: Some(r::RenderTree::default()) }), "1l");
    assert_eq!(fields(&t::DescribeResponse { producer: Some(c::ProducerRef::default()) }), "1l");
    assert_eq!(fields(&t::InvokeResponse { event: Some(t::ToolEvent::default()) }), "1l");
    assert_eq!(fields(&t::ToolResult { payload: Some(Struct::default()) }), "1l");
    let error = t::ToolError {
        category: t::ToolErrorCategory::Unknown.into(),
        message: text(),
        retryable: true,
        details: Some(Struct::default()),
    };
    assert_eq!(fields(&error), "1v 2l 3v 4l");
}

#[test]
fn tool_v1_events() {
    use t::tool_event::{Event, ExitStatus, OutputChunk, PartialResult, Progress};
    let chunk = OutputChunk { stream: t::OutputStream::Stderr.into(), data: "x".into() };
    assert_eq!(fields(&chunk), "1v 2l");
    let progress = Progress { message: text(), fraction_complete: Some(0.0) };
    assert_eq!(fields(&progress), "1l 26");
    let exit = ExitStatus { exit_code: -1, signal: Some(text()) };
    assert_eq!(fields(&exit), "1v 2l");
    let partial = PartialResult { payload: Some(Struct::default()) };
    assert_eq!(fields(&partial), "1l");
    let events = [
        Event::OutputChunk(chunk),
        Event::Progress(progress),
        Event::PartialResult(partial),
        Event::ExitStatus(exit),
        Event::Result(t::ToolResult::default()),
        Event::Error(t::ToolError::default()),
    ];
    for (event, number) in events.into_iter().zip(1..) {
        assert_eq!(fields(&t::ToolEvent { event: Some(event) }), format!("{number}l"));
    }
}

#[test]
fn common_schema_config() {
    let producer = c::ProducerRef {
        name: text(),
        version: text(),
        source: text(),
        category: c::Category::Tool.into(),
        protocol_version: 1,
    };
    assert_eq!(fields(&producer), "1l 2l 3l 4v 5v");
    let context = c::CallContext { session_id: text(), turn_id: text(), working_directory: text() };
    assert_eq!(fields(&context), "1l 2l 3l");
    let command = c::PromptExpansionSpec { name: text(), description: text(), template: text() };
    assert_eq!(fields(&command), "1l 2l 3l");
    let shape = s::Schema {
        r#type: s::SchemaType::Array.into(),
        description: text(),
        properties: [(text(), s::Schema::default())].into(),
        required: vec![text()],
        items: Some(Box::default()),
        enum_values: vec![text()],
    };
    assert_eq!(fields(&shape), "1v 2l 3l 4l 5l 6l");
    let attribute = conf::ConfigAttribute {
        name: text(),
        r#type: conf::AttrType::Object.into(),
        required: true,
        sensitive: true,
        description: text(),
        object_attributes: vec![conf::ConfigAttribute::default()],
        default_json: Some(String::new()),
    };
    assert_eq!(fields(&attribute), "1l 2v 3v 4v 5l 6l 7l");
    assert_eq!(fields(&conf::ConfigSchema { attributes: vec![attribute] }), "1l");
}

#[test]
fn render_v1() {
    use r::render_node::Node;
    let nodes = [
        Node::Text(r::TextNode::default()),
        Node::CodeBlock(r::CodeBlockNode::default()),
        Node::Diff(r::DiffNode::default()),
        Node::Table(r::TableNode::default()),
        Node::Link(r::LinkNode::default()),
        Node::List(r::ListNode::default()),
        Node::Group(r::GroupNode::default()),
        Node::Collapsible(r::CollapsibleNode::default()),
        Node::SubSession(r::SubSessionNode::default()),
        Node::Action(r::ActionNode::default()),
    ];
    for (node, number) in nodes.into_iter().zip(1..) {
        assert_eq!(fields(&r::RenderNode { node: Some(node) }), format!("{number}l"));
    }
    let child = || vec![r::RenderNode::default()];
    assert_eq!(fields(&r::RenderTree { root: Some(r::RenderNode::default()) }), "1l");
    assert_eq!(fields(&r::TextNode { content: text(), style: Some(8) }), "1l 2v");
    assert_eq!(fields(&r::CodeBlockNode { language: Some(text()), content: text() }), "1l 2l");
    let line = r::DiffLine { op: r::DiffLineOp::Remove.into(), text: text() };
    assert_eq!(fields(&line), "1v 2l");
    let hunk =
        r::DiffHunk { old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines: vec![line] };
    assert_eq!(fields(&hunk), "1v 2v 3v 4v 5l");
    assert_eq!(fields(&r::DiffNode { hunks: vec![hunk] }), "1l");
    let row = r::TableRow { cells: vec![text()] };
    assert_eq!(fields(&row), "1l");
    assert_eq!(fields(&r::TableNode { headers: vec![text()], rows: vec![row] }), "1l 2l");
    assert_eq!(fields(&r::ListNode { items: child(), ordered: true }), "1l 2v");
    assert_eq!(fields(&r::GroupNode { children: child() }), "1l");
    let fold =
        r::CollapsibleNode { summary: text(), children: child(), collapsed_by_default: true };
    assert_eq!(fields(&fold), "1l 2l 3v");
}

#[test]
fn events_and_the_way_back_to_the_host() {
    use ev::tool_result_event::Outcome;
    assert_eq!(fields(&ev::ToolCallEvent { call: Some(t::ToolCall::default()) }), "1l");
    let stored = |outcome| ev::ToolResultEvent { tool_call_id: text(), outcome: Some(outcome) };
    assert_eq!(fields(&stored(Outcome::Result(t::ToolResult::default()))), "1l 2l");
    assert_eq!(fields(&stored(Outcome::Error(t::ToolError::default()))), "1l 3l");
    let entry = log::v1::LogEntry {
        level: log::v1::LogLevel::Fatal.into(),
        logger: text(),
        message: text(),
        fields: Some(Struct::default()),
        time: Some(Timestamp::default()),
    };
    assert_eq!(fields(&entry), "1v 2l 3l 4l 5l");
    let request = k::LogRequest { session_id: Some(String::new()), entries: vec![entry] };
    assert_eq!(fields(&request), "1l 3l");
}

#[test]
fn enumerations() {
    assert_eq!((t::ToolKind::Resource as i32, t::ToolKind::Interactive as i32), (1, 3));
    assert_eq!((t::RiskClass::ReadOnly as i32, t::RiskClass::Moderate as i32), (1, 3));
    assert_eq!((t::RiskClass::High as i32, t::RiskClass::Critical as i32), (4, 5));
    let categories = [
        t::ToolErrorCategory::InvalidArguments,
        t::ToolErrorCategory::NotFound,
        t::ToolErrorCategory::PermissionDenied,
        t::ToolErrorCategory::ExecutionFailed,
        t::ToolErrorCategory::Timeout,
        t::ToolErrorCategory::ConcurrencyConflict,
        t::ToolErrorCategory::Cancelled,
        t::ToolErrorCategory::ProcessCrashed,
        t::ToolErrorCategory::Unknown,
    ];
    for (category, number) in categories.into_iter().zip(1..) {
        assert_eq!(category as i32, number);
    }
    assert_eq!((c::Category::Model as i32, c::Category::Slashcommand as i32), (1, 7));
    assert_eq!((s::SchemaType::Object as i32, s::SchemaType::Boolean as i32), (1, 4));
    assert_eq!((conf::AttrType::ListString as i32, conf::AttrType::MapString as i32), (4, 6));
    assert_eq!((r::TextStyle::Normal as i32, r::TextStyle::Success as i32), (1, 8));
    assert_eq!((r::DiffLineOp::Context as i32, r::DiffLineOp::Add as i32), (1, 2));
    assert_eq!((log::v1::LogLevel::Trace as i32, log::v1::LogLevel::Error as i32), (1, 5));
    assert_eq!(t::ToolKind::DataSource.as_str_name(), "TOOL_KIND_DATA_SOURCE");
}
