//! Conversion between the generated types and the daemon's own: pairs of free functions that name every field.

pub mod conversation;
pub mod device;
pub mod draft;
pub mod export;
pub mod import;
pub mod memory;
pub mod message;
pub mod peer;
pub mod plugin;
pub mod quarantine;
pub mod recording;
pub mod relation;
pub mod scalar;
pub mod sync;
#[cfg(test)]
mod testing;

/// A field of a message from a client is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct WireError {
    /// The path of the field, such as `filter.types`.
    pub field: String,
    /// The problem, as a predicate: `must not be empty`.
    pub problem: String,
}

impl WireError {
    /// Creates an error from a field and its problem.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// Prefixes the field with the name of the field `outer` that contains the message.
    #[must_use]
    pub fn in_field(self, outer: &str) -> Self {
        Self { field: format!("{outer}.{}", self.field), problem: self.problem }
    }
}

impl From<WireError> for super::status::CallError {
    fn from(error: WireError) -> Self {
        let WireError { field, problem } = error;
        Self::InvalidField { field, problem }
    }
}
