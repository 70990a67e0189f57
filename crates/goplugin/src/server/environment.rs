//! What the host says by environment variables, read once into a value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::CertificateDer;

use super::error::ServeError;
use super::serve::Listen;
use crate::handshake::{Cookie, choose_version, parse_versions, parses_as_true, variable};
use crate::listener::{Naming, Peers, PortRange, SocketRules, is_directory, temporary_directory};
use crate::tls::certificate_from_pem;

/// The handshake's variables as the host set them.
#[derive(Clone, Debug, Default)]
pub struct HandshakeEnvironment {
    cookie: Option<OsString>,
    versions: Vec<u32>,
    min_port: Option<OsString>,
    max_port: Option<OsString>,
    client_certificate: Option<OsString>,
    multiplex: Option<OsString>,
    socket_directory: Option<PathBuf>,
    socket_group: Option<OsString>,
    temporary_directory: Option<PathBuf>,
}

/// What a host asks for.
pub(super) struct Wanted {
    /// The version that is chosen among those that it offers.
    pub(super) version: u32,
    /// Its certificate, where it wants TLS.
    pub(super) host: Option<CertificateDer<'static>>,
    /// Where sockets go, and who may connect.
    pub(super) rules: SocketRules,
    /// Whether they go into a directory of their own there.
    pub(super) directory: Directory,
}

/// Where a plugin's sockets lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directory {
    /// In the one that the host named: it may look for them there.
    Named,
    /// In a new one.
    Own,
}

/// Whether a host launched this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieCheck {
    /// The cookie is there: serve.
    Launched,
    /// No cookie: a person started the program.
    Missing,
    /// Another value: a host of another application, or of another version of it.
    Wrong,
}

impl HandshakeEnvironment {
    /// Reads the process's environment.
    #[must_use]
    pub fn from_process(cookie: &Cookie) -> Self {
        Self::from_lookup(cookie, |name| std::env::var_os(name))
    }

    /// Reads the variables by `lookup`. Empty ones count as not set, as they do for go-plugin.
    #[must_use]
    pub fn from_lookup(cookie: &Cookie, lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let read = |name| lookup(name).filter(|value| !value.is_empty());
        HandshakeEnvironment {
            cookie: read(cookie.key),
            versions: read(variable::VERSIONS)
                .map(|list| parse_versions(&list.to_string_lossy()))
                .unwrap_or_default(),
            min_port: read(variable::MIN_PORT),
            max_port: read(variable::MAX_PORT),
            client_certificate: read(variable::CLIENT_CERT),
            multiplex: read(variable::MULTIPLEX),
            socket_directory: read(variable::SOCKET_DIR).map(PathBuf::from),
            socket_group: read(variable::SOCKET_GROUP),
            temporary_directory: read("TMPDIR").map(PathBuf::from),
        }
    }

    /// Whether a host launched this process, by the cookie.
    #[must_use]
    pub fn launched_by_host(&self, cookie: &Cookie) -> CookieCheck {
        match &self.cookie {
            None => CookieCheck::Missing,
            Some(value) if value == cookie.value => CookieCheck::Launched,
            Some(_) => CookieCheck::Wrong,
        }
    }

    /// Whether a plugin that speaks `versions` can give the host what it asks for, as far as that
    /// shows before a socket is made. [`serve`](super::serve) finds the same.
    ///
    /// # Errors
    /// [`ServeError`] with the variable that is set to something unusable.
    pub fn check(&self, versions: &[u32], listen: Listen) -> Result<(), ServeError> {
        self.wanted(versions, listen).map(drop)
    }

    /// What the host asks for, understood.
    pub(super) fn wanted(&self, versions: &[u32], listen: Listen) -> Result<Wanted, ServeError> {
        let version = choose_version(versions, &self.versions).ok_or(ServeError::NoVersion)?;
        let host = self.client_certificate()?.map(certificate_from_pem).transpose()?;
        let rules = match listen {
            Listen::Unix => SocketRules::Unix {
                directory: self.socket_directory(),
                naming: Naming::Full,
                group: self.socket_group()?,
                peers: Peers::Hosts,
            },
            Listen::Tcp => SocketRules::Tcp { ports: self.ports()? },
        };
        let directory = match self.socket_directory {
            Some(_) => Directory::Named,
            None => Directory::Own,
        };
        Ok(Wanted { version, host, rules, directory })
    }

    /// The host's certificate in PEM, when it wants AutoMTLS.
    fn client_certificate(&self) -> Result<Option<&str>, ServeError> {
        self.client_certificate.as_ref().map(|value| text(variable::CLIENT_CERT, value)).transpose()
    }

    /// Whether the handshake line has a muxing field: as soon as the variable is there at all.
    pub(super) fn asks_about_multiplexing(&self) -> bool {
        self.multiplex.is_some()
    }

    /// Whether the host will speak yamux.
    pub(super) fn multiplexes(&self) -> bool {
        let value = self.multiplex.as_ref().and_then(|value| value.to_str());
        value.is_some_and(parses_as_true)
    }

    /// Where sockets go: the directory that the host named, else the temporary directory.
    pub(super) fn socket_directory(&self) -> PathBuf {
        match &self.socket_directory {
            Some(directory) => directory.clone(),
            None => temporary_directory(self.temporary_directory.as_deref()),
        }
    }

    /// The directory that TMPDIR names in vain, if it does.
    pub(super) fn missing_temporary_directory(&self) -> Option<&Path> {
        self.temporary_directory.as_deref().filter(|named| !is_directory(named))
    }

    fn socket_group(&self) -> Result<Option<String>, ServeError> {
        let group = self.socket_group.as_ref();
        group.map(|value| text(variable::SOCKET_GROUP, value).map(str::to_owned)).transpose()
    }

    fn ports(&self) -> Result<PortRange, ServeError> {
        let port = |name, value: &Option<OsString>| match value {
            None => Ok(0),
            Some(value) => text(name, value)?.trim().parse().map_err(|_| ServeError::Variable {
                name,
                value: value.to_string_lossy().into_owned(),
                expected: "a port number",
            }),
        };
        Ok(PortRange {
            min: port(variable::MIN_PORT, &self.min_port)?,
            max: port(variable::MAX_PORT, &self.max_port)?,
        })
    }
}

fn text<'a>(name: &'static str, value: &'a OsString) -> Result<&'a str, ServeError> {
    value.to_str().ok_or_else(|| ServeError::Variable {
        name,
        value: value.to_string_lossy().into_owned(),
        expected: "UTF-8 text",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use super::*;

    const COOKIE: Cookie = Cookie { key: "THE_COOKIE", value: "crumbs" };

    fn environment(variables: &[(&str, &str)]) -> HandshakeEnvironment {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        HandshakeEnvironment::from_lookup(&COOKIE, |name| variables.get(name).map(OsString::from))
    }

    #[test]
    fn the_cookie_distinguishes_a_host_from_a_person() {
        let check = |variables| environment(variables).launched_by_host(&COOKIE);
        assert_eq!(check(&[("THE_COOKIE", "crumbs")]), CookieCheck::Launched);
        assert_eq!(check(&[]), CookieCheck::Missing);
        assert_eq!(check(&[("THE_COOKIE", "")]), CookieCheck::Missing);
        assert_eq!(check(&[("THE_COOKIE", "crumbs ")]), CookieCheck::Wrong);
    }

    #[test]
    fn the_muxing_field_and_muxing_itself_are_two_questions() {
        for (value, asked, muxes) in
            [("true", true, true), ("T", true, true), ("false", true, false), ("", false, false)]
        {
            let environment = environment(&[("PLUGIN_MULTIPLEX_GRPC", value)]);
            assert_eq!(environment.asks_about_multiplexing(), asked, "{value:?}");
            assert_eq!(environment.multiplexes(), muxes, "{value:?}");
        }
    }

    #[test]
    fn sockets_go_where_the_host_says_else_to_the_temporary_directory() {
        let directory = |variables| environment(variables).socket_directory();
        assert_eq!(
            directory(&[("PLUGIN_UNIX_SOCKET_DIR", "/run/x"), ("TMPDIR", "/t")]),
            Path::new("/run/x")
        );
        assert_eq!(directory(&[("TMPDIR", "/var/tmp")]), Path::new("/var/tmp"));
        let gone = environment(&[("TMPDIR", "/no/such/directory")]);
        assert_eq!(gone.socket_directory(), Path::new("/tmp"));
        assert_eq!(gone.missing_temporary_directory(), Some(Path::new("/no/such/directory")));
        assert_eq!(directory(&[("PLUGIN_UNIX_SOCKET_DIR", "")]), Path::new("/tmp"));
    }

    #[test]
    fn a_port_that_is_no_number_is_an_error_that_names_the_variable() {
        let ports = environment(&[("PLUGIN_MIN_PORT", "10"), ("PLUGIN_MAX_PORT", "20")]).ports();
        assert_eq!(ports.unwrap(), PortRange { min: 10, max: 20 });
        let error = environment(&[("PLUGIN_MAX_PORT", "many")]).ports().unwrap_err();
        assert!(error.to_string().contains("PLUGIN_MAX_PORT"), "{error}");
    }
}
