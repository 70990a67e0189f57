//! Devices of the machine, and what the kernel shows of it in /proc and /sys.

use std::fs;
use std::path::Path;

use sandbox::Level;

use crate::attack::{Allowed, assert_all, assert_denied};
use crate::case::{Case, stories};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::machine":
        devices_of_the_machine_are_out_of_reach,
        what_shows_the_machine_is_empty_or_said,
        of_sys_only_what_is_listed_is_read,
        the_kernels_settings_are_not_written,
    ]
}

fn devices_of_the_machine_are_out_of_reach(level: Level) {
    let mut devices: Vec<String> = fs::read_dir("/sys/class/block")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| format!("/dev/{}", entry.file_name().display()))
        .collect();
    let others = ["mem", "kmsg", "kvm", "fuse", "loop-control", "net/tun", "uinput", "console"];
    devices.extend(others.map(|name| format!("/dev/{name}")));
    devices.push("/proc/1/environ".to_owned());
    if level == Level::Kernel {
        devices.extend(["/proc/kcore", "/proc/kmsg"].map(str::to_owned));
    }
    devices.retain(|path| Path::new(path).exists());
    let fixture = Fixture::new(level);
    // /proc/1 is the spawner where processes have numbers of their own.
    let refused = [libc::EACCES, libc::EPERM, libc::ENOENT];
    assert_denied(&fixture.attack("read", &devices), &refused);
    assert_all(&fixture.attack("read", &["/dev/null", "/proc/cpuinfo"]), Allowed);
}

/// What the kernel shows of the machine, and not of the jail.
fn what_shows_the_machine_is_empty_or_said(level: Level) {
    const MACHINE: &[&str] = &[
        "/proc/acpi",
        "/proc/interrupts",
        "/proc/iomem",
        "/proc/kallsyms",
        "/proc/kcore",
        "/proc/key-users",
        "/proc/keys",
        "/proc/kmsg",
        "/proc/kpagecgroup",
        "/proc/kpagecount",
        "/proc/kpageflags",
        "/proc/sched_debug",
        "/proc/slabinfo",
        "/proc/timer_list",
        "/proc/tty/driver",
        "/proc/vmallocinfo",
    ];
    let fixture = Fixture::new(level);
    let there: Vec<_> = MACHINE.iter().copied().filter(|path| Path::new(path).exists()).collect();
    assert!(there.contains(&"/proc/keys") && there.contains(&"/proc/kallsyms"));
    let script = |paths: &[&str]| {
        let each = "if [ -d $path ]; then ls $path; else head -c 64 $path; fi";
        format!("for path in {}; do {each}; done", paths.join(" "))
    };
    if level == Level::Full {
        assert_eq!(fixture.succeeds(&script(&there)), "");
    }
    let said = fixture.jail.enforcement().left_open.iter().any(|text| text.contains("/proc/keys"));
    assert_eq!(said, level == Level::Kernel);
    // What is open there, as far as the modes let the user read it.
    let keys = fixture.attack("read", &["/proc/keys", "/proc/key-users", "/proc/interrupts"]);
    assert_all(&keys, Allowed);
    for path in ["/proc/cpuinfo", "/proc/meminfo", "/proc/self/status", "/proc/stat"] {
        assert_ne!(fixture.succeeds(&script(&[path])), "", "{path}");
    }
}

/// Of /sys, commands see processors, and the limits of their own control group at the kernel level.
fn of_sys_only_what_is_listed_is_read(level: Level) {
    let fixture = Fixture::new(level);
    let machine = [
        "/sys/fs/cgroup",
        "/sys/kernel",
        "/sys/firmware",
        "/sys/class",
        "/sys/class/net",
        "/sys/devices",
        "/sys/devices/system/node",
    ];
    let there = machine.into_iter().filter(|path| Path::new(path).exists());
    // At the full level some of these are there, to hold others, and empty.
    for path in there {
        let outcome = fixture.bash(&format!("ls {path}"));
        let shown = outcome.stdout.trim();
        assert!(["", "system"].contains(&shown), "{path}: {outcome:?}");
    }
    let group = "find /sys/fs/cgroup -name cgroup.procs -o -name memory.current | head -n 1";
    if level == Level::Kernel {
        assert_eq!(fixture.bash(group).stdout, "");
    }
    fixture
        .succeeds("nproc && ls /sys/devices/system/cpu/cpu0 && cat /sys/devices/system/cpu/online");
}

fn the_kernels_settings_are_not_written(level: Level) {
    const SETTINGS: &[&str] = &[
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/proc/self/uid_map",
        "/proc/self/mem",
    ];
    let fixture = Fixture::new(level);
    let refused = [libc::EACCES, libc::EROFS, libc::ENOENT];
    assert_denied(&fixture.attack("open for writing", SETTINGS), &refused);
    assert_all(&fixture.attack("open for writing", &["/dev/null", "own"]), Allowed);
}
