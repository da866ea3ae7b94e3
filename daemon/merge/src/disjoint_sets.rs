//! Disjoint sets: groups items that belong together, directly or through other items.

/// A partition of a fixed number of items into sets. At first each item is a set of its own.
pub struct DisjointSets(Vec<usize>);

impl DisjointSets {
    /// Creates sets of the items from zero up to, but not including, `items`.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self((0..items).collect())
    }

    /// Merges the sets of two items. Returns true if the items were in different sets before.
    pub fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }

    /// Returns the first item of the set that contains `at`.
    pub fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }
}
