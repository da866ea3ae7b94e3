//! The credentials with which a device reaches a daemon: its key, its certificate, and the daemon's authority.

mod handshake_error;
mod pairing_verifier;
mod stored;

use std::{fmt, path::Path, sync::Arc};

use rcgen::{CertificateParams, DistinguishedName, PublicKeyData as _};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName},
    time_provider::{DefaultTimeProvider, TimeProvider},
    version::TLS13,
};
use zeroize::Zeroizing;

pub use handshake_error::HandshakeError;

use crate::{
    authority::{ALPN, SERVER_NAME, provider},
    certificate,
    error::DevicesError,
    identity::{DeviceId, Fingerprint, FingerprintPrefix, KeyHash},
    policy::Selection,
};
use pairing_verifier::PairingVerifier;

/// The key of a device. `Debug` does not show it; it is wiped from memory.
#[derive(Clone)]
pub struct ClientKey(Zeroizing<Vec<u8>>);

impl ClientKey {
    /// Makes a certificate request (PKCS#10, DER) for this key, to pair or to renew the certificate. It contains nothing
    /// but the key.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn certificate_request(&self) -> Result<Vec<u8>, DevicesError> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        Ok(parameters.serialize_request(&certificate::read_key(&self.0)?)?.der().to_vec())
    }

    /// Returns the hash of its public key, by which the daemon knows this device.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn key_hash(&self) -> Result<KeyHash, DevicesError> {
        Ok(KeyHash::of_public_key(&certificate::read_key(&self.0)?.subject_public_key_info()))
    }

    fn from_pkcs8(der: Zeroizing<Vec<u8>>) -> Result<Self, DevicesError> {
        certificate::read_key(&der)?;
        Ok(Self(der))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey(..)")
    }
}

/// Makes the key of a device, and the certificate request (DER) that it sends to the daemon.
///
/// # Errors
/// There are no random numbers.
pub fn generate_key_and_csr() -> Result<(ClientKey, Vec<u8>), DevicesError> {
    let mut pair = certificate::new_key()?;
    let key = ClientKey(Zeroizing::new(pair.serialized_der().to_vec()));
    zeroize::Zeroize::zeroize(&mut pair);
    let request = key.certificate_request()?;
    Ok((key, request))
}

/// The credentials of this device for one daemon.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// How the person calls the daemon. It is also the name of the file.
    pub name: String,
    /// Where the daemon may be reached, as `host:port`, the likeliest first.
    pub addresses: Vec<String>,
    /// The certificate of the daemon's authority, in DER.
    pub authority: Vec<u8>,
    /// The certificate of this device, in DER.
    pub certificate: Vec<u8>,
    /// The key of this device.
    pub key: ClientKey,
    /// What the daemon gets of the store of this one, if the two are peers. It is in the same file, so that it cannot be lost alone.
    pub selection: Selection,
}

impl Credentials {
    /// Makes credentials of the results of pairing, and checks that they fit together.
    ///
    /// # Errors
    /// The name cannot be used, a certificate cannot be read, the authority did not sign the certificate, or the
    /// certificate is of another key.
    pub fn new(
        name: &str,
        addresses: Vec<String>,
        authority: Vec<u8>,
        certificate: Vec<u8>,
        key: ClientKey,
    ) -> Result<Self, DevicesError> {
        stored::check_name(name)?;
        let (name, selection) = (name.to_owned(), Selection::default());
        let credentials = Self { name, addresses, authority, certificate, key, selection };
        credentials.check()?;
        Ok(credentials)
    }

    /// Checks a name before pairing uses up a code for it.
    ///
    /// # Errors
    /// The name cannot be the name of a file.
    pub fn check_name(name: &str) -> Result<(), DevicesError> {
        stored::check_name(name)
    }

    /// Writes them to `servers/<name>.json` in `dir`, with mode 0600. Replaces others of this name. Durable when this
    /// returns.
    ///
    /// # Errors
    /// They do not fit together, or the file cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), DevicesError> {
        stored::check_name(&self.name)?;
        self.check()?;
        stored::save(self, dir)
    }

    /// Reads the credentials of this name.
    ///
    /// # Errors
    /// There are none, or the file cannot be read or is damaged.
    pub fn load(dir: &Path, name: &str) -> Result<Self, DevicesError> {
        stored::load(dir, name)
    }

    /// Returns the names of all credentials, in order.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(dir: &Path) -> Result<Vec<String>, DevicesError> {
        stored::list(dir)
    }

    /// Removes the credentials of this name. The daemon goes on to know the device until it is revoked there.
    ///
    /// # Errors
    /// There are none, or the file cannot be removed.
    pub fn remove(dir: &Path, name: &str) -> Result<(), DevicesError> {
        stored::remove(dir, name)
    }

    /// Returns the fingerprint of the daemon.
    ///
    /// # Errors
    /// The certificate of the authority cannot be read.
    pub fn fingerprint(&self) -> Result<Fingerprint, DevicesError> {
        Ok(Fingerprint::of_public_key(&certificate::read(&self.authority)?.public_key))
    }

    /// Returns the id under which the daemon lists this device.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn device_id(&self) -> Result<DeviceId, DevicesError> {
        Ok(DeviceId::of(&self.key.key_hash()?))
    }

    /// Returns when the certificate of this device ends, in microseconds since the Unix epoch.
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn expires_at(&self) -> Result<i64, DevicesError> {
        Ok(certificate::read(&self.certificate)?.not_after)
    }

    /// Returns whether a third or less of the certificate's life is left, so that it should be renewed.
    ///
    /// # Errors
    /// The certificate cannot be read.
    pub fn renewal_due(&self, now: i64) -> Result<bool, DevicesError> {
        let facts = certificate::read(&self.certificate)?;
        Ok(crate::authority::due(facts.not_before, facts.not_after, now))
    }

    /// Returns the TLS settings for calls: TLS 1.3 and HTTP/2 only, no certificates but those of this daemon's
    /// authority, and the certificate of this device. Connect with [`server_name`].
    ///
    /// # Errors
    /// A certificate or the key cannot be read.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, DevicesError> {
        self.client_config_with_clock(Arc::new(DefaultTimeProvider))
    }

    /// The same as [`Self::client_config`], with another clock for the validity of certificates.
    ///
    /// # Errors
    /// As [`Self::client_config`].
    pub fn client_config_with_clock(
        &self,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<Arc<ClientConfig>, DevicesError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.authority.as_slice()))?;
        let key = PrivatePkcs8KeyDer::from(self.key.0.to_vec());
        let config = ClientConfig::builder_with_details(provider(), clock)
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![CertificateDer::from(self.certificate.clone())], key.into())?;
        Ok(Arc::new(with_our_protocol(config)))
    }

    fn check(&self) -> Result<(), DevicesError> {
        let authority = certificate::read(&self.authority)?;
        let facts = certificate::read(&self.certificate)?;
        if !authority.authority || !certificate::signed_by(&self.certificate, &self.authority)? {
            return Err(DevicesError::certificate("the daemon's authority did not sign it"));
        }
        if KeyHash::of_public_key(&facts.public_key) != self.key.key_hash()? {
            return Err(DevicesError::certificate("it belongs to another key"));
        }
        Ok(())
    }
}

/// The TLS settings with which a new device calls a daemon that it knows only by a pairing code.
#[derive(Clone, Debug)]
pub struct PairingConfig {
    /// TLS 1.3 and HTTP/2 only, without a client certificate. Connect with [`server_name`].
    pub tls: Arc<ClientConfig>,
    verifier: Arc<PairingVerifier>,
}

impl PairingConfig {
    /// Returns the certificate of the authority that the daemon has shown and whose fingerprint fits, in DER; `None`
    /// before a handshake has succeeded this far. Store it in [`Credentials`].
    pub fn authority(&self) -> Option<Vec<u8>> {
        self.verifier.authority().map(|certificate| certificate.to_vec())
    }
}

/// Returns settings for pairing. During the handshake, before anything is sent to the daemon that it could use, the key
/// of the authority in its chain is compared with `expected`, and its certificate is checked against this authority.
///
/// # Errors
/// TLS cannot be set up.
pub fn pairing_config(expected: &FingerprintPrefix) -> Result<PairingConfig, DevicesError> {
    pairing_config_with_clock(expected, Arc::new(DefaultTimeProvider))
}

/// The same as [`pairing_config`], with another clock for the validity of certificates.
///
/// # Errors
/// As [`pairing_config`].
pub fn pairing_config_with_clock(
    expected: &FingerprintPrefix,
    clock: Arc<dyn TimeProvider>,
) -> Result<PairingConfig, DevicesError> {
    let verifier = Arc::new(PairingVerifier::new(*expected));
    let config = ClientConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
        .with_no_client_auth();
    Ok(PairingConfig { tls: Arc::new(with_our_protocol(config)), verifier })
}

/// Returns the name for which to connect, whatever the address is.
///
/// # Errors
/// None: the name is fixed.
pub fn server_name() -> Result<ServerName<'static>, DevicesError> {
    ServerName::try_from(SERVER_NAME).map_err(DevicesError::certificate)
}

fn with_our_protocol(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
