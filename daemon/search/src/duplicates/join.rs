//! Finds all pairs of sets whose Jaccard index reaches a threshold, without comparing all pairs.
//!
//! If the members of all sets are in the same order, two sets that are similar enough have one in common among the first few of
//! each. How many these are follows from the size and the threshold. With the rare members first, few sets share one of these
//! (Chaudhuri, Ganti and Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", 2006; Bayardo, Ma and Srikant,
//! "Scaling Up All Pairs Similarity Search", 2007).

use std::collections::HashMap;

/// Counters of members. Members that share one are counted together, which changes the order but no result.
const COUNTERS: usize = 1 << 20;
/// Bits of a rank for the hash; the upper ones count.
const HASH_BITS: u32 = 48;
/// The most that a rank counts.
const MAX_COUNT: u64 = (1 << (64 - HASH_BITS)) - 1;
/// The greatest error of a product of threshold and size.
const ROUNDING: f64 = 1e-9;

/// The sets to compare.
#[derive(Default)]
pub(super) struct Join {
    /// The members of all sets, one set after the other.
    members: Vec<u64>,
    /// Where each set ends.
    ends: Vec<usize>,
}

/// Which sets are similar.
pub(super) struct Joined {
    sets: Join,
    groups: Vec<u32>,
    /// Whether the steps were used up.
    pub(super) truncated: bool,
}

impl Join {
    /// Adds a set of hashes, each once. An empty one is similar to no other.
    pub(super) fn push(&mut self, hashes: Vec<u64>) {
        self.members.extend(hashes);
        self.ends.push(self.members.len());
    }

    /// Returns the number of members of all sets.
    pub(super) fn shingles(&self) -> usize {
        self.members.len()
    }

    /// Compares the sets.
    pub(super) fn run(mut self, threshold: f64, steps: u64) -> Joined {
        self.rank();
        let mut by_size: Vec<u32> = (0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX)).collect();
        by_size.sort_by_key(|set| self.set(*set).len());
        let mut search = Search {
            sets: &self,
            threshold,
            steps,
            groups: Groups::new(by_size.len()),
            postings: HashMap::new(),
            compared: vec![u32::MAX; by_size.len()],
        };
        let finished = by_size.into_iter().all(|set| search.insert(set));
        let groups = search.groups.finish();
        Joined { groups, truncated: !finished, sets: self }
    }

    fn set(&self, number: u32) -> &[u64] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start..self.ends[number]]
    }

    /// Replaces hashes by ranks, of which rare members have the lowest, and sorts each set by them.
    fn rank(&mut self) {
        let counter = |hash: u64| {
            usize::try_from(hash.rotate_left(64 - HASH_BITS) % COUNTERS as u64).unwrap_or_default()
        };
        let mut counts = vec![0_u32; COUNTERS];
        for hash in &self.members {
            let count = &mut counts[counter(*hash)];
            *count = count.saturating_add(1);
        }
        for hash in &mut self.members {
            let count = u64::from(counts[counter(*hash)]).min(MAX_COUNT);
            *hash = (count << HASH_BITS) | (*hash & ((1 << HASH_BITS) - 1));
        }
        let mut start = 0;
        for end in &self.ends {
            self.members[start..*end].sort_unstable();
            start = *end;
        }
    }
}

/// A search in progress. Sets are inserted by size, the small ones first.
struct Search<'a> {
    sets: &'a Join,
    threshold: f64,
    /// What is left.
    steps: u64,
    groups: Groups,
    /// The sets that have a member among their first ones, by size.
    postings: HashMap<u64, Vec<u32>>,
    /// With which set each was compared last.
    compared: Vec<u32>,
}

impl Search<'_> {
    /// Compares a set with all before it. Returns whether there were enough steps.
    fn insert(&mut self, number: u32) -> bool {
        let set = self.sets.set(number);
        if set.is_empty() {
            return true;
        }
        // A smaller set can be similar only if it has so many members, and all of them are in this one.
        let least = least_common(self.threshold, set.len());
        for member in &set[..=set.len() - least] {
            // No other set has it.
            if *member >> HASH_BITS == 1 {
                continue;
            }
            let postings = self.postings.entry(*member).or_default();
            let begin = postings.partition_point(|other| self.sets.set(*other).len() < least);
            for other in &postings[begin..] {
                if self.steps == 0 {
                    return false;
                }
                self.steps -= 1;
                if self.compared[*other as usize] == number {
                    continue;
                }
                self.compared[*other as usize] = number;
                // Whether further members of a group are similar to each other changes nothing.
                if self.groups.find(*other) == self.groups.find(number) {
                    continue;
                }
                let other_set = self.sets.set(*other);
                let (similar, steps) = compare(set, other_set, self.threshold);
                self.steps = self.steps.saturating_sub(steps);
                if similar {
                    self.groups.join(*other, number);
                }
            }
            postings.push(number);
        }
        true
    }
}

/// Returns how many members a set of this size must have in common with one that is similar to it.
fn least_common(threshold: f64, size: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a small number"
    )]
    let least = (threshold * size as f64 - ROUNDING).ceil() as usize;
    least.clamp(1, size.max(1))
}

/// Returns whether two sets are similar, and how many steps it took to find out. It ends as soon as too few members are left.
#[expect(clippy::cast_precision_loss, reason = "sizes of texts")]
fn compare(one: &[u64], other: &[u64], threshold: f64) -> (bool, u64) {
    let both = one.len() + other.len();
    let needed = both as f64 * threshold / (1.0 + threshold) - ROUNDING;
    let (mut common, mut at, mut other_at, mut steps) = (0_usize, 0, 0, 0);
    while let (Some(left), Some(right)) = (one.get(at), other.get(other_at)) {
        steps += 1;
        let possible = common + (one.len() - at).min(other.len() - other_at);
        if (possible as f64) < needed {
            return (false, steps);
        }
        common += usize::from(left == right);
        at += usize::from(left <= right);
        other_at += usize::from(right <= left);
    }
    (common as f64 / (both - common) as f64 >= threshold, steps)
}

/// Returns the number of common members divided by that of all members.
#[expect(clippy::cast_precision_loss, reason = "sizes of texts")]
pub(super) fn jaccard(one: &[u64], other: &[u64]) -> f64 {
    let (mut common, mut at, mut other_at) = (0, 0, 0);
    while let (Some(left), Some(right)) = (one.get(at), other.get(other_at)) {
        common += usize::from(left == right);
        at += usize::from(left <= right);
        other_at += usize::from(right <= left);
    }
    let all = one.len() + other.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

impl Joined {
    /// Returns the group of a set: the least number of a set in it.
    pub(super) fn group(&self, set: u32) -> u32 {
        self.groups[set as usize]
    }

    /// Returns the Jaccard index of two sets.
    pub(super) fn similarity(&self, one: u32, other: u32) -> f64 {
        if one == other { 1.0 } else { jaccard(self.sets.set(one), self.sets.set(other)) }
    }
}

/// Sets of sets. At first each is alone.
struct Groups(Vec<u32>);

impl Groups {
    fn new(sets: usize) -> Self {
        Self((0..u32::try_from(sets).unwrap_or(u32::MAX)).collect())
    }

    fn find(&mut self, mut set: u32) -> u32 {
        while self.0[set as usize] != set {
            let next = self.0[self.0[set as usize] as usize];
            self.0[set as usize] = next;
            set = next;
        }
        set
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other) as usize] = one.min(other);
    }

    fn finish(mut self) -> Vec<u32> {
        (0..self.0.len()).map(|set| self.find(u32::try_from(set).unwrap_or(u32::MAX))).collect()
    }
}
