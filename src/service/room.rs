//! Room for a large request, looked for before it is taken in.
//!
//! gRPC makes room for a whole message as soon as it has told its length, and decoding it takes as
//! much again. Neither can be told that there is no memory, so that it would be the end of the
//! process; where memory is limited, such a request is turned away here.

use futures_util::StreamExt as _;
use http_body_util::{BodyStream, StreamBody};
use rustix::io::Errno;
use sandbox::memory;
use tonic::Status;
use tonic::body::Body;

use crate::tools::ToolError;

use super::status::status;

/// What is smaller is left to the process's reserve.
const LARGE: usize = 1024 * 1024;

/// How often a message's bytes are there at the same time: as they came, decoded, and once more on
/// their way to a tool.
const COPIES: usize = 3;

/// What comes before a message: whether it is compressed, and four bytes of its length.
const PREFIX: usize = 5;

/// The same request, whose body fails where there is no room for what it announces.
pub(super) fn guarded(request: http::Request<Body>) -> http::Request<Body> {
    if !memory::is_limited() {
        return request;
    }
    request.map(|body| {
        let mut message = Message::default();
        let frames = BodyStream::new(body).map(move |frame| {
            let frame = frame?;
            match frame.data_ref().map(|data| message.takes(data)) {
                Some(Some(bytes)) if !memory::has_room(bytes) => Err(no_room(message.len)),
                _ => Ok(frame),
            }
        });
        Body::new(StreamBody::new(frames))
    })
}

fn no_room(bytes: usize) -> Status {
    let error = ToolError::from_io("take in the request", "", Errno::NOMEM.into())
        .with_detail("request_bytes", bytes)
        .with_hint("try again when other calls have ended, or write a large file in pieces");
    status(&error)
}

/// How much of a message has come.
#[derive(Default)]
struct Message {
    prefix: Vec<u8>,
    came: usize,
    len: usize,
}

impl Message {
    /// How much room there has to be before this next piece is handed on, where that is much: once
    /// when the length is known, and once more before all is decoded.
    fn takes(&mut self, data: &[u8]) -> Option<usize> {
        let before = self.came;
        self.came += data.len();
        if before < PREFIX {
            self.prefix.extend(data.iter().take(PREFIX - before));
            let [_, length @ ..] = <[u8; PREFIX]>::try_from(self.prefix.as_slice()).ok()?;
            self.len = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            // More than any message may have is refused for that.
            return (LARGE..=super::MOST_MESSAGE_BYTES)
                .contains(&self.len)
                .then(|| self.len * COPIES);
        }
        let is_whole = self.came >= self.len.saturating_add(PREFIX);
        (self.len >= LARGE && is_whole).then(|| self.len * (COPIES - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(len: u32, pieces: &[usize]) -> Vec<Option<usize>> {
        let mut bytes = [&[0][..], &len.to_be_bytes()].concat();
        bytes.resize(PREFIX + len as usize, 0);
        let (mut message, mut from) = (Message::default(), 0);
        let takes = |count: &usize| {
            from += count;
            message.takes(&bytes[from - count..from])
        };
        pieces.iter().map(takes).collect()
    }

    #[test]
    fn room_is_asked_for_at_both_ends_of_a_large_message() {
        let len = 2 * LARGE;
        let [begin, end] = [Some(3 * len), Some(2 * len)];
        assert_eq!(taken(len as u32, &[2, 3, 7, len - 7]), [None, begin, None, end]);
        assert_eq!(taken(len as u32, &[PREFIX + 1, len - 1]), [begin, end]);
        assert_eq!(taken(len as u32, &[1, 4, len - 1]), [None, begin, None]);
    }

    #[test]
    fn small_ones_and_those_that_are_too_large_are_no_matter_of_room() {
        assert_eq!(taken(100, &[5, 100]), [None, None]);
        let most = super::super::MOST_MESSAGE_BYTES as u32;
        assert_eq!(taken(most + 1, &[5]), [None]);
    }
}
