//! Requests of `ioctl`. A request needs no more than a descriptor that is open for reading, and Landlock has
//! a right for those on devices only: a file system may change a file, or make a subvolume, by one.

use libc::SYS_ioctl;
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule};

use super::{Processes, Rules, all, condition, is};

/// Requests by which a command acts on a terminal in another's name; and the one that has another line
/// discipline serve it, for which the kernel loads a driver, whoever asks.
const OF_TERMINALS: [u32; 3] =
    [libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32];

/// What is let through where no read-only mount protects a file that commands may only read, in order:
/// what ordinary programs ask, and nothing that changes a file by such a descriptor. The numbers are those
/// of the machine-independent headers.
const ALLOWED: &[(u32, u32)] = &[
    // FIBMAP and FIGETBSZ
    (0x1, 0x2),
    // terminals; FIONREAD, FIONBIO and the like
    (0x5400, 0x54ff),
    // sockets and interfaces
    (0x8900, 0x89ff),
    // TIOCSPTLCK
    (0x4004_5431, 0x4004_5431),
    // FICLONE, for which the target has to be open for writing
    (0x4004_9409, 0x4004_9409),
    // TFD_IOC_SET_TICKS
    (0x4008_5400, 0x4008_5400),
    // FICLONERANGE, likewise
    (0x4020_940d, 0x4020_940d),
    // TCSETS2, TCSETSW2, TCSETSF2
    (0x402c_542b, 0x402c_542d),
    // RNDGETENTCNT
    (0x8004_5200, 0x8004_5200),
    // TIOCGPTN, TIOCGDEV, TIOCGPKT, TIOCGPTLCK, TIOCGEXCL
    (0x8004_5430, 0x8004_5440),
    // FS_IOC_GETFLAGS and FS_IOC_GETVERSION as 32-bit programs have them
    (0x8004_6601, 0x8004_6601),
    (0x8004_7601, 0x8004_7601),
    // FS_IOC_GETFLAGS, FS_IOC_GETVERSION
    (0x8008_6601, 0x8008_6601),
    (0x8008_7601, 0x8008_7601),
    // FS_IOC_GETFSUUID
    (0x8011_1500, 0x8011_1500),
    // FS_IOC_FSGETXATTR
    (0x801c_581f, 0x801c_581f),
    // TCGETS2
    (0x802c_542a, 0x802c_542a),
    // FS_IOC_GETFSSYSFSPATH
    (0x8081_1501, 0x8081_1501),
    // FS_IOC_GETFSLABEL
    (0x8100_9431, 0x8100_9431),
    // FS_IOC_FIEMAP
    (0xc020_660b, 0xc020_660b),
    // PROCMAP_QUERY
    (0xc068_6611, 0xc068_6611),
];

/// Refuses what commands may not ask.
pub(super) fn refuse(rules: &mut Rules, processes: Processes) -> Result<(), BackendError> {
    let mut refused = Vec::new();
    for request in OF_TERMINALS {
        refused.push(all(vec![is(1, request.into())?])?);
    }
    if processes == Processes::Shared {
        for (first, last) in gaps(ALLOWED) {
            refused.push(range(first, last)?);
        }
    }
    rules.insert(SYS_ioctl, refused);
    Ok(())
}

/// What lies between ranges that are in order.
fn gaps(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut gaps = Vec::new();
    let mut next = Some(0);
    for &(first, last) in ranges {
        let before = first.checked_sub(1);
        gaps.extend(next.zip(before).filter(|(from, to)| from <= to));
        next = last.checked_add(1);
    }
    gaps.extend(next.map(|from| (from, u32::MAX)));
    gaps
}

/// The kernel looks at the lower half of a request alone.
fn range(first: u32, last: u32) -> Result<SeccompRule, BackendError> {
    all(vec![
        condition(1, SeccompCmpOp::Ge, first.into())?,
        condition(1, SeccompCmpOp::Le, last.into())?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_in_order_and_what_lies_between_them_is_refused() {
        assert!(ALLOWED.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ALLOWED:x?}");
        assert_eq!(gaps(&[(1, 2), (3, 3), (7, 9)]), [(0, 0), (4, 6), (10, u32::MAX)]);
        assert_eq!(gaps(&[(0, 5)]), [(6, u32::MAX)]);
        assert_eq!(gaps(&[(0, u32::MAX)]), []);
    }
}
