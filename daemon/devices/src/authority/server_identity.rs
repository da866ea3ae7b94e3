//! The key and certificate that the daemon shows, replaced while connections go on.

use std::{
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use rcgen::{Issuer, KeyPair, PublicKeyData as _};
use rustls::{
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use zeroize::Zeroizing;

use super::{MAX_FILE_BYTES, due, parameters, provider};
use crate::{
    certificate::{self, CertificateFacts, Purpose},
    error::DevicesError,
    files,
};

const KEY: &str = "server.key";
const CERTIFICATE: &str = "server.crt";

/// The identity of the daemon in TLS.
#[derive(Debug)]
pub(super) struct ServerIdentity {
    /// Guards the identity in use; a renewal replaces it whole.
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    chain_and_key: Arc<CertifiedKey>,
    not_before: i64,
    not_after: i64,
}

impl ServerIdentity {
    /// Reads the identity. Makes a new one if it is due, unreadable, or not signed by this authority: it is of no value,
    /// since devices know the authority and not this key.
    pub(super) fn load_or_create(
        dir: &Path,
        issuer: &Issuer<'static, KeyPair>,
        authority: &CertificateDer<'static>,
        now: i64,
    ) -> Result<Self, DevicesError> {
        let current = match load(dir, authority)? {
            Some(current) if !due(current.not_before, current.not_after, now) => current,
            _ => create(dir, issuer, authority, now)?,
        };
        Ok(Self { current: RwLock::new(current) })
    }

    pub(super) fn renew_if_due(
        &self,
        dir: &Path,
        issuer: &Issuer<'static, KeyPair>,
        authority: &CertificateDer<'static>,
        now: i64,
    ) -> Result<bool, DevicesError> {
        // Held while files are written, so that two renewals do not mix their files. This happens once in eight months.
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if !due(current.not_before, current.not_after, now) {
            return Ok(false);
        }
        *current = create(dir, issuer, authority, now)?;
        Ok(true)
    }

    pub(super) fn not_after(&self) -> i64 {
        self.current.read().unwrap_or_else(PoisonError::into_inner).not_after
    }
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current.chain_and_key))
    }
}

fn load(dir: &Path, authority: &CertificateDer<'static>) -> Result<Option<Current>, DevicesError> {
    let read = |name: &str| {
        let path = dir.join(name);
        files::read_limited(&path, MAX_FILE_BYTES).map_err(DevicesError::io(&path))
    };
    let (Some(key), Some(der)) = (read(KEY)?.map(Zeroizing::new), read(CERTIFICATE)?) else {
        return Ok(None);
    };
    let Ok(key) = certificate::read_key(&key) else { return Ok(None) };
    let Ok(facts) = certificate::read(&der) else { return Ok(None) };
    let ours = certificate::signed_by(&der, authority).unwrap_or(false);
    if !ours || facts.public_key != key.subject_public_key_info() {
        return Ok(None);
    }
    Ok(Some(current(&key, der.into(), authority, &facts)?))
}

/// Makes a new key and certificate. A crash between the two files leaves a pair that does not fit, which [`load`]
/// ignores.
fn create(
    dir: &Path,
    issuer: &Issuer<'static, KeyPair>,
    authority: &CertificateDer<'static>,
    now: i64,
) -> Result<Current, DevicesError> {
    let key = certificate::new_key()?;
    let der: CertificateDer<'static> = parameters(Purpose::Server, now)?.signed_by(&key, issuer)?.into();
    for (name, bytes) in [(KEY, key.serialized_der()), (CERTIFICATE, &der)] {
        let path = dir.join(name);
        files::write_durably(&path, bytes).map_err(DevicesError::io(&path))?;
    }
    let facts = certificate::read(&der)?;
    current(&key, der, authority, &facts)
}

/// The chain has the authority's certificate as well, since a device that is being paired does not have it yet.
fn current(
    key: &KeyPair,
    der: CertificateDer<'static>,
    authority: &CertificateDer<'static>,
    facts: &CertificateFacts,
) -> Result<Current, DevicesError> {
    let key = PrivatePkcs8KeyDer::from(key.serialized_der().to_vec());
    let chain_and_key = CertifiedKey::from_der(vec![der, authority.clone()], key.into(), &provider())?;
    Ok(Current {
        chain_and_key: Arc::new(chain_and_key),
        not_before: facts.not_before,
        not_after: facts.not_after,
    })
}
