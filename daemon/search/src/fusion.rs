//! Reciprocal-rank fusion: several ranked lists become one.
//!
//! The score of a result is the sum of `1 / (k + rank)` over the lists that have it, where the first result of a list has
//! rank 1. Only ranks count, so lists whose scores cannot be compared, such as BM25 and cosines, can be fused. The larger `k`
//! is, the less a first place in one list counts against middle places in several.
//!
//! Source: G. V. Cormack, C. L. A. Clarke, S. Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank
//! Learning Methods. SIGIR 2009, <https://doi.org/10.1145/1571941.1572114>.

use std::collections::{BTreeMap, BTreeSet};

/// The `k` of the paper, which other search engines use too.
pub const RANK_CONSTANT: f64 = 60.0;

/// Fuses ranked lists, best results first. Returns each result once with its score, the best first; those with the same score
/// are ordered by id.
///
/// A filter has to be applied to every list before. If a list has a result several times, the first place counts. A `k` that is
/// negative or not a number counts as 0.
#[must_use]
pub fn fuse<Id: Clone + Ord>(lists: &[&[Id]], k: f64) -> Vec<(Id, f64)> {
    let k = k.max(0.0);
    let mut scores: BTreeMap<&Id, f64> = BTreeMap::new();
    for list in lists {
        let mut seen = BTreeSet::new();
        let mut rank = k;
        for id in *list {
            rank += 1.0;
            if seen.insert(id) {
                *scores.entry(id).or_default() += rank.recip();
            }
        }
    }
    let mut fused: Vec<_> = scores.into_iter().map(|(id, score)| (id.clone(), score)).collect();
    // The sort is stable, and the map was in the order of ids.
    fused.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    fused
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(fused: &[(&'static str, f64)]) -> Vec<&'static str> {
        fused.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn scores_are_sums_of_reciprocal_ranks() {
        let fused = fuse(&[&["a", "b", "c"], &["c", "a"]], RANK_CONSTANT);
        assert_eq!(ids(&fused), ["a", "c", "b"]);
        let expected = [1.0 / 61.0 + 1.0 / 62.0, 1.0 / 63.0 + 1.0 / 61.0, 1.0 / 62.0];
        for ((_, score), expected) in fused.iter().zip(expected) {
            assert!((score - expected).abs() < 1e-12, "{score} is not {expected}");
        }
    }

    #[test]
    fn ties_are_ordered_by_id() {
        assert_eq!(ids(&fuse(&[&["b", "a"], &["a", "b"]], RANK_CONSTANT)), ["a", "b"]);
        assert_eq!(ids(&fuse(&[&["z"], &["y"]], RANK_CONSTANT)), ["y", "z"]);
    }

    #[test]
    fn a_repeated_result_counts_once_at_its_first_place() {
        assert_eq!(fuse(&[&["a", "b", "a"]], 0.0), [("a", 1.0), ("b", 0.5)]);
    }

    #[test]
    fn no_lists_or_unusable_constants_do_no_harm() {
        assert!(fuse::<u8>(&[], RANK_CONSTANT).is_empty());
        assert!(fuse::<u8>(&[&[], &[]], RANK_CONSTANT).is_empty());
        for k in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(fuse(&[&["a"]], k), [("a", 1.0)]);
        }
        assert_eq!(fuse(&[&["a"]], f64::INFINITY), [("a", 0.0)]);
    }

    proptest! {
        /// A result that is nowhere behind another one, and somewhere before it, comes first.
        #[test]
        fn a_result_that_is_better_in_every_list_comes_first(
            left in Just((0_u8..20).collect::<Vec<_>>()).prop_shuffle(),
            right in Just((0_u8..20).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let fused = fuse(&[&left, &right], RANK_CONSTANT);
            let place = |list: &[u8], id: u8| list.iter().position(|one| *one == id);
            let fused: Vec<u8> = fused.into_iter().map(|(id, _)| id).collect();
            prop_assert_eq!(fused.len(), 20);
            for (first, second) in (0..20).flat_map(|first| (0..20).map(move |second| (first, second))) {
                if place(&left, first) < place(&left, second) && place(&right, first) < place(&right, second) {
                    prop_assert!(place(&fused, first) < place(&fused, second));
                }
            }
        }
    }
}
