//! Each way out, closed or private or open as the enforcement says.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use sandbox::{Channel, Level, Network};

use crate::case::{self, Need, stories};
use crate::support::ShellFixture;

const PYTHON: Need = Need::Program("python3");

pub(crate) fn stories() -> Vec<case::Case> {
    stories![
        "network":
        nothing_gets_out_when_the_policy_says_deny needs [PYTHON],
        a_server_and_its_client_meet_on_the_loopback_of_the_full_level needs [PYTHON],
        unix_sockets_of_the_machine_are_out_of_reach_under_either_policy needs [PYTHON],
        the_policy_can_open_the_network needs [PYTHON],
    ]
}

/// A Python script that tries one thing and prints its errno, 0 where it works.
fn tried(fixture: &ShellFixture, attempt: &str) -> i32 {
    let script = format!(
        "python3 - <<'END'\nimport socket as s, os\ntry:\n  {attempt}\n  print(0)\n\
         except OSError as e: print(e.errno)\nEND"
    );
    fixture.succeeds(&script).trim().parse().unwrap()
}

const UNREACHABLE: [i32; 2] = [libc::ENETUNREACH, libc::ECONNREFUSED];

fn nothing_gets_out_when_the_policy_says_deny(level: Level) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let (tcp, to) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let fixture = &ShellFixture::at(level);
    // With a network of its own a call finds nobody there; without one it gets no socket.
    let expected = |errno: i32| match fixture.level {
        Level::Full => UNREACHABLE.contains(&errno) || errno == 0,
        _ => errno == libc::EPERM,
    };
    for (name, attempt) in [
        ("tcp", format!("s.create_connection(('127.0.0.1', {tcp}))")),
        ("udp", format!("s.socket(2, 2).sendto(b'x', ('127.0.0.1', {to}))")),
        ("mptcp", format!("s.socket(2, 1, 262).connect(('127.0.0.1', {tcp}))")),
        ("far", "s.socket(2, 2).sendto(b'x', ('192.0.2.1', 9))".to_owned()),
        ("netlink", "s.socket(16, 3, 0)".to_owned()),
    ] {
        let errno = tried(fixture, &attempt);
        assert!(expected(errno), "{name}: {errno} at level {}", fixture.level);
        if ["tcp", "mptcp", "far"].contains(&name) {
            assert_ne!(errno, 0, "{name}");
        }
    }
    for (name, attempt) in [
        ("raw", "s.socket(2, 3, 1)"),
        ("packet", "s.socket(17, 3, 0)"),
        ("vsock", "s.socket(40, 1)"),
        ("alg", "s.socket(38, 5)"),
    ] {
        assert_eq!(tried(fixture, attempt), libc::EPERM, "{name}");
        if let Some(state) = fixture.jail.enforcement().channels.state(name) {
            assert_eq!(state, Channel::Closed, "{name}");
        }
    }
    let mut letter = [0; 1];
    assert!(udp.recv(&mut letter).is_err(), "a datagram got out");
    assert_eq!(tried(fixture, "a, b = s.socketpair(); a.send(b'x'); b.recv(1)"), 0);
}

fn a_server_and_its_client_meet_on_the_loopback_of_the_full_level(level: Level) {
    let fixture = &ShellFixture::at(level);
    let meeting = "l = s.create_server(('127.0.0.1', 8080)); \
                   c = s.create_connection(('127.0.0.1', 8080)); a, _ = l.accept(); \
                   c.send(b'x'); a.recv(1)";
    assert_eq!(tried(fixture, meeting), fixture.refusal(0, libc::EPERM));
    let state = fixture.jail.enforcement().channels.state("tcp");
    let full = fixture.level == Level::Full;
    assert_eq!(state, Some(if full { Channel::Private } else { Channel::Closed }));
}

fn unix_sockets_of_the_machine_are_out_of_reach_under_either_policy(level: Level) {
    for network in [Network::Deny, Network::Allow] {
        let fixture = &ShellFixture::with(level, |policy, _| policy.network = network);
        let path = fixture.outside.join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let name = format!("jail-story-{:?}-{}-{network:?}", fixture.root, fixture.level);
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        hidden.set_nonblocking(true).unwrap();
        let connect = |to: &str| tried(fixture, &format!("s.socket(1).connect({to:?})"));
        let by_path = connect(&path.display().to_string());
        assert_eq!(by_path, fixture.refusal(libc::ENOENT, libc::EPERM));
        let by_name = tried(fixture, &format!("s.socket(1).connect('\\0' + {name:?})"));
        let no_such = match network {
            Network::Deny => libc::ECONNREFUSED,
            Network::Allow => libc::EPERM,
        };
        assert_eq!(by_name, fixture.refusal(no_such, libc::EPERM));
        // Either end of a pair of datagram sockets could still be pointed at a path.
        let datagram =
            format!("a, b = s.socketpair(1, 2); a.sendto(b'x', {:?})", path.display().to_string());
        assert_eq!(tried(fixture, &datagram), fixture.refusal(libc::ENOENT, libc::EPERM));
        assert!(listener.accept().is_err() && hidden.accept().is_err());
        // The twins: pairs always, and at the full level sockets within the root.
        assert_eq!(tried(fixture, "s.socketpair(1, 1); s.socketpair(1, 5)"), 0);
        let own = "l = s.socket(1); l.bind('own.sock'); l.listen(); \
                   c = s.socket(1); c.connect('own.sock')";
        assert_eq!(tried(fixture, own), fixture.refusal(0, libc::EPERM));
    }
}

fn the_policy_can_open_the_network(level: Level) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fixture = &ShellFixture::with(level, |policy, _| policy.network = Network::Allow);
    assert_eq!(tried(fixture, &format!("s.create_connection(('127.0.0.1', {port}))")), 0);
    assert_eq!(tried(fixture, "s.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))"), 0);
    assert_eq!(tried(fixture, "s.socket(2, 3, 1)"), libc::EPERM, "raw");
    assert_eq!(tried(fixture, "s.socket(40, 1)"), libc::EPERM, "vsock");
    let channels = &fixture.jail.enforcement().channels;
    assert_eq!(channels.state("tcp"), Some(Channel::Open));
    assert!(fixture.jail.explain_network().is_none());
    let fixture = &ShellFixture::at(level);
    let why = fixture.jail.explain_network().unwrap();
    assert_eq!((why.missing, why.setting.key()), ("network", "network"));
}
