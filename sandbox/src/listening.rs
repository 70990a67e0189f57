//! Whether a call listens on a port of its network.

use std::collections::BTreeSet;
use std::fs;

use crate::descendants::descendants;

/// The kernel's number of a socket that listens, in /proc/net/tcp.
const LISTENS: &str = "0A";

/// Whether a process below this one listens on a TCP port. This process is in their network.
pub(crate) fn listens_on(port: u16) -> bool {
    let listening: BTreeSet<String> = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().filter_map(|line| inode(line, port)).collect::<Vec<_>>())
        .collect();
    // What another call or program listens on is not ours.
    !listening.is_empty() && descendants().into_iter().any(|pid| holds(pid, &listening))
}

/// The inode of the socket in a line of /proc/net/tcp, where it listens on `port`.
fn inode(line: &str, port: u16) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = words.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local, 16) == Ok(port) && *words.get(3)? == LISTENS;
    is_it.then(|| words.get(9).map(|&inode| inode.to_owned()))?
}

fn holds(pid: libc::pid_t, sockets: &BTreeSet<String>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    descriptors.into_iter().flatten().flatten().any(|descriptor| {
        let link = fs::read_link(descriptor.path()).unwrap_or_default();
        let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
        inode.is_some_and(|inode| sockets.contains(inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listening_socket_of_the_port_counts() {
        let listens = "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 \
                       0 4711 1 0000 100 0 0 10 0";
        assert_eq!(inode(listens, 3000).as_deref(), Some("4711"));
        assert_eq!(inode(listens, 3001), None);
        assert_eq!(inode(&listens.replace(" 0A ", " 01 "), 3000), None);
        assert_eq!(inode("  sl  local_address rem_address   st", 3000), None);
    }
}
