//! What host and plugin agree on before the first byte of gRPC: the cookie, the variables and the
//! one line on standard output.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The only version of the handshake itself that exists (go-plugin's "core protocol").
const CORE_VERSION: &str = "1";

/// Names of the environment variables by which a host says to a plugin what it wants.
pub(super) mod variable {
    pub(crate) const VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";
    pub(crate) const MIN_PORT: &str = "PLUGIN_MIN_PORT";
    pub(crate) const MAX_PORT: &str = "PLUGIN_MAX_PORT";
    pub(crate) const CLIENT_CERT: &str = "PLUGIN_CLIENT_CERT";
    pub(crate) const MULTIPLEX: &str = "PLUGIN_MULTIPLEX_GRPC";
    pub(crate) const SOCKET_GROUP: &str = "PLUGIN_UNIX_SOCKET_GROUP";
    pub(crate) const SOCKET_DIR: &str = "PLUGIN_UNIX_SOCKET_DIR";
}

/// The variable by which a plugin sees that a host launched it. No secret: it only keeps people
/// from starting a plugin by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Name of the variable.
    pub key: &'static str,
    /// The value it must have.
    pub value: &'static str,
}

/// Whether a variable is part of the handshake between a host and this plugin, and so must not be
/// handed on to children: a child that is itself a host would take its values for its own (an
/// inherited `PLUGIN_CLIENT_CERT` makes the grandchild speak TLS to a host that has none).
#[must_use]
pub(crate) fn is_plugin_variable(name: &OsStr, cookie: &Cookie) -> bool {
    name == cookie.key || name.as_bytes().starts_with(b"PLUGIN_")
}

/// Where a listener can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket's absolute path.
    Unix(PathBuf),
    /// A port of the loopback interface.
    Tcp(SocketAddr),
}

impl Address {
    /// The network's name on the wire.
    pub(super) fn network(&self) -> &'static str {
        match self {
            Address::Unix(_) => "unix",
            Address::Tcp(_) => "tcp",
        }
    }

    /// The address part on the wire.
    pub(super) fn location(&self) -> String {
        match self {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp(address) => address.to_string(),
        }
    }

    pub(super) fn parse(network: &str, location: &str) -> Result<Self, LineError> {
        match network {
            "unix" => Ok(Address::Unix(location.into())),
            // A Go host looks names up; of those this one has a fixed answer.
            "tcp" => location
                .strip_prefix("localhost:")
                .map_or_else(|| location.to_owned(), |port| format!("127.0.0.1:{port}"))
                .parse()
                .map(Address::Tcp)
                .map_err(|_| LineError::Address { address: location.to_owned() }),
            other => Err(LineError::Network { network: other.to_owned() }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.network(), self.location())
    }
}

/// What the muxing field of the line says. A plugin that was not asked must leave the field out:
/// hosts before go-plugin 1.6 would take it for part of the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplexField {
    /// No such field.
    Absent,
    /// The plugin knows how to multiplex; it does so when the host asked for it.
    Supported,
    /// The plugin says that it cannot.
    Unsupported,
}

/// The one line that a plugin prints: `1|VERSION|NETWORK|ADDRESS|grpc|CERTIFICATE[|MULTIPLEX]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeLine {
    /// The application's protocol version that the plugin chose.
    pub version: u32,
    /// Where the plugin listens.
    pub address: Address,
    /// The plugin's certificate in DER, when the host asked for AutoMTLS.
    pub certificate: Option<Vec<u8>>,
    /// Whether connections can be multiplexed over one.
    pub multiplex: MultiplexField,
}

/// Why a line is not a handshake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Too few fields: most likely the program is no plugin and printed something else.
    #[error(
        "not a handshake line: {line:?} (a plugin's first line is CORE|VERSION|unix or tcp|ADDRESS|grpc, and nothing comes before it)"
    )]
    Fields {
        /// The line, shortened.
        line: String,
    },
    /// Another core protocol.
    #[error("the plugin speaks core protocol {found:?}, this host speaks 1")]
    Core {
        /// What the line says.
        found: String,
    },
    /// The application's version is not a number.
    #[error("protocol version {found:?} is not a number")]
    Version {
        /// What the line says.
        found: String,
    },
    /// A network that is neither unix nor tcp.
    #[error("unknown network {network:?} (expected unix or tcp)")]
    Network {
        /// What the line says.
        network: String,
    },
    /// A TCP address that does not parse.
    #[error("{address:?} is not an address of the form HOST:PORT")]
    Address {
        /// What the line says.
        address: String,
    },
    /// The plugin speaks another protocol than gRPC.
    #[error("the plugin speaks {protocol:?}, this host speaks grpc")]
    Protocol {
        /// What the line says; empty means net/rpc, go-plugin's oldest.
        protocol: String,
    },
    /// The certificate is not unpadded standard base64.
    #[error("the plugin's certificate is not unpadded base64")]
    Certificate(#[source] Box<dyn Error + Send + Sync>),
}

impl fmt::Display for HandshakeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certificate = self.certificate.as_ref().map(|der| STANDARD_NO_PAD.encode(der));
        write!(
            f,
            "{CORE_VERSION}|{}|{}|{}|grpc|{}",
            self.version,
            self.address.network(),
            self.address.location(),
            certificate.unwrap_or_default(),
        )?;
        match self.multiplex {
            MultiplexField::Absent => Ok(()),
            MultiplexField::Supported => f.write_str("|true"),
            MultiplexField::Unsupported => f.write_str("|false"),
        }
    }
}

impl FromStr for HandshakeLine {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [core, version, network, location, rest @ ..] = fields.as_slice() else {
            return Err(LineError::Fields { line: line.trim().chars().take(200).collect() });
        };
        if *core != CORE_VERSION {
            return Err(LineError::Core { found: (*core).to_owned() });
        }
        let version =
            version.parse().map_err(|_| LineError::Version { found: (*version).to_owned() })?;
        let address = Address::parse(network, location)?;
        let protocol = rest.first().copied().unwrap_or_default();
        if protocol != "grpc" {
            return Err(LineError::Protocol { protocol: protocol.to_owned() });
        }
        let certificate = match rest.get(1).copied().unwrap_or_default() {
            "" => None,
            text => Some(
                STANDARD_NO_PAD
                    .decode(text)
                    .map_err(|error| LineError::Certificate(error.into()))?,
            ),
        };
        let multiplex = match rest.get(2) {
            None => MultiplexField::Absent,
            Some(text) if parses_as_true(text) => MultiplexField::Supported,
            Some(_) => MultiplexField::Unsupported,
        };
        Ok(HandshakeLine { version, address, certificate, multiplex })
    }
}

/// The plugin's choice: the highest of its own versions that the host offers. Without a common one
/// it is the lowest of its own, and the host then refuses with a message of its own.
pub(super) fn choose_version(own: &[u32], offered: &[u32]) -> Option<u32> {
    let common = own.iter().filter(|version| offered.contains(version)).max();
    common.or_else(|| own.iter().min()).copied()
}

/// The versions of a comma-separated list; what does not parse is skipped, as go-plugin does.
pub(super) fn parse_versions(list: &str) -> Vec<u32> {
    list.split(',').filter_map(|version| version.trim().parse().ok()).collect()
}

/// Go's `strconv.ParseBool`, for true.
pub(super) fn parses_as_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<HandshakeLine, LineError> {
        text.parse()
    }

    #[test]
    fn the_highest_common_version_wins_else_our_lowest() {
        assert_eq!(choose_version(&[1, 3, 2], &[2, 1]), Some(2));
        assert_eq!(choose_version(&[2, 1], &[7, 9]), Some(1));
        assert_eq!(choose_version(&[2, 5], &[]), Some(2));
        assert_eq!(choose_version(&[], &[1]), None);
    }

    #[test]
    fn versions_that_do_not_parse_are_skipped() {
        assert_eq!(parse_versions("3,x,1,,-2, 4"), [3, 1, 4]);
        assert_eq!(parse_versions(""), Vec::<u32>::new());
    }

    #[test]
    fn a_plain_line_ends_with_an_empty_certificate_field() {
        let written = HandshakeLine {
            version: 1,
            address: Address::Unix("/tmp/plugin7".into()),
            certificate: None,
            multiplex: MultiplexField::Absent,
        };
        assert_eq!(written.to_string(), "1|1|unix|/tmp/plugin7|grpc|");
        assert_eq!(line("1|1|unix|/tmp/plugin7|grpc|\n").unwrap(), written);
        assert_eq!(line("1|1|unix|/tmp/plugin7|grpc").unwrap(), written);
    }

    #[test]
    fn every_field_survives_a_round_trip() {
        for multiplex in
            [MultiplexField::Absent, MultiplexField::Supported, MultiplexField::Unsupported]
        {
            let written = HandshakeLine {
                version: 12,
                address: Address::Tcp(([127, 0, 0, 1], 10_000).into()),
                certificate: Some(vec![0xfb, 0xff, 0xbe, 1]),
                multiplex,
            };
            assert_eq!(line(&written.to_string()).unwrap(), written);
        }
    }

    #[test]
    fn the_certificate_is_standard_base64_without_padding() {
        assert!(line("1|1|unix|/s|grpc|+/8").is_ok());
        assert!(matches!(line("1|1|unix|/s|grpc|+/8="), Err(LineError::Certificate(_))));
        assert!(matches!(line("1|1|unix|/s|grpc|-_8"), Err(LineError::Certificate(_))));
    }

    #[test]
    fn what_is_no_handshake_is_distinguished() {
        assert!(matches!(line("hello world"), Err(LineError::Fields { .. })));
        assert!(matches!(line("2|1|unix|/s|grpc|"), Err(LineError::Core { .. })));
        assert!(matches!(line("1|x|unix|/s|grpc|"), Err(LineError::Version { .. })));
        assert!(matches!(line("1|1|udp|/s|grpc|"), Err(LineError::Network { .. })));
        assert!(matches!(line("1|1|tcp|nowhere|grpc|"), Err(LineError::Address { .. })));
        let local = line("1|1|tcp|localhost:7|grpc").unwrap().address;
        assert_eq!(local.to_string(), "tcp:127.0.0.1:7");
        assert!(matches!(line("1|1|unix|/s|netrpc|"), Err(LineError::Protocol { .. })));
        assert!(matches!(line("1|1|unix|/s"), Err(LineError::Protocol { .. })));
    }

    #[test]
    fn children_must_not_see_the_handshake_variables() {
        let cookie = Cookie { key: "MY_COOKIE", value: "x" };
        for name in ["PLUGIN_CLIENT_CERT", "PLUGIN_ANYTHING_NEW", "MY_COOKIE"] {
            assert!(is_plugin_variable(OsStr::new(name), &cookie), "{name}");
        }
        for name in ["PATH", "PLUGIN", "MY_COOKIE_JAR", "plugin_x"] {
            assert!(!is_plugin_variable(OsStr::new(name), &cookie), "{name}");
        }
    }
}
