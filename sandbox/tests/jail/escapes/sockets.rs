//! Ways to talk to somebody outside.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use sandbox::{Level, Network};

use crate::attack::{
    Allowed, Attempts, Denied, Fate, Fates, Named, assert_all, assert_fates, assert_same, unjailed,
};
use crate::case::{Case, stories};
use crate::fixture::Fixture;
use crate::raw::{self, Word, call};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::sockets":
        no_kind_of_socket_leads_out,
        only_known_protocols_of_the_internet_are_asked_for,
        netlink_tells_of_the_network_only,
        nobody_outside_is_reached,
        only_the_internet_is_reached_where_it_is_allowed,
        sockets_in_granted_directories_are_closed_or_said,
        sockets_work_within_the_call,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("sockets", make_sockets),
    ("netlink", open_netlink),
    ("talk", talk),
    ("talk within", talk_within),
];

/// Somebody outside who listens in every way, and may not hear a word.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    unnamed: UnixListener,
    name: String,
}

impl Listeners {
    fn new(directory: &Path) -> Self {
        let name = format!("story-{}-{}", std::process::id(), directory.display());
        let address = unix::SocketAddr::from_abstract_name(&name).unwrap();
        let listeners = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(directory.join("stream")).unwrap(),
            datagram: UnixDatagram::bind(directory.join("datagram")).unwrap(),
            unnamed: UnixListener::bind_addr(&address).unwrap(),
            name,
        };
        listeners.tcp.set_nonblocking(true).unwrap();
        listeners.udp.set_nonblocking(true).unwrap();
        listeners.stream.set_nonblocking(true).unwrap();
        listeners.datagram.set_nonblocking(true).unwrap();
        listeners.unnamed.set_nonblocking(true).unwrap();
        listeners
    }

    fn words(&self, directory: &Path) -> Vec<String> {
        vec![
            self.tcp.local_addr().unwrap().to_string(),
            self.udp.local_addr().unwrap().to_string(),
            directory.display().to_string(),
            self.name.clone(),
        ]
    }

    /// Who was heard.
    fn heard(&self) -> Vec<&'static str> {
        let mut heard = Vec::new();
        let mut note = |name, result: io::Result<()>| match result {
            Ok(()) => heard.push(name),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{name}"),
        };
        note("tcp", self.tcp.accept().map(|_| ()));
        note("udp", self.udp.recv(&mut [0]).map(|_| ()));
        note("stream", self.stream.accept().map(|_| ()));
        note("datagram", self.datagram.recv(&mut [0]).map(|_| ()));
        note("abstract", self.unnamed.accept().map(|_| ()));
        heard
    }
}

fn nobody_outside_is_reached(level: Level) {
    let fixture = Fixture::new(level);
    let outside = fixture.dirs.outside.clone();
    let listeners = Listeners::new(&outside);
    let words = listeners.words(&outside);
    assert_fates(
        &fixture.attack("talk", &words),
        &[
            ("tcp", refused(level, libc::ECONNREFUSED)),
            ("tcp elsewhere", refused(level, libc::ENETUNREACH)),
            // Sent, to nobody.
            ("udp", if level == Level::Full { Allowed } else { Denied(libc::EPERM) }),
            ("udp elsewhere", refused(level, libc::ENETUNREACH)),
            ("stream", refused(level, libc::ENOENT)),
            ("datagram", refused(level, libc::ENOENT)),
            ("abstract", refused(level, libc::ECONNREFUSED)),
            ("datagram of a pair", refused(level, libc::ENOENT)),
            ("connected datagram of a pair", refused(level, libc::ENOENT)),
        ],
    );
    assert_eq!(listeners.heard(), [""; 0]);

    let fates = unjailed("talk", &words);
    for name in ["tcp", "udp", "stream", "datagram", "abstract", "datagram of a pair"] {
        assert_eq!(fates[name], Allowed, "{name}");
    }
    assert_eq!(listeners.heard(), ["tcp", "udp", "stream", "datagram", "abstract"]);
}

/// Below the full level there is no socket to begin with.
fn refused(level: Level, full: i32) -> Fate {
    Denied(if level == Level::Full { full } else { libc::EPERM })
}

/// Services behind unix sockets act for any caller, so these stay closed.
fn only_the_internet_is_reached_where_it_is_allowed(level: Level) {
    let fixture = Fixture::with(level, |_, policy| policy.network = Network::Allow);
    let outside = fixture.dirs.outside.clone();
    let listeners = Listeners::new(&outside);
    let mut fates = fixture.attack("talk", &listeners.words(&outside));
    // Whatever the machine's own network makes of these.
    fates.retain(|name, _| !name.ends_with("elsewhere"));
    let unnamed = refused(level, libc::EPERM);
    assert_fates(
        &fates,
        &[
            ("tcp", Allowed),
            ("udp", Allowed),
            ("stream", refused(level, libc::ENOENT)),
            ("datagram", refused(level, libc::ENOENT)),
            ("abstract", unnamed),
            ("datagram of a pair", refused(level, libc::ENOENT)),
            ("connected datagram of a pair", refused(level, libc::ENOENT)),
        ],
    );
    assert_eq!(listeners.heard(), ["tcp", "udp"]);
}

/// Landlock guards connecting by a path from its ABI 9 on, and mounts do not at all.
fn sockets_in_granted_directories_are_closed_or_said(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        fs::create_dir(dirs.outside.join("tools")).unwrap();
        policy.command_read.push(dirs.outside.join("tools"));
    });
    let directory = fixture.dirs.outside.join("tools");
    let listeners = Listeners::new(&directory);
    let fates = fixture.attack("talk", &listeners.words(&directory));
    let reached = fates["stream"] == Allowed;
    assert_eq!(listeners.heard().contains(&"stream"), reached);
    let enforcement = fixture.jail.enforcement();
    let said = enforcement.left_open.iter().any(|sentence| sentence.contains("socket"));
    assert_eq!(reached, said, "{fates:#?} {enforcement:#?}");
}

fn sockets_work_within_the_call(level: Level) {
    let fates = Fixture::new(level).attack("talk within", &[""]);
    let own = if level == Level::Full { Allowed } else { Denied(libc::EPERM) };
    assert_fates(
        &fates,
        &[
            ("stream pair", Allowed),
            ("sequenced pair", Allowed),
            ("datagram pair", own),
            ("tcp", own),
            ("udp", own),
            ("path", own),
            ("abstract", own),
        ],
    );
}

fn no_kind_of_socket_leads_out(level: Level) {
    let fates = Fixture::new(level).attack("sockets", &[""]);
    let mut within = Fates::new();
    let mut others = Fates::new();
    for (name, fate) in fates {
        let family = KINDS.iter().find(|(kind, ..)| *kind == name).unwrap().1;
        let private = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        let side = if private.contains(&family) { &mut within } else { &mut others };
        side.insert(name, fate);
    }
    assert_all(&others, Denied(libc::EPERM));
    if level != Level::Full {
        assert_all(&within, Denied(libc::EPERM));
        return;
    }
    // These have a network of their own, and no right to anything raw in it.
    assert_internet(&within);
}

/// Of an unknown protocol the kernel looks for a driver and loads it, whoever asks.
fn only_known_protocols_of_the_internet_are_asked_for(level: Level) {
    let fixture = Fixture::with(level, |_, policy| policy.network = Network::Allow);
    let fates = fixture.attack("sockets", &[""]);
    let is_internet = |name: &str| {
        let family = KINDS.iter().find(|(kind, ..)| *kind == name).unwrap().1;
        [libc::AF_INET, libc::AF_INET6].contains(&family)
    };
    assert_internet(&fates.into_iter().filter(|(name, _)| is_internet(name)).collect());
}

/// Asserts the fates of sockets where a command may make some.
fn assert_internet(fates: &Fates) {
    for (name, fate) in fates {
        let expected: &[Fate] = match name.as_str() {
            "tcp" | "udp" | "tcp 6" | "udp 6" | "unix" | "netlink" => &[Allowed],
            // As the kernel is built, and as the machine lets users ping.
            "mptcp" => &[Allowed, Denied(libc::EPROTONOSUPPORT)],
            "ping" => &[Allowed, Denied(libc::EACCES)],
            _ => &[Denied(libc::EPERM)],
        };
        assert!(expected.contains(fate), "{name}: {fate:?}");
    }
}

fn netlink_tells_of_the_network_only(level: Level) {
    for network in [Network::Deny, Network::Allow] {
        let fixture = Fixture::with(level, |_, policy| policy.network = network);
        let fates = fixture.attack("netlink", &[""]);
        let has_any = level == Level::Full || network == Network::Allow;
        let expected = NETLINK.iter().map(|(name, protocol)| {
            let is_network = [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG].contains(protocol);
            let fate = if has_any && is_network { Allowed } else { Denied(libc::EPERM) };
            ((*name).to_owned(), fate)
        });
        assert_same(&fates, &expected.collect());
    }
}

const NETLINK: &[(&str, i32)] = &[
    ("addresses", libc::NETLINK_ROUTE),
    ("sockets", libc::NETLINK_SOCK_DIAG),
    ("devices", libc::NETLINK_KOBJECT_UEVENT),
    ("audit", libc::NETLINK_AUDIT),
    ("generic", libc::NETLINK_GENERIC),
];

fn open_netlink(attempts: &mut Attempts, _: &[String]) {
    for (name, protocol) in NETLINK {
        let words = [libc::AF_NETLINK, libc::SOCK_RAW, *protocol];
        attempts.make(name, || call(libc::SYS_socket, &mut words.map(|n| Word::Number(n.into()))));
    }
}

type SocketKind = (&'static str, i32, i32, i32);

const KINDS: &[SocketKind] = &[
    ("tcp", libc::AF_INET, libc::SOCK_STREAM, 0),
    ("udp", libc::AF_INET, libc::SOCK_DGRAM, 0),
    ("tcp 6", libc::AF_INET6, libc::SOCK_STREAM, 0),
    ("udp 6", libc::AF_INET6, libc::SOCK_DGRAM, 0),
    ("mptcp", libc::AF_INET, libc::SOCK_STREAM, 262),
    ("sctp", libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
    ("sctp by its type", libc::AF_INET, libc::SOCK_SEQPACKET, 0),
    ("dccp", libc::AF_INET6, libc::SOCK_DCCP, libc::IPPROTO_DCCP),
    ("dccp by its type", libc::AF_INET, libc::SOCK_DCCP, 0),
    ("l2tp", libc::AF_INET, libc::SOCK_DGRAM, 115),
    ("smc of the internet", libc::AF_INET6, libc::SOCK_STREAM, 256),
    ("udplite", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDPLITE),
    ("ping", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
    ("raw", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW),
    ("raw icmp", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
    ("raw 6", libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6),
    ("unix", libc::AF_UNIX, libc::SOCK_STREAM, 0),
    ("netlink", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
    ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0),
    ("packet datagram", libc::AF_PACKET, libc::SOCK_DGRAM, 0),
    ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
    ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
    ("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW, 0),
    ("can", libc::AF_CAN, libc::SOCK_RAW, 1),
    ("tipc", libc::AF_TIPC, libc::SOCK_STREAM, 0),
    ("rds", libc::AF_RDS, libc::SOCK_SEQPACKET, 0),
    ("key", libc::AF_KEY, libc::SOCK_RAW, 2),
    ("xdp", libc::AF_XDP, libc::SOCK_RAW, 0),
    ("smc", 43, libc::SOCK_STREAM, 0),
    ("qrtr", 42, libc::SOCK_DGRAM, 0),
    ("kcm", 41, libc::SOCK_DGRAM, 0),
    ("nfc", libc::AF_NFC, libc::SOCK_SEQPACKET, 0),
    ("ax25", libc::AF_AX25, libc::SOCK_SEQPACKET, 0),
    ("a family that is not there", 63, libc::SOCK_STREAM, 0),
];

fn make_sockets(attempts: &mut Attempts, _: &[String]) {
    for (name, family, kind, protocol) in KINDS {
        let words = [*family, *kind, *protocol].map(|n| Word::Number(n.into()));
        attempts.make(name, || call(libc::SYS_socket, &mut { words }));
    }
}

/// Talks to the listeners at TCP address, UDP address, directory and abstract name.
fn talk(attempts: &mut Attempts, words: &[String]) {
    let [tcp, udp, directory, name] = [0, 1, 2, 3].map(|at| words[at].as_str());
    // An address that documentation uses: nobody has it.
    let elsewhere: SocketAddr = "192.0.2.1:9".parse().unwrap();
    let send = |to: &str| UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", to);
    attempts.make("tcp", || TcpStream::connect(tcp));
    attempts.make("tcp elsewhere", || {
        TcpStream::connect_timeout(&elsewhere, std::time::Duration::from_millis(50))
    });
    attempts.make("udp", || send(udp));
    attempts.make("udp elsewhere", || send(&elsewhere.to_string()));
    let directory = Path::new(directory);
    let (stream, datagram) = (directory.join("stream"), directory.join("datagram"));
    attempts.make("stream", || UnixStream::connect(&stream));
    attempts.make("datagram", || UnixDatagram::unbound()?.send_to(b"x", &datagram));
    attempts.make("abstract", || {
        UnixStream::connect_addr(&unix::SocketAddr::from_abstract_name(name)?)
    });
    attempts.make("datagram of a pair", || UnixDatagram::pair()?.0.send_to(b"x", &datagram));
    attempts.make("connected datagram of a pair", || UnixDatagram::pair()?.0.connect(&datagram));
}

fn talk_within(attempts: &mut Attempts, _: &[String]) {
    attempts.make("stream pair", || {
        let (mut a, mut b) = UnixStream::pair()?;
        a.write_all(b"x")?;
        b.read_exact(&mut [0])
    });
    attempts.make("sequenced pair", || raw::socket_pair(libc::SOCK_SEQPACKET));
    attempts.make("datagram pair", || raw::socket_pair(libc::SOCK_DGRAM));
    attempts.make("tcp", || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        TcpStream::connect(listener.local_addr()?)?;
        listener.accept()
    });
    attempts.make("udp", || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.send_to(b"x", socket.local_addr()?)?;
        socket.recv(&mut [0])
    });
    attempts.make("path", || {
        let listener = UnixListener::bind("within")?;
        UnixStream::connect("within")?;
        listener.accept()
    });
    attempts.make("abstract", || {
        let address = unix::SocketAddr::from_abstract_name("within")?;
        let listener = UnixListener::bind_addr(&address)?;
        UnixStream::connect_addr(&address)?;
        listener.accept()
    });
}
