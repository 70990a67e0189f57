//! HCL, as much of it as a host's `agent.hcl` is made of: `init` writes it, `doctor` reads it.
//!
//! The grammar is the whole one, so that what the host's own library refuses is refused here, too,
//! with a line and a remedy. What an expression comes to stays unknown, as only the host can
//! evaluate it: a variable, a call, an operation, a template with something to fill in.

mod body;
mod expression;
mod scan;
mod template;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use body::parse;
pub(crate) use write::{Unwritable, quoted};

use serde_json::{Map, Value as Json};

/// What stands between two braces, or in a whole file.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) blocks: Vec<Block>,
}

/// `name = value`, in a body or in an object.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// `kind "label" { … }`.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: String,
    pub(crate) labels: Vec<String>,
    pub(crate) line: usize,
    pub(crate) body: Body,
}

/// What an expression is.
#[derive(Debug)]
pub(crate) enum Value {
    /// Something that only the host can evaluate.
    Unknown,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Item>),
    Object(Vec<Attribute>),
}

/// An item of a list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// What is no HCL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct SyntaxError {
    pub(crate) line: usize,
    /// What is wrong, and what would be right.
    pub(crate) problem: String,
}

impl Body {
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(crate) fn blocks<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |block| block.kind == kind)
    }
}

impl Value {
    /// The text that it is, where it is one that is known.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What is known of it, as JSON: what is not is left out of lists and objects.
    pub(crate) fn known(&self) -> Option<Json> {
        match self {
            Value::Unknown => None,
            Value::Null => Some(Json::Null),
            Value::Bool(flag) => Some((*flag).into()),
            Value::Number(number) => Some((*number).into()),
            Value::Text(text) => Some(text.as_str().into()),
            Value::List(items) => {
                Some(items.iter().filter_map(|item| item.value.known()).collect::<Vec<_>>().into())
            }
            Value::Object(entries) => Some(Json::Object(known(entries))),
        }
    }

    /// Whether every part of it is known.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Value::Unknown => false,
            Value::List(items) => items.iter().all(|item| item.value.is_known()),
            Value::Object(entries) => entries.iter().all(|entry| entry.value.is_known()),
            _ => true,
        }
    }
}

/// The values that are known, by their names.
pub(crate) fn known(attributes: &[Attribute]) -> Map<String, Json> {
    let known = |entry: &Attribute| Some((entry.name.clone(), entry.value.known()?));
    attributes.iter().filter_map(known).collect()
}
