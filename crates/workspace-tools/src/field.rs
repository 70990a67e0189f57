//! A field of arguments or of a result, declared once: its schema, and whatever reads or writes it,
//! come from the declaration.

use serde_json::Value;

use tool_provider::Payload;
use tool_provider::schema::{Kind, Presence, Property, Schema};
use tool_provider::shorten::shorten;
use workspace_fs::Version;
use workspace_fs::text::hidden::one_line;
use workspace_fs::text::name;

/// A field whose values have the shape `S`.
#[derive(Clone, Copy, Debug)]
pub struct Field<S> {
    /// Its name.
    pub name: &'static str,
    presence: Presence,
    shape: S,
    description: &'static str,
}

/// What values a field has.
pub trait Shape: Copy {
    /// How such a value is read.
    type Value<'p>;

    /// Its kind in a schema.
    fn kind(self) -> Kind;

    /// The value; none where it is of another kind, as in a payload of another version it may be.
    fn read(value: &Value) -> Option<Self::Value<'_>>;
}

/// Any text, or one of the named words where there are any.
#[derive(Clone, Copy, Debug)]
pub struct Text(&'static [&'static str]);

/// A whole number of at least the given value.
#[derive(Clone, Copy, Debug)]
pub struct Whole(i64);

/// True or false.
#[derive(Clone, Copy, Debug)]
pub struct Flag;

/// A list of items with this schema.
#[derive(Clone, Copy, Debug)]
pub struct List(fn() -> Schema);

/// An object with this schema.
#[derive(Clone, Copy, Debug)]
pub struct Object(fn() -> Schema);

/// The path of the file that a result is about.
pub const PATH: Field<Text> = text("path", "The path, as the call named it.").required();

/// The argument that names the file of a file tool.
pub const FILE: Field<Text> = PATH.described(
    "Absolute, or relative to the working directory. A name that a result shows in double quotes is \
     given as it is shown.",
);

/// The argument that asks for what only programs want.
pub const DETAILS: Field<Flag> = flag("details", "Adds what only programs need.");

/// Whether a result says what only programs want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    /// It says what differs from the usual.
    Few,
    /// It says all.
    All,
}

impl Details {
    /// What a call asks for.
    pub(crate) fn of(arguments: &Payload) -> Self {
        if DETAILS.get(arguments) == Some(true) { Self::All } else { Self::Few }
    }

    /// A version as a result shows it: tokens are dear, and of its digits a few tell contents apart.
    pub(crate) fn version(self, version: Version) -> String {
        match self {
            Self::Few => version.short(),
            Self::All => version.to_string(),
        }
    }
}

/// What a result says beside its other fields.
pub const NOTICE: Field<Text> = text("notice", "What else is worth knowing.");

/// A text that may be left out.
#[must_use]
pub const fn text(name: &'static str, description: &'static str) -> Field<Text> {
    optional(name, Text(&[]), description)
}

/// A whole number of at least `min` that may be left out.
#[must_use]
pub const fn whole(name: &'static str, min: i64, description: &'static str) -> Field<Whole> {
    optional(name, Whole(min), description)
}

/// A flag that may be left out.
#[must_use]
pub const fn flag(name: &'static str, description: &'static str) -> Field<Flag> {
    optional(name, Flag, description)
}

/// A list of such items that may be left out.
#[must_use]
pub const fn list(
    name: &'static str,
    items: fn() -> Schema,
    description: &'static str,
) -> Field<List> {
    optional(name, List(items), description)
}

/// An object with this schema that may be left out.
#[must_use]
pub const fn object(
    name: &'static str,
    schema: fn() -> Schema,
    description: &'static str,
) -> Field<Object> {
    optional(name, Object(schema), description)
}

const fn optional<S>(name: &'static str, shape: S, description: &'static str) -> Field<S> {
    Field { name, presence: Presence::Optional, shape, description }
}

impl<S: Copy> Field<S> {
    /// The field where it must be there.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { presence: Presence::Required, ..self }
    }

    /// The field where it may be left out.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { presence: Presence::Optional, ..self }
    }

    /// The field with another description.
    #[must_use]
    pub const fn described(self, description: &'static str) -> Self {
        Self { description, ..self }
    }
}

impl Field<Text> {
    /// The field where its value is one of these words.
    #[must_use]
    pub const fn one_of(self, words: &'static [&'static str]) -> Self {
        Self { shape: Text(words), ..self }
    }
}

impl Field<Whole> {
    /// The field's value where it is not negative.
    pub fn unsigned(&self, payload: &Payload) -> Option<u64> {
        self.get(payload).and_then(|number| u64::try_from(number).ok())
    }
}

impl<S: Shape> Field<S> {
    /// The field's value in a payload; none where it is absent, or of another kind.
    pub fn get<'p>(&self, payload: &'p Payload) -> Option<S::Value<'p>> {
        S::read(payload.get(self.name)?)
    }

    /// Sets the field in a payload.
    pub fn put(&self, payload: &mut Payload, value: impl Into<Value>) {
        payload.insert(self.name.to_owned(), value.into());
    }

    /// Sets the field in a payload where there is a value.
    pub fn put_some(&self, payload: &mut Payload, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(payload, value);
        }
    }
}

/// A field of any shape.
pub trait Declared {
    /// The field in a schema.
    fn property(&self) -> Property;
}

impl<S: Shape> Declared for Field<S> {
    fn property(&self) -> Property {
        let schema = Schema::new(self.shape.kind(), self.description);
        Property { name: self.name, presence: self.presence, schema }
    }
}

/// The schema of an object with these fields.
pub fn schema(fields: &[&dyn Declared]) -> Schema {
    Schema::object(fields.iter().map(|field| field.property()).collect())
}

/// The schema of the result of the one tool named in `tool`.
pub fn result(tool: &'static [&'static str; 1], fields: &[&dyn Declared]) -> Schema {
    Schema::result(tool, fields.iter().map(|field| field.property()).collect())
}

/// The schema of a text in a list.
pub fn any_text() -> Schema {
    Schema::new(Kind::String(&[]), "")
}

/// A whole number.
pub(crate) fn as_whole(value: &Value) -> Option<i64> {
    // A payload that a host kept may have passed through a format without whole numbers.
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    })
}

/// The path that an item of a list names: the item itself, or its field `path`.
pub fn path_of(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| PATH.get(item.as_object()?))
}

/// How much of a pattern is shown, in bytes.
const MOST_PATTERN: usize = 200;

/// `needle in src`: what a search looks for, and where.
pub(crate) fn asked(payload: &Payload, pattern: &Field<Text>) -> String {
    let pattern = shorten(pattern.get(payload).unwrap_or("files"), MOST_PATTERN);
    let pattern = one_line(&pattern);
    match PATH.get(payload) {
        Some(path) => format!("{pattern} in {}", name::shown(path)),
        None => pattern.into_owned(),
    }
}

impl Shape for Text {
    type Value<'p> = &'p str;

    fn kind(self) -> Kind {
        Kind::String(self.0)
    }

    fn read(value: &Value) -> Option<&str> {
        value.as_str()
    }
}

impl Shape for Whole {
    type Value<'p> = i64;

    fn kind(self) -> Kind {
        Kind::Whole { min: self.0 }
    }

    fn read(value: &Value) -> Option<i64> {
        as_whole(value)
    }
}

impl Shape for Flag {
    type Value<'p> = bool;

    fn kind(self) -> Kind {
        Kind::Boolean
    }

    fn read(value: &Value) -> Option<bool> {
        value.as_bool()
    }
}

impl Shape for List {
    type Value<'p> = &'p [Value];

    fn kind(self) -> Kind {
        Kind::Array(Box::new((self.0)()))
    }

    fn read(value: &Value) -> Option<&[Value]> {
        value.as_array().map(Vec::as_slice)
    }
}

impl Shape for Object {
    type Value<'p> = &'p Payload;

    fn kind(self) -> Kind {
        (self.0)().kind
    }

    fn read(value: &Value) -> Option<&Payload> {
        value.as_object()
    }
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
        assert_eq!(as_whole(&7.into()), Some(7));
        assert_eq!(as_whole(&7.0.into()), Some(7));
        assert_eq!(as_whole(&7.5.into()), None);
        assert_eq!(as_whole(&1e300.into()), None);
    }
}
