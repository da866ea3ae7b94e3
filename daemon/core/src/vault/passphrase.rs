//! Derives a key from a passphrase with Argon2id. The parameters are stored in the file, so that they can be raised
//! later.

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::{
    Secret, VaultError,
    keyring::{Base64Bytes, WrappedKey},
};

/// 64 MiB and three passes take about 0.3 s here, and make each guess equally expensive.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 1;
const SALT: usize = 16;
/// Upper limits for the parameters in a file: a manipulated file must not use up all memory or run for hours.
const MAX_MEMORY_KIB: u32 = 4 << 20;
const MAX_PASSES: u32 = 64;
const MAX_LANES: u32 = 64;
/// Minimum length of a passphrase, in characters.
const MIN_CHARACTERS: usize = 8;

/// The parameters of the key derivation.
pub(super) struct Argon2Params<'a> {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
    pub(super) lanes: u32,
    pub(super) salt: &'a [u8],
}

impl Argon2Params<'_> {
    pub(super) fn key(&self, passphrase: &Secret) -> Result<Zeroizing<[u8; 32]>, VaultError> {
        let Self { memory_kib, passes, lanes, salt } = *self;
        if memory_kib > MAX_MEMORY_KIB || passes > MAX_PASSES || lanes > MAX_LANES {
            return Err(VaultError::BadParameters {
                problem: "they exceed the limits of this program".to_owned(),
            });
        }
        let wrong = |error: argon2::Error| VaultError::BadParameters { problem: error.to_string() };
        let mut key = Zeroizing::new([0; 32]);
        let argon_params = Params::new(memory_kib, passes, lanes, Some(key.len())).map_err(wrong)?;
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, argon_params);
        argon.hash_password_into(passphrase.expose().as_bytes(), salt, key.as_mut_slice()).map_err(wrong)?;
        Ok(key)
    }
}

/// Wraps the data key for a passphrase: `wrap` wraps the data key with the key derived from the passphrase.
pub(super) fn wrap_key(
    passphrase: &Secret,
    wrap: impl FnOnce(&[u8; 32]) -> Result<Base64Bytes, VaultError>,
) -> Result<WrappedKey, VaultError> {
    if passphrase.expose().chars().count() < MIN_CHARACTERS {
        return Err(VaultError::TooShort { min: MIN_CHARACTERS });
    }
    let mut salt = vec![0; SALT];
    getrandom::fill(&mut salt).map_err(|error| VaultError::Random { source: error.into() })?;
    let params = Argon2Params { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt: &salt };
    let wrapped = wrap(&*params.key(passphrase)?)?;
    Ok(WrappedKey::Passphrase {
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        lanes: LANES,
        salt: Base64Bytes(salt),
        wrapped,
    })
}
