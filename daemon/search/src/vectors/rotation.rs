//! A fixed rotation that makes the numbers of a vector similar in size.
//!
//! Embedding models have a few dimensions with much larger numbers than the others. Signs of the others would then say little,
//! and a scale for all numbers would be too coarse for them. Rotating all vectors changes no cosine, and spreads what a dimension
//! holds over all of them.
//!
//! A random matrix would take d² multiplications for a vector. Random signs followed by a Hadamard transform do the same in
//! d·log d additions; for lengths that are not powers of two, the transforms of the first and of the last numbers alternate.

/// A rotation of vectors of one length. Equal for all indexes of this length.
#[derive(Debug)]
pub(super) struct Rotation {
    /// One for each round, of random signs: 1 or -1, scaled such that the round does not change lengths.
    rounds: [Vec<f32>; ROUNDS],
    /// Numbers of a transform: the largest power of two that is not larger than a vector.
    width: usize,
}

/// The first and the last numbers are transformed twice.
const ROUNDS: usize = 4;
/// Arbitrary, but the same in every process, so that equal vectors give equal results everywhere.
const SEED: u64 = 0x5a7c_4e1d_0b36_92f8;

impl Rotation {
    pub(super) fn new(dimension: usize) -> Self {
        let width = 1_usize << dimension.max(1).ilog2();
        let mut state = SEED;
        let rounds = std::array::from_fn(|round| {
            let transformed = transformed(round, width, dimension);
            let scale = scale(width);
            let number = |at| {
                let size = if transformed.contains(&at) { scale } else { 1.0 };
                if next_random(&mut state) >> 63 == 0 { size } else { -size }
            };
            (0..dimension).map(number).collect()
        });
        Self { rounds, width }
    }

    /// Rotates a vector of the length for which this is.
    pub(super) fn rotate(&self, vector: &mut [f32]) {
        let dimension = vector.len();
        for (round, signs) in self.rounds.iter().enumerate() {
            for (number, sign) in vector.iter_mut().zip(signs) {
                *number *= sign;
            }
            hadamard(&mut vector[transformed(round, self.width, dimension)]);
        }
    }

    /// Memory that this takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.rounds.iter().map(|signs| signs.capacity() * size_of::<f32>()).sum()
    }
}

/// Returns the numbers that a round transforms.
fn transformed(round: usize, width: usize, dimension: usize) -> std::ops::Range<usize> {
    if round.is_multiple_of(2) { 0..width } else { dimension - width..dimension }
}

/// A transform of `width` numbers makes vectors longer by its square root.
#[expect(clippy::cast_precision_loss, reason = "at most the largest dimension, which is exact")]
fn scale(width: usize) -> f32 {
    (width as f32).sqrt().recip()
}

/// The Walsh-Hadamard transform of 2ⁿ numbers.
fn hadamard(numbers: &mut [f32]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
}

/// `SplitMix64`, <https://doi.org/10.1145/2714064.2660195>.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(left: &[f32], right: &[f32]) -> f32 {
        left.iter().zip(right).map(|(left, right)| left * right).sum()
    }

    #[test]
    fn dot_products_stay_the_same() {
        for dimension in [1, 2, 3, 7, 64, 96, 384, 1000, 1536] {
            let rotation = Rotation::new(dimension);
            let mut state = 1;
            let mut random = || {
                let [low, high, ..] = next_random(&mut state).to_le_bytes();
                f32::from(u16::from_le_bytes([low, high])) / 65536.0 - 0.5
            };
            let mut left: Vec<f32> = (0..dimension).map(|_| random()).collect();
            let mut right: Vec<f32> = (0..dimension).map(|_| random()).collect();
            let before = (dot(&left, &right), dot(&left, &left));
            rotation.rotate(&mut left);
            rotation.rotate(&mut right);
            let after = (dot(&left, &right), dot(&left, &left));
            assert!((before.0 - after.0).abs() < 1e-3, "{dimension}: {before:?} became {after:?}");
            assert!((before.1 - after.1).abs() < 1e-3, "{dimension}: {before:?} became {after:?}");
        }
    }

    #[test]
    fn a_single_large_number_is_spread_over_all() {
        for dimension in [384, 1536, 3072] {
            let rotation = Rotation::new(dimension);
            for at in [0, dimension / 2, dimension - 1] {
                let mut vector = vec![0.0; dimension];
                vector[at] = 1.0;
                rotation.rotate(&mut vector);
                let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
                assert!(largest < 0.2, "{dimension}, {at}: {largest}");
            }
        }
    }
}
