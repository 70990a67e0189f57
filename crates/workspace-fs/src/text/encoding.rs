//! How a file's bytes stand for text: detection, decoding for the reader, encoding for the editor.
//!
//! The rule that binds both sides: what is shown decoded can be encoded back to the very bytes it
//! came from. It holds for all UTF-8 and UTF-16 that is well formed and for every byte of every
//! single-byte encoding. Where bytes are not text in the file's encoding (a stray byte in UTF-8, half
//! a surrogate pair in UTF-16, a broken sequence in a multi-byte legacy encoding) they are shown as
//! U+FFFD, which encodes to something else and therefore never matches them: such bytes can be seen
//! and kept, but not searched for.

mod detect;
mod legacy;
mod magic;

use std::borrow::Cow;

pub use detect::{Detected, SAMPLE_BYTES, detect, is_well_guessed};

/// How the bytes of a text file stand for characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a byte order mark; ASCII is part of it.
    Utf8,
    /// UTF-8 that starts with a byte order mark.
    Utf8Bom,
    /// UTF-16, little-endian, that starts with a byte order mark.
    Utf16Le,
    /// UTF-16, big-endian, that starts with a byte order mark.
    Utf16Be,
    /// One of the WHATWG Encoding Standard's legacy encodings, found by statistics.
    Legacy(&'static encoding_rs::Encoding),
}

/// A character that an encoding has no bytes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{encoding} cannot represent {character:?} (U+{code:04X})", code = u32::from(*.character))]
pub struct Unencodable {
    /// The character.
    pub character: char,
    /// Where it stands in the text, in bytes of its UTF-8 form.
    pub position: usize,
    /// The encoding's name.
    pub encoding: &'static str,
}

impl Encoding {
    /// The name to show: `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, or the Encoding Standard's
    /// own name of a legacy encoding, such as `windows-1252`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf8Bom => "utf-8-bom",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf16Be => "utf-16be",
            Encoding::Legacy(legacy) => legacy.name(),
        }
    }

    /// The byte order mark at the file's start; empty where the encoding has none.
    #[must_use]
    pub fn bom(self) -> &'static [u8] {
        match self {
            Encoding::Utf8Bom => b"\xEF\xBB\xBF",
            Encoding::Utf16Le => b"\xFF\xFE",
            Encoding::Utf16Be => b"\xFE\xFF",
            Encoding::Utf8 | Encoding::Legacy(_) => b"",
        }
    }

    /// The size of a code unit in bytes. Text starts at multiples of it, counted from the file's
    /// start (a byte order mark is one or three whole units long).
    #[must_use]
    pub fn unit(self) -> usize {
        match self {
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            Encoding::Utf8 | Encoding::Utf8Bom | Encoding::Legacy(_) => 1,
        }
    }

    /// The text that `bytes` stand for. They must begin at the start of a character, behind the byte
    /// order mark (a mark elsewhere is kept, as U+FEFF). Bytes that are not text become U+FFFD; the
    /// module's documentation says when that can happen.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Encoding::Utf8 | Encoding::Utf8Bom => String::from_utf8_lossy(bytes),
            Encoding::Utf16Le => encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0,
            Encoding::Utf16Be => encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0,
            Encoding::Legacy(legacy) => legacy::decode(legacy, bytes),
        }
    }

    /// The bytes that stand for `text`, without a byte order mark.
    ///
    /// # Errors
    /// [`Unencodable`] for the first character that a legacy encoding lacks.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, Unencodable> {
        match self {
            Encoding::Utf8 | Encoding::Utf8Bom => Ok(text.as_bytes().to_vec()),
            Encoding::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Encoding::Legacy(legacy) => legacy::encode(legacy, text),
        }
    }

    /// Whether a character starts at `position` of a file's whole `content`, so that bytes found
    /// there are the characters that they look like. In UTF-16 they could start at half a unit, in a
    /// multi-byte legacy encoding at the second byte of a character (in Shift_JIS that may be an
    /// ASCII letter). UTF-8 that was matched with a whole string cannot start wrongly.
    #[must_use]
    pub fn is_boundary(self, content: &[u8], position: usize) -> bool {
        match self {
            Encoding::Utf8 | Encoding::Utf8Bom => true,
            Encoding::Utf16Le | Encoding::Utf16Be => position.is_multiple_of(2),
            Encoding::Legacy(legacy) => legacy::is_boundary(legacy, content, position),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn single_byte_encodings() -> Vec<&'static encoding_rs::Encoding> {
        use encoding_rs::{
            IBM866, ISO_8859_2, ISO_8859_3, ISO_8859_4, ISO_8859_5, ISO_8859_6, ISO_8859_7,
            ISO_8859_8, ISO_8859_10, ISO_8859_13, ISO_8859_14, ISO_8859_15, ISO_8859_16, KOI8_R,
            KOI8_U, MACINTOSH, WINDOWS_874, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
            WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258, X_MAC_CYRILLIC,
        };
        vec![
            IBM866,
            ISO_8859_2,
            ISO_8859_3,
            ISO_8859_4,
            ISO_8859_5,
            ISO_8859_6,
            ISO_8859_7,
            ISO_8859_8,
            ISO_8859_10,
            ISO_8859_13,
            ISO_8859_14,
            ISO_8859_15,
            ISO_8859_16,
            KOI8_R,
            KOI8_U,
            MACINTOSH,
            WINDOWS_874,
            WINDOWS_1250,
            WINDOWS_1251,
            WINDOWS_1252,
            WINDOWS_1253,
            WINDOWS_1254,
            WINDOWS_1255,
            WINDOWS_1256,
            WINDOWS_1257,
            WINDOWS_1258,
            X_MAC_CYRILLIC,
        ]
    }

    #[test]
    fn every_byte_of_every_single_byte_encoding_survives() {
        let all: Vec<u8> = (0..=255).collect();
        for legacy in single_byte_encodings() {
            let encoding = Encoding::Legacy(legacy);
            let text = encoding.decode(&all);
            assert_eq!(text.chars().count(), 256, "{}", legacy.name());
            assert_eq!(encoding.encode(&text), Ok(all.clone()), "{}", legacy.name());
        }
    }

    #[test]
    fn a_missing_character_is_named_with_its_place() {
        let error = Encoding::Legacy(encoding_rs::WINDOWS_1252).encode("né → x").unwrap_err();
        assert_eq!((error.character, error.position), ('→', 4));
        assert_eq!(error.to_string(), "windows-1252 cannot represent '→' (U+2192)");
    }

    #[test]
    fn utf16_is_read_and_written_in_both_orders() {
        let text = "a\r\n→𝄞";
        for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
            let bytes = encoding.encode(text).unwrap();
            assert_eq!(bytes.len(), 12);
            assert_eq!(encoding.decode(&bytes), text);
        }
        assert_eq!(Encoding::Utf16Le.decode(b"a\0\x00\xD8b\0x"), "a\u{FFFD}b\u{FFFD}");
    }

    #[test]
    fn a_trail_byte_is_no_boundary() {
        // "ソA" in Shift_JIS: 83 5C 41, whose second byte is a backslash.
        let encoding = Encoding::Legacy(encoding_rs::SHIFT_JIS);
        let content = b"x\n\x83\x5C\x41";
        assert_eq!(encoding.decode(content), "x\nソA");
        let boundaries: Vec<_> = (0..=5).filter(|&at| encoding.is_boundary(content, at)).collect();
        assert_eq!(boundaries, [0, 1, 2, 4, 5]);
    }

    proptest! {
        #[test]
        fn what_unicode_encodings_write_they_read_back(text in "\\PC*") {
            for encoding in [Encoding::Utf8, Encoding::Utf8Bom, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encoding.encode(&text).unwrap();
                prop_assert_eq!(encoding.decode(&bytes), text.as_str());
            }
        }

        #[test]
        fn a_detected_single_byte_text_is_lossless(bytes in proptest::collection::vec(1u8.., 0..200)) {
            if let Detected::Text(encoding @ Encoding::Legacy(legacy)) = detect(&bytes) {
                prop_assert_eq!(encoding.encode(&encoding.decode(&bytes)).unwrap(), bytes, "{}", legacy.name());
            }
        }
    }
}
