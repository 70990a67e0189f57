//! The variables by which package managers keep what they get, and install, where commands may write: the
//! usual places may show what the operator has.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sandbox::{Home, Overlay, PREFIX};

use super::outside;

/// Where package managers put what they install for the user, each with a place that is usual for it and
/// what is set where that one shows what the operator has, which commands may not change.
const USUAL: [(&str, &[(&str, &str)]); 6] = [
    (".cargo/bin", &[("CARGO_INSTALL_ROOT", "")]),
    ("go/bin", &[("GOBIN", "bin")]),
    (".local/bin", &[("UV_TOOL_BIN_DIR", "bin"), ("PIPX_BIN_DIR", "bin")]),
    (".local/share/uv/tools", &[("UV_TOOL_DIR", "uv/tools")]),
    (".local/share/pipx", &[("PIPX_HOME", "pipx")]),
    (".local/pipx", &[("PIPX_HOME", "pipx")]),
];

/// The variable that leads a program to an overlay.
const OVERLAYS: [(Overlay, &str); 8] = [
    (Overlay::Cargo, "CARGO_HOME"),
    (Overlay::Npm, "npm_config_cache"),
    (Overlay::Pnpm, "pnpm_config_store_dir"),
    (Overlay::PnpmCache, "pnpm_config_cache_dir"),
    (Overlay::Rustup, "RUSTUP_HOME"),
    (Overlay::Python, "PYTHONUSERBASE"),
    (Overlay::Uv, "UV_CACHE_DIR"),
    // Not `YARN_CACHE_FOLDER`, by which Yarn from 2 on would not find packages that the project holds.
    (Overlay::Yarn, "YARN_PREFERRED_CACHE_FOLDER"),
];

/// What has a program copy what it installs from an overlay: it would make hard links of the links there.
const COPIED: [(Overlay, &str, &str); 2] = [
    (Overlay::Pnpm, "pnpm_config_package_import_method", "clone-or-copy"),
    (Overlay::Uv, "UV_LINK_MODE", "copy"),
];

/// Directories for those that install beside themselves, where the system's packages are.
const BESIDE_ITSELF: [(&str, &str); 3] =
    [("GEM_HOME", "gems"), ("PNPM_HOME", "pnpm"), ("YARN_GLOBAL_FOLDER", "yarn")];

/// What manages its own installations of Node, and refuses to work where npm is told a prefix.
const NODE_MANAGER: &str = ".nvm";

/// What lists the programs of its Pythons anew after each `pip install`, in a directory that commands may
/// not write, and then says that the installation failed. Its scripts take this function instead.
const PYTHON_MANAGER: &str = ".pyenv";
const NO_NEW_LIST: (&str, &str) = ("BASH_FUNC_pyenv-rehash%%", "() { :; }");

/// What is set in this home.
pub(super) fn variables(home: &Home, search_path: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let prefix = home.path.join(PREFIX);
    let shows = |part: &str| {
        let place = home.path.join(part);
        home.shown.iter().any(|shown| shown.starts_with(&place) || place.starts_with(shown))
    };
    let mut variables = Vec::new();
    let mut set = |name: &str, value: PathBuf| variables.push((name.into(), value.into()));
    for (_, places) in USUAL.iter().filter(|(usual, _)| shows(usual)) {
        places.iter().for_each(|(name, place)| set(name, joined(&prefix, place)));
    }
    for (name, place) in BESIDE_ITSELF {
        set(name, joined(&prefix, place));
    }
    if !shows(NODE_MANAGER) {
        set("npm_config_prefix", prefix.clone());
        if let Some(settings) = search_path.and_then(settings_of_npm) {
            set("npm_config_globalconfig", settings);
        }
    }
    if shows(PYTHON_MANAGER) {
        set(NO_NEW_LIST.0, NO_NEW_LIST.1.into());
    }
    if home.overlays.contains(&Overlay::Cargo) {
        set("CARGO_INSTALL_ROOT", prefix);
    }
    for (overlay, name) in OVERLAYS.iter().filter(|(overlay, _)| home.overlays.contains(overlay)) {
        set(name, home.path.join(overlay.path()));
    }
    for (_, name, value) in COPIED.iter().filter(|(overlay, ..)| home.overlays.contains(overlay)) {
        set(name, value.into());
    }
    variables
}

/// A variable that commands get on account of a package manager.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its value, with `~` for HOME.
    pub value: String,
    /// Where it is set, as the end of a sentence for people.
    pub set: String,
}

/// Where the overlays of caches are.
const OFFLINE: &str = "without a network, where the operator has packages";

/// Every variable that commands may get so, for the reference pages.
#[must_use]
pub fn described() -> Vec<Described> {
    let below = |place: &str| joined(&Path::new("~").join(PREFIX), place).display().to_string();
    let mut all = Vec::new();
    let mut add = |name, value, set: &str| all.push(Described { name, value, set: set.to_owned() });
    for (overlay, name) in OVERLAYS {
        let set = match overlay {
            Overlay::Cargo | Overlay::Rustup => {
                "with a network, where the operator has such a directory"
            }
            Overlay::Npm | Overlay::Pnpm | Overlay::PnpmCache | Overlay::Uv | Overlay::Yarn => {
                OFFLINE
            }
            Overlay::Python => {
                "where the operator has `~/.local/bin` or packages of the user's own"
            }
        };
        add(name, Path::new("~").join(overlay.path()).display().to_string(), set);
    }
    for (_, name, value) in COPIED {
        add(name, value.to_owned(), OFFLINE);
    }
    for (usual, places) in USUAL {
        for (name, place) in places {
            add(name, below(place), &format!("where `~/{usual}` shows what the operator has"));
        }
    }
    for (name, place) in BESIDE_ITSELF {
        add(name, below(place), "always");
    }
    let node = format!("where the operator has no `~/{NODE_MANAGER}`");
    add("npm_config_prefix", below(""), &node);
    add("npm_config_globalconfig", "PREFIX/etc/npmrc of the machine".to_owned(), &node);
    let python = format!("where the operator has `~/{PYTHON_MANAGER}`");
    add(NO_NEW_LIST.0, NO_NEW_LIST.1.to_owned(), &python);
    all
}

/// The settings of the machine's npm, which it would look for below a prefix that it is told: beside the
/// node that runs it, or where distributions keep them.
fn settings_of_npm(search_path: &OsStr) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| outside::exists(path).unwrap_or(false);
    let node = std::env::split_paths(search_path).map(|directory| directory.join("node"));
    let node = node.filter(|node| node.is_absolute()).find_map(|node| outside::resolved(&node));
    let beside = node.and_then(|node| Some(node.parent()?.parent()?.join("etc/npmrc")));
    beside.into_iter().chain([PathBuf::from("/etc/npmrc")]).find(is_there)
}

/// A part of a directory, or all of it.
fn joined(directory: &Path, part: &str) -> PathBuf {
    if part.is_empty() { directory.to_owned() } else { directory.join(part) }
}

#[cfg(test)]
mod tests {
    use sandbox::{Lifetime, Sharing};

    use super::*;

    fn seen(shown: &[&str], overlays: &[Overlay]) -> Vec<String> {
        let home = Home {
            path: "/h".into(),
            at: "/state/home".into(),
            lifetime: Lifetime::Kept,
            sharing: Sharing::First,
            shown: shown.iter().map(PathBuf::from).collect(),
            overlays: overlays.to_vec(),
        };
        let pair = |(name, value): (OsString, OsString)| {
            format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap())
        };
        let mut seen: Vec<String> = variables(&home, None).into_iter().map(pair).collect();
        seen.sort();
        seen
    }

    #[test]
    fn a_usual_place_is_left_only_where_it_is_the_operators() {
        let always = [
            "GEM_HOME=/h/.prefix/gems",
            "PNPM_HOME=/h/.prefix/pnpm",
            "YARN_GLOBAL_FOLDER=/h/.prefix/yarn",
            "npm_config_prefix=/h/.prefix",
        ];
        assert_eq!(seen(&["/h/.gitconfig"], &[]), always);
        let own = seen(&["/h/go/bin", "/h/.local/bin"], &[Overlay::Python]);
        for set in [
            "GOBIN=/h/.prefix/bin",
            "PIPX_BIN_DIR=/h/.prefix/bin",
            "PYTHONUSERBASE=/h/.prefix",
            "UV_TOOL_BIN_DIR=/h/.prefix/bin",
        ] {
            assert!(own.iter().any(|pair| pair == set), "{set}: {own:?}");
        }
        let caches = seen(&[], &[Overlay::Pnpm, Overlay::Uv, Overlay::Yarn]);
        for set in [
            "PNPM_HOME=/h/.prefix/pnpm",
            "UV_LINK_MODE=copy",
            "UV_CACHE_DIR=/h/.prefix/cache/uv",
            "YARN_PREFERRED_CACHE_FOLDER=/h/.prefix/cache/yarn",
            "pnpm_config_package_import_method=clone-or-copy",
            "pnpm_config_store_dir=/h/.prefix/pnpm/store",
        ] {
            assert!(caches.iter().any(|pair| pair == set), "{set}: {caches:?}");
        }
        let cargo = seen(&["/h/.cargo/bin"], &[Overlay::Cargo, Overlay::Rustup]);
        for set in [
            "CARGO_HOME=/h/.prefix/cargo",
            "CARGO_INSTALL_ROOT=/h/.prefix",
            "RUSTUP_HOME=/h/.prefix/rustup",
        ] {
            assert!(cargo.iter().any(|pair| pair == set), "{set}: {cargo:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "prepares what lies outside every root")]
    fn npm_keeps_the_settings_of_the_machine() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["bin/node", "etc/npmrc"] {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let path = directory.path().join("bin").into_os_string();
        let settings = directory.path().canonicalize().unwrap().join("etc/npmrc");
        assert_eq!(settings_of_npm(&path), Some(settings));
    }

    #[test]
    fn managers_of_versions_get_what_they_can_work_with() {
        let nvm = seen(&["/h/.nvm"], &[]);
        assert!(!nvm.iter().any(|pair| pair.starts_with("npm_")), "{nvm:?}");
        let pyenv = seen(&["/h/.pyenv"], &[]);
        assert!(pyenv.contains(&"BASH_FUNC_pyenv-rehash%%=() { :; }".to_owned()), "{pyenv:?}");
    }
}
