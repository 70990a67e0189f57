//! Whether what runs in a closed network looked for something beyond it. The kernel counts what it has no
//! route for, and what no name server of the network's own took.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The kernel's counters of one network. They stay readable for threads that may open nothing.
#[derive(Debug)]
pub(crate) struct Attempts {
    tables: [File; 2],
}

/// The first column of the counters that rise: for an address beyond the network, and for a name server
/// at the loopback that is not there, as systemd's would be.
const COUNTERS: [(&str, &str); 2] = [("Ip:", "OutNoRoutes"), ("Udp:", "NoPorts")];
const COUNTERS_OF_6: [&str; 2] = ["Ip6OutNoRoutes", "Udp6NoPorts"];

/// More than the kernel's tables have.
const MOST_BYTES: usize = 32 * 1024;

impl Attempts {
    /// Those of the network that a process is in. `None` where the kernel does not show them.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let open = |name: &str| File::open(format!("/proc/{pid}/net/{name}")).ok();
        Some(Self { tables: [open("snmp")?, open("snmp6")?] })
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> Option<u64> {
        let [four, six] = &self.tables;
        let read = |table: &File| {
            let mut buffer = vec![0; MOST_BYTES];
            let length = table.read_at(&mut buffer, 0).ok()?;
            buffer.truncate(length);
            String::from_utf8(buffer).ok()
        };
        Some(counted(&read(four)?) + counted_of_6(&read(six)?))
    }
}

/// Each protocol has a line of names, and one of numbers below it.
fn counted(table: &str) -> u64 {
    let lines: Vec<&str> = table.lines().collect();
    let of = |(protocol, name): (&str, &str)| {
        let [names, numbers] =
            lines.chunks_exact(2).find(|pair| pair[0].starts_with(protocol))?.try_into().ok()?;
        let at = str::split_whitespace(names).position(|column| column == name)?;
        str::split_whitespace(numbers).nth(at)?.parse::<u64>().ok()
    };
    COUNTERS.into_iter().filter_map(of).sum()
}

fn counted_of_6(table: &str) -> u64 {
    let of = |line: &str| {
        let (name, number) = line.split_once(char::is_whitespace)?;
        COUNTERS_OF_6.contains(&name).then(|| number.trim().parse::<u64>().ok())?
    };
    table.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_route_and_no_name_server_is_counted() {
        let four = "Ip: Forwarding OutDiscards OutNoRoutes ReasmTimeout\nIp: 1 7 3 9\n\
                    Icmp: InMsgs NoPorts\nIcmp: 50 60\n\
                    UdpLite: NoPorts\nUdpLite: 90\nUdp: InDatagrams NoPorts InErrors\nUdp: 4 2 8\n";
        assert_eq!(counted(four), 5);
        let six = "Ip6OutNoRoutes                  \t6\nIp6OutRequests \t70\nUdp6NoPorts \t1\n";
        assert_eq!(counted_of_6(six), 7);
        assert_eq!((counted("Ip: a"), counted_of_6("x")), (0, 0));
    }

    #[test]
    fn the_counters_of_this_process_can_be_read_again() {
        let attempts = Attempts::of(std::process::id()).unwrap();
        let before = attempts.count().unwrap();
        assert!(attempts.count().unwrap() >= before);
    }
}
