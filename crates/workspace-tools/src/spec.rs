//! What the specs of several tools share.

use tool_provider::schema::{Kind, Property};

/// The argument by which a file tool is told its file.
pub(crate) fn file_property() -> Property {
    Property::required(
        "path",
        Kind::String(&[]),
        "The file: an absolute path, or one relative to the working directory. A name that a result \
         shows in double quotes is given back just so, quotes and escapes included.",
    )
}
