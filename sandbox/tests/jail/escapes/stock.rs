//! Nothing of the machine changes through a jail: stock is taken outside, before and after commands
//! have tried to change mode, owner, times, attributes and flags of everything that is there, by every
//! name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, XattrFlags, chmodat, fchmod, fchown,
    fsetxattr, futimens, ioctl_getflags, ioctl_setflags, lsetxattr, openat, setxattr, utimensat,
};
use sandbox::Level;

use crate::attack::{Attempts, Fates, Named, assert_denied};
use crate::case::{Case, stories};
use crate::escapes::paths::c_path;
use crate::fixture::Fixture;
use crate::raw::{self, Word};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::stock":
        nothing_of_the_machine_changes_through_a_jail,
        the_same_changes_succeed_where_commands_may_write,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[("storm", storm)];

/// A jail with a little of everything that commands may only read.
fn furnished(level: Level) -> Fixture {
    Fixture::with(level, |dirs, policy| {
        for file in [".gitconfig", ".cargo/bin/tool", ".cargo/credentials.toml", ".rustup/x"] {
            let file = dirs.home().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        for directory in ["fixed", "read"] {
            let directory = dirs.root.with_file_name(directory);
            fs::create_dir_all(directory.join("inner")).unwrap();
            fs::write(directory.join("inner/file"), "").unwrap();
            symlink("file", directory.join("inner/link")).unwrap();
        }
        policy.home = Some(dirs.home().to_owned());
        policy.read_only_roots.push(dirs.root.with_file_name("fixed"));
        policy.command_read.push(dirs.root.with_file_name("read"));
    })
}

fn nothing_of_the_machine_changes_through_a_jail(level: Level) {
    let fixture = furnished(level);
    let base = fixture.dirs.root.parent().unwrap();
    let mut objects = Vec::new();
    for (place, depth, most) in [("/", 1, 100), ("/dev", 2, 200), ("/etc", 5, 2000)] {
        collect(Path::new(place), depth, most, &mut objects);
    }
    for (place, depth, most) in
        [("/proc", 1, 200), ("/proc/sys", 2, 200), ("/sys", 3, 300), ("/usr", 2, 100)]
    {
        collect(Path::new(place), depth, most, &mut objects);
    }
    for name in ["fixed", "read", "outside", "home"] {
        collect(&base.join(name), 4, 100, &mut objects);
    }
    // Each process has its own, and those of this one are not in the jail.
    let process = |path: &PathBuf| {
        let name = path.strip_prefix("/proc").ok().and_then(|rest| rest.to_str());
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()))
    };
    objects.retain(|path| !process(path) && path.to_str().is_some());
    if level == Level::Kernel {
        // Landlock has no right for most of this, as `left_open` says; `metadata` names what is
        // open. The machine is not to be harmed by a test.
        objects.retain(|path| path.starts_with(base.join("outside")));
    }
    assert!(objects.len() > if level == Level::Full { 500 } else { 1 });
    let list = fixture.dirs.root.join("list");
    let lines: Vec<&str> = objects.iter().map(|path| path.to_str().unwrap()).collect();
    fs::write(&list, lines.join("\n")).unwrap();

    let before = stock(&objects);
    let input = if level == Level::Full { "and its input" } else { "no more" };
    let fates = fixture.attack("storm", &[list.to_str().unwrap(), input]);
    let after = stock(&objects);
    if level == Level::Full {
        let errnos = [
            libc::EROFS,
            libc::ENOENT,
            libc::EACCES,
            libc::EPERM,
            libc::ELOOP,
            libc::ENOTTY,
            libc::EOPNOTSUPP,
            libc::ENXIO,
            libc::EINVAL,
        ];
        // These names lead to directories of the jail's own; stock is taken of the machine's.
        let home = fixture.dirs.home();
        let mut own = vec![home.to_owned(), home.join(".cargo")];
        own.extend(["/tmp", "/var/tmp", "/dev/pts", "/dev/shm"].map(PathBuf::from));
        let of_own =
            |name: &str| own.iter().any(|own| name.ends_with(&format!(": {}", own.display())));
        let mut fates = fates;
        fates.retain(|name, _| !of_own(name));
        assert_denied(&fates, &errnos);
        let changed: Vec<_> = before.iter().filter(|(path, was)| after[*path] != **was).collect();
        assert!(changed.is_empty(), "{changed:#?}");
    } else {
        open_at_the_kernel_level(&fates);
    }
}

/// What stays open where no mount protects what lies outside: all but flags, and what begins by opening.
fn open_at_the_kernel_level(fates: &Fates) {
    let open: Vec<&str> = fates
        .iter()
        .filter(|(_, fate)| **fate == crate::attack::Allowed)
        .filter_map(|(name, _)| name.strip_suffix("/outside/secret"))
        .filter_map(|name| name.split_once(": /").map(|(what, _)| what))
        .collect();
    let known = [
        "chmod",
        "chown",
        "fchmodat2",
        "lchown",
        "proc: chmod",
        "proc: times",
        "root: chmod",
        "times",
        "times of a link",
    ];
    let others: Vec<_> = open.iter().filter(|name| !known.contains(*name)).collect();
    // Some file systems have no attributes.
    let others: Vec<_> = others.iter().filter(|name| !name.contains("attribute")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(known.iter().all(|name| open.contains(name)), "{open:?}");
}

fn the_same_changes_succeed_where_commands_may_write(level: Level) {
    let fixture = furnished(level);
    let private = fixture.jail.private();
    let script = format!("echo x > {}/x; echo x > ~/x; echo ~", private.tmp.display());
    let home = PathBuf::from(fixture.succeeds(&script).trim());
    let objects = [fixture.dirs.root.join("own"), private.tmp.join("x"), home.join("x")];
    let list = fixture.dirs.root.join("list");
    let lines = objects.each_ref().map(|path| path.display().to_string());
    fs::write(&list, lines.join("\n")).unwrap();
    let fates = fixture.attack("storm", &[list.to_str().unwrap(), "no more"]);
    for what in ["chmod", "fchmodat2", "chown", "times", "opened: chmod", "proc: chmod"] {
        for object in &objects {
            let fate = fates.get(&format!("{what}: {}", object.display()));
            assert_eq!(fate, Some(&crate::attack::Allowed), "{what}: {object:?}");
        }
    }
}

/// What is at `place`, and in it down to a depth, at most so many entries of one directory.
fn collect(place: &Path, depth: usize, most: usize, into: &mut Vec<PathBuf>) {
    into.push(place.to_owned());
    let terminals = ["/dev/pts", "/dev/shm"].map(Path::new).contains(&place);
    let directory = place.symlink_metadata().is_ok_and(|found| found.is_dir());
    if depth == 0 || !directory || terminals {
        return;
    }
    let mut entries: Vec<_> =
        fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries.into_iter().take(most) {
        collect(&entry, depth - 1, most, into);
    }
}

/// The state of each object. The times of change of /proc and /sys are those at which the kernel
/// first looked at the file; those of the directories for temporary files are everybody's.
fn stock(objects: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let state = |path: &PathBuf| {
        let Ok(found) = path.symlink_metadata() else { return "absent".to_owned() };
        let mut state = format!("{:o} {} {}", found.mode(), found.uid(), found.gid());
        let others = ["/tmp", "/var/tmp"].map(Path::new).contains(&path.as_path());
        if !others && !["/proc", "/sys"].iter().any(|kernel| path.starts_with(kernel)) {
            state += &format!(" {}.{}", found.ctime(), found.ctime_nsec());
        }
        if found.is_file()
            && let Some(flags) = File::open(path).ok().and_then(|file| ioctl_getflags(file).ok())
        {
            state += &format!(" {flags:?}");
        }
        state
    };
    objects.iter().map(|path| (path.clone(), state(path))).collect()
}

/// Sets what is set already, so that a jail that fails does no harm, on every object of a list: the
/// time of change shows it all the same.
fn storm(attempts: &mut Attempts, lists: &[String]) {
    if lists[1] == "and its input" {
        let mode = Mode::from_raw_mode(0o666);
        attempts.make("stdin: chmod", || Ok(fchmod(io::stdin(), mode)?));
        attempts.make("stdin: proc", || Ok(rustix::fs::chmod("/proc/self/fd/0", mode)?));
        attempts.make("stdin: opened", || Ok(fchmod(File::open("/proc/self/fd/0")?, mode)?));
    }
    for path in fs::read_to_string(&lists[0]).unwrap().lines() {
        storm_at(attempts, Path::new(path));
    }
}

fn storm_at(attempts: &mut Attempts, path: &Path) {
    let found = path.symlink_metadata();
    let link = found.as_ref().is_ok_and(|found| found.is_symlink());
    let (mode, owner, times) = match &found {
        Ok(found) => {
            let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
            let last_access = time(found.atime(), found.atime_nsec() as _);
            let last_modification = time(found.mtime(), found.mtime_nsec() as _);
            let times = Timestamps { last_access, last_modification };
            (Mode::from_raw_mode(found.mode()), (found.uid(), found.gid()), times)
        }
        Err(_) => {
            let now = Timespec { tv_sec: 1, tv_nsec: 0 };
            let times = Timestamps { last_access: now, last_modification: now };
            (Mode::RUSR, (rustix::process::getuid().as_raw(), 0), times)
        }
    };
    let name = c_path(path);
    let mut make = |what: &str, attempt: &dyn Fn() -> io::Result<()>| {
        attempts.make(&format!("{what}: {}", path.display()), attempt);
    };
    make("lchown", &|| lchown(path, Some(owner.0), Some(owner.1)));
    make("times of a link", &|| Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?));
    if link {
        // What it leads to is an object of its own.
        make("attribute of a link", &|| {
            Ok(lsetxattr(path, "trusted.story", b"", XattrFlags::empty())?)
        });
        return;
    }
    make("chmod", &|| Ok(rustix::fs::chmod(path, mode)?));
    make("chown", &|| chown(path, Some(owner.0), Some(owner.1)));
    make("times", &|| Ok(utimensat(CWD, path, &times, AtFlags::empty())?));
    make("fchmodat2", &|| {
        const FCHMODAT2: i64 = 452;
        let at = Word::Number(libc::AT_FDCWD.into());
        let words =
            [at, Word::Text(&name), Word::Number(mode.as_raw_mode().into()), Word::Number(0)];
        raw::call(FCHMODAT2, &mut { words }).map(|_| ())
    });
    for attribute in ["user.story", "trusted.story", "security.story"] {
        make(&format!("attribute {attribute}"), &|| {
            setxattr(path, attribute, b"", XattrFlags::empty())?;
            Ok(rustix::fs::removexattr(path, attribute)?)
        });
    }
    make("file_setattr", &|| {
        let mut attributes = [0; 24];
        for number in [468, 469] {
            let at = Word::Number(libc::AT_FDCWD.into());
            let bytes = Word::Bytes(&mut attributes);
            let words = [at, Word::Text(&name), bytes, Word::Number(24), Word::Number(0)];
            raw::call(number, &mut { words })?;
        }
        Ok(())
    });
    make("root: chmod", &|| {
        let path = Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap_or(path));
        Ok(chmodat(CWD, path, mode, AtFlags::empty())?)
    });
    let handle = || -> io::Result<_> { Ok(openat(CWD, path, OFlags::PATH, Mode::empty())?) };
    let by_proc = |fd: i32| format!("/proc/self/fd/{fd}");
    make("proc: chmod", &|| Ok(rustix::fs::chmod(by_proc(handle()?.as_raw_fd()), mode)?));
    make("proc: times", &|| {
        Ok(utimensat(CWD, by_proc(handle()?.as_raw_fd()), &times, AtFlags::empty())?)
    });
    let opened = || -> io::Result<_> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(openat(CWD, path, flags, Mode::empty())?)
    };
    make("opened: chmod", &|| Ok(fchmod(opened()?, mode)?));
    make("opened: chown", &|| {
        let (user, group) =
            (rustix::fs::Uid::from_raw(owner.0), rustix::fs::Gid::from_raw(owner.1));
        Ok(fchown(opened()?, Some(user), Some(group))?)
    });
    make("opened: times", &|| Ok(futimens(opened()?, &times)?));
    make("opened: attribute", &|| {
        Ok(fsetxattr(opened()?, "user.story", b"", XattrFlags::empty())?)
    });
    make("opened: flags", &|| {
        let file = opened()?;
        Ok(ioctl_setflags(&file, ioctl_getflags(&file)?)?)
    });
}
