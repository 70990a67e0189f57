//! Terminals: those of the machine, and what a command can do with one that it was given.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sandbox::Level;

use crate::attack::{
    Allowed, Attempts, Denied, Fate, Fates, Named, assert_all, assert_denied, assert_fates,
    assert_same, unjailed, unjailed_on,
};
use crate::case::{Case, stories};
use crate::fixture::Fixture;
use crate::raw::{Word, call};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::terminals":
        the_machines_terminals_are_out_of_reach,
        a_pair_that_was_handed_in_opens_no_terminal,
        nothing_is_typed_into_a_terminal,
        terminals_of_its_own_are_there_at_the_full_level,
        a_terminal_is_open_to_its_own_call_alone,
        no_call_takes_the_terminals_of_others,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("open terminals", open_terminals),
    ("open what was given", open_what_was_given),
    ("type", type_into_input),
    ("make a terminal", make_a_terminal),
    ("keep a terminal", keep_a_terminal),
    ("make many terminals", make_many_terminals),
];

/// A terminal that belongs to nobody's jail, as the one of an operator does.
struct Terminal {
    control: File,
    path: PathBuf,
}

impl Terminal {
    fn make() -> io::Result<Self> {
        let control = File::options().read(true).write(true).open("/dev/ptmx")?;
        ioctl(control.as_raw_fd(), libc::TIOCSPTLCK.cast_signed(), &mut [0; 4])?;
        let mut number = [0; 4];
        ioctl(control.as_raw_fd(), libc::TIOCGPTN.cast_signed(), &mut number)?;
        let path = format!("/dev/pts/{}", u32::from_ne_bytes(number)).into();
        Ok(Self { control, path })
    }

    fn open(&self) -> io::Result<File> {
        open(&self.path)
    }
}

fn the_machines_terminals_are_out_of_reach(level: Level) {
    let terminal = Terminal::make().unwrap();
    let mut others: Vec<_> = fs::read_dir("/dev/pts").unwrap().map(|e| e.unwrap().path()).collect();
    others.retain(|path| !path.ends_with("ptmx"));
    assert!(others.contains(&terminal.path));
    let paths: Vec<_> = others.iter().map(|path| path.to_str().unwrap()).collect();
    let own = [terminal.path.to_str().unwrap()];
    assert_all(&unjailed("open terminals", &own), Allowed);
    let fixture = Fixture::new(level);
    let fates = fixture.attack("open terminals", &own);
    let name = format!("name {}", own[0]);
    match level {
        Level::Full => assert_all(&fates, Denied(libc::ENOENT)),
        // By its name alone, without a right to read or write.
        _ => assert_eq!(others_than(&name, &fates), (Allowed, vec![Denied(libc::EACCES)])),
    }
    // The others come and go with other programs.
    let mut fates = fixture.attack("open terminals", &paths);
    fates.retain(|attempt, _| !attempt.starts_with("name "));
    assert_denied(&fates, &[libc::EACCES, libc::ENOENT]);
    // A session without a terminal has none by this name either.
    let tty = fixture.bash("exec 3<>/dev/tty");
    assert!(tty.stderr.contains("No such device or address"), "{tty:?}");
    let listed = fixture.bash("ls /dev/pts");
    match level {
        Level::Full => assert_eq!(listed.stdout, "ptmx\n"),
        _ => assert!(listed.stderr.contains("Permission denied"), "{listed:?}"),
    }
}

/// The fate of one attempt, and those that the others met.
fn others_than(name: &str, fates: &Fates) -> (Fate, Vec<Fate>) {
    let mut others: Vec<_> = fates.iter().filter(|(other, _)| *other != name).collect();
    others.dedup_by_key(|(_, fate)| **fate);
    (fates[name], others.into_iter().map(|(_, fate)| *fate).collect())
}

/// A descriptor leads to its file by /proc, and one of a pair's to the other.
fn a_pair_that_was_handed_in_opens_no_terminal(level: Level) {
    let terminal = Terminal::make().unwrap();
    let given = || -> OwnedFd { terminal.control.try_clone().unwrap().into() };
    let name = "open what was given";
    let peer = |fates: &Fates| fates["its other end"];
    assert_eq!(peer(&unjailed_on(given(), name, &[""])), Allowed);
    let fates = Fixture::new(level).attack_on(given(), name, &[""]);
    assert_eq!(peer(&fates), Denied(libc::EACCES));
    let given = || -> OwnedFd { terminal.open().unwrap().into() };
    let again = |fates: &Fates| fates["it again"];
    assert_eq!(again(&unjailed_on(given(), name, &[""])), Allowed);
    let fates = Fixture::new(level).attack_on(given(), name, &[""]);
    assert_eq!(again(&fates), Denied(libc::EACCES));
}

fn nothing_is_typed_into_a_terminal(level: Level) {
    let terminal = Terminal::make().unwrap();
    let fates = Fixture::new(level).attack_on(terminal.open().unwrap().into(), "type", &[""]);
    let expected = [
        ("type", Denied(libc::EPERM)),
        ("type, with a longer number", Denied(libc::EPERM)),
        ("paste", Denied(libc::EPERM)),
        ("have a driver serve it", Denied(libc::EPERM)),
        ("ask what serves it", Allowed),
        ("ask for its size", Allowed),
        ("write", Allowed),
    ];
    assert_fates(&fates, &expected);
}

/// Below the full level a terminal that a command made would lie among those of the machine.
fn terminals_of_its_own_are_there_at_the_full_level(level: Level) {
    let fates = Fixture::new(level).attack("make a terminal", &[""]);
    let fate = if level == Level::Full { Allowed } else { Denied(libc::EACCES) };
    assert_all(&fates, fate);
    assert_all(&unjailed("make a terminal", &[""]), Allowed);
}

fn a_terminal_is_open_to_its_own_call_alone(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let mut keepers =
        [fixture.start_attack("keep a terminal"), fixture.start_attack("keep a terminal")];
    for keeper in &mut keepers {
        let path = keeper.line();
        for other in [&fixture, &Fixture::new(level)] {
            let fates = other.attack("open terminals", &[&path]);
            assert_all(&fates, Denied(libc::ENOENT));
        }
    }
    let by_its_own = fixture.attack("make a terminal", &[""]);
    assert_all(&by_its_own, Allowed);
    for keeper in keepers {
        keeper.killed();
    }
}

/// The most terminals of a call, as `namespaces.rs` has it.
const MOST_TERMINALS: usize = 32;

/// The machine has some thousands for everybody who mounts them, containers and other calls among them.
fn no_call_takes_the_terminals_of_others(level: Level) {
    if level != Level::Full {
        return;
    }
    let with_one_more = |last: Fate| {
        let of = |number| if number < MOST_TERMINALS { Allowed } else { last };
        (0..=MOST_TERMINALS).map(|number| (format!("terminal {number}"), of(number))).collect()
    };
    let fates = Fixture::new(level).attack("make many terminals", &[""]);
    assert_same(&fates, &with_one_more(Denied(libc::ENOSPC)));
    assert_same(&unjailed("make many terminals", &[""]), &with_one_more(Allowed));
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)
}

fn ioctl(fd: i32, request: i64, bytes: &mut [u8]) -> io::Result<i64> {
    let words = [Word::Number(fd.into()), Word::Number(request), Word::Bytes(bytes)];
    call(libc::SYS_ioctl, &mut { words })
}

/// The other end of a pair, opened by no name.
fn open_peer(fd: i32) -> io::Result<i64> {
    let flags = i64::from(libc::O_RDWR | libc::O_NOCTTY);
    let request = libc::TIOCGPTPEER.cast_signed();
    call(libc::SYS_ioctl, &mut [fd.into(), request, flags].map(Word::Number))
}

fn by_descriptor(fd: i32) -> PathBuf {
    format!("/proc/self/fd/{fd}").into()
}

fn open_terminals(attempts: &mut Attempts, paths: &[String]) {
    for path in paths {
        let flags = libc::O_PATH | libc::O_NOCTTY;
        let named = || File::options().read(true).custom_flags(flags).open(path);
        attempts.make(&format!("name {path}"), named);
        attempts.make(&format!("open {path}"), || open(Path::new(path)));
        attempts
            .make(&format!("open {path} by a link"), || open(&by_descriptor(named()?.as_raw_fd())));
        attempts.make(&format!("read {path}"), || {
            File::options().read(true).custom_flags(libc::O_NOCTTY).open(path)
        });
        attempts.make(&format!("write {path}"), || {
            File::options().write(true).custom_flags(libc::O_NOCTTY).open(path)
        });
    }
}

fn open_what_was_given(attempts: &mut Attempts, _: &[String]) {
    attempts.make("it again", || open(&by_descriptor(0)));
    attempts.make("its other end", || open_peer(0));
}

/// A line discipline that each kernel has built in.
const N_NULL: i32 = 27;

fn type_into_input(attempts: &mut Attempts, _: &[String]) {
    let typed = libc::TIOCSTI.cast_signed();
    attempts.make("ask for its size", || ioctl(0, libc::TIOCGWINSZ.cast_signed(), &mut [0; 8]));
    attempts.make("write", || {
        call(libc::SYS_write, &mut [Word::Number(0), Word::Bytes(&mut { *b"x" }), Word::Number(1)])
    });
    attempts.make("type", || ioctl(0, typed, &mut [b'x']));
    attempts.make("type, with a longer number", || ioctl(0, typed | 0x7_0000_0000, &mut [b'x']));
    attempts.make("have a driver serve it", || {
        ioctl(0, libc::TIOCSETD.cast_signed(), &mut i32::to_ne_bytes(N_NULL))
    });
    attempts.make("ask what serves it", || ioctl(0, libc::TIOCGETD.cast_signed(), &mut [0; 4]));
    attempts.make("paste", || ioctl(0, libc::TIOCLINUX.cast_signed(), &mut [3; 8]));
}

fn make_a_terminal(attempts: &mut Attempts, _: &[String]) {
    attempts.make("a pair, both by their names", || Terminal::make()?.open());
    attempts.make("a pair, one by the other", || open_peer(Terminal::make()?.control.as_raw_fd()));
}

fn keep_a_terminal(attempts: &mut Attempts, _: &[String]) {
    let terminal = Terminal::make().unwrap();
    attempts.say(terminal.path.to_str().unwrap());
    loop {
        std::thread::park();
    }
}

fn make_many_terminals(attempts: &mut Attempts, _: &[String]) {
    let mut held = Vec::new();
    for number in 0..=MOST_TERMINALS {
        attempts.make(&format!("terminal {number}"), || {
            held.push(Terminal::make()?);
            Ok(())
        });
    }
}
