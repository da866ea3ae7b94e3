//! Derives a key from a passphrase with Argon2id. The parameters are stored in the file, so that they can be raised
//! later.

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::{
    Secret, VaultError,
    ring::{Bytes, Lock},
};

/// 64 MiB and three passes take about 0.3 s here, and make each guess equally expensive.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 1;
const SALT: usize = 16;
/// Upper limits for the parameters in a file: a manipulated file must not use up all memory or run for hours.
const MOST_MEMORY_KIB: u32 = 4 << 20;
const MOST_PASSES: u32 = 64;
const MOST_LANES: u32 = 64;
/// Minimum length of a passphrase, in characters.
const FEWEST_LETTERS: usize = 8;

/// The parameters of the key derivation.
pub(super) struct Recipe<'a> {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
    pub(super) lanes: u32,
    pub(super) salt: &'a [u8],
}

impl Recipe<'_> {
    pub(super) fn key(&self, passphrase: &Secret) -> Result<Zeroizing<[u8; 32]>, VaultError> {
        let Self { memory_kib, passes, lanes, salt } = *self;
        if memory_kib > MOST_MEMORY_KIB || passes > MOST_PASSES || lanes > MOST_LANES {
            return Err(VaultError::Recipe {
                problem: "it asks for more than this program gives".to_owned(),
            });
        }
        let wrong = |error: argon2::Error| VaultError::Recipe { problem: error.to_string() };
        let mut key = Zeroizing::new([0; 32]);
        let params = Params::new(memory_kib, passes, lanes, Some(key.len())).map_err(wrong)?;
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon.hash_password_into(passphrase.expose().as_bytes(), salt, key.as_mut_slice()).map_err(wrong)?;
        Ok(key)
    }
}

/// Creates a lock: `wrap` wraps the data key with the key derived from the passphrase.
pub(super) fn lock(
    passphrase: &Secret,
    wrap: impl FnOnce(&[u8; 32]) -> Result<Bytes, VaultError>,
) -> Result<Lock, VaultError> {
    if passphrase.expose().chars().count() < FEWEST_LETTERS {
        return Err(VaultError::TooShort { fewest: FEWEST_LETTERS });
    }
    let mut salt = vec![0; SALT];
    getrandom::fill(&mut salt).map_err(|error| VaultError::Random { source: error.into() })?;
    let recipe = Recipe { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt: &salt };
    let wrapped = wrap(&*recipe.key(passphrase)?)?;
    Ok(Lock::Passphrase { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt: Bytes(salt), wrapped })
}
