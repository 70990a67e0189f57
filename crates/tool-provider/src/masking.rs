//! The values of secrets, kept out of everything that leaves the provider.
//!
//! Commands' output is masked as it streams, by [`Masker`](crate::process::Masker), because a secret
//! may be cut by the end of a piece. All else passes here: a command may write a secret into a file,
//! and a caller may name one, so that a file tool reads it, an error repeats it, a preview shows it.
//! Tools mask nothing but what they cut; see [`Context::secrets`](crate::Context::secrets).

use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;

use super::render::Stored;
use crate::Secrets;
use crate::view::{DiffLine, Hunk, View};
use crate::{EmitError, Event, EventSink, Partials, Payload, ToolError};

/// Takes a call's events and passes them on masked, a partial result with its tool's name.
pub(super) struct Masked<'a> {
    pub(super) sink: &'a dyn EventSink,
    pub(super) secrets: &'a Secrets,
    pub(super) tool: &'static str,
}

impl EventSink for Masked<'_> {
    fn emit_until(&self, event: Event, deadline: Option<Instant>) -> Result<(), EmitError> {
        let masked = match event {
            Event::Partial(partial) => {
                Event::Partial(of_tool(self.tool, payload(self.secrets, partial)))
            }
            Event::Progress { mut message, fraction } => {
                mask(self.secrets, &mut message);
                Event::Progress { message, fraction }
            }
            // Masked where it is read.
            event @ (Event::Output { .. } | Event::Exit { .. }) => event,
        };
        self.sink.emit_until(masked, deadline)
    }

    fn partials(&self) -> Partials {
        self.sink.partials()
    }
}

/// A result, or a part of one, with the name of the tool that made it: whoever stored it finds the
/// tool again that can show it.
pub(super) fn of_tool(tool: &'static str, mut payload: Payload) -> Payload {
    payload.insert("tool".to_owned(), Value::from(tool));
    payload
}

/// Masks every text of a result.
pub(super) fn payload(secrets: &Secrets, mut payload: Payload) -> Payload {
    if !secrets.is_empty() {
        payload.values_mut().for_each(|value| mask_value(value, &|text| mask(secrets, text)));
    }
    payload
}

/// Masks every text of what a host stored, before marks are set in the middle of one.
pub(super) fn stored<'a>(secrets: &Secrets, stored: &'a Stored) -> Cow<'a, Stored> {
    if secrets.is_empty() {
        return Cow::Borrowed(stored);
    }
    Cow::Owned(match stored.clone() {
        Stored::Call { tool, arguments } => {
            Stored::Call { tool, arguments: payload(secrets, arguments) }
        }
        Stored::Result(result) => Stored::Result(payload(secrets, result)),
        Stored::Failure { category, mut message, details } => {
            mask(secrets, &mut message);
            Stored::Failure { category, message, details: payload(secrets, details) }
        }
    })
}

/// Masks what an error says. It may repeat a part of an argument, a name or a line.
pub(super) fn error(secrets: &Secrets, error: ToolError) -> ToolError {
    if secrets.is_empty() {
        return error;
    }
    let mut message = error.message().to_owned();
    excerpt(secrets, &mut message);
    // What a call had by then is content, and masked like a result.
    let details = match (error.has_so_far(), error.details()) {
        (true, content) => payload(secrets, content),
        (false, mut details) => {
            let texts = |text: &mut String| excerpt(secrets, text);
            details.values_mut().for_each(|value| mask_value(value, &texts));
            details
        }
    };
    let masked = error.with_message(message);
    details.into_iter().fold(masked, |masked, (name, value)| masked.with_detail(&name, value))
}

/// Masks every text of a view.
pub(super) fn view(secrets: &Secrets, view: View) -> View {
    if secrets.is_empty() { view } else { mask_view(secrets, view) }
}

fn mask_value(value: &mut Value, mask: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => mask(text),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(item, mask)),
        Value::Object(map) => map.values_mut().for_each(|value| mask_value(value, mask)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mask_view(secrets: &Secrets, view: View) -> View {
    let masked = |mut text: String| {
        mask(secrets, &mut text);
        text
    };
    let excerpted = |mut text: String| {
        excerpt(secrets, &mut text);
        text
    };
    let all = |views: Vec<View>| views.into_iter().map(|view| mask_view(secrets, view)).collect();
    match view {
        View::Text { content, style } => View::Text { content: excerpted(content), style },
        View::Code { language, content } => View::Code { language, content: masked(content) },
        View::Diff(hunks) => View::Diff(
            hunks
                .into_iter()
                .map(|hunk| Hunk {
                    lines: hunk
                        .lines
                        .into_iter()
                        .map(|line| DiffLine { text: masked(line.text), ..line })
                        .collect(),
                    ..hunk
                })
                .collect(),
        ),
        View::Table { headers, rows } => View::Table {
            headers: headers.into_iter().map(masked).collect(),
            rows: rows.into_iter().map(|row| row.into_iter().map(masked).collect()).collect(),
        },
        View::List { items, order } => View::List { items: all(items), order },
        View::Group(children) => View::Group(all(children)),
        View::Collapsible { summary, children, initially } => {
            View::Collapsible { summary: excerpted(summary), children: all(children), initially }
        }
        View::Link { text, url } => View::Link { text: masked(text), url: masked(url) },
        View::SubSession { session, summary } => {
            View::SubSession { session, summary: masked(summary) }
        }
        View::Action { label, tool, arguments } => {
            View::Action { label: masked(label), tool, arguments: payload(secrets, arguments) }
        }
        View::Unknown => View::Unknown,
    }
}

/// A text that says something of another, and may have shortened it before it was masked.
fn excerpt(secrets: &Secrets, text: &mut String) {
    mask(secrets, text);
    if let Cow::Owned(shorter) = secrets.without_halves(text) {
        *text = shorter;
    }
}

fn mask(secrets: &Secrets, text: &mut String) {
    if let Cow::Owned(masked) = secrets.mask_text(text) {
        *text = masked;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_comes_before_a_result_shows_no_secret_either() {
        #[derive(Default)]
        struct Recorded(Mutex<Vec<Event>>);
        impl EventSink for Recorded {
            fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
                self.0.lock().unwrap().push(event);
                Ok(())
            }
        }
        let secrets = Secrets::new([("TOKEN", "hunter2!")]);
        let recorded = Recorded::default();
        let sink = Masked { sink: &recorded, secrets: &secrets, tool: "t" };
        let partial = |text: &str| {
            let Value::Object(partial) = json!({"tool": "t", "matches": [{"text": text}]}) else {
                unreachable!()
            };
            Event::Partial(partial)
        };
        let progress = |text: &str| Event::Progress { message: text.to_owned(), fraction: None };
        sink.emit(partial("key = hunter2!")).unwrap();
        sink.emit(progress("at hunter2!")).unwrap();
        sink.emit(partial("nothing")).unwrap();
        let expected = [partial("key = [TOKEN]"), progress("at [TOKEN]"), partial("nothing")];
        assert_eq!(*recorded.0.lock().unwrap(), expected);
    }
}
