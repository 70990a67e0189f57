use super::*;

fn notes(old: &[u8], content: &str) -> Vec<String> {
    let base =
        Base { content: old.to_vec(), version: Version::of(old), stamp: stamp_of_something() };
    Prepared::new(Old::Content(base), content).notes("a.txt")
}

fn stamp_of_something() -> workspace_fs::Stamp {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "").unwrap();
    let roots = vec![directory.path().display().to_string()];
    let spec = workspace_fs::RootsSpec { roots, ..Default::default() };
    let workspace = workspace_fs::Workspace::open(&spec).unwrap();
    let path = workspace_fs::PathArgument { text: "a", working_directory: None };
    workspace.open_file(path, workspace_fs::AccessTime::Keep).unwrap().stat().stamp()
}

#[test]
fn what_a_file_loses_besides_its_lines_is_reported() {
    let utf16 = |text: &str| {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xFF, 0xFE].into_iter().chain(units).collect::<Vec<u8>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(notes(b"a\n", "b\n"), none);
    assert_eq!(notes(b"a\n", "a\n"), ["The file has this content already; it is left as it is."]);
    assert_eq!(notes(b"a\r\nb\r\n", "c\n"), ["Line endings were CR LF; they are LF now."]);
    assert_eq!(notes(b"a\r\nb\n", "c\n"), ["Line endings were mixed; they are LF now."]);
    assert_eq!(notes(b"a\nb\n", "a\nb\r\n"), ["Line endings were LF; line 2 ends in CR LF now."]);
    assert_eq!(notes(b"a\r\nb\n", "a\r\nb\nc\n"), none);
    assert_eq!(notes(b"a\r\n", "no ending"), none);
    assert_eq!(notes(b"\xEF\xBB\xBFa\n", "\u{FEFF}b\n"), none);
    assert_eq!(notes(b"\xEF\xBB\xBFa\n", "b\n"), ["The byte order mark at its start is gone."]);
    assert_eq!(
        notes(&utf16("a\r\n"), "b\n"),
        [
            "The encoding was utf-16le; it is utf-8 now.",
            "Line endings were CR LF; they are LF now."
        ]
    );
    let legacy = notes(b"caf\xe9 cr\xe8me br\xfbl\xe9e\n", "x\n");
    assert_eq!(legacy, ["The encoding was windows-1252; it is utf-8 now."]);
    assert_eq!(notes(b"\x7fELF\x02\x01\x01\0", "x\n").len(), 1);
}
