//! Other surroundings than those of a plain process: mounts, another user, a limit.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown};
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::harness::{PROGRAM, Story};

/// Runs an ignored story of this binary by itself, as root of a mount namespace of its own. Nothing
/// happens, and that is said, where this machine grants none.
pub(crate) fn in_namespace(story: &str) {
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]);
    let granted = probe.output().is_ok_and(|output| output.status.success());
    if !granted {
        return skip(story, "no mount namespace is granted here");
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .arg("-rm")
        .arg(program)
        .args(["--exact", story, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Mounts something, in the namespace of an inner story.
pub(crate) fn mount(arguments: &[&str], at: &Path) {
    assert!(Command::new("mount").args(arguments).arg(at).status().unwrap().success());
}

/// A provider that runs as an ordinary user, who owns its folder. Without the right to become one,
/// we are one.
pub(crate) async fn unprivileged_story() -> Story {
    if !geteuid().is_root() {
        return Story::launched().await;
    }
    const NOBODY: u32 = 65534;
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    // A copy: the way to the program itself need not be open to everybody.
    let arguments = [&ids[0], &ids[1], "--clear-groups", "./program"];
    let prepare = |folder: &Path| {
        fs::copy(PROGRAM, folder.join("program")).unwrap();
        for path in [folder.to_owned(), folder.join("root"), folder.join("tmp")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    };
    Story::launched_by("setpriv", &arguments, prepare).await
}

/// Gives what the story prepared to whom the provider runs as.
pub(crate) fn hand_over(story: &Story, names: &[&str]) {
    let owner = fs::metadata(story.path("")).unwrap();
    for name in names {
        lchown(story.path(name), Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

/// Says that a part of a story is for root. CI tells it as root too, so nothing is lost.
pub(crate) fn only_for_root(part: &str) {
    eprintln!("SKIPPED {part}: only root can do it");
}

/// Says that a story was not told. In CI it has to be.
pub(crate) fn skip(story: &str, why: &str) {
    eprintln!("SKIPPED {story}: {why}");
    assert!(std::env::var_os("CI").is_none(), "CI must run {story}");
}
