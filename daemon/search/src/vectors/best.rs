//! The best of many rows, without sorting all of them.

use std::cmp::Ordering;

use super::ids::Ids;

/// A row and its score.
pub(super) type Scored = (f32, usize);

/// Collects rows and keeps the best. Rows with the same score are ordered by id, so that results do not depend on the order in
/// which vectors were inserted.
pub(super) struct Best<'a> {
    ids: &'a Ids,
    wanted: usize,
    found: Vec<Scored>,
    /// The worst of those that are wanted, once so many are known.
    bar: Option<Scored>,
}

impl<'a> Best<'a> {
    /// Wants so many rows; at least 1.
    pub(super) fn new(wanted: usize, ids: &'a Ids) -> Self {
        let room = wanted.saturating_mul(2).min(ids.len());
        Self { ids, wanted, found: Vec::with_capacity(room), bar: None }
    }

    /// Adds a row if it is one of the best so far, and if it is `allowed`; others are not asked about.
    #[inline]
    pub(super) fn offer(&mut self, score: f32, row: usize, allowed: impl FnOnce(usize) -> bool) {
        if let Some(bar) = self.bar
            && (score < bar.0 || compare(self.ids, &(score, row), &bar).is_gt())
        {
            return;
        }
        if allowed(row) {
            self.add((score, row));
        }
    }

    fn add(&mut self, scored: Scored) {
        self.found.push(scored);
        if self.found.len() >= self.wanted.saturating_mul(2) {
            self.cut();
        }
    }

    /// Removes all that are not among the best.
    fn cut(&mut self) {
        if self.found.len() >= self.wanted {
            let ids = self.ids;
            let last = self.wanted - 1;
            self.found.select_nth_unstable_by(last, |left, right| compare(ids, left, right));
            self.found.truncate(self.wanted);
            self.bar = self.found.last().copied();
        }
    }

    /// Returns the best, in no order.
    pub(super) fn into_unsorted(mut self) -> Vec<Scored> {
        self.cut();
        self.found
    }

    /// Returns the best, the best one first.
    pub(super) fn into_sorted(self) -> Vec<Scored> {
        let ids = self.ids;
        let mut found = self.into_unsorted();
        found.sort_unstable_by(|left, right| compare(ids, left, right));
        found
    }
}

/// Better rows are less.
pub(super) fn compare(ids: &Ids, left: &Scored, right: &Scored) -> Ordering {
    right.0.total_cmp(&left.0).then_with(|| ids.id(left.1).cmp(ids.id(right.1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_those_of_a_sorted_list(scores in prop::collection::vec(0..20_u8, 0..200), wanted in 1..30_usize) {
            let mut ids = Ids::default();
            for row in 0..scores.len() {
                prop_assert_eq!(ids.row_or_insert(&(999 - row).to_string()), Err(row));
            }
            let even = |row: usize| row.is_multiple_of(2);
            let mut best = Best::new(wanted, &ids);
            for (row, score) in scores.iter().enumerate() {
                best.offer(f32::from(*score), row, even);
            }
            let mut expected: Vec<_> = (0..scores.len()).filter(|row| even(*row)).collect();
            expected.sort_by_key(|row| (std::cmp::Reverse(scores[*row]), std::cmp::Reverse(*row)));
            expected.truncate(wanted);
            let found: Vec<_> = best.into_sorted().into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
