//! The order of paths.

/// A path in the form in which plain comparison of bytes is the walk's order: name by name. No name
/// contains a NUL byte, so a NUL in place of each slash makes a name's end sort before everything
/// that could go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Box<[u8]>);

impl Key {
    /// The key of `name` in the directory at `directory`, which is empty for the top.
    pub(super) fn of(directory: &[u8], name: &[u8]) -> Self {
        let mut key = Vec::with_capacity(directory.len() + 1 + name.len());
        key.extend_from_slice(directory);
        if !directory.is_empty() {
            key.push(b'/');
        }
        key.extend_from_slice(name);
        for byte in &mut key {
            if *byte == b'/' {
                *byte = 0;
            }
        }
        Self(key.into_boxed_slice())
    }

    /// The path.
    pub(super) fn path(&self) -> Vec<u8> {
        self.0.iter().map(|byte| if *byte == 0 { b'/' } else { *byte }).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(path: &str) -> Key {
        match path.rsplit_once('/') {
            Some((directory, name)) => Key::of(directory.as_bytes(), name.as_bytes()),
            None => Key::of(b"", path.as_bytes()),
        }
    }

    #[test]
    fn a_directory_comes_before_names_that_go_on_where_its_own_ends() {
        let mut paths = ["a.txt", "a/z", "a-b", "a/b/c", "B", "a/b.c"].map(key);
        paths.sort();
        let sorted: Vec<_> =
            paths.iter().map(|key| String::from_utf8(key.path()).unwrap()).collect();
        assert_eq!(sorted, ["B", "a/b/c", "a/b.c", "a/z", "a-b", "a.txt"]);
    }

    proptest! {
        #[test]
        fn keys_compare_like_lists_of_names(
            left in proptest::collection::vec("[a./-]{1,3}", 1..4),
            right in proptest::collection::vec("[a./-]{1,3}", 1..4),
        ) {
            let names = |path: &[String]| -> Vec<String> {
                path.iter().map(|name| name.replace('/', "_")).collect()
            };
            let (left, right) = (names(&left), names(&right));
            let expected = left.cmp(&right);
            prop_assert_eq!(key(&left.join("/")).cmp(&key(&right.join("/"))), expected);
        }
    }
}
