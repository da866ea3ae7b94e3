//! A cache entry: the code of one component for one engine, bound to both by a MAC.
//!
//! Layout: magic (8 bytes), MAC (32 bytes), length of the name (u16, little-endian), name, code. The MAC covers the
//! identity and everything that follows the MAC.

use std::hash::{Hash, Hasher};

use satchel_pam::hash::Sha256Digest;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use super::key::MacKey;

const MAGIC: &[u8; 8] = b"SATCODE1";
const MAC_BYTES: usize = 32;

/// The component and the engine for which code was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeIdentity {
    component: [u8; 32],
    engine: [u8; 32],
}

/// An entry of wasmtime's cache: the compiled code and the name under which wasmtime looks it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledCode {
    /// A path relative to the folder of wasmtime's cache.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl CodeIdentity {
    pub(crate) fn of(engine: &Engine, component: &[u8]) -> Self {
        // Covers the version of wasmtime, its settings and the features of the processor.
        let mut hasher = StableHasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self { component: Sha256::digest(component).into(), engine: hasher.0.finalize().into() }
    }

    /// Returns a file name for this identity.
    pub(crate) fn to_hex(&self) -> String {
        let both = Sha256::new().chain_update(self.component).chain_update(self.engine).finalize();
        Sha256Digest::from_bytes(both.into()).to_hex()
    }
}

/// A hasher that gives the same hash in every process, unlike the hashers of the standard library.
struct StableHasher(Sha256);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash: [u8; 32] = self.0.clone().finalize().into();
        hash.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    }
}

/// Returns the bytes of a sealed entry.
pub(super) fn seal(key: &MacKey, identity: &CodeIdentity, code: &CompiledCode) -> Vec<u8> {
    let name = code.name.as_bytes();
    // Names from wasmtime have about eighty bytes. A name too long for a u16 would give an entry that cannot be used.
    let length = u16::try_from(name.len()).unwrap_or(0).to_le_bytes();
    let rest = [&length, name, code.bytes.as_slice()].concat();
    [MAGIC, mac(key, identity, &rest).as_bytes().as_slice(), &rest].concat()
}

/// Opens a sealed entry. Returns `None` unless every bit is as [`seal`] wrote it under this key for this identity.
pub(super) fn open(key: &MacKey, identity: &CodeIdentity, sealed: &[u8]) -> Option<CompiledCode> {
    let (found, rest) = sealed.strip_prefix(MAGIC)?.split_first_chunk::<MAC_BYTES>()?;
    // This comparison takes constant time.
    if mac(key, identity, rest) != *found {
        return None;
    }
    let (length, rest) = rest.split_first_chunk()?;
    let (name, code) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some(CompiledCode { name: String::from_utf8(name.to_vec()).ok()?, bytes: code.to_vec() })
}

fn mac(key: &MacKey, identity: &CodeIdentity, rest: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key.bytes());
    hasher.update(&identity.component).update(&identity.engine).update(rest);
    hasher.finalize()
}
