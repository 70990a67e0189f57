//! Names of files as text that means one file and no other.
//!
//! A name is bytes, and a result is text. A name that is not UTF-8, or that holds what cannot be
//! seen, is written between double quotes with C's escapes, as Git writes such names (`git help
//! config`, core.quotePath): `"dir/a\377\n"`. Visible characters of every script stay as they are.
//! So that a quoted text is never taken for a name that merely looks like one, a name that begins
//! with a double quote is quoted too. Whatever a tool names can therefore be given back to any tool.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::hidden::is_hidden;

const QUOTE: u8 = b'"';

/// The escapes of one letter, as in C.
const LETTERS: &[(u8, u8)] = &[
    (0x07, b'a'),
    (0x08, b'b'),
    (b'\t', b't'),
    (b'\n', b'n'),
    (0x0b, b'v'),
    (0x0c, b'f'),
    (b'\r', b'r'),
    (QUOTE, QUOTE),
    (b'\\', b'\\'),
];

/// The text that stands for a name or a path: the name itself, or its quoted form where it needs
/// one. It holds no control character, and [`decode`] gives back the very bytes.
#[must_use]
pub fn encode(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.starts_with('"') && !text.contains(needs_escape) => Cow::Borrowed(text),
        _ => Cow::Owned(quoted(name)),
    }
}

/// [`encode`] for a path.
pub fn of<P: AsRef<Path> + ?Sized>(path: &P) -> Cow<'_, str> {
    encode(path.as_ref().as_os_str().as_bytes())
}

/// The bytes that a path argument means: those of a quoted text, else the text's own. A text in
/// quotes that is not rightly quoted is a name as it stands.
#[must_use]
pub fn decode(argument: &str) -> Cow<'_, [u8]> {
    let inner = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.and_then(|inner| unquoted(inner.as_bytes())) {
        Some(bytes) => Cow::Owned(bytes),
        None => Cow::Borrowed(argument.as_bytes()),
    }
}

/// A path argument for the inside of a sentence: as it was written, unless that would break the
/// line or hide something.
#[must_use]
pub fn shown(argument: &str) -> Cow<'_, str> {
    if argument.contains(needs_escape) {
        Cow::Owned(quoted(&decode(argument)))
    } else {
        Cow::Borrowed(argument)
    }
}

fn needs_escape(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_hidden(c)
}

fn quoted(name: &[u8]) -> String {
    quoted_with(name, |_| false)
}

/// The quoted form of a name, with further characters spelled out.
pub(crate) fn quoted_with(name: &[u8], is_spelled: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(name.len() + 16);
    text.push('"');
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if needs_escape(c) || is_spelled(c) || matches!(c, '"' | '\\') {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(byte, &mut text));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut text));
    }
    text.push('"');
    text
}

fn escape(byte: u8, text: &mut String) {
    text.push('\\');
    match LETTERS.iter().find(|(meant, _)| *meant == byte) {
        Some((_, letter)) => text.push(char::from(*letter)),
        None => {
            let digit = |shift: u8| char::from(b'0' + (byte >> shift & 7));
            text.extend([digit(6), digit(3), digit(0)]);
        }
    }
}

/// The bytes between two quotes; nothing where they hold a bare quote or an invalid escape.
fn unquoted(inner: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            QUOTE => return None,
            b'\\' => bytes.push(match rest.next()? {
                first @ b'0'..=b'3' => {
                    let mut octal = |high: u8| match rest.next()? {
                        digit @ b'0'..=b'7' => Some(high << 3 | (digit - b'0')),
                        _ => None,
                    };
                    let high = octal(first - b'0')?;
                    octal(high)?
                }
                letter => LETTERS.iter().find(|(_, known)| *known == letter)?.0,
            }),
            byte => bytes.push(byte),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_can_be_read_stays_as_it_is() {
        for name in ["src/main.rs", "größe 漢.rs", "a\\b", "it's \"quoted\" inside", "-v", " x "]
        {
            assert!(matches!(encode(name.as_bytes()), Cow::Borrowed(text) if text == name));
            assert_eq!(*decode(name), *name.as_bytes());
            assert_eq!(shown(name), name);
        }
    }

    #[test]
    fn other_names_are_quoted_as_git_quotes_them() {
        for (name, text) in [
            (b"dir/a\xff\n".as_slice(), r#""dir/a\377\n""#),
            (b"bell\x07esc\x1b\tdel\x7f", r#""bell\aesc\033\tdel\177""#),
            ("❤\u{fe0f}.txt".as_bytes(), "\"❤\\357\\270\\217.txt\""),
            ("a\u{3164}".as_bytes(), "\"a\\343\\205\\244\""),
            ("gr\u{f6}\u{202e}sse".as_bytes(), "\"gr\u{f6}\\342\\200\\256sse\""),
            (br#""x""#, r#""\"x\"""#),
            (b"\"\\", r#""\"\\""#),
        ] {
            assert_eq!(encode(name), text);
            assert_eq!(*decode(text), *name);
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn what_is_not_rightly_quoted_is_meant_as_it_stands() {
        for text in [
            "\"",
            "\"a",
            "a\"",
            r#""a"b""#,
            r#""\""#,
            r#""\q""#,
            r#""\400""#,
            r#""\08""#,
            r#""\18x""#,
        ] {
            assert_eq!(*decode(text), *text.as_bytes(), "{text}");
        }
        assert_eq!(*decode(r#""needless""#), *b"needless");
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        assert_eq!(shown("\"a\nb\""), r#""a\nb""#);
    }

    /// Bytes among which those that matter here are frequent.
    fn names() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            prop::sample::select(vec!["\"", "\\", "\\n", "\\377", "/", "a", "\u{202e}"])
                .prop_map(|text| text.as_bytes().to_vec()),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in names()) {
            let text = encode(&name);
            prop_assert_eq!(&*decode(&text), &*name);
            prop_assert!(!text.contains(needs_escape), "{}", text);
            prop_assert_eq!(&*shown(&text), &*text);
            let is_plain = std::str::from_utf8(&name)
                .is_ok_and(|text| !text.starts_with('"') && !text.contains(needs_escape));
            prop_assert_eq!(is_plain, matches!(text, Cow::Borrowed(_)));
        }

        #[test]
        fn what_is_shown_means_the_same(argument in ".{0,12}|\"[\\PC\n\\\\nx0-9]{0,8}\"") {
            let text = shown(&argument);
            prop_assert!(!text.contains(needs_escape));
            prop_assert_eq!(decode(&text), decode(&argument));
        }
    }
}
