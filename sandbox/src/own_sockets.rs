//! Keeps commands from the directory in which the program itself listens. A command that could rename the
//! socket there and bind one of its own would get what the program's next client sends.

use std::path::{Path, PathBuf};

use crate::grants::Grants;
use crate::rights::{Rights, identity};

/// How mounts hide the directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// The paths by which commands would reach it.
    pub(crate) masks: Vec<PathBuf>,
    /// The directories that lead there from what commands may write. Moved away, they would take the
    /// mask along. A path comes after those that hold it.
    pub(crate) held: Vec<PathBuf>,
}

/// How to hide `dir`.
///
/// # Errors
/// A granted path that the mask would cover.
pub(crate) fn hidden<'a>(grants: &'a Grants, dir: &Path) -> Result<Hidden, &'a Path> {
    let mut hidden = Hidden::default();
    for grant in grants.commands.iter().filter(|grant| grant.rights != Rights::List) {
        // A directory mounted twice has two paths.
        let above = dir.ancestors().find(|above| {
            *above == grant.path
                || grant.identity.is_some_and(|same| identity(above).ok() == Some(same))
        });
        let Some(rest) = above.and_then(|above| dir.strip_prefix(above).ok()) else { continue };
        let at = grant.path.join(rest);
        if let Some(covered) = grants.commands.iter().find(|other| other.path.starts_with(&at)) {
            return Err(&covered.path);
        }
        if grant.rights == Rights::ReadWrite {
            let way = at.ancestors().skip(1).take_while(|above| *above != grant.path);
            hidden.held.extend(way.map(Path::to_owned));
        }
        hidden.masks.push(at);
    }
    for paths in [&mut hidden.masks, &mut hidden.held] {
        paths.sort();
        paths.dedup();
    }
    Ok(hidden)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::policy::Policy;

    #[test]
    fn the_way_from_what_is_written_is_held_and_what_lies_elsewhere_needs_nothing() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        for dir in ["root/a/b/sockets", "read/sockets", "elsewhere/sockets", "home"] {
            fs::create_dir_all(base.join(dir)).unwrap();
        }
        let policy = Policy {
            roots: vec![base.join("root")],
            read_only_roots: vec![base.join("read")],
            home: Some(base.join("home")),
            search_path: Some("".into()),
            ..Policy::default()
        };
        let grants = Grants::of(&policy).unwrap();
        let hidden = |dir: &str| super::hidden(&grants, &base.join(dir)).map_err(Path::to_owned);
        assert_eq!(hidden("elsewhere/sockets"), Ok(Hidden::default()));
        let masks = |dir| vec![base.join(dir)];
        let held = ["root/a", "root/a/b"].map(|dir| base.join(dir)).to_vec();
        let in_root = Hidden { masks: masks("root/a/b/sockets"), held };
        assert_eq!(hidden("root/a/b/sockets"), Ok(in_root));
        let read = Hidden { masks: masks("read/sockets"), held: Vec::new() };
        assert_eq!(hidden("read/sockets"), Ok(read));
        assert_eq!(hidden("root"), Err(base.join("root")), "the root itself cannot be covered");
    }
}
