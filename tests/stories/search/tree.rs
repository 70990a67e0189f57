//! A tree that is the same every time, with everything in it that makes searches differ.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Words of which the lines are made. Some are there for the patterns.
const WORDS: &[&str] = &[
    "alpha",
    "beta",
    "needle",
    "Needle",
    "NEEDLE",
    "fn",
    "let",
    "struct",
    "foo_bar",
    "foo",
    "bar",
    "x1",
    "42",
    "0x2a",
    "größe",
    "漢字",
    "->",
    "--release",
    "a.b",
    "(a)",
    "$end",
    "^",
    "\t",
    "//",
];

/// Directories of the tree.
const DIRECTORIES: &[&str] = &[
    "",
    "src",
    "src/deep",
    "src/deep/er",
    "src-old",
    "tests",
    "docs",
    "dist",
    "dist/sub",
    ".hidden",
    "nested",
    "nested/inner",
    "nested/inner/.git",
    "nested/inner/lib",
    "a",
    "a/b",
    "a/b/c",
    ".git",
];

/// Endings of files.
const ENDINGS: &[&str] = &["rs", "py", "js", "md", "toml", "txt", "log", "min.js", "tmp"];

/// The same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        // The constants of Knuth's MMIX.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn line(&mut self) -> String {
        let words: Vec<&str> =
            (0..1 + self.below(9)).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }

    fn lines(&mut self, ending: &str) -> String {
        let mut text = String::new();
        for _ in 0..self.below(30) {
            text.push_str(&self.line());
            text.push_str(ending);
        }
        if self.below(4) == 0 {
            text.push_str("needle without an end");
        }
        text
    }
}

/// Grows the tree in an empty directory.
pub(super) fn grow(root: &Path) {
    let mut numbers = Numbers(8);
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory)).unwrap();
        for number in 0..3 + numbers.below(8) {
            let ending = ENDINGS[numbers.below(ENDINGS.len())];
            let line_ending = if numbers.below(5) == 0 { "\r\n" } else { "\n" };
            let text = numbers.lines(line_ending);
            fs::write(root.join(directory).join(format!("f{number}.{ending}")), text).unwrap();
        }
    }
    let write = |path: &str, content: &[u8]| fs::write(root.join(path), content).unwrap();
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(unit).collect()
    };
    write("utf16le.txt", &utf16("one\nneedle größe\r\nend", u16::to_le_bytes));
    write("utf16be.txt", &utf16("alpha needle\nbeta\n", u16::to_be_bytes));
    write("bom.txt", b"\xef\xbb\xbfneedle behind a mark\nalpha\n");
    write("latin.txt", b"gr\xfc\xdfe needle\nalpha \xff\xfe beta\nfoo\n");
    write("empty.txt", b"");
    write("blank.txt", b"\n\n\nneedle\n\n");
    write("cr.txt", b"needle x\rfoo x\rbar\n");
    write("long.txt", format!("{} needle {}\n", "x".repeat(5000), "y".repeat(5000)).as_bytes());
    write("many.txt", "alpha needle needle needle\n".repeat(700).as_bytes());
    write("late.bin", format!("needle first\n{}\0needle\n", "pad\n".repeat(40_000)).as_bytes());
    write("early.bin", b"\0needle\n");
    write("Makefile", b"all:\n\tneedle\n");
    for (name, text) in [
        (b"odd\xff.txt".as_slice(), "needle in an odd name\n"),
        (b"two\nlines.rs", "needle in two lines\n"),
        (b"\"quoted\".rs", "needle in quotes\n"),
        (b" blank .rs", "needle between blanks\n"),
        (b"-v", "needle behind a dash\n"),
        ("größe.md".as_bytes(), "needle größe\n"),
    ] {
        fs::write(root.join(OsStr::from_bytes(name)), text).unwrap();
    }
    for (path, rules) in [
        (".gitignore", "dist/\n*.log\n!keep.log\n/a/b/f0.*\n# a comment\n\\#odd\n*.tmp \r\n"),
        ("src/.gitignore", "!f1.log\n*.min.js\ndeep/er/*.py\n"),
        ("tests/.ignore", "*.toml\n!*.log\n"),
        ("docs/.rgignore", "f2.*\n"),
        ("docs/.ignore", "!f2.*\nf3.*\n"),
        ("nested/.gitignore", "inner/lib/*.md\n"),
        ("a/.gitignore", "**/c\n"),
        (".git/info-exclude", ""),
    ] {
        write(path, rules.as_bytes());
    }
    fs::create_dir(root.join(".git/info")).unwrap();
    write(".git/info/exclude", b"src-old\n");
    write("keep.log", b"needle kept\n");
    write("#odd", b"needle\n");
    let link = |target: &str, at: &str| symlink(target, root.join(at)).unwrap();
    link("src", "link-to-directory");
    link("keep.log", "link-to-file");
    link("absent", "link-to-nothing");
    link(".", "link-to-itself");
    link("/etc/passwd", "link-out");
}
