//! What a service manager is given: files, and the commands that steer it.

use std::path::PathBuf;

use crate::cli::text;

/// A file of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A command that steers the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) words: Vec<String>,
    /// It has to succeed.
    pub(super) must: bool,
}

impl Call {
    /// As a person types it.
    pub(super) fn typed(&self) -> String {
        let quoted = self.words.iter().map(|word| text::quoted(word));
        quoted.collect::<Vec<_>>().join(" ")
    }
}
