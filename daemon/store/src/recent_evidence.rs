//! Which pieces of evidence were written last, so that an index in memory can follow without reading all of them again.

use std::collections::VecDeque;

/// Writes that are remembered.
const REMEMBERED: usize = 4_096;

/// The ids of the last pieces that were written or removed since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct RecentEvidence {
    /// How many there were.
    count: u64,
    ids: VecDeque<[u8; 16]>,
}

impl RecentEvidence {
    pub(crate) fn add(&mut self, ids: Vec<[u8; 16]>) {
        self.count += ids.len() as u64;
        self.ids.extend(ids);
        self.ids.drain(..self.ids.len().saturating_sub(REMEMBERED));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns those after the first `count`; `None` if not all of them are remembered.
    pub(crate) fn after(&self, count: u64) -> Option<Vec<[u8; 16]>> {
        let new = usize::try_from(self.count.checked_sub(count)?).ok()?;
        let first = self.ids.len().checked_sub(new)?;
        Some(self.ids.range(first..).copied().collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_last_ids_are_given_and_older_ones_are_forgotten() {
        let mut recent = RecentEvidence::default();
        assert_eq!(recent.after(0), Some(vec![]));
        assert_eq!(recent.after(1), None);
        recent.add(vec![[1; 16], [2; 16]]);
        assert_eq!((recent.count(), recent.after(1)), (2, Some(vec![[2; 16]])));
        recent.add((0..REMEMBERED).map(|_| [3; 16]).collect());
        assert_eq!(recent.after(1), None);
        assert_eq!(recent.after(2).unwrap().len(), REMEMBERED);
    }
}
