//! Why a plugin could not start, or ended badly.

use std::io;

use crate::listener::ListenError;
use crate::tls::TlsError;

/// Why serving failed. The composition root logs it and ends with exit code 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A programming error: the application has to speak some version.
    #[error("the plugin names no protocol version of its own")]
    NoVersion,
    /// The host set a variable to something unusable.
    #[error("{name} is {value:?}, which is not {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// No socket could be made.
    #[error("cannot open the plugin's socket")]
    Listen(#[from] ListenError),
    /// The host asked for AutoMTLS and it could not be set up. There is no plain fallback.
    #[error("cannot set up AutoMTLS")]
    Tls(#[from] TlsError),
    /// The host did not take the handshake line; most likely it is gone.
    #[error("cannot write the handshake line to standard output")]
    Handshake(#[source] io::Error),
    /// The signal handlers or the redirected streams could not be set up.
    #[error("cannot set up {what}")]
    Setup {
        /// What was being set up.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The gRPC server broke.
    #[error("the gRPC server ended")]
    Server(#[from] tonic::transport::Error),
}
