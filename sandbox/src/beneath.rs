//! Places beneath a directory whose content commands have written: found and made by handle, step by step,
//! and no link there is followed. What stands in the way of a place can be set aside, which loses nothing.

use std::ffi::{OsStr, OsString};
use std::fs::{Permissions, set_permissions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, renameat, statat,
    symlinkat,
};
use rustix::io::Errno;

use crate::private::random;

/// What is done about an entry of another kind than the wanted one, such as a link where a directory is to
/// be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InTheWay<'a> {
    /// It is an error.
    Refused,
    /// It gets another name if it lies below this path, which is written as the wanted one is; elsewhere it
    /// is an error. Directories that nobody may enter are opened up there.
    SetAsideBelow(&'a Path),
}

impl InTheWay<'_> {
    fn yields(self, walked: &Path) -> bool {
        match self {
            InTheWay::Refused => false,
            InTheWay::SetAsideBelow(path) => {
                let path = path.strip_prefix("/").unwrap_or(path);
                walked != path && walked.starts_with(path)
            }
        }
    }
}

const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How often to try a step that commands of another jail with the same directory undo.
const TRIES: usize = 128;

/// A handle (`O_PATH`) of the directory at `path` beneath `top`. What is missing is made, with mode 0755.
pub(crate) fn directory(
    top: BorrowedFd<'_>,
    path: &Path,
    way: InTheWay<'_>,
) -> rustix::io::Result<OwnedFd> {
    from_the_top(|| walk(top, path, way))
}

/// A handle of the file at `path` beneath `top`. One that is missing is made, empty, with mode 0644.
pub(crate) fn file(
    top: BorrowedFd<'_>,
    path: &Path,
    way: InTheWay<'_>,
) -> rustix::io::Result<OwnedFd> {
    from_the_top(|| file_once(top, path, way))
}

fn file_once(top: BorrowedFd<'_>, path: &Path, way: InTheWay<'_>) -> rustix::io::Result<OwnedFd> {
    let (at, name) = place(top, path, way)?;
    let yields = way.yields(path.strip_prefix("/").unwrap_or(path));
    for _ in 0..TRIES {
        match openat(&at, name, HANDLE, Mode::empty()) {
            Err(Errno::NOENT) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                match openat(&at, name, flags, Mode::from_raw_mode(0o644)) {
                    Ok(_) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(found) => match kind(&fstat(&found)?) {
                FileType::RegularFile => return Ok(found),
                _ if yields => set_aside(&at, name)?,
                FileType::Symlink => return Err(Errno::LOOP),
                FileType::Directory => return Err(Errno::ISDIR),
                _ => return Ok(found),
            },
            Err(error) => return Err(error),
        }
    }
    Err(Errno::AGAIN)
}

/// Makes the link at `path` beneath `top`. What is there stays where it may not be set aside.
pub(crate) fn link(
    top: BorrowedFd<'_>,
    path: &Path,
    target: &Path,
    way: InTheWay<'_>,
) -> rustix::io::Result<()> {
    from_the_top(|| link_once(top, path, target, way))
}

fn link_once(
    top: BorrowedFd<'_>,
    path: &Path,
    target: &Path,
    way: InTheWay<'_>,
) -> rustix::io::Result<()> {
    let (at, name) = place(top, path, way)?;
    let yields = way.yields(path.strip_prefix("/").unwrap_or(path));
    for _ in 0..TRIES {
        match symlinkat(target, &at, name) {
            Err(Errno::EXIST) if leads_to(&at, name, target) || !yields => return Ok(()),
            Err(Errno::EXIST) => set_aside(&at, name)?,
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// A handle of what is at `path` beneath `top`, which may be a link.
pub(crate) fn find(top: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let mut at = openat(top, ".", HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    for name in names(path)? {
        at = openat(&at, name, HANDLE, Mode::empty())?;
    }
    Ok(at)
}

/// Whether the entry is a link with exactly this target.
pub(crate) fn leads_to(at: &OwnedFd, name: &OsStr, target: &Path) -> bool {
    readlinkat(at, name, Vec::new())
        .is_ok_and(|found| found.as_bytes() == target.as_os_str().as_bytes())
}

pub(crate) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Repeats what begins at the top: in a directory that was entered and then removed nothing can be made.
fn from_the_top<T>(mut steps: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let mut tries = 1;
    loop {
        match steps() {
            Err(Errno::NOENT) if tries < TRIES => tries += 1,
            other => return other,
        }
    }
}

fn walk(top: BorrowedFd<'_>, path: &Path, way: InTheWay<'_>) -> rustix::io::Result<OwnedFd> {
    let mut at = openat(top, ".", HANDLE | OFlags::DIRECTORY, Mode::empty())?;
    let mut walked = PathBuf::new();
    for name in names(path)? {
        walked.push(name);
        at = enter(&at, name, way.yields(&walked))?;
    }
    Ok(at)
}

/// The directory of `path` and its name there.
fn place<'a>(
    top: BorrowedFd<'_>,
    path: &'a Path,
    way: InTheWay<'_>,
) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    Ok((walk(top, path.parent().unwrap_or(Path::new("")), way)?, name))
}

/// The steps of a path beneath a directory. None of them leads up.
fn names(path: &Path) -> rustix::io::Result<Vec<&OsStr>> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let step = |step| match step {
        Component::Normal(name) => Ok(name),
        _ => Err(Errno::INVAL),
    };
    path.components().map(step).collect()
}

fn enter(at: &OwnedFd, name: &OsStr, yields: bool) -> rustix::io::Result<OwnedFd> {
    for _ in 0..TRIES {
        match openat(at, name, HANDLE | OFlags::DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => match mkdirat(at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            },
            Err(Errno::NOTDIR | Errno::LOOP) if yields => set_aside(at, name)?,
            Ok(found) => {
                if yields {
                    open_up(&found)?;
                }
                return Ok(found);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::AGAIN)
}

/// Gives the user back the rights that a command took from a directory of the user's.
pub(crate) fn open_up(directory: &OwnedFd) -> rustix::io::Result<()> {
    let found = fstat(directory)?;
    if found.st_uid != rustix::process::geteuid().as_raw() || found.st_mode & 0o700 == 0o700 {
        return Ok(());
    }
    // This path leads to the open directory, wherever it lies now.
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    set_permissions(path, Permissions::from_mode(found.st_mode & 0o777 | 0o700))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS))
}

/// Renames an entry, whatever it is, to `NAME.aside-` and random digits.
fn set_aside(at: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    // A name has 255 bytes at most.
    let mut aside = name.as_bytes()[..name.len().min(200)].to_vec();
    aside.extend(format!(".aside-{:016x}", random()).bytes());
    match renameat(at, name, at, OsString::from_vec(aside)) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// The status of an entry, which may be a link.
pub(crate) fn status(at: impl AsFd, name: &OsStr) -> rustix::io::Result<Stat> {
    statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::fs::{CWD, open};

    use super::*;

    struct Tree {
        base: tempfile::TempDir,
        top: OwnedFd,
    }

    fn tree() -> Tree {
        let base = tempfile::tempdir().unwrap();
        for dir in ["top/mine", "elsewhere"] {
            fs::create_dir_all(base.path().join(dir)).unwrap();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = open(base.path().join("top"), flags, Mode::empty()).unwrap();
        Tree { base, top }
    }

    impl Tree {
        fn at(&self, name: &str) -> PathBuf {
            self.base.path().join("top").join(name)
        }

        fn elsewhere(&self) -> usize {
            fs::read_dir(self.base.path().join("elsewhere")).unwrap().count()
        }

        fn aside(&self, directory: &str) -> usize {
            let entries = fs::read_dir(self.at(directory)).unwrap().flatten();
            let names = entries.map(|entry| entry.file_name().into_string().unwrap());
            names.filter(|name| name.contains(".aside-")).count()
        }
    }

    fn mine() -> InTheWay<'static> {
        InTheWay::SetAsideBelow(Path::new("/mine"))
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_there_is_found() {
        let tree = tree();
        for _ in 0..2 {
            directory(tree.top.as_fd(), Path::new("/mine/a/b"), mine()).unwrap();
            file(tree.top.as_fd(), Path::new("mine/a/file"), mine()).unwrap();
            link(tree.top.as_fd(), Path::new("mine/c/link"), Path::new("/x"), mine()).unwrap();
        }
        assert!(tree.at("mine/a/b").is_dir() && tree.at("mine/a/file").is_file());
        assert_eq!(fs::read_link(tree.at("mine/c/link")).unwrap(), Path::new("/x"));
        assert_eq!(tree.aside("mine") + tree.aside("mine/a") + tree.aside("mine/c"), 0);
    }

    /// As a command of another jail with the same HOME does.
    #[test]
    fn what_is_removed_on_the_way_is_made_again() {
        const ROUNDS: usize = 1000;
        let tree = &tree();
        let done = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = fs::remove_dir_all(tree.at("mine/a"));
                }
            });
            let made = (0..ROUNDS).try_for_each(|_| {
                directory(tree.top.as_fd(), Path::new("mine/a/b"), mine())?;
                file(tree.top.as_fd(), Path::new("mine/a/file"), mine())?;
                link(tree.top.as_fd(), Path::new("mine/a/link"), Path::new("/x"), mine())
            });
            done.store(true, Ordering::Relaxed);
            made.unwrap();
        });
    }

    #[test]
    fn a_planted_entry_is_set_aside_where_that_is_allowed_and_never_followed() {
        let tree = tree();
        for name in ["mine/a", "mine/file", "mine/link", "outside"] {
            symlink("../../elsewhere", tree.at(name)).unwrap();
        }
        rustix::fs::mknodat(CWD, tree.at("mine/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        directory(tree.top.as_fd(), Path::new("/mine/a/b"), mine()).unwrap();
        for name in ["mine/file", "mine/pipe"] {
            file(tree.top.as_fd(), Path::new(name), mine()).unwrap();
            assert!(tree.at(name).symlink_metadata().unwrap().is_file(), "{name}");
        }
        link(tree.top.as_fd(), Path::new("mine/link"), Path::new("/x"), mine()).unwrap();
        assert_eq!(fs::read_link(tree.at("mine/link")).unwrap(), Path::new("/x"));
        assert_eq!((tree.aside("mine"), tree.elsewhere()), (4, 0));
        for way in [mine(), InTheWay::Refused] {
            let error = directory(tree.top.as_fd(), Path::new("outside/b"), way).unwrap_err();
            assert!(matches!(error, Errno::NOTDIR | Errno::LOOP), "{error}");
            directory(tree.top.as_fd(), Path::new("mine/../b"), way).unwrap_err();
        }
        let pipes = fs::read_dir(tree.at("mine")).unwrap().flatten();
        assert_eq!(pipes.filter(|entry| entry.file_type().unwrap().is_fifo()).count(), 1);
    }

    #[test]
    fn a_directory_that_was_closed_is_opened_up() {
        let tree = tree();
        fs::create_dir(tree.at("mine/closed")).unwrap();
        fs::set_permissions(tree.at("mine/closed"), Permissions::from_mode(0o000)).unwrap();
        directory(tree.top.as_fd(), Path::new("mine/closed/in"), mine()).unwrap();
        assert!(tree.at("mine/closed/in").is_dir());
    }
}
