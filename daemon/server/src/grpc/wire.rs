//! Generated types on one side, the daemon's own on the other: pairs of free functions, each naming every field.

pub mod conversation;
pub mod draft;
pub mod export;
pub mod import;
pub mod memory;
pub mod message;
pub mod relation;
pub mod scalar;

/// A field of a message from outside does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct WireError {
    /// Its path, `filter.types`.
    pub field: String,
    /// What is wrong, as a predicate: `must not be empty`.
    pub problem: String,
}

impl WireError {
    /// Names a field and what is wrong with it.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The same, seen from the message that holds `outer`.
    #[must_use]
    pub fn inside(self, outer: &str) -> Self {
        Self { field: format!("{outer}.{}", self.field), problem: self.problem }
    }
}

impl From<WireError> for super::status::Fault {
    fn from(error: WireError) -> Self {
        let WireError { field, problem } = error;
        Self::Field { field, problem }
    }
}

#[cfg(test)]
pub(crate) mod counts {
    use proptest::{array, prelude::*};

    /// Counts that the contract has as they are.
    pub(crate) fn counts<const N: usize>() -> impl Strategy<Value = [u64; N]> {
        array::UniformArrayStrategy::new(0..=i64::MAX.unsigned_abs())
    }
}
