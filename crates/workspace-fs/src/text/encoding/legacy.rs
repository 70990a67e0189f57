//! Legacy encodings, made lossless.
//!
//! Some single-byte encodings leave bytes without a meaning. Each of those is shown as the
//! private-use character U+F700 + byte, the mapping that the Encoding Standard itself uses for
//! `x-user-defined`, so that every byte has its own character and comes back from it.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use encoding_rs::{DecoderResult, EncoderResult, Encoding};

use super::Unencodable;

const PRIVATE_BASE: u32 = 0xF700;
const PRIVATE: RangeInclusive<u32> = 0xF780..=0xF7FF;

pub(super) fn decode<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Cow<'a, str> {
    if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
        return text;
    }
    if !encoding.is_single_byte() {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    // A byte becomes at most one character of the basic plane: three bytes of UTF-8.
    let mut text = String::with_capacity(bytes.len() * 3 + 16);
    let mut rest = bytes;
    loop {
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut text, true);
        let consumed;
        (consumed, rest) = rest.split_at(read);
        match result {
            DecoderResult::InputEmpty => return Cow::Owned(text),
            DecoderResult::OutputFull => text.reserve(rest.len() * 3 + 16),
            DecoderResult::Malformed(..) => {
                let unmapped = consumed.last().map_or(0, |byte| u32::from(*byte));
                text.extend(char::from_u32(PRIVATE_BASE + unmapped));
                text.reserve(rest.len() * 3 + 16);
                decoder = encoding.new_decoder_without_bom_handling();
            }
        }
    }
}

pub(super) fn encode(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, Unencodable> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    loop {
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Ok(bytes),
            EncoderResult::OutputFull => bytes.reserve(rest.len() * 2 + 16),
            EncoderResult::Unmappable(character) => {
                let Some(byte) = unmapped_byte(encoding, character) else {
                    let position = text.len() - rest.len() - character.len_utf8();
                    return Err(Unencodable { character, position, encoding: encoding.name() });
                };
                bytes.push(byte);
            }
        }
    }
}

pub(super) fn is_boundary(encoding: &'static Encoding, content: &[u8], position: usize) -> bool {
    if encoding.is_single_byte() {
        return true;
    }
    // No multi-byte encoding of the standard uses a line feed as a trail byte, and none that is
    // detected here keeps state: a line can be decoded by itself.
    let line = memchr::memrchr(b'\n', &content[..position]).map_or(0, |at| at + 1);
    encoding.decode_without_bom_handling_and_without_replacement(&content[line..position]).is_some()
}

/// The meaningless byte that `character` was made from.
fn unmapped_byte(encoding: &'static Encoding, character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = PRIVATE.contains(&code).then(|| u8::try_from(code - PRIVATE_BASE).ok()).flatten()?;
    let meaningless =
        encoding.decode_without_bom_handling_and_without_replacement(&[byte]).is_none();
    (encoding.is_single_byte() && meaningless).then_some(byte)
}
