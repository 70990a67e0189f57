//! What is wrong with a tree that a provider sent.

use tool_provider::grpc::pb::render::v1::render_node::Node;
use tool_provider::grpc::pb::render::v1::{DiffLineOp, RenderNode, RenderTree, TextStyle};

/// A tree that a provider sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedTree {
    /// What is wrong with it; empty where nothing is.
    pub(crate) problems: Vec<String>,
    /// All its text.
    pub(crate) text: String,
}

impl ObservedTree {
    pub(super) fn of(tree: &RenderTree) -> Self {
        let mut seen = ObservedTree { problems: Vec::new(), text: String::new() };
        match &tree.root {
            Some(root) => seen.node(root),
            None => seen.problem("the tree has no root"),
        }
        seen
    }

    fn problem(&mut self, problem: &str) {
        if !self.problems.iter().any(|known| known == problem) {
            self.problems.push(problem.to_owned());
        }
    }

    fn say(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn node(&mut self, node: &RenderNode) {
        match &node.node {
            None => self.problem("a node is of no kind"),
            Some(Node::Text(text)) => {
                if text.style.is_some_and(|style| {
                    TextStyle::try_from(style).unwrap_or_default() == TextStyle::Unspecified
                }) {
                    self.problem("a text's style is unspecified or unknown");
                }
                self.say(&text.content);
            }
            Some(Node::CodeBlock(code)) => self.say(&code.content),
            Some(Node::Diff(diff)) => {
                for line in diff.hunks.iter().flat_map(|hunk| &hunk.lines) {
                    if DiffLineOp::try_from(line.op).unwrap_or_default() == DiffLineOp::Unspecified
                    {
                        self.problem("a diff's line is neither context, added nor removed");
                    }
                    self.say(&line.text);
                }
            }
            Some(Node::Table(table)) => {
                for row in &table.rows {
                    self.say(&row.cells.join("\t"));
                }
            }
            Some(Node::Link(link)) => self.say(&link.text),
            Some(Node::List(list)) => self.nodes(&list.items),
            Some(Node::Group(group)) => self.nodes(&group.children),
            Some(Node::Collapsible(inner)) => {
                self.say(&inner.summary);
                self.nodes(&inner.children);
            }
            Some(Node::SubSession(session)) => self.say(&session.summary),
            Some(Node::Action(action)) => self.say(&action.label),
        }
    }

    fn nodes(&mut self, nodes: &[RenderNode]) {
        for node in nodes {
            self.node(node);
        }
    }
}
