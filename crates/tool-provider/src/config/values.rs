//! Reads a JSON object against the keys: unknown ones, types, ranges, defaults. No key's meaning is
//! known here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fault;
use crate::Payload;
use crate::nearest::suggestion;
use crate::schema::{Kind, Presence, Property};
use crate::validate;

/// The values that fit, defaults included, by their path such as `limits.open_files`. What has a
/// fault is absent.
#[derive(Debug, Default)]
pub struct Values {
    by_path: BTreeMap<String, Value>,
    written: BTreeSet<String>,
}

impl Values {
    /// Reads `map` against `properties`, adding what is wrong to `faults`.
    pub fn read(map: &Payload, properties: &[Property], faults: &mut Vec<Fault>) -> Self {
        let mut values = Self::default();
        values.add("", map, properties, faults);
        values
    }

    fn add(
        &mut self,
        prefix: &str,
        map: &Payload,
        properties: &[Property],
        faults: &mut Vec<Fault>,
    ) {
        for name in map.keys() {
            if properties.iter().all(|property| property.name != name) {
                let known = properties.iter().map(|property| property.name);
                faults.push(Fault::written(
                    format!("{prefix}{name}"),
                    format!("unknown key; {}", suggestion(name, known)),
                ));
            }
        }
        for property in properties {
            let path = format!("{prefix}{}", property.name);
            // A host sends null for every key that its file leaves out.
            let written = map.get(property.name).filter(|value| !value.is_null());
            let value = match (written, property.presence) {
                (Some(value), _) => {
                    self.written.insert(path.clone());
                    value.clone()
                }
                (None, Presence::Default(json)) => default_value(json),
                (None, Presence::Optional) => continue,
                (None, Presence::Required) => {
                    faults.push(Fault::written(path, required(property)));
                    continue;
                }
            };
            match (&property.schema.kind, &value) {
                (Kind::Object(inner), Value::Object(map)) => {
                    self.add(&format!("{path}."), map, inner, faults);
                }
                (kind, value) if !fits(&path, value, kind, faults) => {}
                _ => drop(self.by_path.insert(path, value)),
            }
        }
    }

    /// Whether the key was written rather than defaulted.
    pub fn is_written(&self, path: &str) -> bool {
        self.written.contains(path)
    }

    /// A text; empty where it is absent.
    pub fn text(&self, path: &str) -> &str {
        self.by_path.get(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number.
    pub fn whole(&self, path: &str) -> Option<u64> {
        u64::try_from(whole(self.by_path.get(path)?)?).ok()
    }

    /// A flag; false where it is absent.
    pub fn flag(&self, path: &str) -> bool {
        self.by_path.get(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list of texts; empty where it is absent.
    pub fn texts(&self, path: &str) -> impl Iterator<Item = &str> {
        let items = self.by_path.get(path).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Texts by name; empty where it is absent.
    pub fn text_map(&self, path: &str) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.by_path.get(path).and_then(Value::as_object);
        entries
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }
}

/// Whether a value is of this kind. Says what is wrong where it is not, and of items on their own.
fn fits(path: &str, value: &Value, kind: &Kind, faults: &mut Vec<Fault>) -> bool {
    let fits = match (kind, value) {
        (Kind::String([]), Value::String(text)) => is_usable(text),
        (Kind::String(words), Value::String(word)) if !words.contains(&word.as_str()) => {
            let problem =
                format!("{word:?} is not known; {}", suggestion(word, words.iter().copied()));
            faults.push(Fault::written(path, problem));
            return false;
        }
        (Kind::Whole { .. } | Kind::Range { .. }, _) => {
            whole(value).zip(kind.range()).is_some_and(|(number, range)| range.contains(&number))
        }
        (Kind::Array(items), Value::Array(list)) => {
            let mut seen = BTreeSet::new();
            for (index, item) in list.iter().enumerate() {
                let path = format!("{path}[{index}]");
                if !fits(&path, item, &items.kind, faults) {
                    continue;
                }
                if let Some(text) = item.as_str().filter(|text| !seen.insert(*text)) {
                    faults.push(Fault::written(path, format!("{text:?} is there twice")));
                }
            }
            true
        }
        (Kind::StringMap, Value::Object(map)) => {
            for (name, value) in map.iter().filter(|(_, value)| !value.is_string()) {
                let problem = format!("must be a text, not {}", describe(value));
                faults.push(Fault::written(format!("{path}.{name}"), problem));
            }
            true
        }
        (Kind::String(_), Value::String(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::Number, Value::Number(_)) => true,
        _ => false,
    };
    if !fits {
        let problem = format!("must be {}, not {}", wanted(kind), describe(value));
        faults.push(Fault::written(path, problem));
    }
    fits
}

fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::String([]) => "a text that is not empty".to_owned(),
        Kind::Array(_) => "a list of texts".to_owned(),
        Kind::StringMap => "texts by name".to_owned(),
        kind => validate::wanted(kind),
    }
}

/// A NUL cannot be part of a path, a name or a value of the environment.
fn is_usable(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

/// The wire has doubles only, so a whole number may come in as 3.0.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let is_exact = number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number);
        #[expect(clippy::cast_possible_truncation, reason = "the line above checks the range")]
        is_exact.then_some(number as i64)
    })
}

fn required(property: &Property) -> String {
    match property.schema.kind {
        Kind::Array(_) => format!("required, such as {} = [\".\"]", property.name),
        _ => "required".to_owned(),
    }
}

/// The defaults are JSON by construction; a test reads every one of them.
fn default_value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// The type of a value, without its content: it may be a secret in the wrong key.
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
