//! Pure text work: encodings and lines. Nothing here touches a file.

pub mod encoding;
pub mod lines;
pub mod window;
