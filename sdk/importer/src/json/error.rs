//! What is wrong with a JSON text.

/// A place and a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (byte {offset} of the element)")]
pub struct JsonError {
    /// Bytes from the start of the element.
    pub offset: usize,
    /// Lower-case, without the place.
    pub problem: &'static str,
}
