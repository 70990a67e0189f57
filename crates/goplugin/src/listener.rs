//! Listening sockets: where they are made, who may connect, and that they are gone afterwards.
//!
//! This is the one part of the transport that names files: its sockets live in the directory that the
//! host chose (or the temporary directory), and are made, given to a group and removed here.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdTcpListener};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{FileType, Gid, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::duplex::Duplex;
use crate::handshake::Address;
use crate::tls::Tls;

mod own_directory;
mod peer;
mod stale_sockets;

pub(super) use own_directory::OwnDirectory;
pub(super) use peer::Peers;
pub(super) use stale_sockets::remove_stale_sockets;

/// Start of the name of every socket's file, or of the directory that holds a process's sockets, so that
/// a later start knows its own leftovers. The process number and a random number follow.
pub(super) const SOCKET_PREFIX: &str = "plugin-rs-";

/// Longest path that fits into a socket address on Linux (108 bytes with the final NUL).
const MAX_PATH: usize = 107;

/// Connections that are accepted but not yet taken by the server.
const QUEUE: usize = 64;

/// A peer that connects and stays silent is dropped after this.
const TLS_HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Why no socket could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The path does not fit into a socket address.
    #[error(
        "socket path {path} is longer than {MAX_PATH} bytes: set TMPDIR to a shorter directory"
    )]
    PathTooLong {
        /// The whole path.
        path: PathBuf,
    },
    /// The handshake line separates its fields by bars, so a path must not contain one.
    #[error(
        "socket directory {directory} contains '|' or a line break or is not UTF-8: set TMPDIR to another directory"
    )]
    PathUnwritable {
        /// The directory.
        directory: PathBuf,
    },
    /// The socket could not be bound.
    #[error("cannot listen on {path} (TMPDIR or the host chooses the directory)")]
    Bind {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory for the sockets could not be made.
    #[error("cannot make the directory {path} for sockets (TMPDIR chooses where)")]
    Directory {
        /// The directory's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The group that the host names could not be given.
    #[error("cannot give the socket to group {group:?}: {advice}")]
    Group {
        /// Name or number, as the host wrote it.
        group: String,
        /// What to do about it.
        advice: &'static str,
        /// What the system said.
        source: Option<io::Error>,
    },
    /// PLUGIN_MIN_PORT is above PLUGIN_MAX_PORT.
    #[error("PLUGIN_MIN_PORT {min} is above PLUGIN_MAX_PORT {max}")]
    EmptyRange {
        /// The lowest port that the host allows.
        min: u16,
        /// The highest.
        max: u16,
    },
    /// All ports of the range are taken.
    #[error("no free port on the loopback interface between {min} and {max}")]
    NoPort {
        /// The lowest port that the host allows.
        min: u16,
        /// The highest.
        max: u16,
        /// What the system said of the last one.
        source: Option<io::Error>,
    },
    /// The socket could not be handed to the runtime.
    #[error("cannot watch the socket")]
    Register(#[source] io::Error),
}

/// The directory that `named` (the value of TMPDIR) names, else `/tmp`.
pub(super) fn temporary_directory(named: Option<&Path>) -> PathBuf {
    named.filter(|named| is_directory(named)).unwrap_or(Path::new("/tmp")).to_owned()
}

pub(super) fn is_directory(path: &Path) -> bool {
    rustix::fs::stat(path)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Ports that a TCP listener may take. Both zero: the system picks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortRange {
    /// The lowest port.
    pub(crate) min: u16,
    /// The highest port.
    pub(crate) max: u16,
}

impl PortRange {
    fn ports(self) -> Result<RangeInclusive<u16>, ListenError> {
        if self.min > self.max {
            return Err(ListenError::EmptyRange { min: self.min, max: self.max });
        }
        Ok(self.min..=self.max)
    }
}

/// How one side makes its listeners, the main one and those of the broker alike.
#[derive(Clone, Debug)]
pub(super) enum SocketRules {
    /// Unix sockets in a directory, for one user or for one group as well.
    Unix { directory: PathBuf, naming: Naming, group: Option<String>, peers: Peers },
    /// Ports of the loopback interface. Connections cannot be distinguished.
    Tcp { ports: PortRange },
}

/// How sockets are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// After the process, in a directory that others use too.
    Full,
    /// Briefly, in a directory of the process's own.
    Brief,
}

impl SocketRules {
    /// Moves the sockets to a new directory within the one that these name, which is removed with what
    /// this returns.
    pub(super) fn in_own_directory(self) -> Result<(Self, Option<OwnDirectory>), ListenError> {
        match self {
            SocketRules::Unix { directory, group, peers, .. } => {
                let own = OwnDirectory::make(&directory, group.as_deref())?;
                let directory = own.path().to_owned();
                let naming = Naming::Brief;
                Ok((SocketRules::Unix { directory, naming, group, peers }, Some(own)))
            }
            SocketRules::Tcp { .. } => Ok((self, None)),
        }
    }

    /// Where unix sockets go.
    pub(super) fn directory(&self) -> Option<&Path> {
        match self {
            SocketRules::Unix { directory, .. } => Some(directory),
            SocketRules::Tcp { .. } => None,
        }
    }

    pub(super) fn bind(&self) -> Result<Listener, ListenError> {
        match self {
            SocketRules::Unix { directory, naming, group, peers } => {
                bind_unix(directory, *naming, group.as_deref(), *peers)
            }
            SocketRules::Tcp { ports } => bind_tcp(*ports),
        }
    }
}

/// A bound socket.
pub(super) struct Listener {
    socket: Socket,
    address: Address,
    file: Option<SocketFile>,
}

enum Socket {
    Unix(UnixListener, Peers),
    Tcp(TcpListener),
}

/// A unix socket's file. It is removed when this is dropped, so an owner that may outlive the tasks
/// of the runtime has to hold it.
#[must_use = "dropping this removes the socket's file"]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A missing file is as good; any other error has nobody to go to.
        let _ = rustix::fs::unlink(&self.0);
    }
}

impl Listener {
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    async fn accept(&self) -> io::Result<Duplex> {
        match &self.socket {
            Socket::Unix(socket, peers) => loop {
                let (stream, _) = socket.accept().await?;
                let peer = stream.peer_cred()?;
                if peers.admits(peer) {
                    return Ok(Duplex::new(stream));
                }
                tracing::warn!(
                    pid = peer.pid(),
                    "the connection of a process that this one started, or of one in a jail, was turned away"
                );
            },
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Duplex::new(stream))
            }
        }
    }

    /// Accepts until the receiver is dropped.
    pub(super) fn incoming(mut self) -> (mpsc::Receiver<Duplex>, Option<SocketFile>) {
        let file = self.file.take();
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = sender.closed() => return,
                    accepted = self.accept() => accepted,
                };
                match accepted {
                    Ok(connection) => {
                        if sender.send(connection).await.is_err() {
                            return;
                        }
                    }
                    // Out of descriptors, or a peer that went away: neither ends a listener.
                    Err(error) => {
                        tracing::debug!(%error, "a connection could not be accepted");
                        sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        });
        (receiver, file)
    }
}

/// Connections after TLS, where there is TLS. Handshakes run side by side, so that a silent peer
/// holds nobody up; one that fails costs its connection alone.
pub(super) fn secured(mut raw: mpsc::Receiver<Duplex>, tls: Option<Tls>) -> mpsc::Receiver<Duplex> {
    let Some(tls) = tls else { return raw };
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                () = sender.closed() => return,
                connection = raw.recv() => connection,
            };
            let Some(connection) = connection else { return };
            let (tls, sender) = (tls.clone(), sender.clone());
            tokio::spawn(async move {
                match timeout(TLS_HANDSHAKE_LIMIT, tls.accept(connection)).await {
                    Ok(Ok(connection)) => drop(sender.send(connection).await),
                    Ok(Err(error)) => tracing::warn!(%error, "a TLS handshake was turned away"),
                    Err(_) => tracing::warn!("a TLS handshake took too long"),
                }
            });
        }
    });
    receiver
}

/// Connects to where the other side listens.
pub(super) async fn connect(address: &Address) -> io::Result<Duplex> {
    match address {
        Address::Unix(path) => Ok(Duplex::new(tokio::net::UnixStream::connect(path).await?)),
        Address::Tcp(address) => {
            let stream = tokio::net::TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Duplex::new(stream))
        }
    }
}

fn bind_unix(
    directory: &Path,
    naming: Naming,
    group: Option<&str>,
    peers: Peers,
) -> Result<Listener, ListenError> {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let directory = writable(directory)?;
    let name = match naming {
        Naming::Full => format!("{SOCKET_PREFIX}{}-{:016x}", std::process::id(), random()),
        Naming::Brief => MADE.fetch_add(1, Ordering::Relaxed).to_string(),
    };
    let path = directory.join(name);
    let socket = listen_privately(&path).map_err(|errno| match errno {
        Errno::NAMETOOLONG => ListenError::PathTooLong { path: path.clone() },
        errno => ListenError::Bind { path: path.clone(), source: errno.into() },
    })?;
    let file = SocketFile(path.clone());
    if let Some(group) = group {
        open_to_group(&path, group, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?;
    }
    let socket = std::os::unix::net::UnixListener::from(socket);
    Ok(Listener {
        socket: Socket::Unix(UnixListener::from_std(socket).map_err(ListenError::Register)?, peers),
        address: Address::Unix(path),
        file: Some(file),
    })
}

/// The absolute path of a directory, if a handshake line can carry it.
fn writable(directory: &Path) -> Result<PathBuf, ListenError> {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    match directory.to_str().is_none_or(|text| text.contains(['|', '\n', '\r'])) {
        true => Err(ListenError::PathUnwritable { directory }),
        false => Ok(directory),
    }
}

/// Binds so that the file never exists with more rights than the owner's: on Linux it takes over
/// the mode of the socket's own inode (`unix_bind`), which can be set before there is a file.
fn listen_privately(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = unix_socket()?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &address)?;
    if let Err(errno) = rustix::net::listen(&socket, 128) {
        let _ = rustix::fs::unlink(path);
        return Err(errno);
    }
    Ok(socket)
}

/// What a host asks for by PLUGIN_UNIX_SOCKET_GROUP: a group's name or its number. The group gets
/// what `mode` gives it, of a socket or of its directory.
fn open_to_group(path: &Path, group: &str, mode: Mode) -> Result<(), ListenError> {
    let failed = |advice, source| ListenError::Group { group: group.to_owned(), advice, source };
    let gid = match group.parse() {
        Ok(gid) => gid,
        Err(_) => group_id(group)
            .map_err(|error| failed("cannot read /etc/group", Some(error)))?
            .ok_or_else(|| failed("/etc/group has no such name; give its number", None))?,
    };
    let refused = |errno: Errno| failed("is this user a member of it?", Some(errno.into()));
    rustix::fs::chown(path, None, Some(Gid::from_raw(gid))).map_err(refused)?;
    rustix::fs::chmod(path, mode).map_err(refused)
}

fn group_id(name: &str) -> io::Result<Option<u32>> {
    let table = std::fs::read_to_string("/etc/group")?;
    Ok(table.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    }))
}

fn bind_tcp(range: PortRange) -> Result<Listener, ListenError> {
    let mut last = None;
    for port in range.ports()? {
        match StdTcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(socket) => {
                socket.set_nonblocking(true).map_err(ListenError::Register)?;
                let address = socket.local_addr().map_err(ListenError::Register)?;
                return Ok(Listener {
                    socket: Socket::Tcp(
                        TcpListener::from_std(socket).map_err(ListenError::Register)?,
                    ),
                    address: Address::Tcp(address),
                    file: None,
                });
            }
            Err(error) => last = Some(error),
        }
    }
    Err(ListenError::NoPort { min: range.min, max: range.max, source: last })
}

/// The standard library's hash keys come from the system's random source, which is all that a file
/// name needs.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests;
