//! On which ports of its network a call listens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::descendants::first_descendants;

/// The kernel's number of a socket that listens, in /proc/net/tcp.
const LISTENS: &str = "0A";

/// How many processes are looked at, at most.
const MOST_PROCESSES: usize = 1000;

/// The TCP ports on which processes below this one listen. This process is in their network.
pub(crate) fn ports() -> BTreeSet<u16> {
    let listening: BTreeMap<String, u16> = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().filter_map(socket).collect::<Vec<_>>())
        .collect();
    if listening.is_empty() {
        return BTreeSet::new();
    }
    // What another call or program listens on is not ours.
    let own = first_descendants(MOST_PROCESSES).into_iter().take(MOST_PROCESSES);
    own.flat_map(|pid| held(pid, &listening)).collect()
}

/// The inode and the port of the socket in a line of /proc/net/tcp, where it listens.
fn socket(line: &str) -> Option<(String, u16)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = words.get(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(local, 16).ok()?;
    let listens = *words.get(3)? == LISTENS;
    listens.then(|| words.get(9).map(|&inode| (inode.to_owned(), port)))?
}

fn held(pid: libc::pid_t, sockets: &BTreeMap<String, u16>) -> Vec<u16> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let port = |descriptor: fs::DirEntry| {
        let link = fs::read_link(descriptor.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        sockets.get(inode).copied()
    };
    descriptors.into_iter().flatten().flatten().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_listens_counts() {
        let listens = "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 \
                       0 4711 1 0000 100 0 0 10 0";
        assert_eq!(socket(listens), Some(("4711".to_owned(), 3000)));
        assert_eq!(socket(&listens.replace(" 0A ", " 01 ")), None);
        assert_eq!(socket("  sl  local_address rem_address   st"), None);
    }
}
