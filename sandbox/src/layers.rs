//! Layers over everything that a command may write: overlays whose upper directories are discarded with
//! the command.
//!
//! Upper directories lie in memory, in one tmpfs for all calls of a spawner: its size is the limit of all
//! of them together, a full one answers ENOSPC, and the kernel takes it away with the last process of the
//! namespaces, however that ends. On disk an ordinary user can have no such limit.
//!
//! They get their places when the call comes. What an overlay shows of a lower file that changes after it was
//! looked up is undefined, and before that nothing is looked up. All else is prepared, with handles: an
//! overlay on a directory hides what is mounted below, such as another root, or a toolchain in HOME.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use libc::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, XattrFlags, chmodat, chownat, fsetxattr, fstat,
    mkdirat, openat, unlinkat,
};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, unmount,
};

use crate::beneath::{self, kind};
use crate::changes::{Changes, Comparison, Top, space_of};
use crate::grants::{PROC, SHARED_MEMORY, TERMINALS};
use crate::namespaces::{attach, of_itself};
use crate::plan::Plan;
use crate::private::{random, remove};
use crate::sys::{self, Depth};

/// Where the tmpfs of upper directories is mounted until a command starts.
pub(crate) const LAYERS: &str = "/.layers";

/// The options of an overlay, by the extended attributes that this process may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Those of the machine: a directory can be renamed.
    Trusted,
    /// Those of users: renaming a directory that was there before answers EXDEV, as between file systems.
    User,
    /// None, so there are no layers: a tmpfs takes them from users since Linux 6.6.
    None,
}

impl Marks {
    /// What this process may set, tried on the tmpfs.
    pub(crate) fn find() -> Self {
        // Elsewhere root is not the machine's.
        let is_machines = fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(top) = rustix::fs::open(LAYERS, flags, Mode::empty()) else { return Self::None };
        let sets = |name: &str| fsetxattr(&top, name, b"y", XattrFlags::empty()).is_ok();
        if is_machines && sets("trusted.overlay.tried") {
            Self::Trusted
        } else if sets("user.overlay.tried") {
            Self::User
        } else {
            Self::None
        }
    }

    /// Those of directories that cover what lies below them, or stand for one of another name.
    fn covering(self) -> &'static [&'static CStr] {
        match self {
            Self::Trusted => &[c"trusted.overlay.opaque", c"trusted.overlay.redirect"],
            Self::User | Self::None => &[c"user.overlay.opaque", c"user.overlay.redirect"],
        }
    }
}

/// The layers of one command.
pub(crate) struct Layers {
    marks: Marks,
    steps: Vec<Step>,
    /// The tmpfs, this command's directory in it, and its name there.
    top: OwnedFd,
    place: OwnedFd,
    name: String,
}

/// What is mounted at a path, one after the other: a path comes after those that hold it.
struct Step {
    path: PathBuf,
    mounted: Mounted,
}

enum Mounted {
    /// A layer over a directory.
    Layer(Layer),
    /// The same as at the path of an earlier step: it is the same directory.
    SameAs(usize),
    /// What was there before, which a layer above hides.
    Again(OwnedFd),
    /// The same, and read-only: it can have no layer.
    ReadOnly(OwnedFd),
}

struct Layer {
    lower: OwnedFd,
    /// Its device and inode.
    identity: (u64, u64),
    /// Mode and owner of its top, when the layer was made.
    looks: Looks,
    /// The same of the upper directory: it may have another owner.
    shown: Looks,
    upper: OwnedFd,
    mount: OwnedFd,
    use_: Use,
}

impl Layer {
    /// Whether the command changed the top. It had the looks of the upper directory, or those that the lower
    /// one had when the call came.
    fn top(&self) -> Top {
        let (Ok(found), Ok(lower)) = (looks(&self.upper), looks(&self.lower)) else {
            return Top::Changed;
        };
        let is_old =
            |of: fn(Looks) -> (u32, u32)| of(found) == of(self.shown) || of(found) == of(lower);
        match is_old(|(mode, ..)| (mode, 0)) && is_old(|(_, user, group)| (user, group)) {
            true => Top::AsBefore,
            false => Top::Changed,
        }
    }
}

/// Mode, owner and group.
type Looks = (u32, u32, u32);

/// Gives a directory these. An owner without a name in this namespace cannot be given.
fn look(directory: &OwnedFd, (mode, user, group): Looks) -> io::Result<()> {
    let path = by_handle(directory);
    let _ = chownat(
        CWD,
        &path,
        Some(Uid::from_raw(user)),
        Some(Gid::from_raw(group)),
        AtFlags::empty(),
    );
    Ok(chmodat(CWD, &path, Mode::from_raw_mode(mode), AtFlags::empty())?)
}

/// A path that leads to the very file of a handle.
fn by_handle(handle: &OwnedFd) -> String {
    format!("{PROC}/self/fd/{}", handle.as_raw_fd())
}

fn looks(directory: &OwnedFd) -> io::Result<Looks> {
    let found = fstat(directory)?;
    Ok((found.st_mode, found.st_uid, found.st_gid))
}

/// What a layer is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// To take what is written in a directory of the machine.
    Machine,
    /// To take what is written in a private directory.
    Private,
    /// To take what is shared as memory, so that it counts as the layers do.
    Memory,
    /// To cut off sockets and named pipes in a directory that may only be read: a program outside that
    /// serves them is not reached through a layer.
    Sealed,
}

impl Layers {
    /// Prepares the layers of one command, in a mount namespace of its own.
    pub(crate) fn prepare(plan: &Plan, marks: Marks) -> io::Result<Self> {
        let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::open(LAYERS, directory, Mode::empty())?;
        let name = std::process::id().to_string();
        mkdirat(&top, &name, Mode::RWXU)?;
        let place = openat(&top, &name, directory, Mode::empty())?;
        let mut layers = Self { marks, steps: Vec::new(), top, place, name };
        for mount in table()? {
            layers.add(plan, mount)?;
        }
        // Out of sight of the command. The layers have mounts of their own.
        unmount(LAYERS, UnmountFlags::DETACH)?;
        Ok(layers)
    }

    fn add(&mut self, plan: &Plan, Mount { path, access }: Mount) -> io::Result<()> {
        let is_own = [PROC, TERMINALS, LAYERS].iter().any(|own| path.starts_with(own));
        if is_own || path == Path::new("/") {
            return Ok(());
        }
        let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lower = openat(CWD, &path, handle, Mode::empty())?;
        let found = fstat(&lower)?;
        let is_directory = kind(&found) == FileType::Directory;
        let is_private = plan.sources.iter().any(|(at, _)| *at == path);
        let hidden = self
            .steps
            .iter()
            .any(|step| !matches!(step.mounted, Mounted::Again(_)) && path.starts_with(&step.path));
        let use_ = match access {
            Access::Write if path == Path::new(SHARED_MEMORY) => Some(Use::Memory),
            Access::Write if is_private => Some(Use::Private),
            Access::Write => Some(Use::Machine),
            Access::Read if plan.sealed.contains(&path) => Some(Use::Sealed),
            Access::Read => None,
        };
        let mounted = match use_ {
            Some(use_) if is_directory => {
                let identity = (found.st_dev, found.st_ino);
                let same = self.steps.iter().position(|step| match &step.mounted {
                    Mounted::Layer(layer) => layer.identity == identity,
                    _ => false,
                });
                match same {
                    Some(other) => Mounted::SameAs(other),
                    None => self.layer(lower, identity, use_)?,
                }
            }
            Some(Use::Machine | Use::Private | Use::Memory) => {
                Mounted::ReadOnly(read_only(&lower)?)
            }
            _ if hidden => Mounted::Again(of_itself(&lower, Depth::One)?),
            _ => return Ok(()),
        };
        self.steps.push(Step { path, mounted });
        Ok(())
    }

    /// A layer without a place yet, or what stands in for one that cannot be had: what may only be read needs
    /// none.
    fn layer(&self, lower: OwnedFd, identity: (u64, u64), use_: Use) -> io::Result<Mounted> {
        let looks = looks(&lower)?;
        let (upper, work) = (self.make()?, self.make()?);
        match self.overlay(&lower, looks, &upper, &work, use_) {
            Ok(mount) => {
                let shown = self::looks(&upper)?;
                Ok(Mounted::Layer(Layer { lower, identity, looks, shown, upper, mount, use_ }))
            }
            Err(_) if use_ == Use::Sealed => Ok(Mounted::Again(read_only(&lower)?)),
            Err(_) => Ok(Mounted::ReadOnly(read_only(&lower)?)),
        }
    }

    /// Makes a directory in the tmpfs.
    fn make(&self) -> io::Result<OwnedFd> {
        let name = format!("{:016x}", random());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        mkdirat(&self.place, &name, Mode::RWXU)?;
        Ok(openat(&self.place, &name, flags, Mode::empty())?)
    }

    fn overlay(
        &self,
        lower: &OwnedFd,
        looks: Looks,
        upper: &OwnedFd,
        work: &OwnedFd,
        use_: Use,
    ) -> io::Result<OwnedFd> {
        // The upper directory is the one whose mode and owner are shown.
        look(upper, looks)?;
        let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (option, directory) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
            fsconfig_set_string(&overlay, option, by_handle(directory))?;
        }
        fsconfig_set_flag(&overlay, "volatile")?;
        match self.marks {
            Marks::Trusted => {
                for (option, value) in
                    [("redirect_dir", "on"), ("metacopy", "off"), ("index", "off")]
                {
                    fsconfig_set_string(&overlay, option, value)?;
                }
            }
            Marks::User => fsconfig_set_flag(&overlay, "userxattr")?,
            Marks::None => return Err(io::ErrorKind::Unsupported.into()),
        }
        fsconfig_create(&overlay)?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        attributes.set(MountAttrFlags::MOUNT_ATTR_RDONLY, use_ == Use::Sealed);
        Ok(fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    }

    /// Gives them their places. Returns the places of those steps that could get no
    /// layer and are read-only.
    pub(crate) fn mount(&self) -> io::Result<Vec<usize>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/", flags, Mode::empty())?;
        let mut read_only = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            if self.mount_step(&root, step)? == Access::Read {
                read_only.push(number);
            }
        }
        Ok(read_only)
    }

    fn mount_step(&self, root: &OwnedFd, step: &Step) -> io::Result<Access> {
        // By handle: what an earlier command left in HOME leads nowhere.
        let place = match (beneath::find(root.as_fd(), &step.path), &step.mounted) {
            (Ok(place), _) => place,
            // Other commands may have removed what only shows a toolchain.
            (Err(_), Mounted::Again(_)) => return Ok(Access::Write),
            (Err(error), _) => return Err(error.into()),
        };
        match &step.mounted {
            Mounted::Layer(layer) => {
                attach(&layer.mount, &place)?;
                let looks = looks(&layer.lower)?;
                if looks != layer.looks && layer.use_ != Use::Sealed {
                    // They were changed since the layer was made, and it still shows what they were.
                    look(&beneath::find(root.as_fd(), &step.path)?, looks)?;
                }
                Ok(Access::Write)
            }
            Mounted::SameAs(other) => {
                let other = self.steps.get(*other).ok_or(io::ErrorKind::NotFound)?;
                let same = beneath::find(root.as_fd(), &other.path)?;
                attach(&of_itself(&same, Depth::One)?, &place)?;
                Ok(Access::Write)
            }
            Mounted::Again(mount) => {
                // The kind of the place may have changed meanwhile.
                let _ = attach(mount, &place);
                Ok(Access::Write)
            }
            Mounted::ReadOnly(mount) => {
                attach(mount, &place)?;
                Ok(Access::Read)
            }
        }
    }

    /// The paths at which there are layers or a read-only stand-in, for rules.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.steps
            .iter()
            .filter(|step| !matches!(step.mounted, Mounted::Again(_)))
            .map(|step| step.path.as_path())
    }

    /// The path of a step.
    pub(crate) fn path(&self, number: usize) -> Option<&Path> {
        self.steps.get(number).map(|step| step.path.as_path())
    }

    /// What the command changed. All its processes have ended.
    pub(crate) fn changes(&self, read_only: &[usize]) -> Changes {
        let mut comparison = Comparison::new(self.marks.covering());
        for use_ in [Use::Machine, Use::Private] {
            for step in &self.steps {
                if let Mounted::Layer(layer) = &step.mounted
                    && layer.use_ == use_
                {
                    comparison.add(&layer.upper, &layer.lower, &step.path, layer.top());
                }
            }
        }
        let mut changes = comparison.done();
        changes.read_only =
            read_only.iter().filter_map(|number| self.path(*number)).map(Path::to_owned).collect();
        changes.space = space_of(&self.top);
        changes
    }

    /// Removes the upper directories. What cannot be removed goes with the tmpfs.
    pub(crate) fn remove(&self) {
        let _ = remove::empty(&self.place)
            .and_then(|()| unlinkat(&self.top, &self.name, AtFlags::REMOVEDIR));
    }
}

/// A read-only mount of what `handle` leads to, with all that is mounted in it. It has no place yet.
fn read_only(handle: &OwnedFd) -> io::Result<OwnedFd> {
    let mounts = of_itself(handle, Depth::Recursive)?;
    let closed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    sys::attributes_of(mounts.as_fd(), Depth::Recursive, closed)?;
    Ok(mounts)
}

/// What a mount allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    path: PathBuf,
    access: Access,
}

/// The mounts of this namespace by their paths, each path once, as the last one there has it.
fn table() -> io::Result<Vec<Mount>> {
    parse(&fs::read("/proc/self/mountinfo")?)
}

/// Lines as proc(5) has them: the fifth field is the path, the sixth the options of the mount.
fn parse(table: &[u8]) -> io::Result<Vec<Mount>> {
    let mut mounts: Vec<Mount> = Vec::new();
    for line in table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (Some(path), Some(options)) = (fields.next(), fields.next()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a malformed table of mounts"));
        };
        let path = PathBuf::from(std::ffi::OsString::from_vec(unescaped(path)));
        let writes = options.split(|byte| *byte == b',').any(|option| option == b"rw");
        let access = if writes { Access::Write } else { Access::Read };
        mounts.retain(|mount| mount.path != path);
        mounts.push(Mount { path, access });
    }
    mounts.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(mounts)
}

/// Blanks and the like stand as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                text.push(byte);
                rest = &after[3..];
            }
            _ => {
                text.push(*first);
                rest = after;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read_with_its_escapes() {
        let table = b"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n\
            30 21 8:1 /x /a\\040b\\134c ro,nosuid - ext4 /dev/sda rw\n\
            31 21 8:1 /y /a ro - ext4 /dev/sda rw\n\
            32 31 8:1 /y /a rw,nodev - ext4 /dev/sda rw\n";
        let mount = |path: &str, access| Mount { path: path.into(), access };
        assert_eq!(
            parse(table).unwrap(),
            [mount("/", Access::Write), mount("/a", Access::Write), mount("/a b\\c", Access::Read)]
        );
        assert!(parse(b"21 1 8:1 /\n").is_err());
    }
}
