//! Environments other than that of a plain process: mounts, another user.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown};
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::harness::{Fixture, PROGRAM};

/// Mounts something, in a story that needs a mount namespace.
pub(crate) fn mount(arguments: &[&str], at: &Path) {
    assert!(Command::new("mount").args(arguments).arg(at).status().unwrap().success());
}

/// Copies a program by another process: what this one has open for writing, a child that another story
/// starts meanwhile holds until its exec, and nobody can execute it.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A provider that runs as an ordinary user, who owns its directory. Without the right to become one,
/// we are one.
pub(crate) async fn unprivileged() -> Fixture {
    match geteuid().is_root() {
        true => as_nobody("--clear-groups").await,
        false => Fixture::launched().await,
    }
}

/// One whose user belongs to a further group. Needs root.
pub(crate) async fn member_of(group: u32) -> Fixture {
    as_nobody(&format!("--groups={group}")).await
}

async fn as_nobody(groups: &str) -> Fixture {
    const NOBODY: u32 = 65534;
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    // A copy: the way to the program itself need not be open to everybody.
    let arguments = [&ids[0], &ids[1], groups, "./program"];
    let prepare = |directory: &Path| {
        copy_program(Path::new(PROGRAM), &directory.join("program"));
        for path in [directory.to_owned(), directory.join("root"), directory.join("tmp")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    Fixture::launched_by("setpriv", &arguments, prepare).await
}

/// Gives what the story prepared to whom the provider runs as.
pub(crate) fn hand_over(fixture: &Fixture, names: &[&str]) {
    let owner = fs::metadata(fixture.path("")).unwrap();
    for name in names {
        lchown(fixture.path(name), Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}
