//! What an operator may be advised to grant: the command, the files in the roots and the output chose
//! the path, so only what was looked at counts, and nothing that holds keys is ever named.

use std::path::Path;

use sandbox::holds_keys;

use crate::process::outside;

/// What the machine has at a path that commands were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Nothing: the refusal is not the jail's.
    Missing,
    /// Something that no advice names: it holds keys, only its owner may read it, or it is so much
    /// that a grant would give the machine away.
    Guarded,
    /// Something that an operator could grant.
    Grantable,
}

/// Looks at `path`, which may be anything.
pub(super) fn at(path: &Path) -> Outside {
    let home = outside::home();
    let is_guarded = |path: &Path| {
        holds_keys(path)
            || is_hidden_at_home(path, home.as_deref())
            || is_wide(path, home.as_deref())
            || is_for_root(path)
    };
    if !outside::exists(path).unwrap_or(false) {
        Outside::Missing
    // A setting grants what a path leads to.
    } else if is_guarded(path) || outside::resolved(path).is_none_or(|real| is_guarded(&real)) {
        Outside::Guarded
    } else {
        Outside::Grantable
    }
}

/// Whether a git directory lies there: one with a head, objects and references.
pub(super) fn is_git_directory(path: &Path) -> bool {
    at(path) == Outside::Grantable
        && ["HEAD", "objects", "refs"]
            .iter()
            .all(|name| outside::exists(&path.join(name)).unwrap_or(false))
}

/// Hidden entries of a home hold keys, histories and what runs at the next login. Toolchains are the
/// exception.
fn is_hidden_at_home(path: &Path, home: Option<&Path>) -> bool {
    const TOOLCHAINS: [&str; 14] = [
        ".asdf",
        ".bun",
        ".cargo",
        ".deno",
        ".local/lib",
        ".local/share/fnm",
        ".local/share/mise",
        ".local/share/uv",
        ".nvm",
        ".pyenv",
        ".rbenv",
        ".rustup",
        ".sdkman",
        ".volta",
    ];
    hidden_at_home(path, home)
        .is_some_and(|inside| !TOOLCHAINS.iter().any(|toolchain| inside.starts_with(toolchain)))
}

/// The path from the home directory on, where it begins with a hidden name.
fn hidden_at_home<'p>(path: &'p Path, home: Option<&Path>) -> Option<&'p Path> {
    let inside = path.strip_prefix(home?).ok()?;
    inside.as_os_str().as_encoded_bytes().starts_with(b".").then_some(inside)
}

/// Whether a grant of it would be one of the system, or of all that somebody owns.
fn is_wide(path: &Path, home: Option<&Path>) -> bool {
    const SYSTEM: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/boot"];
    path.components().count() <= 2
        || home.is_some_and(|home| home.starts_with(path))
        || SYSTEM.iter().any(|directory| path.starts_with(directory))
}

/// Whether root runs the provider and nobody else may read it.
fn is_for_root(path: &Path) -> bool {
    rustix::process::geteuid().is_root() && !outside::is_readable_by_others(path)
}

/// What a setting can grant so that `path` can be written: what is there already, since nothing else
/// can be granted. `None` where that is nothing to advise.
pub(super) fn writable(at: impl Fn(&Path) -> Outside, path: &Path) -> Option<&Path> {
    const SYSTEM: [&str; 8] = ["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/var", "/opt"];
    let there = path.ancestors().find(|ancestor| at(ancestor) != Outside::Missing)?;
    let is_system = SYSTEM.iter().any(|directory| there.starts_with(directory));
    // What is written there runs outside the jail, or steers what does.
    let is_hidden = hidden_at_home(there, outside::home().as_deref()).is_some();
    (at(there) == Outside::Grantable && !is_system && !is_hidden).then_some(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_the_system_and_what_is_root_s_alone_are_never_advised() {
        for path in
            ["/root/.ssh/id_rsa", "/home/a/.config/gcloud/x", "/home/a/.cargo/credentials.toml"]
        {
            assert!(holds_keys(Path::new(path)), "{path}");
        }
        assert!(!holds_keys(Path::new("/srv/data/notes")));
        let home = Some(Path::new("/home/a"));
        for path in ["/", "/etc", "/home", "/home/a", "/proc/1/environ"] {
            assert!(is_wide(Path::new(path), home), "{path}");
        }
        assert!(!is_wide(Path::new("/home/a/project"), home));
        for (path, hidden) in [
            ("/home/a/.bashrc", true),
            ("/home/a/.config/autostart", true),
            ("/home/a/.local/state/provider-workspace", true),
            ("/home/a/.local/share/uv/python", false),
            ("/home/a/project/.env", false),
        ] {
            assert_eq!(is_hidden_at_home(Path::new(path), home), hidden, "{path}");
        }
        assert_eq!(at(Path::new("/no/such/thing")), Outside::Missing);
        assert_eq!(at(Path::new("/usr/bin")), Outside::Grantable);
    }

    #[test]
    fn what_is_there_already_can_be_granted_for_a_write_unless_it_is_the_system_s() {
        let machine = |path: &Path| match path.to_str() {
            Some("/" | "/etc") => Outside::Guarded,
            Some("/srv/data" | "/srv/data/file" | "/usr/share") => Outside::Grantable,
            _ => Outside::Missing,
        };
        let of = |path: &'static str| writable(machine, Path::new(path));
        assert_eq!(of("/srv/data/file"), Some(Path::new("/srv/data/file")));
        assert_eq!(of("/srv/data/new/deep"), Some(Path::new("/srv/data")));
        assert_eq!(of("/etc/a/b"), None);
        assert_eq!(of("/usr/share/x"), None);
        assert_eq!(of("/elsewhere/x"), None);
    }
}
