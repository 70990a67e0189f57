//! Between wire types and domain types, both ways.

mod call;
mod event;
mod schema;
mod structs;
mod view;

pub(crate) use call::{call, failure_to_wire, tool_call};
pub(crate) use event::{event_from_wire, failure_from_wire, tool_error, tool_event};
pub(crate) use schema::{config_schema, config_to_json, schema_to_json, tool_schema};
pub use structs::{ConvertError, payload, to_struct};
pub(crate) use view::{tree, view};
