//! Files of the kernel that show the machine and not the jail, as container runtimes hide them too. At
//! the full level each is empty, for root and for others; Landlock cannot take a file out of a directory
//! that is granted, so at the kernel level they are as open as their modes say.

use std::path::PathBuf;

/// What to hide of /proc, and why.
const MASKS: [(&str, &str); 25] = [
    ("/proc/acpi", "power and hardware"),
    ("/proc/allocinfo", "memory of the kernel, by the code that took it"),
    ("/proc/asound", "sound hardware"),
    ("/proc/interrupts", "times of key strokes and other input"),
    ("/proc/iomem", "addresses of the machine's memory"),
    ("/proc/ioports", "addresses of devices"),
    ("/proc/kallsyms", "addresses of the kernel's code"),
    ("/proc/kcore", "memory of the machine"),
    ("/proc/key-users", "who holds how many keys"),
    ("/proc/keys", "keys and tickets of the user"),
    ("/proc/kmsg", "messages of the kernel"),
    ("/proc/kpagecgroup", "whose each page of memory is"),
    ("/proc/kpagecount", "use of each page of memory"),
    ("/proc/kpageflags", "use of each page of memory"),
    ("/proc/latency_stats", "what other processes wait for"),
    ("/proc/pagetypeinfo", "fragments of the machine's memory"),
    ("/proc/sched_debug", "processes outside, by name"),
    ("/proc/scsi", "disks"),
    ("/proc/slabinfo", "memory of the kernel, by kind"),
    ("/proc/sysrq-trigger", "orders to the kernel"),
    ("/proc/timer_list", "timers of other processes"),
    ("/proc/timer_stats", "timers of other processes"),
    ("/proc/tty/driver", "serial lines, and how much went over each"),
    ("/proc/vmallocinfo", "addresses of the kernel's memory"),
    ("/proc/vmcore", "memory of a kernel that crashed"),
];

/// The paths to hide.
pub(crate) fn of_proc() -> Vec<PathBuf> {
    MASKS.iter().map(|(path, _)| PathBuf::from(path)).collect()
}
