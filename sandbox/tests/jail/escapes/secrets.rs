//! What the operator's home directory and the system hold beside what commands need.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use sandbox::{Jail, JailError, Level, Policy};

use crate::attack::{
    Allowed, Attempts, Denied, Named, assert_all, assert_denied, assert_fates, unjailed,
};
use crate::case::{Case, stories};
use crate::escapes::paths::{c_path, out_of_reach};
use crate::fixture::{Directories, Fixture, SECRET};
use crate::provider::{Provider, provider};
use crate::raw::{Word, call};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::secrets":
        most_of_the_home_directory_is_out_of_reach,
        tokens_that_are_made_later_are_out_of_reach,
        a_directory_of_the_search_path_does_not_bring_its_secrets,
        what_can_be_learnt_of_outside_files_is_said,
        traps_in_private_directories_are_no_way_out,
        private_directories_in_a_root_are_no_way_out,
        private_directories_are_not_where_commands_write,
        private_directories_that_were_closed_are_no_way_out,
    ]
}

pub(crate) const ATTACKS: &[Named] =
    &[("read", read), ("open for writing", open_for_writing), ("learn", learn)];

const HIDDEN: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".bash_history",
    ".netrc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    "documents/letter",
];
const GRANTED: &[&str] =
    &[".gitconfig", ".config/git/config", ".cargo/bin/tool", ".rustup/settings.toml"];

fn most_of_the_home_directory_is_out_of_reach(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        for name in HIDDEN.iter().chain(GRANTED) {
            let file = dirs.home().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, SECRET).unwrap();
        }
        policy.home = Some(dirs.home().to_owned());
    });
    let by = |home: &Path, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| home.join(name).display().to_string()).collect()
    };
    let own = fixture.dirs.home().to_owned();
    assert_denied(&fixture.attack("read", &by(&own, HIDDEN)), &[libc::EACCES, libc::ENOENT]);
    assert_all(&fixture.attack("read", &by(&own, GRANTED)), Allowed);
    // The same by the name that commands know.
    let home = PathBuf::from(fixture.succeeds("printf %s \"$HOME\""));
    assert_denied(&fixture.attack("read", &by(&home, HIDDEN)), &[libc::EACCES, libc::ENOENT]);
    assert_all(&fixture.attack("read", &by(&home, GRANTED)), Allowed);
    let refused = [libc::EACCES, libc::EROFS];
    assert_denied(&fixture.attack("open for writing", &by(&home, GRANTED)), &refused);
}

/// A token that is made while the jail stands is as hidden as one that was there.
fn tokens_that_are_made_later_are_out_of_reach(level: Level) {
    const TOKENS: &[&str] =
        &[".cargo/credentials.toml", ".cargo/credentials", ".config/git/credentials"];
    let fixture = Fixture::with(level, |dirs, policy| {
        for name in GRANTED {
            let file = dirs.home().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, SECRET).unwrap();
        }
        policy.home = Some(dirs.home().to_owned());
    });
    let real = fixture.dirs.home();
    let home = PathBuf::from(fixture.succeeds("printf %s \"$HOME\""));
    for name in TOKENS {
        fs::write(real.join(name), SECRET).unwrap();
    }
    fs::write(real.join(".cargo/bin/later"), SECRET).unwrap();
    for home in [real, &home] {
        let by = |name: &&str| home.join(name).display().to_string();
        let tokens: Vec<_> = TOKENS.iter().map(by).collect();
        assert_denied(&fixture.attack("read", &tokens), &[libc::EACCES, libc::ENOENT]);
        let granted: Vec<_> = GRANTED.iter().chain(&[".cargo/bin/later"]).map(by).collect();
        assert_all(&fixture.attack("read", &granted), Allowed);
    }
}

fn a_directory_of_the_search_path_does_not_bring_its_secrets(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        fs::create_dir_all(dirs.home().join("bin")).unwrap();
        fs::write(dirs.home().join("bin/tool"), "tool").unwrap();
        fs::create_dir(dirs.home().join(".ssh")).unwrap();
        fs::write(dirs.home().join(".ssh/key"), SECRET).unwrap();
        policy.home = Some(dirs.home().to_owned());
        let directories =
            [dirs.home().join("bin"), dirs.home().to_owned(), "bin".into(), "/".into()];
        policy.search_path = Some(std::env::join_paths(directories).unwrap());
    });
    let of_home = |name: &str| fixture.dirs.home().join(name).display().to_string();
    assert_all(&fixture.attack("read", &[of_home("bin/tool")]), Allowed);
    assert_all(&fixture.attack("read", &[of_home(".ssh/key")]), out_of_reach(level));
    let secret = fixture.dirs.secret().display().to_string();
    assert_all(&fixture.attack("read", &[secret]), out_of_reach(level));
}

/// Landlock guards what is in files and directories, and no more.
fn what_can_be_learnt_of_outside_files_is_said(level: Level) {
    let fixture = Fixture::new(level);
    symlink("target", fixture.dirs.outside.join("link")).unwrap();
    let outside = [fixture.dirs.outside.display().to_string()];
    assert_all(&unjailed("learn", &outside), Allowed);
    let fates = fixture.attack("learn", &outside);
    let said = |words: &[&str]| {
        let sentences = &fixture.jail.enforcement().left_open;
        sentences.iter().any(|sentence| words.iter().all(|word| sentence.contains(word)))
    };
    if level == Level::Full {
        assert_all(&fates, out_of_reach(level));
        assert!(!said(&["exists"]));
        return;
    }
    assert_fates(
        &fates,
        &[
            ("stat", Allowed),
            ("read link", Allowed),
            ("enter", Allowed),
            ("disk", Allowed),
            ("attributes", Allowed),
            ("watch", Allowed),
            ("list", Denied(libc::EACCES)),
            ("read", Denied(libc::EACCES)),
        ],
    );
    assert!(said(&["exists"]), "{:#?}", fixture.jail.enforcement());
    assert!(said(&["watch"]), "{:#?}", fixture.jail.enforcement());
}

/// A provider keeps house in its private directories with all its rights, so that no command may lay
/// traps there for it.
fn private_directories_in_a_root_are_no_way_out(level: Level) {
    let (dirs, policy) = with_private_directories_in_the_root(level);
    lay_traps(&dirs, &own_in(&policy));
    nothing_outside_changes(&dirs, &policy);
}

/// The same where the private directories are not in this jail's reach, but were in another's.
fn traps_in_private_directories_are_no_way_out(level: Level) {
    let dirs = Directories::new();
    let policy = dirs.policy(level);
    lay_traps(&dirs, &own_in(&policy));
    nothing_outside_changes(&dirs, &policy);
    Jail::build(&policy).unwrap();
}

fn private_directories_are_not_where_commands_write(level: Level) {
    let (_place, mut policy) = with_private_directories_in_the_root(level);
    let error = Jail::build(&policy).unwrap_err();
    assert!(matches!(error, JailError::PrivateInReach { .. }), "{error:?}");
    assert!(error.to_string().contains("TMPDIR"), "{error}");
    // By another name.
    let link = policy.roots[0].parent().unwrap().join("link");
    symlink(policy.private_in.as_ref().unwrap(), &link).unwrap();
    policy.private_in = Some(link);
    assert!(matches!(Jail::build(&policy), Err(JailError::PrivateInReach { .. })));
    policy.private_in = Some("/dev/shm".into());
    assert!(matches!(Jail::build(&policy), Err(JailError::PrivateInReach { .. })));
    // Where the policy names no place, another is found.
    let base = tempfile::tempdir().unwrap();
    let own = |directory: &str| base.path().join(directory);
    let mut command = provider(base.path());
    command.env("TMPDIR", own("root")).env("JAILED_NAMESPACES", namespaces(level));
    command.args(["/bin/bash", "-c", "echo \"$TMPDIR\"; exec sleep 1000"]);
    let mut provider = Provider::start(&mut command);
    let private = PathBuf::from(provider.line());
    assert!(private.is_absolute() && !private.starts_with(own("root")), "{private:?}");
    assert_eq!(fs::read_dir(own("root")).unwrap().count(), 0);
}

fn namespaces(level: Level) -> &'static str {
    if level == Level::Full { "auto" } else { "never" }
}

/// As a command of an earlier jail could leave them, in a directory whose name is known.
fn lay_traps(dirs: &Directories, own: &Path) {
    symlink(&dirs.outside, own.join("jail-trap")).unwrap();
    fs::create_dir(own.join("jail-other")).unwrap();
    symlink(dirs.outside.join("made"), own.join("jail-other/lock")).unwrap();
    fs::create_dir(own.join("jail-third")).unwrap();
    symlink(&dirs.outside, own.join("jail-third/tmp")).unwrap();
    fs::write(own.join("jail-third/lock"), "").unwrap();
}

/// The same where a trap cannot be removed at first.
fn private_directories_that_were_closed_are_no_way_out(level: Level) {
    let dirs = Directories::new();
    let policy = dirs.policy(level);
    let own = own_in(&policy);
    fs::create_dir(dirs.outside.join("inner")).unwrap();
    symlink(&dirs.outside, own.join("jail-trap")).unwrap();
    for directory in [&own, &dirs.outside] {
        fs::write(directory.join("lock"), "").unwrap();
    }
    fs::set_permissions(&dirs.outside, PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(&own, PermissionsExt::from_mode(0o500)).unwrap();
    nothing_outside_changes(&dirs, &policy);
    let _ = fs::set_permissions(&own, PermissionsExt::from_mode(0o700));
}

fn with_private_directories_in_the_root(level: Level) -> (Directories, Policy) {
    let dirs = Directories::new();
    let mut policy = dirs.policy(level);
    policy.private_in = Some(dirs.root.join("private"));
    fs::create_dir(dirs.root.join("private")).unwrap();
    (dirs, policy)
}

/// Makes the directory that holds the user's jails.
fn own_in(policy: &Policy) -> PathBuf {
    let name = format!("provider-workspace-{}", rustix::process::geteuid().as_raw());
    let own = policy.private_in.as_ref().unwrap().join(name);
    fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
    own
}

fn nothing_outside_changes(dirs: &Directories, policy: &Policy) {
    let before = dirs.outside_as_it_is();
    // Whether it is refused or built, nobody is led astray.
    let jail = Jail::build(policy);
    assert_eq!(dirs.outside_as_it_is(), before);
    drop(jail);
    assert_eq!(dirs.outside_as_it_is(), before);
}

fn read(attempts: &mut Attempts, files: &[String]) {
    for file in files {
        attempts.make(file, || io::Read::read(&mut File::open(file)?, &mut [0]));
    }
}

fn open_for_writing(attempts: &mut Attempts, files: &[String]) {
    for file in files {
        attempts.make(file, || File::options().write(true).open(file));
    }
}

fn learn(attempts: &mut Attempts, directories: &[String]) {
    let directory = Path::new(&directories[0]);
    let secret = c_path(&directory.join("secret"));
    attempts.make("stat", || fs::metadata(directory.join("secret")));
    attempts.make("read link", || fs::read_link(directory.join("link")));
    attempts.make("disk", || Ok(rustix::fs::statvfs(directory)?));
    attempts.make("attributes", || {
        let words = [Word::Text(&secret), Word::Number(0), Word::Number(0)];
        call(libc::SYS_listxattr, &mut { words })
    });
    attempts.make("watch", || {
        let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        Ok(inotify::add_watch(&watcher, directory, inotify::WatchFlags::CREATE)?)
    });
    attempts.make("list", || fs::read_dir(directory));
    attempts.make("read", || fs::read(directory.join("secret")));
    attempts.make("enter", || std::env::set_current_dir(directory));
}
