//! The cipher of an encrypted store: what it seals opens only with the data key, and only in the place that it was sealed for.
//!
//! XChaCha20-Poly1305 with random nonces of 24 bytes, so that no counter has to outlive a power loss. Each use has a key of its own,
//! derived from the data key, so that a value cannot pass for a frame.

use std::{cell::RefCell, fmt, io, sync::Arc};

use chacha20poly1305::{AeadInOut, KeyInit, Tag, XChaCha20Poly1305, XNonce, aead::inout::InOutBuf};
use zeroize::Zeroizing;

use crate::keys::{self, Id16};

/// Bytes of the nonce before the ciphertext.
pub(crate) const NONCE: usize = 24;
/// Bytes of the tag after it.
const TAG: usize = 16;
/// What sealing adds.
pub(crate) const OVERHEAD: usize = NONCE + TAG;
/// The number of the data key in headers and envelopes; 0 is none.
pub(crate) const KEY_ID: u16 = 1;

/// The key under which all of a store is sealed.
#[derive(Clone)]
pub struct DataKey(Zeroizing<[u8; DataKey::BYTES]>);

impl DataKey {
    /// Its length.
    pub const BYTES: usize = 32;

    /// Makes a new one.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn random() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; Self::BYTES]);
        getrandom::fill(key.as_mut_slice())?;
        Ok(Self(key))
    }

    /// Takes the bytes of one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// Returns the bytes, to be wrapped.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Seals the key itself with another key; `place` says what for.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn wrap(&self, with: &[u8; Self::BYTES], place: &[u8]) -> io::Result<Vec<u8>> {
        Cipher::new(with).seal(place, self.0.as_slice())
    }

    /// Opens a wrapped key; `None` if it was wrapped with another key, or for something else.
    #[must_use]
    pub fn unwrap(wrapped: &[u8], with: &[u8; Self::BYTES], place: &[u8]) -> Option<Self> {
        let bytes = Zeroizing::new(Cipher::new(with).open(place, wrapped.to_vec())?);
        Some(Self::from_bytes(bytes.as_slice().try_into().ok()?))
    }

    /// Returns a key of one use.
    fn subkey(&self, context: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, self.0.as_slice()))
    }
}

/// No byte of it.
impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(…)")
    }
}

/// What a store seals with. Clones share it.
#[derive(Clone)]
pub struct Seal(Arc<Ciphers>);

struct Ciphers {
    frames: Cipher,
    values: Cipher,
    blobs: Cipher,
    names: Zeroizing<[u8; 32]>,
    blob_names: Zeroizing<[u8; 32]>,
}

impl Seal {
    /// Seals with keys derived from `key`.
    #[must_use]
    pub fn new(key: &DataKey) -> Self {
        Self(Arc::new(Ciphers {
            frames: Cipher::new(&key.subkey("satchel store v1: frames of the journal")),
            values: Cipher::new(&key.subkey("satchel store v1: values of the database")),
            blobs: Cipher::new(&key.subkey("satchel store v1: attachments")),
            names: key.subkey("satchel store v1: names in keys of the database"),
            blob_names: key.subkey("satchel store v1: names of attachments"),
        }))
    }

    pub(crate) fn frames(&self) -> &Cipher {
        &self.0.frames
    }

    pub(crate) fn values(&self) -> &Cipher {
        &self.0.values
    }

    pub(crate) fn blobs(&self) -> &Cipher {
        &self.0.blobs
    }

    /// Returns what stands in a key of the database for a name.
    pub(crate) fn blind(&self, name: &str) -> Id16 {
        keys::blind(self.0.names.as_slice(), name)
    }

    /// Returns the name of the file of an attachment: its hash would tell who has the same file.
    pub(crate) fn blob_name(&self, sha256: &[u8; 32]) -> [u8; 32] {
        *blake3::keyed_hash(&self.0.blob_names, sha256).as_bytes()
    }
}

/// No byte of it.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// One key and how it is used: nonce 24, ciphertext, tag 16. It wipes itself.
pub(crate) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Seals the bytes of `buffer` after `at` and the room of a nonce there; the tag is appended.
    pub(crate) fn seal_tail(&self, place: &[u8], buffer: &mut Vec<u8>, at: usize) -> io::Result<()> {
        let (nonce, plain) = buffer[at..].split_at_mut(NONCE);
        fill_nonce(nonce)?;
        let nonce = nonce_of(nonce)?;
        let too_long = |_| io::Error::other("a value is too long to be sealed");
        let tag = self.0.encrypt_inout_detached(&nonce, place, InOutBuf::from(plain)).map_err(too_long)?;
        buffer.extend_from_slice(&tag);
        Ok(())
    }

    /// Returns `plain` sealed for `place`.
    pub(crate) fn seal(&self, place: &[u8], plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        sealed.resize(NONCE, 0);
        sealed.extend_from_slice(plain);
        self.seal_tail(place, &mut sealed, 0)?;
        Ok(sealed)
    }

    /// Opens what was sealed for `place` in the same room; `None` if it was not, or is not what was sealed.
    pub(crate) fn open(&self, place: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let length = self.open_in_place(place, &mut sealed)?.len();
        sealed.truncate(NONCE + length);
        sealed.drain(..NONCE);
        Some(sealed)
    }

    /// As [`Cipher::open`], where the bytes lie.
    pub(crate) fn open_in_place<'a>(&self, place: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (nonce, rest) = sealed.split_at_mut_checked(NONCE)?;
        let (plain, tag) = rest.split_at_mut_checked(rest.len().checked_sub(TAG)?)?;
        let tag = Tag::try_from(&*tag).ok()?;
        let nonce = nonce_of(nonce).ok()?;
        self.0.decrypt_inout_detached(&nonce, place, InOutBuf::from(&mut *plain), &tag).ok()?;
        Some(plain)
    }
}

/// Nonces that are fetched at once: a call to the system for each of an import's many small values costs as much as sealing them.
const NONCES_AHEAD: usize = 128;

thread_local! {
    /// Random bytes that no nonce was made of yet.
    static RANDOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn fill_nonce(nonce: &mut [u8]) -> io::Result<()> {
    RANDOM.with_borrow_mut(|random| {
        if random.len() < NONCE {
            random.resize(NONCE * NONCES_AHEAD, 0);
            // What is not filled must not be used.
            if let Err(error) = getrandom::fill(random) {
                random.clear();
                return Err(error.into());
            }
        }
        nonce.copy_from_slice(&random.split_off(random.len() - NONCE));
        Ok(())
    })
}

fn nonce_of(bytes: &[u8]) -> io::Result<XNonce> {
    XNonce::try_from(bytes).map_err(|_| io::Error::other("a nonce has 24 bytes"))
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
        fn what_is_sealed_opens_in_its_place_only(plain in prop::collection::vec(any::<u8>(), 0..300), place in any::<[u8; 9]>(), other in any::<[u8; 9]>()) {
            let (ours, theirs) = (seal(1), seal(2));
            let sealed = ours.values().seal(&place, &plain).expect("there is randomness");
            prop_assert_eq!(sealed.len(), plain.len() + OVERHEAD);
            prop_assert_eq!(ours.values().open(&place, sealed.clone()), Some(plain));
            prop_assert_eq!(theirs.values().open(&place, sealed.clone()), None);
            prop_assert_eq!(ours.frames().open(&place, sealed.clone()), None, "another use");
            prop_assert!(other == place || ours.values().open(&other, sealed).is_none());
        }

        #[test]
        fn a_changed_byte_is_seen(plain in prop::collection::vec(any::<u8>(), 0..60), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let mut sealed = seal(1).blobs().seal(b"here", &plain).expect("there is randomness");
            let at = at.index(sealed.len());
            sealed[at] ^= flip;
            prop_assert_eq!(seal(1).blobs().open(b"here", sealed), None);
        }

        #[test]
        fn what_is_too_short_does_not_open(bytes in prop::collection::vec(any::<u8>(), 0..OVERHEAD)) {
            prop_assert_eq!(seal(1).values().open(b"", bytes), None);
        }
    }

    #[test]
    fn equal_bytes_are_sealed_differently_each_time() {
        let seal = seal(1);
        let once = || seal.values().seal(b"key", b"tea").expect("there is randomness");
        assert_ne!(once(), once());
    }

    #[test]
    fn no_nonce_comes_twice() {
        let seal = seal(1);
        let nonces = (0..3 * NONCES_AHEAD).map(|_| {
            let sealed = seal.values().seal(b"key", b"tea").expect("there is randomness");
            sealed[..NONCE].to_vec()
        });
        let distinct: std::collections::BTreeSet<Vec<u8>> = nonces.collect();
        assert_eq!(distinct.len(), 3 * NONCES_AHEAD);
        assert!(!distinct.contains(&vec![0; NONCE]));
    }

    #[test]
    fn names_depend_on_the_key() {
        assert_eq!(seal(1).blind("tea"), seal(1).blind("tea"));
        assert_ne!(seal(1).blind("tea"), seal(2).blind("tea"));
        assert_ne!(seal(1).blob_name(&[7; 32]), seal(2).blob_name(&[7; 32]));
        assert_ne!(seal(1).blob_name(&[7; 32]), [7; 32]);
    }

    #[test]
    fn keys_are_not_shown() {
        let key = DataKey::from_bytes(&[0xab; 32]);
        assert_eq!(format!("{key:?} {:?}", Seal::new(&key)), "DataKey(…) Seal(…)");
    }
}
