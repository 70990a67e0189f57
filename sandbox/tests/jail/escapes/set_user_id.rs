//! Programs that a command would leave in a root to run with its user's rights for anybody outside.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sandbox::Level;

use crate::attack::{Allowed, Attempts, Denied, Fates, Named, assert_same, unjailed};
use crate::case::{Case, stories};
use crate::escapes::paths::c_path;
use crate::fixture::Fixture;
use crate::raw::{self, Word};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::set_user_id":
        no_command_sets_the_bit,
        what_else_a_mode_holds_is_set_as_without_a_jail,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[("modes", set_modes)];

const SET_USER_ID: u32 = 0o4000;

fn no_command_sets_the_bit(level: Level) {
    let fixture = Fixture::new(level);
    let is_root = rustix::process::geteuid().is_root();
    for mode in ["4755", "6711", "4000"] {
        let fates = fixture.attack("modes", &[mode]);
        let expected = fates.keys().map(|name| match name.as_str() {
            // A directory gets no such bit.
            "mkdirat" => (name.clone(), Allowed),
            "openat2" if is_root => (name.clone(), Denied(libc::ENOSYS)),
            // A filter cannot see this mode: documented as open.
            "openat2" => (name.clone(), Allowed),
            _ => (name.clone(), Denied(libc::EPERM)),
        });
        assert_same(&fates, &expected.collect());
        for entry in fs::read_dir(&fixture.dirs.root).unwrap().map(Result::unwrap) {
            let has_bit = entry.metadata().unwrap().mode() & SET_USER_ID != 0;
            let is_open = entry.file_name() == "openat2" && !is_root;
            assert_eq!(has_bit, is_open, "{entry:?}");
            let path = entry.path();
            if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
}

fn what_else_a_mode_holds_is_set_as_without_a_jail(level: Level) {
    let fixture = Fixture::new(level);
    let free = fixture.dirs.outside.join("free");
    fs::create_dir(&free).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for mode in ["0755", "2755", "1777"] {
        let mut expected: Fates = unjailed("modes", &[mode, free.to_str().unwrap()]);
        if is_root {
            expected.insert("openat2".to_owned(), Denied(libc::ENOSYS));
        }
        assert_same(&fixture.attack("modes", &[mode]), &expected);
        let file = fixture.dirs.root.join("chmod").metadata().unwrap();
        assert_eq!(format!("{:04o}", file.mode() & 0o7777), mode);
    }
    let script = "umask 022; mkdir a && chmod g+s a && install -d -m 2775 b && cp -a b c &&
        tar cf b.tar b && mkdir d && tar xpf b.tar -C d && install -m 755 own program &&
        stat -c %a a b c d/b program";
    assert_eq!(fixture.succeeds(script), "2755\n2775\n2775\n2775\n755\n");
    let outcome = fixture.bash("chmod u+s program || install -m 4755 own other");
    assert!(outcome.stderr.contains("Operation not permitted"), "{outcome:?}");
}

/// Sets a mode by each call that takes one, in the directory of the second argument, else in its own.
fn set_modes(attempts: &mut Attempts, words: &[String]) {
    let mode = i64::from_str_radix(&words[0], 8).unwrap();
    let at = Path::new(words.get(1).map_or(".", String::as_str));
    let here = || Word::Number(libc::AT_FDCWD.into());
    let number = |number: i32| Word::Number(number.into());
    let mut make = |name: &str, attempt: &dyn Fn(&Path, &[u8]) -> io::Result<i64>| {
        let path = at.join(name);
        let text = c_path(&path);
        attempts.make(name, || attempt(&path, text.as_bytes_with_nul()));
    };
    let text = |bytes: &[u8]| std::ffi::CString::from_vec_with_nul(bytes.to_vec()).unwrap();
    let calls: &[(&str, i64)] = &[("fchmodat", libc::SYS_fchmodat), ("fchmodat2", 452)];
    for (name, call) in calls {
        make(name, &|path, bytes| {
            File::create(path)?;
            let mut words = [here(), Word::Text(&text(bytes)), Word::Number(mode), number(0)];
            raw::call(*call, &mut words)
        });
    }
    make("fchmod", &|path, _| {
        let file = File::create(path)?;
        raw::call(libc::SYS_fchmod, &mut [number(file.as_raw_fd()), Word::Number(mode)])
    });
    #[cfg(target_arch = "x86_64")]
    {
        make("chmod", &|path, bytes| {
            File::create(path)?;
            raw::call(libc::SYS_chmod, &mut [Word::Text(&text(bytes)), Word::Number(mode)])
        });
        make("creat", &|_, bytes| {
            raw::call(libc::SYS_creat, &mut [Word::Text(&text(bytes)), Word::Number(mode)])
        });
        make("open", &|_, bytes| {
            let flags = number(libc::O_CREAT | libc::O_WRONLY);
            raw::call(libc::SYS_open, &mut [Word::Text(&text(bytes)), flags, Word::Number(mode)])
        });
        make("mknod", &|path, bytes| {
            let _ = fs::remove_file(path);
            raw::call(libc::SYS_mknod, &mut [Word::Text(&text(bytes)), Word::Number(mode)])
        });
    }
    make("openat", &|_, bytes| {
        let flags = number(libc::O_CREAT | libc::O_WRONLY);
        let mut words = [here(), Word::Text(&text(bytes)), flags, Word::Number(mode)];
        raw::call(libc::SYS_openat, &mut words)
    });
    make("openat without a name", &|_, _| {
        let flags = number(libc::O_TMPFILE | libc::O_WRONLY);
        let mut words = [here(), Word::Text(&c_path(at)), flags, Word::Number(mode)];
        raw::call(libc::SYS_openat, &mut words)
    });
    make("mknodat", &|path, bytes| {
        let _ = fs::remove_file(path);
        let mut words = [here(), Word::Text(&text(bytes)), Word::Number(mode), number(0)];
        raw::call(libc::SYS_mknodat, &mut words)
    });
    make("mkdirat", &|path, bytes| {
        let _ = fs::remove_dir(path);
        let mut words = [here(), Word::Text(&text(bytes)), Word::Number(mode)];
        raw::call(libc::SYS_mkdirat, &mut words)
    });
    make("openat2", &|_, bytes| {
        let how = [i64::from(libc::O_CREAT | libc::O_WRONLY), mode, 0];
        let mut how = how.map(i64::to_ne_bytes).concat();
        let mut words = [here(), Word::Text(&text(bytes)), Word::Bytes(&mut how), number(24)];
        raw::call(libc::SYS_openat2, &mut words)
    });
}
