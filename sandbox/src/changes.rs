//! What a command changed, as its layers show it after its end.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fgetxattr, flistxattr, openat, readlinkat, statat,
};
use rustix::io::Errno;

use crate::beneath::kind;
use crate::private::remove::each;
use crate::wire::{Reader, Writer, malformed};

/// What a [`Surroundings::ThrowAway`](crate::Surroundings::ThrowAway) command changed. All of it is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first of them, those in directories that the policy names before those in private ones, each
    /// time in the order of their paths. A directory that was created or deleted is one change, with all
    /// that it held.
    pub first: Vec<Change>,
    /// How many there were; of very many, after two seconds of looking, at least.
    pub count: u64,
    /// Directories and files that are writable for other commands and could get no layer: they were
    /// read-only.
    pub read_only: Vec<PathBuf>,
    /// Whether the layers had no space left at the end.
    pub space: Space,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, as commands name it.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content, mode, owner, extended attributes or, of a file, time of change of content is another
    /// one, or another file has its name.
    Changed,
    /// It is not there any more.
    Deleted,
}

/// Whether layers have space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Space {
    /// There was some.
    #[default]
    Left,
    /// There was none, so that writes may have failed.
    Used,
}

/// The most changes that are listed.
const MOST: usize = 50;

/// The most bytes of their paths: a report is one packet.
const MOST_BYTES: usize = 12 * 1024;

/// How long to look: somebody waits for the answer.
const LONGEST: Duration = Duration::from_secs(2);

/// How deep to look. A directory beyond counts as changed.
const DEEPEST: usize = 100;

/// How much content to compare, in all. What is beyond counts as changed.
const MOST_COMPARED: u64 = 64 << 20;

/// Compares layers with what lies below them.
pub(crate) struct Comparison {
    changes: Changes,
    /// Extended attributes by which the upper directory of a layer covers a lower one entirely, or stands for
    /// one of another name. Others of that kind are a command's own.
    marks: &'static [&'static CStr],
    /// Those of the layer that is looked at.
    found: Vec<Change>,
    /// How many more bytes to compare.
    compare: u64,
    until: Instant,
}

/// Whether the top of a layer has the mode and owner that it had before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    AsBefore,
    Changed,
}

/// Both sides of one directory. The lower one is as it would be without the layer.
struct Sides<'a> {
    upper: &'a OwnedFd,
    lower: &'a OwnedFd,
    path: &'a Path,
    depth: usize,
}

impl Comparison {
    pub(crate) fn new(marks: &'static [&'static CStr]) -> Self {
        Self {
            changes: Changes::default(),
            marks,
            found: Vec::new(),
            compare: MOST_COMPARED,
            until: Instant::now() + LONGEST,
        }
    }

    /// Adds what was changed in one layer, whose top commands have at `path`, and of which is known whether
    /// it is what it was.
    pub(crate) fn add(&mut self, upper: &OwnedFd, lower: &OwnedFd, path: &Path, top: Top) {
        // It began without any attribute, so one with more than can be read has been changed too.
        if top == Top::Changed || attributes(upper).is_none_or(|found| !found.is_empty()) {
            self.record(path.to_owned(), ChangeKind::Changed);
        }
        self.directory(&Sides { upper, lower, path, depth: 0 });
        self.keep_first();
        self.changes.first.append(&mut self.found);
    }

    fn keep_first(&mut self) {
        self.found.sort_by(|one, other| one.path.cmp(&other.path));
        self.found.truncate(MOST);
    }

    pub(crate) fn done(mut self) -> Changes {
        self.changes.first.truncate(MOST);
        let mut bytes = 0;
        self.changes.first.retain(|change| {
            bytes += change.path.as_os_str().len() + 16;
            bytes <= MOST_BYTES
        });
        self.changes
    }

    fn record(&mut self, path: PathBuf, kind: ChangeKind) {
        self.changes.count += 1;
        self.found.push(Change { path, kind });
        // Now and then, so that the list is short whatever a command made.
        if self.found.len() >= 64 * MOST {
            self.keep_first();
        }
    }

    fn directory(&mut self, sides: &Sides<'_>) {
        // What cannot be listed is not known. The caller has recorded the directory itself, if that changed.
        let _ = each(sides.upper, |name| {
            self.entry(sides, name);
            Ok(())
        });
    }

    fn entry(&mut self, sides: &Sides<'_>, name: &CStr) {
        if Instant::now() > self.until {
            return;
        }
        let path = sides.path.join(OsStr::from_bytes(name.to_bytes()));
        let Ok(upper) = statat(sides.upper, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let lower = statat(sides.lower, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is_whiteout = kind(&upper) == FileType::CharacterDevice && upper.st_rdev == 0;
        let Some(lower) = lower else {
            if !is_whiteout {
                self.record(path, ChangeKind::Created);
            }
            return;
        };
        if is_whiteout {
            return self.record(path, ChangeKind::Deleted);
        }
        match (kind(&upper), kind(&lower)) {
            (FileType::Directory, FileType::Directory) => {
                let opened = both(sides, name, OFlags::DIRECTORY);
                let merged = opened.filter(|(upper, _)| !covers(upper, self.marks));
                let same = merged.as_ref().is_some_and(|(one, other)| same_attributes(one, other))
                    && same_owner(&upper, &lower);
                if !same || sides.depth >= DEEPEST {
                    self.record(path.clone(), ChangeKind::Changed);
                }
                if let (Some((upper, lower)), true) = (merged, sides.depth < DEEPEST) {
                    let (upper, lower, depth) = (&upper, &lower, sides.depth + 1);
                    self.directory(&Sides { upper, lower, path: &path, depth });
                }
            }
            (FileType::RegularFile, FileType::RegularFile) => {
                let same = same_owner(&upper, &lower)
                    && upper.st_size == lower.st_size
                    && (upper.st_mtime, upper.st_mtime_nsec)
                        == (lower.st_mtime, lower.st_mtime_nsec)
                    && both(sides, name, OFlags::NONBLOCK).is_some_and(|(one, other)| {
                        same_attributes(&one, &other)
                            && self.same_content(&one, &other, upper.st_size.unsigned_abs())
                    });
                if !same {
                    self.record(path, ChangeKind::Changed);
                }
            }
            (FileType::Symlink, FileType::Symlink) => {
                let target = |at: &OwnedFd| readlinkat(at, name, Vec::new());
                let same = target(sides.upper).is_ok_and(|one| Ok(one) == target(sides.lower));
                if !(same && same_owner(&upper, &lower)) {
                    self.record(path, ChangeKind::Changed);
                }
            }
            (one, other) if one == other && same_owner(&upper, &lower) => {}
            _ => self.record(path, ChangeKind::Changed),
        }
    }

    fn same_content(&mut self, upper: &OwnedFd, lower: &OwnedFd, size: u64) -> bool {
        let Some(left) = self.compare.checked_sub(size) else { return false };
        self.compare = left;
        let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        let mut at = 0;
        while at < size {
            let (Ok(read), Ok(also)) = (
                rustix::io::pread(upper, &mut one[..], at),
                rustix::io::pread(lower, &mut other[..], at),
            ) else {
                return false;
            };
            let read = read.min(also);
            if read == 0 || one[..read] != other[..read] {
                return false;
            }
            at += read as u64;
        }
        true
    }
}

/// An entry of both sides, opened.
fn both(sides: &Sides<'_>, name: &CStr, with: OFlags) -> Option<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | with;
    let open = |at: &OwnedFd| openat(at, name, flags, Mode::empty()).ok();
    Some((open(sides.upper)?, open(sides.lower)?))
}

fn covers(directory: &OwnedFd, marks: &[&CStr]) -> bool {
    marks.iter().any(|name| match fgetxattr(directory, *name, &mut [0_u8; 1]) {
        // A value that is longer is one too.
        Ok(_) | Err(Errno::RANGE) => true,
        Err(_) => false,
    })
}

/// What a command can set of a file besides its mode, owner, times and content.
type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Those of the kinds that commands may set, without the marks of layers. `None` where they cannot be read.
fn attributes(file: &OwnedFd) -> Option<Attributes> {
    let mut names = match flistxattr(file, &mut [0_u8; 1][..]) {
        // Mostly there is none, or the file system knows none.
        Ok(0) | Err(Errno::OPNOTSUPP) => return Some(Attributes::new()),
        _ => vec![0; LONGEST_ATTRIBUTES],
    };
    let length = flistxattr(file, &mut names[..]).ok()?;
    names.truncate(length);
    let of_commands = |name: &&[u8]| {
        let begins = |with: &str| name.starts_with(with.as_bytes());
        let is_mark = name.strip_prefix(b"user.overlay.").is_some_and(|mark| MARKS.contains(&mark));
        (begins("user.") && !is_mark) || begins("system.posix_acl_")
    };
    let read = |name: &[u8]| {
        let mut value = vec![0; LONGEST_ATTRIBUTES];
        let length = fgetxattr(file, name, &mut value[..]).ok()?;
        value.truncate(length);
        Some((name.to_vec(), value))
    };
    names.split(|byte| *byte == 0).filter(of_commands).map(read).collect()
}

/// What an overlay itself writes below `user.overlay.` (fs/overlayfs/overlayfs.h of Linux).
const MARKS: [&[u8]; 11] = [
    b"opaque",
    b"redirect",
    b"origin",
    b"impure",
    b"nlink",
    b"upper",
    b"uuid",
    b"metacopy",
    b"protattr",
    b"whiteout",
    b"whiteouts",
];

/// The kernel's limit of a list of names, and of a value.
const LONGEST_ATTRIBUTES: usize = 64 * 1024;

fn same_attributes(one: &OwnedFd, other: &OwnedFd) -> bool {
    attributes(one).is_some_and(|found| attributes(other).is_some_and(|also| also == found))
}

fn same_owner(one: &Stat, other: &Stat) -> bool {
    (one.st_mode, one.st_uid, one.st_gid) == (other.st_mode, other.st_uid, other.st_gid)
}

impl Changes {
    pub(crate) fn encode(&self, to: &mut Writer) {
        to.u64(self.count);
        to.list(&self.first, |to, change| {
            to.u64(change.kind as u64);
            to.os(change.path.as_os_str());
        });
        to.list(&self.read_only, |to, path| to.os(path.as_os_str()));
        to.u64(self.space as u64);
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> io::Result<Self> {
        let kinds = [ChangeKind::Created, ChangeKind::Changed, ChangeKind::Deleted];
        Ok(Self {
            count: from.u64()?,
            first: from.list(|from| {
                let kind = usize::try_from(from.u64()?).ok();
                let kind = kind.and_then(|at| kinds.get(at)).ok_or_else(malformed)?;
                Ok(Change { path: from.path()?, kind: *kind })
            })?,
            read_only: from.list(Reader::path)?,
            space: if from.u64()? == 0 { Space::Left } else { Space::Used },
        })
    }
}

/// Whether a file system is as good as full.
pub(crate) fn space_of(file: impl AsFd) -> Space {
    match rustix::fs::fstatvfs(file) {
        Ok(found) if found.f_bavail == 0 || found.f_favail == 0 => Space::Used,
        _ => Space::Left,
    }
}
