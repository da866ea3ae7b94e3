//! Vectors with a byte for each number.

use super::{blocks::Blocks, kernels};

/// The vectors of an index, rotated and of length 1, with numbers rounded to a byte.
#[derive(Debug)]
pub(super) struct Rows {
    numbers: Blocks<i8>,
    /// What the numbers of a row are multiplied with.
    scales: Blocks<f32>,
}

/// Largest number of a row.
const LARGEST: f32 = 127.0;

/// A row: numbers and their scale.
pub(super) type Row<'a> = (&'a [i8], f32);

impl Rows {
    pub(super) fn new(dimension: usize) -> Self {
        Self { numbers: Blocks::new(dimension), scales: Blocks::new(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    #[inline]
    pub(super) fn row(&self, index: usize) -> Row<'_> {
        (self.numbers.row(index), self.scales.row(index)[0])
    }

    /// Appends a vector.
    pub(super) fn push(&mut self, vector: &[f32]) {
        let (numbers, scale) = rounded(vector);
        self.numbers.push(&numbers);
        self.scales.push(&[scale]);
    }

    /// Replaces a vector.
    pub(super) fn set(&mut self, index: usize, vector: &[f32]) {
        let (numbers, scale) = rounded(vector);
        self.numbers.set(index, &numbers);
        self.scales.set(index, &[scale]);
    }

    /// Removes a vector. The last one takes its place.
    pub(super) fn swap_remove(&mut self, index: usize) {
        self.numbers.swap_remove(index);
        self.scales.swap_remove(index);
    }

    /// Returns the cosine of a row and a query, with the error of rounding.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a relative error of 2⁻²⁴ is much less than that of rounding"
    )]
    pub(super) fn cosine(&self, index: usize, query: &RowQuery) -> f32 {
        let (numbers, scale) = self.row(index);
        kernels::dot(numbers, &query.numbers) as f32 * (scale * query.scale)
    }

    /// Returns the step between two numbers of a row. Each number is off by up to half a step, and the cosine of a query by
    /// 1/√12 steps (standard deviation).
    pub(super) fn step(&self, index: usize) -> f32 {
        self.row(index).1
    }

    /// Memory that the rows take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.bytes() + self.scales.bytes()
    }
}

/// A query that is compared with rows. Its numbers have 16 bits: that costs nothing, since the bytes of rows are widened anyway.
#[derive(Debug)]
pub(super) struct RowQuery {
    numbers: Vec<i16>,
    scale: f32,
}

impl RowQuery {
    /// Rounds a vector that is rotated and has length 1.
    #[expect(clippy::cast_possible_truncation, reason = "numbers are rounded to the range on purpose")]
    pub(super) fn new(vector: &[f32]) -> Self {
        let step = largest(vector) / largest_number(vector.len());
        Self { numbers: vector.iter().map(|number| (number / step).round() as i16).collect(), scale: step }
    }
}

/// Returns the largest number of a query whose dot product with any row fits into 32 bits.
#[expect(clippy::cast_precision_loss, reason = "rounded down with room to spare")]
fn largest_number(dimension: usize) -> f32 {
    let largest = i32::MAX as f32 / (LARGEST * (dimension as f32 + 1.0));
    largest.min(f32::from(i16::MAX)).floor()
}

/// Rounds a vector of length 1.
#[expect(clippy::cast_possible_truncation, reason = "numbers are rounded to the range on purpose")]
fn rounded(vector: &[f32]) -> (Vec<i8>, f32) {
    let step = largest(vector) / LARGEST;
    let numbers: Vec<i8> = vector.iter().map(|number| (number / step).round() as i8).collect();
    // Not the step: with this scale the cosine of a vector and itself is 1, however its numbers were rounded.
    let scale = kernels::sum(&numbers, vector, |number, exact| f32::from(number) * exact).recip();
    (numbers, scale)
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}
