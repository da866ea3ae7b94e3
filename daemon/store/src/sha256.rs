//! SHA-256 for large amounts of data: an import hashes everything that it reads, and as much again when it writes.
//!
//! The implementation is in assembly, which is a third faster than compiled code on processors without SHA instructions, and as
//! fast on others.

use ring::digest::{Context, SHA256};

/// A digest that is being computed.
#[derive(Clone)]
pub struct Sha256(Context);

impl Sha256 {
    /// Starts with no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Adds more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes that were added.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        let mut digest = [0; 32];
        // Both have 32 bytes.
        digest.copy_from_slice(self.0.finish().as_ref());
        digest
    }

    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> [u8; 32] {
        let mut hasher = Self::new();
        hasher.update(bytes);
        hasher.finish()
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn digests_match_another_implementation(bytes in vec(any::<u8>(), 0..400), cut in 0_usize..400) {
            let expected: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), &bytes)).into();
            prop_assert_eq!(Sha256::of(&bytes), expected);
            let (start, rest) = bytes.split_at(cut.min(bytes.len()));
            let mut hasher = Sha256::default();
            hasher.update(start);
            hasher.update(rest);
            prop_assert_eq!(hasher.finish(), expected);
        }
    }
}
