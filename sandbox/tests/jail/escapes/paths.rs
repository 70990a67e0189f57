//! Ways to name, link, move and swap what lies outside.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};
use sandbox::{Level, Stage, StartError};

use crate::attack::{
    Allowed, Attempts, Denied, Fate, Named, assert_all, assert_denied, assert_same,
};
use crate::case::{Case, stories};
use crate::escapes::file_jobs::job;
use crate::fixture::{Directories, Fixture, SECRET};
use crate::raw::{self, Word};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::paths":
        no_spelling_leads_out,
        a_read_only_root_is_not_written,
        single_files_can_be_granted_to_commands,
        the_system_is_not_written,
        nothing_is_linked_or_moved_across_the_border,
        a_hard_link_made_from_outside_is_a_file_of_the_root,
        a_directory_that_is_moved_out_takes_nobody_along,
        a_command_does_not_start_outside,
        ten_thousand_swaps_lead_no_file_job_out,
        ten_thousand_swaps_lead_no_command_out,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("use directories", use_directories),
    ("create in", create_in),
    ("cross", cross),
    ("swap", swap),
    ("write while swapped", write_while_swapped),
];

/// What an outside path looks like: at the full level it is not there at all.
pub(crate) fn out_of_reach(level: Level) -> Fate {
    Denied(if level == Level::Full { libc::ENOENT } else { libc::EACCES })
}

/// Fills a directory with what [`use_directories`] goes for.
fn furnish(directory: &Path) {
    fs::create_dir_all(directory.join("empty")).unwrap();
    for file in ["secret", "spare"] {
        fs::write(directory.join(file), SECRET).unwrap();
    }
    fs::copy("/bin/true", directory.join("program")).unwrap();
    fs::set_permissions(directory.join("program"), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Spellings of the directory `target`, which lies beside or in the root, each with its name.
fn spellings(dirs: &Directories, target: &Path) -> Vec<(&'static str, PathBuf)> {
    let name = target.file_name().unwrap().to_str().unwrap();
    let root = &dirs.root;
    let from_root = if target.starts_with(root) { name.to_owned() } else { format!("../{name}") };
    let link = |link: String, to: &Path| {
        let link = root.join(link);
        symlink(to, &link).unwrap();
        link
    };
    let absolute = link(format!("absolute-{name}"), target);
    let relative = link(format!("relative-{name}"), Path::new(&from_root));
    let chain = link(format!("chain-{name}"), &absolute);
    let magic = link(format!("magic-{name}"), &within("/proc/self/root", target));
    fs::create_dir_all(root.join("deep/er")).unwrap();
    vec![
        ("plain", target.to_owned()),
        ("dots", root.join("deep/er/../..").join(&from_root)),
        ("absolute link", absolute),
        ("relative link", relative),
        ("chain of links", chain),
        ("link to /proc/self/root", magic),
        ("/proc/self/root", within("/proc/self/root", target)),
        ("/proc/thread-self/root", within("/proc/thread-self/root", target)),
        ("/proc/self/cwd", Path::new("/proc/self/cwd").join(&from_root)),
        ("descriptor", Path::new("/proc/self/fd/0").join(&from_root)),
    ]
}

fn within(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap())
}

fn arguments(paths: &[(&'static str, PathBuf)]) -> Vec<String> {
    paths.iter().map(|(name, path)| format!("{name}={}", path.display())).collect()
}

fn no_spelling_leads_out(level: Level) {
    let dirs = Directories::new();
    let inside = dirs.root.join("inside");
    furnish(&dirs.outside);
    furnish(&inside);
    let out = spellings(&dirs, &dirs.outside);
    let mut other_roots = vec![("/proc/1/root", within("/proc/1/root", &dirs.outside))];
    other_roots.push(("supervisor's root", within("/proc/PARENT/root", &dirs.outside)));
    let policy = dirs.policy(level);
    let fixture = Fixture::of(dirs, &policy, level);
    let before = fixture.dirs.outside_as_it_is();

    let fates = fixture.attack("use directories", &arguments(&out));
    assert_all(&fates, out_of_reach(level));
    let fates = fixture.attack("use directories", &arguments(&other_roots));
    assert_all(&fates, Denied(libc::EACCES));
    assert_eq!(fixture.dirs.outside_as_it_is(), before);

    // The same spellings of a directory inside.
    for (name, spelling) in spellings(&fixture.dirs, &inside) {
        fs::remove_dir_all(&inside).unwrap();
        furnish(&inside);
        let fates = fixture.attack("use directories", &arguments(&[(name, spelling)]));
        assert_all(&fates, Allowed);
    }
}

fn a_read_only_root_is_not_written(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        furnish(&dirs.outside);
        policy.read_only_roots = vec![dirs.outside.clone()];
    });
    let before = fixture.dirs.outside_as_it_is();
    let spellings = spellings(&fixture.dirs, &fixture.dirs.outside);
    let refused = Denied(if level == Level::Full { libc::EROFS } else { libc::EACCES });
    let fates = fixture.attack("use directories", &arguments(&spellings));
    let expected = spellings.iter().flat_map(|(name, _)| {
        USES.iter().map(move |(what, _)| {
            let reading = ["list", "read", "execute", "enter"].contains(what);
            (format!("{name}: {what}"), if reading { Allowed } else { refused })
        })
    });
    assert_same(&fates, &expected.collect());
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
}

fn single_files_can_be_granted_to_commands(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        for name in ["readable", "writable"] {
            fs::write(dirs.outside.join(name), name).unwrap();
        }
        policy.command_read.push(dirs.outside.join("readable"));
        policy.command_write.push(dirs.outside.join("writable"));
    });
    let [readable, writable, secret] = ["readable", "writable", "secret"]
        .map(|name| fixture.dirs.outside.join(name).display().to_string());
    assert_all(&fixture.attack("read", &[&readable, &writable]), Allowed);
    assert_all(&fixture.attack("read", &[&secret]), out_of_reach(level));
    assert_all(&fixture.attack("open for writing", &[&writable]), Allowed);
    let refused = Denied(if level == Level::Full { libc::EROFS } else { libc::EACCES });
    assert_all(&fixture.attack("open for writing", &[&readable]), refused);
    // They are granted to commands, not to file jobs.
    let denied = job(&fixture, move || fs::read(readable).unwrap_err().raw_os_error());
    assert_eq!(denied, Some(libc::EACCES));
}

fn the_system_is_not_written(level: Level) {
    const DIRECTORIES: &[&str] = &[
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/local/bin",
        "/run",
        "/dev",
        "/dev/pts",
        "/proc",
        "/proc/sys/kernel",
        "/sys",
        "/var",
        "/var/log",
        "/home",
        "/opt",
        "/boot",
        "/mnt",
    ];
    let fixture = Fixture::new(level);
    let fates = fixture.attack("create in", DIRECTORIES);
    assert_denied(&fates, &[libc::EACCES, libc::EROFS, libc::ENOENT]);
    assert_eq!(fates.len(), DIRECTORIES.len());
    let private = fixture.jail.private();
    let own = [&fixture.dirs.root, &private.tmp, &private.cache];
    let own = own.map(|path| path.to_str().unwrap());
    assert_all(&fixture.attack("create in", &[&own[..], &["/dev/shm"]].concat()), Allowed);
    let spool = private.spool.to_str().unwrap();
    let fate = if level == Level::Full { libc::EROFS } else { libc::EACCES };
    assert_all(&fixture.attack("create in", &[spool]), Denied(fate));
}

fn nothing_is_linked_or_moved_across_the_border(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        // A second root and one that is only read: both are visible, at either level.
        for directory in ["second", "fixed"] {
            furnish(&dirs.root.with_file_name(directory));
        }
        policy.roots.push(dirs.root.with_file_name("second"));
        policy.read_only_roots.push(dirs.root.with_file_name("fixed"));
    });
    let root = fixture.dirs.root.to_str().unwrap();
    let beside = |name: &str| fixture.dirs.root.with_file_name(name).to_str().unwrap().to_owned();
    furnish(&fixture.dirs.root.join("inside"));
    furnish(&fixture.dirs.root);
    furnish(&fixture.dirs.outside);
    let before = fixture.dirs.outside_as_it_is();

    let fates = fixture.attack("cross", &[root, &beside("outside")]);
    if level == Level::Full {
        assert_all(&fates, Denied(libc::ENOENT));
    } else {
        // Which of the two depends on what the kernel asks first.
        assert_denied(&fates, &[libc::EACCES, libc::EXDEV]);
    }
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
    let errnos = [libc::EACCES, libc::EXDEV, libc::EROFS];
    assert_denied(&fixture.attack("cross", &[root, &beside("fixed")]), &errnos);

    // Between directories of a root all of it works; between roots where they are one mount.
    assert_all(&fixture.attack("cross", &[root, &format!("{root}/inside")]), Allowed);
    furnish(&fixture.dirs.root);
    let fate = if level == Level::Full { Denied(libc::EXDEV) } else { Allowed };
    assert_all(&fixture.attack("cross", &[root, &beside("second")]), fate);
}

/// The kernel does not know which name of a file is meant, so that it is readable and writable by the
/// one in the root. Who links secrets into a root has granted them.
fn a_hard_link_made_from_outside_is_a_file_of_the_root(level: Level) {
    let fixture = Fixture::new(level);
    fs::hard_link(fixture.dirs.secret(), fixture.dirs.root.join("linked")).unwrap();
    assert_eq!(fixture.succeeds("cat linked"), SECRET);
    let by_its_name = format!("cat {}", fixture.dirs.secret().display());
    assert_eq!(fixture.bash(&by_its_name).report.status.shell_code(), 1);
}

/// A directory that someone outside moves out of a root while a command stands in it.
fn a_directory_that_is_moved_out_takes_nobody_along(level: Level) {
    let fixture = Fixture::new(level);
    let (inside, moved) = (fixture.dirs.root.join("moving"), fixture.dirs.outside.join("moved"));
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("file"), "still granted").unwrap();
    let mut line = fixture.command(
        &inside,
        &[
            "/bin/bash",
            "-c",
            "cat file; echo; until [ -e \"$ROOT/go\" ]; do sleep 0.01; done
         cat file; cat ../secret; echo x > ../new; cat \"$ROOT/own\"",
        ],
    );
    line.env.push(("ROOT".into(), fixture.dirs.root.clone().into()));
    let mut call = fixture.start(&line);
    assert_eq!(call.line(), "still granted");
    fs::rename(&inside, &moved).unwrap();
    let before = fixture.dirs.outside_as_it_is();
    fs::write(fixture.dirs.root.join("go"), "").unwrap();
    let outcome = call.outcome();
    // Where the directory was a mount's, the kernel goes on to take it for a part of that mount; there
    // is no way up from it in either case.
    assert!(["own", "still grantedown"].contains(&outcome.stdout.as_str()), "{outcome:?}");
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
}

fn a_command_does_not_start_outside(level: Level) {
    let fixture = Fixture::new(level);
    furnish(&fixture.dirs.outside);
    furnish(&fixture.dirs.root);
    let errno = match out_of_reach(level) {
        Denied(errno) => errno,
        Allowed => unreachable!("outside"),
    };
    let started = |cwd: &Path, program: &Path| {
        let null = || File::options().write(true).open("/dev/null").unwrap().into();
        let line = fixture.command(cwd, &[program]);
        fixture.start_with(&line, [null(), null()]).map(|running| running.wait().unwrap().status)
    };
    let (root, outside) = (fixture.dirs.root.as_path(), fixture.dirs.outside.as_path());
    for (cwd, program, stage) in [
        (outside, root.join("program"), Stage::WorkingDirectory),
        (root, outside.join("program"), Stage::Program),
        (root, PathBuf::from("../outside/program"), Stage::Program),
    ] {
        match started(cwd, &program) {
            Err(StartError::Stage { stage: at, source }) => {
                assert_eq!((at, source.raw_os_error()), (stage, Some(errno)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(started(root, &root.join("program")).unwrap().shell_code(), 0);
    assert_eq!(started(root, Path::new("./program")).unwrap().shell_code(), 0);
}

/// `w` is now a directory of the root, now a link to the outside.
fn ten_thousand_swaps_lead_no_file_job_out(level: Level) {
    let fixture = Fixture::new(level);
    prepare_swaps(&fixture);
    let before = fixture.dirs.outside_as_it_is();
    let mut swapper = fixture.start_attack("swap");
    assert_eq!(swapper.line(), "swapping");
    let (say, hear) = std::sync::mpsc::channel();
    let target = fixture.dirs.root.join("w/file");
    let job = move || {
        race(&target);
        say.send(()).unwrap();
    };
    fixture.jail.submit(Box::new(job)).unwrap();
    hear.recv().unwrap();
    swapper.killed();
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
}

fn ten_thousand_swaps_lead_no_command_out(level: Level) {
    let fixture = Fixture::new(level);
    prepare_swaps(&fixture);
    let before = fixture.dirs.outside_as_it_is();
    let mut swapper = fixture.start_attack("swap");
    assert_eq!(swapper.line(), "swapping");
    fixture.start_attack("write while swapped").outcome().succeeded("the race");
    swapper.killed();
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
}

fn prepare_swaps(fixture: &Fixture) {
    fs::create_dir(fixture.dirs.root.join("w")).unwrap();
    symlink(&fixture.dirs.outside, fixture.dirs.root.join("other")).unwrap();
}

fn swap(attempts: &mut Attempts, _: &[String]) {
    attempts.say("swapping");
    loop {
        renameat_with(CWD, "w", CWD, "other", RenameFlags::EXCHANGE).unwrap();
    }
}

fn write_while_swapped(_: &mut Attempts, _: &[String]) {
    race(Path::new("w/file"));
}

/// Writes at least 10 000 times, and until the file was met both inside and outside.
fn race(file: &Path) {
    let (mut rounds, mut wrote) = (0, 0);
    while rounds < 10_000 || wrote == 0 || wrote == rounds {
        rounds += 1;
        wrote += u64::from(fs::write(file, "x").is_ok());
    }
}

type Use = (&'static str, fn(&Path) -> io::Result<()>);

const USES: &[Use] = &[
    ("list", |at| fs::read_dir(at)?.try_for_each(|entry| entry.map(|_| ()))),
    ("read", |at| fs::read(at.join("secret")).map(|_| ())),
    ("append", |at| OpenOptions::new().append(true).open(at.join("secret")).map(|_| ())),
    ("truncate", |at| truncate(&at.join("secret"))),
    ("create", |at| {
        OpenOptions::new().write(true).create_new(true).open(at.join("new")).map(|_| ())
    }),
    ("create unnamed", |at| {
        Ok(openat(CWD, at, OFlags::WRONLY | OFlags::TMPFILE, Mode::RUSR).map(|_| ())?)
    }),
    ("make directory", |at| fs::create_dir(at.join("made"))),
    ("make link", |at| symlink("secret", at.join("pointing"))),
    ("make pipe", |at| make_node(&at.join("pipe"), libc::S_IFIFO)),
    ("make socket", |at| make_node(&at.join("socket"), libc::S_IFSOCK)),
    ("link", |at| fs::hard_link(at.join("secret"), at.join("linked"))),
    ("rename", |at| fs::rename(at.join("secret"), at.join("renamed"))),
    ("remove", |at| fs::remove_file(at.join("spare"))),
    ("remove directory", |at| fs::remove_dir(at.join("empty"))),
    ("execute", |at| Command::new(at.join("program")).stdin(Stdio::null()).status().map(|_| ())),
    ("reopen", |at| {
        let handle = openat(CWD, at.join("program"), OFlags::PATH, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        OpenOptions::new().append(true).open(path).map(|_| ())
    }),
];

/// Everything that can be done with `NAME=DIRECTORY`.
fn use_directories(attempts: &mut Attempts, directories: &[String]) {
    let root = File::open(".").unwrap();
    let parent = std::os::unix::process::parent_id();
    for directory in directories {
        let (name, directory) = directory.split_once('=').unwrap();
        let directory = directory
            .replace("/fd/0", &format!("/fd/{}", root.as_raw_fd()))
            .replace("PARENT", &parent.to_string());
        for (what, act) in USES {
            attempts.make(&format!("{name}: {what}"), || act(Path::new(&directory)));
        }
    }
}

fn create_in(attempts: &mut Attempts, directories: &[String]) {
    for directory in directories {
        let file = Path::new(directory).join("created-by-a-story");
        attempts.make(directory, || File::create(&file));
        let _ = fs::remove_file(&file);
    }
}

/// Links and moves between two directories: the first is one's own.
fn cross(attempts: &mut Attempts, directories: &[String]) {
    let [own, other] = [&directories[0], &directories[1]].map(Path::new);
    let (secret, program) = (other.join("secret"), other.join("program"));
    let name = other.file_name().unwrap().to_str().unwrap();
    let here = |what: &str| own.join(format!("{what}-of-{name}"));
    attempts.make("link in", || fs::hard_link(&secret, here("linked-in")));
    attempts.make("link out", || fs::hard_link(own.join("spare"), other.join("linked-out")));
    attempts.make("move out", || fs::rename(own.join("empty"), other.join("moved-out")));
    attempts.make("move in", || fs::rename(&secret, here("moved-in")));
    attempts.make("exchange", || {
        Ok(renameat_with(CWD, own.join("spare"), CWD, other.join("spare"), RenameFlags::EXCHANGE)?)
    });
    attempts.make("link in by descriptor", || {
        let handle = openat(CWD, &program, OFlags::PATH, Mode::empty())?;
        Ok(linkat(&handle, "", CWD, here("by-descriptor"), AtFlags::EMPTY_PATH)?)
    });
    attempts.make("link in by /proc", || {
        let handle = openat(CWD, &program, OFlags::PATH, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(linkat(CWD, path, CWD, here("by-proc"), AtFlags::SYMLINK_FOLLOW)?)
    });
    attempts.make("unnamed file out", || {
        let file = openat(CWD, own, OFlags::WRONLY | OFlags::TMPFILE, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, path, CWD, other.join("unnamed-out"), AtFlags::SYMLINK_FOLLOW)?)
    });
}

fn truncate(path: &Path) -> io::Result<()> {
    let path = c_path(path);
    raw::call(libc::SYS_truncate, &mut [Word::Text(&path), Word::Number(1)]).map(|_| ())
}

fn make_node(path: &Path, kind: libc::mode_t) -> io::Result<()> {
    let path = c_path(path);
    let mode = Word::Number(i64::from(kind | 0o600));
    let at = Word::Number(libc::AT_FDCWD.into());
    raw::call(libc::SYS_mknodat, &mut [at, Word::Text(&path), mode, Word::Number(0)]).map(|_| ())
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}
