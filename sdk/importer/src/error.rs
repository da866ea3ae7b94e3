//! Why an importer gives up.

use std::io;

use crate::JsonError;

/// The kind of an [`ImportError`]; the host treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The files are not of the format named in `run`.
    NotThisFormat,
    /// The format is known, its version is not.
    UnsupportedVersion,
    /// The bytes cannot be read as the format. Inside one element it skips that element only.
    Malformed,
    /// A limit of the host or of the plugin was met.
    Limit,
    /// A file could not be read.
    Io,
    /// The host asked to stop.
    Cancelled,
    /// The plugin met a case that it holds impossible.
    Internal,
}

/// An error with its place in the export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ImportError {
    /// What kind of trouble it is.
    pub kind: ErrorKind,
    /// Lower-case, in the user's words, without the place.
    pub message: String,
    /// `conversations-001.json[17]`, `conversations.json@1048576` or a file name.
    pub locator: Option<String>,
}

impl ImportError {
    /// An error without a place.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), locator: None }
    }

    /// [`ErrorKind::Malformed`] without a place.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    /// [`ErrorKind::NotThisFormat`] without a place.
    pub fn not_this_format(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotThisFormat, message)
    }

    /// [`ErrorKind::Internal`] without a place.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The host's wish to stop.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "stopped by the host")
    }

    /// Says where, unless a place is already known.
    #[must_use]
    pub fn at(mut self, locator: impl Into<String>) -> Self {
        self.locator.get_or_insert_with(|| locator.into());
        self
    }
}

impl From<JsonError> for ImportError {
    fn from(error: JsonError) -> Self {
        Self::malformed(error.to_string())
    }
}

/// Gives back the error that [`crate::Reader`] put inside.
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
