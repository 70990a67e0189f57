//! The spawner's namespaces: a new root that holds only what is granted, and a loopback, process
//! ids and message queues of its own.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use libc::{
    CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount,
    open_tree,
};
use rustix::process::{Signal, chdir, getgid, getuid, pivot_root};

use crate::beneath::{self, InTheWay};
use crate::grants::{DEVICES, PROC, SHARED_MEMORY, TERMINALS};
use crate::layers::LAYERS;
use crate::others::{self, Narrowed};
use crate::plan::{Confinement, Plan};
use crate::policy::{Network, Surroundings};
use crate::rights::Rights;
use crate::sys::{self, Depth, Fork};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
pub(crate) struct Failure {
    pub(crate) step: String,
    #[source]
    pub(crate) source: io::Error,
}

impl Failure {
    /// Whether something is not there.
    fn is_of_absence(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Which process this is after [`enter`].
#[derive(Debug)]
pub(crate) enum Side {
    /// The parent, which stays outside and waits for the other process.
    Outside,
    /// The first process of the new namespaces.
    Inside {
        /// Whether the limit of processes binds root too.
        pid_limit: bool,
        narrowed: Narrowed,
    },
}

/// What the limit of processes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessLimit {
    /// Those of all calls.
    OfTheJail,
    /// Those of each call, by its control group.
    OfEachCall,
}

/// Moves into new namespaces. A new process namespace holds children only, so this forks, and both
/// processes return.
pub(crate) fn enter(plan: &Plan, limit: ProcessLimit) -> Result<Side, Failure> {
    let mut flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID;
    if plan.network == Network::Deny {
        flags |= CLONE_NEWNET;
    }
    match sys::unshare(flags) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => own_user_namespace(flags)?,
        Err(error) => return Err(failed("new namespaces")(error)),
    }
    if plan.network == Network::Deny {
        sys::loopback_up().map_err(failed("the loopback interface"))?;
    }
    match sys::fork().map_err(failed("the first process of the namespaces"))? {
        Fork::Parent(_) => Ok(Side::Outside),
        Fork::Child => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(os("the death signal"))?;
            let narrowed = new_root(plan)?;
            let pid_limit = match limit {
                ProcessLimit::OfTheJail => limit_processes(plan.processes).is_ok(),
                ProcessLimit::OfEachCall => false,
            };
            close_root()?;
            Ok(Side::Inside { pid_limit, narrowed })
        }
    }
}

/// A user without the right to make namespaces can make a user namespace, and the others within it.
fn own_user_namespace(flags: libc::c_int) -> Result<(), Failure> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    sys::unshare(CLONE_NEWUSER | flags).map_err(failed("a user namespace"))?;
    let write = |path: &str, text: String| fs::write(path, text).map_err(failed(path));
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Moves a process of these namespaces into further ones of its own, as a command that shares less than
/// others is to have them.
pub(crate) fn part(surroundings: Surroundings) -> Result<(), Failure> {
    let mut flags = CLONE_NEWNS | CLONE_NEWIPC;
    let is_thrown_away = surroundings == Surroundings::ThrowAway;
    if is_thrown_away {
        flags |= CLONE_NEWNET;
    }
    sys::unshare(flags).map_err(failed("namespaces of its own"))?;
    let (flags, options) = OWN_TERMINALS;
    rustix::mount::mount("devpts", TERMINALS, "devpts", flags, options)
        .map_err(os("terminals of its own"))?;
    if is_thrown_away {
        sys::loopback_up().map_err(failed("the loopback interface"))?;
    }
    Ok(())
}

/// Terminals that nobody else has, and how they are mounted. All mounts but the machine's first one share
/// some thousands (3072, where `kernel.pty` is as the kernel has it), containers' too: few enough that a
/// provider's calls do not take them from others.
const OWN_TERMINALS: (MountFlags, &CStr) =
    (MountFlags::NOSUID.union(MountFlags::NOEXEC), c"newinstance,ptmxmode=0666,mode=0620,max=32");

/// The same of shared memory.
const OWN_MEMORY: (MountFlags, &CStr) = (MountFlags::NOSUID.union(MountFlags::NODEV), c"mode=1777");

/// How many bytes of layers there are for each inode in them, and the fewest inodes.
const BYTES_PER_INODE: u64 = 8192;
const LEAST_INODES: u64 = 16_384;

/// Builds the new root and makes it the root of this process.
fn new_root(plan: &Plan) -> Result<Narrowed, Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(os("private mounts"))?;
    let root = Root::begin(plan)?;
    root.own_file_systems()?;
    let mut bound: Vec<(&Path, &Path, Rights)> = Vec::new();
    let mut masks = plan.masks.clone();
    let mut narrowed = Narrowed::ByMount;
    let mut leading = Leading { root: &root, ahead: &plan.leading, mounted: Vec::new() };
    for grant in &plan.grants {
        let (path, source) = (grant.path.as_path(), plan.source(&grant.path));
        // `own_file_systems` has made devices and /proc. A grant to list needs only the directory,
        // which the mounts below it create.
        if path.starts_with(PROC) || grant.rights == Rights::List {
            continue;
        }
        let holder = bound.iter().rev().find(|(held, _, _)| path.starts_with(held));
        let held = holder.is_some_and(|(held, from, rights)| {
            let same = path.strip_prefix(held).is_ok_and(|rest| from.join(rest) == source);
            same && *rights >= grant.rights
        });
        if !held {
            leading.mount_on_way_to(path)?;
            if grant.rights != Rights::AsOthers {
                let is_optional = grant.rights != Rights::ReadWrite;
                match root.bind(source, path, grant.rights) {
                    // Other programs remove files in a toolchain at any time.
                    Err(error) if is_optional && error.is_of_absence() => continue,
                    // Commands of another jail with the same HOME may change it meanwhile. That must not
                    // cost this one its namespaces.
                    Err(_) if is_optional && plan.private_above(path).is_some() => continue,
                    bound => bound?,
                }
            } else if root.mount_as_others(source, path).is_err() {
                root.bind(source, path, grant.rights)?;
                masks.extend(unnamed(plan, others::entries(path).hidden));
                narrowed = Narrowed::ByEntry;
            }
            bound.push((path, source, grant.rights));
        }
    }
    for (link, target) in &plan.links {
        leading.mount_on_way_to(link)?;
        match root.link(link, target) {
            Err(_) if plan.private_above(link).is_some() => {}
            made => made?,
        }
    }
    for path in &plan.held {
        root.hold(path)?;
    }
    for path in &plan.protected {
        root.protect(path)?;
    }
    root.mask(&masks)?;
    leading.close()?;
    chdir(&plan.staging).map_err(os("the new root"))?;
    pivot_root(".", ".").map_err(os("pivot_root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(os("leaving the old root"))?;
    chdir("/").map_err(os("the new root"))?;
    Ok(narrowed)
}

/// What a mount has to hide of `hidden`: nothing that the policy names, and no file that Landlock hides.
fn unnamed(plan: &Plan, hidden: Vec<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let named = |path: &Path| {
        let mut others = plan.grants.iter().filter(|grant| grant.rights != Rights::AsOthers);
        others.any(|grant| grant.path.starts_with(path) || path.starts_with(&grant.path))
    };
    hidden.into_iter().filter(move |path| {
        !named(path) && (plan.confinement != Confinement::Whole || path.is_dir())
    })
}

/// Makes the new root's own directories read-only, and /proc: its files that belong to no process are
/// the machine's, whose modes, owners and times every mount of it changes.
fn close_root() -> Result<(), Failure> {
    for path in [c"/", c"/proc"] {
        sys::mount_attributes(path, Depth::One, MOUNT_ATTR_RDONLY)
            .map_err(failed(&format!("a read-only {}", path.to_string_lossy())))?;
    }
    Ok(())
}

/// Limits the process ids of this namespace. The kernel does not reuse pids below 300 after the
/// first round, so the limit counts from there.
fn limit_processes(most: u64) -> io::Result<()> {
    // Before Linux 6.14 this setting belongs to the whole machine.
    if kernel_version() < (6, 14) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    const RESERVED: u64 = 300;
    let limit = RESERVED.saturating_add(most.clamp(1, 4_000_000));
    fs::write("/proc/sys/kernel/pid_max", limit.to_string())?;
    // If the kernel refuses this, the first round has 300 pids more.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", RESERVED.to_string());
    Ok(())
}

fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The new root while it is built.
struct Root<'a> {
    at: &'a Path,
    /// The top of it. Commands have written what private directories hold: mounts and links find their
    /// places there by handle.
    top: OwnedFd,
    plan: &'a Plan,
}

impl<'a> Root<'a> {
    fn begin(plan: &'a Plan) -> Result<Self, Failure> {
        let (at, flags) = (plan.staging.as_path(), MountFlags::NOSUID | MountFlags::NODEV);
        rustix::mount::mount("tmpfs", at, "tmpfs", flags, c"mode=0755")
            .map_err(os("a tmpfs on /"))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(at, flags, Mode::empty()).map_err(os("the new root"))?;
        Ok(Self { at, top, plan })
    }

    /// What becomes of an entry where `path` is to be: in private directories it is set aside.
    fn way(&self, path: &Path) -> InTheWay<'a> {
        match self.plan.private_above(path) {
            Some(private) => InTheWay::SetAsideBelow(private),
            None => InTheWay::Refused,
        }
    }

    fn directory(&self, path: &Path) -> Result<OwnedFd, Failure> {
        beneath::directory(self.top.as_fd(), path, self.way(path))
            .map_err(os(&format!("the directory {}", path.display())))
    }

    fn file(&self, path: &Path) -> Result<OwnedFd, Failure> {
        beneath::file(self.top.as_fd(), path, self.way(path))
            .map_err(os(&format!("the file {}", path.display())))
    }

    /// The current path of what becomes `path` in the new root.
    fn staged(&self, path: &Path) -> PathBuf {
        self.at.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn mount(
        &self,
        kind: &str,
        path: &Path,
        flags: MountFlags,
        options: &CStr,
    ) -> Result<(), Failure> {
        let staged = self.staged(path);
        make_dirs(&staged)?;
        rustix::mount::mount(kind, &staged, kind, flags, options)
            .map_err(|error| failed(&format!("a {kind} on {}", path.display()))(error.into()))
    }

    /// Mounts what belongs to these namespaces: processes, devices, terminals, shared memory.
    fn own_file_systems(&self) -> Result<(), Failure> {
        let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        self.mount("proc", Path::new(PROC), plain, c"")?;
        for device in DEVICES.map(Path::new) {
            if device.exists() {
                // Devices can be written on a read-only mount; only their nodes cannot be changed.
                self.bind_to(device, device, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY)?;
            }
        }
        self.mount("devpts", Path::new(TERMINALS), OWN_TERMINALS.0, OWN_TERMINALS.1)?;
        self.mount("tmpfs", Path::new(SHARED_MEMORY), OWN_MEMORY.0, OWN_MEMORY.1)?;
        let links = [
            ("/dev/ptmx", "pts/ptmx"),
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ];
        for (link, target) in links {
            self.link(Path::new(link), Path::new(target))?;
        }
        if self.plan.surroundings == Surroundings::ThrowAway {
            // Names and extended attributes take memory of their own, which the number of inodes limits.
            let inodes = (self.plan.layer_bytes / BYTES_PER_INODE).max(LEAST_INODES);
            let options = format!("mode=0700,size={},nr_inodes={inodes}", self.plan.layer_bytes);
            let options = CString::new(options).map_err(|error| failed("layers")(error.into()))?;
            self.mount("tmpfs", Path::new(LAYERS), OWN_MEMORY.0, &options)?;
        }
        make_dirs(&self.staged(Path::new("/run")))
    }

    fn bind(&self, source: &Path, path: &Path, rights: Rights) -> Result<(), Failure> {
        let fixed = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
        let attributes = match rights {
            Rights::ReadWrite => fixed,
            Rights::Device => MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY,
            Rights::List | Rights::AsOthers | Rights::Read | Rights::ReadExecute => {
                fixed | MOUNT_ATTR_RDONLY
            }
        };
        self.bind_to(source, path, attributes)
    }

    /// Mounts a directory as strangers see it, where the machine can.
    fn mount_as_others(&self, source: &Path, path: &Path) -> Result<(), Failure> {
        let staged = self.staged(path);
        make_dirs(&staged)?;
        others::mount(source, &staged, &self.staged(Path::new(PROC)))
            .map_err(failed(&format!("{} in the new root", path.display())))
    }

    fn bind_to(&self, source: &Path, path: &Path, attributes: u64) -> Result<(), Failure> {
        let step = format!("{} in the new root", path.display());
        let found = fs::metadata(source).map_err(failed(&step))?;
        let place = if found.is_dir() { self.directory(path)? } else { self.file(path)? };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree =
            open_tree(CWD, source, flags | OpenTreeFlags::AT_RECURSIVE).map_err(os(&step))?;
        sys::attributes_of(tree.as_fd(), Depth::Recursive, attributes).map_err(failed(&step))?;
        attach(&tree, &place).map_err(os(&step))
    }

    fn link(&self, link: &Path, target: &Path) -> Result<(), Failure> {
        beneath::link(self.top.as_fd(), link, target, self.way(link))
            .map_err(os(&format!("the link {}", link.display())))
    }

    /// Makes a mount of a directory, which nobody can move away then.
    fn hold(&self, path: &Path) -> Result<(), Failure> {
        let step = format!("{} in the new root", path.display());
        let Ok(dir) = beneath::find(self.top.as_fd(), path) else { return Ok(()) };
        if beneath::kind(&fstat(&dir).map_err(os(&step))?) != FileType::Directory {
            return Ok(());
        }
        mount_on_itself(&dir, Depth::Recursive).map_err(os(&step))
    }

    /// Makes a read-only mount of a file or a directory, in its place. Nobody can move or remove it then.
    fn protect(&self, path: &Path) -> Result<(), Failure> {
        let step = format!("a read-only {}", path.display());
        let Ok(place) = beneath::find(self.top.as_fd(), path) else { return Ok(()) };
        match beneath::kind(&fstat(&place).map_err(os(&step))?) {
            FileType::RegularFile | FileType::Directory => {}
            _ => return Ok(()),
        }
        let mounts = of_itself(&place, Depth::Recursive).map_err(os(&step))?;
        sys::attributes_of(mounts.as_fd(), Depth::Recursive, MOUNT_ATTR_RDONLY)
            .map_err(failed(&step))?;
        attach(&mounts, &place).map_err(os(&step))
    }

    /// Covers each path that exists with an empty file or directory of the new root's own.
    fn mask(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        let empty = self.staged(Path::new("/.empty"));
        for path in paths {
            match fs::metadata(self.staged(path)) {
                Err(_) => {}
                Ok(found) if found.is_dir() => {
                    let closed = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                    self.mount("tmpfs", path, closed, c"mode=0555,size=4k")?;
                }
                Ok(_) => {
                    make_file(&empty)?;
                    let closed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
                    self.bind_to(&empty, path, closed)?;
                }
            }
        }
        // The mounts keep the file.
        match fs::remove_file(&empty) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("the empty file")(error))
            }
            _ => Ok(()),
        }
    }
}

/// The directories within private ones that only lead to something.
struct Leading<'a> {
    root: &'a Root<'a>,
    ahead: &'a [PathBuf],
    mounted: Vec<&'a Path>,
}

impl<'a> Leading<'a> {
    /// Makes a mount of each that holds `path`, which is about to be placed there.
    fn mount_on_way_to(&mut self, path: &Path) -> Result<(), Failure> {
        for dir in self.ahead.iter().filter(|dir| path.starts_with(dir)) {
            if !self.mounted.contains(&dir.as_path()) {
                let place = self.root.directory(dir)?;
                mount_on_itself(&place, Depth::One)
                    .map_err(os(&format!("{} in the new root", dir.display())))?;
                self.mounted.push(dir);
            }
        }
        Ok(())
    }

    /// Makes them read-only, once everything in them has its place.
    fn close(self) -> Result<(), Failure> {
        for dir in self.mounted {
            let step = format!("a read-only {}", dir.display());
            let mount = beneath::find(self.root.top.as_fd(), dir).map_err(os(&step))?;
            sys::attributes_of(mount.as_fd(), Depth::One, MOUNT_ATTR_RDONLY)
                .map_err(failed(&step))?;
        }
        Ok(())
    }
}

/// Makes a mount of a directory in its own place.
fn mount_on_itself(place: &OwnedFd, depth: Depth) -> rustix::io::Result<()> {
    attach(&of_itself(place, depth)?, place)
}

/// Mounts of what is at a place, which have no place of their own yet.
pub(crate) fn of_itself(place: &OwnedFd, depth: Depth) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let deep = if depth == Depth::Recursive { OpenTreeFlags::AT_RECURSIVE } else { flags };
    open_tree(place, "", flags | deep)
}

/// Puts mounts that have no place yet over a file or a directory.
pub(crate) fn attach(mounts: &OwnedFd, place: &OwnedFd) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mounts, "", place, "", flags)
}

fn make_dirs(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder.create(path).map_err(failed(&format!("the directory {}", path.display())))
}

fn make_file(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        make_dirs(dir)?;
    }
    fs::write(path, "").map_err(failed(&format!("the file {}", path.display())))
}

pub(crate) fn failed(step: &str) -> impl FnOnce(io::Error) -> Failure {
    let step = step.to_owned();
    move |source| Failure { step, source }
}

fn os(step: &str) -> impl FnOnce(rustix::io::Errno) -> Failure {
    let failed = failed(step);
    move |error| failed(error.into())
}
