//! Shows what a host stored: through the tool that made it, and without one as it is.

use std::sync::Arc;

use serde_json::Value;

use crate::error::without_hint;
use crate::shorten::shorten;
use crate::view::{Style, View};
use crate::{Payload, Tool, slips};

/// What a host stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A call, before it ran.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Payload,
    },
    /// A result. Its field `tool` says which tool made it.
    Result(Payload),
    /// A failure, from this provider or from the host itself.
    Failure {
        /// The protocol's name of the category.
        category: String,
        /// What went wrong.
        message: String,
        /// The structured details.
        details: Payload,
    },
}

/// Longest piece of an unknown payload that is shown, in bytes.
const MOST_SHOWN: usize = 64 * 1024;

/// Shows it. `tool` finds a tool by its name.
pub(crate) fn render<'a, S: 'a>(
    stored: &Stored,
    tool: impl Fn(&str) -> Option<&'a Arc<dyn Tool<S>>>,
) -> View {
    match stored {
        Stored::Call { tool: name, arguments } => match tool(name) {
            Some(tool) => {
                let mut arguments = arguments.clone();
                slips::put_right(tool.spec(), &mut arguments);
                tool.render_call(&arguments)
            }
            None => View::Group(vec![View::text(name, Style::Bold), as_json(arguments)]),
        },
        Stored::Result(payload) => {
            match payload.get("tool").and_then(Value::as_str).and_then(tool) {
                Some(tool) => tool.render_result(payload),
                None => as_json(payload),
            }
        }
        Stored::Failure { category, message, details } => {
            let tool = details.get("tool").and_then(Value::as_str).and_then(tool);
            let so_far = tool.map(|tool| tool.render_result(details));
            failure(category, message, details, so_far)
        }
    }
}

/// `so_far` is what a call that was ended early had by then, where its tool kept that.
fn failure(category: &str, message: &str, details: &Payload, so_far: Option<View>) -> View {
    // For the caller who cancelled it, a cancelled call is no failure.
    let style = if category == "cancelled" { Style::Warning } else { Style::Error };
    let hint = details.get("hint").and_then(Value::as_str);
    let message = without_hint(message, hint);
    let mut nodes = vec![View::text(format!("{category}: {message}"), style)];
    if let Some(hint) = hint {
        nodes.push(View::text(hint, Style::Dim));
    }
    let output = || details.get("output").and_then(Value::as_str);
    nodes.extend(so_far.or_else(|| output().map(|output| View::code(None, output))));
    if nodes.len() == 1 { nodes.remove(0) } else { View::Group(nodes) }
}

fn as_json(payload: &Payload) -> View {
    let text = serde_json::to_string_pretty(payload).unwrap_or_default();
    View::code(Some("json"), shorten(&text, MOST_SHOWN))
}
