//! The daemon's certificate authority, which signs the daemon's own certificate and those of its devices.
//!
//! The folder has four files, in DER: `ca.key` and `ca.crt`, `server.key` and `server.crt`. The key of the authority is
//! never replaced, since every device knows the daemon by it. The other three files are made again when they are due,
//! or when a crash left them without each other.

mod server_identity;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{CertificateParams, Issuer, KeyPair, PublicKeyData as _};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::CertificateDer,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    time_provider::{DefaultTimeProvider, TimeProvider},
    version::TLS13,
};
use zeroize::Zeroizing;

use crate::{
    certificate::{self, Purpose},
    error::DevicesError,
    files,
    identity::{Fingerprint, KeyHash},
};
use server_identity::ServerIdentity;

/// The name in the daemon's certificate. Devices ask for it, whatever address they connect to, so that a change of
/// addresses breaks no pairing.
pub const SERVER_NAME: &str = "daemon.satchel.internal";
/// The only application protocol: HTTP/2.
pub(crate) const ALPN: &[u8] = b"h2";

const CA_KEY: &str = "ca.key";
const CA_CERTIFICATE: &str = "ca.crt";
/// Largest key or certificate that is read, in bytes. Ours have less than 600.
const MAX_FILE_BYTES: u64 = 8 << 10;
const CA_DAYS: i64 = 3_653;
const SERVER_DAYS: i64 = 365;
const CLIENT_DAYS: i64 = 90;
const LOST_KEY: &str =
    "restore it from a backup; or move the folder away, start again, and pair each device again";
const ED25519_KEY: &str = "move the folder away, start again, and pair each device again";

/// A certificate for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The certificate, in DER.
    pub der: Vec<u8>,
    /// The hash of the device's public key, which identifies it.
    pub key_hash: KeyHash,
    /// When the certificate ends, in microseconds since the Unix epoch.
    pub not_after: i64,
}

/// The certificate authority of a daemon, together with the certificate that the daemon shows.
///
/// One process at a time opens the folder: the one that holds the data directory's lock.
pub struct CertificateAuthority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    fingerprint: Fingerprint,
    certificate: CertificateDer<'static>,
    server: Arc<ServerIdentity>,
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateAuthority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl CertificateAuthority {
    /// Reads the authority from its folder, or makes it at the first start. Renews certificates that are due.
    ///
    /// # Errors
    /// A file cannot be read or written, or `ca.key` is missing or damaged though devices know it, or an Ed25519 key of
    /// an earlier version.
    pub fn load_or_create(dir: &Path, now: i64) -> Result<Self, DevicesError> {
        files::create_private_folder(dir).map_err(DevicesError::io(dir))?;
        let key = load_or_create_key(dir)?;
        let fingerprint = Fingerprint::of_public_key(&key.subject_public_key_info());
        let certificate = load_or_create_certificate(dir, &key, now)?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        let server = ServerIdentity::load_or_create(dir, &issuer, &certificate, now)?;
        Ok(Self { folder: dir.to_owned(), issuer, fingerprint, certificate, server: Arc::new(server) })
    }

    /// Returns the fingerprint by which devices know this daemon. It never changes.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the certificate of the authority, in DER.
    pub fn certificate_der(&self) -> &[u8] {
        &self.certificate
    }

    /// Replaces the daemon's certificate and its key if a third or less of its life is left. New connections use it at
    /// once, also those of a [`ServerConfig`] that was made before. Returns whether it was replaced.
    ///
    /// # Errors
    /// A file cannot be written; the certificate in use stays.
    pub fn renew_if_due(&self, now: i64) -> Result<bool, DevicesError> {
        self.server.renew_if_due(&self.folder, &self.issuer, &self.certificate, now)
    }

    /// Returns when the daemon's certificate ends, in microseconds since the Unix epoch.
    pub fn server_certificate_expires(&self) -> i64 {
        self.server.not_after()
    }

    /// Issues a certificate for the key of a certificate request (PKCS#10, DER) that is signed by this key. It is for
    /// devices only, and valid for 90 days from two days before `now`. The rest of the request is not used.
    ///
    /// # Errors
    /// The request cannot be read, its signature is wrong, or its key is of an unknown kind.
    pub fn issue(&self, csr_der: &[u8], now: i64) -> Result<IssuedCertificate, DevicesError> {
        let key = certificate::public_key_of_request(csr_der)?;
        let key_hash = KeyHash::of_public_key(&key.subject_public_key_info());
        if key_hash.as_bytes() == self.fingerprint.as_bytes() {
            return Err(DevicesError::Request { reason: "its key is the daemon's own".to_owned() });
        }
        let der = parameters(Purpose::Client, now)?.signed_by(&key, &self.issuer)?.der().to_vec();
        let not_after = certificate::read(&der)?.not_after;
        Ok(IssuedCertificate { der, key_hash, not_after })
    }

    /// Returns the TLS settings of the daemon: TLS 1.3 and HTTP/2 only, with a client certificate from this authority
    /// or without one. An unknown or expired certificate ends the handshake. Sessions are never resumed, so that each
    /// connection checks the certificate.
    ///
    /// # Errors
    /// The settings contradict each other; this does not happen with a loaded authority.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, DevicesError> {
        self.server_config_with_clock(Arc::new(DefaultTimeProvider))
    }

    /// The same as [`Self::server_config`], with another clock for the validity of certificates.
    ///
    /// # Errors
    /// As [`Self::server_config`].
    pub fn server_config_with_clock(
        &self,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<Arc<ServerConfig>, DevicesError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .allow_unauthenticated()
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let mut config = ServerConfig::builder_with_details(provider(), clock)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&self.server) as _);
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Arc::new(config))
    }
}

/// Returns the hash of the key in a certificate (DER), by which the registry knows a device. The certificate's signature
/// is not checked: the handshake does this.
///
/// # Errors
/// The bytes are not a certificate.
pub fn key_hash_of(cert_der: &[u8]) -> Result<KeyHash, DevicesError> {
    Ok(KeyHash::of_public_key(&certificate::read(cert_der)?.public_key))
}

/// The cryptography of all connections.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns whether a third or less of a certificate's life is left, or it has not begun.
pub(crate) fn due(not_before: i64, not_after: i64, now: i64) -> bool {
    now < not_before || not_after.saturating_sub(now) <= not_after.saturating_sub(not_before) / 3
}

fn parameters(purpose: Purpose, now: i64) -> Result<CertificateParams, DevicesError> {
    let days = match purpose {
        Purpose::Authority => CA_DAYS,
        Purpose::Server => SERVER_DAYS,
        Purpose::Client => CLIENT_DAYS,
    };
    certificate::parameters(purpose, SERVER_NAME, days, now)
}

fn load_or_create_key(dir: &Path) -> Result<KeyPair, DevicesError> {
    let path = dir.join(CA_KEY);
    let unusable =
        |reason: String, remedy: &'static str| DevicesError::Damaged { path: path.clone(), reason, remedy };
    if let Some(bytes) = files::read_limited(&path, MAX_FILE_BYTES).map_err(DevicesError::io(&path))? {
        let bytes = Zeroizing::new(bytes);
        return certificate::read_key(&bytes).map_err(|error| {
            // A backup of such a key would have the same kind.
            let remedy = if matches!(error, DevicesError::Ed25519Key) { ED25519_KEY } else { LOST_KEY };
            unusable(error.to_string(), remedy)
        });
    }
    // The key is written first: a certificate without a key means that the key was lost.
    if dir.join(CA_CERTIFICATE).exists() {
        return Err(unusable("it is missing, and paired devices know the daemon by it".to_owned(), LOST_KEY));
    }
    let key = certificate::new_key()?;
    files::write_durably(&path, key.serialized_der()).map_err(DevicesError::io(&path))?;
    Ok(key)
}

/// Reads the authority's certificate, or makes it again with the same key: devices notice no difference.
fn load_or_create_certificate(
    dir: &Path,
    key: &KeyPair,
    now: i64,
) -> Result<CertificateDer<'static>, DevicesError> {
    let path = dir.join(CA_CERTIFICATE);
    if let Some(bytes) = files::read_limited(&path, MAX_FILE_BYTES).map_err(DevicesError::io(&path))? {
        let damaged = |reason: String| DevicesError::Damaged { path: path.clone(), reason, remedy: LOST_KEY };
        let facts = certificate::read(&bytes).map_err(|error| damaged(error.to_string()))?;
        if facts.public_key != key.subject_public_key_info() {
            return Err(damaged(format!("it does not belong to {CA_KEY}")));
        }
        if facts.authority && !due(facts.not_before, facts.not_after, now) {
            return Ok(CertificateDer::from(bytes));
        }
    }
    let certificate = parameters(Purpose::Authority, now)?.self_signed(key)?;
    files::write_durably(&path, certificate.der()).map_err(DevicesError::io(&path))?;
    Ok(certificate.into())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
