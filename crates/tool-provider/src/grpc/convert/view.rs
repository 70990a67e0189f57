//! Rendered trees.

use super::{payload, to_struct};
use crate::grpc::pb::render::v1::{self as wire, render_node::Node};
use crate::view::{DiffLine, DiffOp, Fold, Hunk, ListOrder, Style, View};

/// The wire tree of a view.
pub(crate) fn tree(view: View) -> wire::RenderTree {
    wire::RenderTree { root: Some(node(view)) }
}

fn node(view: View) -> wire::RenderNode {
    let node = match view {
        View::Text { content, style } => {
            Node::Text(wire::TextNode { content, style: Some(text_style(style).into()) })
        }
        View::Code { language, content } => {
            Node::CodeBlock(wire::CodeBlockNode { language, content })
        }
        View::Diff(hunks) => {
            Node::Diff(wire::DiffNode { hunks: hunks.into_iter().map(wire_hunk).collect() })
        }
        View::Table { headers, rows } => Node::Table(wire::TableNode {
            headers,
            rows: rows.into_iter().map(|cells| wire::TableRow { cells }).collect(),
        }),
        View::List { items, order } => {
            Node::List(wire::ListNode { items: nodes(items), ordered: order == ListOrder::Ordered })
        }
        View::Group(children) => Node::Group(wire::GroupNode { children: nodes(children) }),
        View::Collapsible { summary, children, initially } => {
            Node::Collapsible(wire::CollapsibleNode {
                summary,
                children: nodes(children),
                collapsed_by_default: initially == Fold::Closed,
            })
        }
        View::Link { text, url } => Node::Link(wire::LinkNode { text, url }),
        View::SubSession { session, summary } => {
            Node::SubSession(wire::SubSessionNode { session_id: session, summary })
        }
        View::Action { label, tool, arguments } => Node::Action(wire::ActionNode {
            label,
            tool_name: tool,
            args: Some(to_struct(arguments)),
            ..wire::ActionNode::default()
        }),
        View::Unknown => return wire::RenderNode { node: None },
    };
    wire::RenderNode { node: Some(node) }
}

fn nodes(views: Vec<View>) -> Vec<wire::RenderNode> {
    views.into_iter().map(node).collect()
}

fn text_style(style: Style) -> wire::TextStyle {
    match style {
        Style::Normal => wire::TextStyle::Normal,
        Style::Bold => wire::TextStyle::Bold,
        Style::Italic => wire::TextStyle::Italic,
        Style::Code => wire::TextStyle::Code,
        Style::Dim => wire::TextStyle::Dim,
        Style::Error => wire::TextStyle::Error,
        Style::Warning => wire::TextStyle::Warning,
        Style::Success => wire::TextStyle::Success,
    }
}

fn wire_hunk(hunk: Hunk) -> wire::DiffHunk {
    let line = |line: DiffLine| {
        let op = match line.op {
            DiffOp::Context => wire::DiffLineOp::Context,
            DiffOp::Add => wire::DiffLineOp::Add,
            DiffOp::Remove => wire::DiffLineOp::Remove,
        };
        wire::DiffLine { op: op.into(), text: line.text }
    };
    wire::DiffHunk {
        old_start: wire_count(hunk.old_start),
        old_lines: wire_count(hunk.old_lines),
        new_start: wire_count(hunk.new_start),
        new_lines: wire_count(hunk.new_lines),
        lines: hunk.lines.into_iter().map(line).collect(),
    }
}

/// The wire counts lines in 31 bits; files with more are refused long before.
fn wire_count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The view of a wire tree. Nodes that this provider never sends become text.
pub(crate) fn view(tree: wire::RenderTree) -> View {
    tree.root.map_or(View::Group(Vec::new()), view_of)
}

fn view_of(node: wire::RenderNode) -> View {
    match node.node {
        None => View::Unknown,
        Some(Node::Text(text)) => {
            let style = style_of(text.style());
            View::Text { content: text.content, style }
        }
        Some(Node::CodeBlock(code)) => {
            View::Code { language: code.language, content: code.content }
        }
        Some(Node::Diff(diff)) => View::Diff(diff.hunks.into_iter().map(hunk_of).collect()),
        Some(Node::Table(table)) => View::Table {
            headers: table.headers,
            rows: table.rows.into_iter().map(|row| row.cells).collect(),
        },
        Some(Node::Link(link)) => View::Link { text: link.text, url: link.url },
        Some(Node::List(list)) => View::List {
            items: list.items.into_iter().map(view_of).collect(),
            order: if list.ordered { ListOrder::Ordered } else { ListOrder::Unordered },
        },
        Some(Node::Group(group)) => View::Group(group.children.into_iter().map(view_of).collect()),
        Some(Node::Collapsible(inner)) => View::Collapsible {
            summary: inner.summary,
            children: inner.children.into_iter().map(view_of).collect(),
            initially: if inner.collapsed_by_default { Fold::Closed } else { Fold::Open },
        },
        Some(Node::SubSession(link)) => {
            View::SubSession { session: link.session_id, summary: link.summary }
        }
        Some(Node::Action(action)) => View::Action {
            label: action.label,
            tool: action.tool_name,
            // What JSON cannot hold cannot be shown either.
            arguments: payload(action.args.unwrap_or_default()).unwrap_or_default(),
        },
    }
}

fn style_of(style: wire::TextStyle) -> Style {
    match style {
        wire::TextStyle::Unspecified | wire::TextStyle::Normal => Style::Normal,
        wire::TextStyle::Bold => Style::Bold,
        wire::TextStyle::Italic => Style::Italic,
        wire::TextStyle::Code => Style::Code,
        wire::TextStyle::Dim => Style::Dim,
        wire::TextStyle::Error => Style::Error,
        wire::TextStyle::Warning => Style::Warning,
        wire::TextStyle::Success => Style::Success,
    }
}

fn hunk_of(hunk: wire::DiffHunk) -> Hunk {
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    let line = |line: wire::DiffLine| DiffLine {
        op: match line.op() {
            wire::DiffLineOp::Add => DiffOp::Add,
            wire::DiffLineOp::Remove => DiffOp::Remove,
            wire::DiffLineOp::Context | wire::DiffLineOp::Unspecified => DiffOp::Context,
        },
        text: line.text,
    };
    Hunk {
        old_start: count(hunk.old_start),
        old_lines: count(hunk.old_lines),
        new_start: count(hunk.new_start),
        new_lines: count(hunk.new_lines),
        lines: hunk.lines.into_iter().map(line).collect(),
    }
}
