//! The limits of the control group that this process is in. Runtimes size their heaps and pools by them,
//! so commands may read these files, and nothing else that control groups show of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::rights::{Grant, Rights, identity};

const MOUNT: &str = "/sys/fs/cgroup";

/// Where groups of the second version are mounted on a machine that has both.
const MOUNT_BESIDE_FIRST: &str = "/sys/fs/cgroup/unified";
const LIMITS: [&str; 5] =
    ["cpu.max", "cpuset.cpus.effective", "memory.high", "memory.max", "memory.swap.max"];

/// Grants of these files, in the group itself and in those above it. None where control groups are not of
/// the second version.
pub(crate) fn limits() -> Vec<Grant> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let files = own(&groups).into_iter().flat_map(|group| within(Path::new(MOUNT), &group));
    files.filter_map(|path| Some((identity(&path).ok()?, path))).map(granted).collect()
}

/// How much memory there is, in bytes: the machine's, or the group's where that has less.
pub(crate) fn memory() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = own(&groups).unwrap_or_default();
    let most = group.ancestors().filter_map(|group| {
        let text = fs::read_to_string(Path::new(MOUNT).join(group).join("memory.max")).ok()?;
        text.trim().parse().ok()
    });
    let machine = rustix::system::sysinfo();
    most.chain([machine.totalram as u64 * u64::from(machine.mem_unit)]).min().unwrap_or(u64::MAX)
}

/// The directory of the group that this process is in.
pub(crate) fn own_directory() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = own(&groups).filter(|group| !group.as_os_str().is_empty())?;
    let mounts = [MOUNT, MOUNT_BESIDE_FIRST].map(Path::new).into_iter();
    mounts.map(|mount| mount.join(&group)).find(|path| path.join("cgroup.procs").exists())
}

fn granted((identity, path): ((u64, u64), PathBuf)) -> Grant {
    Grant { path, rights: Rights::Read, identity: Some(identity) }
}

/// The group of the second version among the lines of /proc/self/cgroup, as a relative path.
fn own(groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A group outside the namespace is shown by dots.
    let outside = path.split('/').any(|step| step == "..");
    (!outside).then(|| PathBuf::from(path))
}

fn within(mount: &Path, group: &Path) -> Vec<PathBuf> {
    let groups = group.ancestors().map(|group| mount.join(group));
    groups.flat_map(|group| LIMITS.map(|name| group.join(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_own_group_and_of_those_above() {
        let group = own("4:memory:/other\n0::/user.slice/session.scope\n").unwrap();
        let files = within(Path::new("/m"), &group);
        assert_eq!(files.len(), 3 * LIMITS.len());
        for file in ["memory.max", "user.slice/memory.max", "user.slice/session.scope/cpu.max"] {
            assert!(files.contains(&Path::new("/m").join(file)), "{file}: {files:?}");
        }
        assert_eq!(own("0::/"), Some(PathBuf::new()));
        assert_eq!(own("0::/../outside"), None);
        assert_eq!(own("4:memory:/other"), None);
    }
}
