//! A result as plain text: what a model reads where a host passes on text instead of JSON.

use serde_json::Value;

use crate::schema::{Kind, Property};
use crate::{Payload, ToolSpec};

/// The result of a tool without the JSON around it: first the fields named in `bare`, as they are
/// (where none is named, the texts of several lines), then a line `name: value` for each of the others, in the order in which the tool documents them.
/// The field `tool` is left out.
///
/// Behind the text of a file or a command comes an empty line; what the last lines say is true,
/// whatever that text contains.
pub(crate) fn of(spec: &ToolSpec, bare: &[&str], payload: &Payload) -> String {
    let is_bare = |name: &str, value: &Value| match bare {
        // A tool that names none: what has lines is one.
        [] => matches!(value, Value::String(string) if string.contains('\n')),
        named => named.contains(&name),
    };
    let (bare, facts): (Vec<_>, Vec<_>) = in_order(spec, payload)
        .filter(|(name, _)| *name != "tool")
        .partition(|(name, value)| is_bare(name, value));
    let mut text = String::new();
    for (_, value) in bare {
        push_bare(&mut text, value);
    }
    let has_bare = !text.is_empty();
    for (index, (name, value)) in facts.into_iter().enumerate() {
        if has_bare && index == 0 {
            text.push('\n');
        }
        text.push_str(name);
        text.push_str(": ");
        push_value(&mut text, value);
        text.push('\n');
    }
    if text.is_empty() {
        return NOTHING.to_owned();
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// A result that says nothing: an empty text looks like a fault.
const NOTHING: &str = "(nothing)";

/// The fields that the tool documents, then any others.
fn in_order<'a>(
    spec: &'a ToolSpec,
    payload: &'a Payload,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let documented: &[Property] = match &spec.output.kind {
        Kind::Object(properties) => properties,
        _ => &[],
    };
    let known = documented.iter().filter_map(|property| {
        payload.get_key_value(property.name).map(|(name, value)| (name.as_str(), value))
    });
    let others = payload
        .iter()
        .filter(|(name, _)| documented.iter().all(|property| property.name != name.as_str()))
        .map(|(name, value)| (name.as_str(), value));
    known.chain(others)
}

/// A text, or the items of a list one a line, ending with a line break.
fn push_bare(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| push_bare(text, item)),
        Value::String(string) if string.is_empty() => {}
        value => {
            push_value(text, value);
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
    }
}

fn push_value(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => text.push_str(string),
        value => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample;
    use crate::schema::Schema;

    fn shown(bare: &[&str], payload: Value) -> String {
        let text = |name| Property::optional(name, Kind::String(&[]), "");
        let output = Schema::result(&["sample"], vec![text("output"), text("a"), text("b")]);
        let spec = ToolSpec { output, ..sample::spec("sample", Schema::object(Vec::new())) };
        let Value::Object(payload) = payload else { panic!("an object is wanted") };
        of(&spec, bare, &payload)
    }

    #[test]
    fn bare_text_comes_first_and_facts_last_in_their_order() {
        let payload = json!({"tool": "sample", "b": "2", "a": "1", "output": "x\ny\n", "z": [3]});
        assert_eq!(shown(&["output"], payload), "x\ny\n\na: 1\nb: 2\nz: [3]");
    }

    #[test]
    fn a_list_is_a_line_for_each_and_one_without_bare_text_has_no_empty_line() {
        let payload = json!({"tool": "sample", "output": ["one", "two"]});
        assert_eq!(shown(&["output"], payload), "one\ntwo");
        assert_eq!(shown(&["output"], json!({"a": "1", "output": ""})), "a: 1");
    }

    #[test]
    fn where_a_tool_names_no_bare_field_what_has_lines_is_one() {
        assert_eq!(shown(&[], json!({"a": "1", "output": "x\ny"})), "x\ny\n\na: 1");
        assert_eq!(shown(&[], json!({"a": "1", "b": "2"})), "a: 1\nb: 2");
    }

    #[test]
    fn a_result_that_says_nothing_is_no_empty_text() {
        assert_eq!(shown(&["output"], json!({"tool": "sample", "output": []})), NOTHING);
    }
}
