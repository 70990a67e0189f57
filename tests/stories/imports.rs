//! The picture of the crates in docs/architecture.md is what their manifests say.

use std::collections::BTreeMap;
use std::path::Path;

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![the_picture_of_the_crates_is_true, a_manifest_and_a_picture_are_read]
}

/// Crates of this repository by name, each with those that its normal build uses, sorted.
type Crates = BTreeMap<String, Vec<String>>;

fn the_picture_of_the_crates_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let manifests = [
        "Cargo.toml",
        "crates/conform/Cargo.toml",
        "crates/goplugin/Cargo.toml",
        "crates/mcp/Cargo.toml",
        "crates/otlp/Cargo.toml",
        "crates/tool-provider/Cargo.toml",
        "crates/workspace-fs/Cargo.toml",
        "crates/workspace-tools/Cargo.toml",
        "sandbox/Cargo.toml",
    ];
    let built: Crates = manifests
        .iter()
        .map(|path| in_manifest(&std::fs::read_to_string(root.join(path)).unwrap()))
        .collect();
    assert_eq!(in_document(&document), built);
    // What others build on stands on nothing else of ours.
    for alone in ["goplugin", "otlp", "sandbox", "tool-provider", "workspace-fs"] {
        assert_eq!(built[alone], [""; 0], "{alone}");
    }
}

/// The rows of the table whose head is `crate | uses`.
fn in_document(document: &str) -> Crates {
    let rows = document.lines().skip_while(|line| !line.starts_with("| crate | uses |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let mut cells = row.trim_matches('|').split('|');
            let mut names = || {
                let cell = cells.next().unwrap_or_default();
                let mut names: Vec<_> =
                    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
                names.sort();
                names
            };
            (names().remove(0), names())
        })
        .collect()
}

/// A package's name, and which of its dependencies lie in this repository.
fn in_manifest(manifest: &str) -> (String, Vec<String>) {
    let section = |name: &'static str| {
        let lines = manifest.lines().skip_while(move |line| *line != name).skip(1);
        lines.take_while(|line| !line.starts_with('['))
    };
    let name = section("[package]").find_map(|line| line.strip_prefix("name = ")).unwrap();
    let ours = section("[dependencies]").filter(|line| line.contains("path = "));
    let mut uses: Vec<_> =
        ours.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    uses.sort();
    (name.trim_matches('"').to_owned(), uses)
}

fn a_manifest_and_a_picture_are_read() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb = { path = \"b\" }\nserde = \"1\"\n\
                    [dev-dependencies]\nc = { path = \"c\" }\n";
    assert_eq!(in_manifest(manifest), ("a".to_owned(), vec!["b".to_owned()]));
    let document = "text\n\n| crate | uses | what |\n|---|---|---|\n| `a` | `c`, `b` | x |\n\nmore";
    assert_eq!(in_document(document), Crates::from([("a".into(), vec!["b".into(), "c".into()])]));
}
