//! Recognises a daemon by the fingerprint in a pairing code.

use std::sync::{Mutex, PoisonError};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

use super::HandshakeError;
use crate::{
    authority::{SERVER_NAME, provider},
    certificate,
    identity::{Fingerprint, FingerprintPrefix},
};

/// Accepts a daemon whose chain is its certificate and that of an authority with the expected fingerprint.
///
/// **Invariant:** no certificate is trusted because of its place in the chain; held by `pairing_refuses_a_wrong_chain`.
#[derive(Debug)]
pub(super) struct PairingVerifier {
    expected: FingerprintPrefix,
    algorithms: WebPkiSupportedAlgorithms,
    /// Guards the authority of the last accepted chain.
    authority: Mutex<Option<CertificateDer<'static>>>,
}

impl PairingVerifier {
    pub(super) fn new(expected: FingerprintPrefix) -> Self {
        let algorithms = provider().signature_verification_algorithms;
        Self { expected, algorithms, authority: Mutex::new(None) }
    }

    pub(super) fn authority(&self) -> Option<CertificateDer<'static>> {
        self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks the fingerprint first: nothing else of an unknown daemon is examined.
    fn expected_authority(
        &self,
        chain: &[CertificateDer<'_>],
    ) -> Result<CertificateDer<'static>, HandshakeError> {
        let [authority] = chain else { return Err(HandshakeError::NoAuthority) };
        let facts = certificate::read(authority).map_err(|_| HandshakeError::NoAuthority)?;
        let found = Fingerprint::of_public_key(&facts.public_key);
        if !self.expected.matches(&found) {
            return Err(HandshakeError::FingerprintMismatch { expected: self.expected, found });
        }
        if !facts.authority {
            return Err(HandshakeError::NoAuthority);
        }
        Ok(authority.clone().into_owned())
    }
}

impl ServerCertVerifier for PairingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let authority = self.expected_authority(intermediates).map_err(as_tls_error)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone())?;
        let leaf = ParsedCertificate::try_from(end_entity)?;
        // The authority itself has to sign the daemon's certificate: no intermediates.
        verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &[], now, self.algorithms.all)?;
        let name = ServerName::try_from(SERVER_NAME).map_err(|_| CertificateError::NotValidForName)?;
        verify_server_name(&leaf, &name)?;
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = Some(authority);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn as_tls_error(error: HandshakeError) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(std::sync::Arc::new(error))))
}
