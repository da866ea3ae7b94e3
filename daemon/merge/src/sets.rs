//! Things that belong together, directly or by others between them.

/// Of so many things, which belong together; each to itself at first.
pub struct Sets(Vec<usize>);

impl Sets {
    /// Of the things from nought up to `things`.
    #[must_use]
    pub fn new(things: usize) -> Self {
        Self((0..things).collect())
    }

    /// Lets two of them belong together. True: they did not before.
    pub fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.first(one), self.first(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }

    /// The first of those to which `at` belongs.
    pub fn first(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }
}
