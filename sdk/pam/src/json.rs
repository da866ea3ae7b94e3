//! A strict JSON reader with bounded depth for untrusted text.
//!
//! `serde_json` silently keeps the last of two equal keys, turns large integers into floats, and rejects lone surrogates without
//! their position. Rules need all three.

pub(crate) mod lexer;
pub(crate) mod tree;

/// Why a text is not accepted as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// Bytes from the start of the text.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else is expected here.
    #[error("{0} expected")]
    Expected(&'static str),
    /// The text ends too early.
    #[error("the text is cut off")]
    CutOff,
    /// Not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// A control character inside a string.
    #[error("a control character stands unescaped in a string")]
    Control,
    /// An unknown or incomplete escape.
    #[error("an escape does not exist")]
    Escape,
    /// `NaN` or `Infinity`, which Python writes but JSON does not allow.
    #[error("NaN and Infinity are no JSON")]
    NotANumber,
    /// A number beyond the range of a double.
    #[error("a number is too large")]
    NumberRange,
    /// More nested objects and arrays than the limit.
    #[error("more than {0} levels of nesting")]
    Depth(usize),
    /// A value longer than the limit, in bytes.
    #[error("a value is longer than {0} bytes")]
    TooLong(usize),
    /// A value that contains more values than the limit.
    #[error("a value holds more than {0} others")]
    TooMany(usize),
}
