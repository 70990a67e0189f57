//! Mode, owner, times, attributes and kind of files.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, chown, lchown};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, IFlags, Mode, OFlags, Timestamps, XattrFlags, fchmod, fsetxattr, futimens,
    ioctl_getflags, ioctl_setflags, openat, setxattr, utimensat,
};
use sandbox::Level;

use crate::attack::{
    Allowed, Attempts, Denied, Fate, Fates, Named, assert_all, assert_fates, assert_same, unjailed,
};
use crate::case::{Case, stories};
use crate::escapes::paths::{c_path, out_of_reach};
use crate::fixture::Fixture;
use crate::raw::{self, Word};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::metadata":
        of_own_files_it_is_changed_as_without_a_jail,
        of_outside_files_it_is_changed_only_where_that_is_said,
        of_a_read_only_root_it_is_changed_only_where_that_is_said,
        no_device_is_made,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[("metadata", change), ("devices", make_devices)];

/// `left_open` says it at the kernel level, and only there.
fn assert_said(fixture: &Fixture) {
    let said = fixture.jail.enforcement().left_open.iter().any(|sentence| {
        ["mode", "owner", "times", "extended attributes"].iter().all(|word| sentence.contains(word))
    });
    assert_eq!(said, fixture.level == Level::Kernel, "{:#?}", fixture.jail.enforcement());
}

/// What works here without a jail: some file systems have no attributes.
fn without_a_jail(fixture: &Fixture) -> Fates {
    let file = fixture.dirs.outside.join("free");
    fs::write(&file, "free").unwrap();
    unjailed("metadata", &[file.to_str().unwrap()])
}

fn of_own_files_it_is_changed_as_without_a_jail(level: Level) {
    let fixture = Fixture::new(level);
    let own = fixture.dirs.root.join("own").to_str().unwrap().to_owned();
    let expected = with_flags_refused(without_a_jail(&fixture), level);
    assert_same(&fixture.attack("metadata", &[own]), &expected);
}

fn of_outside_files_it_is_changed_only_where_that_is_said(level: Level) {
    let fixture = Fixture::new(level);
    assert_said(&fixture);
    let free = without_a_jail(&fixture);
    let before = fixture.dirs.outside_as_it_is();
    let fates = fixture.attack("metadata", &[fixture.dirs.secret().to_str().unwrap()]);
    if level == Level::Full {
        assert_all(&fates, out_of_reach(level));
        assert_eq!(fixture.dirs.outside_as_it_is(), before);
    } else {
        let free = with_flags_refused(free, level);
        assert_same(&fates, &with_opening(free, Denied(libc::EACCES)));
    }
    assert_eq!(fs::read_to_string(fixture.dirs.secret()).unwrap(), crate::fixture::SECRET);
}

fn of_a_read_only_root_it_is_changed_only_where_that_is_said(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.read_only_roots = vec![dirs.outside.clone()];
    });
    assert_said(&fixture);
    let free = without_a_jail(&fixture);
    let before = fixture.dirs.outside_as_it_is();
    let fates = fixture.attack("metadata", &[fixture.dirs.secret().to_str().unwrap()]);
    if level == Level::Full {
        assert_all(&fates, Denied(libc::EROFS));
        assert_eq!(fixture.dirs.outside_as_it_is(), before);
    } else {
        assert_same(&fates, &with_flags_refused(free, level));
    }
}

/// The fates where system calls that set flags are refused for all files, as nothing else protects those
/// that commands may only read.
fn with_flags_refused(mut fates: Fates, level: Level) -> Fates {
    if level == Level::Kernel {
        for name in ["file_setattr", "opened: flags", "opened: version", "opened: old version"] {
            // A machine without the first one says so before a filter is asked.
            let known = fates.get(name).copied();
            if known != Some(Denied(libc::ENOSYS)) {
                fates.insert(name.to_owned(), Denied(libc::EPERM));
            }
        }
    }
    fates
}

/// The fates where files cannot be opened, by which half of the attempts begin.
fn with_opening(mut fates: Fates, fate: Fate) -> Fates {
    for (name, known) in &mut fates {
        if name.starts_with("opened: ") {
            *known = fate;
        }
    }
    fates
}

fn no_device_is_made(level: Level) {
    let fates = Fixture::new(level).attack("devices", &[""]);
    assert_fates(
        &fates,
        &[
            ("null", Denied(libc::EACCES)),
            ("disk", Denied(libc::EACCES)),
            // Nobody needs a privilege for this one.
            ("whiteout", Denied(libc::EACCES)),
            ("regular", Allowed),
            ("pipe", Allowed),
            ("socket", Allowed),
        ],
    );
}

/// Sets what is set already, or what can be taken back.
fn change(attempts: &mut Attempts, files: &[String]) {
    let path = Path::new(&files[0]);
    let name = c_path(path);
    let at = || Word::Number(libc::AT_FDCWD.into());
    let now = Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
        last_modification: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
    };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    attempts.make("chmod", || Ok(rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?));
    attempts.make("fchmodat2", || {
        const FCHMODAT2: i64 = 452;
        let words = [at(), Word::Text(&name), Word::Number(0o600), Word::Number(0)];
        raw::call(FCHMODAT2, &mut { words })
    });
    attempts.make("chown", || chown(path, Some(user), Some(group)));
    attempts.make("lchown", || lchown(path, Some(user), Some(group)));
    attempts.make("times", || Ok(utimensat(CWD, path, &now, AtFlags::empty())?));
    attempts.make("attribute", || Ok(setxattr(path, "user.a", b"1", XattrFlags::empty())?));
    attempts.make("attribute removed", || Ok(rustix::fs::removexattr(path, "user.a")?));
    attempts.make("setxattrat", || {
        const SETXATTRAT: i64 = 463;
        // A value's address lies in the arguments, so that an empty value is what can be passed.
        let mut arguments = [0; 16];
        let words = [
            at(),
            Word::Text(&name),
            Word::Number(0),
            Word::Text(c"user.b"),
            Word::Bytes(&mut arguments),
            Word::Number(16),
        ];
        raw::call(SETXATTRAT, &mut { words })
    });
    attempts.make("file_setattr", || {
        const FILE_GETATTR: i64 = 468;
        const FILE_SETATTR: i64 = 469;
        let mut attributes = [0; 24];
        for number in [FILE_GETATTR, FILE_SETATTR] {
            let words = [
                at(),
                Word::Text(&name),
                Word::Bytes(&mut attributes),
                Word::Number(24),
                Word::Number(0),
            ];
            raw::call(number, &mut { words })?;
        }
        Ok(())
    });
    attempts.make("by handle: chmod", || {
        let handle = openat(CWD, path, OFlags::PATH, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?)
    });
    let opened = || File::open(path);
    attempts.make("opened: chmod", || Ok(fchmod(opened()?, Mode::RUSR | Mode::WUSR)?));
    attempts.make("opened: times", || Ok(futimens(opened()?, &now)?));
    attempts.make("opened: attribute", || {
        Ok(fsetxattr(opened()?, "user.c", b"1", XattrFlags::empty())?)
    });
    attempts.make("opened: flags", || {
        let file = opened()?;
        let flags = ioctl_getflags(&file)?;
        Ok(ioctl_setflags(&file, flags ^ IFlags::NODUMP)?)
    });
    for (name, request) in VERSIONS {
        attempts.make(name, || {
            let file = opened()?;
            let mut version = [1, 0, 0, 0, 0, 0, 0, 0];
            let words = [file.as_raw_fd().into(), request.into()].map(Word::Number);
            let [file, request] = words;
            raw::call(libc::SYS_ioctl, &mut [file, request, Word::Bytes(&mut version)])
        });
    }
}

/// ext4's two numbers for one request.
const VERSIONS: [(&str, u32); 2] =
    [("opened: version", 0x4008_7602), ("opened: old version", 0x4008_6604)];

fn make_devices(attempts: &mut Attempts, _: &[String]) {
    let make = |name: &str, kind: libc::mode_t, device: u64| -> io::Result<()> {
        let words = [
            Word::Number(libc::AT_FDCWD.into()),
            Word::Text(&c_path(Path::new(name))),
            Word::Number(i64::from(kind | 0o600)),
            Word::Number(device.cast_signed()),
        ];
        raw::call(libc::SYS_mknodat, &mut { words })?;
        assert_eq!(fs::symlink_metadata(name)?.mode() & libc::S_IFMT, kind);
        Ok(())
    };
    attempts.make("null", || make("null", libc::S_IFCHR, libc::makedev(1, 3)));
    attempts.make("disk", || make("disk", libc::S_IFBLK, libc::makedev(7, 0)));
    attempts.make("whiteout", || make("whiteout", libc::S_IFCHR, 0));
    attempts.make("regular", || make("regular", libc::S_IFREG, 0));
    attempts.make("pipe", || make("pipe", libc::S_IFIFO, 0));
    attempts.make("socket", || make("socket", libc::S_IFSOCK, 0));
}
