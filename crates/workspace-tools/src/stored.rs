//! Fields of a payload that a kernel kept, perhaps from another version: each is there or is not.

use serde_json::Value;

use tool_provider::Payload;

/// A field that is text.
pub(super) fn text<'a>(payload: &'a Payload, name: &str) -> Option<&'a str> {
    payload.get(name).and_then(Value::as_str)
}

/// A field that is a whole number.
pub(super) fn whole(payload: &Payload, name: &str) -> Option<i64> {
    as_whole(payload.get(name)?)
}

/// A whole number.
pub(super) fn as_whole(value: &Value) -> Option<i64> {
    // A payload that a kernel kept may have passed through a format without whole numbers.
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    })
}

/// The items of a field that is a list; none where it is not.
pub(super) fn items<'a>(payload: &'a Payload, name: &str) -> &'a [Value] {
    payload.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The path that an item of a list names: the item itself, or its field `path`.
pub(super) fn path_of(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item.get("path").and_then(Value::as_str))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any JSON, with fields of these names among it.
    fn any_value(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
        let text = prop_oneof![".{0,8}", "[a-z\n\u{1b}\"\\\\/]{0,8}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-9i64..99).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, move |inner| {
            let name = prop_oneof![
                4 => prop::sample::select(names).prop_map(str::to_owned),
                1 => "[a-z]{0,3}".prop_map(String::from),
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..8)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// The payload that `json!` made.
    pub(crate) fn of(value: Value) -> Payload {
        serde_json::from_value(value).unwrap()
    }

    /// Any payload, with fields of these names among it.
    pub(crate) fn any_payload(names: &'static [&'static str]) -> impl Strategy<Value = Payload> {
        let name = prop::sample::select(names).prop_map(str::to_owned);
        prop::collection::vec((name, any_value(names)), 0..8)
            .prop_map(|fields| fields.into_iter().collect())
    }

    #[test]
    fn numbers_come_back_from_a_format_without_whole_ones() {
        let payload = |value: Value| Payload::from_iter([("n".to_owned(), value)]);
        assert_eq!(whole(&payload(7.into()), "n"), Some(7));
        assert_eq!(whole(&payload(7.0.into()), "n"), Some(7));
        assert_eq!(whole(&payload(7.5.into()), "n"), None);
        assert_eq!(whole(&payload(1e300.into()), "n"), None);
    }
}
