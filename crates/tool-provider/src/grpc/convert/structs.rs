//! `google.protobuf.Struct` and JSON objects.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as WireValue};
use serde_json::{Number, Value};

use crate::Payload;

/// Deepest nesting that is taken. Each level costs stack; prost's own limit is of that order.
const DEEPEST: usize = 64;
/// Whole numbers below this are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Longest name of an argument that an error repeats, in characters.
const MOST_SHOWN: usize = 40;

/// A value that JSON cannot hold, or that no schema of ours has a place for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// NaN or an infinity.
    #[error("{at} must be a finite number, not NaN or an infinity")]
    NotFinite {
        /// Which value, as in `edits[3].limit`.
        at: String,
    },
    /// Deeper than any schema of ours.
    #[error("{at} is nested deeper than {DEEPEST} levels")]
    TooDeep {
        /// The outermost value.
        at: String,
    },
}

impl ConvertError {
    /// The same about a value of the object or list that `step` leads into.
    fn within(self, step: &str) -> Self {
        match self {
            Self::NotFinite { at } if at.is_empty() || at.starts_with('[') => {
                Self::NotFinite { at: format!("{step}{at}") }
            }
            Self::NotFinite { at } => Self::NotFinite { at: format!("{step}.{at}") },
            Self::TooDeep { .. } => Self::TooDeep { at: step.to_owned() },
        }
    }
}

/// The JSON object of a wire struct. Whole numbers become integers again: the wire has doubles.
///
/// # Errors
/// [`ConvertError`].
pub fn payload(wire: Struct) -> Result<Payload, ConvertError> {
    object(wire, 0)
}

fn object(wire: Struct, depth: usize) -> Result<Payload, ConvertError> {
    let entries = wire.fields.into_iter().map(|(name, value)| match json(value, depth + 1) {
        Ok(value) => Ok((name, value)),
        Err(error) => Err(error.within(&shown(&name))),
    });
    entries.collect()
}

fn json(wire: WireValue, depth: usize) -> Result<Value, ConvertError> {
    if depth > DEEPEST {
        return Err(ConvertError::TooDeep { at: String::new() });
    }
    Ok(match wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::NumberValue(number)) => Value::Number(json_number(number)?),
        Some(Kind::StructValue(inner)) => Value::Object(object(inner, depth)?),
        Some(Kind::ListValue(list)) => {
            let items = list.values.into_iter().enumerate().map(|(index, value)| {
                json(value, depth + 1).map_err(|error| error.within(&format!("[{index}]")))
            });
            Value::Array(items.collect::<Result<_, _>>()?)
        }
    })
}

fn json_number(number: f64) -> Result<Number, ConvertError> {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and in range, as just checked"
        )]
        return Ok(Number::from(number as i64));
    }
    Number::from_f64(number).ok_or(ConvertError::NotFinite { at: String::new() })
}

/// A name that a caller chose, fit for a message.
fn shown(name: &str) -> String {
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let mut chars = name.chars();
    let mut shown: String =
        chars.by_ref().take(MOST_SHOWN).flat_map(char::escape_default).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// The wire struct of a JSON object.
#[must_use]
pub fn to_struct(payload: Payload) -> Struct {
    Struct { fields: payload.into_iter().map(|(name, value)| (name, to_value(value))).collect() }
}

fn to_value(value: Value) -> WireValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(items) => {
            Kind::ListValue(ListValue { values: items.into_iter().map(to_value).collect() })
        }
        Value::Object(map) => Kind::StructValue(to_struct(map)),
    };
    WireValue { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_come_back_whole_and_others_as_they_are() {
        let cases = [
            (3.0, json!(3)),
            (-0.0, json!(0)),
            (0.5, json!(0.5)),
            (EXACT, json!(9_007_199_254_740_992_i64)),
            (1e300, json!(1e300)),
        ];
        for (number, expected) in cases {
            let wire = WireValue { kind: Some(Kind::NumberValue(number)) };
            assert_eq!(json(wire, 0), Ok(expected));
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let wire = WireValue { kind: Some(Kind::NumberValue(number)) };
            assert!(matches!(json(wire, 0), Err(ConvertError::NotFinite { .. })));
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let number = |number| WireValue { kind: Some(Kind::NumberValue(number)) };
        let list = |values| WireValue { kind: Some(Kind::ListValue(ListValue { values })) };
        let object = |name: &str, value| Struct { fields: [(name.to_owned(), value)].into() };
        let inner = WireValue { kind: Some(Kind::StructValue(object("limit", number(f64::NAN)))) };
        let wire = object("edits", list(vec![number(1.0), inner]));
        let error = payload(wire).expect_err("NaN");
        assert_eq!(
            error.to_string(),
            "edits[1].limit must be a finite number, not NaN or an infinity"
        );
        let long = "\u{1b}\n".to_owned() + &"x".repeat(1 << 20);
        let error = payload(object(&long, list(vec![number(f64::INFINITY)]))).expect_err("∞");
        let text = error.to_string();
        assert!(text.len() < 150 && text.starts_with("\\u{1b}\\nxxx"), "{text}");
    }

    #[test]
    fn nesting_is_bounded_and_what_is_allowed_passes() {
        let nested = |depth: usize| {
            let mut value = json!(1);
            for _ in 0..depth {
                value = json!([value]);
            }
            let mut payload = Payload::new();
            payload.insert("a".to_owned(), value);
            payload
        };
        let allowed = nested(DEEPEST - 1);
        assert_eq!(payload(to_struct(allowed.clone())), Ok(allowed));
        let error = payload(to_struct(nested(DEEPEST))).expect_err("it is too deep");
        assert_eq!(error, ConvertError::TooDeep { at: "a".to_owned() });
    }

    proptest! {
        #[test]
        fn what_json_holds_survives_the_wire(text in ".*", whole in -1_000_000_i64..1_000_000, flag: bool) {
            let object = json!({"t": text, "n": whole, "f": flag, "l": [null, {"x": text}]});
            let Value::Object(object) = object else { unreachable!() };
            prop_assert_eq!(payload(to_struct(object.clone())), Ok(object));
        }
    }
}
