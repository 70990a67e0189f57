//! What is shown of a file can be written back to the very bytes that it came from, unless a sign
//! stands for bytes that are no text.

use workspace_fs::text::encoding::{Detected, Encoding, SAMPLE_BYTES, detect};

pub(super) fn body(data: &[u8]) {
    let Detected::Text(encoding) = detect(data) else { return };
    let mark = encoding.bom();
    assert!(data.starts_with(mark), "{}", encoding.name());
    let bytes = &data[mark.len()..];
    let text = encoding.decode(bytes);
    match encoding.encode(&text) {
        Ok(back) => {
            let again = encoding.decode(&back);
            assert_eq!(again, text, "{}", encoding.name());
            let exact = back == bytes;
            assert!(exact || text.contains(char::REPLACEMENT_CHARACTER), "{}", encoding.name());
        }
        Err(error) => {
            // Only the sign for what is no text has no bytes of its own.
            assert_eq!(error.character, char::REPLACEMENT_CHARACTER, "{error}");
            assert!(text[error.position..].starts_with(error.character), "{error}");
        }
    }
    assert_eq!(detect(data), Detected::Text(encoding), "the same twice");
    assert!(encoding.is_boundary(data, mark.len()));
    if data.len() <= SAMPLE_BYTES && std::str::from_utf8(data).is_ok() && mark.is_empty() {
        assert_eq!(encoding, Encoding::Utf8);
    }
}
