//! Names that read like another and are not: with other blanks, other quotes, or the same letters in
//! another Unicode form.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

use crate::text::diagnose::plain_punctuation;
use crate::text::hidden::is_hidden;
use crate::text::name;

/// Whether two names that are not the same read the same.
pub(crate) fn is_look_alike(one: &str, other: &str) -> bool {
    one != other && !(one.is_ascii() && other.is_ascii()) && key(one) == key(other)
}

/// What a reader takes a name for.
fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for c in name.nfkc().filter(|c| !is_hidden(*c)) {
        match plain_punctuation(c) {
            Some(plain) => key.push_str(plain),
            None if c.is_whitespace() => key.push(' '),
            None => key.push(c),
        }
    }
    key
}

/// The path as text that can be given back without being seen: quoted, with everything spelled out
/// that reads like something else.
pub(crate) fn spelled_out(path: &[u8]) -> String {
    name::quoted_with(path, |c| {
        let mut parts = 0;
        decompose_canonical(c, |_| parts += 1);
        !c.is_ascii()
            && (parts > 1
                || canonical_combining_class(c) != 0
                || key(c.encode_utf8(&mut [0; 4])) != c.to_string())
    })
}

/// Where the name that is there first differs from the one that was asked for.
pub(crate) fn difference(asked: &OsStr, there: &OsStr) -> String {
    let [asked, there] = [asked, there].map(|name| String::from_utf8_lossy(name.as_bytes()));
    let same = asked.chars().zip(there.chars()).take_while(|(a, b)| a == b).count();
    format!("that name has {} where this one has {}", letter(&there, same), letter(&asked, same))
}

/// The letter at a place, with the marks that belong to it.
fn letter(name: &str, at: usize) -> String {
    let mut characters = name.chars().skip(at);
    let Some(first) = characters.next() else { return "nothing".to_owned() };
    let marks: Vec<char> = characters.take_while(|c| canonical_combining_class(*c) != 0).collect();
    match first {
        ' ' => "a space".to_owned(),
        c if marks.is_empty() && c.is_ascii_graphic() => c.to_string(),
        c => {
            let points = std::iter::once(c).chain(marks);
            let points: Vec<String> = points.map(|c| format!("U+{:04X}", u32::from(c))).collect();
            points.join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_read_the_same_are_told_apart() {
        for (asked, there, said, spelled) in [
            (
                "Shot 3.04 PM.txt",
                "Shot 3.04\u{202f}PM.txt",
                "that name has U+202F where this one has a space",
                r#""Shot 3.04\342\200\257PM.txt""#,
            ),
            (
                "a b",
                "a\u{a0}b",
                "that name has U+00A0 where this one has a space",
                r#""a\302\240b""#,
            ),
            (
                "caf\u{e9}.md",
                "cafe\u{301}.md",
                "that name has U+0065 U+0301 where this one has U+00E9",
                r#""cafe\314\201.md""#,
            ),
            (
                "cafe\u{301}",
                "caf\u{e9}",
                "that name has U+00E9 where this one has U+0065 U+0301",
                r#""caf\303\251""#,
            ),
            (
                "it's",
                "it\u{2019}s",
                "that name has U+2019 where this one has '",
                r#""it\342\200\231s""#,
            ),
            (
                "ab",
                "a\u{200b}b",
                "that name has U+200B where this one has b",
                r#""a\342\200\213b""#,
            ),
        ] {
            assert!(is_look_alike(asked, there), "{there:?}");
            assert_eq!(difference(OsStr::new(asked), OsStr::new(there)), said);
            let text = spelled_out(there.as_bytes());
            assert_eq!(text, spelled);
            assert_eq!(*name::decode(&text), *there.as_bytes());
        }
        for (one, other) in
            [("a", "a"), ("a b", "a  b"), ("größe", "grösse"), ("漢", "字"), ("a", "A")]
        {
            assert!(!is_look_alike(one, other), "{one} {other}");
        }
    }
}
