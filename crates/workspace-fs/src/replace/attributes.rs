//! The attributes that a new file takes from the one that it replaces.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

use rustix::fs::{Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;

use crate::FileStat;

/// Attributes that vouch for a content and so must not pass to another one. The kernel itself drops
/// capabilities from a file that is written.
const OF_THE_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

const ACL: &[u8] = b"system.posix_acl_access";

/// Gives `to` the owner, extended attributes, access control list and permission bits of `from`, in
/// the order in which none undoes another: a change of owner clears set-id bits, and an access
/// control list has the group's bits for its mask.
///
/// # Errors
/// When something cannot be kept, be it that the system dropped it without a word.
pub(super) fn carry_over(
    from: BorrowedFd<'_>,
    stat: &FileStat,
    to: BorrowedFd<'_>,
) -> rustix::io::Result<()> {
    let new = FileStat::of(to)?;
    let uid = (new.uid != stat.uid).then(|| Uid::from_raw(stat.uid));
    let gid = (new.gid != stat.gid).then(|| Gid::from_raw(stat.gid));
    if uid.is_some() || gid.is_some() {
        rustix::fs::fchown(to, uid, gid)?;
    }
    carry_over_extended(from, to)?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(stat.mode))?;
    let new = FileStat::of(to)?;
    let kept = (new.uid, new.gid, new.mode) == (stat.uid, stat.gid, stat.mode);
    if kept { Ok(()) } else { Err(Errno::PERM) }
}

/// Gives `to` the set-id bits of `stat` once more: the system takes them from a file that anyone but
/// root writes to.
pub(super) fn keep_set_id(stat: &FileStat, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    const SET_ID: u32 = 0o6000;
    if stat.mode & SET_ID == 0 {
        return Ok(());
    }
    rustix::fs::fchmod(to, Mode::from_raw_mode(stat.mode))
}

fn carry_over_extended(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let old = extended(from)?;
    // A new file may have got an access control list from its directory.
    let new = extended(to)?;
    for (name, value) in &old {
        if !OF_THE_CONTENT.contains(&name.to_bytes()) && new.get(name) != Some(value) {
            rustix::fs::fsetxattr(to, name.as_c_str(), value, XattrFlags::empty())?;
        }
    }
    let inherited = new.keys().find(|name| name.to_bytes() == ACL);
    match inherited {
        Some(name) if !old.contains_key(name) => rustix::fs::fremovexattr(to, name.as_c_str()),
        _ => Ok(()),
    }
}

fn extended(file: BorrowedFd<'_>) -> rustix::io::Result<BTreeMap<CString, Vec<u8>>> {
    let names = match grow(|buffer| rustix::fs::flistxattr(file, buffer)) {
        Ok(names) => names,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(BTreeMap::new()),
        Err(errno) => return Err(errno),
    };
    let mut all = BTreeMap::new();
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        match grow(|buffer| rustix::fs::fgetxattr(file, name, buffer)) {
            Ok(value) => drop(all.insert(name.to_owned(), value)),
            // Removed meanwhile, or listed but not for us to see.
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(all)
}

/// Calls `fill` with larger and larger buffers until the answer fits (64 KiB is the most that the
/// kernel gives).
fn grow(
    mut fill: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match fill(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 16, 0),
            Err(errno) => return Err(errno),
        }
    }
}
