//! What one store had seen of others when it wrote something: dots and version vectors.
//!
//! Every store that takes part in a synchronisation is an *origin*, and numbers what it writes 1, 2, 3, …. Such a number
//! together with its origin is a *dot*; it names one write among those of all stores. A *version vector* holds the
//! highest number of each origin that a store has. Because stores pass on the series of an origin from its beginning and
//! without gaps, the vector describes exactly which writes a store has seen. Two writes of which neither store had seen
//! the other are *concurrent*, whatever their clocks say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU64,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The identity of a store as a writer. A store that was copied needs a new one before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OriginId(Uuid);

/// The name of one write: the `counter`-th of its `origin`, counted from 1. Stored as `["<uuid>",counter]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(OriginId, NonZeroU64)", into = "(OriginId, NonZeroU64)")]
pub struct Dot {
    /// The store that wrote it.
    pub origin: OriginId,
    /// Its number in the series of that store.
    pub counter: NonZeroU64,
}

/// For each origin, the number of writes that were seen, always the first ones of its series. Stored as
/// `{"<uuid>":counter,…}`; an origin of which nothing was seen has no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionVector(BTreeMap<OriginId, NonZeroU64>);

/// The position of a write in the causal order of all stores, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Causality {
    /// The write has no dot: its store has taken part in no synchronisation yet.
    #[default]
    #[serde(skip)]
    Unnumbered,
    /// The write was stored without a dot and got one later, when its store began a series. If the store was copied
    /// before that, each copy assigned one. These dots are not part of the stored form of the write; whoever reads it
    /// fills them in. Never empty.
    #[serde(skip)]
    Assigned(BTreeSet<Dot>),
    /// The write is stored with its dot.
    Recorded {
        /// Its dot.
        dot: Dot,
        /// What its store had seen before. All earlier writes of the same origin count as seen, with or without an
        /// entry.
        seen: VersionVector,
    },
}

impl OriginId {
    /// Returns the identity that `id` stands for.
    #[must_use]
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the UUID.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Dot {
    /// Returns the dot of the `counter`-th write of `origin`, or `None` for 0.
    #[must_use]
    pub fn new(origin: OriginId, counter: u64) -> Option<Self> {
        Some(Self { origin, counter: NonZeroU64::new(counter)? })
    }
}

impl From<(OriginId, NonZeroU64)> for Dot {
    fn from((origin, counter): (OriginId, NonZeroU64)) -> Self {
        Self { origin, counter }
    }
}

impl From<Dot> for (OriginId, NonZeroU64) {
    fn from(Dot { origin, counter }: Dot) -> Self {
        (origin, counter)
    }
}

impl VersionVector {
    /// Returns the number of writes of `origin` that were seen.
    #[must_use]
    pub fn counter(&self, origin: OriginId) -> u64 {
        self.0.get(&origin).map_or(0, |counter| counter.get())
    }

    /// Returns whether the write was seen.
    #[must_use]
    pub fn contains(&self, dot: Dot) -> bool {
        self.counter(dot.origin) >= dot.counter.get()
    }

    /// Returns whether everything was seen that `other` has seen. Of two vectors that do not cover each other, neither
    /// is later.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.dots().all(|dot| self.contains(dot))
    }

    /// Records that a write and all earlier ones of its origin were seen.
    pub fn insert(&mut self, dot: Dot) {
        let counter = self.0.entry(dot.origin).or_insert(dot.counter);
        *counter = dot.counter.max(*counter);
    }

    /// Adds everything that `other` has seen. Commutative, associative and idempotent.
    pub fn join(&mut self, other: &Self) {
        self.extend(other.dots());
    }

    /// Returns the last write of each origin that was seen, ordered by origin.
    pub fn dots(&self) -> impl Iterator<Item = Dot> {
        self.0.iter().map(|(origin, counter)| Dot { origin: *origin, counter: *counter })
    }

    /// Returns whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Extend<Dot> for VersionVector {
    fn extend<I: IntoIterator<Item = Dot>>(&mut self, dots: I) {
        dots.into_iter().for_each(|dot| self.insert(dot));
    }
}

impl FromIterator<Dot> for VersionVector {
    fn from_iter<I: IntoIterator<Item = Dot>>(dots: I) -> Self {
        let mut vector = Self::default();
        vector.extend(dots);
        vector
    }
}

impl Causality {
    /// Returns the causality of a write that got `dots` after it was stored.
    #[must_use]
    pub fn assigned(dots: impl IntoIterator<Item = Dot>) -> Self {
        let dots: BTreeSet<Dot> = dots.into_iter().collect();
        if dots.is_empty() { Self::Unnumbered } else { Self::Assigned(dots) }
    }

    /// Returns whether the stored form of a write leaves this out.
    #[must_use]
    pub fn is_unrecorded(&self) -> bool {
        match self {
            Self::Unnumbered | Self::Assigned(_) => true,
            Self::Recorded { .. } => false,
        }
    }

    /// Returns the dots of the write.
    pub fn dots(&self) -> impl Iterator<Item = Dot> {
        let (assigned, recorded) = match self {
            Self::Unnumbered => (None, None),
            Self::Assigned(dots) => (Some(dots), None),
            Self::Recorded { dot, .. } => (None, Some(*dot)),
        };
        assigned.into_iter().flatten().copied().chain(recorded)
    }

    /// Adds the dots that `other` knows of the same write.
    pub(crate) fn unite(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::Unnumbered) | (Self::Recorded { .. }, _) => {}
            (Self::Assigned(own), Self::Assigned(dots)) => own.extend(dots),
            (_, known) => *self = known.clone(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dot(origin: u128, counter: u64) -> Dot {
        Dot::new(OriginId::new(Uuid::from_u128(origin)), counter).unwrap()
    }

    fn vectors() -> impl Strategy<Value = VersionVector> {
        prop::collection::vec((0_u128..4, 1_u64..5), 0..6)
            .prop_map(|dots| dots.into_iter().map(|(origin, counter)| dot(origin, counter)).collect())
    }

    fn joined(one: &VersionVector, other: &VersionVector) -> VersionVector {
        let mut joined = one.clone();
        joined.join(other);
        joined
    }

    #[test]
    fn the_stored_form_is_compact_and_refuses_zero() {
        let causality =
            Causality::Recorded { dot: dot(1, 7), seen: [dot(1, 6), dot(2, 3)].into_iter().collect() };
        let json = serde_json::to_string(&causality).unwrap();
        let expected = r#"{"dot":["00000000-0000-0000-0000-000000000001",7],"seen":{"00000000-0000-0000-0000-000000000001":6,"00000000-0000-0000-0000-000000000002":3}}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Causality>(&json).unwrap(), causality);
        for zero in [json.replace(",7]", ",0]"), json.replace(":3}", ":0}")] {
            assert!(serde_json::from_str::<Causality>(&zero).is_err(), "{zero}");
        }
        assert_eq!(Dot::new(dot(1, 1).origin, 0), None);
    }

    #[test]
    fn a_write_that_was_numbered_twice_has_both_dots() {
        let mut known = Causality::Unnumbered;
        known.unite(&Causality::assigned([dot(1, 1)]));
        known.unite(&Causality::assigned([dot(2, 5)]));
        known.unite(&Causality::Unnumbered);
        assert_eq!(known.dots().collect::<Vec<_>>(), [dot(1, 1), dot(2, 5)]);
        assert_eq!(Causality::assigned([]), Causality::Unnumbered);
    }

    proptest! {
        #[test]
        fn joining_is_a_least_upper_bound(one in vectors(), other in vectors(), third in vectors()) {
            let both = joined(&one, &other);
            prop_assert_eq!(&both, &joined(&other, &one));
            prop_assert_eq!(joined(&both, &third), joined(&one, &joined(&other, &third)));
            prop_assert_eq!(&joined(&both, &one), &both);
            prop_assert!(both.covers(&one) && both.covers(&other));
            prop_assert_eq!(third.covers(&both), third.covers(&one) && third.covers(&other));
        }

        #[test]
        fn covering_means_containing_every_dot(one in vectors(), other in vectors()) {
            let contained = (0..4).all(|origin| {
                (1..5).map(|counter| dot(origin, counter)).all(|dot| !other.contains(dot) || one.contains(dot))
            });
            prop_assert_eq!(one.covers(&other), contained);
        }
    }
}
