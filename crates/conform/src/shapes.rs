//! The wire's subset of JSON Schema: what is wrong with a shape, and with a value of it.

use serde_json::Value;

use crate::observe::Shape;
use tool_provider::Payload;

pub(crate) const OBJECT: i32 = 1;
pub(crate) const STRING: i32 = 2;
pub(crate) const NUMBER: i32 = 3;
pub(crate) const BOOLEAN: i32 = 4;
pub(crate) const ARRAY: i32 = 5;

/// Deepest nesting of a shape that is looked at.
const DEEPEST: usize = 32;

/// What there is to say about a shape.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// What is no shape of the subset.
    pub(crate) problems: Vec<String>,
    /// What is one, and means nothing or says it twice: JSON Schema allows it.
    pub(crate) remarks: Vec<String>,
}

/// Looks at the shape of an operation's arguments or result.
pub(crate) fn look(what: &str, shape: Option<&Shape>) -> Looked {
    let mut looked = Looked::default();
    let Some(shape) = shape else {
        looked.problems.push(format!("{what}: not there"));
        return looked;
    };
    if shape.kind != OBJECT {
        looked.problems.push(format!("{what}: of type {}, not an object", type_name(shape.kind)));
    }
    look_at(what, shape, 0, &mut looked);
    looked
}

fn look_at(path: &str, shape: &Shape, depth: usize, looked: &mut Looked) {
    if depth > DEEPEST {
        looked.remarks.push(format!("{path}: nested deeper than {DEEPEST} levels"));
        return;
    }
    if !(OBJECT..=ARRAY).contains(&shape.kind) {
        looked.problems.push(format!("{path}: type {} is none of the five", shape.kind));
    }
    let mut problem = |text: String| looked.remarks.push(format!("{path}: {text}"));
    if shape.kind != OBJECT && !(shape.properties.is_empty() && shape.required.is_empty()) {
        problem(format!("properties on {}", type_name(shape.kind)));
    }
    if shape.kind != ARRAY && shape.items.is_some() {
        problem(format!("items on {}", type_name(shape.kind)));
    }
    if shape.kind != STRING && !shape.words.is_empty() {
        problem(format!("an enum on {}", type_name(shape.kind)));
    }
    for (index, name) in shape.required.iter().enumerate() {
        if !shape.properties.contains_key(name) {
            problem(format!("{name:?} is required and is no property"));
        }
        if shape.required[..index].contains(name) {
            problem(format!("{name:?} is required twice"));
        }
    }
    for (index, word) in shape.words.iter().enumerate() {
        if shape.words[..index].contains(word) {
            problem(format!("the enum has {word:?} twice"));
        }
    }
    for (name, inner) in &shape.properties {
        look_at(&format!("{path}.{name}"), inner, depth + 1, looked);
    }
    if let Some(items) = &shape.items {
        look_at(&format!("{path}[]"), items, depth + 1, looked);
    }
}

/// What in a payload does not fit its shape, as strictly as a host looks: null fits nothing, and
/// properties that the shape does not name are let through.
pub(crate) fn misfits(shape: &Shape, payload: &Payload) -> Vec<String> {
    let mut problems = Vec::new();
    object("payload", shape, payload, &mut problems);
    problems
}

fn object(path: &str, shape: &Shape, object: &Payload, problems: &mut Vec<String>) {
    for name in &shape.required {
        if !object.contains_key(name) {
            problems.push(format!("{path}.{name} is missing"));
        }
    }
    for (name, inner) in &shape.properties {
        if let Some(found) = object.get(name) {
            value(&format!("{path}.{name}"), inner, found, problems);
        }
    }
}

fn value(path: &str, shape: &Shape, found: &Value, problems: &mut Vec<String>) {
    match (shape.kind, found) {
        (OBJECT, Value::Object(inner)) => object(path, shape, inner, problems),
        (STRING, Value::String(text)) => {
            if !shape.words.is_empty() && !shape.words.contains(text) {
                problems.push(format!("{path} is {text:?}, none of {:?}", shape.words));
            }
        }
        (NUMBER, Value::Number(_)) | (BOOLEAN, Value::Bool(_)) => {}
        (ARRAY, Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(inner) = &shape.items {
                    value(&format!("{path}[{index}]"), inner, item, problems);
                }
            }
        }
        (kind, _) => problems.push(format!("{path} is {found}, not {}", type_name(kind))),
    }
}

/// A value that does not fit the shape.
pub(crate) fn wrong_value(shape: &Shape) -> Value {
    if shape.kind == STRING && shape.words.is_empty() {
        return Value::from(7);
    }
    Value::from("conform: no such word")
}

fn type_name(kind: i32) -> &'static str {
    match kind {
        OBJECT => "an object",
        STRING => "a string",
        NUMBER => "a number",
        BOOLEAN => "a boolean",
        ARRAY => "an array",
        _ => "no known type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(kind: i32) -> Shape {
        Shape { kind, ..Shape::default() }
    }

    fn sample() -> Shape {
        let word = Shape { words: vec!["a".to_owned(), "b".to_owned()], ..shape(STRING) };
        let list = Shape { items: Some(Box::new(shape(NUMBER))), ..shape(ARRAY) };
        let properties = [("word", word), ("list", list), ("flag", shape(BOOLEAN))];
        Shape {
            properties: properties.map(|(name, of)| (name.to_owned(), of)).into(),
            required: vec!["word".to_owned()],
            ..shape(OBJECT)
        }
    }

    #[test]
    fn a_shape_of_the_subset_has_no_problem_and_others_have() {
        let said = |shape: Option<&Shape>| {
            let looked = look("x", shape);
            (looked.problems.len(), looked.remarks.len())
        };
        assert_eq!(said(Some(&sample())), (0, 0));
        assert_eq!(said(None), (1, 0));
        let mut wrong = sample();
        wrong.required.push("no".to_owned());
        wrong.properties.insert("n".to_owned(), Shape { words: vec!["1".to_owned()], ..shape(3) });
        wrong.properties.insert("m".to_owned(), shape(6));
        wrong.properties.insert("i".to_owned(), Shape { items: Some(Box::default()), ..shape(2) });
        // Two types that there are not; and what JSON Schema allows and nobody means.
        assert_eq!(said(Some(&wrong)), (2, 3), "{:?}", look("x", Some(&wrong)));
        assert_eq!(said(Some(&shape(ARRAY))), (1, 0));
    }

    #[test]
    fn a_payload_fits_or_its_misfits_are_named() {
        let misfits = |value: Value| misfits(&sample(), value.as_object().unwrap());
        assert_eq!(misfits(json!({"word": "a", "list": [1, 2.5], "more": null})), [""; 0]);
        assert_eq!(misfits(json!({})), ["payload.word is missing"]);
        assert_eq!(misfits(json!({"word": "c"})).len(), 1);
        assert_eq!(
            misfits(json!({"word": "a", "flag": null, "list": ["1"]})),
            ["payload.flag is null, not a boolean", "payload.list[0] is \"1\", not a number"]
        );
    }
}
