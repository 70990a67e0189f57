//! AutoMTLS: each side makes a certificate for one run and accepts exactly one certificate of the
//! other, byte for byte.
//!
//! go-plugin's certificates are self-signed, say that they are an authority, and hold a P-521 key.
//! rustls' own verifiers refuse an authority as an end entity, and ring knows no P-521; so the
//! certificate is compared with the one that came by the handshake (a stricter check than any
//! chain), and that one signature scheme is verified by the `p521` crate. The peer still has to
//! prove that it holds the key: rustls hands its CertificateVerify to the methods below.

use std::error::Error as StdError;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p521::ecdsa::signature::Verifier as _;
use p521::pkcs8::DecodePublicKey as _;
use rcgen::{
    CertificateParams, DistinguishedName as SubjectName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use time::{Duration, OffsetDateTime};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerMisbehaved, ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::duplex::Duplex;

/// The name that both sides put into their certificate and into SNI.
const NAME: &str = "localhost";

/// How long a certificate is good for; a plugin may run for as long as its host does.
const VALIDITY: Duration = Duration::days(365 * 30);

/// Clocks of host and plugin may differ a little (a container, a virtual machine).
const BACKDATE: Duration = Duration::seconds(60);

/// Why AutoMTLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The host's certificate in `PLUGIN_CLIENT_CERT` is no PEM certificate.
    #[error("PLUGIN_CLIENT_CERT holds no PEM certificate")]
    PeerCertificate(#[source] Box<dyn StdError + Send + Sync>),
    /// Our own certificate could not be made.
    #[error("cannot make a certificate")]
    OwnCertificate(#[source] Box<dyn StdError + Send + Sync>),
    /// rustls refused the configuration.
    #[error("cannot set up TLS")]
    Configuration(#[source] Box<dyn StdError + Send + Sync>),
}

/// A certificate made for this run, and its key.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    /// A P-256 certificate: Go accepts it both ways, and it is ten times quicker than P-521.
    pub(super) fn generate() -> Result<Self, TlsError> {
        Self::try_generate().map_err(|error| TlsError::OwnCertificate(error.into()))
    }

    fn try_generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        params.distinguished_name = SubjectName::new();
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Both: over the broker each side is a server and a client in turn.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let now = OffsetDateTime::now_utc();
        params.not_before = now - BACKDATE;
        params.not_after = now + VALIDITY;
        let certificate = params.self_signed(&key)?;
        Ok(Identity { certificate: certificate.into(), key: key.serialize_der() })
    }

    pub(super) fn der(&self) -> &[u8] {
        &self.certificate
    }

    /// The certificate as a host writes it into the environment.
    pub(super) fn pem(&self) -> String {
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for line in STANDARD.encode(&self.certificate).as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem + "-----END CERTIFICATE-----\n"
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

/// The peer's certificate as the host writes it into the environment.
pub(super) fn certificate_from_pem(text: &str) -> Result<CertificateDer<'static>, TlsError> {
    CertificateDer::from_pem_slice(text.as_bytes())
        .map_err(|error| TlsError::PeerCertificate(error.into()))
}

/// Both roles of one side of an AutoMTLS pair.
#[derive(Clone)]
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl Tls {
    /// TLS as `own`, with nobody but the holder of `peer`.
    pub(super) fn new(own: &Identity, peer: CertificateDer<'static>) -> Result<Self, TlsError> {
        Self::try_new(own, peer).map_err(|error| TlsError::Configuration(error.into()))
    }

    fn try_new(own: &Identity, peer: CertificateDer<'static>) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let pinned = Arc::new(Pinned { certificate: peer, provider: provider.clone() });
        let chain = vec![own.certificate.clone()];

        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(pinned.clone())
            .with_single_cert(chain.clone(), own.key())?;
        // grpc-go drops a connection that did not negotiate it.
        server.alpn_protocols = vec![b"h2".to_vec()];
        // A connection lives as long as the process: there is nothing to resume.
        server.send_tls13_tickets = 0;

        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_auth_cert(chain, own.key())?;
        client.alpn_protocols = vec![b"h2".to_vec()];

        Ok(Tls {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        })
    }

    /// The server's half of the handshake.
    pub(super) async fn accept(&self, raw: Duplex) -> std::io::Result<Duplex> {
        Ok(Duplex::new(self.acceptor.accept(raw).await?))
    }

    /// The client's half of the handshake.
    pub(super) async fn connect(&self, raw: Duplex) -> std::io::Result<Duplex> {
        let name = ServerName::try_from(NAME).map_err(std::io::Error::other)?;
        Ok(Duplex::new(self.connector.connect(name, raw).await?))
    }
}

/// Accepts one certificate and no other.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        if *presented == self.certificate {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if signed.scheme == SignatureScheme::ECDSA_NISTP521_SHA512 {
            verify_p521(message, certificate, signed.signature())
        } else {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signed, algorithms)
        }
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        schemes.push(SignatureScheme::ECDSA_NISTP521_SHA512);
        schemes
    }
}

/// The one scheme that ring does not know. TLS 1.3 binds the scheme to its curve and digest, so the
/// certificate's key must be a P-521 key and the digest is SHA-512, the curve's default.
fn verify_p521(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &[u8],
) -> Result<HandshakeSignatureValid, Error> {
    let bad = |_| Error::InvalidCertificate(CertificateError::BadSignature);
    let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
    let key = p521::ecdsa::VerifyingKey::from_public_key_der(&key)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let signature = p521::ecdsa::Signature::from_der(signature).map_err(bad)?;
    key.verify(message, &signature).map_err(bad)?;
    Ok(HandshakeSignatureValid::assertion())
}

/// Nothing before TLS 1.3 is offered, so rustls never asks.
fn tls12_was_not_offered() -> Error {
    PeerMisbehaved::SelectedUnofferedCipherSuite.into()
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls12_was_not_offered())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls12_was_not_offered())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::*;

    /// A certificate as Go makes it for go-plugin: P-521, self-signed, an authority. Its key signed
    /// [`MESSAGE`] and was thrown away.
    const GO_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
MIICUDCCAbGgAwIBAgIRAMzA9/DnbyaXAS+xuWmfbbIwCgYIKoZIzj0EAwQwKDES\n\
MBAGA1UEChMJSGFzaGlDb3JwMRIwEAYDVQQDEwlsb2NhbGhvc3QwIBcNMjYxMTI5\n\
MjM0OTMxWhgPMjA1NjExMjkxMTUwMDFaMCgxEjAQBgNVBAoTCUhhc2hpQ29ycDES\n\
MBAGA1UEAxMJbG9jYWxob3N0MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBmxw4\n\
SFK8JK3hGuF7hEZqVj6cL392+dJDqNy1gK0+F5TLunO2Ihv78AK6nPOPJUN/Y9qB\n\
gbHK7+eDOhMgom0TdX0BWC3TRtWUJFjr3rAdax4vpF0VWCB2paSRcQ6NL8qCptw2\n\
C5JnJmNxVjHK00tHNHYa/PDKBG0VLZUe8vBkEafaHFKjdzB1MA4GA1UdDwEB/wQE\n\
AwICrDAdBgNVHSUEFjAUBggrBgEFBQcDAgYIKwYBBQUHAwEwDwYDVR0TAQH/BAUw\n\
AwEB/zAdBgNVHQ4EFgQUOWIsar+I3HyB9UFkgYakbyj+SsEwFAYDVR0RBA0wC4IJ\n\
bG9jYWxob3N0MAoGCCqGSM49BAMEA4GMADCBiAJCAUWyjJgANCY0OsZ0JXBZRGsn\n\
dcP7p9ID4CW1hf/+Ls9RnVXFPqkYQV4vCPooszjQA43o1NEhlCR/tiPv2u6Gqqfn\n\
AkIBRyoPYBsGXXyNp468oGvrzGbcaCdZDurBBvnqUwoxpfWa/v4h8kg/WYwUET6z\n\
wp/1KeuzAK2IN0Gps6NkVk7vi8Y=\n\
-----END CERTIFICATE-----\n";

    const MESSAGE: &[u8] = b"what a peer signs";

    const SIGNATURE: &str = "MIGHAkIBY9Qglt6vLtpZxejzAJZRnBxEU80Em20Bsxwja3y4yWBakDgaF7WbawAjMCqX3VaUWKLkO8jl\
        lzfeh769wpJRcAACQRTw+LT7hHn/B/Nyx9gEiUijG5p2SxVaVz+2C+R8JwamEDvR8JkavtID26xCum2T\
        H3JZU3PkjswMe6A2Qqjp+Z+T";

    fn check(message: &[u8], signature: &[u8]) -> Result<HandshakeSignatureValid, Error> {
        verify_p521(message, &certificate_from_pem(GO_CERTIFICATE).unwrap(), signature)
    }

    #[test]
    fn a_signature_of_gos_p521_key_is_verified_and_any_other_is_not() {
        let signature = STANDARD_NO_PAD.decode(SIGNATURE).unwrap();
        check(MESSAGE, &signature).unwrap();
        assert!(check(b"something else", &signature).is_err());
        let mut altered = signature;
        *altered.last_mut().unwrap() ^= 1;
        assert!(check(MESSAGE, &altered).is_err());
        assert!(check(MESSAGE, &[]).is_err());
    }

    #[test]
    fn a_key_of_another_curve_cannot_pass_for_p521() {
        let own = Identity::generate().unwrap();
        let signature = STANDARD_NO_PAD.decode(SIGNATURE).unwrap();
        assert!(verify_p521(MESSAGE, &own.certificate, &signature).is_err());
    }

    #[test]
    fn only_the_one_certificate_is_accepted_though_another_says_the_same() {
        let pinned = |certificate: &Identity| Pinned {
            certificate: certificate.certificate.clone(),
            provider: Arc::new(ring::default_provider()),
        };
        let (one, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let now = UnixTime::now();
        let pinned = pinned(&one);
        assert!(pinned.verify_client_cert(&one.certificate, &[], now).is_ok());
        assert!(pinned.verify_client_cert(&other.certificate, &[], now).is_err());
        // Nor does a chain help that has it in another place.
        let chain = std::slice::from_ref(&one.certificate);
        assert!(pinned.verify_client_cert(&other.certificate, chain, now).is_err());
        let name = ServerName::try_from(NAME).unwrap();
        assert!(pinned.verify_server_cert(&one.certificate, &[], &name, &[], now).is_ok());
        assert!(pinned.verify_server_cert(&other.certificate, chain, &name, &[], now).is_err());
    }
}
