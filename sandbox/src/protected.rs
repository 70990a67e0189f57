//! Paths within what commands may write that they must not change: where mounts go, and whether they stand.
//!
//! A mount covers a name in a directory. Outside of the namespaces anybody may put another file there, and
//! the kernel takes the mount away then, as after `rename(2)` over a mount point of another namespace. So
//! the file that was mounted is kept open, and its identity compared with what has the name now.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::plan::Plan;
use crate::rights::{Rights, identity};

/// A path that is mounted read-only, as it was then.
#[derive(Debug)]
pub(crate) struct Mounted {
    path: PathBuf,
    identity: (u64, u64),
    /// Keeps the number of the file from being given to another one.
    _file: OwnedFd,
}

impl Mounted {
    /// What is at each of `paths`; nothing for those that are missing.
    pub(crate) fn at(paths: &[PathBuf]) -> BTreeMap<PathBuf, Self> {
        let mounted = paths.iter().filter_map(|path| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&file).ok()?;
            let identity = (stat.st_dev, stat.st_ino);
            Some((path.clone(), Self { path: path.clone(), identity, _file: file }))
        });
        mounted.collect()
    }

    /// Whether what is at the path now is what was mounted.
    pub(crate) fn stands(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }
}

/// Adds mounts of `paths` to a plan: read-only ones of themselves, under every name that commands have for
/// them, and mounts of the directories that lead there.
pub(crate) fn add(plan: &mut Plan, paths: &[PathBuf]) {
    let writable = plan.grants.iter().filter(|grant| {
        // What a private directory covers is not the machine's.
        grant.rights == Rights::ReadWrite && !plan.sources.iter().any(|(at, _)| *at == grant.path)
    });
    let (mut held, mut protected) = (plan.held.clone(), Vec::new());
    for grant in writable {
        for path in paths {
            // A directory mounted twice has two paths.
            let above = path.ancestors().skip(1).find(|above| {
                *above == grant.path
                    || grant.identity.is_some_and(|same| identity(above).ok() == Some(same))
            });
            let Some(rest) = above.and_then(|above| path.strip_prefix(above).ok()) else {
                if *path == grant.path {
                    protected.push(path.clone());
                }
                continue;
            };
            let at = grant.path.join(rest);
            let way = at.ancestors().skip(1).take_while(|above| *above != grant.path);
            held.extend(way.map(Path::to_owned));
            protected.push(at);
        }
    }
    for paths in [&mut held, &mut protected] {
        paths.sort();
        paths.dedup();
    }
    (plan.held, plan.protected) = (held, protected);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_took_the_name_is_not_the_one_that_was_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let mounted = Mounted::at(&[path.clone(), directory.path().join("none")]);
        assert_eq!(mounted.len(), 1);
        let mounted = &mounted[&path];
        fs::write(&path, "other content").unwrap();
        assert!(mounted.stands());
        fs::remove_file(&path).unwrap();
        assert!(!mounted.stands());
        fs::write(&path, "old").unwrap();
        assert!(!mounted.stands(), "the number of a file that is open is not given again");
    }
}
