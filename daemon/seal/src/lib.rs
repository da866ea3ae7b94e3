//! The cipher of an encrypted store. Sealed data can be opened only with the data key and only in the place that it was
//! sealed for.
//!
//! Each use has its own key, derived from the data key, so that a value cannot be passed off as a frame.

mod cipher;
mod packed_map;
mod scratch;

pub use cipher::{Cipher, NONCE, OVERHEAD};
pub use packed_map::{PackedKey, PackedMap, PackedMapError};

use std::{fmt, io, sync::Arc};

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// The number of the data key in headers and envelopes; 0 means no key.
pub const KEY_ID: u16 = 1;

/// Length in bytes of the salt that gives each file of the search index a key of its own.
pub const SALT: usize = 32;

/// Returns the bytes that replace a name in a database key, so that the name cannot be read there when values are
/// sealed. `key` is empty while values are stored in plain.
#[must_use]
pub fn blind(key: &[u8], name: &str) -> [u8; 16] {
    let hasher = Sha256::new().chain_update(b"satchel blind\0").chain_update(key).chain_update(b"\0");
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.chain_update(name).finalize()[..16]);
    first
}

/// The key under which an entire store is sealed.
#[derive(Clone)]
pub struct DataKey(Zeroizing<[u8; DataKey::BYTES]>);

impl DataKey {
    /// The length in bytes.
    pub const BYTES: usize = 32;

    /// Creates a random key.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn random() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; Self::BYTES]);
        getrandom::fill(key.as_mut_slice())?;
        Ok(Self(key))
    }

    /// Creates a key from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// Returns the bytes of the key, for wrapping.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Seals this key with another key; `place` states the purpose.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn wrap(&self, with: &[u8; Self::BYTES], place: &[u8]) -> io::Result<Vec<u8>> {
        Cipher::new(with).seal(place, self.0.as_slice())
    }

    /// Opens a wrapped key. Returns `None` if it was wrapped with another key or for another purpose.
    #[must_use]
    pub fn unwrap(wrapped: &[u8], with: &[u8; Self::BYTES], place: &[u8]) -> Option<Self> {
        let bytes = Zeroizing::new(Cipher::new(with).open(place, wrapped.to_vec())?);
        Some(Self::from_bytes(bytes.as_slice().try_into().ok()?))
    }

    /// Returns the key for one use.
    fn subkey(&self, context: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, self.0.as_slice()))
    }
}

/// Shows no byte of the key.
impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(…)")
    }
}

/// The ciphers and keys that a store seals with. Clones share them.
#[derive(Clone)]
pub struct Seal(Arc<Ciphers>);

struct Ciphers {
    frames: Cipher,
    values: Cipher,
    blobs: Cipher,
    uploads: Cipher,
    names: Zeroizing<[u8; 32]>,
    blob_names: Zeroizing<[u8; 32]>,
    index_files: Zeroizing<[u8; 32]>,
}

impl Seal {
    /// Derives all keys from `key`.
    #[must_use]
    pub fn new(key: &DataKey) -> Self {
        Self(Arc::new(Ciphers {
            frames: Cipher::new(&key.subkey("satchel store v1: frames of the journal")),
            values: Cipher::new(&key.subkey("satchel store v1: values of the database")),
            blobs: Cipher::new(&key.subkey("satchel store v1: attachments")),
            uploads: Cipher::new(&key.subkey("satchel store v1: uploads")),
            names: key.subkey("satchel store v1: names in keys of the database"),
            blob_names: key.subkey("satchel store v1: names of attachments"),
            index_files: key.subkey("satchel store v1: files of the search index"),
        }))
    }

    pub fn frames(&self) -> &Cipher {
        &self.0.frames
    }

    pub fn values(&self) -> &Cipher {
        &self.0.values
    }

    pub fn blobs(&self) -> &Cipher {
        &self.0.blobs
    }

    /// Returns the cipher of files that are being uploaded.
    pub fn uploads(&self) -> &Cipher {
        &self.0.uploads
    }

    /// Returns the bytes that replace a name in a key of the database.
    pub fn blind(&self, name: &str) -> [u8; 16] {
        blind(self.0.names.as_slice(), name)
    }

    /// Returns the file name of an attachment. The plain hash would reveal who has the same file.
    pub fn blob_name(&self, sha256: &[u8; 32]) -> [u8; 32] {
        *blake3::keyed_hash(&self.0.blob_names, sha256).as_bytes()
    }

    /// Returns the cipher of the file of the search index that has this salt.
    #[must_use]
    pub fn index_file(&self, salt: &[u8; SALT]) -> Cipher {
        let key = Zeroizing::new(*blake3::keyed_hash(&self.0.index_files, salt).as_bytes());
        Cipher::new(&key)
    }

    /// Returns a random salt for a new file of the search index, and the cipher that belongs to it.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn new_index_file(&self) -> io::Result<([u8; SALT], Cipher)> {
        let mut salt = [0; SALT];
        getrandom::fill(&mut salt)?;
        Ok((salt, self.index_file(&salt)))
    }
}

/// Shows no byte of the keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seal(byte: u8) -> Seal {
        Seal::new(&DataKey::from_bytes(&[byte; 32]))
    }

    proptest! {
        #[test]
        fn sealed_bytes_open_only_at_their_place(plain in prop::collection::vec(any::<u8>(), 0..300), place in any::<[u8; 9]>(), other in any::<[u8; 9]>()) {
            let (ours, theirs) = (seal(1), seal(2));
            let sealed = ours.values().seal(&place, &plain).expect("there is randomness");
            prop_assert_eq!(sealed.len(), plain.len() + OVERHEAD);
            prop_assert_eq!(ours.values().open(&place, sealed.clone()), Some(plain));
            prop_assert_eq!(theirs.values().open(&place, sealed.clone()), None);
            prop_assert_eq!(ours.frames().open(&place, sealed.clone()), None, "another use");
            prop_assert!(other == place || ours.values().open(&other, sealed).is_none());
        }

        #[test]
        fn a_changed_byte_is_detected(plain in prop::collection::vec(any::<u8>(), 0..60), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let mut sealed = seal(1).blobs().seal(b"here", &plain).expect("there is randomness");
            let at = at.index(sealed.len());
            sealed[at] ^= flip;
            prop_assert_eq!(seal(1).blobs().open(b"here", sealed), None);
        }

        #[test]
        fn bytes_that_are_too_short_do_not_open(bytes in prop::collection::vec(any::<u8>(), 0..OVERHEAD)) {
            prop_assert_eq!(seal(1).values().open(b"", bytes), None);
        }
    }

    #[test]
    fn equal_bytes_are_sealed_differently_every_time() {
        let seal = seal(1);
        let once = || seal.values().seal(b"key", b"tea").expect("there is randomness");
        assert_ne!(once(), once());
    }

    #[test]
    fn names_depend_on_the_key() {
        assert_eq!(seal(1).blind("tea"), seal(1).blind("tea"));
        assert_ne!(seal(1).blind("tea"), seal(2).blind("tea"));
        assert_ne!(seal(1).blob_name(&[7; 32]), seal(2).blob_name(&[7; 32]));
        assert_ne!(seal(1).blob_name(&[7; 32]), [7; 32]);
    }

    #[test]
    fn each_file_of_the_index_has_its_own_key() {
        let ((salt, first), (other, second)) =
            (seal(1).new_index_file().expect("randomness"), seal(1).new_index_file().expect("randomness"));
        assert_ne!(salt, other);
        let sealed = first.seal(b"block", b"tea").expect("there is randomness");
        assert_eq!(seal(1).index_file(&salt).open(b"block", sealed.clone()), Some(b"tea".to_vec()));
        assert_eq!(second.open(b"block", sealed.clone()), None, "another file");
        assert_eq!(seal(2).index_file(&salt).open(b"block", sealed), None, "another data key");
    }

    #[test]
    fn keys_are_not_shown() {
        let key = DataKey::from_bytes(&[0xab; 32]);
        assert_eq!(format!("{key:?} {:?}", Seal::new(&key)), "DataKey(…) Seal(…)");
    }
}
