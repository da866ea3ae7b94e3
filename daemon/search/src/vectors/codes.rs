//! Codes of one bit for each number, and estimates of cosines from them.
//!
//! This is the estimator of `RaBitQ` (J. Gao, C. Long: `RaBitQ`: Quantizing High-Dimensional Vectors with a Theoretical Error Bound
//! for Approximate Nearest Neighbor Search. SIGMOD 2024, <https://doi.org/10.1145/3654970>). With the mean `m` of all vectors, the
//! dot product of a query `q` and a vector `x` is
//!
//! ```text
//! q·x = (q − m)·(x − m) + m·x + (q·m − m·m)
//! ```
//!
//! The last term is the same for all vectors. `m·x` is a number for each vector. For `c = x − m` only the signs `s` are known,
//! and two more numbers: `(q − m)·c ≈ (q − m)·s × |c|² / Σ|cᵢ|`, which is exact for a query in the direction of `x`, and off by an
//! error around zero for others. Without the mean, all vectors of a model that share a large common part would have almost
//! the same signs.

use super::{
    blocks::Blocks,
    kernels::{self, PLANES},
    rows::{Row, Rows},
};

/// Bits of a word of a code.
const WORD: usize = u64::BITS as usize;
/// Vectors from which the mean is estimated. The mean of a sample is off by a hundredth of the distances from it.
const MEAN_SAMPLE: usize = 8192;
/// Half a step between the numbers of a query, relative to their standard deviation: the best one for normally distributed
/// numbers and four levels (J. Max: Quantizing for Minimum Distortion. IRE Transactions on Information Theory, 1960).
const HALF_STEP: f32 = 0.498;
/// Levels of a number of a query.
const LEVELS: u32 = 1 << PLANES;

/// The codes of rows, in the same order.
#[derive(Debug)]
pub(super) struct Codes {
    mean: Vec<f32>,
    signs: Blocks<u64>,
    /// `|c|² / Σ|cᵢ|`, and `m·x`.
    factors: Blocks<[f32; 2]>,
}

/// The code of one row.
struct Code {
    signs: Vec<u64>,
    factors: [f32; 2],
}

impl Codes {
    /// Makes codes of all rows, of which there is at least one.
    pub(super) fn new(dimension: usize, rows: &Rows) -> Self {
        let mut codes = Self {
            mean: mean(dimension, rows),
            signs: Blocks::new(dimension.div_ceil(WORD)),
            factors: Blocks::new(1),
        };
        for index in 0..rows.len() {
            codes.push(rows.row(index));
        }
        codes
    }

    /// Appends the code of a row.
    pub(super) fn push(&mut self, row: Row<'_>) {
        let code = self.code(row);
        self.signs.push(&code.signs);
        self.factors.push(&[code.factors]);
    }

    /// Replaces the code of a row.
    pub(super) fn set(&mut self, index: usize, row: Row<'_>) {
        let code = self.code(row);
        self.signs.set(index, &code.signs);
        self.factors.set(index, &[code.factors]);
    }

    /// Removes a code. The last one takes its place.
    pub(super) fn swap_remove(&mut self, index: usize) {
        self.signs.swap_remove(index);
        self.factors.swap_remove(index);
    }

    fn code(&self, (numbers, scale): Row<'_>) -> Code {
        let centered = |number: i8, mean: f32| f32::from(number) * scale - mean;
        let words = numbers.chunks(WORD).zip(self.mean.chunks(WORD));
        let signs = words.map(|(numbers, means)| {
            let bits = numbers.iter().zip(means).enumerate();
            bits.fold(0, |word, (at, (number, mean))| word | u64::from(centered(*number, *mean) > 0.0) << at)
        });
        let squares = kernels::sum(numbers, &self.mean, |number, mean| centered(number, mean).powi(2));
        let sizes = kernels::sum(numbers, &self.mean, |number, mean| centered(number, mean).abs());
        let common = kernels::sum(numbers, &self.mean, |number, mean| f32::from(number) * mean) * scale;
        let slope = if sizes > 0.0 { squares / sizes } else { 0.0 };
        Code { signs: signs.collect(), factors: [slope, common] }
    }

    /// Makes a query of a vector that is rotated and has length 1.
    pub(super) fn query(&self, vector: &[f32]) -> CodeQuery {
        CodeQuery::new(vector.iter().zip(&self.mean).map(|(number, mean)| number - mean).collect())
    }

    /// Estimates the dot product of a row and a query, less what it has in common with the dot products of all rows.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a relative error of 2⁻²⁴ is much less than that of the estimate"
    )]
    pub(super) fn estimate(&self, index: usize, query: &CodeQuery) -> f32 {
        let distance = kernels::weighted_distance(self.signs.row(index), &query.planes);
        let [slope, common] = self.factors.row(index)[0];
        slope * query.scale * (query.most - 2.0 * distance as f32) + common
    }

    /// Memory that the codes take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.mean.capacity() * size_of::<f32>() + self.signs.bytes() + self.factors.bytes()
    }
}

/// Returns the mean of the rows, or of some evenly distributed ones if there are many.
#[expect(clippy::cast_precision_loss, reason = "a small number of rows")]
fn mean(dimension: usize, rows: &Rows) -> Vec<f32> {
    let mut mean = vec![0.0; dimension];
    let sample = (0..rows.len()).step_by(rows.len().div_ceil(MEAN_SAMPLE).max(1));
    let share = (sample.len().max(1) as f32).recip();
    for index in sample {
        let (numbers, scale) = rows.row(index);
        for (mean, number) in mean.iter_mut().zip(numbers) {
            *mean += f32::from(*number) * (scale * share);
        }
    }
    mean
}

/// A query that is compared with codes: its numbers are rounded to odd multiples of half a step, which are sums of +2ⁱ or -2ⁱ for
/// each bit `i`, so that the dot product with signs is counted in bits that differ.
#[derive(Debug)]
pub(super) struct CodeQuery {
    /// Bit `i` of each number.
    planes: [Vec<u64>; PLANES],
    scale: f32,
    /// The dot product with signs that are those of the query, if all numbers had the highest level.
    most: f32,
}

impl CodeQuery {
    #[expect(clippy::cast_precision_loss, reason = "dimensions are small")]
    fn new(centered: Vec<f32>) -> Self {
        let dimension = centered.len();
        let squares = kernels::sum(&centered, &centered, |left, right| left * right);
        let half_step = HALF_STEP * (squares / dimension as f32).sqrt();
        let levels: Vec<u32> = centered.iter().map(|number| level(number / half_step)).collect();
        let mut planes = std::array::from_fn(|_| vec![0; dimension.div_ceil(WORD)]);
        for (at, level) in levels.iter().enumerate() {
            for (bit, plane) in planes.iter_mut().enumerate() {
                plane[at / WORD] |= u64::from(level >> bit & 1) << (at % WORD);
            }
        }
        // Rounding makes the query shorter; with this scale its dot product with itself is right again.
        let product = kernels::sum(&levels, &centered, |level, number| multiple(level) * number);
        let scale = if product > 0.0 { squares / product } else { 0.0 };
        Self { planes, scale, most: (LEVELS - 1) as f32 * dimension as f32 }
    }
}

/// Returns the level whose multiple of half a step is nearest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "levels are cut to the range on purpose"
)]
fn level(half_steps: f32) -> u32 {
    let lowest = multiple(0);
    // Not a number if all numbers are zero, which becomes level 0.
    (((half_steps - lowest) / 2.0).round() as u32).min(LEVELS - 1)
}

/// Returns the odd multiple of half a step that a level stands for.
#[expect(clippy::cast_precision_loss, reason = "levels are small")]
fn multiple(level: u32) -> f32 {
    2.0 * level as f32 - (LEVELS - 1) as f32
}
