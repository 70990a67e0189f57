//! `google.protobuf.Struct` and JSON objects.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as WireValue};
use serde_json::{Number, Value};

use crate::tools::Payload;

/// Deepest nesting that is taken. Each level costs stack; prost's own limit is of that order.
const DEEPEST: usize = 64;
/// Whole numbers below this are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that JSON cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// NaN or an infinity.
    #[error("a number is not finite")]
    NotFinite,
    /// Deeper than any schema of ours.
    #[error("a value is nested deeper than {DEEPEST} levels")]
    TooDeep,
}

/// The JSON object of a wire struct. Whole numbers become integers again: the wire has doubles.
///
/// # Errors
/// [`ConvertError`].
pub(crate) fn payload(wire: Struct) -> Result<Payload, ConvertError> {
    object(wire, 0)
}

fn object(wire: Struct, depth: usize) -> Result<Payload, ConvertError> {
    wire.fields.into_iter().map(|(name, value)| Ok((name, json(value, depth + 1)?))).collect()
}

fn json(wire: WireValue, depth: usize) -> Result<Value, ConvertError> {
    if depth > DEEPEST {
        return Err(ConvertError::TooDeep);
    }
    Ok(match wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::NumberValue(number)) => Value::Number(json_number(number)?),
        Some(Kind::StructValue(inner)) => Value::Object(object(inner, depth)?),
        Some(Kind::ListValue(list)) => Value::Array(
            list.values
                .into_iter()
                .map(|value| json(value, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
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
    Number::from_f64(number).ok_or(ConvertError::NotFinite)
}

/// The wire struct of a JSON object.
pub(crate) fn to_struct(payload: Payload) -> Struct {
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
            assert_eq!(json(wire, 0), Err(ConvertError::NotFinite));
        }
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
        assert_eq!(payload(to_struct(nested(DEEPEST))), Err(ConvertError::TooDeep));
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
