//! The sum over all records, computed page by page while commits continue. A change to a record that was already counted corrects
//! the sum.

use crate::report::StateDigest;

/// A walk over the engine in key order.
#[derive(Debug, Default)]
pub(crate) struct DigestWalk {
    sum: StateDigest,
    /// The last key that was counted. `None` before the walk begins.
    passed: Option<Vec<u8>>,
}

impl DigestWalk {
    /// Counts the record under the next key of the walk.
    pub(crate) fn count(&mut self, key: &[u8], share: &[u8; 32]) {
        self.sum.add(share);
        self.passed = Some(key.to_vec());
    }

    /// Corrects the sum if the walk has already counted this record. Otherwise the walk will count the changed record later.
    pub(super) fn changed(&mut self, key: &[u8], old: Option<&[u8; 32]>, new: &[u8; 32]) {
        if self.passed.as_deref().is_none_or(|passed| key > passed) {
            return;
        }
        if let Some(old) = old {
            self.sum.remove(old);
        }
        self.sum.add(new);
    }

    pub(crate) fn sum(&self) -> StateDigest {
        self.sum
    }

    pub(crate) fn passed(&self) -> Option<&[u8]> {
        self.passed.as_deref()
    }
}
