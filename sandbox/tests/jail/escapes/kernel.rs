//! System calls that would change the jail, or the machine.

use std::os::fd::AsRawFd;

use sandbox::{ExitStatus, Level};

use crate::attack::{
    Allowed, Attempts, Denied, Fates, Named, assert_all, assert_fates, assert_same, unjailed,
};
use crate::case::{Case, stories};
use crate::fixture::Fixture;
use crate::raw::{self, Word, call};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::kernel":
        what_no_command_needs_is_refused,
        new_namespaces_are_refused,
        other_calling_conventions_are_no_way_around,
        no_lease_is_taken,
        a_file_system_is_asked_for_nothing_unusual_where_no_mount_protects_it,
        capabilities_are_those_for_work_on_files,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("kernel", call_each),
    ("namespaces", make_namespaces),
    ("32 bit", call_by_interrupt),
    ("x32", call_by_x32_number),
    ("leases", take_leases),
];

fn what_no_command_needs_is_refused(level: Level) {
    let fates = Fixture::new(level).attack("kernel", &[""]);
    let expected = CALLS.iter().map(|(name, _, errno, _)| ((*name).to_owned(), Denied(*errno)));
    let mut expected: Fates = expected.collect();
    expected.insert("a call that programs need".to_owned(), Allowed);
    assert_same(&fates, &expected);
}

/// BTRFS_IOC_SUBVOL_CREATE, for which a directory that is open for reading is enough.
fn a_file_system_is_asked_for_nothing_unusual_where_no_mount_protects_it(level: Level) {
    let ask = |request: &str| {
        format!(
            "perl -e 'open my $d, q(<), q(.) or die; my $x = \"\\0\" x 4096; \
             print ioctl($d, {request}, $x) ? 0 : $!+0'"
        )
    };
    let fixture = Fixture::new(level);
    for request in ["0x5000940e", "0x6609", "0xffffffff"] {
        let errno = fixture.succeeds(&ask(request));
        assert_eq!(errno == libc::EPERM.to_string(), level == Level::Kernel, "{request}: {errno}");
    }
    // FIGETBSZ.
    assert_eq!(fixture.succeeds(&ask("2")), "0");
}

fn new_namespaces_are_refused(level: Level) {
    let fates = Fixture::new(level).attack("namespaces", &[""]);
    let expected = NAMESPACES.iter().flat_map(|(name, _)| {
        ["unshare", "clone"].map(|call| (format!("{call} {name}"), Denied(libc::EPERM)))
    });
    let mut expected: Fates = expected.collect();
    // In clone that bit belongs to the exit signal, and is no signal's.
    expected.insert("clone time".to_owned(), Denied(libc::EPERM));
    expected.insert("unshare files".to_owned(), Allowed);
    expected.insert("clone nothing".to_owned(), Allowed);
    expected.insert("enter".to_owned(), Denied(libc::EPERM));
    assert_same(&fates, &expected);
}

/// A lease makes whoever opens the file for writing wait for the seconds of lease-break-time.
fn no_lease_is_taken(level: Level) {
    let fixture = Fixture::new(level);
    let own = fixture.dirs.root.join("own").to_str().unwrap().to_owned();
    assert_fates(&unjailed("leases", &[&own]), &[("lease", Allowed), ("lock", Allowed)]);
    let fates = fixture.attack("leases", &[own]);
    assert_fates(&fates, &[("lease", Denied(libc::EPERM)), ("lock", Allowed)]);
}

/// The spawner has one more, for the IPC namespace of each call, that no program gets.
fn capabilities_are_those_for_work_on_files(level: Level) {
    let status = Fixture::new(level).succeeds("cat /proc/self/status");
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
    };
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID and KILL.
    let for_files = if rustix::process::geteuid().is_root() { 0b11_1011 } else { 0 };
    for name in ["CapPrm", "CapEff"] {
        assert_eq!(set(name), for_files, "{name}\n{status}");
    }
    assert_eq!(set("CapInh") | set("CapAmb"), 0, "{status}");
}

fn other_calling_conventions_are_no_way_around(level: Level) {
    let fixture = Fixture::new(level);
    if cfg!(target_arch = "x86_64") {
        let line = fixture.start_attack("32 bit").outcome();
        // The filter kills; a kernel without such calls faults.
        let ends = [libc::SIGSYS, libc::SIGSEGV].map(ExitStatus::Signaled);
        assert!(ends.contains(&line.report.status), "{line:?}");
        assert_all(&fixture.attack("x32", &[""]), Denied(libc::ENOSYS));
    }
    // The same program with calls of its own kind.
    assert_eq!(fixture.succeeds("echo 64 bit"), "64 bit\n");
}

/// Arguments that do no harm where the call is let through: flags and addresses that it rejects.
type Call = (&'static str, i64, i32, fn() -> Vec<Word<'static>>);

fn bad() -> Vec<Word<'static>> {
    [-1; 6].map(Word::Number).into()
}

fn zeros() -> Vec<Word<'static>> {
    [0; 6].map(Word::Number).into()
}

const CALLS: &[Call] = &[
    ("mount", libc::SYS_mount, libc::EPERM, || {
        let mut words = vec![Word::Text(c"none"), Word::Text(c"."), Word::Text(c"tmpfs")];
        words.extend([0, 0].map(Word::Number));
        words
    }),
    ("umount2", libc::SYS_umount2, libc::EPERM, || vec![Word::Text(c"/proc"), Word::Number(0)]),
    ("pivot_root", libc::SYS_pivot_root, libc::EPERM, || vec![Word::Text(c"."), Word::Text(c".")]),
    ("chroot", libc::SYS_chroot, libc::EPERM, || vec![Word::Text(c".")]),
    ("open_tree", libc::SYS_open_tree, libc::EPERM, || {
        vec![Word::Number(-100), Word::Text(c"."), Word::Number(1)]
    }),
    ("open_tree_attr", 467, libc::EPERM, || {
        let mut words = vec![Word::Number(-100), Word::Text(c"."), Word::Number(1)];
        words.extend([0, 0].map(Word::Number));
        words
    }),
    ("fsopen", libc::SYS_fsopen, libc::EPERM, || vec![Word::Text(c"tmpfs"), Word::Number(0)]),
    ("fsconfig", libc::SYS_fsconfig, libc::EPERM, bad),
    ("fsmount", libc::SYS_fsmount, libc::EPERM, bad),
    ("fspick", libc::SYS_fspick, libc::EPERM, bad),
    ("move_mount", libc::SYS_move_mount, libc::EPERM, bad),
    ("mount_setattr", libc::SYS_mount_setattr, libc::EPERM, bad),
    ("setns", libc::SYS_setns, libc::EPERM, bad),
    ("swapon", libc::SYS_swapon, libc::EPERM, zeros),
    ("swapoff", libc::SYS_swapoff, libc::EPERM, zeros),
    ("quotactl", libc::SYS_quotactl, libc::EPERM, bad),
    ("fanotify_init", libc::SYS_fanotify_init, libc::EPERM, zeros),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, libc::EPERM, bad),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, libc::EPERM, bad),
    ("bpf", libc::SYS_bpf, libc::EPERM, bad),
    ("userfaultfd", libc::SYS_userfaultfd, libc::EPERM, || vec![Word::Number(1)]),
    ("perf_event_open", libc::SYS_perf_event_open, libc::EPERM, zeros),
    ("init_module", libc::SYS_init_module, libc::EPERM, zeros),
    ("finit_module", libc::SYS_finit_module, libc::EPERM, bad),
    ("delete_module", libc::SYS_delete_module, libc::EPERM, zeros),
    ("kexec_load", libc::SYS_kexec_load, libc::EPERM, bad),
    ("kexec_file_load", libc::SYS_kexec_file_load, libc::EPERM, bad),
    ("reboot", libc::SYS_reboot, libc::EPERM, zeros),
    ("syslog", libc::SYS_syslog, libc::EPERM, || [10, 0, 0].map(Word::Number).into()),
    ("acct", libc::SYS_acct, libc::EPERM, || vec![Word::Text(c"/nowhere")]),
    ("vhangup", libc::SYS_vhangup, libc::EPERM, zeros),
    ("keyctl", libc::SYS_keyctl, libc::EPERM, zeros),
    ("add_key", libc::SYS_add_key, libc::EPERM, zeros),
    ("request_key", libc::SYS_request_key, libc::EPERM, zeros),
    ("settimeofday", libc::SYS_settimeofday, libc::EPERM, zeros),
    ("clock_settime", libc::SYS_clock_settime, libc::EPERM, bad),
    ("clock_adjtime", libc::SYS_clock_adjtime, libc::EPERM, bad),
    ("adjtimex", libc::SYS_adjtimex, libc::EPERM, zeros),
    ("sethostname", libc::SYS_sethostname, libc::EPERM, bad),
    ("setdomainname", libc::SYS_setdomainname, libc::EPERM, bad),
    ("io_uring_setup", libc::SYS_io_uring_setup, libc::ENOSYS, zeros),
    ("io_uring_enter", libc::SYS_io_uring_enter, libc::ENOSYS, bad),
    ("io_uring_register", libc::SYS_io_uring_register, libc::ENOSYS, bad),
    ("clone3", libc::SYS_clone3, libc::ENOSYS, zeros),
];

fn call_each(attempts: &mut Attempts, _: &[String]) {
    for (name, number, _, words) in CALLS {
        attempts.make(name, || call(*number, &mut words()));
    }
    attempts.make("a call that programs need", || call(libc::SYS_getpid, &mut []));
}

const NAMESPACES: &[(&str, i32)] = &[
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("time", 0x80),
    ("user and mount", libc::CLONE_NEWUSER | libc::CLONE_NEWNS),
];

fn make_namespaces(attempts: &mut Attempts, _: &[String]) {
    let unshare = |flags: i32| call(libc::SYS_unshare, &mut [Word::Number(flags.into())]);
    attempts.make("unshare files", || unshare(libc::CLONE_FS | libc::CLONE_FILES));
    attempts.make("clone nothing", || raw::clone(0));
    for (name, flag) in NAMESPACES {
        attempts.make(&format!("unshare {name}"), || unshare(*flag));
        attempts.make(&format!("clone {name}"), || raw::clone(*flag));
    }
    attempts.make("enter", || {
        let own = std::fs::File::open("/proc/self/ns/user")?;
        call(libc::SYS_setns, &mut [i64::from(own.as_raw_fd()), 0].map(Word::Number))
    });
}

fn take_leases(attempts: &mut Attempts, files: &[String]) {
    let file = std::fs::File::open(&files[0]).unwrap();
    let fcntl = |command: i32, argument: i32| {
        let words = [file.as_raw_fd(), command, argument].map(|word| Word::Number(word.into()));
        call(libc::SYS_fcntl, &mut { words })
    };
    attempts.make("lease", || fcntl(libc::F_SETLEASE, libc::F_RDLCK));
    attempts.make("lock", || Ok(rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared)?));
}

fn call_by_interrupt(attempts: &mut Attempts, _: &[String]) {
    const GETPID: u32 = 20;
    #[cfg(target_arch = "x86_64")]
    attempts.say(&raw::call_32_bit(GETPID, 0).to_string());
    #[cfg(not(target_arch = "x86_64"))]
    attempts.say(&GETPID.to_string());
}

fn call_by_x32_number(attempts: &mut Attempts, _: &[String]) {
    const X32: i64 = 0x4000_0000;
    attempts.make("getpid", || call(X32 | libc::SYS_getpid, &mut []));
    attempts.make("unshare", || {
        call(X32 | libc::SYS_unshare, &mut [Word::Number(libc::CLONE_NEWUSER.into())])
    });
}
