//! The inner loops, over numbers of one row, written such that the compiler makes vector instructions of them.

/// Bits of each number of a query that is compared with codes. The error of an estimate, which comes from the codes, grows by a tenth
/// compared with exact numbers.
pub(super) const PLANES: usize = 2;
/// Sums that are added up independently, as the compiler must not reorder the additions of one.
const LANES: usize = 16;

/// Returns the dot product. The caller makes sure that it fits: the numbers of `query` are small enough for their count.
#[inline]
pub(super) fn dot(row: &[i8], query: &[i16]) -> i32 {
    row.iter().zip(query).map(|(row, query)| i32::from(*row) * i32::from(*query)).sum()
}

/// Returns the number of bits in which a code differs from each plane of a query, where those of plane `i` count 2ⁱ times.
///
/// The compiler counts the bits of several words at once, also for processors of which it does not know that they have an
/// instruction for it.
#[inline]
pub(super) fn weighted_distance(code: &[u64], planes: &[Vec<u64>; PLANES]) -> u64 {
    let [ones, twos] = planes;
    let words = code.iter().zip(ones).zip(twos);
    words.map(|((code, one), two)| differing(*code, *one) + 2 * differing(*code, *two)).sum()
}

/// In 64 bits, as words are counted that way in vector registers.
#[inline]
fn differing(left: u64, right: u64) -> u64 {
    u64::from((left ^ right).count_ones())
}

/// Returns the sum of `term` over both slices, which have the same length.
#[inline]
pub(super) fn sum<A: Copy, B: Copy>(left: &[A], right: &[B], term: impl Fn(A, B) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (left_chunks, right_chunks) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left_chunks.remainder().iter().zip(right_chunks.remainder());
    let rest: f32 = rest.map(|(left, right)| term(*left, *right)).sum();
    for (left, right) in left_chunks.zip(right_chunks) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += term(*left, *right);
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_of_higher_planes_count_more(rows in prop::collection::vec(any::<[u64; PLANES + 1]>(), 0..40)) {
            let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<u64>>();
            let (code, planes): (_, [_; PLANES]) = (column(PLANES), std::array::from_fn(column));
            let mut expected = 0;
            for (word, bit) in (0..rows.len()).flat_map(|word| (0..64).map(move |bit| (word, bit))) {
                for (weight, plane) in planes.iter().enumerate() {
                    let differ = (code[word] ^ plane[word]) >> bit & 1;
                    expected += differ << weight;
                }
            }
            prop_assert_eq!(weighted_distance(&code, &planes), expected);
        }

        #[test]
        fn dot_products_are_exact(pairs in prop::collection::vec((any::<i8>(), -8000..8000_i16), 0..300)) {
            let (row, query): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            let expected: i64 = pairs.iter().map(|(row, query)| i64::from(*row) * i64::from(*query)).sum();
            prop_assert_eq!(i64::from(dot(&row, &query)), expected);
        }
    }

    #[test]
    fn sums_have_all_terms() {
        for len in [0_u8, 1, 15, 16, 17, 100] {
            let ones = vec![1.0_f32; usize::from(len)];
            assert!((sum(&ones, &ones, |left, right| left * right) - f32::from(len)).abs() < 1e-6);
        }
    }
}
