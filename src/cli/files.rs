//! What a person names on the command line, read and written with the person's own rights: no root
//! and no jail is meant. Only here does the command line touch files.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use super::CliError;
use super::error::JsonOrigin;
use tool_provider::Payload;

/// Where JSON comes from: the command line itself, a file, or standard input, which can be read once.
#[derive(Default)]
pub(crate) struct Source {
    stdin: Stdin,
}

#[derive(Default)]
enum Stdin {
    #[default]
    Unread,
    Read,
}

impl Source {
    /// The JSON object that `text` is, that the file holds where it is `@FILE`, or that standard
    /// input holds where it is `-`.
    pub(crate) fn object(&mut self, what: &'static str, text: &str) -> Result<Payload, CliError> {
        let bytes = self.bytes(text)?;
        serde_json::from_slice(&bytes).map_err(|source| CliError::Json {
            what,
            origin: origin_of(text),
            source,
        })
    }

    /// What `text` is, or says where it is.
    pub(crate) fn bytes(&mut self, text: &str) -> Result<Vec<u8>, CliError> {
        if let Some(path) = text.strip_prefix('@') {
            return read(Path::new(path)).map_err(|error| match error {
                CliError::File { path, source, .. } => CliError::NoAtFile { path, source },
                other => other,
            });
        }
        if text != "-" {
            return Ok(text.as_bytes().to_vec());
        }
        match std::mem::replace(&mut self.stdin, Stdin::Read) {
            Stdin::Read => Err(CliError::StdinTwice),
            Stdin::Unread => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|source| CliError::Io { what: "read standard input", source })?;
                Ok(bytes)
            }
        }
    }
}

/// Where the JSON is that `text` is or names.
pub(crate) fn origin_of(text: &str) -> JsonOrigin {
    if text == "-" || text.starts_with('@') { JsonOrigin::Elsewhere } else { JsonOrigin::Line }
}

/// A file of the person's.
#[expect(clippy::disallowed_methods, reason = "the person named it; no root is meant")]
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

/// Writes a file in a directory of the person's.
#[expect(clippy::disallowed_methods, reason = "the person named it; no root is meant")]
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), CliError> {
    std::fs::write(path, content).map_err(|source| CliError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// Writes a file that is not there yet.
#[expect(clippy::disallowed_methods, reason = "the person named it; no root is meant")]
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<(), CliError> {
    let created = std::fs::File::create_new(path).and_then(|mut file| file.write_all(content));
    created.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => CliError::Exists { path: path.to_owned() },
        _ => CliError::File { action: "write", path: path.to_owned(), source },
    })
}
