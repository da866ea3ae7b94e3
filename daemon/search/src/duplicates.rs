//! Finds texts that say the same: equal ones, and those that have most of their words in common.
//!
//! The texts are given one after the other and are not kept. Of each stay about 50 bytes, and 8 bytes for each of its shingles;
//! the comparison needs up to 50 bytes for each shingle that texts have in common. With the default limits that is less than
//! 250 MB, and for 10,000 memories of one sentence about 5 MB. Groups do not depend on the order of the texts. No similar pair is
//! missed: the join is exact, and not a sample as that of `MinHash`. Texts that are too long, and those after a limit, are
//! compared only for equality.

mod join;
mod shingles;

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
};

use self::{
    join::Join,
    shingles::{normalised, shingles},
};

/// The least similarity that can be asked for. Below it, texts have little in common, and nearly all pairs had to be compared.
pub const MIN_THRESHOLD: f64 = 0.5;
/// The similarity from which on texts are alike, if nothing else is asked for: a text of five words and the same with one more.
pub const DEFAULT_THRESHOLD: f64 = 0.8;

/// What may be used for one search for duplicates.
#[derive(Clone, Copy, Debug)]
pub struct DuplicateLimits {
    /// Texts that are compared.
    pub texts: usize,
    /// Most shingles of one text.
    pub shingles_of_text: usize,
    /// Shingles of all texts.
    pub shingles: usize,
    /// Steps of comparisons, about 20 ns each. It ends the search in texts that were made to be nearly similar.
    pub steps: u64,
}

impl Default for DuplicateLimits {
    fn default() -> Self {
        Self { texts: 200_000, shingles_of_text: 1_000, shingles: 4_000_000, steps: 300_000_000 }
    }
}

/// Texts that say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateGroup {
    /// The numbers of the texts, in the order in which they were added, from 0. At least two, ascending.
    pub members: Vec<usize>,
    /// Whether all are equal apart from case, punctuation and white space.
    pub same_text: bool,
    /// The similarity of the first member to the least similar one. It may be below the threshold: members are alike directly, or
    /// through other members.
    pub similarity: f64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Duplicates {
    /// First groups of equal texts, then the most similar ones.
    pub groups: Vec<DuplicateGroup>,
    /// Whether a limit was reached, so that something may be missing.
    pub truncated: bool,
}

/// Compares texts.
pub struct DuplicateFinder {
    threshold: f64,
    limits: DuplicateLimits,
    /// Its keys are random, so that nobody can make texts whose shingles collide.
    hasher: RandomState,
    /// The distinct text of each text that was added.
    distinct: Vec<u32>,
    /// The number of each distinct text, by its hash.
    known: HashMap<u128, u32>,
    join: Join,
    truncated: bool,
}

impl DuplicateFinder {
    /// Returns a finder of texts that are at least this similar, from [`MIN_THRESHOLD`] to 1.
    #[must_use]
    pub fn new(threshold: f64, limits: DuplicateLimits) -> Self {
        Self {
            threshold: threshold.clamp(MIN_THRESHOLD, 1.0),
            limits,
            hasher: RandomState::new(),
            distinct: Vec::new(),
            known: HashMap::new(),
            join: Join::default(),
            truncated: false,
        }
    }

    /// Adds a text. Returns whether there is room for more.
    pub fn add(&mut self, text: &str) -> bool {
        if self.distinct.len() >= self.limits.texts {
            self.truncated = true;
            return false;
        }
        let normal = normalised(text);
        // A text of nothing but punctuation is compared as it is.
        let compared = if normal.is_empty() { text } else { normal.as_str() };
        let half = |salt: u8| u128::from(self.hasher.hash_one((salt, compared)));
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry((half(0) << 64) | half(1)).or_insert(next);
        self.distinct.push(number);
        if number == next {
            self.add_shingles(&normal);
        }
        true
    }

    fn add_shingles(&mut self, normal: &str) {
        let hasher = &self.hasher;
        let mut all = shingles(normal, self.limits.shingles_of_text, |shingle| hasher.hash_one(shingle));
        if self.join.shingles() + all.len() > self.limits.shingles {
            self.truncated = true;
            all.clear();
        }
        self.join.push(all);
    }

    /// Returns the groups.
    #[must_use]
    pub fn finish(self) -> Duplicates {
        let Self { threshold, limits, distinct, known, join, truncated, hasher: _ } = self;
        drop(known);
        let joined = join.run(threshold, limits.steps);
        let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (text, number) in distinct.iter().enumerate() {
            members.entry(joined.group(*number)).or_default().push(text);
        }
        let mut groups: Vec<DuplicateGroup> = members
            .into_values()
            .filter(|members| members.len() > 1)
            .map(|members| {
                let numbers: Vec<u32> = members.iter().map(|text| distinct[*text]).collect();
                let first = numbers[0];
                let same_text = numbers.iter().all(|number| *number == first);
                let similarity =
                    numbers.iter().map(|other| joined.similarity(first, *other)).fold(1.0, f64::min);
                DuplicateGroup { members, same_text, similarity }
            })
            .collect();
        groups.sort_by(|one, other| {
            let order = other.same_text.cmp(&one.same_text);
            let order = order.then(other.similarity.total_cmp(&one.similarity));
            order.then_with(|| one.members.cmp(&other.members))
        });
        Duplicates { groups, truncated: truncated || joined.truncated }
    }
}

#[cfg(test)]
mod tests;
