//! Rules against set-user-ID bits.
//!
//! A program with this bit that a command leaves in a root runs with the rights of the command's user
//! for everybody outside. The set-group-ID bit stays allowed: directories have it in ordinary work
//! (`chmod g+s`, `install -d -m 2775`, `cp -a`), and a mode does not say what it is meant for.

use libc::c_long;
use seccompiler::BackendError;

use super::{Rules, all, bits};

const SET_USER_ID: u64 = libc::S_ISUID as u64;

/// The bit that O_TMPFILE has besides O_DIRECTORY.
const TMPFILE: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// Not yet among libc's numbers of every architecture.
const FCHMODAT2: c_long = 452;

/// The calls that set a mode, each with the place of the mode among its arguments.
const SETTING: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// The calls that set one with these flags only, with the places of flags and mode. mkdir sets none of
/// the bits that are refused, and the mode of openat2 lies behind a pointer: see [`super::ABSENT_FOR_ROOT`].
const OPENING: &[(c_long, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];

pub(super) fn refuse_set_user_id(rules: &mut Rules) -> Result<(), BackendError> {
    let set = |mode| bits(mode, SET_USER_ID, SET_USER_ID);
    for (call, mode) in SETTING {
        rules.insert(*call, vec![all(vec![set(*mode)?])?]);
    }
    for (call, flags, mode) in OPENING {
        let making = [libc::O_CREAT as u64, TMPFILE];
        let with = |flag: u64| all(vec![bits(*flags, flag, flag)?, set(*mode)?]);
        rules.insert(*call, making.into_iter().map(with).collect::<Result<_, _>>()?);
    }
    Ok(())
}
