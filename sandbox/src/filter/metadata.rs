//! Rules against changes of what is known of a file besides its content. Landlock has no right for them,
//! and a descriptor that is open for reading is enough for some.

use libc::c_long;

use super::Rules;

/// Sets one attribute by handle and name (Linux 6.13; not yet among libc's).
const SETXATTRAT: c_long = 463;
/// Removes one.
const REMOVEXATTRAT: c_long = 466;
/// Not yet among libc's numbers of every architecture.
const FCHMODAT2: c_long = 452;

const CHANGING: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
];

pub(super) fn refuse_changes(rules: &mut Rules) {
    rules.extend(CHANGING.iter().map(|call| (*call, Vec::new())));
}
