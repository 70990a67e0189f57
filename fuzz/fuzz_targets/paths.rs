//! Any path: resolution never panics, and what it finds lies beneath the root.
//! Run with `cargo +nightly fuzz run paths`.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use provider_workspace::workspace::{AccessTime, Action, PathArgument, RootsSpec, Workspace};

struct World {
    root: PathBuf,
    workspace: Workspace,
}

/// A root with links of every kind: inward, outward, absolute, circular, upward, dangling.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let base = tempfile::tempdir().expect("a folder for the test").keep();
        let base = base.canonicalize().expect("a path without links");
        let root = base.join("r");
        std::fs::create_dir_all(root.join("a/b")).expect("folders");
        std::fs::create_dir(base.join("o")).expect("a folder outside");
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
        let spec =
            RootsSpec { roots: vec![root.display().to_string()], ..RootsSpec::default() };
        let workspace = Workspace::open(&spec).expect("a workspace");
        World { root, workspace }
    })
}

fuzz_target!(|text: &str| {
    let World { root, workspace } = world();
    let argument = PathArgument { text, working_directory: None };
    if let Ok(place) = workspace.locate(argument, Action::Write) {
        assert!(place.path.starts_with(root), "{text:?} leads to {}", place.path.display());
    }
    if let Ok(file) = workspace.open_file(argument, AccessTime::Keep) {
        assert!(file.path().starts_with(root), "{text:?} opens {}", file.path().display());
    }
});
