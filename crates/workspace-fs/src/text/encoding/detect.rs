//! Text or not, and in which encoding: decided from the first bytes of a file.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use super::{Encoding, magic};

/// How much of a file's start decides its encoding. A reader and an editor that both look at exactly
/// this much always agree.
pub const SAMPLE_BYTES: usize = 256 * 1024;

/// How much of a sample the statistics for legacy encodings see: they are slow (about 10 ns a byte)
/// and certain long before this.
const STATISTICS_BYTES: usize = 32 * 1024;

/// What a file's first bytes show it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// Text, in this encoding.
    Text(Encoding),
    /// Not text.
    Binary {
        /// What it is, where its first bytes show it, such as `PNG image`.
        kind: Option<&'static str>,
    },
}

/// Determines what a file is from `sample`: its first [`SAMPLE_BYTES`], or all of it when it is
/// shorter.
///
/// A byte order mark decides first. A NUL byte means binary, as it does to git and ripgrep. Valid
/// UTF-8 is UTF-8, and so is UTF-8 with a few broken bytes in it. Known magic numbers and many
/// control bytes mean binary. What is left is guessed by statistics: a single-byte encoding, or a
/// multi-byte one (such as GBK or Shift_JIS) if the whole sample survives decoding and encoding,
/// and windows-1252 where nothing fits better.
#[must_use]
pub fn detect(sample: &[u8]) -> Detected {
    let sample = &sample[..sample.len().min(SAMPLE_BYTES)];
    if sample.starts_with(b"\xFF\xFE\0\0") || sample.starts_with(b"\0\0\xFE\xFF") {
        return Detected::Binary { kind: Some("UTF-32 text") };
    }
    for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
        if sample.starts_with(encoding.bom()) && is_plausible_utf16(sample, encoding) {
            return Detected::Text(encoding);
        }
    }
    if memchr::memchr(0, sample).is_some() {
        return Detected::Binary {
            kind: magic::kind(sample).or_else(|| utf16_without_bom(sample)),
        };
    }
    if sample.starts_with(Encoding::Utf8Bom.bom()) {
        return Detected::Text(Encoding::Utf8Bom);
    }
    if is_utf8(sample) {
        return Detected::Text(Encoding::Utf8);
    }
    if let Some(kind) = magic::kind_beyond_doubt(sample) {
        return Detected::Binary { kind: Some(kind) };
    }
    if is_mostly_utf8(sample) {
        return Detected::Text(Encoding::Utf8);
    }
    if has_many_controls(sample) {
        return Detected::Binary { kind: None };
    }
    Detected::Text(Encoding::Legacy(guess(sample)))
}

/// Whether a legacy encoding was guessed from enough of a file's content to write by it. Of 323 short
/// texts in 11 encodings, from one word to ten sentences, one in nine was taken for another; of those
/// with so many bytes beyond ASCII, none of 81.
#[must_use]
pub fn is_well_guessed(content: &[u8]) -> bool {
    const ENOUGH: usize = 16;
    let sample = &content[..content.len().min(SAMPLE_BYTES)];
    sample.iter().filter(|byte| !byte.is_ascii()).nth(ENOUGH - 1).is_some()
}

/// Whether the sample is UTF-8; a full sample may end in the middle of a character.
fn is_utf8(sample: &[u8]) -> bool {
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => sample.len() == SAMPLE_BYTES && error.error_len().is_none(),
    }
}

/// Whether there is far more good UTF-8 than bad. Good multi-byte sequences hardly ever occur by
/// accident in another encoding.
fn is_mostly_utf8(sample: &[u8]) -> bool {
    let (mut good, mut bad) = (0usize, 0usize);
    for chunk in sample.utf8_chunks() {
        good += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    // One stray byte is a slip; more of them need more good ones to be slips.
    good >= bad * 4 || (bad == 1 && good >= 1)
}

/// More than one control byte in 32 that text has no use for.
fn has_many_controls(sample: &[u8]) -> bool {
    let controls = sample
        .iter()
        .filter(|byte| matches!(byte, 0x00..=0x07 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F))
        .count();
    controls * 32 > sample.len()
}

/// A byte order mark can also be the start of binary data: text has few broken surrogates and
/// control characters.
fn is_plausible_utf16(sample: &[u8], encoding: Encoding) -> bool {
    let text = encoding.decode(&sample[2..]);
    let (mut odd, mut all) = (0usize, 0usize);
    for character in text.chars() {
        all += 1;
        let is_odd = match character {
            '\t' | '\n' | '\r' | '\x0C' | '\x1B' => false,
            '\u{FFFD}' | '\u{FFFE}' | '\u{FFFF}' => true,
            other => other.is_control(),
        };
        odd += usize::from(is_odd);
    }
    odd <= 1 || odd * 32 <= all
}

/// Western text in UTF-16 has a NUL in nearly every other byte.
fn utf16_without_bom(sample: &[u8]) -> Option<&'static str> {
    let nuls_at =
        |parity: usize| sample.iter().skip(parity).step_by(2).filter(|b| **b == 0).count();
    let (even, odd) = (nuls_at(0), nuls_at(1));
    let half = sample.len() / 2;
    let is_utf16 = |many: usize, few: usize| half >= 4 && many * 10 > half * 7 && few * 10 < half;
    (is_utf16(even, odd) || is_utf16(odd, even)).then_some("UTF-16 text without a byte order mark")
}

fn guess(sample: &[u8]) -> &'static encoding_rs::Encoding {
    // The first bytes beyond ASCII may come late: the statistics start a little before them.
    let ascii = encoding_rs::Encoding::ascii_valid_up_to(sample);
    let start = ascii.saturating_sub(1024);
    let end = sample.len().min(start + STATISTICS_BYTES);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&sample[start..end], end == sample.len() && end < SAMPLE_BYTES);
    let guess = detector.guess(None, Utf8Detection::Deny);
    if guess.is_single_byte() || survives(guess, sample) {
        guess
    } else {
        encoding_rs::WINDOWS_1252
    }
}

/// Whether encoding what was decoded gives the same bytes, up to the last whole line of a full
/// sample.
fn survives(encoding: &'static encoding_rs::Encoding, sample: &[u8]) -> bool {
    let end = match memchr::memrchr(b'\n', sample) {
        Some(at) if sample.len() == SAMPLE_BYTES => at,
        _ => sample.len(),
    };
    let sample = &sample[..end];
    let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(sample) else {
        return false;
    };
    let (bytes, _, unmappable) = encoding.encode(&text);
    !unmappable && *bytes == *sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(sample: &[u8]) -> &'static str {
        match detect(sample) {
            Detected::Text(encoding) => encoding.name(),
            Detected::Binary { kind } => kind.unwrap_or("binary"),
        }
    }

    fn encoded(encoding: &'static encoding_rs::Encoding, text: &str) -> Vec<u8> {
        Encoding::Legacy(encoding).encode(text).unwrap()
    }

    #[test]
    fn unicode_is_known_by_its_marks_and_its_form() {
        assert_eq!(name(b""), "utf-8");
        assert_eq!(name(b"plain\n"), "utf-8");
        assert_eq!(name("grün → x".as_bytes()), "utf-8");
        assert_eq!(name(b"\xEF\xBB\xBFx"), "utf-8-bom");
        assert_eq!(name(b"\xFF\xFEa\0\n\0"), "utf-16le");
        assert_eq!(name(b"\xFE\xFF\0a\0\n"), "utf-16be");
        assert_eq!(name(b"\xFF\xFE"), "utf-16le");
        assert_eq!(name(b"\x1B[31mred\x1B[0m\x07"), "utf-8");
    }

    #[test]
    fn a_few_broken_bytes_do_not_turn_utf8_into_something_else() {
        assert_eq!(name("äöü äöü äöü \n".repeat(3).as_bytes()), "utf-8");
        assert_eq!(name(&["äöüä".as_bytes(), b"\xFF", b"\n"].concat()), "utf-8");
        assert_eq!(name("é = \u{e9}".as_bytes()), "utf-8");
        assert_eq!(name(&["naïve ".as_bytes(), b"\xFF\n"].concat()), "utf-8");
        assert_eq!(name(&["naïve ".as_bytes(), b"\xFF x \xE9\n"].concat()), "windows-1252");
        assert_eq!(name(b"caf\xE9"), "windows-1252");
    }

    #[test]
    fn a_full_sample_may_end_inside_a_character() {
        let long = "é".repeat(SAMPLE_BYTES / 2 - 1) + "x" + "é";
        assert_eq!(long.as_bytes()[SAMPLE_BYTES - 1], 0xC3);
        assert_eq!(name(long.as_bytes()), "utf-8");
        assert_eq!(name(&long.as_bytes()[..SAMPLE_BYTES]), "utf-8");
    }

    #[test]
    fn legacy_text_is_guessed_by_language() {
        assert_eq!(
            name(&encoded(encoding_rs::WINDOWS_1252, "Die Größe änderte sich häufig.")),
            "windows-1252"
        );
        let russian = "Это обычный русский текст, который должен быть узнан.\n";
        assert_eq!(name(&encoded(encoding_rs::WINDOWS_1251, russian)), "windows-1251");
        assert_eq!(name(&encoded(encoding_rs::KOI8_R, russian)), "KOI8-U");
        let greek = "Αυτό είναι ένα ελληνικό κείμενο που πρέπει να αναγνωριστεί.\n";
        assert_eq!(name(&encoded(encoding_rs::WINDOWS_1253, greek)), "windows-1253");
        let japanese = "これは日本語のテキストです。文字コードを調べます。\n";
        assert_eq!(name(&encoded(encoding_rs::SHIFT_JIS, japanese)), "Shift_JIS");
        let car = encoded(encoding_rs::WINDOWS_1252, "BMW fährt schön über die Straße.");
        assert_eq!(name(&car), "windows-1252");
        let late =
            [&b"x\n".repeat(50_000)[..], &encoded(encoding_rs::WINDOWS_1251, russian)].concat();
        assert_eq!(name(&late), "windows-1251");
    }

    #[test]
    fn binary_is_named_where_its_first_bytes_show() {
        assert_eq!(name(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR"), "PNG image");
        assert_eq!(name(b"\x7FELF\x02\x01\x01\0"), "ELF executable or library");
        assert_eq!(name(b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"), "PDF document");
        assert_eq!(name(b"a\0b"), "binary");
        assert_eq!(name(b"\x01\x02\x03\xFF\x04\x05\x06\x10"), "binary");
        assert_eq!(name(b"h\0e\0l\0l\0o\0\n\0"), "UTF-16 text without a byte order mark");
        assert_eq!(name(b"\xFF\xFE\0\0a\0\0\0"), "UTF-32 text");
        assert_eq!(
            name(&[b"\xFF\xFE", &[0x01, 0xD8, 0x02, 0x00].repeat(40)[..]].concat()),
            "binary"
        );
    }
}
