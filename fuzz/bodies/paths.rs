//! Any path: resolution never panics, and what it finds lies beneath the root.

use std::path::PathBuf;
use std::sync::OnceLock;

use workspace_fs::{AccessTime, Action, PathArgument, RootsSpec, Workspace};

use super::pieces::Pieces;

struct World {
    root: PathBuf,
    workspace: Workspace,
}

/// A root with links of every kind: inward, outward, absolute, circular, upward, dangling.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let base = tempfile::tempdir().expect("a directory for the test").keep();
        let base = base.canonicalize().expect("a path without links");
        let root = base.join("r");
        std::fs::create_dir_all(root.join("a/b")).expect("directories");
        std::fs::create_dir(base.join("o")).expect("a directory outside");
        std::fs::write(base.join("o/s"), "secret").expect("a file outside");
        std::fs::write(root.join("a/f"), "text").expect("a file");
        let links = [
            ("i", "a/b".into()),
            ("o", base.join("o")),
            ("p", root.join("a")),
            ("l", "l".into()),
            ("u", "..".into()),
            ("d", "a/none".into()),
            ("m", "/proc/self/root".into()),
        ];
        for (name, target) in links {
            std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
        }
        let spec = RootsSpec { roots: vec![root.display().to_string()], ..RootsSpec::default() };
        let workspace = Workspace::open(&spec).expect("a workspace");
        World { root, workspace }
    })
}

pub(super) fn body(data: &[u8]) {
    let World { root, workspace } = world();
    let mut pieces = Pieces(data);
    // A path that a fuzzer cannot guess: the root's own.
    let options = pieces.byte();
    let spelt = |text: String| match options & 1 {
        0 => text,
        _ => format!("{}/{text}", root.display()),
    };
    let text = spelt(pieces.text());
    let directory = pieces.text();
    let working_directory = (options & 2 != 0).then(|| spelt(directory));
    let working_directory = working_directory.as_deref();
    let argument = PathArgument { text: &text, working_directory };
    for action in [Action::Read, Action::Write, Action::List, Action::Inspect] {
        match workspace.locate(argument, action) {
            Ok(resolved) => {
                let path = &resolved.path;
                assert!(path.starts_with(root), "{text:?} leads to {}", path.display());
            }
            Err(error) => {
                assert!(!error.to_string().is_empty() && error.hint() != Some(String::new()))
            }
        }
    }
    if let Ok(file) = workspace.open_file(argument, AccessTime::Keep) {
        assert!(file.path().starts_with(root), "{text:?} opens {}", file.path().display());
    }
}
