//! JSON text read without trust: strict grammar, bounded depth, nothing lost that a checksum or a rule needs.
//!
//! `serde_json` reads typed values fast, but it keeps the last of two equal keys in silence, turns large integers
//! into floats and refuses lone surrogates without saying where; rules need all three.

pub(crate) mod lexer;
pub(crate) mod tree;

/// Why a text is no JSON that we take.
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
    /// Something else belongs here.
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
    /// A backslash before something that cannot be escaped.
    #[error("an escape does not exist")]
    Escape,
    /// `NaN` or `Infinity`, which Python writes and JSON does not know.
    #[error("NaN and Infinity are no JSON")]
    NotANumber,
    /// A number too large for a double.
    #[error("a number is too large")]
    NumberRange,
    /// Objects or arrays inside each other beyond the limit.
    #[error("more than {0} levels of nesting")]
    Depth(usize),
    /// A value longer than is read, in bytes.
    #[error("a value is longer than {0} bytes")]
    TooLong(usize),
    /// A value that consists of more others than are read.
    #[error("a value holds more than {0} others")]
    TooMany(usize),
}
