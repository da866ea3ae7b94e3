//! The errors of an importer.

use std::io;

use crate::JsonError;

/// The kind of an [`ImportError`], which decides what the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The files are not in the format passed to `run`.
    NotThisFormat,
    /// The format is known, but its version is not.
    UnsupportedVersion,
    /// The bytes cannot be parsed as the format. From a closure of [`crate::JsonArray::each`], it skips only that element.
    Malformed,
    /// A limit of the host or of the plugin was exceeded.
    Limit,
    /// A file could not be read.
    Io,
    /// The host asked to stop.
    Cancelled,
    /// The plugin reached a state that should be impossible.
    Internal,
}

/// Why a run or a part of it failed, and where in the export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ImportError {
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// Lower-case, in the user's words, without the locator.
    pub message: String,
    /// An element (`conversations-001.json[17]`), an offset in bytes (`conversations.json@1048576`) or a file name.
    pub locator: Option<String>,
}

impl ImportError {
    /// An error without a locator.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), locator: None }
    }

    /// [`ErrorKind::Malformed`] without a locator.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    /// [`ErrorKind::NotThisFormat`] without a locator.
    pub fn not_this_format(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotThisFormat, message)
    }

    /// [`ErrorKind::Internal`] without a locator.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// [`ErrorKind::Cancelled`]: the host asked to stop.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "stopped by the host")
    }

    /// Sets the locator unless there is one already.
    #[must_use]
    pub fn at(mut self, locator: impl Into<String>) -> Self {
        self.locator.get_or_insert_with(|| locator.into());
        self
    }
}

/// The value, or none if what was read is [`ErrorKind::Malformed`]. For the first of two passes over an export: the second one
/// reports what cannot be read.
///
/// # Errors
/// All others.
pub fn unless_malformed<T>(result: Result<T, ImportError>) -> Result<Option<T>, ImportError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind == ErrorKind::Malformed => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<JsonError> for ImportError {
    fn from(error: JsonError) -> Self {
        Self::malformed(error.to_string())
    }
}

/// Unwraps the error that [`crate::Reader`] wrapped.
impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(inside) => inside,
            Err(error) => Self::new(ErrorKind::Io, error.to_string()),
        }
    }
}

impl From<ImportError> for io::Error {
    fn from(error: ImportError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_malformed_values_are_left_to_the_second_pass() {
        assert_eq!(unless_malformed(Ok(1)), Ok(Some(1)));
        assert_eq!(unless_malformed::<u8>(Err(ImportError::malformed("it is not JSON"))), Ok(None));
        assert_eq!(unless_malformed::<u8>(Err(ImportError::cancelled())), Err(ImportError::cancelled()));
    }
}
