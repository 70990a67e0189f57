//! Any bytes as what a host stored: shown, or refused with a message.

use tonic::Code;

use super::requests::ask;

pub(super) fn body(data: &[u8]) {
    for version in ["1", "json"] {
        if let Some(status) = ask("Render", &stored(data, version)) {
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        }
    }
    // The request itself may be anything, too.
    let _ = ask("Render", data);
}

/// A RenderRequest: the payload in field 1, the version of its schema in field 2.
fn stored(payload: &[u8], version: &str) -> Vec<u8> {
    let mut request = Vec::with_capacity(payload.len() + 16);
    for (tag, field) in [(0x0a, payload), (0x12, version.as_bytes())] {
        request.push(tag);
        let mut length = field.len();
        while length > 0x7f {
            request.push(length as u8 | 0x80);
            length >>= 7;
        }
        request.push(length as u8);
        request.extend_from_slice(field);
    }
    request
}
