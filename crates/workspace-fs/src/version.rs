//! Content versions: what makes a write a compare-and-swap.

use std::fmt;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The version of a file's content: equal contents have equal versions. It guards against mistakes,
/// not against somebody who makes up collisions; such a somebody can write the file anyway.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u128);

impl Version {
    /// The version of `content`.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(xxh3_128(content))
    }

    /// Whether the text has the form of a version: its digits, or the first 12 or more of them.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let text = text.trim();
        (SHORT..=WHOLE).contains(&text.len())
            && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Whether a caller's `expected_version` means this one.
    #[must_use]
    pub fn matches(self, expected: &str) -> bool {
        Self::is_one(expected) && self.to_string().starts_with(expected.trim())
    }

    /// The first 12 digits, for a reader who pays for each of them.
    #[must_use]
    pub fn short(self) -> String {
        let mut text = self.to_string();
        text.truncate(SHORT);
        text
    }
}

/// The digits of a version.
const WHOLE: usize = 32;

/// So few digits of a version are enough: of 48 bits, two contents that one file has had in a session
/// share all by chance less often than once in 10¹⁴ times.
const SHORT: usize = 12;

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// Makes a [`Version`] from content that comes in pieces.
#[derive(Clone, Default)]
pub struct VersionHasher(Xxh3);

impl VersionHasher {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The version of all pieces so far.
    #[must_use]
    pub fn finish(&self) -> Version {
        Version(self.0.digest128())
    }
}

impl fmt::Debug for VersionHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VersionHasher").field(&self.finish()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_version_is_short_and_distinguished() {
        let version = Version::of(b"a\n");
        assert_eq!(version.to_string().len(), 32);
        assert!(version.matches(&format!(" {version}\n")));
        assert!(!version.matches(&Version::of(b"b\n").to_string()));
        let short = version.short();
        assert!(short.len() == SHORT && version.matches(&short));
        assert!(version.matches(&version.to_string()[..20]));
        for none in [&short[1..], "", &format!("{version}0"), &short.replace(&short[..1], "x")] {
            assert!(!Version::is_one(none) && !version.matches(none), "{none}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_version_as_the_whole(content: Vec<u8>, at in 0usize..200) {
            let (head, tail) = content.split_at(at.min(content.len()));
            let mut hasher = VersionHasher::default();
            hasher.update(head);
            hasher.update(tail);
            prop_assert_eq!(hasher.finish(), Version::of(&content));
        }
    }
}
