//! Makes the tree that searches are measured on: the same one every time, of any size.

use std::fs;
use std::path::Path;

/// What a tree is like.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// How many files it has.
    pub(crate) files: usize,
    /// How many bytes they have together, about.
    pub(crate) bytes: usize,
}

/// A word that stands in every two-thousandth file, once.
pub(crate) const RARE: &str = "zanzibar";
/// A word that stands in most files, many times.
pub(crate) const COMMON: &str = "return";

const WORDS: [&str; 40] = [
    "let", "result", "value", "return", "index", "buffer", "match", "node", "self", "error",
    "config", "state", "while", "count", "stream", "length", "option", "string", "vector",
    "handle", "parse", "token", "offset", "struct", "public", "static", "async", "await", "client",
    "server", "request", "response", "header", "payload", "channel", "thread", "worker", "cursor",
    "module", "import",
];
const ENDINGS: [&str; 6] = ["rs", "js", "py", "md", "json", "txt"];

/// A small generator of numbers that look random (xorshift), so that no crate's version decides what
/// is measured.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

/// Writes the tree into an empty directory. One file in 25 lies in a directory that an ignore file
/// leaves out, one in 100 is binary.
pub(crate) fn grow(directory: &Path, shape: Shape) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mean = shape.bytes / shape.files;
    fs::create_dir_all(directory).unwrap();
    // Not every program heeds an ignore file outside a repository.
    fs::create_dir(directory.join(".git")).unwrap();
    fs::write(directory.join(".gitignore"), "/ignored/\n*.bin.txt\n").unwrap();
    let mut text = Vec::new();
    for index in 0..shape.files {
        let directory_name = match index % 25 {
            24 => format!("ignored/d{}", numbers.next(20)),
            _ => format!(
                "crate{}/src/part{}/deep{}",
                numbers.next(20),
                numbers.next(10),
                numbers.next(8)
            ),
        };
        let directory_name = directory.join(directory_name);
        fs::create_dir_all(&directory_name).unwrap();
        text.clear();
        // From nothing to four times the mean, more small ones than large ones.
        let size = mean * 4 * numbers.next(1000) / 1000 * numbers.next(1000) / 1000;
        while text.len() < size {
            let words = 2 + numbers.next(12);
            text.extend(std::iter::repeat_n(b' ', 4 * numbers.next(4)));
            for _ in 0..words {
                text.extend_from_slice(WORDS[numbers.next(WORDS.len())].as_bytes());
                text.push(b" .(,_"[numbers.next(5)]);
            }
            text.extend_from_slice(numbers.next(10_000).to_string().as_bytes());
            text.push(b'\n');
        }
        if index % 2000 == 1234 {
            text.extend_from_slice(RARE.as_bytes());
            text.push(b'\n');
        }
        if index % 100 == 50 {
            let middle = text.len() / 2;
            text.insert(middle, 0);
        }
        let ending = ENDINGS[numbers.next(ENDINGS.len())];
        fs::write(directory_name.join(format!("file{index:05}.{ending}")), &text).unwrap();
    }
}
