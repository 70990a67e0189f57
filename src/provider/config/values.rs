//! Reads a JSON object against the table: unknown keys, types, ranges, defaults. No key's meaning
//! is known here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::table::{Attribute, AttributeKind, AttributePresence};
use super::{Fault, fault};
use crate::provider::nearest::suggestion;
use crate::tools::Payload;

/// The values that fit the table, defaults included. A key with a fault is absent.
#[derive(Debug, Default)]
pub(super) struct Values {
    by_name: BTreeMap<&'static str, Value>,
    written: BTreeSet<&'static str>,
}

impl Values {
    /// Reads `map` against `attributes`, adding what is wrong to `faults`.
    pub(super) fn read(map: &Payload, attributes: &[Attribute], faults: &mut Vec<Fault>) -> Self {
        Self::read_under("", map, attributes, faults)
    }

    fn read_under(
        prefix: &str,
        map: &Payload,
        attributes: &[Attribute],
        faults: &mut Vec<Fault>,
    ) -> Self {
        for name in map.keys() {
            if attributes.iter().all(|attribute| attribute.name != name) {
                let known = attributes.iter().map(|attribute| attribute.name);
                faults.push(Fault::written(
                    format!("{prefix}{name}"),
                    format!("unknown key; {}", suggestion(name, known)),
                ));
            }
        }
        let mut values = Self::default();
        for attribute in attributes {
            let path = format!("{prefix}{}", attribute.name);
            // A kernel sends null for every key that its file leaves out.
            let written = map.get(attribute.name).filter(|value| !value.is_null());
            let value = match (written, attribute.presence) {
                (Some(value), _) => {
                    values.written.insert(attribute.name);
                    value.clone()
                }
                (None, AttributePresence::Default(text)) => default_value(text),
                (None, AttributePresence::Unset) => continue,
                (None, AttributePresence::Required) => {
                    faults.push(Fault::written(path, required(attribute)));
                    continue;
                }
            };
            match fit(&path, &value, attribute, faults) {
                Some(fitting) => values.by_name.insert(attribute.name, fitting),
                None => None,
            };
        }
        values
    }

    /// Whether the key was written rather than defaulted.
    pub(super) fn is_written(&self, name: &str) -> bool {
        self.written.contains(name)
    }

    /// A text; empty where it is absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.by_name.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number.
    pub(super) fn whole(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).and_then(Value::as_u64)
    }

    /// A flag; false where it is absent.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.by_name.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list of texts; empty where it is absent.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let items = self.by_name.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Texts by name; empty where it is absent.
    pub(super) fn text_map(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.by_name.get(name).and_then(Value::as_object);
        entries
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    /// The keys of an object; none where it is absent.
    pub(super) fn object(
        &self,
        name: &str,
        attributes: &[Attribute],
        faults: &mut Vec<fault::Fault>,
    ) -> Self {
        match self.by_name.get(name).and_then(Value::as_object) {
            Some(map) => Self::read_under(&format!("{name}."), map, attributes, faults),
            None => Self::default(),
        }
    }
}

/// The value that fits the attribute, or a fault.
fn fit(path: &str, value: &Value, attribute: &Attribute, faults: &mut Vec<Fault>) -> Option<Value> {
    let wrong = |faults: &mut Vec<Fault>, wanted: &str| {
        faults.push(Fault::written(path, format!("must be {wanted}, not {}", describe(value))));
        None
    };
    match attribute.kind {
        AttributeKind::Text => match value.as_str() {
            Some(text) if is_usable(text) => Some(value.clone()),
            _ => wrong(faults, "a text that is not empty"),
        },
        AttributeKind::Choice(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Some(value.clone()),
            Some(word) => {
                let problem =
                    format!("{word:?} is not known; {}", suggestion(word, words.iter().copied()));
                faults.push(Fault::written(path, problem));
                None
            }
            None => wrong(faults, &format!("one of {}", words.join(", "))),
        },
        AttributeKind::Whole { min, max } => match whole(value) {
            Some(number) if (min..=max).contains(&number) => Some(Value::from(number)),
            _ => wrong(faults, &format!("a whole number from {min} to {max}")),
        },
        AttributeKind::Bool => match value.as_bool() {
            Some(_) => Some(value.clone()),
            None => wrong(faults, "true or false"),
        },
        AttributeKind::TextList => fit_list(path, value, faults)
            .or_else(|| if value.is_array() { None } else { wrong(faults, "a list of texts") }),
        AttributeKind::TextMap => match value.as_object() {
            Some(map) => {
                for (name, value) in map.iter().filter(|(_, value)| !value.is_string()) {
                    let problem = format!("must be a text, not {}", describe(value));
                    faults.push(Fault::written(format!("{path}.{name}"), problem));
                }
                Some(value.clone())
            }
            None => wrong(faults, "texts by name"),
        },
        // The keys of the object are read when its meaning is asked for.
        AttributeKind::Object(_) => match value.as_object() {
            Some(_) => Some(value.clone()),
            None => wrong(faults, "an object"),
        },
    }
}

fn fit_list(path: &str, value: &Value, faults: &mut Vec<Fault>) -> Option<Value> {
    let items = value.as_array()?;
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let place = || format!("{path}[{index}]");
        match item.as_str() {
            Some(text) if is_usable(text) => {
                if !seen.insert(text) {
                    faults.push(Fault::written(place(), format!("{text:?} is there twice")));
                }
            }
            _ => faults.push(Fault::written(
                place(),
                format!("must be a text that is not empty, not {}", describe(item)),
            )),
        }
    }
    Some(value.clone())
}

/// A NUL cannot be part of a path, a name or a value of the environment.
fn is_usable(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

/// The wire has doubles only, so a whole number may come in as 3.0.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let is_exact = number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked in the line above"
        )]
        is_exact.then_some(number as u64)
    })
}

fn required(attribute: &Attribute) -> String {
    match attribute.kind {
        AttributeKind::TextList => format!("required, such as {} = [\".\"]", attribute.name),
        _ => "required".to_owned(),
    }
}

/// The table's defaults are JSON by construction; a test reads every one of them.
fn default_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// What a value is, without repeating what it says: it may be a secret in the wrong place.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) if text.contains('\0') => "a text with a NUL in it".to_owned(),
        Value::String(text) if text.trim().parse::<f64>().is_ok() => {
            "a number in quotes".to_owned()
        }
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
