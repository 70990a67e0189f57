//! The JSON-Schema subset in which a tool describes its arguments and its result, and the provider
//! its configuration.
//!
//! The wire knows objects, strings, numbers, booleans, arrays and string enumerations; it has no
//! integers, no null, no alternatives and no patterns. Whole numbers and ranges are this
//! provider's own refinement: checked here, stated in the description, invisible on the wire.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The largest whole number up to which JSON numbers, which are doubles on the wire, are exact.
pub const EXACT: i64 = 1 << 53;

/// A node of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// What kind of value is meant.
    pub kind: Kind,
    /// What the value is for, written for a model.
    pub description: Cow<'static, str>,
}

/// The kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An object with named properties, in the order in which they are documented.
    Object(Vec<Property>),
    /// An object whose keys are free; every value is a string.
    StringMap,
    /// Any string, or one of the named values where there are any.
    String(&'static [&'static str]),
    /// Any number.
    Number,
    /// A whole number of at least the given value. On the wire a plain number.
    Whole {
        /// The smallest value allowed.
        min: i64,
    },
    /// A whole number in this range, both ends included. On the wire a plain number.
    Range {
        /// The smallest value allowed.
        min: i64,
        /// The largest value allowed.
        max: i64,
    },
    /// True or false.
    Boolean,
    /// A list whose items have one shape.
    Array(Box<Schema>),
}

/// One property of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it holds.
    pub schema: Schema,
}

/// Whether a property must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must be there.
    Required,
    /// It may be left out; then it is absent, never null.
    Optional,
    /// It may be left out; then this JSON text holds.
    Default(&'static str),
}

impl Kind {
    /// Which whole numbers are allowed, where only whole numbers are.
    #[must_use]
    pub fn range(&self) -> Option<RangeInclusive<i64>> {
        match *self {
            Self::Whole { min } => Some(min..=EXACT),
            Self::Range { min, max } => Some(min..=max),
            _ => None,
        }
    }
}

impl Schema {
    /// A schema of the given kind.
    pub fn new(kind: Kind, description: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, description: description.into() }
    }

    /// An object with these properties.
    #[must_use]
    pub fn object(properties: Vec<Property>) -> Self {
        Self::new(Kind::Object(properties), "")
    }

    /// What a tool of this name returns: these properties, and `tool` before them. The provider
    /// puts that into each result and each partial one.
    #[must_use]
    pub fn result(name: &'static [&'static str; 1], mut properties: Vec<Property>) -> Self {
        let tool =
            Property::required("tool", Kind::String(name), "The tool that made this result.");
        properties.insert(0, tool);
        Self::object(properties)
    }

    /// A list of `items`.
    pub fn array(items: Schema, description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Array(Box::new(items)), description)
    }
}

impl Property {
    /// The property with another description.
    #[must_use]
    pub fn described(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.schema.description = description.into();
        self
    }

    /// A property that must be present.
    pub fn required(
        name: &'static str,
        kind: Kind,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name, presence: Presence::Required, schema: Schema::new(kind, description) }
    }

    /// A property that may be left out.
    pub fn optional(
        name: &'static str,
        kind: Kind,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name, presence: Presence::Optional, schema: Schema::new(kind, description) }
    }

    /// A property that may be left out, for which this JSON text holds then.
    pub fn with_default(
        name: &'static str,
        kind: Kind,
        json: &'static str,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name, presence: Presence::Default(json), schema: Schema::new(kind, description) }
    }
}
