//! The sum over all records, taken in pieces while commits go on: what changes behind the walk is made good here.

use crate::report::StateDigest;

/// A walk over the engine in the order of its keys.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sum: StateDigest,
    /// The last key that was counted. None: the walk has not begun.
    passed: Option<Vec<u8>>,
}

impl Tally {
    /// Counts the record under the next key of the walk.
    pub(crate) fn count(&mut self, key: &[u8], share: &[u8; 32]) {
        self.sum.add(share);
        self.passed = Some(key.to_vec());
    }

    /// Takes a change into account if the walk has been there; else it will meet the record as it is by then.
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
