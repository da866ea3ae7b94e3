//! XChaCha20-Poly1305 with random nonces of 24 bytes, so that no counter has to survive a power loss.
//!
//! XChaCha20-Poly1305 is ChaCha20-Poly1305 under a key that `HChaCha20` derives from the key and the first 16 bytes of
//! the nonce. Most values that an import seals and opens have a few hundred bytes; for these the setup before the first
//! byte costs more than the bytes themselves.

use std::{cell::RefCell, io};

use chacha20::{R20, hchacha};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Bytes of the nonce before the ciphertext.
pub const NONCE: usize = 24;
/// Bytes of the tag after the ciphertext.
const TAG: usize = 16;
/// Bytes that sealing adds.
pub const OVERHEAD: usize = NONCE + TAG;
/// Bytes of the nonce that go into the key derivation.
const HCHACHA_NONCE: usize = 16;

/// A key with a fixed layout of the sealed bytes: nonce 24, ciphertext, tag 16. The key is zeroized on drop. The values
/// that the libraries derive from it on the stack for one nonce are overwritten by later use of the stack, but not
/// zeroized.
pub struct Cipher(Zeroizing<[u8; 32]>);

impl Cipher {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*key))
    }

    /// Seals the bytes of `buffer` from `at` on, in place. They must begin with room for a nonce; the tag is appended.
    pub fn seal_tail(&self, place: &[u8], buffer: &mut Vec<u8>, at: usize) -> io::Result<()> {
        let no_nonce = || io::Error::other("a nonce has 24 bytes");
        let (nonce, plain) = buffer[at..].split_first_chunk_mut::<NONCE>().ok_or_else(no_nonce)?;
        fill_nonce(nonce)?;
        let (key, nonce) = self.for_nonce(nonce).ok_or_else(no_nonce)?;
        let too_long = |_| io::Error::other("a value is too long to be sealed");
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(place), plain).map_err(too_long)?;
        buffer.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Returns `plain` sealed for `place`.
    pub fn seal(&self, place: &[u8], plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        sealed.resize(NONCE, 0);
        sealed.extend_from_slice(plain);
        self.seal_tail(place, &mut sealed, 0)?;
        Ok(sealed)
    }

    /// Opens bytes that were sealed for `place`, reusing their buffer. Returns `None` if they were not sealed for it or
    /// were changed.
    pub fn open(&self, place: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let length = self.open_in_place(place, &mut sealed)?.len();
        sealed.truncate(NONCE + length);
        sealed.drain(..NONCE);
        Some(sealed)
    }

    /// Like [`Cipher::open`], but in place.
    pub fn open_in_place<'a>(&self, place: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (nonce, rest) = sealed.split_first_chunk_mut::<NONCE>()?;
        let (key, nonce) = self.for_nonce(nonce)?;
        key.open_in_place(nonce, Aad::from(place), rest).ok()
    }

    /// Returns the key of ChaCha20-Poly1305 and its nonce, whose first four bytes are zero.
    fn for_nonce(&self, nonce: &[u8; NONCE]) -> Option<(LessSafeKey, Nonce)> {
        let (into_key, rest) = nonce.split_first_chunk::<HCHACHA_NONCE>()?;
        let key = Zeroizing::new(<[u8; 32]>::from(hchacha::<R20>((&*self.0).into(), into_key.into())));
        let mut nonce = [0; ring::aead::NONCE_LEN];
        nonce[4..].copy_from_slice(rest);
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_slice()).ok()?;
        Some((LessSafeKey::new(key), Nonce::assume_unique_for_key(nonce)))
    }
}

/// Number of nonces that are fetched at once: one system call for each of an import's many small values would cost as
/// much as sealing them.
const NONCES_AHEAD: usize = 128;

thread_local! {
    /// Random bytes that were not used for a nonce yet.
    static RANDOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn fill_nonce(nonce: &mut [u8; NONCE]) -> io::Result<()> {
    RANDOM.with_borrow_mut(|random| {
        if random.is_empty() {
            random.resize(NONCE * NONCES_AHEAD, 0);
            // A partially filled buffer must not be used.
            if let Err(error) = getrandom::fill(random) {
                random.clear();
                return Err(error.into());
            }
        }
        let rest = random.len() - NONCE;
        nonce.copy_from_slice(&random[rest..]);
        random.truncate(rest);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chacha20poly1305::{AeadInOut, KeyInit, Tag, XChaCha20Poly1305, XNonce, aead::inout::InOutBuf};
    use proptest::prelude::*;

    use super::*;

    /// Seals in the same layout with the independent implementation.
    fn reference_seal(key: &[u8; 32], nonce: [u8; NONCE], place: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut sealed = plain.to_vec();
        let cipher = XChaCha20Poly1305::new(key.into());
        let tag = cipher.encrypt_inout_detached(&XNonce::from(nonce), place, InOutBuf::from(&mut sealed[..]));
        let tag: Tag = tag.expect("it is short");
        [nonce.as_slice(), &sealed, &tag].concat()
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_another_implementation(
            key in any::<[u8; 32]>(),
            nonce in any::<[u8; NONCE]>(),
            place in prop::collection::vec(any::<u8>(), 0..70),
            plain in prop_oneof![4 => prop::collection::vec(any::<u8>(), 0..700), 1 => prop::collection::vec(any::<u8>(), 4_000..9_000)],
        ) {
            let cipher = Cipher::new(&key);
            let opened = cipher.open(&place, reference_seal(&key, nonce, &place, &plain));
            prop_assert_eq!(opened.as_ref(), Some(&plain));
            let sealed = cipher.seal(&place, &plain).expect("there is randomness");
            let ours = *sealed.first_chunk::<NONCE>().expect("a nonce is there");
            prop_assert_eq!(&sealed, &reference_seal(&key, ours, &place, &plain));
        }
    }

    /// draft-irtf-cfrg-xchacha-03, A.3.1.
    #[test]
    fn the_test_vector_of_the_draft_opens() {
        let key = (0x80..0xa0).collect::<Vec<u8>>().try_into().expect("it has 32 bytes");
        let nonce = (0x40..0x58).collect::<Vec<u8>>().try_into().expect("it has 24 bytes");
        let place = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let tag =
            [0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a, 0xcf, 0x49];
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
                      future, sunscreen would be it.";
        let mut sealed = reference_seal(&key, nonce, &place, plain);
        let end = sealed.len() - TAG;
        sealed[end..].copy_from_slice(&tag);
        assert_eq!(Cipher::new(&key).open(&place, sealed), Some(plain.to_vec()));
    }

    #[test]
    fn no_nonce_is_used_twice() {
        let cipher = Cipher::new(&[1; 32]);
        let nonces = (0..3 * NONCES_AHEAD).map(|_| {
            let sealed = cipher.seal(b"key", b"tea").expect("there is randomness");
            sealed[..NONCE].to_vec()
        });
        let distinct: BTreeSet<Vec<u8>> = nonces.collect();
        assert_eq!(distinct.len(), 3 * NONCES_AHEAD);
        assert!(!distinct.contains(&vec![0; NONCE]));
    }
}
