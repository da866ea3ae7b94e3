//! Why a vector is refused.

use super::MAX_DIMENSION;

/// Why a vector cannot be inserted or searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// An index cannot have vectors of this length.
    #[error("vectors of {dimension} numbers are not supported: a vector has between 1 and {MAX_DIMENSION}")]
    UnsupportedDimension {
        /// Numbers of a vector.
        dimension: usize,
    },
    /// The vector is of another model than the others.
    #[error("the vector has {actual} numbers instead of {expected}")]
    WrongDimension {
        /// Numbers of each vector of the index.
        expected: usize,
        /// Numbers of this one.
        actual: usize,
    },
    /// A number is infinite or not a number.
    #[error("number {position} of the vector is not finite")]
    NotFinite {
        /// Where it is; the first number has position 0.
        position: usize,
    },
    /// All numbers are zero, so that the vector has no direction, and no cosine.
    #[error("all numbers of the vector are zero")]
    Zero,
}
