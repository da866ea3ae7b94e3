//! Vectors of texts, and the ones that are nearest to a query.
//!
//! A [`VectorIndex`] has the vectors of one model in memory; the originals stay in the store, from which it is built when a
//! program starts. A search has up to three steps, each more exact than the one before, and with fewer vectors:
//!
//! 1. All vectors that the filter lets through are compared by a code of one bit for each number, an eighth of what step 2 reads.
//!    Indexes of up to two thousand vectors do without.
//! 2. The best hundreds are compared by bytes.
//! 3. If the caller can fetch originals, the order of those whose cosines are too near to each other is settled by them.
//!
//! Every search looks at all vectors, so there is no graph or tree that has to be maintained, and a filter costs no recall: a
//! vector that it does not let through never takes the place of one that it does.

mod best;
mod blocks;
mod codes;
mod error;
mod ids;
mod kernels;
mod rotation;
mod rows;

use std::fmt;

pub use self::error::VectorError;
use self::{
    best::{Best, Scored},
    codes::Codes,
    ids::Ids,
    rotation::Rotation,
    rows::{RowQuery, Rows},
};

/// Most numbers of a vector. With more, the dot products of a query would be too coarse; models have a few thousand.
pub const MAX_DIMENSION: usize = 65_536;

/// Vectors of one model that can be searched.
///
/// Searches take `&self`, can run at the same time, and give the same results for the same vectors; only which of those are
/// missed in the first step of a search, if any, depends on the order of the insertions.
#[derive(Debug)]
pub struct VectorIndex {
    dimension: usize,
    rotation: Rotation,
    ids: Ids,
    rows: Rows,
    /// Exist once there are too many vectors to compare all by bytes.
    codes: Option<Codes>,
    /// Insertions until codes are made, or made anew because the mean of the vectors may have moved.
    insertions_left: usize,
    sizes: Sizes,
}

/// How many vectors a step of a search looks at.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Up to so many vectors are compared by bytes at once.
    without_codes: usize,
    /// At least so many of the best by their codes are compared by bytes.
    rescored: usize,
    /// At least so many for each wanted hit.
    rescored_per_hit: usize,
    /// At least one of so many vectors.
    rescored_share: usize,
}

/// With these, a fifth of the time of a search among 50,000 vectors of 1,536 numbers is spent on bytes.
const SIZES: Sizes = Sizes { without_codes: 2048, rescored: 512, rescored_per_hit: 32, rescored_share: 64 };
/// Codes are made anew after so many times as many insertions as there were vectors.
const INSERTIONS_PER_VECTOR: usize = 3;
/// The order of so many of the first hits is settled by originals; each of them costs a read of the store. Of the hits after them,
/// neighbours whose cosines differ by less than 0.001 may have changed places.
pub const MAX_SETTLED: usize = 20;
/// Originals are fetched for at most so many times these hits, and [`MORE_FETCHED`].
const FETCHED_PER_HIT: usize = 2;
const MORE_FETCHED: usize = 32;
/// Cosines by bytes are off by less than so many steps between two numbers of the row: seven standard deviations.
const MOST_STEPS_OFF: f32 = 2.0;

/// What to search for, besides the query.
#[derive(Clone, Copy, Default)]
pub struct VectorSearch<'a> {
    /// Most hits that are returned.
    pub limit: usize,
    /// Which vectors may be hits.
    pub filter: VectorFilter<'a>,
    /// Fetches original vectors. With them, the first [`MAX_SETTLED`] hits and their cosines are exact, but for those that the
    /// first step missed.
    pub original: Option<FetchOriginal<'a>>,
}

/// Returns the vector of an id as it was inserted; `None` if it cannot be had, and its cosine stays as it is.
pub type FetchOriginal<'a> = &'a dyn Fn(&str) -> Option<Vec<f32>>;

/// Which vectors may be hits. Others do not count: with any filter, `limit` hits are found if so many vectors pass it.
#[derive(Clone, Copy, Default)]
pub enum VectorFilter<'a> {
    /// All of them.
    #[default]
    All,
    /// Those whose id passes. It is asked about ids that would be among the best so far; about all of them if few pass.
    Where(&'a dyn Fn(&str) -> bool),
    /// Those with one of these ids. Ids without a vector do no harm. The fastest one if there are few.
    Ids(&'a [&'a str]),
}

/// A vector that is near to the query.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorHit {
    /// Its id.
    pub id: String,
    /// The cosine of the angle between it and the query: from -1, opposite, to 1, the same direction. If the original was not
    /// fetched, usually off by less than 0.001 for models with 384 numbers or more.
    pub cosine: f32,
}

impl VectorIndex {
    /// Makes an empty index of vectors with `dimension` numbers.
    ///
    /// # Errors
    /// If there are no numbers, or more than [`MAX_DIMENSION`].
    pub fn new(dimension: usize) -> Result<Self, VectorError> {
        Self::with_sizes(dimension, SIZES)
    }

    fn with_sizes(dimension: usize, sizes: Sizes) -> Result<Self, VectorError> {
        if !(1..=MAX_DIMENSION).contains(&dimension) {
            return Err(VectorError::UnsupportedDimension { dimension });
        }
        Ok(Self {
            dimension,
            rotation: Rotation::new(dimension),
            ids: Ids::default(),
            rows: Rows::new(dimension),
            codes: None,
            insertions_left: 0,
            sizes,
        })
    }

    /// Returns how many numbers each vector has.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there are no vectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether there is a vector with this id.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.ids.row(id).is_some()
    }

    /// Returns the memory that the index takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let codes = self.codes.as_ref().map_or(0, Codes::bytes);
        size_of::<Self>() + self.rotation.bytes() + self.ids.bytes() + self.rows.bytes() + codes
    }

    /// Inserts a vector, or replaces the one with this id. Its length does not matter, only its direction.
    ///
    /// Takes some 50 microseconds for 1,536 numbers. When the index is four times as large as before, or as many vectors were
    /// replaced, codes are made anew, which takes about 3 microseconds for each vector.
    ///
    /// # Errors
    /// If the vector has another dimension, or no direction. The index stays as it was.
    pub fn insert(&mut self, id: &str, vector: &[f32]) -> Result<(), VectorError> {
        let rotated = self.rotated(vector)?;
        match self.ids.row_or_insert(id) {
            Ok(row) => {
                self.rows.set(row, &rotated);
                if let Some(codes) = &mut self.codes {
                    codes.set(row, self.rows.row(row));
                }
            }
            Err(row) => {
                self.rows.push(&rotated);
                if let Some(codes) = &mut self.codes {
                    codes.push(self.rows.row(row));
                }
            }
        }
        self.insertions_left = self.insertions_left.saturating_sub(1);
        if self.insertions_left == 0 && self.rows.len() > self.sizes.without_codes {
            self.make_codes();
        }
        Ok(())
    }

    fn make_codes(&mut self) {
        // The old ones are freed first.
        self.codes = None;
        self.codes = Some(Codes::new(self.dimension, &self.rows));
        self.insertions_left = self.rows.len().saturating_mul(INSERTIONS_PER_VECTOR);
    }

    /// Removes a vector, and returns whether there was one. Its memory is used for others, or freed.
    pub fn remove(&mut self, id: &str) -> bool {
        let Some(row) = self.ids.swap_remove(id) else {
            return false;
        };
        self.rows.swap_remove(row);
        if let Some(codes) = &mut self.codes {
            codes.swap_remove(row);
        }
        true
    }

    /// Returns the vectors that are nearest to the query, the nearest first; those with the same cosine are ordered by id.
    ///
    /// # Errors
    /// If the query has another dimension, or no direction.
    pub fn search(&self, query: &[f32], search: &VectorSearch<'_>) -> Result<Vec<VectorHit>, VectorError> {
        let rotated = self.rotated(query)?;
        if search.limit == 0 || self.is_empty() {
            return Ok(Vec::new());
        }
        let candidates = match search.filter {
            VectorFilter::All => self.candidates(&rotated, 0..self.len(), search.limit, |_| true),
            VectorFilter::Where(passes) => {
                self.candidates(&rotated, 0..self.len(), search.limit, |row| passes(self.ids.id(row)))
            }
            VectorFilter::Ids(ids) => {
                let mut rows: Vec<_> = ids.iter().filter_map(|id| self.ids.row(id)).collect();
                rows.sort_unstable();
                rows.dedup();
                self.candidates(&rotated, rows.into_iter(), search.limit, |_| true)
            }
        };
        let mut best = match search.original {
            Some(original) => self.settled(query, candidates, search.limit.min(MAX_SETTLED), original),
            None => candidates,
        };
        best.truncate(search.limit);
        Ok(best.into_iter().map(|scored| self.hit(scored)).collect())
    }

    /// Returns the best rows with their cosines by bytes, the best first: more than `limit`, so that originals can change
    /// their order.
    fn candidates(
        &self,
        rotated: &[f32],
        rows: impl ExactSizeIterator<Item = usize>,
        limit: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<Scored> {
        let wanted = limit.saturating_mul(FETCHED_PER_HIT).saturating_add(MORE_FETCHED);
        let (query, mut best) = (RowQuery::new(rotated), Best::new(wanted, &self.ids));
        match &self.codes {
            Some(codes) if rows.len() > self.sizes.without_codes => {
                let code_query = codes.query(rotated);
                let mut by_codes = Best::new(self.sizes.rescored(limit, rows.len()), &self.ids);
                for row in rows {
                    by_codes.offer(codes.estimate(row, &code_query), row, &allowed);
                }
                for (_, row) in by_codes.into_unsorted() {
                    best.offer(self.rows.cosine(row, &query), row, |_| true);
                }
            }
            _ => {
                for row in rows {
                    best.offer(self.rows.cosine(row, &query), row, &allowed);
                }
            }
        }
        best.into_sorted()
    }

    /// Replaces the cosines of candidates that may be among the first `limit` by exact ones. The others follow these as they were.
    fn settled(
        &self,
        query: &[f32],
        candidates: Vec<Scored>,
        limit: usize,
        original: impl Fn(&str) -> Option<Vec<f32>>,
    ) -> Vec<Scored> {
        let error = |row: usize| self.rows.step(row) * MOST_STEPS_OFF;
        let (mut near, mut others) = (Vec::new(), Vec::new());
        let most = limit.saturating_mul(FETCHED_PER_HIT).saturating_add(MORE_FETCHED);
        let bar = candidates.get(limit - 1).map_or(f32::MIN, |(worst, row)| worst - error(*row));
        for (cosine, row) in candidates {
            let may_be_among = near.len() < most && cosine + error(row) >= bar;
            if may_be_among { &mut near } else { &mut others }.push((cosine, row));
        }
        for (cosine, row) in &mut near {
            if let Some(exact) = original(self.ids.id(*row)).and_then(|vector| exact_cosine(query, &vector)) {
                *cosine = exact;
            }
        }
        near.sort_unstable_by(|left, right| best::compare(&self.ids, left, right));
        near.extend(others);
        near
    }

    fn hit(&self, (cosine, row): Scored) -> VectorHit {
        // Rounding may make it a little too large.
        VectorHit { id: self.ids.id(row).to_owned(), cosine: cosine.clamp(-1.0, 1.0) }
    }

    /// Checks a vector, and returns it rotated and with length 1.
    #[expect(clippy::cast_possible_truncation, reason = "the numbers are not larger than 1")]
    fn rotated(&self, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
        if vector.len() != self.dimension {
            return Err(VectorError::WrongDimension { expected: self.dimension, actual: vector.len() });
        }
        if let Some(position) = vector.iter().position(|number| !number.is_finite()) {
            return Err(VectorError::NotFinite { position });
        }
        let length = dot(vector, vector).sqrt();
        if length == 0.0 {
            return Err(VectorError::Zero);
        }
        let mut rotated: Vec<f32> =
            vector.iter().map(|number| (f64::from(*number) / length) as f32).collect();
        self.rotation.rotate(&mut rotated);
        Ok(rotated)
    }
}

impl Sizes {
    /// Returns how many of `rows` are compared by bytes.
    fn rescored(self, limit: usize, rows: usize) -> usize {
        self.rescored.max(limit.saturating_mul(self.rescored_per_hit)).max(rows / self.rescored_share)
    }
}

impl fmt::Debug for VectorSearch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorSearch")
            .field("limit", &self.limit)
            .field("filter", &self.filter)
            .field("original", &self.original.is_some())
            .finish()
    }
}

impl fmt::Debug for VectorFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Where(_) => f.write_str("Where"),
            Self::Ids(ids) => f.debug_tuple("Ids").field(ids).finish(),
        }
    }
}

/// Returns the cosine of two vectors; `None` if they have different dimensions, or one has no direction.
#[expect(clippy::cast_possible_truncation, reason = "between -1 and 1")]
fn exact_cosine(left: &[f32], right: &[f32]) -> Option<f32> {
    let lengths = dot(left, left).sqrt() * dot(right, right).sqrt();
    let cosine = (dot(left, right) / lengths) as f32;
    (left.len() == right.len() && cosine.is_finite()).then_some(cosine)
}

/// In 64 bits, the squares of no vector are too large or too small.
fn dot(left: &[f32], right: &[f32]) -> f64 {
    left.iter().zip(right).map(|(left, right)| f64::from(*left) * f64::from(*right)).sum()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
