//! HCL strings.

use std::ffi::OsStr;
use std::fmt::Write as _;

use unicode_normalization::is_nfc;

/// Why a name cannot be written in HCL so that a host reads the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritable {
    /// HCL is UTF-8.
    #[error("it is not UTF-8, and HCL is")]
    NotUtf8,
    /// A host composes what it reads.
    #[error(
        "it has letters in Unicode's decomposed form, which a host composes: it would look for another name"
    )]
    NotComposed,
}

/// A name in quotes, which no template and no escape changes.
///
/// # Errors
/// [`Unwritable`].
pub(crate) fn quoted(name: &OsStr) -> Result<String, Unwritable> {
    let text = name.to_str().ok_or(Unwritable::NotUtf8)?;
    if !is_nfc(text) {
        return Err(Unwritable::NotComposed);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // What begins a template is doubled.
            '$' | '%' if letters.peek() == Some(&'{') => quoted.extend([letter, letter]),
            // Writing to a string cannot fail.
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    Ok(quoted)
}
