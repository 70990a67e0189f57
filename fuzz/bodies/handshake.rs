//! Any environment of a host, and any line of a plugin.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use goplugin::HandshakeLine;
use goplugin::server::{CookieCheck, HandshakeEnvironment, Listen};
use provider_workspace::plugin::COOKIE;

use super::pieces::Pieces;

pub(super) fn body(data: &[u8]) {
    let mut pieces = Pieces(data);
    let set = pieces.byte();
    let listen = if set & 0x80 == 0 { Listen::Unix } else { Listen::Tcp };
    let names = [
        "PLUGIN_PROTOCOL_VERSIONS",
        "PLUGIN_CLIENT_CERT",
        "PLUGIN_MULTIPLEX_GRPC",
        "PLUGIN_UNIX_SOCKET_DIR",
        "PLUGIN_UNIX_SOCKET_GROUP",
        "PLUGIN_MIN_PORT",
        "PLUGIN_MAX_PORT",
        COOKIE.key,
    ];
    let values: Vec<_> =
        names.iter().map(|name| (*name, OsString::from_vec(pieces.piece().to_vec()))).collect();
    let environment = HandshakeEnvironment::from_lookup(&COOKIE, |name| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    });
    if let Err(error) = environment.check(&[1], listen) {
        assert!(!error.to_string().is_empty());
    }
    // Without a version of our own there is none to choose, whatever the host offers.
    assert!(environment.check(&[], listen).is_err());
    let cookie = &values.last().expect("the cookie is the last").1;
    let launched = environment.launched_by_host(&COOKIE) == CookieCheck::Launched;
    assert_eq!(launched, cookie == COOKIE.value);
    // The same bytes as a plugin's first line.
    let line = String::from_utf8_lossy(data);
    if let Ok(line) = line.parse::<HandshakeLine>() {
        let printed = line.to_string();
        assert_eq!(printed.parse::<HandshakeLine>().expect("what we print we read"), line);
    }
}
