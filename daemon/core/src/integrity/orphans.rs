//! Finds attachment files that no message refers to, neither a visible one, nor an older version, nor a withdrawn one.

use std::collections::BTreeSet;

use satchel_pam::hash::Sha256Digest;
use satchel_store::{Store, StoreError};

/// The prefix of a reference to a file; 64 hex digits follow.
const REFERENCE_PREFIX: &[u8] = b"attachments/";
/// Hex digits of a hash.
const DIGITS: usize = 64;

/// The files that existed at the start and have not been referred to yet.
pub(super) struct OrphanSearch(BTreeSet<[u8; 32]>);

impl OrphanSearch {
    /// Starts a search. Call it before the journal is read, so that files added later are not included. While an import
    /// runs, nothing is searched for.
    pub(super) fn begin(store: &Store, idle: &dyn Fn() -> bool) -> Result<Self, StoreError> {
        if !idle() {
            return Ok(Self(BTreeSet::new()));
        }
        let there = store.blobs()?.into_iter().collect();
        // An import that started in between may have added some of them.
        Ok(Self(if idle() { there } else { BTreeSet::new() }))
    }

    /// Processes a frame of the journal. A reference in any text counts: it is better to keep a file too many.
    pub(super) fn scan(&mut self, payload: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let slashes = payload.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (at, _) in slashes {
            let (before, after) = payload.split_at(at + 1);
            if before.ends_with(REFERENCE_PREFIX)
                && let Some(hash) = after.get(..DIGITS).and_then(hash)
            {
                self.0.remove(&hash);
            }
        }
    }

    pub(super) fn finish(self) -> Vec<[u8; 32]> {
        self.0.into_iter().collect()
    }
}

fn hash(digits: &[u8]) -> Option<[u8; 32]> {
    let digest: Sha256Digest = format!("sha256:{}", std::str::from_utf8(digits).ok()?).parse().ok()?;
    Some(*digest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_found_anywhere_in_a_frame() {
        let hashes = [Sha256Digest::of(b"one"), Sha256Digest::of(b"two"), Sha256Digest::of(b"three")];
        let mut search = OrphanSearch(hashes.iter().map(|hash| *hash.as_bytes()).collect());
        let [one, two, three] = hashes.map(|hash| hash.to_hex());
        search.scan(format!("attachments/{}attachments/{one}", &one[1..]).as_bytes());
        search.scan(format!("a/b/attachments/{two}/").as_bytes());
        search.scan(format!("attachments {three} attachments/{}", &three[..63]).as_bytes());
        assert_eq!(search.finish(), [*Sha256Digest::of(b"three").as_bytes()]);
    }
}
